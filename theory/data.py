"""A user's own points and their clients, from an .npz file or a folder of one CSV file a client."""

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray

from theory._csv_points import read_folder
from theory._npz_points import client_names, read_archive
from theory._validate import as_groups, as_points
from theory.centring import centre

_LARGEST = 1e100
_COPIES = 3  # the file's array, its float64 copy, the centred points


@dataclass(frozen=True, eq=False)
class Points:
    """Points of clients, checked: every client keeps something after centring.

    Attributes:
        x: (n, d) float64, as in the file, not centred.
        client: n names, as text.
        name: what to call them in texts, file names and ids: the file's stem in a-z, 0-9 and "-".
        fingerprint: SHA-256 of x and client, 64 hexadecimal digits.
        files: file of each client, where each has its own.
        lines: line of each point in its client's file, counted from 1; empty for an .npz file.
    """

    x: Float[NDArray, "n d"]
    client: NDArray
    name: str
    fingerprint: str
    files: Mapping[str, str] = field(default_factory=dict)
    lines: Int[NDArray, " _"] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def source(self) -> str:
        """The name among sources of points, which Gaussian clients and federations cannot have."""
        return f"own-{self.name}"

    def place(self, row: int) -> str:
        """Where the point of a row is in the user's file."""
        if not self.lines.size:
            return f"row {row}"
        return f"{self.files[str(self.client[row])]} line {self.lines[row]}"


def read_points(path: object) -> Points:
    """Reads points and their clients; only reads, and runs no code that a file may hold.

    Args:
        path: an .npz file with `x`, (n, d) real numbers, and `client`, n integers or strings;
            or a folder with one CSV file a client, its name the client's, one point a line: all
            columns numbers, separated by commas, semicolons, tabs or spaces, at most one header.
            Numbers of rows or columns, as data frames write them, are refused, and so are numbers
            that float64 makes 0 and whole numbers that it rounds.

    Raises:
        ValueError: it cannot be used; the message names the file, what is wrong and what to do.
    """
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise ValueError(f"The points must be a path to an .npz file or a folder, not {path!r}.")
    place = Path(os.fsdecode(path))
    try:
        place = place.expanduser()
        if place.is_dir():
            return _from_folder(place)
        return _from_archive(place)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{_printable(place)}: {error}") from None
    except OSError as error:
        why = error.strerror or str(error)
        raise ValueError(f"{_printable(place)} cannot be read: {why}.") from None
    except RuntimeError as error:  # a home folder that nobody has
        raise ValueError(f"{_printable(place)}: {str(error).rstrip('.')}.") from None
    except MemoryError:
        raise ValueError(
            f"{_printable(place)} does not fit into memory: give fewer points."
        ) from None


def short_name(stem: str) -> str:
    """A name that serves as part of a file name and of a claim's id: a-z, 0-9 and single "-"."""
    ascii_only = unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode().lower()
    return re.sub("[^a-z0-9]+", "-", ascii_only).strip("-")[:24].rstrip("-") or "points"


def _printable(path: Path) -> str:
    return str(path).encode("utf-8", "backslashreplace").decode()


def _from_folder(folder: Path) -> Points:
    read = read_folder(folder, lambda size: _refuse_too_large(size, "The CSV files together"))
    client = np.repeat(list(read), [len(part.x) for part in read.values()])
    x = as_points(np.concatenate([part.x for part in read.values()]))
    return _checked(
        Points(
            x,
            client,
            short_name(folder.resolve().name),
            _fingerprint(x, client),
            {name: part.file for name, part in read.items()},
            np.concatenate([part.lines for part in read.values()]),
        )
    )


def _from_archive(path: Path) -> Points:
    if not path.exists():
        raise ValueError(
            "there is no such file or folder: give an .npz file with x and client, or a folder "
            "of CSV files."
        )
    if not path.is_file():
        raise ValueError("it is neither a file nor a folder: give an .npz file.")
    given, labels = read_archive(path, _refuse_too_large)
    if given.ndim > 2:
        raise ValueError(
            f"x must have two dimensions, not shape {given.shape}: x.reshape(len(x), -1) makes a "
            "row of every image."
        )
    x = as_points(given)
    client = client_names(labels, len(x))
    return _checked(Points(x, client, short_name(path.stem), _fingerprint(x, client)))


def _refuse_too_large(size: int, what: str) -> None:
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):  # not on this system
        return
    if _COPIES * size > memory > 0:
        raise ValueError(
            f"{what} would take {_COPIES * size / 1e9:.3g} GB of this machine's "
            f"{memory / 1e9:.3g} GB of memory: give fewer points or features."
        )


def _fingerprint(x: Float[NDArray, "n d"], client: NDArray) -> str:
    digest = hashlib.sha256(f"<f8 {x.shape} ".encode())
    digest.update(np.ascontiguousarray(x, dtype="<f8").data)
    digest.update(json.dumps(client.tolist()).encode("ascii"))
    return digest.hexdigest()


def _checked(points: Points) -> Points:
    """Refuses clients and points of which centring leaves nothing."""
    groups = as_groups(points.client, len(points.x))
    for name, rows in zip(groups.names, groups.rows, strict=True):
        own, first = points.x[rows], points.place(int(rows[0]))
        advice = "leave this client out or give it more points"
        if len(rows) == 1:
            raise ValueError(
                f"client {name!r} has one point ({first}), of which centring by client leaves "
                f"nothing: {advice}."
            )
        if (own == own[0]).all():
            raise ValueError(
                f"all {len(rows)} points of client {name!r} are equal (from {first} on), and "
                f"centring by client leaves nothing of them: {advice}."
            )
        try:
            size = np.abs(centre(own, points.client[rows])).max(axis=1)
        except ValueError as error:
            if "zero row" not in str(error):
                raise
            nearest = int(np.abs(own - own.mean(axis=0)).max(axis=1).argmin())
            raise ValueError(
                f"{points.place(int(rows[nearest]))} equals the mean of its client {name!r}, and "
                "centring by client leaves nothing of it: leave this point out."
            ) from None
        if size.max() > _LARGEST or size.min() < 1 / _LARGEST:
            raise ValueError(
                f"the points of client {name!r} have entries from {size.min():.1g} to "
                f"{size.max():.1g} once centred, beyond what kernels can square: multiply x by a "
                "power of ten."
            )
    return points
