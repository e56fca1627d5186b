"""Divergence taken against accuracy gained, by held-out client and seed, and rank correlations."""

from dataclasses import dataclass

import polars as pl

from figures.experiments.cells import Cell
from figures.experiments.measures import POLICIES
from figures.experiments.wide import column_of
from figures.generalization.names import SERVED
from figures.generalization.planned import Cells
from figures.statistics import RankCorrelation, rank_correlation

REDUCTIONS = {"client_specific": "reduction", "per_unit": "reduction_per_unit"}
"""Features -> the column of `points` with what they take from aggregated BN's divergence."""


@dataclass(frozen=True)
class Ranks:
    """A rank correlation with clients counted as independent, and with all points so."""

    of_clients: RankCorrelation
    of_points: RankCorrelation


def points(found: Cells, errors: Cells, clients: list[str], last: str) -> pl.DataFrame:
    """What client-specific BN takes from the divergence and what it gives in accuracy.

    `reduction` is that of the features as deployed; `reduction_per_unit`, where it was measured,
    that with statistics of the training images.
    """
    rows = []
    for client in clients:
        column = column_of(client)
        base = found.get((column, POLICIES[0], last), Cell()).values
        less = {name: found.get((column, name, last), Cell()).values for name in REDUCTIONS}
        mine, theirs = (errors.get((p, column, SERVED[p]), Cell()).values for p in POLICIES[::-1])
        for seed in sorted(set(less[POLICIES[1]]) & set(base) & set(mine) & set(theirs)):
            row = {"held_out": client, "seed": seed, "gain": theirs[seed] - mine[seed]}
            for name, title in REDUCTIONS.items():
                row[title] = base[seed] - less[name][seed] if seed in less[name] else None
            rows.append(row)
    numbers = [*REDUCTIONS.values(), "gain"]
    types = {"held_out": pl.String, "seed": pl.Int64} | dict.fromkeys(numbers, pl.Float64)
    return pl.DataFrame(rows, schema=types)


def ranks(table: pl.DataFrame) -> dict[str, Ranks]:
    """Features -> how what they take from the divergence ranks with the accuracy gained."""
    found = {}
    for name, title in REDUCTIONS.items():
        rows = table.drop_nulls(title)
        if rows.height:
            x, y = rows[title].to_list(), rows["gain"].to_list()
            clients = rows["held_out"].to_list()
            found[name] = Ranks(rank_correlation(x, y, clients), rank_correlation(x, y))
    return found
