"""Tables of the drift of V, G, Λ over width and steps, of the width asked for, of local steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from figures.selection import of
from figures.statistics import mean_interval

CELL = ["data", "alpha", "net"]
PART = [*CELL, "part"]
FEDERATED = [*CELL, "choice", "fraction", "steps"]


@dataclass(frozen=True)
class DriftSummary:
    """What is behind Theorem III.4 and beyond it; tables of parts that were not run are empty.

    Attributes:
        spread: per quantity (`start`: ‖K(0) − K∞‖₂, `movement`: max over t of ‖K(t) − K(0)‖₂, both
            by ‖K∞‖₂), kernel K and m: geometric mean and range over draws.
        slopes: of the logarithm of either over that of m: mean over draws and 95 % interval.
        along: λ_min(Λ(t))/(e₀/2) and ‖G(t) − G∞‖₂/‖G∞‖₂ over steps: median over draws.
        holds: per m: the smallest λ_min(Λ(t))/(e₀/2), and in how many draws it stays at 1 or above.
        asked: the width that the theorem asks for, the largest run, and what a memory holds.
        federated: squared residual by its start, or what the theorem promises of E = 1 and
            everyone, per round, E and participation.
        rates: mean decay in decades a round and a local step: mean and range over draws.
        diverged: labels of runs that diverged.
    """

    spread: pl.DataFrame
    slopes: pl.DataFrame
    along: pl.DataFrame
    holds: pl.DataFrame
    asked: pl.DataFrame
    federated: pl.DataFrame
    rates: pl.DataFrame
    diverged: list[str]


def summarise_drift(frame: pl.DataFrame) -> DriftSummary:
    """Summarise the studies `drift` and `local_steps`."""
    drifted, local = of(frame, study="drift"), of(frame, study="local_steps")
    values = pl.concat([_starts(drifted), _movements(drifted)])
    eigenvalues = _eigenvalues(drifted)
    return DriftSummary(
        spread=_spread(values),
        slopes=slopes(values),
        along=_along(drifted, eigenvalues),
        holds=_holds(eigenvalues),
        asked=_asked(drifted),
        federated=_federated(local),
        rates=_rates(local),
        diverged=_diverged(drifted, local),
    )


def slopes(values: pl.DataFrame) -> pl.DataFrame:
    """Per quantity and kernel: slope over log m by least squares for each draw; mean, interval.

    A draw counts where it has every width; without two widths there is no slope.
    """
    rows = []
    for key, part in values.group_by("quantity", *PART, maintain_order=True):
        widths = part["width"].n_unique()
        fits = [
            _slope(one["width"].to_numpy(), one["value"].to_numpy())
            for _, one in part.sort("width").group_by("draw", maintain_order=True)
            if one.height == widths > 1
        ]
        if fits:
            found = mean_interval(fits)
            rows.append((*key, found.mean, found.lower, found.upper, found.n, widths, found.method))
    schema: Mapping[str, Any] = {"quantity": pl.String, **_types(PART)}
    schema |= dict.fromkeys(("mean", "lower", "upper"), pl.Float64)
    schema |= {"draws": pl.Int64, "widths": pl.Int64, "method": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _slope(width: np.ndarray, value: np.ndarray) -> float:
    return float(np.polyfit(np.log(width), np.log(value), 1)[0])


def _types(names: list[str]) -> dict[str, Any]:
    return {name: pl.Float64 if name == "alpha" else pl.String for name in names}


def _parts(rows: pl.DataFrame) -> pl.DataFrame:
    both = pl.col("variant").str.split("|")
    return rows.with_columns(net=both.list.first(), part=both.list.last())


def _starts(drifted: pl.DataFrame) -> pl.DataFrame:
    rows = _parts(of(drifted, metric="drift_from_limit", round=0))
    return _values(rows, "start", pl.col("value").first())


def _movements(drifted: pl.DataFrame) -> pl.DataFrame:
    """Of the draws that were trained to the end."""
    lost = of(drifted, metric="diverged_at").select(
        "data", "alpha", "width", "draw", pl.col("variant").alias("net")
    )
    rows = _parts(of(drifted, metric="drift_by_training").filter(pl.col("round") > 0))
    rows = rows.join(lost, on=lost.columns, how="anti", maintain_order="left")
    return _values(rows, "movement", pl.col("value").max())


def _values(rows: pl.DataFrame, quantity: str, value: pl.Expr) -> pl.DataFrame:
    grouped = rows.group_by(*PART, "width", "draw", maintain_order=True).agg(
        value=value, setting=pl.col("setting").first()
    )
    # What has not moved at all has no logarithm.
    return grouped.filter(pl.col("value") > 0).with_columns(quantity=pl.lit(quantity))


def _spread(values: pl.DataFrame) -> pl.DataFrame:
    return values.group_by("quantity", *PART, "width", maintain_order=True).agg(
        pl.col("value").log().mean().exp().alias("value"),
        pl.col("value").min().alias("low"),
        pl.col("value").max().alias("high"),
        pl.len().alias("draws"),
        pl.col("setting").first(),
    )


def _eigenvalues(drifted: pl.DataFrame) -> pl.DataFrame:
    """λ_min(Λ(t))/(e₀/2) of every trained draw and recorded step; nothing where e₀ may be 0."""
    on = ["data", "alpha", "width", "draw", "variant"]
    e0 = of(drifted, metric="limit_smallest_eigenvalue").filter(pl.col("lower") > 0)
    rows = of(drifted, metric="smallest_eigenvalue_during")
    both = rows.join(
        e0.select(*on, pl.col("value").alias("e0")), on=on, how="inner", maintain_order="left"
    )
    return both.with_columns(net=pl.col("variant"), ratio=pl.col("value") / (pl.col("e0") / 2))


def _along(drifted: pl.DataFrame, eigenvalues: pl.DataFrame) -> pl.DataFrame:
    key = [*CELL, "width", "draw", "round"]
    trained = eigenvalues.select(*key, "setting", pl.lit("eigenvalue").alias("quantity"), "ratio")
    rows = _parts(of(drifted, metric="drift_from_limit"))
    distance = of(rows, part="G").join(
        trained.select(key), on=key, how="semi", maintain_order="left"
    )
    distance = distance.select(
        *key, "setting", pl.lit("distance").alias("quantity"), pl.col("value").alias("ratio")
    )
    return (
        pl.concat([trained, distance])
        .group_by("quantity", *CELL, "width", "round", maintain_order=True)
        .agg(
            pl.col("ratio").median().alias("value"),
            pl.col("ratio").min().alias("low"),
            pl.col("ratio").max().alias("high"),
            pl.len().alias("draws"),
            pl.col("setting").first(),
        )
    )


def _holds(eigenvalues: pl.DataFrame) -> pl.DataFrame:
    worst = eigenvalues.group_by(*CELL, "width", "draw", maintain_order=True).agg(
        smallest=pl.col("ratio").min()
    )
    return worst.group_by(*CELL, "width", maintain_order=True).agg(
        pl.col("smallest").min(),
        (pl.col("smallest") >= 1).sum().alias("held"),
        pl.len().alias("draws"),
    )


def _asked(drifted: pl.DataFrame) -> pl.DataFrame:
    asked = of(drifted, metric="required_width").with_columns(net=pl.col("variant"))
    # The width asked for does not depend on the one that was run.
    asked = asked.unique(subset=[*CELL, "draw"], keep="first", maintain_order=True)
    asked = asked.group_by(CELL, maintain_order=True).agg(
        pl.col("value").median().alias("asked"),
        pl.col("value").min().alias("low"),
        pl.col("value").max().alias("high"),
        pl.len().alias("draws"),
        pl.col("setting").first(),
    )
    held = (
        of(drifted, metric="affordable_width")
        .group_by("data", "alpha")
        .agg(
            pl.col("value").first().alias("affordable"),
            pl.col("note").first().alias("memory"),
            pl.col("width").max().alias("largest"),
        )
    )
    return asked.join(held, on=["data", "alpha"], how="left", maintain_order="left").with_columns(
        times=pl.col("asked") / pl.col("affordable")
    )


def _split(rows: pl.DataFrame) -> pl.DataFrame:
    parts = pl.col("variant").str.split("|")
    return rows.with_columns(
        net=parts.list.get(0),
        choice=parts.list.get(1, null_on_oob=True),
        fraction=parts.list.get(2, null_on_oob=True).cast(pl.Float64),
        steps=parts.list.get(3, null_on_oob=True).cast(pl.Int64),
    )


def _federated(local: pl.DataFrame) -> pl.DataFrame:
    rows = _split(of(local, metric=["relative_residual", "promised"]))
    return rows.select(*FEDERATED, "draw", "width", "setting", "metric", "round", "value")


def _rates(local: pl.DataFrame) -> pl.DataFrame:
    """Runs without a rate (diverged, or at 0 at once) are counted in `runs` alone."""
    rows = _split(of(local, metric=["finished", "diverged"]))
    runs = rows.group_by(FEDERATED, maintain_order=True).agg(
        pl.len().alias("runs"),
        (pl.col("metric") == "diverged").sum().alias("diverged"),
        pl.col("note").first().alias("theorem"),
        pl.col("setting").first(),
        pl.col("width").max(),
    )
    rate = (
        _split(of(local, metric="decades_a_round"))
        .group_by(FEDERATED)
        .agg(
            pl.col("value").mean().alias("rate"),
            pl.col("value").min().alias("low"),
            pl.col("value").max().alias("high"),
        )
    )
    promise = _split(of(local, metric="promised_decades"))
    promise = promise.group_by(*CELL, "choice").agg(pl.col("value").mean().alias("promised"))
    joined = runs.join(rate, on=FEDERATED, how="left", maintain_order="left")
    joined = joined.join(promise, on=[*CELL, "choice"], how="left", maintain_order="left")
    return joined.with_columns(step_rate=pl.col("rate") / pl.col("steps"))


def _diverged(drifted: pl.DataFrame, local: pl.DataFrame) -> list[str]:
    found = []
    for row in of(drifted, metric="diverged_at").iter_rows(named=True):
        found.append(
            f"{row['variant']} on {row['data']}, α = {row['alpha']:g}, m = {row['width']}, "
            f"draw {row['draw']}, at step {row['value']:.0f}"
        )
    for row in _split(of(local, metric="diverged_at")).iter_rows(named=True):
        found.append(
            f"{row['net']} on {row['data']}, α = {row['alpha']:g}, E = {row['steps']}, "
            f"participation {row['fraction']:g}, draw {row['draw']}, in round {row['value']:.0f}"
        )
    return found
