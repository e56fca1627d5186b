"""A client of a federation: its images and labels, split into training and test."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int64, UInt8
from torch import Tensor

from empirical.checks import is_whole

MEAN = STD = 0.5  # FedBN's normalisation of the digits, the same for every channel


@dataclass(frozen=True, eq=False, init=False)
class Split:
    """Images and labels, checked when made, so that no later code has to.

    Attributes:
        images: (n, 3, height, width) uint8 in the CPU's memory, contiguous.
        labels: (n,) int64, each in 0 … classes - 1.
        classes: number of classes that the federation knows, not only those present here.

    Raises:
        TypeError: images or labels are no tensor, or of another dtype.
        ValueError: empty, of the wrong shape, of differing lengths, or a label out of range.
    """

    images: UInt8[Tensor, "n 3 h w"]
    labels: Int64[Tensor, " n"]
    classes: int = 10

    def __init__(self, images: object, labels: object, classes: object = 10) -> None:
        """Checks everything; takes anything, so that the advice is this module's own."""
        pixels = _checked_images(images)
        known = _checked_classes(classes)
        object.__setattr__(self, "images", pixels)
        object.__setattr__(self, "labels", _checked_labels(labels, len(pixels), known))
        object.__setattr__(self, "classes", known)

    def __len__(self) -> int:
        """Number of images."""
        return len(self.labels)

    def inputs(self, device: str | torch.device = "cpu") -> Float32[Tensor, "n 3 h w"]:
        """What a network sees: (x / 255 - 0.5) / 0.5, in -1 … 1, on `device`."""
        return self.images.to(device).to(torch.float32).div_(255).sub_(MEAN).div_(STD)


@dataclass(frozen=True, eq=False, init=False)
class Client:
    """One client: a name and two splits of the same image size and number of classes.

    Raises:
        TypeError: the name is no string, or a split is no `Split`.
        ValueError: an empty name, or splits that differ in image size or classes.
    """

    name: str
    train: Split
    test: Split

    def __init__(self, name: object, train: object, test: object) -> None:
        """Checks that the two splits belong together."""
        if not isinstance(name, str):
            raise TypeError(f"a client's name must be a string, got {type(name).__name__}")
        if not name.strip():
            raise ValueError("a client needs a name that is not empty")
        if not (isinstance(train, Split) and isinstance(test, Split)):
            raise TypeError(
                f"client '{name}': train and test must be Split, got {type(train).__name__} and "
                f"{type(test).__name__}; wrap the tensors in Split(images, labels)"
            )
        sizes = tuple(train.images.shape[2:]), tuple(test.images.shape[2:])
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"client '{name}': training images are {_by(sizes[0])}, test images "
                f"{_by(sizes[1])}; resize them to one size"
            )
        if train.classes != test.classes:
            raise ValueError(
                f"client '{name}': train knows {train.classes} classes, test {test.classes}; "
                "give both the same number"
            )
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "train", train)
        object.__setattr__(self, "test", test)


def as_clients(clients: object) -> list[Client]:
    """`clients` as a list, so that a generator is run through once only.

    Raises:
        TypeError: it is no collection of `Client`.
    """
    if not isinstance(clients, Iterable) or isinstance(clients, str | bytes | Mapping):
        raise TypeError(
            f"clients must be a list of Client, got {type(clients).__name__}: "
            "load_federation(name) gives one"
        )
    members = list(clients)
    for member in members:
        if not isinstance(member, Client):
            raise TypeError(
                f"clients must be a list of Client, and this holds {type(member).__name__}: make "
                "each one with Client(name, train, test)"
            )
    return members


def fingerprint(clients: Iterable[Client]) -> dict[str, dict[str, str]]:
    """SHA-256 of each array of each client, for the manifest.

    Dtype and shape are hashed before the bytes (row-major, little-endian), so that arrays of
    equal bytes but different shapes differ.

    Returns:
        name -> {"train_images", "train_labels", "test_images", "test_labels"} -> 64 hex digits.

    Raises:
        TypeError: no collection of `Client`.
        ValueError: two clients of one name.
    """
    prints: dict[str, dict[str, str]] = {}
    for client in as_clients(clients):
        if client.name in prints:
            raise ValueError(f"two clients are called '{client.name}'; names must differ")
        prints[client.name] = {
            f"{part}_{array.name}": _sha256(getattr(getattr(client, part), array.name))
            for part in ("train", "test")
            for array in fields(Split)[:2]
        }
    return prints


def content_hash(clients: Iterable[Client]) -> str:
    """SHA-256 of a whole federation: of its clients' names and arrays, whatever their order."""
    content = json.dumps(fingerprint(clients), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def as_points(clients: Iterable[Client]) -> tuple[Float64[np.ndarray, "n d"], np.ndarray]:
    """The training images of all clients as points in [0, 1]^d, and each one's client by name."""
    members = as_clients(clients)
    x = np.concatenate([c.train.images.numpy().reshape(len(c.train), -1) for c in members])
    return x / 255.0, np.repeat([c.name for c in members], [len(c.train) for c in members])


def _sha256(tensor: Tensor) -> str:
    array = tensor.cpu().contiguous().numpy()
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    digest.update(array.tobytes())
    return digest.hexdigest()


def _by(size: tuple[int, ...]) -> str:
    return "×".join(map(str, size))


def _checked_images(images: object) -> UInt8[Tensor, "n 3 h w"]:
    if not isinstance(images, Tensor):
        raise TypeError(
            f"images must be a torch tensor, got {type(images).__name__}; "
            "torch.from_numpy converts an array"
        )
    if images.dtype != torch.uint8:
        raise TypeError(
            f"images must be uint8 in 0 … 255, got {images.dtype}; scale them to 0 … 255, "
            "replace NaN, round, and convert with .to(torch.uint8)"
        )
    if images.ndim != 4 or images.shape[1] != 3:
        raise ValueError(
            f"images must have the shape (n, 3, height, width), got {tuple(images.shape)}; "
            "repeat a grey channel three times"
        )
    if 0 in images.shape:
        raise ValueError(f"a split needs at least one image, got the shape {tuple(images.shape)}")
    if images.device.type != "cpu":
        raise ValueError(
            f"images must lie in the CPU's memory, got {images.device}; "
            "inputs(device) moves them when they are used"
        )
    return images.contiguous()


def _checked_classes(classes: object) -> int:
    if not (is_whole(classes) and classes >= 1):
        raise ValueError(f"classes must be a positive integer, got {classes!r}")
    return classes


def _checked_labels(labels: object, images: int, classes: int) -> Int64[Tensor, " n"]:
    if not isinstance(labels, Tensor):
        raise TypeError(
            f"labels must be a torch tensor, got {type(labels).__name__}; "
            "torch.from_numpy converts an array"
        )
    if labels.dtype != torch.int64:
        raise TypeError(f"labels must be int64, got {labels.dtype}; convert with .long()")
    if labels.ndim != 1:
        raise ValueError(
            f"labels must have the shape (n,), got {tuple(labels.shape)}; "
            "give class indices, not one-hot rows"
        )
    if len(labels) != images:
        raise ValueError(f"{images} images but {len(labels)} labels; each image needs one label")
    if labels.device.type != "cpu":
        raise ValueError(f"labels must lie in the CPU's memory, got {labels.device}")
    wrong = ((labels < 0) | (labels >= classes)).nonzero()
    if len(wrong):
        first = int(wrong[0])
        raise ValueError(
            f"label {int(labels[first])} of image {first} is outside 0 … {classes - 1}; "
            "renumber the labels from 0 or raise `classes`"
        )
    return labels.contiguous()
