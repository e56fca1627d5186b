"""Random routes to the BN kernels: Monte Carlo, and the network at a large width."""

import numpy as np
import torch

from theory.finite_width import kernels
from theory.network import initialise

_CHUNK = 1 << 14


def by_row(client, covariances, d):
    """S of every point's client; `covariances` is a number, a matrix, a stack, or a mapping."""
    names = list(dict.fromkeys(np.asarray(client).tolist()))
    if isinstance(covariances, dict):
        return {name: np.asarray(covariances[name], dtype=float) for name in names}
    stack = np.asarray(covariances, dtype=float)
    if stack.ndim == 0:
        stack = stack * np.eye(d)
    stack = np.broadcast_to(stack, (len(names), d, d))
    return dict(zip(names, stack, strict=True))


def monte_carlo(x, client, covariances, eps, alpha, component, samples, seed):
    """Mean and standard error of every entry, (n, n) each, from the definitions.

    q is small near an eigenvector of a small eigenvalue: V has a heavy tail there, and plain
    samples would miss it. Half the directions are therefore u ∝ S^(-1/2)z for the S of the clients
    in turn (angular central Gaussian, of density |S|^(1/2) (uᵀSu)^(-d/2) against the uniform one),
    the others uniform; each sample is weighted by 1/(mixture density) <= 2. The length of v is that
    of N(0, α²I). The error is the spread of 64 independent means, so that a rare large sample
    widens it.
    """
    x, labels = np.asarray(x, dtype=float), np.asarray(client).tolist()
    n, d = x.shape
    metrics = by_row(client, covariances, d)
    roots = {name: np.linalg.cholesky(metric) for name, metric in metrics.items()}
    rng = np.random.default_rng(seed)
    batch = -(-samples // 64)
    means = []
    for _ in range(64):
        total = np.zeros((n, n))
        for start in range(0, batch, _CHUNK):
            v, weight = draw(rng, min(_CHUNK, batch - start), roots, alpha)
            total += integrand(v, weight, x, labels, metrics, eps, component)
        means.append(total / batch)
    return np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / 8


def draw(rng, count, roots, alpha):
    """Samples (count, d) and their weights."""
    d = len(next(iter(roots.values())))
    z = rng.standard_normal((count, d))
    half = count // 2
    turn = np.arange(half) % len(roots)
    for k, root in enumerate(roots.values()):
        mine = np.flatnonzero(turn == k)
        z[mine] = np.linalg.solve(root.T, z[mine].T).T
    u = z / np.linalg.norm(z, axis=1, keepdims=True)
    density = np.full(count, (count - half) / count)
    for k, root in enumerate(roots.values()):
        q = np.square(u @ root).sum(axis=1)
        logarithm = np.log(np.diagonal(root)).sum() - d / 2 * np.log(q)
        density += (turn == k).sum() / count * np.exp(logarithm)
    length = alpha * np.sqrt(rng.chisquare(d, count))
    return u * length[:, None], 1 / density


def integrand(v, weight, x, labels, metrics, eps, component):
    """Sum over the samples of the definition's integrand, all pairs of points."""
    product = v @ x.T
    active = product > 0
    if component == "magnitude":
        values = np.empty_like(product)
        for p, name in enumerate(labels):
            q = (v @ metrics[name] * v).sum(axis=1) + eps
            values[:, p] = np.sqrt(weight / q) * np.maximum(product[:, p], 0)
        return values.T @ values
    total = np.zeros((len(labels), len(labels)))
    rows = []
    squares = weight * (v * v).sum(axis=1)
    for p, name in enumerate(labels):
        image = v @ metrics[name]
        q = (image * v).sum(axis=1) + eps
        reduced = x[p] - image * (product[:, p] / q)[:, None]
        rows.append(reduced * (active[:, p] * np.sqrt(squares / np.sqrt(q * q)))[:, None])
    for p, first in enumerate(rows):
        for q, second in enumerate(rows[: p + 1]):
            total[p, q] = total[q, p] = (first * second).sum()
    return total


def wide_network(x, client, covariances, width, seed, *, parts, alpha=1.0):
    """G and V of `parts` networks of that width at their initialisation, (parts, n, n) each."""
    labels = np.asarray(client).tolist()
    metrics = by_row(client, covariances, np.shape(x)[1])
    stack = np.stack(list(metrics.values()))
    found = []
    for part in range(parts):
        network = initialise(
            width,
            np.shape(x)[1],
            tuple(metrics),
            alpha=alpha,
            seed=seed + part,
            client_specific=False,
        )
        found.append(kernels(network, x, labels, stack))
    return np.stack([k.G for k in found]), np.stack([k.V for k in found])


def differentiated_network(x, client, covariances, width, seed, *, parts):
    """G and V from torch's derivatives of the network written out by its definition, α = 1."""
    labels = np.asarray(client).tolist()
    metrics = by_row(client, covariances, np.shape(x)[1])
    points = torch.as_tensor(np.asarray(x))
    each = torch.as_tensor(np.stack([metrics[name] for name in labels]))

    def outputs(v, gamma):
        size = torch.sqrt(torch.einsum("kd,nde,ke->nk", v, each, v))
        return (torch.relu(points @ v.T) * gamma / size).sum(dim=1) / width**0.5

    found = []
    for part in range(parts):
        rng = np.random.default_rng([seed, part])
        v = torch.as_tensor(rng.standard_normal((width, points.shape[1])))
        by_v, by_gamma = torch.func.jacrev(outputs, argnums=(0, 1))(v, v.norm(dim=1))
        by_v = by_v.reshape(len(points), -1)
        found.append(((by_gamma @ by_gamma.T).numpy(), (by_v @ by_v.T).numpy()))
    return np.stack([g for g, _ in found]), np.stack([v for _, v in found])
