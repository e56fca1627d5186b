"""Every registered algorithm under every policy in every situation: registering is being tested."""

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import nn
from toy import bn_net, client, plain_net, residual_net

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


@pytest.fixture(params=SITUATIONS.values(), ids=SITUATIONS)
def situation(request: pytest.FixtureRequest) -> Situation:
    return request.param


@pytest.fixture(params=BN_POLICIES)
def policy(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=ALGORITHMS)
def algorithm(request: pytest.FixtureRequest) -> str:
    return request.param


def begin(algorithm: str, policy: str, situation: Situation) -> tuple[Run, list[Client], Schedule]:
    clients = [client(f"site {k}", size) for k, size in enumerate(situation.sizes)]
    schedule = Schedule(
        rounds=2, local_epochs=2, batch_size=8, lr=0.05, participation=situation.participation
    )
    no_bn = situation.net is plain_net
    with pytest.warns(UserWarning, match="no batch-norm") if no_bn else contextlib.nullcontext():
        run = federate(
            build_algorithm(algorithm), BN_POLICIES[policy], situation.net(), clients, schedule
        )
    return run, clients, schedule


def test_conformance(algorithm: str, policy: str, situation: Situation) -> None:
    run, clients, schedule = begin(algorithm, policy, situation)
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
        each = build_algorithm(algorithm).batches_a_step
        passes = 2 * each * math.ceil(len(batch_sizes(len(c.train), 8)) / each)
        for name, role in roles.items():
            if role is Role.COUNTER:
                assert served[name].item() == passes * sum(c.name in s for s in sampled.values())
            if name.endswith("running_var"):
                assert (served[name] > 0).all()
            assert torch.isfinite(served[name]).all()


def test_conformance_repeats_bit_for_bit(algorithm: str, policy: str) -> None:
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
        [row.value for row in begin("fedavg", policy, situation)[0] if row.round == 2]
        for policy in BN_POLICIES
    ]
    assert all(found[i] != found[j] for i in range(4) for j in range(i))


def test_without_batch_norm_all_policies_agree() -> None:
    situation = SITUATIONS["a net without batch norm"]
    found = [list(begin("fedprox", policy, situation)[0]) for policy in BN_POLICIES]
    assert all(rows == found[0] for rows in found)


def test_measuring_does_not_depend_on_the_size_of_its_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    situation = SITUATIONS["unequal sizes"]
    expected = list(begin("fedavg", "client_specific", situation)[0])
    monkeypatch.setattr("empirical.evaluate.BATCH", 3)
    found = list(begin("fedavg", "client_specific", situation)[0])
    assert [row.value for row in found] == pytest.approx([row.value for row in expected], rel=1e-13)
