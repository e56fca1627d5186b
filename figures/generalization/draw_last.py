"""Figure of the last layer's divergence: of half-spaces beside pairs of networks, with floors."""

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from figures.experiments.dot_panels import Axis, dots
from figures.generalization.marks import FLOORS, look_of, marks
from figures.generalization.names import FEATURES
from figures.generalization.summary import Summary
from figures.style import DOUBLE, legend_below, letter, panels

HEADS = {"one": "half-space, $d(h)$", "pairs": r"pair of networks, $d_{H\Delta H}$"}
SPREAD = 0.54
TICK: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 9}
TICK |= {"markeredgewidth": 1.3, "zorder": 1.8}


def last_marks(summary: Summary, rows: Mapping[str, str]) -> pl.DataFrame:
    """The table behind the figure; `rows` are the columns of the summary that it shows."""
    found = {
        ("one", ""): summary.divergence,
        ("pairs", ""): summary.pairs,
        ("one", " floor"): summary.floor,
        ("pairs", " floor"): summary.pair_floor,
    }
    places = list(rows)
    table = marks(
        (panel, f"{variant}{more}", float(places.index(column)), cell)
        for (panel, more), cells in found.items()
        for (column, variant, layer), cell in cells.items()
        if layer == summary.last and column in rows and variant in FEATURES
    )
    names = dict(enumerate(places))
    row = pl.col("place").cast(pl.Int64).replace_strict(names, default=None, return_dtype=pl.String)
    return table.with_columns(row.alias("row"), pl.lit(None, pl.String).alias("lost"))


def last_layer(table: pl.DataFrame, rows: Mapping[str, str]) -> Figure:
    """Draw every held-out client's estimates; a tick at what estimation alone would leave."""
    series = {name: look_of(name) for name in FEATURES if name in table["series"]}
    axis = Axis(HEADS, rows, series, "", joined=False, spread=SPREAD, within=(-2.0, 2.0))
    height = 0.4 * len(rows) + 1.35
    figure, axes = panels(1, 2, width="double", ratio=height / DOUBLE, sharey=True)
    low = min([0.0, *(value for value in table["lower"].drop_nulls()), *table["mean"].drop_nulls()])
    for ax, (panel, title) in zip(axes, HEADS.items(), strict=True):
        part = table.filter(panel=panel)
        dots(ax, part, axis)
        _floors(ax, part, list(rows), list(series))
        ax.set_title(title)
        ax.set_xlabel("divergence, from below")
        ax.xaxis.set_major_locator(MultipleLocator(0.5))
        ax.set_xlim(max(1.06 * low - 0.04, -2.0), 2.0)
    letter(axes)
    legend_below(figure, axes, columns=3)
    return figure


def _floors(ax: Axes, part: pl.DataFrame, rows: list[str], names: list[str]) -> None:
    """Ticks at the height of the features that they belong to."""
    step = SPREAD / max(1, len(names) - 1)
    for name, style in FLOORS.items():
        own = part.filter(series=f"{name} floor").drop_nulls("mean")
        if own.height and name in names:
            aside = step * (names.index(name) - (len(names) - 1) / 2)
            at = [rows.index(row) + aside for row in own["row"]]
            ax.plot(own["mean"], at, color=style.colour, label=style.label, **TICK)
