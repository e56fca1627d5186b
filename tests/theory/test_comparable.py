"""What the readings of Corollary III.6 accept, refuse and say about it: one sentence each."""

import warnings

import numpy as np
import pytest

from theory.bn_kernel import bn_gram_matrix
from theory.centring import centre
from theory.covariances import client_covariances
from theory.full_kernel import compare_full_kernels
from theory.pooled import pooled_comparison
from theory.reading import reading_kernels, readings, readings_over

CLIENT = ["a"] * 4 + ["b"] * 4
X = centre(np.random.default_rng(0).standard_normal((8, 3)), CLIENT)
S = np.diag([1.0, 2.0, 3.0])

# Every function that compares kernels, at alpha where it has one.
ALL = {
    "pooled": lambda x, client, s: pooled_comparison(x, client, s, tolerance=1e-4),
    "full": lambda x, client, s, alpha=1.0: compare_full_kernels(
        x, client, alpha, s, tolerance=1e-4
    ),
    "readings": lambda x, client, s, alpha=1.0: readings(x, client, alpha, s, tolerance=1e-4),
    "kernels": lambda x, client, s: reading_kernels(x, client, s, tolerance=1e-4),
}
TABLE = type("Series", (list,), {"index": ["b", "a"], "to_dict": dict})


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def ends(found):
    names = "aggregated", "client_specific", "largest_aggregated", "largest_client_specific"
    return [getattr(found, name) for name in names]


@pytest.mark.parametrize("name", list(ALL))
@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        (TABLE([1.0, 4.0]), TypeError, "to_dict"),
        (TABLE([S, S]), TypeError, "to_dict"),
        ([[1.0], [1.0, 2.0]], ValueError, "covariances is not a rectangular array"),
        ([[[1.0]], 1.0], ValueError, "covariances is not a rectangular array"),
        ({"a": [[1.0], [1.0, 2.0]], "b": 1.0}, ValueError, r"'a'\] is not a rectangular array"),
        ({"a": [1.0, 2.0, 3.0], "b": 1.0}, ValueError, r"'a'\] has shape \(3,\)"),
        ([None, None], TypeError, "variance of 'a' must be one real number"),
        (["2", "3"], TypeError, "variance of 'a' must be one real number"),
        ({1.0, 2.0}, TypeError, "covariances must hold real numbers"),
        (iter([1.0, 2.0]), TypeError, "covariances must hold real numbers"),
        (object(), TypeError, "covariances must hold real numbers"),
    ],
)
def test_covariances_that_cannot_be_read_are_refused(name, given, kind, words):
    with pytest.raises(kind, match=words):
        ALL[name](X, CLIENT, given)


def test_ragged_covariances_are_named_by_the_kernel_too():
    for given in ([[1.0], [1.0, 2.0]], {"a": [[1.0], [1.0, 2.0]], "b": 1.0}):
        with pytest.raises(ValueError, match=r"covariances.* is not a rectangular array"):
            bn_gram_matrix(X, CLIENT, given)


@pytest.mark.parametrize("name", list(ALL))
def test_no_covariances_are_those_of_the_points(name):
    found = ALL[name](X, CLIENT, None)
    wanted = ALL[name](X, CLIENT, client_covariances(X, CLIENT))
    if name == "kernels":
        np.testing.assert_array_equal(found.direction.matrix, wanted.direction.matrix)
    else:
        assert str(found) == str(wanted)


@pytest.mark.parametrize("name", list(ALL))
def test_rows_of_zeros_are_refused_as_by_the_comparison(name):
    for x, row in ((np.zeros_like(X), 0), (np.vstack([X[:7], np.zeros((1, 3))]), 7)):
        with pytest.raises(ValueError, match=rf"row {row} of x is zero"):
            ALL[name](x, CLIENT, 1.0)
        with pytest.raises(ValueError, match=rf"row {row} of x is zero"):
            ALL[name](x, CLIENT, S)


@pytest.mark.parametrize("name", list(ALL))
@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e-140, 1e140, 1e200, 1e307])
@pytest.mark.parametrize("s", [None, 1.0, {"a": 1.0, "b": 2.0}, S], ids=["own", "1", "two", "S"])
def test_points_out_of_range_are_refused_with_advice(name, size, s):
    with pytest.raises(ValueError, match=r"row \d of x is about 1e.*: multiply x by a power"):
        ALL[name](X * size, CLIENT, s)


@pytest.mark.parametrize("name", list(ALL))
@pytest.mark.parametrize("size", [1e-320, 1e-280, 1e280, 5e307])
def test_covariances_out_of_range_are_refused_with_advice(name, size):
    for s in (size, {"a": size, "b": 1.0}, S * size, {"a": S * size, "b": S}):
        with pytest.raises(ValueError, match="a standard deviation of client 'a' is about 1e"):
            ALL[name](X, CLIENT, s)


@pytest.mark.parametrize("name", list(ALL))
def test_points_and_covariances_that_do_not_go_together_are_refused(name):
    for x, s in ((X * 1e100, 1e-200), (X * 1e-100, S * 1e200)):
        with pytest.raises(ValueError, match="over a standard deviation of client 'a'"):
            ALL[name](x, CLIENT, s)


