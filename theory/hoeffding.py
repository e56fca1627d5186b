"""Eq. (12): the empirical risk, and Hoeffding's interval for the risk behind it."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from theory._loose import ArrayLike, Real
from theory._validate import as_vector, positive
from theory.bounds import Term, float_weights
from theory.rates import as_risk


@dataclass(frozen=True)
class EmpiricalRisk:
    """Eq. (12): Ĵ_s(f), and what it says about J_s(f).

    Attributes:
        empirical: Ĵ_s(f), known up to rounding.
        population: J_s(f) by Hoeffding, for an f chosen without looking at these points.
        n: number of losses.
        effective_n: 1/Σ w², n for equal weights.
    """

    empirical: Term
    population: Term
    n: int
    effective_n: float


def empirical_risk(
    losses: ArrayLike,
    weights: "ArrayLike | None" = None,
    *,
    largest_loss: Real = 1.0,
    delta: Real = 0.05,
) -> EmpiricalRisk:
    """Eq. (12): Ĵ_s(f) = Σ_p w_p ℓ_p, with Hoeffding's interval for J_s(f).

    |J_s − Ĵ_s| ≤ B √(½ log(2/δ) Σ w_p²) with probability 1 − δ for independent points and a loss
    in [0, B]. The points must be new to f: for the points f was trained on the interval is void,
    and `risk_capacity` takes its place.

    Args:
        losses: (n,), ℓ_p at each point.
        weights: (n,), w_p ≥ 0 that sum to 1, such as ω_i/M_i; equal when left out.
        largest_loss: B, the largest loss there can be, not the largest one seen.
        delta: probability with which the interval may fail, in (0, 1).

    Raises:
        TypeError, ValueError: losses that are no numbers or outside [0, B]; weights that are
            negative or do not sum to 1; B not positive; δ outside (0, 1).
    """
    values, top = as_vector(losses, "losses"), positive(largest_loss, "largest_loss")
    risk = as_risk(delta)
    if (values < 0).any() or (values > top).any():
        p = int(((values < 0) | (values > top)).argmax())
        raise ValueError(
            f"loss {float(values[p])!r} of point {p} is outside [0, {top!r}]: Hoeffding needs a "
            "bounded loss; give largest_loss, the largest value that a loss can have at any point."
        )
    n = len(values)
    if weights is None:
        mean, squares = _mean(values, n, top), 1 / n
    else:
        w = float_weights(weights)
        if len(w) != n:
            raise ValueError(f"there are {len(w)} weights for {n} losses: give one per loss.")
        w = w / math.fsum(w)
        mean, squares = _mean(w * values, 1, top), math.fsum(w * w)
    # All terms are positive, so that the few roundings are relative ones.
    slack = mean * 2.0**-49
    radius = top * math.sqrt((math.log(2) - math.log(risk)) / 2 * squares) * (1 + 2.0**-49)
    known = Term("empirical risk", mean - slack, min(mean + slack, top), f"mean of {n} losses")
    population = Term(
        "risk",
        max(math.nextafter(known.lower - radius, -math.inf), 0.0),
        min(math.nextafter(mean + slack + radius, math.inf), top),
        f"Hoeffding, {n} losses in [0, {top:g}], confidence {1 - risk:g}",
        delta=risk,
    )
    return EmpiricalRisk(known, population, n, 1 / squares)


def _mean(terms: Float[np.ndarray, " n"], count: int, top: float) -> float:
    """Their sum over a count, at most `top`; the sum itself may leave float64."""
    shift = 64 if terms.max() > 2.0**900 else 0  # what small terms lose to it, the sum never had
    mean = math.fsum(np.ldexp(terms, -shift)) / count
    return math.ldexp(min(mean, math.ldexp(top, -shift)), shift)
