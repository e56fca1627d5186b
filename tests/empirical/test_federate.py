"""Identities of the loop, in float64 on small nets."""

import copy
import warnings
from dataclasses import replace
from typing import ClassVar

import pytest
import torch
from loops import assert_agrees, plain_federation
from torch import nn
from torch.nn import functional
from toy import Slope, bn_net, client, plain_net, residual_net, signs

from empirical.algorithm import Algorithm, Server
from empirical.algorithms import ALGORITHMS, build_algorithm
from empirical.bn_policy import AGGREGATED, BN_POLICIES, CLIENT_SPECIFIC, CLIENT_STATISTICS
from empirical.evaluate import Measurement, evaluate
from empirical.federate import Run, federate
from empirical.schedule import Schedule, participants
from empirical.sites import prepare
from empirical.weights import Role, Weights, label, load, weighted_mean

FEDAVG = build_algorithm("fedavg")
UNEQUAL = [client("a", 9), client("b", 17), client("c", 30), client("d", 5)]
SCHEDULE = Schedule(rounds=3, batch_size=8, lr=0.1, seed=3)


def finished(run: Run) -> Run:
    for _ in run:
        pass
    assert run.state.status == "complete"
    return run


def trained(algorithm, policy, model, clients=UNEQUAL, schedule=SCHEDULE) -> Run:
    return finished(federate(algorithm, policy, model, clients, schedule))


def same(one: Weights, two: Weights) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def close(one: Weights, two: Weights, tolerance: float = 1e-12) -> bool:
    """Within float64's rounding over some hundred operations on numbers of order one."""
    return one.keys() == two.keys() and all(
        torch.allclose(one[name], two[name], rtol=tolerance, atol=tolerance) for name in one
    )


def without_counters(weights: Weights) -> Weights:
    return {name: t for name, t in weights.items() if t.is_floating_point()}


def test_fedavg_by_hand() -> None:
    # Client a: one image x = 1 labelled 1; b: three images x = 1 labelled 0; w = 0, lr 1, full
    # batches. d/dw log(1 + e^-w) = -s(-w), d/dw log(1 + e^w) = s(w), s(0) = 1/2.
    # Round 1: a = 0 + 1/2, b = 0 - 1/2; sizes 1 : 3 give 1/8 - 3/8 = -1/4; uniform gives 0.
    # Round 2: a = -1/4 + s(1/4) = -1/4 + .5621765008857981,
    #          b = -1/4 - s(-1/4) = -1/4 - .4378234991142019;
    #          -1/4 + .5621765008857981/4 - 3 · .4378234991142019/4 = -.4378234991142019.
    clients = [signs("a", [1], [1]), signs("b", [1, 1, 1], [0, 0, 0])]
    schedule = Schedule(rounds=2, lr=1.0)
    with pytest.warns(UserWarning, match="no batch-norm layer"):
        run = federate(FEDAVG, AGGREGATED, Slope(), clients, schedule)
    found = []
    for row in run:
        if (row.client, row.metric) == ("server", "loss"):
            found.append(run.state.server["w"].item())
    assert found == pytest.approx([0.0, -0.25, -0.4378234991142019], rel=1e-15)
    with pytest.warns(UserWarning, match="no batch-norm layer"):
        uniform = federate(
            FEDAVG, AGGREGATED, Slope(), clients, Schedule(1, weights="uniform", lr=1.0)
        )
    assert finished(uniform).state.server["w"].item() == 0.0


