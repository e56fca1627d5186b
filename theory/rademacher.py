"""Rademacher complexity of two-layer ReLU networks of bounded norm, and the capacity it gives."""

import math

from theory._enclosure import Enclosure
from theory._loose import Anything, ArrayLike, Real
from theory._validate import as_points, non_negative, positive
from theory.bounds import Term
from theory.gaussian import TwoLayer
from theory.rates import as_risk

__all__ = [
    "learned_rademacher_capacity",
    "path_norm",
    "rademacher_capacity",
    "rademacher_complexity",
]

_UNITS = 2.0**-46  # relative; the formulas below pass at most 32 roundings of 2^-53 each
_LEAST = math.ulp(0.0)
_NAME = "capacity of the risk"


def path_norm(network: "TwoLayer | Anything") -> float:
    """Σ_k |c_k| ‖w_k‖/√m, the norm of f = 1/√m Σ c_k φ(w_k·z) in `rademacher_complexity`.

    Rounded upwards.

    Raises:
        TypeError: something else than a `TwoLayer`.
        ValueError: a norm beyond the range of float64.
    """
    if not isinstance(network, TwoLayer):
        raise TypeError(f"network must be a TwoLayer(inner, outer), not {network!r}.")
    sizes = [math.hypot(*row) for row in network.inner.tolist()]
    pairs = zip(sizes, network.outer.tolist(), strict=True)
    # What is not zero may underflow to it, but not upwards.
    products = [size * abs(c) + (_LEAST if size and c else 0.0) for size, c in pairs]
    try:
        found = math.fsum(products) / math.sqrt(len(products)) * (1 + _UNITS)
    except OverflowError:
        count = len(products)
        found = math.fsum(p / count for p in products) * math.sqrt(count) * (1 + _UNITS)
    if not math.isfinite(found):
        raise ValueError("the path norm is beyond the range of float64: rescale the network.")
    return found


def rademacher_complexity(x: ArrayLike, norm: Real) -> Enclosure:
    """Encloses R̂ = E_ε sup_f 1/n Σ ε_p f(x_p) over {Σ c_k φ(w_k·x) : Σ |c_k| ‖w_k‖ ≤ B}, any m.

    Upper end, 2B √(Σ ‖x_p‖²)/n. Peel: φ(w·x) = ‖w‖ φ(ŵ·x), so that f is a mixture of ±Bφ(ŵ·x)
    and the supremum is B sup_{‖w‖≤1} |Σ ε_p φ(w·x_p)|. As w = 0 makes the sum 0, |S| ≤ sup S +
    sup(−S), which have the same mean: the absolute value costs a factor 2. φ is a contraction with
    φ(0) = 0 and drops out (Ledoux & Talagrand 1991); what is left is 2B E‖Σ ε_p x_p‖/n, and
    E‖Σ ε_p x_p‖ ≤ √(Σ ‖x_p‖²) by Jensen.

    Lower end, B √(Σ ‖x_p‖²)/(2√2 n). The class holds B/2 (φ(ŵ·x) − φ(−ŵ·x)) = B/2 ŵ·x, whose
    supremum is B/2 ‖Σ ε_p x_p‖, and E‖Σ ε_p x_p‖ ≥ √(Σ ‖x_p‖²/2) (Latała & Oleszkiewicz 1994).

    Args:
        x: (n, d) points, one a row.
        norm: B ≥ 0. A layer without bias; append 1 to each x for one with bias.

    Raises:
        TypeError, ValueError: x that is no matrix of numbers; B negative or not finite.
    """
    points, size = as_points(x), non_negative(norm, "norm")
    length = math.hypot(*(math.hypot(*row) for row in points.tolist())) / len(points)
    top = 2 * size * length * (1 + _UNITS)
    if not math.isfinite(top):
        raise ValueError("the complexity is beyond the range of float64: rescale x or the norm.")
    low = size * length / (2 * math.sqrt(2)) * (1 - _UNITS)
    return Enclosure(low, top, "between B/(2√2) and 2B times √(Σ ‖x_p‖²)/n")


