"""Fig. 2, Eq. (20) and Proposition III.10: the causal graphs, and every step checked on them.

D is the client's distribution, X the input, R the raw feature, S the statistics of R, F = (R − μ)/σ
the normalised feature, Y the label. The proposition wants do(S) to stand in for do(F). Its steps as
the graph G^te (`test_graph`) licenses them, by `proposition_iii10`:

- (S ⊥ Y | F) holds, and P(Y | do(F)) = P(Y | F), P(Y | do(F), do(S)) = P(Y | do(F)) by rules 2, 3.
- P(F | do(S)) = P(F | S) fails: S ← R → F. So does P(Y | do(S)) = P(Y | S). Both hold given R where
  S is a function of R alone, as the paper draws it, for values that occur together. Where S is also
  of the rest of the batch (D → B → S) or of the domain (D → S, the limit of a long stream), D → F
  kept breaks them by S ← B ← D → F or S ← D → F, and label shift breaks the latter by D → Y; given
  R and D they hold in all. Given D alone they hold for the statistics of the domain, and not for a
  batch that includes the sample: S ← R → F.
- P(Y | do(F), D) = P(Y | do(F)) holds, P(Y | do(S), D) = P(Y | do(S)) fails: D → R → F → Y. This is
  the difference between do(F) and do(S): only the former cuts the domain off.

**What is true.** In G^te

    P(y | do(s)) = Σ_f P(y | do(f)) P(f | do(s)),    P(y | do(s), r) = P(y | do(F := (r − μ)/σ)),

the first by P(y | do(s), f) = P(y | do(s), do(f)) = P(y | do(f)), rules 2 and 3; the second since r
and s fix F. do(S) is a *stochastic* intervention on F, and equals do(F := f) sample by sample.
Client-specific BN sets S := s_d = (E[R | d], sd[R | d]) in each client, whereupon F has the law of
(R − μ_d)/σ_d given d. This is one law for all clients, F ⊥ D, if and only if the laws of R given d
are one location-scale family, R = μ_d + σ_d Z with one law of Z (all units jointly: per-unit σ_d
then asks Gaussians for equal correlations, whitening for R = μ_d + Σ_d^{1/2} Z). Only then is
do(S := s_d) the same intervention do(F ~ Z) everywhere, and

    P_d(y | do(S := s_d)) = Σ_f P(y | f) P_Z(f) for every client d: equal label laws.

Unequal P_d(Y) hence contradict the graph: one of F ⊥ D and "D acts on Y through F alone" is false.

**What no graph shows.** D → R → F is open whether or not D → F is drawn. F ⊥ D is a cancellation
of D → R → F against D → S → F, an unfaithful law, and not a missing arrow. As mechanisms the arrows
are the other way round: aggregated BN applies one map to every client, and it is client-specific BN
that hands D to F, by s_d. Nor does the dashed arrow touch P(Y | F): rule 2 gives P(Y | do(F)) =
P(Y | F) with it and without it. What BN changes is which f occur (covariate shift), not P(y | f).
"""

from dataclasses import replace
from typing import Literal, get_args

from theory._loose import Anything
from theory.do_calculus import Step, backdoor, frontdoor, law, rule1, rule2, rule3, separation
from theory.separation import DiGraph, as_dag

__all__ = ["equation_20", "proposition_iii10", "test_graph", "training_graph"]

Policy = Literal["aggregated", "client_specific"]
Statistics = Literal["batch", "stream", "population"]
Label = Literal["feature", "shift", "content"]

_ORDER = ("C", "D", "X", "R", "B", "S", "F", "Y")
_LATENT = ("C", "D")
_FEATURES = (("D", "X"), ("D", "R"), ("X", "R"), ("R", "F"))
_STATISTICS = {
    "batch": (("R", "S"),),
    "stream": (("R", "S"), ("D", "B"), ("B", "S")),
    "population": (("D", "S"),),
}
_LABEL = {
    "feature": (("F", "Y"),),
    "shift": (("F", "Y"), ("D", "Y")),
    "content": (("C", "X"), ("C", "Y")),
}


