"""What varies one setting of FedAvg's training: step, local epochs, data, clients a domain."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from figures.experiments import measures
from figures.experiments.cells import Cell, cells
from figures.experiments.comparisons import Compared, compare
from figures.experiments.measures import POLICIES
from figures.selection import of

LOCAL = "local"
AGGREGATED, SPECIFIC = POLICIES


@dataclass(frozen=True)
class Sweep:
    """One setting with its values.

    Attributes:
        values: in order.
        cells: (value, series) -> test accuracy, mean over clients; series are the policies and
            "local".
        ahead: value -> client-specific minus aggregated BN, one family.
        alone: value -> client-specific BN minus local training, one family.
        rounds: value -> communication rounds.
        seeds: the largest number of seeds.
    """

    values: list[float] = field(default_factory=list)
    cells: Mapping[tuple[float, str], Cell] = field(default_factory=dict)
    ahead: Mapping[float, Compared] = field(default_factory=dict)
    alone: Mapping[float, Compared] = field(default_factory=dict)
    rounds: Mapping[float, int] = field(default_factory=dict)
    seeds: int = 0


def sweeps(frame: pl.DataFrame, behind: pl.DataFrame) -> dict[str, Sweep]:
    """The four sweeps, by the column of `frame.RUN` that varies; empty where nothing does.

    Runs of another step size than the usual one are part of the sweep over steps alone.
    """
    lr = usual_lr(behind)
    behind = of(behind, study="training", algorithm=["fedavg", LOCAL])
    behind = behind.filter(pl.all_horizontal(pl.col("held_out", "validation").is_null()))
    usual = at_lr(behind, lr)
    chosen = {
        "lr": step_sizes(behind),
        "local_epochs": local_epochs(usual),
        "fraction": beside_usual(usual, "fraction"),
        "per_domain": beside_usual(usual, "per_domain"),
    }
    return {name: _sweep(frame, runs, name) for name, runs in chosen.items()}


def usual_lr(behind: pl.DataFrame) -> float | None:
    """The step size of most runs, which keep it while they vary something else."""
    counts = behind.group_by("lr").len().sort("len", "lr", descending=[True, False])
    return next(iter(counts["lr"].to_list()), None)


def at_lr(table: pl.DataFrame, lr: float | None) -> pl.DataFrame:
    """The rows whose run has this step size."""
    return table.filter(pl.col("lr").eq_missing(pl.lit(lr, pl.Float64)))


def step_sizes(behind: pl.DataFrame) -> pl.DataFrame:
    """Trainings of one schedule but for its step size, of which there are several."""
    return _most(of(_usual(behind), algorithm="fedavg"), ["last_round", "local_epochs"], "lr")


def local_epochs(behind: pl.DataFrame) -> pl.DataFrame:
    """Trainings of the same number of local epochs in total, with several numbers in a round."""
    plain = of(_usual(behind), algorithm="fedavg")
    plain = plain.with_columns(total=pl.col("last_round") * pl.col("local_epochs"))
    return _most(plain, ["total"], "local_epochs").drop("total")


def beside_usual(behind: pl.DataFrame, name: str) -> pl.DataFrame:
    """Trainings in which `name` varies, and the usual ones of the same schedule, with value 1."""
    varied = behind.filter(pl.col(name).is_not_null())
    schedule = ["last_round", "local_epochs"]
    # Local training is compared only where it was varied, too.
    usual = of(_usual(behind), algorithm=varied["algorithm"].unique().to_list())
    usual = usual.join(varied.select(schedule).unique(), on=schedule, how="semi")
    return pl.concat([usual.with_columns(pl.col(name).fill_null(1)), varied])


def by_domain(rows: pl.DataFrame) -> pl.DataFrame:
    """Per run the mean over domains of the mean over their clients, named "<domain>/<k>"."""
    name = pl.when(pl.col("per_domain").is_null()).then(pl.col("client"))
    domain = name.otherwise(pl.col("client").str.replace(r"/\d+$", ""))
    key = ["run", "algorithm", "bn_policy", "seed", "held_out"]
    mean = pl.col("value").mean()
    return (
        rows.group_by(*key, domain.alias("domain"), maintain_order=True)
        .agg(mean)
        .group_by(key, maintain_order=True)
        .agg(mean)
    )


def _usual(behind: pl.DataFrame) -> pl.DataFrame:
    return behind.filter(pl.all_horizontal(pl.col("fraction", "per_domain").is_null()))


def _most(runs: pl.DataFrame, key: list[str], varied: str) -> pl.DataFrame:
    """The group of runs in which `varied` has most values, more than one."""
    most = runs.group_by(key, maintain_order=True).agg(pl.col(varied).n_unique())
    most = most.filter(pl.col(varied) > 1).sort(varied, descending=True, maintain_order=True)
    return runs.join(most.head(1).select(key), on=key, how="semi")


def _sweep(frame: pl.DataFrame, behind: pl.DataFrame, name: str) -> Sweep:
    if behind.is_empty():
        return Sweep()
    behind = behind.with_columns(
        pl.col(name).cast(pl.Float64),
        # Alone, every policy is the same: nothing is shared.
        series=pl.when(pl.col("algorithm") == LOCAL)
        .then(pl.lit(LOCAL))
        .otherwise(pl.col("bn_policy")),
    )
    means = by_domain(
        measures.last_round(frame.filter(pl.col("run").is_in(behind["run"].to_list())))
    )
    values = means.join(behind.select("run", "series", name), on="run")
    found = cells(values, behind, [name, "series"])
    there = behind[name].unique().sort().to_list()
    sides = {value: {s: found.get((value, s)) for s in (*POLICIES, LOCAL)} for value in there}
    return Sweep(
        there,
        {key: cell for key, cell in found.items() if key[1] in sides[key[0]]},
        compare({v: (side[SPECIFIC], side[AGGREGATED]) for v, side in sides.items()}),
        compare({v: (side[SPECIFIC], side[LOCAL]) for v, side in sides.items()}),
        dict(behind.select(name, "last_round").iter_rows()),
        behind["seed"].n_unique(),
    )
