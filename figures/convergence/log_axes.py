"""Logarithmic axes for eigenvalues that may be 0: what cannot be shown is said, not drawn."""

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes

from figures.style import MUTED

MAY_BE_ZERO = "may be 0:\nnot shown"


def above_zero(values: pl.Series) -> pl.Series:
    """Leave gaps where a logarithmic axis has no place."""
    return pl.select(pl.when(values > 0).then(values).otherwise(float("nan"))).to_series()


def log_or_note(ax: Axes, lines: Sequence[pl.Series], bands: Sequence[pl.Series] = ()) -> None:
    """Make the y axis logarithmic, and say so where values that may be 0 are not on it.

    Without a positive value there is nothing to see and no scale to read.
    """
    lost = sum(int((line <= 0).sum()) for line in lines)
    if lost < sum(line.len() for line in lines) or any((band > 0).any() for band in bands):
        ax.set(yscale="log")
    else:
        ax.set(yticks=[])
    if lost:
        whole = lost == sum(line.len() for line in lines)
        note(ax, MAY_BE_ZERO if whole else f"some {MAY_BE_ZERO}")


def note(ax: Axes, text: str) -> None:
    """Put a remark in the upper right corner of a panel."""
    place = {"xycoords": "axes fraction", "ha": "right", "va": "top"}
    ax.annotate(text, (0.98, 0.98), fontsize=8, color=MUTED, **place)  # type: ignore[arg-type]
