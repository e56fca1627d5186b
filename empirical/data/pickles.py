"""Pairs of integer arrays out of pickles that may come from anyone: nothing in them is run."""

import pickle
import pickletools
import re
from collections.abc import Callable, Sequence
from io import BytesIO
from math import prod
from pathlib import Path

import numpy as np

_INTEGER = re.compile("[iu][1248]")


def read_pair(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """The two integer arrays of a pickled tuple such as (images, labels).

    Knows what NumPy 1 and 2 write for arrays, in every protocol and from Python 2 too. No
    function that a pickle names is ever called: stand-ins take the place of the few known names,
    and any other name is refused.

    Args:
        file: the pickle.

    Returns:
        Two arrays that cannot be written to, of the dtypes and byte orders stored.

    Raises:
        ValueError: no such file, a damaged one, one that wants other names, or one that holds
            anything but a tuple of two arrays of integers.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ValueError(
            f"{file} cannot be read ({error.strerror}): unpack FedBN's archive again, whole, or "
            "give the folder that it unpacks to"
        ) from None
    try:
        _check_memo(content)
        value = _Reader(BytesIO(content), encoding="latin1").load()
    except _Foreign as error:
        raise ValueError(
            f"{file} is no pickle of plain integer arrays: it {error}; nothing of it was run: take "
            "the file from its authors, or save it anew as (images, labels), two NumPy arrays"
        ) from None
    except Exception as error:  # a damaged pickle can fail in any way at all
        raise ValueError(
            f"{file} is damaged or cut short ({str(error) or type(error).__name__}): "
            "copy or download it again"
        ) from None
    if not (isinstance(value, tuple) and len(value) == 2):
        what = f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__
        what = "one array" if isinstance(value, _Array) else what
        raise ValueError(f"{file} holds {what}, not a tuple (images, labels): save it as one")
    first, second = (array.value if isinstance(array, _Array) else None for array in value)
    if first is None or second is None:
        raise ValueError(
            f"{file} holds a tuple, but not of two NumPy arrays: convert both its images and its "
            "labels with np.asarray, and save it again"
        )
    return first, second


class _Foreign(Exception):
    """What a pickle wants that no integer array needs; continues the words "it …"."""


class _Name:
    """Stands for a name in a pickle; takes no attributes, so that no pickle can change it."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., object]) -> None:
        self._call = call

    def __call__(self, *arguments: object) -> object:
        return self._call(*arguments)

    def __setstate__(self, _: object) -> None:
        raise _Foreign("changes a function")


class _Dtype:
    """The code of a dtype, such as "i8", and its byte order."""

    __slots__ = ("_code", "_order")

    def __init__(self, code: object, *_: object) -> None:
        self._code, self._order = _text(code), "="

    def __setstate__(self, state: Sequence[object]) -> None:
        self._order = _text(state[1])

    def value(self) -> np.dtype:
        if not _INTEGER.fullmatch(self._code) or self._order not in tuple("|<>="):
            raise _Foreign(f"holds an array of dtype {self._code!r}")
        return np.dtype(self._order + self._code)


class _Array:
    """An array that is filled from its bytes, once all of its state is known."""

    __slots__ = ("value",)

    def __init__(self, *_: object) -> None:
        self.value: np.ndarray | None = None

    def __setstate__(self, state: Sequence[object]) -> None:
        _, shape, dtype, fortran, content = state
        self.fill(content, dtype, shape, "F" if fortran else "C")

    def fill(self, content: object, dtype: object, shape: object, order: object = "C") -> "_Array":
        if not isinstance(dtype, _Dtype):
            raise _Foreign("describes an array without its dtype")
        kind = dtype.value()
        if isinstance(content, str):  # Python 2
            content = content.encode("latin1")
        if (
            not isinstance(content, bytes | bytearray)
            or not isinstance(shape, tuple)
            or not all(type(side) is int and side >= 0 for side in shape)
            or order not in ("C", "F")
        ):
            raise _Foreign("describes an array in an unknown way")
        if len(content) != prod(shape) * kind.itemsize:
            raise ValueError(f"{len(content)} bytes for an array of {shape}")
        array = np.frombuffer(content, kind).reshape(shape, order="C" if order == "C" else "F")
        array.flags.writeable = False
        self.value = array
        return self


def _text(value: object) -> str:
    """A string as it is; of anything else the kind, for a nested list can fill the memory."""
    return value if isinstance(value, str) else type(value).__name__


def _check_memo(content: bytes) -> None:
    """Refuses a memo of more places than the file has bytes, which alone would fill the memory."""
    for operation, argument, _ in pickletools.genops(content):
        if operation.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > len(content):
            raise ValueError(f"place {argument} of the memo")


def _encode(text: object, encoding: object = "utf-8") -> bytes:
    """How protocols before 3 write bytes."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise _Foreign(f"encodes text as {_text(encoding)!r}")
    return text.encode("latin1")


def _of(type_: object, *_: object) -> _Array:
    if type_ is not _NDARRAY:
        raise _Foreign("holds a subclass of arrays")
    return _Array()


_NDARRAY = _Name(_Array)
_NAMES = {
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _Name(_Dtype),
    ("_codecs", "encode"): _Name(_encode),
}
for _core in ("numpy.core", "numpy._core"):
    _NAMES[f"{_core}.multiarray", "_reconstruct"] = _Name(_of)
    _NAMES[f"{_core}.numeric", "_frombuffer"] = _Name(lambda *state: _Array().fill(*state))


class _Reader(pickle.Unpickler):
    """An unpickler that imports nothing."""

    def find_class(self, module: str, name: str) -> _Name:
        if (module, name) not in _NAMES:
            raise _Foreign(f"wants {module}.{name}")
        return _NAMES[module, name]

    def persistent_load(self, _: object) -> object:
        raise _Foreign("refers to objects outside the file")
