"""Accuracy of every training client by method and BN policy, and what the policies differ by."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from figures.experiments import measures
from figures.experiments.cells import Cell, cells
from figures.experiments.comparisons import Compared, averaged, both, compare, complete
from figures.experiments.frame import joined, runs
from figures.experiments.names import method_order
from figures.experiments.wide import MEAN, WORST, column_of
from figures.experiments.words import lost
from figures.selection import of


@dataclass(frozen=True)
class Summary:
    """What the section shows.

    Attributes:
        clients: in the order of the records.
        columns: of the tables: each client's, `MEAN`, `WORST`.
        methods: algorithms, in the order of the paper's Table I.
        cells: (algorithm, policy, column) -> accuracy per seed.
        differences: (algorithm, column) -> client-specific minus aggregated BN, one family.
        by_column: column -> the same, averaged over `averaged`, one family.
        worst: algorithm -> the same for the worst client, one family.
        averaged: the methods that have every seed with both policies.
        seeds: the largest number of seeds.
        settings: what the runs were: net, rounds.
        diverged: a sentence for each training that diverged.
    """

    clients: list[str]
    columns: list[str]
    methods: list[str]
    cells: dict[tuple[str, str, str], Cell]
    differences: dict[tuple[str, str], Compared]
    by_column: dict[str, Compared]
    worst: dict[str, Compared]
    averaged: list[str]
    seeds: int
    settings: dict[str, str]
    diverged: list[str]


def whole_federation(table: pl.DataFrame) -> pl.DataFrame:
    """Trainings with all clients, all of their data, and nothing to choose."""
    keep = pl.all_horizontal(pl.col("held_out", "fraction", "per_domain", "validation").is_null())
    return of(table, study="training").filter(keep)


def summarise(rows: pl.DataFrame, manifests: Mapping[str, Mapping[str, Any]]) -> Summary:
    """Summarise the records of the section."""
    frame, behind = whole_federation(joined(rows, manifests)), whole_federation(runs(manifests))
    last = measures.last_round(frame)
    clients = last["client"].unique(maintain_order=True).to_list()
    by = ["algorithm", "bn_policy"]
    found = cells(last, behind, by, ["client"])
    table = {(a, p, column_of(name)): cell for (a, p, name), cell in found.items()}
    for column, values in ((MEAN, measures.internal(frame)), (WORST, measures.worst(frame))):
        table |= {(*key, column): cell for key, cell in cells(values, behind, by).items()}
    methods = method_order(behind["algorithm"])
    columns = [*map(column_of, clients), MEAN, WORST]
    pairs = {(a, c): both(table, a, c) for a in methods for c in columns}
    full = complete(table, methods, MEAN)
    means = {c: averaged(table, full, c) for c in columns if c != MEAN}
    return Summary(
        clients,
        columns,
        methods,
        table,
        compare(pairs),
        compare(means),
        compare({a: pairs[a, WORST] for a in methods}),
        full,
        behind["seed"].n_unique(),
        facts(behind),
        lost(behind),
    )


def facts(behind: pl.DataFrame) -> dict[str, str]:
    """Net and rounds of the runs, for captions."""
    names = {"net": "model", "rounds": "last_round"}
    found = {key: behind[column].drop_nulls().unique().sort() for key, column in names.items()}
    return {key: ", ".join(map(str, column)) for key, column in found.items()}
