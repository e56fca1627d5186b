"""The section `convergence`: records -> tables -> claims, figures and a report."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from figures import style
from figures.claims import Claim, write_claims
from figures.convergence import (
    draw_dynamics,
    draw_eigenvalues,
    draw_training,
    judgement,
    theory_tables,
    training_tables,
)
from figures.convergence.frame import joined, of
from figures.statistics import PairedDifference
from figures.tables import Layout, write_table

PROVEN = ("corollary-iii.6", "eq-10.not-the-limit")
"""Ids (their beginnings) of the statements that are proven: a violation is a bug."""


@dataclass(frozen=True)
class Summary:
    """Everything that the figures and the claims of the section need; no drawing computes."""

    draws: pl.DataFrame
    comparison: pl.DataFrame
    spectra: pl.DataFrame
    regimes: pl.DataFrame
    thresholds: pl.DataFrame
    curves: pl.DataFrame
    descents: pl.DataFrame
    gaps: pl.DataFrame
    training: pl.DataFrame
    clients: pl.DataFrame
    rounds: pl.DataFrame
    differences: dict[str, PairedDifference]


def summarise(rows: pl.DataFrame, manifests: Mapping[str, Mapping[str, Any]]) -> Summary:
    """Summarise the records of the section; the parts that were not run are empty tables."""
    frame = joined(rows, manifests)
    draws = theory_tables.comparisons(frame)
    seeds = training_tables.per_seed(frame)
    return Summary(
        draws=draws,
        comparison=theory_tables.comparison_summary(draws),
        spectra=theory_tables.spectra(frame),
        regimes=theory_tables.regimes(frame),
        thresholds=theory_tables.thresholds(frame),
        curves=theory_tables.curves(frame),
        descents=theory_tables.descents(frame),
        gaps=theory_tables.entry_gaps(frame),
        training=training_tables.curves(seeds),
        clients=training_tables.final_per_client(frame),
        rounds=training_tables.rounds(seeds),
        differences=training_tables.differences(seeds),
    )


@dataclass(frozen=True)
class Product:
    """What a section leaves behind."""

    claims: list[Claim]
    figures: list[Path]
    report: Path
    proven_hold: bool


def judge(summary: Summary) -> list[Claim]:
    """Judge every claim of the section that the records speak about."""
    return [
        *judgement.corollary(summary.draws),
        *judgement.decay(summary.descents),
        *judgement.printed_kernel(summary.gaps, summary.descents),
        *judgement.threshold(summary.thresholds),
        *judgement.training(summary.differences),
    ]


def draw(summary: Summary) -> dict[str, Callable[[], Figure]]:
    """Name the figures that the records allow, in the order of the report."""
    figures: dict[str, Callable[[], Figure]] = {}
    if summary.comparison.height:
        figures["smallest_eigenvalues"] = lambda: draw_eigenvalues.smallest_eigenvalues(
            summary.comparison
        )
    if summary.spectra.height:
        clients = summary.spectra["client"].drop_nulls().unique(maintain_order=True).to_list()
        figures["spectra"] = lambda: draw_eigenvalues.spectra(summary.spectra, clients)
    for source in summary.curves["data"].unique(maintain_order=True):
        figures[f"decay_{source}"] = lambda source=source: draw_dynamics.decay(
            summary.curves, source
        )
    if summary.regimes.height:
        figures["regimes"] = lambda: draw_dynamics.regimes(
            summary.regimes, summary.thresholds, summary.descents
        )
    if summary.descents["width"].n_unique() > 1:
        figures["widths"] = lambda: draw_dynamics.widths(summary.descents, summary.curves)
    if summary.training.height:
        figures["training"] = lambda: draw_training.training(
            summary.training, summary.clients, training_tables.difference_table(summary.differences)
        )
    return figures


def present(
    rows: pl.DataFrame,
    manifests: Mapping[str, Mapping[str, Any]],
    folder: Path,
    options: Mapping[str, Any],
) -> Product:
    """Summarise, judge, draw and report; write everything under `folder`."""
    summary = summarise(rows, manifests)
    claims = judge(summary)
    paths = []
    with style.context():
        for name, make in draw(summary).items():
            paths.append(style.save(make(), folder / "figures" / name)[0])
    write_claims(folder / "claims.json", claims)
    bad = [c for c in claims if c.verdict == "violated" and c.id.startswith(PROVEN)]
    return Product(claims, paths, folder / "report.html", not bad)
