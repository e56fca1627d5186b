"""FedDC: a second implementation, rounds worked by hand, the optimum it reaches."""

from dataclasses import replace

import pytest
import torch
from plain import Copies
from quadratics import SIZES, UNWEIGHTED, WEIGHTED, A, B, Quadratics, clients
from toy import bn_net, client

from empirical.algorithm import Memory, Report, Server
from empirical.algorithms import build_algorithm
from empirical.algorithms.feddc import feddc
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


def second_implementation(model, policy, schedule, alpha) -> Copies:
    """FedDC as plain loops, by autograd through the whole penalty, with p for every mean."""
    copies = Copies(model, UNEQUAL, policy)
    own = {name: copies.zeros() for name in copies.nets}  # c_i
    h = {name: copies.zeros() for name in copies.nets}
    for round_ in range(1, schedule.rounds + 1):
        chosen = participants(list(copies.nets), schedule, round_)
        central = copies.mean(own, copies.nets)
        w = {key: copies.server.state_dict()[key].clone() for key in copies.keys}
        y, new = {}, {}
        for name in chosen:
            weights = {k: v for k, v in copies.receive(name).named_parameters() if k in w}
            taken = 0
            for grads in copies.steps(name, schedule, round_):
                penalty = torch.zeros((), dtype=torch.float64)
                for k, v in weights.items():
                    penalty = penalty + alpha / 2 * (h[name][k] + v - w[k]).square().sum()
                    penalty = penalty + (v * (central[k] - own[name][k])).sum()
                extra = torch.autograd.grad(penalty, list(weights.values()))
                for (k, v), more in zip(weights.items(), extra, strict=True):
                    v.data -= schedule.lr * (grads[k] + more)
                taken += 1
            y[name] = {k: v.detach().clone() for k, v in weights.items()}
            h[name] = {k: h[name][k] + y[name][k] - w[k] for k in w}
            new[name] = {
                k: own[name][k] - central[k] + (w[k] - y[name][k]) / (taken * schedule.lr)
                for k in w
            }
        own |= new
        mean, drift = copies.mean(y, chosen), copies.mean(h, copies.nets)
        copies.finish(chosen, {k: mean[k] + drift[k] for k in w})
    return copies


@pytest.mark.parametrize("policy", BN_POLICIES)
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_a_second_implementation_agrees_over_five_rounds(policy, alpha) -> None:
    run = finished(federate(feddc(alpha), BN_POLICIES[policy], bn_net(), UNEQUAL, SCHEDULE))
    expected = second_implementation(bn_net(), policy, SCHEDULE, alpha)
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
def test_three_rounds_by_hand() -> None:
    # J_a = 1 + (w - 16)²/2 with 2 images, J_b = 1 + (w + 16)²/2 with 6: p = 1/4, 3/4. Batches of
    # 4 and two epochs: K = 2 and 4; α = 1. η = 1/4 halves the distance to the point t where
    # y - b + (h + y - w) + c - c_i is 0: t = (b + w - h + c_i - c)/2, y = t + (w - t) / 2^K.
    # (w - y) / (K η) is 2 (w - y) for a, w - y for b; w⁺ = ȳ + H, H = h_a/4 + 3 h_b/4.
    # 1: a: t = 8, y = 6; b: t = -8, y = -7.5. ȳ = -4.125; h = 6, -7.5, H = -4.125, w = -8.25;
    #    c_a = -12, c_b = 7.5, c = (-12 + 22.5)/4 = 2.625.
    # 2: a: t = (16 - 8.25 - 6 - 12 - 2.625)/2 = -6.4375, y = t - 1.8125/4 = -6.890625;
    #    b: t = (-16 - 8.25 + 7.5 + 7.5 - 2.625)/2 = -5.9375, y = t - 2.3125/16 = -6.08203125.
    #    ȳ = -6.2841796875; h_a = 6 + 1.359375 = 7.359375, h_b = -7.5 + 2.16796875 = -5.33203125,
    #    H = -2.1591796875, w = -8.443359375; c_a = -12 - 2.625 - 2.71875 = -17.34375,
    #    c_b = 7.5 - 2.625 - 2.16796875 = 2.70703125, c = -2.3056640625.
    # 3: a: t = (16 - 8.443359375 - 7.359375 - 17.34375 + 2.3056640625)/2 = -7.42041015625,
    #       y = t - 1.02294921875/4 = -7.6761474609375;
    #    b: t = (-16 - 8.443359375 + 5.33203125 + 2.70703125 + 2.3056640625)/2 = -7.04931640625,
    #       y = t - 1.39404296875/16 = -7.136444091796875.
    #    ȳ = -7.27136993408203125; h_a = 8.1265869140625, h_b = -4.025115966796875,
    #    H = -.98719024658203125, w = -8.2585601806640625.
    schedule = Schedule(rounds=3, local_epochs=2, batch_size=4, lr=0.25)
    found = path_of_w(feddc(alpha=1.0), (2, 6), Quadratics((1.0, 1.0), (16.0, -16.0)), schedule)
    expected = [0, -8.25, -8.443359375, -8.2585601806640625]
    assert found == pytest.approx(expected, rel=1e-13)  # rounding of e^q and its logarithm


