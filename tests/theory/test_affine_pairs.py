"""Pairs of half-spaces anywhere: probabilities by Owen's T, a search that stays in its bounds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from theory import (
    Gaussian,
    affine_pair_divergence,
    half_space_divergence,
    homogeneous_pair_divergence,
    interval_divergence,
    total_variation,
)
from theory.affine_pairs import _differ


def laws(seed: int, d: int, shift: float) -> tuple[Gaussian, Gaussian]:
    rng = np.random.default_rng(seed)
    s, t = (root @ root.T / d for root in rng.normal(size=(2, d, d + 1)))
    return Gaussian(np.zeros(d), s), Gaussian(shift * rng.normal(size=d), t)


def test_half_spaces_differ_as_often_as_the_bivariate_law_says():
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=3), rng.uniform(0.1, 2, 3)
    pairs = rng.normal(size=(40, 8))
    pairs[0, 4:7] = pairs[0, :3]  # parallel
    pairs[1, 4:7] = -pairs[1, :3]  # opposite
    pairs[2, 3] = pairs[2, :3] @ mean  # through the mean
    pairs[3, [3, 7]] = pairs[3, :3] @ mean, pairs[3, 4:7] @ mean  # both
    found = _differ(pairs, mean, variance)
    for x, value in zip(pairs, found, strict=True):
        w = np.stack([x[:3], x[4:7]])
        law = stats.multivariate_normal(
            w @ mean, w @ np.diag(variance) @ w.T, allow_singular=True, seed=0
        )
        both = law.cdf(x[[3, 7]])
        each = [
            stats.norm.cdf((c - v @ mean) / math.sqrt(v @ (variance * v)))
            for v, c in zip(w, x[[3, 7]], strict=True)
        ]
        assert value == pytest.approx(sum(each) - 2 * both, abs=1e-5)  # of scipy's integration


def test_half_spaces_differ_as_often_in_a_sample():
    rng = np.random.default_rng(1)
    n, mean, variance = 200_000, np.array([0.3, -1.0]), np.array([2.0, 0.5])
    x = mean + rng.normal(size=(n, 2)) * np.sqrt(variance)
    pairs = rng.normal(size=(10, 6))
    for pair, value in zip(pairs, _differ(pairs, mean, variance), strict=True):
        seen = ((x @ pair[:2] >= pair[2]) != (x @ pair[3:5] >= pair[5])).mean()
        assert abs(seen - value) < 5 * math.sqrt(0.25 / n)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 4), st.sampled_from([0.0, 0.1, 1.0, 30.0]))
def test_between_the_exact_cases_it_contains_and_total_variation(seed, d, shift):
    p, q = laws(seed, d, shift)
    found = affine_pair_divergence(p, q, starts=0)
    # A half-space beside one that is everything; a slab.
    assert found.lower >= half_space_divergence(p, q).lower - 2e-5  # likely lines stop there
    slabs = [
        interval_divergence(
            Gaussian(w @ p.mean, w @ p.covariance @ w), Gaussian(w @ q.mean, w @ q.covariance @ w)
        )
        for w in np.random.default_rng(seed).normal(size=(5, d))
    ]
    assert max(slab.lower for slab in slabs) <= found.upper
    if shift == 0:
        pairs = homogeneous_pair_divergence(p.covariance, q.covariance)
        assert found.lower >= pairs.lower - 1e-8
    assert found.upper == pytest.approx(total_variation(p, q).scaled(2.0).upper)
    assert 0 <= found.lower <= found.upper <= 2


def test_the_search_gains_on_what_it_starts_from():
    p, q = laws(0, 2, 0.7)
    found = affine_pair_divergence(p, q)
    contained = max(
        half_space_divergence(p, q).upper,
        homogeneous_pair_divergence(p.covariance, q.covariance).upper,
        *(
            interval_divergence(
                Gaussian(w @ p.mean, w @ p.covariance @ w),
                Gaussian(w @ q.mean, w @ q.covariance @ w),
            ).upper
            for w in (np.array([math.cos(a), math.sin(a)]) for a in np.linspace(0, np.pi, 200))
        ),
    )
    assert found.lower > contained + 0.01
    more = affine_pair_divergence(p, q, starts=16, seed=1)
    assert more.lower == pytest.approx(found.lower, abs=1e-6)
    assert affine_pair_divergence(p, q) == found


@pytest.mark.parametrize("shift", [0.0, 1.0, 1e3])
def test_laws_of_any_two_sizes_in_either_order(shift):
    last = 0.0
    for power in (0, 3, 6, 6.4, 6.6, 12, 77, 155, 200, 300):
        p = Gaussian([0, 0], np.diag([1, 2]) * 10.0**-power)
        q = Gaussian([shift, 0], np.diag([2, 1]) * 10.0**power)
        found, back = (affine_pair_divergence(*pair, starts=1) for pair in ((p, q), (q, p)))
        # What an interval misses where the search ends; a doubt of 1e-15 in a variance costs 1e-7.
        assert found.lower == pytest.approx(back.lower, abs=1e-5)
        narrow, wide = math.sqrt(2) * 10 ** (-power / 2), 10 ** (power / 2)
        z = math.sqrt(2 * math.log(wide / narrow) / (1 - (narrow / wide) ** 2)) if power else 0.0
        slab = (2 * stats.norm.cdf(z) - 1) - (2 * stats.norm.cdf(z * narrow / wide) - 1)
        if shift == 0:  # centred intervals along the second axis are sets of the class
            assert found.upper >= 2 * slab and found.lower >= 2 * slab - 1e-6
        assert last - 1e-5 <= found.lower <= found.upper <= 2 or shift
        last = found.lower
    assert found.lower > 2 - 1e-5


def test_laws_thin_in_one_direction_alone():
    q = Gaussian([0.1, 0], np.diag([2.0, 1.0]))
    for power in range(0, 320, 20):
        p = Gaussian([0, 0], np.diag([1, 10.0**-power]))
        found, back = (affine_pair_divergence(*pair, starts=1) for pair in ((p, q), (q, p)))
        assert found.lower == pytest.approx(back.lower, abs=1e-5)
        assert power == 0 or found.lower > 2 - 1e-5


def test_exact_where_no_set_is_better():
    p, q = laws(1, 3, 1.0)
    moved = Gaussian(q.mean, p.covariance)
    assert affine_pair_divergence(p, moved) == half_space_divergence(p, moved)
    one, other = Gaussian(0.0, 1.0), Gaussian(1.0, 3.0)
    assert affine_pair_divergence(one, other) == interval_divergence(one, other)
    assert affine_pair_divergence(p, p).upper == 0
    flat = Gaussian(np.zeros(3), np.diag([1.0, 1, 0]))
    assert affine_pair_divergence(flat, Gaussian(np.zeros(3), 1.0)).lower == 2
    assert affine_pair_divergence(Gaussian([0.0, 0], 0.0), Gaussian([1.0, 0], 0.0)).lower == 2


def test_bad_input_is_refused():
    p, q = laws(0, 2, 1.0)
    with pytest.raises(TypeError, match="starts must be an integer"):
        affine_pair_divergence(p, q, starts=1.5)
    with pytest.raises(ValueError, match="seed must be at least 0"):
        affine_pair_divergence(p, q, seed=-1)
    for starts in (10**4 + 1, 10**12, 10**400):
        with pytest.raises(ValueError, match="starts is above 10000"):
            affine_pair_divergence(p, q, starts=starts)
    with pytest.raises(TypeError, match=r"q must be a Gaussian\(mean, covariance\)"):
        affine_pair_divergence(p, np.eye(2))
