"""What of BN stays with the clients: four policies, inside the federation and outside."""

import polars as pl
from matplotlib.figure import Figure

from figures.analysis.outside import Choice
from figures.experiments.comparisons import mark, marks
from figures.experiments.dot_panels import Axis, dots
from figures.experiments.wide import MEAN, WORST
from figures.style import DOUBLE, INK, Look, legend_below, letter, look, panels

TITLES = {
    MEAN: "inside: mean over the clients",
    WORST: "inside: worst client",
    "outside": "outside: held-out clients",
}
INSIDE = {"inside": Look("inside", INK, "-", "D")}
OUTSIDE = {
    "server": Look("server's statistics", "#777777", ":", "v"),
    "adapted": Look("adapted, γ and β given", "#0072b2", "-", "o"),
    "identity": Look("adapted, γ = 1, β = 0", "#e69f00", "--", "s"),
}


def choice_marks(choice: Choice) -> pl.DataFrame:
    """The table behind the figure, in per cent."""
    rows = []
    for (policy, what), cell in choice.cells.items():
        outside = what in OUTSIDE
        place = {"panel": "outside", "series": what} if outside else {"panel": what}
        rows.append({"series": "inside", **place, "row": policy, **mark(cell)})
    return marks(rows)


def choices(table: pl.DataFrame, policies: list[str]) -> Figure:
    """Draw the accuracy inside (mean, worst client) and outside by policy."""
    names = {policy: look(policy).label for policy in policies}
    there = [name for name in TITLES if name in table["panel"]]
    ratio = (1.0 + 0.34 * len(policies)) / DOUBLE
    figure, axes = panels(1, len(there), width="double", ratio=ratio, sharey=True)
    for ax, name in zip(axes, there, strict=True):
        rows = table.filter(pl.col("panel") == name)
        series = OUTSIDE if name == "outside" else INSIDE
        series = {key: style for key, style in series.items() if key in rows["series"]}
        spread = 0.4 if len(series) > 1 else 0.0
        axis = Axis(
            TITLES,
            names,
            series,
            "test accuracy (%)",
            joined=False,
            spread=spread,
            within=(0.0, 100.0),
        )
        dots(ax, rows, axis)
        ax.set_title(TITLES[name])
        ax.set_xlabel(axis.measured)
    letter(axes)
    legend_below(figure, axes[there.index("outside") :] if "outside" in there else [])
    return figure
