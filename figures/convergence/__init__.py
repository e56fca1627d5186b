"""The section `convergence`: records -> tables -> claims, figures and a report."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from figures import style
from figures._files import write_atomically
from figures.claims import Claim, write_claims
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
from figures.report import Picture, Report, Sheet, sheet, write_report
from figures.tables import number, write_table

__all__ = ["Product", "Summary", "drawings", "judge", "present", "summarise"]

PROVEN = ("corollary-iii.6", "eq-10.not-the-limit")
"""Ids (their beginnings) of the statements that are proven: a violation is a bug."""

LEAD = (
    "With client-specific batch normalization the Gram matrix G∞ of a two-layer network loses its "
    "blocks between clients. Corollary III.6 of UniFed: its smallest eigenvalue, which bounds the "
    "rate of convergence from below, cannot fall. Here that is certified on data{training}."
)
OPTIONS = ("section", "preset", "federation", "data", "seeds")
TRAINED = (
    ", the rate is held against networks of finite width, and a CNN federation is trained with "
    "either kind of batch normalization"
)
UNTRAINED = " and the rate is held against networks of finite width"


@dataclass(frozen=True)
class Product:
    """What a section leaves behind; `written` are all its files."""

    claims: list[Claim]
    figures: list[Path]
    report: Path
    proven_hold: bool
    written: list[Path]


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


NO_WITNESS = "not run: it needs neural-tangents (the extra ntk) and more than the quick preset"


def present(
    rows: pl.DataFrame,
    manifests: Mapping[str, Mapping[str, Any]],
    folder: Path,
    options: Mapping[str, Any],
) -> Product:
    """Summarise, judge, draw and report; write everything under `folder`."""
    summary = summarise(rows, manifests)
    figures = drawings(summary)
    claims = [_shown(claim, figures) for claim in judge(summary)]
    words = _words(summary, manifests)
    pictures, sheets, written = [], [], []
    with style.context():
        for name, make in figures.items():
            pdf, png = style.save(make(), folder / "figures" / name)
            title, caption = CAPTIONS[name if name in CAPTIONS else name.split("_")[0]]
            words |= _source(summary, name.split("_", 1)[-1])
            pictures.append(Picture(title.format(**words), caption.format(**words), png, pdf))
            written += [pdf, png]
    for name, title, table, layout in tables(summary):
        files = write_table(folder / "tables" / name, table, layout)
        sheets.append(sheet(title, table, layout, files))
        written += files
    drift = {"drift": "spread", "along": "along", "local_steps": "federated"}
    whole = {name: getattr(summary.drift, field) for name, field in drift.items()}
    whole["exact"] = summary.exact.table
    for name in ("examples", "readings", "gains"):
        whole[name] = getattr(summary.findings, name)
    for name in ("draws", "descents", "thresholds", "regimes", "spectra"):
        whole[name] = getattr(summary, name)
    for name, table in whole.items():
        if table.height:
            path = folder / "tables" / f"all_{name}.csv"
            written.append(write_atomically(path, table.write_csv()))
    written.append(write_claims(folder / "claims.json", claims))
    report = write_report(
        folder / "report.html", _report(claims, pictures, sheets, manifests, options, summary)
    )
    bad = [c for c in claims if c.verdict == "violated" and c.id.startswith(PROVEN)]
    shown = [p.pdf for p in pictures if p.pdf]
    return Product(claims, shown, report, not bad, [*written, report])


def _shown(claim: Claim, figures: Mapping[str, Any]) -> Claim:
    """Take from a claim the figure that was not drawn, because its part was not run."""
    drawn = claim.figure is not None and Path(claim.figure).stem in figures
    return claim if drawn else replace(claim, figure=None)


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


def _report(
    claims: list[Claim],
    pictures: list[Picture],
    sheets: list[Sheet],
    manifests: Mapping[str, Mapping[str, Any]],
    options: Mapping[str, Any],
    summary: Summary,
) -> Report:
    flags = []
    own = [m["data"]["points"] for m in manifests.values() if "points" in m.get("data", {})]
    chosen = ("section", "preset", "seeds", "data") if own else OPTIONS
    for name in chosen:
        if options.get(name) is not None:
            flags += [f"--{name}", shlex.quote(str(options[name]))]
    flags += [f"--{name.replace('_', '-')}" for name, value in options.items() if value is True]
    facts = {
        "preset": options["preset"],
        **({"points": own[0]} if own else {"federation": options["federation"]}),
        "runs": f"{len(manifests)}, {_threads(manifests)}",
        "device": options["device"],
        "software": _software(manifests),
    }
    facts["cross-check"] = "; ".join(summary.witness) or NO_WITNESS
    notes = [f"This training diverged and is left out: {name}." for name in summary.diverged]
    notes += [f"This descent diverged: {name}." for name in summary.drift.diverged]
    notes += sorted({note for m in manifests.values() for note in m.get("notes", ())})
    return Report(
        title="Convergence",
        lead=LEAD.format(training=TRAINED if summary.training.height else UNTRAINED),
        command="python paper_repro.py " + " ".join(flags),
        claims=claims,
        facts=facts,
        pictures=pictures,
        sheets=sheets,
        notes=notes,
    )


def _threads(manifests: Mapping[str, Mapping[str, Any]]) -> str:
    counts = {n for m in manifests.values() for n in m.get("threads", {}).values()}
    return (
        "threads not recorded" if not counts else f"threads: {', '.join(map(str, sorted(counts)))}"
    )


def _software(manifests: Mapping[str, Mapping[str, Any]]) -> str:
    """Name the versions behind the runs; several sets are all named."""
    names = ("python", "torch", "numpy", "scipy")
    sets = {
        ", ".join(f"{name} {versions[name]}" for name in names if name in versions)
        for versions in (manifest.get("versions", {}) for manifest in manifests.values())
    }
    return "; ".join(sorted(sets))
