"""FedAdam, FedYogi, FedAdagrad: the mean change is a gradient for an adaptive server."""

from collections.abc import Callable

import torch
from torch import Tensor

from empirical.algorithm import Algorithm, Report, Server
from empirical.checks import LARGEST, is_real

SecondMoment = Callable[[Tensor, Tensor], Tensor]  # (v, Δ²) -> the new v


def fedadam(
    server_lr: float = 0.1, beta1: float = 0.9, beta2: float = 0.99, tau: float = 1e-3
) -> Algorithm:
    """FedAdam (Reddi et al. 2021, Algorithm 2): v ← β₂ v + (1 − β₂) Δ².

    With Δ = Σ p_i y_i − w over the participants and m ← β₁ m + (1 − β₁) Δ the server steps to
    w⁺ = w + η_s m / (√v + τ). As in the paper no bias is corrected, m starts at 0 and v at τ²,
    the least that it allows (v₋₁ ≥ τ²). Only shared parameters have moments.

    Args:
        server_lr: η_s; the paper tunes it for each task, the default is Flower's (`FedAdam`).
        beta1: β₁ in [0, 1); the default is the paper's for all its tasks, as β₂'s and τ's.
        beta2: β₂ in [0, 1).
        tau: τ > 0, the degree of adaptivity; not UniFed's τ of batch norm.

    Raises:
        ValueError: a setting out of its range.
    """
    _check(server_lr, beta1, tau, beta2)

    def adam(v: Tensor, squared: Tensor) -> Tensor:
        return beta2 * v + (1 - beta2) * squared

    settings = {"server_lr": server_lr, "beta1": beta1, "beta2": beta2, "tau": tau}
    return _adaptive("fedadam", settings, adam)


def fedyogi(
    server_lr: float = 0.01, beta1: float = 0.9, beta2: float = 0.99, tau: float = 1e-3
) -> Algorithm:
    """FedYogi (Reddi et al. 2021, Algorithm 2): v ← v − (1 − β₂) Δ² sign(v − Δ²).

    Otherwise as `fedadam`: v falls towards small Δ² more slowly.

    Args:
        server_lr: η_s; the paper tunes it for each task, the default is Flower's (`FedYogi`).
        beta1: β₁ in [0, 1); the default is the paper's for all its tasks, as β₂'s and τ's.
        beta2: β₂ in [0, 1).
        tau: τ > 0.

    Raises:
        ValueError: a setting out of its range.
    """
    _check(server_lr, beta1, tau, beta2)

    def yogi(v: Tensor, squared: Tensor) -> Tensor:
        return v - (1 - beta2) * squared * (v - squared).sign()

    settings = {"server_lr": server_lr, "beta1": beta1, "beta2": beta2, "tau": tau}
    return _adaptive("fedyogi", settings, yogi)


def fedadagrad(server_lr: float = 0.1, beta1: float = 0.0, tau: float = 1e-3) -> Algorithm:
    """FedAdagrad (Reddi et al. 2021, Algorithm 2): v ← v + Δ².

    Otherwise as `fedadam`.

    Args:
        server_lr: η_s; the paper tunes it for each task, the default is Flower's (`FedAdagrad`).
        beta1: β₁ in [0, 1); the default is the paper's: no momentum, as is usual with Adagrad.
        tau: τ > 0; the paper's for all its tasks.

    Raises:
        ValueError: a setting out of its range.
    """
    _check(server_lr, beta1, tau)

    def adagrad(v: Tensor, squared: Tensor) -> Tensor:
        return v + squared

    settings = {"server_lr": server_lr, "beta1": beta1, "tau": tau}
    return _adaptive("fedadagrad", settings, adagrad)


def _check(server_lr: float, beta1: float, tau: float, beta2: float = 0.0) -> None:
    for name, value in (("server_lr", server_lr), ("tau", tau)):
        if not (is_real(value) and 0 < value <= LARGEST):
            raise ValueError(f"{name} must be a positive number that float32 holds, got {value!r}")
    for name, value in (("beta1", beta1), ("beta2", beta2)):
        if not (is_real(value) and 0 <= value < 1):
            raise ValueError(f"{name} must be a number in [0, 1), got {value!r}")


def _adaptive(name: str, settings: dict[str, float], second_moment: SecondMoment) -> Algorithm:
    """Algorithm 2 with this rule for v."""
    server_lr, beta1, tau = settings["server_lr"], settings["beta1"], settings["tau"]

    def aggregate(server: Server, mean: Report, participation: float) -> Server:  # noqa: ARG001
        first, second, learned = {}, {}, {}
        before = server.memory
        for key, weight in server.learned.items():
            change = mean["learned"][key] - weight
            # In float64: the square of a large change is more than float32 holds, and an
            # infinite v would stop the parameter without a sign of it.
            squared = change.double().square()
            m = before["m"][key] if before else torch.zeros_like(change)
            v = before["v"][key] if before else torch.full_like(squared, tau**2)
            first[key] = beta1 * m + (1 - beta1) * change
            second[key] = second_moment(v, squared)
            step = server_lr * first[key] / (second[key].sqrt() + tau)
            learned[key] = (weight + step).to(weight.dtype)
        return Server(learned, {"m": first, "v": second})

    return Algorithm(name, "Reddi et al. 2021, Algorithm 2", settings, aggregate=aggregate)