def training_graph(policy: Policy | Anything, *, label: Label | Anything = "feature") -> DiGraph:
    """G^tr of Fig. 2: D → X → R → F → Y and D → R; aggregated BN adds D → F, dashed.

    The paper removes D → F under client-specific BN because F is then no longer associated with D.
    The association through D → R → F stays in the graph either way (see the module).

    Args:
        policy: aggregated or client_specific.
        label: what causes Y: the feature (as the paper draws it), with "shift" the domain besides,
            with "content" a latent content C of the image in place of the feature.

    Returns:
        A networkx.DiGraph. A node's `role` is observed or latent, an edge's `style` solid or
        dashed.

    Raises:
        ValueError: an unknown policy or label.
    """
    _refuse_unknown(policy, Policy, "policy")
    _refuse_unknown(label, Label, "label")
    return _graph(_FEATURES + _LABEL[label], policy)


def test_graph(
    policy: Policy | Anything = "client_specific",
    *,
    statistics: Statistics | Anything = "batch",
    label: Label | Anything = "feature",
) -> DiGraph:
    """G^te of Fig. 2: G^tr with the statistics S of the unseen client, R → S → F.

    Args:
        policy: client_specific; aggregated keeps D → F, dashed, beside S.
        statistics: of what S is made: with "batch" of R alone (R → S, as the paper draws it, one
            node for all features), with "stream" also of the features of other images of the
            domain, B, the rest of the batch and earlier ones (D → B → S besides: test-time BN
            as it is run), with "population" of the domain itself (D → S), the limit of a long
            stream.
        label: as for `training_graph`.

    Returns:
        A networkx.DiGraph with roles and styles as `training_graph` gives them.

    Raises:
        ValueError: an unknown policy, kind of statistics or label.
    """
    _refuse_unknown(policy, Policy, "policy")
    _refuse_unknown(statistics, Statistics, "statistics")
    _refuse_unknown(label, Label, "label")
    return _graph((*_FEATURES, *_STATISTICS[statistics], ("S", "F"), *_LABEL[label]), policy)


def proposition_iii10(graph: DiGraph | None = None) -> tuple[Step, ...]:
    """Each step towards Proposition III.10 and Eq. (20), with the path that breaks it if it fails.

    The paper's argument, that do(S) acts on F as observing S does and hence do(S) ≡ do(F) for Y,
    is reconstructed from its main idea; beside each step that fails stands what does hold (see the
    module). "mixture" is what is left of the equivalence, "rule1.D.S" against "rule1.D.F" what is
    not: do(F) frees Y of D, do(S) does not.

    Args:
        graph: one with the nodes D, X, R, S, F, Y; `test_graph()` by default.

    Returns:
        Steps whose names are unique; the last ones are those of `equation_20`.

    Raises:
        TypeError, ValueError: no directed acyclic graph, or one without these nodes.
    """
    graph = test_graph() if graph is None else _with_nodes(graph, ("D", "X", "R", "S", "F", "Y"))
    steps = {
        "separation.S": _independent(graph, "S", "Y", "F"),
        "rule2.S": rule2(graph, "F", "S"),
        "rule2.S|R": rule2(graph, "F", "S", given="R"),
        "rule2.S|D": rule2(graph, "F", "S", given="D"),
        "rule3.S": rule3(graph, "Y", "S", do="F"),
        "rule2.F.S": rule2(graph, "Y", "F", do="S"),
        "rule3.S|F": rule3(graph, "Y", "S", given="F"),
        "mixture": _mixture(graph),
        "rule2.S.Y": rule2(graph, "Y", "S"),
        "rule2.S.Y|R": rule2(graph, "Y", "S", given="R"),
        "backdoor.S": backdoor(graph, "S", "Y", "R"),
        "rule1.D.S": rule1(graph, "Y", "D", do="S"),
        "rule1.D.F": rule1(graph, "Y", "D", do="F"),
    }
    return (*_named(steps), *equation_20(graph))


