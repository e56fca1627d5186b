"""A p-value of a difference of means, from independent numbers in [0, 1] of whatever laws."""

import math

import numpy as np
from jaxtyping import Float

Means = Float[np.ndarray, " _"]

# Stakes: any would do for validity; most are small, as the best one is where numbers vary.
_STAKES = ((np.arange(32) + 0.5) / 32) ** 2


def difference_p_value(a: Means, b: Means) -> float:
    """p-value of the hypothesis that the expectations of a, averaged, are at most those of b.

    P(p ≤ α) ≤ α for every α, every number of each, and independent numbers whose laws may all
    differ: twice the smaller of two p-values, one that is strong where the numbers are 0 and 1 and
    one that is strong where they vary little.
    """
    if a.mean() <= b.mean():
        return 1.0
    return min(1.0, 2 * min(_tail(a, b), math.exp(-_log_capital(a, b))))


def _tail(a: Means, b: Means) -> float:
    """(1 + t) e^−t at t = n_a kl(m_a ‖ m) + n_b kl(m_b ‖ m), m being the mean of all.

    n kl(mean ‖ μ), 0 on the wrong side of μ, exceeds x with probability at most e^−x (Chernoff,
    Hoeffding 1963), as an exponential variable does; the sum of two independent ones is below a
    gamma variable of shape 2, and m is the μ at which the sum is least.
    """
    from scipy.special import rel_entr

    mean, t = (a.sum() + b.sum()) / (len(a) + len(b)), 0.0
    for x in (a, b):
        m = min(float(x.mean()), 1.0)
        t += len(x) * float(np.sum(rel_entr([m, 1 - m], [mean, 1 - mean])))
    return (1 + t) * math.exp(-t)


def _log_capital(a: Means, b: Means) -> float:
    """Logarithm of min_μ K_a(μ) K_b(μ): what bets against equal means are sure to gain.

    K_a(μ) is the mean over stakes θ of Π (1 − θ + θ a_i/μ), and K_b(μ) that with 1 − b and 1 − μ.
    For expectations that average to at most μ the product has expectation at most 1 (the geometric
    mean is below the arithmetic one), so that P(K ≥ 1/α) ≤ α (Markov); cf. Waudby-Smith & Ramdas
    2024. Each factor is log-convex in μ, hence so is the sum, and a search finds the minimum.
    """
    from scipy.optimize import minimize_scalar

    sides = [np.unique(x, return_counts=True) for x in (a, 1 - b)]

    def capital(mu: float) -> float:
        total = 0.0
        for (x, counts), m in zip(sides, (mu, 1 - mu), strict=True):
            gains = np.log1p(_STAKES[:, None] * (x / m - 1)) @ counts
            total += float(np.logaddexp.reduce(gains)) - math.log(len(_STAKES))
        return total

    found = minimize_scalar(capital, bounds=(0, 1), method="bounded", options={"xatol": 1e-9})
    return float(found.fun)  # type: ignore[attr-defined]
