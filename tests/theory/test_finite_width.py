import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import theory.descent as descent
import theory.finite_width as fw
from theory.kernel_error import kernels_error
from theory.network import Network, initialise

CLIENTS = ("a", "b", "c")
LABELS = np.array(["b", "a", "c", "a", "b", "c", "a"])  # interleaved on purpose
DIMENSION = 5


def points(n=7, d=DIMENSION, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def covariances(clients=3, d=DIMENSION, seed=1):
    roots = np.random.default_rng(seed).standard_normal((clients, d, d + 3))
    return roots @ roots.transpose(0, 2, 1) / d


def draw(client_specific, *, width=16, alpha=1.7, seed=3, perturbed=True, clients=CLIENTS):
    """A network away from t = 0: every gamma differs, a few are negative."""
    network = initialise(
        width, DIMENSION, clients, alpha=alpha, seed=seed, client_specific=client_specific
    )
    if not perturbed:
        return network
    rng = np.random.default_rng(seed + 100)
    return Network(
        network.v + 0.3 * rng.standard_normal(network.v.shape),
        network.gamma * rng.uniform(-0.3, 2.0, network.gamma.shape),
        network.c,
        network.clients,
        network.alpha,
        client_specific,
    )


def torch_outputs(v, gamma, c, x, column, matrices):
    """Eq. (7) as written, one client at a time: the oracle of every derivative below."""
    out = torch.zeros(len(x), dtype=torch.float64)
    for i, matrix in enumerate(matrices):
        norm = torch.sqrt(torch.einsum("kd,de,ke->k", v, matrix, v))
        mine = gamma[:, i if gamma.shape[1] > 1 else 0]
        hidden = torch.relu(mine * (x @ v.T) / norm)
        out = out + (torch.as_tensor(column) == i) * (hidden @ c) / len(c) ** 0.5
    return out


def oracle(network, x, labels, matrices):
    column = np.array([network.clients.index(name) for name in labels])
    fixed = [torch.as_tensor(a) for a in (network.c, x)]
    stack = torch.as_tensor(matrices)
    start = (torch.as_tensor(network.v), torch.as_tensor(network.gamma))
    return (lambda v, gamma: torch_outputs(v, gamma, *fixed, column, stack)), start


METRICS = {"anisotropic": covariances(), "scale": 0.7}


def dense(metric):
    if isinstance(metric, float):
        return np.broadcast_to(metric * np.eye(DIMENSION), (len(CLIENTS), DIMENSION, DIMENSION))
    return metric


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS.keys())
@pytest.mark.parametrize("client_specific", [False, True])
def test_outputs_jacobian_and_kernels_agree_with_autodiff(client_specific, metric):
    network, x = draw(client_specific), points()
    assert (network.gamma < 0).any()
    function, start = oracle(network, x, LABELS, dense(metric).copy())
    by_v, by_gamma = torch.func.jacrev(function, argnums=(0, 1))(*start)
    by_v, by_gamma = by_v.reshape(len(x), -1).numpy(), by_gamma.reshape(len(x), -1).numpy()

    # 1e-12: a few hundred units in the last place of numbers of order one.
    predicted = fw.predict(network, x, LABELS, metric)
    np.testing.assert_allclose(predicted, function(*start).numpy(), atol=1e-12)
    explicit = fw.jacobian(network, x, LABELS, metric)
    np.testing.assert_allclose(explicit.v, by_v, atol=1e-12)
    np.testing.assert_allclose(explicit.gamma, by_gamma, atol=1e-12)

    kernels = fw.kernels(network, x, LABELS, metric)
    size = np.abs(kernels.V).max()
    np.testing.assert_allclose(kernels.V / network.alpha**2, by_v @ by_v.T, atol=1e-12 * size)
    np.testing.assert_allclose(kernels.G, by_gamma @ by_gamma.T, atol=1e-12)
    np.testing.assert_allclose(
        kernels.Lambda, by_v @ by_v.T + by_gamma @ by_gamma.T, atol=1e-12 * size
    )


