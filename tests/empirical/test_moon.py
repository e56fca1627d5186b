"""MOON: its loss and rounds by hand, its identities and a second implementation."""

import copy
import math
from dataclasses import replace

import pytest
import torch
from loops import Batches, assert_agrees, plain_federation
from torch import Tensor, nn
from torch.nn import functional
from toy import bn_net, client, plain_net, residual_net, signs

from empirical.algorithm import Features
from empirical.algorithms import build_algorithm
from empirical.algorithms.moon import moon
from empirical.bn_policy import AGGREGATED, BN_POLICIES, CLIENT_SPECIFIC
from empirical.federate import Run, federate
from empirical.models import with_projection_head
from empirical.schedule import Schedule

UNEQUAL = [client("a", 9), client("b", 17), client("c", 30), client("d", 5)]
SCHEDULE = Schedule(rounds=5, local_epochs=2, batch_size=8, lr=0.1, participation=0.6, seed=3)


def finished(algorithm, policy, model, schedule=SCHEDULE, clients=UNEQUAL) -> Run:
    run = federate(algorithm, policy, model, clients, schedule)
    assert list(run) and run.state.status == "complete"
    return run


def added(z, received, previous, **settings: float) -> Tensor:
    hook = moon(**settings).feature_loss
    assert hook is not None
    vectors = [torch.tensor(v, dtype=torch.float64) for v in (received, previous)]
    z = z if isinstance(z, Tensor) else torch.tensor(z, dtype=torch.float64)
    return hook(Features(z, *vectors))


def test_the_loss_by_hand() -> None:
    # Image 1: z = (3, 4) with (1, 0): cos .6; with (0, 2): cos .8. T = 1/2:
    #   -log(e^1.2 / (e^1.2 + e^1.6)) = log(1 + e^.4) = .9130152523999526.
    # Image 2: z = (1, 0) with (2, 0): cos 1; with (0, 5): cos 0: log(1 + e^-2) = .1269280110429725.
    # Mean over the two images, times 3: 1.5 · 1.0399432634429252 = 1.5599148951643878.
    found = added(
        [[3.0, 4.0], [1.0, 0.0]],
        [[1.0, 0.0], [2.0, 0.0]],
        [[0.0, 2.0], [0.0, 5.0]],
        mu=3.0,
        temperature=0.5,
    )
    assert found.item() == pytest.approx(1.5599148951643878, rel=1e-14)


def test_the_authors_settings_are_the_defaults() -> None:
    assert moon().settings == {"mu": 5.0, "temperature": 0.5}
    vectors = [[3.0, 4.0]], [[1.0, 0.0]], [[0.0, 2.0]]
    assert added(*vectors).item() == pytest.approx(5 * 0.9130152523999526, rel=1e-14)


def test_a_tiny_temperature_overflows_nowhere() -> None:
    # cos 0 and 1 at T = 1e-30: log(1 + e^(1/T)) = 1/T up to rounding.
    found = added([[1.0, 0.0]], [[0.0, 1.0]], [[1.0, 0.0]], mu=1.0, temperature=1e-30)
    assert found.item() == pytest.approx(1e30, rel=1e-12)


def test_an_image_without_a_direction_adds_no_gradient() -> None:
    z = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64, requires_grad=True)
    loss = added(z, [[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]], mu=2.0, temperature=1.0)
    # Image 1: log 2. Image 2: cos 0 with a zero vector and 1/√2: log(1 + e^(1/√2)).
    expected = math.log(2) + math.log1p(math.exp(1 / math.sqrt(2)))
    assert loss.item() == pytest.approx(expected, rel=1e-12)
    loss.backward()
    assert z.grad is not None and z.grad[0].tolist() == [0.0, 0.0]
    assert torch.isfinite(z.grad).all() and z.grad[1].abs().max() < 1


