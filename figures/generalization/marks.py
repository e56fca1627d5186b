"""Marks of the divergence: how features look, what a mark's table holds, lines with intervals."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from figures.experiments.cells import Cell
from figures.experiments.dot_panels import hollow_marks
from figures.style import Look, look

DEPLOYED = replace(look("client_specific"), label="client-specific BN, as deployed")
FRESH = Look("per-unit BN, statistics of training images", "#882255", (0, (3, 1)), "D")
SEEN = replace(FRESH, label="per-unit BN, seen clients by statistics of training images")
FLOORS = {
    "per_unit": Look("one Gaussian law, per-unit BN", FRESH.colour, (0, (1, 2)), "_"),
    "whitened": replace(look("whitened"), label="one Gaussian law, whitened", marker="_"),
}
"""Features -> what estimating their statistics leaves."""
WIDE: dict[str, Any] = {"markersize": 8, "markeredgewidth": 1.3, "capsize": 0, "linestyle": "none"}


def look_of(name: str) -> Look:
    """What features look like; two kinds of them are per unit."""
    return {"client_specific": DEPLOYED, "per_unit": FRESH}.get(name) or look(name)


def marks(cells: Iterable[tuple[str, str, float, Cell]]) -> pl.DataFrame:
    """The table behind a figure, of (panel, series, place, cell)."""
    rows = []
    for panel, series, place, cell in cells:
        rows.append({"panel": panel, "series": series, "place": place, **_mark(cell)})
    schema: dict[str, Any] = dict.fromkeys(("panel", "series"), pl.String)
    schema |= dict.fromkeys(("place", "mean", "lower", "upper"), pl.Float64)
    return pl.DataFrame(rows, schema=schema | {"hollow": pl.Boolean, "n": pl.Int64})


def _mark(cell: Cell) -> dict[str, Any]:
    found = cell.interval
    ends = {name: getattr(found, name, None) for name in ("mean", "lower", "upper")}
    return {**ends, "hollow": bool(cell.diverged), "n": len(cell.values)}


def points(
    ax: Axes, part: pl.DataFrame, style: Look, place: pl.Series, more: dict[str, Any] | None = None
) -> None:
    """A line with intervals, of marks that are hollow where seeds lack."""
    low, high = (part[end].fill_null(part["mean"]) for end in ("lower", "upper"))
    error = [(part["mean"] - low).to_list(), (high - part["mean"]).to_list()]
    # A line of one mark is none, in the legend too.
    keywords = (style.points() if part.height < 2 else style.line()) | (more or {})
    ax.errorbar(place, part["mean"], yerr=error, elinewidth=0.8, **keywords)
    hollow_marks(ax, place, part["mean"], part["hollow"], style)