def test_jacobian_agrees_with_finite_differences():
    network, x = draw(True, width=4), points()
    metric = METRICS["anisotropic"]
    explicit = fw.jacobian(network, x, LABELS, metric)
    step = 1e-6
    for name, columns in (("v", explicit.v), ("gamma", explicit.gamma)):
        base = getattr(network, name)
        for j in range(base.size):
            moved = []
            for sign in (1, -1):
                changed = base.copy()
                changed.flat[j] += sign * step
                parts = {"v": network.v, "gamma": network.gamma} | {name: changed}
                other = Network(
                    parts["v"], parts["gamma"], network.c, network.clients, network.alpha, True
                )
                moved.append(fw.predict(other, x, LABELS, metric))
            # Central differences: step² and rounding 1e-16/step, both below 1e-8 here.
            np.testing.assert_allclose((moved[0] - moved[1]) / (2 * step), columns[:, j], atol=1e-7)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS.keys())
def test_at_the_start_f_and_f_star_differ_only_by_the_mask(metric):
    x = points()
    one, other = (draw(cs, perturbed=False, width=64) for cs in (False, True))
    np.testing.assert_array_equal(one.v, other.v)
    np.testing.assert_array_equal(
        fw.predict(one, x, LABELS, metric), fw.predict(other, x, LABELS, metric)
    )
    plain, starred = (fw.kernels(net, x, LABELS, metric) for net in (one, other))
    same = LABELS[:, None] == LABELS[None, :]
    np.testing.assert_array_equal(starred.G, plain.G * same)
    np.testing.assert_array_equal(starred.V, plain.V)
    assert np.abs(plain.G[~same]).max() > 0.01


def test_a_scale_and_the_matrices_it_stands_for_agree():
    network, x = draw(True), points()
    short = fw.kernels(network, x, LABELS, 0.7)
    long = fw.kernels(network, x, LABELS, dense(0.7))
    np.testing.assert_allclose(short.V, long.V, atol=1e-12)
    np.testing.assert_allclose(short.G, long.G, atol=1e-14)


def test_one_clients_points_keep_their_own_gamma_and_covariance():
    network, x, metric = draw(True), points(), METRICS["anisotropic"]
    alone = LABELS == "c"
    np.testing.assert_array_equal(
        fw.predict(network, x[alone], LABELS[alone], metric),
        fw.predict(network, x, LABELS, metric)[alone],
    )


def test_scaling_v_changes_nothing_and_alpha_enters_only_before_V():
    x = points()
    one, two = (draw(True, alpha=a, perturbed=False) for a in (1.0, 8.0))
    np.testing.assert_allclose(two.v, 8 * one.v)
    first, second = (fw.kernels(net, x, LABELS, METRICS["anisotropic"]) for net in (one, two))
    np.testing.assert_allclose(first.G, second.G, atol=1e-14)
    np.testing.assert_allclose(first.V, second.V, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(second.Lambda, second.V / 64 + second.G, atol=1e-13)


def limits(x, scale):
    """κ₁/(dλ) and ((x·y)P₀ − κ₁/d)/λ, written out here independently of theory.gram."""
    norms, d = np.linalg.norm(x, axis=1), x.shape[1]
    cosine = np.clip(x @ x.T / np.outer(norms, norms), -1, 1)
    angle = np.arccos(cosine)
    kappa = np.outer(norms, norms) * (np.sin(angle) + (np.pi - angle) * cosine) / (2 * np.pi)
    return kappa / (d * scale), ((x @ x.T) * (np.pi - angle) / (2 * np.pi) - kappa / d) / scale


def test_kernels_converge_to_their_closed_forms_like_one_over_root_m():
    x, labels, scale, draws = points(4), LABELS[:4], 0.7, 300
    targets = limits(x, scale)
    errors = []
    for width in (16, 64, 256):
        nets = (draw(False, width=width, seed=s, perturbed=False, alpha=2.0) for s in range(draws))
        sampled = [fw.kernels(net, x, labels, scale) for net in nets]
        for got, expected in zip(
            ([k.G for k in sampled], [k.V for k in sampled]), targets, strict=True
        ):
            stack = np.array(got)
            z = (stack.mean(0) - expected) / (stack.std(0, ddof=1) / np.sqrt(draws))
            assert np.abs(z).max() < 5
        errors.append([np.sqrt(np.mean((np.array([k.G for k in sampled]) - targets[0]) ** 2))])
    slope = np.polyfit(np.log([16, 64, 256]), np.log(np.ravel(errors)), 1)[0]
    # 300 draws fix each root mean square to about 4 %, the slope to about 0.02.
    assert slope == pytest.approx(-0.5, abs=0.08)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS.keys())
