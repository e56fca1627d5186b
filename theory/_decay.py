"""Both sides of a decay ‖f(t) − y‖² ≤ (1 − ηe₀/2)^t ‖f(0) − y‖² as intervals, and their worst step.

Verdicts are read from the values themselves: their logarithms are −∞ where a bound has underflowed.
"""

import numpy as np
from jaxtyping import Float

from theory.network import Array
from theory.rates import log_factor

_EPS, _TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)


def with_rounding(
    curve: Float[Array, " t"], rounding: Float[Array, " t"] | None
) -> Float[Array, "t 2"]:
    """‖f(t) − y‖² from its computed value, the norm being known up to `rounding`."""
    if rounding is None:
        return np.stack([curve, curve], axis=1)
    root = np.sqrt(curve)
    # Root, sum and square are rounded once each.
    low = np.maximum(root - rounding, 0.0) ** 2 * (1 - 4 * _EPS)
    return np.stack([low, (root + rounding) ** 2 * (1 + 4 * _EPS)], axis=1)


def decay_bound(
    start: Float[Array, "2"], high: float, low: float, eta: float, count: int
) -> Float[Array, "t 2"]:
    """Lower and upper end of (1 − ηe₀/2)^t ‖f(0) − y‖² for e₀ in [low, high], rounding counted."""
    times = np.arange(count)
    out = np.empty((count, 2))
    for column, (e0, sign) in enumerate([(high, -1.0), (low, 1.0)]):
        with np.errstate(divide="ignore"):
            first = np.log(start[column])
        exponent = times * log_factor(e0, eta)
        # exp turns the relative error of a sum's terms, a few units u, into |terms| as many.
        error = 8 * _EPS * (1 + np.abs(exponent) + np.abs(first))
        with np.errstate(under="ignore"):
            value = np.exp(exponent + first) * (1 + sign * np.minimum(error, 1.0))
        # Below the normal numbers the error is absolute.
        out[:, column] = np.maximum(value + sign * _TINY, 0.0)
    return out


def worst_step(measured: Float[Array, "t 2"], bound: Float[Array, "t 2"]) -> int:
    """The step t ≥ 1 that decides: of those that break the bound, else of those that may, else all.

    Among them that of the largest measured/bound, as far as that is finite.
    """
    low, high = measured[1:].T
    least, most = bound[1:].T
    broken, doubtful = low > most, high > least
    certain = slack = decades(least, high)
    steps = doubtful if doubtful.any() else np.ones_like(broken)
    if broken.any():
        slack, steps = decades(most, low), broken
    finite = steps & np.isfinite(certain)
    if not finite.any():
        return 1 + int(steps.argmax())
    return 1 + int(np.where(finite, slack, np.inf).argmin())


def decades(bound: Float[Array, " t"], value: Float[Array, " t"]) -> Float[Array, " t"]:
    """log₁₀(bound/value); ∞ where the value is 0, else −∞ where the bound is."""
    out = np.full(len(value), np.inf)
    some = value > 0
    with np.errstate(divide="ignore"):
        out[some] = np.log10(bound[some]) - np.log10(value[some])
    return out
