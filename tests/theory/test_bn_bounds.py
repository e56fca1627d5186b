"""Stated bounds where they were once exceeded, or where a term of theirs is what counts."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from theory.bn_kernel import bn_gram_matrix

BOTH = pytest.mark.parametrize("component", ["magnitude", "direction"])


def on_the_circle(x, metrics, eps=0.0, alpha=1.0):
    """G₀₁ of two points, one per client, at d = 2: over angles, and over ‖v‖² for eps > 0."""
    scales = [np.inf]
    if eps:
        grid = (np.arange(400) + 0.5) / 400
        scales = alpha**2 * stats.chi2.ppf(grid, 2)

    def of_angle(phi):
        w = np.array([math.cos(phi), math.sin(phi)])
        active = [max(0.0, float(w @ p)) for p in x]
        if not all(active):
            return 0.0
        q = [float(w @ s @ w) + (eps / np.asarray(scales) if eps else 0.0) for s in metrics]
        return float(np.mean(active[0] * active[1] / np.sqrt(q[0] * q[1])))

    ends = [-math.pi / 2, *np.repeat([0.0, math.pi / 2], 1), math.pi]
    near = [e + d for e in (0.0, math.pi / 2) for d in (-1e-3, -1e-6, 1e-6, 1e-3)]
    cuts = sorted([*ends, *near])
    parts = [integrate.quad(of_angle, a, b, limit=400)[0] for a, b in itertools.pairwise(cuts)]
    return sum(parts) / (2 * math.pi)


@pytest.mark.parametrize("least", [1e-6, 1e-8, 1e-9])
@pytest.mark.parametrize("tolerance", [1e-4, pytest.param(1e-10, marks=pytest.mark.slow)])
def test_metrics_of_opposite_shape_at_any_ratio(least, tolerance):
    x = np.array([[1.0, 1.0], [1.0, 0.5]])
    metrics = [np.diag([1.0, least]), np.diag([least, 1.0])]
    found = bn_gram_matrix(x, [0, 1], np.stack(metrics), tolerance=tolerance)
    exact = on_the_circle(x, metrics)
    assert abs(found.matrix[0, 1] - exact) <= found.error + 1e-6  # of the angles' quadrature


def test_eps_reaches_the_ratios_of_the_metrics():
    x = np.array([[1.0, 1.0], [1.0, 0.5]])
    metrics = [np.diag([1.0, 1e-6]), np.diag([1e-6, 1.0])]
    found = bn_gram_matrix(x, [0, 1], np.stack(metrics), 1e-4, tolerance=1e-3)
    exact = on_the_circle(x, metrics, 1e-4)
    assert abs(found.matrix[0, 1] - exact) <= found.error + 5e-3 * exact  # 400 values of ‖v‖²
    assert found.error < 0.05 * exact


@pytest.mark.parametrize("eps", [1e-5, 1e-8, 1e-12])
@pytest.mark.parametrize("alpha", [1.0, 5.0])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-6, 1e-10])
def test_the_direction_part_on_a_line_with_small_eps(eps, alpha, tolerance):
    found = bn_gram_matrix([[1.0]], [0], [[1.0]], eps, alpha, "direction", tolerance=tolerance)

    def integrand(tau):
        t = math.exp(tau)
        density = math.exp(0.5 * tau - t / 2) / math.sqrt(2 * math.pi)
        s = alpha**2 * t
        return 0.5 * density * s * eps**2 / (s + eps) ** 3

    peak = math.log(eps / alpha**2)
    ends = [peak - 40, peak - 10, peak - 3, peak, peak + 3, peak + 10, 0.0, 3.0, 5.0]
    pairs = zip(sorted(ends), sorted(ends)[1:], strict=False)
    exact = sum(integrate.quad(integrand, a, b, epsabs=0, limit=200)[0] for a, b in pairs)
    assert abs(found.matrix[0, 0] - exact) <= found.error + 1e-9 * exact


@BOTH
@pytest.mark.parametrize("depth", [10, 30, 40])
def test_a_reflected_metric_is_charged_for_its_eigenbasis(component, depth):
    # H = I - vvᵀ/2 with v = (1, 1, 1, 1) is orthogonal, and HDH is exact for these D.
    h = np.eye(4) - 0.5
    d = np.diag([1.0, 0.5, 0.25, 2.0**-depth])
    rotated = h @ d @ h
    x = np.array([[1.0, 2, 0, 1], [0, 1, -1, 3], [2, 0, 1, 1]])
    plain = bn_gram_matrix(x @ h, [0] * 3, d, component=component, tolerance=1e-12)
    found = bn_gram_matrix(x, [0] * 3, rotated, component=component, tolerance=1e-12)
    gap = float(np.linalg.norm(found.matrix - plain.matrix, 2))
    assert gap <= found.error + plain.error
    # Without the charge for the eigenbasis the bound would be that of the diagonal metric.
    assert found.error > plain.error


@BOTH
@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("seed", range(4))
def test_loose_tolerances_where_quadrature_and_left_out_nodes_dominate(component, tolerance, seed):
    rng = np.random.default_rng(seed)
    d = (12, 5)[seed % 2]
    s = np.where(np.arange(d) < 4, 1.0, 1e-4)
    turns = [np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2)]
    metrics = np.stack([(q * s) @ q.T for q in turns])
    metrics = (metrics + metrics.transpose(0, 2, 1)) / 2
    x, client = rng.standard_normal((6, d)), [0, 1] * 3
    if seed < 2:
        metrics = metrics[0]
    fine = bn_gram_matrix(x, client, metrics, component=component, tolerance=1e-10)
    found = bn_gram_matrix(x, client, metrics, component=component, tolerance=tolerance)
    gap = float(np.linalg.norm(found.matrix - fine.matrix, 2))
    assert gap <= found.error + fine.error
    assert fine.error < 1e-3 * found.error


@BOTH
def test_ratios_near_one_belong_to_a_pair_with_eps(component):
    x, client = np.array([[1.0, 0.2, 0.1], [0.3, 1.0, -0.5]]), [0, 1]
    metrics = np.stack([np.eye(3), 100 * np.eye(3)])
    for eps in (10.0,):
        fine = bn_gram_matrix(x, client, metrics, eps, 1.0, component, tolerance=1e-6)
        found = bn_gram_matrix(x, client, metrics, eps, 1.0, component, tolerance=1e-3)
        gap = float(np.linalg.norm(found.matrix - fine.matrix, 2))
        assert gap <= found.error + fine.error
