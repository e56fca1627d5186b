"""The causal graphs and the steps of Proposition III.10, as tables."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from figures.selection import of

OBSERVED, LATENT, INTERVENED = "observed", "latent", "intervened"
SOLID, DASHED, REMOVED = "solid", "dashed", "removed"


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

    def failing(self, graph: str) -> dict[str, Any] | None:
        """The first step of a graph that an open path breaks."""
        rows = of(self.steps, graph=graph, holds=False).filter(pl.col("path") != "")
        return None if rows.is_empty() else rows.row(0, named=True)

    def broken(self, graph: str) -> list[str]:
        """The nodes along that path."""
        step = self.failing(graph)
        return [] if step is None else walk(step["path"])


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
    for arrow in ("⇠", "⇢", "←", "→", "<-", "->", "—"):
        path = path.replace(arrow, "\0")
    return [name.strip() for name in path.split("\0") if name.strip()]
