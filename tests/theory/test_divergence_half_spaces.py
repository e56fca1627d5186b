"""d_H of half-spaces between known Gaussians: closed forms, and brute force elsewhere."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from theory import (
    Gaussian,
    half_space_divergence,
    homogeneous_pair_divergence,
    interval_divergence,
    total_variation,
)

PHI = NormalDist().cdf


def covariance(rng: np.random.Generator, d: int) -> np.ndarray:
    root = rng.normal(size=(d, d + 1))
    return root @ root.T / d


def laws(seed: int, d: int, shift: float = 1.0) -> tuple[Gaussian, Gaussian]:
    rng = np.random.default_rng(seed)
    return (
        Gaussian(rng.normal(size=d), covariance(rng, d)),
        Gaussian(shift * rng.normal(size=d), covariance(rng, d)),
    )


def told_apart(w, c, p: Gaussian, q: Gaussian) -> float:
    """2 |P(w·x ≥ c) − Q(w·x ≥ c)|, from the normal distribution function alone."""
    heights = [(c - w @ g.mean) / np.sqrt(w @ g.covariance @ w) for g in (p, q)]
    return 2 * np.abs(special.ndtr(heights[0]) - special.ndtr(heights[1]))


def along(w, p: Gaussian, q: Gaussian) -> float:
    """The best of 4,001 thresholds."""
    middles = [w @ g.mean for g in (p, q)]
    widths = [math.sqrt(w @ g.covariance @ w) for g in (p, q)]
    low = min(m - 5 * s for m, s in zip(middles, widths, strict=True))
    high = max(m + 5 * s for m, s in zip(middles, widths, strict=True))
    return float(told_apart(w, np.linspace(low, high, 4001), p, q).max())


def searched(p: Gaussian, q: Gaussian, rng: np.random.Generator) -> float:
    """A multi-start search over directions and thresholds, of another make than the library's."""
    d = p.dimension

    def lost(x):
        return -float(told_apart(x[:d], x[d], p, q))

    starts = rng.normal(size=(12, d + 1))
    return -min(optimize.minimize(lost, x, method="BFGS").fun for x in starts)


@pytest.mark.parametrize("d", [1, 2, 7])
def test_equal_covariances(d):
    rng = np.random.default_rng(d)
    s, delta = covariance(rng, d), rng.normal(size=d)
    found = half_space_divergence(Gaussian(0 * delta, s), Gaussian(delta, s))
    distance = math.sqrt(delta @ np.linalg.solve(s, delta))
    assert found.midpoint == pytest.approx(2 * (2 * PHI(distance / 2) - 1), abs=1e-12)
    assert found.width < 1e-11 and "2Φ(Δ/2) − 1" in found.method


@pytest.mark.parametrize("d", [2, 3, 6])
def test_equal_means(d):
    p, q = laws(d, d)
    q = Gaussian(p.mean, q.covariance)
    found = half_space_divergence(p, q)
    values, vectors = np.linalg.eig(np.linalg.solve(p.covariance, q.covariance))
    best = max(along(vectors[:, k].real, p, q) for k in range(d))
    assert found.midpoint == pytest.approx(best, abs=1e-4)  # 4,001 thresholds over a range of 30
    extreme = math.sqrt(max(values.real.max(), 1 / values.real.min()))
    c = math.sqrt(2 * math.log(extreme) / (1 - extreme**-2))
    assert found.midpoint == pytest.approx(2 * (PHI(c) - PHI(c / extreme)), abs=1e-10)
    assert found.width < 1e-10 and "equal means" in found.method


@pytest.mark.parametrize(("m", "s", "t"), [(1, 1, 2), (0.1, 3, 1), (4, 1, 1), (0, 1, 1.01)])
def test_on_the_line(m, s, t):
    p, q = Gaussian(0.5, s**2), Gaussian(0.5 - m, t**2)
    found = half_space_divergence(p, q)
    x = np.linspace(-20, 20, 1_000_001)  # 4e-5 apart: an error of 1e-9 at a maximum
    gap = special.ndtr((x - 0.5) / s) - special.ndtr((x - 0.5 + m) / t)
    assert found.midpoint == pytest.approx(2 * np.abs(gap).max(), abs=1e-8)
    assert found.width < 1e-12


