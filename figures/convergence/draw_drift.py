"""Figures of what is behind Theorem III.4: the drift of its kernels, the width it asks for."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from figures.convergence.draw_dynamics import DASHES, NETS, thousands
from figures.convergence.drift_tables import DriftSummary
from figures.convergence.sources import data_name
from figures.selection import of
from figures.style import INK, MUTED, letter, look, panels

PARTS = {"V": "V", "G": "G", "Lambda": r"\Lambda"}
QUANTITIES = {
    "start": r"$\|K(0)-K^\infty\|_2\,/\,\|K^\infty\|_2$",
    "movement": r"$\max_t\|K(t)-K(0)\|_2\,/\,\|K^\infty\|_2$",
}
MARKERS = {"f": "s", "f*": "o"}


def drawings(summary: DriftSummary) -> dict[str, Callable[[], Figure]]:
    """Name the figures that the records allow."""
    figures: dict[str, Callable[[], Figure]] = {}
    for source in summary.spread["data"].unique(maintain_order=True):
        figures[f"drift_{source}"] = lambda source=source: drift(
            summary.spread, summary.slopes, source
        )
    if summary.along.height:
        figures["along"] = lambda: along(summary.along)
    if summary.asked.height:
        figures["asked"] = lambda: asked(summary.asked)
    return figures


def drift(spread: pl.DataFrame, slopes: pl.DataFrame, source: str) -> Figure:
    """Draw over m how far V, G, Λ are from infinite width at the start, and how far they move."""
    rows = of(spread, data=source)
    quantities = [name for name in QUANTITIES if name in rows["quantity"]]
    figure, axes = panels(
        len(quantities), len(PARTS), width="double", ratio=0.1 + 0.27 * len(quantities), sharex=True
    )
    alphas = sorted(rows["alpha"].unique().to_list())
    dashes = dict(zip(alphas, cycle(DASHES), strict=False))
    for i, quantity in enumerate(quantities):
        for j, (part, name) in enumerate(PARTS.items()):
            ax = axes[i * len(PARTS) + j]
            shown = of(rows, quantity=quantity, part=part)
            # At the start only Λ depends on α.
            few = alphas if quantity == "movement" or part == "Lambda" else alphas[:1]
            for alpha in few:
                for net, policy in NETS.items():
                    one = of(shown, alpha=alpha, net=net).sort("width")
                    style: dict[str, Any] = {"color": look(policy).colour}
                    style |= {"linestyle": dashes[alpha], "marker": MARKERS[net]}
                    ax.fill_between(one["width"], one["low"], one["high"], **look(policy).band())
                    ax.plot(one["width"], one["value"], markeredgecolor="white", **style)
            _guide(ax, shown)
            _widths(ax, rows["width"].unique().to_list())
            _room(ax, shown)
            ax.set_title(f"$K={name}$" if i == 0 else "")
            found = of(slopes, data=source, quantity=quantity, part=part, alpha=few[-1])
            _slope_words(ax, found)
            if i == len(quantities) - 1:
                ax.set_xlabel("width $m$")
            if j == 0:
                ax.set_ylabel(QUANTITIES[quantity])
    handles = [net_handle(net) for net in NETS]
    handles += [
        Line2D([], [], color=MUTED, linestyle=dash, label=f"$\\alpha = {alpha:g}$")
        for alpha, dash in dashes.items()
    ]
    handles.append(Line2D([], [], color=INK, linewidth=0.8, linestyle=":", label="$m^{-1/2}$"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    letter(axes)
    figure.suptitle(data_name(source) + setting(rows), fontsize=9)
    return figure


def _slope_words(ax: Axes, slopes: pl.DataFrame) -> None:
    """Each net's slope with its interval, at the upper right, where curves that fall leave room."""
    for k, row in enumerate(slopes.sort("net").iter_rows(named=True)):
        text = f"{row['mean']:.2f}"
        if row["lower"] is not None:
            text += f" [{row['lower']:.2f}, {row['upper']:.2f}]"
        ax.annotate(
            text.replace("-", "−"),
            (1.0, 1.0),
            xycoords="axes fraction",
            xytext=(-1, -9 - 10 * k),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=look(NETS[row["net"]]).colour,
        )


def net_handle(net: str) -> Line2D:
    """A legend's entry for f or f*."""
    style = look(NETS[net])
    return Line2D(
        [],
        [],
        color=style.colour,
        marker=MARKERS[net],
        markeredgecolor="white",
        linestyle="-",
        label=style.label,
    )


def cell_title(source: str, alpha: float, columns: int) -> str:
    """Source and α, in two lines where panels are narrow."""
    if columns <= 2:
        return f"{data_name(source)}, α = {alpha:g}"
    # A name of one's own takes two lines itself.
    return f"{data_name(source)},\nα = {alpha:g}".replace("points of ", "points of\n")


def setting(rows: pl.DataFrame) -> str:
    """The sizes of a study, to follow the name of its points."""
    return "".join(f", {text}" for text in rows["setting"].drop_nulls().unique().sort())


def _guide(ax: Axes, rows: pl.DataFrame) -> None:
    """A line m^(−1/2) below all that is shown."""
    ends = rows["width"].min(), rows["width"].max()
    if rows.is_empty() or ends[0] == ends[1]:
        return
    low = float((rows["low"] * rows["width"].sqrt()).min()) * 0.8  # type: ignore[arg-type]
    ax.plot(ends, [low / end**0.5 for end in ends], color=INK, linewidth=0.8, linestyle=":")  # type: ignore[operator]


