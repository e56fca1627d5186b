"""Eqs. (14), (15): mixtures of clients."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theory import (
    Term,
    counterexample_eq15,
    mixture_divergence,
    mixture_ideal_error,
    mixture_risk,
)

COUNTS = st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any)
MASSES = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any)
EVERY_SET = [[i for i in range(4) if code >> i & 1] for code in range(16)]


def shares(counts):
    return [Fraction(count, sum(counts)) for count in counts]


def divergence(p, q, sets):
    return 2 * max(abs(sum(p[i] for i in s) - sum(q[i] for i in s)) for s in sets)


@settings(deadline=None)
@given(COUNTS, st.tuples(MASSES, MASSES, MASSES), MASSES, st.sets(st.integers(0, 15), min_size=1))
def test_the_divergence_of_a_mixture_is_at_most_the_mixture(counts, clients, unseen, chosen):
    omega, laws, u = shares(counts), [shares(c) for c in clients], shares(unseen)
    sets = [EVERY_SET[i] for i in chosen]
    mixture = [sum(w * law[x] for w, law in zip(omega, laws, strict=True)) for x in range(4)]
    left = divergence(mixture, u, sets)
    single = [divergence(law, u, sets) for law in laws]
    assert left <= sum(w * d for w, d in zip(omega, single, strict=True))
    # The function's floats may round, never by enough to call it violated: one ulp of slack.
    ends = Term("mixture", max(0.0, float(left) - 1e-15), float(left), "exact")
    found = mixture_divergence([float(w) for w in omega], [float(d) for d in single], ends)
    assert found.inequality is not None and found.inequality.verdict != "violated"


def test_the_mixture_of_divergences_by_hand():
    found = mixture_divergence([0.25, 0.75], [0.4, 1.2], 0.9)
    assert found.term.lower == pytest.approx(1.0) == found.term.upper
    assert found.inequality.verdict == "certified" and found.inequality.source == "Eq. (14)"
    assert found.term.weights == (0.25, 0.75) and len(found.term.parts) == 2
    assert mixture_divergence([0.25, 0.75], [0.4, 1.2]).inequality is None
    assert mixture_divergence([0.25, 0.75], [0.4, 1.2], 1.1).inequality.verdict == "violated"


def test_divergences_known_from_below_decide_nothing():
    parts = [Term("d", 0.1, None, "held out"), 0.3]
    found = mixture_divergence([0.5, 0.5], parts, 0.9)
    assert found.term.upper is None and found.term.lower == pytest.approx(0.2)
    assert found.inequality.verdict == "consistent" and found.inequality.rhs.upper == 2.0
    # A client without weight need not be known.
    assert mixture_divergence([0.0, 1.0], parts).term.upper == 0.3


def test_the_weighted_mean_is_rounded_outwards():
    third = 1 / 3
    term = mixture_divergence([third] * 3, [0.1, 0.2, 0.3]).term
    exact = sum(map(Fraction, (0.1, 0.2, 0.3))) / 3
    assert Fraction(term.lower) <= exact <= Fraction(term.upper)
    assert term.upper - term.lower <= math.ulp(0.2)


def test_the_counterexample_to_the_printed_inequality():
    found = counterexample_eq15()
    assert (found.as_printed.lhs.lower, found.as_printed.lhs.upper) == (25.0, 25.0)
    assert (found.printed.lower, found.printed.upper) == (0.0, 0.0)
    assert found.as_printed.verdict == "violated"
    assert found.convex.lower == 50.0 and found.by_convexity.verdict == "certified"
    assert found.printed.caveat is not None and found.convex.caveat is None


@settings(deadline=None)
@given(
    COUNTS,
    st.lists(st.lists(st.integers(-9, 9), min_size=4, max_size=4), min_size=3, max_size=3),
    st.lists(st.integers(-9, 9), min_size=4, max_size=4),
    st.lists(MASSES, min_size=3, max_size=3),
    st.sampled_from([lambda r: r * r, abs, lambda r: max(r, 0) ** 3]),
)
def test_cross_risks_bound_the_risk_of_averaged_predictions(counts, models, y, masses, loss):
    omega, laws = shares(counts), [shares(m) for m in masses]

    def risk(law, f):
        return sum(p * loss(v - t) for p, v, t in zip(law, f, y, strict=True))

    averaged = [sum(w * f[x] for w, f in zip(omega, models, strict=True)) for x in range(4)]
    left = sum(w * risk(law, averaged) for w, law in zip(omega, laws, strict=True))
    cross = [[risk(law, f) for f in models] for law in laws]
    right = sum(v * w * cross[i][j] for i, v in enumerate(omega) for j, w in enumerate(omega))
    assert left <= right
    found = mixture_risk([float(w) for w in omega], np.array(cross, dtype=float), convex_loss=True)
    assert found.convex.lower == pytest.approx(float(right), rel=1e-12, abs=1e-12)
    home = sum(w * cross[i][i] for i, w in enumerate(omega))
    assert found.printed.lower == pytest.approx(float(home), rel=1e-12, abs=1e-12)
    if found.printed.caveat is None:  # proven: then it must hold, up to the rounding of floats
        assert float(left) <= found.printed.upper * (1 + 1e-12) + 1e-12


def test_conditions_of_jensen_are_arguments():
    cross = [[0.1, 0.2], [0.3, 0.4]]
    weights = [0.5, 0.5]
    both = mixture_risk(weights, cross, convex_loss=False, averages_predictions=False)
    assert "not convex and parameters" in both.convex.caveat
    assert mixture_risk(weights, cross, convex_loss=True).convex.caveat is None
    home = mixture_risk(weights, [0.1, 0.4], 0.3, convex_loss=True)
    assert home.convex is None and home.by_convexity is None
    assert home.printed.lower == pytest.approx(0.25) and home.as_printed.verdict == "violated"


def test_the_printed_side_stands_where_it_exceeds_the_one_of_convexity():
    alike = mixture_risk([0.5, 0.5], [[0.2, 0.2], [0.2, 0.2]], convex_loss=True)
    better_away = mixture_risk([0.5, 0.5], [[0.4, 0.1], [0.1, 0.4]], convex_loss=True)
    assert better_away.printed.caveat is None and alike.printed.lower == pytest.approx(0.2)
    assert mixture_risk([0.5, 0.5], [[0.4, 0.1], [0.1, 0.4]], convex_loss=False).printed.caveat


@settings(deadline=None)
@given(
    COUNTS,
    st.lists(st.lists(st.integers(0, 20), min_size=5, max_size=5), min_size=3, max_size=3),
    st.lists(st.integers(0, 20), min_size=5, max_size=5),
)
def test_the_mixture_of_ideal_errors_bounds_the_ideal_error_from_below(counts, risks, unseen):
    omega = shares(counts)
    scaled = [[Fraction(r, 20) for r in row] for row in risks]
    u = [Fraction(r, 20) for r in unseen]
    errors = [min(a + b for a, b in zip(row, u, strict=True)) for row in scaled]
    joint = [sum(w * row[f] for w, row in zip(omega, scaled, strict=True)) + u[f] for f in range(5)]
    assert min(joint) >= sum(w * e for w, e in zip(omega, errors, strict=True))
    weights, given_errors = [float(w) for w in omega], [float(e) for e in errors]
    term = mixture_ideal_error(weights, given_errors, common_hypothesis=False)
    assert term.upper is None and term.lower <= float(min(joint)) + 1e-12


def test_the_printed_inequality_of_ideal_errors_fails_without_a_common_hypothesis():
    # Two hypotheses, each ideal for one client and wrong for the other; J_u = 0 for both.
    term = mixture_ideal_error([0.5, 0.5], [0.0, 0.0], common_hypothesis=False)
    epsilon = min(0.5 * 0.0 + 0.5 * 1.0, 0.5 * 1.0 + 0.5 * 0.0)
    assert term.lower == 0.0 < epsilon == 0.5 and term.upper is None
    assert mixture_ideal_error([0.5, 0.5], [0.0, 0.0], common_hypothesis=True).upper == 0.0
    unknown = mixture_ideal_error([0.5, 0.5], [0.2, None], common_hypothesis=True)
    assert unknown.upper is None and unknown.lower == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 0.4], "sum to 0.9, not 1"),
        ([0.5, 0.50001], "not 1"),
        ([1.5, -0.5], "must not be negative"),
        ([[0.5, 0.5]], "one dimension"),
        ([], "empty"),
        ([math.nan, 1.0], "NaN"),
        ([1.0], "2 values of divergence for 1 weights"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        mixture_divergence(weights, [0.1, 0.2])


def test_float32_weights_are_accepted_and_normalised():
    weights = np.full(3, 1 / 3, dtype=np.float32)
    assert mixture_divergence(weights, [0.3] * 3).term.upper == 0.3


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mixture_risk([0.5, 0.5], [[1.0]], convex_loss=True), ValueError, "shape"),
        (lambda: mixture_risk([0.5, 0.5], [-1, 0], convex_loss=True), ValueError, "negative"),
        (lambda: mixture_risk([1.0], [1.0], -1.0, convex_loss=True), ValueError, "not negative"),
        (lambda: mixture_divergence([1.0], [2.5]), ValueError, "outside"),
        (lambda: mixture_divergence([1.0], 0.5), TypeError, "sequence of one divergence"),
        (lambda: mixture_ideal_error([1.0], [3.0], common_hypothesis=True), ValueError, "outside"),
        (
            lambda: mixture_risk([1.0], [1.0], Term("left", 0, None, ""), convex_loss=True),
            ValueError,
            "no upper end",
        ),
        (lambda: mixture_risk([1.0], [1e308], 1e308, convex_loss=True), None, ""),
    ],
)
def test_bad_mixtures_are_refused(call, error, message):
    if error is None:
        assert call().as_printed.verdict == "certified"
        return
    with pytest.raises(error, match=message):
        call()
