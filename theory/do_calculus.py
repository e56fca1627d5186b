"""The three rules of the do-calculus and the adjustment criteria, checked on a graph.

Pearl 2009, Theorem 3.4.1, for disjoint sets X (`do`), Y, Z, W (`given`), with G_X̄ the graph
without the arrows into X and G_X̲ the one without the arrows out of X:

    1. P(y | do(x), z, w) = P(y | do(x), w)            if (Y ⊥ Z | X, W) in G_X̄
    2. P(y | do(x), do(z), w) = P(y | do(x), z, w)     if (Y ⊥ Z | X, W) in G_X̄Z̲
    3. P(y | do(x), do(z), w) = P(y | do(x), w)        if (Y ⊥ Z | X, W) in G without the arrows
       into X and into Z(W), the nodes of Z that are no ancestors of W in G_X̄.

A rule that does not apply says that this step is not licensed by the graph: not that the two sides
differ in every distribution, and another chain of rules may still lead from one to the other.
"""

from dataclasses import dataclass

from theory._loose import Anything
from theory.separation import (
    DiGraph,
    Nodes,
    as_dag,
    as_disjoint,
    d_separated,
    directed_path,
    mutilated,
    open_path,
)

__all__ = ["Step", "backdoor", "frontdoor", "rule1", "rule2", "rule3"]


@dataclass(frozen=True)
class Step:
    """One step of a causal argument, and whether the graph licenses it.

    Attributes:
        name: what to call it.
        statement: the equality, or the independence.
        condition: what the graph has to meet for it.
        holds: whether it does.
        path: what breaks it, written with arrows: an open path, or a directed one that a criterion
            forbids; None where it holds.
    """

    name: str
    statement: str
    condition: str
    holds: bool
    path: tuple[str, ...] | None

    @property
    def reason(self) -> str:
        """The path in one line, such as "S ← R → F"; empty where the step holds."""
        return " ".join(self.path or ())

    def __str__(self) -> str:
        """The statement and the verdict."""
        return f"{self.statement}: {'holds' if self.holds else f'fails, {self.reason}'}"


def rule1(graph: DiGraph, y: Nodes, z: Nodes, *, do: Nodes = (), given: Nodes = ()) -> Step:
    """Rule 1, an observation dropped: P(y | do(x), z, w) = P(y | do(x), w). Pearl 2009, Thm 3.4.1.

    With X set from outside it is conditional independence in the graph that remains, G_X̄.

    Args:
        graph: a directed acyclic graph whose nodes are strings.
        y: the outcome, one node or several.
        z: the observation to drop.
        do: what is set on both sides, X.
        given: what is observed on both sides, W.

    Raises:
        TypeError, ValueError: no graph, a cycle, unknown nodes, overlapping sets.
    """
    dag = as_dag(graph)
    y, z, do, given = as_disjoint(dag, y=y, z=z, do_=do, given_=given)
    statement = f"{law(y, do, (*z, *given))} = {law(y, do, given)}"
    return separation("rule 1", statement, dag, (z, y, (*do, *given)), over=do)


def rule2(graph: DiGraph, y: Nodes, z: Nodes, *, do: Nodes = (), given: Nodes = ()) -> Step:
    """Rule 2, action as observation: P(y | do(x), do(z), w) = P(y | do(x), z, w). Thm 3.4.1.

    Without the arrows out of Z only what also causes Z, or is conditioned on, can tie Z to Y: where
    nothing does, it does not matter whether z was set or seen.

    Args:
        graph: a directed acyclic graph whose nodes are strings.
        y: the outcome, one node or several.
        z: what is set on the left side and seen on the right one.
        do: what is set on both sides, X.
        given: what is observed on both sides, W.

    Raises:
        TypeError, ValueError: no graph, a cycle, unknown nodes, overlapping sets.
    """
    dag = as_dag(graph)
    y, z, do, given = as_disjoint(dag, y=y, z=z, do_=do, given_=given)
    statement = f"{law(y, (*do, *z), given)} = {law(y, do, (*z, *given))}"
    return separation("rule 2", statement, dag, (z, y, (*do, *given)), over=do, under=z)


def rule3(graph: DiGraph, y: Nodes, z: Nodes, *, do: Nodes = (), given: Nodes = ()) -> Step:
    """Rule 3, an action dropped: P(y | do(x), do(z), w) = P(y | do(x), w). Pearl 2009, Thm 3.4.1.

    Setting z changes nothing if z has no way to y. Arrows into a node of Z stay if that node is an
    ancestor of W: setting it would change what w says about its causes.

    Args:
        graph: a directed acyclic graph whose nodes are strings.
        y: the outcome, one node or several.
        z: the action to drop.
        do: what is set on both sides, X.
        given: what is observed on both sides, W.

    Raises:
        TypeError, ValueError: no graph, a cycle, unknown nodes, overlapping sets.
    """
    import networkx as nx

    dag = as_dag(graph)
    y, z, do, given = as_disjoint(dag, y=y, z=z, do_=do, given_=given)
    cut = mutilated(dag, over=do)
    above = set().union(*(nx.ancestors(cut, node) for node in given))
    free = tuple(node for node in z if node not in above)  # Z(W)
    statement = f"{law(y, (*do, *z), given)} = {law(y, do, given)}"
    return separation("rule 3", statement, dag, (z, y, (*do, *given)), over=(*do, *free))


