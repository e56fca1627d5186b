"""Figures of the divergence: by layer and features, and by the number of test batches."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from figures.experiments.measures import POLICIES
from figures.experiments.wide import WIDEST, column_of
from figures.generalization.marks import FLOORS, SEEN, WIDE, look_of, marks, points
from figures.generalization.names import FEATURES, INPUT, layer_tick
from figures.generalization.summary import Summary
from figures.style import INK, legend_below, letter, look, panels

DIVERGENCE = "divergence $d(h)$"
ACROSS = {1: 1, 2: 2, 3: 3, 4: 2}
"""Panels -> how many stand beside one another; three of more."""
SMALL: dict[str, Any] = {"linewidth": 0.8, "markersize": 3.0}

MOVING = {"client_specific": SMALL, "per_unit": {}}
"""Features that test batches move -> how they are drawn."""


def layer_marks(summary: Summary) -> pl.DataFrame:
    """The table behind the figure: divergence by held-out client, features and layer."""
    floors = [((c, f"{v} floor", layer), cell) for (c, v, layer), cell in summary.floor.items()]
    drawn = (*FEATURES, *(f"{name} floor" for name in FLOORS))
    return marks(
        (column, variant, float(summary.layers.index(layer)), cell)
        for (column, variant, layer), cell in [*summary.divergence.items(), *floors]
        if column in _columns(summary) and variant in drawn
    )


def batch_marks(summary: Summary) -> pl.DataFrame:
    """The same by number of test batches, with what does not depend on it at place 0."""
    fixed = [
        (column, variant, 0.0, cell)
        for (column, variant, layer), cell in summary.divergence.items()
        if layer == summary.last and variant == POLICIES[0]
    ]
    fixed += [
        (column, "floor", 0.0, cell)
        for (column, variant, layer), cell in summary.floor.items()
        if layer == summary.last and variant == "per_unit"
    ]
    moving = [(c, v, float(t), cell) for (c, v, t), cell in summary.after.items() if v in MOVING]
    there = {column for column, *_ in moving} & set(_columns(summary))
    return marks(one for one in [*fixed, *moving] if one[0] in there)


def by_layer(table: pl.DataFrame, titles: Mapping[str, str], layers: Sequence[str]) -> Figure:
    """Draw d(h) over the layers, a panel for each held-out client, a line for the features."""
    figure, axes = _panels(table, titles)
    names = [name for name in FEATURES if name in table["series"]]
    for ax, column in zip(axes, titles, strict=False):
        _zero(ax, table)
        for k, name in enumerate(names):
            part = table.filter(panel=column, series=name).drop_nulls("mean").sort("place")
            shift = 0.07 * (k - (len(names) - 1) / 2) if name != "raw" else 0.0
            points(ax, part, look_of(name), part["place"] + shift)
            if name == "raw" and part.height:
                ax.axhline(part["mean"][0], color=look(name).colour, linewidth=0.6, linestyle=":")
        for (name, style), aside in zip(FLOORS.items(), (0.2, 0.32), strict=True):
            part = table.filter(panel=column, series=f"{name} floor").drop_nulls("mean")
            if part.height:
                wide = WIDE | {"markeredgecolor": style.colour}
                points(ax, part, style, part["place"] + aside, wide)
        ticks = ["input" if layer == INPUT else layer_tick(layer) for layer in layers]
        ax.set_xticks(range(len(layers)), ticks)
        ax.set_xlim(-0.4, len(layers) - 0.5)
        _labelled(ax, "batch-norm layer")
    legend_below(figure, axes, columns=2 if len(axes) > 1 else 1)
    return figure


def by_batches(table: pl.DataFrame, titles: Mapping[str, str]) -> Figure:
    """Draw d(h) of the last layer over the test batches seen, beside what does not change."""
    figure, axes = _panels(table, titles)
    moving = table.filter(pl.col("place") > 0)
    numbers = moving["place"].unique().sort().to_list()
    for ax, column in zip(axes, titles, strict=False):
        _zero(ax, table)
        for name, style in (("aggregated", look("aggregated")), ("floor", FLOORS["per_unit"])):
            own = table.filter(panel=column, series=name, place=0.0).drop_nulls("mean")
            for row in own.iter_rows(named=True):
                ax.axhline(row["mean"], **style.line(markers=False))
                if row["lower"] is not None and name == "aggregated":
                    ax.axhspan(row["lower"], row["upper"], **style.band())
        for name, more in MOVING.items():
            part = moving.filter(panel=column, series=name).drop_nulls("mean").sort("place")
            if part.height:
                # The client held out is normalised by the test batches here.
                style = SEEN if name == "per_unit" else look_of(name)
                points(ax, part, style, part["place"], more)
        ax.set_xscale("log")
        ax.set_xlim(numbers[0] / 1.25, numbers[-1] * 1.25)
        ax.xaxis.set_major_locator(FixedLocator(numbers))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_xticklabels([f"{number:g}" for number in numbers])
        _labelled(ax, "test batches of 32 images")
    legend_below(figure, axes, columns=2 if len(axes) > 1 else 1)
    return figure


def shown_columns(summary: Summary, table: pl.DataFrame) -> list[str]:
    """The held-out clients that a figure has a panel for."""
    there = set(table.drop_nulls("mean")["panel"])
    return [column for column in _columns(summary) if column in there]


def _columns(summary: Summary) -> list[str]:
    return [column_of(client) for client in summary.clients[:WIDEST]]


def _panels(table: pl.DataFrame, titles: Mapping[str, str]) -> tuple[Figure, list[Axes]]:
    """A panel for each title; one alone has the width of a column."""
    number = len(titles)
    across = ACROSS.get(number, 3)
    down = -(-number // across)
    width, inches = ("column", 3.4) if number == 1 else ("double", 7.0)
    # Below a panel alone the legend has a line for each series.
    ratio = (2.0 * down + (0.5 if number > 1 else 1.0)) / inches
    figure, axes = panels(down, across, width=width, ratio=ratio, sharey=True)
    for ax in axes[number:]:
        ax.set_visible(False)
    for k, (ax, title) in enumerate(zip(axes, titles.values(), strict=False)):
        ax.set_title(title)
        if k % across == 0:
            ax.set_ylabel(DIVERGENCE)
    shown = axes[:number]
    if number > 1:
        letter(shown)
    low, high = _ends(table)
    room = 0.06 * max(high - low, 0.1)
    # d(h) lies in [−2, 2]; intervals of few seeds reach beyond, and are cut.
    shown[0].set_ylim(max(low - room, -2.08), min(high + room, 2.08))
    return figure, shown


def _zero(ax: Axes, table: pl.DataFrame) -> None:
    if _ends(table)[0] < 0:
        ax.axhline(0.0, color=INK, linewidth=0.6)


def _ends(table: pl.DataFrame) -> tuple[float, float]:
    """The smallest and the largest value that is drawn, 0 among them."""
    ends = [value for end in ("mean", "lower", "upper") for value in table[end].drop_nulls()]
    return min([0.0, *ends]), max([0.0, *ends])


def _labelled(ax: Axes, text: str) -> None:
    """Call the x axis, in the lowest panel of a column."""
    spec = ax.get_subplotspec()
    figure = ax.get_figure()
    if spec is None or figure is None:
        return
    below = [
        other
        for other in figure.axes
        if other.get_visible()
        and (place := other.get_subplotspec()) is not None
        and place.colspan == spec.colspan
        and place.rowspan.start > spec.rowspan.start
    ]
    if not below:
        ax.set_xlabel(text)
