import math

import mpmath
import numpy as np
import pytest
from exact_kernels import ends, exact, inside, masked

from theory.full_kernel import compare_full_kernels, full_kernel_threshold


def pair(angle, d, lengths=(1.0, 1.0)):
    x = np.zeros((2, d))
    x[0, 0] = lengths[0]
    x[1, :2] = lengths[1] * math.cos(angle), lengths[1] * math.sin(angle)
    return x


def test_the_reference_pair():
    # Integers: −1 by √2√2 is exactly −½.
    x = np.zeros((2, 10))
    x[0, :2], x[1, 1:3] = (1, -1), (1, -1)
    found = compare_full_kernels(x / math.sqrt(2), [0, 1])
    assert found.inequality.verdict == "violated"
    assert found.aggregated.midpoint == pytest.approx(5 / 12, abs=1e-13)
    assert found.client_specific.midpoint == pytest.approx(0.41122, abs=5e-6)
    assert "0.416666667" in str(found) and "fails, certified" in str(found)
    assert full_kernel_threshold(2 * math.pi / 3, 10).midpoint == pytest.approx(
        5.70803489, rel=1e-8
    )


@pytest.mark.parametrize("d", [2, 3, 50])
def test_two_orthogonal_unit_vectors_by_hand(d):
    found = compare_full_kernels(np.eye(d)[:2], ["a", "b"])
    assert found.aggregated.contains(0.5) and found.largest_aggregated.contains(0.5)
    shift = 1 / (2 * math.pi * d)
    assert found.client_specific.midpoint == pytest.approx(0.5 - shift, abs=1e-13)
    assert found.largest_client_specific.midpoint == pytest.approx(0.5 + shift, abs=1e-13)
    assert found.inequality.verdict == "violated"
    # The double nearest to π/2 is off by 6e-17, which d multiplies.
    limit = full_kernel_threshold(math.pi / 2, d)
    assert limit.midpoint == pytest.approx(math.sqrt(2), abs=1e-15 * d)


@pytest.mark.parametrize("d", [1, 2, 10, 784])
@pytest.mark.parametrize("angle", [1.0, 1.55, 1.57, math.pi / 2, 2.0, 2.9, 3.14159, math.pi])
def test_the_threshold_at_ninety_digits(angle, d):
    found = full_kernel_threshold(angle, d)
    with mpmath.workdps(90):
        theta = mpmath.mpf(angle)
        rest = mpmath.pi - theta
        h = (mpmath.sin(theta) + rest * mpmath.cos(theta)) / (2 * mpmath.pi)
        square = 2 * (1 - d * mpmath.cos(theta) * rest / (2 * mpmath.pi) / h)
        if square <= 0:
            assert found is None
        else:
            assert inside(mpmath.sqrt(square), found)
            assert found.width < 1e-15 * found.midpoint


@pytest.mark.parametrize("lengths", [(1.0, 1.0), (0.3, 2.0), (50.0, 1.0)])
@pytest.mark.parametrize("variance", [1.0, 0.07])
@pytest.mark.parametrize(("angle", "d"), [(1.5, 2), (math.pi / 2, 7), (2.0, 2), (2.9, 100)])
def test_the_sign_changes_at_the_threshold_whatever_the_lengths(angle, d, variance, lengths):
    limit = full_kernel_threshold(angle, d).midpoint
    x = pair(angle, d, lengths)
    for side, verdict in ((0.5, "violated"), (1 - 1e-4, "violated"), (1 + 1e-4, "certified")):
        found = compare_full_kernels(x, [0, 1], limit * side, variance)
        assert found.inequality.verdict == verdict
        # With the diagonal fixed, the largest eigenvalue moves the other way.
        more = found.largest_client_specific.lower > found.largest_aggregated.upper
        assert more == (verdict == "violated")


def test_below_its_angle_the_corollary_extends_at_every_alpha():
    assert full_kernel_threshold(1.2, 10) is None
    for alpha in (1e-3, 0.1, 1.0, 30.0):
        found = compare_full_kernels(pair(1.2, 10), [0, 1], alpha)
        assert found.inequality.verdict != "violated"
    assert found.inequality.verdict == "certified"


def test_the_threshold_grows_without_bound():
    # α*² ≈ 2 + 6d/e² near 180°.
    for e in (1e-2, 1e-4):
        found = full_kernel_threshold(math.pi - e, 5).midpoint
        assert found == pytest.approx(math.sqrt(2 + 30 / e**2), rel=1e-4)
    values = [full_kernel_threshold(angle, 5) for angle in np.linspace(1.6, 3.1, 30)]
    assert [v.midpoint for v in values] == sorted(v.midpoint for v in values)


@pytest.mark.parametrize("alpha", [0.4, 3.3])
def test_enclosures_hold_the_eigenvalues_at_fifty_digits(alpha):
    x, client = np.random.default_rng(1).standard_normal((5, 3)), list("abbac")
    variances = {"a": 0.3, "b": 1.9, "c": 5.0}
    found = compare_full_kernels(x, client, alpha, variances)
    with mpmath.workdps(50):
        g, _, v = exact(x, client, variances, alpha)
        low, high = ends(v + g)
        low_star, high_star = ends(v + masked(g, client))
        assert inside(low, found.aggregated) and inside(high, found.largest_aggregated)
        assert inside(low_star, found.client_specific)
        assert inside(high_star, found.largest_client_specific)


@pytest.mark.parametrize("dimension", [0, -3, 2.5, math.inf, math.nan])
def test_a_dimension_is_a_whole_number(dimension):
    with pytest.raises(ValueError, match="dimension must be a whole number"):
        full_kernel_threshold(1.0, dimension)


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.nan])
def test_alpha_is_positive(alpha):
    with pytest.raises(ValueError, match="alpha must be positive"):
        compare_full_kernels(np.eye(2), [0, 1], alpha)
