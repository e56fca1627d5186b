"""Per-FedAvg: its steps in closed form and by hand, a second implementation, and its serving."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from loops import Batches, assert_agrees, plain_federation, sgd
from torch import Tensor, nn
from torch.autograd.functional import hvp
from torch.nn import functional
from toy import Slope, bn_net, client, signs

from empirical.algorithm import Local
from empirical.algorithms import build_algorithm
from empirical.algorithms.perfedavg import perfedavg
from empirical.batches import steps
from empirical.bn_policy import AGGREGATED, CLIENT_SPECIFIC
from empirical.federate import Run, federate
from empirical.local_training import adapt_before_measuring
from empirical.schedule import Schedule
from empirical.seeds import generator
from empirical.weights import Weights, load, take, tensors

UNEQUAL = [client("a", 12), client("b", 17), client("c", 40), client("d", 28)]
SCHEDULE = Schedule(rounds=5, local_epochs=2, batch_size=8, lr=9.0, participation=0.6, seed=3)
POLICIES = [AGGREGATED, CLIENT_SPECIFIC]
ALPHA, BETA, DELTA = 0.3, 0.05, 1e-2


def tanh_net() -> nn.Module:
    """`bn_net` without kinks, which central differences would cross."""
    net = bn_net()
    net[2], net[6] = nn.Tanh(), nn.Tanh()  # type: ignore[index]
    return net


def finished(policy, schedule=SCHEDULE, model: nn.Module | None = None, **settings) -> Run:
    algorithm = perfedavg(**{"alpha": ALPHA, "beta": BETA, **settings})
    run = federate(algorithm, policy, model or bn_net(), UNEQUAL, schedule)
    assert list(run) and run.state.status == "complete"
    return run


def meta_gradient(w: Tensor, losses: Sequence[Callable[[Tensor], Tensor]], **settings) -> Tensor:
    """What the hook leaves in `.grad` at w, whose bits it must not have changed."""
    live = w.clone().requires_grad_()

    def batch(loss: Callable[[Tensor], Tensor]) -> Callable[[], None]:
        def backward() -> None:
            live.grad = None
            loss(live).backward()

        return backward

    weights = {"w": live}
    local = Local("a", weights, {}, {}, {}, 1.0, weights, dict)
    perfedavg(**settings).gradient(local, [batch(loss) for loss in losses])
    assert torch.equal(live, w)
    assert live.grad is not None
    return live.grad


def quadratic(seed: int) -> tuple[Tensor, Tensor, Callable[[Tensor], Tensor]]:
    draws = torch.Generator().manual_seed(seed)
    a, t = (torch.randn(*shape, generator=draws, dtype=torch.float64) for shape in ((4, 4), (4,)))
    a = a @ a.T
    return a, t, lambda w: (w - t) @ a @ (w - t) / 2


def test_both_orders_on_quadratics_in_closed_form() -> None:
    # f_k = (w - t_k)ᵀ A_k (w - t_k) / 2 for the batches k = 1, 2, 3: FO takes
    # v = A_2 (w - α A_1 (w - t_1) - t_2), HF takes (I - α A_3) v, for a quadratic's central
    # difference is exact: up to rounding, which 1/δ enlarges to some 1e-16 · 10 / δ.
    (a1, t1, f1), (a2, t2, f2), (a3, _, f3) = (quadratic(seed) for seed in (1, 2, 3))
    w = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    v = a2 @ (w - 0.1 * a1 @ (w - t1) - t2)
    first = meta_gradient(w, [f1, f2], alpha=0.1)
    torch.testing.assert_close(first, v, rtol=1e-13, atol=1e-13)
    second = meta_gradient(w, [f1, f2, f3], alpha=0.1, order=2, delta=1e-2)
    torch.testing.assert_close(second, v - 0.1 * a3 @ v, rtol=1e-11, atol=1e-11)
    assert not torch.allclose(first, second, rtol=0.01)


def smooth(seed: int) -> Callable[[Tensor], Tensor]:
    """The loss of a small tanh net on one batch, as a function of its 22 weights."""
    draws = torch.Generator().manual_seed(seed)
    x = torch.randn(6, 3, generator=draws, dtype=torch.float64)
    y = torch.randint(0, 2, (6,), generator=draws)

    def loss(w: Tensor) -> Tensor:
        hidden = (x @ w[:12].view(3, 4) + w[12:16]).tanh()
        return functional.cross_entropy(hidden @ w[16:24].view(4, 2), y)

    return loss


def gradient(loss: Callable[[Tensor], Tensor], w: Tensor) -> Tensor:
    w = w.clone().requires_grad_()
    return torch.autograd.grad(loss(w), w)[0]


def test_hessian_free_is_the_exact_hessian_up_to_the_square_of_delta() -> None:
    # (∇f(w + δv) - ∇f(w - δv)) / 2δ - ∇²f v = δ²/6 ∇⁴f[v, v, v] + O(δ⁴): a quarter for half of δ.
    losses = [smooth(seed) for seed in (1, 2, 3)]
    draws = torch.Generator().manual_seed(0)
    w = torch.randn(24, generator=draws, dtype=torch.float64)
    v = gradient(losses[1], w - 0.5 * gradient(losses[0], w))
    curvature = hvp(losses[2], w, v)[1]
    assert isinstance(curvature, Tensor)
    exact = v - 0.5 * curvature
    errors = [
        (meta_gradient(w, losses, alpha=0.5, order=2, delta=delta) - exact).norm().item()
        for delta in (4e-2, 2e-2, 1e-2)
    ]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.01)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.01)
    assert errors[2] < 1e-4 * exact.norm().item()
    default = meta_gradient(w, losses, alpha=0.5, order=2)
    torch.testing.assert_close(default, exact, rtol=1e-6, atol=1e-6)


def one_round(clients, **settings) -> float:
    with pytest.warns(UserWarning, match="no batch-norm layer"):
        run = federate(
            perfedavg(**settings), AGGREGATED, Slope(), clients, Schedule(1, batch_size=1, lr=7.0)
        )
    assert list(run)
    return run.state.server["w"].item()


def s(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_a_first_order_round_by_hand() -> None:
    # f(w) = log(1 + e^-w) for label 1, log(1 + e^w) for label 0; w = 0, α = 1, β = 2.
    # a: one image labelled 1, which is both batches: w - α f' = 0 + 1/2, f'(1/2) = -s(-1/2);
    #    w_a = 0 + 2 s(-1/2) = .7550813375962908.
    # b: labels 1 and 0, one image a batch. Label 1 first: w - α f' = 1/2, and there label 0 has
    #    f' = s(1/2); w_b = 0 - 2 s(1/2) = -1.2449186624037092. Label 0 first: its negative.
    # Sizes 1 : 2.
    clients = [signs("a", [1], [1]), signs("b", [1, 1], [1, 0])]
    ((first, _),) = steps("b", 2, Schedule(1, batch_size=1), 1, 2)
    b = (-1.0 if first.item() == 0 else 1.0) * 1.2449186624037092
    found = one_round(clients, alpha=1.0, beta=2.0)
    assert found == pytest.approx(0.7550813375962908 / 3 + 2 * b / 3, rel=1e-14)


def test_a_hessian_free_round_by_hand() -> None:
    # a alone: v = -s(-1/2) as above; with δ = 1, f'(δv) - f'(-δv) = s(v) - s(-v) = tanh(v/2), so
    # d = v - α tanh(v/2) / 2 = -.3775406687981454 + .0932771… and w = -β d.
    v = -s(-1 / 2)
    found = one_round([signs("a", [1], [1])], alpha=1.0, beta=2.0, order=2, delta=1.0)
    assert found == pytest.approx(-2 * (v - math.tanh(v / 2) / 2), rel=1e-14)


def groups(parts: Batches, each: int) -> list[Batches]:
    """The batches of each step, dealt by plain loops; both epochs have as many."""
    found, epoch = [], len(parts) // SCHEDULE.local_epochs
    for left in (parts[:epoch], parts[epoch:]):
        while left:
            step, left = left[:each], left[each:]
            if len(step) < each:
                x, y = (torch.cat(tensors) for tensors in zip(*step, strict=True))
                many = len(y) >= 2 * each
                halves = (x.tensor_split(each), y.tensor_split(each))
                step = list(zip(*halves, strict=True)) if many else [(x, y)] * each
            found.append(step)
    return found


def by_loops(policy, order: int) -> dict:
    """The paper's step with weights handed to the net, whose own stay until the outer step."""

    def train(net: nn.Module, _sent: Weights, parts: Batches) -> None:
        def gradient_at(at: Weights, x: Tensor, y: Tensor) -> Weights:
            at = {name: w.detach().requires_grad_() for name, w in at.items()}
            logits = torch.func.functional_call(net, at, x)  # moves net's statistics
            loss = functional.cross_entropy(logits, y)
            return dict(zip(at, torch.autograd.grad(loss, list(at.values())), strict=True))

        for step in groups(parts, order + 1):
            w: Weights = dict(net.named_parameters())
            inner = gradient_at(w, *step[0])
            d = v = gradient_at({n: w[n] - ALPHA * inner[n] for n in w}, *step[1])
            if order == 2:
                plus = gradient_at({n: w[n] + DELTA * v[n] for n in w}, *step[2])
                minus = gradient_at({n: w[n] - DELTA * v[n] for n in w}, *step[2])
                d = {n: v[n] - ALPHA / (2 * DELTA) * (plus[n] - minus[n]) for n in w}
            for name, weight in w.items():
                weight.data -= BETA * d[name]

    return plain_federation(tanh_net(), UNEQUAL, SCHEDULE, policy, train)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
