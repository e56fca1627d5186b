"""Which part of the kernel drives the rate: V/α² or G, as α grows, at infinite width, S = I."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from theory.gram import (
    direction_gram_error,
    direction_gram_matrix,
    gram_error,
    gram_matrix,
    normalised_gram_error,
    normalised_gram_matrix,
)
from theory.spectrum import smallest_eigenvalue
from theory.studies.corollary import Generators, Points, Progress
from theory.studies.points import unit_covariance_sample
from theory.studies.rows import enclosed


def regime(
    config: Mapping[str, Any], data: Points | None, generators: Generators, progress: Progress
) -> Iterator[dict[str, Any]]:
    """Enclose λ_min of G∞, V∞/α², Λ∞ and of Eq. (10) as printed, over α and draws.

    Args:
        config: `clients`, `samples`, `dimension`, `draws`, `alphas`, `seed`.
        data: real points and their clients, or None for Gaussian clients.
        generators: gives a generator for (seed, purpose...).
        progress: told the fraction done.
    """
    size = {"clients": config["clients"], "samples": config["samples"]}
    for draw in range(config["draws"]):
        x, client = unit_covariance_sample(config, data, generators, draw)
        parts = _parts(x)
        where = {"draw": draw, **size}
        smallest = smallest_eigenvalue(parts.magnitude, parts.magnitude_error)
        yield enclosed("smallest_eigenvalue", smallest, variant="G", **where)
        same = client[:, None] == client[None, :]
        for alpha in config["alphas"]:
            kernels = _weighted(parts, same, alpha)
            kernels["printed"] = gram_matrix(x, alpha), gram_error(x, alpha)
            for variant, (matrix, error) in kernels.items():
                smallest = smallest_eigenvalue(matrix, error)
                at = {"variant": variant, "parameter": alpha, **where}
                yield enclosed("smallest_eigenvalue", smallest, **at)
        progress((draw + 1) / config["draws"])


@dataclass(frozen=True)
class _Parts:
    """G∞ and V∞ with the bounds of their errors in the 2-norm."""

    magnitude: Float[np.ndarray, "n n"]
    magnitude_error: float
    direction: Float[np.ndarray, "n n"]
    direction_error: float


def _parts(x: Float[np.ndarray, "n d"]) -> _Parts:
    return _Parts(
        normalised_gram_matrix(x),
        normalised_gram_error(x),
        direction_gram_matrix(x),
        direction_gram_error(x),
    )


def _weighted(
    parts: _Parts, same: Bool[np.ndarray, "n n"], alpha: float
) -> dict[str, tuple[Float[np.ndarray, "n n"], float]]:
    """V∞/α², Λ∞ and Λ*∞ (`same` masks the clients), each with the bound of its error."""
    weighted, magnitude = parts.direction / alpha**2, parts.magnitude
    error = parts.direction_error / alpha**2
    # Dividing by α² errs by 2u on every entry and adding by u: eps = 2u covers each.
    rounding = np.finfo(float).eps * float(np.linalg.norm(weighted) + np.linalg.norm(magnitude))
    total = error + parts.magnitude_error + 2 * rounding
    return {
        "V": (weighted, error + rounding),
        "Lambda": (weighted + magnitude, total),
        "Lambda*": (weighted + magnitude * same, total),
    }
