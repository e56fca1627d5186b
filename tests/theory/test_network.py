"""Networks and their inputs: refused in a sentence, or computed within the range of float64."""

import itertools

import numpy as np
import pytest
import torch

from theory import Network, finite_width, initialise, kernels_error

X = np.random.default_rng(0).standard_normal((5, 3))
LABELS = [0, 1, 0, 1, 0]
GOOD = dict(width=4, dimension=3, clients=2, alpha=1.0, seed=0, client_specific=False)


def network(**change):
    """A network of width 4, or one with other parameters."""
    start = initialise(**GOOD)
    names = ("v", "gamma", "c", "clients", "alpha", "client_specific")
    return Network(**({name: getattr(start, name) for name in names} | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(clients={"a", "b"}), "sequence of names in the order"),
        (dict(clients=frozenset("ab")), "sequence of names in the order"),
        (dict(clients=itertools.cycle("ab")), "clients are more than"),
        (dict(clients=10**12), "clients are more than"),
        (dict(clients=torch.tensor(2)), "sequence of names"),
        (dict(clients=["a", None]), "name 1 in clients is missing"),
        (dict(clients=[float("nan"), "a"]), "name 0 in clients is missing"),
        (dict(clients=[["a"], ["b"]]), "name 0 in clients .* cannot be hashed"),
        (dict(clients=[torch.tensor(1), torch.tensor(1)]), "every client once"),
        (dict(client_specific="no"), "client_specific must be True or False"),
        (dict(client_specific=1), "client_specific must be True or False"),
        (dict(client_specific=None), "client_specific must be True or False"),
        (dict(width=10**13), "smaller width"),
        (dict(width=10**400), "smaller width"),
        (dict(alpha=1e308), "alpha reaches 1e.308"),
        (dict(alpha=1e-200), "alpha reaches 1e-200"),
        (dict(alpha=1 + 0j), "alpha must be one real number"),
    ],
)
def test_networks_that_cannot_be_drawn_are_refused(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        initialise(**(GOOD | change))


def test_names_of_clients_in_any_order_that_is_one():
    for names in (["a", "b"], np.array(["a", "b"]), {"a": 0, "b": 1}, {"a": 0, "b": 1}.keys()):
        assert initialise(**(GOOD | dict(clients=names))).clients == ("a", "b")
    assert initialise(**(GOOD | dict(clients=(n for n in "ab")))).clients == ("a", "b")
    assert initialise(**(GOOD | dict(clients=[torch.tensor(3), 4]))).clients == (3, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(gamma=np.ones(4)), r"gamma has shape \(4,\)"),
        (dict(v=np.ones(3)), r"v has shape \(3,\)"),
        (dict(v=np.ones((0, 3))), "none empty"),
        (dict(v=np.ones((5, 3))), "v, gamma and c have 5, 4 and 4 rows"),
        (dict(c=np.ones(2)), "v, gamma and c have 4, 4 and 2 rows"),
        (dict(c=np.full(4, 2.0)), "signs 1 and -1"),
        (dict(v=[[1.0, 2.0, 3.0]] * 4), "v must be a NumPy array of float64, not list"),
        (dict(v=np.ones((4, 3), dtype=complex)), "not complex128"),
        (dict(v=np.ones((4, 3), dtype=object)), "not object"),
        (dict(gamma=torch.ones(4, 1)), "not Tensor"),
        (dict(alpha=0.0), "alpha must be positive"),
        (dict(client_specific="no"), "client_specific must be True or False"),
        (dict(clients={"a", "b"}), "sequence of names"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        network(**change)


def everything(net, x, client, covariances):
    """All that a network gives for its inputs."""
    outputs = [finite_width.predict(net, x, client, covariances)]
    by = finite_width.jacobian(net, x, client, covariances)
    kernels = finite_width.kernels(net, x, client, covariances)
    outputs += [by.v, by.gamma, kernels.V, kernels.G, kernels.Lambda]
    return [*outputs, np.array(kernels_error(net, x, client, covariances))]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(covariances=1e-320), "covariances reaches 1e-320"),
        (dict(covariances=1e200), r"covariances reaches 1e\+200"),
        (dict(covariances=np.stack([np.eye(3) * 1.7e308] * 2)), r"covariances\[0\] reaches"),
        (dict(covariances=np.stack([np.eye(3), np.eye(3) * 1e-300])), r"covariances\[1\] reaches"),
        (dict(covariances=np.stack([np.eye(3)] * 2) * (1 + 1j)), "covariances must hold real"),
        (dict(covariances=np.stack([np.eye(3)] * 2).astype(object)), "covariances must hold real"),
        (dict(covariances=np.complex64(1)), "one real number"),
        (dict(covariances=[[[1.0]], [[1.0, 2.0]]]), "covariances is not a rectangular"),
        (dict(covariances="eye"), "one real number"),
        (dict(covariances={0: np.eye(3)}), "one real number"),
        (dict(x=X * 1e200), "the length of x reaches"),
        (dict(x=X * 1e-200), "the length of x reaches"),
        (dict(net=network(v=np.ones((4, 3)) * 1e-200)), "the length of v reaches"),
        (dict(net=network(v=np.eye(4, 3))), "row 3 of v is zero"),
        (dict(net=network(v=np.full((4, 3), np.nan))), "v of the network holds NaN"),
        (dict(net=network(gamma=np.full((4, 1), np.inf))), "gamma of the network holds NaN"),
        (dict(net=network(gamma=np.full((4, 1), 1e200))), "γ/‖v‖_S reaches"),
        (dict(net=network(alpha=1e170)), "α∂f/∂v reaches"),
        (dict(x=X * 1e100, covariances=1e-100), "reaches"),
    ],
)
def test_inputs_without_meaning_in_float64_are_refused(change, message):
    good = dict(net=network(), x=X, client=LABELS, covariances=1.0)
    for function in (finite_width.predict, finite_width.jacobian, finite_width.kernels):
        with pytest.raises((ValueError, TypeError), match=message):
            function(*(good | change).values())


@pytest.mark.parametrize("seed", range(200))
def test_what_is_accepted_stays_within_the_range_of_float64(seed):
    rng = np.random.default_rng(seed)
    powers = rng.uniform(-1, 1, 4) * rng.choice([20, 40, 60, 150])
    x, alpha, scale, gamma = (10.0**powers).tolist()
    metric = [scale, scale * np.stack([np.eye(3), np.diag([1.0, 1e-3, 1e-6])])][seed % 2]
    try:
        net = network(v=alpha * network().v, alpha=alpha, gamma=gamma * network().gamma)
        with np.errstate(all="raise", under="ignore"):
            results = everything(net, x * X, LABELS, metric)
    except ValueError as error:
        assert str(error).endswith("moderate sizes.") or "rescale" in str(error)
        return
    assert all(np.isfinite(result).all() for result in results)


@pytest.mark.parametrize("power", [-40, 40])
def test_moderate_powers_of_ten_are_accepted_and_right(power):
    net, factor = network(), 2.0 ** (3 * power)
    plain = everything(net, X, LABELS, 1.0)
    assert len(plain) == len(everything(net, X * factor, LABELS, factor**2))
    # f and J_γ depend on x/√λ alone.
    for i in (0, 2):
        np.testing.assert_array_equal(everything(net, X * factor, LABELS, factor**2)[i], plain[i])
