"""The figure of Corollary III.6 with the exact kernel of BN: effect of the ridge and dimension."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.convergence.draw_eigenvalues import NETS, kernel
from figures.convergence.exact_tables import Exact
from figures.convergence.log_axes import (
    EQUAL,
    NO_RATIO,
    SOME_RATIOS,
    above_zero,
    from_zero,
    log_or_note,
    note,
    readable_ticks,
)
from figures.convergence.sources import data_name
from figures.selection import of
from figures.style import INK, MUTED, letter, look, panels

DASHES: tuple[Any, ...] = ("-", "--", ":")
MARKERS = ("o", "s", "^")


def exact_drawings(found: Exact) -> dict[str, Callable[[], Figure]]:
    """Name the figures that the records allow."""
    table = found.table
    if not table.height or table["verdict"].is_null().all():
        return {}
    return {"exact": lambda: exact(table)}


def exact(table: pl.DataFrame) -> Figure:
    """Draw λ_min, its ratio and λ_max over the ridge, one line a dimension, one row a source."""
    sources = table["data"].unique(maintain_order=True).to_list()
    figure, axes = panels(len(sources), 3, width="double", ratio=0.33 * len(sources) + 0.06)
    dimensions: list[int] = []
    for row, source in enumerate(sources):
        part = of(table, data=source)
        kept = part["round"].unique().sort().to_list()
        dimensions += [k for k in kept if k not in dimensions]
        smallest, ratio, largest = axes[3 * row : 3 * row + 3]
        log_or_note(smallest, _policies(smallest, part, kept, "low"))
        if part["low_value"].equals(part["low_star_value"]) and part["ratio"].count():
            note(smallest, EQUAL)
        readable_ticks(smallest)
        smallest.set(ylabel=f"{data_name(source)}\n" + r"$\lambda_{\min}$")
        _policies(largest, part, kept, "top")
        largest.set(ylabel=r"$\lambda_{\max}$")
        from_zero(largest)
        if part["top_value"].equals(part["top_star_value"]):
            note(largest, EQUAL)
        _ratio(ratio, part, kept)
        for ax in (smallest, ratio, largest):
            _ridges(ax, part)
    figure.legend(handles=_legend(dimensions), loc="outside lower center", ncols=5)
    letter(axes)
    return figure


def _policies(ax: Axes, part: pl.DataFrame, kept: list[int], which: str) -> list[pl.Series]:
    """Draw both nets; returns the lines, gaps where there is a kernel whose value may be 0."""
    lines = []
    for suffix, policy in NETS.items():
        colour = look(policy).colour
        for k, dash, marker in zip(kept, cycle(DASHES), cycle(MARKERS), strict=False):
            own = of(part, round=k).sort("parameter")
            values = own[f"{which}{suffix}_value"]
            values = above_zero(values, own[f"{which}{suffix}_lower"])
            ax.plot(_places(own, part), values, linestyle=dash, marker=marker, color=colour)
            lines.append(values.filter(own["verdict"].is_not_null()))
    return lines


def _ratio(ax: Axes, part: pl.DataFrame, kept: list[int]) -> None:
    colour = look("client_specific").colour
    for k, dash, marker in zip(kept, cycle(DASHES), cycle(MARKERS), strict=False):
        own = of(part, round=k).sort("parameter")
        ax.plot(_places(own, part), own["ratio"], linestyle=dash, marker=marker, color=colour)
    ax.axhline(1.0, color=INK, linewidth=0.8, linestyle=":")
    ax.set(ylabel=r"$\lambda_{\min}(G^{*\infty})/\lambda_{\min}(G^{\infty})$")
    ax.set_ylim(bottom=min(0.95, ax.get_ylim()[0]))
    there = part.drop_nulls("verdict")["ratio"]
    if there.null_count() == there.len():
        ax.set(yticks=[1])
        note(ax, NO_RATIO)
    elif there.null_count():
        note(ax, SOME_RATIOS)


def _places(rows: pl.DataFrame, part: pl.DataFrame) -> list[int]:
    ridges = part["parameter"].unique().sort().to_list()
    return [ridges.index(value) for value in rows["parameter"]]


def _ridges(ax: Axes, part: pl.DataFrame) -> None:
    """The ridges as equal steps: 0 has no place on a logarithmic axis."""
    ridges = part["parameter"].unique().sort().to_list()
    ax.set_xticks(range(len(ridges)), ["0" if r == 0 else f"{r:g}" for r in ridges])
    ax.set(xlabel=r"ridge $\rho$", xlim=(-0.3, len(ridges) - 0.7))


def _legend(dimensions: list[int]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=look(policy).colour, label=kernel(suffix))
        for suffix, policy in NETS.items()
    ]
    pairs = zip(dimensions, cycle(DASHES), cycle(MARKERS), strict=False)
    return handles + [
        Line2D([], [], color=MUTED, linestyle=dash, marker=marker, label=f"$k = {k}$")
        for k, dash, marker in pairs
    ]
