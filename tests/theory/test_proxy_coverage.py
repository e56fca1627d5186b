"""The proxy A-distance over many draws where d_H is known: coverage, bias, p-values."""

import math

import numpy as np
import pytest
from scipy import stats

from theory import Gaussian, half_space_divergence, held_out_divergence, proxy_a_distance
from theory._domain_classifier import CAPACITIES, Capacity

DELTA = 0.1
SIZE, DIMENSION = 30, 5


def same_covariance(rng):
    """Laws (mean, covariance) of A and B, and d_H = 2(2Φ(Δ/2) − 1) at Mahalanobis distance Δ."""
    root = rng.normal(size=(DIMENSION, DIMENSION))
    covariance = root @ root.T + 0.1 * np.eye(DIMENSION)
    shift = 1.2 * np.linalg.cholesky(covariance)[:, 0]
    zero = np.zeros(DIMENSION)
    return (shift, covariance), (zero, covariance), 2 * (2 * stats.norm.cdf(0.6) - 1)


def same_mean(rng):
    """N(0, I) and N(0, diag(9, 1/4, 1, 1, 1)): d_H is that of the direction with the widest ratio.

    Along w the laws are N(0, 1) and N(0, σ²), σ in [1/2, 3]; 2 sup_c |Φ(c) − Φ(c/σ)| grows with
    |log σ|.
    """
    spread = np.diag([9.0, 0.25, 1.0, 1.0, 1.0])
    c = np.linspace(0, 6, 60001)
    d = 2 * np.abs(stats.norm.cdf(c) - stats.norm.cdf(c / 3)).max()
    zero = np.zeros(DIMENSION)
    return (zero, np.eye(DIMENSION)), (zero, spread), d


def same_law(rng):
    """One law for both: d_H = 0."""
    law = np.zeros(DIMENSION), np.eye(DIMENSION)
    return law, law, 0.0


@pytest.mark.parametrize("laws", [same_law, same_covariance, same_mean])
def test_the_truth_of_the_simulations_is_that_of_the_closed_forms(laws):
    p, q, d_h = laws(np.random.default_rng(0))
    found = half_space_divergence(Gaussian(*p), Gaussian(*q))
    assert found.lower - 1e-6 <= d_h <= found.upper + 1e-6  # the grid of thresholds


def half_space_rate(law, w, c):
    """P(w·x > c) of a Gaussian; 0 or 1 where w = 0."""
    deviation = math.sqrt(w @ law[1] @ w)
    if deviation == 0:
        return float(c < 0)
    return stats.norm.sf((c - w @ law[0]) / deviation)


def simulate(laws, draws, seed):
    """Estimates of many samples, the true d(h) of each, and d_H."""
    rng, out = np.random.default_rng(seed), []
    for draw in range(draws):
        p, q, d_h = laws(rng)
        a, b = (rng.multivariate_normal(*law, size=SIZE) for law in (p, q))
        found = proxy_a_distance(a, b, folds=2, seed=draw, delta=DELTA)
        w, c = found.classifier.half_space
        true = 2 * (half_space_rate(p, w, c) - half_space_rate(q, w, c))
        assert abs(true) <= d_h + 1e-6  # the grid of thresholds in `same_mean`
        out.append((found, true, d_h))
    return out


def wrong(events, rate):
    """Whether events that should happen at most at a rate happen too often, level 1e-4."""
    events = list(events)
    return sum(events) > stats.binom.isf(1e-4, len(events), rate)


def check(found):
    assert not wrong((e.lower > d_h for e, _, d_h in found), DELTA)
    assert not wrong((not e.interval[0] <= d <= e.interval[1] for e, d, _ in found), DELTA)
    errors = np.array([e.value - d for e, d, _ in found])
    # The value is an unbiased estimate of d(h): within four standard errors.
    assert abs(errors.mean()) < 4 * errors.std() / math.sqrt(len(found))


def check_null(found):
    for level in (0.01, 0.05, 0.2, 0.5):
        assert not wrong((e.p_value <= level for e, _, _ in found), level)
    values = np.array([e.value for e, _, _ in found])
    assert 0.3 < (values < 0).mean() < 0.6  # raw: nothing flipped, nothing clipped


@pytest.fixture
def short_path(monkeypatch):
    """Two strengths instead of seven: most of a small fit's cost is scikit-learn's own."""
    linear = CAPACITIES["linear"]
    monkeypatch.setitem(CAPACITIES, "linear", Capacity(linear.make, (1e-2, 1.0), linear.weighs))


def test_the_intervals_cover_in_500_draws(short_path):
    null = simulate(same_law, 260, seed=3)
    check_null(null)
    check(null + simulate(same_covariance, 120, seed=4) + simulate(same_mean, 120, seed=5))


@pytest.mark.slow
@pytest.mark.parametrize("laws", [same_law, same_covariance, same_mean])
def test_the_intervals_cover_with_all_strengths(laws):
    found = simulate(laws, 1500, seed=6)
    check(found)
    if laws is same_law:
        check_null(found)


def test_the_check_of_coverage_can_fail(short_path):
    # The same intervals from the fitted points, as if nothing had been chosen on them.
    missed = []
    for draw in range(60):
        a, b = np.random.default_rng(draw).normal(size=(2, SIZE, 20))
        h = proxy_a_distance(a, b, folds=2, seed=draw, held_out=0.1).classifier
        missed.append(held_out_divergence(h(a), h(b), delta=DELTA).lower > 0)
    assert wrong(missed, DELTA)


def test_a_large_sample_comes_close_to_d_h():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 4000, 10))
    found = proxy_a_distance(a + 0.5 / math.sqrt(10), b)
    exact = 2 * (2 * stats.norm.cdf(0.25) - 1)
    # 2000 held out: sd of the value 2√(2·0.24/2000) = 0.03; four of them.
    assert abs(found.value - exact) < 0.125 and found.lower <= exact
    assert found.p_value < 1e-6 and found.n == (2000, 2000)
