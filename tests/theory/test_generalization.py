"""Theorem III.7, Corollaries III.8, III.9, Eqs. (12), (16), (18), (19): terms, sums and titles."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theory import (
    Bound,
    Enclosure,
    Term,
    capacity_order,
    corollary_iii8,
    corollary_iii9,
    divergence_capacity,
    empirical_risk,
    feature_laws,
    held_out_divergence,
    mixture_divergence,
    mixture_ideal_error,
    mixture_risk,
    risk_capacity,
    theorem_iii7,
    unseen_clients_bound,
)

SAMPLING = {"vc_dimension": 3, "n": 10**6, "delta": 0.05}
HALF = [0.5, 0.5]
ROUNDING = 1e-12  # relative; the intervals are 2^-48 wide or narrower


def middle(term):
    return (term.lower + term.upper) / 2


# Eq. (12)


def test_the_empirical_risk_by_hand():
    risk = empirical_risk([0.0, 1.0, 0.5, 0.5], delta=0.05)
    assert risk.empirical.lower <= 0.5 <= risk.empirical.upper
    assert middle(risk.empirical) == pytest.approx(0.5, rel=ROUNDING)
    # √(log 40 / 8) = 0.679: the interval is all of [0, 1].
    assert (risk.population.lower, risk.population.upper) == (0.0, 1.0)
    many = empirical_risk(np.full(1000, 0.5), delta=0.05)
    radius = math.sqrt(math.log(40) / 2000)
    assert many.population.upper == pytest.approx(0.5 + radius, rel=ROUNDING)
    assert many.population.lower == pytest.approx(0.5 - radius, rel=ROUNDING)
    assert (many.n, many.effective_n, many.population.delta) == (1000, 1000, 0.05)


def test_weights_of_losses_count_as_fewer_losses():
    losses = [0.0, 1.0]
    weighted = empirical_risk(losses, [0.25, 0.75])
    assert middle(weighted.empirical) == pytest.approx(0.75, rel=ROUNDING)
    assert weighted.effective_n == pytest.approx(1 / (1 / 16 + 9 / 16), rel=ROUNDING)
    equal = empirical_risk(losses, HALF)
    assert middle(equal.empirical) == pytest.approx(middle(empirical_risk(losses).empirical))
    assert equal.effective_n == pytest.approx(2.0)


def test_weights_of_float32_are_normalised():
    weights = np.full(3, 1 / 3, dtype=np.float32)  # their sum is 1 + 3e-8
    ends = empirical_risk([0.3] * 3, weights).empirical
    assert ends.lower <= 0.3 <= ends.upper and ends.upper - ends.lower < 1e-14


def test_hoeffding_covers_at_its_rate():
    rng = np.random.default_rng(0)
    draws = rng.random((2000, 40)) < 0.3
    missed = 0
    for losses in draws:
        ends = empirical_risk(losses, delta=0.2).population
        missed += not ends.lower <= 0.3 <= ends.upper
    # At most 400 are promised; the radius is 2.34 standard deviations here, so about 40 come.
    assert 0 < missed < 400


def test_a_larger_loss_needs_its_range():
    with pytest.raises(
        ValueError, match=r"loss 25.0 of point 1 is outside \[0, 1.0\].*largest_loss"
    ):
        empirical_risk([0.0, 25.0])
    wide = empirical_risk([0.0, 25.0], largest_loss=100.0)
    assert wide.population.upper == 100.0 and middle(wide.empirical) == pytest.approx(12.5)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([],), {}, "losses is empty"),
        (([-0.1],), {}, "outside"),
        (([0.5], [0.9]), {}, "sum to 0.9, not 1"),
        (([0.5, 0.5], [1.5, -0.5]), {}, "must not be negative"),
        (([0.5, 0.5], [1.0]), {}, "1 weights for 2 losses"),
        (([0.5],), {"delta": 1.0}, "delta is a probability"),
        (([0.5],), {"largest_loss": 0.0}, "largest_loss must be positive"),
        (([math.nan],), {}, "NaN"),
    ],
)
def test_bad_losses_are_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        empirical_risk(*arguments, **options)


# Capacities


@pytest.mark.parametrize(
    ("d", "n", "expected"), [(51, 1000, 3.53), (51, 10**4, 1.27), (785, 10**4, 4.99)]
)
def test_the_capacity_of_ben_david_by_hand(d, n, expected):
    assert middle(divergence_capacity(d, n, 0.05)) == pytest.approx(expected, abs=0.005)


def test_capacities_by_the_formulas():
    d, n, delta = 7, 500, 0.1
    first = 4 * math.sqrt((2 * d * math.log(2 * n) + math.log(2 / delta)) / n)
    second = math.sqrt(4 / n * (d * math.log(2 * math.e * n / d) + math.log(4 / delta)))
    assert middle(divergence_capacity(d, n, delta)) == pytest.approx(first, rel=ROUNDING)
    assert middle(risk_capacity(d, n, delta)) == pytest.approx(second, rel=ROUNDING)


@pytest.mark.parametrize("capacity", [divergence_capacity, risk_capacity])
def test_capacities_fall_with_n_and_delta_and_grow_with_the_dimension(capacity):
    by_n = [capacity(5, n, 0.05).upper for n in (2, 3, 5, 10, 100, 10**4, 10**9)]
    by_delta = [capacity(5, 1000, delta).upper for delta in (1e-9, 1e-3, 0.05, 0.5, 0.99)]
    by_dimension = [capacity(d, 1000, 0.05).lower for d in (1, 2, 10, 100, 1000, 1999)]
    assert by_n == sorted(by_n, reverse=True) and len(set(by_n)) == len(by_n)
    assert by_delta == sorted(by_delta, reverse=True) and len(set(by_delta)) == len(by_delta)
    assert by_dimension == sorted(by_dimension) and len(set(by_dimension)) >= 5  # Π ≤ 2^(2n)


@pytest.mark.parametrize("d", [1, 2, 3, 10, 60])
@pytest.mark.parametrize("delta", [1e-6, 0.05, 0.9])
def test_the_printed_capacity_covers_the_derivation_from_the_growth_function(d, delta):
    for n in (1, 2, 3, 7, 30, 300, 3000):
        growth = 2 * math.log(sum(math.comb(2 * n, i) for i in range(d + 1)))
        derived = 2 / n + 2 * math.sqrt((growth + math.log(8 / delta)) / n)
        printed = divergence_capacity(d, n, delta).lower
        assert derived <= printed or printed >= 1  # half a divergence is at most 1
        single = 1 / n + math.sqrt((growth / 2 + math.log(4 / delta)) / n)
        assert single <= risk_capacity(d, n, delta).upper


def test_the_order_hides_more_than_a_factor_of_four():
    for d, n, delta in [(1, 10, 0.05), (51, 10**4, 0.05), (785, 10**6, 1e-9), (1, 2, 1e-300)]:
        order = capacity_order(d, n, delta)
        assert divergence_capacity(d, n, delta).lower > 4 * order
    assert capacity_order(2, 20, 0.5) == pytest.approx(
        math.sqrt((2 * math.log(10) + math.log(2)) / 20)
    )
    with pytest.raises(ValueError, match="meant for n > d"):
        capacity_order(20, 20, 0.05)


# Theorem III.7


def test_the_theorem_by_hand():
    bound = theorem_iii7(0.1, 0.4, 0.05, vc_dimension=1, n=10**6, delta=0.1)
    names = ["empirical risk", "half the divergence", "ideal joint error"]
    assert [term.name for term in bound.terms[:3]] == names
    assert [term.lower for term in bound.terms[:3]] == [0.1, 0.2, 0.05]
    first = 4 * math.sqrt((2 * math.log(2e6) + math.log(40)) / 1e6)
    second = 2 * math.sqrt((math.log(2e6) + 1 + math.log(80)) / 1e6)
    assert bound.total.upper == pytest.approx(0.35 + first + second, rel=ROUNDING)
    assert bound.total.lower <= bound.total.upper
    assert (bound.kind, bound.vacuous, bound.delta) == ("bound", False, 0.1)
    assert bound.title == "Theorem III.7, Eq. (13): bound" and bound.reasons == ()
    assert bound.term("ideal joint error").upper == 0.05


def test_an_unknown_ideal_error_makes_a_diagnostic_that_bounds_the_sum_from_below():
    known = theorem_iii7(0.1, 0.4, 0.3, **SAMPLING)
    unknown = theorem_iii7(0.1, 0.4, None, **SAMPLING)
    assert unknown.kind == "diagnostic, not a bound" and unknown.total.upper is None
    assert unknown.total.lower <= known.total.lower
    assert unknown.total.origin == "lower bound of the sum of the terms"
    assert unknown.vacuous is None
    assert "labels of the unseen client" in unknown.reasons[0]
    few = theorem_iii7(0.1, 0.4, None, vc_dimension=50, n=100, delta=0.05)
    assert few.vacuous is True  # the known terms alone exceed 1
    barely = theorem_iii7(0.9, 0.4, None, **SAMPLING)
    assert 1 < barely.total.lower < 1.2 and barely.vacuous is True


def test_a_divergence_known_from_below_makes_a_diagnostic():
    lower = Term("divergence", 0.4, None, "held-out classifier", delta=0.01)
    bound = theorem_iii7(0.1, lower, 0.05, **SAMPLING)
    assert bound.kind == "diagnostic, not a bound"
    assert bound.reasons == (
        "half the divergence: only a lower bound is known (held-out classifier)",
    )
    assert bound.delta == pytest.approx(0.06)
    trivial = theorem_iii7(0.1, Term("divergence", 0.4, 2.0, "at most 2"), 0.05, **SAMPLING)
    assert trivial.kind == "bound" and trivial.vacuous is True


def test_quantities_come_in_any_form_with_two_ends():
    estimate = SimpleNamespace(lower=-0.03, upper=0.4)
    bound = theorem_iii7(Enclosure(0.1, 0.2, "m"), estimate, Enclosure(0.0, 2.5, "m"), **SAMPLING)
    first, second, third = bound.terms[:3]
    assert (first.lower, first.upper, first.origin) == (0.1, 0.2, "m")
    assert (second.lower, second.upper) == (0.0, 0.2)  # no divergence is negative
    assert third.upper == 2.0  # nor is a sum of two risks above 2
    assert theorem_iii7(empirical_risk([0.5]), 0.0, 0.0, **SAMPLING).terms[
        0
    ].upper == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("arguments", "changes", "error", "message"),
    [
        ((1.2, 0, 0), {}, ValueError, r"empirical risk = 1.2 is outside \[0, 1\]: divide the loss"),
        ((0, 2.1, 0), {}, ValueError, r"divergence = 2.1 is outside \[0, 2\]"),
        ((0, -0.1, 0), {}, ValueError, "pass what it shows of it, such as Term"),
        ((0, 0, math.nan), {}, ValueError, "outside"),
        (("a", 0, 0), {}, TypeError, "one real number"),
        ((0, None, 0), {}, TypeError, "one real number"),
        ((Enclosure(1.5, 2, ""), 0, 0), {}, ValueError, r"in \[1.5, 2.0\] is outside"),
        ((0, Term("x", 2.5, None, ""), 0), {}, ValueError, r"in \[2.5, unknown\]"),
        ((0, 0, 0), {"vc_dimension": 0}, ValueError, "vc_dimension must be at least 1"),
        ((0, 0, 0), {"n": 0}, ValueError, "n must be at least 1"),
        ((0, 0, 0), {"n": 1.5}, TypeError, "n must be an integer"),
        ((0, 0, 0), {"delta": 0.0}, ValueError, "delta must be positive"),
    ],
)
def test_bad_quantities_are_refused(arguments, changes, error, message):
    with pytest.raises(error, match=message):
        theorem_iii7(*arguments, **{**SAMPLING, **changes})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.5, 0.4, "o"), "empty"),
        ((math.inf, None, "o"), "upper=None"),
        ((0.0, math.inf, "o"), "upper=None"),
        ((0.0, 1.0, "o", None, 1.5), "probability"),
    ],
)
def test_impossible_terms_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Term("t", *arguments)


@settings(deadline=None)
@given(
    source=st.lists(st.integers(0, 9), min_size=6, max_size=6).filter(any),
    unseen=st.lists(st.integers(0, 9), min_size=6, max_size=6).filter(any),
    labels=st.tuples(st.integers(0, 63), st.integers(0, 63)),
)
def test_the_inequality_behind_the_theorem_holds_exactly(source, unseen, labels):
    """J_u(h) ≤ J_s(h) + ½d_HΔH + ε on six points, for all 14 half-lines and their complements."""
    p, q = ([Fraction(v, sum(w)) for v in w] for w in (source, unseen))
    below = [[i < t for i in range(6)] for t in range(7)]
    hypotheses = below + [[not v for v in h] for h in below]
    truth = [[bool(code >> i & 1) for i in range(6)] for code in labels]

    def risk(mass, h, other):
        return sum(m for m, a, b in zip(mass, h, other, strict=True) if a != b)

    d = 2 * max(abs(risk(p, h, g) - risk(q, h, g)) for h in hypotheses for g in hypotheses)
    ideal = min(risk(p, h, truth[0]) + risk(q, h, truth[1]) for h in hypotheses)
    for h in hypotheses:
        left = risk(q, h, truth[1])
        assert left <= risk(p, h, truth[0]) + Fraction(d, 2) + ideal
        bound = theorem_iii7(float(risk(p, h, truth[0])), float(d), float(ideal), **SAMPLING)
        assert left <= bound.total.upper


# Corollaries III.8, III.9


def test_the_corollary_as_printed_is_a_diagnostic_and_with_convexity_a_bound():
    mixed = mixture_risk(HALF, [[0.1, 0.3], [0.5, 0.1]], convex_loss=True)
    divergence = mixture_divergence(HALF, [0.2, 0.4])
    ideal = mixture_ideal_error(HALF, [0.0, 0.1], common_hypothesis=True)
    printed = corollary_iii8(mixed.printed, divergence, ideal, **SAMPLING)
    assert printed.kind == "diagnostic, not a bound" and "home" in printed.reasons[0]
    assert [t.lower for t in printed.terms[:3]] == pytest.approx([0.1, 0.15, 0.05])
    assert [part.lower for part in printed.term("half the divergence").parts] == [0.1, 0.2]
    convex = corollary_iii8(mixed.convex, divergence, ideal, **SAMPLING)
    assert convex.kind == "bound" and convex.terms[0].lower == pytest.approx(0.25)
    assert convex.title == "Corollary III.8, Eq. (16): bound"
    unshared = mixture_ideal_error(HALF, [0.0, 0.1], common_hypothesis=False)
    assert corollary_iii8(mixed.convex, divergence, unshared, **SAMPLING).total.upper is None
    with pytest.raises(TypeError, match=r"risk.printed .* or risk.convex"):
        corollary_iii8(mixed, divergence, ideal, **SAMPLING)
    with pytest.raises(ValueError, match="different weights"):
        corollary_iii8(mixed.convex, mixture_divergence([0.4, 0.6], [0, 1]), ideal, **SAMPLING)


def test_the_corollary_without_divergence_asks_for_one_law():
    met = corollary_iii9(0.1, 0.05, **SAMPLING, common_law=True)
    assert met.kind == "bound" and met.term("half the divergence").upper == 0
    expected = 0.15 + risk_capacity(3, 10**6, 0.05).upper
    assert met.total.upper == pytest.approx(expected, rel=ROUNDING)
    names = [t.name for t in theorem_iii7(0.1, 0, 0, **SAMPLING).terms]
    assert [t.name for t in met.terms] == names  # so that (16) and (18) stack side by side
    for missing in (False, None):
        other = corollary_iii9(0.1, 0.05, **SAMPLING, common_law=missing)
        assert other.title == "Corollary III.9, Eq. (18): diagnostic, not a bound"
        assert "is not shown" in other.reasons[0] and other.total.upper is None
    with pytest.raises(TypeError, match="feature_laws"):
        corollary_iii9(0.1, 0.05, **SAMPLING, common_law="yes")


def test_the_evidence_of_feature_laws_decides():
    covariances = np.array([np.diag([1.0, 4.0]), np.diag([4.0, 1.0])])
    directions = [[1.0, 1.0], [1.0, -1.0]]
    per_unit = feature_laws(directions, covariances)
    whitened = feature_laws(directions, covariances, "whitened")
    first = corollary_iii9(0.1, 0.05, **SAMPLING, common_law=per_unit)
    second = corollary_iii9(0.1, 0.05, **SAMPLING, common_law=whitened)
    assert first.kind != "bound" and "keeps correlations" in first.reasons[0]
    assert second.kind == "bound"


def test_under_one_law_and_labeling_the_printed_risk_is_legitimate_at_each_clients_price():
    def bound(**conditions):
        mixed = mixture_risk(HALF, [0.1, 0.3], **conditions)
        return corollary_iii9(mixed, 0.0, **SAMPLING, common_law=True)

    good = bound(convex_loss=True, common_labels=True)
    assert good.kind == "bound" and good.terms[0].lower == pytest.approx(0.2)
    assert good.terms[-1].upper == risk_capacity(3, 10**6, 0.025).upper
    assert "one q_t" in bound(convex_loss=True).reasons[0]
    assert "not convex" in bound(convex_loss=False, common_labels=True).reasons[0]
    mixed = mixture_risk(HALF, [0.1, 0.3], convex_loss=True, common_labels=True)
    without = corollary_iii9(mixed, 0.0, **SAMPLING, common_law=None)
    assert without.kind != "bound" and len(without.reasons) == 2


# Eq. (19)


def test_unseen_clients_are_averaged_term_by_term_and_failures_add_up():
    options = {"vc_dimension": 3, "n": 10**6, "delta": 0.025}
    bounds = [theorem_iii7(0.1, d, e, **options) for d, e in [(0.2, 0.0), (0.6, 0.1)]]
    mean = unseen_clients_bound(bounds)
    assert [t.lower for t in mean.terms[:3]] == pytest.approx([0.1, 0.2, 0.05])
    assert mean.delta == 0.05 and mean.kind == "bound"
    totals = [bound.total.upper for bound in bounds]
    assert mean.total.upper == pytest.approx(sum(totals) / 2, rel=ROUNDING)
    assert "mean of 2 × Theorem III.7" in mean.title
    assert unseen_clients_bound(bounds[:1]).total.upper == pytest.approx(totals[0], rel=ROUNDING)
    bounds.append(theorem_iii7(0.1, 0.2, None, **options))
    assert unseen_clients_bound(bounds).kind == "diagnostic, not a bound"


def test_bounds_that_cannot_be_averaged_are_refused():
    one = theorem_iii7(0, 0, 0, vc_dimension=1, n=10, delta=0.5)
    other = corollary_iii9(0, 0, vc_dimension=1, n=10, delta=0.1, common_law=True)
    with pytest.raises(ValueError, match="delta / number of unseen clients"):
        unseen_clients_bound([one, one])
    with pytest.raises(ValueError, match="of one statement"):
        unseen_clients_bound([other, one])
    with pytest.raises(ValueError, match="no bound to average"):
        unseen_clients_bound([])
    with pytest.raises(ValueError, match="no term is called"):
        one.term("x")


def test_a_sum_that_holds_with_probability_zero_is_no_bound():
    sure = Bound("s", (Term("t", 0.0, 0.5, "o"),), 1.0)
    assert sure.kind != "bound" and "promises nothing" in sure.reasons[0]
    assert sure.total.upper == 0.5


def test_an_estimate_brings_its_own_risk_of_failing():
    said = np.arange(100) % 10 > 0
    found = held_out_divergence(said, ~said, delta=0.01)
    bound = theorem_iii7(0.1, found, 0.0, vc_dimension=2, n=1000, delta=0.04)
    assert bound.term("half the divergence").delta == 0.01
    assert bound.delta == pytest.approx(0.05)
