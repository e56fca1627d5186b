"""d-separation in directed acyclic graphs, and the paths that break it (Pearl 2009, §1.2.3).

A path is open given Z if every collider on it (→ C ←) is in Z or has a descendant in Z, and every
other inner node is outside Z. X and Y are d-separated by Z if no path between them is open; then
they are independent given Z in every distribution that factorises along the graph. `d_separated`
asks networkx; `open_path` is a reachability of its own, the Bayes ball (Shachter 1998): walks over
pairs of a node and the direction in which it is entered, each pair once.

A shortest open walk is a path. Were a node N met twice, going on at the first meeting as after the
second would be shorter, hence blocked at N: either N is in Z and, open, a collider both times, so a
collider in the shortcut too; or N is a collider in the shortcut alone, left along an arrow at first
and entered against one at last, and the collider between, a descendant of N, is open: so is N.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Set
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx

    DiGraph = nx.DiGraph
    Nodes = str | Iterable[str]
    _State = tuple[str, bool | None]
else:
    # Checked by hand, with advice; and networkx takes long to import.
    DiGraph = Nodes = object
    _State = tuple

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

    Written with its arrows, ("S", "←", "R", "→", "F"), so that " ".join(path) can be read. Of
    several the first in the graph's order of nodes. It is found without networkx's test, in time
    linear in the arrows up to sorting.

    Args:
        graph: a directed acyclic graph whose nodes are strings.
        x: a node, or several.
        y: likewise.
        given: the nodes conditioned on; none by default.

    Raises:
        TypeError, ValueError: as for `d_separated`.
    """
    graph, (x, y, given) = _query(graph, x, y, given)
    opened, blocked, ends = _with_ancestors(graph, given), set(given), set(y)
    order = {node: place for place, node in enumerate(graph.nodes)}
    # A state is a node and whether the walk enters it along an arrow; start nodes are not entered.
    before: dict[_State, _State | None] = {(node, None): None for node in x}
    queue: deque[_State] = deque(before)
    while queue:
        state = queue.popleft()
        node, entered = state
        causes, effects = graph.pred[node], graph.succ[node]
        for other in sorted((*causes, *effects), key=order.__getitem__):
            collides = bool(entered) and other in causes
            if entered is not None and not (node in opened if collides else node not in blocked):
                continue
            new = other, other in effects
            if new in before:
                continue
            before[new] = state
            if other in ends:
                return _written(graph, _back(before, new))
            queue.append(new)
    return None


def directed_path(
    graph: DiGraph, source: str, target: str, avoiding: tuple[str, ...] = ()
) -> tuple[str, ...] | None:
    """A shortest directed path, written with its arrows, that meets no node of `avoiding`."""
    first: _State = (source, None)
    before: dict[_State, _State | None] = {first: None}
    queue, shut = deque([first]), set(avoiding)
    while queue:
        state = queue.popleft()
        for node in graph.successors(state[0]):
            new = node, None
            if new in before or (node in shut and node != target):
                continue
            before[new] = state
            if node == target:
                return _written(graph, _back(before, new))
            queue.append(new)
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
    wanted = set(values)
    return tuple(node for node in graph.nodes if node in wanted)


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


def _with_ancestors(graph: DiGraph, nodes: tuple[str, ...]) -> set[str]:
    found = set(nodes)
    stack = list(nodes)
    while stack:
        new = set(graph.predecessors(stack.pop())) - found
        found |= new
        stack.extend(new)
    return found


def _back(before: dict[_State, _State | None], last: _State) -> tuple[str, ...]:
    """The nodes of the walk that led to a state."""
    path: list[str] = []
    state: _State | None = last
    while state is not None:
        path.append(state[0])
        state = before[state]
    return tuple(reversed(path))


def _written(graph: DiGraph, path: tuple[str, ...]) -> tuple[str, ...]:
    parts = [path[0]]
    for before, node in pairwise(path):
        parts += ["→" if graph.has_edge(before, node) else "←", node]
    return tuple(parts)
