"""What must hold for every registered algorithm, and where one reduces to another."""

import inspect
import warnings
from dataclasses import replace

import pytest
import torch
from torch.nn import functional
from toy import Branches, bn_net, client, plain_net

from empirical.algorithm import Algorithm, mean_of_weights
from empirical.algorithms import ALGORITHMS, build_algorithm
from empirical.batches import steps
from empirical.bn_policy import AGGREGATED, BN_POLICIES, CLIENT_SPECIFIC
from empirical.federate import Run, federate
from empirical.schedule import Schedule
from empirical.weights import Weights

UNEQUAL = [client("a", 9), client("b", 17), client("c", 30), client("d", 5)]
SCHEDULE = Schedule(rounds=3, batch_size=8, lr=0.1, seed=3)
NO_BN = pytest.mark.filterwarnings("ignore:the model has no batch-norm layer")

policies = pytest.mark.parametrize("policy", BN_POLICIES.values(), ids=lambda p: p.name)
algorithms = pytest.mark.parametrize("name", ALGORITHMS)


def trained(algorithm: Algorithm, policy, model=None, clients=UNEQUAL, schedule=SCHEDULE) -> Run:
    run = federate(algorithm, policy, model or bn_net(), clients, schedule)
    assert list(run)
    assert run.state.status == "complete"
    return run


def same(one: Weights, two: Weights) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def assert_close(one: Weights, two: Weights, tolerance: float) -> None:
    """Counters are not compared: they are the client's own affair."""
    assert one.keys() == two.keys()
    for name, value in one.items():
        if value.is_floating_point():
            torch.testing.assert_close(value, two[name], rtol=tolerance, atol=tolerance)


@policies
def test_fedprox_without_penalty_is_fedavg(policy) -> None:
    schedule = replace(SCHEDULE, participation=0.5, local_epochs=2)
    runs = [
        trained(algorithm, policy, schedule=schedule)
        for algorithm in (build_algorithm("fedprox", mu=0.0), build_algorithm("fedavg"))
    ]
    one, two = (run.state for run in runs)
    assert same(one.server, two.server)
    assert all(same(one.clients[name], two.clients[name]) for name in "abcd")


@policies
@pytest.mark.parametrize("weights", ["size", "uniform"])
def test_fednova_with_equal_steps_is_fedavg(policy, weights) -> None:
    # 17 to 24 images are three batches of 8 (17: 8 and 9 are two, so 18 to 24).
    clients = [client("a", 18), client("b", 24), client("c", 20), client("d", 19)]
    schedule = replace(SCHEDULE, participation=0.5, local_epochs=2, weights=weights)
    nova, average = (
        trained(build_algorithm(name), policy, clients=clients, schedule=schedule).state
        for name in ("fednova", "fedavg")
    )
    # Float64's rounding of K · (w - y)/K over three rounds.
    assert_close(nova.server, average.server, 1e-13)
    for name in "abcd":
        assert_close(nova.clients[name], average.clients[name], 1e-13)


def averages(name: str) -> bool:
    algorithm = build_algorithm(name)
    return algorithm.aggregate is mean_of_weights and algorithm.batches_a_step == 1


@policies
@pytest.mark.parametrize("name", [*(n for n in ALGORITHMS if averages(n)), "fednova"])
def test_on_identical_data_and_full_batches_a_mean_serves_every_client_its_own(
    name: str, policy
) -> None:
    # Every client takes the same steps (up to the order of a sum within its batch), so that the
    # mean over clients is each client's own and no policy matters. Left out: a server that does
    # more than average, which moves γ and β where they are shared, and steps of several batches,
    # into which each client deals its images in an order of its own.
    one = client("a", 12)
    twins = [type(one)(twin, one.train, one.test) for twin in "abc"]
    schedule = replace(SCHEDULE, batch_size=12)
    found = trained(build_algorithm(name), policy, clients=twins, schedule=schedule).state
    wanted = trained(build_algorithm(name), AGGREGATED, clients=twins, schedule=schedule).state
    for who in ("server", *"abc") if name != "local" else "abc":
        assert_close(found.weights(who), wanted.weights("a"), 1e-12)


