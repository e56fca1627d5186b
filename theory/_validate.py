"""Checks of what callers hand in: points, client labels, positive numbers."""

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True)
class Groups:
    """Rows that belong to each client, clients in order of first appearance."""

    names: tuple[Hashable, ...]
    rows: tuple[Int[np.ndarray, " _"], ...]


def as_matrix(value: object, name: str) -> Float[np.ndarray, "_ _"]:
    """Converts real numeric 2-D input to float64 without rounding.

    Raises:
        TypeError: the entries are not real numbers.
        ValueError: not two-dimensional, empty, not finite, masked, or not exact in float64.
    """
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} has masked entries: fill or drop them first.")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} is not a rectangular array: {error}.") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, not {array.dtype}: convert it to float64.")
    if array.ndim != 2:
        advice = "; one point is x.reshape(1, -1)" if array.ndim == 1 else ""
        raise ValueError(f"{name} must have two dimensions, not shape {array.shape}{advice}.")
    if 0 in array.shape:
        raise ValueError(f"{name} is empty: its shape is {array.shape}.")
    result = array.astype(np.float64, copy=False)
    bad = ~np.isfinite(result).all(axis=1)
    if bad.any():
        raise ValueError(
            f"{name} has NaN or infinite entries, first in row {int(bad.argmax())}: remove them."
        )
    # Only 64-bit integers and long doubles can hold what float64 cannot.
    if array.dtype.itemsize >= 8 and array.dtype != np.float64 and _rounds(array, result):
        raise ValueError(f"{name} ({array.dtype}) is not exact in float64: rescale or round it.")
    return result


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
        ValueError: a wrong number of labels, or a missing label (NaN or None).
    """
    if isinstance(client, str | bytes | Mapping) or not isinstance(client, Iterable):
        raise TypeError("client must be a sequence with one label per row of x.")
    if isinstance(client, np.ndarray) and client.ndim != 1:
        raise ValueError(f"client must have one dimension, not shape {client.shape}.")
    labels = list(client.tolist() if hasattr(client, "tolist") else client)  # type: ignore[attr-defined]
    if len(labels) != n:
        raise ValueError(
            f"client has {len(labels)} labels, x has {n} rows: give one label per row."
        )
    members: dict[Hashable, list[int]] = {}
    for row, label in enumerate(labels):
        try:
            members.setdefault(label, []).append(row)
        except TypeError:
            raise TypeError(
                f"client label {label!r} of row {row} cannot be hashed: use strings or integers."
            ) from None
        if label is None or label != label:
            raise ValueError(f"client label of row {row} is missing ({label!r}): name its client.")
    return Groups(tuple(members), tuple(np.array(rows, dtype=np.intp) for rows in members.values()))


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
    """Returns a real scalar as a float; a string, a boolean or an array is a TypeError."""
    scalar = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    refused = isinstance(scalar, str | bytes | bool | np.bool_ | np.ndarray | complex)
    if refused or not isinstance(scalar, SupportsFloat):
        raise TypeError(f"{name} must be one real number, not {value!r}.")
    return float(scalar)
