"""Everything that the section's figures, tables and claims need, computed once from the records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from figures.analysis.outside import Choice, Grid, choice, grid
from figures.analysis.sweeps import Sweep, at_lr, sweeps, usual_lr
from figures.experiments.frame import joined, runs
from figures.experiments.words import lost


@dataclass(frozen=True)
class Summary:
    """What the section shows; parts that were not run are empty.

    Attributes:
        grid: FedBN's model outside the federation over τ and n_t.
        lr: the usual step size, that of every part but `steps`; None without runs.
        steps: accuracy against the step size.
        epochs: accuracy against local epochs a round, at a fixed number in total.
        data: accuracy against the share of each client's images.
        domains: accuracy against the number of clients that share a domain.
        choice: what of BN stays with the clients, inside and outside.
        diverged: a sentence for each training that diverged.
    """

    grid: Grid
    lr: float | None
    steps: Sweep
    epochs: Sweep
    data: Sweep
    domains: Sweep
    choice: Choice
    diverged: list[str]


def summarise(rows: pl.DataFrame, manifests: Mapping[str, Mapping[str, Any]]) -> Summary:
    """Summarise the records of the section."""
    frame, behind = joined(rows, manifests), runs(manifests)
    found, lr = sweeps(frame, behind), usual_lr(behind)
    usual = at_lr(frame, lr), at_lr(behind, lr)
    return Summary(
        grid(*usual),
        lr,
        found["lr"],
        found["local_epochs"],
        found["fraction"],
        found["per_domain"],
        choice(*usual),
        lost(behind),
    )