def test_fedprox_by_hand() -> None:
    # As above with two epochs and mu = 1/2. Step 1: a = 1/2 (no pull at w = received).
    # Step 2: a = 1/2 + s(-1/2) - 1/2 · (1/2 - 0) = 1/2 + .3775406687981454 - 1/4
    #           = .6275406687981454; b is its negative; 1/4 - 3/4 = -1/2 of it.
    clients = [signs("a", [1], [1]), signs("b", [1, 1, 1], [0, 0, 0])]
    with pytest.warns(UserWarning, match="no batch-norm layer"):
        run = federate(
            build_algorithm("fedprox", mu=0.5),
            AGGREGATED,
            Slope(),
            clients,
            Schedule(rounds=1, local_epochs=2, lr=1.0),
        )
    state = finished(run).state
    assert state.server["w"].item() == pytest.approx(-0.6275406687981454 / 2, rel=1e-15)


def proximal_sgd(mu: float, lr: float):
    """FedProx's clients, and for mu = 0 FedAvg's: SGD on the loss with its penalty."""

    def train(net: nn.Module, sent: Weights, parts) -> None:
        for x, y in parts:
            loss = functional.cross_entropy(net(x), y)
            for key, start in sent.items():
                loss = loss + mu / 2 * ((net.get_parameter(key) - start) ** 2).sum()
            grads = torch.autograd.grad(loss, list(net.parameters()))
            for weight, grad in zip(net.parameters(), grads, strict=True):
                weight.data -= lr * grad

    return train


@pytest.mark.parametrize("mu", [0.0, 0.7])
@pytest.mark.parametrize(
    "policy", [AGGREGATED, CLIENT_SPECIFIC, CLIENT_STATISTICS], ids=lambda p: p.name
)
def test_a_second_implementation_agrees_over_five_rounds(mu, policy) -> None:
    schedule = replace(SCHEDULE, rounds=5, participation=0.6, local_epochs=2)
    state = trained(build_algorithm("fedprox", mu=mu), policy, bn_net(), schedule=schedule).state
    train = proximal_sgd(mu, schedule.lr)
    assert_agrees(state, plain_federation(bn_net(), UNEQUAL, schedule, policy, train), policy)


def alone(model, schedule=SCHEDULE) -> dict[str, Weights]:
    """What each client makes of the common start by itself."""
    state = trained(build_algorithm("local"), AGGREGATED, model, schedule=schedule).state
    return {name: state.weights(name) for name in state.clients}


def test_aggregated_statistics_are_the_weighted_mean_of_the_clients() -> None:
    once = replace(SCHEDULE, rounds=1)
    state = trained(FEDAVG, AGGREGATED, residual_net(), schedule=once).state
    mine = {name: without_counters(w) for name, w in alone(residual_net(), once).items()}
    p = {"a": 9 / 61, "b": 17 / 61, "c": 30 / 61, "d": 5 / 61}
    assert state.p == pytest.approx(p, rel=1e-15)
    assert close(without_counters(state.server), weighted_mean(mine, p), 1e-15)
    assert len({w["body.1.running_mean"][0].item() for w in mine.values()}) == 4


def test_client_specific_batch_norm_stays_and_the_server_keeps_the_mean() -> None:
    once = replace(SCHEDULE, rounds=1)
    state = trained(FEDAVG, CLIENT_SPECIFIC, residual_net(), schedule=once).state
    roles = label(residual_net())
    division = CLIENT_SPECIFIC.divide(roles, frozenset())
    assert {roles[name] for name in division.learned} == {Role.WEIGHT}
    assert division.statistics == ()
    for name, mine in alone(residual_net(), once).items():
        assert same(state.clients[name], {key: mine[key] for key in division.private})
    mirrored = {n: {k: own[k] for k in division.mirrored} for n, own in state.clients.items()}
    assert same({k: state.server[k] for k in division.mirrored}, weighted_mean(mirrored, state.p))


def test_counters_count_the_clients_own_batches_and_are_never_averaged() -> None:
    for policy in BN_POLICIES.values():
        state = trained(FEDAVG, policy, bn_net()).state
        counts = {n: w["1.num_batches_tracked"].item() for n, w in state.clients.items()}
        # 3 rounds of batches of 8: 9 -> one of 9 (folded), 17 -> 8 + 9, 30 -> 4, 5 -> 1.
        assert counts == {"a": 3, "b": 6, "c": 12, "d": 3}
        assert state.server["1.num_batches_tracked"].item() == 0


