"""do(S) with the statistics of a batch of n points, of which the point to answer is one.

Let K of the other n − 1 points have label 1, K ~ Bin(n − 1, π), s̄ = (2K − n + 1)/(n − 1). Given K
and the point's own s the features are independent, and for feature j, with mean v̄ and sum of
squares Q of the other points about it (independent of one another, the noise being Gaussian),

    u = √((n − 1)/n) (V − v̄) ~ N(√((n − 1)/n) m_j (s − s̄), 1),
    Q ~ χ²(n − 2) with non-centrality m_j² 4 K (n − 1 − K)/(n − 1)    (for n = 2: Q = 0).

Joining the point to the others, V − mean = u √((n − 1)/n) and n var = Q + u². So its normalised
value is free of a and b,

    F_j = √(n − 1) u/√(Q + u²) = √(n − 1) sin θ,    (u, √Q) = r (sin θ, cos θ),

and F_j > t ⇔ u > √Q tan θ_t with sin θ_t = t/√(n − 1). With n = 2, F_j is the sign of u: the larger
of two points is +1.

The learnt classifier looks at F_1, F_2 (feature 3 is noise in every domain). Given F_2, P(log odds
> 0) is a sum over sign changes t in F_1 of P(F_1 > t | K, s) = ∫ Φ(mean u − √Q tan θ_t) dP(√Q); the
density of F_2's θ is ∫ p(u = r sin θ) p(√Q = r cos θ) r dr. All integrals by Gauss-Legendre.
"""

import functools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from theory._crossings import Crossings, crossings
from theory.structural import StructuralModel
from theory.structural_answers import answer_log_odds

Array = np.ndarray

_TAIL, _LEAST = 8.5, 1e-15
_FEW = 32  # points, of which √Q may be near 0
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class _Rule:
    """Nodes and weights of an integral."""

    nodes: Float[Array, " k"]
    weights: Float[Array, " k"]


def batch_risk(model: StructuralModel, n: int) -> tuple[float, float]:
    """The expected risk, and how far the same rules with half as many nodes lie from it."""
    fine, coarse = (_risk(model, n, refinement) for refinement in (2, 1))
    return fine, abs(fine - coarse) + _ROUNDING


def _risk(model: StructuralModel, n: int, refinement: int) -> float:
    from scipy.stats import binom  # takes long to import

    rate = model.unseen.label_rate
    m = model.unseen.direction(model.content)
    angle = _angles(n, abs(m[1]), refinement)
    if all(d.direction(model.content)[1] == 0 for d in model.domains):
        # the classifier does not look at F_2
        angle = _Rule(np.zeros(1), np.ones(1))
    found = _sign_changes(model, np.sqrt(n - 1) * np.sin(angle.nodes), n, refinement)
    shares, risk = binom.pmf(np.arange(n), n - 1, rate), 0.0
    for k in np.flatnonzero(shares > _LEAST):
        spread = np.abs(m) * np.sqrt(4 * k * (n - 1 - k) / (n - 1))
        root = _lengths(n - 2, spread[0], refinement)
        density = root.weights * _density(root.nodes, n - 2, spread[0])
        least_u = np.outer(_tangent(found.place, n), root.nodes)
        for sign, share in ((1, rate), (-1, 1 - rate)):
            mean = m * (sign - (2 * k - n + 1) / (n - 1)) * np.sqrt((n - 1) / n)
            beyond = ndtr(mean[0] - least_u) @ density
            weights = _weights_of_angle(angle, n, mean[1], spread[1], refinement)
            positive = weights @ found.share(beyond)
            risk += float(shares[k] * share * (1 - positive if sign > 0 else positive))
    return risk


def _sign_changes(model: StructuralModel, f2: Array, n: int, refinement: int) -> Crossings:
    """Where in F_1 the learnt classifier changes its mind, for each F_2."""
    after = model.normalised()

    def log_odds(f1: Array, row: Array) -> Array:
        f = np.column_stack([f1, f2[row], np.zeros(len(row))])
        return answer_log_odds(after, "observational", f)

    end = np.sqrt(n - 1)
    grid = end * np.sin(np.linspace(-np.pi / 2, np.pi / 2, 1 + refinement * (64 + 8 * int(end))))
    return crossings(log_odds, len(f2), grid)


def _tangent(place: Array, n: int) -> Array:
    """The tangent of θ_t, of F_1 > t."""
    return place / np.sqrt(np.maximum(n - 1 - place**2, np.finfo(float).tiny))


def _angles(n: int, nuisance: float, refinement: int) -> _Rule:
    if n == 2:  # F_2 is −1 or 1
        return _Rule(np.array([-0.5, 0.5]) * np.pi, np.ones(2))
    count = 32 + int(4 * np.sqrt(n) * (1 + nuisance))
    return _legendre(-np.pi / 2, np.pi / 2, refinement * count)


def _lengths(degrees: int, shift: float, refinement: int) -> _Rule:
    """Nodes for the length of a Gaussian vector whose mean is `shift` long.

    The length is a 1-Lipschitz function of the noise, so it strays from its median, which lies
    less than 1 below √(degrees + shift²), no further than a standard normal variable.
    """
    if degrees == 0:
        return _Rule(np.zeros(1), np.ones(1))
    middle = np.hypot(np.sqrt(degrees), shift)
    return _legendre(max(0.0, middle - 1 - _TAIL), middle + _TAIL, 36 * refinement)


def _legendre(low: float, high: float, count: int) -> _Rule:
    nodes, weights = _gauss(count)
    half = 0.5 * (high - low)
    return _Rule(low + half * (nodes + 1), half * weights)


@functools.cache
def _gauss(count: int) -> tuple[Array, Array]:
    return np.polynomial.legendre.leggauss(count)


def _density(length: Array, degrees: int, shift: float) -> Array:
    """Of the length of a Gaussian vector with a mean `shift` long; 1 where it is 0 for certain."""
    from scipy.stats import chi, ncx2  # takes long to import

    if degrees == 0:
        return np.ones_like(length)
    if shift == 0:
        return chi.pdf(length, degrees)
    return 2 * length * ncx2.pdf(length**2, degrees, shift**2)


def _weights_of_angle(
    angle: _Rule, n: int, mean: float, spread: float, refinement: int
) -> Float[Array, " k"]:
    """Probability that each node of F_2's angle stands for."""
    if len(angle.nodes) == 1:
        return angle.weights
    if n == 2:
        return ndtr(np.array([-mean, mean]))
    sin, cos = np.sin(angle.nodes), np.cos(angle.nodes)
    if n < _FEW:
        rule = _lengths(n - 1, np.hypot(mean, spread), refinement)
        u, root = np.outer(sin, rule.nodes), np.outer(cos, rule.nodes)
        jacobian = rule.nodes
    else:  # √Q stays clear of 0, and its density is wanted at fewer points
        rule = _lengths(n - 2, spread, refinement)
        u, root = np.outer(sin / cos, rule.nodes), rule.nodes
        jacobian = np.outer(1 / cos**2, rule.nodes)
    density = np.exp(-0.5 * (u - mean) ** 2) / np.sqrt(2 * np.pi) * _density(root, n - 2, spread)
    return angle.weights * ((density * jacobian) @ rule.weights)
