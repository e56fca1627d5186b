"""Points and labels from an .npz file: looked at before anything is loaded, never unpickled."""

import math
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_EXAMPLE = "np.savez('points.npz', x=x, client=client)"
_AGAIN = f"write it again with {_EXAMPLE}"
_TEXT = "client must hold whole numbers or text, one a point"
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


def read_archive(path: Path, check_size: Callable[[int, str], None]) -> tuple[NDArray, NDArray]:
    """Reads the arrays `x` and `client` as they are; other arrays are left alone.

    Args:
        path: the file.
        check_size: told the bytes of an array and its name before it is loaded; may raise.

    Raises:
        ValueError: no .npz file or a damaged one, an array that lacks or holds Python objects.
        OSError: it cannot be read.
    """
    if not zipfile.is_zipfile(path):
        hint = _AGAIN
        if path.suffix.lower() in (".csv", ".tsv", ".txt"):
            hint = "give the folder that holds it, with one CSV file a client"
        raise ValueError(f"it is no .npz file, or a damaged one: {hint}.")
    try:
        _check_headers(path, check_size)
        return _load(path)
    except _ZIP_ERRORS as error:
        why = str(error).rstrip(".") or type(error).__name__
        raise ValueError(f"it is damaged ({why}): {_AGAIN}.") from None


def _load(path: Path) -> tuple[NDArray, NDArray]:
    with np.load(path, allow_pickle=False) as archive:
        try:
            return archive["x"], archive["client"]
        except (*_ZIP_ERRORS, OSError, MemoryError):
            raise
        except Exception as error:  # fewer bytes than its header says, or a shape beyond NumPy
            raise EOFError(str(error).split("\n")[0]) from None


def _check_headers(path: Path, check_size: Callable[[int, str], None]) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        lacking = [name for name in ("x", "client") if name not in members]
        if lacking:
            there = ", ".join(sorted(members)[:8]) or "nothing"
            raise ValueError(
                f"it has no {' and no '.join(lacking)} (it holds {there}): write it with "
                f"{_EXAMPLE}."
            )
        for name in ("x", "client"):
            if sum(info.filename in (name, f"{name}.npy") for info in archive.infolist()) > 1:
                raise ValueError(f"it holds two arrays {name}: {_AGAIN}.")
            shape, dtype = _header(archive, members[name], name)
            if dtype.hasobject:
                advice = "x.astype(float)" if name == "x" else "client.astype(str)"
                raise ValueError(
                    f"{name} holds Python objects, which are not loaded: save {advice}."
                )
            size = math.prod(shape) * dtype.itemsize
            if members[name].file_size < size:
                raise ValueError(f"it is damaged ({name} is cut off): {_AGAIN}.")
            check_size(max(size, math.prod(shape) * 8), name)


def _header(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str
) -> tuple[tuple[int, ...], np.dtype]:
    with archive.open(member) as stream:
        try:
            first = np.lib.format.read_magic(stream) == (1, 0)
            read = np.lib.format.read_array_header_1_0
            if not first:
                read = np.lib.format.read_array_header_2_0
            shape, _, dtype = read(stream)
        except (*_ZIP_ERRORS, OSError):
            raise
        except Exception:  # headers are Python, of which a crafted one can break every rule
            shape, dtype = (-1,), np.dtype("V")
    if not all(type(size) is int and 0 <= size <= np.iinfo(np.intp).max for size in shape):
        raise ValueError(f"{name} in it is no NumPy array: write it with {_EXAMPLE}.")
    return shape, dtype


def client_names(labels: NDArray, n: int) -> NDArray:
    """The clients' names as text: integers as their digits, bytes as UTF-8.

    Raises:
        ValueError: not one label for each of n points, or one that is no text.
    """
    if labels.ndim != 1:
        more = ": client.ravel() has" if labels.size == n else f", where x has {n} rows: give"
        raise ValueError(f"client has the shape {labels.shape}{more} one label a point.")
    if len(labels) != n:
        raise ValueError(f"client has {len(labels)} labels and x {n} rows: give one label a row.")
    if labels.dtype.kind == "f":
        raise ValueError(f"{_TEXT}, not {labels.dtype}: save client.astype(int).")
    if labels.dtype.kind not in "biuUS":
        raise ValueError(f"{_TEXT}, not {labels.dtype}: save client.astype(str).")
    try:
        given = labels.tolist()
    except (SystemError, ValueError):  # letters beyond Unicode, from a crafted file
        raise ValueError(f"client holds text that is no valid Unicode: {_AGAIN}.") from None
    known: dict[object, str] = {}
    for row, label in enumerate(given):
        if label not in known:
            known[label] = _name(label, row)
    return np.array([known[label] for label in given], dtype=np.str_)


def _name(label: object, row: int) -> str:
    try:
        text = label.decode("utf-8") if isinstance(label, bytes) else str(label)
        text.encode("utf-8")
    except UnicodeError:
        raise ValueError(f"the client of row {row} ({label!r}) is no valid UTF-8.") from None
    if not text.strip():
        raise ValueError(f"the client of row {row} is an empty text: name its client.")
    return text
