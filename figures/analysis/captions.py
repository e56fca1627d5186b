"""Titles and captions of the section's figures: what is shown, what the intervals are, and n."""

from figures.analysis.summary import Summary
from figures.experiments.words import means

CAPTIONS: dict[str, tuple[str, str]] = {
    "momentum": (
        "Momentum τ and batch n_t outside the federation",
        "Test accuracy (%) of the client that was held out, served by FedBN's model adapted by "
        "Eqs. (3), (4): {means}. τ = 0: each batch "
        "alone. Frame: the values used elsewhere (0.9, 32); bold: the best of its panel. The "
        "stream is shuffled unless a panel says otherwise. Every panel has its own colours, from "
        "its lowest to its highest value.",
    ),
    "steps": (
        "Step size",
        "FedAvg and FedBN with SGD's step size lr, all else the same; after {rounds} rounds. The "
        "difference is one after this number of rounds, and depends on the step; every other "
        "result of this section is at lr = {lr:g}. ",
    ),
    "epochs": (
        "Local epochs a round",
        "FedAvg and FedBN with E local epochs a round and {rounds} rounds, so that the local "
        "epochs in total are the same; after the last round. ",
    ),
    "data": (
        "Amount of local data",
        "FedAvg, FedBN{local} on a share of each client's training images, the test images "
        "unchanged; after {rounds} rounds. ",
    ),
    "domains": (
        "Clients a domain",
        "Each domain's training images are dealt to as many clients, each measured on the whole "
        "test set of its domain; after {rounds} rounds. Mean over domains of the mean over their "
        "clients. ",
    ),
    "choice": (
        "What of BN stays with the clients",
        "FedAvg with all, none, or one part of batch normalization on the clients. (a), (b) test "
        "accuracy after the last round{folds}. (c) clients held out, served by the server's model "
        "as it is, or adapted by Eqs. (3), (4), τ = 0.9, n_t = 32, with the server's γ and β or "
        "with γ = 1, β = 0. Marks: {means}.",
    ),
}
LINES = (
    "(a) {means}. (b) Client-specific BN minus what is named, paired by seed, with the same "
    "kind of interval; above zero it is ahead."
)


def caption(name: str, summary: Summary) -> str:
    """The caption of a figure, its blanks filled from what was run."""
    text = CAPTIONS[name][1]
    if name == "momentum":
        seeds = summary.grid.seeds
        return text.format(
            means=f"mean over {seeds} seeds (the table has the intervals)"
            if seeds > 1
            else "one seed"
        )
    if name == "choice":
        folds = summary.choice.folds
        words = f", mean over {folds} federations that each lack one client" if folds else ""
        return text.format(folds=words, means=means(summary.choice.seeds))
    sweep = getattr(summary, name)
    local = " and training alone" if any(s == "local" for _, s in sweep.cells) else ""
    rounds = ", ".join(f"{count}" for count in dict.fromkeys(sweep.rounds.values()))
    filled = text.format(rounds=rounds, local=local, lr=summary.lr)
    return filled + LINES.format(means=means(sweep.seeds, "bands"))
