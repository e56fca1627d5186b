"""Columns of the section's tables: numbers for the CSV files, cells in words for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from figures.compatibility.captions import METHOD_NOTES
from figures.compatibility.summary import Row, Summary
from figures.experiments.cells import (
    NONE,
    SIGNS,
    Cell,
    column_types,
    difference_columns,
    difference_text,
    difference_types,
)
from figures.experiments.measures import POLICIES
from figures.style import looks
from figures.tables import SAME

POLICY_NAMES = {"aggregated": "aggregated", "client_specific": "client-specific"}
HEADINGS = {"aggregated": "aggre-\ngated", "client_specific": "client-\nspecific"}
PAIR = {**HEADINGS, "difference": "difference", "verdict": ""}
Types = dict[str, Any]


def labelled(summary: Summary) -> Iterator[tuple[Row, str]]:
    """Give each row with its method's name, marked by † where a note belongs to it."""
    known = looks(row.method for row in summary.rows)
    for row in summary.rows:
        yield row, known[row.method].label + "†" * (row.method in METHOD_NOTES)


def pair_numbers(row: Row, kind: str, pair: Mapping[str, Cell], summary: Summary) -> dict[str, Any]:
    """Both policies, their difference and, where it is judged, the verdict."""
    verdict, p = summary.verdicts.get((row.method, kind), (None, None))
    numbers = pair["aggregated"].columns(f"{kind}_aggregated")
    numbers |= pair["client_specific"].columns(f"{kind}_client_specific")
    numbers |= difference_columns(f"{kind}_difference", row.differences.get(kind))
    return numbers | {f"{kind}_verdict": verdict, f"{kind}_holm_p": p}


def pair_types(kind: str) -> Types:
    """Polars types of `pair_numbers`."""
    types: Types = {}
    for policy in POLICIES:
        types |= column_types(f"{kind}_{policy}")
    types |= difference_types(f"{kind}_difference")
    return {**types, f"{kind}_verdict": pl.String, f"{kind}_holm_p": pl.Float64}


def pair_cells(
    row: Row, kind: str, pair: Mapping[str, Cell], summary: Summary, scale: float = 100.0
) -> dict[str, str]:
    """Both policies, their difference and the verdict as people read them.

    Where one run fills both columns they are one cell; † marks what is measured otherwise.
    """
    inside = kind != "external"
    mark = "†" * (inside and row.method in METHOD_NOTES)
    one, other = (pair[p].text(scale, summary.seeds, mark) for p in POLICIES)
    texts = [one, SAME if inside and row.merged else other]
    verdict = summary.verdicts.get((row.method, kind))
    texts.append(difference_text(row.differences.get(kind), scale, of=summary.seeds))
    texts.append(NONE if verdict is None else SIGNS[verdict[0]])
    return {f"{kind}_{name}": text for name, text in zip(PAIR, texts, strict=True)}


def pair_headings(kind: str, *, judged: bool = True) -> dict[str, str]:
    """Headings of `pair_cells`."""
    return {f"{kind}_{k}": text for k, text in PAIR.items() if judged or k != "verdict"}


def number_table(rows: Sequence[Mapping[str, Any]], types: Types) -> pl.DataFrame:
    """The table of the CSV."""
    return pl.DataFrame(list(rows), schema=types, orient="row")


def word_table(rows: Sequence[Mapping[str, str]], headings: Mapping[str, str]) -> pl.DataFrame:
    """The table that people see."""
    shown = [{name: row[name] for name in headings} for row in rows]
    return pl.DataFrame(shown, schema=dict.fromkeys(headings, pl.String), orient="row")
