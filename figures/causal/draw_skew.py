"""Accuracy and harm against the skew of the classes, for each held-out client."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from figures.causal.skew import WAYS, Skew
from figures.experiments.cells import difference
from figures.experiments.comparisons import difference_mark, mark
from figures.experiments.dot_panels import hollow_marks, limited
from figures.style import DOUBLE, INK, Look, legend_below, letter, panels

LOOKS = {
    "adapted": Look("statistics of the skewed stream", "#d55e00", "-", "o"),
    "balanced": Look("of a balanced stream", "#009e73", (0, (5, 1.6, 1, 1.6)), "^"),
    "server": Look("of the server", "#004488", (0, (6, 2)), "s"),
}
HARM = Look("balanced − skewed", INK, "-", "D")
RATIO = "commonest : rarest class"


def label_shift(found: Skew, titles: dict[str, str]) -> Figure:
    """Draw accuracy above and harm below, a column for each title (column -> what it is called)."""
    names = list(titles)
    across = min(4, len(names))
    blocks = [names[k : k + across] for k in range(0, len(names), across)]
    down = 2 * len(blocks)
    width = "column" if across == 1 else "double"
    ratio = 0.95 if across == 1 else (1.72 * down + 0.5) / DOUBLE
    figure, axes = panels(down, across, width=width, ratio=min(ratio, 3.0), sharex=True)
    tops, bottoms, last = [], [], len(blocks) - 1
    for b, block in enumerate(blocks):
        for k in range(across):
            top, bottom = (axes[(2 * b + row) * across + k] for row in (0, 1))
            if k >= len(block):
                top.set_visible(False)
                bottom.set_visible(False)
                continue
            _accuracy(top, found, block[k])
            _harm(bottom, found, block[k])
            top.set_title(titles[block[k]])
            beneath = b == last or (b == last - 1 and k >= len(blocks[last]))
            if beneath:
                bottom.set_xlabel(RATIO)
                bottom.tick_params(labelbottom=True)
            if k == 0:
                top.set_ylabel("accuracy (%)")
                bottom.set_ylabel("harm (points)")
            tops.append(top)
            bottoms.append(bottom)
    letter(sorted([*tops, *bottoms], key=figure.axes.index))
    _same_limits(bottoms)
    for ax in (*tops, *bottoms):
        _ratios(ax, found.ratios)
    legend_below(figure, [*tops, *bottoms], columns=2 if across == 1 else 4)
    return figure


def _accuracy(ax: Axes, found: Skew, column: str) -> None:
    """Bars, beside one another: the bands of three wide intervals would hide one another."""
    for k, way in enumerate(WAYS):
        there = [(r, c) for r in found.ratios if (c := found.cells.get((way, column, r)))]
        shown = _drawn([(ratio * 1.05 ** (k - 1), mark(cell)) for ratio, cell in there])
        if shown:
            x, mean, low, high, lacking = shown
            error = [[m - e for m, e in zip(mean, low, strict=True)]]
            error += [[e - m for m, e in zip(mean, high, strict=True)]]
            ax.errorbar(x, mean, yerr=error, **LOOKS[way].line(), elinewidth=0.8)
            hollow_marks(ax, x, mean, lacking, LOOKS[way])
    ax.set_ylim(*limited(ax.get_ylim(), (0.0, 100.0)))
    ax.yaxis.set_major_locator(MaxNLocator(5))


def _harm(ax: Axes, found: Skew, column: str) -> None:
    shown = []
    for ratio in found.ratios:
        sides = [found.cells.get((way, column, ratio)) for way in ("balanced", "adapted")]
        one = difference(sides[0], sides[1]) if sides[0] and sides[1] else None
        if one is not None:
            shown.append((ratio, difference_mark(one, *sides)))
    ax.axhline(0.0, color=INK, linewidth=0.8, linestyle=":")
    drawn = _drawn(shown)
    if drawn:
        x, mean, low, high, lacking = drawn
        ax.plot(x, mean, **HARM.line())
        ax.fill_between(x, low, high, **HARM.band())
        hollow_marks(ax, x, mean, lacking, HARM)


def _drawn(marks: Sequence[tuple[float, dict[str, Any]]]) -> tuple[list[Any], ...] | None:
    """Places, means, lower and upper ends, and where seeds lack; None without a mean."""
    there = [(x, one) for x, one in marks if one["mean"] is not None]
    if not there:
        return None
    low, high = (
        [m["mean"] if m[e] is None else m[e] for _, m in there] for e in ("lower", "upper")
    )
    x, mean = [x for x, _ in there], [one["mean"] for _, one in there]
    return x, mean, low, high, [one["hollow"] for _, one in there]


def _same_limits(axes: Sequence[Axes]) -> None:
    """Harm has one scale, so that clients can be compared; it always shows zero."""
    limits = [ax.get_ylim() for ax in axes if ax.lines[1:]]
    if limits:
        low, high = min(low for low, _ in limits), max(high for _, high in limits)
        for ax in axes:
            ax.set_ylim(min(low, 0.0), max(high, 0.0))
            ax.yaxis.set_major_locator(MaxNLocator(4))


def _ratios(ax: Axes, ratios: Sequence[float]) -> None:
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(list(ratios)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    if len(ratios) == 1:
        ax.set_xlim(ratios[0] / 2, ratios[0] * 2)
