"""An algorithm as a frozen record of hooks: it states only how it differs from FedAvg."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from empirical.weights import Role, Weights

Memory = Mapping[str, Weights]  # an algorithm's own tensors, by purpose; never changed in place
Report = Mapping[str, Weights]  # what a client sends, by purpose; the server sees p-means of it


@dataclass
class Local:
    """One client during one round, as the hooks see it.

    Attributes:
        client: its name.
        learned: the shared parameters (γ and β among them where the policy shares them; never
            a statistic). They are the model's own tensors, being trained.
        received: the same parameters as the server sent them.
        memory: what this client kept when it last took part; empty at first.
        broadcast: the server's memory, sent along.
        lr: step size.
        steps: SGD steps taken so far in this round.
    """

    client: str
    learned: Weights
    received: Weights
    memory: Memory
    broadcast: Memory
    lr: float
    steps: int = 0


@dataclass(frozen=True)
class Server:
    """What the server holds between rounds.

    Attributes:
        learned: the shared parameters.
        memory: the algorithm's own tensors; empty at first.
    """

    learned: Weights
    memory: Memory = field(default_factory=dict)


def no_correction(local: Local) -> None:
    """FedAvg: the gradients stay as they are."""


def send_weights(local: Local) -> tuple[Report, Memory]:
    """FedAvg: a client sends its trained parameters and keeps nothing."""
    return {"learned": local.learned}, {}


def mean_of_weights(server: Server, mean: Report, participation: float) -> Server:  # noqa: ARG001
    """FedAvg: the mean of the clients' parameters replaces the server's."""
    return Server(dict(mean["learned"]), server.memory)


@dataclass(frozen=True)
class Algorithm:
    """How a method differs from FedAvg; every default is FedAvg.

    The loop (`federate`) knows a method only through these fields. Hooks see parameters alone:
    running statistics and counters never pass through them. The server sees Σ p_i of what the
    clients report, never one client's report, so its memory does not grow with their number.

    Attributes:
        name: the name in `ALGORITHMS`.
        source: paper and equation.
        settings: hyper-parameters, for the manifest.
        personal: roles that stay with each client whatever the batch-norm policy, and of which
            the server learns nothing.
        correct_gradient: changes `.grad` of `local.learned` in place before each step.
        report: after a client's last step -> (what it sends, what it keeps for its next round).
            The loop has taken what it needs from both when the next client begins, so live
            tensors may be reported but must be cloned to be kept.
        aggregate: (server, Σ p_i report_i with p summing to one over the participants,
            Σ p_i of the participants before that) -> the new server. Multiplied by the last
            argument the mean becomes the sum over participants with the p of all clients.
    """

    name: str
    source: str
    settings: Mapping[str, float] = field(default_factory=dict)
    personal: frozenset[Role] = frozenset()
    correct_gradient: Callable[[Local], None] = no_correction
    report: Callable[[Local], tuple[Report, Memory]] = send_weights
    aggregate: Callable[[Server, Report, float], Server] = mean_of_weights
