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
from figures.generalization.gaussian import Gaussian, summarise_gaussian
from figures.generalization.names import INPUT, MIXTURE, RISKS, SERVED, WAYS, layer_order
from figures.generalization.terms import mixtures, summed, terms
from figures.selection import of
from figures.statistics import RankCorrelation, rank_correlation

Cells = dict[tuple[Any, ...], Cell]
Pairs = dict[str, tuple[Cell | None, Cell | None]]
RISING = ("floor", "gap")
"""Of what is claimed, that of which the first side is to be the larger."""

SHOWN = {"client-specific": POLICIES, "whitened": ("client_specific", "whitened")}
"""What is compared -> the features whose divergence is larger, then those with the smaller."""


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
        floor: (column, layer) -> d(h) of whitened samples of one Gaussian law: estimation alone.
        after: (column, t) -> d(h) of the last layer after t test batches.
        differences: (comparison, column, layer) -> smaller − larger of `SHOWN`, one family.
        claimed: what is claimed in the mean over held-out clients, one family.
        by_client: column -> client-specific − aggregated in the last layer, one family.
        by_layer: layers before it -> the same in the mean over held-out clients, one family.
        terms: a row per BN policy, held-out client, statement and term.
        sums: (policy, column, statement) -> sum of `RISKS`.
        errors: (policy, column, variant) -> external 0-1 error.
        error_ends: the same -> mean over seeds of its Clopper-Pearson ends.
        mixtures: Eq. (15), a row per run.
        points: reduction of divergence and gain of accuracy per held-out client and seed.
        rank: their rank correlation with clients counted as independent, None without points.
        rank_of_points: the same with all points counted as independent, which they are not.
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
    after: Cells
    differences: dict[tuple[str, str, str], Compared]
    claimed: dict[str, Compared]
    by_client: dict[str, Compared]
    by_layer: dict[str, Compared]
    terms: pl.DataFrame
    sums: Cells
    errors: Cells
    error_ends: dict[tuple[Any, ...], tuple[float, float]]
    mixtures: pl.DataFrame
    points: pl.DataFrame
    rank: RankCorrelation | None
    rank_of_points: RankCorrelation | None
    gaussian: Gaussian
    whole: dict[str, pl.DataFrame] = field(default_factory=dict)
    seeds: int = 0
    diverged: list[str] = field(default_factory=list)

    @property
    def last(self) -> str | None:
        """The last batch-norm layer; None where only the input was measured, or nothing."""
        return self.layers[-1] if self.layers and self.layers[-1] != INPUT else None