def test_statistics_and_counters_bypass_the_algorithm() -> None:
    seen: set[str] = set()

    def double(server: Server, mean, participation: float) -> Server:
        seen.update(server.learned, mean["learned"])
        assert participation == pytest.approx(1.0)
        return Server({name: 2 * value for name, value in mean["learned"].items()})

    once = replace(SCHEDULE, rounds=1)
    model = residual_net()
    state = trained(
        Algorithm("double", "", aggregate=double), AGGREGATED, model, schedule=once
    ).state
    plain = trained(FEDAVG, AGGREGATED, model, schedule=once).state
    for name, role in label(model).items():
        learned = role in (Role.WEIGHT, Role.AFFINE)
        assert (name in seen) is learned
        assert torch.equal(state.server[name], plain.server[name] * (2 if learned else 1))


def measured(rows: list[Measurement], round_: int, name: str) -> dict[tuple[str, str], float]:
    return {
        (row.split, row.metric): row.value
        for row in rows
        if (row.round, row.client) == (round_, name) and row.metric != "batch_loss"
    }


def test_who_is_measured_with_which_batch_norm() -> None:
    schedule = replace(SCHEDULE, participation=0.5, rounds=2)
    chosen = [set(participants(list("abcd"), schedule, round_)) for round_ in (1, 2)]
    assert chosen[0] != chosen[1]
    model = bn_net()
    run = federate(FEDAVG, CLIENT_SPECIFIC, model, UNEQUAL, schedule)
    rows: list[Measurement] = []
    states = []
    for row in run:
        rows.append(row)
        if (row.client, row.metric) == ("server", "accuracy"):
            states.append(run.state)
    sites = {site.name: site for site in prepare(UNEQUAL, model, torch.device("cpu"), 8)}
    division = CLIENT_SPECIFIC.divide(label(model), frozenset())
    for round_, state in enumerate(states):
        before = set().union(*chosen[:round_])
        served = []
        for name, site in sites.items():
            assert bool(state.clients[name]) is (name in before)
            expected = copy.deepcopy(model)
            load(expected, state.server)
            served.append(evaluate(expected, site.test)["loss"])
            if name in before:  # its own, of the last round in which it trained
                load(expected, state.clients[name])
            found = measured(rows, round_, name)
            for split in ("train", "test"):
                for metric, value in evaluate(expected, getattr(site, split)).items():
                    assert found[split, metric] == pytest.approx(value, rel=1e-13)
        found = measured(rows, round_, "server")
        assert set(found) == {("test", "loss"), ("test", "accuracy")}
        assert found["test", "loss"] == pytest.approx(sum(served) / 4, rel=1e-13)
    idle = chosen[0] - chosen[1]
    assert idle
    for name in idle:
        assert same(states[1].clients[name], states[2].clients[name])
    trained_ones = {
        n: {k: w[k] for k in division.mirrored} for n, w in states[2].clients.items() if w
    }
    mirror = weighted_mean(trained_ones, states[2].p)
    assert same({k: states[2].server[k] for k in division.mirrored}, mirror)


def test_a_client_sampled_for_the_first_time_starts_from_the_servers_batch_norm() -> None:
    starts: dict[tuple[int, str], Weights] = {}
    schedule = replace(SCHEDULE, participation=0.5, rounds=3)
    run = federate(FEDAVG, CLIENT_SPECIFIC, bn_net(), UNEQUAL, schedule)
    original = run._train_client

    def spy(site, round_):
        starts[round_, site.name] = run.state.weights(site.name)
        return original(site, round_)

    run._train_client = spy  # type: ignore[method-assign]
    states = {row.round: run.state for row in run}
    fresh = [(r, n) for r, n in starts if r > 1 and not states[r - 1].clients[n]]
    assert fresh
    for round_, name in fresh:
        assert same(starts[round_, name], states[round_ - 1].server)


