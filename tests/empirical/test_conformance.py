"""Every registered algorithm under every policy in every situation: registering is being tested."""

import contextlib
import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn
from toy import bn_net, client, plain_net, residual_net

from empirical.algorithm import Algorithm, Backward, Local
from empirical.algorithms import ALGORITHMS, build_algorithm
from empirical.batches import batch_sizes
from empirical.bn_policy import BN_POLICIES
from empirical.data.client import Client
from empirical.federate import Run, federate
from empirical.schedule import Schedule, participants
from empirical.weights import Role, label


@dataclass(frozen=True)
class Situation:
    sizes: tuple[int, ...]
    net: Callable[[], nn.Module] = bn_net
    participation: float = 1.0


SITUATIONS = {
    "equal sizes": Situation((16, 16, 16)),
    "unequal sizes": Situation((5, 17, 40)),
    "partial participation": Situation((5, 17, 40, 16), participation=0.5),
    "one client": Situation((20,)),
    "a client of one batch": Situation((3, 24)),
    "a net without batch norm": Situation((5, 17, 40), net=plain_net),
    "a ResNet-like block": Situation((5, 17, 40), net=residual_net),
}


@pytest.fixture(params=SITUATIONS.values(), ids=list(SITUATIONS))
def situation(request: pytest.FixtureRequest) -> Situation:
    return request.param


@pytest.fixture(params=BN_POLICIES)
def policy(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=ALGORITHMS)
def algorithm(request: pytest.FixtureRequest) -> Algorithm:
    return build_algorithm(request.param)


# What an algorithm does otherwise than by default, where that is another path through the loop.
OPTIONS = {
    "fednova with momentum and mu": lambda: build_algorithm("fednova", momentum=0.9, mu=0.1),
    "scaffold, option 1": lambda: build_algorithm("scaffold", option=1),
    "perfedavg of order 2": lambda: build_algorithm("perfedavg", order=2),
}


def counting(algorithm: Algorithm, passes: Counter[str]) -> Algorithm:
    """Does the same, and counts the batches that each client's steps are taken from."""

    def gradient(local: Local, batches: Sequence[Backward]) -> None:
        def once(batch: Backward) -> None:
            passes[local.client] += 1
            batch()

        algorithm.gradient(local, [functools.partial(once, batch) for batch in batches])

    return replace(algorithm, gradient=gradient)


def begin(
    algorithm: Algorithm, policy: str, situation: Situation
) -> tuple[Run, list[Client], Schedule]:
    clients = [client(f"site {k}", size) for k, size in enumerate(situation.sizes)]
    schedule = Schedule(
        rounds=2, local_epochs=2, batch_size=8, lr=0.05, participation=situation.participation
    )
    no_bn = situation.net is plain_net
    with pytest.warns(UserWarning, match="no batch-norm") if no_bn else contextlib.nullcontext():
        run = federate(algorithm, BN_POLICIES[policy], situation.net(), clients, schedule)
    return run, clients, schedule


def test_conformance(algorithm: Algorithm, policy: str, situation: Situation) -> None:
    conforms(algorithm, policy, situation)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("among", ["aggregated", "client_specific"])
def test_conformance_of_options(option: str, among: str, situation: Situation) -> None:
    conforms(OPTIONS[option](), among, situation)


def conforms(algorithm: Algorithm, policy: str, situation: Situation) -> None:
    passes: Counter[str] = Counter()
    run, clients, schedule = begin(counting(algorithm, passes), policy, situation)
    rows = list(run)
    state = run.state
    model = situation.net()
    roles = label(model)

    assert (state.status, state.round) == ("complete", 2)
    assert all(math.isfinite(row.value) for row in rows)
    assert math.fsum(state.p.values()) == pytest.approx(1, rel=1e-15)
    names = {c.name for c in clients}
    for round_ in range(3):
        for metric in ("loss", "accuracy"):
            for split in ("train", "test"):
                seen = [
                    r.client
                    for r in rows
                    if (r.round, r.split, r.metric) == (round_, split, metric)
                ]
                assert names <= set(seen) <= names | {"server"}
                assert len(seen) == len(set(seen))
    sampled = {k: participants(sorted(names), schedule, k) for k in (1, 2)}
    for k in (1, 2):
        losses = [r.client for r in rows if (r.round, r.metric) == (k, "batch_loss")]
        assert losses == sampled[k]

    assert state.server.keys() == roles.keys() == model.state_dict().keys()
    for c in clients:
        served = state.weights(c.name)
        assert served.keys() == roles.keys()
        rounds = sum(c.name in who for who in sampled.values())
        each = algorithm.batches_a_step
        # Two epochs a round; Per-FedAvg of order 2 passes its third batch twice.
        steps = rounds * 2 * math.ceil(len(batch_sizes(len(c.train), 8)) / each)
        assert passes[c.name] == steps * (4 if each == 3 else each)
        for name, role in roles.items():
            if role is Role.COUNTER:  # no pass beside the steps' own is counted
                assert served[name].item() == passes[c.name]
            if name.endswith("running_var"):
                assert (served[name] > 0).all()
            assert torch.isfinite(served[name]).all()


def test_conformance_repeats_bit_for_bit(algorithm: Algorithm, policy: str) -> None:
    unequal = SITUATIONS["partial participation"]
    first, second = (begin(algorithm, policy, unequal)[0] for _ in range(2))
    assert list(first) == list(second)
    for name in ("server", *first.state.clients):
        one, two = first.state.weights(name), second.state.weights(name)
        assert all(torch.equal(one[key], two[key]) for key in one)


@pytest.mark.parametrize("net", [bn_net, residual_net])
def test_every_policy_differs_from_the_others_where_there_is_batch_norm(net) -> None:
    situation = Situation((5, 17, 40), net=net)
    found = [
        [
            row.value
            for row in begin(build_algorithm("fedavg"), policy, situation)[0]
            if row.round == 2
        ]
        for policy in BN_POLICIES
    ]
    assert all(found[i] != found[j] for i in range(4) for j in range(i))


def test_without_batch_norm_all_policies_agree() -> None:
    situation = SITUATIONS["a net without batch norm"]
    found = [
        list(begin(build_algorithm("fedprox"), policy, situation)[0]) for policy in BN_POLICIES
    ]
    assert all(rows == found[0] for rows in found)


def test_measuring_does_not_depend_on_the_size_of_its_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    situation = SITUATIONS["unequal sizes"]
    expected = list(begin(build_algorithm("fedavg"), "client_specific", situation)[0])
    monkeypatch.setattr("empirical.evaluate.BATCH", 3)
    found = list(begin(build_algorithm("fedavg"), "client_specific", situation)[0])
    assert [row.value for row in found] == pytest.approx([row.value for row in expected], rel=1e-13)
