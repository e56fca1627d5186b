"""FedProx: FedAvg whose clients are pulled towards what the server sent."""

import functools

import torch

from empirical.algorithm import Algorithm, Local
from empirical.checks import LARGEST, is_real


def fedprox(mu: float = 0.01) -> Algorithm:
    """FedProx (Li et al. 2020, Eq. (2)): each client minimises J_i(w) + μ/2 ‖w − wᵗ‖².

    The norm runs over the shared parameters: γ and β are among them where the batch-norm policy
    shares them, and what stays with the client is not pulled.

    Args:
        mu: μ; the default is med-air/FedBN's for its digits (`fed_digits.py`, 1e-2). 0 is FedAvg.

    Raises:
        ValueError: μ is no number, negative, or more than float32 holds.
    """
    if not (is_real(mu) and 0 <= mu <= LARGEST):
        raise ValueError(f"FedProx needs a finite mu of at least 0 that float32 holds, got {mu!r}")
    return Algorithm(
        "fedprox",
        "Li et al. 2020, Eq. (2)",
        {"mu": mu},
        correct_gradient=functools.partial(pull, mu=mu),
    )


@torch.no_grad()
def pull(local: Local, mu: float) -> None:
    """Adds μ (w − wᵗ), the gradient of the proximal term, to those of the shared parameters."""
    for name, weight in local.learned.items():
        if weight.grad is None and weight.requires_grad:  # the batch's loss did not use it
            weight.grad = torch.zeros_like(weight)
        if weight.grad is not None:
            weight.grad.add_(weight - local.received[name], alpha=mu)
