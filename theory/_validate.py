"""Checks of what callers hand in: points, client labels, positive numbers."""

import math
import operator
from collections.abc import Hashable, Iterable, Mapping, MappingView, Set, Sized
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np
from jaxtyping import Float, Int

_ROWS = 4096  # looked at together


@dataclass(frozen=True)
class Groups:
    """Rows that belong to each client, clients in order of first appearance."""

    names: tuple[Hashable, ...]
    rows: tuple[Int[np.ndarray, " _"], ...]

    def labels(self) -> dict[int, Hashable]:
        """The client of every row."""
        named = zip(self.names, self.rows, strict=True)
        return {int(row): name for name, rows in named for row in rows}


def as_matrix(value: object, name: str) -> Float[np.ndarray, "_ _"]:
    """Converts real numeric 2-D input to float64 without rounding.

    Raises:
        TypeError: the entries are not real numbers.
        ValueError: not two-dimensional, empty, not finite, masked, or not exact in float64.
    """
    array = _as_array(value, name)
    if array.ndim != 2:
        advice = "; one point is x.reshape(1, -1), points of one number x.reshape(-1, 1)"
        if array.ndim != 1:
            advice = "; arrays per point are x.reshape(len(x), -1)" if array.ndim > 2 else ""
        raise ValueError(f"{name} must have two dimensions, not shape {array.shape}{advice}.")
    if 0 in array.shape:
        raise ValueError(f"{name} is empty: its shape is {array.shape}.")
    result = array.astype(np.float64, copy=False)
    # By slices: at tens of thousands of rows a mask of all entries would be large itself.
    for start in range(0, len(result), _ROWS):
        bad = ~np.isfinite(result[start : start + _ROWS]).all(axis=1)
        if bad.any():
            raise ValueError(
                f"{name} has NaN or infinite entries, first in row {start + int(bad.argmax())}: "
                "remove them."
            )
    _refuse_rounding(array, result, name)
    return result


def as_vector(value: object, name: str) -> Float[np.ndarray, " _"]:
    """Converts real numeric 1-D input to float64 without rounding.

    Raises:
        TypeError: the entries are not real numbers.
        ValueError: not one-dimensional, empty, not finite, masked, or not exact in float64.
    """
    vector = as_real_array(value, name)
    if vector.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not shape {vector.shape}.")
    if not vector.size:
        raise ValueError(f"{name} is empty.")
    return vector


def as_real_array(value: object, name: str) -> Float[np.ndarray, "..."]:
    """Converts real numeric input of any shape to float64 without rounding.

    Raises:
        TypeError: the entries are not real numbers.
        ValueError: ragged, not finite, masked, or not exact in float64.
    """
    array = _as_array(value, name)
    result = array.astype(np.float64, copy=False)
    bad = ~np.isfinite(result)
    if bad.any():
        where = [int(i) for i in np.unravel_index(int(bad.argmax()), bad.shape)]
        place = f", first at position {', '.join(map(str, where))}" if where else ""
        raise ValueError(f"{name} holds NaN or infinity{place}: remove or repair it.")
    _refuse_rounding(array, result, name)
    return result


def _as_array(value: object, name: str) -> np.ndarray:
    """An array of real numbers, of any shape and not yet of float64."""
    parts = value if isinstance(value, list | tuple) else (value,)
    if any(np.ma.is_masked(part) for part in parts):
        raise ValueError(f"{name} has masked entries: fill or drop them first.")
    try:
        # A tensor that records gradients gives no array, its values do.
        array = np.asarray(value.detach() if hasattr(value, "detach") else value)  # type: ignore[attr-defined]
    except ValueError as error:
        raise ValueError(f"{name} is not a rectangular array: {_brief(error)}.") from None
    except (TypeError, RuntimeError, NotImplementedError, OverflowError) as error:
        raise TypeError(
            f"{name} is no array of real numbers ({_brief(error)}): convert it to a NumPy array "
            "of float64."
        ) from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, not {array.dtype}: convert it to float64.")
    return array


def _brief(error: Exception) -> str:
    """The first sentence of another library's message."""
    return str(error).split("\n")[0].split(". ")[0].rstrip(".")


def _refuse_rounding(array: np.ndarray, result: np.ndarray, name: str) -> None:
    # Only 64-bit integers and long doubles can hold what float64 cannot.
    if array.dtype.itemsize >= 8 and array.dtype != np.float64 and _rounds(array, result):
        raise ValueError(f"{name} ({array.dtype}) is not exact in float64: rescale or round it.")


def _rounds(array: np.ndarray, result: np.ndarray) -> bool:
    if array.dtype.kind in "iu":
        large = np.abs(result) >= 2.0**53
        pairs = zip(result[large].tolist(), array[large].tolist(), strict=True)
        return any(int(converted) != given for converted, given in pairs)
    return bool((result.astype(array.dtype) != array).any())


