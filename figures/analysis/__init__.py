"""The section `analysis`: what the advantage of client-specific BN depends on."""

from figures.analysis.captions import CAPTIONS, caption
from figures.analysis.claims import judge
from figures.analysis.draw_choice import choice_marks, choices
from figures.analysis.draw_grid import grid
from figures.analysis.draw_lines import Setting, lines
from figures.analysis.drawn import curves, differences, grid_cells, panel
from figures.analysis.layouts import SWEEPS, tables
from figures.analysis.outside import Grid
from figures.analysis.summary import Summary, summarise
from figures.analysis.sweeps import Sweep
from figures.experiments.measures import SAMPLES, TAU
from figures.experiments.names import client_titles
from figures.experiments.product import Content, Drawing, presenter
from figures.experiments.wide import MEAN, WIDEST, column_of

__all__ = ["Summary", "content", "present", "summarise"]

LEAD = (
    "What the advantage of client-specific batch normalization depends on: the momentum τ and "
    "the batch n_t of UniFed's Eqs. (3), (4), SGD's step size, then, as in Fig. 4 of FedBN, local "
    "epochs, the amount of local data and the number of clients, and which part of BN stays with "
    "the clients."
)
LABELS = {
    "steps": "step size lr",
    "epochs": "local epochs a round $E$",
    "data": "share of each client's training images",
    "domains": "clients a domain",
}
STREAMS = {"sorted": "sorted by class", "drifting": "drifting"}


def content(summary: Summary) -> Content:
    """What the section says of the records."""
    claims, found = list(judge(summary)), drawings(summary)
    return Content("Analysis", LEAD, claims, found, list(tables(summary)), notes=summary.diverged)


present = presenter(summarise, content)


def drawings(summary: Summary) -> dict[str, Drawing]:
    """The figures that the records allow."""
    found = _grid(summary)
    for name in SWEEPS:
        sweep: Sweep = getattr(summary, name)
        table, ahead = curves(sweep), differences(sweep)
        if table.height:
            setting = Setting(LABELS[name], sweep.values, name == "data")
            found[name] = Drawing(
                CAPTIONS[name][0],
                caption(name, summary),
                lambda table=table, ahead=ahead, setting=setting: lines(table, ahead, setting),
            )
    marks = choice_marks(summary.choice)
    if marks["mean"].count():
        policies = summary.choice.policies
        title = CAPTIONS["choice"][0]
        found["choice"] = Drawing(
            title, caption("choice", summary), lambda: choices(marks, policies)
        )
    return found


def _grid(summary: Summary) -> dict[str, Drawing]:
    cells, titles = grid_cells(summary.grid), panel_titles(summary.grid)
    # One τ and one n_t are no grid.
    if cells.select("tau", "samples").unique().height < 2:
        return {}
    words = caption("momentum", summary)
    return {
        "momentum": Drawing(
            CAPTIONS["momentum"][0], words, lambda: grid(cells, titles, (TAU, SAMPLES))
        )
    }


def panel_titles(found: Grid) -> dict[str, str]:
    """Panels of the grid: held-out clients, their mean, and the mean of each other order."""
    names = client_titles(found.clients[:WIDEST])
    titles = {panel("shuffled", column_of(c)): f"{name} held out" for c, name in names.items()}
    if len(found.clients) > 1:
        titles[panel("shuffled", MEAN)] = "mean over the held-out clients"
    for order, words in STREAMS.items():
        titles[panel(order, MEAN)] = f"mean, {words}" if len(found.clients) > 1 else words
    there = {panel(order, column) for order, column, _, _ in found.cells}
    return {name: title for name, title in titles.items() if name in there}
