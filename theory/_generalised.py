"""Extreme generalised eigenvalues of two covariances, S_q v = λ S_p v, enclosed."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from theory._pairs import gamma
from theory._validate import as_real_array, non_negative

Array = np.ndarray

_SAFE = 2.0**-48  # covers the few roundings of each scalar formula
_NEGATIVE = 1e-10  # of the largest eigenvalue: what an estimated covariance may lack to be one


@dataclass(frozen=True, eq=False)
class Extremes:
    """λ_min and λ_max of S_p^{-1} S_q, divided by 2^exponent, and directions that show them.

    Attributes:
        least: bounds of λ_min.
        most: bounds of λ_max, infinite where S_p has no variance.
        exponent: the power of two that was taken out.
        first: v with vᵀS_qv/vᵀS_pv about λ_min.
        last: the same of λ_max.
        dropped: dimension of the null space that both have, up to rounding.
    """

    least: tuple[float, float]
    most: tuple[float, float]
    exponent: int
    first: Float[Array, " d"]
    last: Float[Array, " d"]
    dropped: int

    @property
    def spread(self) -> tuple[float, float]:
        """Bounds of ln(λ_max/λ_min), infinite where one law alone is singular."""
        if self.most[0] == math.inf or self.least[1] == 0:
            return math.inf, math.inf
        low = _log(self.most[0]) - _log(self.least[1])
        high = _log(self.most[1]) - _log(self.least[0])
        return max(low - _SAFE * (1 + abs(low)), 0.0), high + _SAFE * (1 + abs(high))

    @property
    def largest_logarithm(self) -> tuple[float, float]:
        """Bounds of max |ln λ|."""
        unit = self.exponent * math.log(2)
        low = max(_log(self.most[0]) + unit, -_log(self.least[1]) - unit)
        high = max(_log(self.most[1]) + unit, -_log(self.least[0]) - unit)
        slack = _SAFE * (1 + abs(unit) + abs(low))
        return max(low - slack, 0.0), high + _SAFE * (1 + abs(unit) + abs(high))

    @property
    def remark(self) -> str:
        """What a method has to add."""
        return dropped_remark(self.dropped)


def dropped_remark(dimension: int) -> str:
    """How a method tells of a common null space that is one up to rounding alone."""
    if not dimension:
        return ""
    return f"; a common null space of dimension {dimension} left out as rounding"


def as_covariance(value: object, dimension: int | None, name: str) -> Float[Array, "d d"]:
    """A symmetric positive semidefinite (d, d) matrix, or λI of a number λ ≥ 0.

    Raises:
        TypeError: entries that are no real numbers.
        ValueError: another shape, not symmetric, clearly not positive semidefinite.
    """
    matrix = as_real_array(value, name)
    if matrix.ndim == 0 and dimension is not None:
        return non_negative(value, f"{name} (as λ of λI)") * np.eye(dimension)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"{name} must be a (d, d) covariance, not of shape {matrix.shape}.")
    if dimension is not None and len(matrix) != dimension:
        raise ValueError(f"{name} has shape {matrix.shape}, but the dimension is {dimension}.")
    size = float(np.abs(matrix).max())
    if size == 0:
        return matrix
    unit = np.ldexp(matrix, -math.frexp(size)[1])
    if float(np.abs(unit - unit.T).max()) > 1e-12:
        raise ValueError(f"{name} is not symmetric; pass (S + S.T) / 2.")
    values = np.linalg.eigvalsh(unit)
    if values[0] < -_NEGATIVE * values[-1] or (unit.diagonal() < 0).any():
        raise ValueError(
            f"{name} has a negative variance in some direction: it is no covariance. "
            "Estimate it anew, or add a ridge."
        )
    matrix = matrix / 2 + matrix.T / 2  # the sum may overflow
    still = matrix.diagonal() == 0
    matrix[still], matrix[:, still] = 0.0, 0.0  # what rounding left beside no variance
    return matrix


def proportion(one: Float[Array, "d d"], other: Float[Array, "d d"]) -> Fraction | None:
    """The exact λ of other = λ·one, or None where there is none, or where one = 0 ≠ other."""
    if not other.any() or not one.any():
        return None if other.any() else Fraction(int(not one.any()))
    if np.array_equal(one, other):
        return Fraction(1)
    at = int(np.abs(one).argmax())
    # Entries far below the largest have no say here, and their underflow none either.
    near = np.allclose(one / one.flat[at], other / np.abs(other).max(), 1e-9, 1e-12)
    if not near or other.flat[at] == 0:
        return None
    factor = Fraction(float(other.flat[at])) / Fraction(float(one.flat[at]))
    pairs = zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)
    return factor if all(factor * Fraction(x) == y for x, y in pairs) else None


def extremes(p: Float[Array, "d d"], q: Float[Array, "d d"]) -> Extremes | None:
    """Encloses λ_min and λ_max of q relative to p; None where both are zero.

    With a computed V that about diagonalises both, M_p = VᵀpV and M_q = VᵀqV are known up to
    γ_{2d+2} |V|ᵀ|p||V|, and a congruence leaves the λ. Scaled so that M_p has diagonal 1,
    λ_max ≤ max_k (M_q,kk + Σ_l |M_q,kl|)/(1 − max_k Σ_l |M_p,kl|), l ≠ k, by Gershgorin; 1/λ_min
    is the same with p and q exchanged; each M_q,kk/M_p,kk lies between λ_min and λ_max.
    """
    alive = np.flatnonzero((p.diagonal() > 0) | (q.diagonal() > 0))
    if not len(alive):
        return None
    own = np.ix_(alive, alive)
    small_p, small_q, scales, exponent = _equilibrated(p[own], q[own])
    v, null = diagonalising(small_p, small_q)
    (m_p, e_p), (m_q, e_q) = congruent(v, small_p), congruent(v, small_q)
    a, b, doubt_a, doubt_b = (m.diagonal() for m in (m_p, m_q, e_p, e_q))
    low = _ratio(np.maximum(b - doubt_b, 0.0), a + doubt_a) * (1 - _SAFE)
    high = _ratio(b + doubt_b, np.maximum(a - doubt_a, 0.0)) * (1 + _SAFE)
    shown = [int(high.argmin()), int(low.argmax())]
    directions = np.zeros((2, len(p)))
    directions[:, alive] = np.ldexp(v[:, shown].T, scales)
    # A coordinate without variance in one law alone: exactly singular there.
    still = [m.diagonal()[alive] == 0 for m in (p, q)]
    return Extremes(
        (_inverse(_top(m_p, e_p, m_q, e_q)), 0.0 if still[1].any() else float(high[shown[0]])),
        (math.inf if still[0].any() else float(low[shown[1]]), _top(m_q, e_q, m_p, e_p)),
        exponent,
        directions[0],
        directions[1],
        null.shape[1],
    )


def _equilibrated(p: Array, q: Array) -> tuple[Array, Array, np.ndarray, int]:
    """Both with diagonals about 1 at most, by powers of two; λ is then off by 2^exponent."""
    tops = [int(np.frexp(m.diagonal().max())[1]) for m in (p, q)]
    sizes = [np.frexp(m.diagonal())[1] - top for m, top in zip((p, q), tops, strict=True)]
    for size, matrix in zip(sizes, (p, q), strict=True):
        size[matrix.diagonal() == 0] = -(1 << 20)
    scales = -(np.maximum(*sizes) // 2)
    exponents = scales[:, None] + scales
    with np.errstate(under="ignore"):
        p, q = (np.ldexp(m, exponents - top) for m, top in zip((p, q), tops, strict=True))
    return p, q, scales, tops[1] - tops[0]


def diagonalising(p: Array, q: Array) -> tuple[Float[Array, "d r"], Float[Array, "d n"]]:
    """V with Vᵀ(p + q)V about I and VᵀqV about diagonal; and the null space of both, left out."""
    values, vectors = np.linalg.eigh(p + q)
    kept = values > len(p) * 2.0**-50 * values[-1]
    white = vectors[:, kept] / np.sqrt(values[kept])
    shares = np.linalg.eigh(white.T @ (q - p) @ white)[1]
    return white @ shares, vectors[:, ~kept]


def congruent(v: Array, s: Array) -> tuple[Float[Array, "r r"], Float[Array, "r r"]]:
    """VᵀSV and a bound of its error."""
    d = len(s)
    matrix = v.T @ (s @ v)
    size = np.abs(v).T @ (np.abs(s) @ np.abs(v))
    return (matrix + matrix.T) / 2, 1.01 * gamma(2 * d + 4) * size + d * d * 2.0**-1000


def _top(m_q: Array, e_q: Array, m_p: Array, e_p: Array) -> float:
    """An upper bound of λ_max of M_q relative to M_p."""
    scale = m_p.diagonal()
    if not (scale > 0).all():
        return math.inf
    root = 1 / np.sqrt(scale)
    (q, doubt_q), (p, doubt_p) = (
        (m * root[:, None] * root, e * root[:, None] * root) for m, e in ((m_q, e_q), (m_p, e_p))
    )
    off = [np.abs(m).sum(axis=1) - np.abs(m.diagonal()) for m in (p, q)]
    lost = float((off[0] + doubt_p.sum(axis=1)).max()) + _SAFE
    if lost >= 1:
        return math.inf
    most = float((q.diagonal() + off[1] + doubt_q.sum(axis=1)).max())
    return max(most, 0.0) / (1 - lost) * (1 + len(p) * _SAFE)


def _ratio(above: Array, below: Array) -> Array:
    return np.divide(above, below, out=np.full_like(above, np.inf), where=below > 0)


def _inverse(value: float) -> float:
    return 1 / value if value > 0 else math.inf


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
