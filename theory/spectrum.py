"""Extreme eigenvalues as enclosures: intervals that contain the exact value, rounding included."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from jaxtyping import Float, Int

from theory import _certify
from theory._enclosure import Enclosure
from theory._in_place import InPlace
from theory._loose import ArrayLike, Flag, Real
from theory._memory import as_memory
from theory._progress import Meter, Progress
from theory._strategy import Copies, Resources, choose
from theory._symmetric import as_symmetric
from theory._validate import non_negative
from theory.blocks import BlockDiagonal
from theory.singular import heaviest_rows, matrix_cause

__all__ = ["Enclosure", "enclose", "extreme_of", "largest_eigenvalue", "smallest_eigenvalue"]

_TARGET = 1e-7  # relative error that an unconverged Ritz value is trusted to have at first


def smallest_eigenvalue(
    K: "ArrayLike | BlockDiagonal",
    error: "Real | Sequence[float]" = 0.0,
    *,
    in_place: "Flag | None" = None,
    memory: "Real | None" = None,
    progress: "Progress | None" = None,
) -> Enclosure:
    """Encloses λ_min of a symmetric matrix that is known up to an error ‖ΔK‖₂.

    The lower bound is certified by a Cholesky factorisation of K - τI (Rump 2006), the upper one is
    a Rayleigh quotient; all rounding is counted. Of a dense matrix not exactly symmetric, but so up
    to rounding, the symmetric part is meant.

    Up to 8,000 rows it needs the matrix and one copy of it. Beyond, or where a copy exceeds the
    memory, only the matrix: its lower triangle is lent to the factorisations, while the upper one
    and the diagonal still hold K, and is restored from them, bit by bit, before the function
    returns or raises. Meanwhile no other thread may read K.

    Args:
        K: symmetric (n, n) array or `BlockDiagonal`.
        error: bound of ‖ΔK‖₂ (Weyl); for blocks also one number per block, as `K.errors`.
        in_place: False to only read K, at the price of a copy; True to insist on none; None to
            choose from n, the memory and the array, which must be writable, float64, contiguous
            and exactly symmetric to be worked in and is else copied.
        memory: bytes that may be allocated beside K; by default what the system leaves.
        progress: called now and then with the fraction done, from 0 to 1.

    Returns:
        The enclosure; `method` says how it was computed. If it reaches down to 0, `cause` says what
        makes the matrix singular (a zero row, a duplicate, ...) or that the error or a negative
        eigenvalue is to blame.

    Raises:
        TypeError: entries or an error that are no real numbers; in_place no boolean; progress that
            cannot be called.
        ValueError: not square, not symmetric, empty or not finite; a negative error; neither a copy
            fits the memory nor can K be worked in.
    """
    return _extreme_eigenvalue(K, error, 1, _resources(in_place, memory, progress))


def largest_eigenvalue(
    K: "ArrayLike | BlockDiagonal",
    error: "Real | Sequence[float]" = 0.0,
    *,
    in_place: "Flag | None" = None,
    memory: "Real | None" = None,
    progress: "Progress | None" = None,
) -> Enclosure:
    """Encloses λ_max: upper bound by Cholesky of τI - K, lower bound by a Rayleigh quotient.

    Args:
        K: symmetric (n, n) array or `BlockDiagonal`.
        error: bound of ‖ΔK‖₂; for blocks also one number per block.
        in_place: as `smallest_eigenvalue`.
        memory: as `smallest_eigenvalue`.
        progress: as `smallest_eigenvalue`.

    Raises:
        TypeError: as `smallest_eigenvalue`.
        ValueError: as `smallest_eigenvalue`.
    """
    return _extreme_eigenvalue(K, error, -1, _resources(in_place, memory, progress))


def _resources(in_place: object, memory: "Real | None", progress: object) -> Resources:
    if not (in_place is None or isinstance(in_place, bool | np.bool_)):
        raise TypeError(f"in_place must be True, False or None, not {in_place!r}.")
    return Resources(
        None if in_place is None else bool(in_place), as_memory(memory), Meter(progress)
    )


def _extreme_eigenvalue(matrix: object, error: object, sign: int, use: Resources) -> Enclosure:
    if not isinstance(matrix, BlockDiagonal):
        found = enclose(matrix, "K", non_negative(error, "error"), sign, use)
        use.meter(1.0)
        return found
    parts, done = [], 0.0
    total = float(sum(len(rows) ** 3 for rows in matrix.rows))
    for i, bound in enumerate(_errors(error, matrix)):
        name, rows = matrix.names[i], matrix.rows[i]
        start, done = done, done + len(rows) ** 3 / total
        named = f"block {name!r} of K"
        found = enclose(matrix.blocks[i], named, bound, sign, use.part(start, done), rows)
        parts.append(replace(found, block=name))
    use.meter(1.0)
    return extreme_of(parts, sign)


def extreme_of(parts: Sequence[Enclosure], sign: int) -> Enclosure:
    """The extreme eigenvalue of a block-diagonal matrix from those of its blocks."""
    if sign > 0:
        first = min(parts, key=lambda part: part.lower)
        return replace(first, upper=min(part.upper for part in parts))
    first = max(parts, key=lambda part: part.upper)
    return replace(first, lower=max(part.lower for part in parts))


def _errors(error: object, matrix: BlockDiagonal) -> list[float]:
    count = len(matrix.blocks)
    if not (isinstance(error, Sequence | np.ndarray) and np.ndim(error) == 1):
        return [non_negative(error, "error")] * count
    if len(error) != count:
        raise ValueError(f"error has {len(error)} entries, K has {count} blocks: one for each.")
    return [non_negative(value, "error") for value in error]


def enclose(
    value: object,
    name: str,
    error: float,
    sign: int,
    use: Resources,
    rows: Int[np.ndarray, " n"] | None = None,
) -> Enclosure:
    """Encloses one extreme eigenvalue of one matrix; `rows` are the indices to name rows by."""
    symmetric = as_symmetric(value, name, use.memory)
    matrix, unit = symmetric.matrix, Fraction(2) ** symmetric.exponent
    rows = np.arange(len(matrix)) if rows is None else rows
    if len(matrix) == 1 or not matrix.any():
        low = high = Fraction(float(matrix[0, 0]))
        vector, method = np.ones(len(matrix)), "exact"
    else:
        with choose(value, name, symmetric, use) as work:
            low, high, vector = _bounds(work, sign)
        # Of a copy that was worked in, the original may be gone: the restored one replaces it.
        matrix, method = work.matrix, work.method
    slack = Fraction(error) + symmetric.defect * unit
    lower, upper = low * unit - slack, high * unit + slack
    cause, heavy = None, heaviest_rows(vector)
    if sign > 0 and lower <= 0:
        cause, heavy = matrix_cause(matrix, (low, high), vector, rows, symmetric.exponent != 0)
    return Enclosure(
        _certify.rounded(lower, up=False),
        _certify.rounded(upper, up=True),
        method,
        cause,
        rows=tuple(int(rows[row]) for row in heavy),
    )


def _bounds(
    work: "Copies | InPlace", sign: int
) -> tuple[Fraction, Fraction, Float[np.ndarray, " n"]]:
    """Returns bounds of the extreme eigenvalue and the vector of the Rayleigh quotient."""
    found = work.approximate(sign)
    low, high = work.rayleigh(found.vector)
    vector, diagonal = found.vector, work.diagonal
    # A diagonal entry is a Rayleigh quotient without rounding: the better one on graded matrices.
    at = int((sign * diagonal).argmin())
    entry = Fraction(float(diagonal[at]))
    if sign * entry <= sign * (high if sign > 0 else low):
        low = high = entry
        vector = np.eye(1, len(diagonal), at)[0]
    start = float((low + high) / 2)
    doubt = 2 * min(found.error, _TARGET * abs(start))
    outer = _outer_bound(work, start, doubt, sign)
    return (outer, high, vector) if sign > 0 else (low, outer, vector)


def _outer_bound(work: "Copies | InPlace", start: float, doubt: float, sign: int) -> Fraction:
    """Certifies a bound as near to `start` as Cholesky allows.

    The first attempt succeeds if `start` is within `doubt` of the eigenvalue (Demmel's converse of
    Rump's theorem); else the gap grows, at the latest to a few ‖A‖_F, where the shifted matrix is
    far from singular, and is then halved in ratio between failure and success.
    """
    radius = float(_certify.cholesky_radius(np.abs(work.diagonal - start)))
    gap = radius + doubt + 2.0**-60 * work.size
    failed = 0.0
    while (bound := work.shifted_bound(start - sign * gap, sign)) is None:
        failed, gap = gap, 8 * gap
    for _ in range(3 if failed else 0):
        middle = math.sqrt(failed * gap)
        closer = work.shifted_bound(start - sign * middle, sign)
        if closer is None:
            failed = middle
        else:
            gap, bound = middle, closer
    return bound
