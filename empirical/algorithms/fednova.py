"""FedNova: FedAvg in which a client counts by its p, however many steps it takes."""

import math

import torch

from empirical.algorithm import Algorithm, Local, Memory, Report, Server
from empirical.algorithms.fedprox import pull
from empirical.checks import LARGEST, is_real


def fednova(momentum: float = 0.0, mu: float = 0.0) -> Algorithm:
    """FedNova (Wang et al. 2020), for SGD with momentum, a proximal term, or both.

    A client's change is a sum of its gradients, w − y_i = η Σ_k a_ik g_ik. Where the steps are
    small all g_ik are close to ∇J_i(w), so that FedAvg's step is −η Σ p_i A_i ∇J_i(w), with
    A_i = Σ_k a_ik: it stops where Σ p_i A_i J_i is least, and a client that takes more steps
    counts for more. FedNova sends d_i = (w − y_i) / A_i, the change for one gradient, and steps

        w⁺ = w − τ_eff Σ p_i d_i,        Σ p_i d_i = η Σ p_i ∇J_i(w) + O(η²),

    which is zero where Σ p_i J_i is least, up to O(η), whatever the A_i. τ_eff is the mean number
    of steps: Σ p_i A_i, or Σ p_i K_i with a proximal term, which shortens A_i but is no reason for
    a shorter step. p runs over the participants, made to sum to one: where sizes are unequal and
    not all take part it leans as FedAvg's does (see `fedavg`). Statistics and what stays with a
    client are not normalised; its momentum acts on every parameter that it trains, and starts at
    zero each round.

    Args:
        momentum: ρ of the clients' SGD, in [0, 1); the default of the authors' parser, plain SGD.
        mu: μ of FedProx's term on the shared parameters; the same parser's default, none.

    Raises:
        ValueError: ρ is no number in [0, 1), or μ no finite number of at least 0; in training, a
            product of step size and μ at which the steps of the proximal term alone diverge.
    """
    if not (is_real(momentum) and 0 <= momentum < 1):
        raise ValueError(f"FedNova needs a momentum in [0, 1), got {momentum!r}")
    if not (is_real(mu) and 0 <= mu <= LARGEST):
        raise ValueError(f"FedNova needs a finite mu of at least 0 that float32 holds, got {mu!r}")

    def correct(local: Local) -> None:
        if mu:
            pull(local, mu)
        if momentum:
            _add_momentum(local, momentum)

    @torch.no_grad()
    def report(local: Local) -> tuple[Report, Memory]:
        gradients = gradients_in_change(local.steps, momentum, local.lr * mu)
        steps = local.steps if mu else gradients
        change = {n: (local.received[n] - w) / gradients for n, w in local.learned.items()}
        effective = torch.tensor(steps, dtype=torch.float64)
        return {"change": change, "steps": {"effective": effective}}, {}

    return Algorithm(
        "fednova",
        "Wang et al. 2020 (NeurIPS)",
        {"momentum": momentum, "mu": mu},
        correct_gradient=correct,
        report=report,
        aggregate=_normalised_step,
    )


def gradients_in_change(steps: int, momentum: float, pull: float) -> float:
    """A = Σ_k a_k: how many gradients the change (w − y)/η holds after so many steps.

    The solver's own steps with every gradient equal to one: with x = (w − y)/η, so that the
    proximal term adds −ημ x, its buffer is u ← ρ u + 1 − ημ x, and x ← x + u. For ρ = μ = 0 this
    is K; for μ = 0 it is (K − ρ (1 − ρᴷ)/(1 − ρ))/(1 − ρ); for ρ = 0, (1 − (1 − ημ)ᴷ)/(ημ). It is
    ‖a‖₁ while no a_k is negative, which √(ημ) ≤ 1 − √ρ ensures; beyond, where the pull swings
    back, the sum and not the norm still turns equal gradients into one. (The authors' code
    applies the second rule on top of the first where both are set, and counts each step twice.)

    Args:
        steps: K.
        momentum: ρ.
        pull: ημ.

    Raises:
        ValueError: the sum is not positive and finite: the pull alone makes the steps diverge.
    """
    total = buffer = 0.0
    for _ in range(steps):
        buffer = momentum * buffer + 1 - pull * total
        total += buffer
    if not 0 < total < math.inf:
        raise ValueError(
            f"a step size times mu of {pull:g} makes FedNova's local steps swing past what they "
            "are pulled to; lower mu or the step size until it is below 1"
        )
    return total


@torch.no_grad()
def _add_momentum(local: Local, momentum: float) -> None:
    """Puts u ← ρ u + g in the place of each gradient g."""
    buffers = local.scratch.setdefault("momentum", {})
    for name, weight in local.trained.items():
        if weight.grad is None:  # the batch's loss did not use it
            weight.grad = torch.zeros_like(weight)
        if name in buffers:
            weight.grad.add_(buffers[name], alpha=momentum)
        buffers[name] = weight.grad.clone()


def _normalised_step(server: Server, mean: Report, participation: float) -> Server:  # noqa: ARG001
    tau = mean["steps"]["effective"].item()
    learned = {n: w.sub(mean["change"][n], alpha=tau) for n, w in server.learned.items()}
    return Server(learned, server.memory)
