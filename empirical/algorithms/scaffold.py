"""SCAFFOLD: FedAvg whose clients correct each step by what they know of all gradients."""

import torch

from empirical.algorithm import Algorithm, Local, Memory, Report, Server
from empirical.algorithms.control_variates import add_changes, controls, correct, mean_step
from empirical.checks import LARGEST, is_real, is_whole


def scaffold(server_lr: float = 1.0, option: int = 2) -> Algorithm:
    """SCAFFOLD (Karimireddy et al. 2020, Algorithm 1) for the objective Σ p_i J_i.

    Each step follows g_i(y) − c_i + c. After K_i steps of size η the client's control becomes
    c_i⁺ = g_i(w), the gradient over all its images at the weights it received (option I), or
    c_i⁺ = c_i − c + (w − y_i) / (K_i η), the mean of the gradients along its path (option II).
    The server takes w⁺ = w + η_g Σ_{i∈S} p̃_i (y_i − w), with p̃ the participants' p made to sum
    to one, and c⁺ = c + Σ_{i∈S} p_i (c_i⁺ − c_i). The paper writes p_i = 1/N.

    A client that has not taken part has c_i = 0, so that c = Σ p_i c_i in every round. Controls
    exist for shared parameters alone: what stays with a client is trained as in FedAvg.

    Args:
        server_lr: η_g, the server's step size; the default is the paper's in its experiments.
        option: 1, which costs one more pass over the images a round, or 2, the paper's choice
            in its experiments.

    Raises:
        ValueError: a server_lr that is no positive number float32 holds, or another option.
    """
    if not (is_real(server_lr) and 0 < server_lr <= LARGEST):
        raise ValueError(
            f"SCAFFOLD needs a positive server_lr that float32 holds, got {server_lr!r}"
        )
    if not (is_whole(option) and option in (1, 2)):
        raise ValueError(f"SCAFFOLD's option is 1 or 2, got {option!r}")

    def correct_gradient(local: Local) -> None:
        if option == 1 and local.steps == 0:
            local.scratch["gradient"] = local.full_gradient()
        correct(local)

    def report(local: Local) -> tuple[Report, Memory]:
        c, c_i = controls(local)
        if option == 1:
            gradient = local.scratch["gradient"]  # lacks parameters that are not trained
            change = {name: gradient.get(name, own) - own for name, own in c_i.items()}
        else:
            change = {name: step - c[name] for name, step in mean_step(local).items()}
        kept = {name: c_i[name] + change[name] for name in c_i}
        return {"learned": local.learned, "control_change": change}, {"control": kept}

    def aggregate(server: Server, mean: Report, participation: float) -> Server:
        learned = {
            name: torch.lerp(weight, mean["learned"][name], server_lr)
            for name, weight in server.learned.items()
        }
        return Server(learned, {"control": add_changes(server, mean, participation)})

    return Algorithm(
        "scaffold",
        "Karimireddy et al. 2020, Algorithm 1",
        {"server_lr": server_lr, "option": option},
        correct_gradient=correct_gradient,
        report=report,
        aggregate=aggregate,
    )
