"""What SCAFFOLD and FedDC remember: of which tensors, and how it sums up."""

import pytest
import torch
from plain import Spy
from toy import Branches, bn_net, client, plain_net

from empirical.algorithm import Algorithm, Local
from empirical.algorithms.feddc import feddc
from empirical.algorithms.scaffold import scaffold
from empirical.bn_policy import AGGREGATED, BN_POLICIES
from empirical.federate import federate
from empirical.models import MODELS, build_model
from empirical.schedule import Schedule, participants
from empirical.weights import Role, Weights, label

UNEQUAL = [client("a", 9), client("b", 17), client("c", 30), client("d", 5)]
SCHEDULE = Schedule(rounds=6, batch_size=8, lr=0.1, participation=0.5, local_epochs=2, seed=1)
NO_BN = pytest.mark.filterwarnings("ignore:the model has no batch-norm layer")
BUILD = {
    "scaffold I": lambda: scaffold(option=1),
    "scaffold II": lambda: scaffold(server_lr=0.7),
    "feddc": lambda: feddc(0.3),
}


@pytest.fixture(params=BUILD)
def algorithm(request: pytest.FixtureRequest) -> Algorithm:
    return BUILD[request.param]()


@pytest.mark.parametrize(
    ("policy", "weights"), [*((p, "size") for p in BN_POLICIES), ("aggregated", "uniform")]
)
def test_the_servers_memory_is_the_mean_of_the_clients_after_every_round(
    algorithm, policy, weights
) -> None:
    schedule = Schedule(rounds=6, batch_size=8, lr=0.1, participation=0.5, weights=weights, seed=1)
    spy = Spy(algorithm)
    run = federate(spy.algorithm, BN_POLICIES[policy], bn_net(), UNEQUAL, schedule)
    assert list(run)
    taken: set[str] = set()
    purposes = {"control", "drift"} if algorithm.name == "feddc" else {"control"}
    assert len(spy.rounds) == 6
    for round_, (kept, server) in enumerate(spy.rounds, 1):
        taken |= set(participants(list("abcd"), schedule, round_))
        assert kept.keys() == taken  # who has not taken part has nothing, that is 0
        assert server.keys() == purposes
        for purpose in purposes:
            for key, value in server[purpose].items():
                mean = torch.zeros_like(value)
                for name, memory in kept.items():
                    mean += run.state.p[name] * memory[purpose][key]
                # Rounding of sums of numbers of order one.
                torch.testing.assert_close(value, mean, rtol=1e-12, atol=1e-14)
            assert max(value.abs().max() for value in server[purpose].values()) > 1e-3
    assert taken == set("abcd")
    assert spy.nothing_moved()  # no live tensor is kept


@pytest.mark.parametrize("policy", ["aggregated", "client_specific"])
def test_the_order_of_the_clients_changes_no_bit(algorithm, policy) -> None:
    rows, spies, states = [], [], []
    for clients in (UNEQUAL, UNEQUAL[::-1], UNEQUAL[2:] + UNEQUAL[:2]):
        spy = Spy(algorithm)
        run = federate(spy.algorithm, BN_POLICIES[policy], bn_net(), clients, SCHEDULE)
        rows.append(list(run))
        spies.append(spy.rounds[-1])
        states.append(run.state.server)
    assert rows[0] == rows[1] == rows[2]
    for state, (kept, server) in zip(states, spies, strict=True):
        assert all(torch.equal(state[key], states[0][key]) for key in state)
        for memory, first in [(server, spies[0][1]), *((kept[n], spies[0][0][n]) for n in kept)]:
            for purpose, weights in memory.items():
                assert all(torch.equal(weights[key], first[purpose][key]) for key in weights)


def roles_of(names, roles) -> set[Role]:
    return {roles[name] for name in names}


SHARED_ROLES = {
    "aggregated": {Role.WEIGHT, Role.AFFINE},
    "client_statistics": {Role.WEIGHT, Role.AFFINE},
    "client_specific": {Role.WEIGHT},
    "client_affine": {Role.WEIGHT},
}


def everything_kept(algorithm: Algorithm, local: Local) -> list[Weights]:
    sent, kept = algorithm.report(local)
    return [*sent.values(), *kept.values(), *local.scratch.values()]


@pytest.mark.parametrize("policy", BN_POLICIES)
@pytest.mark.parametrize("model", MODELS)
def test_no_statistic_counter_or_private_parameter_enters_the_hooks(
    algorithm, policy, model
) -> None:
    with torch.device("meta"):
        net = MODELS[model](10)  # shapes alone: digits_cnn has 14 million parameters
    roles = label(net)
    live = dict(net.named_parameters())
    learned = {n: live[n] for n in BN_POLICIES[policy].divide(roles, frozenset()).learned}
    for weight in live.values():
        weight.grad = torch.zeros_like(weight)
    local = Local(
        client="a",
        learned=learned,
        received={name: weight.detach().clone() for name, weight in learned.items()},
        memory={},
        broadcast={},
        lr=0.1,
        trained=live,
        full_gradient=lambda: {n: torch.zeros_like(w) for n, w in learned.items()},
    )
    algorithm.correct_gradient(local)
    local.steps = 1
    found = everything_kept(algorithm, local)
    assert len(found) >= 4
    for weights in found:
        assert weights.keys() == learned.keys()
        assert roles_of(weights, roles) == SHARED_ROLES[policy]
    assert {Role.STATISTIC, Role.COUNTER} <= set(roles.values())


@pytest.mark.parametrize("policy", ["aggregated", "client_specific"])
def test_training_the_compact_net_keeps_controls_of_shared_parameters_alone(
    algorithm, policy
) -> None:
    spy = Spy(algorithm)
    clients = [client("a", 6, test=2, size=28), client("b", 4, test=2, size=28)]
    net = build_model("compact_cnn", seed=0, classes=2)
    schedule = Schedule(rounds=2, batch_size=3, lr=0.01)
    assert list(federate(spy.algorithm, BN_POLICIES[policy], net, clients, schedule))
    roles = label(net)
    for kept, server in spy.rounds:
        for memory in (*kept.values(), server):
            for weights in memory.values():
                assert roles_of(weights, roles) == SHARED_ROLES[policy]
                wanted = {n for n, role in roles.items() if role in SHARED_ROLES[policy]}
                assert weights.keys() == wanted


@NO_BN
def test_a_parameter_that_a_batch_does_not_use_has_a_gradient_of_zero(algorithm) -> None:
    states = [
        (federate(algorithm, AGGREGATED, Branches(zero=zero), UNEQUAL, SCHEDULE))
        for zero in (False, True)
    ]
    for run in states:
        assert list(run)
    start = Branches(zero=True).state_dict()
    for key, value in states[0].state.server.items():
        assert torch.equal(value, states[1].state.server[key])
        assert not torch.equal(value, start[key])


@NO_BN
def test_parameters_that_are_not_trained_stay(algorithm) -> None:
    net = plain_net()
    net[1].weight.requires_grad_(False)
    run = federate(algorithm, AGGREGATED, net, UNEQUAL, SCHEDULE)
    assert list(run)
    moved = {key: (run.state.server[key] - w).abs().max() for key, w in net.state_dict().items()}
    assert moved.pop("1.weight") < 1e-15  # a mean with p that sum to one up to rounding
    assert min(moved.values()) > 1e-3
