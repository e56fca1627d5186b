"""Everything that the section's figures, tables and claims need, computed once from the records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from figures.claims import Claim
from figures.convergence import drift_claims, judgement, theory_tables, training_tables
from figures.convergence.drift_tables import DriftSummary, summarise_drift
from figures.convergence.exact_tables import Exact, exact_claims, summarise_exact
from figures.convergence.findings_claims import findings
from figures.convergence.findings_tables import Findings, summarise_findings
from figures.convergence.frame import joined
from figures.selection import of
from figures.statistics import PairedDifference


@dataclass(frozen=True)
class Summary:
    """Tables of the section; those of parts that were not run are empty.

    Attributes:
        draws: every comparison of Corollary III.6, with its enclosures, client and cause.
        comparison: the same per data, N and M.
        spectra: all eigenvalues on all points.
        regimes: λ_min of V∞/α², Λ∞, Λ*∞, G∞ and Eq. (10) over α.
        thresholds: the α from which G dominates, per draw.
        curves: squared residual, linearised prediction and bound of every run of f and f*.
        descents: one row per run of f or f*.
        distances: distance from the linearisation per α and m.
        slacks: λ_min(Λ(t))/(e₀/2) per α and m.
        gaps: distance of G(0) to either formula.
        training: curves of the federation per policy.
        paired: client-specific minus aggregated BN per round.
        clients: test accuracy per client after the last round.
        rounds: rounds to each target loss.
        differences: the paired differences that are judged.
        diverged: labels of trainings that diverged.
        drift: what is behind Theorem III.4 and beyond it.
        findings: where Corollary III.6 stops, and what it says of the step size.
        exact: Corollary III.6 with the exact kernel of BN.
        witness: what the cross-check with neural-tangents found, if it was run.
    """

    draws: pl.DataFrame
    comparison: pl.DataFrame
    spectra: pl.DataFrame
    regimes: pl.DataFrame
    thresholds: pl.DataFrame
    curves: pl.DataFrame
    descents: pl.DataFrame
    distances: pl.DataFrame
    slacks: pl.DataFrame
    gaps: pl.DataFrame
    training: pl.DataFrame
    paired: pl.DataFrame
    clients: pl.DataFrame
    rounds: pl.DataFrame
    differences: dict[str, PairedDifference]
    diverged: list[str]
    drift: DriftSummary
    findings: Findings
    exact: Exact
    witness: list[str]


def summarise(rows: pl.DataFrame, manifests: Mapping[str, Mapping[str, Any]]) -> Summary:
    """Summarise the records of the section."""
    frame = joined(rows, manifests)
    draws = theory_tables.comparisons(frame)
    curves = theory_tables.curves(frame)
    descents = theory_tables.descents(frame)
    seeds = training_tables.per_seed(frame)
    lost = of(frame, study="training", status="diverged")
    names = lost.select("bn_policy", "seed").unique(maintain_order=True).iter_rows()
    return Summary(
        draws=draws,
        comparison=theory_tables.comparison_summary(draws),
        spectra=theory_tables.spectra(frame),
        regimes=theory_tables.regimes(frame),
        thresholds=theory_tables.thresholds(frame),
        curves=curves,
        descents=descents,
        distances=theory_tables.distances(curves),
        slacks=theory_tables.slacks(descents),
        gaps=theory_tables.entry_gaps(frame),
        training=training_tables.curves(seeds),
        paired=training_tables.paired_curves(seeds),
        clients=training_tables.final_per_client(frame),
        rounds=training_tables.rounds(frame),
        differences=training_tables.differences(seeds),
        drift=summarise_drift(frame),
        findings=summarise_findings(frame, draws),
        exact=summarise_exact(frame),
        witness=of(frame, study="witness")["note"].to_list(),
        diverged=[f"{policy.replace('_', '-')} BN, seed {seed}" for policy, seed in names],
    )


def judge(summary: Summary) -> list[Claim]:
    """Judge every claim of the section that the records speak about."""
    return [
        *judgement.corollary(summary.draws),
        *exact_claims(summary.exact),
        *findings(summary.findings),
        *judgement.decay(summary.descents),
        *judgement.printed_kernel(summary.gaps, summary.descents),
        *judgement.threshold(summary.thresholds),
        *drift_claims.drift(summary.drift),
        *drift_claims.far_below(summary.descents),
        *judgement.training(summary.differences),
    ]
