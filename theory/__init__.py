"""Theory of client-specific batch normalization, with certificates."""

from theory.blocks import BlockDiagonal, diagonal_blocks
from theory.centring import centre
from theory.gram import (
    client_gram_matrix,
    direction_gram_error,
    direction_gram_matrix,
    gram_error,
    gram_matrix,
    normalised_client_gram_matrix,
    normalised_gram_error,
    normalised_gram_matrix,
)

__all__ = [
    "BlockDiagonal",
    "centre",
    "client_gram_matrix",
    "diagonal_blocks",
    "direction_gram_error",
    "direction_gram_matrix",
    "gram_error",
    "gram_matrix",
    "normalised_client_gram_matrix",
    "normalised_gram_error",
    "normalised_gram_matrix",
]
