"""Accuracy outside the federation over the momentum τ and the batch n_t: annotated cells."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from figures.style import DOUBLE, INK, letter, panels, ramp

SHADES = 16


def grid(cells: pl.DataFrame, titles: Mapping[str, str], default: tuple[float, int]) -> Figure:
    """Draw `mean` by `panel`, `tau` and `samples`; each panel's colours span its own values.

    `default` (τ, n_t) has a frame, the best cell of a panel is bold. Where a mean lacks seeds,
    `fewer` says how many are behind it.
    """
    across = min(3, len(titles))
    down = -(-len(titles) // across)
    taus = cells["tau"].unique().sort().to_list()
    sizes = cells["samples"].unique().sort().to_list()
    pitch = 0.38 if cells["fewer"].count() else 0.26
    height = down * (0.65 + pitch * len(taus))
    figure, axes = panels(down, across, width="double", ratio=max(height, 1.3) / DOUBLE)
    for ax in axes[len(titles) :]:
        ax.set_visible(False)
    shown = axes[: len(titles)]
    for k, (ax, (name, title)) in enumerate(zip(shown, titles.items(), strict=True)):
        _cells(ax, cells.filter(pl.col("panel") == name), taus, sizes)
        if default[0] in taus and default[1] in sizes:
            corner = (sizes.index(default[1]) - 0.5, taus.index(default[0]) - 0.5)
            ax.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=INK, linewidth=1.4))
        ax.set_title(title)
        ax.set_xticks(range(len(sizes)), [f"{n}" for n in sizes])
        ax.set_yticks(range(len(taus)), [f"{tau:g}" for tau in taus])
        if k % across == 0:
            ax.set_ylabel("momentum τ")
        if k + across >= len(shown):
            ax.set_xlabel("images a batch $n_t$")
    if len(shown) > 1:
        letter(shown)
    return figure


def _cells(ax: Axes, rows: pl.DataFrame, taus: list[float], sizes: list[int]) -> None:
    rows = rows.drop_nulls("mean")
    values = rows["mean"].to_numpy()
    low, span = (values.min(), np.ptp(values)) if len(values) else (0.0, 0.0)
    colours = ramp(SHADES)
    columns = ("tau", "samples", "mean", "fewer")
    for tau, size, value, fewer in rows.select(columns).iter_rows():
        shade = round((SHADES - 1) * (value - low) / span) if span > 0 else SHADES - 1
        at = (sizes.index(size), taus.index(tau))
        corner = (at[0] - 0.5, at[1] - 0.5)
        ax.add_patch(Rectangle(corner, 1, 1, facecolor=colours[shade], edgecolor="white"))
        ink = "white" if shade < 0.7 * SHADES else INK
        weight = "bold" if value == low + span else "normal"
        words = f"{value:.1f}" + (f"\nn = {fewer}" if fewer else "")
        style = {"ha": "center", "va": "center", "fontsize": 8, "linespacing": 1.0}
        ax.text(*at, words, color=ink, weight=weight, **style)
    ax.set_xlim(-0.5, len(sizes) - 0.5)
    ax.set_ylim(-0.5, len(taus) - 0.5)
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
