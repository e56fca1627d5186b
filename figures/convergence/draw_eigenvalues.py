"""Figures of Corollary III.6: smallest and largest eigenvalues over sizes, and the spectra."""

import math
from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from matplotlib.ticker import FixedLocator, NullLocator

from figures.convergence.log_axes import (
    EQUAL,
    NO_RATIO,
    SOME_RATIOS,
    above_rounding,
    above_zero,
    from_zero,
    log_or_note,
    note,
    over,
    readable_ticks,
)
from figures.convergence.sources import client_labels, data_name
from figures.selection import of
from figures.style import DOUBLE, INK, Look, legend_below, letter, look, looks, panels

NETS = {"": "aggregated", "_star": "client_specific"}
TAIL = 50
MOST_NAMED = 7


def smallest_eigenvalues(summary: pl.DataFrame, draws: pl.DataFrame) -> Figure:
    """Draw λ_min over N and over M, its ratio in every draw, and λ_max: median and range."""
    sources = summary["data"].unique(maintain_order=True).to_list()
    figure, axes = panels(len(sources), 4, width="double", ratio=0.26 * len(sources) + 0.06)
    for row, source in enumerate(sources):
        part = of(summary, data=source)
        n = part["clients"].mode().max()
        over_m = of(part, clients=n).sort("samples")
        middle = part.group_by("samples").len().sort("len", "samples")["samples"].to_list()[-1]
        over_n = of(part, samples=middle).sort("clients")
        first, second, third, fourth = axes[4 * row : 4 * row + 4]
        _over(first, over_n, "clients", "min")
        first.set(xlabel="clients $N$", ylabel=f"{_short(source)}\n" + r"$\lambda_{\min}$")
        first.set_title(f"$M = {middle}$")
        _over(second, over_m, "samples", "min")
        second.set(xlabel="samples a client $M$", ylabel=r"$\lambda_{\min}$")
        _ratio(third, of(draws, data=source, clients=n), over_m)
        third.set(ylabel=r"$\lambda_{\min}(G^{*\infty})/\lambda_{\min}(G^{\infty})$")
        _over(fourth, over_m, "samples", "max")
        fourth.set(ylabel=r"$\lambda_{\max}$")
        for ax in (second, third, fourth):
            ax.set(xlabel="samples a client $M$", title=f"$N = {n}$")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    letter(axes)
    return figure


def _short(source: str) -> str:
    # Beside a low panel a name of one's own takes two lines.
    return data_name(source).replace("points of ", "points of\n")


def _over(ax: Axes, rows: pl.DataFrame, by: str, which: str) -> None:
    lines = []
    for suffix, policy in NETS.items():
        name, style = f"{which}{suffix}", look(policy)
        values = above_zero(rows[name], _certain(rows, name))
        ax.plot(rows[by], values, **{**style.line(), "label": kernel(suffix)})
        # On a logarithmic axis a band from 0 reaches the bottom; one without a line is none.
        low = above_zero(rows[f"{name}_low"], _certain(rows, f"{name}_low")).fill_nan(0.0)
        ax.fill_between(rows[by], low, above_zero(rows[f"{name}_high"], values), **style.band())
        lines.append(values)
    over(ax, rows[by])
    log_or_note(ax, lines)
    if lines[0].equals(lines[1]) and not lines[0].is_nan().any():
        note(ax, EQUAL)
    _ticks(ax, rows[by].to_list())


def _certain(rows: pl.DataFrame, name: str) -> pl.Series | None:
    return rows.get_column(f"{name}_certain", default=None)


def _ratio(ax: Axes, draws: pl.DataFrame, medians: pl.DataFrame) -> None:
    colour = look("client_specific").colour
    ax.plot(
        draws["samples"], draws["ratio"], linestyle="none", marker=".", color=colour, alpha=0.35
    )
    ax.plot(medians["samples"], medians["ratio"], color=colour)
    ax.axhline(1.0, color=INK, linewidth=0.8, linestyle=":")
    over(ax, medians["samples"])
    known = draws["ratio"].drop_nulls().to_list()
    if not known:
        ax.set(yticks=[1])
        note(ax, NO_RATIO)
    elif max(known) > 100 * min(known):
        ax.set(yscale="log")
    if known and draws["ratio"].null_count():
        note(ax, SOME_RATIOS)
    _ticks(ax, medians["samples"].to_list())