def test_a_second_implementation_agrees_over_five_rounds(policy, order: int) -> None:
    # The schedule's own step size, 9, has no part in it.
    run = finished(policy, model=tanh_net(), order=order, delta=DELTA)
    assert_agrees(run.state, by_loops(policy, order), policy)


def test_every_pass_moves_the_counters() -> None:
    # 1 round, 2 epochs of 12, 17, 40 and 28 images, which are 2, 2, 5 and 4 batches. FO takes
    # 1, 1, 3, 2 steps of 2 passes, HF 1, 1, 2, 2 steps of 4.
    schedule = replace(SCHEDULE, rounds=1, participation=1.0)
    for order, passes, expected in ((1, 2, (1, 1, 3, 2)), (2, 4, (1, 1, 2, 2))):
        state = finished(CLIENT_SPECIFIC, schedule, order=order).state
        found = [state.weights(n)["1.num_batches_tracked"].item() for n in "abcd"]
        assert found == [2 * taken * passes for taken in expected]


def test_both_passes_of_the_third_batch_drop_the_same_units() -> None:
    # With other units dropped their difference, over 2δ, would grow tenfold for a tenth of δ.
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 9), nn.Tanh(), nn.Dropout(), nn.Linear(9, 2))
    schedule = replace(SCHEDULE, rounds=1)
    found = []
    for delta in (1e-3, 1e-4):
        with pytest.warns(UserWarning, match="no batch-norm layer"):
            run = finished(AGGREGATED, schedule, model.double(), order=2, delta=delta)
        found.append(run.state.server["1.weight"])
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-5)


