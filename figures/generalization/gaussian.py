"""Gaussian clients, where every term is exact: terms, risk and divergence over the spread κ."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from figures.generalization.names import TERMS
from figures.selection import of

_AT = ["teacher", "variant", "parameter"]


@dataclass(frozen=True)
class Gaussian:
    """What the runs of the study "gaussian_bounds" show; all tables may be empty.

    Attributes:
        terms: teacher, variant, parameter (κ), split -> mean and range over draws of each term.
        risks: teacher, variant, parameter -> the same of the exact external risk.
        divergence: variant, parameter -> the same of Σ ω_i d_HΔH, with the ends of its enclosures.
        draws: the same of every draw.
        holds: every verdict on J_u ≤ bound.
        without: every verdict on J_u ≤ what is left of the bound without the ideal joint error.
        spare: what estimating the divergence would add to the bound.
        facts: what was drawn: clients, dimension, samples, draws, delta.
    """

    terms: pl.DataFrame
    risks: pl.DataFrame
    divergence: pl.DataFrame
    draws: pl.DataFrame
    holds: pl.DataFrame
    without: pl.DataFrame
    spare: pl.DataFrame
    facts: dict[str, Any]

    @property
    def teachers(self) -> list[str]:
        """What the labels depend on, in the order of the runs."""
        return self.risks["teacher"].unique(maintain_order=True).to_list()


def summarise_gaussian(rows: pl.DataFrame, manifests: Mapping[str, Mapping[str, Any]]) -> Gaussian:
    """Summarise what the study "gaussian_bounds" left."""
    configs = {
        run: manifest["config"]
        for run, manifest in manifests.items()
        if manifest["config"]["study"] == "gaussian_bounds"
    }
    known = {"run": list(configs), "teacher": [c.get("teacher") for c in configs.values()]}
    teachers = pl.DataFrame(known, schema={"run": pl.String, "teacher": pl.String})
    frame = rows.join(teachers, on="run", how="inner", maintain_order="left")
    first = frame["teacher"].first() if frame.height else None
    divergence = of(frame, metric="pair_divergence").filter(
        pl.col("teacher").eq_missing(pl.lit(first))
    )
    facts: dict[str, Any] = {}
    for name in ("clients", "dimension", "samples", "draws", "delta"):
        values = dict.fromkeys(c[name] for c in configs.values() if name in c)
        facts[name] = next(iter(values)) if len(values) == 1 else None
    return Gaussian(
        _over_draws(of(frame, metric="term", split=list(TERMS)), [*_AT, "split"]),
        _over_draws(of(frame, metric="external_risk"), _AT),
        _over_draws(divergence, _AT[1:]),
        divergence.select(*_AT[1:], "draw", "value", "lower", "upper"),
        of(frame, metric="holds").select(*_AT, "draw", "value", "note"),
        of(frame, metric="holds_without_ideal_error").select(*_AT, "draw", "value", "note"),
        _over_draws(of(frame, metric="spare_capacity"), _AT),
        facts,
    )


def _over_draws(rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Mean and range over the draws, and the outermost ends of their enclosures."""
    upper = pl.col("upper")
    return (
        rows.group_by(by, maintain_order=True)
        .agg(
            pl.col("value").mean(),
            pl.col("value").min().alias("least"),
            pl.col("value").max().alias("most"),
            # A bar ends at the bound: at upper ends, where they are known.
            pl.coalesce("upper", "value").mean().alias("end"),
            pl.col("lower").min(),
            pl.when(upper.is_null().any()).then(None).otherwise(upper.max()).alias("upper"),
            pl.len().alias("draws"),
            pl.col("note").first(),
        )
        .sort("parameter", maintain_order=True)
    )
