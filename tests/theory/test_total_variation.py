"""Total variation between Gaussians, and d_HΔH on the line, against numerical integrals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from theory import Gaussian, interval_divergence, total_variation


def density(x: np.ndarray, law: Gaussian) -> np.ndarray:
    z = x - law.mean
    exponent = np.einsum("...i,ij,...j", z, np.linalg.inv(law.covariance), z) / 2
    return np.exp(-exponent) / np.sqrt(np.linalg.det(2 * np.pi * law.covariance))


def on_grid(p: Gaussian, q: Gaussian, half: float, points: int) -> float:
    """½ ∫ |p − q| over the square of side 2·half."""
    axis = np.linspace(-half, half, points)
    x = np.stack(np.meshgrid(axis, axis), axis=-1)
    cell = (axis[1] - axis[0]) ** 2
    return float(np.abs(density(x, p) - density(x, q)).sum() * cell / 2)


@pytest.mark.parametrize(("m", "s", "t"), [(1, 1, 2), (0.1, 3, 1), (4, 1, 1), (0, 1, 0.5)])
def test_on_the_line_against_an_integral(m, s, t):
    p, q = Gaussian(0.0, s**2), Gaussian(m, t**2)

    def gap(x):
        return abs(
            math.exp(-((x / s) ** 2) / 2) / s - math.exp(-(((x - m) / t) ** 2) / 2) / t
        ) / math.sqrt(2 * math.pi)

    whole = sum(integrate.quad(gap, a, a + 1, limit=200, epsabs=1e-11)[0] for a in range(-40, 40))
    found = total_variation(p, q)
    assert found.midpoint == pytest.approx(whole / 2, abs=1e-9)
    assert found.width < 1e-12
    assert interval_divergence(p, q).midpoint == pytest.approx(whole, abs=2e-9)


@pytest.mark.parametrize("seed", range(5))
def test_in_the_plane_against_a_grid(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(2, 2, 4))
    s, t = root @ root.transpose(0, 2, 1) / 4 + 0.2 * np.eye(2)
    p, q = Gaussian([0.0, 0], s), Gaussian(rng.normal(size=2), t)
    found = total_variation(p, q)
    measured = on_grid(p, q, 12.0, 1200)  # 0.02 apart, kinks at the border of {p > q} alone
    assert found.lower - 1e-4 <= measured <= found.upper + 1e-4
    assert found.lower > 0.6 * measured and found.upper < 1.7 * measured


def test_a_ball_between_proportional_laws():
    s = np.array([[2.0, 0.5], [0.5, 1.0]])
    p, q = Gaussian([1.0, 1], s), Gaussian([1.0, 1], 2.5 * s)
    found = total_variation(p, q)
    assert found.width < 1e-12
    assert found.midpoint == pytest.approx(on_grid(p, q, 16.0, 1600), abs=1e-4)
    # In two dimensions |x|² is exponential: P(|x|² ≤ r) = 1 − exp(−r/2).
    r = 2 * math.log(2.5) / (1 - 1 / 2.5)
    assert found.midpoint == pytest.approx(math.exp(-r / 5) - math.exp(-r / 2), abs=1e-12)
    back = total_variation(q, p)
    assert back.midpoint == pytest.approx(found.midpoint, abs=1e-12)


def test_sampled_in_many_dimensions():
    rng = np.random.default_rng(2)
    d, n = 6, 100_000
    s, t = np.diag(rng.uniform(0.5, 2, d)), np.diag(rng.uniform(0.5, 2, d))
    p, q = Gaussian(np.zeros(d), s), Gaussian(rng.normal(size=d) / 2, t)
    x, y = (rng.multivariate_normal(g.mean, g.covariance, n) for g in (p, q))
    sign = [density(z, p) > density(z, q) for z in (x, y)]
    share = sign[0].mean() - sign[1].mean()
    found = total_variation(p, q)
    slack = 5 * math.sqrt(2 / (4 * n))
    assert found.lower - slack < share < found.upper + slack


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 6), st.sampled_from([0.0, 1e-9, 0.3, 3.0, 1e9]))
def test_ends_are_ordered_and_a_projection_shows_no_more(seed, d, shift):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(2, d, d + 1))
    s, t = root @ root.transpose(0, 2, 1)
    p, q = Gaussian(np.zeros(d), s), Gaussian(shift * rng.normal(size=d), t)
    found = total_variation(p, q)
    assert 0 <= found.lower <= found.upper <= 1
    w = rng.normal(size=(d, d))[: d - 1]
    less = total_variation(Gaussian(w @ p.mean, w @ s @ w.T), Gaussian(w @ q.mean, w @ t @ w.T))
    assert less.lower <= found.upper + 1e-12


def test_nearly_the_same():
    s = np.diag([1.0, 2.0, 3.0])
    p, q = Gaussian(np.zeros(3), s), Gaussian(np.zeros(3), s * (1 + np.diag([0, 0, 1e-10])))
    found = total_variation(p, q)
    # By scaling one coordinate: 1e-10/2 · 2φ(1) = 2.4e-11.
    assert found.lower <= 2.42e-11 <= found.upper < 1e-5
    moved = total_variation(p, Gaussian([0, 0, 1e-10], s))
    assert moved.contains(special.erf(1e-10 / math.sqrt(3) / math.sqrt(8)))


def test_intervals_need_the_line():
    law = Gaussian([0.0, 0], 1.0)
    for other in (law, Gaussian([1.0, 0], 1.0)):
        with pytest.raises(ValueError, match="on the line, not of dimension 2"):
            interval_divergence(law, other)
    same = interval_divergence(Gaussian(0.0, 1.0), Gaussian(0.0, 1.0))
    assert same.lower == same.upper == 0
