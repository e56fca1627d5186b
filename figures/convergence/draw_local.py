"""Figures beyond Theorem III.4: local steps and sampled clients."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from figures.convergence.draw_drift import MARKERS, cell_title, cells_of, net_handle, setting
from figures.convergence.draw_dynamics import DASHES, FLOOR, NETS, thousands
from figures.convergence.drift_tables import DriftSummary
from figures.convergence.sources import data_name
from figures.selection import of
from figures.style import MUTED, letter, look, panels


def drawings(summary: DriftSummary) -> dict[str, Callable[[], Figure]]:
    """Name the figures that the records allow."""
    figures: dict[str, Callable[[], Figure]] = {}
    for source in summary.federated["data"].unique(maintain_order=True):
        figures[f"local_{source}"] = lambda source=source: local(summary.federated, source)
    if summary.rates["rate"].count():
        figures["rates"] = lambda: rates(summary.rates)
    return figures


def local(table: pl.DataFrame, source: str) -> Figure:
    """Draw the squared residual over rounds, by E and participation, at the largest α."""
    rows = of(table, data=source)
    alpha = rows["alpha"].max()
    rows = of(rows, alpha=alpha, draw=rows["draw"].min(), choice="client")
    measured = of(rows, metric="relative_residual")
    fractions = sorted(measured["fraction"].unique().to_list(), reverse=True)
    every = sorted(measured["steps"].unique().to_list())
    figure, axes = panels(
        len(fractions), len(every), width="double", ratio=0.52, sharex=True, sharey=True
    )
    for i, fraction in enumerate(fractions):
        for j, steps in enumerate(every):
            ax = axes[i * len(every) + j]
            for net, policy in NETS.items():
                colour = look(policy).colour
                promised = of(rows, metric="promised", net=net).sort("round")
                dashed: dict[str, Any] = {"linestyle": (0, (6, 2)), "linewidth": 0.9}
                ax.plot(promised["round"], promised["value"], color=colour, **dashed)
                one = of(measured, net=net, fraction=fraction, steps=steps).sort("round")
                ax.plot(one["round"], one["value"].clip(lower_bound=FLOOR), color=colour)
            ax.set(yscale="log")
            ax.set_title(f"$E = {steps}$" if i == 0 else "")
            if j == 0:
                who = "everyone" if fraction == 1 else f"{100 * fraction:g} % of the clients"
                ax.set_ylabel(who + "\n" + r"$\|f-y\|^2/\|f(0)-y\|^2$")
            if i == len(fractions) - 1:
                ax.set_xlabel("round")
    handles = [Line2D([], [], color=look(p).colour, label=look(p).label) for p in NETS.values()]
    handles.append(Line2D([], [], color=MUTED, label="measured"))
    words = r"$(1-\eta e_0/2)^t$: the theorem is for $E=1$, everyone"
    handles.append(Line2D([], [], color=MUTED, linestyle=(0, (6, 2)), linewidth=0.9, label=words))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, columnspacing=1.2)
    letter(axes)
    width = f", $\\alpha = {alpha:g}$, $m = {thousands(measured['width'].max())}$"
    figure.suptitle(data_name(source) + setting(measured) + width, fontsize=9)
    return figure


def rates(table: pl.DataFrame) -> Figure:
    """Draw over E the mean decay a round and a local step, in decades."""
    cells = cells_of(table)
    figure, axes = panels(2, len(cells), width="double", ratio=0.62, sharex=True, sharey="row")
    kinds = _kinds(table)
    for j, (source, alpha) in enumerate(cells):
        here = of(table, data=source, alpha=alpha)
        for i, column in enumerate(("rate", "step_rate")):
            ax = axes[i * len(cells) + j]
            for net, policy in NETS.items():
                for (choice, fraction), (dash, _) in kinds.items():
                    rows = of(here, net=net, choice=choice, fraction=fraction).sort("steps")
                    rows = rows.drop_nulls("rate").filter(pl.col("rate") > 0)
                    style: dict[str, Any] = {"color": look(policy).colour, "linestyle": dash}
                    ax.plot(rows["steps"], rows[column], marker=MARKERS[net], **style)
            ax.set(xscale="log", yscale="log")
            every = sorted(table["steps"].unique().to_list())
            ax.xaxis.set_major_locator(FixedLocator(every))
            ax.xaxis.set_minor_locator(NullLocator())
            ax.set_xticklabels([f"{steps}" for steps in every])
            ax.yaxis.set_minor_formatter(NullFormatter())
            if i == 0:
                ax.set_title(cell_title(source, alpha, len(cells)))
            else:
                ax.set_xlabel("local steps $E$")
    axes[0].set_ylabel("decades a round")
    axes[len(cells)].set_ylabel("decades a local step")
    handles = [net_handle(net) for net in NETS]
    handles += [Line2D([], [], linestyle="none", label=" ")] * (len(kinds) - len(handles))
    handles += [
        Line2D([], [], color=MUTED, linestyle=dash, label=label) for dash, label in kinds.values()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    letter(axes)
    return figure


def _kinds(table: pl.DataFrame) -> dict[tuple[str, float], tuple[Any, str]]:
    """Dash and label of every participation and step size."""
    fractions = of(table, choice="client")["fraction"].unique().sort(descending=True).to_list()
    kinds: dict[tuple[str, float], tuple[Any, str]] = {}
    for fraction, dash in zip(fractions, cycle(DASHES[:2]), strict=False):
        who = "everyone" if fraction == 1 else f"{100 * fraction:g} % of the clients"
        kinds["client", fraction] = dash, f"{who}, $\\eta$ that every client's loss admits"
    if of(table, choice="server").height:
        kinds["server", 1.0] = DASHES[2], r"everyone, $\eta = 1/\lambda_{\max}(\Lambda(0))$"
    return kinds
