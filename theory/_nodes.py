"""A rule at work on one metric S: its Gaussian directions, moments, and the bound of its error.

For v ~ N(0, B) and ω uniform on the unit sphere, v = rω with E r² = d, E r⁴ = d(d + 2), so that for
h of degree g in ω

    E h(ω) (ωᵀB⁻¹ω)^{-(d + g)/2} = det(B)^{1/2} E h(v) / E r^g.

All expectations of squares are traces: E vᵀCv = tr CB, E vᵀCv vᵀDv = tr CB tr DB + 2 tr CBDB.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from theory import _radial
from theory._analytic import Pieces
from theory._radial import Rule

Share = Float[np.ndarray, " d"] | None
_TRIAL = 16  # nodes with which the choice of λ is made


@dataclass(frozen=True)
class Metric:
    """A metric in its eigenbasis, with points that it is to serve.

    Attributes:
        s: positive eigenvalues of S, (d,).
        share: distribution of the squared points over the eigenbasis, (d,), sum 1.
    """

    s: Float[np.ndarray, " d"]
    share: Float[np.ndarray, " d"]

    @property
    def dimension(self) -> int:
        """Number d of eigenvalues."""
        return len(self.s)

    def log_tilt(self, kappa: Float[np.ndarray, " c"], degree: int) -> Float[np.ndarray, " c"]:
        """Log of E w(ω) (1 + κ ωᵀSω)^{-(d + degree)/2}; w = 1, or ‖Xω‖² for degree 2, ‖X‖_F = 1."""
        b = 1 / (1 + kappa[:, None] * self.s)
        half = 0.5 * np.log(b).sum(axis=1)
        return half if degree == 0 else half + np.log(b @ self.share / self.dimension)


class Nodes:
    """The covariances B_l and factors of a rule on a metric."""

    def __init__(self, rule: Rule, metric: Metric) -> None:
        self.rule, self.metric = rule, metric
        self.b = 1 / (rule.u[:, None] + rule.v[:, None] * (metric.s / rule.scale))
        logs = np.log(self.b)
        half = np.array([0.5 * math.fsum(row) for row in logs])
        with np.errstate(under="ignore"):
            self.factor = np.exp(rule.log_weight + half)
        self.weight = 1.0
        self._pieces: dict[int, Pieces] = {}
        self.quadrature = math.inf  # bound of the rule's error, set by `chosen`
        # Relative error of a factor, in units of u: a log each, its argument, the exponential.
        size = 0.5 * np.abs(logs).sum(axis=1) + np.abs(rule.log_weight) + np.abs(half)
        self.roundings = 2 * metric.dimension + 2 * size + 8

    def weighted(self, weight: float) -> None:
        """Counts the rule that often in a sum of rules."""
        self.factor, self.quadrature = self.factor * weight, self.quadrature * weight
        self.weight *= weight

    def error(self, k: int) -> Pieces:
        """Bounds |e_k| on pieces of log ρ between the extreme eigenvalues."""
        if k not in self._pieces:
            self._pieces[k] = self._error(k)
        return self._pieces[k]

    def _error(self, k: int) -> Pieces:
        scale = self.rule.scale
        low, high = float(self.metric.s.min()) / scale, float(self.metric.s.max()) / scale
        pieces, shift = self.rule.error(k, low, high), math.log(scale)
        return Pieces(pieces.left + shift, pieces.right + shift, pieces.bound)

    def shared(self, share: Float[np.ndarray, " d"]) -> Float[np.ndarray, " l"]:
        """The traces of XᵀX B_l for points with ‖X‖_F = 1 and that distribution."""
        return self.b @ share

    def moment(self, k: int, degree: int, share: Share = None) -> float:
        """E w(ω)/ρ^k for ρ = ωᵀSω, w = 1 or ‖Xω‖², times ‖ω‖² up to the degree that a rule needs.

        The rule with exponent a serves 1/ρ^k with polynomials of degree 2(a + k) - d. As the rule
        has it: `most` bounds the exact one.
        """
        rule, d = self.rule, self.metric.dimension
        order = round(2 * (rule.a + k)) - d
        share = self.metric.share if share is None else share
        trace, shared = self.b.sum(axis=1), self.shared(share)
        values = {
            (0, 0): lambda: np.ones_like(trace),
            (0, 2): lambda: trace / d,
            (2, 2): lambda: shared / d,
            (2, 4): lambda: (shared * trace + 2 * (self.b**2 @ share)) / (d * (d + 2)),
        }[degree, order]()
        terms = self.factor * rule.v ** (k - 1) * values
        return rule.factor(k) * float(terms.sum()) / rule.scale**k

    def most(self, k: int, degree: int, share: Share = None) -> float:
        """An upper bound of the exact moment, infinite where the rule knows too little of it.

        The rule's m' and the exact m differ by at most δm + tails; with e = δm' + tails < m'/2,
        m <= (m' + tails)/(1 - δ) <= (m' + e)/(1 - e/m').
        """
        metric = self.metric if share is None else Metric(self.metric.s, share)
        mean = self.moment(k, degree, share) / self.weight
        wrong = tailed(self.error(k), k, metric, degree, mean, 1e-3)
        if not wrong < mean / 2:
            return math.inf
        return self.weight * (mean + wrong) / (1 - wrong / mean)

    def largest(self, k: int) -> float:
        """An upper bound of E ω_c²/ρ^k over the axes c, where the rule serves degree 2.

        The largest is that of the least eigenvalue, as it is for every B.
        """
        share = np.zeros(self.metric.dimension)
        share[int(self.metric.s.argmin())] = 1.0
        return self.most(k, 2, share)


def tailed(
    pieces: Pieces, q: int, metric: Metric, degree: int, mean: float, enough: float
) -> float:
    """Bounds E w(ω)|e(z)|/ρ^q, where e is known on pieces of log z, z = ρ.

    Inside a core |e| <= δ, which costs δ E w/ρ^q = δ·mean. Left and right of it |e|/z^q lies below
    multiples of (1 + κz)^{-p}, κ > 0 or κ < 0 and p = (d + degree)/2, whose expectation is known.
    The least sum over cores and κ is taken. On a piece z^{-q}(1 + κz)^p is largest at an end: its
    log is convex in log z for κ > 0 and decreasing for κ < 0.

    Args:
        pieces: where and how large e is.
        q: the power of ρ.
        metric: the metric and its points.
        degree: of w: 0 for w = 1, 2 for ‖Xω‖².
        mean: E w/ρ^q.
        enough: a relative error with which no closer look is needed.
    """
    bound = pieces.bound
    flat = float(bound.max()) * mean
    if len(bound) < 3 or metric.dimension < 8 or flat <= enough * mean:
        return flat
    low, high = float(metric.s.min()), float(metric.s.max())
    power = (metric.dimension + degree) / 2
    left = np.geomspace(1e-2 / high, 10 / low, 40)
    right = -(1 - 10.0 ** -np.linspace(0.05, 3, 24)) / (high * (1 + 1e-9))
    outside = []
    for kappa, turn in ((left, 1), (right, -1)):
        ends = [
            power * np.log1p(kappa[:, None] * np.exp(e)) - q * e
            for e in (pieces.left, pieces.right)
        ]
        log = np.log(bound) + np.maximum(*ends)
        log = np.maximum.accumulate(log[:, ::turn], axis=1)[:, ::turn]
        log = (log + metric.log_tilt(kappa, degree)[:, None]).min(axis=0)
        outside.append(np.exp(np.minimum(log, 700)))
    centre = int(bound.argmin())
    # What a core costs that reaches so far to either side: its δ, and what lies beyond.
    near_left = np.maximum.accumulate(bound[centre::-1])
    near_right = np.maximum.accumulate(bound[centre:])
    beyond_left = np.append(outside[0][centre - 1 :: -1] if centre else [], 0.0)
    beyond_right = np.append(outside[1][centre + 1 :], 0.0)
    levels = np.geomspace(bound[centre], bound.max(), 80)
    levels[-1] = bound.max()
    reach_left = np.searchsorted(near_left, levels, side="right") - 1
    reach_right = np.searchsorted(near_right, levels, side="right") - 1
    reached = (reach_left >= 0) & (reach_right >= 0)
    totals = levels * mean + beyond_left[reach_left] + beyond_right[reach_right]
    return min(flat, float(totals[reached].min())) * (1 + 1e-9)


def chosen(
    a: float,
    metric: Metric,
    judge: Callable[[Nodes], tuple[float, float]],
    tolerance: float,
    hint: int,
    known: Callable[[Nodes], bool] | None = None,
) -> tuple[Nodes, int]:
    """The cheapest rule whose error is within the tolerance, or the most accurate one there is.

    Args:
        a: exponent of the rule's density.
        metric: the metric and its points.
        judge: the error of a rule and the size that the tolerance is relative to.
        tolerance: relative.
        hint: the place in the list of candidates to try first.
        known: whether a rule knows all that its error bound needs; else the next one is taken.

    Returns:
        The rule at work and its place in the list.
    """
    low, high, mean = (float(f(metric.s)) for f in (np.min, np.max, np.mean))
    tries = _radial.candidates(a, low, high)
    tried: dict[int, tuple[float, Nodes]] = {}

    def worked(kind: str, scale: float, count: int) -> tuple[float, Nodes]:
        nodes = Nodes(_radial.rule(kind, a, scale, count, low), metric)
        nodes.quadrature, size = judge(nodes)
        return (nodes.quadrature / size / tolerance if size > 0 else math.inf), nodes

    options = _radial.scales(a, metric.s)
    best_scale = options[0]
    if len(options) > 1:
        best_scale = min(options, key=lambda scale: worked("gauss", scale, _TRIAL)[0])

    def excess(place: int) -> float:
        if place not in tried:
            kind, count = tries[place]
            tried[place] = worked(kind, best_scale if kind == "gauss" else mean, count)
        return tried[place][0]

    last = len(tries) - 1
    low_place, high_place = -1, min(hint, last)
    step = 1
    while excess(high_place) > 1 and high_place < last:
        low_place, high_place = high_place, min(last, high_place + step)
        step *= 2
    if excess(high_place) <= 1:
        while high_place - low_place > 1:
            middle = high_place - 1 if low_place < 0 else (low_place + high_place) // 2
            if excess(middle) <= 1:
                high_place = middle
            else:
                low_place = middle
    best = min(tried, key=lambda p: (max(tried[p][0], 1.0), p))
    while known is not None and not known(tried[best][1]) and best < last:
        best += 1
        excess(best)
    return tried[best][1], best
