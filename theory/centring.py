"""Centring by client, which Assumption III.1 asks for and no kernel does by itself."""

from collections.abc import Hashable, Mapping

import numpy as np
from jaxtyping import Float

from theory._loose import ArrayLike, Means
from theory._validate import as_groups, as_points, as_vector

_UNIT_ROUNDOFF = 2.0**-53


def centre(x: ArrayLike, client: ArrayLike, means: Means | None = None) -> Float[np.ndarray, "n d"]:
    """Subtracts each client's mean, as Assumption III.1 asks (E x = 0 for every client).

    Args:
        x: points, (n, d).
        client: one label per row.
        means: a mean of shape (d,) per client, for instance that of its full training set; by
            default the mean of the client's rows in x.

    Raises:
        TypeError: points or means that are no real numbers, or means that are no mapping.
        ValueError: bad points or labels, a client without a mean, differences beyond float64, or a
            row that equals its mean up to rounding: no kernel is defined by a zero row. A client
            with one sample is always such a row unless its mean is given.
    """
    points = as_points(x)
    groups = as_groups(client, len(points))
    if means is not None and not isinstance(means, Mapping):
        raise TypeError(
            f"means must map every client to its mean, as in {{name: mean}}, not {means!r}."
        )
    result = np.empty_like(points)
    for name, rows in zip(groups.names, groups.rows, strict=True):
        own = points[rows]
        if means is None:
            mean, size = _mean(own), np.abs(own).max(axis=0)
        else:
            mean = _given_mean(means, name, points.shape[1])
            size = np.maximum(np.abs(own), np.abs(mean))
        with np.errstate(over="ignore"):
            result[rows] = own - mean
        if not np.isfinite(result[rows]).all():
            raise ValueError(
                f"the differences to the mean of client {name!r} leave the range of float64: "
                "divide x (and means) by a power of ten."
            )
        # Column by column: a large one says nothing about the rounding of the others.
        zero = (np.abs(result[rows]) <= 4 * _UNIT_ROUNDOFF * size).all(axis=1)
        if zero.any():
            raise ValueError(
                f"row {rows[zero.argmax()]} of client {name!r} equals its client's mean, so "
                f"centring leaves a zero row ({int(zero.sum())} in all): drop it"
                + ("." if means else ", or give the mean of the full training set as means.")
            )
    return result


def _mean(rows: Float[np.ndarray, "k d"]) -> Float[np.ndarray, " d"]:
    # Columns whose sum could overflow are scaled by a power of two, the others by 1.
    exponent = np.maximum(np.frexp(np.abs(rows).max(axis=0))[1] - 900, 0)
    scaled = np.ldexp(rows, -exponent)
    first = scaled.mean(axis=0)
    # The second pass removes the first's rounding.
    return np.ldexp(first + (scaled - first).mean(axis=0), exponent)


def _given_mean(
    means: Mapping[Hashable, object], name: Hashable, dimension: int
) -> Float[np.ndarray, " d"]:
    if name not in means:
        raise ValueError(f"means has no entry for client {name!r}: add it.")
    mean = as_vector(means[name], f"means[{name!r}]")
    if len(mean) != dimension:
        raise ValueError(f"means[{name!r}] has {len(mean)} entries, points have {dimension}.")
    return mean
