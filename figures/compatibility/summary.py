"""Table I and what belongs to it, computed once from the records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from figures.experiments import measures
from figures.experiments.cells import Cell, cells, difference
from figures.experiments.frame import joined, runs
from figures.experiments.measures import METHODS, POLICIES, SERVED
from figures.rounds import CensoredRounds, interval_table, rounds_to_target, summarise_rounds
from figures.selection import of
from figures.statistics import PairedDifference, verdicts_holm
from figures.style import looks

TARGET = 0.75
"""Mean internal test accuracy to which rounds are counted; fixed before any run."""

KEY = ["algorithm", "bn_policy"]
AGGREGATED, SPECIFIC = POLICIES
Verdicts = dict[tuple[str, str], tuple[str, float]]


@dataclass(frozen=True)
class Row:
    """A method: cells by BN policy, and client-specific minus aggregated, paired by seed.

    Attributes:
        method: name in the registry.
        internal: mean accuracy over the training clients after the last round.
        worst: that of the training client with the smallest; `weakest` names it.
        external: accuracy on the clients left out.
        losses: mean training loss over the measured rounds from the first on.
        rounds: rounds until the mean internal accuracy reaches `TARGET`.
        differences: of "internal", "worst", "external" and "faster" (the losses); those that
            are not there lack a seed with both sides, or have but one side (FedBN).
    """

    method: str
    internal: Mapping[str, Cell]
    worst: Mapping[str, Cell]
    weakest: Mapping[str, str | None]
    external: Mapping[str, Cell]
    losses: Mapping[str, Cell]
    rounds: Mapping[str, CensoredRounds | None]
    differences: Mapping[str, PairedDifference]

    @property
    def merged(self) -> bool:
        """Whether one run fills both columns inside the federation: FedBN's."""
        return self.method == "fedbn"


@dataclass(frozen=True)
class Summary:
    """The section's numbers.

    Attributes:
        rows: the methods of Table I that were run, in its order.
        verdicts: (method, "internal" | "external") in one family, "faster" in another, to
            verdict and Holm-adjusted p.
        curves: loss and accuracy per method, policy and measured round, with intervals.
        serving: (method, policy, variant) -> external accuracy.
        settings: the methods' hyper-parameters, where they come from, and their nets.
        folds: the clients left out in turn; empty where none was.
        seeds: the largest number of seeds behind a cell, diverged ones counted.
        lost: one sentence for each method and policy of which runs diverged.
    """

    rows: list[Row]
    verdicts: Verdicts
    curves: pl.DataFrame
    serving: dict[tuple[str, str, str], Cell]
    settings: pl.DataFrame
    folds: list[str]
    seeds: int
    lost: list[str]


def summarise(rows: pl.DataFrame, manifests: Mapping[str, Mapping[str, Any]]) -> Summary:
    """Summarise the section's records; with folds among them, the other trainings are left out."""
    every, frame = runs(manifests), joined(rows, manifests)
    if every["held_out"].is_not_null().any():
        every, frame = (table.filter(pl.col("held_out").is_not_null()) for table in (every, frame))
    every, frame = measures.with_fedbn(every), measures.with_fedbn(frame)
    parts = _Parts(every, frame)
    present = set(every["algorithm"])
    names = [*(m for m in METHODS if m in present), *sorted(present - set(METHODS))]
    found = [parts.row(name) for name in names]
    return Summary(
        rows=found,
        verdicts=_judged(found),
        curves=parts.curves(),
        serving={key: cell for key, cell in parts.served.items() if cell.values},
        settings=of(every, study="training")
        .group_by("algorithm", "settings", "chosen", "model", "projection", maintain_order=True)
        .agg(pl.col("at_edge").drop_nulls().first()),
        folds=every["held_out"].drop_nulls().unique(maintain_order=True).to_list(),
        seeds=every["seed"].n_unique(),
        lost=parts.lost(),
    )


def _judged(rows: list[Row]) -> Verdicts:
    """Judge Table I as one family, and the training losses as another."""
    verdicts: Verdicts = {}
    for kinds, direction in ((("internal", "external"), "greater"), (("faster",), "less")):
        family = {
            (row.method, kind): row.differences[kind]
            for row in rows
            for kind in kinds
            if kind in row.differences
        }
        verdicts |= verdicts_holm(family, direction)  # pyright: ignore
    return verdicts


