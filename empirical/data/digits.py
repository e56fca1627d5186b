"""The federation `digits`: four clients of real feature shift, made from installed packages.

The recipe, the sources, their licences and the measured shift are in docs/federation.md. Nothing
here is a published data set: accuracies on it are comparable only among themselves.
"""

from collections import Counter
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Int64, UInt8

from empirical.data import cache, mnist_m, pins, sources, synth_digits
from empirical.data.client import Client, Split
from empirical.data.pixels import first_of_equal, three_channels
from empirical.data.strata import balanced, draw
from empirical.seeds import numpy_generator

NAME = "digits"
RECIPE = 1  # raise it when the same versions are to give other pixels
SEED = 0  # the data are one fixed sample; seeds of runs do not move them
TRAIN, TEST, CLASSES = 743, 1000, 10
CLIENTS = ("mnist", "optdigits", "mnist-m", "synth-digits")

Progress = Callable[[float], object]
Images = UInt8[np.ndarray, "n 3 28 28"]


def load(progress: Progress | None = None) -> list[Client]:
    """The four clients, from the cache or, the first time, built and cached.

    Args:
        progress: called with the fraction done, 0 … 1.

    Raises:
        ValueError: a package is missing, or is damaged: known versions give other pixels than
            the pinned ones.
    """
    versions = sources.versions()
    path = cache.path(NAME, {"recipe": str(RECIPE), **versions})
    clients = cache.read(path, pins.expected(versions))
    if clients is None:
        clients = build(progress)
        pins.check(clients, versions)
        cache.write(path, clients)
    if progress is not None:
        progress(1.0)
    return clients


def build(progress: Progress | None = None) -> list[Client]:
    """Makes the clients anew, a second or two of one core, and checks counts and leaks.

    Raises:
        ValueError: a package is missing, or what it holds does not suffice.
    """
    tell = progress or (lambda _: None)
    tell(0.0)
    clients = _from_mnist()
    tell(0.2)
    clients["optdigits"] = _from_optdigits()
    tell(0.25)
    parts = []
    for part, total, done in (("train", TRAIN, 0.55), ("test", TEST, 1.0)):
        rng = numpy_generator(SEED, NAME, "synth-digits", part)
        labels = rng.permutation(np.repeat(np.arange(CLASSES), balanced(total)))
        parts.append(_split(synth_digits.render(labels, rng), labels))
        tell(done)
    clients["synth-digits"] = Client("synth-digits", *parts)
    ordered = [clients[name] for name in CLIENTS]
    check(ordered)
    return ordered


def check(clients: list[Client]) -> None:
    """Counts, class balance, and that no image occurs twice anywhere in the federation.

    Raises:
        ValueError: naming the client and what is wrong with it.
    """
    owner: dict[bytes, str] = {}
    for client in clients:
        for part, split, total in (("train", client.train, TRAIN), ("test", client.test, TEST)):
            where = f"{client.name}/{part}"
            if split.images.shape != (total, 3, 28, 28):
                raise ValueError(f"{where}: {total} images of 28×28 expected, got {len(split)}")
            counts = torch.bincount(split.labels, minlength=CLASSES).tolist()
            if counts != balanced(total).tolist():
                raise ValueError(f"{where}: classes are not balanced, their counts are {counts}")
            for image in split.images.numpy():
                other = owner.setdefault(image.tobytes(), where)
                if other != where:
                    raise ValueError(f"one image occurs both in {other} and in {where}")
            repeats = Counter(owner.values())[where]
            if repeats != total:
                raise ValueError(f"{where}: {total - repeats} images occur more than once")


def _from_mnist() -> dict[str, Client]:
    digits, labels = sources.mnist_5k()
    kept = first_of_equal(digits)
    digits, labels = digits[kept], labels[kept]
    half = np.bincount(labels, minlength=CLASSES) // 2
    rng = numpy_generator(SEED, NAME, "mnist", "halves")
    clients = {}
    for name, members in zip(("mnist", "mnist-m"), draw(labels, [half, half], rng), strict=True):
        parts = []
        for part, chosen in _train_and_test(name, labels[members]).items():
            rows = members[chosen]
            if name == "mnist":
                images = three_channels(digits[rows])
            else:
                rng = numpy_generator(SEED, NAME, name, part, "patches")
                images = mnist_m.blend(digits[rows], part == "test", rng)
            parts.append(_split(images, labels[rows]))
        clients[name] = Client(name, *parts)
    return clients


def _from_optdigits() -> Client:
    digits, labels = sources.optdigits()
    kept = first_of_equal(digits)
    digits, labels = digits[kept], labels[kept]
    chosen = _train_and_test("optdigits", labels)
    return Client(
        "optdigits",
        *(_split(three_channels(digits[rows]), labels[rows]) for rows in chosen.values()),
    )


def _train_and_test(
    name: str, labels: Int64[np.ndarray, " n"]
) -> dict[str, Int64[np.ndarray, " _"]]:
    rng = numpy_generator(SEED, NAME, name, "split")
    parts = draw(labels, [balanced(TRAIN), balanced(TEST)], rng)
    return dict(zip(("train", "test"), parts, strict=True))


def _split(images: Images, labels: Int64[np.ndarray, " n"]) -> Split:
    return Split(torch.from_numpy(np.ascontiguousarray(images)), torch.from_numpy(labels))
