"""Batches of a client's training images, in an order that only the client's own name fixes."""

from collections.abc import Iterator

import torch
from jaxtyping import Int64
from torch import Tensor

from empirical.schedule import Schedule
from empirical.seeds import generator


def batch_sizes(images: int, batch_size: int) -> list[int]:
    """Sizes of one epoch's batches; a last batch of one is folded into the one before it."""
    full, rest = divmod(images, batch_size)
    sizes = [batch_size] * full + ([rest] if rest else [])
    if rest == 1 and full:
        sizes[-2:] = [batch_size + 1]
    return sizes


def batches(
    client: str, images: int, schedule: Schedule, round_: int
) -> Iterator[Int64[Tensor, " batch"]]:
    """Row numbers of each batch of a round's local epochs, shuffled anew each epoch."""
    draws = generator(schedule.seed, "batches", client, round_)
    sizes = batch_sizes(images, schedule.batch_size)
    for _ in range(schedule.local_epochs):
        yield from torch.randperm(images, generator=draws).split(sizes)
