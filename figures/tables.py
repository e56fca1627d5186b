"""Tables as CSV (every digit), LaTeX (booktabs, rounded) and text."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from figures._files import write_atomically
from figures._latex import escape
from figures._shorten import shortened

_NONE = "–"
_LONGEST = 200  # letters of a cell: names in full are in the CSV
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Layout:
    """How a table is shown to people; the CSV keeps all columns and digits.

    `columns` maps a column to its heading and selects and orders what is shown (all, if empty);
    `intervals` maps a column to the two that hold its bounds: they are shown as one cell.
    """

    caption: str = ""
    label: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    intervals: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    digits: int = 3


def number(value: object, digits: int = 3) -> str:
    """A value for people: significant digits, integers in full, powers of ten where needed."""
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return str(value).replace("-", "−")
    if not math.isfinite(value):
        return {True: "∞", False: "−∞"}[value > 0] if math.isinf(value) else "undefined"
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    exponent = math.floor(math.log10(abs(rounded)))
    if -4 <= exponent < 6:
        text = f"{rounded:.{max(digits - 1 - exponent, 0)}f}"
    else:
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        text = f"{mantissa}×10{str(int(power)).translate(_SUPERSCRIPT)}"
    return text.replace("-", "−")


def with_interval(
    value: float | int | None, lower: float | int | None, upper: float | int | None, digits: int = 3
) -> str:
    """A value with its interval: `0.912 ± 0.004` if symmetric, else `0.912 [0.905, 0.921]`.

    The half-width has one significant digit, two where the first is 1; the value has the same
    last place. Bounds closer than the digits shown are given as `0.0528 (± 3×10⁻¹⁵)`. Without
    bounds the value stands alone.
    """
    if value is None or lower is None or upper is None:
        return number(value, digits)
    low, high = number(lower, digits), number(upper, digits)
    brackets = f"{number(value, digits)} [{low}, {high}]"
    if not all(map(math.isfinite, (value, lower, upper))):
        return brackets
    half = (upper - lower) / 2
    if half == 0:
        return f"{number(value, digits)} ± 0"
    places = max(_places(half), 0)
    if places > 6 or max(abs(value), abs(lower), abs(upper)) >= 1e6:
        return brackets if low != high else f"{number(value, digits)} (± {number(half, 1)})"
    shown = [f"{x:.{places}f}".replace("-", "−") for x in (value, half, lower, upper)]
    # From five per cent of the half-width a ± would misplace the bounds visibly.
    symmetric = abs((upper + lower) / 2 - value) <= 0.05 * half
    return f"{shown[0]} ± {shown[1]}" if symmetric else f"{shown[0]} [{shown[2]}, {shown[3]}]"


def as_text_rows(
    frame: pl.DataFrame, layout: Layout | None = None
) -> tuple[list[str], list[list[str]]]:
    """Headings and rows as text, as people see them in the terminal, the report and LaTeX.

    Raises:
        ValueError: the layout names a column that is not there, or a column holds no scalars.
    """
    layout = layout or Layout()
    _check(frame, layout)
    chosen = _chosen(frame, layout)
    rows = []
    for row in frame.iter_rows(named=True):
        cells = []
        for name in chosen:
            if name in layout.intervals:
                low, high = layout.intervals[name]
                cells.append(with_interval(row[name], row[low], row[high], layout.digits))
            else:
                cells.append(shortened(number(row[name], layout.digits), _LONGEST))
        rows.append(cells)
    return [layout.columns.get(name, name) for name in chosen], rows


def to_latex(frame: pl.DataFrame, layout: Layout | None = None) -> str:
    r"""A `table` environment that needs `\usepackage{booktabs}` and nothing else."""
    layout = layout or Layout()
    headings, rows = as_text_rows(frame, layout)
    align = "".join(
        "r" if frame.schema[name].is_numeric() else "l" for name in _chosen(frame, layout)
    )
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}",
        "\\centering",
        *([f"\\caption{{{escape(layout.caption)}}}"] if layout.caption else []),
        *([f"\\label{{{layout.label}}}"] if layout.label else []),
        f"\\begin{{tabular}}{{@{{}}{align}@{{}}}}",
        "\\toprule",
        _latex_row(headings),
        "\\midrule",
        *map(_latex_row, rows),
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def write_table(
    stem: str | Path,
    frame: pl.DataFrame,
    layout: Layout | None = None,
    shown: pl.DataFrame | None = None,
) -> tuple[Path, Path]:
    """Writes `<stem>.csv` with every column and digit and `<stem>.tex` as laid out.

    The layout is that of `shown`, where it is given: cells in words for people.

    Raises:
        ValueError: see `as_text_rows`.
        OutputError: a file cannot be written.
    """
    stem = Path(stem)
    latex = to_latex(frame if shown is None else shown, layout)
    csv = write_atomically(stem.with_name(stem.name + ".csv"), frame.write_csv())
    return csv, write_atomically(stem.with_name(stem.name + ".tex"), latex)


def _chosen(frame: pl.DataFrame, layout: Layout) -> list[str]:
    bounds = {name for pair in layout.intervals.values() for name in pair}
    return list(layout.columns) or [name for name in frame.columns if name not in bounds]


def _places(half: float) -> int:
    exponent = math.floor(math.log10(half))
    leading = half / 10.0**exponent
    # 0.96 would round up to 1: its second digit is then worth keeping, as for 1.0.
    digits = 2 if leading < 1.95 or leading >= 9.5 else 1
    if leading >= 9.5:
        exponent += 1
    return digits - 1 - exponent


def _check(frame: pl.DataFrame, layout: Layout) -> None:
    pairs = [name for pair in layout.intervals.values() for name in pair]
    missing = [n for n in (*layout.columns, *layout.intervals, *pairs) if n not in frame.columns]
    if missing:
        raise ValueError(f"the table has no columns {missing}; it has {frame.columns}")
    if layout.digits < 1:
        raise ValueError(f"a table needs at least one significant digit, not {layout.digits}")
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    if nested:
        raise ValueError(f"columns {nested} hold lists: a table's cells are single values")


def _latex_row(cells: Sequence[Any]) -> str:
    return " & ".join(escape(cell) for cell in cells) + " \\\\"
