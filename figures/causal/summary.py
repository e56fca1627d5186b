"""What the section `causal` shows: graphs with steps, a structural model, label shift."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from figures.causal.graphs import Graphs, summarise_graphs
from figures.causal.skew import Skew, summarise_skew
from figures.causal.structural import Structural, summarise_structural


@dataclass(frozen=True)
class Summary:
    """The three parts; each may be empty, where it was not run."""

    graphs: Graphs
    structural: Structural
    skew: Skew

    @property
    def diverged(self) -> list[str]:
        """A sentence for each training that diverged."""
        return [*self.structural.diverged, *self.skew.diverged]


def summarise(rows: pl.DataFrame, manifests: Mapping[str, Mapping[str, Any]]) -> Summary:
    """Summarise the records of the section; those of other studies are left aside."""
    studies = {run: manifest["config"]["study"] for run, manifest in manifests.items()}
    graphs = [run for run, study in studies.items() if study == "graphs"]
    return Summary(
        summarise_graphs(rows.filter(pl.col("run").is_in(graphs))),
        summarise_structural(rows, manifests),
        summarise_skew(rows, manifests),
    )