def test_local_training_shares_nothing_and_has_no_server() -> None:
    model = bn_net()
    run = federate(build_algorithm("local"), CLIENT_SPECIFIC, model, UNEQUAL, SCHEDULE)
    rows = list(run)
    assert {row.client for row in rows} == set("abcd")
    assert same(run.state.server, model.state_dict())
    for c in UNEQUAL:
        by_itself = trained(FEDAVG, AGGREGATED, model, [c]).state
        assert close(run.state.weights(c.name), by_itself.weights(c.name), 1e-15)


def test_measurements_of_a_round() -> None:
    schedule = replace(SCHEDULE, rounds=5, measure_every=2)
    rows = list(federate(FEDAVG, AGGREGATED, bn_net(), UNEQUAL, schedule))
    keys = [(row.round, row.client, row.split, row.metric) for row in rows]
    assert len(keys) == len(set(keys))
    whole = {row.round for row in rows if row.metric == "accuracy"}
    assert whole == {0, 2, 4, 5}
    assert {row.round for row in rows if row.metric == "batch_loss"} == {1, 2, 3, 4, 5}
    assert [k[1] for k in keys if k[0] == 0 and k[3] == "loss" and k[2] == "test"] == [
        *"abcd",
        "server",
    ]


def test_batch_loss_is_the_cross_entropy_without_the_penalty() -> None:
    # One step per round: mu changes nothing, at w = received; the loss is that of the start.
    once = Schedule(rounds=1, batch_size=64, lr=0.1)
    rows = list(federate(build_algorithm("fedprox", mu=9.0), AGGREGATED, bn_net(), UNEQUAL, once))
    found = {row.client: row.value for row in rows if row.metric == "batch_loss"}
    for c in UNEQUAL:
        logits = bn_net().train()(c.train.inputs().double())
        expected = functional.cross_entropy(logits, c.train.labels).item()
        assert found[c.name] == pytest.approx(expected, rel=1e-12)


