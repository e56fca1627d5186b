"""What one metric adds to a block of the BN kernels, and a bound of all that is wrong with it."""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from theory import _bn_blocks
from theory._bn_blocks import Numerators
from theory._eigenbasis import Eigenbasis, eigenbasis
from theory._nodes import Metric, Nodes, chosen, tailed
from theory._pairs import UNIT_ROUNDOFF, gamma
from theory._scales import ScaleRule

Array = np.ndarray
_ROOM = 1 + 1e-6  # the rounding of bounds


@dataclass(frozen=True)
class Pair:
    """Two groups of points under one metric Q = q_i + x²q_j (or Q = q_i, one group and x = 0).

    Attributes:
        x, y: points, y None for one group.
        metric: S_i + x²S_j.
        covariances: S_i and S_j.
        square: x².
        weight: of this metric in the sum over metrics.
        error: relative error of that sum, pointwise.
        tilt, defect: errors of points (relative) and covariances before the eigenbasis.
    """

    x: Float[Array, "n d"]
    y: Float[Array, "m d"] | None
    metric: Float[Array, "d d"]
    covariances: tuple[Float[Array, "d d"], Float[Array, "d d"]]
    square: float
    weight: float = 1.0
    error: float = 0.0
    tilt: float = 0.0
    defect: float = 0.0

    @property
    def shift(self) -> float:
        """The multiple of eps in Q."""
        return 1 + self.square


@dataclass(frozen=True)
class Demand:
    """What is asked for: eps, its rule, the component, the tolerance, and the rule to try first."""

    eps: float
    scales: ScaleRule
    component: str
    tolerance: float
    hint: int = 0


@dataclass
class Tally:
    """Sums of error bounds and of the sizes of what was added; how many nodes and eigenbases."""

    error: float = 0.0
    size: float = 0.0
    nodes: int = 0
    bases: int = 0
    hint: int = 0


def add(pair: Pair, demand: Demand, out: Float[Array, "n m"]) -> Tally:
    """Adds the metric's part to `out`: of one group the upper tiles only."""
    basis = eigenbasis(pair.metric)
    # The sum S_i + x²S_j was rounded too.
    defect = basis.defect + 2.0**-51 * float(np.linalg.norm(pair.metric)) + pair.shift * pair.defect
    basis = replace(basis, defect=defect, tilt=basis.tilt + pair.tilt)
    x = basis.rotated(pair.x)
    y = None if pair.y is None else basis.rotated(pair.y)
    tally, hint = Tally(bases=1), demand.hint
    kind = _Magnitude if demand.component == "magnitude" else _Direction
    worker = kind(pair, basis, demand.tolerance)
    share, size = _share(x, x if y is None else y)

    def known(nodes: Nodes) -> bool:
        """Whether the moments behind the error bound are known from above."""
        return math.isfinite(worker.error(nodes, 0.0))

    # Errors relative to the exact sums over metrics and scales, by those of the sums themselves.
    relative = (1 + pair.error) * (1 + demand.scales.error) - 1 + 2.0**-50
    relative = relative / (1 - relative) if relative < 0.5 else math.inf
    count = len(demand.scales.t)
    for t, weight in zip(demand.scales.t, demand.scales.weights, strict=True):
        metric = Metric(basis.s + demand.eps * pair.shift / t, share)
        # Scales that hardly count need no accuracy: all together they err by half the tolerance.
        level = min(1e-2, demand.tolerance * max(1.0, 0.5 / (count * float(weight))))
        worker.enough = level
        nodes, hint = chosen(worker.exponent, metric, worker.judge, level, hint, known)
        total = pair.weight * float(weight)
        nodes.weighted(total)
        error = _ROOM * size * worker.error(nodes, relative)
        wrong, added = worker.add(nodes, (x, y), size, level, out)
        tally.error += error + wrong
        tally.size += added
        tally.nodes += len(nodes.b)
        tally.hint = hint
    return tally


