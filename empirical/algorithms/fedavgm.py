"""FedAvgM: the server has momentum."""

from empirical.algorithm import Algorithm, Report, Server
from empirical.checks import LARGEST, is_real


def fedavgm(momentum: float = 0.9, server_lr: float = 1.0) -> Algorithm:
    """FedAvgM (Hsu et al. 2019, section 4.3): v ← β v + Δ, w⁺ = w + η_s v.

    Δ = Σ p_i y_i − w over the participants, and v starts at 0. Only shared parameters have a v.

    Args:
        momentum: β in [0, 1); of the paper's grid (0, .7, .9, .97, .99, .997) the one that Reddi
            et al. 2021 fix. 0 is FedAvg.
        server_lr: η_s; 1 is Hsu et al.'s.

    Raises:
        ValueError: a setting out of its range.
    """
    if not (is_real(momentum) and 0 <= momentum < 1):
        raise ValueError(f"FedAvgM needs a momentum in [0, 1), got {momentum!r}")
    if not (is_real(server_lr) and 0 < server_lr <= LARGEST):
        raise ValueError(
            f"server_lr must be a positive number that float32 holds, got {server_lr!r}"
        )

    def aggregate(server: Server, mean: Report, participation: float) -> Server:  # noqa: ARG001
        velocity = {}
        for name, weight in server.learned.items():
            velocity[name] = mean["learned"][name] - weight
            if server.memory:
                velocity[name] += momentum * server.memory["velocity"][name]
        learned = {name: w + server_lr * velocity[name] for name, w in server.learned.items()}
        return Server(learned, {"velocity": velocity})

    settings = {"momentum": momentum, "server_lr": server_lr}
    return Algorithm("fedavgm", "Hsu et al. 2019", settings, aggregate=aggregate)
