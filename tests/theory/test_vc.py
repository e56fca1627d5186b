"""VC bounds against formulas by hand, sign patterns counted on points, and brute shattering."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq, linprog

from theory.vc import Layer, half_space_vc_dimension, log2_growth, vc_dimension


@pytest.mark.parametrize(("m", "d"), [(1, 1), (3, 2), (16, 20), (64, 784)])
def test_two_layers_by_the_formula_on_paper(m, d):
    hidden, last = m * (d + 1), m + 1
    total = hidden + last

    def slack(n):
        first = 1 + hidden * math.log2(2 * math.e * n * m / hidden)
        second = 1 + total * math.log2(4 * math.e * n / total)
        return first + second - n

    root = brentq(slack, total, 1e9)  # both factors are Warren's there
    assert vc_dimension([(m, hidden), (1, last)]) == math.floor(root)


def test_two_layers_of_one_unit_by_hand():
    # 2^N ≤ 2(2eN/2)² · 2(4eN/4)⁴ = 4(eN)⁶: 44 ≤ 2 + 6 log₂(44e) = 43.4 fails, 43 ≤ 43.2 holds.
    assert vc_dimension([(1, 2), (1, 2)]) == 43
    assert 4 * (math.e * 43) ** 6 >= 2**43 and 4 * (math.e * 44) ** 6 < 2**44


def test_the_bound_is_the_last_number_that_passes():
    factors = [(5, 1, 20), (7, 2, 50), (1, 3, 56)]
    found = vc_dimension([(5, 20), (4, 30, 3), (1, 6)])
    assert found <= log2_growth(factors, found) and found + 1 > log2_growth(factors, found + 1)
    assert all(n > log2_growth(factors, n) for n in range(found + 1, 4 * found, 7))


def test_half_spaces_are_exact():
    for d in (1, 2, 5):
        assert half_space_vc_dimension(d) == vc_dimension([(1, d + 1)]) == d + 1
        assert half_space_vc_dimension(d, homogeneous=True) == d


def separable(x, labels):
    """Whether a half-space {w·x > c} has these labels, by a linear programme."""
    signs = np.where(labels, 1.0, -1.0)
    rows = -signs[:, None] * np.column_stack([x, np.ones(len(x))])
    bounds = [(None, None)] * rows.shape[1]
    return linprog(np.zeros(rows.shape[1]), rows, -np.ones(len(x)), bounds=bounds).status == 0


@pytest.mark.parametrize("d", [1, 2])
def test_half_spaces_shatter_as_many_points_and_no_more(d):
    x = np.vstack([np.zeros(d), np.eye(d)])
    assert all(separable(x, np.array(y)) for y in product([False, True], repeat=d + 1))
    for seed in range(5):
        x = np.random.default_rng(seed).standard_normal((d + 2, d))
        assert not all(separable(x, np.array(y)) for y in product([False, True], repeat=d + 2))


def patterns(x, layers, seed, draws=200_000):
    """Labellings of points by networks of one hidden layer with random parameters."""
    rng, (m, _), d = np.random.default_rng(seed), layers[0], x.shape[1]
    w, b = rng.standard_normal((draws, m, d)), rng.standard_normal((draws, m, 1))
    hidden = np.maximum(w @ x.T + b, 0.0)
    c, a = rng.standard_normal((draws, 1, m)), rng.standard_normal((draws, 1))
    return {y.tobytes() for y in ((c @ hidden)[:, 0] + a > 0)}


@pytest.mark.parametrize(("m", "d"), [(1, 1), (2, 1), (1, 2)])
def test_labellings_found_are_never_more_than_the_growth_function_allows(m, d):
    layers = [(m, m * (d + 1)), (1, m + 1)]
    total = layers[0][1] + m + 1
    shattered = 0
    for n in range(1, 9):
        x = np.random.default_rng(n).standard_normal((n, d))
        found = len(patterns(x, layers, n))
        assert found <= 2 ** log2_growth([(m, 1, layers[0][1]), (1, 2, total)], n)
        shattered = n if found == 2**n else shattered
    # One ReLU on a line shatters two points at least: the search is not blind.
    assert 2 <= shattered < 8 and shattered <= vc_dimension(layers)


def test_it_grows_with_all_that_counts():
    base = vc_dimension([(8, 40), (4, 36), (1, 5)])
    assert base < vc_dimension([(9, 40), (4, 36), (1, 5)])
    assert base < vc_dimension([(8, 45), (4, 36), (1, 5)])
    assert base < vc_dimension([(8, 40, 8), (4, 36), (1, 5)])
    assert base < vc_dimension([(8, 40), (4, 36), (4, 20), (1, 5)])
    assert base < vc_dimension([(8, 40), (4, 36), (10, 5)])
    assert base < vc_dimension([(8, 40), (4, 36), (1, 5)], pieces=3)
    assert base == vc_dimension([Layer(8, 40), Layer(4, 36, 0), Layer(1, 5)])


def test_a_real_network_has_a_finite_bound_above_its_parameters():
    # 14 million parameters: W log W, far beyond any number of images.
    layers = [(64 * 784, 4864, 64 * 784 * 3 // 2), (128 * 49, 204928), (10, 62730)]
    found = vc_dimension(layers)
    assert 272_522 < found < 272_522 * 3 * 40


def test_the_largest_numbers_that_are_taken_fit():
    most = 10**60
    layers = [(most, most, most)] * 50 + [(most, most)]
    found = vc_dimension(layers, pieces=most)
    # By hand: N ≤ Σ_l W_l log₂(…), of which each logarithm is between 1 and 1000.
    total = most * sum(range(1, 52))
    assert total < found < 1000 * total


@pytest.mark.parametrize(
    ("layers", "options", "error", "message"),
    [
        ([], {}, ValueError, "no layer"),
        (3, {}, TypeError, "sequence of"),
        ("ab", {}, TypeError, "sequence of"),
        ([3], {}, TypeError, "layer 0 is 3"),
        ([(1, 2), (1,)], {}, TypeError, "layer 1 is"),
        ([(0, 2)], {}, ValueError, "units of layer 0 must be at least 1"),
        ([(2, 4), (1, 0)], {}, ValueError, "parameters of layer 1"),
        ([(2, 4, -1), (1, 3)], {}, ValueError, "comparisons of layer 0"),
        ([(2, 4.0), (1, 3)], {}, TypeError, "parameters of layer 0 must be an integer"),
        ([(2, 4), (1, 3, 1)], {}, ValueError, "last layer is the output"),
        ([(2, 4), (1, 3)], {"pieces": 1}, ValueError, "pieces must be at least 2"),
        ([(10**400, 10**400), (1, 10**400)], {}, ValueError, "units of layer 0 is above 10"),
        ([(2, 4), (1, 10**61)], {}, ValueError, "parameters of layer 1 is above 10"),
        ([(2, 4, 10**400), (1, 3)], {}, ValueError, "comparisons of layer 0 is above 10"),
        ([(1, 10**400)], {}, ValueError, "parameters of layer 0 is above 10"),
        ([(2, 4), (1, 3)], {"pieces": 10**400}, ValueError, "pieces is above 10"),
        ([b"ab"], {}, TypeError, "layer 0 is b'ab'"),
        ([bytearray(b"ab")], {}, TypeError, "layer 0 is bytearray"),
        ([memoryview(b"ab")], {}, TypeError, "layer 0 is <memory"),
        (bytearray(b"ab"), {}, TypeError, "sequence of"),
    ],
)
def test_bad_layers_are_refused(layers, options, error, message):
    with pytest.raises(error, match=message):
        vc_dimension(layers, **options)


def test_bad_half_spaces_are_refused():
    with pytest.raises(ValueError, match="d must be at least 1"):
        half_space_vc_dimension(0)
    with pytest.raises(TypeError, match="homogeneous must be True or False"):
        half_space_vc_dimension(2, 1)
