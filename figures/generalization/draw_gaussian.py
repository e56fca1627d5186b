"""Figures of Gaussian clients: exact terms beside the exact risk, and what diagonal BN leaves."""

import itertools
import math
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from figures.convergence.judgement import span
from figures.generalization.draw_terms import COLOURS, EDGE
from figures.generalization.gaussian import Gaussian
from figures.generalization.names import CAPACITIES, RISKS, SETTINGS, SPREAD_OF, TEACHERS
from figures.selection import of
from figures.style import COLUMN, DOUBLE, INK, legend_below, letter, look, panels

FILL = {"capacity of the divergence": "#f7d4c4", "capacity of the risk": "#d3e1f2"}
STACKED = (*RISKS, *CAPACITIES)
SPREAD = r"spread $\kappa$ of the eigenvalues"


def exact_terms(found: Gaussian) -> Figure:
    """Draw the terms over κ: a row of panels for the features, a column for the teacher."""
    variants = [name for name in SPREAD_OF if name in found.terms["variant"]]
    teachers, down = found.teachers, len(variants)
    height = 1.45 * down + 1.05
    figure, axes = panels(
        down, len(teachers), width="double", ratio=height / DOUBLE, sharex=True, sharey=True
    )
    spreads = found.risks["parameter"].unique().sort().to_list()
    for k, ax in enumerate(axes):
        variant, teacher = variants[k // len(teachers)], teachers[k % len(teachers)]
        at = {"variant": variant, "teacher": teacher}
        _bars(ax, found.terms.filter(**at), spreads)
        _risk(ax, found.risks.filter(**at), spreads)
        words = TEACHERS.get(teacher, teacher)
        ax.set_title(f"{look(variant).label}; {words}")
        if k % len(teachers) == 0:
            ax.set_ylabel("risk, terms")
        if k >= len(axes) - len(teachers):
            ax.set_xlabel(SPREAD)
        ax.axhline(1.0, color=INK, linewidth=0.8, linestyle=":")
    axes[0].set_ylim(0, max(1.05, 1.04 * _highest(found)))
    axes[0].yaxis.set_major_locator(MaxNLocator(nbins=5))
    letter(axes)
    figure.legend(handles=_legend(found), loc="outside lower center", ncols=3, handlelength=1.8)
    return figure


def residual(found: Gaussian) -> Figure:
    """Draw the exact d_HΔH over κ, a panel for each setting: mean over draws, each draw thin."""
    settings = found.settings
    wide = len(settings) > 1
    ratio = (2.75 if wide else 2.7) / (DOUBLE if wide else COLUMN)
    figure, axes = panels(
        1, len(settings), width="double" if wide else "column", ratio=ratio, sharey=True
    )
    for ax, setting in zip(axes, settings, strict=True):
        for name in SPREAD_OF:
            _distances(ax, found, {"setting": setting, "variant": name})
        _kappa(ax, of(found.divergence, setting=setting)["parameter"].unique().sort().to_list())
        ax.set_title(SETTINGS.get(setting, setting))
    axes[0].set_ylabel(r"exact $d_{H\Delta H}$, mean over seen clients")
    top = max(0.1, 1.06 * span(found.draws["value"])[1])
    axes[0].set_ylim(-0.03 * top, top)
    if wide:
        letter(axes)
    legend_below(figure, axes, columns=3 if wide else 2)
    return figure


def _distances(ax: Axes, found: Gaussian, at: dict[str, str]) -> None:
    part = found.divergence.filter(**at).sort("parameter")
    if part.is_empty():
        return
    style = look(at["variant"])
    for _, one in found.draws.filter(**at).group_by("draw", maintain_order=True):
        line: dict[str, Any] = {"color": style.colour, "linewidth": 0.6, "alpha": 0.4}
        ax.plot(one["parameter"], one["value"], **line, zorder=1.5)
    ax.plot(part["parameter"], part["value"], **style.line(), clip_on=False)


def _bars(ax: Axes, rows: pl.DataFrame, spreads: list[float]) -> None:
    """Stack the upper ends, so that a bar ends at the bound."""
    start = dict.fromkeys(spreads, 0.0)
    for name in STACKED:
        for row in rows.filter(split=name).iter_rows(named=True):
            at = row["parameter"]
            width = max(0.0, row["end"])
            if width < 1e-6:
                continue
            colour = FILL.get(name, COLOURS[name])
            bar = {"color": colour, "bottom": start[at], "width": 0.72, **EDGE}
            ax.bar(spreads.index(at), width, **bar)
            start[at] += width
    ax.set_xticks(range(len(spreads)), [f"{spread:g}" for spread in spreads])


def _risk(ax: Axes, rows: pl.DataFrame, spreads: list[float]) -> None:
    at = [spreads.index(spread) for spread in rows["parameter"]]
    error = [
        (rows["value"] - rows["least"]).to_list(),
        (rows["most"] - rows["value"]).to_list(),
    ]
    style = look("measured").points(label=False) | {"marker": "D", "zorder": 4}
    drawn = ax.errorbar(at, rows["value"], yerr=error, elinewidth=0.9, **style)
    drawn[0].set_clip_on(False)  # a risk of zero is whole


def _highest(found: Gaussian) -> float:
    rows = found.terms.filter(pl.col("split").is_in(STACKED))
    sums = rows.group_by("teacher", "variant", "parameter").agg(pl.col("end").sum())
    return max(span(sums["end"])[1], span(found.risks["most"])[1])


def _kappa(ax: Axes, spreads: list[float]) -> None:
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(spreads))
    ax.xaxis.set_minor_locator(NullLocator())
    # Near to one another numbers would overlap.
    steps = [math.log(b / a) for a, b in itertools.pairwise(spreads)]
    whole = sum(steps) or 1.0
    shown = [0.0, *itertools.accumulate(steps)]
    labels, last = [], -1.0
    for spread, place in zip(spreads, shown, strict=True):
        free = place / whole - last >= 0.1
        labels.append(f"{spread:g}" if free else "")
        last = place / whole if free else last
    ax.set_xticklabels(labels)
    ax.set_xlabel(SPREAD)


def _legend(found: Gaussian) -> list[Any]:
    drawn = found.terms.filter(pl.col("end") > 1e-6)["split"]
    handles: list[Any] = [
        Patch(facecolor=FILL.get(name, COLOURS[name]), **EDGE, label=name)
        for name in STACKED
        if name in drawn
    ]
    keywords: dict[str, Any] = look("measured").points(label=False) | {"marker": "D"}
    return [*handles, Line2D([], [], **keywords, label="exact risk $J_u(f)$")]
