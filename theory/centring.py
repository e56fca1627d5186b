"""Centring by client, which Assumption III.1 asks for and no kernel does by itself."""

from collections.abc import Hashable, Mapping

import numpy as np
from jaxtyping import Float

from theory._loose import ArrayLike
from theory._validate import as_groups, as_points

_UNIT_ROUNDOFF = 2.0**-53


def centre(
    x: ArrayLike, client: ArrayLike, means: Mapping[Hashable, object] | None = None
) -> Float[np.ndarray, "n d"]:
    """Subtracts each client's mean, as Assumption III.1 asks (E x = 0 for every client).

    Args:
        x: points, (n, d).
        client: one label per row.
        means: a mean of shape (d,) per client, for instance that of its full training set; by
            default the mean of the client's rows in x.

    Raises:
        ValueError: bad points or labels, a client without a mean, or a row that equals its mean: no
            kernel is defined by a zero row. A client with one sample is always such a row unless
            its mean is given.
    """
    points = as_points(x)
    groups = as_groups(client, len(points))
    result = np.empty_like(points)
    for name, rows in zip(groups.names, groups.rows, strict=True):
        own = points[rows]
        mean = _mean(own) if means is None else _given_mean(means, name, points.shape[1])
        result[rows] = own - mean
        size = np.maximum(np.abs(own).max(axis=1), np.abs(mean).max())
        zero = np.abs(result[rows]).max(axis=1) <= 4 * _UNIT_ROUNDOFF * size
        if zero.any():
            raise ValueError(
                f"row {rows[zero.argmax()]} of client {name!r} equals its client's mean, so "
                f"centring leaves a zero row ({int(zero.sum())} in all): drop it"
                + ("." if means else ", or give the mean of the full training set as means.")
            )
    return result


def _mean(rows: Float[np.ndarray, "k d"]) -> Float[np.ndarray, " d"]:
    first = rows.mean(axis=0)
    return first + (rows - first).mean(axis=0)  # the second pass removes the first's rounding


def _given_mean(
    means: Mapping[Hashable, object], name: Hashable, dimension: int
) -> Float[np.ndarray, " d"]:
    if name not in means:
        raise ValueError(f"means has no entry for client {name!r}: add it.")
    mean = as_points([means[name]], f"means[{name!r}]")[0]
    if len(mean) != dimension:
        raise ValueError(f"means[{name!r}] has {len(mean)} entries, points have {dimension}.")
    return mean
