"""The row of a records file: its columns, how one is written, how one is read."""

import json
import math
import operator
from collections.abc import Mapping

import polars as pl

SCHEMA: dict[str, type[pl.DataType]] = {
    "metric": pl.String,
    "value": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "round": pl.Int64,
    "client": pl.String,
    "split": pl.String,
    "variant": pl.String,
    "draw": pl.Int64,
    "clients": pl.Int64,
    "samples": pl.Int64,
    "parameter": pl.Float64,
    "note": pl.String,
}
_REQUIRED = ("metric", "value")


def encode(row: object) -> bytes:
    """One line of records.jsonl: every column, in the schema's order, floats to the last bit.

    Raises:
        ValueError: an unknown column, a missing metric or value, a number that is not finite,
            lower > upper.
        TypeError: a value of the wrong kind.
    """
    if not isinstance(row, Mapping):
        raise TypeError(f"a row is a mapping of columns to values, not {type(row).__name__}")
    unknown = [str(name) for name in row if name not in SCHEMA]
    if unknown:
        raise ValueError(f"unknown columns {unknown} in a row; columns are {list(SCHEMA)}")
    metric = row.get("metric")
    if not isinstance(metric, str) or not metric:
        raise ValueError(f"a row needs the name of its metric, not {metric!r}")
    if row.get("value") is None:
        raise ValueError(f"metric {metric!r} has no value: leave the row out instead")
    full = {name: _clean(metric, name, row.get(name)) for name in SCHEMA}
    lower, upper = full["lower"], full["upper"]
    if isinstance(lower, float) and isinstance(upper, float) and lower > upper:
        raise ValueError(f"metric {metric!r}: lower {lower!r} exceeds upper {upper!r}")
    text = json.dumps(full, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8") + b"\n"


def decode(line: bytes) -> dict[str, object]:
    """A row from its line.

    Raises:
        ValueError: not JSON, or not a row of this schema.
    """
    row = json.loads(line, parse_constant=_no_constant)
    if not isinstance(row, dict) or list(row) != list(SCHEMA):
        raise ValueError(f"the columns are not {list(SCHEMA)}")
    for name, kind in SCHEMA.items():
        value = row[name]
        wanted = {pl.String: str, pl.Float64: float, pl.Int64: int}[kind]
        if value is None and name not in _REQUIRED:
            continue
        if type(value) is not wanted:
            raise ValueError(f"{name} holds {value!r}, which is not {wanted.__name__}")
    return row


def _clean(metric: str, name: str, value: object) -> object:
    if value is None:
        return None
    kind = SCHEMA[name]
    where = f"metric {metric!r}: {name}"
    if kind is pl.String:
        if not isinstance(value, str):
            raise TypeError(f"{where} must be a string, not {value!r}")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(f"{where} is no valid Unicode: {value!r}") from error
        return str(value)
    if isinstance(value, (bool, str, bytes)) or type(value).__name__ in ("bool", "bool_"):
        raise TypeError(f"{where} must be a number, not {value!r}")
    if kind is pl.Int64:
        return _integer(where, value)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{where} must be one real number, not {value!r}") from error
    if not math.isfinite(number):
        raise ValueError(
            f"{where} is {number}: a record holds finite numbers only; end the run "
            "with status 'diverged' instead"
        )
    return number


def _integer(where: str, value: object) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise TypeError(f"{where} must be an integer, not {value!r}") from error
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{where} = {number} does not fit in 64 bits")
    return number


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number that a record may hold")
