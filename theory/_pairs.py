"""Cosines of all pairs of rows: by one matrix product, and anew where that is not accurate."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

UNIT_ROUNDOFF = 2.0**-53
_TILE = 128
_CHUNK = 1 << 18  # doubles in one batch of differences: stays in the cache

Profile = Callable[[np.ndarray, np.ndarray], np.ndarray]


def gamma(k: int) -> float:
    """Returns γ_k = ku / (1 - ku), the constant of k rounded operations, itself rounded upwards."""
    ku = k * UNIT_ROUNDOFF
    if ku >= 0.5:
        raise ValueError(f"{k} rounded operations are beyond what the error bounds cover.")
    return ku / (1 - ku) * (1 + 8 * UNIT_ROUNDOFF)


def norm_error(dimension: int) -> float:
    """Bound δ of the relative error of a norm from `UnitRows`, in units of u."""
    return ((dimension - 1).bit_length() + 3) / 2


@dataclass(frozen=True)
class UnitRows:
    """Rows x = 2^exponent · norm · unit; a zero row has norm 0 and unit 0."""

    unit: Float[np.ndarray, "n d"]
    norm: Float[np.ndarray, " n"]
    exponent: np.ndarray


def unit_rows(x: Float[np.ndarray, "n d"]) -> UnitRows:
    """Normalises rows at any scale; the norm's relative error is at most `norm_error(d)` u.

    Each row is first scaled by a power of two, which is exact. The squares are summed by halving,
    L = ⌈log2 d⌉ levels, so the sum has L + 1 and the norm (L + 1)/2 + 1 roundings.
    """
    exponent = np.frexp(np.abs(x).max(axis=1))[1]
    unit = np.ldexp(x, -exponent[:, None])
    squares = unit * unit
    while (width := squares.shape[1]) > 1:
        half = (width + 1) // 2
        squares[:, : width - half] += squares[:, half:]
        squares = squares[:, :half]
    norm = np.sqrt(squares[:, 0])
    unit /= np.where(norm > 0, norm, 1.0)[:, None]
    return UnitRows(unit, norm, exponent)


@dataclass(frozen=True)
class Recompute:
    """Pairs with c > 1 - near or c < far - 1 get w = 1 - |c| from ‖x̂ ∓ ŷ‖²/2 instead of from c."""

    near: float
    far: float


def half_squared_distance(
    a: Float[np.ndarray, "k d"], b: Float[np.ndarray, "k d"], sign: Float[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    """‖a - sign·b‖²/2 row by row: 1 - |c| without cancellation for unit rows (Kahan)."""
    difference = a - sign[:, None] * b
    return 0.5 * np.einsum("ij,ij->i", difference, difference)


def cosines(
    rows: Float[np.ndarray, "*s k d"],
    columns: Float[np.ndarray, "*s l d"],
    c: Float[np.ndarray, "*s k l"],
    recompute: Recompute,
) -> Float[np.ndarray, "*s k l"]:
    """Returns w = 1 - |c| for a tile and corrects c, in place, for nearly parallel pairs.

    With leading axes for as many tiles, each of its own rows and columns.
    """
    w = np.abs(c)
    np.subtract(1.0, w, out=w)
    if w.min() < max(recompute.near, recompute.far):
        found = np.nonzero((c > 1.0 - recompute.near) | (c < recompute.far - 1.0))
        step = max(1, _CHUNK // rows.shape[-1])
        for start in range(0, found[0].size, step):
            *which, p, q = (index[start : start + step] for index in found)
            at = (*which, p, q)
            sign = np.sign(c[at])
            distance = half_squared_distance(rows[(*which, p)], columns[(*which, q)], sign)
            w[at] = np.minimum(distance, 1.0)
            c[at] = sign * (1.0 - w[at])
    return w


def tiles(n: int) -> Iterator[tuple[slice, slice]]:
    """Tiles that cover the upper triangle."""
    for top in range(0, n, _TILE):
        for left in range(top, n, _TILE):
            yield slice(top, min(top + _TILE, n)), slice(left, min(left + _TILE, n))


def symmetric_kernel(
    points: UnitRows,
    profile: Profile,
    scale: Float[np.ndarray, " n"],
    recompute: Recompute,
) -> Float[np.ndarray, "n n"]:
    """Returns scale_p scale_q profile(c_pq, 1 - |c_pq|), bitwise symmetric, diagonal at c = 1."""
    unit = points.unit
    n = len(unit)
    # The same operand twice: half the flops, and symmetric.
    result = unit @ unit.T
    one = profile(np.ones(1), np.zeros(1))[0]

    for rows, columns in tiles(n):
        c = result[rows, columns].copy()
        w = cosines(unit[rows], unit[columns], c, recompute)
        value = profile(c, w)
        value *= scale[rows, None]
        value *= scale[columns]
        if rows == columns:
            value = np.triu(value, 1)
            value += value.T
            np.fill_diagonal(value, one * scale[rows] ** 2)
            result[rows, columns] = value
        else:
            result[rows, columns] = value
            result[columns, rows] = value.T

    return result