def _room(ax: Axes, rows: pl.DataFrame) -> None:
    """Leaves room above the curves for the slopes, and names powers of ten alone if two show."""
    bottom, top = ax.get_ylim()
    top = max(top, float(rows["high"].max()) * (top / bottom) ** 0.3)  # type: ignore[arg-type]
    ax.set_ylim(bottom, top)
    if np.floor(np.log10(top)) > np.ceil(np.log10(bottom)):
        ax.yaxis.set_minor_formatter(NullFormatter())


def _widths(ax: Axes, widths: list[int]) -> None:
    ticks = sorted(widths)
    ax.set(xscale="log", yscale="log")
    ticks = ticks if len(ticks) < 5 else ticks[::2]
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels([f"{tick:,}" for tick in ticks])


def along(table: pl.DataFrame) -> Figure:
    """Draw over the steps ‖G(t) − G∞‖ and λ_min(Λ(t))/(e₀/2), for the narrowest and widest nets."""
    cells = cells_of(table)
    widths = sorted(table["width"].unique().to_list())
    dashes = {widths[0]: DASHES[2], widths[-1]: DASHES[0]}
    figure, axes = panels(2, len(cells), width="double", ratio=0.56, sharex=True, sharey="row")
    for j, (source, alpha) in enumerate(cells):
        for i, quantity in enumerate(("distance", "eigenvalue")):
            ax = axes[i * len(cells) + j]
            for net, policy in NETS.items():
                for width, dash in dashes.items():
                    rows = of(table, data=source, alpha=alpha, quantity=quantity, net=net)
                    rows = of(rows, width=width).sort("round")
                    colour, style = look(policy).colour, look(policy).band()
                    ax.plot(rows["round"], rows["value"], color=colour, linestyle=dash)
                    ax.fill_between(rows["round"], rows["low"], rows["high"], **style)
            ax.set(yscale="log")
            if i == 0:
                ax.set_title(cell_title(source, alpha, len(cells)))
            else:
                ax.axhline(1.0, color=INK, linewidth=0.8, linestyle=":")
                ax.set_xlabel("step $t$")
    axes[0].set_ylabel(r"$\|G(t)-G^\infty\|_2\,/\,\|G^\infty\|_2$")
    axes[len(cells)].set_ylabel(r"$\lambda_{\min}(\Lambda(t))\,/\,(e_0/2)$")
    handles = [Line2D([], [], color=look(p).colour, label=look(p).label) for p in NETS.values()]
    handles += [
        Line2D([], [], color=MUTED, linestyle=dash, label=f"$m = {thousands(width)}$")
        for width, dash in dashes.items()
    ]
    handles.append(
        Line2D([], [], color=INK, linewidth=0.8, linestyle=":", label="what the theorem needs")
    )
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    letter(axes)
    return figure


def cells_of(table: pl.DataFrame) -> list[tuple[str, float]]:
    """Every source, in the order of the records, with its α in theirs."""
    cells = table.select("data", "alpha").unique(maintain_order=True).rows()
    sources = [source for source, _ in cells]
    return sorted(cells, key=lambda cell: (sources.index(cell[0]), cell[1]))


def asked(table: pl.DataFrame) -> Figure:
    """Draw per α the width that the theorem asks for, beside the largest run and what fits."""
    sources = table["data"].unique(maintain_order=True).to_list()
    figure, axes = panels(1, len(sources), width="double", ratio=0.36, sharex=True, sharey=True)
    alphas = sorted(table["alpha"].unique().to_list(), reverse=True)
    own: dict[str, dict[str, Any]] = {
        "largest": {"color": INK, "marker": "D", "linestyle": "none"},
        "affordable": {"color": INK, "marker": "|", "markersize": 11, "markeredgewidth": 1.2},
    }
    own["affordable"]["linestyle"] = "none"
    for ax, source in zip(axes, sources, strict=True):
        rows = of(table, data=source)
        for y, alpha in enumerate(alphas):
            for row in of(rows, alpha=alpha).iter_rows(named=True):
                colour, at = (
                    look(NETS[row["net"]]).colour,
                    y + (0.15 if row["net"] == "f" else -0.15),
                )
                ax.plot([row["low"], row["high"]], [at, at], color=colour, linewidth=1.0)
                ax.plot(row["asked"], at, color=colour, marker=MARKERS[row["net"]])
                for name, style in own.items():
                    ax.plot(row[name], y, **style)
        ax.set(xscale="log", xlabel="width $m$", ylim=(-0.6, len(alphas) - 0.4))
        ax.grid(True, axis="x")
        ax.grid(False, axis="y")
        ax.set_yticks(range(len(alphas)), [f"$\\alpha = {alpha:g}$" for alpha in alphas])
        ax.set_title(data_name(source) + setting(rows))
    words = ("largest run here", f"fits {table['memory'].drop_nulls().first()} of memory")
    handles = [
        Line2D([], [], label=label, **style)
        for label, style in zip(words, own.values(), strict=True)
    ]
    handles += [net_handle(net) for net in NETS]
    for handle in handles[2:]:
        handle.set_label(f"asked for, {handle.get_label()}")
    figure.legend(
        handles=handles, loc="outside lower center", ncols=4, handlelength=1.6, columnspacing=1.2
    )
    letter(axes)
    return figure
