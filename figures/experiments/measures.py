"""What is measured of each run: internal, worst and external accuracy, curves; one value a run.

Every function takes the table of `frame.joined` and leaves out the server's model and, unless
asked for, the runs that diverged.
"""

import polars as pl

from figures.selection import of

METHODS = (
    "fedavg",
    "fedprox",
    "scaffold",
    "fedadam",
    "fednova",
    "fedbn",
    "moon",
    "feddc",
    "perfedavg",
)
"""The rows of the paper's Table I, in its order."""

POLICIES = ("aggregated", "client_specific")
TAU, SAMPLES, ORDER = 0.9, 32, "shuffled"
"""How external clients are served unless a table says otherwise: τ, n_t and the stream's order."""

SERVED = ("server", "source", "batch", "adapted", "total", "identity")
"""The ways of serving an external client, in the order of the tables."""

_KEY = ("run", "algorithm", "bn_policy", "seed", "held_out")


def with_fedbn(table: pl.DataFrame) -> pl.DataFrame:
    """Enter FedAvg × client-specific BN also as FedBN, which it is, where FedBN has no run."""
    if "fedbn" in table["algorithm"]:
        return table
    same = of(table, algorithm="fedavg", bn_policy="client_specific")
    return pl.concat([table, same.with_columns(algorithm=pl.lit("fedbn"))])


def last_round(frame: pl.DataFrame, metric: str = "accuracy", split: str = "test") -> pl.DataFrame:
    """Rows of the training clients after the last round: a value per run and client."""
    rows = _trained(frame, metric, split)
    return rows.filter(pl.col("round") == pl.col("round").max().over("run", "algorithm"))


def internal(frame: pl.DataFrame) -> pl.DataFrame:
    """Mean test accuracy over the training clients after the last round, per run."""
    return _per_run(last_round(frame), pl.col("value").mean())


def worst(frame: pl.DataFrame) -> pl.DataFrame:
    """Smallest test accuracy of a training client after the last round, per run, and whose."""
    rows = last_round(frame)
    return _per_run(rows, pl.col("value").min(), pl.col("client").get(pl.col("value").arg_min()))


def curve(frame: pl.DataFrame, metric: str, split: str, *, diverged: bool = False) -> pl.DataFrame:
    """Mean over the training clients per run and measured round; `diverged`: those runs, too."""
    rows = _trained(frame, metric, split, ["complete", "diverged"] if diverged else "complete")
    return rows.group_by(*_KEY, "round", maintain_order=True).agg(pl.col("value").mean())


def mean_curve(frame: pl.DataFrame, metric: str, split: str) -> pl.DataFrame:
    """Mean over the training clients and the measured rounds from the first on, per run."""
    rows = curve(frame, metric, split).filter(pl.col("round") > 0)
    return _per_run(rows, pl.col("value").mean())


def external(
    frame: pl.DataFrame,
    *,
    tau: float | None = TAU,
    samples: int | None = SAMPLES,
    order: str | None = ORDER,
    metric: str = "accuracy",
) -> pl.DataFrame:
    """Accuracy on the held-out client's test images per run and `variant` (see `SERVED`).

    The default service is kept: τ = 0.9, n_t = 32, a shuffled stream; τ = 0 for "batch". None
    keeps every value; rows that have none ("server") are always kept.
    """
    rows = of(frame, study="external", metric=metric, status="complete")
    for name, value in (("parameter", tau), ("samples", samples), ("note", order)):
        if value is not None:
            column = pl.col(name)
            keep = column.is_null() | (column == value)
            if name == "parameter":
                keep |= (pl.col("variant") == "batch") & (column == 0)
            rows = rows.filter(keep)
    wanted = [*_KEY, "variant", "parameter", "samples", "note", "value"]
    # Two runs of one training may both hold the default service.
    where = [name for name in wanted if name not in ("run", "value")]
    return rows.select(wanted).unique(where, keep="first", maintain_order=True)


def _trained(
    frame: pl.DataFrame, metric: str, split: str, status: str | list[str] = "complete"
) -> pl.DataFrame:
    rows = of(frame, study="training", metric=metric, split=split, status=status)
    return rows.filter(pl.col("client") != "server")


def _per_run(rows: pl.DataFrame, *what: pl.Expr) -> pl.DataFrame:
    return rows.group_by(_KEY, maintain_order=True).agg(*what)
