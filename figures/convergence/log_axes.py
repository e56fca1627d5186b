"""Logarithmic axes for eigenvalues that may be 0: what cannot be shown is said, not drawn."""

import math
from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator, NullFormatter

from figures.style import MUTED

MAY_BE_ZERO = "may be 0:\nnot shown"
SOME_RATIOS = "some $\\lambda_{\\min}$ may be 0:\nno ratio"
NO_RATIO = "$\\lambda_{\\min}$ may be 0:\nno ratio"
EQUAL = "the lines coincide"


def above_zero(values: pl.Series, certain: pl.Series | None = None) -> pl.Series:
    """Leave gaps where a logarithmic axis has no place, or `certain`, a lower end, proves none."""
    floor = values if certain is None else certain
    keep = (values > 0) & (floor > 0) & floor.is_not_nan()
    return pl.select(pl.when(keep).then(values).otherwise(float("nan"))).to_series()


def above_rounding(values: pl.Series, size: int) -> pl.Series:
    """Leave gaps where a computed eigenvalue of a matrix of this size may be all rounding.

    LAPACK's eigenvalues err by about n ε λ_max: below that, nothing but its rounding is shown.
    """
    largest = max((abs(value) for value in values.to_list()), default=0.0)
    return above_zero(values, values - size * 2.0**-52 * largest)


def log_or_note(ax: Axes, lines: Sequence[pl.Series], bands: Sequence[pl.Series] = ()) -> None:
    """Make the y axis logarithmic, and say so where values that may be 0 are not on it.

    The lines are those drawn, NaN or not positive where a value is left out. Without a positive
    value there is nothing to see and no scale to read.
    """
    lost = sum(int((line.is_nan() | (line <= 0)).sum()) for line in lines)
    whole = lost == sum(line.len() for line in lines)
    if not whole or any((band > 0).any() for band in bands):
        ax.set(yscale="log")
    elif len(ax.get_shared_y_axes().get_siblings(ax)) == 1:
        ax.set(yticks=[])
    if lost:
        note(ax, MAY_BE_ZERO if whole else f"some {MAY_BE_ZERO}")


def note(ax: Axes, text: str) -> None:
    """Put a remark in the upper right corner of a panel, with room above what is drawn."""
    if math.isfinite(ax.dataLim.y1):
        _headroom(ax, 1 + text.count("\n"))
    place = {"xycoords": "axes fraction", "ha": "right", "va": "top"}
    ax.annotate(text, (0.98, 0.98), fontsize=8, color=MUTED, linespacing=1.0, **place)  # type: ignore[arg-type]


def _headroom(ax: Axes, lines: int) -> None:
    spec, figure = ax.get_subplotspec(), ax.get_figure()
    rows = 1 if spec is None else spec.get_gridspec().nrows
    # About two thirds of a row's height are its panel's; a line of 8 points takes ten.
    height = 4.0 if figure is None else figure.get_figheight() / rows * 0.65  # type: ignore[union-attr]
    part = min(0.5, (lines * 10 / 72 + 0.05) / height)
    part /= 1 - part
    low, high = ax.get_ylim()
    if ax.get_yscale() == "log":
        ax.set_ylim(low, high * (high / low) ** part)
    else:
        ax.set_ylim(low, high + part * (high - low))


def over(ax: Axes, places: pl.Series) -> None:
    """Make the x axis logarithmic and show all places, also those without a value."""
    low, high = float(places.to_numpy().min()), float(places.to_numpy().max())
    room = (high / low) ** 0.06 if high > low else 1.5
    ax.set(xscale="log", xlim=(low / room, high * room))


def from_zero(ax: Axes) -> None:
    """Start the y axis at 0, with room for the highest mark."""
    high = float(ax.dataLim.y1)
    ax.set_ylim(0, 1.06 * high if math.isfinite(high) and high > 0 else 1)


def readable_ticks(ax: Axes, powers: int = 2) -> None:
    """Numbers on a logarithmic y axis that shows fewer powers of ten than these."""
    if ax.get_yscale() != "log":
        return
    ax.yaxis.set_minor_formatter(NullFormatter())
    low, high = ax.get_ylim()
    if math.floor(math.log10(high)) - math.ceil(math.log10(low)) + 1 >= powers:
        return
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for digits in ((1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        ticks = [t for e in exponents for d in digits if low <= (t := d * 10.0**e) <= high]
        if len(ticks) > 2:
            break
    else:
        ticks = [
            t
            for t in MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
            if low <= t <= high
        ]
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.set_yticks([], minor=True)
    ax.set_yticklabels([_plain(tick) for tick in ticks])


def _plain(value: float) -> str:
    if 1e-3 <= value < 1e5:
        return f"{value:.6g}"
    power = math.floor(math.log10(value) + 1e-9)
    digits = f"{value / 10.0**power:.6g}"
    return rf"$10^{{{power}}}$" if digits == "1" else rf"${digits}\times10^{{{power}}}$"
