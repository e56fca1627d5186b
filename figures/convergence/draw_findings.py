"""Figures of where Corollary III.6 stops: a pooled S, and the full kernel."""

from collections.abc import Callable
from textwrap import fill
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator

from figures.convergence.draw_step_sizes import spread, step_sizes
from figures.convergence.findings_tables import Findings
from figures.convergence.sources import data_name, plain
from figures.selection import of
from figures.style import INK, MUTED, letter, look, panels, ramp

FAILS = "#cc3311"  # where the inequality fails: no method has this colour
DASHES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1, 1.4)))
STAR: dict[str, Any] = {"marker": "*", "color": INK, "markersize": 8, "linestyle": "none"}
SHADE: dict[str, Any] = {"color": FAILS, "alpha": 0.12, "linewidth": 0}
MASKED = r"$\lambda_{\min}(G^{*\infty})/\lambda_{\min}(G^{\infty})$"
FULL = r"$\lambda_{\min}(\Lambda^{*\infty})/\lambda_{\min}(\Lambda^{\infty})$"
COVARIANCES = {"isotropic": r"$\lambda_i I$", "own": "$S_i$"}


def findings_drawings(found: Findings) -> dict[str, Callable[[], Figure]]:
    """Name the figures that the records allow."""
    figures: dict[str, Callable[[], Figure]] = {}
    read = of(found.readings, split="smallest").drop_nulls("ratio")
    for name, variants, make in (
        ("pooled", ["masked", "pooled"], pooled),
        ("full_kernel", "full", full_kernel),
    ):
        if found.limits.height or of(read, variant=variants).height:
            figures[name] = lambda make=make: make(found)
    if found.gains.height:
        figures["step_sizes"] = lambda: step_sizes(found.gains)
    return figures


def pooled(found: Findings) -> Figure:
    """Draw where a pooled S breaks the corollary for two points, and what draws of data do."""
    smallest = of(found.readings, split="smallest", variant=["masked", "pooled"])
    smallest = smallest.drop_nulls("ratio")
    limits = of(found.limits, metric="pooled_threshold")
    figure, axes, handles = _figure([limits.height > 0, smallest.height > 0])
    rest = iter(axes)
    if limits.height:
        ax = next(rest)
        handles = _limits(ax, limits, "$p_1 = {}$", "0.5")
        ax.plot(90, 0.1, **STAR)
        handles.append(Line2D([], [], **STAR, label=r"$e_1$, $e_2$, $\lambda = 1$ and $0.1$"))
        ax.set(ylim=(0, 1), xlim=(0, 180), ylabel=r"$\lambda_2/\lambda_1$")
        ax.set_title(r"two points, one per client, $S_i = \lambda_i I$")
    if smallest.height:
        handles += _strips(next(rest), smallest)
    _legend(figure, handles)
    letter(axes)
    return figure


def _figure(there: list[bool]) -> tuple[Figure, list[Axes], list[Any]]:
    """A figure with a panel for everything that is there."""
    count = sum(there)
    wide = count > 1
    figure, axes = panels(
        1, count, width="double" if wide else "column", ratio=0.44 if wide else 1.0
    )
    return figure, axes, []


def _legend(figure: Figure, handles: list[Any]) -> None:
    handles = [*handles, Patch(**SHADE, label="the inequality fails")]
    if figure.get_figwidth() < 5:
        columns = 2
    else:
        columns = -(-len(handles) // 2) if len(handles) > 6 else len(handles)
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        handlelength=1.8,
        columnspacing=1.3,
    )


def _limits(ax: Axes, rows: pl.DataFrame, label: str, shaded: str) -> list[Any]:
    """The thresholds over the angle, and the region below one of them shaded."""
    handles = []
    variants = rows["variant"].unique(maintain_order=True).to_list()
    for colour, variant in zip(ramp(len(variants)), variants, strict=True):
        part = of(rows, variant=variant).sort("parameter")
        line = {"color": colour, "linewidth": 1.8 if variant == shaded else 1.1}
        ax.plot(part["parameter"], part["value"], **line)
        handles.append(Line2D([], [], **line, label=label.format(variant)))
        if variant == shaded:
            ax.fill_between(part["parameter"], 0, part["value"], **SHADE)
    ax.set_xlabel(r"angle $\theta$ between the points, degrees")
    ax.xaxis.set_major_locator(FixedLocator(range(0, 181, 30)))
    return handles


