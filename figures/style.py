"""One look per method, policy and client in every figure; sizes, fonts, files.

Colours are Okabe and Ito's (2008, safe for colour-blind readers) with Tol's dark blue; line styles
and markers differ too, so that nothing is lost in a grey print.
"""

import difflib
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from figures._files import write_atomically

COLUMN, DOUBLE = 3.4, 7.0  # inches; the widths of one and of two columns of a paper
INK, MUTED, GRID = "#1a1a1a", "#666666", "#d9d9d9"

Dash = str | tuple[int, tuple[float | int, ...]]
_LONG: Dash = (0, (6, 2))
_DOTS: Dash = (0, (1, 1.4))
_DASH_DOT: Dash = (0, (5, 1.6, 1, 1.6))
_DASH_TWO_DOTS: Dash = (0, (5, 1.4, 1, 1.4, 1, 1.4))


@dataclass(frozen=True)
class Look:
    """Colour, line style, marker and display name of one thing."""

    label: str
    colour: str
    dash: Dash
    marker: str

    def line(
        self, *, label: bool = True, markers: bool = True, points: int | None = None
    ) -> dict[str, Any]:
        """Keywords for `ax.plot`; `points`, the line's length, thins the markers to about 15."""
        keywords: dict[str, Any] = {"color": self.colour, "linestyle": self.dash}
        if markers:
            keywords |= {"marker": self.marker, "markeredgecolor": "white"}
        if markers and points is not None:
            keywords |= {"markevery": max(1, -(-points // 15))}
        return keywords | ({"label": self.label} if label else {})

    def band(self) -> dict[str, Any]:
        """Keywords for `ax.fill_between` around the line: its interval."""
        return {"color": self.colour, "alpha": 0.18, "linewidth": 0}

    def points(self, *, label: bool = True) -> dict[str, Any]:
        """Keywords for `ax.errorbar` or `ax.plot` without a line."""
        return {**self.line(label=label), "linestyle": "none"}


_LOOKS: dict[str, Look] = {
    # batch-normalization policies
    "aggregated": Look("aggregated BN (f)", "#004488", _LONG, "s"),
    "client_specific": Look("client-specific BN (f*)", "#d55e00", "-", "o"),
    "client_statistics": Look("client statistics only", "#009e73", _DASH_DOT, "^"),
    "client_affine": Look("client affine only", "#cc79a7", _DOTS, "D"),
    # algorithms
    "fedavg": Look("FedAvg", "#1a1a1a", "-", "o"),
    "fedprox": Look("FedProx", "#0072b2", _LONG, "s"),
    "scaffold": Look("SCAFFOLD", "#e69f00", _DASH_DOT, "^"),
    "fedadam": Look("FedAdam", "#009e73", _DOTS, "D"),
    "fednova": Look("FedNova", "#d55e00", _DASH_TWO_DOTS, "v"),
    "fedbn": Look("FedBN", "#cc79a7", "-", "P"),
    "moon": Look("MOON", "#56b4e9", _LONG, "X"),
    "feddc": Look("FedDC", "#882255", _DASH_DOT, "<"),
    "perfedavg": Look("Per-FedAvg", "#999933", _DOTS, ">"),
    "local": Look("local only", "#777777", _DASH_TWO_DOTS, "*"),
    # theory beside measurement
    "measured": Look("measured", "#1a1a1a", "-", "o"),
    "predicted": Look("linearised prediction", "#0072b2", _DASH_DOT, "^"),
    "bound": Look("bound of Theorem III.4", "#777777", _DOTS, "v"),
    "true_kernel": Look("kernel of the normalised network", "#009e73", "-", "D"),
    "printed_kernel": Look("Eq. (10) as printed", "#aa3377", _LONG, "X"),
    # the clients of the embedded federation
    "mnist": Look("MNIST", "#332288", "-", "o"),
    "optdigits": Look("Optdigits", "#117733", _LONG, "s"),
    "mnist-m": Look("MNIST-M", "#cc6677", _DASH_DOT, "^"),
    "synth-digits": Look("Synth-Digits", "#ddaa33", _DOTS, "D"),
}
_SPARE_COLOURS = ("#332288", "#117733", "#cc6677", "#ddaa33", "#882255", "#44aa99", "#999933")
_SPARE_DASHES = ("-", _LONG, _DASH_DOT, _DOTS, _DASH_TWO_DOTS)
_SPARE_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h")


def look(name: str) -> Look:
    """The look of a known policy, algorithm, client or theory line.

    Raises:
        ValueError: an unknown name; see `looks` for clients of other federations.
    """
    if name not in _LOOKS:
        near = difflib.get_close_matches(name, _LOOKS, n=3) or list(_LOOKS)
        raise ValueError(f"no look is defined for {name!r}; nearest: {', '.join(near)}")
    return _LOOKS[name]


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Looks for any names: known ones keep theirs, others get spare ones in the order given.

    Raises:
        ValueError: more unknown names than can be told apart.
    """
    wanted = list(dict.fromkeys(names))
    taken = {(_LOOKS[n].colour, _LOOKS[n].dash) for n in wanted if n in _LOOKS}
    # Five dashes and seven colours have no common factor: both change at every step.
    steps = range(len(_SPARE_COLOURS) * len(_SPARE_DASHES))
    pairs = ((_SPARE_COLOURS[k % 7], _SPARE_DASHES[k % 5], _SPARE_MARKERS[k % 11]) for k in steps)
    free = (pair for pair in pairs if pair[:2] not in taken)
    found = {}
    for name in wanted:
        spare = None if name in _LOOKS else next(free, None)
        if name not in _LOOKS and spare is None:
            raise ValueError(f"{len(wanted)} lines cannot be told apart: draw fewer, or panels")
        found[name] = _LOOKS[name] if spare is None else Look(name, *spare)
    return found


def ramp(n: int) -> list[str]:
    """Colours from dark to light for n steps of an ordered quantity, all legible on white."""
    if n < 1:
        raise ValueError(f"a ramp needs at least one colour, not {n}")
    colours = mpl.colormaps["viridis"]
    stops = [0.0] if n == 1 else [0.82 * k / (n - 1) for k in range(n)]
    return [to_hex(colours(stop)) for stop in stops]


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
        "axes.prop_cycle": cycler(color=_SPARE_COLOURS),
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
            contents[kind] = buffer.getvalue()
    pdf, png = (
        write_atomically(stem.with_name(f"{stem.name}.{kind}"), data)
        for kind, data in contents.items()
    )
    return pdf, png
