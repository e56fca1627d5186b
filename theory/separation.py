"""d-separation in directed acyclic graphs, and the paths that break it (Pearl 2009, §1.2.3).

A path is open given Z if every collider on it (→ C ←) is in Z or has a descendant in Z, and every
other inner node is outside Z. X and Y are d-separated by Z if no path between them is open; then
they are independent given Z in every distribution that factorises along the graph. `d_separated`
asks networkx, which works on reachability; `open_path` tries the paths themselves.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Set
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx

    DiGraph = nx.DiGraph
    Nodes = str | Iterable[str]
else:
    # Checked by hand, with advice; and networkx takes long to import.
    DiGraph = Nodes = object

__all__ = ["d_separated", "mutilated", "open_path"]


def mutilated(graph: DiGraph, *, over: Nodes = (), under: Nodes = ()) -> DiGraph:
    """The graph after surgery, as in G with a bar over or under X (Pearl 2009, §3.4).

    Args:
        graph: a directed acyclic graph whose nodes are strings.
        over: nodes whose incoming arrows are removed: they are set from outside, do(·).
        under: nodes whose outgoing arrows are removed: their effects are cut off.

    Returns:
        A new graph with all the nodes and their attributes.

    Raises:
        TypeError, ValueError: no graph, a cycle, unknown nodes.
    """
    graph = as_dag(graph)
    into, out = as_nodes(graph, over, "over"), as_nodes(graph, under, "under")
    result = graph.copy()
    result.remove_edges_from([e for e in graph.edges if e[1] in into or e[0] in out])
    return result


def d_separated(graph: DiGraph, x: Nodes, y: Nodes, given: Nodes = ()) -> bool:
    """Whether `given` d-separates x from y, by networkx.

    Args:
        graph: a directed acyclic graph whose nodes are strings.
        x: a node, or several.
        y: likewise.
        given: the nodes conditioned on; none by default.

    Raises:
        TypeError, ValueError: no graph, a cycle, unknown nodes, no node, overlapping sets.
    """
    import networkx as nx

    graph, (x, y, given) = _query(graph, x, y, given)
    return bool(nx.is_d_separator(graph, set(x), set(y), set(given)))


def open_path(graph: DiGraph, x: Nodes, y: Nodes, given: Nodes = ()) -> tuple[str, ...] | None:
    """A shortest path from x to y that is open given `given`; None if they are d-separated.

    Written with its arrows, ("S", "←", "R", "→", "F"), so that " ".join(path) can be read. It is
    found along the paths themselves, without networkx's test: there are exponentially many, so
    keep to graphs of a dozen nodes or two.

    Args:
        graph: a directed acyclic graph whose nodes are strings.
        x: a node, or several.
        y: likewise.
        given: the nodes conditioned on; none by default.

    Raises:
        TypeError, ValueError: as for `d_separated`.
    """
    graph, (x, y, given) = _query(graph, x, y, given)
    opened = set(given).union(*(_ancestors(graph, node) for node in given))
    queue: deque[tuple[str, ...]] = deque((node,) for node in x)
    while queue:
        path = queue.popleft()
        for node in _neighbours(graph, path[-1]):
            if node in path or not _passes(graph, (*path[-2:], node), given, opened):
                continue
            if node in y:
                return _written(graph, (*path, node))
            queue.append((*path, node))
    return None


def directed_path(
    graph: DiGraph, source: str, target: str, avoiding: tuple[str, ...] = ()
) -> tuple[str, ...] | None:
    """A shortest directed path, written with its arrows, that meets no node of `avoiding`."""
    queue: deque[tuple[str, ...]] = deque([(source,)])
    seen = {source, *avoiding}
    while queue:
        path = queue.popleft()
        for node in graph.successors(path[-1]):
            if node == target:
                return _written(graph, (*path, node))
            if node not in seen:
                seen.add(node)
                queue.append((*path, node))
    return None


def as_dag(graph: object) -> DiGraph:
    """The graph itself, if it is a directed acyclic one with nodes named by strings.

    Raises:
        TypeError: no networkx.DiGraph, or a node that is no string.
        ValueError: a cycle.
    """
    import networkx as nx

    if not isinstance(graph, nx.DiGraph):
        raise TypeError(
            f"graph must be a networkx.DiGraph, not {type(graph).__name__}: "
            "build one, such as networkx.DiGraph([('D', 'X'), ('X', 'R')])."
        )
    for node in graph.nodes:
        if not isinstance(node, str):
            raise TypeError(f"graph has the node {node!r}: name every node by a string.")
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [edge[0] for edge in nx.find_cycle(graph)]
        raise ValueError(
            f"graph has the cycle {' → '.join([*cycle, cycle[0]])}: remove one of these arrows."
        )
    return graph


def as_nodes(graph: DiGraph, value: object, name: str, least: int = 0) -> tuple[str, ...]:
    """One node or several, each once, in the graph's own order.

    Raises:
        TypeError: neither a string nor a collection of strings.
        ValueError: fewer than `least`, or nodes that the graph lacks.
    """
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple | Set) or isinstance(values, Mapping):
        raise TypeError(f"{name} must be a node or a list of nodes, not {value!r}.")
    for node in values:
        if not isinstance(node, str):
            raise TypeError(f"{name} holds {node!r}: nodes are named by strings.")
        if node not in graph:
            raise ValueError(
                f"{name} names {node!r}, which is no node of the graph: it has "
                f"{', '.join(graph.nodes)}."
            )
    if len(values) < least:
        raise ValueError(f"{name} is empty: name at least one node.")
    return tuple(node for node in graph.nodes if node in values)


def as_disjoint(graph: DiGraph, **sets: object) -> tuple[tuple[str, ...], ...]:
    """Sets of nodes, each a tuple, of which no two share a node; a trailing _ allows no node.

    Raises:
        TypeError, ValueError: as for `as_nodes`, or a node in two sets.
    """
    owner: dict[str, str] = {}
    result = []
    for key, value in sets.items():
        name = key.rstrip("_")
        nodes = as_nodes(graph, value, name, least=int(key == name))
        for node in nodes:
            if node in owner:
                raise ValueError(
                    f"{owner[node]} and {name} share the node {node}: give it to one of them."
                )
            owner[node] = name
        result.append(nodes)
    return tuple(result)


def _query(
    graph: object, x: object, y: object, given: object
) -> tuple[DiGraph, tuple[tuple[str, ...], ...]]:
    dag = as_dag(graph)
    return dag, as_disjoint(dag, x=x, y=y, given_=given)


def _ancestors(graph: DiGraph, node: str) -> set[str]:
    found: set[str] = set()
    stack = [node]
    while stack:
        new = set(graph.predecessors(stack.pop())) - found
        found |= new
        stack.extend(new)
    return found


def _neighbours(graph: DiGraph, node: str) -> list[str]:
    """Causes and effects, in the graph's own order: the path found is the same every time."""
    return [n for n in graph.nodes if graph.has_edge(n, node) or graph.has_edge(node, n)]


def _passes(
    graph: DiGraph, last: tuple[str, ...], given: tuple[str, ...], opened: set[str]
) -> bool:
    """Whether the middle of three nodes lets the path through; two nodes have no middle."""
    if len(last) < 3:
        return True
    before, middle, after = last
    if graph.has_edge(before, middle) and graph.has_edge(after, middle):
        return middle in opened
    return middle not in given


def _written(graph: DiGraph, path: tuple[str, ...]) -> tuple[str, ...]:
    parts = [path[0]]
    for before, node in pairwise(path):
        parts += ["→" if graph.has_edge(before, node) else "←", node]
    return tuple(parts)
