"""Dumbbells: accuracy with either kind of BN, inside and outside, one row a method."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from figures.compatibility.captions import METHOD_NOTES
from figures.compatibility.summary import AGGREGATED, SPECIFIC, Row, Summary
from figures.experiments.cells import Cell, difference_text
from figures.experiments.measures import POLICIES
from figures.style import DOUBLE, GRID, INK, MUTED, legend_below, letter, look, looks, panels

OFFSET = {AGGREGATED: -0.13, SPECIFIC: 0.13}
"""Rows between a mark and the middle of its row, so that intervals lie beside one another."""

PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.3}
VERDICTS = {"supported": ("^", SPECIFIC), "contradicted": ("v", AGGREGATED)}


def dumbbells(summary: Summary) -> Figure:
    """Draw the internal accuracy and, where clients were left out, the external one."""
    rows = ordered(summary.rows)
    kinds = ["internal"] + ["external"] * bool(summary.folds)
    height = 0.26 * len(rows) + 0.95
    figure, axes = panels(1, len(kinds), width="double", ratio=height / DOUBLE, sharey=True)
    for ax, kind in zip(axes, kinds, strict=True):
        for k, row in enumerate(rows):
            _row(ax, k, row, kind)
        _frame(ax, rows)
        ax.set_title(f"{kind} accuracy (%)")
        _differences(ax, rows, kind, summary)
        _lost(ax, rows, kind)
    legend_below(figure, axes)
    if len(axes) > 1:
        letter(axes)
    return figure


def ordered(rows: Sequence[Row]) -> list[Row]:
    """Sort by internal accuracy with client-specific BN, the highest first, the lost last."""
    return sorted(rows, key=_height)


def _height(row: Row) -> float:
    found = row.internal[SPECIFIC].interval or row.internal[AGGREGATED].interval
    return 1.0 if found is None else -found.mean


def _cells(row: Row, kind: str) -> dict[str, Cell]:
    cells = row.internal if kind == "internal" else row.external
    one = kind == "internal" and row.merged
    return {p: cells[p] for p in POLICIES if p == SPECIFIC or not one}


def _row(ax: Axes, k: int, row: Row, kind: str) -> None:
    cells = _cells(row, kind)
    place = {p: k + (OFFSET[p] if len(cells) > 1 else 0.0) for p in cells}
    found = {p: cell.interval for p, cell in cells.items()}
    ends = [(100 * i.mean, place[p]) for p, i in found.items() if i is not None]
    ax.plot(*zip(*ends, strict=True), color=GRID, linewidth=3, solid_capstyle="round", zorder=1)
    for policy, interval in found.items():
        if interval is None:
            continue
        low = interval.mean if interval.lower is None else interval.lower
        high = interval.mean if interval.upper is None else interval.upper
        error = [[100 * (interval.mean - low)], [100 * (high - interval.mean)]]
        keywords = look(policy).points(label=False)
        if cells[policy].diverged:
            keywords |= {"markerfacecolor": "white", "markeredgecolor": look(policy).colour}
            keywords |= {"markeredgewidth": 1.0}
        ax.errorbar(100 * interval.mean, place[policy], xerr=error, elinewidth=1.0, **keywords)


def _frame(ax: Axes, rows: Sequence[Row]) -> None:
    """Name the methods, enter the legend's marks, and end the axis where accuracies do."""
    known = looks(row.method for row in rows)
    names = [known[r.method].label + "†" * (r.method in METHOD_NOTES) for r in rows]
    for policy in POLICIES:
        ax.plot([], [], **look(policy).points())
    name_rows(ax, names)
    ax.margins(x=0.05)
    # An interval of few seeds may reach beyond what an accuracy can be.
    low, high = ax.get_xlim()
    ax.set_xlim(max(low, 0.0), min(high, 100.0))


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """A row for each name, the first on top, on a grid."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    ax.grid(axis="y", linewidth=0.3)
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10], min_n_ticks=3))


def _differences(ax: Axes, rows: Sequence[Row], kind: str, summary: Summary) -> None:
    """Write the differences beside the panel, each with the sign of its verdict."""
    for k, row in enumerate(rows):
        if kind in row.differences:
            text = difference_text(row.differences[kind], of=summary.seeds)
            beside(ax, k, text, summary.verdicts[row.method, kind][0])
    head_beside(ax)


def beside(
    ax: Axes, k: int, text: str, verdict: str | None = None, decided: str | None = None
) -> None:
    """Write beside row k; a verdict has a sign in the policy's colour or that of `decided`."""
    where = ax.get_yaxis_transform()
    marker, policy = VERDICTS.get(verdict or "", ("o", None))
    colour = MUTED if policy is None else decided or look(policy).colour
    if verdict is not None:
        sign: dict[str, Any] = {"clip_on": False, "markersize": 4.2, "markeredgewidth": 0.8}
        sign |= {"markerfacecolor": "none" if policy is None else colour}
        ax.plot([1.04], [k], marker, transform=where, markeredgecolor=colour, **sign)
    ink = MUTED if policy is None else INK
    style = {"va": "center", "fontsize": 8, "color": ink, "linespacing": 1.0}
    ax.text(1.08, k, text, transform=where, **style)


def head_beside(ax: Axes) -> None:
    """Say, on the line of the title, that what stands beside is in points."""
    head = {"xycoords": "axes fraction", "textcoords": "offset points", "fontsize": 8}
    ax.annotate("points", (1.08, 1.0), (0, 5), color=MUTED, **head)


def _lost(ax: Axes, rows: Sequence[Row], kind: str) -> None:
    """Say of a mark that is not there that all its seeds diverged, away from the other mark."""
    low, high = ax.get_xlim()
    for k, row in enumerate(rows):
        cells = _cells(row, kind)
        means = [100 * c.interval.mean for c in cells.values() if c.interval is not None]
        left = not means or means[0] > (low + high) / 2
        for policy, cell in cells.items():
            if cell.interval is None and cell.lost:
                at = k + (OFFSET[policy] * 1.6 if len(cells) > 1 else 0.0)
                style = {"fontsize": 8, "color": look(policy).colour, "zorder": 1.5}
                style |= {"bbox": PAPER, "ha": "left" if left else "right", "va": "center"}
                where = ax.get_yaxis_transform()
                ax.text(0.02 if left else 0.98, at, cell.lost, transform=where, **style)
