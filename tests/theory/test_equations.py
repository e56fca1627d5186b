"""Equations (5) to (9) of the paper as written, against the networks of the package."""

import numpy as np
import pytest
import torch

import theory

LABELS = list("ababab")


def setting(d=4, width=12, star=True, seed=0):
    """A network and six centred points of two clients with their own covariances."""
    rng = np.random.default_rng(seed)
    x = theory.centre(rng.standard_normal((6, d)) * np.linspace(1, 2, 6)[:, None], LABELS)
    covariances = np.array([np.cov(rng.standard_normal((d, 40)), bias=True) for _ in "ab"])
    net = theory.initialise(width, d, list("ab"), alpha=1.5, seed=seed, client_specific=star)
    return net, x, covariances


def test_equation_5_is_the_network_whose_gamma_undoes_the_norm():
    net, x, covariances = setting(star=False)
    shared = covariances[[0, 0]]
    gamma = np.sqrt(np.einsum("kd,de,ke->k", net.v, covariances[0], net.v))[:, None]
    plain = theory.Network(net.v, gamma, net.c, net.clients, net.alpha, False)
    by_hand = np.maximum(x @ net.v.T, 0) @ net.c / np.sqrt(net.width)
    found = theory.predict(plain, x, LABELS, shared)
    np.testing.assert_allclose(found, by_hand, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("star", [False, True])
def test_equation_6_is_batch_normalization_by_the_statistics_of_centred_points(star):
    rng = np.random.default_rng(1)
    d, samples = 4, 30
    roots = rng.standard_normal((2, d, d))
    x = np.concatenate([rng.standard_normal((samples, d)) @ root for root in roots])
    labels = np.repeat(["a", "b"], samples)
    x = theory.centre(x, labels)
    own = theory.client_covariances(x, labels)
    net = theory.initialise(9, d, list("ab"), alpha=2.0, seed=3, client_specific=star)
    clients = [labels == name for name in "ab"] if star else [labels != ""]
    # Aggregated BN over all points of equally large clients has the mean of the covariances.
    used = np.array([own["a"], own["b"]] if star else [(own["a"] + own["b"]) / 2] * 2)
    expected = np.empty(len(x))
    for rows in clients:
        # eps = 0 is refused in training; variances are about 10. The variance is the biased one.
        layer = torch.nn.BatchNorm1d(9, eps=1e-13, affine=False, dtype=torch.float64)
        hidden = layer(torch.as_tensor(x[rows] @ net.v.T)).numpy()
        expected[rows] = np.maximum(net.gamma[:, 0] * hidden, 0) @ net.c / 3
    found = theory.predict(net, x, labels, used)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def test_equation_7_client_by_client():
    net, x, covariances = setting()
    gamma = net.gamma * np.array([1.0, -0.5])  # clients differ after training
    trained = theory.Network(net.v, gamma, net.c, net.clients, net.alpha, True)
    expected = np.zeros(6)
    for i, name in enumerate(net.clients):
        for k in range(net.width):
            norm = np.sqrt(net.v[k] @ covariances[i] @ net.v[k])
            inner = np.maximum(gamma[k, i] * (x @ net.v[k]) / norm, 0)
            expected += net.c[k] * inner * (np.array(LABELS) == name) / np.sqrt(net.width)
    found = theory.predict(trained, x, LABELS, covariances)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_equation_8_is_how_networks_start():
    alpha, width, d = 1.7, 40_000, 3
    nets = [
        theory.initialise(width, d, list("ab"), alpha=alpha, seed=5, client_specific=star)
        for star in (False, True)
    ]
    for net in nets:
        np.testing.assert_array_equal(np.unique(net.c), [-1.0, 1.0])
        assert abs(net.c.mean()) < 5 / np.sqrt(width)
        # Variances of v_kl v_kl' are α⁴ and 2α⁴: five standard errors.
        assert np.abs(net.v.T @ net.v / width / alpha**2 - np.eye(d)).max() < 5 * np.sqrt(2 / width)
        norms = np.linalg.norm(net.v, axis=1)[:, None] / alpha
        np.testing.assert_allclose(net.gamma, np.broadcast_to(norms, net.gamma.shape), rtol=1e-14)
    np.testing.assert_array_equal(nets[0].v, nets[1].v)
    assert nets[0].gamma.shape == (width, 1) and nets[1].gamma.shape == (width, 2)


@pytest.mark.parametrize("star", [False, True])
def test_equation_9_is_the_flow_that_gradient_descent_follows(star):
    net, x, covariances = setting(star=star)
    if not star:
        covariances = covariances[[0, 0]]
    y = np.linspace(-1, 1, 6)
    before = theory.predict(net, x, LABELS, covariances)
    slope = -theory.kernels(net, x, LABELS, covariances).Lambda @ (before - y)
    gaps = []
    for eta in (1e-3, 1e-4):
        problem = theory.Problem(x, y, LABELS, covariances)
        run = theory.gradient_descent(net, problem, step_size=eta, steps=1)
        moved = theory.predict(run.network, x, LABELS, covariances) - before
        gaps.append(np.abs(moved / eta - slope).max())
    # The first order is exact, so what is left falls as η.
    assert gaps[1] < 0.2 * gaps[0] < 0.2 * np.abs(slope).max()
