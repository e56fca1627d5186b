"""Spearman's rank correlation against scipy's, and its interval by simulated coverage."""

import math

import numpy as np
import pytest
from scipy import stats

from figures.statistics import rank_correlation


@pytest.mark.parametrize("n", [5, 12, 40])
@pytest.mark.parametrize("tied", [False, True])
def test_the_value_is_scipys_also_with_ties(n, tied):
    generator = np.random.default_rng(n)
    x = generator.normal(size=n)
    y = 0.5 * x + generator.normal(size=n)
    if tied:
        x, y = np.round(x), np.round(y)
    theirs = stats.spearmanr(x, y).statistic
    assert rank_correlation(x, y).value == pytest.approx(theirs, abs=1e-11)


def test_the_interval_by_hand():
    # ranks 1..6 against 2, 1, 4, 3, 6, 5: Σd² = 6, r = 1 − 36/210
    found = rank_correlation([1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 6, 5])
    r = 1 - 36 / 210
    half = 1.959964 * math.sqrt((1 + r * r / 2) / 3)
    assert found.value == pytest.approx(r, abs=1e-11)
    assert found.lower == pytest.approx(math.tanh(math.atanh(r) - half), abs=1e-6)
    assert found.upper == pytest.approx(math.tanh(math.atanh(r) + half), abs=1e-6)
    assert (found.n, found.groups) == (6, 6)
    assert found.method == "Bonett and Wright, 6 points"


@pytest.mark.parametrize("sign", [1, -1])
def test_full_agreement_has_an_interval_that_is_no_point(sign):
    found = rank_correlation(range_of(5), [sign * value for value in range_of(5)])
    ends = sorted([sign * found.lower, sign * found.upper])
    assert found.value == sign and ends[1] == 1.0
    # As if one pair of neighbours were swapped: r = 0.9.
    half = 1.959964 * math.sqrt((1 + 0.81 / 2) / 2)
    assert ends[0] == pytest.approx(math.tanh(math.atanh(0.9) - half), abs=1e-6)


def range_of(n):
    return [0.1 * k for k in range(n)]


def test_groups_count_instead_of_points():
    x, y = [1, 2, 3, 4, 5, 6, 7, 8], [1, 3, 2, 5, 4, 7, 8, 6]
    alone, grouped = rank_correlation(x, y), rank_correlation(x, y, list("aabbccdd"))
    assert alone.value == grouped.value and (grouped.n, grouped.groups) == (8, 4)
    assert grouped.upper - grouped.lower > alone.upper - alone.lower
    few = rank_correlation(x, y, list("aaabbbcc"))
    assert few.value == alone.value and few.lower is None and "below four" in few.method


@pytest.mark.parametrize(
    ("x", "y"),
    [([1.0], [2.0]), ([1, 1, 1, 1], [1, 2, 3, 4]), ([0.3, 0.1 + 0.2, 0.3, 0.3], [1, 2, 3, 4])],
)
def test_no_correlation_where_there_is_none(x, y):
    found = rank_correlation(x, y)
    assert (found.value, found.lower, found.upper) == (None, None, None)
    assert "no correlation" in found.method


@pytest.mark.parametrize(
    ("x", "y", "groups", "message"),
    [
        ([1, 2], [1, 2, 3], None, "one length"),
        ([1, 2], [1, 2], ["a"], "one length"),
        ([1, math.nan], [1, 2], None, "x\\[1\\] is nan"),
        ([], [], None, "non-empty"),
    ],
)
def test_bad_input_is_refused(x, y, groups, message):
    with pytest.raises(ValueError, match=message):
        rank_correlation(x, y, groups)


def coverage(truth, groups, within, shared, draws=600):
    """How often the interval holds Spearman's ρ of a normal pair whose groups share a part."""
    generator = np.random.default_rng([groups, within, round(10 * shared)])
    # Of a bivariate normal pair with correlation `truth`, within a group or between.
    rho = 6 / math.pi * math.asin(truth / 2)
    mix = np.linalg.cholesky([[1, truth], [truth, 1]])
    names = [k for k in range(groups) for _ in range(within)]
    hits = 0
    for _ in range(draws):
        common = np.repeat(generator.normal(size=(groups, 2)), within, axis=0)
        own = generator.normal(size=(groups * within, 2))
        pair = (math.sqrt(shared) * common + math.sqrt(1 - shared) * own) @ mix.T
        found = rank_correlation(pair[:, 0], pair[:, 1], names)
        hits += found.lower <= rho <= found.upper
    return hits / draws


@pytest.mark.parametrize("truth", [0.0, 0.7])
@pytest.mark.parametrize(("groups", "within"), [(20, 1), (4, 3), (10, 3)])
@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_the_interval_covers_at_its_rate_also_with_groups(truth, groups, within, shared):
    # Three binomial standard errors of 600 draws below 95 %; groups make it wide, never short.
    assert coverage(truth, groups, within, shared) > 0.95 - 3 * math.sqrt(0.95 * 0.05 / 600)


@pytest.mark.parametrize("truth", [0.0, 0.7])
def test_points_that_are_taken_for_independent_and_are_not_are_covered_too_rarely(truth):
    generator, hits = np.random.default_rng(5), 0
    rho, mix = 6 / math.pi * math.asin(truth / 2), np.linalg.cholesky([[1, truth], [truth, 1]])
    for _ in range(300):
        common = np.repeat(generator.normal(size=(5, 2)), 6, axis=0)
        pair = (common + 0.2 * generator.normal(size=(30, 2))) @ mix.T
        found = rank_correlation(pair[:, 0], pair[:, 1])
        hits += found.lower <= rho <= found.upper
    assert hits / 300 < 0.8
