"""Extreme eigenvalues as enclosures: intervals that contain the exact value, rounding included."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from jaxtyping import Float, Int

from theory import _certify, _extreme
from theory._loose import ArrayLike, Real
from theory._symmetric import Symmetric, as_symmetric
from theory._validate import non_negative, real
from theory.blocks import BlockDiagonal
from theory.singular import heaviest_rows, matrix_cause

_TARGET = 1e-7  # relative error that an unconverged Ritz value is trusted to have at first


@dataclass(frozen=True)
class Enclosure:
    """An interval that contains an eigenvalue.

    Attributes:
        lower: rigorous lower bound.
        upper: rigorous upper bound.
        method: how the bounds were obtained.
        cause: why a smallest eigenvalue is not certified positive, None if it is.
        block: of several blocks (clients) the one with the least lower end (for a largest
            eigenvalue: the greatest upper end). Where the enclosures of blocks overlap, another may
            be the one that attains the eigenvalue. None for a dense matrix.
        rows: rows of the cause, else the largest entries of the eigenvector, in the matrix's order.
    """

    lower: Real
    upper: Real
    method: str
    cause: str | None = None
    block: Hashable | None = None
    rows: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for end in ("lower", "upper"):
            object.__setattr__(self, end, real(getattr(self, end), f"{end} end of an enclosure"))
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            raise ValueError(f"enclosure [{self.lower}, {self.upper}] must be finite.")
        if self.lower > self.upper:
            raise ValueError(f"enclosure is empty: lower {self.lower!r} > upper {self.upper!r}.")

    @property
    def width(self) -> float:
        """Upper - lower."""
        return self.upper - self.lower

    @property
    def midpoint(self) -> float:
        """The middle of the interval."""
        return self.lower + self.width / 2

    def contains(self, value: Real) -> bool:
        """Whether lower <= value <= upper; TypeError for what is no real number."""
        return self.lower <= real(value, "value") <= self.upper

    def widened(self, error: Real) -> "Enclosure":
        """Returns the enclosure for a matrix at spectral distance at most `error` (Weyl)."""
        if error == 0:
            return self
        amount = Fraction(non_negative(error, "error"))
        lower = _certify.rounded(Fraction(self.lower) - amount, up=False)
        upper = _certify.rounded(Fraction(self.upper) + amount, up=True)
        return replace(self, lower=lower, upper=upper)

    def scaled(self, factor: Real) -> "Enclosure":
        """Returns the enclosure of factor·λ for a factor >= 0."""
        exact = Fraction(non_negative(factor, "factor"))
        lower = _certify.rounded(Fraction(self.lower) * exact, up=False)
        upper = _certify.rounded(Fraction(self.upper) * exact, up=True)
        return replace(self, lower=lower, upper=upper)


def smallest_eigenvalue(
    K: "ArrayLike | BlockDiagonal",
    error: "Real | Sequence[float]" = 0.0,
) -> Enclosure:
    """Encloses λ_min of a symmetric matrix that is known up to an error ‖ΔK‖₂.

    The lower bound is certified by a Cholesky factorisation of K - τI (Rump 2006), the upper one is
    a Rayleigh quotient; all rounding is counted. Of a dense matrix not exactly symmetric, but so up
    to rounding, the symmetric part is meant. At n rows it needs the matrix and one copy of it.

    Args:
        K: symmetric (n, n) array or `BlockDiagonal`.
        error: bound of ‖ΔK‖₂ (Weyl); for blocks also one number per block, as `K.errors`.

    Returns:
        The enclosure. If it reaches down to 0, `cause` says what makes the matrix singular (a zero
        row, a duplicate, ...) or that the error or a negative eigenvalue is to blame.

    Raises:
        TypeError: entries or an error that are no real numbers.
        ValueError: not square, not symmetric, empty or not finite; a negative error.
    """
    return _extreme_eigenvalue(K, error, 1)


def largest_eigenvalue(
    K: "ArrayLike | BlockDiagonal",
    error: "Real | Sequence[float]" = 0.0,
) -> Enclosure:
    """Encloses λ_max: upper bound by Cholesky of τI - K, lower bound by a Rayleigh quotient.

    Args:
        K: symmetric (n, n) array or `BlockDiagonal`.
        error: bound of ‖ΔK‖₂; for blocks also one number per block.

    Raises:
        TypeError: as `smallest_eigenvalue`.
        ValueError: as `smallest_eigenvalue`.
    """
    return _extreme_eigenvalue(K, error, -1)


def _extreme_eigenvalue(matrix: object, error: object, sign: int) -> Enclosure:
    if not isinstance(matrix, BlockDiagonal):
        symmetric = as_symmetric(matrix, "K")
        rows = np.arange(len(symmetric.matrix))
        return _enclose(symmetric, non_negative(error, "error"), sign, rows)
    parts = []
    for i, bound in enumerate(_errors(error, matrix)):
        name, rows = matrix.names[i], matrix.rows[i]
        symmetric = as_symmetric(matrix.blocks[i], f"block {name!r} of K")
        parts.append(replace(_enclose(symmetric, bound, sign, rows), block=name))
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


def _enclose(
    symmetric: Symmetric, error: float, sign: int, rows: Int[np.ndarray, " n"]
) -> Enclosure:
    """Encloses one extreme eigenvalue of one matrix; `rows` are the indices to name rows by."""
    matrix, unit = symmetric.matrix, Fraction(2) ** symmetric.exponent
    if len(matrix) == 1 or not matrix.any():
        low = high = Fraction(float(matrix[0, 0]))
        vector, method = np.ones(len(matrix)), "exact"
    else:
        low, high, vector = _bounds(matrix, sign)
        method = "Cholesky and Rayleigh quotient"
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
    matrix: Float[np.ndarray, "n n"], sign: int
) -> tuple[Fraction, Fraction, Float[np.ndarray, " n"]]:
    """Returns bounds of the extreme eigenvalue and the vector of the Rayleigh quotient."""
    found = _extreme.smallest(matrix) if sign > 0 else _extreme.largest(matrix)
    low, high = _certify.rayleigh(matrix, found.vector, _certify.frobenius(matrix))
    vector, diagonal = found.vector, matrix.diagonal()
    # A diagonal entry is a Rayleigh quotient without rounding: the better one on graded matrices.
    at = int((sign * diagonal).argmin())
    entry = Fraction(float(diagonal[at]))
    if sign * entry <= sign * (high if sign > 0 else low):
        low = high = entry
        vector = np.eye(1, len(matrix), at)[0]
    start = float((low + high) / 2)
    doubt = 2 * min(found.error, _TARGET * abs(start))
    outer = _outer_bound(matrix, start, doubt, sign)
    return (outer, high, vector) if sign > 0 else (low, outer, vector)


def _outer_bound(
    matrix: Float[np.ndarray, "n n"], start: float, doubt: float, sign: int
) -> Fraction:
    """Certifies a bound as near to `start` as Cholesky allows.

    The first attempt succeeds if `start` is within `doubt` of the eigenvalue (Demmel's converse of
    Rump's theorem); else the gap grows, at the latest to a few ‖A‖_F, where the shifted matrix is
    far from singular, and is then halved in ratio between failure and success.
    """
    size = _certify.frobenius(matrix)
    radius = float(_certify.cholesky_radius(np.abs(matrix.diagonal() - start)))
    gap = radius + doubt + 2.0**-60 * size
    failed = 0.0
    while (bound := _certify.shifted_bound(matrix, start - sign * gap, sign)) is None:
        failed, gap = gap, 8 * gap
    for _ in range(3 if failed else 0):
        middle = math.sqrt(failed * gap)
        closer = _certify.shifted_bound(matrix, start - sign * middle, sign)
        if closer is None:
            failed = middle
        else:
            gap, bound = middle, closer
    return bound