@pytest.mark.parametrize("client_specific", [False, True])
def test_gradient_descent_agrees_with_torch_sgd(client_specific, metric):
    network, x = draw(client_specific), points()
    y = np.random.default_rng(5).standard_normal(len(x))
    function, start = oracle(network, x, LABELS, dense(metric).copy())
    v, gamma = (part.clone().requires_grad_() for part in start)
    optimiser = torch.optim.SGD([v, gamma], lr=0.02)
    losses = []
    for _ in range(6):
        optimiser.zero_grad()
        loss = 0.5 * ((function(v, gamma) - torch.as_tensor(y)) ** 2).sum()
        losses.append(loss.item())
        loss.backward()
        optimiser.step()
    before = network.v.copy(), network.gamma.copy()
    run = descent.gradient_descent(
        network, descent.Problem(x, y, LABELS, metric), step_size=0.02, steps=6
    )
    np.testing.assert_allclose(run.losses[:6], losses, rtol=1e-12)
    np.testing.assert_allclose(run.network.v, v.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(run.network.gamma, gamma.detach().numpy(), atol=1e-12)
    np.testing.assert_array_equal(network.v, before[0])
    np.testing.assert_array_equal(network.gamma, before[1])
    last = fw.predict(run.network, x, LABELS, metric)
    assert run.losses[-1] == pytest.approx(0.5 * ((last - y) ** 2).sum(), rel=1e-12)
    # The stated rounding bound covers the distance between the two evaluations, and is small.
    assert abs(np.sqrt(2 * run.losses[-1]) - np.linalg.norm(last - y)) <= run.rounding[-1] < 1e-11


def federation(seed=0, clients=4, samples=8, d=20):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((clients * samples, d))
    return x, rng.standard_normal(len(x)), np.repeat(np.arange(clients), samples)


def start(width, *, alpha, client_specific=False, d=20, seed=0):
    return initialise(width, d, 4, alpha=alpha, seed=seed, client_specific=client_specific)


def test_the_linearised_prediction_is_approached_as_the_width_grows():
    x, y, labels = federation()
    gaps = []
    for width in (64, 512, 4096):
        network = start(width, alpha=3.0)
        kernel = fw.kernels(network, x, labels, 1.0).Lambda
        eta = 0.5 / np.linalg.eigvalsh(kernel)[-1]
        problem = descent.Problem(x, y, labels, 1.0)
        run = descent.gradient_descent(network, problem, step_size=eta, steps=40)
        residual = fw.predict(network, x, labels, 1.0) - y
        predicted = descent.linearised_losses(kernel, residual, eta, 40)
        assert predicted[0] == pytest.approx(run.losses[0])
        gaps.append(np.abs(np.log(run.losses / predicted)).max())
    assert gaps[0] > 2 * gaps[1] > 4 * gaps[2]
    assert gaps[2] < 0.1


@pytest.mark.parametrize("client_specific", [False, True])
def test_the_largest_eigenvalue_separates_descent_from_growth(client_specific):
    """Below 1/λ_max the loss falls at every step; above 2/λ_max it grows.

    Growth need not last: ‖v‖ grows with it and damps the steps, so that 3/λ_max still ends well
    (as unnormalised networks do below about 4/λ_max), while 10/λ_max never recovers.
    """
    x, y, labels = federation()
    network = start(512, alpha=20.0, client_specific=client_specific)  # dominated by G
    top = np.linalg.eigvalsh(fw.kernels(network, x, labels, 1.0).Lambda)[-1]
    problem = descent.Problem(x, y, labels, 1.0)
    small = descent.gradient_descent(network, problem, step_size=0.99 / top, steps=50)
    assert small.status == "finished" and small.diverged_at is None
    assert (np.diff(small.losses) < 0).all()
    middle = descent.gradient_descent(network, problem, step_size=3.0 / top, steps=3)
    assert (np.diff(middle.losses) > 0).all()
    large = descent.gradient_descent(
        network, problem, step_size=10.0 / top, steps=200, kernels_at=range(0, 201, 4)
    )
    assert large.status == "diverged"
    assert large.diverged_at == len(large.losses)
    assert np.isfinite(large.losses).all() and large.losses[-1] > large.losses[0]
    assert np.isfinite(large.network.v).all()
    assert len(large.spectra.steps) > 0 and (large.spectra.steps < large.diverged_at).all()


def test_an_overflowing_run_reports_divergence_without_warnings(recwarn):
    x, y, labels = federation()
    problem = descent.Problem(x, y, labels, 1.0)
    run = descent.gradient_descent(start(8, alpha=1.0), problem, step_size=1e200, steps=5)
    assert run.status == "diverged" and np.isfinite(run.losses).all()
    # Targets whose square overflows leave no finite loss at all.
    problem = descent.Problem(x, 1e200 * y, labels, 1.0)
    run = descent.gradient_descent(start(8, alpha=1.0), problem, step_size=0.1, steps=5)
    assert run.status == "diverged" and run.diverged_at == 0 and len(run.losses) == 0
    assert not recwarn.list


def test_magnitudes_of_the_trial_that_the_theory_section_quotes():
    """N = 4, M = 8, d = 20, S = I, m = 8,192: G 0.053, V 2.78, Λ 0.76 at α = 2 on one seed."""
    x, _, labels = federation()
    plain = fw.kernels(start(8192, alpha=2.0), x, labels, 1.0)
    starred = fw.kernels(start(8192, alpha=2.0, client_specific=True), x, labels, 1.0)
    low = {name: np.linalg.eigvalsh(getattr(plain, name))[0] for name in ("V", "G", "Lambda")}
    assert 0.03 < low["G"] < 0.08
    assert 1.5 < low["V"] < 4.5
    assert 0.4 < low["Lambda"] < 1.2
    assert low["V"] / 4 + low["G"] <= low["Lambda"] * (1 + 1e-12)
    assert np.linalg.eigvalsh(starred.G)[0] >= low["G"]


@given(st.integers(0, 10**6), st.integers(1, 12), st.floats(0.2, 10))
@settings(max_examples=30, deadline=None)
def test_inequalities_that_hold_for_every_network(seed, width, alpha):
    """Weyl for the sum, pinching for the mask, positive semi-definiteness for all three."""
    x = points(seed=seed)
    plain, starred = (
        fw.kernels(draw(cs, width=width, alpha=alpha, seed=seed, perturbed=False), x, LABELS, 1.3)
        for cs in (False, True)
    )
    # A neuron may lie along a point, V is rounding then: the bound of that is the only scale.
    nets = (draw(cs, width=width, alpha=alpha, seed=seed, perturbed=False) for cs in (False, True))
    error = max(kernels_error(net, x, LABELS, 1.3) for net in nets)
    slack = alpha**2 * (error + 1e-13 * np.abs(plain.Lambda).max())
    low = {k: np.linalg.eigvalsh(getattr(plain, k))[0] for k in ("V", "G", "Lambda")}
    assert min(low.values()) >= -slack
    assert low["V"] / alpha**2 + low["G"] <= low["Lambda"] + slack * (1 + alpha**-2)
    assert np.linalg.eigvalsh(starred.G)[0] >= low["G"] - slack
    assert np.linalg.eigvalsh(starred.G)[-1] <= np.linalg.eigvalsh(plain.G)[-1] + slack


def test_recorded_spectra_progress_and_zero_steps():
    x, y, labels = federation()
    network, problem = start(64, alpha=2.0), descent.Problem(x, y, labels, 1.0)
    seen = []
    run = descent.gradient_descent(
        network, problem, step_size=0.05, steps=20, kernels_at=(10, 0), progress=seen.append
    )
    assert run.spectra.steps.tolist() == [0, 10]
    first = fw.kernels(network, x, labels, 1.0)
    for name in ("V", "G", "Lambda"):
        np.testing.assert_allclose(
            getattr(run.spectra, name)[0], np.linalg.eigvalsh(getattr(first, name))[[0, -1]]
        )
    assert (run.spectra.Lambda[1] != run.spectra.Lambda[0]).all()
    assert seen == sorted(seen) and seen[-1] == 1.0
    np.testing.assert_array_equal(run.squared_residuals, 2 * run.losses)
    none = descent.gradient_descent(network, problem, step_size=0.05, steps=0)
    assert len(none.losses) == 1 and none.status == "finished"
    np.testing.assert_array_equal(none.network.v, network.v)


def test_linearised_losses_by_plain_iteration():
    rng = np.random.default_rng(2)
    root = rng.standard_normal((6, 8))
    kernel, residual = root @ root.T, rng.standard_normal(6)
    for eta in (0.01, 1.0):  # the second diverges
        state, expected = residual.copy(), []
        for _ in range(8):
            expected.append(0.5 * state @ state)
            state = state - eta * kernel @ state
        got = descent.linearised_losses(kernel, residual, eta, 7)
        np.testing.assert_allclose(got, expected, rtol=1e-10)
    far = descent.linearised_losses(kernel, residual, 1.0, 100_000)
    assert np.isinf(far[-1]) and not np.isnan(far).any()
    # e(0) = 0 stays zero, and an exact step annihilates.
    assert not descent.linearised_losses(kernel, np.zeros(6), 1.0, 5).any()
    assert descent.linearised_losses([[2.0]], [3.0], 0.5, 2).tolist() == [4.5, 0.0, 0.0]


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_float32_and_integers_are_converted_exactly(dtype):
    x = (4 * points()).astype(dtype)
    network = draw(True)
    np.testing.assert_array_equal(
        fw.predict(network, x, LABELS, 1), fw.predict(network, x.astype(float), LABELS, 1.0)
    )


def test_smallest_cases_one_client_one_sample_one_neuron_one_feature():
    for width, n, d in ((1, 1, 1), (1, 1, 3), (5, 1, 1), (3, 4, 2)):
        x, labels = points(n, d), np.arange(n)  # one sample per client
        for cs in (False, True):
            network = initialise(width, d, n, alpha=1.0, seed=0, client_specific=cs)
            problem = descent.Problem(x, np.ones(n), labels, 1.0)
            run = descent.gradient_descent(network, problem, step_size=0.1, steps=3)
            assert run.status == "finished" and np.isfinite(run.losses).all()
            if d == 1:  # v/|v| = ±1: no direction to learn
                assert np.abs(fw.kernels(network, x, labels, 1.0).V).max() < 1e-14
    one = [initialise(9, 3, 1, alpha=1.0, seed=4, client_specific=cs) for cs in (False, True)]
    x, zero = points(4, 3), np.zeros(4, int)
    runs = [
        descent.gradient_descent(
            net, descent.Problem(x, np.ones(4), zero, 1.0), step_size=0.1, steps=9
        )
        for net in one
    ]
    np.testing.assert_array_equal(runs[0].losses, runs[1].losses)  # one client: f is f*


BAD_NETWORKS = [
    (dict(width=0), "width must be at least 1"),
    (dict(width=-3), "width must be at least 1"),
    (dict(width=2.5), "width must be an integer"),
    (dict(width=True), "width must be an integer"),
    (dict(dimension=0), "dimension must be at least 1"),
    (dict(alpha=0.0), "alpha"),
    (dict(alpha=-1.0), "alpha"),
    (dict(alpha=float("nan")), "alpha"),
    (dict(seed=-1), "seed must be at least 0"),
    (dict(clients=0), "clients must be at least 1"),
    (dict(clients=()), "at least one client"),
    (dict(clients=("a", "a")), "every client once"),
    (dict(clients="ab"), "sequence of names"),
]


@pytest.mark.parametrize(("change", "message"), BAD_NETWORKS)
def test_bad_networks_are_refused(change, message):
    good = dict(width=4, dimension=3, clients=2, alpha=1.0, seed=0, client_specific=False)
    with pytest.raises((ValueError, TypeError), match=message):
        initialise(**(good | change))


def test_a_gamma_of_the_wrong_shape_is_refused():
    net = draw(True)
    with pytest.raises(ValueError, match="one per client"):
        Network(net.v, net.gamma[:, :2], net.c, net.clients, net.alpha, True)


def with_entry(array, index, value):
    out = np.array(array, dtype=float)
    out[index] = value
    return out


BAD_INPUTS = [
    (dict(x=points()[:, :3]), "3 features"),
    (dict(x=points()[0]), "x"),
    (dict(x=with_entry(points(), (4, 1), np.nan)), "4"),
    (dict(client=LABELS[:3]), "3"),
    (dict(client=np.array(["z", *LABELS[1:]])), "'z' is not one of"),
    (dict(covariances=0.0), "covariances"),
    (dict(covariances=-2.0), "covariances"),
    (dict(covariances=np.nan), "covariances"),
    (dict(covariances=np.eye(DIMENSION)), "one matrix per client"),
    (dict(covariances=with_entry(covariances(), (1, 0, 0), np.inf)), "NaN or infinity"),
    (dict(covariances=with_entry(covariances(), (1, 0, 1), 9.0)), r"\[1\] is not symmetric"),
    (dict(covariances=with_entry(covariances(), (2,), 0.0)), r"\[2\] is not positive definite"),
    (
        dict(covariances=np.ones((3, DIMENSION, DIMENSION))),
        r"\[0\] is not positive definite.*ridge",
    ),
    (dict(covariances=-covariances()), "not positive definite"),
]


@pytest.mark.parametrize(("change", "message"), BAD_INPUTS)
def test_bad_inputs_are_refused(change, message):
    good = dict(x=points(), client=LABELS, covariances=1.0)
    for function in (fw.predict, fw.jacobian, fw.kernels):
        with pytest.raises((ValueError, TypeError), match=message):
            function(draw(True), **(good | change))


BAD_RUNS = [
    (dict(y=np.ones(3)), {}, "one per point"),
    (dict(y=with_entry(np.ones(7), 2, np.nan)), {}, "position 2"),
    (dict(y=np.array(list("abcdefg"))), {}, "real numbers"),
    ({}, dict(steps=-1), "steps must be at least 0"),
    ({}, dict(steps=1.5), "steps must be an integer"),
    ({}, dict(step_size=0.0), "step_size"),
    ({}, dict(step_size=-0.1), "step_size"),
    ({}, dict(step_size=float("inf")), "step_size"),
    ({}, dict(kernels_at=(9,)), "step 9 of only 2"),
    ({}, dict(kernels_at=(-1,)), "kernels_at must be at least 0"),
]


@pytest.mark.parametrize(("task", "change", "message"), BAD_RUNS)
def test_bad_runs_are_refused(task, change, message):
    good = dict(x=points(), y=np.ones(len(LABELS)), client=LABELS, covariances=1.0)
    problem = descent.Problem(**(good | task))
    with pytest.raises((ValueError, TypeError), match=message):
        descent.gradient_descent(draw(True), problem, **(dict(step_size=0.1, steps=2) | change))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((np.ones((2, 3)), np.ones(2), 0.1, 3), "square"),
        ((np.full((2, 2), np.nan), np.ones(2), 0.1, 3), "finite"),
        ((np.array([[1.0, 0.5], [0.0, 1.0]]), np.ones(2), 0.1, 3), "not symmetric"),
        ((np.eye(2), np.ones(3), 0.1, 3), "residual"),
        ((np.eye(2), np.ones(2), -0.1, 3), "step_size"),
        ((np.eye(2), np.ones(2), 0.1, -3), "steps"),
    ],
)
def test_bad_linearised_predictions_are_refused(args, message):
    with pytest.raises(ValueError, match=message):
        descent.linearised_losses(*args)
