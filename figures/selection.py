"""Rows of a table by the values of its columns."""

from typing import Any

import polars as pl


def of(frame: pl.DataFrame, **values: Any) -> pl.DataFrame:
    """Keep the rows with these values; a list keeps those with any of its values."""
    for name, value in values.items():
        keep = pl.col(name).is_in(value) if isinstance(value, list) else pl.col(name) == value
        frame = frame.filter(keep)
    return frame
