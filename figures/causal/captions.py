"""Titles and captions of the section's figures: what is shown, what the intervals are, and n."""

from typing import Any

from figures.causal.draw_graphs import TITLES
from figures.causal.graphs import Graphs
from figures.causal.skew import Skew
from figures.causal.structural import Structural
from figures.experiments.cells import Cell
from figures.experiments.names import BN, client_titles
from figures.experiments.wide import MEAN, column_of
from figures.experiments.words import WITHIN, counts, hollow, means, what_diverged

HEADINGS = {
    "graphs": "Causal graphs of training and testing",
    "answers": "Answers of the structural model, and networks",
    "batch_size": "Few points behind the statistics",
    "distance": "Which answer networks approach",
    "label_shift": "Label shift breaks test-time batch normalization",
}


def caption(name: str, graphs: Graphs, found: Structural, skew: Skew) -> str:
    """The caption of a figure, its blanks filled from what was run and from what diverged."""
    if name == "graphs":
        return _graphs(graphs)
    if name == "label_shift":
        return _label_shift(skew)
    return {"answers": _answers, "batch_size": _batch_size, "distance": _distance}[name](found)


def _graphs(graphs: Graphs) -> str:
    lines = []
    for name in graphs.names:
        step = graphs.failing(name)
        if step is not None:
            title = TITLES.get(name, name).replace("$", "")
            lines.append(f" Red, in {title}: {step['path']} is open, so {step['statement']} fails.")
    return (
        "UniFed's Fig. 2, drawn from the graphs that the steps are checked in. X input, R raw and "
        "F normalized features, S the statistics of test-time BN, Y label, D the distribution of "
        "the seen clients (s) or of the unseen one (u), which nobody observes. do(·) removes the "
        "arrows that enter what is set." + "".join(lines)
    )


def _answers(found: Structural) -> str:
    drawn = [cell for key, cell in found.errors.items() if _shown(found, key)]
    nets = f" Networks: {means(counts(drawn))}{hollow(drawn)}." if drawn else ""
    return (
        "0-1 error on a client that was not trained on, against how strong the scenario is. "
        f"Lines: exact; hollow marks: {_simulated(found)}.{nets}{_served(found)} do(S) puts the "
        "statistics of the unseen client's own features in the place of the server's; do(F) sets "
        "the normalized features; the back-door adjustment averages over the seen domains. One "
        f"scale for all panels, {WITHIN}.{_lost(found)}"
    )


def _batch_size(found: Structural) -> str:
    drawn = [c for k, c in found.errors.items() if k[2] == _strength(found, k[0])]
    nets = f" Networks: {means(counts(drawn))}{hollow(drawn)}." if drawn else ""
    return (
        "0-1 error on the unseen client against the points behind its statistics, on a "
        f"logarithmic axis. Line of do(S): exact; hollow marks: {_simulated(found)}.{nets} "
        "Horizontal: what does not depend on the batch. One scale for all panels, "
        f"{WITHIN}.{_lost(found)}"
    )


def _distance(found: Structural) -> str:
    drawn = [c for key, c in found.distances.items() if _shown(found, key)]
    return (
        "Mean over the unseen client's points of |p_net − p_answer|, where p is the probability "
        "of a class that the network or an answer of the structural model gives; left is nearer. "
        f"Marks: {means(counts(drawn))}{hollow(drawn)}; a grey line joins the two kinds of "
        f"BN.{_served(found)}{_lost(found)}"
    )


def _label_shift(skew: Skew) -> str:
    drawn = skew.cells.values()
    names = {column_of(name): title for name, title in client_titles(skew.clients).items()}
    lost: dict[str, Cell] = {}
    for (_, column, _ratio), cell in skew.cells.items():
        if column != MEAN:
            lost.setdefault(f"{names[column]} held out", cell)
    return (
        "FedBN's model serves the client that was held out with statistics from: the stream "
        "itself, whose classes are skewed; a balanced stream of the same client; the server. All "
        "are scored on the same skewed images. Below, the harm: balanced minus skewed, paired by "
        f"seed, one scale for all. Lines: {means(counts(drawn), 'bands')}{hollow(drawn)}. "
        f"Accuracies {WITHIN}.{what_diverged(lost)}"
    )


def _simulated(found: Structural) -> str:
    size = "" if found.simulations is None else f" of {found.simulations:,} points"
    return f"a simulation{size}, with 95 % intervals"


def _served(found: Structural) -> str:
    sizes = sorted({at.samples for at in found.where.values() if at.samples is not None})
    if not sizes:
        return ""
    return f" Client-specific BN has the statistics of n_t = {', '.join(map(str, sizes))} points."


def _shown(found: Structural, key: tuple[Any, ...]) -> bool:
    """Whether a cell is behind a mark: aggregated BN, or client-specific BN at its n_t."""
    at = found.where.get(key[0])
    return at is not None and key[3] == (at.samples if key[1] == "client_specific" else None)


def _strength(found: Structural, scenario: str) -> float | None:
    at = found.where.get(scenario)
    return None if at is None else at.strength


def _lost(found: Structural) -> str:
    lost = {
        f"{scenario}, strength {strength:g}, {BN.get(policy, policy)} BN": cell
        for (scenario, policy, strength, _), cell in found.errors.items()
        if strength is not None
    }
    return what_diverged(lost)
