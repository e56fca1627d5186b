"""Held-out decisions on dependent points: intervals and p-values of whole groups."""

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from theory import held_out_divergence
from theory._betting import difference_p_value
from theory._intervals import Rate

DELTA = 0.1


def decisions(k, n):
    return np.arange(n) < k


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


def test_the_p_value_of_groups_of_one_size_is_that_of_all_labellings():
    a, b = [[1, 1, 0], [1, 1, 1], [1, 0, 0], [1, 1, 1], [0, 1, 0]], [[0, 0, 1], [1, 1, 0], [0] * 3]
    means = [np.array([np.mean(g) for g in groups]) for groups in (a, b)]
    peer = stats.permutation_test(
        means,
        lambda x, y, axis: x.mean(axis) - y.mean(axis),
        alternative="greater",
        n_resamples=1e6,
    )
    assert grouped(a, b).p_value == pytest.approx(peer.pvalue, rel=1e-12)


def test_groups_of_several_sizes_are_not_relabelled():
    means = [np.array([np.mean(g) for g in groups]) for groups in (A, B)]
    assert grouped(A, B).p_value == difference_p_value(*means) < 1
    # One size in each domain, but not the same one.
    a, b = [[1, 1]] * 12, [[0, 0, 1]] * 12
    assert grouped(a, b).p_value == difference_p_value(np.ones(12), np.full(12, 1 / 3)) < 0.05
    assert grouped(a, b, seed=7).p_value == grouped(a, b).p_value


def test_the_lower_bound_says_of_which_laws_it_is():
    # Half of the points of either domain are said to be of A: in A those of the small groups.
    a, b = [[1] * 5] * 100 + [[0] * 500], [[1, 0] * 5] * 100
    found = grouped(a, b)
    assert np.concatenate(a).mean() == np.concatenate(b).mean() == 0.5 and found.lower > 0.5
    words = 'd_H of the laws "a group, then a point of it"'
    assert f"{words} ≥ {found.lower:.3f}" in str(found) and words in found.term().origin
    points = held_out_divergence(decisions(5, 9), decisions(3, 12))
    assert points.bounded == "d_H" and "group" not in str(points) + points.term().origin


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
