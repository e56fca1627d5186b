"""Points from a folder of CSV files, one a client: every cell a number, or its place is named."""

import csv
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

_SEPARATORS = (";", "\t", ",")  # in this order: a comma may be part of a number
_MISSING = ("", "-", "?", "na", "n/a", "null", "none")


@dataclass(frozen=True, eq=False)
class ClientFile:
    """The points of one file, the line of each, and the header's cells (none without a header)."""

    file: str
    x: Float[np.ndarray, "n d"]
    lines: Int[np.ndarray, " n"]
    header: tuple[str, ...]


def read_folder(folder: Path, check_size: Callable[[int], None]) -> dict[str, ClientFile]:
    """Reads every CSV file of a folder, in the order of the clients' names.

    Folders, hidden files and links to nothing are passed over; links to files are followed.

    Args:
        folder: where the files are.
        check_size: told the bytes of all files before any is read; may raise.

    Raises:
        ValueError: no CSV file, two of one client, or a file that cannot be used.
        OSError: a file cannot be read.
    """
    files = _csv_files(folder)
    check_size(sum(path.stat().st_size for path in files.values()))
    read: dict[str, ClientFile] = {}
    for name in sorted(files):
        part = _read_file(files[name])
        first = next(iter(read.values()), part)
        if part.x.shape[1] != first.x.shape[1]:
            raise ValueError(
                f"{part.file} has {part.x.shape[1]} columns and {first.file} {first.x.shape[1]}: "
                "all clients need the same features."
            )
        if part.header and first.header and part.header != first.header:
            raise ValueError(
                f"{part.file} names its columns otherwise than {first.file}: bring them into the "
                "same order under the same names."
            )
        read[name] = part
    return read


