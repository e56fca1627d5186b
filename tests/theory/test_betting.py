"""p-values of groups of unlike sizes: exact sums, simulations, a second route to each number."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import optimize, stats

from theory._betting import _STAKES, _log_capital, _tail, difference_p_value
from theory._relabelling import groups_p_value

LEVELS = (0.01, 0.05, 0.2, 0.5, 0.9)


@pytest.mark.parametrize(("count_a", "count_b"), [(1, 1), (2, 9), (9, 2), (12, 12)])
@pytest.mark.parametrize("rate", [0.02, 0.3, 0.5, 0.9])
def test_numbers_of_0_and_1_by_the_exact_law(count_a, count_b, rate):
    chance = dict.fromkeys(LEVELS, 0.0)
    laws = [stats.binom(n, rate).pmf(np.arange(n + 1)) for n in (count_a, count_b)]
    for i, j in product(range(count_a + 1), range(count_b + 1)):
        p = difference_p_value((np.arange(count_a) < i) * 1.0, (np.arange(count_b) < j) * 1.0)
        for level in LEVELS:
            chance[level] += laws[0][i] * laws[1][j] * (p <= level)
    assert all(c <= level for level, c in chance.items())


# Held-out groups and their size, of A and of B; points of one law, in groups of one law of rates.
SIZES = [(4, 1, 40, 20), (6, 2, 60, 20), (40, 20, 4, 1), (8, 3, 8, 3), (10, 1, 60, 10)]


def rejections(p_value, sizes, draws, spread=None, level=0.05):
    rng, (count_a, a, count_b, b) = np.random.default_rng(1), sizes
    wrong = 0
    for _ in range(draws):
        rates = [
            rng.beta(spread, spread, (n, 1)) if spread else np.full((n, 1), 0.5)
            for n in (count_a, count_b)
        ]
        means = [
            (rng.random((len(r), size)) < r).mean(1) for r, size in zip(rates, (a, b), strict=True)
        ]
        wrong += p_value(*means) <= level
    return wrong


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("spread", [None, 2.0])
def test_unlike_sizes_do_not_reject_one_law(sizes, spread):
    draws = 300
    for level in (0.05, 0.5):
        wrong = rejections(difference_p_value, sizes, draws, spread, level)
        assert wrong <= stats.binom.isf(1e-4, draws, level)


def test_relabelled_groups_of_unlike_sizes_would():
    draws = 100
    wrong = rejections(lambda a, b: groups_p_value(a, b, 0), SIZES[0], draws)
    assert wrong > 0.2 * draws > stats.binom.isf(1e-4, draws, 0.05)
    equal = rejections(lambda a, b: groups_p_value(a, b, 0), SIZES[3], draws)
    assert equal <= stats.binom.isf(1e-4, draws, 0.05)


def test_only_expectations_are_compared_and_only_on_average():
    # A: half of the numbers are 0, half 1; B: all near ½. Expectations agree on average.
    rng, small = np.random.default_rng(0), 0
    for _ in range(300):
        a = np.append(np.zeros(6), rng.random(6) < 0.99)
        small += difference_p_value(a, rng.uniform(0.49, 0.5, 30)) <= 0.5
    assert small <= stats.binom.isf(1e-4, 300, 0.5)


A = np.array([1.0, 0.8, 0.9, 0.5, 0.75])
B = np.array([0.0, 0.3, 0.2, 0.5])


def test_the_capital_is_the_least_over_all_means():
    def capital(mu):
        k = [
            np.mean([math.prod(1 - s + s * x / m for x in side) for s in _STAKES])
            for side, m in ((A, mu), (1 - B, 1 - mu))
        ]
        return k[0] * k[1]

    least = min(capital(mu) for mu in np.linspace(0.2, 0.9, 1401))
    assert math.exp(_log_capital(A, B)) == pytest.approx(least, rel=1e-4)  # the grid
    assert math.exp(_log_capital(A, B)) <= least * (1 + 1e-9)


def test_the_tail_is_that_of_a_gamma_variable_at_the_least_sum():
    def total(mu):
        return sum(
            len(x) * (m * math.log(m / mu) + (1 - m) * math.log((1 - m) / (1 - mu)))
            for x, m in ((A, A.mean()), (B, B.mean()))
        )

    t = optimize.minimize_scalar(total, bounds=(0.01, 0.99), method="bounded").fun
    assert _tail(A, B) == pytest.approx(stats.gamma(2).sf(t), rel=1e-9)


def test_the_p_value_is_one_sided_and_sees_differences():
    assert difference_p_value(B, A) == difference_p_value(A, A) == 1
    assert difference_p_value(np.repeat(0.7, 20), np.repeat(0.3, 25)) < 1e-3  # little variance
    assert difference_p_value(np.ones(20), np.zeros(25)) < 1e-6
    assert 0 <= difference_p_value(np.ones(3000), np.zeros(2000)) < 1e-300
