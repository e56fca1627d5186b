"""Tables with a column for each client: cells as people read them, every digit for the CSV."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from figures.experiments.cells import NONE, Cell
from figures.experiments.comparisons import Compared
from figures.experiments.names import client_titles

MEAN, WORST = "mean", "worst"
"""Columns beside the clients; a client's own is "client <name>", since its name may be any."""
WIDEST = 8
"""Clients beside one another in a table for people, and in a figure; the CSV has all of them."""


@dataclass(frozen=True)
class Row:
    """A row of cells: how their keys begin, what the CSV calls it, and what people do."""

    key: tuple[Any, ...]
    names: Mapping[str, str]
    labels: Mapping[str, str]


def column_of(client: str) -> str:
    """A client's column."""
    return f"client {client}"


def headings(clients: Sequence[str], **more: str) -> dict[str, str]:
    """Column -> heading, for the clients that a page holds; `more` are the columns beside them."""
    names = client_titles(clients[:WIDEST])
    return {column_of(name): label for name, label in names.items()} | more


def left_out(clients: Sequence[str]) -> str:
    """Say that the table for people does not have all clients, where it does not."""
    more = len(clients) - WIDEST
    return f" The CSV has {more} more client{'s' * (more > 1)}." if more > 0 else ""


def cell_frames(
    cells: Mapping[Any, Cell], rows: Sequence[Row], columns: Sequence[str], seeds: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The numbers, a row for each cell, and the texts, a row for each row with any cell.

    The texts have the columns `lost` (which seeds diverged) if any did, and say n where fewer
    than `seeds` are behind a mean.
    """
    numbers, shown = [], []
    for row in rows:
        found = {c: cells.get((*row.key, c)) for c in columns}
        if not any(found.values()):
            continue
        for column, cell in found.items():
            if cell is not None:
                numbers.append({**row.names, "column": column, **cell.columns("accuracy")})
        texts = {c: accuracy(cell, seeds) for c, cell in found.items()}
        # The mean over clients held out in turn has lost what any of them has.
        lost = max((c for c in found.values() if c), key=lambda cell: len(cell.diverged)).lost
        shown.append({**row.labels, **texts, "lost": lost})
    frame = pl.DataFrame(shown)
    if shown and not any(row["lost"] for row in shown):
        frame = frame.drop("lost")
    return pl.DataFrame(numbers, infer_schema_length=None), frame


def accuracy(cell: Cell | None, seeds: int) -> str:
    """Mean and interval in per cent; what diverged is in a column of its own."""
    return NONE if cell is None else replace(cell, diverged={}).text(of=seeds)


def lost_column(frame: pl.DataFrame) -> dict[str, str]:
    """The heading of what diverged, where something did."""
    return {"lost": "diverged"} if "lost" in frame.columns else {}


def difference_texts(
    found: Mapping[Any, Compared], rows: Sequence[Row], columns: Sequence[str], seeds: int
) -> pl.DataFrame:
    """The differences in points, a row for each row with any."""
    shown = []
    for row in rows:
        own = {c: found.get((*row.key, c)) for c in columns}
        if any(own.values()):
            texts = {c: one.text(seeds) if one else NONE for c, one in own.items()}
            shown.append({**row.labels, **texts})
    return pl.DataFrame(shown)