def _csv_files(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    same: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() != ".csv" or path.name.startswith(".") or not path.is_file():
            continue
        name = path.stem
        try:
            name.encode("utf-8")
        except UnicodeError:
            shown = path.name.encode("utf-8", "backslashreplace").decode()
            raise ValueError(f"the name of {shown} is no valid UTF-8: rename the file.") from None
        twin = same.setdefault(unicodedata.normalize("NFC", name), path)
        if twin is not path or not name.strip():
            raise ValueError(
                f"{twin.name} and {path.name} are the same client: rename one of them."
                if name.strip()
                else f"{path.name!r} names no client: rename the file."
            )
        found[name] = path
    if not found:
        raise ValueError("there is no CSV file in it: give one file a client, such as a.csv.")
    return found


def _read_file(path: Path) -> ClientFile:
    lines = _text(path.read_bytes()).splitlines()
    rows = _rows(path.name, lines)
    header: tuple[str, ...] = ()
    numbers: list[Float[np.ndarray, " d"]] = []
    places: list[int] = []
    width, first = 0, 0
    for line, cells in rows:
        if not first:
            width, first = len(cells), line
            if _is_header(cells):
                header = tuple(cells)
                continue
            _refuse_column_numbers(path.name, line, cells, lines)
        if len(cells) != width:
            raise ValueError(
                f"{path.name}, line {line} has {_cells(len(cells))} and line {first} has "
                f"{width}: every line needs the same columns."
            )
        numbers.append(np.array([_number(path.name, line, k, c) for k, c in enumerate(cells, 1)]))
        places.append(line)
    if not numbers:
        raise ValueError(f"{path.name} holds no points: give one a line, or remove the file.")
    x = np.stack(numbers)
    _refuse_row_numbers(path.name, header, x)
    return ClientFile(path.name, x, np.array(places, dtype=np.int64), header)


def _text(content: bytes) -> str:
    """Numbers are ASCII; what a header holds beyond that may be in any encoding."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _rows(file: str, lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """The cells of every line that has any; leading lines of comment are passed over."""
    begin = 0
    while begin < len(lines) and (not lines[begin].strip() or lines[begin].startswith("#")):
        begin += 1
    filled = [line for line in lines[begin:] if line.strip()][:2]
    # The second line first: words of a header may hold what separates no columns.
    separator = next((s for line in filled[::-1] for s in _SEPARATORS if s in line), None)
    if separator is None:
        several = bool(filled) and len(filled[-1].split()) > 1
        for line, text in enumerate(lines[begin:], begin + 1):
            if text.strip():
                parts = text.split() if several else [text.strip()]
                yield line, [part.strip('"') for part in parts]
        return
    yield from _quoted_rows(file, lines[begin:], begin, separator)


def _quoted_rows(
    file: str, lines: Sequence[str], before: int, separator: str
) -> Iterator[tuple[int, list[str]]]:
    """The cells between separators; a quotation mark that stays open is named by its line."""
    # Line feeds keep a cell over two lines from joining two numbers; a last empty line that is no
    # row of its own lies in a cell that nothing closes.
    fed = [*(f"{line}\n" for line in lines), "\n"]
    reader = csv.reader(fed, delimiter=separator, skipinitialspace=True)
    begun, why = 0, "a quotation mark in it is never closed"
    try:
        for cells in reader:
            if reader.line_num == len(fed) and cells:
                break
            begun = reader.line_num
            if any(cell.strip() for cell in cells) or len(cells) > 1:
                yield before + begun, [cell.strip() for cell in cells]
        else:
            return
    except csv.Error as error:
        why = f"{error}; look for a quotation mark that is never closed"
    raise ValueError(f"{file}, line {before + begun + 1} cannot be read: {why}.")


def _value(cell: str) -> float | None:
    # Python takes 1_000 for a number, no table does.
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def _is_header(cells: Sequence[str]) -> bool:
    words = [cell for cell in cells if cell.lower() not in _MISSING]
    return bool(words) and all(_value(cell) is None for cell in cells)


def _refuse_column_numbers(
    file: str, line: int, cells: Sequence[str], lines: Sequence[str]
) -> None:
    """Data frames write 0, 1, 2, … above columns without names: that is no point."""
    if list(cells) != [str(k) for k in range(len(cells))] or len(cells) < 2:
        return
    # 0, 1 may well be a point: only decimals below it tell.
    if len(cells) > 2 or any("." in later for later in lines[line : line + 1]):
        raise ValueError(
            f"{file}, line {line} reads 0, 1, …, which looks like the numbers of the columns: "
            "remove that line, or write words there; if it is a point, put a line of words above."
        )


def _refuse_row_numbers(file: str, header: Sequence[str], x: Float[np.ndarray, "n d"]) -> None:
    """Data frames write their rows' numbers in a first column without a name: no feature."""
    # "Unnamed: 0" is such a column, read and written once more.
    unnamed = bool(header) and (not header[0] or header[0].lower().startswith("unnamed: 0"))
    if unnamed and (x[:, 0] == np.floor(x[:, 0])).all():
        raise ValueError(
            f"the first column of {file} has no name and looks like the numbers of the rows: "
            "write with index=False (in R with row.names = FALSE), or name it if it is a feature."
        )


def _number(file: str, line: int, column: int, cell: str) -> float:
    value, where = _value(cell), f"{file}, line {line}, column {column}"
    if value is None:
        what = f"{cell[:40]!r} is no number" if cell else "the cell is empty"
        hint = "every column must be numeric; at most one header line, all in words, may come first"
        if "," in cell and _value(cell.replace(",", ".", 1)) is not None:
            hint = "write decimals with a point"
        raise ValueError(f"{where}: {what}: {hint}.")
    if not math.isfinite(value):
        raise ValueError(f"{where}: {cell[:40]!r} is not finite: remove the point or repair it.")
    if value == 0 and any(unicodedata.digit(c, 0) for c in re.split("[eE]", cell)[0]):
        raise ValueError(
            f"{where}: {cell[:40]!r} is too small for float64, which makes it 0: multiply the "
            "column by a power of ten, or write 0."
        )
    if cell.lstrip("+-").isdecimal() and Decimal(cell) != Decimal(value):
        raise ValueError(
            f"{where}: {cell[:40]!r} has more digits than float64 keeps of a whole number: if it "
            "is an identifier, leave the column out; or write fewer digits."
        )
    return value


def _cells(count: int) -> str:
    return f"{count} cell{'s' * (count != 1)}"
