"""Titles and captions of the section's figures: what is shown, what the intervals are, and n."""

from figures.analysis.layouts import SERIES, SWEEPS, value_text
from figures.analysis.outside import Choice, Grid
from figures.analysis.summary import Summary
from figures.analysis.sweeps import Sweep
from figures.experiments.comparisons import differences_of
from figures.experiments.names import client_titles
from figures.experiments.wide import MEAN
from figures.experiments.words import (
    WITHIN,
    counts,
    equal,
    hollow,
    in_rounds,
    means,
    over_seeds,
    what_diverged,
)
from figures.style import look

CAPTIONS: dict[str, tuple[str, str]] = {
    "momentum": (
        "Momentum τ and batch n_t outside the federation",
        "Test accuracy (%) of the client that was held out, served by FedBN's model adapted by "
        "Eqs. (3), (4): {means}. τ = 0: each batch "
        "alone. Frame: the values used elsewhere (0.9, 32); bold: the best of its panel. The "
        "stream is shuffled unless a panel says otherwise. Every panel has its own colours, from "
        "its lowest to its highest value.{lost}",
    ),
    "steps": (
        "Step size",
        "FedAvg and FedBN with SGD's step size lr, all else the same; after {rounds}. The "
        "difference is one after this number of rounds, and depends on the step; every other "
        "result of this section is at lr = {lr:g}. ",
    ),
    "epochs": (
        "Local epochs a round",
        "FedAvg and FedBN with E local epochs a round and {rounds}, so that the local "
        "epochs in total are the same; after the last round. ",
    ),
    "data": (
        "Amount of local data",
        "FedAvg, FedBN{local} on a share of each client's training images, the test images "
        "unchanged; after {rounds}. ",
    ),
    "domains": (
        "Clients a domain",
        "Each domain's training images are dealt to as many clients, each measured on the whole "
        "test set of its domain; after {rounds}. Mean over domains of the mean over their "
        "clients. ",
    ),
    "choice": (
        "What of BN stays with the clients",
        "FedAvg with all, none, or one part of batch normalization on the clients. (a), (b) test "
        "accuracy after the last round{folds}. (c) clients held out, served by the server's model "
        "as it is, or adapted by Eqs. (3), (4), τ = 0.9, n_t = 32, with the server's γ and β or "
        "with γ = 1, β = 0. Marks: {means}. Every panel has its own scale, {within}.{lost}",
    ),
}
LINES = (
    "(a) {means}; axis {within}. (b) Client-specific BN minus what is named, paired by seed, with "
    "the same kind of interval{equal}; above zero it is ahead.{lost}"
)


def caption(name: str, summary: Summary) -> str:
    """The caption of a figure, its blanks filled from what was run and from what diverged."""
    text = CAPTIONS[name][1]
    if name == "momentum":
        return text.format(**_momentum(summary.grid))
    if name == "choice":
        return text.format(**_choice(summary.choice))
    sweep: Sweep = getattr(summary, name)
    local = " and training alone" if any(s == "local" for _, s in sweep.cells) else ""
    shown = sweep.cells.values()
    lost = {
        f"{SERIES[series]}, {SWEEPS[name][1]} = {value_text(name, value)}": cell
        for (value, series), cell in sweep.cells.items()
    }
    filled = text.format(rounds=in_rounds(sweep.rounds.values()), local=local, lr=summary.lr)
    words = means(counts(shown), "bands") + hollow(shown)
    bare = equal(differences_of(sweep.ahead) + differences_of(sweep.alone))
    blanks = {"means": words, "within": WITHIN, "equal": bare, "lost": what_diverged(lost)}
    return filled + LINES.format(**blanks)


def _momentum(grid: Grid) -> dict[str, str]:
    shown, names = grid.cells.values(), client_titles(grid.clients)
    words = over_seeds(counts(shown))
    if words != "one seed":
        fewer = ", n: fewer, where seeds diverged" * any(c.diverged for c in shown)
        words += f" (the table has the intervals{fewer})"
    lost = {f"{names[client]} held out": cell for client, cell in grid.lost.items()}
    return {"means": words, "lost": what_diverged(lost)}


def _choice(choice: Choice) -> dict[str, str]:
    shown, folds = choice.cells.values(), choice.folds
    words = f", mean over {folds} federations that each lack one client" if folds > 1 else (
        ", one client held out" * folds
    )  # fmt: skip
    lost = {look(p).label: cell for (p, what), cell in choice.cells.items() if what == MEAN}
    marks = means(counts(shown)) + hollow(shown)
    return {"folds": words, "means": marks, "within": WITHIN, "lost": what_diverged(lost)}
