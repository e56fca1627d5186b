"""Errors of the answers and of trained networks: over the strength, and over the batch."""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from figures.causal.structural import ANSWERS, Structural
from figures.experiments.cells import Cell
from figures.experiments.comparisons import mark
from figures.experiments.dot_panels import hollow_marks, limited
from figures.experiments.measures import POLICIES
from figures.selection import of
from figures.style import DOUBLE, INK, MUTED, Look, letter, look, panels

ERROR = "error on the unseen client (%)"
NETS = {
    POLICIES[0]: Look("network, aggregated BN", look(POLICIES[0]).colour, (0, (6, 2)), "s"),
    POLICIES[1]: Look("network, client-specific BN", look(POLICIES[1]).colour, "-", "o"),
    "alone": Look("client-specific BN, each batch alone", look(POLICIES[1]).colour, ":", "^"),
}
ESTIMATED = Look("do(S), statistics of a batch", look("do_s").colour, "-", "P")
SIMULATED: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 2.8, "zorder": 2.02}
SIMULATED |= {"markerfacecolor": "white", "markeredgewidth": 0.7, "elinewidth": 0.7, "capsize": 1.5}
WIDE = {"linewidth": 2.6}
Mark = tuple[float | int, Cell]


def answers(found: Structural) -> Figure:
    """Draw every answer's error over the strength, exact and simulated, and the networks'."""
    figure, axes, across = _figure(found)
    labels: dict[str, Any] = {}
    for ax, scenario in zip(axes, found.scenarios, strict=False):
        whole = of(found.risks, scenario=scenario).filter(pl.col("samples").is_null())
        for answer in ANSWERS:
            labels |= _exact(ax, of(whole, answer=answer), "strength", look(answer))
        at = found.where.get(scenario)
        for policy in POLICIES:
            n = at.samples if at and policy == POLICIES[1] else None
            own = [
                (strength, cell)
                for (s, p, strength, size), cell in found.errors.items()
                if (s, p, size) == (scenario, policy, n)
            ]
            labels |= _network(ax, own, policy, joined=False)
        ax.set(title=scenario, xlabel="strength")
        ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    return _finished(figure, axes, across, _with_simulated(labels, found))


def batch_sizes(found: Structural) -> Figure:
    """Draw the error against the points behind the statistics, with what they cannot change."""
    figure, axes, across = _figure(found)
    labels: dict[str, Any] = {}
    for ax, scenario in zip(axes, found.scenarios, strict=False):
        strength = strength_of(found, scenario)
        rows = of(found.risks, scenario=scenario).filter(pl.col("strength").eq_missing(strength))
        whole, estimated = rows.filter(pl.col("samples").is_null()), rows.drop_nulls("samples")
        for answer in ("do_f", "do_s"):
            labels |= _level(ax, of(whole, answer=answer), look(answer))
        labels |= _exact(ax, of(estimated, answer="do_s"), "samples", ESTIMATED)
        sizes = {int(n) for n in estimated["samples"]}
        for name, table in ((POLICIES[1], found.errors), ("alone", found.alone)):
            own = [
                (n, cell)
                for (s, p, t, n), cell in table.items()
                if (s, p, t) == (scenario, POLICIES[1], strength) and n is not None
            ]
            labels |= _network(ax, own, name, joined=True)
            sizes |= {int(n) for n, _ in own}
        labels |= _network_level(ax, found.errors.get((scenario, POLICIES[0], strength, None)))
        _powers(ax, sizes)
        ax.set_title(scenario if strength is None else f"{scenario}, strength {strength:g}")
    return _finished(figure, axes, across, _with_simulated(labels, found))


def strength_of(found: Structural, scenario: str) -> float | None:
    """The strength at which batches are shown: the networks', else the largest of the answers."""
    if scenario in found.where:
        return found.where[scenario].strength
    rows = of(found.risks, scenario=scenario)
    return None if rows.is_empty() else float(rows["strength"].to_numpy().max())


