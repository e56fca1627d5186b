"""Curves of training: a panel for each method, both kinds of BN, on common axes."""

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    Locator,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    StrMethodFormatter,
)

from figures.compatibility.captions import METHOD_NOTES
from figures.compatibility.columns import POLICY_NAMES
from figures.compatibility.summary import TARGET, Row, Summary
from figures.experiments.measures import POLICIES
from figures.selection import of
from figures.style import DOUBLE, MUTED, legend_below, look, looks, panels

ACROSS = 3
PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0}
MEASURES = {
    "accuracy": ("test", "test accuracy (%)", 100.0),
    "loss": ("train", "training loss", 1.0),
}


def curves(summary: Summary, metric: str) -> Figure:
    """Draw the test accuracy or the training loss by round."""
    split, words, scale = MEASURES[metric]
    rows = of(summary.curves, split=split, metric=metric)
    known = looks(row.method for row in summary.rows)
    across = min(ACROSS, len(known))
    down = -(-len(known) // across)
    figure, axes = panels(
        down, across, width="double", ratio=(1.45 * down + 0.6) / DOUBLE, sharex=True, sharey=True
    )
    for k, (ax, row) in enumerate(zip(axes, summary.rows, strict=False)):
        own = of(rows, algorithm=row.method)
        _panel(ax, own, scale)
        mark = "†" * (row.method in METHOD_NOTES)
        ax.set_title(f"({chr(97 + k)}) {known[row.method].label}{mark}")
        _lost(ax, row, 0.05 if metric == "accuracy" else 0.95)
        if k + across >= len(known):
            ax.set_xlabel("communication round")
            ax.xaxis.set_tick_params(labelbottom=True)
        if metric == "accuracy":
            ax.axhline(100 * TARGET, color=MUTED, linewidth=0.8, linestyle=":", zorder=1)
    for ax in axes[len(known) :]:
        ax.set_visible(False)
    for ax in axes[::across]:
        ax.set_ylabel(words)
    _scales(axes[0], metric, rows)
    legend_below(figure, axes)
    return figure


def _panel(ax: Axes, rows: pl.DataFrame, scale: float) -> None:
    for policy in POLICIES:
        style, own = look(policy), of(rows, bn_policy=policy).sort("round")
        if own.is_empty():
            continue
        low, high = (own[end].fill_null(own["mean"]) * scale for end in ("lower", "upper"))
        ax.fill_between(own["round"], low, high, **style.band())
        ax.plot(own["round"], own["mean"] * scale, **style.line(points=own.height))


def _lost(ax: Axes, row: Row, height: float) -> None:
    """Say why a line is not there, in the corner that curves leave free."""
    lines = [
        f"{POLICY_NAMES[policy]} BN diverged"
        for policy in (POLICIES[-1:] if row.merged else POLICIES)
        if row.internal[policy].diverged and not row.internal[policy].values
    ]
    if lines:
        style = {"fontsize": 8, "color": MUTED, "linespacing": 1.0, "zorder": 1.5}
        style |= {"bbox": PAPER, "ha": "right", "va": "bottom" if height < 0.5 else "top"}
        ax.text(0.97, height, "\n".join(lines), transform=ax.transAxes, **style)


def _scales(ax: Axes, metric: str, rows: pl.DataFrame) -> None:
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10], min_n_ticks=2))
    if metric == "accuracy":
        ax.set_ylim(0, 100)
        return
    ax.set_yscale("log")
    # By the means: on a logarithmic axis a band that comes near zero would hide the lines.
    means = rows["mean"].to_numpy()
    low, high = 0.6 * means.min(), 1.4 * means.max()
    ax.set_ylim(low, high)
    ax.yaxis.set_major_locator(_ticks(high / low))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _ticks(ratio: float) -> Locator:
    """Ticks of a logarithmic axis whose labels have room in a low panel."""
    if ratio < 5:
        return MaxNLocator(4, steps=[1, 2, 5, 10])
    return LogLocator(subs=(1.0, 2.0, 5.0) if ratio < 60 else (1.0,))
