"""Total variation between Gaussians: no set tells two laws apart better."""

import math

import numpy as np
from jaxtyping import Float
from scipy import special

from theory._directions import best_direction, shown_by
from theory._enclosure import Enclosure
from theory._generalised import proportion
from theory._half_spaces import half_space_gap
from theory._line import around, variation, variations
from theory._loose import Anything
from theory._normal import Gaussian, Shared, share

Array = np.ndarray

_SAFE = 2.0**-44


def total_variation(p: Gaussian | Anything, q: Gaussian | Anything) -> Enclosure:
    """TV = sup |P(A) − Q(A)| over all measurable A; 2 TV bounds d_H and d_HΔH of any class.

    Exact on the line, for equal covariances and, with equal means, for proportional ones: {p > q}
    is an interval or its outside, a half-space, a ball. Elsewhere between a lower and an upper end,
    with BC = ∫√(pq) and the Kullback-Leibler divergence KL in closed form:

    - below: the total variation on the line of the best half-space, and on others, since a
      projection tells laws apart no better; 1 − BC;
    - above: √(1 − BC²) (Hellinger), √(KL/2) (Pinsker) either way, and 2Φ(Δ/2) − 1 for the means
      plus √(1 − BC²) for the covariances, by the triangle inequality.

    Raises:
        TypeError: no `Gaussian`.
        ValueError: other dimensions.
    """
    shared = share(p, q)
    if shared is None:
        return Enclosure(0.0, 0.0, "exact: the laws are the same")
    if shared.apart is not None and shared.certain:
        return Enclosure(1.0, 1.0, "exact: the means differ where neither law varies")
    if p.dimension == 1:
        deviations = (math.sqrt(float(s[0, 0])) for s in (shared.p, shared.q))
        return variation(abs(float(shared.gap[0])), *deviations)
    if ((p.covariance.diagonal() == 0) != (q.covariance.diagonal() == 0)).any():
        return Enclosure(1.0, 1.0, "exact: one law lives on a plane that is nothing to the other")
    if shared.apart is not None or np.array_equal(p.covariance, q.covariance):
        return half_space_gap(p, q)
    ratio = None if shared.gap.any() else proportion(p.covariance, q.covariance)
    if ratio is not None:
        return _radial(len(shared.delta), float(ratio), shared.remark)
    bhattacharyya = _bhattacharyya(shared, shared.delta)
    low = max(on_lines(shared), -math.expm1(bhattacharyya[1]))
    high = max(min(_above(shared, bhattacharyya[0]), 1.0), low)
    method = "below on lines, 1 − BC; above Hellinger, Pinsker, triangle inequality"
    return around(low, high, method + shared.remark)


def _radial(dimension: int, ratio: float, remark: str) -> Enclosure:
    """N(0, S) and N(0, λS): {p > q} is a ball, with squared radius d ln λ/(1 − 1/λ)."""
    if ratio in (0.0, math.inf):
        value = 1.0
    else:
        squared = dimension * math.log(ratio) / (1 - 1 / ratio)
        value = abs(float(np.diff(special.chdtr(dimension, [squared, squared / ratio]))[0]))
    return around(value, value, "proportional covariances: the law of the radius" + remark)


def on_lines(shared: Shared) -> float:
    """The greatest total variation along a direction, of those that are likely to have it."""
    return shown_by(shared, likely_lines(shared), variations)


def likely_lines(shared: Shared) -> Float[Array, "k r"]:
    """Common eigenvectors, the best discriminant of each covariance, the best half-space's."""
    delta, a = shared.delta, shared.shares
    lines = np.eye(len(a))
    if not delta.any():
        return lines
    delta = delta / np.abs(delta).max()  # squares might underflow
    some = [delta, delta / np.maximum(a, _SAFE), delta / np.maximum(1 - a, _SAFE)]
    return np.vstack([lines, *some, best_direction(shared, 1e-5)[0]])


def _bhattacharyya(shared: Shared, delta: Array) -> tuple[float, float]:
    """Bounds of ln BC = ¼ Σ ln(4ab) − ¼ Σ δ², a + b = 1, where 4ab = 1 − (a − b)²."""
    split = np.abs(1 - 2 * shared.shares)
    most, least = (np.clip(split + sign * 2 * shared.doubt, 0.0, 1.0) for sign in (1, -1))
    with np.errstate(divide="ignore"):
        low, high = (float(np.log1p(-end * end).sum()) / 4 for end in (most, least))
    shift = float(delta @ delta) / 4
    slack = len(delta) * _SAFE
    return low - slack - shift * (1 + slack), min(high + slack - shift * (1 - slack), 0.0)


def _above(shared: Shared, bhattacharyya: float) -> float:
    """The least of the upper bounds."""
    still = _bhattacharyya(shared, np.zeros_like(shared.delta))[0]
    by_means, by_information = [], []
    for a in (shared.shares, 1 - shared.shares):
        low, high = a - shared.doubt, a + shared.doubt
        if (low <= 0).any():
            continue
        squared = shared.delta**2 / low
        by_means.append(math.erf(math.sqrt(float(squared.sum()) / 8)))
        ratios = np.stack([(1 - a - shared.doubt) / high, (1 - a + shared.doubt) / low])
        ratios = np.maximum(ratios, 2.0**-1000)
        information = (ratios - 1 - np.log(ratios)).max(axis=0) + squared
        by_information.append(math.sqrt(float(information.sum()) / 4))
    hellinger, covariances = (math.sqrt(-math.expm1(2 * end)) for end in (bhattacharyya, still))
    triangle = [means + covariances for means in by_means]
    return min([hellinger, *by_information, *triangle])