def summarise(rows: pl.DataFrame, manifests: Mapping[str, Mapping[str, Any]]) -> Summary:
    """Summarise the records of the section."""
    known = runs(manifests)
    behind = of(known, study="divergence")
    frame = of(joined(rows, manifests), study="divergence", status="complete")
    clients = behind["held_out"].unique(maintain_order=True).to_list()
    columns = [*map(column_of, clients), MEAN]
    layers = layer_order(of(frame, metric="divergence")["split"].drop_nulls())
    divergence = _by_layer(frame, behind, "divergence")
    floor = _specific(frame, behind, "divergence_floor", "split")
    after = _specific(frame, behind, "divergence_after", "samples")
    sums = by_column(summed(frame), behind, ["variant"])
    errors = by_column(of(frame, metric="external_error"), behind, ["variant"])
    last = layers[-1] if layers else INPUT
    # One family, since it was planned so: smaller ones would decide more.
    pairs = _of_divergence(divergence, floor, after, last)
    pairs |= _of_terms(sums, _gap(frame, behind, errors))
    claimed = compare(pairs, {n: "greater" if n in RISING else "less" for n in pairs})
    points = _points(divergence, errors, clients, last)
    outside = known.filter(pl.col("study").is_in(["training", "divergence"]))
    return Summary(
        clients,
        columns,
        layers,
        divergence,
        _by_layer(frame, behind, "divergence_lower"),
        _by_layer(frame, behind, "pair_divergence"),
        floor,
        after,
        compare(_pairs(divergence, columns, layers), "less"),
        claimed,
        compare({c: _sides(divergence, "client-specific", c, last) for c in columns[:-1]}, "less"),
        compare({x: _sides(divergence, "client-specific", MEAN, x) for x in layers[:-1]}, "less"),
        terms(frame),
        sums,
        errors,
        _ends(frame),
        mixtures(frame),
        points,
        *_ranks(points),
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
    """(column, by) -> mean over the seen clients of what client-specific runs alone have."""
    values = of(frame, metric=metric).filter(pl.col("client").ne_missing(MIXTURE))
    found = by_column(values, of(behind, bn_policy=POLICIES[1]), [by])
    return {(column, at): cell for (_, column, at), cell in found.items() if at is not None}


def _sides(found: Cells, name: str, column: str, layer: str) -> tuple[Cell | None, Cell | None]:
    """The features with the smaller divergence, and those that they are held against."""
    larger, smaller = SHOWN[name]
    return found.get((column, smaller, layer)), found.get((column, larger, layer))


def _pairs(found: Cells, columns: list[str], layers: list[str]) -> dict[Any, Any]:
    keys = [(name, c, layer) for name in SHOWN for c in columns for layer in layers]
    return {(name, c, layer): _sides(found, name, c, layer) for name, c, layer in keys}


def _of_divergence(found: Cells, floor: Cells, after: Cells, last: str) -> Pairs:
    """By features at the last layer, and by the number of test batches."""
    pairs: Pairs = {name: _sides(found, name, MEAN, last) for name in SHOWN}
    pairs["floor"] = (found.get((MEAN, "whitened", last)), floor.get((MEAN, last)))
    numbers = sorted({t for _, t in after})
    ends = [after.get((MEAN, t)) for t in (numbers[-1], numbers[0])] if numbers[1:] else [None] * 2
    return pairs | {"batches": (ends[0], ends[1])}


def _of_terms(sums: Cells, gap: tuple[Cell | None, Cell | None]) -> Pairs:
    """What client-specific BN does to the sum of the terms, and what (18) leaves out."""
    first, second = (sums.get((policy, MEAN, "16")) for policy in POLICIES)
    return {"terms": (second, first), "gap": gap}


def _gap(
    frame: pl.DataFrame, behind: pl.DataFrame, errors: Cells
) -> tuple[Cell | None, Cell | None]:
    """The external error, and the risk that (18) counts in its place."""
    specific = of(behind, bn_policy=POLICIES[1])
    risk = of(frame, metric="term", bn_policy=POLICIES[1], variant="18", split=RISKS[0])
    own = by_column(risk, specific, [])
    return errors.get((POLICIES[1], MEAN, SERVED[POLICIES[1]])), own.get((POLICIES[1], MEAN))


def _points(found: Cells, errors: Cells, clients: list[str], last: str) -> pl.DataFrame:
    """What client-specific BN takes from the divergence and what it gives in accuracy."""
    rows = []
    for client in clients:
        column = column_of(client)
        specific, aggregated = _sides(found, "client-specific", column, last)
        mine, theirs = (errors.get((p, column, SERVED[p]), Cell()).values for p in POLICIES[::-1])
        if specific is None or aggregated is None:
            continue
        for seed in sorted(set(specific.values) & set(aggregated.values) & set(mine) & set(theirs)):
            less = aggregated.values[seed] - specific.values[seed]
            row = {"held_out": client, "seed": seed, "reduction": less}
            rows.append(row | {"gain": theirs[seed] - mine[seed]})
    types = {"held_out": pl.String, "seed": pl.Int64, "reduction": pl.Float64, "gain": pl.Float64}
    return pl.DataFrame(rows, schema=types)


def _ranks(points: pl.DataFrame) -> tuple[RankCorrelation | None, RankCorrelation | None]:
    if points.is_empty():
        return None, None
    x, y = (points[name].to_list() for name in ("reduction", "gain"))
    return rank_correlation(x, y, points["held_out"].to_list()), rank_correlation(x, y)


def _ends(frame: pl.DataFrame) -> dict[tuple[Any, ...], tuple[float, float]]:
    rows = of(frame, metric="external_error").drop_nulls(["lower", "upper"])
    means = rows.group_by("bn_policy", "held_out", "variant", maintain_order=True).agg(
        pl.col("lower", "upper").mean()
    )
    return {(p, column_of(c), v): (low, high) for p, c, v, low, high in means.iter_rows()}


def _whole(frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The rows behind the section, of every seen client and seed."""
    wanted = ["held_out", "bn_policy", "seed", "metric", "client", "split", "variant"]
    numbers = ["samples", "value", "lower", "upper", "parameter", "note"]
    distances = [f"divergence{more}" for more in ("", "_lower", "_floor", "_after")]
    distances.append("pair_divergence")
    names = {"divergences": distances, "cross": ["cross_risk", "cross_error"]}
    names |= {"terms": ["term", "kind", "external_error"], "mixtures": ["mixture_risk"]}
    found = {}
    for name, metrics in names.items():
        rows = of(frame, metric=metrics).select(*wanted, *numbers)
        found[name] = rows.rename({"parameter": "p_value"})
    return found
