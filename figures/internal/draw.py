"""Figure of the section: a panel for each client, a row for each method, a mark for each policy."""

import polars as pl
from matplotlib.figure import Figure

from figures.experiments.comparisons import mark, marks
from figures.experiments.dot_panels import Axis, dot_panels
from figures.experiments.measures import POLICIES
from figures.internal.summary import Summary
from figures.style import look


def accuracy_marks(summary: Summary) -> pl.DataFrame:
    """The table behind the figure, in per cent."""
    return marks(
        [
            {"panel": column, "row": algorithm, "series": policy, **mark(cell)}
            for (algorithm, policy, column), cell in summary.cells.items()
            if policy in POLICIES
        ]
    )


def accuracies(table: pl.DataFrame, panels: dict[str, str], rows: dict[str, str]) -> Figure:
    """Draw the accuracy by client and method; `panels` and `rows` say what they are called."""
    series = {policy: look(policy) for policy in POLICIES}
    return dot_panels(table, Axis(panels, rows, series, "test accuracy (%)", within=(0.0, 100.0)))
