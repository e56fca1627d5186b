"""FedDC: control variates, and a drift variable by which client and server models may differ."""

import torch

from empirical.algorithm import Algorithm, Local, Memory, Report, Server
from empirical.algorithms.control_variates import (
    add_changes,
    add_to_gradient,
    controls,
    correct,
    mean_step,
    zeros,
)
from empirical.checks import LARGEST, is_real


def feddc(alpha: float = 0.01) -> Algorithm:
    """FedDC (Gao et al. 2022) for the objective Σ p_i J_i.

    Each client minimises J_i(y) + α/2 ‖h_i + y − w‖² + ⟨y, c − c_i⟩; then h_i⁺ = h_i + y_i − w
    and c_i⁺ = c_i − c + (w − y_i) / (K_i η) after K_i steps of size η. The server takes
    w⁺ = Σ_{i∈S} p̃_i y_i + Σ_i p_i h_i⁺, with p̃ the participants' p made to sum to one and the
    second sum over all clients, and c = Σ p_i c_i.

    Where it stops: a round that changes nothing, whoever takes part, has y_i = w (since h_i
    stays), then c = 0 (since c_i stays) and Σ p_i h_i = 0 (since w stays). On quadratics small
    steps that end where they began have not moved, so ∇J_i(w) + α h_i = c_i, whose p-mean is
    Σ p_i ∇J_i(w) = 0: the weighted optimum. The same p in all three sums makes the h_i cancel;
    with plain means of y_i and h_i and this loss, α Σ p_i h_i would be left over.

    The authors' code (gaoliang13/FedDC) differs where clients are unequal or have batch norm:

    - It takes plain means of y_i and h_i and divides α and c by N p_i. Its optimum is the same,
      but it pulls a client of a hundredth of the mean size with 100 α; here α is one for all.
    - Its K is computed from the mean size; here it is the number of steps taken.
    - It clips gradients to norm 10 (then (w − y_i) / (K_i η) is no mean gradient) and decays
      weights and step size, which this loop does for no method.
    - It reloads named parameters alone, which a model with running statistics refuses. Here h_i
      and c_i exist for shared parameters, and statistics follow the batch-norm policy.

    Σ p_i h_i sums up all changes so far, a momentum without friction, so that h_i grows without
    end where steps are large: one client of curvature a and one step a round need
    η (3 a + 2 α) < 4, FedAvg η a < 2. Such a run is reported as diverged.

    Args:
        alpha: α; the default is the authors' for CIFAR-10 and CIFAR-100 (0.1 for MNIST).

    Raises:
        ValueError: α is no number, negative, or more than float32 holds.
    """
    if not (is_real(alpha) and 0 <= alpha <= LARGEST):
        raise ValueError(
            f"FedDC needs a finite alpha of at least 0 that float32 holds, got {alpha!r}"
        )

    def drift(local: Local) -> dict[str, torch.Tensor]:
        return local.memory.get("drift") or zeros(local.received)

    @torch.no_grad()
    def correct_gradient(local: Local) -> None:
        if "anchor" not in local.scratch:
            h = drift(local)
            local.scratch["anchor"] = {name: w - h[name] for name, w in local.received.items()}
        correct(local)
        for name, anchor in local.scratch["anchor"].items():
            weight = local.learned[name]
            add_to_gradient(weight, alpha * (weight - anchor))

    @torch.no_grad()
    def report(local: Local) -> tuple[Report, Memory]:
        c, c_i = controls(local)
        change = {name: step - c[name] for name, step in mean_step(local).items()}
        kept = {
            "control": {name: c_i[name] + change[name] for name in c_i},
            "drift": {
                name: h + (local.learned[name] - local.received[name])
                for name, h in drift(local).items()
            },
        }
        return {"learned": local.learned, "control_change": change}, kept

    def aggregate(server: Server, mean: Report, participation: float) -> Server:
        total = server.memory.get("drift") or zeros(server.learned)  # Σ p_i h_i
        total = {
            name: torch.add(h, mean["learned"][name] - server.learned[name], alpha=participation)
            for name, h in total.items()
        }
        learned = {name: mean["learned"][name] + h for name, h in total.items()}
        memory = {"control": add_changes(server, mean, participation), "drift": total}
        return Server(learned, memory)

    return Algorithm(
        "feddc",
        "Gao et al. 2022",
        {"alpha": alpha},
        correct_gradient=correct_gradient,
        report=report,
        aggregate=aggregate,
    )
