"""Label shift on images: what statistics from a skewed stream cost a client from outside."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from figures.experiments.cells import Cell, cells
from figures.experiments.comparisons import Compared, compare
from figures.experiments.frame import joined, runs
from figures.experiments.wide import MEAN, column_of
from figures.experiments.words import lost
from figures.selection import of

WAYS = ("adapted", "balanced", "server")
"""Whence statistics come: the skewed stream, a balanced one of the same client, the server."""
_SPECIFIC = {"algorithm": "fedavg", "bn_policy": "client_specific"}


@dataclass(frozen=True)
class Skew:
    """What the section shows of label shift. Columns: each held-out client's, and `MEAN`.

    Attributes:
        clients: those held out, in the order of the runs.
        ratios: of the commonest to the rarest class, ascending.
        cells: (way, column, ratio) -> accuracy on the skewed images.
        harms: (column, ratio) -> balanced minus adapted, for ratios above one, one family.
        worst: column -> the same at the largest ratio, one family.
        ahead: column -> adapted minus the server's statistics there, one family.
        images: (column, ratio) -> images scored, the fewest of the runs.
        seeds: the largest number of seeds.
        diverged: a sentence for each training that diverged.
    """

    clients: list[str]
    ratios: list[float]
    cells: dict[tuple[str, str, float], Cell]
    harms: dict[tuple[str, float], Compared]
    worst: dict[str, Compared]
    ahead: dict[str, Compared]
    images: dict[tuple[str, float], int | None]
    seeds: int
    diverged: list[str]

    @property
    def columns(self) -> list[str]:
        """The mean first, where it is one of several clients."""
        each = [column_of(name) for name in self.clients]
        return [MEAN, *each] if len(each) > 1 else each


def summarise_skew(rows: pl.DataFrame, manifests: Mapping[str, Mapping[str, Any]]) -> Skew:
    """Summarise the records of the study "label_shift"."""
    behind = of(runs(manifests), study="label_shift", **_SPECIFIC)
    frame = of(joined(rows, manifests), study="label_shift", **_SPECIFIC)
    values = of(frame, metric="accuracy", variant=list(WAYS), status="complete")
    clients = behind["held_out"].drop_nulls().unique(maintain_order=True).to_list()
    ratios = values["parameter"].drop_nulls().unique().sort().to_list()
    table = _by_column(values, behind)
    columns = [*([MEAN] if len(clients) > 1 else []), *map(column_of, clients)]
    skewed = [ratio for ratio in ratios if ratio > 1]
    last = skewed[-1:]
    scored = values.group_by("held_out", "parameter").agg(pl.col("samples").min()).rows()
    return Skew(
        clients,
        ratios,
        table,
        compare(
            {(c, r): _pair(table, "balanced", "adapted", c, r) for c in columns for r in skewed}
        ),
        compare({c: _pair(table, "balanced", "adapted", c, r) for c in columns for r in last}),
        compare({c: _pair(table, "adapted", "server", c, r) for c in columns for r in last}),
        {(column_of(client), ratio): n for client, ratio, n in scored},
        behind["seed"].n_unique(),
        lost(behind),
    )


def _by_column(values: pl.DataFrame, behind: pl.DataFrame) -> dict[tuple[str, str, float], Cell]:
    """(way, column, ratio) -> cell, for each held-out client and their mean."""
    by, within = ["bn_policy"], ["variant", "parameter"]
    each = cells(values, behind, [*by, "held_out"], within)
    found = {(way, column_of(c), ratio): cell for (_, c, way, ratio), cell in each.items()}
    means = cells(values, behind, by, within)
    found |= {(way, MEAN, ratio): cell for (_, way, ratio), cell in means.items()}
    return {k: c for k, c in found.items() if k[0] is not None and (c.values or c.diverged)}


def _pair(
    table: Mapping[Any, Cell], first: str, second: str, column: str, ratio: float
) -> tuple[Cell | None, Cell | None]:
    return table.get((first, column, ratio)), table.get((second, column, ratio))
