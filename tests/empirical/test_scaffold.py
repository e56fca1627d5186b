"""SCAFFOLD: a second implementation, rounds worked by hand, the optimum it reaches."""

from dataclasses import replace

import pytest
import torch
from plain import Copies
from quadratics import SIZES, UNWEIGHTED, WEIGHTED, A, B, Quadratics, clients
from torch import nn
from torch.nn import functional
from toy import bn_net, client, plain_net, unchecked

from empirical.algorithm import Local, Memory, Report
from empirical.algorithms import build_algorithm
from empirical.algorithms.scaffold import scaffold
from empirical.bn_policy import AGGREGATED, BN_POLICIES
from empirical.federate import Run, federate
from empirical.schedule import Schedule, participants
from empirical.weights import Weights

UNEQUAL = [client("a", 9), client("b", 17), client("c", 30), client("d", 5)]
SCHEDULE = Schedule(rounds=5, batch_size=8, lr=0.1, participation=0.5, local_epochs=2, seed=1)
NO_BN = pytest.mark.filterwarnings("ignore:the model has no batch-norm layer")


def finished(run: Run) -> Run:
    for _ in run:
        pass
    assert run.state.status == "complete"
    return run


def full_batch_gradient(net: nn.Module, c) -> Weights:
    """In training mode, statistics put back."""
    before = {key: value.clone() for key, value in net.state_dict().items()}
    loss = functional.cross_entropy(net(c.train.inputs().double()), c.train.labels)
    named = dict(net.named_parameters())
    grads = torch.autograd.grad(loss, list(named.values()))
    net.load_state_dict(before)
    return dict(zip(named, grads, strict=True))


def second_implementation(model, policy, schedule, server_lr, option) -> Copies:
    """Algorithm 1 of Karimireddy et al. 2020 as plain loops, with p_i for 1/N."""
    copies = Copies(model, UNEQUAL, policy)
    own = {name: copies.zeros() for name in copies.nets}  # c_i
    for round_ in range(1, schedule.rounds + 1):
        chosen = participants(list(copies.nets), schedule, round_)
        central = copies.mean(own, copies.nets)  # c, here from its meaning: Σ p_i c_i
        x = {key: copies.server.state_dict()[key].clone() for key in copies.keys}
        y, new = {}, {}
        for name in chosen:
            net = copies.receive(name)
            weights = dict(net.named_parameters())
            at_x, taken = full_batch_gradient(net, copies.data[name]), 0
            for grads in copies.steps(name, schedule, round_):
                for key in copies.keys:
                    direction = grads[key] - own[name][key] + central[key]
                    weights[key].data -= schedule.lr * direction
                taken += 1
            y[name] = {key: weights[key].detach().clone() for key in copies.keys}
            path = {key: (x[key] - y[name][key]) / (taken * schedule.lr) for key in copies.keys}
            new[name] = {
                key: at_x[key] if option == 1 else own[name][key] - central[key] + path[key]
                for key in copies.keys
            }
        own |= new
        mean = copies.mean(y, chosen)
        copies.finish(chosen, {key: x[key] + server_lr * (mean[key] - x[key]) for key in x})
    return copies


@pytest.mark.parametrize("policy", BN_POLICIES)
@pytest.mark.parametrize(
    ("option", "server_lr", "batch_size"), [(2, 1.0, 8), (2, 0.6, 8), (1, 0.6, 64)]
)
def test_a_second_implementation_agrees_over_five_rounds(
    policy, option, server_lr, batch_size
) -> None:
    # Option I with full batches, two of them a round: with batch norm the gradient over smaller
    # batches depends on who is in which, and `full_gradient` has tests of its own.
    schedule = replace(SCHEDULE, batch_size=batch_size)
    algorithm = scaffold(server_lr, option)
    run = finished(federate(algorithm, BN_POLICIES[policy], bn_net(), UNEQUAL, schedule))
    expected = second_implementation(bn_net(), policy, schedule, server_lr, option)
    # Float64's rounding, enlarged by 1 / (steps · lr) and fed back over five rounds.
    close = {"rtol": 1e-11, "atol": 1e-11}
    for key, value in expected.server.state_dict().items():
        if value.is_floating_point():
            torch.testing.assert_close(run.state.server[key], value, **close)
    assert {name for name, kept in run.state.clients.items() if kept} == expected.seen
    for name in expected.seen:
        for key, value in run.state.clients[name].items():
            assert not expected.shared(key)
            torch.testing.assert_close(value, expected.nets[name].state_dict()[key], **close)


