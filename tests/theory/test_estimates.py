"""Held-out decisions: intervals against exact sums over all outcomes, p-values against SciPy."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from theory import Estimate, clopper_pearson, held_out_divergence

DELTA = 0.1
POINTS = 9, 12  # few enough to sum over all outcomes, unequal


def decisions(k, n):
    return np.arange(n) < k


def table(points=POINTS, **options):
    """The estimate for every possible outcome (k_a, k_b)."""
    options.setdefault("delta", DELTA)
    return {
        (i, j): held_out_divergence(decisions(i, points[0]), decisions(j, points[1]), **options)
        for i, j in product(range(points[0] + 1), range(points[1] + 1))
    }


OUTCOMES = table()


def probability(event, p, points=POINTS):
    """Exact probability of an event under independent binomials."""
    laws = [stats.binom.pmf(np.arange(n + 1), n, rate) for n, rate in zip(points, p, strict=True)]
    return math.fsum(laws[0][i] * laws[1][j] for (i, j), e in OUTCOMES.items() if event(e))


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 30), (7, 30), (30, 30), (499, 1000)])
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-9])
def test_clopper_pearson_is_scipys_exact_interval(k, n, delta):
    sides = {"two": "two-sided", "upper": "less", "lower": "greater"}
    for side, alternative in sides.items():
        peer = stats.binomtest(k, n, alternative=alternative).proportion_ci(1 - delta, "exact")
        # SciPy loses digits in 1 − (1 − δ), 1e-16/1e-9 of a quantile that moves with log δ.
        assert clopper_pearson(k, n, delta, side) == pytest.approx(tuple(peer), abs=1e-8)


@pytest.mark.parametrize("p", [0.0, 1e-3, 0.02, 0.31, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("side", ["two", "upper", "lower"])
def test_clopper_pearson_covers_every_p(p, side):
    n = 25
    weights = stats.binom.pmf(np.arange(n + 1), n, p)
    ends = [clopper_pearson(k, n, DELTA, side) for k in range(n + 1)]
    covered = math.fsum(w for w, (low, high) in zip(weights, ends, strict=True) if low <= p <= high)
    assert covered >= 1 - DELTA - 1e-12  # rounding of the sum


def test_clopper_pearson_is_no_wider_than_it_must_be():
    # At a p just beyond an end the one-sided interval fails with probability δ, not less.
    low, _ = clopper_pearson(7, 25, DELTA, "lower")
    assert stats.binom.sf(6, 25, low) == pytest.approx(DELTA, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3, 2, 0.1), ValueError, "3 successes in 2 trials"),
        ((-1, 2, 0.1), ValueError, "successes must be at least 0"),
        ((0, 0, 0.1), ValueError, "n must be at least 1"),
        ((1.0, 2, 0.1), TypeError, "successes must be an integer"),
        ((3, 10**30), ValueError, "n has 31 digits: at most 1e"),
        ((1, 2, 1.0), ValueError, "delta is a probability"),
        ((1, 2, np.nan), ValueError, "delta must be positive"),
        ((1, 2, 0.1, "both"), ValueError, "side must be one of two, upper, lower"),
        ((1, 2, 0.1, None), ValueError, "side must be one of"),
    ],
)
def test_clopper_pearson_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        clopper_pearson(*arguments)


def test_the_value_is_twice_one_minus_twice_the_balanced_error():
    for (i, j), found in OUTCOMES.items():
        balanced = 0.5 * ((POINTS[0] - i) / POINTS[0] + j / POINTS[1])
        assert found.value == pytest.approx(2 * (1 - 2 * balanced), abs=1e-15)
        low, high = found.interval
        assert -2 <= low <= found.value <= high <= 2
        # One-sided at δ is tighter than the end of the two-sided interval at δ.
        assert max(low, 0) <= found.lower <= max(found.value, 0)
        assert found.upper is None and found.bounds == "lower" and found.n == POINTS
    assert min(e.value for e in OUTCOMES.values()) == -2


def test_the_ends_are_those_of_each_rate_at_half_of_delta():
    for (i, j), found in OUTCOMES.items():
        two = [clopper_pearson(k, n, DELTA / 2) for k, n in zip((i, j), POINTS, strict=True)]
        wanted = 2 * (two[0][0] - two[1][1]), 2 * (two[0][1] - two[1][0])
        assert found.interval == pytest.approx(wanted, abs=1e-14)
        low = clopper_pearson(i, POINTS[0], DELTA / 2, "lower")[0]
        high = clopper_pearson(j, POINTS[1], DELTA / 2, "upper")[1]
        assert found.lower == pytest.approx(max(0, 2 * (low - high)), abs=1e-14)


RATES = [0.0, 0.05, 0.3, 0.5, 0.77, 1.0]


@pytest.mark.parametrize("p", list(product(RATES, RATES)))
def test_the_interval_and_the_lower_bound_hold_for_all_rates(p):
    d = 2 * (p[0] - p[1])
    slack = 1e-12  # rounding: of the ends at rates 0 and 1, of the sums
    inside = probability(lambda e: e.interval[0] - slack <= d <= e.interval[1] + slack, p)
    assert inside >= 1 - DELTA - slack
    # d_H ≥ |d(h)|, and equal to it in the worst case.
    assert probability(lambda e: e.lower <= abs(d) + slack, p) >= 1 - DELTA - slack


@pytest.mark.parametrize("rate", RATES)
def test_the_p_value_is_at_most_a_with_probability_at_most_a(rate):
    for level in (0.01, 0.05, 0.1, 0.3, 0.5, 1.0):
        assert probability(lambda e, a=level: e.p_value <= a + 1e-12, (rate, rate)) <= level + 1e-12


def test_the_p_value_is_fishers_one_sided_exact_test():
    for (i, j), found in OUTCOMES.items():
        counts = [[i, POINTS[0] - i], [j, POINTS[1] - j]]
        peer = stats.fisher_exact(counts, alternative="greater").pvalue
        assert found.p_value == pytest.approx(peer, rel=1e-9)


def test_a_p_value_far_in_the_tail_keeps_its_digits():
    found = held_out_divergence([True] * 40, [False] * 40)
    assert found.p_value == pytest.approx(1 / math.comb(80, 40), rel=1e-9)


# --- the record


def test_an_estimate_reads_as_one_line():
    found = held_out_divergence(decisions(80, 100), decisions(20, 50), delta=0.05)
    assert str(found) == (
        f"d(h) = 0.800, 95 % interval [{found.interval[0]:.3f}, {found.interval[1]:.3f}]; "
        f"d_H ≥ {found.lower:.3f}; p = {found.p_value:.2g} (100 + 50 held-out points)"
    )


def test_an_estimate_becomes_a_term_without_an_upper_end():
    found = held_out_divergence(decisions(80, 100), decisions(20, 50), delta=0.05)
    term = found.term("divergence of client 3")
    assert (term.name, term.lower, term.upper) == ("divergence of client 3", found.lower, None)
    assert term.delta == 0.05 and "Clopper–Pearson" in term.origin and "d_H" in term.origin
    with pytest.raises(TypeError, match="name must be the text"):
        found.term(3)


def test_an_estimate_is_frozen():
    found = held_out_divergence([True, False], [True, False])
    assert isinstance(found, Estimate)
    with pytest.raises(AttributeError):
        found.value = 1.0


def test_decisions_may_be_lists_numbers_or_tensors():
    torch = pytest.importorskip("torch")
    a, b = [True, False, True], [False, False]
    wanted = held_out_divergence(a, b)
    assert wanted == held_out_divergence([1, 0, 1], np.zeros(2))
    assert wanted == held_out_divergence(torch.tensor(a), torch.tensor(b))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([0.3, 0.6], [0, 1]), {}, ValueError, "said_a must hold booleans"),
        (([0, 1], [0, 2]), {}, ValueError, "said_b must hold booleans"),
        (([0, 1], [1]), {}, ValueError, "said_b has one point"),
        (([], [1, 0]), {}, ValueError, "said_a is empty"),
        (([[1, 0]], [1, 0]), {}, ValueError, "said_a must have one dimension"),
        ((["yes", "no"], [1, 0]), {}, TypeError, "said_a must hold real numbers"),
        (([0, np.nan], [1, 0]), {}, ValueError, "said_a holds NaN"),
        (([0, 1], [1, 0]), {"delta": 0}, ValueError, "delta must be positive"),
        (([0, 1], [1, 0]), {"seed": -1}, ValueError, "seed must be at least 0"),
        (([0, 1], [1, 0]), {"groups_a": [1, 1]}, ValueError, "groups_b is missing"),
        (([0, 1], [1, 0]), {"groups_b": [1, 1]}, ValueError, "groups_a is missing"),
        (
            ([0, 1], [1, 0]),
            {"groups_a": [1, 1], "groups_b": [1, 2]},
            ValueError,
            "group 1 occurs in both domains",
        ),
        (
            ([0, 1], [1, 0]),
            {"groups_a": [1], "groups_b": [2, 2]},
            ValueError,
            "groups_a has 1 labels for 2 points",
        ),
        (
            ([0, 1], [1, 0]),
            {"groups_a": [1, None], "groups_b": [2, 2]},
            ValueError,
            "groups_a, label of point 1, is missing: name its group",
        ),
        (([0, 1], [1, 0]), {"groups_a": 3, "groups_b": [2, 2]}, TypeError, "must be a sequence"),
    ],
)
def test_bad_decisions_are_refused(arguments, options, error, message):
    with pytest.raises(error, match=message):
        held_out_divergence(*arguments, **options)


@pytest.mark.parametrize("groups", [None, 1, 2, "unlike"])
def test_a_p_value_is_never_zero(groups):
    n = 2000 if groups in (None, "unlike") else 60
    labels = {}
    if groups is not None:
        rows = np.arange(n)
        of = np.where(rows < n // 2, rows, n + rows // 2) if groups == "unlike" else rows // groups
        labels = {"groups_a": of, "groups_b": 10 * n + of}
    found = held_out_divergence(np.ones(n, bool), np.zeros(n, bool), **labels)
    assert 0 < found.p_value < 1e-3
    if n == 2000:  # 1/(4000 over 2000), and e^−t of more than 1000 groups
        assert found.p_value == 2.0**-1022