class _Parts:
    """The cells of all methods, by what they measure."""

    def __init__(self, every: pl.DataFrame, frame: pl.DataFrame):
        self.every, self.frame = every, frame
        self.trained = trained = of(every, study="training")
        self.worst_rows = measures.worst(frame)
        self.inside = {
            "internal": cells(measures.internal(frame), trained, KEY),
            "worst": cells(self.worst_rows, trained, KEY),
            "losses": cells(measures.mean_curve(frame, "loss", "train"), trained, KEY),
        }
        values = measures.external(frame)
        self.served = cells(values, every, KEY, ["variant"]) if values.height else {}
        self.reached = measures.curve(frame, "accuracy", "test", diverged=True)

    def row(self, method: str) -> Row:
        """Collect a method's cells; FedBN's run fills both columns inside the federation."""
        own = {p: SPECIFIC if method == "fedbn" else p for p in POLICIES}
        inside = {
            name: {p: found.get((method, own[p]), Cell()) for p in POLICIES}
            for name, found in self.inside.items()
        }
        external = {
            p: self._served(method, own[p], variant)
            for p, variant in zip(POLICIES, ("server", "adapted"), strict=True)
        }
        pairs = {"external": external}
        if method != "fedbn":
            kinds = {"internal": "internal", "worst": "worst", "faster": "losses"}
            pairs |= {kind: inside[name] for kind, name in kinds.items()}
        found = {kind: difference(p[SPECIFIC], p[AGGREGATED]) for kind, p in pairs.items()}
        return Row(
            method=method,
            internal=inside["internal"],
            worst=inside["worst"],
            weakest={p: self._weakest(method, own[p]) for p in POLICIES},
            external=external,
            losses=inside["losses"],
            rounds={p: self._rounds(method, own[p]) for p in POLICIES},
            differences={kind: d for kind, d in found.items() if d is not None},
        )

    def _served(self, method: str, policy: str, variant: str) -> Cell:
        """Where nothing was served, the seeds that diverged are known from the trainings."""
        inside = self.inside["internal"].get((method, policy), Cell())
        known = of(self.every, study="external", algorithm=method, bn_policy=policy).height > 0
        missing = Cell({}, inside.diverged if known else {})
        return self.served.get((method, policy, variant), missing)

    def _weakest(self, method: str, policy: str) -> str | None:
        names = of(self.worst_rows, algorithm=method, bn_policy=policy)["client"]
        return None if names.is_empty() else str(names.mode(maintain_order=True)[0])

    def _rounds(self, method: str, policy: str) -> CensoredRounds | None:
        """Count rounds of the mean over the folds; a seed that diverged before never arrives."""
        own = of(self.trained, algorithm=method, bn_policy=policy)
        rows = of(self.reached, algorithm=method, bn_policy=policy)
        folds = self.trained["held_out"].n_unique()
        found = []
        for seed in own["seed"].unique(maintain_order=True):
            if of(own, seed=seed)["held_out"].n_unique() < folds:
                continue
            means = of(rows, seed=seed).group_by("round").agg(pl.col("value").mean(), pl.len())
            whole = dict(means.filter(pl.col("len") == folds)["round", "value"].rows())
            found.append(rounds_to_target(whole, TARGET, "above") if whole else None)
        return summarise_rounds(found, int(own["last_round"].max())) if found else None  # pyright: ignore

    def curves(self) -> pl.DataFrame:
        """Mean over clients and folds per seed, then over seeds with the interval."""
        tables = []
        for metric, split in (("loss", "train"), ("accuracy", "test")):
            values = measures.curve(self.frame, metric, split)
            where = pl.lit(split).alias("split"), pl.lit(metric).alias("metric")
            folds = self.trained["held_out"].n_unique()
            seeds = values.group_by(*KEY, "seed", "round", maintain_order=True).agg(
                pl.col("value").mean(), pl.len()
            )
            whole = seeds.filter(pl.col("len") == folds).select(
                *KEY, *where, "seed", "round", "value"
            )
            tables.append(interval_table(whole, [*KEY, "split", "metric", "round"]))
        return pl.concat(tables)

    def lost(self) -> list[str]:
        """Say of each method and policy which seeds diverged."""
        cells = self.inside["internal"].items()
        known = looks(method for method, _ in self.inside["internal"])
        return [
            f"{known[method].label}, {policy.replace('_', '-')} BN: {cell.lost}"
            for (method, policy), cell in cells
            if cell.diverged and method != "fedbn"
        ]


__all__ = ["SERVED", "TARGET", "Row", "Summary", "summarise"]
