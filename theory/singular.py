"""Why a Gram matrix is singular: from the points, exactly in theory; from the matrix, by search.

For Eq. (10) (and κ₁/(dλ), which is proportional) the matrix is singular if and only if a row is
zero, or two rows are positively parallel, or the lines that carry antipodal pairs have linearly
dependent directions, as more than d lines always have. Indeed Σ a_p σ(v·x_p) = 0 for all v needs
its kinks to cancel on each hyperplane v ⟂ x_p. A line with one direction then has coefficient 0,
and on a line with both, σ(t) - σ(-t) = t leaves a multiple of the linear function v·x_p; these
cancel only if the directions are dependent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float, Int

from theory._loose import ArrayLike, Real
from theory._pairs import UNIT_ROUNDOFF, gamma, half_squared_distance, tiles, unit_rows
from theory._validate import as_points, positive

_BLOCK = 256
_SHOWN = 4


@dataclass(frozen=True)
class Diagnosis:
    """Degenerate rows among the points.

    Attributes:
        singular: whether they make the Gram matrix of Eq. (10) singular.
        cause: one or more sentences that say so, with row indices.
        rows: the rows that the cause is about.
        zero: zero rows.
        duplicates: groups of rows equal up to positive factors.
        antipodal: one pair of opposite rows per line that has both directions.
        rank: dimension spanned by the antipodal lines; singular when it is less than their number.
    """

    singular: bool
    cause: str
    rows: tuple[int, ...]
    zero: tuple[int, ...]
    duplicates: tuple[tuple[int, ...], ...]
    antipodal: tuple[tuple[int, int], ...]
    rank: int


def diagnose(x: ArrayLike, tolerance: Real = 32 * UNIT_ROUNDOFF) -> Diagnosis | None:
    """Finds zero, positively parallel and antipodal rows, and whether the Gram matrix is singular.

    Any of them breaks Assumption III.1. Antipodal pairs alone leave the Gram matrix positive
    definite until their directions are linearly dependent.

    Args:
        x: points, (n, d).
        tolerance: angle in radians, in (0, 0.1), below which two lines count as one; by default the
            rounding of a rescaled row.

    Returns:
        What was found, or None if no two rows lie on a line and none is zero.

    Raises:
        TypeError: points that are no real numbers.
        ValueError: bad points or a tolerance outside (0, 0.1).
    """
    points, angle = unit_rows(as_points(x)), as_angle(tolerance)
    zero = tuple(np.flatnonzero(points.norm == 0).tolist())
    plus, minus = _lines(points.unit, angle, points.norm > 0)
    duplicates = tuple(tuple(side) for side in (*plus, *minus) if len(side) > 1)
    antipodal = tuple((a[0], b[0]) for a, b in zip(plus, minus, strict=True) if b)
    directions = points.unit[[p for p, _ in antipodal]]
    rank = int(np.linalg.matrix_rank(directions)) if antipodal else 0
    sentences = []
    if zero:
        sentences.append(f"{_list('row', zero)} {'is' if len(zero) == 1 else 'are'} zero.")
    for group in duplicates[:_SHOWN]:
        sentences.append(f"Rows {_names(group)} are positively parallel (duplicates up to scale).")
    if len(duplicates) > _SHOWN:
        sentences.append(f"{len(duplicates) - _SHOWN} more groups of such rows.")
    if antipodal:
        sentences.append(_antipodal_sentence(antipodal, rank))
    if not sentences:
        return None
    singular = bool(zero or duplicates or rank < len(antipodal))
    groups = (zero, *duplicates) if zero or duplicates else antipodal
    cause = " ".join(sentences)
    rows = tuple(sorted({row for group in groups for row in group}))
    cause = cause[0].upper() + cause[1:]
    return Diagnosis(singular, cause, rows, zero, duplicates, antipodal, rank)


def as_angle(tolerance: Real) -> float:
    """An angle in radians in (0, 0.1), below which lines may count as one."""
    angle = positive(tolerance, "tolerance")
    if angle >= 0.1:
        raise ValueError(f"tolerance is an angle in radians below 0.1, not {angle!r}.")
    return angle


def _antipodal_sentence(pairs: tuple[tuple[int, int], ...], rank: int) -> str:
    shown = ", ".join(f"({p}, {q})" for p, q in pairs[:_SHOWN])
    more = ", ..." if len(pairs) > _SHOWN else ""
    noun = "Antipodal pair" if len(pairs) == 1 else f"{len(pairs)} antipodal pairs"
    if rank < len(pairs):
        return (
            f"{noun} {shown}{more} span only {rank} dimensions: the Gram matrix is singular, "
            "because σ(t) - σ(-t) = t is linear."
        )
    return (
        f"{noun} {shown}{more}: Assumption III.1 fails, but this does not make the Gram matrix "
        "singular."
    )


def _lines(
    unit: Float[np.ndarray, "n d"], tolerance: float, rows: np.ndarray
) -> tuple[list[list[int]], list[list[int]]]:
    """Groups rows by line; per line the rows along its first row, and those opposite to it.

    Each row is compared with one representative of every line so far, by a matrix product that is
    only trusted to say which pairs to look at closely.
    """
    near = max(1e-12, 4 * gamma(unit.shape[1]), tolerance**2)
    plus: list[list[int]] = []
    minus: list[list[int]] = []
    heads: list[int] = []
    todo = np.flatnonzero(rows)
    for start in range(0, todo.size, _BLOCK):
        block = todo[start : start + _BLOCK]
        known = len(heads)
        # Lines found earlier, then the block's own rows, which may become lines.
        others = np.concatenate([np.array(heads, dtype=np.intp), block])
        close = np.abs(unit[block] @ unit[others].T) > 1 - near
        line_of: dict[int, int] = dict(enumerate(range(known)))
        for i, row in enumerate(block):
            columns = [int(j) for j in np.flatnonzero(close[i, : known + i]) if int(j) in line_of]
            match = _match(unit, int(row), others[columns], tolerance)
            if match is None:
                line_of[known + i] = len(heads)
                heads.append(int(row))
                plus.append([int(row)])
                minus.append([])
            else:
                at, sign = match
                (plus if sign > 0 else minus)[line_of[columns[at]]].append(int(row))
    return plus, minus


def _match(
    unit: Float[np.ndarray, "n d"], row: int, heads: Int[np.ndarray, " k"], tolerance: float
) -> tuple[int, float] | None:
    """Returns which of the heads lies on the row's line, and on which side."""
    if not heads.size:
        return None
    sign = np.where(unit[heads] @ unit[row] < 0, -1.0, 1.0)
    own = np.broadcast_to(unit[row], (heads.size, unit.shape[1]))
    # ‖a - b‖ is the angle up to its cube.
    angles = np.sqrt(2 * half_squared_distance(unit[heads], own, sign))
    best = int(angles.argmin())
    return (best, float(sign[best])) if angles[best] <= tolerance else None


