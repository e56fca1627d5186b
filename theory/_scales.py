"""The integral over ‖v‖² that BN's eps > 0 leaves, with a uniform bound of its relative error.

With v = √t ω, t ~ α²χ²_d, vᵀSv + eps = t(ωᵀSω + eps/t): the kernels with eps are means over t of
those of S + (eps/t)I with eps = 0. For fixed ω the integrand is a sum of terms g which are, up to
a constant, t^k over 2k factors (ρt + eps)^{1/2}, each with a ρ of its own: one term with k = 1 for
G, four with k = 1, 2, 2, 3 for V, where errors are relative to the sizes of the terms. In
τ = log t the law of t/2α² has the density t^a e^{-t}/Γ(a), a = d/2. At τ + iβ it grows by at most
(cos β)^{-a} after t is stretched by 1/cos β, and g by cos(β/2)^{-k}(cos β)^{-k}; the trapezoidal
rule with step h therefore has the relative error 2 (cos β)^{-a-k} cos(β/2)^{-k}/(e^{2πβ/h} - 1),
for every eps and ρ.

Cut ends: g grows with t, so that what lies left of t_0 is at most P(t < t_0)/(1 - P(t < t_0)); and
g(t) <= g(M)(t/M)^k right of the median M, so that what lies right of t_1 > 2α²(a + k) is at most
2 Γ(a + k)/(Γ(a) M^k) times the tail of the law with a + k in place of a.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import special

from theory._pairs import UNIT_ROUNDOFF


@dataclass(frozen=True)
class ScaleRule:
    """Nodes t = ‖v‖², weights that sum to about 1, and a bound of the relative error."""

    t: Float[np.ndarray, " l"]
    weights: Float[np.ndarray, " l"]
    error: float


NO_EPS = ScaleRule(np.full(1, np.inf), np.ones(1), 0.0)


def scale_rule(dimension: int, alpha: float, k: int, tolerance: float) -> ScaleRule:
    """The trapezoidal rule for E g(t), t ~ α²χ²_d, with the largest step within the tolerance."""
    a = dimension / 2
    step, discretisation = 0.0, 0.0
    for beta in np.linspace(0.02, 1.5, 150):
        growth = -(a + k) * math.log(math.cos(beta)) - k * math.log(math.cos(beta / 2))
        # log(1 + e^x), x = growth + log(4/tolerance)
        needed = float(np.logaddexp(0.0, growth + math.log(4 / tolerance)))
        if 2 * math.pi * beta / needed > step:
            step, discretisation = 2 * math.pi * beta / needed, tolerance / 2
    cut = tolerance / 20
    low = float(special.gammaincinv(a, cut))
    median = float(special.gammaincinv(a, 0.5))
    ratio = math.exp(special.gammaln(a + k) - special.gammaln(a) - k * math.log(median))
    high = float(special.gammainccinv(a + k, cut / (2 * ratio)))
    left, right = math.log(low), math.log(max(high, (a + k) * 1.01))
    tau = np.arange(math.floor(left / step), math.ceil(right / step) + 1) * step
    logs = a * tau - np.exp(tau) - special.gammaln(a)
    first, last = math.exp(tau[0]), math.exp(tau[-1])
    below = float(special.gammainc(a, first))
    truncation = 1.01 * (below / (1 - below) + 2.1 * ratio * float(special.gammaincc(a + k, last)))
    sizes = a * np.abs(tau) + np.exp(tau) + abs(float(special.gammaln(a)))
    rounding = 4 * UNIT_ROUNDOFF * float(sizes.max() + 8)
    return ScaleRule(
        2 * alpha**2 * np.exp(tau),
        step * np.exp(logs),
        discretisation + truncation + rounding,
    )
