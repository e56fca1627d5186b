"""The causal graphs of Fig. 2 with their surgeries, and the steps of Proposition III.10 on them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from theory.causal import equation_20, proposition_iii10, test_graph, training_graph
from theory.do_calculus import Step
from theory.separation import DiGraph, mutilated
from theory.studies.corollary import Generators, Points, Progress
from theory.studies.rows import row

Rows = Iterator[dict[str, Any]]

PLACES = ("X", "D", "R", "S", "F", "Y")
"""A node's position is its place here, the same in every graph."""

_VARIANTS: dict[str, dict[str, Any]] = {
    "test": {},
    "test, population statistics": {"statistics": "population"},
    "test, rest of the batch": {"statistics": "stream"},
    "test, aggregated BN": {"policy": "aggregated"},
    "test, aggregated BN, rest of the batch": {"policy": "aggregated", "statistics": "stream"},
    "test, label shift": {"label": "shift"},
    "test, content causes the label": {"label": "content"},
}


def graphs(
    config: Mapping[str, Any], data: Points | None, generators: Generators, progress: Progress
) -> Rows:
    """Record the nodes and edges of Fig. 2, what do(S) and do(F) remove, and which steps hold.

    Steps are recorded of five graphs, and of the variants of the test graph in which the argument
    breaks or is mended; the path that breaks a step is its note.

    Args:
        config: nothing.
        data: nothing.
        generators: nothing.
        progress: told the fraction done.
    """
    del config, data, generators
    for policy in ("aggregated", "client_specific"):
        graph = training_graph(policy)
        yield from _drawn(f"train {policy}", graph)
        yield from _checked(f"train {policy}", equation_20(graph))
    graph, steps = test_graph(), proposition_iii10()
    yield from _drawn("test", graph)
    for node in ("S", "F"):
        yield from _drawn(f"test do({node})", graph, node)
        yield from _checked(f"test do({node})", [s for s in steps if s.name == f"rule1.D.{node}"])
    progress(0.4)
    for name, variant in _VARIANTS.items():
        yield from _checked(name, proposition_iii10(test_graph(**variant)))
    progress(1.0)


def _drawn(name: str, graph: DiGraph, fixed: str = "") -> Rows:
    """Nodes and edges; those into a node that is set from outside are marked as removed."""
    for node, role in graph.nodes(data="role"):
        kind = "intervened" if node == fixed else role
        yield row("node", PLACES.index(node), variant=name, client=node, note=kind)
    left = mutilated(graph, over=[fixed] if fixed else [])
    for source, target, style in graph.edges(data="style"):
        kind = style if left.has_edge(source, target) else "removed"
        yield row("edge", 1, variant=name, client=source, split=target, note=kind)


def _checked(name: str, steps: Iterable[Step]) -> Rows:
    for step in steps:
        at = {"variant": name, "client": step.name, "split": step.statement}
        yield row("step", step.holds, note=step.reason, **at)
