"""What a bound pays for estimating from n points: the terms behind the O(·) of Theorem III.7."""

import math

from theory._loose import Real, Whole
from theory.bounds import Term
from theory.network import at_least
from theory.rates import as_risk

_MOST = 10**300  # no product of the formulas below overflows
_UNITS = 2.0**-48  # relative; the formulas below pass at most 16 roundings of 2^-53 each


def divergence_capacity(vc_dimension: Whole, n: Whole, delta: Real) -> Term:
    """4√((2d log(2n) + log(2/δ))/n): what (13) pays for estimating d_HΔH (Ben-David et al. 2010).

    It is printed in their Theorem 2 and covers ½d ≤ ½d̂ + this, uniformly over H. To see it, write
    ½(d − d̂) ≤ sup_A|P_s(A) − P̂_s(A)| + sup_A|P_u(A) − P̂_u(A)|; each supremum is at most
    1/n + √((log Π(2n) + log(8/δ))/n) with probability 1 − δ/2 (Vapnik 1998), Π being the growth
    function of HΔH. A set of HΔH is a pair of sets of H, so that Π_HΔH ≤ Π_H², and by Sauer
    log Π_HΔH(2n) ≤ 2d log(2n) for d ≥ 2 (for d = 1 the rest has room for it): the 2d needs no VC
    dimension of HΔH, about which "at most 2d" is too optimistic. Both suprema together are below
    the printed value wherever that is below 1.

    Args:
        vc_dimension: d of H.
        n: points in each of the two samples; of unequal ones the smaller number.
        delta: probability with which it may fail, in (0, 1).

    Raises:
        TypeError, ValueError: d or n no positive integer; δ outside (0, 1).
    """
    d, count, risk = _sampling(vc_dimension, n, delta)
    value = 4 * math.sqrt((2 * d * math.log(2 * count) + math.log(2) - math.log(risk)) / count)
    return _around("capacity of the divergence", value, "4√((2d log 2n + log(2/δ))/n)", risk)


def risk_capacity(vc_dimension: Whole, n: Whole, delta: Real) -> Term:
    """2√((log Π(2n) + log(4/δ))/n): J_s(f) ≤ Ĵ_s(f) + this, uniformly over H (Vapnik 1998).

    Π(2n) ≤ min{2^(2n), (2en/d)^d} is Sauer's bound of the growth function. Ben-David et al. 2010
    state their Theorem 2 with the true J_s; (13) has Ĵ_s of the very points that f was trained on,
    so this comes on top. Arguments and errors as for `divergence_capacity`.
    """
    d, count, risk = _sampling(vc_dimension, n, delta)
    points = 2 * count
    growth = points * math.log(2)
    if points > d:
        growth = min(growth, d * (1 + math.log(points / d)))
    value = 2 * math.sqrt((growth + math.log(4) - math.log(risk)) / count)
    return _around("capacity of the risk", value, "2√((log Π(2n) + log(4/δ))/n)", risk)


def capacity_order(vc_dimension: Whole, n: Whole, delta: Real) -> float:
    """√((d log(n/d) + log(1/δ))/n), what stands inside the paper's O(·) of (13), constant 1.

    Hidden by the O(·): the factor 4, the doubled d of HΔH, log(2n) in place of log(n/d), and the
    second term for Ĵ_s. `divergence_capacity` alone is more than four times as large, and more
    than 4√2 times where the VC dimension and not δ decides.

    Raises:
        TypeError, ValueError: as `divergence_capacity`; n ≤ d, where log(n/d) is not positive.
    """
    d, count, risk = _sampling(vc_dimension, n, delta)
    if count <= d:
        raise ValueError(
            f"the order is meant for n > d: n = {n} points and VC dimension {vc_dimension} give "
            "no positive log(n/d); divergence_capacity has no such limit."
        )
    return math.sqrt((d * math.log(count / d) - math.log(risk)) / count)


def _sampling(vc_dimension: object, n: object, delta: Real) -> tuple[float, float, float]:
    found = at_least(vc_dimension, 1, "vc_dimension"), at_least(n, 1, "n")
    for name, value in zip(("vc_dimension", "n"), found, strict=True):
        if value > _MOST:
            raise ValueError(f"{name} is above 10^300, beyond the range of float64: correct it.")
    return float(found[0]), float(found[1]), as_risk(delta)


def _around(name: str, value: float, formula: str, delta: float) -> Term:
    """A term whose value carries the rounding of its formula; δ is charged where it is used."""
    origin = f"{formula} at δ = {delta:g}"
    return Term(name, value * (1 - _UNITS), value * (1 + _UNITS), origin)
