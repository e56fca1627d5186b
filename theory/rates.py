"""What Theorem III.4 promises in numbers: factor per step, admissible step, rounds, width."""

import math
import sys
from dataclasses import dataclass
from fractions import Fraction

from theory._loose import Real, Whole
from theory._validate import positive, real
from theory.network import at_least
from theory.spectrum import Enclosure


@dataclass(frozen=True)
class Rate:
    """Linear convergence ‖f(t) − y‖² ≤ factor^t ‖f(0) − y‖² of Theorem III.4.

    Attributes:
        factor: 1 − ηe₀/2, in (0, 1]; 1.0 where it differs from 1 by less than rounding.
        step_size: the η it holds for.
        largest_step_size: 1/λ_max, beyond which the theorem does not reach.
        rounds: steps until ‖f − y‖² is below `tolerance` times its start, of log(1 − ηe₀/2) itself
            and not of the rounded factor.
    """

    factor: float
    step_size: float
    largest_step_size: float
    rounds: int


@dataclass(frozen=True)
class RequiredWidth:
    """The width m that Theorem III.4 asks for, with its unknown constant set to 1.

    Attributes:
        width: max{n⁴ log(n/δ)/(α⁴e₀⁴), n² log(n/δ)/e₀²}, an order of magnitude and no guarantee:
            the theorem states it only up to a constant.
        quartic: the first term.
        quadratic: the second term.
        constant: 1, the value put in place of the unknown constant.
    """

    width: float
    quartic: float
    quadratic: float
    constant: float = 1.0

    def __float__(self) -> float:
        """The width."""
        return self.width


def convergence_rate(
    e0: Enclosure | Real,
    largest_eigenvalue: Enclosure | Real,
    step_size: Real | None = None,
    tolerance: Real = 1e-3,
) -> Rate:
    """Factor, admissible step size and number of rounds of Theorem III.4 and Corollary III.5.

    Args:
        e0: λ_min(G∞) for aggregated, λ_min(G*∞) for client-specific BN, of the kernel that the
            network really has (`normalised_gram_matrix`). Of an enclosure the lower end counts.
        largest_eigenvalue: λ_max(Λ). Of an enclosure the upper end counts.
        step_size: η; the largest admissible one, 1/λ_max, when left out.
        tolerance: the fraction of ‖f(0) − y‖² to reach, in (0, 1).

    Raises:
        ValueError, TypeError: e0 or λ_max is not positive, η exceeds 1/λ_max, the tolerance is
            outside (0, 1), the factor is not positive, or 1/λ_max or the number of rounds is beyond
            the range of float64.
    """
    low = positive_e0(e0, upper=False)
    high = largest_eigenvalue
    top = positive(high.upper if isinstance(high, Enclosure) else high, "largest_eigenvalue")
    limit = 1.0 / top
    if math.isinf(limit):
        raise ValueError(f"1/λ_max with λ_max = {top:.3g} is beyond float64: rescale the kernel.")
    eta = limit if step_size is None else positive(step_size, "step_size")
    if eta > limit * (1 + 1e-15):
        raise ValueError(
            f"step_size {eta!r} exceeds 1/λ_max = {limit!r}, beyond which Theorem III.4 says "
            "nothing; lower it, or leave it out to use 1/λ_max."
        )
    target = positive(tolerance, "tolerance")
    if target >= 1:
        raise ValueError(f"tolerance must be below 1, not {target!r}: 1e-3 asks for a thousandth.")
    decay = log_factor(low, eta)
    rounds = math.log(target) / decay if decay else math.inf
    if math.isinf(rounds):
        raise ValueError(
            f"e0 = {low:.3g} is too small for a rate at step size {eta:.3g}: it takes more rounds "
            "than float64 can count."
        )
    return Rate(math.exp(decay), eta, limit, max(1, math.ceil(rounds)))


def required_width(
    e0: Enclosure | Real, n: Whole, alpha: Real, delta: Real = 0.05
) -> RequiredWidth:
    """The width of Theorem III.4, max{n⁴ log(n/δ)/(α⁴e₀⁴), n² log(n/δ)/e₀²}, n = NM.

    The theorem hides a constant; it is taken as 1 here, so the result is an order of magnitude.

    Args:
        e0: λ_min(G∞) or λ_min(G*∞). Of an enclosure the lower end counts.
        n: number of points of all clients together.
        alpha: the initialisation's scale.
        delta: probability with which the theorem may fail, in (0, 1).

    Raises:
        ValueError, TypeError: an argument is outside the range stated above.
    """
    low = positive_e0(e0, upper=False)
    count = real(at_least(n, 1, "n"), "n")
    scale = positive(alpha, "alpha")
    risk = as_risk(delta)
    log = math.log(count) - math.log(risk)
    ratio = count / low
    # Products, not powers: they overflow to infinity instead of raising.
    quartic = (ratio / scale) * (ratio / scale) * (ratio / scale) * (ratio / scale) * log
    quadratic = ratio * ratio * log
    return RequiredWidth(max(quartic, quadratic), quartic, quadratic)


def as_risk(delta: Real, shares: int = 1) -> float:
    """A probability of failure, in (0, 1), whose equal shares float64 holds with all digits."""
    risk = positive(delta, "delta")
    if risk >= 1:
        raise ValueError(f"delta is a probability of failure in (0, 1), not {risk!r}.")
    if risk / shares < sys.float_info.min:
        raise ValueError(f"delta = {risk!r} is beyond float64: 1e-300 is as good as certain.")
    return risk


def positive_e0(e0: Enclosure | Real, *, upper: bool) -> float:
    """One end of e0, positive, or advice on what a zero means."""
    value = (e0.upper if upper else e0.lower) if isinstance(e0, Enclosure) else real(e0, "e0")
    if math.isnan(value) or math.isinf(value):
        raise ValueError(f"e0 must be a finite number, not {value}.")
    if value <= 0:
        raise ValueError(
            f"e0 = {value:.3g} is not positive: without a positive smallest eigenvalue the "
            "theorem gives no rate. Remove duplicate points (check_assumption names them)."
        )
    return value


def log_factor(e0: float, eta: float) -> float:
    """log(1 − ηe₀/2) to a few units in the last place, refusing a factor that is not positive."""
    # Exact: near 0 the factor would lose all its digits to the rounding of ηe₀.
    factor = 1 - Fraction(eta) * Fraction(e0) / 2
    if factor <= 0:
        raise ValueError(
            f"the factor 1 − ηe0/2 = {float(factor):.3g} is not positive: e0 = {e0:.6g} does "
            "not belong to this network's kernel. Use the kernel with the 1/‖v‖_S factor "
            "(normalised_gram_matrix): Eq. (10) as printed is larger by α²dλ."
        )
    return math.log(factor) if 2 * factor < 1 else math.log1p(-eta * e0 / 2)
