"""Everything that the section's figures, tables and claims need, computed once from the records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from figures.analysis.outside import Choice, Grid, choice, grid
from figures.analysis.sweeps import Sweep, sweeps
from figures.experiments.frame import joined, runs


@dataclass(frozen=True)
class Summary:
    """What the section shows; parts that were not run are empty.

    Attributes:
        grid: FedBN's model outside the federation over τ and n_t.
        epochs: accuracy against local epochs a round, at a fixed number in total.
        data: accuracy against the share of each client's images.
        domains: accuracy against the number of clients that share a domain.
        choice: what of BN stays with the clients, inside and outside.
        diverged: trainings that diverged, in words.
    """

    grid: Grid
    epochs: Sweep
    data: Sweep
    domains: Sweep
    choice: Choice
    diverged: list[str]


def summarise(rows: pl.DataFrame, manifests: Mapping[str, Mapping[str, Any]]) -> Summary:
    """Summarise the records of the section."""
    frame, behind = joined(rows, manifests), runs(manifests)
    found = sweeps(frame, behind)
    return Summary(
        grid(frame, behind),
        found["local_epochs"],
        found["fraction"],
        found["per_domain"],
        choice(frame, behind),
        lost(behind),
    )


def lost(behind: pl.DataFrame) -> list[str]:
    """Say of each training that diverged what it was, and in which round."""
    names = {
        "local_epochs": "E = {}",
        "fraction": "share {:g}",
        "per_domain": "{} clients a domain",
    }
    found = []
    for run in behind.filter(study="training", status="diverged").iter_rows(named=True):
        words = [run["algorithm"], f"{run['bn_policy'].replace('_', '-')} BN"]
        words += [text.format(run[name]) for name, text in names.items() if run[name] is not None]
        words.append(f"seed {run['seed']}")
        words += [f"without {run['held_out']}"] if run["held_out"] is not None else []
        when = f" (round {run['diverged_in_round']})" if run["diverged_in_round"] else ""
        found.append(", ".join(words) + when)
    return found
