"""The figure of what the largest eigenvalue adds to Corollary III.6: steps, condition numbers."""

from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from figures.convergence.log_axes import EQUAL, NO_RATIO, SOME_RATIOS, note, over, readable_ticks
from figures.convergence.sources import data_name
from figures.selection import of
from figures.style import INK, letter, panels, ramp

GAINS = {
    "smallest": ("D", r"$\lambda_{\min}(G^{*\infty})/\lambda_{\min}(G^{\infty})$"),
    "step": ("^", r"$\lambda_{\max}(G^{\infty})/\lambda_{\max}(G^{*\infty})$: the step"),
    "condition": ("o", r"$\kappa(G^{\infty})/\kappa(G^{*\infty})$: their product"),
}


def spread(name: str) -> tuple[pl.Expr, ...]:
    """Median and range of a column."""
    column = pl.col(name)
    return column.median(), column.min().alias("low"), column.max().alias("high")


def step_sizes(gains: pl.DataFrame) -> Figure:
    """Draw what λ_min, the step and the condition number gain, over M: medians and ranges."""
    sources = gains["data"].unique(maintain_order=True).to_list()
    wide = len(sources) > 1
    figure, axes = panels(
        1,
        len(sources),
        width="double" if wide else "column",
        ratio=0.42 if wide else 0.9,
        sharey=True,
    )
    remarks: list[str] = []
    colours = dict(zip(GAINS, ramp(len(GAINS)), strict=True))
    for ax, source in zip(axes, sources, strict=True):
        rows = of(gains, data=source)
        sizes = rows.group_by("clients").agg(pl.col("samples").n_unique())
        clients = sizes.sort("samples", "clients")["clients"][-1]
        rows = of(rows, clients=clients)
        for name, (marker, label) in GAINS.items():
            part = rows.drop_nulls(name).group_by("samples").agg(*spread(name)).sort("samples")
            line: dict[str, Any] = {"color": colours[name], "marker": marker}
            line |= {"markeredgecolor": "white"}
            ax.plot(part["samples"], part[name], **line, label=label)
            band = {"color": colours[name], "alpha": 0.15, "linewidth": 0}
            ax.fill_between(part["samples"], part["low"], part["high"], **band)
        ax.axhline(1.0, color=INK, linewidth=0.8, linestyle=":")
        over(ax, rows["samples"])
        ax.set(yscale="log", xlabel="samples a client $M$")
        ax.set_title(f"{data_name(source)}, $N = {clients}$")
        remarks.append(_remark(rows))
        _sample_ticks(ax, sorted(rows["samples"].unique().to_list()))
    # The panels share an axis, which has all lines only now.
    for ax, remark in zip(axes, remarks, strict=True):
        if remark:
            note(ax, remark)
    for ax in axes:
        readable_ticks(ax, 4)
    axes[0].set_ylabel("gain of client-specific BN")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3 if wide else 1)
    letter(axes)
    return figure


def _remark(rows: pl.DataFrame) -> str:
    lost = rows["smallest"].null_count()
    if lost:
        return NO_RATIO if lost == rows.height else SOME_RATIOS
    # One client has one matrix: every gain is 1, up to the midpoints' rounding.
    apart = max(abs(gain - 1) for name in GAINS for gain in rows[name].drop_nulls())
    return EQUAL if apart < 1e-9 else ""


def _sample_ticks(ax: Axes, samples: list[int]) -> None:
    """Numbers as people write them."""
    ax.xaxis.set_major_locator(FixedLocator(samples))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels([str(sample) for sample in samples])
