"""A client's images as they arrive at a served model: in batches, in one of three orders."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Int64, UInt8
from torch import Tensor, nn

from empirical.batches import batch_sizes
from empirical.checks import is_whole
from empirical.data.client import Split
from empirical.seeds import generator
from empirical.sites import channels_last

ORDERS = ("shuffled", "sorted", "drifting")
LASTS = ("kept", "joined")

CONTRAST, BRIGHTNESS = 0.5, 64.0
"""Of a drifting stream's last image: the contrast left, and the grey levels (of 255) added."""

_GREY = 127.5


@dataclass(frozen=True, eq=False)
class Stream(Iterable[Tensor]):
    """Batches for `adapt`, normalised as in training, on the model's device and of its dtype.

    It can be run through any number of times.

    Attributes:
        rows: which image of the split comes when, (n,), on the CPU.
        labels: the labels in the order of arrival, (n,), on the model's device.
        sizes: number of images of each batch.
        notes: what a reader of the results should know, such as a folded batch.
    """

    rows: Int64[Tensor, " n"]
    labels: Int64[Tensor, " n"]
    sizes: tuple[int, ...]
    notes: tuple[str, ...]
    _split: Split
    _drifts: bool
    _like: Tensor
    _layout: torch.memory_format

    def __iter__(self) -> Iterator[Tensor]:
        """The batches in the order of their arrival, each converted when it is asked for."""
        first = 0
        for rows in self.rows.split(list(self.sizes)):
            images = self._split.images[rows]
            if self._drifts:
                images = drifted(images, first, len(self.rows))
            first += len(rows)
            batch = Split(images, self._split.labels[rows], self._split.classes)
            inputs = batch.inputs(self._like.device).to(self._like.dtype)
            yield inputs.contiguous(memory_format=self._layout)

    def __len__(self) -> int:
        """Number of batches."""
        return len(self.sizes)

    def restore(self, answers: Tensor) -> Tensor:
        """`answers`, (n, ...) in the order of arrival, in the order of the split's images.

        Raises:
            ValueError: another number of answers.
        """
        if len(answers) != len(self.rows):
            raise ValueError(f"{len(answers)} answers to {len(self.rows)} images: give all of them")
        return answers[self.rows.argsort().to(answers.device)]


def stream(
    model: nn.Module,
    split: Split,
    seed: int,
    *,
    batch_size: int = 32,
    order: str = "shuffled",
    last: str = "kept",
) -> Stream:
    """Makes of a split the batches of n_t images that `adapt` serves a model with.

    The order depends on the seed and the number of images alone (of "sorted" on the labels
    too): neither on the batch size nor on the model. A last batch of one image is folded into
    the one before it, since a dense layer's batch norm has no variance of one.

    Args:
        model: whose device, dtype and memory layout the batches get; not run.
        split: the images; labels only fix the order of "sorted" and are there to compare with.
        seed: fixes the order.
        batch_size: n_t, at least 1.
        order: "shuffled"; "sorted" by label, shuffled within each; "drifting", the shuffled
            order, each image changed as `drifted` says, by its place in the stream.
        last: a last batch shorter than n_t is "kept" as it is, or "joined" to the one before.

    Raises:
        TypeError: no module, no `Split`, or a seed that is no integer.
        ValueError: a negative seed, a batch size below one, or an unknown order or last.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"{model!r} is no Module: use build_model(name, seed) and load its weights")
    if not isinstance(split, Split):
        raise TypeError(
            f"split must be a Split, got {type(split).__name__}: give client.test, or "
            "Split(images, labels)"
        )
    check_arrival(batch_size, order, last)
    rows = torch.randperm(len(split), generator=generator(seed, "stream"))
    if order == "sorted":
        rows = rows[split.labels[rows].argsort(stable=True)]
    owner = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    like = torch.empty(0, dtype=owner.dtype, device=owner.device)
    layout = torch.channels_last if channels_last(model) else torch.contiguous_format
    sizes, notes = _sizes(len(split), batch_size, last)
    labels = split.labels[rows].to(like.device)
    return Stream(rows, labels, sizes, notes, split, order == "drifting", like, layout)


def check_arrival(batch_size: object, order: object, last: object) -> None:
    """Refuses what no stream has.

    Raises:
        ValueError: a batch size below one, or an unknown order or last.
    """
    if not (is_whole(batch_size) and batch_size >= 1):
        raise ValueError(f"batch_size must be a whole number of at least 1, got {batch_size!r}")
    if order not in ORDERS:
        raise ValueError(f"order is {' or '.join(map(repr, ORDERS))}, not {order!r}")
    if last not in LASTS:
        raise ValueError(f"last is {' or '.join(map(repr, LASTS))}, not {last!r}")


def drifted(images: UInt8[Tensor, "k ..."], first: int, n: int) -> UInt8[Tensor, "k ..."]:
    """The images at the places first, first + 1, … of a drifting stream of n.

    At the place t, from 0 to 1, a grey level x (0 … 255) becomes, rounded and clipped,

        127.5 + (1 − t + t · CONTRAST)(x − 127.5) + t · BRIGHTNESS,

    so that contrast falls to a half and brightness rises by 64 levels, steadily.
    """
    place = torch.arange(first, first + len(images), dtype=torch.float64) / max(n - 1, 1)
    t = place.view(-1, *[1] * (images.ndim - 1))
    level = _GREY + (1 - t + t * CONTRAST) * (images.double() - _GREY) + t * BRIGHTNESS
    return level.round().clamp(0, 255).to(torch.uint8)


def _sizes(images: int, batch_size: int, last: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    sizes = batch_sizes(images, batch_size)
    if last == "joined" and len(sizes) > 1 and sizes[-1] < batch_size:
        sizes[-2:] = [sizes[-2] + sizes[-1]]
    if sizes[-1] == batch_size + 1:
        note = f"the last batch of one image is folded into the one before it: {batch_size + 1}"
    elif sizes[-1] > batch_size:
        note = f"the last batch is joined to the one before it, which has {sizes[-1]}"
    elif sizes[-1] < batch_size:
        note = f"the last batch has {sizes[-1]}"
    else:
        return tuple(sizes), ()
    return tuple(sizes), (note,)
