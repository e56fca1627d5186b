"""The section `convergence`: records -> tables -> claims, figures and a report."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from figures.convergence import (
    draw_drift,
    draw_dynamics,
    draw_eigenvalues,
    draw_exact,
    draw_findings,
    draw_local,
    draw_training,
)
from figures.convergence.captions import CAPTIONS
from figures.convergence.drift_layouts import drift_words
from figures.convergence.findings_layouts import findings_words
from figures.convergence.layouts import tables
from figures.convergence.sources import data_name, is_own, items
from figures.convergence.summary import Summary, judge, summarise
from figures.experiments.product import Content, Drawing, Product, Table, publish
from figures.tables import number

__all__ = ["Product", "Summary", "drawings", "judge", "present", "summarise"]

PROVEN = ("corollary-iii.6", "eq-10.not-the-limit")
"""Ids (their beginnings) of the statements that are proven: a violation is a bug."""

LEAD = (
    "With client-specific batch normalization the Gram matrix G∞ of a two-layer network loses its "
    "blocks between clients. Corollary III.6 of UniFed: its smallest eigenvalue, which bounds the "
    "rate of convergence from below, cannot fall. Here that is certified on data{training}."
)
TRAINED = (
    ", the rate is held against networks of finite width, and a CNN federation is trained with "
    "either kind of batch normalization"
)
UNTRAINED = " and the rate is held against networks of finite width"
NO_WITNESS = "not run: it needs neural-tangents (the extra ntk) and more than the quick preset"


def drawings(summary: Summary) -> dict[str, Callable[[], Figure]]:
    """Name the figures that the records allow, in the order of the report."""
    figures: dict[str, Callable[[], Figure]] = {}
    if summary.comparison.height:
        figures["smallest_eigenvalues"] = lambda: draw_eigenvalues.smallest_eigenvalues(
            summary.comparison, summary.draws
        )
    if summary.spectra.height:
        clients = summary.spectra["client"].drop_nulls().unique(maintain_order=True).to_list()
        figures["spectra"] = lambda: draw_eigenvalues.spectra(summary.spectra, clients)
    figures |= draw_exact.exact_drawings(summary.exact)
    figures |= draw_findings.findings_drawings(summary.findings)
    for source in summary.curves["data"].unique(maintain_order=True):
        figures[f"decay_{source}"] = lambda source=source: draw_dynamics.decay(
            summary.curves, source
        )
    if summary.regimes.height:
        figures["regimes"] = lambda: draw_dynamics.regimes(
            summary.regimes, summary.thresholds, summary.descents
        )
    if summary.distances["width"].n_unique() > 1:
        figures["widths"] = lambda: draw_dynamics.widths(summary.distances, summary.slacks)
    figures |= draw_drift.drawings(summary.drift) | draw_local.drawings(summary.drift)
    if summary.training.height:
        figures["training"] = lambda: draw_training.training(
            summary.training, summary.clients, summary.paired
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
    training = TRAINED if summary.training.height else UNTRAINED
    notes = [f"This training diverged and is left out: {name}." for name in summary.diverged]
    notes += [f"This descent diverged: {name}." for name in summary.drift.diverged]
    content = Content(
        title="Convergence",
        lead=LEAD.format(training=training),
        claims=judge(summary),
        drawings=_captioned(summary, manifests),
        tables=[Table(*parts) for parts in tables(summary)],
        whole=_everything(summary),
        facts={"cross-check": "; ".join(summary.witness) or NO_WITNESS},
        notes=notes,
        proven=PROVEN,
    )
    return publish(content, manifests, folder, options)


def _captioned(summary: Summary, manifests: Mapping[str, Mapping[str, Any]]) -> dict[str, Drawing]:
    """Give the figures their titles and captions."""
    words, found = _words(summary, manifests), {}
    for name, make in drawings(summary).items():
        title, caption = CAPTIONS[name if name in CAPTIONS else name.split("_")[0]]
        words |= _source(summary, name.split("_", 1)[-1])
        found[name] = Drawing(title.format(**words), caption.format(**words), make)
    return found


def _everything(summary: Summary) -> dict[str, pl.DataFrame]:
    """Name the tables that are written with every row and digit."""
    drift = {"drift": "spread", "along": "along", "local_steps": "federated"}
    whole = {name: getattr(summary.drift, field) for name, field in drift.items()}
    whole["exact"] = summary.exact.table
    for name in ("examples", "readings", "gains"):
        whole[name] = getattr(summary.findings, name)
    for name in ("draws", "descents", "thresholds", "regimes", "spectra"):
        whole[name] = getattr(summary, name)
    return whole


def _source(summary: Summary, name: str) -> dict[str, str]:
    """Say where points come from, and at which α of their runs G dominates."""
    runs = (
        summary.descents.filter(pl.col("data") == name)
        .group_by("alpha")
        .agg(pl.col("g_dominated").all())
    )
    alphas = {
        part: ", ".join(f"{a:g}" for a in runs.filter(keep)["alpha"].sort()) or "none of these"
        for part, keep in (("G", pl.col("g_dominated")), ("V", ~pl.col("g_dominated")))
    }
    driven = (
        f"λ_min(V∞)/α² < λ_min(G∞) in every draw at α = {alphas['G']}; not so at {alphas['V']}."
    )
    return {"source": data_name(name), "driven": driven}


def _words(summary: Summary, manifests: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Fill the captions' blanks from what was run."""
    trained = [m["config"] for m in manifests.values() if m["config"]["study"] == "training"]
    draws, regimes = summary.comparison["draws"].max(), summary.regimes["draws"].max()
    seeds = {config["schedule"]["seed"] for config in trained}
    methods = summary.training["method"].unique().to_list() if summary.training.height else []
    return {
        "draws": draws,
        "regimes": regimes,
        "width": number(summary.comparison["relative_width"].max(), 1),
        "points": number(summary.spectra.filter(pl.col("variant") == "G").height),
        "data": ", ".join(data_name(name) for name in summary.spectra["data"].unique()),
        **_whole(summary),
        **drift_words(summary.drift),
        **findings_words(summary.findings),
        "m": number(summary.descents["width"].max()),
        "net": ", ".join(sorted({config["model"] for config in trained})),
        "seeds": len(seeds),
        "interval": "BCa bootstrap" if any("BCa" in m for m in methods) else "Student t",
    }


def _whole(summary: Summary) -> dict[str, str]:
    """Say how the comparison on all points is shown."""
    everything = summary.draws.filter(pl.col("study") == "spectrum")["data"].to_list()
    own = bool(everything) and is_own(everything[0])
    text = "At the largest M of the real images all training images are taken."
    if own:
        text = "The comparison on all points is in the table, at M = n/N rounded down."
    return {"whole": text if everything else "", "items": items(everything[0] if own else "")}
