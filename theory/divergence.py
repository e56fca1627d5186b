"""d_H and d_HΔH between known Gaussians: exact, or between a lower and an upper end."""

import math

import numpy as np
from jaxtyping import Float

from theory._enclosure import Enclosure
from theory._generalised import as_covariance, extremes, proportion
from theory._half_spaces import half_space_gap
from theory._loose import Anything, ArrayLike
from theory._normal import Gaussian
from theory._validate import as_real_array
from theory.total_variation import total_variation

Array = np.ndarray

_SAFE = 2.0**-48

__all__ = [
    "Gaussian",
    "half_space_divergence",
    "homogeneous_pair_divergence",
    "interval_divergence",
    "worst_pair",
]


def half_space_divergence(p: Gaussian | Anything, q: Gaussian | Anything) -> Enclosure:
    """d_H = 2 sup |P(A) − Q(A)| over half-spaces A = {w·x ≥ c} between known Gaussians.

    Along w the two laws are on a line, where the best c is a crossing of their densities. The best
    w is known in closed form for

    - equal covariances: w = S^{-1}δ, δ = μ_q − μ_p, and d_H = 2(2Φ(Δ/2) − 1), Δ² = δᵀS^{-1}δ;
      with other thresholds also for proportional ones, hence always for d = 1;
    - equal means: an extreme eigenvector of S_p^{-1}S_q, and d_H ≤ 1.

    Elsewhere it is in the one-parameter family w = (sS_p + tS_q)^{-1}δ of Anderson and Bahadur
    (1962), the matrix positive definite, which is searched; Cauchy–Schwarz,
    (w·δ)² ≤ δᵀ(sS_p + tS_q)^{-1}δ · wᵀ(sS_p + tS_q)w, bounds every direction outside it. So the
    upper end is no mere total variation but within about 1e-7 of the lower one, more where
    rounding is. A law may be singular; 2 means that half-spaces tell the laws apart for certain.

    Raises:
        TypeError: no `Gaussian`.
        ValueError: other dimensions.
    """
    return half_space_gap(p, q).scaled(2.0)


def interval_divergence(p: Gaussian | Anything, q: Gaussian | Anything) -> Enclosure:
    """d_HΔH of half-lines between Gaussians on the line: twice their total variation, exactly.

    Two half-lines differ on an interval, on the outside of one, or on a half-line. {p > q}, the
    set that total variation is attained on, is one of these: ln(p/q) is a parabola or linear.

    Raises:
        TypeError: no `Gaussian`.
        ValueError: a dimension other than 1.
    """
    found = total_variation(p, q)
    if p.dimension != 1:
        raise ValueError(
            f"intervals need laws on the line, not of dimension {p.dimension}: "
            "use affine_pair_divergence."
        )
    return found.scaled(2.0)


def homogeneous_pair_divergence(p: ArrayLike, q: ArrayLike) -> Enclosure:
    """d_HΔH of half-spaces through the origin between N(0, S_p) and N(0, S_q), exactly.

    Two of them, {a·x ≥ 0} and {b·x ≥ 0}, differ with probability ∠_S(a, b)/π, the angle of the
    inner product aᵀSb. So d_HΔH = (2/π) sup |∠_{S_q}(a, b) − ∠_{S_p}(a, b)|. In the plane of a
    and b take coordinates in which S_p = I and S_q = diag(1, ρ²): a direction at θ goes to ψ with
    tan ψ = ρ tan θ, and ψ − θ lies within ±(arctan √ρ − arctan 1/√ρ), attained at
    tan θ = ±1/√ρ. An angle is a difference of two, hence changes by at most twice that; ρ² is a
    ratio of values of vᵀS_qv/vᵀS_pv, at most κ = λ_max/λ_min of S_p^{-1}S_q. With ρ = √κ,

        d_HΔH = (8/π) arctan √ρ − 2 = (8/π) arctan tanh(ln κ / 8).

    It is 0 for proportional covariances alone (so for d = 1, but for a point against a law that
    varies), and 2 where one law is singular in a direction in which the other is not.

    Args:
        p: (d, d) covariance S_p, exact as given, or λ for λI.
        q: S_q, in the same form; one of the two is a matrix.

    Returns:
        The value with its rounding, bounded. Where both are singular up to rounding in a common
        direction, it is left out, and `method` says so.

    Raises:
        TypeError, ValueError: bad shapes or entries; no covariance; two scalars.
    """
    p, q = _pair(p, q)
    if proportion(p, q):
        return Enclosure(0.0, 0.0, "exact: the covariances are proportional")
    found = extremes(p, q)
    assert found is not None  # two zero matrices are proportional
    if math.isinf(found.spread[0]):
        return Enclosure(2.0, 2.0, "exact: one law has no variance where the other has")
    low, high = (8 / math.pi * math.atan(math.tanh(end / 8)) for end in found.spread)
    method = "closed form of the extreme generalised eigenvalues, rounding bounded" + found.remark
    return Enclosure(low * (1 - _SAFE), min(high * (1 + _SAFE), 2.0), method)


def worst_pair(p: ArrayLike, q: ArrayLike) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """Directions a, b of the two half-spaces that attain `homogeneous_pair_divergence`.

    With v, w of extreme λ and vᵀS_pv = wᵀS_pw = 1 they are cos φ v ∓ sin φ w, tan φ = 1/√ρ, at
    angle 2 arctan 1/√ρ under S_p and 2 arctan √ρ under S_q. Where one law is singular alone they
    are ±v of that direction: {v·x ≥ 0} and {−v·x ≥ 0} then both hold almost surely under it, and
    differ almost surely under the other.

    Args and errors as `homogeneous_pair_divergence`. For equal laws a = b.
    """
    p, q = _pair(p, q)
    found = None if proportion(p, q) else extremes(p, q)
    if found is None:
        axis = np.eye(1, len(p))[0]
        return axis, axis
    singular = [v for v in (found.first, found.last) if min(v @ p @ v, v @ q @ v) <= 0]
    if singular:
        return singular[0], -singular[0]
    v, w = (v / math.sqrt(v @ p @ v) for v in (found.first, found.last))
    low, high = found.spread
    phi = math.atan(math.exp(-(low if math.isinf(high) else (low + high) / 2) / 4))
    return math.cos(phi) * v - math.sin(phi) * w, math.cos(phi) * v + math.sin(phi) * w


def _pair(p: object, q: object) -> tuple[Float[Array, "d d"], Float[Array, "d d"]]:
    arrays = as_real_array(p, "S_p"), as_real_array(q, "S_q")
    dimension = next((len(s) for s in arrays if s.ndim == 2), None)
    return as_covariance(p, dimension, "S_p"), as_covariance(q, dimension, "S_q")
