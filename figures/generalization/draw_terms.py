"""Figure of the bound's terms: stacked beside the measured error, capacities on their own scale."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from figures.experiments.wide import WIDEST, column_of
from figures.generalization.names import (
    AVERAGED,
    CAPACITIES,
    IDEAL,
    RISKS,
    SERVED,
    STATEMENTS,
)
from figures.generalization.summary import Summary
from figures.style import DOUBLE, INK, MUTED, letter, look, panels

COLOURS: dict[str, str] = {
    "empirical risk": "#77aadd",
    "half the divergence": "#ee8866",
    "ideal joint error": "#bbcc33",
    "capacity of the divergence": "#ee8866",
    "capacity of the risk": "#77aadd",
}
"""A capacity has the colour of the term that it belongs to."""
MARKERS: dict[str, str] = dict(zip(CAPACITIES, ("D", "s"), strict=True))
MARKS: dict[str, dict[str, Any]] = {
    "error": {"markersize": 3.4, "marker": "o", "markerfacecolor": "white", "markeredgecolor": INK},
    "risk": {"markersize": 4.4, "marker": "D"},
}
ASIDE = {"error": -0.22, "risk": 0.0}
"""So that neither mark hides the other."""
LABELS = {"risk": "external risk, $J_u(f_u)$", "error": "0-1 error of the served network"}
WHISKER = "interval of the sum, over seeds"
BELOW, ABOVE = "////", "...."
EDGE: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.5}
PITCH = 0.165


def bars(summary: Summary) -> pl.DataFrame:
    """The table behind the figure: a row per held-out client, statement and term.

    `end` and its bounds are the sum of the drawn terms over seeds, `risk` the J_u(f_u) that they
    are to bound, `error` the 0-1 error of the served network.
    """
    shown = summary.clients[:WIDEST]
    rows = summary.terms.filter(
        pl.col("held_out").is_in(shown) & pl.col("split").is_in([*RISKS, *CAPACITIES])
    )
    if rows.is_empty():
        return rows
    found = [
        {**key, **_measured(summary, key)}
        for key in rows.select("held_out", "bn_policy", "variant").unique().iter_rows(named=True)
        if (key["bn_policy"], key["variant"]) in STATEMENTS
    ]
    ids = ["held_out", "bn_policy", "variant"]
    types: dict[str, Any] = dict.fromkeys(ids, pl.String)
    for name in ("end", "risk", "error"):
        types |= dict.fromkeys((name, f"{name}_lower", f"{name}_upper"), pl.Float64)
    sums = pl.DataFrame(found, schema=types)
    # Inner: what is no statement of the figure has no row there.
    return rows.join(sums, on=ids, how="inner", maintain_order="left")


def stacked_terms(table: pl.DataFrame, titles: Mapping[str, str]) -> Figure:
    """Draw the terms of every statement and held-out client; `titles` are the clients'."""
    places, labels, heads = _places(table, titles)
    height = PITCH * (max(places.values()) + 2) + 1.05
    figure, axes = panels(
        1, 2, width="double", ratio=height / DOUBLE, sharey=True, width_ratios=(2.6, 1)
    )
    left, right = axes
    for key, at in places.items():
        rows = table.filter(held_out=key[0], bn_policy=key[1], variant=key[2])
        _stack(left, rows, at)
        _capacities(right, rows, at)
    left.set_yticks([*places.values(), *heads.values()], [*labels, *("" for _ in heads)])
    for client, at in heads.items():
        where: dict[str, Any] = {"transform": left.get_yaxis_transform(), "va": "center"}
        left.text(-0.012, at, titles[client], ha="right", fontsize=8, fontweight="bold", **where)
    left.set_ylim(max(places.values()) + 0.7, -0.7)
    _finish(left, right, table)
    letter(axes)
    handles = _legend(table)
    figure.legend(handles=handles, loc="outside lower center", ncols=3, handlelength=1.8)
    return figure


def _measured(summary: Summary, key: Mapping[str, str]) -> dict[str, float | None]:
    """The sum of the terms over seeds, and external risk and error of the runs behind them."""
    column, policy = column_of(key["held_out"]), key["bn_policy"]
    found: dict[str, float | None] = {}
    risk, error = (policy, column, AVERAGED), (policy, column, SERVED[policy])
    for name, cell, ends in (
        ("end", summary.sums.get((policy, column, key["variant"])), None),
        ("risk", summary.risks.get((policy, column)), summary.ends.get(risk)),
        ("error", summary.errors.get(error), summary.ends.get(error)),
    ):
        one = None if cell is None else cell.interval
        if one is None:
            continue
        low, high = (one.lower, one.upper) if one.n > 1 or ends is None else ends
        found |= {name: one.mean, f"{name}_lower": low, f"{name}_upper": high}
    return found


