"""Splits of a domain into parts that share no group."""

from collections.abc import Sized
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from theory._grouping import Rows, as_group_rows
from theory._loose import Anything
from theory._validate import as_matrix

_POINTS = 4  # of each domain in each part, at the least
_GROUPS = 2


@dataclass(frozen=True)
class Domain:
    """Points of one domain, and the rows of each group (each point its own if there are none)."""

    x: Float[np.ndarray, "_ _"]
    rows: Rows
    grouped: bool


def as_domains(
    a: object, b: object, groups: "tuple[object, object] | Anything | None", parts: int = 2
) -> tuple[Domain, Domain]:
    """Checks two samples and their groups, to be split into so many parts.

    Raises:
        TypeError: entries that are no real numbers; groups that are no pair.
        ValueError: NaN, different numbers of features, too few points or groups, a group that lies
            in both domains.
    """
    x, z = as_matrix(a, "a"), as_matrix(b, "b")
    if x.shape[1] != z.shape[1]:
        raise ValueError(
            f"a has {x.shape[1]} features and b has {z.shape[1]}: both need the same features in "
            "the same order (points are rows)."
        )
    for name, points in (("a", x), ("b", z)):
        if len(points) < _POINTS * parts:
            raise ValueError(
                f"{name} has {_counted(points, 'point')}: at least {_POINTS * parts} of each "
                "domain are needed, and a few hundred for an interval that says something."
            )
    if groups is None:
        rows_a, rows_b = ([np.array([row]) for row in range(len(points))] for points in (x, z))
        return Domain(x, rows_a, False), Domain(z, rows_b, False)
    if not isinstance(groups, tuple | list) or len(groups) != 2:
        raise TypeError("groups must be a pair: the labels of a's points, and those of b's.")
    rows_a, rows_b = as_group_rows(*groups, (len(x), len(z)), ("groups[0]", "groups[1]"))
    for name, rows in (("a", rows_a), ("b", rows_b)):
        if len(rows) < _GROUPS * parts:
            raise ValueError(
                f"{name} has {_counted(rows, 'group')}: at least {_GROUPS * parts} of each domain "
                f"are needed, {_GROUPS} for each of {parts} parts. With fewer, a difference of "
                "the domains cannot be told from one of the groups."
            )
    return Domain(x, rows_a, True), Domain(z, rows_b, True)


def _counted(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def two_parts(rows: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    """Whole groups at random: the second part has about `share` of the groups, two or more.

    Their number is fixed, whatever their sizes: were it to depend on the sizes drawn, large groups
    would weigh otherwise among the held-out ones than among all, and their mean would be biased.
    One seed permutes domains of equally many groups alike, so that rows which correspond (an image
    before and after) come into the same part.
    """
    order = np.random.default_rng(seed).permutation(len(rows))
    cut = int(np.abs(np.arange(1, len(rows) + 1) - share * len(rows)).argmin()) + 1
    cut = min(max(cut, _GROUPS), len(rows) - _GROUPS)
    return [rows[i] for i in order[cut:]], [rows[i] for i in order[:cut]]


def in_folds(rows: Rows, folds: int, seed: int) -> Int[np.ndarray, " _"]:
    """The fold of every group: the largest groups first, each to the fold with fewest points."""
    order = np.random.default_rng(seed).permutation(len(rows))
    sizes = np.array([len(part) for part in rows])
    order, fold = order[np.argsort(-sizes[order], kind="stable")], np.zeros(len(rows), dtype=int)
    if sizes.max() == 1:
        fold[order] = np.arange(len(rows)) % folds
        return fold
    filled = np.zeros(folds)
    for i in order:
        fold[i] = filled.argmin()
        filled[fold[i]] += sizes[i]
    return fold
