"""FedNova: how many gradients a change holds, its rounds, and what it optimises."""

import math

import pytest
import torch
from loops import assert_agrees, gradients, plain_federation, total
from toy import Slope, bn_net, client, signs

from empirical.algorithm import Local, Server
from empirical.algorithms import build_algorithm
from empirical.algorithms.fednova import gradients_in_change
from empirical.bn_policy import AGGREGATED, CLIENT_SPECIFIC
from empirical.federate import federate
from empirical.schedule import Schedule

UNEQUAL = [client("a", 9), client("b", 17), client("c", 30), client("d", 5)]
SETTINGS = {
    "plain": {},
    "momentum": {"momentum": 0.9},
    "proximal": {"mu": 0.7},
    "both": {"momentum": 0.9, "mu": 0.7},
}


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_plain_sgd_adds_one_gradient_a_step(steps: int) -> None:
    assert gradients_in_change(steps, 0.0, 0.0) == steps


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_momentum_adds_the_papers_sum(steps: int, rho: float) -> None:
    expected = (steps - rho * (1 - rho**steps) / (1 - rho)) / (1 - rho)
    assert gradients_in_change(steps, rho, 0.0) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("pull", [0.01, 0.5, 1.0, 1.5])
def test_the_proximal_term_makes_early_gradients_fade(steps: int, pull: float) -> None:
    expected = sum((1 - pull) ** (steps - 1 - k) for k in range(steps))
    assert gradients_in_change(steps, 0.0, pull) == pytest.approx(expected, rel=1e-14)


def coefficients(steps: int, rho: float, pull: float) -> torch.Tensor:
    """Of each gradient in (w - y)/lr: the solver runs on vectors, the k-th gradient is e_k."""
    x = buffer = torch.zeros(steps, dtype=torch.float64)
    for gradient in torch.eye(steps, dtype=torch.float64):
        buffer = rho * buffer + gradient + pull * x  # x = (y - w)/lr, so that the pull is +
        x = x - buffer
    return -x


@pytest.mark.parametrize(("rho", "pull"), [(0.5, 0.01), (0.9, 0.002), (0.9, 0.3), (0.3, 1.2)])
def test_momentum_and_proximal_term_together(rho: float, pull: float) -> None:
    for steps in (1, 2, 7):
        found = gradients_in_change(steps, rho, pull)
        each = coefficients(steps, rho, pull)
        assert found == pytest.approx(each.sum().item(), rel=1e-12)
        if math.sqrt(pull) <= 1 - math.sqrt(rho):
            assert found == pytest.approx(each.abs().sum().item(), rel=1e-12)


def test_a_pull_that_diverges_alone_is_refused() -> None:
    for pull in (2.0, 3.0, 1e30, 1e300):
        with pytest.raises(ValueError, match="lower mu or the step size"):
            gradients_in_change(4, 0.0, pull)


@pytest.mark.parametrize(
    "wrong",
    [{"momentum": 1.0}, {"momentum": -0.1}, {"momentum": math.nan}, {"mu": -1.0}, {"mu": math.inf}],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="FedNova needs a"):
        build_algorithm("fednova", **wrong)


def one_round(images: int, **settings: float) -> float:
    """The server's w after one round from 0: a has one step, b one for each image; lr 1."""
    clients = [signs("a", [1], [1]), signs("b", [1] * images, [0] * images)]
    with pytest.warns(UserWarning, match="no batch-norm layer"):
        run = federate(
            build_algorithm("fednova", **settings),
            AGGREGATED,
            Slope(),
            clients,
            Schedule(rounds=1, batch_size=1, lr=1.0),
        )
    assert list(run)
    return run.state.server["w"].item()


def test_a_plain_round_by_hand() -> None:
    # s(0) = 1/2, s(-.5) = .3775406687981454, s(-.8775406687981454) = .2936876718515876.
    # a: one step up, y = 1/2, d = -1/2. b: three steps down by s(w): 1/2, .3775406687981454,
    # .2936876718515876; y = -1.171228340649733, d = .39040944688324436. Sizes 1 : 3.
    # tau_eff = 1/4 · 1 + 3/4 · 3 = 2.5; w = -2.5 (-.125 + .75 · .39040944688324436).
    assert one_round(3) == pytest.approx(-0.41951771290608314, rel=1e-14)


def test_a_round_with_momentum_by_hand() -> None:
    # rho = 1/2. a: u = 1/2, A = 1, d = -1/2. b: u = 1/2, y = -1/2; u = 1/4 + s(-.5) =
    # .6275406687981454, y = -1.1275406687981454; A = 1 + 3/2; d = .4510162675192582.
    # Sizes 1 : 2, tau_eff = 1/3 + 2/3 · 5/2 = 2; w = -2 (-1/6 + 2/3 · .4510162675192582).
    assert one_round(2, momentum=0.5) == pytest.approx(-0.26802169002567756, rel=1e-14)


