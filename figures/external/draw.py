"""Figures of the section: methods, ways to serve a client, and what an ordered stream costs."""

from collections.abc import Mapping

import polars as pl
from matplotlib.figure import Figure

from figures.experiments.comparisons import difference_mark, mark, marks
from figures.experiments.dot_panels import Axis, dot_panels
from figures.experiments.measures import POLICIES
from figures.external.summary import Summary
from figures.style import Look, look

SERIES = {policy: look(policy) for policy in POLICIES}


def method_marks(summary: Summary) -> pl.DataFrame:
    """Accuracy by method as Table I serves, in per cent."""
    return marks(
        [
            {"panel": column, "row": algorithm, "series": policy, **mark(cell)}
            for (algorithm, policy, column), cell in summary.cells.items()
        ]
    )


def way_marks(summary: Summary) -> pl.DataFrame:
    """Accuracy of FedAvg's models by way of serving, in per cent."""
    return marks(
        [
            {"panel": column, "row": variant, "series": policy, **mark(cell)}
            for (policy, variant, column), cell in summary.ways.items()
            if policy in POLICIES
        ]
    )


def harm_marks(summary: Summary) -> pl.DataFrame:
    """Accuracy that an order costs; `row` is policy and variant, `series` the column."""
    return marks(
        [
            {
                "panel": order,
                "row": f"{policy} {variant}",
                "series": column,
                **difference_mark(found.difference, summary.streams[key]),
            }
            for key, found in summary.harms.items()
            for order, policy, variant, column in [key]
        ]
    )


def accuracies(table: pl.DataFrame, panels: Mapping[str, str], rows: Mapping[str, str]) -> Figure:
    """Draw accuracy by method or way (`row`), the model (`series`) and the client (`panel`)."""
    return dot_panels(table, Axis(panels, rows, SERIES, "test accuracy (%)", within=(0.0, 100.0)))


def harms(
    table: pl.DataFrame,
    panels: Mapping[str, str],
    rows: Mapping[str, str],
    series: Mapping[str, Look],
) -> Figure:
    """Draw the accuracy lost by way (`row`), order (`panel`) and held-out client (`series`)."""
    axis = Axis(
        panels,
        rows,
        series,
        "accuracy lost (points)",
        zero=True,
        joined=False,
        abreast=2,
        spread=0.6,
    )
    return dot_panels(table, axis)
