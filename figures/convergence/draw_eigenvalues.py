"""Figures of Corollary III.6: smallest and largest eigenvalues over sizes, and the spectra."""

from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from figures.convergence.frame import of
from figures.style import INK, MUTED, letter, look, looks, panels

NETS = {"": "aggregated", "_star": "client_specific"}


def data_name(name: str) -> str:
    """Name a source of points as a reader would."""
    return "Gaussian clients" if name == "gaussian" else f"{name} images"


def smallest_eigenvalues(summary: pl.DataFrame) -> Figure:
    """Draw λ_min over N and over M, and λ_max over M: median and range over the draws."""
    sources = summary["data"].unique(maintain_order=True).to_list()
    figure, axes = panels(len(sources), 3, width="double", ratio=0.33 * len(sources) + 0.04)
    for row, source in enumerate(sources):
        part = of(summary, data=source)
        over_m = part.filter(pl.col("clients") == part["clients"].mode().max()).sort("samples")
        middle = part.group_by("samples").len().sort("len", "samples")["samples"].to_list()[-1]
        over_n = of(part, samples=middle).sort("clients")
        left, centre, right = axes[3 * row : 3 * row + 3]
        n = int(over_m["clients"][0])
        _over(left, over_n, "clients", "min")
        left.set(xlabel="clients $N$", ylabel=r"$\lambda_{\min}$")
        left.set_title(f"{data_name(source)}, $M = {middle}$")
        _over(centre, over_m, "samples", "min")
        centre.set(xlabel="samples a client $M$", ylabel=r"$\lambda_{\min}$")
        centre.set_title(f"{data_name(source)}, $N = {n}$")
        _over(right, over_m, "samples", "max")
        right.set(xlabel="samples a client $M$", ylabel=r"$\lambda_{\max}$")
        right.set_title(f"{data_name(source)}, $N = {n}$")
    axes[0].legend(loc="best")
    letter(axes)
    return figure


def _over(ax: Axes, rows: pl.DataFrame, by: str, which: str) -> None:
    for suffix, policy in NETS.items():
        name, style = f"{which}{suffix}", look(policy)
        ax.plot(rows[by], rows[name], **{**style.line(), "label": _kernel(suffix)})
        ax.fill_between(rows[by], rows[f"{name}_low"], rows[f"{name}_high"], **style.band())
    ax.set_xscale("log")
    ax.set_yscale("log")
    _ticks(ax, sorted(set(rows[by].to_list())))


def _ticks(ax: Axes, values: list[int]) -> None:
    ax.xaxis.set_major_locator(FixedLocator(values))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels([str(value) for value in values])
    ax.yaxis.set_minor_formatter(NullFormatter())


def _kernel(suffix: str) -> str:
    return r"$G^{*\infty}$, client-specific BN" if suffix else r"$G^{\infty}$, aggregated BN"


def spectra(table: pl.DataFrame, clients: list[str]) -> Figure:
    """Draw all eigenvalues by rank, and the smallest fifty with the client each belongs to."""
    figure, (whole, tail) = panels(1, 2, width="double", ratio=0.4)
    for suffix, policy in NETS.items():
        values = of(table, variant="G*" if suffix else "G")
        style: dict[str, Any] = {**look(policy).line(markers=False), "label": _kernel(suffix)}
        whole.plot(values["rank"], values["value"], **style)
    whole.set(xscale="log", yscale="log", xlabel="rank", ylabel="eigenvalue")
    whole.set_title("all eigenvalues")
    whole.legend(loc="lower left")
    shown = 50
    smallest = of(table, variant="G").sort("value").head(shown)
    ranks = range(1, smallest.height + 1)
    tail.plot(ranks, smallest["value"], color=look("aggregated").colour, label=_kernel(""))
    star = of(table, variant="G*").sort("value").head(shown)
    star = star.with_columns(place=pl.int_range(1, pl.len() + 1))
    for name, style in looks(clients).items():
        own = of(star, client=name)
        if own.height:
            points = {**style.points(), "label": f"$G^{{*\\infty}}$, client {style.label}"}
            tail.plot(own["place"], own["value"], **points)
    tail.set(xlabel="rank from the smallest", ylabel="eigenvalue", yscale="log")
    tail.yaxis.set_minor_formatter(NullFormatter())
    tail.set_title(f"the smallest {shown}")
    tail.legend(loc="lower right")
    letter((whole, tail))
    return figure


__all__ = ["INK", "MUTED", "data_name", "smallest_eigenvalues", "spectra"]