def test_a_proximal_round_by_hand() -> None:
    # mu = 1/2. a: d = -1/2. b: y = -1/2; then down by s(-.5) and up by 1/2 · 1/2:
    # y = -.6275406687981454; A = 1/2 + 1; d = .41836044586543027. tau_eff counts the steps:
    # 1/3 · 1 + 2/3 · 2 = 5/3; w = -5/3 (-1/6 + 2/3 · .41836044586543027).
    assert one_round(2, mu=0.5) == pytest.approx(-0.18706716207270028, rel=1e-14)


@pytest.mark.parametrize("policy", [AGGREGATED, CLIENT_SPECIFIC], ids=lambda p: p.name)
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_second_implementation_agrees_over_five_rounds(settings, policy) -> None:
    rho, mu = settings.get("momentum", 0.0), settings.get("mu", 0.0)
    schedule = Schedule(rounds=5, batch_size=8, lr=0.1, seed=3, participation=0.6, local_epochs=2)

    def train(net, sent, parts) -> None:
        solver = torch.optim.SGD(net.parameters(), lr=0.1, momentum=rho)
        for x, y in parts:
            for key, gradient in gradients(net, x, y).items():
                weight = net.get_parameter(key)
                pull = mu * (weight.detach() - sent[key]) if key in sent else 0
                weight.grad = gradient + pull
            solver.step()

    def aggregate(w, results, steps, p):
        holds = {n: coefficients(steps[n], rho, 0.1 * mu).sum() for n in p}
        tau = sum(p[n] * (steps[n] if mu else holds[n]) for n in p)
        return {
            k: w[k] - tau * total(p[n] * (w[k] - results[n][k]) / holds[n] for n in p) for k in w
        }

    run = federate(build_algorithm("fednova", **settings), policy, bn_net(), UNEQUAL, schedule)
    assert list(run)
    expected = plain_federation(bn_net(), UNEQUAL, schedule, policy, train, aggregate)
    assert_agrees(run.state, expected, policy)


def stops_at(name: str, lr: float, **settings: float) -> float:
    """Where an algorithm's hooks stop on J_a = (w - 1)²/2 with p 1/4, J_b = 3 (w + 1)²/2."""
    algorithm = build_algorithm(name, **settings)
    parts = {"a": (0.25, 1.0, 1.0, 12), "b": (0.75, 3.0, -1.0, 2)}  # p, curvature, optimum, steps
    server = Server({"w": torch.zeros((), dtype=torch.float64)})
    for _ in range(round(1.5 / lr)):
        mean: dict[str, dict[str, torch.Tensor]] = {}
        for one, (p, curvature, optimum, steps) in parts.items():
            w = server.learned["w"].clone().requires_grad_()
            local = Local(one, {"w": w}, server.learned, {}, {}, lr, {"w": w}, dict)
            for _ in range(steps):
                w.grad = curvature * (w.detach() - optimum)
                algorithm.correct_gradient(local)
                w.data -= lr * w.grad
                local.steps += 1
            for purpose, named in algorithm.report(local)[0].items():
                for key, value in named.items():
                    sums = mean.setdefault(purpose, {})
                    sums[key] = sums.get(key, 0) + p * value.detach()
        server = algorithm.aggregate(server, mean, 1.0)
    return server.learned["w"].item()


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_unequal_steps_do_not_move_the_optimum(settings: dict[str, float]) -> None:
    # (p_a · 1 · 1 - p_b · 3) / (p_a · 1 + p_b · 3) = -2/2.5: what Σ p_i J_i is least at. FedAvg
    # weights by p_i K_i, 3 and 1.5: (3 - 4.5)/(3 + 4.5). Both up to a multiple of the step size.
    near, nearer = (abs(stops_at("fednova", lr, **settings) + 0.8) for lr in (0.02, 0.004))
    assert nearer < 0.04
    assert nearer < 0.3 * near  # falls with the step size, to a fifth in the limit
    assert stops_at("fedavg", 0.004) == pytest.approx(-0.2, abs=0.02)


@pytest.mark.parametrize("policy", [AGGREGATED, CLIENT_SPECIFIC], ids=lambda p: p.name)
def test_unequal_steps_are_what_sets_it_apart_from_fedavg(policy) -> None:
    schedule = Schedule(rounds=2, batch_size=8, lr=0.1)
    for sizes, agrees in (((16, 16, 16), True), ((16, 24, 5), False)):
        clients = [client(name, size) for name, size in zip("abc", sizes, strict=True)]
        average, nova = (
            federate(build_algorithm(name), policy, bn_net(), clients, schedule)
            for name in ("fedavg", "fednova")
        )
        assert list(average)
        assert list(nova)
        found = (run.state.server["0.weight"] for run in (average, nova))
        assert torch.allclose(*found, rtol=1e-13, atol=1e-13) is agrees
