"""Which part of the kernel drives the rate: V/α² or G, as α grows, at infinite width, S = I."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

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
        magnitude, direction = normalised_gram_matrix(x), direction_gram_matrix(x)
        errors = normalised_gram_error(x), direction_gram_error(x)
        same = client[:, None] == client[None, :]
        yield enclosed(
            "smallest_eigenvalue",
            smallest_eigenvalue(magnitude, errors[0]),
            variant="G",
            draw=draw,
            **size,
        )
        for alpha in config["alphas"]:
            where = {"draw": draw, "parameter": alpha, **size}
            weighted, error = direction / alpha**2, errors[1] / alpha**2
            # Dividing by α² errs by 2u on every entry and adding by u: eps = 2u covers each.
            rounding = np.finfo(float).eps * float(
                np.linalg.norm(weighted) + np.linalg.norm(magnitude)
            )
            for variant, matrix, bound in (
                ("V", weighted, error + rounding),
                ("Lambda", weighted + magnitude, error + errors[0] + 2 * rounding),
                ("Lambda*", weighted + magnitude * same, error + errors[0] + 2 * rounding),
                ("printed", gram_matrix(x, alpha), gram_error(x, alpha)),
            ):
                yield enclosed(
                    "smallest_eigenvalue",
                    smallest_eigenvalue(matrix, bound),
                    variant=variant,
                    **where,
                )
        progress((draw + 1) / config["draws"])
