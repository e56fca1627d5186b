"""Drift of the kernels: against gradient descent's own kernels, its limits, and its −1/2 slope."""

import numpy as np
import pytest

from theory import (
    Kernels,
    Problem,
    direction_gram_matrix,
    gradient_descent,
    initialise,
    kernel_drift,
    kernel_limits,
    kernels,
    normalised_gram_matrix,
)

BOTH = pytest.mark.parametrize("star", [False, True])


def problem(n=8, d=5, covariances=1.7, seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal((n, d))
    return Problem(x, random.choice([-1.0, 1.0], n), np.arange(n) % 2, covariances)


def network(star, *, width=64, d=5, alpha=3.0, seed=1):
    return initialise(width, d, 2, alpha=alpha, seed=seed, client_specific=star)


def norm(matrix):
    return np.linalg.norm(matrix, 2)


@BOTH
def test_limits_are_the_closed_forms_masked_for_client_specific_bn(star):
    given = problem()
    limit = kernel_limits(network(star), given.x, given.client, 1.7)
    g = normalised_gram_matrix(given.x, 1.7)
    if star:
        g = g * (given.client[:, None] == given.client)
    v = direction_gram_matrix(given.x, 1.7)
    np.testing.assert_array_equal(limit.G, g)
    np.testing.assert_array_equal(limit.V, v)
    np.testing.assert_allclose(limit.Lambda, v / 9 + g, rtol=1e-15)


@BOTH
@pytest.mark.parametrize("matrices", [False, True])
def test_distances_are_those_of_the_kernels_that_gradient_descent_passes(star, matrices):
    random = np.random.default_rng(4)
    covariances = np.eye(5) + 0.1 * np.diag(random.random(5)) if matrices else 1.7
    given = problem(covariances=np.stack([covariances] * 2) if matrices else covariances)
    net, eta = network(star), 0.02
    limits = None
    if matrices:
        limits = Kernels(*(random.standard_normal((3, 8, 8)) + 5 * np.eye(8)))
        limits = Kernels(*((k + k.T) / 2 for k in (limits.V, limits.G, limits.Lambda)))
    found = kernel_drift(net, given, limits, step_size=eta, steps=12, kernels_at=(12, 5))
    limit = limits or kernel_limits(net, given.x, given.client, 1.7)
    assert found.steps.tolist() == [0, 5, 12] and found.status == "finished"
    start = kernels(net, given.x, given.client, given.covariances)
    for row, steps in enumerate(found.steps):
        plain = gradient_descent(net, given, step_size=eta, steps=int(steps))
        now = kernels(plain.network, given.x, given.client, given.covariances)
        for column, part in enumerate(("V", "G", "Lambda")):
            here = getattr(now, part)
            far, moved = norm(here - getattr(limit, part)), norm(here - getattr(start, part))
            assert found.from_limit[row, column] == pytest.approx(far, rel=1e-10)
            assert found.from_start[row, column] == pytest.approx(moved, rel=1e-8, abs=1e-14)
            assert found.limit_norms[column] == pytest.approx(norm(getattr(limit, part)), rel=1e-12)
        smallest = np.linalg.eigvalsh(now.Lambda)[0]
        assert found.smallest_eigenvalue[row] == pytest.approx(smallest, rel=1e-9)
    assert (found.from_start[0] == 0).all() and (found.from_start[2] > 0).all()


def test_the_start_nears_the_limit_as_the_root_of_the_width():
    given, widths = problem(), (64, 256, 1024, 4096)
    mean = []
    for width in widths:
        found = [
            kernel_drift(network(False, width=width, seed=s), given, step_size=1, steps=0)
            for s in range(24)
        ]
        mean.append(np.log([one.from_limit[0] for one in found]).mean(axis=0))
    slopes = np.polyfit(np.log(widths), mean, 1)[0]
    # log norms spread by about 0.35: over four widths and 24 seeds a slope is known to 0.023.
    assert np.abs(slopes + 0.5).max() < 0.1


def test_divergence_is_told_and_leaves_what_was_recorded():
    given = problem()
    found = kernel_drift(network(True), given, step_size=1e3, steps=50, kernels_at=range(51))
    assert found.status == "diverged" and found.diverged_at is not None
    assert found.steps.max() < found.diverged_at <= 50
    for table in (found.from_limit, found.from_start, found.smallest_eigenvalue):
        assert np.isfinite(table).all() and len(table) == len(found.steps)


@pytest.mark.parametrize("star", [False, True])
def test_one_point_one_neuron_and_extreme_alphas(star):
    for alpha in (1e-3, 1e3):
        given = problem(n=1, d=1)
        net = initialise(1, 1, 2, alpha=alpha, seed=0, client_specific=star)
        found = kernel_drift(net, given, step_size=1e-9, steps=2, kernels_at=(2,))
        assert np.isfinite(found.from_limit).all() and found.from_limit.shape == (2, 3)


def test_what_has_no_closed_form_needs_limits_that_fit():
    given = problem(covariances=np.stack([np.eye(5), 2 * np.eye(5)]))
    with pytest.raises(ValueError, match="pass limits=Kernels"):
        kernel_drift(network(False), given, step_size=0.1, steps=1)
    with pytest.raises(ValueError, match="closed form for S_i = λI only"):
        kernel_limits(network(False), given.x, given.client, given.covariances)
    with pytest.raises(TypeError, match="Kernels"):
        kernel_drift(network(False), given, np.eye(8), step_size=0.1, steps=1)
    small = Kernels(np.eye(7), np.eye(7), np.eye(7))
    with pytest.raises(ValueError, match=r"limits.V has shape \(7, 7\); \(8, 8\) is needed"):
        kernel_drift(network(False), given, small, step_size=0.1, steps=1)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"steps": -1}, ValueError, "steps must be at least 0"),
        ({"step_size": 0}, ValueError, "step_size must be positive"),
        ({"kernels_at": (3,)}, ValueError, "asks for step 3 of only 2"),
        ({"kernels_at": 3}, TypeError, "sequence of steps"),
    ],
)
def test_bad_numbers_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        kernel_drift(network(False), problem(), **{"step_size": 0.1, "steps": 2, **changes})
