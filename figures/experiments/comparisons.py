"""Comparisons of one table: paired differences, Holm's correction, and the table of both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from figures.claims import Claim
from figures.experiments.cells import (
    Cell,
    difference,
    difference_columns,
    difference_text,
    difference_types,
    measured,
)
from figures.experiments.measures import POLICIES
from figures.experiments.product import Table
from figures.statistics import PairedDifference, verdicts_holm
from figures.tables import Layout


@dataclass(frozen=True)
class Compared:
    """A paired difference with its verdict and its p-value within its table."""

    difference: PairedDifference
    verdict: str
    adjusted: float

    def text(self, of: int = 0) -> str:
        """The difference in points, with a star where it is decided, n where fewer than `of`."""
        words = difference_text(self.difference)
        star = "" if self.verdict == "inconclusive" else "*"
        n = self.difference.n
        return words + star + (f", n = {n}" if n < of else "")

    def claim(self, identity: str, words: str, source: str, figure: str) -> Claim:
        """What is claimed of it, with the interval in points."""
        ends = (self.difference.lower, self.difference.upper)
        interval = None
        if ends[0] is not None and ends[1] is not None:
            interval = (100 * ends[0], 100 * ends[1])
        said = measured(self.difference, self.adjusted)
        return Claim(identity, words, source, said, interval, self.verdict, figure)


def differences_of(found: Mapping[Any, Compared]) -> list[PairedDifference]:
    """The differences alone."""
    return [one.difference for one in found.values()]


def compare(
    pairs: Mapping[Any, tuple[Cell | None, Cell | None]],
    directions: str | Mapping[Any, str] = "greater",
) -> dict[Any, Compared]:
    """Judge first − second of every pair as one family; pairs without a common seed fall out."""
    found: dict[Any, PairedDifference] = {}
    for name, (first, second) in pairs.items():
        if first is not None and second is not None:
            one = difference(first, second)
            if one is not None:
                found[name] = one
    verdicts = verdicts_holm(found, directions)
    return {name: Compared(one, *verdicts[name]) for name, one in found.items()}


def compared_table(found: Mapping[Any, Compared], names: Sequence[str]) -> pl.DataFrame:
    """One row per comparison; `names` call the parts of its key."""
    rows = []
    for key, one in found.items():
        parts = key if isinstance(key, tuple) else (key,)
        row = dict(zip(names, parts, strict=True))
        row |= difference_columns("difference", one.difference)
        rows.append(row | {"p_holm": one.adjusted, "verdict": one.verdict})
    schema: dict[str, Any] = {**dict.fromkeys(names, pl.String), **difference_types("difference")}
    return pl.DataFrame(rows, schema=schema | {"p_holm": pl.Float64, "verdict": pl.String})


@dataclass(frozen=True)
class Sheet:
    """What a table is called in files and texts."""

    name: str
    title: str
    caption: str
    label: str


def compared_sheet(
    what: Sheet, found: Mapping[tuple[str, ...], Compared], names: Mapping[str, str]
) -> Table:
    """A table of comparisons, in points for people; `names` call the parts of their keys."""
    frame = compared_table(found, list(names))
    value, *ends = ("difference", "difference_lower", "difference_upper")
    shown = frame.with_columns(pl.col(value, *ends) * 100.0)
    columns = {**names, value: "difference", "difference_n": "seeds"}
    columns |= {"p_holm": "Holm's p", "verdict": "verdict"}
    layout = Layout(what.caption, what.label, columns, {value: (ends[0], ends[1])})
    return Table(what.name, what.title, frame, layout, shown)


def both(table: Mapping[Any, Cell], algorithm: str, column: str) -> tuple[Cell | None, Cell | None]:
    """The client-specific and the aggregated side of a cell of (algorithm, policy, column)."""
    aggregated, specific = POLICIES
    return table.get((algorithm, specific, column)), table.get((algorithm, aggregated, column))


def complete(table: Mapping[Any, Cell], methods: Sequence[str], column: str) -> list[str]:
    """Methods whose two sides have every seed that any has: a mean over others would mix."""
    seeds = {}
    for name in methods:
        seeds[name] = [set(cell.values) if cell else set() for cell in both(table, name, column)]
    every = set().union(*(side for pair in seeds.values() for side in pair))
    return [name for name in methods if every and all(side == every for side in seeds[name])]


def averaged(table: Mapping[Any, Cell], methods: Sequence[str], column: str) -> tuple[Cell, Cell]:
    """The client-specific and the aggregated side of a column, each the mean over methods."""
    pairs = [both(table, name, column) for name in methods]
    specific, aggregated = ([pair[k] for pair in pairs] for k in (0, 1))
    return pooled([c for c in specific if c]), pooled([c for c in aggregated if c])


def pooled(cells: Sequence[Cell]) -> Cell:
    """The mean of several cells per seed that all of them have."""
    if not cells:
        return Cell()
    common = set.intersection(*(set(cell.values) for cell in cells))
    return Cell({seed: sum(c.values[seed] for c in cells) / len(cells) for seed in sorted(common)})


def mark(cell: Cell | None) -> dict[str, Any]:
    """A cell as a figure shows it, in per cent: mean, ends, whether seeds lack, why all do."""
    found = None if cell is None else cell.interval
    if cell is None or found is None:
        return dict.fromkeys(("mean", "lower", "upper")) | {
            "hollow": False,
            "lost": cell.lost if cell else None,
        }
    ends = {"lower": found.lower, "upper": found.upper}
    scaled = {name: None if end is None else 100 * end for name, end in ends.items()}
    return {"mean": 100 * found.mean, **scaled, "hollow": bool(cell.diverged), "lost": None}


def difference_mark(found: PairedDifference, *sides: Cell | None) -> dict[str, Any]:
    """A difference as a figure shows it, in points; `sides` tell whether seeds lack."""
    ends = {"mean": found.mean, "lower": found.lower, "upper": found.upper}
    points = {name: None if end is None else 100 * end for name, end in ends.items()}
    lacking = any(cell.diverged for cell in sides if cell is not None)
    return {**points, "hollow": lacking, "lost": None}


MARKS: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(("panel", "row", "series"), pl.String),
    **dict.fromkeys(("mean", "lower", "upper"), pl.Float64),
    "hollow": pl.Boolean,
    "lost": pl.String,
}
"""Columns of the tables that `dot_panels` draws."""


def marks(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """A table for `dot_panels`."""
    return pl.DataFrame(list(rows), schema=MARKS)
