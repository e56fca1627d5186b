"""Rows of a study: long records with one measured value each."""

from collections.abc import Iterator
from typing import Any, SupportsFloat

from theory.conditioning import StepSizes
from theory.inequality import Inequality
from theory.spectrum import Enclosure


def row(metric: str, value: SupportsFloat, **where: Any) -> dict[str, Any]:
    """Make a record of a single value, with the coordinates that apply to it."""
    return {"metric": metric, "value": float(value), **where}


def enclosed(metric: str, enclosure: Enclosure, **where: Any) -> dict[str, Any]:
    """Make a record of an enclosure: its midpoint as the value, its ends as the interval."""
    middle = 0.5 * (enclosure.lower + enclosure.upper)
    return row(metric, middle, lower=enclosure.lower, upper=enclosure.upper, **where)


def verdict_row(metric: str, inequality: Inequality, **where: Any) -> dict[str, Any]:
    """The verdict on an inequality, and 1 where it is certified, −1 where it certainly fails."""
    value = {"certified": 1, "consistent": 0, "violated": -1}[inequality.verdict]
    return row(metric, value, note=inequality.verdict, **where)


def step_rows(found: StepSizes, **where: Any) -> Iterator[dict[str, Any]]:
    """What the largest eigenvalue adds to a comparison of the smallest ones."""
    yield verdict_row("step_size", found.largest, **where)
    yield enclosed("step_gain", found.step_gain, **where)
    if found.condition is not None and found.gain is not None:
        yield verdict_row("condition", found.condition, **where)
        yield enclosed("condition_gain", found.gain, **where)
