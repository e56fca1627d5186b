"""Dots with intervals in panels: a row for each method or choice, a mark for each series."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from figures.style import DOUBLE, GRID, INK, MUTED, Look, legend_below, letter, panels


@dataclass(frozen=True)
class Axis:
    """What the panels, rows and series are called, in their order, and what is measured.

    Attributes:
        panels: value of the column `panel` -> title.
        rows: value of the column `row` -> label.
        series: value of the column `series` -> its look.
        measured: label of the x axis.
        zero: whether a line marks zero.
        joined: whether a line joins the marks of a row: they are pairs.
        abreast: panels beside one another.
        spread: how far apart, in rows, the first and the last series of a row are.
        within: the values that there can be; intervals of few seeds reach beyond.
    """

    panels: Mapping[str, str]
    rows: Mapping[str, str]
    series: Mapping[str, Look]
    measured: str
    zero: bool = False
    joined: bool = True
    abreast: int = 3
    spread: float = 0.36
    within: tuple[float, float] | None = None


def dot_panels(table: pl.DataFrame, axis: Axis) -> Figure:
    """Draw `mean` with `lower` and `upper` by `panel`, `row` and `series`.

    Where `hollow` is true the mark is. A row of the table without a mean shows its words in the
    column `lost`, where it has one.
    """
    across = min(axis.abreast, len(axis.panels))
    down = -(-len(axis.panels) // across)
    height = down * (0.62 + _pitch(axis) * len(axis.rows)) + 0.35
    figure, axes = panels(down, across, width="double", ratio=height / DOUBLE, sharey=True)
    for ax in axes[len(axis.panels) :]:
        ax.set_visible(False)
    shown = axes[: len(axis.panels)]
    for k, (ax, (name, title)) in enumerate(zip(shown, axis.panels.items(), strict=True)):
        dots(ax, table.filter(pl.col("panel") == name), axis)
        ax.set_title(title)
        if k + across >= len(shown):
            ax.set_xlabel(axis.measured)
    if len(shown) > 1:
        letter(shown)
    if len(axis.series) > 1:
        legend_below(figure, shown, columns=5)
    return figure


def dots(ax: Axes, rows: pl.DataFrame, axis: Axis) -> None:
    """Draw one panel's rows."""
    keys, place = list(axis.rows), _offsets(axis)
    rows = rows.filter(pl.col("row").is_in(keys))
    if axis.zero:
        ax.axvline(0.0, color=INK, linewidth=0.8, linestyle=":")
    if axis.joined:
        for (_,), pair in rows.drop_nulls("mean").group_by("row", maintain_order=True):
            at = [keys.index(r) + place[s] for r, s in pair.select("row", "series").iter_rows()]
            ax.plot(pair["mean"], at, color=GRID, linewidth=2.2, zorder=1, solid_capstyle="round")
    for series, look in axis.series.items():
        part = rows.filter(pl.col("series") == series).drop_nulls("mean")
        low, high = (part[end].fill_null(part["mean"]) for end in ("lower", "upper"))
        error = [(part["mean"] - low).to_list(), (high - part["mean"]).to_list()]
        at = [keys.index(row) + place[series] for row in part["row"]]
        drawn = ax.errorbar(part["mean"], at, xerr=error, **look.points(), elinewidth=0.9)
        if axis.within is not None and part.height:
            # A mark at the end of the axis is whole; bars end there.
            drawn[0].set_clip_on(False)
        hollow_marks(ax, part["mean"], at, part["hollow"], look)
    ax.set_yticks(range(len(keys)), list(axis.rows.values()))
    ax.set_ylim(len(keys) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    ax.grid(visible=False, axis="y")
    ax.xaxis.set_major_locator(MaxNLocator(nbins=4, min_n_ticks=3))
    ax.margins(x=0.08)
    if axis.within is not None:
        ax.set_xlim(*limited(ax.get_xlim(), axis.within))
    _lost(ax, rows, keys, place)


def hollow_marks(ax: Axes, x: Any, y: Any, which: Iterable[bool | None], look: Look) -> None:
    """Whiten the marks at x, y that lack seeds."""
    there = [(a, b) for a, b, lacking in zip(x, y, which, strict=True) if lacking]
    if there:
        style = look.points(label=False) | {"markerfacecolor": "white", "markeredgewidth": 1.0}
        # Bars' own marks lie a little above other lines.
        style |= {"markeredgecolor": look.colour, "clip_on": False, "zorder": 2.2}
        ax.plot(*zip(*there, strict=True), **style)


def limited(limits: tuple[float, float], within: tuple[float, float]) -> tuple[float, float]:
    """Limits of an axis that end where its values do: what reaches beyond is cut."""
    return max(limits[0], within[0]), min(limits[1], within[1])


def _pitch(axis: Axis) -> float:
    """Inches that a row needs for its marks, or for its label in lines."""
    lines = max((label.count("\n") + 1 for label in axis.rows.values()), default=1)
    return max(0.17 + 0.045 * max(1, len(axis.series)), 0.15 * lines + 0.05)


def _offsets(axis: Axis) -> dict[str, float]:
    """Place the series of a row above and below its middle."""
    step = axis.spread / max(1, len(axis.series) - 1) if len(axis.series) > 1 else 0.0
    first = -step * (len(axis.series) - 1) / 2
    return {name: first + k * step for k, name in enumerate(axis.series)}


def _lost(ax: Axes, rows: pl.DataFrame, keys: list[str], place: Mapping[str, float]) -> None:
    """Say where there is no mark why there is none."""
    for row, series, words in (
        rows.filter(pl.col("mean").is_null() & pl.col("lost").is_not_null())
        .select("row", "series", "lost")
        .iter_rows()
    ):
        # A little further from the other marks of the row, which are lines of full height here.
        at = keys.index(row) + 1.35 * place[series]
        where = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": 8}
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        ax.text(0.02, at, words, color=MUTED, bbox=paper, zorder=1.5, **where)