def matrix_cause(
    matrix: Float[np.ndarray, "n n"],
    bounds: tuple[Fraction, Fraction],
    vector: Float[np.ndarray, " n"],
    names: Int[np.ndarray, " n"],
    scaled: bool = False,
) -> tuple[str, tuple[int, ...]]:
    """Says why λ_min, within `bounds`, is not certified positive; also returns the rows.

    `scaled` tells that small entries may have become zero before.

    A row or a pair is the cause when its own principal submatrix has an eigenvalue as small as the
    bounds leave room for: that already forces λ_min down (Cauchy interlacing).
    """
    low, high = bounds
    heavy = heaviest_rows(vector)
    if low > 0:
        return "the error bound exceeds the smallest eigenvalue of the matrix as given.", heavy
    if high < 0:
        text = _names(names[list(heavy)].tolist())
        return f"the matrix is indefinite; its negative eigenvector is largest at {text}.", heavy
    slack = float(high - low)
    diagonal = matrix.diagonal()
    weak = np.flatnonzero(diagonal <= slack)
    if weak.size:
        weak = weak[np.argsort(diagonal[weak], kind="stable")][:_SHOWN]
        rows = tuple(weak.tolist())
        zero = not matrix[:, weak].any()
        what = "zero" if zero and not scaled else "below the rounding of the largest ones"
        if zero and scaled:
            what = f"zero or {what}"
        if what != "zero":
            what += ": rescale the points"
        return (
            f"{_list('row', names[weak].tolist())} {'is' if weak.size == 1 else 'are'} {what}.",
            rows,
        )
    p, q, value = _closest_pair(matrix)
    if value <= slack:
        pair = _names([int(names[p]), int(names[q])])
        return f"rows {pair} are duplicates: positively parallel up to rounding.", (p, q)
    text = _names(names[list(heavy)].tolist())
    return (
        f"no row or pair alone; the null vector is largest at {text}. More antipodal pairs than "
        "dimensions are one such reason: diagnose(x) tells from the points.",
        heavy,
    )


def _closest_pair(matrix: Float[np.ndarray, "n n"]) -> tuple[int, int, float]:
    """The pair most nearly proportional, K_pq² / K_pp K_qq largest, and its smallest eigenvalue."""
    diagonal = matrix.diagonal()
    scale = 1 / np.sqrt(diagonal)
    best, where = -1.0, (0, 0)
    for rows, columns in tiles(len(matrix)):
        ratio = np.abs(matrix[columns, rows]) * scale[rows] * scale[columns, None]
        if rows == columns:
            np.fill_diagonal(ratio, -1.0)
        if ratio.max() > best:
            q, p = np.unravel_index(int(ratio.argmax()), ratio.shape)
            best, where = float(ratio.max()), (rows.start + int(p), columns.start + int(q))
    p, q = where
    pair = matrix[np.ix_([p, q], [p, q])]
    return min(p, q), max(p, q), float(np.linalg.eigvalsh(pair)[0])


def heaviest_rows(vector: Float[np.ndarray, " n"]) -> tuple[int, ...]:
    """Rows of a vector's largest entries: at most four, none below a quarter of the largest."""
    size = np.abs(vector)
    order = np.argsort(-size, kind="stable")[:_SHOWN]
    return tuple(int(row) for row in order if size[row] >= size[order[0]] / 4)


def _names(rows: Sequence[int]) -> str:
    shown = [str(row) for row in rows[:_SHOWN]]
    if len(rows) > _SHOWN:
        return ", ".join(shown) + f" and {len(rows) - _SHOWN} more"
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]


def _list(noun: str, rows: Sequence[int]) -> str:
    return f"{noun}{'' if len(rows) == 1 else 's'} {_names(rows)}"
