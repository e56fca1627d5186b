"""What the record's hooks are given: gradients over all images, and room of their own."""

import copy
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional
from toy import bn_net, client, plain_net

from empirical.algorithm import Algorithm, Backward, Local, Memory, Report
from empirical.bn_policy import AGGREGATED, BN_POLICIES, CLIENT_SPECIFIC
from empirical.federate import federate
from empirical.local_training import full_gradient
from empirical.schedule import Schedule
from empirical.sites import Site, prepare
from empirical.weights import Weights

CLIENTS = [client("a", 9), client("b", 17), client("c", 30), client("d", 5)]
SCHEDULE = Schedule(rounds=3, batch_size=8, lr=0.1, participation=0.5, local_epochs=2, seed=1)
B = CLIENTS[1]


def site(net: nn.Module) -> Site:
    return prepare([B], net, torch.device("cpu"), SCHEDULE.batch_size)[0]


def learned(net: nn.Module) -> list[str]:
    return [name for name, weight in net.named_parameters() if weight.requires_grad]


def gradient(net: nn.Module, rows: Sequence[int]) -> Weights:
    """Of the mean loss over these images of client b, in training mode, on a copy."""
    net = copy.deepcopy(net).train()
    loss = functional.cross_entropy(net(B.train.inputs()[rows].double()), B.train.labels[rows])
    grads = torch.autograd.grad(loss, list(net.parameters()))
    return dict(zip(dict(net.named_parameters()), grads, strict=True))


def test_the_full_gradient_is_the_mean_over_all_images_batch_by_batch() -> None:
    net = bn_net()
    seen: list[list[int]] = []
    images = B.train.inputs().double()

    def look(_: nn.Module, inputs: tuple[torch.Tensor]) -> None:
        equal = (inputs[0][:, None] == images[None]).flatten(2).all(2)
        seen.append(equal.nonzero()[:, 1].tolist())

    place = site(net)
    handle = net.register_forward_pre_hook(look)
    found = full_gradient(net, place, learned(net), SCHEDULE, 2)
    handle.remove()
    assert [len(rows) for rows in seen] == [8, 9]  # the schedule's, the last one folded
    assert sorted(seen[0] + seen[1]) == list(range(17))
    assert sorted(seen[0]) != list(range(8))  # shuffled
    parts = [gradient(net, rows) for rows in seen]
    assert found.keys() == parts[0].keys()
    for name, value in found.items():
        expected = 8 / 17 * parts[0][name] + 9 / 17 * parts[1][name]
        torch.testing.assert_close(value, expected, rtol=1e-13, atol=1e-16)  # rounding


def test_without_batch_norm_the_full_gradient_depends_on_no_batch() -> None:
    net = plain_net()
    whole = gradient(net, range(17))
    for round_, batch_size in ((1, 8), (2, 8), (1, 3), (1, 64)):
        schedule = replace(SCHEDULE, batch_size=batch_size)
        found = full_gradient(net, site(net), learned(net), schedule, round_)
        for name, value in found.items():
            torch.testing.assert_close(value, whole[name], rtol=1e-12, atol=1e-15)  # rounding


def test_the_full_gradient_is_given_for_the_names_asked_for_that_are_trained() -> None:
    net = bn_net()
    net[0].weight.requires_grad_(False)
    found = full_gradient(net, site(net), ["0.weight", "0.bias", "7.weight"], SCHEDULE, 1)
    assert found.keys() == {"0.bias", "7.weight"}
    assert not any(value.requires_grad for value in found.values())


@pytest.mark.parametrize("training", [True, False])
def test_the_full_gradient_leaves_the_net_as_it_was(training) -> None:
    net = nn.Sequential(nn.Dropout(0.5), *bn_net())
    place = site(net)
    net.train(training)
    functional.cross_entropy(net(place.train.inputs), place.train.labels).backward()
    before = copy.deepcopy(net.state_dict())
    grads = {name: weight.grad.clone() for name, weight in net.named_parameters()}
    draws = torch.get_rng_state()
    found = full_gradient(net, place, learned(net), SCHEDULE, 1)
    assert {layer.training for layer in net.modules()} == {training}
    assert all(torch.equal(before[key], value) for key, value in net.state_dict().items())
    assert all(torch.equal(grads[name], w.grad) for name, w in net.named_parameters())
    assert torch.equal(draws, torch.get_rng_state())
    again = full_gradient(net, place, learned(net), SCHEDULE, 1)
    assert all(torch.equal(found[name], again[name]) for name in found)  # dropout is seeded


