"""A federation as plain loops over whole copies of the model, to check `federate` against."""

import copy
import functools
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from empirical.batches import steps as drawn
from empirical.bn_policy import AGGREGATED, CLIENT_SPECIFIC, CLIENT_STATISTICS
from empirical.data.client import Client
from empirical.schedule import Schedule, participants
from empirical.weights import Weights

Batches = list[tuple[Tensor, Tensor]]
# What stays with a client of `bn_net`, as starts or ends of names: its layers 1 and 5 are BN.
OWN = {
    AGGREGATED: ("num_batches_tracked",),
    CLIENT_SPECIFIC: ("1.", "5."),
    CLIENT_STATISTICS: ("running_mean", "running_var", "num_batches_tracked"),
}


def shared_under(policy) -> Callable[[str], bool]:
    """Whether a tensor of `bn_net` is shared, from its name."""
    own = OWN[policy]
    return lambda key: not (key.startswith(own) or key.endswith(own))


def total(terms: Iterable[Tensor]) -> Tensor:
    """Their sum, of at least one."""
    return functools.reduce(torch.add, terms)


def gradients(net: nn.Module, x: Tensor, y: Tensor) -> Weights:
    """Of the mean cross-entropy over one batch."""
    loss = functional.cross_entropy(net(x), y)
    names, weights = zip(*net.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, weights), strict=True))


def mean(_w: Weights, results: dict[str, Weights], _steps: dict[str, int], p: dict) -> Weights:
    """FedAvg's server."""
    first = next(iter(results.values()))
    return {key: total(p[name] * y[key] for name, y in results.items()) for key in first}


def plain_federation(
    model: nn.Module,
    clients: Sequence[Client],
    schedule: Schedule,
    policy,
    train: Callable[[nn.Module, Weights, Batches], None],
    aggregate: Callable[[Weights, dict[str, Weights], dict[str, int], dict], Weights] = mean,
) -> dict[str, Weights]:
    """All tensors of every client that has trained, and the server's, after the last round.

    `train(net, sent, batches)` changes the net; `sent` are the shared parameters. `aggregate(w,
    results, steps, p)` gives the server's new ones from the participants', p over these.
    """
    shared = shared_under(policy)
    server = copy.deepcopy(model)
    nets = {c.name: copy.deepcopy(model) for c in clients}
    size = {c.name: len(c.train) for c in clients}
    learned = [key for key, _ in model.named_parameters() if shared(key)]
    seen: set[str] = set()
    for round_ in range(1, schedule.rounds + 1):
        chosen = participants(list(nets), schedule, round_)
        state = copy.deepcopy(server.state_dict())
        sent, results, steps = {key: state[key] for key in learned}, {}, {}
        for c in clients:
            net = nets[c.name].train()
            takes = [k for k in state if shared(k) or c.name not in seen]  # a newcomer: all of it
            net.load_state_dict({k: state[k] for k in takes}, strict=False)
            if c.name in chosen:
                x, y = c.train.inputs().double(), c.train.labels
                order = drawn(c.name, len(y), schedule, round_)
                parts = [(x[rows], y[rows]) for (rows,) in order]
                train(net, sent, parts)
                steps[c.name] = len(parts)
                results[c.name] = {k: net.state_dict()[k].clone() for k in learned}
        seen |= set(chosen)
        p = {name: size[name] / sum(size[n] for n in chosen) for name in chosen}
        new = aggregate(sent, results, steps, p)
        for key, value in server.state_dict().items():
            if key in new:
                value.copy_(new[key])
            elif value.is_floating_point():
                who = chosen if shared(key) else sorted(seen)
                images = sum(size[name] for name in who)
                value.copy_(total(size[n] / images * nets[n].state_dict()[key] for n in who))
    return {name: nets[name].state_dict() for name in seen} | {"server": server.state_dict()}


def sgd(lr: float) -> Callable[[nn.Module, Weights, Batches], None]:
    """FedAvg's clients."""

    def train(net: nn.Module, _sent: Weights, parts: Batches) -> None:
        for x, y in parts:
            for key, gradient in gradients(net, x, y).items():
                net.get_parameter(key).data -= lr * gradient

    return train


def assert_agrees(state, expected: dict[str, Weights], policy, tolerance: float = 1e-12) -> None:
    """The run's server, and what stays with each client, are those of the plain loops."""
    shared = shared_under(policy)
    server = expected.pop("server")
    assert {name for name, found in state.clients.items() if found} == set(expected)
    whole = {"server": (state.server, server)} | {
        name: (state.clients[name], {k: v for k, v in found.items() if not shared(k)})
        for name, found in expected.items()
    }
    for found, wanted in whole.values():
        assert found.keys() == wanted.keys()
        for key in found:
            torch.testing.assert_close(found[key], wanted[key], rtol=tolerance, atol=tolerance)
