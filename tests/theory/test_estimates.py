"""Held-out decisions: intervals against exact sums over all outcomes, p-values against SciPy."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import optimize, special, stats

from theory import Estimate, clopper_pearson, held_out_divergence
from theory._intervals import Rate

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


def test_the_ends_of_groups_spend_no_more_and_no_less_than_delta():
    a, b = [[1, 1, 0, 1]] * 50 + [[1, 1]] * 10, [[0, 1, 0]] * 40
    found = grouped(a, b, delta=DELTA)
    budgets = [-math.log(DELTA / 4) / n for n in (60, 40)]
    means = [np.mean([0.75] * 5 + [1]), 1 / 3]

    def end(k, direction):
        def excess(q):
            kl = special.rel_entr(means[k], q) + special.rel_entr(1 - means[k], 1 - q)
            return kl - budgets[k]

        side = (means[k], 1 - 1e-15) if direction > 0 else (1e-15, means[k])
        return optimize.brentq(excess, *side, xtol=1e-15)

    wanted = 2 * (end(0, -1) - end(1, 1)), 2 * (end(0, 1) - end(1, -1))
    assert found.interval == pytest.approx(wanted, abs=1e-12)
    budgets = [-math.log(DELTA / 2) / n for n in (60, 40)]
    assert found.lower == pytest.approx(2 * (end(0, -1) - end(1, 1)), abs=1e-12) and found.lower > 0


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


# --- groups


def grouped(a, b, **options):
    """Decisions as a list of groups each, of A and of B."""
    said = [np.concatenate([np.array(group, bool) for group in groups]) for groups in (a, b)]
    labels = [
        np.repeat([f"{name}{i}" for i in range(len(groups))], [len(g) for g in groups])
        for name, groups in (("a", a), ("b", b))
    ]
    return held_out_divergence(*said, groups_a=labels[0], groups_b=labels[1], **options)


A = [[1, 1, 0], [1], [1, 0], [1, 1, 1, 1], [0, 1]]
B = [[0, 0], [1, 0, 0], [0], [1, 0]]


def test_each_group_counts_once():
    means = [[np.mean(g) for g in groups] for groups in (A, B)]
    found = grouped(A, B)
    assert found.value == pytest.approx(2 * (np.mean(means[0]) - np.mean(means[1])), abs=1e-15)
    assert found.n == (12, 8) and found.groups == (5, 4)
    assert "Chernoff–Hoeffding" in found.origin and "5 + 4 groups" in str(found)


def test_the_p_value_of_groups_is_that_of_all_labellings():
    means = [np.array([np.mean(g) for g in groups]) for groups in (A, B)]
    peer = stats.permutation_test(
        means,
        lambda x, y, axis: x.mean(axis) - y.mean(axis),
        alternative="greater",
        n_resamples=1e6,
    )
    assert grouped(A, B).p_value == pytest.approx(peer.pvalue, rel=1e-12)


def test_many_groups_are_relabelled_at_random_with_a_seed():
    rng = np.random.default_rng(1)
    a, b = ([rng.random(3) < rate for _ in range(30)] for rate in (0.55, 0.45))
    found = grouped(a, b)
    assert found == grouped(a, b) != grouped(a, b, seed=1)
    means = [np.mean(groups, axis=1) for groups in (a, b)]
    peer = stats.permutation_test(
        means,
        lambda x, y, axis: x.mean(axis) - y.mean(axis),
        alternative="greater",
        n_resamples=9999,
        rng=np.random.default_rng(2),
    )
    # Two Monte Carlo estimates: five standard errors of their difference.
    p = peer.pvalue
    assert abs(found.p_value - p) < 5 * math.sqrt(2 * p * (1 - p) / 9999)
    extreme = grouped([[1, 1]] * 30, [[0, 0]] * 30)
    assert extreme.p_value == 1e-4  # never 0: the seen labelling counts


@pytest.mark.parametrize("mean", [0.0, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("count", [2, 50])
def test_the_ends_solve_the_inequality_of_relative_entropy(mean, count):
    rate = Rate(mean, 0, 0, np.full(count, mean))
    budget = -math.log(DELTA) / count

    def excess(q):
        return special.rel_entr(mean, q) + special.rel_entr(1 - mean, 1 - q) - budget

    high = 1.0 if mean == 1 else optimize.brentq(excess, mean, 1 - 1e-16, xtol=1e-15)
    low = 0.0 if mean == 0 else optimize.brentq(excess, 1e-300, mean, xtol=1e-15)
    assert rate.at_most(DELTA) == pytest.approx(high, abs=1e-12)
    assert rate.at_least(DELTA) == pytest.approx(low, abs=1e-12)


def test_dependent_points_are_covered_with_groups_and_not_without():
    # All points of a patient are alike: the extreme case. Both domains have one law.
    rng, draws, wrong = np.random.default_rng(0), 400, {True: 0, False: 0}
    said = rng.random((draws, 2, 6)) < 0.5
    for a, b in said:
        each = np.repeat(a, 20), np.repeat(b, 20)
        for groups in wrong:
            labels = {"groups_a": np.arange(120) // 20, "groups_b": 6 + np.arange(120) // 20}
            low, high = held_out_divergence(
                *each, delta=DELTA, **(labels if groups else {})
            ).interval
            wrong[groups] += not low <= 0 <= high
    limit = stats.binom.isf(1e-4, draws, DELTA)
    assert wrong[True] <= limit < wrong[False]


def test_groups_of_one_point_are_independent_points():
    a, b = decisions(5, 9), decisions(3, 12)
    found = held_out_divergence(a, b, groups_a=range(9), groups_b=range(9, 21))
    assert found == held_out_divergence(a, b) and found.groups is None


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
            "groups_a, label of point 1, is missing",
        ),
        (([0, 1], [1, 0]), {"groups_a": 3, "groups_b": [2, 2]}, TypeError, "must be a sequence"),
    ],
)
def test_bad_decisions_are_refused(arguments, options, error, message):
    with pytest.raises(error, match=message):
        held_out_divergence(*arguments, **options)
