"""Pairs of points by the angle between them, accurate near 0 and π."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from theory._pairs import half_squared_distance, unit_rows

_TILE = 512
_CHUNK = 1 << 20  # doubles in one batch of differences
_MOST = 100_000  # nearly parallel pairs looked at: beyond, the data are degenerate anyway


@dataclass(frozen=True)
class ClosePairs:
    """Pairs p < q on nearly one line, and the smallest angle between any two of the lines.

    Attributes:
        parallel: (k, 2) pairs with θ ≤ tolerance, in row order.
        antiparallel: (l, 2) pairs with π − θ ≤ tolerance.
        smallest: the smallest min(θ, π − θ) in radians; infinite without a pair.
        complete: False if there are more nearly parallel pairs than were looked at.
    """

    parallel: Int[np.ndarray, "k 2"]
    antiparallel: Int[np.ndarray, "l 2"]
    smallest: float
    complete: bool


def close_pairs(x: Float[np.ndarray, "n d"], tolerance: float) -> ClosePairs:
    """Finds all pairs of rows within `tolerance` radians of a common line; no row may be zero.

    A matrix product finds candidates; their angle is then 2 arcsin(‖x̂ ∓ ŷ‖/2), which does not
    cancel (Kahan). The product's error, far below 1e-9, cannot hide a pair.
    """
    unit = unit_rows(x).unit
    # 1 − cos(tolerance) = 2 sin²(tolerance/2), and room for the product's rounding.
    cut = 1.0 - 2.0 * np.sin(tolerance / 2) ** 2 - 1e-9
    found: list[Int[np.ndarray, "2 _"]] = []
    count, best, widest = 0, -1.0, None
    for top in range(0, len(unit), _TILE):
        cosine = np.abs(unit[top : top + _TILE] @ unit[top:].T)
        cosine[np.tri(*cosine.shape, dtype=bool)] = -1.0  # keeps q > p
        p, q = np.unravel_index(int(cosine.argmax()), cosine.shape)
        if cosine[p, q] > best:
            best, widest = float(cosine[p, q]), (top + int(p), top + int(q))
        if best >= cut and count < _MOST:
            pairs = np.stack(np.nonzero(cosine >= cut))[:, : _MOST - count]
            found.append(pairs + top)
            count += pairs.shape[1]
    if widest is None:
        none = np.empty((0, 2), dtype=np.intp)
        return ClosePairs(none, none, np.inf, True)
    pairs = np.concatenate([*found, np.array(widest)[:, None]], axis=1)
    angle, sign = line_angles(unit, pairs[0], pairs[1])
    close = angle[:-1] <= tolerance
    chosen, signs = pairs[:, :-1][:, close].T, sign[:-1][close]
    return ClosePairs(chosen[signs > 0], chosen[signs < 0], float(angle.min()), count < _MOST)


def line_angles(
    unit: Float[np.ndarray, "n d"], p: Int[np.ndarray, " k"], q: Int[np.ndarray, " k"]
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Angles min(θ, π − θ) of unit rows, and +1 where that is θ, −1 where it is π − θ."""
    angle, sign = np.empty(len(p)), np.empty(len(p))
    step = max(1, _CHUNK // unit.shape[1])
    for start in range(0, len(p), step):
        part = slice(start, start + step)
        a, b = unit[p[part]], unit[q[part]]
        sign[part] = np.where(np.einsum("ij,ij->i", a, b) < 0, -1.0, 1.0)
        half = np.sqrt(half_squared_distance(a, b, sign[part]) / 2)
        angle[part] = 2 * np.arcsin(np.minimum(half, 1.0))
    return angle, sign


def angle_between(x: Float[np.ndarray, "n d"], p: int, q: int) -> float:
    """The angle of rows p and q in radians, accurate near 0 and π."""
    angle, sign = line_angles(unit_rows(x[[p, q]]).unit, np.array([0]), np.array([1]))
    return float(angle[0] if sign[0] > 0 else np.pi - angle[0])
