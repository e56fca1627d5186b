"""FedAdam, FedYogi, FedAdagrad and FedAvgM: the server's step."""

import math

import pytest
import torch
from loops import assert_agrees, plain_federation, sgd, total
from toy import Slope, bn_net, client, signs

from empirical.algorithm import Server
from empirical.algorithms import build_algorithm
from empirical.bn_policy import AGGREGATED, CLIENT_SPECIFIC
from empirical.federate import federate
from empirical.schedule import Schedule
from empirical.weights import Weights

UNEQUAL = [client("a", 9), client("b", 17), client("c", 30), client("d", 5)]
ADAPTIVE = ("fedadam", "fedyogi", "fedadagrad")


def two_rounds(name: str, **settings: float) -> list[float]:
    """The server's w after each round from 0; one full-batch step each, lr 1, sizes 1 : 3.

    a's labels are 1 and b's 0, so that Δ = s(-w)/4 - 3 s(w)/4 = 1/4 - s(w).
    """
    clients = [signs("a", [1], [1]), signs("b", [1, 1, 1], [0, 0, 0])]
    with pytest.warns(UserWarning, match="no batch-norm layer"):
        run = federate(
            build_algorithm(name, **settings),
            AGGREGATED,
            Slope(),
            clients,
            Schedule(rounds=2, lr=1.0),
        )
    states = {row.round: run.state for row in run}
    return [states[k].server["w"].item() for k in (1, 2)]


# Δ₁ = 1/4 - s(0) = -1/4, m = -1/4 · 1/2 = -1/8; eta_s = beta1 = 1/2, beta2 = 3/4.
HALF = {"server_lr": 0.5, "beta1": 0.5, "tau": 0.5}


def test_fedadam_by_hand() -> None:
    # v = 3/4 · 1/4 + 1/4 · 1/16 = .203125, root .45069390943299864;
    # w = 1/2 · (-1/8) / .9506939094329986 = -.06574145408933511.
    # Δ = 1/4 - s(w) = -.2335705533067176, m = (-1/8 + Δ)/2 = -.1792852766533588,
    # v = 3/4 · .203125 + 1/4 · Δ² = .16598255084300156, root .4074095615507834;
    # w -= 1/2 · .1792852766533588 / .9074095615507834.
    expected = [-0.06574145408933511, -0.1645310658865462]
    assert two_rounds("fedadam", beta2=0.75, **HALF) == pytest.approx(expected, rel=1e-14, abs=0)


def test_fedyogi_by_hand_where_its_v_falls() -> None:
    # v = 1/4 > Δ²: v = 1/4 - 1/4 · 1/16 = .234375, root .4841229182759271;
    # w = -1/16 / .9841229182759271 = -.06350832689629156.
    # Δ = -.23412825255397135, m = -.17956412627698567, v -= Δ²/4: .22067099033900595,
    # root .46975630952548786; w -= 1/2 · .17956412627698567 / .9697563095254879.
    expected = [-0.06350832689629156, -0.15609041402127677]
    assert two_rounds("fedyogi", beta2=0.75, **HALF) == pytest.approx(expected, rel=1e-14, abs=0)


def test_fedyogi_by_hand_where_its_v_rises() -> None:
    # tau = 1/8: v = 1/64 < Δ² = 1/16: v = 1/64 + 1/4 · 1/16 = 1/32, root .1767766952966369;
    # w = -1/16 / .3017766952966369 = -.20710678118654754.
    # Δ = -.19840758672552972, Δ² = .03936557047024859 > 1/32, m = -.16170379336276486,
    # v = 1/32 + Δ²/4 = .041091392617562145, root .20271011967230976;
    # w -= 1/2 · .16170379336276486 / .32771011967230976.
    found = two_rounds("fedyogi", server_lr=0.5, beta1=0.5, beta2=0.75, tau=0.125)
    assert found == pytest.approx([-0.20710678118654754, -0.45382451075263297], rel=1e-14, abs=0)


