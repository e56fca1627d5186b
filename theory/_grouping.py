"""Groups of dependent points (a patient's images), each whole in one domain."""

from collections.abc import Hashable, Iterable, Mapping, MappingView, Set, Sized

import numpy as np
from jaxtyping import Int

from theory._validate import as_label

Rows = list[Int[np.ndarray, " _"]]


def as_group_rows(
    groups_a: object, groups_b: object, n: tuple[int, int], names: tuple[str, str]
) -> tuple[Rows, Rows]:
    """The rows of every group of both domains, groups in order of first appearance.

    Raises:
        TypeError: labels that are no sequence, or that cannot be hashed.
        ValueError: a wrong number of labels, a missing one, or a group in both domains.
    """
    a, b = _members(groups_a, n[0], names[0]), _members(groups_b, n[1], names[1])
    for label in a:
        if label in b:
            raise ValueError(
                f"group {label!r} occurs in both domains: a group must lie in one of them, so "
                "name groups of different domains differently."
            )
    return _rows(a), _rows(b)


def _rows(members: dict[Hashable, list[int]]) -> Rows:
    return [np.array(rows, dtype=np.intp) for rows in members.values()]


def _members(groups: object, n: int, name: str) -> dict[Hashable, list[int]]:
    shape = getattr(groups, "shape", (n,))
    if len(shape) != 1:
        raise ValueError(f"{name} must have one dimension, not shape {tuple(shape)}.")
    refused = isinstance(groups, str | bytes | Mapping | MappingView | Set)
    if refused or not isinstance(groups, Iterable) or not isinstance(groups, Sized):
        raise TypeError(
            f"{name} must be a sequence with one label per point, such as a list, "
            f"not {type(groups).__name__}."
        )
    if len(groups) != n:
        raise ValueError(f"{name} has {len(groups)} labels for {n} points: give one per point.")
    labels = groups.tolist() if hasattr(groups, "tolist") else groups  # type: ignore[attr-defined]
    members: dict[Hashable, list[int]] = {}
    for row, label in enumerate(labels):
        members.setdefault(_as_group(label, f"{name}, label of point {row},"), []).append(row)
    return members


def _as_group(label: object, what: str) -> Hashable:
    try:
        return as_label(label, what)
    except ValueError:  # of a missing label, in the words of clients
        raise ValueError(f"{what} is missing: name its group.") from None