def backdoor(graph: DiGraph, x: str | Anything, y: Nodes, given: Nodes = ()) -> Step:
    """The back-door criterion for P(y | do(x)) = Σ_z P(y | x, z) P(z). Pearl 2009, Def. 3.3.1.

    Z holds no descendant of X, so that P(z | do(x)) = P(z), and blocks every path that enters X, so
    that P(y | do(x), z) = P(y | x, z) by rule 2. It is sufficient, and decides on this Z alone.

    Args:
        graph: a directed acyclic graph whose nodes are strings.
        x: the one node that is set.
        y: the outcome, one node or several.
        given: the nodes adjusted for, Z; the empty set asks whether P(y | do(x)) = P(y | x).

    Raises:
        TypeError, ValueError: no graph, a cycle, unknown nodes, several x, overlapping sets.
    """
    dag = as_dag(graph)
    xs, y, given = as_disjoint(dag, x=_single(x, "x"), y=y, given_=given)
    values = ", ".join(given).lower()
    statement = f"{law(y, xs)} = {law(y, (), xs)}"
    if given:
        adjusted = f"P({', '.join(y)} | {x}, {values})"
        statement = f"{law(y, xs)} = Σ_{_index(given)} {adjusted} P({values})"
    found = separation("back-door", statement, dag, (xs, y, given), under=xs)
    condition = f"{found.condition}, no descendant of {x} adjusted for" * bool(given)
    below = (path for node in given if (path := directed_path(dag, x, node)))
    path = next(below, found.path)
    return Step(found.name, statement, condition or found.condition, path is None, path)


def frontdoor(graph: DiGraph, x: str | Anything, y: Nodes, through: Nodes) -> Step:
    """The front-door criterion for P(y | do(x)) through Z. Pearl 2009, Def. 3.3.3, Thm 3.3.4.

    P(y | do(x)) = Σ_z P(z | x) Σ_x' P(y | x', z) P(x') if Z meets every directed path from X to Y,
    no back-door path from X to Z is open, and X blocks every back-door path from Z to Y: then
    P(z | do(x)) = P(z | x), and adjusting for X gives P(y | do(z)).

    Args:
        graph: a directed acyclic graph whose nodes are strings.
        x: the one node that is set.
        y: the outcome, one node or several.
        through: the nodes in between, Z.

    Raises:
        TypeError, ValueError: no graph, a cycle, unknown nodes, several x, overlapping sets.
    """
    dag = as_dag(graph)
    xs, y, z = as_disjoint(dag, x=_single(x, "x"), y=y, through=through)
    values, other = ", ".join(z).lower(), f"{x.lower()}′"
    statement = (
        f"{law(y, xs)} = Σ_{_index(z)} P({values} | {x}) "
        f"Σ_{other} P({', '.join(y)} | {other}, {values}) P({other})"
    )
    condition = f"{', '.join(z)} between {x} and {', '.join(y)}, with no open back-door path"
    past = (directed_path(dag, x, node, z) for node in y)
    path = (
        next(filter(None, past), None)
        or open_path(mutilated(dag, under=xs), xs, z)
        or open_path(mutilated(dag, under=z), z, y, xs)
    )
    return Step("front-door", statement, condition, path is None, path)


def separation(
    name: str,
    statement: str,
    graph: DiGraph,
    sets: tuple[Nodes, Nodes, Nodes],
    *,
    over: tuple[str, ...] = (),
    under: tuple[str, ...] = (),
) -> Step:
    """A step that asks for one d-separation, (x ⊥ y | given) for `sets`, after surgery."""
    cut = mutilated(graph, over=over, under=under)
    x, y, given = ([s] if isinstance(s, str) else list(s) for s in sets)
    holds = d_separated(cut, x, y, given)
    path = None if holds else open_path(cut, x, y, given)
    bar = f" | {', '.join(given)}" if given else ""
    where = [f"into {', '.join(over)}"] * bool(over) + [f"out of {', '.join(under)}"] * bool(under)
    condition = f"({', '.join(y)} ⊥ {', '.join(x)}{bar}) in G"
    if where:
        condition += f" without arrows {' and '.join(where)}"
    return Step(name, statement, condition, holds, path)


def law(y: tuple[str, ...], do: tuple[str, ...] = (), given: tuple[str, ...] = ()) -> str:
    """P(y | do(x), w) in symbols."""
    right = ", ".join([*(f"do({node})" for node in do), *given])
    return f"P({', '.join(y)}{' | ' if right else ''}{right})"


def _index(nodes: tuple[str, ...]) -> str:
    return ",".join(nodes).lower()


def _single(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one node, named by a string, not {value!r}.")
    return value
