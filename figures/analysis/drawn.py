"""The tables behind the figures of the sweeps and of the grid, in per cent and in points."""

from typing import Any

import polars as pl

from figures.analysis.outside import Grid
from figures.analysis.sweeps import SPECIFIC, Sweep
from figures.experiments.comparisons import difference_mark, mark

LINE: dict[str, type[pl.DataType]] = {"value": pl.Float64, "series": pl.String}
LINE |= dict.fromkeys(("mean", "lower", "upper"), pl.Float64)
LINE |= {"hollow": pl.Boolean, "lost": pl.String}
CELL: dict[str, type[pl.DataType]] = {"panel": pl.String, "tau": pl.Float64, "samples": pl.Int64}
CELL |= {"mean": pl.Float64, "fewer": pl.Int64}


def curves(sweep: Sweep) -> pl.DataFrame:
    """Accuracy by `value` and `series`."""
    rows = [{"value": v, "series": s, **mark(cell)} for (v, s), cell in sweep.cells.items()]
    return pl.DataFrame(rows, schema=LINE).drop_nulls("mean")


def differences(sweep: Sweep) -> pl.DataFrame:
    """What client-specific BN is ahead by, by `value` and `series`: of what."""
    rows = []
    for series, found in (("aggregated", sweep.ahead), ("local", sweep.alone)):
        for value, one in found.items():
            sides = (sweep.cells.get((value, side)) for side in (SPECIFIC, series))
            shown = difference_mark(one.difference, *sides)
            rows.append({"value": value, "series": series, **shown})
    return pl.DataFrame(rows, schema=LINE)


def panel(order: str, column: str) -> str:
    """The name of a panel of the grid."""
    return f"{order} {column}"


def grid_cells(grid: Grid) -> pl.DataFrame:
    """Accuracy by `panel` (order and column), `tau` and `samples`.

    `fewer`: the seeds behind a mean that lacks some, which diverged.
    """
    rows: list[dict[str, Any]] = []
    for (order, column, tau, samples), cell in grid.cells.items():
        at = {"panel": panel(order, column), "tau": tau, "samples": samples}
        fewer = len(cell.values) if cell.diverged else None
        rows.append({**at, "mean": mark(cell)["mean"], "fewer": fewer})
    return pl.DataFrame(rows, schema=CELL).drop_nulls("mean")
