"""The section `causal`: Fig. 2's graphs, Proposition III.10, a structural model, label shift."""

from typing import Any

from figures.causal.captions import HEADINGS, caption
from figures.causal.claims import PROVEN, judge
from figures.causal.draw_distance import distance_marks, distances
from figures.causal.draw_graphs import causal_graphs
from figures.causal.draw_skew import label_shift
from figures.causal.draw_steps import step_grid
from figures.causal.draw_structural import answers, batch_sizes
from figures.causal.layouts import column_titles, tables
from figures.causal.summary import Summary, summarise
from figures.experiments.measures import POLICIES
from figures.experiments.product import Content, Drawing, presenter
from figures.experiments.wide import MEAN, WIDEST

__all__ = ["Summary", "content", "present", "summarise"]

LEAD = (
    "UniFed argues by causal graphs that client-specific batch normalization removes what is a "
    "nuisance of the domain: do(F) in training, and at test time do(S) in its stead "
    "(Proposition III.10). Here every step is checked by d-separation and the rules of the "
    "do-calculus; in a structural model the answers that they lead to are exact; networks are "
    "trained on it; and label shift on images shows where the argument stops."
)


def content(summary: Summary) -> Content:
    """What the section says of the records."""
    return Content(
        "Causal",
        LEAD,
        list(judge(summary)),
        drawings(summary),
        tables(summary),
        notes=summary.diverged,
        proven=PROVEN,
    )


present = presenter(summarise, content)


def drawings(summary: Summary) -> dict[str, Drawing]:
    """The figures that the records allow."""
    graphs, found, skew = summary.graphs, summary.structural, summary.skew
    made: dict[str, Any] = {}
    if graphs.nodes.height:
        made["graphs"] = lambda: causal_graphs(graphs)
    if graphs.steps.height:
        made["steps"] = lambda: step_grid(graphs)
    trained = any(cell.values for cell in found.errors.values())
    if found.risks.height or trained:
        made["answers"] = lambda: answers(found)
    served = any(k[1] == POLICIES[1] and k[3] is not None for k in found.errors)
    if found.risks["samples"].count() or served:
        made["batch_size"] = lambda: batch_sizes(found)
    marks = distance_marks(found)
    if marks["mean"].count():
        made["distance"] = lambda: distances(marks, found.scenarios)
    if any(cell.values for cell in skew.cells.values()):
        titles = {c: f"{name} held out" for c, name in column_titles(skew).items() if c != MEAN}
        titles = dict(list(titles.items())[:WIDEST])
        made["label_shift"] = lambda: label_shift(skew, titles)
    return {
        name: Drawing(HEADINGS[name], caption(name, graphs, found, skew), make)
        for name, make in made.items()
    }