def test_fedadagrad_by_hand() -> None:
    # v = 1/4 + 1/16 = .3125, root .5590169943749475; w = -1/16 / 1.0590169943749475.
    # Δ = -.23525003234278713, m = -.18012501617139356, v = .3125 + Δ² = .3678425777172824,
    # root .6065002701708239; w -= 1/2 · .18012501617139356 / 1.1065002701708239.
    expected = [-0.059016994374947424, -0.1404110170549353]
    assert two_rounds("fedadagrad", **HALF) == pytest.approx(expected, rel=1e-14, abs=0)


def test_fedavgm_by_hand() -> None:
    # v = Δ = -1/4, w = 2 v = -1/2; Δ = 1/4 - s(-1/2) = -.1275406687981454,
    # v = 1/2 · (-1/4) + Δ = -.2525406687981454, w = -1/2 + 2 v.
    found = two_rounds("fedavgm", momentum=0.5, server_lr=2.0)
    assert found == pytest.approx([-0.5, -1.0050813375962908], rel=1e-14, abs=0)


class Reference:
    """The four servers as plain loops over the names."""

    def __init__(self, name: str, lr: float, beta: float, beta2: float, tau: float) -> None:
        self.name, self.lr, self.beta, self.beta2, self.tau = name, lr, beta, beta2, tau
        self.m: Weights = {}
        self.v: Weights = {}

    def __call__(self, w: Weights, results: dict, _steps: dict, p: dict) -> Weights:
        new = {}
        for key, old in w.items():
            delta = total(p[name] * (results[name][key] - old) for name in p)
            m = self.m.get(key, torch.zeros_like(old))
            if self.name == "fedavgm":
                self.m[key] = m * self.beta + delta
                new[key] = old + self.lr * self.m[key]
                continue
            v = self.v.get(key, torch.ones_like(old) * self.tau * self.tau)
            self.m[key] = m * self.beta + delta - delta * self.beta
            gap = delta**2 - v
            if self.name == "fedadam":
                v = v + (1 - self.beta2) * gap
            elif self.name == "fedyogi":
                v = torch.where(gap > 0, v + delta**2 * (1 - self.beta2), v)
                v = torch.where(gap < 0, v - delta**2 * (1 - self.beta2), v)
            else:
                v = v + delta**2
            self.v[key] = v
            new[key] = old + self.lr * self.m[key] / (torch.sqrt(v) + self.tau)
        return new


@pytest.mark.parametrize("policy", [AGGREGATED, CLIENT_SPECIFIC], ids=lambda p: p.name)
@pytest.mark.parametrize("name", [*ADAPTIVE, "fedavgm"])
def test_a_second_implementation_agrees_over_five_rounds(name, policy) -> None:
    settings = {"server_lr": 0.3, "beta1": 0.6, "beta2": 0.8, "tau": 0.02}
    if name == "fedavgm":
        settings = {"server_lr": 0.3, "momentum": 0.6}
    elif name == "fedadagrad":
        del settings["beta2"]
    schedule = Schedule(rounds=5, batch_size=8, lr=0.1, seed=3, participation=0.6, local_epochs=2)
    run = federate(build_algorithm(name, **settings), policy, bn_net(), UNEQUAL, schedule)
    assert list(run)
    reference = Reference(name, 0.3, 0.6, 0.8, 0.02)
    expected = plain_federation(bn_net(), UNEQUAL, schedule, policy, sgd(0.1), reference)
    # Float64's rounding, enlarged by 1/tau and fed back over five rounds.
    assert_agrees(run.state, expected, policy, 1e-10)


def stepping(name: str, change, rounds: int, **settings: float) -> list[float]:
    """w after each round of a server whose clients change w by `change(w)`; w starts at 1."""
    algorithm = build_algorithm(name, **settings)
    server, path = Server({"w": torch.ones((), dtype=torch.float64)}), []
    for _ in range(rounds):
        w = server.learned["w"]
        server = algorithm.aggregate(server, {"learned": {"w": w + change(w)}}, 1.0)
        path.append(server.learned["w"].item())
    return path


