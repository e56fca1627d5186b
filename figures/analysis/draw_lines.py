"""Accuracy against one setting of the training, and the paired differences beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from figures.experiments.dot_panels import hollow_marks, limited
from figures.style import INK, Look, letter, look, panels

POLICIES = ("aggregated", "client_specific")
SERIES = {"aggregated": look("aggregated"), "client_specific": look("client_specific")}
SERIES |= {"local": look("local")}
MINUS = {
    "aggregated": Look("client-specific − aggregated", INK, "-", "D"),
    "local": Look("client-specific − local only", look("local").colour, ":", "*"),
}


@dataclass(frozen=True)
class Setting:
    """What is varied: the label of its axis, its values, and whether they are parts of a whole."""

    label: str
    values: Sequence[float]
    percent: bool = False


def lines(curves: pl.DataFrame, paired: pl.DataFrame, setting: Setting) -> Figure:
    """Draw accuracy by `value` and `series`, and what client-specific BN is ahead by."""
    figure, (left, right) = panels(1, 2, width="double", ratio=0.46)
    # The ticks' labels keep clear of the other panel.
    figure.set_layout_engine("constrained", w_pad=0.09)
    for name, style in SERIES.items():
        rows = curves.filter(pl.col("series") == name).sort("value")
        if rows.height:
            left.plot(rows["value"], rows["mean"], **_line(style))
            left.fill_between(rows["value"], *_ends(rows), **style.band())
            hollow_marks(left, rows["value"], rows["mean"], rows["hollow"], style)
    left.set_ylim(*limited(left.get_ylim(), (0.0, 100.0)))
    left.set_title("test accuracy (%), mean over the clients")
    right.axhline(0.0, color=INK, linewidth=0.8, linestyle=":")
    for k, (name, style) in enumerate(MINUS.items()):
        rows = paired.filter(pl.col("series") == name).sort("value")
        if rows.height:
            low, high = _ends(rows)
            error = [(rows["mean"] - low).to_list(), (high - rows["mean"]).to_list()]
            # Beside one another, not on one another.
            at = rows["value"] * 1.06**k
            right.errorbar(at, rows["mean"], yerr=error, **_line(style), elinewidth=0.9)
            hollow_marks(right, at, rows["mean"], rows["hollow"], style)
    right.set_title("difference (points), paired by seed")
    for ax in (left, right):
        _axis(ax, setting)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))
    letter([left, right])
    return figure


def _line(style: Look) -> dict[str, Any]:
    """Keywords of the line; a star fills less of its size than other marks do."""
    return style.line() | ({"markersize": 7.0} if style.marker == "*" else {})


def _ends(rows: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
    return rows["lower"].fill_null(rows["mean"]), rows["upper"].fill_null(rows["mean"])


def _axis(ax: Axes, setting: Setting) -> None:
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_locator(FixedLocator(list(setting.values)))
    ax.xaxis.set_minor_locator(NullLocator())
    show = (lambda x, _: f"{100 * x:g} %") if setting.percent else (lambda x, _: f"{x:g}")
    ax.xaxis.set_major_formatter(FuncFormatter(show))
    ax.set_xlabel(setting.label)
    if len(setting.values) == 1:
        ax.set_xlim(setting.values[0] / 2, setting.values[0] * 2)