def path_of_w(algorithm, sizes, model, schedule) -> list[float]:
    run = federate(algorithm, AGGREGATED, model, clients(*sizes), schedule)
    return [
        run.state.server["w"].item()
        for row in run
        if (row.client, row.metric) == ("server", "loss")
    ]


@NO_BN
def test_three_rounds_of_option_two_by_hand() -> None:
    # J_a = 1 + (w - 16)²/2 with 2 images, J_b = 1 + (w + 16)²/2 with 6: p = 1/4, 3/4. Batches of
    # 4 and two epochs: K = 2 and 4. η = 1/2 halves the distance to the point t where the
    # corrected gradient y - b + c - c_i is 0: t = b + c_i - c, y = t + (w - t) / 2^K.
    # Server step 1/2: w moves half way to ȳ = y_a/4 + 3 y_b/4. (w - y) / (K η) is w - y for a,
    # (w - y) / 2 for b.
    # 1: a: t = 16, y = 12; b: t = -16, y = -15. ȳ = -8.25, w = -4.125.
    #    c_a = 0 - 0 - 12 = -12; c_b = 15/2 = 7.5; c = (-12 + 22.5)/4 = 2.625.
    # 2: a: t = 16 - 12 - 2.625 = 1.375, y = 1.375 - 5.5/4 = 0;
    #    b: t = -16 + 7.5 - 2.625 = -11.125, y = -11.125 + 7/16 = -10.6875.
    #    ȳ = -8.015625, w = (-4.125 - 8.015625)/2 = -6.0703125.
    #    c_a = -12 - 2.625 - 4.125 = -18.75; c_b = 7.5 - 2.625 + 6.5625/2 = 8.15625;
    #    c = (-18.75 + 24.46875)/4 = 1.4296875.
    # 3: a: t = 16 - 18.75 - 1.4296875 = -4.1796875, y = t - 1.890625/4 = -4.65234375;
    #    b: t = -16 + 8.15625 - 1.4296875 = -9.2734375, y = t + 3.203125/16 = -9.0732421875.
    #    ȳ = -7.968017578125, w = (-6.0703125 - 7.968017578125)/2 = -7.0191650390625.
    schedule = Schedule(rounds=3, local_epochs=2, batch_size=4, lr=0.5)
    model = Quadratics((1.0, 1.0), (16.0, -16.0))
    found = path_of_w(scaffold(server_lr=0.5), (2, 6), model, schedule)
    expected = [0, -4.125, -6.0703125, -7.0191650390625]
    assert found == pytest.approx(expected, rel=1e-13)  # rounding of e^q and its logarithm


@NO_BN
def test_two_rounds_of_option_one_by_hand() -> None:
    # As above, but c_i is w - b at the weights received: round 1 leaves c_a = 0 - 16 = -16,
    # c_b = 16, c = (-16 + 48)/4 = 8, and the same w = -4.125.
    # 2: a: t = 16 - 16 - 8 = -8, y = -8 + 3.875/4 = -7.03125;
    #    b: t = -16 + 16 - 8 = -8, y = -8 + 3.875/16 = -7.7578125.
    #    ȳ = -7.576171875, w = (-4.125 - 7.576171875)/2 = -5.8505859375.
    schedule = Schedule(rounds=2, local_epochs=2, batch_size=4, lr=0.5)
    model = Quadratics((1.0, 1.0), (16.0, -16.0))
    found = path_of_w(scaffold(server_lr=0.5, option=1), (2, 6), model, schedule)
    assert found == pytest.approx([0, -4.125, -5.8505859375], rel=1e-13)


@NO_BN
def test_three_rounds_of_one_client_each_by_hand() -> None:
    # As in the first, server step 1: w is the y of a, then b, then a. Means over the participants
    # take p̃ = 1, changes of c keep p = 1/4, 3/4.
    # 1: a: y = 12 = w; c_a = -12, c = -12/4 = -3.
    # 2: b: t = -16 + 0 + 3 = -13, y = -13 + 25/16 = -11.4375 = w;
    #    c_b = 0 + 3 + 23.4375/2 = 14.71875, c = -3 + 3 · 14.71875/4 = 8.0390625.
    # 3: a: t = 16 - 12 - 8.0390625 = -4.0390625, y = t - 7.3984375/4 = -5.888671875.
    schedule = Schedule(3, local_epochs=2, batch_size=4, lr=0.5, participation=0.5, seed=30)
    assert [participants(["a", "b"], schedule, k) for k in (1, 2, 3)] == [["a"], ["b"], ["a"]]
    found = path_of_w(scaffold(), (2, 6), Quadratics((1.0, 1.0), (16.0, -16.0)), schedule)
    assert found == pytest.approx([0, 12, -11.4375, -5.888671875], rel=1e-13)


