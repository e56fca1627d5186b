"""Rows of a study: long records with one measured value each."""

from typing import Any, SupportsFloat

from theory.spectrum import Enclosure


def row(metric: str, value: SupportsFloat, **where: Any) -> dict[str, Any]:
    """Make a record of a single value, with the coordinates that apply to it."""
    return {"metric": metric, "value": float(value), **where}


def enclosed(metric: str, enclosure: Enclosure, **where: Any) -> dict[str, Any]:
    """Make a record of an enclosure: its midpoint as the value, its ends as the interval."""
    middle = 0.5 * (enclosure.lower + enclosure.upper)
    return row(metric, middle, lower=enclosure.lower, upper=enclosure.upper, **where)