@NO_BN
def test_three_rounds_of_one_client_each_by_hand() -> None:
    # As above, a, b, a in turn: ȳ is the participant's y, H and c keep p = 1/4, 3/4.
    # 1: a: y = 6, h_a = 6, c_a = -12; H = 1.5, c = -3, w = 7.5.
    # 2: b: t = (-16 + 7.5 - 0 + 0 + 3)/2 = -2.75, y = -2.75 + 10.25/16 = -2.109375;
    #    h_b = -9.609375, H = 1.5 - 7.20703125 = -5.70703125, w = -7.81640625;
    #    c_b = 0 + 3 + 9.609375 = 12.609375, c = -3 + 9.45703125 = 6.45703125.
    # 3: a: t = (16 - 7.81640625 - 6 - 12 - 6.45703125)/2 = -8.13671875,
    #       y = t + .3203125/4 = -8.056640625; h_a = 6 - .240234375 = 5.759765625,
    #       H = 1.43994140625 - 7.20703125 = -5.76708984375, w = -13.82373046875.
    schedule = Schedule(3, local_epochs=2, batch_size=4, lr=0.25, participation=0.5, seed=30)
    assert [participants(["a", "b"], schedule, k) for k in (1, 2, 3)] == [["a"], ["b"], ["a"]]
    found = path_of_w(feddc(alpha=1.0), (2, 6), Quadratics((1.0, 1.0), (16.0, -16.0)), schedule)
    assert found == pytest.approx([0, 7.5, -7.81640625, -13.82373046875], rel=1e-13)


def end_of(algorithm, rounds: int, **settings) -> float:
    """Where the three unequal clients end, after 3, 1 and 1 steps a round."""
    schedule = Schedule(rounds, batch_size=3, lr=0.1, measure_every=rounds, **settings)
    return path_of_w(algorithm, SIZES, Quadratics(A, B), schedule)[-1]


@NO_BN
@pytest.mark.parametrize(
    ("alpha", "participation", "rounds"),
    [(1.0, 1.0, 40), (1.0, 0.7, 50), (1.0, 0.3, 120), (0.1, 0.7, 100)],
)
def test_unequal_clients_reach_the_weighted_optimum_whoever_takes_part(
    alpha, participation, rounds
) -> None:
    # 3, 2 or 1 of them a round; the error shrinks by a constant factor a round.
    found = end_of(feddc(alpha), rounds, participation=participation)
    assert found == pytest.approx(WEIGHTED, abs=1e-5)


@NO_BN
def test_what_reaches_another_optimum() -> None:
    assert end_of(feddc(1.0), 45, weights="uniform") == pytest.approx(UNWEIGHTED, abs=1e-5)
    # Plain means of y_i and h_i, and the same α for all: α Σ p_i h_i is left over.
    right = feddc(1.0)
    p = dict(zip("abc", (9 / 14, 3 / 14, 2 / 14), strict=True))

    def report(local) -> tuple[Report, Memory]:
        sent, kept = right.report(local)
        even = {k: v.detach() / 3 / p[local.client] for k, v in local.learned.items()}
        return {**sent, "even": even}, kept

    def aggregate(server: Server, mean: Report, participation: float) -> Server:
        # With every client in every round h sums up to what the plain means of y moved by.
        return right.aggregate(server, {**mean, "learned": mean["even"]}, participation)

    wrong = replace(right, report=report, aggregate=aggregate)
    assert end_of(wrong, 40) == pytest.approx(0.7061, abs=1e-3)  # the weighted one is 0.5652


@pytest.mark.parametrize("policy", BN_POLICIES)
def test_the_first_round_goes_twice_as_far_as_fedprox(policy) -> None:
    # With h = c = 0 the clients minimise FedProx's loss with μ = α, and H is the mean change.
    schedule = replace(SCHEDULE, rounds=1, participation=1.0)
    start = bn_net().state_dict()
    ends: list[Weights] = []
    for algorithm in (feddc(0.4), build_algorithm("fedprox", mu=0.4)):
        run = federate(algorithm, BN_POLICIES[policy], bn_net(), UNEQUAL, schedule)
        ends.append(finished(run).state.server)
    for key, value in bn_net().named_parameters():
        shared = not (policy in ("client_specific", "client_affine") and key[0] in "15")
        twice = (2 if shared else 1) * (ends[1][key] - start[key])
        # Rounding of numbers of order one.
        torch.testing.assert_close(ends[0][key] - value, twice, rtol=1e-12, atol=1e-14)


@NO_BN
def test_large_steps_make_the_drift_grow_and_the_run_is_reported_as_diverged() -> None:
    # One client of curvature 1 and one step: η (3 + 2 α) < 4 where FedAvg needs η < 2.
    def run_with(algorithm, lr: float) -> Run:
        schedule = Schedule(rounds=80, batch_size=8, lr=lr)
        return federate(algorithm, AGGREGATED, Quadratics((1.0,), (2.0,)), clients(4), schedule)

    for alpha, below, above in ((0.0, 1.3, 1.4), (0.5, 0.95, 1.05)):
        assert finished(run_with(feddc(alpha), below)).state.server["w"].item() == pytest.approx(
            2, abs=0.5
        )
        run = run_with(feddc(alpha), above)
        far = max(abs(run.state.server["w"].item() - 2) for _ in run)
        assert far > 20
    finished(run_with(build_algorithm("fedavg"), 1.9))
    run = run_with(feddc(0.0), 1.9)
    assert all(abs(row.value) < float("inf") for row in run)
    assert run.state.status == "diverged"


@pytest.mark.parametrize("alpha", [-0.1, float("nan"), float("inf"), 1e39])
def test_refusals(alpha) -> None:
    with pytest.raises(ValueError, match="FedDC needs a finite alpha"):
        build_algorithm("feddc", alpha=alpha)


def test_the_default_is_the_authors() -> None:
    assert build_algorithm("feddc").settings == {"alpha": 0.01}
