"""Theorem III.7, Corollaries III.8, III.9, Eqs. (12), (13), (16), (18), (19): bounds term by term.

Nothing is estimated here. Every function takes quantities with their intervals and returns named
terms and their sum; where a term is known only from below, or stands on a condition that is not
met, the sum is called "diagnostic, not a bound". Losses lie in [0, 1].
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from theory._enclosure import Enclosure
from theory._loose import Anything, Flag, Real, Whole
from theory.bounds import Bound, Term, as_term, weighted_mean
from theory.capacity import capacity_order, divergence_capacity, risk_capacity
from theory.hoeffding import EmpiricalRisk, empirical_risk
from theory.laws import FeatureLaws
from theory.mixtures import (
    MixtureDivergence,
    MixtureRisk,
    counterexample_eq15,
    mixture_divergence,
    mixture_ideal_error,
    mixture_risk,
    unknown,
)
from theory.rates import as_risk

__all__ = [
    "Bound",
    "EmpiricalRisk",
    "MixtureDivergence",
    "MixtureRisk",
    "Term",
    "capacity_order",
    "corollary_iii8",
    "corollary_iii9",
    "counterexample_eq15",
    "divergence_capacity",
    "empirical_risk",
    "mixture_divergence",
    "mixture_ideal_error",
    "mixture_risk",
    "risk_capacity",
    "theorem_iii7",
    "unseen_clients_bound",
]


def theorem_iii7(
    empirical_risk: "EmpiricalRisk | Term | Enclosure | Real",
    divergence: "Term | Enclosure | Real",
    ideal_error: "Term | Enclosure | Real | None",
    *,
    vc_dimension: Whole,
    n: Whole,
    delta: Real,
) -> Bound:
    """Theorem III.7, Eq. (13): J_u(f) ≤ Ĵ_s(f) + ½d̂_HΔH + ε + capacities, with probability 1 − δ.

    For the 0-1 loss and the ideal f^o, twice the triangle inequality gives
    J_u(f) ≤ J_u(f^o) + P_u(f ≠ f^o) ≤ J_u(f^o) + P_s(f ≠ f^o) + ½d_HΔH ≤ J_s(f) + ½d_HΔH + ε
    (Ben-David et al. 2010, Theorem 2). The paper's O(·) then stands for two explicit terms, each
    given half of δ: `divergence_capacity` for d̂ in place of d, and `risk_capacity` for Ĵ_s in
    place of J_s, uniform over H as f was trained on these points; `capacity_order` says more.

    A classifier on held-out data bounds d_HΔH from below only: then the divergence has no upper
    end and the sum is a diagnostic. Its upper end 2 is always true and makes a vacuous bound. If
    the exact d_HΔH is given, the sum stays a bound and its capacity of the divergence is spare.

    Args:
        empirical_risk: Ĵ_s(f) of a loss in [0, 1].
        divergence: d̂_HΔH(D̂^s, D̂^u) in [0, 2].
        ideal_error: ε in [0, 2]; None for unknown, which it is without target labels. The total
            is then a lower bound of the right side, and no bound of J_u.
        vc_dimension: d of H.
        n: points in each sample; of unequal ones the smaller number.
        delta: probability with which the bound may fail, in (0, 1).

    Raises:
        TypeError, ValueError: a quantity outside its range; d or n no positive integer; δ outside
            (0, 1).
    """
    terms = _measured(empirical_risk, divergence, ideal_error)
    risk = as_risk(delta, 2)
    capacities = (
        divergence_capacity(vc_dimension, n, risk / 2),
        risk_capacity(vc_dimension, n, risk / 2),
    )
    return _bound("Theorem III.7, Eq. (13)", (*terms, *capacities), risk)


def corollary_iii8(
    risk: "Term | Enclosure | Real",
    divergence: "MixtureDivergence | Term | Enclosure | Real",
    ideal_error: "Term | Enclosure | Real | None",
    *,
    vc_dimension: Whole,
    n: Whole,
    delta: Real,
) -> Bound:
    """Corollary III.8, Eq. (16): Eq. (13) with (14) and (15) put in for the terms of the mixture.

    d̂ of the mixture is at most Σ ω_i d̂_i on the very samples, so no further δ is spent. The other
    two steps have conditions: pass `mixture_risk(...).printed` for the corollary as printed, a
    diagnostic, or `.convex` for what a convex loss gives (read ℓ as |f − y| and H as
    `mixture_risk` says; d is then that of the sets {x : |f(x) − f'(x)| > t}, halved);
    `mixture_ideal_error(...)` for ε. A number in place of the risk is taken as Ĵ_s(f_u) itself.

    Arguments and errors as for `theorem_iii7`; n counts the points of all seen clients together,
    drawn from their mixture, or of the unseen one if these are fewer. ValueError also if the terms
    are means with different weights.
    """
    summed = divergence.term if isinstance(divergence, MixtureDivergence) else divergence
    _same_weights(risk, summed, ideal_error)
    found = theorem_iii7(risk, summed, ideal_error, vc_dimension=vc_dimension, n=n, delta=delta)
    return replace(found, source="Corollary III.8, Eq. (16)")


def corollary_iii9(
    risk: "MixtureRisk | EmpiricalRisk | Term | Enclosure | Real",
    ideal_error: "Term | Enclosure | Real | None",
    *,
    vc_dimension: Whole,
    n: Whole,
    delta: Real,
    common_law: "FeatureLaws | Flag | None",
) -> Bound:
    """Corollary III.9, Eq. (18): Eq. (16) without divergence, where all features have one law.

    If z has the law N for every seen client and the unseen one, d_HΔH(N, N) = 0. Nothing is
    estimated then, so that its capacity is 0 too and all of δ goes to the risk. This needs
    Gaussian clients, full whitening by the population's mean and covariance, of the unseen client
    too, and labels that are one q_t(z) for all: Eq. (17). Were q_t really the same, J_u(f) would
    equal J_s(f) and ε would be spare; it is kept for labels that differ. Per-unit BN does not
    give one law (`feature_laws`), nor do statistics estimated from a few points.

    Then Σ ω_i Ĵ_N(q_i), the printed right side of (15), is legitimate: with one law and one q_t
    J_N(Σ ω_i q_i) ≤ Σ ω_i J_N(q_i) is Jensen. Each q_i was trained on its own client, so that the
    capacity is that of one client's n points at δ/N.

    Args:
        risk: what `mixture_risk` returns, for Σ ω_i Ĵ_N(q_i); or Ĵ_s(f_u) on all points, as a
            number, a term or a right side of (15). Of a loss in [0, 1].
        ideal_error: Σ ω_i ε_i as for `theorem_iii7`; None for unknown.
        vc_dimension: d of the hypotheses q on features.
        n: points of the smallest seen client if `risk` comes from `mixture_risk`, else of all seen
            clients together.
        delta: probability with which the bound may fail, in (0, 1).
        common_law: `feature_laws(...)`, or True where it is known otherwise. False or None: the
            divergence is missing, and the sum a diagnostic.

    Raises:
        TypeError, ValueError: as `theorem_iii7`; common_law of another type.
    """
    met, why = _evidence(common_law)
    divergence = Term("divergence", 0.0, 0.0 if met else None, why)
    clients = len(risk.printed.parts) if isinstance(risk, MixtureRisk) else 1
    total = as_risk(delta, clients)
    if isinstance(risk, MixtureRisk):
        risk = replace(risk.printed, caveat=risk.under_one_law) if met else risk.printed
    _same_weights(risk, ideal_error)
    terms = _measured(risk, divergence, ideal_error)
    none = Term("capacity of the divergence", 0.0, 0.0, "no divergence is estimated")
    capacity = risk_capacity(vc_dimension, n, total / clients)
    return _bound("Corollary III.9, Eq. (18)", (*terms, none, capacity), total)


def unseen_clients_bound(bounds: Sequence[Bound] | Anything) -> Bound:
    """Eq. (19): J_U(f) = (1/N_u) Σ_j J_{u_j}(f), at most the mean of the unseen clients' bounds.

    The failures add up: for a total of δ compute each client's bound at δ/N_u. The mean is one
    reading, the paper may mean a sum, which is N_u times this.

    Args:
        bounds: one `Bound` per unseen client, all of the same statement.

    Raises:
        TypeError: something else than bounds.
        ValueError: no bound, different statements, or failures that add up to 1 or more.
    """
    if not isinstance(bounds, Iterable):
        raise TypeError(
            f"bounds must be a sequence of Bound objects, one per unseen client, not {bounds!r}."
        )
    given = list(bounds)
    if not given:
        raise ValueError("there is no bound to average: give one per unseen client.")
    for bound in given:
        if not isinstance(bound, Bound):
            raise TypeError(f"bounds must be Bound objects, not {type(bound).__name__}.")
    source, names = given[0].source, [term.name for term in given[0].terms]
    for bound in given[1:]:
        if bound.source != source or [term.name for term in bound.terms] != names:
            raise ValueError(
                f"{source} and {bound.source} cannot be averaged: give bounds of one statement."
            )
    delta = math.fsum(bound.delta for bound in given)
    if delta >= 1:
        raise ValueError(
            f"the failures of {len(given)} bounds add up to {delta:.3g}, which promises nothing: "
            "compute each at delta / number of unseen clients."
        )
    equal = [Fraction(1, len(given))] * len(given)
    columns = zip(*(bound.terms for bound in given), strict=True)
    terms = tuple(weighted_mean(n, equal, c) for n, c in zip(names, columns, strict=True))
    return Bound(f"Eq. (19), mean of {len(given)} × {source}", terms, delta)


def _measured(risk: object, divergence: object, ideal_error: object) -> tuple[Term, Term, Term]:
    if isinstance(risk, MixtureRisk):
        raise TypeError(
            "choose one right side of Eq. (15): risk.printed (a diagnostic) or risk.convex."
        )
    given = risk.empirical if isinstance(risk, EmpiricalRisk) else risk
    distance = as_term(divergence, "divergence", 2.0)
    name = "ideal joint error"
    return (
        as_term(given, "empirical risk", 1.0),
        distance.scaled(0.5, "half the divergence"),
        unknown(name) if ideal_error is None else as_term(ideal_error, name, 2.0),
    )


def _bound(source: str, terms: tuple[Term, ...], delta: float) -> Bound:
    return Bound(source, terms, math.fsum([delta, *(term.delta for term in terms)]))


def _evidence(common_law: object) -> tuple[bool, str]:
    if isinstance(common_law, FeatureLaws):
        if common_law.common:
            return True, f"zero: one law of all features ({common_law.reason})"
        return False, f"left out, though one law is not shown: {common_law.reason}"
    if common_law is not None and not isinstance(common_law, bool | np.bool_):
        raise TypeError(
            "common_law must be what feature_laws returns, True, False or None, not "
            f"{common_law!r}."
        )
    if common_law:
        return True, "zero: the caller vouches for one law of all features"
    return False, "left out, though one law of the features is not shown"


def _same_weights(*terms: object) -> None:
    found = [term.weights for term in terms if isinstance(term, Term) and term.weights]
    if any(weights != found[0] for weights in found):
        raise ValueError("the terms are means with different weights: use the same ω for each.")
