"""How long, how fast and with whom a federation trains."""

import math
from dataclasses import dataclass

import torch

from empirical.checks import LARGEST, is_real, is_whole
from empirical.seeds import numpy_generator


@dataclass(frozen=True)
class Schedule:
    """Settings of a run that no algorithm owns; the defaults are FedBN's for digits.

    Attributes:
        rounds: communication rounds, at least 1.
        local_epochs: E, passes over a participant's training images per round.
        batch_size: images per SGD step.
        lr: step size of plain SGD.
        participation: fraction of the clients sampled each round, in (0, 1]; at least one.
        weights: p_i by number of training images ("size"), or equal ("uniform").
        seed: fixes participants, batches and random layers.
        device: "cpu", "cuda" or "cuda:k".
        measure_every: rounds between measurements; the start and the end are always measured.

    Raises:
        ValueError: a value out of its range, or a device that is not there.
    """

    rounds: int
    local_epochs: int = 1
    batch_size: int = 32
    lr: float = 0.01
    participation: float = 1.0
    weights: str = "size"
    seed: int = 0
    device: str = "cpu"
    measure_every: int = 1

    def __post_init__(self) -> None:
        for name in ("rounds", "local_epochs", "batch_size", "measure_every"):
            value = getattr(self, name)
            if not (is_whole(value) and value >= 1):
                raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
        if not (is_whole(self.seed) and self.seed >= 0):
            raise ValueError(f"seed must be a whole number of at least 0, got {self.seed!r}")
        if not (is_real(self.lr) and 0 < self.lr <= LARGEST):
            raise ValueError(f"lr must be a positive number that float32 holds, got {self.lr!r}")
        if not (is_real(self.participation) and 0 < self.participation <= 1):
            raise ValueError(
                f"participation is a fraction of the clients in (0, 1], got {self.participation!r}"
            )
        if self.weights not in ("size", "uniform"):
            raise ValueError(f"weights must be 'size' or 'uniform', got {self.weights!r}")
        available(self.device)


def available(device: object) -> torch.device:
    """The torch device called `device`, if this machine has it.

    Raises:
        ValueError: an unknown device, or CUDA where there is none.
    """
    try:
        place = torch.device(device) if isinstance(device, str | torch.device) else None
    except RuntimeError:
        place = None
    if place is None or place.type not in ("cpu", "cuda"):
        raise ValueError(f"unknown device {device!r}: use 'cpu', 'cuda' or 'cuda:0'")
    count = torch.cuda.device_count() if place.type == "cuda" else 0
    if place.type == "cuda" and (place.index or 0) >= count:
        raise ValueError(f"device {device!r} is not there ({count} CUDA devices): use 'cpu'")
    return place


def chosen_device(name: str) -> str:
    """The device called `name`; "auto" is CUDA where there is any, else the CPU.

    Raises:
        ValueError: an unknown device, or CUDA where there is none.
    """
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    available(name)
    return name


def participants(names: list[str], schedule: Schedule, round_: int) -> list[str]:
    """Who trains in a round: round(fraction · N) names drawn without replacement, at least one.

    The draw depends on the seed, the round and the set of names alone, so that every algorithm
    and policy sees the same participants. Sorted.
    """
    names = sorted(names)
    count = max(1, math.floor(schedule.participation * len(names) + 0.5))
    rng = numpy_generator(schedule.seed, "participation", round_)
    # Rows, not names: an array of strings would lose NUL characters at their ends.
    return sorted(names[row] for row in rng.choice(len(names), size=count, replace=False))
