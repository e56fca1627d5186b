"""Batches of a client's training images, in an order that only the client's own name fixes."""

from collections.abc import Iterable, Iterator

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


def steps(
    client: str, images: int, schedule: Schedule, round_: int, each: int = 1
) -> Iterator[list[Int64[Tensor, " _"]]]:
    """Row numbers of each step's batches over a round's local epochs, shuffled anew each epoch.

    A step takes `each` batches of one epoch (see `in_steps`).
    """
    draws = generator(schedule.seed, "batches", client, round_)
    sizes = batch_sizes(images, schedule.batch_size)
    for _ in range(schedule.local_epochs):
        yield from in_steps(torch.randperm(images, generator=draws).split(sizes), each)


def in_steps(
    batches: Iterable[Int64[Tensor, " _"]], each: int
) -> Iterator[list[Int64[Tensor, " _"]]]:
    """Lists of `each` batches, in order, for methods that take several a step.

    What is left at the end is dealt anew into `each` batches; where that would make batches of
    one image, which have no batch statistics, all of them hold the same images.
    """
    group: list[Tensor] = []
    for rows in batches:
        group.append(rows)
        if len(group) == each:
            yield group
            group = []
    if group:
        rest = torch.cat(group)
        yield list(rest.tensor_split(each)) if len(rest) >= 2 * each else [rest] * each