def equation_20(graph: DiGraph | None = None) -> tuple[Step, ...]:
    """Eq. (20), P(Y | do(X)) = Σ_d P(Y | X, d) P(d), and what the domain does to F and Y.

    D meets the back-door criterion for (X, Y), under label shift too; not where a content C causes
    both X and Y. R is no front door, for X ← D → R: with D unobserved P(Y | do(X)) is out of reach.

    Args:
        graph: one with the nodes D, X, R, F, Y; `training_graph("aggregated")` by default.

    Returns:
        Steps whose names are unique.

    Raises:
        TypeError, ValueError: no directed acyclic graph, or one without these nodes.
    """
    if graph is None:
        graph = training_graph("aggregated")
    graph = _with_nodes(graph, ("D", "X", "R", "F", "Y"))
    steps = {
        "rule2.F": rule2(graph, "Y", "F"),
        "rule1.D": rule1(graph, "Y", "D", given="F"),
        "separation.D": _independent(graph, "D", "F"),
        "rule2.X": rule2(graph, "Y", "X"),
        "backdoor.X": backdoor(graph, "X", "Y", "D"),
        "frontdoor.X": frontdoor(graph, "X", "Y", "R"),
    }
    return tuple(_named(steps))


def _with_nodes(graph: object, needed: tuple[str, ...]) -> DiGraph:
    dag = as_dag(graph)
    missing = [node for node in needed if node not in dag]
    if missing:
        raise ValueError(
            f"graph lacks {', '.join(missing)}: its nodes must include {', '.join(needed)}; "
            "start from theory.test_graph()."
        )
    return dag


def _named(steps: dict[str, Step]) -> list[Step]:
    return [replace(step, name=name) for name, step in steps.items()]


def _independent(graph: DiGraph, x: str, y: str, given: str | tuple[()] = ()) -> Step:
    bar = f" | {given}" if given else ""
    return separation("separation", f"({x} ⊥ {y}{bar})", graph, (x, y, given))


def _mixture(graph: DiGraph) -> Step:
    """Whether do(S) is a stochastic do(F) for Y: by rules 2 and 3, or as neither is a cause."""
    act, drop = rule2(graph, "Y", "F", do="S"), rule3(graph, "Y", "S", do="F")
    idle = rule3(graph, "Y", "S"), rule3(graph, "Y", "F")
    statement = f"{law(('Y',), ('S',))} = Σ_f P(Y | do(f)) P(f | do(S))"
    if act.holds and drop.holds:
        return Step("mixture", statement, f"{act.condition}; {drop.condition}", True, None)
    if idle[0].holds and idle[1].holds:
        condition = f"neither S nor F is a cause of Y: {'; '.join(s.condition for s in idle)}"
        return Step("mixture", statement, condition, True, None)
    broken = drop if act.holds else act
    return replace(broken, name="mixture", statement=statement)


def _graph(edges: tuple[tuple[str, str], ...], policy: str) -> DiGraph:
    import networkx as nx

    graph = nx.DiGraph()
    nodes = {node for edge in edges for node in edge}
    for node in _ORDER:
        if node in nodes:
            graph.add_node(node, role="latent" if node in _LATENT else "observed")
    graph.add_edges_from(edges, style="solid")
    if policy == "aggregated":
        graph.add_edge("D", "F", style="dashed")
    return graph


def _refuse_unknown(value: object, kind: object, name: str) -> None:
    known = get_args(kind)
    if not isinstance(value, str) or value not in known:
        said = repr(value) if isinstance(value, str) else f"a {type(value).__name__}"
        raise ValueError(f"{name} must be one of {', '.join(known)}, not {said}.")