def _ticks(ax: Axes, values: list[int]) -> None:
    wanted = sorted(set(values), reverse=True)
    span = math.log(wanted[0] / wanted[-1]) or 1.0
    # A digit takes about a twentieth of the axis: labels that would touch are left out.
    apart = 0.06 * len(str(wanted[0]))
    kept: list[int] = []
    for value in wanted:
        if not kept or math.log(kept[-1] / value) > apart * span:
            kept.append(value)
    ax.xaxis.set_major_locator(FixedLocator(kept))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels([str(value) for value in kept])
    readable_ticks(ax)


def kernel(suffix: str) -> str:
    """Name a kernel in a legend."""
    return r"$G^{*\infty}$, client-specific BN" if suffix else r"$G^{\infty}$, aggregated BN"


def spectra(table: pl.DataFrame, clients: list[str]) -> Figure:
    """Draw all eigenvalues by rank, and the smallest with the client that each belongs to."""
    figure, (whole, tail) = panels(1, 2, width="double", ratio=0.4)
    lines: list[pl.Series] = []
    for suffix, policy in NETS.items():
        values = of(table, variant="G*" if suffix else "G")
        line: dict[str, Any] = {**look(policy).line(markers=False), "label": kernel(suffix)}
        lines.append(above_rounding(values["value"], values.height))
        whole.plot(values["rank"], lines[-1], **line)
    # Few ranks have no powers of ten between them.
    last = max(table["rank"].to_list())
    if last < 20:
        whole.set_xlim(0.4, last + 0.6)
    else:
        over(whole, table["rank"])
    whole.set(xlabel="rank", ylabel="eigenvalue")
    whole.margins(y=0.1)
    log_or_note(whole, lines)
    if lines[0].equals(lines[1]) and not lines[0].is_nan().any():
        note(whole, EQUAL)
    readable_ticks(whole)
    sources = ", ".join(data_name(name) for name in table["data"].unique(maintain_order=True))
    whole.set_title(f"{sources}: all eigenvalues")
    whole.legend(loc="best")
    smallest = of(table, variant="G").sort("value").head(TAIL)
    line = {**look("aggregated").line(markers=False), "label": kernel("")}
    tail.plot(range(1, smallest.height + 1), smallest["value"], **line)
    star = of(table, variant="G*").sort("value").head(TAIL)
    star = star.with_columns(place=pl.int_range(1, pl.len() + 1))
    there = star["client"].unique(maintain_order=True).to_list()
    named = [name for name in clients if name in there[:MOST_NAMED]]
    styles = looks(named)
    labels = client_labels(named, {n: s.label for n, s in styles.items() if s.label != n})
    for name, style in styles.items():
        _clients(tail, of(star, client=name), style, f"client {labels[name]}")
    others = of(star, client=there[MOST_NAMED:])
    if others.height:
        _clients(tail, others, look("local"), "other clients")
    tail.set(xlabel="rank from the smallest", ylabel="eigenvalue")
    from_zero(tail)
    tail.set_title(f"{sources}: the {smallest.height} smallest")
    legend_below(figure, (tail,), _columns(labels.values()))
    letter((whole, tail))
    return figure


def _columns(labels: Iterable[str]) -> int:
    # An entry has to fit its share of the width, with the kernel's name and the mark before it.
    size = FontProperties(size=mpl.rcParams["legend.fontsize"]).get_size_in_points()
    paths = (TextPath((0, 0), label, size=size) for label in labels)
    inches = [path.get_extents().width / 72 for path in paths]
    return max(1, min(3, int(DOUBLE / (max(inches, default=0.0) + 1.4))))


def _clients(ax: Axes, rows: pl.DataFrame, style: Look, label: str) -> None:
    # Hollow, so that the line of G∞ shows through.
    points = {**style.points(), "markerfacecolor": "none", "markeredgewidth": 1.0}
    # Marks at 0 stand whole on the axis.
    points |= {"clip_on": False, "zorder": 3}
    points |= {"markeredgecolor": style.colour, "label": f"$G^{{*\\infty}}$, {label}"}
    ax.plot(rows["place"], rows["value"], **points)