def test_all_directions_of_the_plane():
    for seed in range(6):
        p, q = laws(seed, 2, shift=seed / 2)
        angles = np.linspace(0, np.pi, 721)
        best = max(along(np.array([math.cos(a), math.sin(a)]), p, q) for a in angles)
        found = half_space_divergence(p, q)
        # 0.2° between directions and a thousandth of the range between thresholds.
        assert best <= found.upper and found.lower <= best + 1e-4
        assert found.width < 1e-6


@pytest.mark.parametrize(("seed", "d"), [(0, 3), (1, 3), (2, 5), (3, 8)])
def test_a_search_finds_the_same(seed, d):
    p, q = laws(seed, d)
    found = half_space_divergence(p, q)
    assert found.width < 1e-6
    best = searched(p, q, np.random.default_rng(seed))
    assert found.lower - 1e-6 <= best <= found.upper  # where its steps ended


def test_a_best_direction_that_the_gap_of_means_is_orthogonal_to():
    # Only the first axis has a gap, and the best half-space looks along the last one.
    p = Gaussian([0.0, 0, 0], 1.0)
    q = Gaussian([0.1, 0, 0], np.diag([1.0, 2.0, 9.0]))
    found = half_space_divergence(p, q)
    best = searched(p, q, np.random.default_rng(0))
    assert found.width < 1e-6 and found.lower - 1e-7 <= best <= found.upper
    # It leans towards the first axis to see the gap too.
    axis = half_space_divergence(Gaussian(0.0, 1.0), Gaussian(0.0, 9.0))
    assert axis.upper < found.lower < axis.upper + 0.01


def test_sampled_half_space():
    p, q = laws(5, 4)
    w = np.linalg.solve(p.covariance + q.covariance, q.mean - p.mean)
    rng, n = np.random.default_rng(0), 200_000
    x, y = (rng.multivariate_normal(g.mean, g.covariance, n) @ w for g in (p, q))
    c = w @ (p.mean + q.mean) / 2
    seen = 2 * abs(float((x >= c).mean() - (y >= c).mean()))
    # Two shares, each with variance at most 1/(4n); the half-space is a good one, not the best.
    assert seen - half_space_divergence(p, q).upper < 5 * 2 * math.sqrt(2 / (4 * n))
    assert seen > 0.8 * half_space_divergence(p, q).lower


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 4),
    st.sampled_from([0.0, 1e-8, 0.1, 1.0, 10.0]),
    st.sampled_from(["other", "same", "scaled"]),
)
def test_lower_exact_upper(seed, d, shift, kind):
    rng = np.random.default_rng(seed)
    s, t = covariance(rng, d), covariance(rng, d)
    t = {"other": t, "same": s, "scaled": 4 * s}[kind]
    p, q = Gaussian(np.zeros(d), s), Gaussian(shift * rng.normal(size=d), t)
    exact, most = half_space_divergence(p, q), total_variation(p, q).scaled(2.0)
    some = max(along(w, p, q) for w in rng.normal(size=(20, d)))
    assert some - 1e-15 <= exact.upper <= most.upper + 2e-7  # a difference of two Φ; the search
    assert exact.lower <= most.upper and 0 <= exact.lower <= exact.upper <= 2
    back = half_space_divergence(q, p)
    assert back.lower <= exact.upper and exact.lower <= back.upper
    if shift == 0 and d > 1:
        pairs = homogeneous_pair_divergence(s, t)
        assert pairs.lower <= most.upper


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(-100, 100), st.floats(-3, 3))
def test_blind_to_coordinates(seed, exponent, shift):
    p, q = laws(seed, 3)
    t = 2.0**exponent * np.array([[1, 2, 0], [0, 1, -3], [1, 0, 1.0]])
    moved = [Gaussian(t @ g.mean + shift, t @ g.covariance @ t.T) for g in (p, q)]
    there, here = half_space_divergence(*moved), half_space_divergence(p, q)
    # The products round; a shift of size 1 swallows means of size 2^-100.
    if abs(exponent) < 20:
        assert there.midpoint == pytest.approx(here.midpoint, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-290, 1e-100, 1e100, 1e290])
