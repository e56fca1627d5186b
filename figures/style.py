"""Sizes, fonts and files of every figure, and the looks of what they show."""

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from figures._files import write_atomically
from figures._looks import SPARE_COLOURS, Look, look, looks, ramp

__all__ = [
    "COLUMN",
    "DOUBLE",
    "GRID",
    "INK",
    "MUTED",
    "Look",
    "context",
    "legend_below",
    "letter",
    "look",
    "looks",
    "panels",
    "publication",
    "ramp",
    "save",
    "size",
    "whole_numbers",
]

COLUMN, DOUBLE = 3.4, 7.0  # inches; the widths of one and of two columns of a paper
INK, MUTED, GRID = "#1a1a1a", "#666666", "#d9d9d9"


def publication() -> dict[str, Any]:
    """Matplotlib's rcParams for print at final size: 8 pt and more, embedded TrueType fonts.

    The fonts come with matplotlib, so that a figure looks the same on every machine.
    """
    return {
        # DejaVu fills in the few signs that STIX lacks (₀, ₁, …).
        "font.family": ["STIXGeneral", "DejaVu Serif"],
        "mathtext.fontset": "stix",
        "font.size": 9,
        "axes.labelsize": 9,
        "axes.titlesize": 9,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "legend.fontsize": 8,
        "legend.title_fontsize": 8,
        "figure.titlesize": 10,
        "axes.titlelocation": "left",
        "axes.titlepad": 5,
        "axes.labelpad": 3,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "grid.color": GRID,
        "grid.linewidth": 0.5,
        "axes.prop_cycle": cycler(color=SPARE_COLOURS),
        "lines.linewidth": 1.3,
        "lines.markersize": 4.2,
        "lines.markeredgewidth": 0.4,
        "errorbar.capsize": 2,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "xtick.major.size": 3,
        "ytick.major.size": 3,
        "xtick.minor.size": 1.6,
        "ytick.minor.size": 1.6,
        "xtick.minor.width": 0.4,
        "ytick.minor.width": 0.4,
        "legend.frameon": False,
        "legend.handlelength": 3.0,
        "legend.borderaxespad": 0.3,
        "figure.constrained_layout.use": True,
        "figure.facecolor": "white",
        "figure.dpi": 150,
        "savefig.dpi": 300,
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
        "svg.hashsalt": "unifed",
        "text.usetex": False,
        "axes.formatter.use_mathtext": True,
        "axes.formatter.limits": (-3, 4),
    }


@contextmanager
def context() -> Iterator[None]:
    """Everything made inside has the publication style, whatever the user's own settings."""
    with mpl.rc_context():
        mpl.rcdefaults()
        settings: Any = publication()
        mpl.rcParams.update(settings)
        yield


def size(width: str = "column", ratio: float = 0.68) -> tuple[float, float]:
    """Inches of a figure of one `column` (3.4) or `double` width (7.0), height = ratio × width."""
    widths = {"column": COLUMN, "double": DOUBLE}
    if width not in widths:
        raise ValueError(f"width is 'column' or 'double', not {width!r}")
    if not 0.1 <= ratio <= 3:
        raise ValueError(f"ratio is height by width, between 0.1 and 3, not {ratio}")
    return widths[width], widths[width] * ratio


def panels(
    rows: int = 1, columns: int = 1, *, width: str = "column", ratio: float = 0.68, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure, without pyplot and its global state, and its axes row by row.

    Options go to `Figure.subplots` (`sharex`, `sharey`, `width_ratios`, …).
    """
    figure = Figure(figsize=size(width, ratio))
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(axes.flat)


def letter(axes: Iterable[Axes]) -> None:
    """Puts (a), (b), … before the titles of panels."""
    for k, ax in enumerate(axes):
        ax.set_title(f"({chr(97 + k)}) {ax.get_title(loc='left')}".rstrip(), loc="left")


def whole_numbers(ax: Axes) -> None:
    """Ticks of the x axis at whole numbers only: rounds, steps, clients."""
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=2))


def legend_below(figure: Figure, axes: Iterable[Axes], columns: int = 4) -> None:
    """One legend for all panels, below them, each label once."""
    found: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        columns = min(columns, len(found))
        figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns)


def save(figure: Figure, stem: str | Path) -> tuple[Path, Path]:
    """Writes `<stem>.pdf` and `<stem>.png` (300 dpi); the same figure gives the same bytes.

    Raises:
        OutputError: a file cannot be written.
    """
    stem = Path(stem)
    contents: dict[str, bytes] = {}
    with context():
        # No dates and no program names: they would make equal figures differ.
        for kind, blank in (
            ("pdf", ("CreationDate", "Creator", "Producer")),
            ("png", ("Software",)),
        ):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, metadata=dict.fromkeys(blank))
            # The layout of the first file serves the second: it takes half of the time.
            figure.set_layout_engine("none")
            contents[kind] = buffer.getvalue()
    pdf, png = (
        write_atomically(stem.with_name(f"{stem.name}.{kind}"), data)
        for kind, data in contents.items()
    )
    return pdf, png