def test_frozen_parameters_stay() -> None:
    model = bn_net()
    model[4].requires_grad_(False)  # type: ignore[index]
    state = finished(AGGREGATED, model=model, order=2).state
    start = model.state_dict()
    # Up to the rounding of a mean of equal numbers.
    torch.testing.assert_close(state.server["4.weight"], start["4.weight"], rtol=1e-14, atol=0)
    assert not torch.allclose(state.server["7.weight"], start["7.weight"], rtol=1e-3)


def adapted(weights: Weights, name: str, round_: int) -> nn.Module:
    """A client's model after one step of size α on one seeded batch, its statistics as before."""
    images = next(c for c in UNEQUAL if c.name == name).train
    draws = generator(SCHEDULE.seed, "adaptation", name, round_)
    rows = torch.randperm(len(images), generator=draws)[:8]
    net, trial = bn_net().eval(), bn_net().train()
    load(net, weights)
    load(trial, weights)
    functional.cross_entropy(trial(images.inputs().double()[rows]), images.labels[rows]).backward()
    for weight, moved in zip(net.parameters(), trial.parameters(), strict=True):
        weight.data -= ALPHA * moved.grad  # type: ignore[operator]
    return net


def losses(net: nn.Module, split) -> float:
    return functional.cross_entropy(net(split.inputs().double()), split.labels).item()


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
def test_clients_are_measured_after_their_adaptation_and_the_server_as_it_is(policy) -> None:
    schedule = replace(SCHEDULE, rounds=2)
    run = federate(perfedavg(alpha=ALPHA, beta=BETA), policy, bn_net(), UNEQUAL, schedule)
    rows, states = [], []
    for row in run:
        rows.append(row)
        if (row.client, row.metric) == ("server", "accuracy"):
            states.append(run.state)
    found = {(r.round, r.client, r.split): r.value for r in rows if r.metric == "loss"}
    for round_, state in enumerate(states):
        server = bn_net().eval()
        load(server, state.server)
        mean = sum(losses(server, c.test) for c in UNEQUAL) / 4
        assert found[round_, "server", "test"] == pytest.approx(mean, rel=1e-13)
        for c in UNEQUAL:
            net, plain = adapted(state.weights(c.name), c.name, round_), bn_net().eval()
            load(plain, state.weights(c.name))
            for split in ("train", "test"):
                expected = losses(net, getattr(c, split))
                assert found[round_, c.name, split] == pytest.approx(expected, rel=1e-13)
                assert expected != pytest.approx(losses(plain, getattr(c, split)), rel=1e-5)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
