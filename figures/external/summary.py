"""Accuracy outside the federation: by method, by way of serving, and by the stream's order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from figures.experiments import measures
from figures.experiments.cells import Cell, cells
from figures.experiments.comparisons import Compared, averaged, both, compare, complete
from figures.experiments.frame import joined, runs
from figures.experiments.measures import POLICIES, SERVED
from figures.experiments.names import method_order
from figures.experiments.wide import MEAN, column_of
from figures.experiments.words import lost
from figures.selection import of

SERVICE = {"aggregated": "server", "client_specific": "adapted"}
"""How the two columns of Table I serve a client from outside."""
ORDERS = ("sorted", "drifting")
"""The streams that are held against the shuffled one."""
CALM = ("shuffled", "sorted")
FIXED = "server"

Cells = dict[tuple[str, ...], Cell]


@dataclass(frozen=True)
class Summary:
    """What the section shows. Columns are each held-out client's, and `MEAN` over them.

    Attributes:
        clients: those held out, in the order of the runs.
        columns: each client's, then `MEAN`.
        methods: algorithms, in the order of the paper's Table I.
        cells: (algorithm, policy, column) -> accuracy as Table I serves (see `SERVICE`).
        differences: (algorithm, column) -> client-specific minus aggregated, one family.
        by_method: algorithm -> the same in the mean over clients, one family.
        by_client: column -> the same, averaged over `averaged`, one family.
        averaged: the methods that have every seed with both policies.
        ways: (policy, variant, column) -> accuracy of FedAvg's models on a shuffled stream.
        gains: (variant, column) -> FedBN's adapted minus that way, one family.
        chosen: variant -> the same in the mean over clients, those that are claimed, one family.
        streams: (order, policy, variant, column) -> accuracy of FedAvg's models.
        harms: (order, policy, variant, column) -> shuffled minus that order.
        claimed: what is claimed of the streams, one family.
        seeds: the largest number of seeds.
        diverged: a sentence for each training that diverged.
    """

    clients: list[str]
    columns: list[str]
    methods: list[str]
    cells: Cells
    differences: dict[tuple[str, str], Compared]
    by_method: dict[str, Compared]
    by_client: dict[str, Compared]
    averaged: list[str]
    ways: Cells
    gains: dict[tuple[str, str], Compared]
    chosen: dict[str, Compared]
    streams: Cells
    harms: dict[tuple[str, ...], Compared]
    claimed: dict[str, Compared]
    seeds: int
    diverged: list[str]


def summarise(rows: pl.DataFrame, manifests: Mapping[str, Mapping[str, Any]]) -> Summary:
    """Summarise the records of the section."""
    behind = of(runs(manifests), study="external")
    frame = of(joined(rows, manifests), study="external")
    clients = behind["held_out"].unique(maintain_order=True).to_list()
    columns = [*map(column_of, clients), MEAN]
    served = _served(measures.external(frame), behind)
    table = {(a, p, c): x for (a, p, c, v), x in served.items() if SERVICE.get(p) == v}
    methods = method_order(behind["algorithm"])
    pairs = {(a, c): both(table, a, c) for a in methods for c in columns}
    full = complete(table, methods, MEAN)
    ways = {(p, v, c): x for (a, p, c, v), x in served.items() if a == "fedavg" and v in SERVED}
    streams = _streams(frame, behind)
    return Summary(
        clients,
        columns,
        methods,
        table,
        compare(pairs),
        compare({a: pairs[a, MEAN] for a in methods}),
        compare({c: averaged(table, full, c) for c in columns if c != MEAN}),
        full,
        ways,
        compare(_against_adapted(ways, columns)),
        compare({v: _gain(ways, v, MEAN) for v in ("server", "batch", "identity")}),
        streams,
        compare(_harms(streams)),
        compare(_claimed(streams)),
        behind["seed"].n_unique(),
        lost(behind),
    )


def _served(values: pl.DataFrame, behind: pl.DataFrame) -> Cells:
    """(algorithm, policy, column, variant) -> cell; what diverged was to be served, too."""
    found = _by_column(values, behind, ["variant"])
    for (algorithm, policy, column), cell in _by_column(values, behind, []).items():
        if policy in SERVICE and cell.diverged:
            missing = Cell({}, cell.diverged)
            found.setdefault((algorithm, policy, column, SERVICE[policy]), missing)
    return found


def _by_column(values: pl.DataFrame, behind: pl.DataFrame, within: list[str]) -> Cells:
    """(algorithm, policy, column, *within) -> cell, for each held-out client and their mean."""
    by = ["algorithm", "bn_policy"]
    each = cells(values, behind, [*by, "held_out"], within)
    found = {(a, p, column_of(c), *more): cell for (a, p, c, *more), cell in each.items()}
    means = cells(values, behind, by, within)
    return found | {(a, p, MEAN, *more): cell for (a, p, *more), cell in means.items()}


def _against_adapted(ways: Cells, columns: list[str]) -> dict[Any, Any]:
    others = [v for v in SERVED if v != "adapted"]
    pairs = {(v, c): _gain(ways, v, c) for v in others for c in columns}
    own = {c: ways.get((POLICIES[0], FIXED, c)) for c in columns}
    return pairs | {(POLICIES[0], c): (_gain(ways, "adapted", c)[0], own[c]) for c in columns}


def _gain(ways: Cells, variant: str, column: str) -> tuple[Cell | None, Cell | None]:
    """FedBN's model adapted, and served in another way."""
    adapted, other = (ways.get((POLICIES[1], v, column)) for v in ("adapted", variant))
    return adapted, other


def _streams(frame: pl.DataFrame, behind: pl.DataFrame) -> Cells:
    """(order, policy, variant, column) -> cell, of FedAvg's models at the usual τ and n_t."""
    values = measures.external(of(frame, algorithm="fedavg"), order=None)
    # Statistics that stay the same know no order: old records of them name none.
    values = values.with_columns(pl.col("note").fill_null("shuffled"))
    found = _by_column(values, of(behind, algorithm="fedavg"), ["variant", "note"])
    return {(o, p, v, c): cell for (_, p, c, v, o), cell in found.items()}


def _harms(streams: Cells) -> dict[Any, Any]:
    """Shuffled against each other order; where statistics are fixed, sorting changes nothing."""
    return {
        (order, *key): (streams.get(("shuffled", *key)), cell)
        for (order, *key), cell in streams.items()
        if order in ORDERS and key[0] in POLICIES and not (order == "sorted" and key[1] == FIXED)
    }


def _claimed(streams: Cells) -> dict[str, Any]:
    """The streams' claims: sorting harms, and a drift harms fixed statistics more."""
    specific = POLICIES[1]
    pairs: dict[str, Any] = {}
    for variant in ("adapted", "batch"):
        shuffled, ordered = (streams.get((o, specific, variant, MEAN)) for o in CALM)
        pairs[f"sorted.{variant}"] = (shuffled, ordered)
    lost = [_lost(streams, specific, variant) for variant in (FIXED, "adapted")]
    return pairs | {"drifting.adapted": (lost[0], lost[1])}


def _lost(streams: Cells, policy: str, variant: str) -> Cell:
    """What a drift costs, per seed."""
    key = (policy, variant, MEAN)
    calm, drifting = (streams.get((order, *key), Cell()) for order in ("shuffled", "drifting"))
    common = [seed for seed in calm.values if seed in drifting.values]
    return Cell({seed: calm.values[seed] - drifting.values[seed] for seed in common})
