"""The record of hooks is wide enough for methods with memories: SCAFFOLD, option II, as a trial."""

import pytest
import torch
from torch.nn import functional
from toy import client, plain_net

from empirical.algorithm import Algorithm, Local, Memory, Report, Server
from empirical.batches import batches
from empirical.bn_policy import AGGREGATED
from empirical.federate import federate
from empirical.schedule import Schedule, participants
from empirical.weights import Weights

CLIENTS = [client("a", 9), client("b", 17), client("c", 30), client("d", 5)]
SCHEDULE = Schedule(rounds=5, batch_size=8, lr=0.1, participation=0.5, seed=1)


def scaffold() -> Algorithm:
    def zeros(like: Weights) -> Weights:
        return {name: torch.zeros_like(w) for name, w in like.items()}

    def controls(local: Local) -> tuple[Weights, Weights]:
        start = zeros(local.received)
        return local.broadcast.get("control", start), local.memory.get("control", start)

    def correct(local: Local) -> None:
        ours, mine = controls(local)
        for name, weight in local.learned.items():
            assert weight.grad is not None
            weight.grad += ours[name] - mine[name]

    def report(local: Local) -> tuple[Report, Memory]:
        ours, mine = controls(local)
        change = {
            name: (local.received[name] - w.detach()) / (local.steps * local.lr) - ours[name]
            for name, w in local.learned.items()
        }
        kept = {name: mine[name] + change[name] for name in mine}
        return {"learned": local.learned, "change": change}, {"control": kept}

    def aggregate(server: Server, mean: Report, participation: float) -> Server:
        control = server.memory.get("control", zeros(server.learned))
        control = {n: control[n] + participation * mean["change"][n] for n in control}
        return Server(dict(mean["learned"]), {"control": control})

    return Algorithm("scaffold", "", correct_gradient=correct, report=report, aggregate=aggregate)


def test_scaffold_as_plain_loops() -> None:
    with pytest.warns(UserWarning, match="no batch-norm layer"):
        run = federate(scaffold(), AGGREGATED, plain_net(), CLIENTS, SCHEDULE)
    assert list(run)

    net = plain_net()
    w = [p.detach().clone() for p in net.parameters()]
    p = {"a": 9 / 61, "b": 17 / 61, "c": 30 / 61, "d": 5 / 61}
    own = {name: [torch.zeros_like(t) for t in w] for name in p}
    for round_ in range(1, 6):
        chosen = participants(list(p), SCHEDULE, round_)
        central = [sum(p[n] * own[n][k] for n in p) for k in range(len(w))]  # c = Σ p_i c_i
        results = {}
        for c in (c for c in CLIENTS if c.name in chosen):
            y, taken = [t.clone().requires_grad_() for t in w], 0
            x, labels = c.train.inputs().double(), c.train.labels
            for rows in batches(c.name, len(labels), SCHEDULE, round_):
                names = [name for name, _ in net.named_parameters()]
                logits = torch.func.functional_call(net, dict(zip(names, y, strict=True)), x[rows])
                grads = torch.autograd.grad(functional.cross_entropy(logits, labels[rows]), y)
                with torch.no_grad():
                    for k, grad in enumerate(grads):
                        y[k] -= 0.1 * (grad - own[c.name][k] + central[k])
                taken += 1
            results[c.name] = [t.detach() for t in y]
            own[c.name] = [
                own[c.name][k] - central[k] + (w[k] - results[c.name][k]) / (taken * 0.1)
                for k in range(len(w))
            ]
        total = sum(p[n] for n in chosen)
        w = [sum(p[n] / total * results[n][k] for n in chosen) for k in range(len(w))]
    for found, expected in zip(run.state.server.values(), w, strict=True):
        # Float64's rounding, enlarged by 1 / (steps · lr) and fed back over five rounds.
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)
