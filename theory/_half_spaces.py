"""sup |P(A) − Q(A)| over half-spaces A, between two Gaussians: the cases of d_H, halved."""

import math
from fractions import Fraction

import numpy as np
from jaxtyping import Float
from scipy import special

from theory._directions import best_direction, shown_by
from theory._enclosure import Enclosure
from theory._generalised import extremes, proportion
from theory._line import around, greatest_gap
from theory._loose import Anything
from theory._normal import Gaussian, Shared, share
from theory._pairs import gamma
from theory.spectrum import smallest_eigenvalue

Array = np.ndarray

_TOLERANCE = 5e-8
_SAFE = 2.0**-46


def half_space_gap(p: Gaussian | Anything, q: Gaussian | Anything) -> Enclosure:
    """Half of `half_space_divergence`, by the first case that fits."""
    shared = share(p, q)
    if shared is None:
        return Enclosure(0.0, 0.0, "exact: the laws are the same")
    if shared.apart is not None:
        return _separated(shared)
    if not p.covariance.any():  # a point, and q is none
        p, q, shared = q, p, share(q, p) or shared
    ratio = proportion(p.covariance, q.covariance)
    if ratio is not None:
        return _proportional(shared, ratio)
    if not shared.gap.any():
        return _centred(p, q)
    w, upper = best_direction(shared, _TOLERANCE)
    method = "best direction by splitting the range of its variance" + shared.remark
    lower = shown_by(shared, np.vstack([w, np.eye(len(w))]))  # an axis may have less rounding
    return around(lower, upper, method)


def _separated(shared: Shared) -> Enclosure:
    if shared.certain or shared.apart is None:
        return Enclosure(1.0, 1.0, "exact: the means differ where neither law varies")
    n = shared.apart
    variance = max(_form(s, n)[1] for s in (shared.p, shared.q))
    low = special.erf(float(n @ shared.gap) * (1 - _SAFE) / math.sqrt(8 * variance))
    return around(low, 1.0, "the means differ where neither law varies, up to rounding")


def _proportional(shared: Shared, ratio: Fraction) -> Enclosure:
    """Blind to all but w·δ/√(wᵀSw) in size, so that w = S^{-1}δ is best: Δ is the gap."""
    wide = ratio > 1
    narrow = math.sqrt(1 / ratio if wide else ratio)  # relative to the wider law
    low, high = (max(end, 0.0) for end in _mahalanobis(shared, "q" if wide else "p"))
    if ratio == 1:
        low, high = (math.erf(end / math.sqrt(8)) for end in (low, high))
        method = "2Φ(Δ/2) − 1, rounding bounded" + shared.remark
        return Enclosure(low * (1 - _SAFE), min(high * (1 + _SAFE), 1.0), method)
    one = np.ones(2)
    low, high = greatest_gap(np.array([low, high]), narrow * one, one).tolist()
    return around(low, high, "proportional covariances: one dimension" + shared.remark)


def _centred(p: Gaussian, q: Gaussian) -> Enclosure:
    """Grows with |ln λ|, λ = wᵀS_qw/wᵀS_pw, hence largest at an extreme eigenvalue."""
    found = extremes(p.covariance, q.covariance)
    assert found is not None  # two points would be proportional
    if math.isinf(found.spread[0]):
        return Enclosure(0.5, 0.5, "exact: one law has no variance where the other has")
    low, high = (value / 2 for value in found.largest_logarithm)
    deviation = np.exp(-np.array([low, high]))
    low, high = greatest_gap(np.zeros(2), deviation, np.ones(2)).tolist()
    method = "equal means: the extreme generalised eigenvalues"
    return around(low, min(high, 0.5), method + found.remark)


def _mahalanobis(shared: Shared, law: str) -> tuple[float, float]:
    """Bounds of Δ = √(δᵀS^{-1}δ).

    (y·δ)²/(yᵀSy) ≤ Δ² = 2y·δ − yᵀSy + rᵀS^{-1}r, r = δ − Sy, for every y, and rᵀS^{-1}r is at most
    |r|²/λ_min(S). In a common null space left out the bounds are rounding estimates.
    """
    s, e = getattr(shared, law), len(shared.gap)
    unit = 2.0 ** int(np.frexp(np.abs(shared.gap).max())[1])  # squares of δ might underflow
    delta = shared.gap / unit
    y = shared.v @ (shared.v.T @ delta)
    share = float(np.mean(shared.shares if law == "p" else 1 - shared.shares))
    if not y.any():
        return 0.0, 0.0
    y = y / share
    inner, doubt = float(y @ delta), 1.01 * gamma(e + 4) * float(np.abs(y) @ np.abs(delta))
    least, most = _form(s, y)
    low = max(inner - doubt, 0.0) / math.sqrt(most) * (1 - _SAFE)
    if shared.dropped:
        return unit * low, unit * max(low, math.sqrt(max(inner, 0.0))) * (1 + e * _SAFE)
    rest = delta - s @ y
    size = np.abs(delta) + np.abs(s) @ np.abs(y)
    rest = float(np.linalg.norm(np.abs(rest) + 1.01 * gamma(2 * e + 4) * size))
    smallest = smallest_eigenvalue(s).lower
    tail = rest * rest / smallest if smallest > 0 else math.inf
    return unit * low, unit * math.sqrt(2 * (inner + doubt) - least + tail) * (1 + _SAFE)


def _form(s: Float[Array, "e e"], w: Float[Array, " e"]) -> tuple[float, float]:
    """Bounds of wᵀSw."""
    value = float(w @ (s @ w))
    size = float(np.abs(w) @ (np.abs(s) @ np.abs(w)))
    error = 1.01 * gamma(2 * len(w) + 4) * size + len(w) ** 2 * 2.0**-1000
    return max(value - error, 0.0), value + error
