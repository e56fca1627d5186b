import numpy as np
import pytest

from theory.comparison import compare_smallest_eigenvalues
from theory.conditioning import best_factors, condition_number, quotient, step_sizes
from theory.gram import gram_matrix
from theory.inequality import Inequality
from theory.spectrum import Enclosure


def verdict(seed=0, n=12, d=6):
    x = np.random.default_rng(seed).standard_normal((n, d))
    client = np.arange(n) % 3
    for name in range(3):
        x[client == name] -= x[client == name].mean(axis=0)
    return x, client, compare_smallest_eigenvalues(x, client)


@pytest.mark.parametrize("seed", range(4))
def test_gains_are_those_of_numpy_s_eigenvalues(seed):
    x, client, found = verdict(seed)
    steps = step_sizes(found)
    kernel = gram_matrix(x)
    own = np.linalg.eigvalsh(kernel * (client[:, None] == client[None, :]))
    whole = np.linalg.eigvalsh(kernel)
    assert steps.largest.verdict == steps.condition.verdict == "certified"
    for value, wanted in (
        (steps.smallest_gain, own[0] / whole[0]),
        (steps.step_gain, whole[-1] / own[-1]),
        (steps.gain, own[0] / whole[0] * whole[-1] / own[-1]),
        (steps.condition.lhs, own[-1] / own[0]),
        (steps.condition.rhs, whole[-1] / whole[0]),
    ):
        assert value.midpoint == pytest.approx(wanted, rel=1e-9)
        assert value.width < 1e-9 * value.midpoint
        assert value.lower > 0


def test_a_singular_kernel_has_steps_but_no_condition_number():
    x = np.random.default_rng(0).standard_normal((6, 3))
    x[5] = 2 * x[0]
    found = step_sizes(compare_smallest_eigenvalues(x, [0, 0, 0, 1, 1, 1]))
    assert found.largest.verdict == "certified" and found.step_gain.lower > 1
    assert (found.condition, found.smallest_gain, found.gain) == (None, None, None)


def test_one_client_is_an_equality():
    x = np.random.default_rng(0).standard_normal((6, 4))
    found = compare_smallest_eigenvalues(x - x.mean(axis=0), ["a"] * 6)
    steps = step_sizes(found)
    assert found.one_client and not verdict()[2].one_client
    for inequality in (found.inequality, steps.largest, steps.condition):
        assert inequality.same and inequality.verdict == "certified"
        assert inequality.slack == inequality.slack_decades == 0.0


def test_one_number_in_two_places_is_a_bug():
    ends = Enclosure(2.0, 3.0, ""), Enclosure(0.0, 1.0, "")
    assert Inequality("λ ≤ λ", "", *ends, same=True).verdict == "violated"
    assert Inequality("λ ≤ λ", "", *ends[::-1], same=True).verdict == "certified"
    wide = Enclosure(0.0, 3.0, ""), Enclosure(1.0, 2.0, "")
    assert Inequality("λ ≤ μ", "", *wide).verdict == "consistent"
    assert Inequality("λ ≤ λ", "", *wide, same=True).verdict == "certified"


def test_the_best_factors_are_reached_by_gradient_descent():
    values = np.array([0.5, 1.0, 8.0])
    condition = condition_number(Enclosure(0.5, 0.5, ""), Enclosure(8.0, 8.0, ""))
    bound, linear = best_factors(condition)
    assert (
        condition.contains(16.0) and bound.contains(1 - 0.5 * 0.5 / 8) and linear.contains(15 / 17)
    )
    # No step of a fine grid does better than the optimal one, which does as well as that.
    grid = np.linspace(1e-3, 0.4, 4001)
    reached = np.abs(1 - grid[:, None] * values).max(axis=1)
    assert reached.min() >= linear.lower
    assert np.abs(1 - 2 / 8.5 * values).max() == pytest.approx(linear.midpoint, rel=1e-14)


def test_factors_of_an_enclosure_contain_those_of_both_ends():
    bound, linear = best_factors(Enclosure(1.0 - 1e-12, 4.0, ""))
    assert bound.contains(0.5) and bound.contains(0.875)
    assert linear.contains(0.0) and linear.contains(0.6) and linear.lower >= -1e-300


def test_quotients_are_rounded_outwards():
    found = quotient(Enclosure(1.0, 1.0, ""), Enclosure(3.0, 3.0, ""), "a third")
    from fractions import Fraction

    assert Fraction(found.lower) < Fraction(1, 3) < Fraction(found.upper)
    with pytest.raises(ValueError, match="positive numbers"):
        quotient(Enclosure(0.0, 1.0, ""), Enclosure(3.0, 3.0, ""), "nothing")
