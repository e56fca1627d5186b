"""An algorithm as a frozen record of hooks: it states only how it differs from FedAvg."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from empirical.checks import LARGEST, is_real, is_whole
from empirical.weights import Role, Weights

Memory = Mapping[str, Weights]  # an algorithm's own tensors, by purpose; never changed in place
Report = Mapping[str, Weights]  # what a client sends, by purpose; the server sees p-means of it
# One batch: sets every `.grad` to the gradient of its mean loss, in a new tensor.
Backward = Callable[[], None]


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
        trained: every parameter that this client trains: the shared ones and those that stay
            with it, such as γ and β under client-specific batch norm. Live tensors.
        full_gradient: gives the gradient of the client's mean training loss at its present
            weights over all its images, for the names in `learned` (in training mode, batch by
            batch; no running statistic moves and no `.grad` is touched).
        steps: SGD steps taken so far in this round.
        scratch: the algorithm's own tensors within this round, by purpose; empty at its start.
    """

    client: str
    learned: Weights
    received: Weights
    memory: Memory
    broadcast: Memory
    lr: float
    trained: Weights
    full_gradient: Callable[[], Weights]
    steps: int = 0
    scratch: dict[str, Weights] = field(default_factory=dict)


@dataclass(frozen=True)
class Features:
    """How three networks represent the same images: what the last linear layer is given.

    Attributes:
        z: by the network in training, with its graph.
        received: by the network as the client received it in this round, in eval mode.
        previous: by the client's network as it left its last round, in eval mode; None in its
            first round.
    """

    z: Float[Tensor, "batch features"]
    received: Float[Tensor, "batch features"]
    previous: Float[Tensor, "batch features"] | None


@dataclass(frozen=True)
class Server:
    """What the server holds between rounds.

    Attributes:
        learned: the shared parameters.
        memory: the algorithm's own tensors; empty at first.
    """

    learned: Weights
    memory: Memory = field(default_factory=dict)


def one_batch(local: Local, batches: Sequence[Backward]) -> None:  # noqa: ARG001
    """FedAvg: a step is taken along the gradient of one batch."""
    batches[0]()


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
        local_lr: the clients' step size, where the method has its own; None is the schedule's.
        batches_a_step: batches of one epoch that one step takes; they share no image unless there
            are fewer than two for each.
        gradient: (local, that many batches) -> fills `.grad` of `local.trained` for one step; may
            call the batches in any order and move the parameters between, but must put them back.
        feature_loss: added to the loss of each batch; each image then passes through two frozen
            networks once a round, and a client's last model is kept.
        correct_gradient: changes `.grad` of `local.trained` in place before each step.
        report: after a client's last step -> (what it sends, what it keeps for its next round).
            The loop has taken what it needs from both when the next client begins, so live
            tensors may be reported but must be cloned to be kept.
        aggregate: (server, Σ p_i report_i with p summing to one over the participants,
            Σ p_i of the participants before that) -> the new server. Multiplied by the last
            argument the mean becomes the sum over participants with the p of all clients.
        serve: (live parameters, one training batch) -> changes the parameters in place before a
            client's model is measured, where that belongs to the method; running statistics
            stay. The server's model is measured, and sent to clients outside, as it is.

    Raises:
        ValueError: a local_lr or batches_a_step that is no positive number.
    """

    name: str
    source: str
    settings: Mapping[str, float | int] = field(default_factory=dict)
    personal: frozenset[Role] = frozenset()
    local_lr: float | None = None
    batches_a_step: int = 1
    gradient: Callable[[Local, Sequence[Backward]], None] = one_batch
    feature_loss: Callable[[Features], Tensor] | None = None
    correct_gradient: Callable[[Local], None] = no_correction
    report: Callable[[Local], tuple[Report, Memory]] = send_weights
    aggregate: Callable[[Server, Report, float], Server] = mean_of_weights
    serve: Callable[[Weights, Backward], None] | None = None

    def __post_init__(self) -> None:
        lr = self.local_lr
        if not (lr is None or (is_real(lr) and 0 < lr <= LARGEST)):
            raise ValueError(f"local_lr is None or a positive number, got {lr!r}")
        if not (is_whole(self.batches_a_step) and self.batches_a_step >= 1):
            raise ValueError(
                f"a step takes a whole number of at least one batch, got {self.batches_a_step!r}"
            )
