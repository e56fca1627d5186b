"""Bounds of rounding in f, f* and Λ, against the same networks at sixty digits."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from theory import _rounding
from theory.descent import Problem, gradient_descent
from theory.finite_width import kernels
from theory.kernel_error import kernels_error
from theory.network import Network, initialise

U = 2.0**-53


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(60):
        yield


def matrix(values):
    return mp.matrix(np.asarray(values, dtype=float).tolist())


class Exact:
    """A network of float64 parameters, its outputs and its Λ without rounding."""

    def __init__(self, network, x, client, covariances):
        m, d = network.v.shape
        self.v, self.x = matrix(network.v), matrix(x)
        place = [network.clients.index(name) for name in client]
        stack = (
            covariances
            if np.ndim(covariances)
            else np.broadcast_to(covariances * np.eye(d), (len(network.clients), d, d))
        )
        self.shape, self.place = (len(x), m, d), place
        self.sv = [[matrix(s) * self.v[k, :].T for k in range(m)] for s in stack]
        self.norm = [
            [mp.sqrt((self.v[k, :] * column[k])[0]) for k in range(m)] for column in self.sv
        ]
        self.gamma = matrix(network.gamma)
        self.c = [mp.mpf(float(sign)) for sign in network.c]
        self.star = network.client_specific

    def neuron(self, p, k):
        """φ-part, coefficient of x_p and coefficient of S v_k in ∂f_p/∂v_k (times √m)."""
        i = self.place[p]
        weight, n = self.gamma[k, i if self.star else 0], self.norm[i][k]
        s = (self.x[p, :] * self.v[k, :].T)[0]
        s = s if s * weight > 0 else mp.mpf(0)
        slope = weight * self.c[k] / n if s else mp.mpf(0)
        return s / n, slope, slope * s / n**2, weight * self.c[k] * s / n

    def residual(self, y):
        n, m, _ = self.shape
        out = [sum(self.neuron(p, k)[3] for k in range(m)) / mp.sqrt(m) for p in range(n)]
        return mp.sqrt(sum((f - mp.mpf(float(t))) ** 2 for f, t in zip(out, y, strict=True)))

    def kernel(self):
        n, m, d = self.shape
        out = mp.zeros(n)
        parts = [[self.neuron(p, k) for k in range(m)] for p in range(n)]
        rows = [
            [
                [b * self.x[p, a] - e * self.sv[self.place[p]][k][a] for a in range(d)]
                for k, (_, b, e, _) in enumerate(parts[p])
            ]
            for p in range(n)
        ]
        for p, q, k in itertools.product(range(n), range(n), range(m)):
            out[p, q] += sum(a * b for a, b in zip(rows[p][k], rows[q][k], strict=True)) / m
            if not self.star or self.place[p] == self.place[q]:
                out[p, q] += parts[p][k][0] * parts[q][k][0] / m
        return out


def distance(computed, exact):
    """‖Δ‖₂ to two digits, and never above it by rounding of note."""
    difference = exact - matrix(computed)
    return float(mp.sqrt(max(mp.eigsy(difference.T * difference, eigvals_only=True))))


def conditioned(condition, d, seed):
    """A covariance of that condition, and the direction of its smallest eigenvalue."""
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
    s = (basis * np.geomspace(1 / condition, 1.0, d)) @ basis.T
    return (s + s.T) / 2, basis[:, 0]


def net(v, clients=2, *, star=True, seed=0):
    rng = np.random.default_rng(seed)
    v = np.asarray(v, dtype=float)
    gamma = rng.uniform(-0.4, 2.0, (len(v), clients if star else 1))
    return Network(v, gamma, rng.choice([-1.0, 1.0], len(v)), tuple(range(clients)), 1.3, star)


def generic(seed, d=3, m=6, n=4):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, d)), rng.standard_normal((n, d)), np.arange(n) % 2


def ill(condition, seed=0, m=6):
    """Neurons near the direction that S shrinks most, where vᵀSv cancels."""
    d = 2
    pairs = [conditioned(condition, d, seed + k) for k in range(2)]
    rng = np.random.default_rng(seed)
    v = [pairs[k % 2][1] + condition**-0.5 * rng.standard_normal(d) for k in range(m)]
    return np.array(v), rng.standard_normal((4, d)), np.stack([s for s, _ in pairs])


def cases():
    for seed, star in itertools.product(range(3), (False, True)):
        v, x, client = generic(seed)
        yield f"scale {seed} {star}", net(v, star=star), x, client, 0.7
        s = np.stack([conditioned(10.0, 3, k)[0] for k in range(2)])
        yield f"general {seed} {star}", net(v, star=star), x, client, s
        v, x, client = generic(seed, d=1)
        yield f"one dimension {seed} {star}", net(v, star=star), x, client, 1.0
        for condition in (1e6, 1e10, 1e13):
            v, x, s = ill(condition, seed)
            yield f"condition {condition:g} {seed} {star}", net(v, star=star), x, client[:4], s


CASES = {name: case for name, *case in cases()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_bounds_cover_what_sixty_digits_find(case):
    network, x, client, s = case
    exact = Exact(network, x, client, s)
    y = np.random.default_rng(1).standard_normal(len(x))
    run = gradient_descent(network, Problem(x, y, client, s), step_size=0.1, steps=0)
    error = abs(mp.sqrt(mp.mpf(2 * float(run.losses[0]))) - exact.residual(y))
    assert error <= run.rounding[0]
    computed = kernels(network, x, client, s).Lambda
    bound = kernels_error(network, x, client, s)
    assert distance(computed, exact.kernel()) <= bound
    # The eigenvalues that a run records are within their own bounds of the exact ones.
    values = mp.eigsy(exact.kernel(), eigvals_only=True)
    found = run.spectra
    for column, value in enumerate((values[0], values[len(x) - 1])):
        assert abs(mp.mpf(float(found.Lambda[0, column])) - value) <= found.rounding[0, column]


def test_the_bounds_are_no_more_than_the_roundings_that_happen():
    v, x, client = generic(0)
    network = net(v)
    y = np.ones(len(x))
    run = gradient_descent(network, Problem(x, y, client, 1.0), step_size=0.1, steps=0)
    size = np.trace(kernels(network, x, client, 1.0).Lambda)
    # (m + 19d + 50)u twice over, each times the absolute sums, here a few times the trace.
    assert kernels_error(network, x, client, 1.0) < 2000 * U * size
    assert run.rounding[0] < 200 * U * np.sqrt(2 * run.losses[0] + y @ y)


def test_the_sum_over_neurons_is_charged_a_rounding_for_each():
    """Such sums rarely err as much as they may: the charge is held against its formula."""
    m, d = 4000, 2
    x, client = np.random.default_rng(0).standard_normal((5, d)), np.zeros(5, int)
    start = initialise(m, d, 1, alpha=1.0, seed=0, client_specific=False)
    product = x @ start.v.T
    weight = (product > 0) * (start.gamma[:, 0] / np.linalg.norm(start.v, axis=1)) ** 2
    # The sums of absolute values: each part of V and of G, for a point with itself.
    lengths = (x**2).sum(axis=1)
    radial = np.maximum(product, 0) ** 2 / (start.v**2).sum(axis=1)
    sums = lengths * weight.mean(axis=1) + 2 * radial.mean(axis=1)
    assert (m + d) * U * sums.sum() < kernels_error(start, x, client, 1.0)


def one_neuron(seed, star=False):
    v, x, _ = generic(seed, d=2, m=1, n=1)
    return net(v, clients=1, star=star, seed=seed), x, np.zeros(1, int)


def test_the_recorded_rounding_is_needed_where_the_eigensolver_has_none():
    """n = 1: λ = Λ exactly, so that the error of Λ itself must be in the bound."""
    wrong = 0
    for seed in range(20):
        network, x, client = one_neuron(seed)
        if (x @ network.v.T * network.gamma).item() <= 0:
            continue
        problem = Problem(x, np.ones(1), client, 0.7)
        found = gradient_descent(network, problem, step_size=0.1, steps=0).spectra
        error = abs(mp.mpf(float(found.Lambda[0, 0])) - Exact(network, x, client, 0.7).kernel()[0])
        assert error <= found.rounding[0].min()
        wrong += error > 0
    assert wrong > 5


EDGES = [
    (x, v)
    for x in itertools.permutations((1e16, 1.0, -1e16))
    for v in ((1.0, 1.0, 1.0), (-1.0, -1.0, -1.0))
]


@pytest.mark.parametrize("star", [False, True])
def test_neurons_on_the_edge_of_their_half_space_count_in_full(star):
    flipped = 0
    for x, v in EDGES:
        # The second point has every neuron well inside, so that entries couple.
        points, client = np.array([x, (1.0, 2.0, 3.0)]), np.array([0, 1])
        network = Network(
            np.array([v, (0.5, 1.0, 0.25)]),
            np.ones((2, 2 if star else 1)),
            np.ones(2),
            (0, 1),
            1.0,
            star,
        )
        exact = Exact(network, points, client, 1.0)
        off = distance(kernels(network, points, client, 1.0).Lambda, exact.kernel())
        assert off <= kernels_error(network, points, client, 1.0)
        sides = [(points @ network.v.T)[0, 0] > 0, exact.neuron(0, 0)[1] != 0]
        flipped += sides[0] != sides[1]
    # Some order of summation loses the 1 and with it the side.
    assert flipped > 0


def test_where_a_norm_has_no_correct_digit_there_is_no_bound():
    v, x, s = ill(2e14)
    v = np.concatenate([[conditioned(2e14, 2, 0)[1]], v])
    network, client = net(v), np.arange(4) % 2
    assert kernels_error(network, x, client, s) == math.inf
    y = np.ones(4)
    run = gradient_descent(network, Problem(x, y, client, s), step_size=1e-9, steps=1)
    assert np.isinf(run.rounding[0]) and np.isinf(run.spectra.rounding).all()
    assert np.isfinite(run.spectra.Lambda).all()


def test_the_relative_error_of_a_norm_is_the_cancellation():
    for condition, seed in itertools.product((1.0, 1e4, 1e8, 1e12), range(20)):
        s, direction = conditioned(condition, 3, seed)
        v = direction + condition**-0.5 * np.random.default_rng(seed).standard_normal(3)
        computed = v @ (s @ v)
        true = mp.sqrt((matrix(v).T * matrix(s) * matrix(v))[0])
        size = np.abs(v) @ np.abs(s) @ np.abs(v)
        (bound,) = _rounding.norm_error(np.array([size]), np.array([computed]), 3)
        assert abs(mp.mpf(float(np.sqrt(computed))) / true - 1) <= float(bound)
        assert bound < 12 * 3 * U * condition or condition == 1.0


def test_every_step_has_its_own_rounding():
    """A large first step makes the outputs, and what their sums lose, grow after t = 0."""
    rng = np.random.default_rng(0)
    x, y, client = rng.standard_normal((8, 5)), 40.0 * np.ones(8), np.repeat([0, 1], 4)
    start = initialise(64, 5, 2, alpha=1.0, seed=0, client_specific=False)
    problem = Problem(x, y, client, 1.0)
    top = np.linalg.eigvalsh(kernels(start, x, client, 1.0).Lambda)[-1]
    run = gradient_descent(start, problem, step_size=1.5 / top, steps=5)
    assert run.rounding.shape == run.losses.shape
    again = gradient_descent(run.network, problem, step_size=0.1, steps=0)
    assert run.rounding[-1] == pytest.approx(again.rounding[0], rel=1e-9)
    assert run.rounding[1:].max() > 1.5 * run.rounding[0]


@pytest.mark.parametrize(("m", "d", "n"), [(1, 1, 1), (50, 7, 3), (400, 20, 9)])
def test_the_rounding_of_an_evaluation_is_its_formula(m, d, n):
    rng = np.random.default_rng(0)
    x, y, client = rng.standard_normal((n, d)), rng.standard_normal(n), np.zeros(n, int)
    start = initialise(m, d, 1, alpha=1.0, seed=0, client_specific=False)
    run = gradient_descent(start, Problem(x, y, client, 0.7), step_size=0.1, steps=0)
    length = np.linalg.norm(start.v, axis=1)
    reach = (np.abs(start.gamma[:, 0]) / np.sqrt(0.7 * m)).sum()
    assert reach == pytest.approx((start.gamma[:, 0] * length / length).sum() / np.sqrt(0.7 * m))
    each = (m + 1.5 * d + 8) * U * (reach * np.linalg.norm(x, axis=1) + np.abs(y))
    least = np.linalg.norm(each) + n * U * np.sqrt(2 * run.losses[0])
    assert least <= run.rounding[0] <= 1.1 * least + 3 * U * np.sqrt(2 * run.losses[0])
