"""d_HΔH of half-spaces through the origin between centred Gaussians."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theory import homogeneous_pair_divergence, worst_pair


def covariance(rng: np.random.Generator, d: int, more: int = 2) -> np.ndarray:
    root = rng.normal(size=(d, d + more))
    return root @ root.T / d


def angle(a, b, s):
    cosine = a @ s @ b / np.sqrt(np.einsum("...i,ij,...j", a, s, a) * (b @ s @ b))
    return np.arccos(np.clip(cosine, -1, 1))


def of_condition(condition: float) -> float:
    return 8 / math.pi * math.atan(condition**0.25) - 2


@pytest.mark.parametrize("d", [2, 3, 10, 40])
def test_the_worst_pair_attains_the_closed_form(d):
    rng = np.random.default_rng(d)
    p, q = covariance(rng, d), covariance(rng, d)
    found = homogeneous_pair_divergence(p, q)
    a, b = worst_pair(p, q)
    # arccos of a cosine of condition up to 1e5 keeps nine digits.
    attained = 2 / math.pi * abs(angle(a, b, q) - angle(a, b, p))
    assert attained == pytest.approx(found.midpoint, abs=1e-9)
    assert found.width < 1e-10 and found.lower > 0.1


@pytest.mark.parametrize("seed", range(4))
def test_no_other_pair_exceeds_it(seed):
    rng = np.random.default_rng(seed)
    d = 2 + seed % 2
    p, q = covariance(rng, d), covariance(rng, d)
    bound = homogeneous_pair_divergence(p, q).upper
    found = 0.0
    for b in rng.normal(size=(300, d)):
        a = rng.normal(size=(300, d)) * 10.0 ** rng.uniform(-2, 0, (300, 1))
        a += rng.choice([0, 1]) * b
        found = max(found, 2 / math.pi * np.abs(angle(a, b, q) - angle(a, b, p)).max())
    assert found <= bound
    assert found > 0.8 * bound  # 90,000 pairs come near


def test_sampled_half_spaces_differ_as_often():
    rng = np.random.default_rng(3)
    p, q = covariance(rng, 3), covariance(rng, 3)
    a, b = worst_pair(p, q)
    n, share = 400_000, []
    for s in (p, q):
        x = rng.multivariate_normal(np.zeros(3), s, n)
        share.append(float(((x @ a >= 0) != (x @ b >= 0)).mean()))
    # Two shares, each with variance at most 1/(4n).
    z = (2 * abs(share[0] - share[1]) - homogeneous_pair_divergence(p, q).midpoint) / (
        2 * math.sqrt(2 / (4 * n))
    )
    assert abs(z) < 5


@given(st.floats(0, 25), st.integers(-300, 300), st.integers(2, 4))
def test_the_enclosure_holds_the_exact_value(spread, exponent, d):
    ratios = np.exp(np.linspace(0, spread, d))
    q = np.ldexp(np.diag(ratios), exponent)
    found = homogeneous_pair_divergence(1.0, q)
    with mpmath.workdps(40):
        condition = mpmath.mpf(q.diagonal().max()) / mpmath.mpf(q.diagonal().min())
        root = condition ** mpmath.mpf("0.25")
        exact = 8 / mpmath.pi * mpmath.atan((root - 1) / (root + 1))
    assert found.lower <= exact <= found.upper
    assert found.width < 1e-12


@given(st.integers(0, 2**32), st.floats(-8, 8), st.floats(-8, 8))
def test_it_is_symmetric_and_blind_to_coordinates_and_scale(seed, one, other):
    rng = np.random.default_rng(seed)
    p, q = covariance(rng, 3), covariance(rng, 3)
    t = rng.normal(size=(3, 3)) * 10.0 ** rng.uniform(-2, 2, (3, 1))
    there = homogeneous_pair_divergence(p, q)
    moved = homogeneous_pair_divergence(10**other * t @ q @ t.T, 10**one * t @ p @ t.T)
    # The products round, relative to entries that may cancel in an ill-conditioned t.
    condition = np.linalg.cond(t / np.abs(t).max(axis=1, keepdims=True)) ** 2
    condition *= np.linalg.cond(p) * np.linalg.cond(q)
    assert moved.midpoint == pytest.approx(there.midpoint, abs=1e-14 * condition)


def test_it_is_zero_for_proportional_covariances_alone():
    p = covariance(np.random.default_rng(0), 4)
    for q in (p, 8 * p, 3.0):
        first = np.eye(4) if np.ndim(q) == 0 else p
        found = homogeneous_pair_divergence(first, q)
        assert found.lower == found.upper == 0
        a, b = worst_pair(first, q)
        assert np.array_equal(a, b)
    near = homogeneous_pair_divergence(1.0, np.diag([1, 1 + 1e-12]))
    assert 0 < near.lower <= 1e-12 / math.pi <= near.upper * (1 + 1e-4)
    almost = homogeneous_pair_divergence(p, 3 * p)  # rounded, so not quite proportional
    assert almost.lower == 0 and almost.upper < 1e-12
    assert homogeneous_pair_divergence([[2.0]], [[1e-200]]).upper == 0


@pytest.mark.parametrize(
    ("p", "q", "v"),
    [
        (np.eye(2), np.diag([1.0, 0.0]), [0, 1]),
        (np.diag([0.0, 3.0]), 1.0, [1, 0]),
        (np.zeros((2, 2)), np.eye(2), [1, 0]),
        ([[0.0]], [[1e-200]], [1]),
    ],
)
def test_a_law_without_variance_where_the_other_has_it(p, q, v):
    found = homogeneous_pair_divergence(p, q)
    assert found.lower == found.upper == 2
    a, b = worst_pair(p, q)
    np.testing.assert_array_equal(a, -b)
    assert abs(a @ np.array(v)) > 0


def test_singular_up_to_rounding():
    rng = np.random.default_rng(1)
    flat = rng.normal(size=(6, 3))
    inside, ratios = np.eye(3), np.diag([1.0, 2.0, 3.0])
    common = homogeneous_pair_divergence(flat @ inside @ flat.T, flat @ ratios @ flat.T)
    assert common.midpoint == pytest.approx(of_condition(3), abs=1e-11)
    assert "null space of dimension 3 left out" in common.method
    one_alone = homogeneous_pair_divergence(flat @ flat.T, 1.0)
    assert one_alone.upper == 2 and one_alone.lower > 1.999
    a, b = worst_pair(flat @ flat.T, 1.0)
    assert np.isfinite([a, b]).all()
    exact = homogeneous_pair_divergence(np.diag([1.0, 1.0, 0.0]), np.diag([1.0, 16.0, 0.0]))
    assert exact.contains(of_condition(16)) and "null space" not in exact.method


def test_extreme_scales():
    p, q = np.diag([1.0, 1e-300]), np.diag([1e-300, 1e300])
    found = homogeneous_pair_divergence(p, q)
    assert found.lower > 2 - 1e-13 and found.upper == 2 and "closed form" in found.method
    graded = np.diag([1e-200, 1.0, 1e200])
    assert homogeneous_pair_divergence(graded, graded @ np.diag([1, 16, 4.0])).contains(
        of_condition(16)
    )


@pytest.mark.parametrize(
    ("p", "q", "message"),
    [
        (1.0, 2.0, r"S_p must be a \(d, d\) covariance"),
        ([1.0, 2.0], np.eye(2), r"S_p must be a \(d, d\) covariance, not of shape \(2,\)"),
        (np.eye(2), np.eye(3), "S_q has shape"),
        (np.eye(2), [[1.0, 2.0], [2.0, 1.0]], "S_q has a negative variance"),
        (np.eye(2), [[1.0, 0.5], [0.4, 1.0]], "S_q is not symmetric"),
        (np.eye(2), -1.0, "S_q .* must be finite and not negative"),
        (np.eye(2), np.diag([1.0, np.nan]), "S_q holds NaN or infinity"),
        (np.eye(2) + 1j, np.eye(2), "S_p must hold real numbers"),
        (np.zeros((0, 0)), np.eye(2), "S_p must be"),
        ([[1.0], [2.0, 3.0]], np.eye(2), "S_p is not a rectangular array"),
        (np.eye(2), None, "S_q"),
    ],
)
def test_bad_covariances_are_refused(p, q, message):
    for function in (homogeneous_pair_divergence, worst_pair):
        with pytest.raises((TypeError, ValueError), match=message):
            function(p, q)