def _strips(ax: Axes, rows: pl.DataFrame) -> list[Any]:
    """λ_min(G*)/λ_min(G) in every draw: the blocks of one kernel, and S pooled against S_i."""
    groups = rows.select("data", "covariances").unique(maintain_order=True)
    colour, names = look("client_specific").colour, []
    styles: dict[str, dict[str, Any]] = {
        "masked": {"marker": "o", "color": colour, "markerfacecolor": "none"},
        "pooled": {"marker": "o", "color": colour, "markeredgecolor": "white"},
        "failed": {"marker": "X", "color": FAILS, "markeredgecolor": "white", "zorder": 3},
    }
    styles["masked"] |= {"markeredgewidth": 0.9}
    styles["failed"] |= {"markersize": 6}
    for k, group in enumerate(groups.iter_rows(named=True)):
        for j, variant in enumerate(("masked", "pooled")):
            part = of(rows, **group, variant=variant).with_row_index("place")
            spread_by = 0.34 / max(1, part.height - 1)
            start = k + (-0.4, 0.06)[j]
            failed = pl.col("verdict") == "violated"
            for kind, chosen in ((variant, part.filter(~failed)), ("failed", part.filter(failed))):
                place = start + spread_by * chosen["place"].to_numpy()
                ax.plot(place, chosen["ratio"].to_numpy(), linestyle="none", **styles[kind])
        name = fill(
            plain(group["data"]).replace("gaussian", "Gaussian"), 12, max_lines=2, placeholder="…"
        )
        names.append(f"{name},\n{COVARIANCES[group['covariances']]}")
    ax.xaxis.set_major_locator(FixedLocator(range(len(names))))
    ax.set_xticklabels(names)
    ax.set(xlim=(-0.6, len(names) - 0.4), ylabel=MASKED, title="draws of data")
    _shade(ax)
    labels = {"masked": r"$G^\infty$ with $S_i$", "pooled": r"$G^\infty$ with pooled $S$"}
    return [
        Line2D([], [], linestyle="none", **styles[kind], label=label)
        for kind, label in labels.items()
    ]


def full_kernel(found: Findings) -> Figure:
    """Draw the α below which Λ breaks the corollary, one pair over α, and draws of data over α."""
    read = of(found.readings, split="smallest", variant="full").drop_nulls("ratio")
    if of(read, covariances="own").height:
        read = of(read, covariances="own")
    limits = of(found.limits, metric="full_threshold")
    figure, axes, handles = _figure([limits.height > 0, limits.height > 0, read.height > 0])
    rest = iter(axes)
    if limits.height:
        ax = next(rest)
        handles = _limits(ax, limits, "$d = {}$", "10")
        ax.plot(120, 1.0, **STAR)
        handles.append(Line2D([], [], **STAR, label=r"$120°$, $d = 10$, $\alpha = 1$"))
        ax.set(yscale="log", ylim=(0.3, 1000), xlim=(60, 180), ylabel=r"scale $\alpha$")
        ax.set_title(r"$\alpha^{*}$, two points")
        _pair(next(rest), found.over_alpha, limits)
    if read.height:
        _over_alpha(next(rest), read)
    _legend(figure, handles)
    letter(axes)
    return figure


def _pair(ax: Axes, rows: pl.DataFrame, limits: pl.DataFrame) -> None:
    """λ_min(Λ*) by λ_min(Λ) of the reference pair."""
    whole, own = (
        of(rows, variant=name).sort("parameter") for name in ("aggregated", "client_specific")
    )
    alphas, ratio = whole["parameter"], own["value"] / whole["value"]
    ax.plot(alphas, ratio, color=look("client_specific").colour)
    near = int((alphas - 1.0).abs().arg_min() or 0)
    ax.plot(alphas[near], ratio[near], **STAR)
    for limit in of(limits, variant="10", parameter=120.0)["value"]:
        ax.axvline(limit, color=MUTED, linewidth=0.8, linestyle="--")
        ax.annotate(
            f"$\\alpha^{{*}} = {limit:.3f}$",
            (limit, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-4, -9),
            textcoords="offset points",
            ha="right",
            fontsize=8,
        )
    ax.set(xscale="log", xlabel=r"scale $\alpha$", ylabel=FULL)
    ax.set_title(r"two points, $120°$, $d = 10$")
    _shade(ax)


def _shade(ax: Axes) -> None:
    """Shade where the ratio is below 1."""
    ax.axhline(1.0, color=INK, linewidth=0.8, linestyle=":")
    low, high = ax.get_ylim()
    low = min(low, 1 - 0.06 * (high - 1))
    ax.set_ylim(low, high)
    ax.axhspan(low, 1.0, **SHADE)


def _over_alpha(ax: Axes, rows: pl.DataFrame) -> None:
    """Median and range over draws, for every source."""
    table = rows.group_by("data", "parameter", maintain_order=True).agg(*spread("ratio"))
    style = look("client_specific")
    for k, source in enumerate(table["data"].unique(maintain_order=True)):
        part = of(table, data=source).sort("parameter")
        line = {"color": style.colour, "linestyle": DASHES[k % len(DASHES)]}
        name = fill(data_name(source), 18, max_lines=2, placeholder="…")
        ax.plot(part["parameter"], part["ratio"], **line, label=name)
        ax.fill_between(part["parameter"], part["low"], part["high"], **style.band())
    ax.set(xscale="log", xlabel=r"scale $\alpha$", ylabel=FULL, title="draws of data")
    ax.legend(loc="upper left", handlelength=2.2)
    _shade(ax)
