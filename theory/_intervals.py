"""Intervals of a probability from held-out decisions: independent points, or independent groups."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

_HALVINGS = 60  # of an interval of length at most 1: to the last bit


@dataclass(frozen=True)
class Rate:
    """How often a domain's points are said to be of A.

    Attributes:
        value: the share of its points, or the mean of its groups' shares.
        said: number of points said to be of A.
        n: number of points.
        means: the share of each group; None for independent points.
    """

    value: float
    said: int
    n: int
    means: Float[np.ndarray, " _"] | None = None

    def at_least(self, risk: float) -> float:
        """A number that exceeds the true rate with probability at most `risk`."""
        if self.means is None:
            return binomial_lower(self.said, self.n, risk)
        return 1 - _kl_upper(1 - self.value, len(self.means), risk)

    def at_most(self, risk: float) -> float:
        """A number that falls below the true rate with probability at most `risk`."""
        if self.means is None:
            return 1 - binomial_lower(self.n - self.said, self.n, risk)
        return _kl_upper(self.value, len(self.means), risk)


def binomial_lower(successes: int, n: int, risk: float) -> float:
    """The p at which P(X ≥ successes) is `risk` for a binomial X: a quantile of a beta law."""
    from scipy.special import betaincinv

    return float(betaincinv(successes, n - successes + 1, risk)) if successes else 0.0


def _kl_upper(mean: float, n: int, risk: float) -> float:
    """The largest q with n kl(mean ‖ q) ≤ log(1/risk).

    For independent variables in [0, 1], of whatever laws, whose expectations average to μ > m,
    P(mean ≤ m) ≤ exp(−n kl(m ‖ μ)) (Chernoff, Hoeffding 1963, Theorem 1).
    """
    budget, low, high = -math.log(risk) / n, min(max(mean, 0.0), 1.0), 1.0
    mean = low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _kl(mean, middle) <= budget else (low, middle)
    return high


def _kl(p: float, q: float) -> float:
    """Relative entropy of two coins, q in [p, 1]."""
    if q >= 1:
        return 0.0 if p >= 1 else math.inf
    first = p * math.log(p / q) if p > 0 else 0.0
    return first + ((1 - p) * (math.log1p(-p) - math.log1p(-q)) if p < 1 else 0.0)
