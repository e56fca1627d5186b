"""d-separation by walks of our own against networkx, paths tried one by one, and laws."""

import time
from itertools import pairwise, permutations

import networkx as nx
import numpy as np
import pytest
from binary_models import BinaryModels
from hypothesis import given, settings
from hypothesis import strategies as st

import theory

NAMES = "ABCDEF"


@st.composite
def graphs_with_sets(draw, most=6, roles=3):
    """A random DAG in random order, and disjoint sets of its nodes, the first two not empty."""
    size = draw(st.integers(3, most))
    nodes = draw(st.permutations(NAMES[:size]))
    graph = nx.DiGraph()
    graph.add_nodes_from(sorted(nodes))
    pairs = [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :]]
    graph.add_edges_from(edge for edge in pairs if draw(st.booleans()))
    of = draw(st.permutations(nodes))
    rest = draw(st.lists(st.integers(0, roles), min_size=size - 2, max_size=size - 2))
    role = {of[0]: 0, of[1]: 1, **dict(zip(of[2:], rest, strict=True))}
    return graph, [[n for n in nodes if role[n] == k] for k in range(roles)]


def open_by_definition(graph, path, given):
    """Whether a written path exists and is open, from descendants by networkx."""
    nodes, arrows = path[::2], path[1::2]
    for (a, b), arrow in zip(pairwise(nodes), arrows, strict=True):
        assert graph.has_edge(a, b) if arrow == "→" else graph.has_edge(b, a)
    for place, node in enumerate(nodes[1:-1]):
        if arrows[place] == "→" and arrows[place + 1] == "←":
            if not ({node} | nx.descendants(graph, node)) & set(given):
                return False
        elif node in given:
            return False
    return len(set(nodes)) == len(nodes)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(graphs_with_sets())
def test_paths_and_reachability_agree(case):
    graph, (x, y, given_) = case
    path = theory.open_path(graph, x, y, given_)
    assert theory.d_separated(graph, x, y, given_) == (path is None)
    if path is not None:
        assert path[0] in x and path[-1] in y and open_by_definition(graph, path, given_)


def test_paths_and_reachability_agree_on_random_graphs_of_eight_nodes():
    generator = np.random.default_rng(0)
    names, separated = list("ABCDEFGH"), 0
    for _ in range(600):
        order = list(generator.permutation(names))
        edges = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
        graph = nx.DiGraph()
        graph.add_nodes_from(names)
        graph.add_edges_from(e for e in edges if generator.random() < 0.3)
        x, y, *rest = generator.permutation(names).tolist()
        given_ = rest[: generator.integers(5)]
        path = theory.open_path(graph, x, y, given_)
        assert theory.d_separated(graph, x, y, given_) == (path is None)
        assert path is None or open_by_definition(graph, path, given_)
        separated += path is None
    assert 150 < separated < 450  # both answers are tried


@settings(max_examples=60, deadline=None, derandomize=True)
@given(graphs_with_sets(most=5))
def test_open_paths_are_dependence_in_generic_models(case):
    graph, (x, y, given_) = case
    models = BinaryModels(graph, 5)
    gaps = models.gaps(models.law(y, given=[*x, *given_]), models.law(y, given=given_))
    if theory.open_path(graph, x, y, given_) is None:
        assert gaps.max() < 1e-12  # rounding of sums of 32 numbers
    else:
        assert gaps.max() > 1e-9  # equal for none but a null set of models


def first_open_path(graph, x, y, given_):
    """The first of the shortest open paths in the graph's order of nodes, all of them tried."""
    nodes = list(graph.nodes)
    for size in range(2, len(nodes) + 1):
        for path in permutations(nodes, size):
            if path[0] not in x or path[-1] not in y or {*path[1:-1]} & {*x, *y}:
                continue
            if not all(graph.has_edge(a, b) or graph.has_edge(b, a) for a, b in pairwise(path)):
                continue
            written = [path[0]]
            for a, b in pairwise(path):
                written += ["→" if graph.has_edge(a, b) else "←", b]
            if open_by_definition(graph, tuple(written), given_):
                return tuple(written)
    return None


@settings(max_examples=150, deadline=None, derandomize=True)
@given(graphs_with_sets())
def test_the_path_is_the_first_of_the_shortest_that_are_open(case):
    graph, (x, y, given_) = case
    assert theory.open_path(graph, x, y, given_) == first_open_path(graph, x, y, given_)


def complete(size):
    """A DAG with every arrow, and a node apart."""
    names = [f"n{i:04}" for i in range(size)]
    graph = nx.DiGraph([(a, b) for i, a in enumerate(names) for b in names[i + 1 :]])
    graph.add_node("apart")
    return graph, names


