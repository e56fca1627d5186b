"""Divergence by layer, terms of the bounds and external error, per seed and held-out client."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from figures.experiments.cells import Cell, cells
from figures.experiments.comparisons import Compared, compare
from figures.experiments.frame import joined, runs
from figures.experiments.measures import POLICIES
from figures.experiments.wide import MEAN, column_of
from figures.experiments.words import lost
from figures.generalization import planned
from figures.generalization.gaussian import Gaussian, summarise_gaussian
from figures.generalization.names import (
    AVERAGED,
    INPUT,
    MIXTURE,
    READINGS,
    RISKS,
    WAYS,
    layer_order,
)
from figures.generalization.planned import Cells, sides
from figures.generalization.points import Ranks, points, ranks
from figures.generalization.terms import mixtures, stated, summed, terms
from figures.selection import of
from figures.statistics import RankCorrelation


@dataclass(frozen=True)
class Summary:
    """What the section shows. Columns are each held-out client's, and `MEAN` over them.

    Attributes:
        clients: those held out, in the order of the runs.
        columns: each client's, then `MEAN`.
        layers: the input and the batch-norm layers, from below.
        divergence: (column, features, layer) -> d(h), the mean over the seen clients.
        lower: the same of the lower bound of d_H.
        pairs: the same of d_HΔH by a search over pairs of networks.
        floor: the same of d(h) between samples of one Gaussian law: estimation alone.
        pair_floor: the same of d_HΔH.
        after: (column, features, t) -> d(h) of the last layer after t test batches.
        differences: (comparison, column, layer) -> smaller − larger of `SHOWN`, one family.
        claimed: what is claimed in the mean over held-out clients, one family.
        by_client: column -> client-specific − aggregated in the last layer, one family.
        by_layer: layers before it -> the same in the mean over held-out clients, one family.
        terms: a row per BN policy, held-out client, statement and term.
        sums: (policy, column, statement) -> sum of `RISKS`.
        risks: (policy, column) -> J_u(f_u), the Gibbs risk of averaged predictions outside.
        errors: (policy, column, variant) -> external 0-1 error.
        ends: (policy, column, variant) -> mean over seeds of the ends of either.
        mixtures: Eq. (15), a row per run and reading.
        points: reduction of divergence and gain of accuracy per held-out client and seed.
        ranks: features -> their rank correlations; empty without points.
        gaussian: what Gaussian clients show.
        whole: tables that are written with every row and digit.
        seeds: the largest number of seeds.
        diverged: a sentence for each training that diverged.
    """

    clients: list[str]
    columns: list[str]
    layers: list[str]
    divergence: Cells
    lower: Cells
    pairs: Cells
    floor: Cells
    pair_floor: Cells
    after: Cells
    differences: dict[tuple[str, str, str], Compared]
    claimed: dict[str, Compared]
    by_client: dict[str, Compared]
    by_layer: dict[str, Compared]
    terms: pl.DataFrame
    sums: Cells
    risks: Cells
    errors: Cells
    ends: dict[tuple[Any, ...], tuple[float, float]]
    mixtures: pl.DataFrame
    points: pl.DataFrame
    ranks: dict[str, Ranks]
    gaussian: Gaussian
    whole: dict[str, pl.DataFrame] = field(default_factory=dict)
    seeds: int = 0
    diverged: list[str] = field(default_factory=list)

    @property
    def last(self) -> str | None:
        """The last batch-norm layer; None where only the input was measured, or nothing."""
        return self.layers[-1] if self.layers and self.layers[-1] != INPUT else None

    @property
    def rank(self) -> RankCorrelation | None:
        """That of the features as deployed, with clients counted as independent."""
        return self.ranks[POLICIES[1]].of_clients if self.ranks else None

    @property
    def rank_of_points(self) -> RankCorrelation | None:
        """The same with all points counted as independent, which they are not."""
        return self.ranks[POLICIES[1]].of_points if self.ranks else None


def summarise(rows: pl.DataFrame, manifests: Mapping[str, Mapping[str, Any]]) -> Summary:
    """Summarise the records of the section."""
    known = runs(manifests)
    behind = of(known, study="divergence")
    frame = stated(of(joined(rows, manifests), study="divergence", status="complete"))
    clients = behind["held_out"].unique(maintain_order=True).to_list()
    columns = [*map(column_of, clients), MEAN]
    layers = layer_order(of(frame, metric="divergence")["split"].drop_nulls())
    last = layers[-1] if layers else INPUT
    divergence, lower, pairs = (
        _by_layer(frame, behind, name)
        for name in ("divergence", "divergence_lower", "pair_divergence")
    )
    floor, pair_floor = (
        _specific(frame, behind, f"{name}_floor", "split")
        for name in ("divergence", "pair_divergence")
    )
    after = _specific(frame, behind, "divergence_after", "samples")
    sums = by_column(summed(frame), behind, ["variant"])
    risks = by_column(of(frame, metric="external_risk", variant=AVERAGED), behind, [])
    errors = by_column(of(frame, metric="external_error"), behind, ["variant"])
    # One family, since it was planned so: smaller ones would decide more.
    family = planned.of_divergence(divergence, pairs, last)
    family |= planned.of_floors(divergence, floor, "floor", last)
    family |= planned.of_floors(pairs, pair_floor, "pair floor", last)
    family |= planned.of_batches(after) | planned.of_terms(sums, risks, _home(frame, behind))
    rising = {name: "greater" if name in planned.RISING else "less" for name in family}
    table = points(divergence, errors, clients, last)
    outside = known.filter(pl.col("study").is_in(["training", "divergence"]))
    return Summary(
        clients,
        columns,
        layers,
        divergence,
        lower,
        pairs,
        floor,
        pair_floor,
        after,
        compare(planned.shown_pairs(divergence, columns, layers), "less"),
        compare(family, rising),
        compare({c: sides(divergence, "client-specific", c, last) for c in columns[:-1]}, "less"),
        compare({x: sides(divergence, "client-specific", MEAN, x) for x in layers[:-1]}, "less"),
        terms(frame),
        sums,
        risks,
        errors,
        _ends(frame),
        mixtures(frame),
        table,
        ranks(table),
        summarise_gaussian(rows, manifests),
        _whole(frame),
        behind["seed"].n_unique(),
        lost(outside.filter(pl.col("held_out").is_not_null())),
    )


def by_column(values: pl.DataFrame, behind: pl.DataFrame, within: list[str]) -> Cells:
    """(policy, column, *within) -> cell, for each held-out client and their mean."""
    values = values.sort("seed", "held_out", maintain_order=True)
    each = cells(values, behind, ["bn_policy", "held_out"], within)
    found = {(p, column_of(c), *more): cell for (p, c, *more), cell in each.items()}
    means = cells(values, behind, ["bn_policy"], within)
    return found | {(p, MEAN, *more): cell for (p, *more), cell in means.items()}


def _by_layer(frame: pl.DataFrame, behind: pl.DataFrame, metric: str) -> Cells:
    """(column, features, layer) -> mean over the seen clients, per seed."""
    values = of(frame, metric=metric).filter(pl.col("client").ne_missing(MIXTURE))
    found: Cells = {}
    for (policy, column, variant, layer), cell in by_column(
        values, behind, ["variant", "split"]
    ).items():
        key = (column, variant, layer)
        if variant in WAYS.get(policy, ()):
            found[key] = cell
        elif variant == "raw" and len(cell.values) > len(found.get(key, Cell()).values):
            # Inputs know no policy: what is there of either training serves.
            found[key] = Cell(cell.values)
    return {key: cell for key, cell in found.items() if cell.values or cell.diverged}


def _specific(frame: pl.DataFrame, behind: pl.DataFrame, metric: str, by: str) -> Cells:
    """(column, features, by) -> mean over seen clients of what client-specific runs alone have."""
    values = of(frame, metric=metric).filter(pl.col("client").ne_missing(MIXTURE))
    found = by_column(values, of(behind, bn_policy=POLICIES[1]), ["variant", by])
    cells = {(column, *at): cell for (_, column, *at), cell in found.items()}
    return {key: cell for key, cell in cells.items() if None not in key and cell.values}


def _home(frame: pl.DataFrame, behind: pl.DataFrame) -> Cells:
    """The risk that (18) counts: of each local model at its own client."""
    rows = of(frame, metric="term", bn_policy=POLICIES[1], variant="18", split=RISKS[0])
    return by_column(rows, of(behind, bn_policy=POLICIES[1]), [])


def _ends(frame: pl.DataFrame) -> dict[tuple[Any, ...], tuple[float, float]]:
    rows = of(frame, metric=["external_error", "external_risk"]).drop_nulls(["lower", "upper"])
    means = rows.group_by("bn_policy", "held_out", "variant", maintain_order=True).agg(
        pl.col("lower", "upper").mean()
    )
    return {(p, column_of(c), v): (low, high) for p, c, v, low, high in means.iter_rows()}


def _whole(frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The rows behind the section, of every seen client and seed."""
    wanted = ["held_out", "bn_policy", "seed", "metric", "client", "split", "variant"]
    numbers = ["samples", "value", "lower", "upper", "parameter", "note"]
    distances = [f"divergence{more}" for more in ("", "_lower", "_floor", "_after")]
    distances += ["pair_divergence", "pair_divergence_floor"]
    crossed = [f"cross_{name}{how}" for how in ("", "_on_inputs") for name in ("risk", "error")]
    names = {"divergences": distances, "cross": crossed}
    names |= {"terms": ["term", "kind", "external_risk", "external_error"]}
    names |= {"mixtures": list(READINGS.values())}
    found = {}
    for name, metrics in names.items():
        rows = of(frame, metric=metrics).select(*wanted, *numbers)
        found[name] = rows.rename({"parameter": "p_value"})
    return found
