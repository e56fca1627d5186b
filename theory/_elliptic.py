"""1/√(q_i q_j) as a sum over metrics: Σ_l w_l/(q_i + x_l² q_j), with a bound of its error.

1/√(q_i q_j) = (2/π) ∫_0^∞ dx/(q_i + x² q_j). With x = √μ₀ sc(t | m), m = 1 - μ₀/μ₁, the integrand
is analytic and periodic in t and the midpoint rule converges geometrically, uniformly for
μ₀ <= q_i/q_j <= μ₁ (Hale, Higham and Trefethen 2008). Derivatives by q_i and q_j give the powers
3/2 that the direction part needs from the same nodes: with Q = q_i + x² q_j,

    q_i^{-3/2} q_j^{-1/2} = (4/π) ∫ dx/Q²,         q_i^{-1/2} q_j^{-3/2} = (4/π) ∫ x² dx/Q²,
    q_i^{-3/2} q_j^{-3/2} = (16/π) ∫ x² dx/Q³.
"""

import math
from dataclasses import dataclass
from itertools import chain

import numpy as np
from jaxtyping import Float
from scipy import special

from theory import _analytic
from theory._pairs import UNIT_ROUNDOFF

_NARROW = 1e-13  # ratios of the ends below that leave 1 - m without digits
_STEPS = (0.7, 0.5, 0.42, 0.36, 0.31, 0.27, 0.24)
_COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 22, 24, 28, 32, 40, 48, 64)

# c, a power of x², a power of z = q_i/q_j and of Q: the four integrands over their limits.
_TERMS = ((1.0, 0, 0.5, 1), (2.0, 0, 1.5, 2), (2.0, 1, 0.5, 2), (8.0, 1, 1.5, 3))


@dataclass(frozen=True)
class PairRule:
    """Nodes x_l², weights w_l, and the bounds of the relative errors of the four integrals.

    Attributes:
        squares: x_l².
        weights: w_l > 0.
        errors: of 1/√(q_i q_j), then of its three derivatives, relative, pointwise.
    """

    squares: Float[np.ndarray, " l"]
    weights: Float[np.ndarray, " l"]
    errors: tuple[float, ...]


def pair_rule(low: float, high: float, terms: int, tolerance: float) -> PairRule:
    """The rule with the fewest nodes whose relative errors are below the tolerance.

    Args:
        low: the least q_i/q_j.
        high: the greatest.
        terms: how many of the four integrals count: 1 or 4.
        tolerance: relative; if rounding forbids it, the most accurate rule is returned.
    """
    elliptic = (_midpoint(low, high, count, terms) for count in _COUNTS)
    equal = (_trapezoid(low, high, step, terms) for step in _STEPS)
    best: PairRule | None = None
    for rule in chain(elliptic if low / high > _NARROW else (), equal):
        if best is None or max(rule.errors) < max(best.errors):
            best = rule
        if max(rule.errors) <= tolerance:
            break
    assert best is not None
    return best


def _trapezoid(low: float, high: float, step: float, terms: int) -> PairRule:
    """Equal steps of w = log x: (2/π) dx/(q_i + x²q_j) is sech(w - w₀) dw/(π√(q_i q_j)).

    The rule's relative error is 2 sech(π²/h) and little else, at any ratio; w₀ = ½ log(q_i/q_j).
    """
    ends = [0.5 * math.log(end) for end in (low, high)]
    w = np.arange(math.floor((ends[0] - 34) / step), math.ceil((ends[1] + 34) / step) + 1) * step
    squares, weights = np.exp(2 * w), 2 / math.pi * step * np.exp(w)
    errors = tuple(_error(squares, weights, low, high, term) for term in _TERMS[:terms])
    return PairRule(squares, weights, errors)


def _midpoint(low: float, high: float, count: int, terms: int) -> PairRule:
    ratio = 1 - (1 - low / high)  # exactly the complement of the parameter that ellipj gets
    quarter = float(special.ellipkm1(ratio))
    t = (np.arange(count) + 0.5) * quarter / count
    sn, cn, dn, _ = special.ellipj(t, 1 - ratio)
    squares = low * (sn / cn) ** 2
    weights = 2 * quarter * math.sqrt(low) / (math.pi * count) * dn / cn**2
    errors = tuple(_error(squares, weights, low, high, term) for term in _TERMS[:terms])
    return PairRule(squares, weights, errors)


def _error(
    squares: Float[np.ndarray, " l"],
    weights: Float[np.ndarray, " l"],
    low: float,
    high: float,
    term: tuple[float, int, float, int],
) -> float:
    constant, of_square, of_z, power = term

    def sums(zeta: Float[np.ndarray, " s"]) -> Float[np.ndarray, " s"]:
        z = np.exp(zeta)[:, None]
        values = weights * squares**of_square / (z + squares) ** power
        return constant * np.exp(of_z * zeta) * values.sum(axis=1)

    size = max(abs(math.log(low)), abs(math.log(high)), 1.0)
    rounding = (len(squares) + 4 * size + 40) * UNIT_ROUNDOFF
    pieces = _analytic.suprema(sums, math.log(low), math.log(high), float(power), rounding)
    return float(pieces.bound.max())