def rule_for(pair: Pair, demand: Demand) -> int:
    """The place of the rule that suits a metric, at the middle ‖v‖²."""
    basis = eigenbasis(pair.metric)
    x, y = (basis.rotated(z) for z in (pair.x, pair.x if pair.y is None else pair.y))
    t = demand.scales.t[len(demand.scales.t) // 2]
    metric = Metric(basis.s + demand.eps * pair.shift / t, _share(x, y)[0])
    kind = _Magnitude if demand.component == "magnitude" else _Direction
    worker = kind(pair, basis, demand.tolerance)
    return chosen(worker.exponent, metric, worker.judge, demand.tolerance, demand.hint)[1]


def _share(x: Float[Array, "n d"], y: Float[Array, "m d"]) -> tuple[Float[Array, " d"], float]:
    """How the squares of both groups, each in its own unit, lie over the axes; ‖X‖_F ‖Y‖_F/2."""
    share, size = np.zeros(x.shape[1]), 0.5
    for z in (x, y):
        squares = (z * z).sum(axis=0)
        total = float(squares.sum())
        share += squares / total / 2 if total > 0 else 0.5 / len(share)
        size *= math.sqrt(total)
    return share, size * (1 + 1e-9)


class _Magnitude:
    """E φ(ω·x)φ(ω·y)/Q. Bounds are in units of ‖X‖_F ‖Y‖_F/2: ω and -ω share a half-space."""

    def __init__(self, pair: Pair, basis: Eigenbasis, enough: float) -> None:
        self.enough = enough
        self.exponent = len(pair.metric) / 2
        self.defect, self.tilt = basis.defect, basis.tilt

    def judge(self, nodes: Nodes) -> tuple[float, float]:
        """The quadrature's error, and what the tolerance is relative to."""
        mean = nodes.moment(1, 2)
        return tailed(nodes.error(1), 1, nodes.metric, 2, mean, self.enough), mean

    def error(self, nodes: Nodes, relative: float) -> float:
        """Quadrature, the eigenbasis' defect in 1/Q, its tilt in the points, and rounding."""
        mean, second, largest = nodes.most(1, 2), nodes.most(2, 2), nodes.largest(1)
        quadrature = nodes.quadrature * mean / nodes.moment(1, 2)
        points = 2 * self.tilt * math.sqrt(mean * largest) + self.tilt**2 * largest
        terms = (
            nodes.factor
            * nodes.shared(nodes.metric.share)
            / (nodes.rule.scale * nodes.metric.dimension)
        )
        rounding = 2 * (1.5 * gamma(nodes.metric.dimension + 4) + 24 * UNIT_ROUNDOFF) * mean
        rounding += UNIT_ROUNDOFF * float((terms * nodes.roundings).sum())
        rounding += gamma(len(terms)) * mean
        return quadrature + relative * mean + self.defect * second + points + rounding

    def add(
        self,
        nodes: Nodes,
        points: tuple[Array, Array | None],
        size: float,
        tolerance: float,
        out: Float[Array, "n m"],
    ) -> tuple[float, float]:
        """Adds to `out`; returns a bound of what was left out, and of what was added."""
        terms = nodes.factor * nodes.shared(nodes.metric.share)
        order = np.argsort(terms)
        small = np.cumsum(terms[order]) <= 0.01 * tolerance * terms.sum()
        _bn_blocks.magnitude(nodes, np.sort(order[~small]), *points, out)
        unit = size / (nodes.rule.scale * nodes.metric.dimension)
        return _ROOM * unit * float(terms[order[small]].sum()), unit * float(terms.sum())


class _Direction:
    """E (1/Q)⟨x - S_i ω(ω·x)/q_i, y - S_j ω(ω·y)/q_j⟩1, each of its four terms bounded by itself.

    With c₂|v·x||vᵀS_i y| <= k₂|v·x|‖y‖√Q, c₃|v·y||vᵀS_j x| <= k₃|v·y|‖x‖√Q and c₄|vᵀCv| <= k₄Q,
    Cauchy and Schwarz leave the moments a_k = E 1/Q^k and b_k = E ‖Xω‖²/Q^k. Where Q = q_i,
    k₂ = k₃ = √‖S‖, k₄ = ‖S‖; where Q = q_i + x²q_j, √q_j <= √Q/x and √(q_i q_j) <= Q/2x.
    """

    def __init__(self, pair: Pair, basis: Eigenbasis, enough: float) -> None:
        self.enough = enough
        d = len(pair.metric)
        self.exponent = d / 2 - 1
        self.defect, self.tilt = basis.defect, basis.tilt
        if pair.y is None:
            coefficients, root, largest = (1.0, 1.0, 1.0, 1.0), 1.0, float(basis.s.max())
            sizes = (largest, largest)
            self.numerators = Numerators(basis.s, basis.s, basis.s**2, coefficients)
            self.turned = basis.defect / largest
            self.k4 = largest
        else:
            root = math.sqrt(pair.square)
            coefficients = (1.0, 2.0, 2 * pair.square, 8 * pair.square)
            first, second = (basis.u.T @ s @ basis.u for s in pair.covariances)
            middle = first @ second
            self.numerators = Numerators(first, second, (middle + middle.T) / 2, coefficients)
            sizes = tuple(1.01 * float(np.linalg.norm(s, 2)) for s in pair.covariances)
            self.turned = 2.2 * basis.tilt + 2.2 * gamma(d + 2) * d
            self.k4 = 4 * root * math.sqrt(sizes[0] * sizes[1])
        _, c2, c3, c4 = coefficients
        roots = [math.sqrt(size) for size in sizes]
        self.k23 = c2 * roots[0] + c3 * roots[1] / root
        self.n23 = c2 * sizes[0] + c3 * sizes[1]
        self.n4 = c4 * (sizes[0] * roots[1] / root + sizes[1] * roots[0])
        self.crude = d * (d + 2) * (2 + sum(coefficients))

    def judge(self, nodes: Nodes) -> tuple[float, float]:
        """The quadrature's error, and what the tolerance is relative to."""
        metric, a1, b2 = nodes.metric, nodes.moment(1, 0), nodes.moment(2, 2)
        enough = self.enough / 10
        first = tailed(nodes.error(1), 1, metric, 0, a1, enough)
        second = nodes.error(2)
        product = tailed(second, 1, metric, 0, a1, enough)
        product *= tailed(second, 2, metric, 2, b2, enough)
        third = tailed(nodes.error(3), 2, metric, 2, b2, enough)
        return first + self.k23 * math.sqrt(product) + self.k4 * third, a1

    def error(self, nodes: Nodes, relative: float) -> float:
        """Quadrature, and what the eigenbasis does to Q, to the numerators and to the points."""
        a1, a2 = nodes.most(1, 0), nodes.most(2, 0)
        b2, b3, largest = nodes.most(2, 2), nodes.most(3, 2), nodes.largest(2)
        quadrature = nodes.quadrature
        quadrature *= max(a1 / nodes.moment(1, 0), b2 / nodes.moment(2, 2))
        size = a1 + self.k23 * math.sqrt(a1 * b2) + self.k4 * b2
        in_metric = a2 + 2 * self.k23 * math.sqrt(b3 * a2) + 3 * self.k4 * b3
        in_numerators = self.n23 * math.sqrt(b2 * a2) + self.n4 * math.sqrt(b2 * b3)
        in_points = 2 * a1 + self.k23 * math.sqrt(a1) * (math.sqrt(largest) + math.sqrt(b2))
        in_points += 2 * self.k4 * math.sqrt(b2 * largest)
        return (
            quadrature
            + relative * size
            + self.defect * in_metric
            + self.turned * in_numerators
            + self.tilt * in_points
        )

    def add(
        self,
        nodes: Nodes,
        points: tuple[Array, Array | None],
        size: float,
        tolerance: float,
        out: Float[Array, "n m"],
    ) -> tuple[float, float]:
        """Adds to `out`; returns bounds of what is wrong or left out, and of what was added."""
        # Of a node at most f/λ ‖X‖‖Y‖ (c₁ + (c₂ + c₃) r/2 + 3d c₄ r²/8), r = s_max/s_min: in the
        # B norm ‖x‖_B <= √b_max‖x‖, S_i and x²S_j lie below S, and (1 - u) s b/λ <= 1 for each s.
        s = nodes.metric.s
        crude = self.crude * float(s.max() / s.min()) ** 2
        small = nodes.factor * crude <= 1e-3 * tolerance * nodes.factor.mean()
        use = np.flatnonzero(~small)
        wrong, added = _bn_blocks.direction(nodes, use, self.numerators, points, out, self.tilt)
        left_out = crude * float(nodes.factor[small].sum()) / nodes.rule.scale
        return _ROOM * (wrong + 2 * size * left_out), added
