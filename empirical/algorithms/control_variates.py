"""Control variates c and c_i, which SCAFFOLD and FedDC share; over shared parameters alone."""

import torch
from torch import Tensor

from empirical.algorithm import Local, Report, Server
from empirical.weights import Weights


def zeros(like: Weights) -> Weights:
    """Zeros of the same names and shapes."""
    return {name: torch.zeros_like(weight) for name, weight in like.items()}


def controls(local: Local) -> tuple[Weights, Weights]:
    """(c, c_i): the server's and this client's; zero until there is one."""
    c, c_i = local.broadcast.get("control"), local.memory.get("control")
    return c or zeros(local.received), c_i or zeros(local.received)


def correct(local: Local) -> None:
    """Adds c − c_i to the gradient of every shared parameter."""
    if "correction" not in local.scratch:
        c, c_i = controls(local)
        local.scratch["correction"] = {name: c[name] - c_i[name] for name in local.learned}
    for name, value in local.scratch["correction"].items():
        add_to_gradient(local.learned[name], value)


def add_to_gradient(weight: Tensor, value: Tensor) -> None:
    """Adds `value` to the gradient, which is 0 where the batch's loss did not use the parameter."""
    if weight.grad is None:
        weight.grad = torch.zeros_like(weight)
    weight.grad.add_(value)


@torch.no_grad()
def mean_step(local: Local) -> Weights:
    """(w − y_i) / (K_i η): what the client's steps followed on average; K_i is their number."""
    length = local.steps * local.lr
    return {
        name: (local.received[name] - weight) / length for name, weight in local.learned.items()
    }


def add_changes(server: Server, mean: Report, participation: float) -> Weights:
    """The server's new c + Σ_{i∈S} p_i Δc_i, with p over all clients, so that c stays Σ p_i c_i.

    With 1/N instead of p_i, clients of unequal size would stop at the optimum of Σ J_i / N.
    """
    control = server.memory.get("control") or zeros(server.learned)
    return {
        name: torch.add(value, mean["control_change"][name], alpha=participation)
        for name, value in control.items()
    }