def test_paths_of_dense_graphs_take_no_time():
    graph, names = complete(150)  # 2^148 directed paths alone
    begun = time.process_time()
    assert theory.open_path(graph, names[0], "apart", names[-1]) is None
    assert theory.open_path(graph, names[0], names[-1], names[1:-1]) == (names[0], "→", names[-1])
    cut = theory.mutilated(graph, under=names[:1])
    assert theory.open_path(cut, names[0], names[-1]) is None
    step = theory.frontdoor(graph, names[0], "apart", names[1:-1])
    assert step.reason == f"{names[1]} → {names[-1]} ← {names[2]}" or step.holds
    assert time.process_time() - begun < 10  # a fraction of a second; by path 10^40 years


def test_long_chains_are_walked_to_their_ends():
    names = [f"n{i}" for i in range(5000)]
    graph = nx.DiGraph(list(pairwise(names)))
    assert theory.open_path(graph, names[-1], names[0])[::2] == tuple(names[::-1])
    assert theory.frontdoor(graph, names[0], names[-1], names[2500]).holds
    assert theory.backdoor(graph, names[0], names[-1], names[-2]).path[::2] == tuple(names[:-1])


def test_colliders_open_by_themselves_and_by_descendants():
    graph = nx.DiGraph([("A", "C"), ("B", "C"), ("C", "D")])
    assert theory.d_separated(graph, "A", "B")
    assert theory.open_path(graph, "A", "B") is None
    assert theory.open_path(graph, "A", "B", "C") == ("A", "→", "C", "←", "B")
    assert theory.open_path(graph, "A", "B", ["D"]) == ("A", "→", "C", "←", "B")
    assert not theory.d_separated(graph, "A", "B", "D")


def test_the_shortest_path_is_named_and_always_the_same():
    long = nx.DiGraph([("A", "B"), ("B", "Z"), ("Q", "A"), ("Q", "P"), ("P", "Z"), ("A", "Z")])
    assert theory.open_path(long, "A", "Z") == ("A", "→", "Z")
    long.remove_edge("A", "Z")
    assert " ".join(theory.open_path(long, "A", "Z") or ()) == "A → B → Z"
    assert " ".join(theory.open_path(long, "A", "Z", "B") or ()) == "A ← Q → P → Z"
    assert " ".join(theory.open_path(long, ["Q", "B"], "Z", ["A"]) or ()) == "B → Z"


def test_surgery_removes_arrows_and_keeps_nodes_and_attributes():
    graph = theory.test_graph()
    cut = theory.mutilated(graph, over="F", under=["D"])
    assert set(graph.edges) - set(cut.edges) == {("R", "F"), ("S", "F"), ("D", "X"), ("D", "R")}
    assert dict(cut.nodes(data=True)) == dict(graph.nodes(data=True))
    assert cut.edges["F", "Y"] == {"style": "solid"}
    assert ("R", "F") in graph.edges  # the graph handed in is left as it was
    assert set(theory.mutilated(graph).edges) == set(graph.edges)


CHAIN = nx.DiGraph([("A", "B"), ("B", "C")])


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ((CHAIN, "A", "Q"), ValueError, "no node of the graph: it has A, B, C"),
        ((CHAIN, "A", "A"), ValueError, "x and y share the node A"),
        ((CHAIN, ["A", "B"], "C", ["B"]), ValueError, "x and given share the node B"),
        ((CHAIN, [], "C"), ValueError, "x is empty: name at least one node"),
        ((CHAIN, "A", 3), TypeError, "y must be a node or a list of nodes"),
        ((CHAIN, "A", [3]), TypeError, "nodes are named by strings"),
        ((CHAIN, {"A": 1}, "C"), TypeError, "x must be a node or a list of nodes"),
        ((nx.DiGraph([("A", "B"), ("B", "A")]), "A", "B"), ValueError, "remove one of these arr"),
        ((nx.DiGraph([("A", "A")]), "A", "A"), ValueError, "cycle A → A"),
        ((nx.Graph([("A", "B")]), "A", "B"), TypeError, "must be a networkx.DiGraph, not Graph"),
        ((nx.DiGraph([(0, 1)]), 0, 1), TypeError, "name every node by a string"),
        (([("A", "B")], "A", "B"), TypeError, "not list: build one"),
    ],
)
@pytest.mark.parametrize("function", ["d_separated", "open_path"])
def test_odd_questions_are_refused_with_advice(function, arguments, error, said):
    with pytest.raises(error, match=r"\.$") as refusal:
        getattr(theory, function)(*arguments)
    assert said in str(refusal.value)


def test_surgery_refuses_unknown_nodes():
    with pytest.raises(ValueError, match="under names 'Q'"):
        theory.mutilated(CHAIN, under="Q")


def test_generic_models_are_proper_laws():
    models = BinaryModels(theory.test_graph(), 4)
    for do in ([], ["S"], ["F", "X"]):
        total = models.law(["Y"], do=do, given=["R"]).sum(axis=models.nodes.index("Y") + 1)
        assert np.allclose(total, 1, atol=1e-12)
