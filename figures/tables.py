"""Tables as CSV (every digit), LaTeX (booktabs, rounded) and text."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from figures._files import write_atomically
from figures._latex import escape
from figures._shorten import shortened

SAME = "(both)"
"""A cell that shows this is one with the cell before it: two columns with one value."""

_NONE = "–"
_LONGEST = 200  # letters of a cell: names in full are in the CSV
_NUMBER = re.compile(
    r"[−+>]?\d[\d.,]*(×10[⁻⁰¹²³⁴-⁹]+)?( ± \S+| \(± \S+\)| \[\S+, \S+\])?"  # with bounds
    r"( \(\S+ to \S+\))?(, n = \d+)?†?(\n.*)?",  # a range, and what may follow
    re.DOTALL,
)
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Layout:
    """How a table is shown to people; the CSV keeps all columns and digits.

    `columns` maps a column to its heading and selects and orders what is shown (all, if empty);
    `intervals` maps a column to the two that hold its bounds: they are shown as one cell.
    `groups` are headings above the columns, each with how many it spans ("" for none). A cell or
    heading may have several lines.
    `compact` sets the LaTeX table small, so that many columns fit a page.
    """

    caption: str = ""
    label: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    intervals: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    digits: int = 3
    groups: Sequence[tuple[str, int]] = ()
    compact: bool = False


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
    value: float | int | None,
    lower: float | int | None,
    upper: float | int | None,
    digits: int = 3,
    least: int = 0,
) -> str:
    """A value with its interval: `0.912 ± 0.004` if symmetric, else `0.912 [0.905, 0.921]`.

    The half-width has one significant digit, two where the first is 1, and `least` places or
    more; the value has the same last place. Bounds closer than the digits shown are given as
    `0.0528 (± 3×10⁻¹⁵)`. Without bounds the value stands alone.
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
    places = max(_places(half), least)
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
    kinds = [frame.schema[name] for name in _chosen(frame, layout)]
    right = zip(kinds, numeric(rows, len(kinds)), strict=True)
    align = "".join("r" if kind.is_numeric() or words else "l" for kind, words in right)
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}",
        "\\centering",
        *([f"\\caption{{{escape(layout.caption)}}}"] if layout.caption else []),
        *([f"\\label{{{layout.label}}}"] if layout.label else []),
        *(["\\footnotesize", "\\setlength{\\tabcolsep}{3pt}"] if layout.compact else []),
        f"\\begin{{tabular}}{{@{{}}{align}@{{}}}}",
        "\\toprule",
        *_latex_groups(layout.groups),
        _latex_row(headings, align),
        "\\midrule",
        *(_latex_row(row, align, "\\scriptsize ") for row in rows),
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def numeric(rows: Sequence[Sequence[str]], columns: int) -> list[bool]:
    """Which columns of `as_text_rows` hold numbers, and are set flush right."""
    blank = (_NONE, SAME)
    return [
        any(_is_number(row[c]) for row in rows)
        and all(_is_number(row[c]) or row[c] in blank for row in rows)
        for c in range(columns)
    ]


def spanned(cells: Sequence[Any]) -> list[tuple[Any, int]]:
    """The cells of a row, each with the number of columns that it stands for: see `SAME`."""
    found: list[tuple[Any, int]] = []
    for cell in cells:
        if cell == SAME and found:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((cell, 1))
    return found


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
    spans, columns = sum(span for _, span in layout.groups), len(_chosen(frame, layout))
    if layout.groups and spans != columns:
        raise ValueError(f"the headings above span {spans} columns; the table has {columns}")
    if layout.digits < 1:
        raise ValueError(f"a table needs at least one significant digit, not {layout.digits}")
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    if nested:
        raise ValueError(f"columns {nested} hold lists: a table's cells are single values")


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None


def _latex_groups(groups: Sequence[tuple[str, int]]) -> list[str]:
    """The row of headings above others, with a rule below each."""
    cells, rules, first = [], [], 1
    for heading, span in groups:
        last = first + span - 1
        cells.append(f"\\multicolumn{{{span}}}{{c}}{{{escape(heading)}}}" if span > 1 else "")
        if heading:
            rules.append(f"\\cmidrule(lr){{{first}-{last}}}")
        first = last + 1
    return [" & ".join(cells) + " \\\\", " ".join(rules)] if groups else []


def _latex_row(cells: Sequence[Any], align: str, further: str = "") -> str:
    """A row; `further` sets the size of a cell's lines after the first."""
    shown, column = [], 0
    for cell, span in spanned(cells):
        side = "c" if span > 1 else align[column]
        lines = [escape(line) for line in str(cell).split("\n")]
        text = lines[0]
        if len(lines) > 1:
            several = f" \\\\ {further}".join(lines)
            text = f"\\begin{{tabular}}[t]{{@{{}}{side}@{{}}}}{several}\\end{{tabular}}"
        shown.append(f"\\multicolumn{{{span}}}{{c}}{{{text}}}" if span > 1 else text)
        column += span
    return " & ".join(shown) + " \\\\"