def _figure(found: Structural) -> tuple[Figure, list[Axes], int]:
    count = max(1, len(found.scenarios))
    across = min(count, 2 if count in (2, 4) else 3)
    down = -(-count // across)
    ratio = min((2.0 * down + 0.75) / DOUBLE, 3.0)
    figure, axes = panels(down, across, width="double", ratio=ratio, sharey=True)
    for ax in axes[count:]:
        ax.set_visible(False)
    return figure, axes[:count], across


def _exact(ax: Axes, rows: pl.DataFrame, along: str, style: Look) -> dict[str, Any]:
    """A line of exact errors with their simulation as hollow marks."""
    exact = rows.drop_nulls("exact").sort(along)
    if exact.height:
        line = style.line(label=False, markers=exact.height == 1)
        # What coincides with it stays visible on both sides.
        line |= WIDE if style == look("observational") else {}
        ax.plot(exact[along], 100 * exact["exact"], **line)
    drawn = rows.drop_nulls("simulated").sort(along)
    if drawn.height:
        low, high = drawn["simulated_lower"], drawn["simulated_upper"]
        mean = drawn["simulated"]
        error = [100 * (mean - low.fill_null(mean)), 100 * (high.fill_null(mean) - mean)]
        marks: dict[str, Any] = SIMULATED | {"color": style.colour}
        ax.errorbar(drawn[along], 100 * mean, yerr=error, **marks)
    shown = style.line(label=False, markers=False)
    shown |= WIDE if style == look("observational") else {}
    return {style.label: Line2D([], [], **shown)} if rows.height else {}


def _level(ax: Axes, rows: pl.DataFrame, style: Look) -> dict[str, Any]:
    """A horizontal line: what the size of the batch cannot change."""
    values = rows["exact"].drop_nulls()
    if values.is_empty():
        return {}
    line: dict[str, Any] = {"color": style.colour, "linestyle": style.dash, "linewidth": 1.0}
    ax.axhline(100 * values[0], **line)
    return {style.label: Line2D([], [], **line)}


def _network_level(ax: Axes, cell: Cell | None) -> dict[str, Any]:
    """The network with aggregated BN, as a level with its interval."""
    found = mark(cell)
    if found["mean"] is None:
        return {}
    style = NETS[POLICIES[0]]
    line: dict[str, Any] = {"color": style.colour, "linestyle": style.dash, "linewidth": 1.0}
    ax.axhline(found["mean"], **line)
    if found["lower"] is not None:
        ax.axhspan(found["lower"], found["upper"], **style.band())
    return {style.label: Line2D([], [], **line)}


def _network(ax: Axes, own: Iterable[Mark], name: str, *, joined: bool) -> dict[str, Any]:
    """Means over seeds with intervals; hollow where seeds lack."""
    ordered = sorted(own, key=lambda pair: pair[0])
    shown = [(x, found) for x, cell in ordered if (found := mark(cell))["mean"] is not None]
    if not shown:
        return {}
    style, x = NETS[name], [place for place, _ in shown]
    mean = [found["mean"] for _, found in shown]
    low, high = (
        [f["mean"] if f[e] is None else f[e] for _, f in shown] for e in ("lower", "upper")
    )
    error = [[m - e for m, e in zip(mean, low, strict=True)]]
    error += [[e - m for m, e in zip(mean, high, strict=True)]]
    how = style.line(label=False) if joined else style.points(label=False)
    how |= {"zorder": 2.08}  # above the answers, below what whitens marks
    ax.errorbar(x, mean, yerr=error, elinewidth=1.1, **how)
    hollow_marks(ax, x, mean, [found["hollow"] for _, found in shown], style)
    return {style.label: Line2D([], [], **how)}


def _powers(ax: Axes, sizes: set[int]) -> None:
    """A logarithmic axis of numbers of points."""
    ax.set(xscale="log", xlabel="points in a test batch, $n_t$")
    ordered = sorted(sizes)
    every = max(1, -(-len(ordered) // 7))
    ax.xaxis.set_major_locator(FixedLocator(ordered[::every]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))


def _with_simulated(labels: Mapping[str, Any], found: Structural) -> dict[str, Any]:
    """The legend's entries with that of simulated errors, where there are any."""
    marks = {k: v for k, v in SIMULATED.items() if k not in ("elinewidth", "capsize")}
    handle = Line2D([], [], color=INK, **marks)
    return {**labels, **({"simulated": handle} if found.risks["simulated"].count() else {})}


def _finished(figure: Figure, axes: list[Axes], across: int, labels: Mapping[str, Any]) -> Figure:
    """Limits, letters, the legend below; a scenario without values says so."""
    for k, ax in enumerate(axes):
        if not ax.has_data():
            ax.set(xticks=[])
            ax.text(0.5, 0.5, "not run", color=MUTED, ha="center", transform=ax.transAxes)
        ax.set_ylim(*limited(ax.get_ylim(), (0.0, 100.0)))
        if k % across == 0:
            ax.set_ylabel(ERROR)
    if len(axes) > 1:
        letter(axes)
    if labels:
        figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=3)
    return figure