def _places(
    table: pl.DataFrame, titles: Mapping[str, str]
) -> tuple[dict[tuple[str, str, str], float], list[str], dict[str, float]]:
    """Where every bar stands, what they are called, and where their clients' names stand."""
    places: dict[tuple[str, str, str], float] = {}
    heads: dict[str, float] = {}
    labels, at = [], 0.0
    keys = table.select("held_out", "bn_policy", "variant").unique(maintain_order=True).rows()
    for client in titles:
        own = [key for key in keys if key[0] == client]
        if own:
            heads[client] = at
            at += 1.0
        for key in sorted(own, key=lambda one: list(STATEMENTS).index(one[1:])):
            places[key] = at
            labels.append(STATEMENTS[key[1:]])
            at += 1.0
        at += 0.35 * bool(own)
    return places, labels, heads


def _stack(ax: Axes, rows: pl.DataFrame, at: float) -> None:
    start = 0.0
    for name in RISKS:
        for row in rows.filter(split=name).iter_rows(named=True):
            # A term is drawn as it was recorded; below zero there is nothing to stack.
            width = max(row["drawn"], 0.0)
            hatch = _hatch(row)
            bar: dict[str, Any] = {"color": COLOURS[name], "hatch": hatch, "height": 0.74}
            ax.barh(at, width, left=start, **bar, **EDGE)
            start += width
    first = rows.row(0, named=True)
    _interval(ax, first, "end", at + 0.24, {"color": MUTED, "marker": "none"})
    for name, style in MARKS.items():
        keywords = look("measured").points(label=False) | style
        value = {**first, "error_lower": None, "error_upper": None}
        _interval(
            ax, value, name, at + ASIDE[name], keywords | {"markeredgewidth": 0.6, "zorder": 4}
        )


def _hatch(row: Mapping[str, Any]) -> str | None:
    """Stripes where a term is drawn at its lower end, dots where at its upper one."""
    if row["upper"] is None:
        return BELOW
    return ABOVE if row["split"] == IDEAL and row["upper"] > row["lower"] else None


def _interval(ax: Axes, row: Mapping[str, Any], name: str, at: float, style: Any) -> None:
    value = row[name]
    if value is None:
        return
    low, high = (row[f"{name}_{end}"] for end in ("lower", "upper"))
    error = None if low is None or high is None else [[value - low], [high - value]]
    ax.errorbar(value, at, xerr=error, elinewidth=0.9, **style)


def _capacities(ax: Axes, rows: pl.DataFrame, at: float) -> None:
    for name, aside in zip(CAPACITIES, (-0.2, 0.2), strict=True):
        part = rows.filter(pl.col("split") == name, pl.col("drawn") > 0)
        style: dict[str, Any] = {"marker": MARKERS[name], "color": COLOURS[name]}
        style |= {"markeredgecolor": INK}
        ax.plot(part["drawn"], [at + aside] * part.height, **style, linestyle="none", zorder=3)


def _finish(left: Axes, right: Axes, table: pl.DataFrame) -> None:
    for ax in (left, right):
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x")
        ax.grid(visible=False, axis="y")
        ax.axvline(1.0, color=INK, linewidth=0.9, linestyle=":")
    kinds = set(table["kind"].drop_nulls())
    left.set_title("bound" if kinds == {1.0} else "diagnostic, not a bound")
    left.set_xlabel("sum of the terms without capacities; risk, error")
    left.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10]))
    left.set_xlim(0, max(left.get_xlim()[1], 1.04))
    right.set_title("capacities, at most")
    right.set_xlabel("log scale")
    most = max(table.filter(pl.col("split").is_in(CAPACITIES))["drawn"], default=1.0)
    right.set_xscale("log")
    right.set_xlim(0.5, 3 * max(most, 10.0))
    right.axvspan(1.0, right.get_xlim()[1], color="#f2f2f2", zorder=0, linewidth=0)
    right.xaxis.set_major_locator(LogLocator(numticks=6))
    right.xaxis.set_minor_formatter(NullFormatter())


def _legend(table: pl.DataFrame) -> Sequence[Any]:
    hatches = {row["split"]: _hatch(row) for row in table.iter_rows(named=True) if _hatch(row)}
    found: list[Any] = []
    for name in RISKS:
        hatch = hatches.get(name)
        words = name + {BELOW: " (at least)", ABOVE: " (at most)"}.get(hatch or "", "")
        found.append(Patch(facecolor=COLOURS[name], hatch=hatch, **EDGE, label=words))
    style: dict[str, Any] = {"linestyle": "none", "markeredgecolor": INK}
    for name in CAPACITIES:
        marker: dict[str, Any] = {"marker": MARKERS[name], "color": COLOURS[name]}
        found.append(Line2D([], [], **marker, **style, label=f"{name} (at most)"))
    for name, words in LABELS.items():
        keywords: dict[str, Any] = look("measured").points(label=False) | MARKS[name]
        found.append(Line2D([], [], **keywords, label=words))
    if table["end_lower"].count():
        found.append(Line2D([], [], color=MUTED, linewidth=0.9, label=WHISKER))
    return found
