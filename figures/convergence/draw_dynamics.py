"""Figures of f and f*: the decay against its bound, the regimes of α, the effect of the width."""

import math
from itertools import cycle
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from figures.convergence.draw_eigenvalues import data_name
from figures.convergence.log_axes import above_zero, log_or_note, over
from figures.selection import of
from figures.style import INK, MUTED, Look, legend_below, letter, look, panels, ramp

NETS = {"f": "aggregated", "f*": "client_specific"}
CHOICES = {"common": r"one common $\eta$", "own": r"each its largest $\eta$"}
FLOOR = 1e-16
LINES: tuple[tuple[str, Any, float, str], ...] = (
    ("squared_residual", "-", 1.3, "measured"),
    ("bound", (0, (6, 2)), 0.9, "bound of the theorem"),
    ("linearised", (0, (1, 1.4)), 2.2, "linearised at $t=0$"),
)
DASHES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1, 1.4)))


def decay(curves: pl.DataFrame, source: str) -> Figure:
    """Draw the squared residual of f and f*, its linearised prediction and its bound, over α."""
    rows = of(curves, data=source)
    rows = of(rows, width=rows["width"].max())
    rows = of(rows, draw=rows["draw"].min())
    alphas = sorted(rows["alpha"].unique().to_list())
    figure, axes = panels(
        len(CHOICES), len(alphas), width="double", ratio=0.52, sharex=True, sharey=True
    )
    least = rows.filter(pl.col("metric") != "bound")["relative"].min()
    # Where little is gained in so many steps, that little fills the panel.
    floor = FLOOR if least is None or least < 1e-8 else float(least) / 3  # type: ignore[operator]
    for i, (choice, words) in enumerate(CHOICES.items()):
        for j, alpha in enumerate(alphas):
            ax = axes[i * len(alphas) + j]
            for net, policy in NETS.items():
                _curve(ax, of(rows, alpha=alpha, variant=f"{net}|{choice}"), look(policy))
            ax.set(yscale="log", ylim=(floor, 4))
            ax.set_title(f"$\\alpha = {alpha:g}$" if i == 0 else "")
            if j == 0:
                ax.set_ylabel(words + "\n" + r"$\|f(t)-y\|^2/\|f(0)-y\|^2$")
            if i == len(CHOICES) - 1:
                ax.set_xlabel("step $t$")
    handles = [Line2D([], [], color=look(p).colour, label=look(p).label) for p in NETS.values()]
    handles += [
        Line2D([], [], color=MUTED, linestyle=dash, linewidth=width, label=label)
        for _, dash, width, label in LINES
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=5, handlelength=2.0, columnspacing=1.2
    )
    letter(axes)
    setting = _setting(rows)
    figure.suptitle(f"{data_name(source)}{setting}, m = {rows['width'].max():,}", fontsize=9)
    return figure


def _setting(rows: pl.DataFrame) -> str:
    known = rows["setting"].drop_nulls().unique().sort()
    return "".join(f", {text}" for text in known)


def _curve(ax: Axes, rows: pl.DataFrame, style: Look) -> None:
    for metric, dash, width, _ in reversed(LINES):
        part = of(rows, metric=metric).sort("round")
        values = part["relative"].clip(lower_bound=FLOOR / 100)
        ax.plot(part["round"], values, color=style.colour, linestyle=dash, linewidth=width)