def as_points(x: object, name: str = "x") -> Float[np.ndarray, "n d"]:
    """Converts points, one per row, to float64 without rounding.

    Raises:
        TypeError: the entries are not real numbers.
        ValueError: not of shape (n, d) with n, d >= 1, not finite, or not exact in float64.
    """
    return as_matrix(x, name)


def as_groups(client: Any, n: int) -> Groups:
    """Groups the rows 0..n-1 by client label, in order of first appearance.

    Raises:
        TypeError: labels that are no sequence, or that cannot be hashed.
        ValueError: a wrong number of labels, or a missing label (NaN, NA, None or masked).
    """
    shape = getattr(client, "shape", (n,))
    if len(shape) != 1:
        raise ValueError(f"client must have one dimension, not shape {tuple(shape)}.")
    # An iterator could be read only once, a set has no order.
    refused = isinstance(client, str | bytes | Mapping | MappingView | Set)
    if refused or not isinstance(client, Iterable) or not isinstance(client, Sized):
        raise TypeError(
            "client must be a sequence with one label per row of x, such as a list, "
            f"not {type(client).__name__}."
        )
    if len(client) != n:
        raise ValueError(
            f"client has {len(client)} labels, x has {n} rows: give one label per row."
        )
    members: dict[Hashable, list[int]] = {}
    for row, label in enumerate(client.tolist() if hasattr(client, "tolist") else client):  # type: ignore[attr-defined]
        members.setdefault(as_label(label, f"client label of row {row}"), []).append(row)
    return Groups(tuple(members), tuple(np.array(rows, dtype=np.intp) for rows in members.values()))


def as_label(label: object, what: str) -> Hashable:
    """A client's name; an array without dimensions gives its item, for it hashes by identity.

    Raises:
        TypeError: it is an array or cannot be hashed.
        ValueError: it is missing (NaN, NA, None or masked).
    """
    if _missing(label):
        raise ValueError(f"{what} is missing: name its client.")
    if not isinstance(label, np.generic) and hasattr(label, "ndim"):
        if label.ndim != 0:  # type: ignore[attr-defined]
            raise TypeError(f"{what} is an array: use strings or integers.")
        return as_label(label.item(), what)  # type: ignore[attr-defined]
    if isinstance(label, tuple):
        parts = tuple(as_label(part, what) for part in label)
        return label if all(map(operator.is_, parts, label)) else parts
    try:
        hash(label)
    except TypeError:
        raise TypeError(f"{what} ({label!r}) cannot be hashed: use strings or integers.") from None
    return label  # pyright: ignore[reportReturnType]


def _missing(label: object) -> bool:
    if label is None or (isinstance(label, np.ma.MaskedArray) and np.ma.is_masked(label)):
        return True
    if getattr(label, "ndim", 0) != 0:
        return False
    try:
        return bool(label != label)
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return True


def positive(value: object, name: str) -> float:
    """Returns a finite positive number as a float.

    Raises:
        TypeError: not a real number.
        ValueError: zero, negative, infinite or NaN.
    """
    number = real(value, name)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be positive and finite, not {value!r}.")
    return number


def non_negative(value: object, name: str) -> float:
    """Returns a finite number >= 0 as a float.

    Raises:
        TypeError: not a real number.
        ValueError: negative, infinite or NaN.
    """
    number = real(value, name)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{name} must be finite and not negative, not {value!r}.")
    return number


def real(value: object, name: str) -> float:
    """Returns a real scalar as a float.

    Raises:
        TypeError: a string, a boolean, a complex number, an array with dimensions, a masked entry.
        ValueError: beyond the range of float64.
    """
    try:
        return _as_float(value)
    except OverflowError:
        raise ValueError(f"{name} is beyond the range of float64: rescale it.") from None
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{name} must be one real number, not {value!r}.") from None


def flag(value: object, name: str) -> bool:
    """Returns True or False, NumPy's included.

    Raises:
        TypeError: anything else, such as 1 or the text "False".
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, not {value!r}.")
    return bool(value)


_NO_NUMBERS = str | bytes | bool | np.bool_ | complex | np.complexfloating | np.datetime64


def _as_float(value: object) -> float:
    """A real scalar as a float, or any error."""
    if np.ma.is_masked(value) or isinstance(value, np.timedelta64):
        raise TypeError
    scalar: object = value
    if hasattr(value, "ndim") and hasattr(value, "item"):
        if value.ndim != 0:  # type: ignore[attr-defined]
            raise TypeError
        scalar = value.item()  # type: ignore[attr-defined]
    if isinstance(scalar, _NO_NUMBERS) or not isinstance(scalar, SupportsFloat):
        raise TypeError
    return float(scalar)
