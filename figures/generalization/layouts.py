"""The section's tables of trained networks: for people rounded, in the CSV with every digit."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from figures.experiments.cells import NONE, Cell, difference_text
from figures.experiments.comparisons import Compared, compared_table, differences_of
from figures.experiments.product import Table
from figures.experiments.wide import MEAN, column_of, headings, left_out
from figures.experiments.words import counts, equal, means
from figures.generalization.gaussian_layouts import gaussian_tables
from figures.generalization.names import FEATURE_NAMES, FEATURES, INPUT
from figures.generalization.outcome_layouts import cell_text, outcome_tables
from figures.generalization.summary import Summary
from figures.generalization.term_layouts import term_tables
from figures.tables import Layout

COMPARISONS = {
    "client-specific": "client-specific − aggregated",
    "fresh": "per-unit BN − aggregated",
    "stale": "per-unit BN − client-specific",
    "whitened": "whitened − per-unit BN",
}

SEEN_BY = {"per_unit": "training images", "client_specific": "running statistics"}
"""Features after test batches -> whose statistics normalise the seen clients."""


def tables(summary: Summary) -> list[Table]:
    """The tables in the order of the report."""
    made = [_divergences(summary), _differences(summary), _pairs(summary), _batches(summary)]
    return [
        *made,
        *term_tables(summary),
        *outcome_tables(summary),
        *gaussian_tables(summary.gaussian),
    ]


def titles(summary: Summary) -> dict[str, str]:
    """Column -> heading, for the held-out clients that a page holds and their mean."""
    found = headings(summary.clients, **{MEAN: "mean"})
    return found if len(summary.clients) > 1 else {c: t for c, t in found.items() if c != MEAN}


def _seen(summary: Summary, columns: Sequence[str]) -> list[str]:
    """Those that a table for people shows."""
    return [column for column in columns if column in titles(summary)]


def _named(summary: Summary) -> dict[str, str]:
    """Column -> client, also of those that a page does not hold."""
    return {column_of(c): c for c in summary.clients} | {MEAN: MEAN}


def _divergences(summary: Summary) -> Table:
    rows, shown, named = [], [], _named(summary)
    for (column, variant, layer), cell in summary.divergence.items():
        lower = summary.lower.get((column, variant, layer), Cell()).interval
        row = {"held_out": named[column], "layer": layer, "features": variant}
        row |= cell.columns("divergence")
        rows.append(row | {"lower_bound": None if lower is None else lower.mean})
    for column in _seen(summary, summary.columns):
        for layer in summary.layers:
            cells = {v: summary.divergence.get((column, v, layer)) for v in FEATURES}
            if any(cells.values()):
                row = {"client": titles(summary)[column], "layer": layer}
                texts = {v: cell_text(cell, summary.seeds) for v, cell in cells.items()}
                shown.append(row | texts)
    frame = pl.DataFrame(shown)
    there = [v for v in FEATURES if shown and any(row[v] != NONE for row in shown)]
    columns = {"client": "held out", "layer": "layer", **{v: FEATURE_NAMES[v] for v in there}}
    caption = (
        "d(h) = 2(1 − 2ε) of a half-space that is trained to tell the features of a seen client "
        "from those of the one held out, ε its balanced error on images that it was not trained "
        "with: an estimate of its own divergence, which is at most d_H in expectation, not "
        "clipped at 0. Mean over the seen clients, then "
        f"{means(counts(summary.divergence.values()), 'with ±')}. Client-specific: as deployed, "
        "by the seen clients' running statistics; per-unit BN, whitened: by variances, by the "
        "whole covariance, of each client's training images. The CSV also has features after γ "
        "and β, and the mean of the one-sided 95 % lower bounds of d_H, which itself has no such "
        "guarantee; all_divergences.csv every seen client, with interval and p-value."
        f"{left_out(summary.clients)}"
    )
    layout = Layout(caption, "tab:divergences", columns, compact=True)
    return Table("divergences", "Divergence by layer", _frame(rows), layout, frame)


def _differences(summary: Summary) -> Table:
    shown = []
    heads = titles(summary)
    for name, label in COMPARISONS.items():
        for layer in summary.layers:
            own = {c: summary.differences.get((name, c, layer)) for c in heads}
            if any(own.values()):
                row = {"comparison": label, "layer": layer}
                shown.append(row | {c: _difference(one, summary.seeds) for c, one in own.items()})
    frame = compared_table(summary.differences, ["comparison", "column", "layer"])
    caption = (
        "Differences of d(h), paired by seed, with the 95 % interval"
        f"{equal(differences_of(summary.differences))}; each column: the client held out. "
        "Negative: less divergence. Star: the interval excludes zero, also by Holm's correction "
        f"over these {len(summary.differences)} differences."
    )
    columns = {"comparison": "difference", "layer": "layer", **heads}
    layout = Layout(caption, "tab:divergence-differences", columns, compact=True)
    return Table("differences", "What client-specific BN and whitening take away", frame, layout,
                 pl.DataFrame(shown))  # fmt: skip


def _difference(found: Compared | None, seeds: int) -> str:
    if found is None:
        return NONE
    text = difference_text(found.difference, 1.0)
    text += "*" if found.verdict != "inconclusive" else ""
    return text + (f", n = {found.difference.n}" if found.difference.n < seeds else "")


def _pairs(summary: Summary) -> Table:
    rows, shown, named, heads = [], [], _named(summary), titles(summary)
    for (column, variant, layer), cell in summary.pairs.items():
        row = {"held_out": named[column], "layer": layer, "features": variant}
        rows.append(row | cell.columns("pair_divergence"))
        if column in heads:
            key = (column, variant, layer)
            tables = (summary.pair_floor, summary.divergence, summary.floor)
            cells = [cell, *(found.get(key) for found in tables)]
            names = ("pairs", "pair_floor", "one", "floor")
            texts = {n: cell_text(c, summary.seeds) for n, c in zip(names, cells, strict=True)}
            where = "" if layer == INPUT else f", {layer}"
            label = {"client": heads[column], "features": FEATURE_NAMES[variant] + where}
            shown.append(label | texts)
    caption = (
        "d_HΔH of two-layer networks, as the bounds have it, by a search over pairs of networks: "
        "2(P_A − P_B) of the points on which the pair found disagrees, on images that it was not "
        "found with, hence from below; beside it d(h) of one half-space, which only tells d_H and "
        "is nearly blind to correlations. Floors: the same between two samples of one Gaussian "
        "law whose statistics are estimated. Mean over the seen clients, then as before."
    )
    columns = {"client": "held out", "features": "features"}
    columns |= {"pairs": "pair of networks", "pair_floor": "floor of pairs"}
    columns |= {"one": "half-space", "floor": "floor of half-spaces"}
    order = [list(heads.values()).index(row["client"]) for row in shown]
    kept = [row for _, row in sorted(zip(order, shown, strict=True), key=lambda one: one[0])]
    layout = Layout(caption, "tab:pairs", columns)
    return Table("pairs", "Divergence of pairs of networks", _frame(rows), layout,
                 pl.DataFrame(kept))  # fmt: skip


def _batches(summary: Summary) -> Table:
    rows, named, heads = [], _named(summary), titles(summary)
    for (column, variant, t), cell in summary.after.items():
        row = {"held_out": named[column], "features": variant, "batches": t}
        rows.append(row | cell.columns("divergence"))
    shown = []
    for variant, label in SEEN_BY.items():
        for t in sorted({t for _, v, t in summary.after if v == variant}):
            cells = {c: summary.after.get((c, variant, t)) for c in heads}
            texts = {c: cell_text(cell, summary.seeds) for c, cell in cells.items()}
            shown.append({"seen": label, "batches": t, **texts})
    caption = (
        f"d(h) of {summary.last} with client-specific BN after t test batches of 32 images have "
        "moved the statistics of the client held out, measured on other images of it; the seen "
        "clients by statistics of their training images, or by their running statistics, as "
        "deployed. Mean over the seen clients, then as before; each column: the client held out."
    )
    columns = {"seen": "seen clients by", "batches": "t", **heads}
    layout = Layout(caption, "tab:batches", columns, compact=True)
    return Table("batches", "Divergence by test batches", _frame(rows), layout,
                 pl.DataFrame(shown))  # fmt: skip


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None)