def test_scales(scale):
    p, q = Gaussian([0.0, 0], 1.0), Gaussian([1.0, 2], np.diag([1.0, 3]))
    here = half_space_divergence(p, q)
    root = math.sqrt(scale)
    moved = half_space_divergence(
        Gaussian([0.0, 0], scale), Gaussian([root, 2 * root], np.diag([scale, 3 * scale]))
    )
    assert moved.midpoint == pytest.approx(here.midpoint, abs=2e-7)
    units = np.array([1e-120, 1e130])  # one scale for each coordinate
    mixed = half_space_divergence(
        Gaussian([0.0, 0], np.diag(units**2)),
        Gaussian([1e-120, 2e130], np.diag([1.0, 3] * units**2)),
    )
    assert mixed.midpoint == pytest.approx(here.midpoint, abs=2e-7)


def test_the_same_law_twice():
    for law in (Gaussian(1.0, 2.0), Gaussian([1.0, 2], 0.0), laws(0, 5)[0]):
        for function in (half_space_divergence, total_variation):
            found = function(law, Gaussian(law.mean, law.covariance))
            assert found.lower == found.upper == 0


FLAT = np.diag([1.0, 0.0])


@pytest.mark.parametrize(
    ("p", "q", "value", "most"),
    [
        (Gaussian(0.0, 0.0), Gaussian(1.0, 0.0), 2, 2),  # two points
        (Gaussian(0.0, 0.0), Gaussian(0.0, 1.0), 1, 2),  # the point lies on the border
        (Gaussian(0.0, 0.0), Gaussian(1.0, 4.0), 2 * PHI(0.5), 2),
        (Gaussian([0.0, 0], FLAT), Gaussian([0.0, 1e-9], FLAT), 2, 2),
        (Gaussian([0.0, 0], FLAT), Gaussian([1.0, 0], FLAT), 2 * (2 * PHI(0.5) - 1), None),
        (Gaussian([0.0, 0], FLAT), Gaussian([0.0, 0], 1.0), 1, 2),
        (Gaussian([0.0, 0], 0.0), Gaussian([0.0, 1], 1.0), 2 * PHI(1), 2),
        (Gaussian([0.0, 0], 1.0), Gaussian([0.0, 1], 0.0), 2 * PHI(1), 2),
        (Gaussian([0.0, 0], 0.0), Gaussian([1.0, 1], FLAT), 2, 2),
        (Gaussian([0.0, 0], FLAT), Gaussian([0.0, 3], 1.0), 2 * PHI(3), 2),
    ],
)
def test_laws_on_a_plane_or_a_point(p, q, value, most):
    found, all_sets = half_space_divergence(p, q), total_variation(p, q).scaled(2.0)
    assert found.lower - 1e-12 <= value <= found.upper + 1e-12 and found.width < 1e-6
    assert all_sets.lower <= (most or value) + 1e-12 and all_sets.upper >= (most or value) - 1e-12
    assert all_sets.width < 1e-9


def test_singular_up_to_rounding():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(6, 3))
    p = Gaussian(np.zeros(6), flat @ flat.T)
    within = half_space_divergence(p, Gaussian(flat @ [1.0, 0, 0], flat @ flat.T))
    assert within.midpoint == pytest.approx(2 * (2 * PHI(0.5) - 1), abs=1e-12)
    assert "left out as rounding" in within.method
    out = half_space_divergence(p, Gaussian(flat @ [1.0, 0, 0] + 0.1, flat @ flat.T))
    assert out.lower > 2 - 1e-12
    other = half_space_divergence(
        p, Gaussian(flat @ [1.0, 0, 0], flat @ np.diag([1.0, 2, 3]) @ flat.T)
    )
    plain = half_space_divergence(
        Gaussian(np.zeros(3), 1.0), Gaussian([1.0, 0, 0], np.diag([1.0, 2, 3]))
    )
    assert other.midpoint == pytest.approx(plain.midpoint, abs=2e-7)


def test_nearly_proportional():
    rng = np.random.default_rng(4)
    for factor in (3.0, 0.1, 1e9, 1e-9):
        s, delta = covariance(rng, 3), rng.normal(size=3)
        p, q = Gaussian(np.zeros(3), s), Gaussian(delta, factor * s)  # each entry rounded
        found = half_space_divergence(p, q)
        distance = math.sqrt(delta @ np.linalg.solve(s, delta))
        line = half_space_divergence(Gaussian(0.0, 1.0), Gaussian(distance, factor))
        # Of a share of 1e-9 seven digits are left.
        assert found.midpoint == pytest.approx(line.midpoint, abs=1e-6 if factor < 1e8 else 1e-4)
        assert found.width < 1e-3


