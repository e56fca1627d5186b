"""FedBN's digits (Li et al. 2021), read from a folder in the layout of its released archive.

The folder holds `{MNIST,SVHN,USPS,SynthDigits,MNIST_M}/partitions/train_part{0..9}.pkl` and
`test.pkl` beside `partitions`, each a pickled tuple (images, labels). Images reach 28×28 and three
channels as in the authors' code: grey repeated, other sizes reduced or enlarged by Pillow's
bilinear filter, all before the channels are repeated.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from PIL import Image

from empirical.checks import is_whole
from empirical.data.client import Client, Split
from empirical.data.pickles import read_pair
from empirical.data.pixels import three_channels

NAME = "fedbn_digits"
CLASSES, SIDE, PARTS = 10, 28, 10
# What the archive holds of each domain: (height, width), or with three channels.
SHAPES: dict[str, tuple[int, ...]] = {
    "MNIST": (28, 28),
    "SVHN": (32, 32, 3),
    "USPS": (16, 16),
    "SynthDigits": (32, 32, 3),
    "MNIST_M": (28, 28, 3),
}
CLIENTS = tuple(SHAPES)

Progress = Callable[[float], object]


def load(data: Path | None, progress: Progress | None = None, *, parts: int = 1) -> list[Client]:
    """The five clients of FedBN's digits.

    Args:
        data: the folder that holds the five domains.
        progress: called with the fraction done, 0 … 1.
        parts: how many of the ten parts of each training set, counted from part 0. One part is
            the published setting: a tenth of the smallest set, 743 images a client.

    Raises:
        ValueError: no folder, a file that is missing, damaged or of another layout, or a number of
            parts that is not 1 … 10. No file is ever run.
    """
    if not (is_whole(parts) and 1 <= parts <= PARTS):
        raise ValueError(f"parts must be a whole number from 1 to {PARTS}, got {parts!r}")
    if data is None:
        raise ValueError(
            f"the federation '{NAME}' is read from a folder: give the one that holds "
            f"{', '.join(CLIENTS)} as the data folder (on the command line --data)"
        )
    folder = data.expanduser()
    missing = [name for name in CLIENTS if not (folder / name).is_dir()]
    if missing:
        raise ValueError(
            f"{data} lacks the folder{'s' * (len(missing) > 1)} {', '.join(missing)} of '{NAME}': "
            "give the folder that FedBN's digit archive unpacks to"
        )
    clients = []
    for done, name in enumerate(CLIENTS):
        if progress is not None:
            progress(done / len(CLIENTS))
        training = [
            _read(folder / name / "partitions" / f"train_part{part}.pkl", name)
            for part in range(parts)
        ]
        train = _split(*(np.concatenate(arrays) for arrays in zip(*training, strict=True)))
        clients.append(Client(name, train, _split(*_read(folder / name / "test.pkl", name))))
    if progress is not None:
        progress(1.0)
    return clients


def holds(folder: Path) -> bool:
    """Whether `folder` has the five domains' folders."""
    try:
        return all((folder.expanduser() / name).is_dir() for name in CLIENTS)
    except (OSError, RuntimeError, ValueError):  # RuntimeError: no such home; ValueError: a NUL
        return False


def resized(images: UInt8[np.ndarray, "n ..."]) -> UInt8[np.ndarray, "n 3 28 28"]:
    """Images of (n, h, w) or (n, h, w, 3) as torchvision's Resize([28, 28]) makes them."""
    if images.shape[1:3] != (SIDE, SIDE):
        size, bilinear = (SIDE, SIDE), Image.Resampling.BILINEAR
        images = np.stack(
            [np.asarray(Image.fromarray(image).resize(size, bilinear)) for image in images]
        )
    return three_channels(images) if images.ndim == 3 else images.transpose(0, 3, 1, 2)


def _split(images: UInt8[np.ndarray, "n ..."], labels: Int64[np.ndarray, " n"]) -> Split:
    pixels = np.array(resized(images), order="C")
    return Split(torch.from_numpy(pixels), torch.from_numpy(labels.copy()), CLASSES)


def _read(file: Path, domain: str) -> tuple[UInt8[np.ndarray, "n ..."], Int64[np.ndarray, " n"]]:
    images, labels = read_pair(file)
    shape = SHAPES[domain]
    if images.dtype != np.uint8 or images.shape[1:] != shape or not len(images):
        raise ValueError(
            f"{file}: images of {images.dtype} and the shape {images.shape}, where {domain} has "
            f"uint8 and (n, {', '.join(map(str, shape))}), n ≥ 1: take it from FedBN's archive"
        )
    if labels.shape not in ((len(images),), (len(images), 1)):
        raise ValueError(
            f"{file}: {len(images)} images, but labels of the shape {labels.shape}: "
            "each image needs one label"
        )
    labels = labels.reshape(-1).astype(np.int64)
    if domain == "SVHN":
        labels[labels == CLASSES] = 0  # SVHN itself calls the digit 0 class 10
    wrong = np.flatnonzero((labels < 0) | (labels >= CLASSES))
    if len(wrong):
        raise ValueError(
            f"{file}: label {labels[wrong[0]]} of image {wrong[0]} is no digit 0 … 9: "
            "renumber its labels"
        )
    return images, labels
