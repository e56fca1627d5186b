"""The causal graphs and the steps of Proposition III.10, as tables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from figures.selection import of

OBSERVED, LATENT, INTERVENED = "observed", "latent", "intervened"
SOLID, DASHED, REMOVED = "solid", "dashed", "removed"
BASE = "test"
"""The graph of testing as the paper draws it; other graphs are held against it."""
TITLES = {
    "train aggregated": "training, aggregated BN",
    "train client_specific": "training, client-specific BN",
    "test": "testing",
    "test do(S)": "testing, do(S)",
    "test do(F)": "testing, do(F)",
    "test, population statistics": "testing (population's statistics)",
    "test, rest of the batch": "testing (rest of the batch, D → B → S)",
    "test, aggregated BN": "testing (D → F kept)",
    "test, aggregated BN, rest of the batch": "testing (D → F kept, and D → B → S)",
    "test, label shift": "testing (label shift, D → Y)",
    "test, content causes the label": "testing (C causes X and Y, F does not)",
}
RULES = {
    "rule1": "rule 1",
    "rule2": "rule 2",
    "rule3": "rule 3",
    "mixture": "rules 2 and 3",
    "backdoor": "back-door criterion",
    "frontdoor": "front-door criterion",
}
SEPARATION = "d-separation"


@dataclass(frozen=True)
class Graphs:
    """What the graphs are and which steps hold in them.

    Attributes:
        nodes: graph, node, kind (observed, latent, intervened), place.
        edges: graph, source, target, kind (solid, dashed, removed).
        steps: graph, step, statement, holds, path (the open one that breaks it, or "").
    """

    nodes: pl.DataFrame
    edges: pl.DataFrame
    steps: pl.DataFrame

    @property
    def names(self) -> list[str]:
        """The graphs in the order of the records."""
        return self.nodes["graph"].unique(maintain_order=True).to_list()

    @property
    def ordered(self) -> pl.DataFrame:
        """The steps, those of the first graph checked first."""
        parts = [of(self.steps, graph=name) for name in self.checked]
        return pl.concat(parts) if parts else self.steps

    @property
    def checked(self) -> list[str]:
        """The graphs that steps are recorded of, the paper's graph of testing first."""
        there = self.steps["graph"].unique(maintain_order=True).to_list()
        return sorted(there, key=lambda name: name != BASE)

    def failing(self, graph: str) -> dict[str, Any] | None:
        """The first step of a graph that an open path breaks."""
        rows = of(self.steps, graph=graph, holds=False).filter(pl.col("path") != "")
        return None if rows.is_empty() else rows.row(0, named=True)

    def broken(self, graph: str) -> list[str]:
        """The nodes along that path."""
        step = self.failing(graph)
        return [] if step is None else walk(step["path"])

    def telling(self) -> Iterator[dict[str, Any]]:
        """Every step once, in the first graph that has it.

        Of the training graphs also whether D and F are independent, which the paper speaks of.
        """
        known: set[str] = set()
        for row in self.ordered.iter_rows(named=True):
            trained = row["graph"].startswith("train") and row["step"] == "separation.D"
            if trained or row["step"] not in known:
                yield row
            known.add(row["step"])

    def otherwise(self) -> dict[str, list[dict[str, Any]]]:
        """Graph -> its steps that come out otherwise than in the first graph that has them."""
        known: dict[str, bool] = {}
        found: dict[str, list[dict[str, Any]]] = {}
        for row in self.ordered.iter_rows(named=True):
            if known.setdefault(row["step"], row["holds"]) != row["holds"]:
                found.setdefault(row["graph"], []).append(row)
        return found


def summarise_graphs(rows: pl.DataFrame) -> Graphs:
    """Tables of the records of the study "graphs"; a graph recorded twice counts once."""
    graph, text = pl.col("variant").alias("graph"), pl.col("note").fill_null("")
    kind = text.alias("kind")
    nodes = of(rows, metric="node").select(
        graph, pl.col("client").alias("node"), kind, pl.col("value").alias("place")
    )
    edges = of(rows, metric="edge").select(
        graph, pl.col("client").alias("source"), pl.col("split").alias("target"), kind
    )
    steps = of(rows, metric="step").select(
        graph,
        pl.col("client").alias("step"),
        pl.col("split").alias("statement"),
        (pl.col("value") > 0.5).alias("holds"),
        text.alias("path"),
    )
    return Graphs(
        nodes.unique(["graph", "node"], keep="first", maintain_order=True),
        edges.unique(["graph", "source", "target"], keep="first", maintain_order=True),
        steps.unique(["graph", "step"], keep="first", maintain_order=True),
    )


def walk(path: str) -> list[str]:
    """The nodes along a path that is written with arrows: "S ← R → F" gives S, R, F."""
    return [name.strip() for name in re.split("[←→⇠⇢]|<-|->", path) if name.strip()]


def title(graph: str) -> str:
    """What a graph is called."""
    return TITLES.get(graph, graph)


def rule_of(step: str) -> str:
    """What gives a step, by the first word of its id."""
    return RULES.get(re.split(r"[^a-z0-9]", step.lower())[0], SEPARATION)
