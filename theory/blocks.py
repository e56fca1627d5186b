"""Block-diagonal symmetric matrices, one block per client, never allocated in full."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from theory._loose import ArrayLike
from theory._validate import as_groups, as_matrix


@dataclass(frozen=True, eq=False)
class BlockDiagonal:
    """A block-diagonal matrix after Eq. (11): entries between two clients are zero.

    Attributes:
        names: the clients, in order of first appearance.
        blocks: one symmetric (k, k) matrix per client.
        rows: for each client, the indices of its k rows in the original order.
        errors: for each block a bound of ‖ΔK‖₂, its distance from the exact kernel; pass it on as
            `smallest_eigenvalue(K, error=K.errors)`. Zeros when the entries are taken as exact.
    """

    names: tuple[Hashable, ...]
    blocks: tuple[Float[np.ndarray, "_ _"], ...]
    rows: tuple[Int[np.ndarray, " _"], ...]
    errors: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.errors:
            object.__setattr__(self, "errors", (0.0,) * len(self.blocks))
        if not self.blocks or len({len(self.names), len(self.blocks), len(self.rows)}) != 1:
            raise ValueError("names, blocks and rows must be of one length, at least 1.")
        if len(self.errors) != len(self.blocks) or not all(e >= 0 for e in self.errors):
            raise ValueError("errors must hold one number >= 0 per block.")
        for name, block, rows in zip(self.names, self.blocks, self.rows, strict=True):
            if block.shape != (len(rows), len(rows)):
                raise ValueError(
                    f"block {name!r} has shape {block.shape} but {len(rows)} rows: make it square."
                )
        together = np.sort(np.concatenate(self.rows))
        if not np.array_equal(together, np.arange(len(together))):
            raise ValueError("rows must hold each of 0..n-1 exactly once.")

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n), the shape of the full matrix."""
        n = sum(len(rows) for rows in self.rows)
        return n, n

    def trace(self) -> float:
        """Sum of the diagonal."""
        return float(sum(np.trace(block) for block in self.blocks))

    def dense(self) -> Float[np.ndarray, "n n"]:
        """Returns the full matrix with rows in their original order; this allocates n² doubles."""
        result = np.zeros(self.shape)
        for block, rows in zip(self.blocks, self.rows, strict=True):
            result[np.ix_(rows, rows)] = block
        return result


def diagonal_blocks(matrix: ArrayLike, client: ArrayLike) -> BlockDiagonal:
    """Copies the clients' diagonal blocks of a dense matrix: the mask of Eq. (11), exactly.

    For the blocks so copied λ_min(blocks) >= λ_min(matrix) holds without any rounding.

    Args:
        matrix: symmetric, (n, n).
        client: one label per row.

    Raises:
        ValueError: not a square matrix, or not one label per row.
    """
    full = as_matrix(matrix, "matrix")
    if full.shape[0] != full.shape[1]:
        raise ValueError(f"matrix must be square, not {full.shape}.")
    groups = as_groups(client, len(full))
    blocks = tuple(full[np.ix_(rows, rows)] for rows in groups.rows)
    return BlockDiagonal(groups.names, blocks, groups.rows)
