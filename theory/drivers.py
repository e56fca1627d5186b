"""What brings the smallest eigenvalue of a Gram matrix down, in words and with its points."""

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from theory._angles import angle_between
from theory.singular import diagnose
from theory.spectrum import Enclosure

# A pair is named as the cause if it alone brings λ_min down to this many times its value (a close
# pair gives about twice λ_min: the other points absorb the linear half of φ), and if it is close:
# its smallest eigenvalue is below this fraction of its smaller diagonal entry.
_PAIR, _CLOSE = 3.0, 0.25


@dataclass(frozen=True)
class Driver:
    """What brings a smallest eigenvalue down.

    Attributes:
        sentence: the cause in words.
        rows: the pair of points, or the points with the largest entries in the eigenvector.
        clients: the clients of those points.
        angle: angle of the pair in degrees; None if no single pair is the cause.
    """

    sentence: str
    rows: tuple[int, ...]
    clients: tuple[Hashable, ...]
    angle: float | None


def find_driver(
    matrix: Float[np.ndarray, "k k"],
    rows: Int[np.ndarray, " k"],
    low: Enclosure,
    points: Float[np.ndarray, "n d"],
    labels: list[Hashable],
) -> Driver:
    """Names the cause of a smallest eigenvalue: a singularity, a pair, or the eigenvector."""
    if len(rows) == 1:
        row = int(rows[0])
        return Driver(f"row {row} is the only point.", (row,), (labels[row],), None)
    if low.cause is not None:
        return _singular(low, rows, points, labels)
    p, q, bound = _lowest_pair(matrix)
    pair = int(rows[p]), int(rows[q])
    angle = math.degrees(angle_between(points, *pair))
    owners = tuple(labels[row] for row in pair)
    if bound <= min(_PAIR * low.upper, _CLOSE * min(matrix[p, p], matrix[q, q])):
        sentence = (
            f"rows {pair[0]} and {pair[1]} ({_owned(owners)}) are {angle:.3g}° apart, and that "
            f"pair alone keeps it below {bound:.3g}."
        )
        return Driver(sentence, pair, owners, angle)
    leading = low.rows[:3] or pair
    owners = tuple(labels[row] for row in leading)
    sentence = (
        f"no single pair explains it (the lowest, rows {pair[0]} and {pair[1]}, {angle:.3g}° "
        f"apart, keeps it below {bound:.3g}); its eigenvector has its largest entries at rows "
        f"{', '.join(map(str, leading))} ({_owned(owners)})."
    )
    return Driver(sentence, leading, owners, None)


def _singular(
    low: Enclosure,
    rows: Int[np.ndarray, " k"],
    points: Float[np.ndarray, "n d"],
    labels: list[Hashable],
) -> Driver:
    """The cause of a singular matrix, from the points if they show it exactly."""
    found = diagnose(points[rows])
    if found is None or not found.singular:
        chosen, text = low.rows, f"not certified positive: {str(low.cause).rstrip('.')}"
    elif found.duplicates:
        groups = [tuple(int(rows[i]) for i in group) for group in found.duplicates]
        chosen = _worst_duplicates(groups, labels)
        more = "" if len(groups) == 1 else f"; {len(groups)} such groups in all"
        text = (
            f"singular: rows {chosen[0]} and {chosen[1]} are positively parallel, duplicates up to "
            f"scale{more}"
        )
    else:
        chosen = tuple(int(rows[i]) for pair in found.antipodal for i in pair)
        text = (
            f"singular: {len(found.antipodal)} antipodal pairs, such as rows {chosen[0]} and "
            f"{chosen[1]}, span only {found.rank} dimensions"
        )
    owners = tuple(labels[row] for row in chosen)
    angle = math.degrees(angle_between(points, *chosen)) if len(chosen) == 2 else None
    return Driver(f"{text} ({_owned(owners)}).", chosen, owners, angle)


def _worst_duplicates(groups: list[tuple[int, ...]], labels: list[Hashable]) -> tuple[int, int]:
    """Two duplicates of one client if there are any, for these hurt G*∞ too; else any two."""
    for group in groups:
        seen: dict[Hashable, int] = {}
        for row in group:
            if labels[row] in seen:
                return seen[labels[row]], row
            seen[labels[row]] = row
    return groups[0][0], groups[0][1]


def _lowest_pair(matrix: Float[np.ndarray, "k k"]) -> tuple[int, int, float]:
    """The pair whose 2 × 2 submatrix has the smallest eigenvalue: it bounds λ_min from above."""
    diagonal = np.diagonal(matrix)
    best = (0, 1, np.inf)
    for top in range(0, len(matrix), 256):
        a, b = diagonal[top : top + 256, None], diagonal[None, top:]
        block = matrix[top : top + 256, top:]
        low = (a + b) / 2 - np.hypot((a - b) / 2, block)
        low[np.tri(*low.shape, dtype=bool)] = np.inf
        p, q = np.unravel_index(int(low.argmin()), low.shape)
        if low[p, q] < best[2]:
            best = (top + int(p), top + int(q), float(low[p, q]))
    return best


def _owned(owners: tuple[Hashable, ...]) -> str:
    if len(set(owners)) == 1:
        return f"client {owners[0]!r}"
    return "clients " + ", ".join(map(repr, owners[:4])) + (", …" if len(owners) > 4 else "")
