"""The section's tables of trained networks: for people rounded, in the CSV with every digit."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from figures.experiments.cells import NONE, Cell, difference_text
from figures.experiments.comparisons import Compared, compared_table, differences_of
from figures.experiments.names import BN, client_titles
from figures.experiments.product import Table
from figures.experiments.wide import MEAN, WIDEST, column_of, headings, left_out
from figures.experiments.words import counts, equal, means
from figures.generalization.gaussian_layouts import gaussian_tables
from figures.generalization.names import FEATURE_NAMES, FEATURES, INPUT
from figures.generalization.summary import Summary
from figures.generalization.term_layouts import term_tables
from figures.tables import Layout

COMPARISONS = {
    "client-specific": "client-specific − aggregated",
    "whitened": "whitened − client-specific",
}


def tables(summary: Summary) -> list[Table]:
    """The tables in the order of the report."""
    made = [_divergences(summary), _differences(summary), _pairs(summary), _batches(summary)]
    return [*made, *term_tables(summary), _mixtures(summary), *gaussian_tables(summary.gaussian)]


def titles(summary: Summary) -> dict[str, str]:
    """Column -> heading, for the held-out clients that a page holds and their mean."""
    found = headings(summary.clients, **{MEAN: "mean"})
    return found if len(summary.clients) > 1 else {c: t for c, t in found.items() if c != MEAN}


def _text(cell: Cell | None, seeds: int) -> str:
    return NONE if cell is None else replace(cell, diverged={}).text(1.0, of=seeds)


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
                texts = {v: _text(cell, summary.seeds) for v, cell in cells.items()}
                shown.append(row | texts)
    frame = pl.DataFrame(shown)
    there = [v for v in FEATURES if shown and any(row[v] != NONE for row in shown)]
    columns = {"client": "held out", "layer": "layer", **{v: FEATURE_NAMES[v] for v in there}}
    caption = (
        "d(h) = 2(1 − 2ε) of a half-space that is trained to tell the features of a seen client "
        "from those of the one held out, ε its balanced error on images that it was not trained "
        "with: an estimate of its own divergence, which is at most d_H in expectation, not "
        "clipped at 0. Mean over the seen clients, then "
        f"{means(counts(summary.divergence.values()), 'with ±')}. The CSV also has the "
        "mean one-sided 95 % lower bound of d_H; all_divergences.csv every seen client, with "
        f"interval and p-value.{left_out(summary.clients)}"
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
            one = summary.divergence.get((column, variant, layer))
            texts = {"pairs": _text(cell, summary.seeds), "one": _text(one, summary.seeds)}
            where = "" if layer == INPUT else f", {layer}"
            label = {"client": heads[column], "features": FEATURE_NAMES[variant] + where}
            shown.append(label | texts)
    caption = (
        "d_HΔH of two-layer networks, as the bounds have it, by a search over pairs of networks: "
        "2(P_A − P_B) of the points on which the pair found disagrees, on images that it was not "
        "found with, hence from below; beside it d(h) of one half-space, which only tells d_H. "
        "Mean over the seen clients, then as before."
    )
    columns = {"client": "held out", "features": "features"}
    columns |= {"pairs": "pair of networks", "one": "half-space"}
    order = [list(heads.values()).index(row["client"]) for row in shown]
    kept = [row for _, row in sorted(zip(order, shown, strict=True), key=lambda one: one[0])]
    layout = Layout(caption, "tab:pairs", columns)
    return Table("pairs", "Divergence of pairs of networks", _frame(rows), layout,
                 pl.DataFrame(kept))  # fmt: skip


def _batches(summary: Summary) -> Table:
    rows, named, heads = [], _named(summary), titles(summary)
    for (column, t), cell in summary.after.items():
        row = {"held_out": named[column], "batches": t}
        rows.append(row | cell.columns("divergence"))
    shown = []
    for t in sorted({t for _, t in summary.after}):
        cells = {c: summary.after.get((c, t)) for c in heads}
        texts = {c: _text(cell, summary.seeds) for c, cell in cells.items()}
        shown.append({"batches": t, **texts})
    caption = (
        f"d(h) of {summary.last} with client-specific BN after t test batches of 32 images have "
        "moved the statistics of the client held out, measured on other images of it. Mean over "
        "the seen clients, then as before; each column: the client held out."
    )
    layout = Layout(caption, "tab:batches", {"batches": "t", **heads}, compact=True)
    return Table("batches", "Divergence by test batches", _frame(rows), layout,
                 pl.DataFrame(shown))  # fmt: skip


def _mixtures(summary: Summary) -> Table:
    names = client_titles(summary.clients[:WIDEST])
    sides = ("measured", "printed", "convex")
    shown = []
    by = ["held_out", "bn_policy"]
    for (client, policy), part in summary.mixtures.group_by(by, maintain_order=True):
        if client in names:
            row: dict[str, Any] = {"client": names[str(client)]}
            row["bn"] = BN.get(str(policy), str(policy))
            for side in sides:
                values = dict(part.drop_nulls(side).select("seed", side).iter_rows())
                row[side] = _text(Cell(values), summary.seeds)
            shown.append(row)
    caption = (
        "Eq. (15) for the average f_u of the seen clients' predictions, the Gibbs risk 1 − p_y on "
        "the seen clients' training images: left side Ĵ_s(f_u); right side as printed, "
        "Σ ω_i Ĵ_i(f_i), each model on its own client; by convexity Σ_iΣ_j ω_iω_j Ĵ_i(f_j), each "
        "model on every client, equal to the left side for this risk. Mean over seeds with its "
        "interval, a row for each client held out."
    )
    columns = {"client": "held out", "bn": "BN", "measured": "left side"}
    columns |= {"printed": "right side, printed", "convex": "by convexity"}
    layout = Layout(caption, "tab:mixtures", columns)
    return Table("mixtures", "Eq. (15): both right sides", summary.mixtures, layout,
                 pl.DataFrame(shown))  # fmt: skip


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None)