@pytest.mark.parametrize("policy", BN_POLICIES)
def test_asking_for_the_full_gradient_changes_nothing_of_the_training(policy) -> None:
    asked: list[Weights] = []

    def ask(local: Local) -> None:
        asked.append(local.full_gradient())
        assert asked[-1].keys() == local.learned.keys()

    net = nn.Sequential(nn.Dropout(0.5), *bn_net())
    runs = [
        federate(algorithm, BN_POLICIES[policy], net, CLIENTS, SCHEDULE)
        for algorithm in (Algorithm("asks", "", correct_gradient=ask), Algorithm("fedavg", ""))
    ]
    rows = [list(run) for run in runs]
    assert rows[0] == rows[1]
    for name in ("server", *"abcd"):
        one, two = (run.state.weights(name) for run in runs)
        assert all(torch.equal(one[key], two[key]) for key in two)
    assert len(asked) > 9


def test_the_full_gradient_is_that_of_the_clients_present_weights() -> None:
    found: list[tuple[int, Weights, Weights]] = []

    def ask(local: Local) -> None:
        now = {name: weight.detach().clone() for name, weight in local.learned.items()}
        found.append((local.steps, now, local.full_gradient()))

    schedule = replace(SCHEDULE, rounds=1, batch_size=64)
    asks = Algorithm("asks", "", correct_gradient=ask)
    assert list(federate(asks, CLIENT_SPECIFIC, bn_net(), [B], schedule))
    assert [steps for steps, _, _ in found] == [0, 1]  # two epochs of one batch
    start = dict(bn_net().named_parameters())
    assert all(torch.equal(found[0][1][name], start[name]) for name in found[0][1])
    expected = gradient(bn_net(), range(17))
    for name, value in found[0][2].items():
        torch.testing.assert_close(value, expected[name], rtol=1e-12, atol=1e-15)  # rounding
        # One step along it: w - lr · gradient.
        moved = start[name] - 0.1 * expected[name]
        torch.testing.assert_close(found[1][1][name], moved, rtol=1e-12, atol=1e-15)
    assert any(not torch.equal(found[0][2][name], found[1][2][name]) for name in found[0][2])


def test_scratch_is_empty_as_a_round_begins_and_lasts_until_its_report() -> None:
    begun: list[str] = []

    def gradient_of_one(local: Local, batches: Sequence[Backward]) -> None:
        if local.steps == 0:
            assert local.scratch == {}
            local.scratch["mine"] = {"first": torch.zeros(())}
            begun.append(local.client)
        batches[0]()

    def correct(local: Local) -> None:
        local.scratch["mine"]["first"] += 1

    def report(local: Local) -> tuple[Report, Memory]:
        assert local.scratch["mine"]["first"] == local.steps > 1
        return {"learned": local.learned}, local.scratch

    algorithm = Algorithm(
        "notes", "", gradient=gradient_of_one, correct_gradient=correct, report=report
    )
    schedule = replace(SCHEDULE, participation=1.0)
    assert list(federate(algorithm, AGGREGATED, bn_net(), CLIENTS, schedule))
    assert begun == [*"abcd"] * 3


@pytest.mark.parametrize("policy", BN_POLICIES)
def test_trained_is_every_parameter_and_learned_the_shared_ones(policy) -> None:
    net = bn_net()
    net[0].weight.requires_grad_(False)

    def look(local: Local) -> None:
        assert local.trained.keys() == set(learned(net))
        affine = {"1.weight", "1.bias", "5.weight", "5.bias"}
        private = affine if policy in ("client_specific", "client_affine") else set()
        assert local.learned.keys() == dict(net.named_parameters()).keys() - private
        assert local.received.keys() == local.learned.keys()
        for name in local.learned.keys() & local.trained.keys():
            assert local.learned[name] is local.trained[name]

    algorithm = Algorithm("looks", "", correct_gradient=look)
    assert list(federate(algorithm, BN_POLICIES[policy], net, CLIENTS, SCHEDULE))
