"""Titles and captions of the section's figures: what is shown, what the intervals are, and n."""

from typing import Any

from figures.causal.graphs import Graphs, title
from figures.causal.skew import Skew
from figures.causal.structural import Structural
from figures.experiments.cells import Cell
from figures.experiments.names import BN, client_titles
from figures.experiments.wide import MEAN, WIDEST, column_of
from figures.experiments.words import WITHIN, counts, hollow, means, what_diverged

HEADINGS = {
    "graphs": "Causal graphs of training and testing",
    "steps": "Which step holds in which graph",
    "answers": "Answers of the structural model, and networks",
    "batch_size": "Few points behind the statistics",
    "distance": "Which answer networks approach",
    "label_shift": "Label shift breaks test-time batch normalization",
}


STEPS = (
    "Steps of Proposition III.10 and of Eq. (20), each checked by d-separation in the graph that "
    "its rule of the do-calculus asks for. The first column is the graph of testing that the paper "
    "draws; in the others one thing differs, or the two that are named. B: the other images behind "
    "the statistics, which the paper has in the one node R. Training: aggregated BN has D → F, "
    "client-specific BN has not. No mark: not asked of that graph. The paths are in the table. A "
    "step that fails is not licensed by the graph; the two sides may still agree in some "
    "distributions."
)

NAMED = (
    "Domain cut off: P(Y | F) of a domain with equally frequent labels and no nuisance, F free of "
    "the domain's location and scale; it is UniFed's P(Y | do(F)) if F causes Y by one law in all "
    "domains (shift, feature scales). In the model a content causes image and label, and setting F "
    "leaves P(Y). do(S): P(Y | F) under S := each domain's own statistics, in training too."
)


def caption(name: str, graphs: Graphs, found: Structural, skew: Skew) -> str:
    """The caption of a figure, its blanks filled from what was run and from what diverged."""
    if name == "graphs":
        return _graphs(graphs)
    if name == "steps":
        return STEPS
    if name == "label_shift":
        return _label_shift(skew)
    return {"answers": _answers, "batch_size": _batch_size, "distance": _distance}[name](found)


def _graphs(graphs: Graphs) -> str:
    lines = []
    for name in graphs.names:
        step = graphs.failing(name)
        if step is not None:
            broken = f"{step['path']} is open and breaks {step['statement']}"
            lines.append(f"{title(name)}: {broken}")
    return (
        "UniFed's Fig. 2, drawn from the graphs that the steps are checked in. X input, R raw and "
        "F normalized features, S the statistics of test-time BN, Y label, D the distribution of "
        "the seen clients (s) or of the unseen one (u), which nobody observes. do(·) removes the "
        "arrows that enter what is set." + (f" Red: {'; '.join(lines)}." if lines else "")
    )


def _answers(found: Structural) -> str:
    drawn = [cell for key, cell in found.errors.items() if _shown(found, key)]
    nets = f" Networks: {means(counts(drawn))}{hollow(drawn)}." if drawn else ""
    return (
        "0-1 error on a client that was not trained on, against how strong the scenario is. Shift: "
        "domains differ by location and scale of the features; label shift: by how frequent the "
        "labels are; confounded: by a nuisance feature that goes with the label, the other way "
        "round in the unseen domain; feature scales: single features are scaled apart. "
        f"Lines: exact; hollow marks: {_simulated(found)}.{nets}{_served(found)} {NAMED} The "
        "back-door adjustment averages over the seen domains. Lines may coincide: P(Y | X) is "
        f"drawn wide. One scale for all panels, {WITHIN}.{_lost(found)}"
    )


def _batch_size(found: Structural) -> str:
    drawn = [c for k, c in found.errors.items() if k[2] == _strength(found, k[0])]
    nets = f" Networks: {means(counts(drawn))}{hollow(drawn)};" if drawn else ""
    nets += " client-specific BN with the statistics of Eqs. (3), (4), or of each batch alone "
    nets += "(τ = 0), as do(S) has them." if drawn else ""
    return (
        "0-1 error on the unseen client against the size of its test batches, on a logarithmic "
        f"axis. do(S) with statistics of a batch: exact; hollow marks: {_simulated(found)}."
        f"{nets if drawn else ''} Horizontal: what does not depend on the batch. {NAMED} One scale "
        f"for all panels, {WITHIN}.{_lost(found)}"
    )


def _distance(found: Structural) -> str:
    drawn = [c for key, c in found.distances.items() if _shown(found, key)]
    return (
        "Mean over the unseen client's points of |p_net − p_answer|, where p is the probability "
        "of a class that the network or an answer of the structural model gives; left is nearer. "
        f"Marks: {means(counts(drawn))}{hollow(drawn)}; a grey line joins the two kinds of "
        f"BN.{_served(found)} {NAMED}{_lost(found)}"
    )


def _label_shift(skew: Skew) -> str:
    drawn = skew.cells.values()
    names = {column_of(name): title for name, title in client_titles(skew.clients).items()}
    more = " The table has more clients." if len(skew.clients) > WIDEST else ""
    lost: dict[str, Cell] = {}
    for (_, column, _ratio), cell in skew.cells.items():
        if column != MEAN:
            lost.setdefault(f"{names[column]} held out", cell)
    return (
        "FedBN's model serves the client that was held out with statistics from: the stream "
        "itself, whose classes are skewed; as many other images of the same client, all classes "
        "alike; the server. All are scored on the same skewed images. Below, the harm: balanced "
        "minus skewed, paired by seed, one scale for all. Lines: "
        f"{means(counts(drawn), 'bars and bands')}{hollow(drawn)}. "
        f"Accuracies {WITHIN}.{_families(skew)}{what_diverged(lost)}{more}"
    )


def _families(skew: Skew) -> str:
    """Over what p-values of the harm are corrected, in claims and in the table."""
    if len(skew.worst) == len(skew.harms):
        return ""
    number = len(skew.worst)
    of_claims = f"{number} differences" if number > 1 else "one difference"
    return (
        f" Holm's correction of the harm: claims over the {of_claims} at ratio "
        f"{skew.ratios[-1]:g}, the table over all {len(skew.harms)}."
    )


def _simulated(found: Structural) -> str:
    size = "" if found.simulations is None else f" of {found.simulations:,} points"
    return f"a simulation{size}, with 95 % intervals"


def _served(found: Structural) -> str:
    sizes = sorted({at.samples for at in found.where.values() if at.samples is not None})
    if not sizes:
        return ""
    several = ", ".join(map(str, sizes))
    return f" Client-specific BN serves by Eqs. (3), (4) with test batches of {several} points."


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
