"""Federations by name or folder: `load_federation("digits")` gives a list of clients."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from empirical.data import digits, fedbn_digits
from empirical.data.client import Client, Split, fingerprint
from empirical.registry import find

__all__ = ["FEDERATIONS", "Client", "Federation", "Split", "fingerprint", "load_federation"]

Progress = Callable[[float], object]


@dataclass(frozen=True)
class Federation:
    """A federation that can be loaded by name.

    Attributes:
        name: what to call it.
        description: one line for `--list`.
        clients: names of the clients, in order.
        classes: number of classes.
        image: (channels, height, width).
        minutes: time of the first load on two cores; later loads come from the cache.
        load: (folder of downloaded data or None, progress or None) -> clients.
        reads_data: whether a folder of downloaded data is needed; refused elsewhere.
    """

    name: str
    description: str
    clients: tuple[str, ...]
    classes: int
    image: tuple[int, int, int]
    minutes: float
    load: Callable[[Path | None, Progress | None], list[Client]]
    reads_data: bool = False


FEDERATIONS: dict[str, Federation] = {
    "digits": Federation(
        name="digits",
        description="MNIST, optdigits, MNIST on photographs, printed digits; comes installed",
        clients=digits.CLIENTS,
        classes=digits.CLASSES,
        image=(3, 28, 28),
        minutes=0.1,
        load=lambda _, progress: digits.load(progress),
    ),
    "fedbn_digits": Federation(
        name="fedbn_digits",
        description="FedBN's MNIST, SVHN, USPS, SynthDigits, MNIST-M; give its files as --data",
        clients=fedbn_digits.CLIENTS,
        classes=fedbn_digits.CLASSES,
        image=(3, fedbn_digits.SIDE, fedbn_digits.SIDE),
        minutes=0.1,
        load=fedbn_digits.load,
        reads_data=True,
    ),
}


def load_federation(
    name_or_path: object, *, data: Path | None = None, progress: Progress | None = None
) -> list[Client]:
    """The clients of a federation, the same in every call and on every machine.

    Args:
        name_or_path: a name of `FEDERATIONS`, or a folder with the files of one that reads data,
            such as FedBN's digits.
        data: where downloaded data lie, for federations named that do not come installed.
        progress: called with the fraction done, 0 … 1, while the federation is built.

    Raises:
        ValueError: an unknown name (the nearest are offered), a path without such files, files
            that cannot be used, or damaged packages.
    """
    known = isinstance(name_or_path, str) and name_or_path in FEDERATIONS
    if not known and isinstance(name_or_path, str | os.PathLike) and _is_path(name_or_path):
        return _from_folder(name_or_path, data, progress)
    federation = find(FEDERATIONS, name_or_path, "federation")
    if data is not None and not federation.reads_data:
        other = ", or name the federation 'fedbn_digits'" if fedbn_digits.holds(data) else ""
        raise ValueError(
            f"the federation '{federation.name}' comes installed and reads no folder: leave out "
            f"the data folder '{data}'{other}"
        )
    return federation.load(data, progress)


def _from_folder(
    path: str | os.PathLike[str], data: Path | None, progress: Progress | None
) -> list[Client]:
    if not fedbn_digits.holds(Path(path)):
        raise ValueError(
            f"'{path}' is a path, and no folder that holds FedBN's digits "
            f"({', '.join(fedbn_digits.CLIENTS)}), the one kind that is read from disk yet; "
            f"what can be loaded by name: {', '.join(sorted(FEDERATIONS))}"
        )
    if data is not None:
        raise ValueError(
            f"'{path}' is the folder of a federation already: leave out the data folder '{data}'"
        )
    return fedbn_digits.load(Path(path), progress)


def _is_path(name: object) -> bool:
    if isinstance(name, os.PathLike):
        return True
    if not isinstance(name, str) or not name:
        return False
    separators = {os.sep, os.altsep or os.sep}
    return name[0] in ".~" or any(sep in name for sep in separators) or os.path.exists(name)
