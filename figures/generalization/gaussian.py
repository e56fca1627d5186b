"""Gaussian clients, where every term is exact: terms, risk and divergence over the spread κ."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from figures.generalization.names import SETTINGS, TEACHERS, TERMS
from figures.selection import of

MAIN = "rotation, gaussian"
"""How clients differ, and what V is, where records do not say otherwise."""

_AT = ["teacher", "variant", "parameter"]
_DIFFER = ["setting", "variant", "parameter"]


@dataclass(frozen=True)
class Gaussian:
    """What the runs of the study "gaussian_bounds" show; all tables may be empty.

    Settings say how the clients' covariances differ, and what the directions V of the units are.

    Attributes:
        terms: teacher, variant, parameter (κ), split -> mean and range over draws of each term, in
            the setting `MAIN`, or the first.
        risks: teacher, variant, parameter -> the same of the exact external risk.
        spare: the same of what estimating the divergence would add to the bound.
        divergence: setting, variant, parameter -> the same of Σ ω_i d_HΔH, with the ends of its
            enclosures.
        draws: the same of every draw.
        holds: every verdict on J_u ≤ bound.
        without: every verdict on J_u ≤ what is left of the bound without the ideal joint error.
        facts: what was drawn in that setting: clients, dimension, samples, draws, delta.
    """

    terms: pl.DataFrame
    risks: pl.DataFrame
    spare: pl.DataFrame
    divergence: pl.DataFrame
    draws: pl.DataFrame
    holds: pl.DataFrame
    without: pl.DataFrame
    facts: dict[str, Any]

    @property
    def teachers(self) -> list[str]:
        """What the labels depend on."""
        return _in_order(self.risks["teacher"], TEACHERS)

    @property
    def settings(self) -> list[str]:
        """How clients differ and what V is, `MAIN` first."""
        return _in_order(self.divergence["setting"], SETTINGS)


def summarise_gaussian(rows: pl.DataFrame, manifests: Mapping[str, Mapping[str, Any]]) -> Gaussian:
    """Summarise what the study "gaussian_bounds" left."""
    configs = {
        run: manifest["config"]
        for run, manifest in manifests.items()
        if manifest["config"]["study"] == "gaussian_bounds"
    }
    # One run of each teacher and setting: two that differ in seed or size alone would mix.
    about = {run: (c.get("teacher"), setting(c)) for run, c in configs.items()}
    first = {what: run for run, what in reversed(about.items())}
    known = [(run, *what) for what, run in first.items()]
    names = {"run": pl.String, "teacher": pl.String, "setting": pl.String}
    frame = rows.join(
        pl.DataFrame(known, schema=names, orient="row"),
        on="run",
        how="inner",
        maintain_order="left",
    )
    there = frame["setting"].unique(maintain_order=True).to_list()
    main = of(frame, setting=MAIN if MAIN in there or not there else there[0])
    distances = of(frame, metric="pair_divergence")
    distances = distances.filter(pl.col("teacher").eq_missing(pl.first("teacher").over("setting")))
    facts: dict[str, Any] = {}
    inside = set(main["run"])
    for name in ("clients", "dimension", "samples", "draws", "delta"):
        values = {c[name] for run, c in configs.items() if run in inside and name in c}
        facts[name] = next(iter(values)) if len(values) == 1 else None
    verdicts = [*_AT, "setting", "draw", "value", "note"]
    return Gaussian(
        _over_draws(of(main, metric="term", split=list(TERMS)), [*_AT, "split"]),
        _over_draws(of(main, metric="external_risk"), _AT),
        _over_draws(of(main, metric="spare_capacity"), _AT),
        _over_draws(distances, _DIFFER),
        distances.select(*_DIFFER, "draw", "value", "lower", "upper"),
        of(frame, metric="holds").select(verdicts),
        of(frame, metric="holds_without_ideal_error").select(verdicts),
        facts,
    )


def setting(config: Mapping[str, Any]) -> str:
    """How the clients of a run differ, and what its V is."""
    return f"{config.get('shift', 'rotation')}, {config.get('directions', 'gaussian')}"


def _in_order(names: pl.Series, known: Mapping[str, str]) -> list[str]:
    """The known ones in their order, then others as they come."""
    there = names.unique(maintain_order=True).to_list()
    return [name for name in known if name in there] + [n for n in there if n not in known]


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