def test_fedadam_under_a_steady_change_in_closed_form() -> None:
    # m = (1 - β1ᵗ) Δ and v = β2ᵗ τ² + (1 - β2ᵗ) Δ² after t rounds: no bias is corrected.
    delta, b1, b2, tau, lr = -0.3, 0.9, 0.99, 0.01, 0.1
    w, expected = 1.0, []
    for t in range(1, 31):
        root = math.sqrt(b2**t * tau**2 + (1 - b2**t) * delta**2)
        w += lr * (1 - b1**t) * delta / (root + tau)
        expected.append(w)
    found = stepping(
        "fedadam", lambda w: 0 * w + delta, 30, server_lr=lr, beta1=b1, beta2=b2, tau=tau
    )
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ADAPTIVE)
def test_on_a_quadratic_a_large_tau_makes_gradient_descent_in_closed_form(name: str) -> None:
    # J = h w²/2 and one local step: Δ = -κ w with κ = ηh. With τ ≫ Δ and no momentum v stays τ²
    # (FedAdam: β2ᵗ τ²), so that each round multiplies w by 1 - η_s κ / (√v + τ), up to (Δ/τ)².
    tau, kappa, lr, b2 = 1e4, 0.5, 1e4, 0.9
    settings = {"beta2": b2} if name != "fedadagrad" else {}
    found = stepping(name, lambda w: -kappa * w, 20, server_lr=lr, beta1=0.0, tau=tau, **settings)
    w, expected = 1.0, []
    for t in range(1, 21):
        root = b2 ** (t / 2) * tau if name == "fedadam" else tau
        w *= 1 - lr * kappa / (root + tau)
        expected.append(w)
    assert found == pytest.approx(expected, rel=1e-7)


def test_a_change_whose_square_float32_cannot_hold_moves_the_server() -> None:
    for name in ADAPTIVE:
        algorithm = build_algorithm(name)
        server = Server({"w": torch.zeros(1)})
        moved = algorithm.aggregate(server, {"learned": {"w": torch.full((1,), 1e25)}}, 1.0)
        assert 0 < moved.learned["w"].item() < 10
        assert moved.learned["w"].dtype is torch.float32


@pytest.mark.parametrize("policy", [AGGREGATED, CLIENT_SPECIFIC], ids=lambda p: p.name)
def test_fedavgm_without_momentum_is_fedavg(policy) -> None:
    schedule = Schedule(rounds=3, batch_size=8, lr=0.1, participation=0.5)
    runs = [
        federate(algorithm, policy, bn_net(), UNEQUAL, schedule)
        for algorithm in (build_algorithm("fedavg"), build_algorithm("fedavgm", momentum=0.0))
    ]
    assert all(list(run) for run in runs)
    one, two = (run.state.server for run in runs)
    for name in one:
        torch.testing.assert_close(one[name], two[name], rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("name", ADAPTIVE)
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"server_lr": 0.0}, "server_lr must be a positive number"),
        ({"server_lr": math.inf}, "server_lr must be a positive number"),
        ({"tau": 0.0}, "tau must be a positive number"),
        ({"beta1": 1.0}, "beta1 must be a number in"),
        ({"beta2": -0.1}, "beta2 must be a number in"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_out_of_range_are_refused(name: str, wrong: dict, sentence: str) -> None:
    if name == "fedadagrad" and "beta2" in wrong:
        sentence = "has no setting 'beta2'"
    with pytest.raises(ValueError, match=sentence):
        build_algorithm(name, **wrong)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"momentum": 1.0}, "momentum in"),
        ({"momentum": math.nan}, "momentum in"),
        ({"server_lr": -1.0}, "server_lr must be a positive number"),
    ],
    ids=str,
)
def test_fedavgm_refuses_settings_out_of_range(wrong: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        build_algorithm("fedavgm", **wrong)