def test_two_planes():
    rng = np.random.default_rng(6)
    one, other = rng.normal(size=(2, 3, 2))
    p, q = Gaussian(np.zeros(3), one @ one.T), Gaussian(rng.normal(size=3), other @ other.T)
    found = half_space_divergence(p, q)
    best = searched(p, q, rng)
    assert found.lower - 1e-6 <= best <= found.upper + 1e-6 and found.width < 1e-4
    assert total_variation(p, q).lower > 1 - 1e-6


def test_a_gap_too_small_to_square():
    tiny = Gaussian([1e-200, 0.0], np.diag([1.0, 2]))
    found = half_space_divergence(Gaussian([0.0, 0], 1.0), tiny)
    plain = half_space_divergence(Gaussian(0.0, 1.0), Gaussian(0.0, 2.0))
    assert found.midpoint == pytest.approx(plain.midpoint, abs=2e-7)
    for q in (tiny, Gaussian([1e-200, 0.0], np.diag([3.0, 3]))):
        assert total_variation(Gaussian([0.0, 0], 1.0), q).lower > 0


def test_one_law_singular_up_to_rounding():
    thin = np.array([[8.085289145541727e-12, 1.891651970831366e-12], [0, 4.425750414533177e-13]])
    thin[1, 0] = thin[0, 1]
    p, q = Gaussian([0.0, 0], np.diag([8e5, 4e-11])), Gaussian([0.002, 0], thin)
    assert total_variation(p, q).lower > 0.999
    found = half_space_divergence(p, q)
    assert 0 < found.lower <= found.upper < 1.01


def test_means_far_apart():
    far = half_space_divergence(Gaussian([1e308, 0], 1.0), Gaussian([-1e308, 0], np.diag([1.0, 2])))
    assert far.lower > 2 - 1e-11  # of δ's rounding
    close = half_space_divergence(Gaussian([0.0, 0], 1.0), Gaussian([1e-300, 0], 1.0))
    assert 0 < close.lower <= close.upper < 1e-299


def test_the_record():
    law = Gaussian(0, 4)
    assert law.dimension == 1 and law.covariance.tolist() == [[4.0]]
    assert Gaussian([1, 2], 3).covariance.tolist() == [[3.0, 0], [0, 3.0]]
    with pytest.raises(ValueError, match="read-only"):
        law.mean[0] = 1.0
    given = np.zeros(2)
    law = Gaussian(given, 1.0)
    given[0] = 5.0
    assert law.mean[0] == 0


@pytest.mark.parametrize(
    ("mean", "covariance", "message"),
    [
        ([0.0, np.nan], 1.0, "mean holds NaN"),
        ([], 1.0, "mean is empty"),
        ([[0.0]], 1.0, "mean must have one dimension"),
        ("a", 1.0, "mean must hold real numbers"),
        ([0.0, 0], np.eye(3), r"covariance has shape \(3, 3\), but the dimension is 2"),
        ([0.0, 0], [1.0, 1.0], r"covariance must be a \(d, d\) covariance"),
        ([0.0, 0], -1.0, "covariance .* not negative"),
        ([0.0, 0], np.diag([1.0, -1e-3]), "negative variance"),
        ([0.0, 0], [[1.0, 0], [0.1, 1]], "not symmetric"),
        ([0.0, 0], np.inf, "covariance holds NaN or infinity"),
        ([0.0, 0], None, "covariance"),
    ],
)
def test_bad_laws_are_refused(mean, covariance, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Gaussian(mean, covariance)


@pytest.mark.parametrize("function", [half_space_divergence, total_variation, interval_divergence])
def test_bad_pairs_are_refused(function):
    law = Gaussian([0.0, 0], 1.0)
    with pytest.raises(ValueError, match="p has dimension 2 and q 1"):
        function(law, Gaussian(0.0, 1.0))
    for other in (np.eye(2), None, "law"):
        with pytest.raises(TypeError, match=r"q must be a Gaussian\(mean, covariance\)"):
            function(law, other)