def regimes(table: pl.DataFrame, thresholds: pl.DataFrame, descents: pl.DataFrame) -> Figure:
    """Draw what drives the rate as α grows: V∞/α², G∞, Λ∞, and e₀/2 by either formula."""
    sources = table["data"].unique(maintain_order=True).to_list()
    figure, axes = panels(1, len(sources), width="double", ratio=0.46, sharey=True)
    for ax, source in zip(axes, sources, strict=True):
        rows = of(table, data=source).sort("alpha")
        drawn: list[pl.Series] = []
        for variant, name, factor, label in (
            ("V", "predicted", 1.0, r"$\lambda_{\min}(V^\infty)/\alpha^2$"),
            ("Lambda", "measured", 1.0, r"$\lambda_{\min}(\Lambda^\infty)$"),
            ("G", "true_kernel", 0.5, r"$e_0/2$, the network's kernel"),
            ("printed", "printed_kernel", 0.5, r"$e_0/2$, Eq. (10) as printed"),
        ):
            part, style = of(rows, variant=variant), look(name)
            line = style.line(label=False, markers=False)
            values = above_zero(factor * part["value"], part["certain"])
            ax.plot(part["alpha"], values, **line, label=label)
            drawn.append(values)
            # On a logarithmic axis a band from 0 reaches the bottom; one without a line is none.
            low = above_zero(factor * part["low"], part["low_certain"]).fill_nan(0.0)
            high = above_zero(factor * part["high"], values)
            ax.fill_between(part["alpha"], low, high, **style.band())
        found = of(descents, data=source, net="f", choice="common")
        if found.height:
            width = found["width"].max()
            found = of(found, width=width)
            measured = rf"$\lambda_{{\min}}(\Lambda(0))$, $m = {thousands(width)}$"
            points: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": INK}
            ax.plot(found["alpha"], above_zero(found["lambda_min"]), **points, label=measured)
        crossed = of(thresholds, data=source)["alpha"].drop_nulls()
        _threshold(ax, crossed)
        ax.set(xlabel=r"scale of the initialisation $\alpha$")
        over(ax, pl.concat([rows["alpha"], crossed]))
        log_or_note(ax, drawn)
        ax.set_title(f"{data_name(source)}{_setting(rows)}")
    axes[0].set_ylabel("smallest eigenvalue")
    legend_below(figure, axes, 3)
    letter(axes)
    return figure


def _threshold(ax: Axes, alphas: pl.Series) -> None:
    if alphas.is_empty():
        return
    low, high = float(alphas.to_numpy().min()), float(alphas.to_numpy().max())
    ax.axvspan(low, high, color=MUTED, alpha=0.15, linewidth=0)
    start, end = (math.log(limit) for limit in sorted(ax.dataLim.intervalx))
    late = math.log(high) > start + 0.8 * (end - start)
    ax.annotate(
        "$G$ dominates\nfrom here",
        (low if late else high, 0.02),
        xycoords=("data", "axes fraction"),
        ha="right" if late else "left",
        xytext=(-3 if late else 3, 2),
        textcoords="offset points",
        fontsize=8,
        color=MUTED,
    )


def thousands(value: object) -> str:
    """Write a whole number for mathtext, without the space it puts after a comma."""
    return f"{value:,}".replace(",", "{,}")


def widths(distances: pl.DataFrame, slacks: pl.DataFrame) -> Figure:
    """Draw over m how far training is from its linearisation, and λ_min(Λ(t)) from e₀/2."""
    figure, axes = panels(1, 2, width="double", ratio=0.42)
    alphas = sorted(slacks["alpha"].unique().to_list())
    names = slacks["data"].unique(maintain_order=True)
    sources = dict(zip(names, cycle(DASHES), strict=False))
    colours = dict(zip(alphas, ramp(len(alphas)), strict=True))
    for ax, table in zip(axes, (distances, slacks), strict=True):
        for alpha, colour in colours.items():
            for source, dash in sources.items():
                part = of(table, data=source, alpha=alpha).sort("width")
                values = above_zero(part["value"])
                ax.plot(part["width"], values, color=colour, linestyle=dash, marker="o")
        ax.set(xscale="log", yscale="log", xlabel="width $m$")
        ticks = sorted(table["width"].unique().to_list())
        ax.xaxis.set_major_locator(FixedLocator(ticks))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xticklabels([f"{tick:,}" for tick in ticks])
    axes[0].set(ylabel="decades", title="largest distance from the linearisation")
    axes[1].set(ylabel="ratio", title=r"smallest $\lambda_{\min}(\Lambda(t))$ over $e_0/2$")
    axes[1].axhline(1.0, color=INK, linewidth=0.8, linestyle=":")
    axes[1].annotate(
        "the theorem needs 1",
        (0.02, 1.0),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=8,
        color=MUTED,
    )
    handles = [
        Line2D([], [], color=colour, marker="o", label=f"$\\alpha = {alpha:g}$")
        for alpha, colour in colours.items()
    ]
    handles += [
        Line2D([], [], color=MUTED, linestyle=dash, label=data_name(source))
        for source, dash in sources.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    letter(axes)
    return figure