def rademacher_capacity(
    x: ArrayLike, norm: Real, *, lipschitz: Real = 1.0, largest_loss: Real = 1.0, delta: Real = 0.05
) -> Term:
    """2ρR̂ + 3L √(log(2/δ)/(2n)): J(f) ≤ Ĵ(f) + this, for all f of the class at once.

    Bartlett & Mendelson 2002, with the complexity of the very points: McDiarmid twice at δ/2, for
    sup_f (J − Ĵ) and for R̂ of the losses, then contraction, R̂(ℓ∘F) ≤ ρR̂(F). It replaces
    `risk_capacity` for two-layer networks: no dimension or width enters, but the loss must be
    ρ-Lipschitz in f(x), such as the ramp min{1, (1 − yf/γ)₊} with ρ = 1/γ, which is at least the
    0-1 loss. The norm must have been fixed before the data; else `learned_rademacher_capacity`.

    Args:
        x: (n, d) points that the risk is measured on, drawn independently.
        norm: B that Σ |c_k| ‖w_k‖ cannot exceed.
        lipschitz: ρ of the loss in its prediction.
        largest_loss: L, the largest loss there can be.
        delta: probability with which it may fail, in (0, 1). It is charged where the term is used.

    Raises:
        TypeError, ValueError: as `rademacher_complexity`; ρ or L not positive; δ outside (0, 1).
    """
    risk = as_risk(delta)
    value = _value(x, norm, lipschitz, largest_loss, risk)
    return _term(value, f"2ρR̂ + 3L √(log(2/δ)/(2n)) at δ = {risk:g}, R̂ ≤ 2B √(Σ ‖x_p‖²)/n")


def learned_rademacher_capacity(
    x: ArrayLike, norm: Real, *, lipschitz: Real = 1.0, largest_loss: Real = 1.0, delta: Real = 0.05
) -> Term:
    """`rademacher_capacity` of a norm that was read off the trained network.

    The smallest B_j = 2^j, j an integer, that is at least the norm takes its place, and
    δ_j = δ 3/(π² (|j| + 1)²) that of δ: as Σ_j δ_j ≤ δ over all integers (twice Σ 1/i² = π²/6,
    less the j = 0 that is counted twice), the statements for all B_j hold together, and the network
    may choose among them. The price is at most a factor 2 and log (|j| + 1)².

    Arguments and errors as for `rademacher_capacity`; ValueError also if the norm is 0.
    """
    size, risk = positive(norm, "norm"), as_risk(delta, 2**24)
    mantissa, exponent = math.frexp(size)
    j = exponent - 1 if mantissa == 0.5 else exponent
    if j > 1023:
        raise ValueError(f"norm = {size:.3g} is beyond the powers of two of float64: rescale it.")
    share = risk * 3 / (math.pi * (abs(j) + 1)) ** 2
    value = _value(x, math.ldexp(1.0, j), lipschitz, largest_loss, share)
    origin = f"2ρR̂ + 3L √(log(2/δ_j)/(2n)) for B = 2^{j} at δ_j = {share:.3g} of δ = {risk:g}"
    return _term(value, origin)


def _value(x: ArrayLike, norm: Real, lipschitz: Real, largest_loss: Real, risk: float) -> float:
    slope, top = positive(lipschitz, "lipschitz"), positive(largest_loss, "largest_loss")
    complexity = rademacher_complexity(x, norm).upper
    confidence = math.sqrt((math.log(2) - math.log(risk)) / (2 * len(as_points(x))))
    value = 2 * slope * complexity + 3 * top * confidence
    if not math.isfinite(value):
        raise ValueError("the capacity is beyond the range of float64: rescale x or the norm.")
    return value


def _term(value: float, origin: str) -> Term:
    return Term(_NAME, value * (1 - _UNITS), value * (1 + _UNITS), origin)