class Direction(nn.Module):
    """Represents every image by (1, w); logits (0, w) by a fixed last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.last = nn.Linear(2, 2, bias=False, dtype=torch.float64).requires_grad_(False)
        with torch.no_grad():
            self.last.weight.copy_(torch.tensor([[0.0, 0.0], [0.0, 1.0]]))

    def forward(self, images: Tensor) -> Tensor:
        w = self.w.expand(len(images))
        return self.last(torch.stack([torch.ones_like(w), w], 1))


def test_two_rounds_by_hand() -> None:
    # a: one image labelled 1; b: three labelled 0; lr 1, full batches, mu = T = 1/2.
    # Round 1 has no term: w_a = 1/2, w_b = -1/2, w = 1/8 - 3/8 = -1/4 (as FedAvg's).
    # Round 2 starts at w = -1/4 with z = z_glob = (1, -1/4), where cos(z, z_glob) = 1 is flat.
    # cos((1, w), (1, p)) = (1 + w p) / √((1 + w²)(1 + p²)), with derivative
    # (p - w) / ((1 + w²)^{3/2} (1 + p²)^{1/2}); (1 + 1/16)^{3/2} (1 + 1/4)^{1/2} = 17 √85 / 128.
    # a, p = 1/2: cos (7/8) / (√85 / 8) = 7 / √85, derivative 3/4 · 128 / (17 √85) = 96 / (17 √85);
    # b, p = -1/2: cos 9 / √85, derivative -1/4 · 128 / (17 √85) = -32 / (17 √85).
    # The term mu log(1 + e^((cos - 1)/T)) has the derivative mu/T = 1 times s(2 cos - 2) cos'.
    # w_a = -1/4 + s(1/4) - s(14/√85 - 2) 96 / (17 √85) = .07825843735918483,
    # w_b = -1/4 - s(-1/4) + s(18/√85 - 2) 32 / (17 √85) = -.5881690604861318.
    s, root = lambda x: 1 / (1 + math.exp(-x)), math.sqrt(85)
    a = -1 / 4 + s(1 / 4) - s(14 / root - 2) * 96 / (17 * root)
    b = -1 / 4 - s(-1 / 4) + s(18 / root - 2) * 32 / (17 * root)
    clients = [signs("a", [1], [1]), signs("b", [1, 1, 1], [0, 0, 0])]
    with pytest.warns(UserWarning, match="no batch-norm layer"):
        run = federate(
            moon(mu=0.5, temperature=0.5), AGGREGATED, Direction(), clients, Schedule(2, lr=1.0)
        )
    found = []
    for row in run:
        if (row.client, row.metric) == ("server", "loss"):
            found.append(run.state.server["w"].item())
    assert found == pytest.approx([0.0, -0.25, a / 4 + 3 * b / 4], rel=1e-14)


@pytest.mark.parametrize("policy", BN_POLICIES.values(), ids=lambda p: p.name)
@pytest.mark.parametrize(
    "net", [bn_net, residual_net, lambda: with_projection_head(bn_net(), 0, 6)]
)
def test_without_its_term_it_is_fedavg(policy, net) -> None:
    runs = [
        finished(build_algorithm(name, **settings), policy, net())
        for name, settings in (("moon", {"mu": 0.0}), ("fedavg", {}))
    ]
    for name in ("server", "a", "b", "c", "d"):
        one, two = (run.state.weights(name) for run in runs)
        assert all(torch.equal(one[key], two[key]) for key in one)


def test_the_first_round_is_fedavgs_and_the_second_is_not() -> None:
    # Every client takes part, so that the second round has a previous network for each.
    for rounds in (1, 2):
        schedule = replace(SCHEDULE, rounds=rounds, participation=1.0)
        runs = [
            finished(build_algorithm(name), AGGREGATED, bn_net(), schedule)
            for name in ("moon", "fedavg")
        ]
        one, two = (run.state.server["4.weight"] for run in runs)
        assert torch.equal(one, two) is (rounds == 1)


def test_the_term_is_no_part_of_the_batch_loss() -> None:
    # One full batch a round: the loss recorded is that of the start, whatever mu.
    schedule = Schedule(rounds=2, batch_size=64, lr=1e-30)
    rows = [
        [row.value for row in federate(algorithm, AGGREGATED, bn_net(), UNEQUAL, schedule)]
        for algorithm in (moon(), build_algorithm("fedavg"))
    ]
    assert rows[0] == pytest.approx(rows[1], rel=1e-14)


def head_net() -> nn.Module:
    return with_projection_head(bn_net(), 0, 6)


def by_loops(policy, mu: float, temperature: float) -> dict:
    """Images one by one, cosines and the fraction spelled out, whole nets kept."""
    previous: dict[nn.Module, nn.Module] = {}  # by the net that each client trains

    def z(net, images: Tensor) -> Tensor:
        return net[-1][:-1](net[:-1](images))  # all of the net but its classifier

    def cosine(one: Tensor, two: Tensor) -> Tensor:
        return one @ two / (one @ one).sqrt() / (two @ two).sqrt()

    def train(net, _sent, parts: Batches) -> None:
        received = copy.deepcopy(net).eval()
        for x, y in parts:
            mine = z(net, x)
            loss = functional.cross_entropy(net[-1][-1](mine), y)
            for k in range(len(x) if net in previous else 0):
                near = (cosine(mine[k], z(received, x[k : k + 1])[0]) / temperature).exp()
                far = (cosine(mine[k], z(previous[net], x[k : k + 1])[0]) / temperature).exp()
                loss = loss - mu * (near / (near + far)).log() / len(x)
            weights = list(net.parameters())
            for weight, grad in zip(weights, torch.autograd.grad(loss, weights), strict=True):
                weight.data -= SCHEDULE.lr * grad
        previous[net] = copy.deepcopy(net).eval()

    return plain_federation(head_net(), UNEQUAL, SCHEDULE, policy, train)


@pytest.mark.parametrize("policy", [AGGREGATED, CLIENT_SPECIFIC], ids=lambda p: p.name)
def test_a_second_implementation_agrees_over_five_rounds(policy) -> None:
    run = finished(moon(mu=2.0, temperature=0.3), policy, head_net())
    assert_agrees(run.state, by_loops(policy, 2.0, 0.3), policy)


def test_measuring_changes_nothing() -> None:
    runs = [
        finished(moon(), AGGREGATED, bn_net(), replace(SCHEDULE, measure_every=every))
        for every in (1, 5)
    ]
    one, two = (run.state.server for run in runs)
    assert all(torch.equal(one[key], two[key]) for key in one)


def test_a_net_without_batch_norm_trains() -> None:
    with pytest.warns(UserWarning, match="no batch-norm layer"):
        finished(moon(), AGGREGATED, plain_net())


@pytest.mark.parametrize("mu", [-1.0, math.nan, math.inf, 1e39])
def test_a_bad_mu_is_refused(mu: float) -> None:
    with pytest.raises(ValueError, match="MOON needs a finite mu of at least 0"):
        moon(mu=mu)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf, 1e39, 1e-39])
def test_a_bad_temperature_is_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match="MOON needs a positive temperature"):
        moon(temperature=temperature)