@pytest.mark.parametrize("s", [1.0, {"a": 1.0, "b": 2.5}, S], ids=["1", "two", "S"])
@pytest.mark.parametrize("power", [-425, -260, 260, 425])
def test_far_within_the_range_results_scale_and_errors_do_not_vanish(s, power):
    # Squares of the kernels' entries leave float64 here, the kernels themselves do not.
    for name in ("pooled", "full"):
        plain, scaled = ALL[name](X, CLIENT, s), ALL[name](np.ldexp(X, power), CLIENT, s)
        assert plain.inequality.verdict == scaled.inequality.verdict
        for one, other in zip(ends(plain), ends(scaled), strict=True):
            middle, width = other.midpoint, np.ldexp(other.width, -2 * power)
            # A power of two: only bounds of rounding may differ, by a little.
            assert abs(np.ldexp(middle, -2 * power) - one.midpoint) <= one.width
            assert 0.5 * one.width <= width <= 2 * one.width
    assert len(str(ALL["readings"](np.ldexp(X, power), CLIENT, s))) > 200


@pytest.mark.parametrize("alpha", [1e-320, 1e-300, 1e-170, 1e-135, 1e135, 1e150, 1e300])
@pytest.mark.parametrize("s", [1.0, S], ids=["1", "S"])
def test_alpha_out_of_range_is_refused(alpha, s):
    for name in ("full", "readings"):
        with pytest.raises(ValueError, match=r"V/α² leaves float64 at alpha = .*moderate size"):
            ALL[name](X, CLIENT, s, alpha)
    with pytest.raises(ValueError, match="V/α² leaves float64 at alpha"):
        ALL["kernels"](X, CLIENT, 1.0).readings([1.0, alpha])


def test_a_kernel_over_alpha_that_leaves_float64_is_refused():
    for name in ("full", "readings"):
        with pytest.raises(ValueError, match="choose a larger one"):
            ALL[name](X * 1e60, CLIENT, 1.0, 1e-100)


@pytest.mark.parametrize("alpha", [1e-125, 1e-80, 1e80, 1e125])
def test_extreme_alpha_within_the_range_are_the_limits(alpha):
    found = ALL["full"](X, CLIENT, 1.0, alpha)
    kernels = ALL["kernels"](X, CLIENT, 1.0)
    kernel = kernels.magnitude if alpha > 1 else kernels.direction
    low, high = np.linalg.eigvalsh(kernel.matrix)[[0, -1]] / (1 if alpha > 1 else alpha**2)
    assert found.aggregated.midpoint == pytest.approx(low, rel=1e-9)
    assert found.largest_aggregated.midpoint == pytest.approx(high, rel=1e-9)
    assert 0 < found.aggregated.width < 1e-10 * high
    assert readings(X, CLIENT, alpha, 1.0).full.smallest.lhs == found.aggregated


@pytest.mark.parametrize("alphas", [1.0, None, "1", 3])
def test_alphas_are_a_sequence(alphas):
    with pytest.raises(TypeError, match="alphas must be a sequence of numbers"):
        readings_over(X, CLIENT, alphas, 1.0)


@pytest.mark.parametrize("s", [None, 1.0, [1.0, 2.0]], ids=["own", "1", "two"])
@pytest.mark.parametrize("small", [1e-300, 1e-101])
def test_weights_that_tell_nothing_are_refused_with_advice(s, small):
    for weights in ({"a": 1.0, "b": small}, {"a": 1e300, "b": 1e300 * small}):
        with pytest.raises(ValueError, match="weight of 'b' is below 1e-100 of all"):
            pooled_comparison(X, CLIENT, s, weights=weights)
        with pytest.raises(ValueError, match="weight of 'b' is below 1e-100 of all"):
            readings(X, CLIENT, 1.0, s, weights=weights)
    assert pooled_comparison(X, CLIENT, 1.0, weights={"a": 1e99, "b": 1e2}).loss == 1.0


FLAT = np.array([[1.0, 0, 0, 0], [-1, 0, 0, 0], [0, 1, 0, 0], [0, -1, 0, 0]])
PLANE, OTHER = np.diag([1.0, 1, 0, 0]), np.diag([0.0, 1, 1, 0])


@pytest.mark.parametrize("name", list(ALL))
@pytest.mark.parametrize(
    ("x", "s", "words"),
    [
        (FLAT, {"a": PLANE, "b": OTHER}, "singular in different directions"),
        (FLAT, OTHER, "leaves the range of the singular covariance"),
        (FLAT, PLANE, "V is infinite"),
    ],
)
def test_no_advice_asks_for_an_eps_that_there_is_none_of(name, x, s, words):
    if name == "pooled" and words == "V is infinite":
        return  # V is not asked for
    with pytest.raises(ValueError, match=words) as caught:
        ALL[name](x, ["a", "a", "b", "b"], s)
    assert "eps" not in str(caught.value) and "ridge" in str(caught.value)


def test_every_advice_of_the_kernel_about_eps_is_left_out():
    from theory import _bn_setting, bn_kernel
    from theory._client_kernels import _without_eps

    text = ""
    for module in (_bn_setting, bn_kernel):
        with open(module.__file__, encoding="utf-8") as source:
            code = source.read()
        # Adjacent literals are one: the sentence as it is raised.
        text += "".join(line.strip().strip('f"') for line in code.splitlines() if '"' in line)
    advised = [words for words in ("give eps > 0", "give a larger eps") if words in text]
    assert advised == ["give eps > 0", "give a larger eps"]
    left = _without_eps(text)
    assert "give eps" not in left and "larger eps" not in left
