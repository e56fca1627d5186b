"""How far networks' answers lie from those of the structural model."""

import polars as pl
from matplotlib.figure import Figure

from figures.causal.structural import Structural
from figures.experiments.comparisons import mark, marks
from figures.experiments.dot_panels import Axis, dot_panels
from figures.experiments.measures import POLICIES
from figures.style import look

ROWS = {"observational": "P(Y | X)", "backdoor": "back-door", "do_f": "domain cut off"}
ROWS |= {"do_s": "do(S)", "bayes": "Bayes"}


def distance_marks(found: Structural) -> pl.DataFrame:
    """Mean |p_net − p_answer| by scenario, answer and policy, where networks are compared."""
    rows = []
    for scenario in found.scenarios:
        for answer in found.near:
            for policy in POLICIES:
                cell = found.distance(scenario, policy, answer)
                if cell is not None:
                    shown = mark(cell)
                    for end in ("mean", "lower", "upper"):
                        shown[end] = None if shown[end] is None else shown[end] / 100
                    rows.append({"panel": scenario, "row": answer, "series": policy, **shown})
    return marks(rows)


def distances(table: pl.DataFrame, scenarios: list[str]) -> Figure:
    """Draw the distances: a panel for each scenario, a row for each answer."""
    series = {policy: look(policy) for policy in POLICIES}
    measured = r"mean $|p_{\mathrm{net}} - p_{\mathrm{answer}}|$"
    panels = {name: name for name in scenarios if name in table["panel"]}
    rows = {name: label for name, label in ROWS.items() if name in table["row"]}
    abreast = 2 if len(panels) in (2, 4) else 3
    axis = Axis(panels, rows, series, measured, abreast=abreast, within=(0.0, 1.0))
    return dot_panels(table, axis)