def test_a_diverged_run_says_so_and_yields_no_nan() -> None:
    schedule = Schedule(rounds=9, batch_size=4, lr=1e30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = federate(FEDAVG, AGGREGATED, plain_net(), UNEQUAL, schedule)
        rows = list(run)
    assert run.state.status == "diverged"
    assert 1 <= run.state.round < 9
    assert all(torch.isfinite(torch.tensor(row.value)) for row in rows)
    assert {row.round for row in rows} == set(range(run.state.round))


class Hidden(nn.Module):
    """Tensors on which no answer depends; one of them is not finite after some batches."""

    federated_roles: ClassVar = {"running": "statistic", "lowest": "statistic"}

    def __init__(self, part: str, batches: int) -> None:
        super().__init__()
        self.part, self.left = part, batches
        self.weight = nn.Parameter(torch.zeros(2, dtype=torch.float64))
        self.register_buffer("running", torch.zeros(2, dtype=torch.float64))
        self.register_buffer("lowest", torch.full((), -torch.inf, dtype=torch.float64))

    @torch.no_grad()
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.left -= self.training
        if self.left < 0:
            getattr(self, self.part)[1] = torch.nan
        return images


@pytest.mark.parametrize("algorithm", ["fedavg", "local"])
@pytest.mark.parametrize("policy", BN_POLICIES)
@pytest.mark.parametrize("part", ["weight", "running"])
def test_what_no_loss_shows_ends_the_run_in_its_round(algorithm, policy, part) -> None:
    # Two clients of two batches a round: the sixth batch is the second client's in round 2.
    clients = [client("a", 16), client("b", 16)]
    schedule = Schedule(rounds=5, batch_size=8, measure_every=5)
    net = nn.Sequential(Hidden(part, 6), *bn_net())
    run = federate(build_algorithm(algorithm), BN_POLICIES[policy], net, clients, schedule)
    rows = list(run)
    assert (run.state.status, run.state.round) == ("diverged", 2)
    assert {row.round for row in rows} == {0, 1}
    finite = [run.state.server, *run.state.clients.values()]
    assert all(w[f"0.{part}"].isfinite().all() for w in finite if f"0.{part}" in w)
    # What was infinite from the start, such as a running maximum that saw nothing, ends no run.
    healthy = nn.Sequential(Hidden(part, 99), *bn_net())
    trained(build_algorithm(algorithm), BN_POLICIES[policy], healthy, clients, schedule)


def test_feddc_with_absurd_steps_under_finite_losses_has_diverged() -> None:
    schedule = Schedule(rounds=4, batch_size=8, lr=1e6)
    run = federate(build_algorithm("feddc"), CLIENT_SPECIFIC, bn_net().float(), UNEQUAL, schedule)
    rows = list(run)
    assert run.state.status == "diverged"
    assert {row.round for row in rows} == set(range(run.state.round))


def test_the_callers_model_and_the_global_generator_are_left_alone() -> None:
    model, before = bn_net(), torch.get_rng_state()
    kept = copy.deepcopy(model.state_dict())
    first = list(federate(FEDAVG, CLIENT_SPECIFIC, model, UNEQUAL, SCHEDULE))
    assert same(kept, model.state_dict())
    assert torch.equal(before, torch.get_rng_state())
    torch.rand(3)
    assert first == list(federate(FEDAVG, CLIENT_SPECIFIC, model, UNEQUAL, SCHEDULE))


def test_random_layers_are_seeded() -> None:
    model = nn.Sequential(nn.Dropout(0.5), bn_net())
    rows = [
        list(federate(FEDAVG, AGGREGATED, model, UNEQUAL, replace(SCHEDULE, seed=seed)))
        for seed in (1, 1, 2)
    ]
    assert rows[0] == rows[1] != rows[2]


def test_the_last_batch_of_one_is_folded_and_noted() -> None:
    run = federate(FEDAVG, AGGREGATED, bn_net(), UNEQUAL, SCHEDULE)
    assert run.state.notes == tuple(
        f"client '{name}': the last batch of one image is folded into the one before it, which "
        "has 9"
        for name in "ab"
    )


def test_registered_names_are_the_algorithms_own() -> None:
    assert {name: build_algorithm(name).name for name in ALGORITHMS} == {n: n for n in ALGORITHMS}


def test_measurements_are_means_over_the_whole_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("empirical.evaluate.BATCH", 7)
    rows = list(federate(FEDAVG, AGGREGATED, bn_net(), UNEQUAL, SCHEDULE))
    model = bn_net().eval()
    for c in UNEQUAL:
        found = measured(rows, 0, c.name)
        for split in ("train", "test"):
            samples = getattr(c, split)
            logits = model(samples.inputs().double())
            loss = functional.cross_entropy(logits, samples.labels).item()
            right = [
                int(a) == int(b) for a, b in zip(logits.argmax(1), samples.labels, strict=True)
            ]
            assert found[split, "loss"] == pytest.approx(loss, rel=1e-13)
            assert found[split, "accuracy"] == sum(right) / len(right)


def test_policies_hold_for_instance_norm_with_running_statistics() -> None:
    def net(tracked: bool) -> nn.Module:
        norm = nn.InstanceNorm2d(3, affine=True, track_running_stats=tracked)
        return nn.Sequential(norm, plain_net()).double()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state = trained(FEDAVG, CLIENT_SPECIFIC, net(True)).state
    assert len({own["0.running_mean"][0].item() for own in state.clients.values()}) == 4
    with pytest.warns(UserWarning, match="no batch-norm layer"):
        federate(FEDAVG, CLIENT_SPECIFIC, net(False), UNEQUAL, SCHEDULE)