def test_measuring_changes_no_state(policy) -> None:
    runs, last = [], []
    for every in (1, 5):
        schedule = replace(SCHEDULE, measure_every=every)
        run = federate(perfedavg(), policy, bn_net(), UNEQUAL, schedule)
        last.append([row for row in run if row.round == 5])
        runs.append(run)
    assert last[0] == last[1]
    for name in ("server", "a", "b", "c", "d"):
        one, two = (run.state.weights(name) for run in runs)
        assert all(torch.equal(one[key], two[key]) for key in one)


def test_adaptation_keeps_statistics_modes_and_the_global_generator() -> None:
    run = finished(CLIENT_SPECIFIC, replace(SCHEDULE, rounds=1))
    net = run._net
    site = run._sites[0]
    net.eval()
    before, draws = take(tensors(net), tensors(net)), torch.get_rng_state()
    adapt_before_measuring(net, site, perfedavg(), SCHEDULE, 1)
    moved = {name for name, now in tensors(net).items() if not torch.equal(now, before[name])}
    assert {"0.weight", "1.weight", "4.weight", "5.bias", "7.bias"} <= moved
    assert moved <= dict(net.named_parameters()).keys()
    assert not any(layer.training for layer in net.modules())
    assert torch.equal(torch.get_rng_state(), draws)


def test_the_notes_say_which_model_is_measured() -> None:
    (note,) = (n for n in finished(AGGREGATED).state.notes if "adaptation" in n)
    assert note == (
        "perfedavg: each client is measured after the method's adaptation on one batch of its "
        "training images; the server's model is measured as it is"
    )


def test_without_an_adaptation_it_is_sgd_on_the_second_batch_of_each_step() -> None:
    schedule = replace(SCHEDULE, rounds=1)
    found = finished(AGGREGATED, schedule, alpha=0.0).state.server
    train = sgd(BETA)
    expected = plain_federation(
        bn_net(),
        UNEQUAL,
        schedule,
        AGGREGATED,
        lambda net, sent, parts: train(net, sent, [step[1] for step in groups(parts, 2)]),
    )["server"]
    for name in dict(bn_net().named_parameters()):
        torch.testing.assert_close(found[name], expected[name], rtol=1e-12, atol=1e-12)


def test_settings_and_their_defaults() -> None:
    first, second = perfedavg(), build_algorithm("perfedavg", order=2)
    assert first.settings == {"alpha": 0.01, "beta": 0.001, "order": 1, "delta": 1e-3}
    assert (first.local_lr, first.batches_a_step, second.batches_a_step) == (0.001, 2, 3)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, 1e39])
def test_bad_step_sizes_are_refused(bad: float) -> None:
    for name in ("alpha", "beta", "delta"):
        with pytest.raises(ValueError, match=f"Per-FedAvg needs .* {name}"):
            build_algorithm("perfedavg", **{name: bad})
    for name in ("beta", "delta"):
        with pytest.raises(ValueError, match=f"Per-FedAvg needs a positive {name}"):
            build_algorithm("perfedavg", **{name: 0.0})


@pytest.mark.parametrize("order", [0, 3])
def test_an_unknown_order_is_refused(order: int) -> None:
    with pytest.raises(ValueError, match=f"order 1 .* or 2 .*, got {order}"):
        perfedavg(order=order)