def end_of(algorithm, rounds: int, **settings) -> float:
    """Where the three unequal clients end, after 3, 1 and 1 steps a round."""
    schedule = Schedule(rounds, batch_size=3, lr=0.1, measure_every=rounds, **settings)
    return path_of_w(algorithm, SIZES, Quadratics(A, B), schedule)[-1]


@NO_BN
@pytest.mark.parametrize(("participation", "rounds"), [(1.0, 25), (0.7, 25), (0.3, 65)])
@pytest.mark.parametrize("option", [1, 2])
def test_unequal_clients_reach_the_weighted_optimum_whoever_takes_part(
    option, participation, rounds
) -> None:
    # 3, 2 or 1 of them a round; the error shrinks by a constant factor a round.
    algorithm = scaffold(option=option)
    found = end_of(algorithm, rounds, participation=participation)
    assert found == pytest.approx(WEIGHTED, abs=1e-5)


@NO_BN
def test_what_reaches_another_optimum() -> None:
    assert end_of(scaffold(), 30, weights="uniform") == pytest.approx(UNWEIGHTED, abs=1e-5)
    assert abs(end_of(build_algorithm("fedavg"), 30) - WEIGHTED) > 0.05  # no control, drift
    # Changes of c by 1/N, as the paper writes it, contradict a server that takes p_i.
    right = scaffold()
    p = dict(zip("abc", (9 / 14, 3 / 14, 2 / 14), strict=True))

    def report(local: Local) -> tuple[Report, Memory]:
        sent, kept = right.report(local)
        change = {k: v / 3 / p[local.client] for k, v in sent["control_change"].items()}
        return {**sent, "control_change": change}, kept

    assert end_of(replace(right, report=report), 40) == pytest.approx(UNWEIGHTED, abs=1e-5)


@pytest.mark.parametrize("policy", BN_POLICIES)
@pytest.mark.parametrize("option", [1, 2])
def test_one_full_batch_step_a_round_is_fedavg(policy, option) -> None:
    schedule = Schedule(rounds=4, batch_size=64, lr=0.1)
    one, two = (
        finished(federate(algorithm, BN_POLICIES[policy], bn_net(), UNEQUAL, schedule)).state
        for algorithm in (scaffold(option=option), build_algorithm("fedavg"))
    )
    for name in ("server", *"abcd"):
        for key, value in two.weights(name).items():
            # Rounding of c - Σ p_i c_i, divided by the step size.
            torch.testing.assert_close(one.weights(name)[key], value, rtol=1e-12, atol=1e-12)


@NO_BN
@pytest.mark.parametrize("option", [1, 2])
@pytest.mark.parametrize("net", [bn_net, plain_net])
def test_one_client_is_fedavg_and_so_plain_sgd(net, option) -> None:
    schedule = replace(SCHEDULE, participation=1.0)
    one, two = (
        finished(federate(algorithm, AGGREGATED, net(), UNEQUAL[1:2], schedule)).state.server
        for algorithm in (scaffold(option=option), build_algorithm("fedavg"))
    )
    assert all(torch.equal(one[key], two[key]) for key in two)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"server_lr": 0.0}, "positive server_lr"),
        ({"server_lr": -1.0}, "positive server_lr"),
        ({"server_lr": float("nan")}, "positive server_lr"),
        ({"server_lr": float("inf")}, "positive server_lr"),
        ({"server_lr": 1e39}, "float32"),
        ({"option": 3}, "option is 1 or 2, got 3"),
        ({"option": 0}, "option is 1 or 2"),
        ({"option": True}, "option is 1 or 2"),
        ({"option": "II"}, "option is 1 or 2, got 'II'"),
    ],
)
def test_refusals(settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        unchecked(scaffold)(**settings)


def test_the_defaults_are_the_papers() -> None:
    assert build_algorithm("scaffold").settings == {"server_lr": 1.0, "option": 2}