@policies
@pytest.mark.parametrize("name", ["fedavg", "fednova", "scaffold"])
def test_one_client_is_plain_sgd(name: str, policy) -> None:
    alone = UNEQUAL[1]
    state = trained(build_algorithm(name), policy, clients=[alone]).state
    model = bn_net().train()
    x, y = alone.train.inputs().double(), alone.train.labels
    for round_ in (1, 2, 3):
        for (rows,) in steps("b", 17, SCHEDULE, round_):
            model.zero_grad()
            functional.cross_entropy(model(x[rows]), y[rows]).backward()
            with torch.no_grad():
                for weight in model.parameters():
                    assert weight.grad is not None
                    weight -= SCHEDULE.lr * weight.grad
    assert_close(state.weights("b"), dict(model.state_dict()), 1e-14 if name == "fedavg" else 1e-12)
    assert state.weights("b")["1.num_batches_tracked"] == 6


@algorithms
@policies
def test_the_order_of_the_clients_changes_no_bit(name: str, policy) -> None:
    schedule = replace(SCHEDULE, participation=0.5, measure_every=3)
    runs = [
        federate(build_algorithm(name), policy, bn_net(), clients, schedule)
        for clients in (UNEQUAL, [UNEQUAL[k] for k in (2, 3, 1, 0)])
    ]
    one, two = (list(run) for run in runs)
    assert one == two
    for who in ("server", *"abcd"):
        assert same(runs[0].state.weights(who), runs[1].state.weights(who))


@NO_BN
@pytest.mark.parametrize(
    ("name", "settings"),
    [(name, {}) for name in ALGORITHMS] + [("fednova", {"momentum": 0.9})],
)
def test_a_parameter_that_a_batch_does_not_use_has_a_gradient_of_zero(name, settings) -> None:
    algorithm = build_algorithm(name, **settings)
    schedule = replace(SCHEDULE, local_epochs=2)
    one, two = (
        trained(algorithm, AGGREGATED, Branches(zero=zero), schedule=schedule).state
        for zero in (False, True)
    )
    for who in ("server", *"abcd"):
        assert same(one.weights(who), two.weights(who))


@NO_BN
@algorithms
def test_a_parameter_that_is_not_trained_stays(name: str) -> None:
    net = plain_net()
    net.get_parameter("1.weight").requires_grad_(False)
    state = trained(build_algorithm(name), CLIENT_SPECIFIC, net).state
    start, end = net.state_dict(), state.weights("a")
    # Up to the rounding of a mean of equal numbers, and of w - d with d = 0.
    assert {n for n in start if torch.allclose(start[n], end[n], 1e-13)} == {"1.weight"}


def absurd_steps() -> list:
    """Each algorithm with a step size of its clients, and of its server, that must diverge."""
    cases = []
    for name, factory in ALGORITHMS.items():
        algorithm = build_algorithm(name)
        lr = None if algorithm.local_lr is None else 1e30
        cases.append(pytest.param(replace(algorithm, local_lr=lr), 1e30, id=f"{name}, clients"))
        if "server_lr" in inspect.signature(factory).parameters:
            wild = build_algorithm(name, server_lr=3e38)
            cases.append(pytest.param(wild, 0.1, id=f"{name}, server"))
    return cases


@NO_BN
@pytest.mark.parametrize(("algorithm", "lr"), absurd_steps())
@pytest.mark.parametrize("net", [bn_net, plain_net])
def test_a_diverged_run_says_so_with_its_round_and_yields_no_nan(net, algorithm, lr) -> None:
    schedule = Schedule(rounds=9, batch_size=4, lr=lr)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = federate(algorithm, AGGREGATED, net().float(), UNEQUAL, schedule)
        rows = list(run)
    assert run.state.status == "diverged"
    assert 1 <= run.state.round < 9
    assert all(torch.isfinite(torch.tensor(row.value)) for row in rows)
    assert {row.round for row in rows} == set(range(run.state.round))
