"""What the largest eigenvalue adds to Corollary III.6: step sizes and condition numbers.

G* is G with its blocks between clients set to zero, so that it is a mean of matrices with G's
eigenvalues, G* = 2^-N Σ_s D_s G D_s over all signs s of the clients (for two clients (G + DGD)/2,
D = diag(I, −I)). Hence λ_max(G*) <= λ_max(G), as λ_min(G*) >= λ_min(G): the paper states the second
only. Any step η <= 1/λ_max(G) stays admissible for G*, a larger one becomes so.

The factor of Theorem III.4 falls with η, 1 − ηλ_min/2, and is best at the largest step,
η = 1/λ_max: 1 − 1/(2κ) with κ = λ_max/λ_min. The linearised residual r(t+1) = (I − ηK)r(t) shrinks
at least by max(|1 − ηλ_min|, |1 − ηλ_max|), which is least where both are equal,
η = 2/(λ_min + λ_max): (κ − 1)/(κ + 1). Either way the best step's factor depends on κ alone and
grows with it, and κ(G*) <= κ(G): client-specific BN gains by λ_min and by λ_max, and the steps to a
given accuracy fall about as κ does.
"""

from dataclasses import dataclass
from fractions import Fraction

from theory import _certify
from theory._loose import Anything
from theory.comparison import Verdict
from theory.inequality import Inequality
from theory.spectrum import Enclosure


@dataclass(frozen=True)
class StepSizes:
    """What masking the kernel does to the step size and to the best rate.

    Attributes:
        largest: λ_max(G*) <= λ_max(G), both enclosed.
        condition: κ(G*) <= κ(G); None where a smallest eigenvalue may be 0.
        smallest_gain: λ_min(G*)/λ_min(G), at least 1; None as above.
        step_gain: λ_max(G)/λ_max(G*), at least 1: by how much the admissible step grows.
        gain: κ(G)/κ(G*), their product: about the ratio of the numbers of steps; None as above.
    """

    largest: Inequality
    condition: Inequality | None
    smallest_gain: Enclosure | None
    step_gain: Enclosure
    gain: Enclosure | None


def quotient(
    numerator: Enclosure | Anything, denominator: Enclosure | Anything, method: str
) -> Enclosure:
    """Encloses a quotient of two positive numbers, rounded outwards.

    Raises:
        TypeError: either is no enclosure.
        ValueError: either may be 0 or negative.
    """
    _refuse_no_enclosures(numerator=numerator, denominator=denominator)
    if numerator.lower <= 0 or denominator.lower <= 0:
        raise ValueError(f"{method} needs positive numbers: an enclosure reaches down to 0.")
    low = Fraction(numerator.lower) / Fraction(denominator.upper)
    high = Fraction(numerator.upper) / Fraction(denominator.lower)
    return Enclosure(_certify.rounded(low, up=False), _certify.rounded(high, up=True), method)


def condition_number(
    smallest: Enclosure | Anything, largest: Enclosure | Anything
) -> Enclosure | None:
    """κ = λ_max/λ_min of a symmetric positive definite matrix; None where λ_min may be 0.

    Raises:
        TypeError: either is no enclosure.
    """
    _refuse_no_enclosures(smallest=smallest, largest=largest)
    if smallest.lower <= 0 or largest.lower <= 0:
        return None
    return quotient(largest, smallest, "λ_max/λ_min")


def best_factors(condition: Enclosure | Anything) -> tuple[Enclosure, Enclosure]:
    """The factor a step at the best fixed η, from κ: of Theorem III.4, and of the linearisation.

    Returns:
        1 − 1/(2κ), of ‖f − y‖² at η = 1/λ_max; (κ − 1)/(κ + 1), of ‖f − y‖ at
        η = 2/(λ_min + λ_max). Derived in this module's docstring.

    Raises:
        TypeError: κ is no enclosure, such as None where there is none.
    """
    _refuse_no_enclosures(condition=condition)
    low, high = (max(Fraction(end), Fraction(1)) for end in (condition.lower, condition.upper))
    return (
        _outwards(1 - 1 / (2 * low), 1 - 1 / (2 * high), "1 − 1/(2κ)"),
        _outwards((low - 1) / (low + 1), (high - 1) / (high + 1), "(κ − 1)/(κ + 1)"),
    )


def step_sizes(verdict: Verdict | Anything) -> StepSizes:
    """λ_max(G*) <= λ_max(G) and κ(G*) <= κ(G), by interlacing, with what each of them gains.

    Args:
        verdict: of `compare_smallest_eigenvalues`, whose kernels are one matrix and its blocks.

    Raises:
        TypeError: something else than that.
    """
    if not isinstance(verdict, Verdict):
        raise TypeError(
            "verdict must be what compare_smallest_eigenvalues returns, not "
            f"{type(verdict).__name__}."
        )
    pairs = (
        (verdict.aggregated, verdict.largest_aggregated),
        (verdict.client_specific, verdict.largest_client_specific),
    )
    whole, own = (condition_number(*pair) for pair in pairs)
    same = verdict.one_client
    largest = Inequality("λ_max(G*) ≤ λ_max(G)", "interlacing", pairs[1][1], pairs[0][1], same)
    step_gain = quotient(pairs[0][1], pairs[1][1], "λ_max(G)/λ_max(G*)")
    if whole is None or own is None:
        return StepSizes(largest, None, None, step_gain, None)
    return StepSizes(
        largest,
        Inequality("κ(G*) ≤ κ(G)", "interlacing", own, whole, same),
        quotient(pairs[1][0], pairs[0][0], "λ_min(G*)/λ_min(G)"),
        step_gain,
        quotient(whole, own, "κ(G)/κ(G*)"),
    )


def _refuse_no_enclosures(**values: object) -> None:
    for name, value in values.items():
        if not isinstance(value, Enclosure):
            raise TypeError(
                f"{name} must be an Enclosure, such as smallest_eigenvalue gives, not {value!r}."
            )


def _outwards(low: Fraction, high: Fraction, method: str) -> Enclosure:
    return Enclosure(_certify.rounded(low, up=False), _certify.rounded(high, up=True), method)
