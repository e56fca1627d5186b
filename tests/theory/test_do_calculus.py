"""The rules and criteria against truncated factorisation: where they hold, both sides agree."""

import networkx as nx
import numpy as np
import pytest
from binary_models import BinaryModels
from hypothesis import given, settings
from hypothesis import strategies as st
from test_separation import graphs_with_sets

import theory

ROUNDING = 1e-11  # of quotients of sums of at most 64 numbers, each at least 0.05^6 of the whole


def sides(rule, models, y, z, do, given_):
    left = {"rule1": ([*do], [*z, *given_])}.get(rule, ([*do, *z], given_))
    right = {"rule2": (do, [*z, *given_])}.get(rule, (do, given_))
    return (models.law(y, do=d, given=g) for d, g in (left, right))


@settings(max_examples=120, deadline=None, derandomize=True)
@given(graphs_with_sets(most=5, roles=4), st.sampled_from(["rule1", "rule2", "rule3"]))
def test_rules_that_apply_are_equalities(case, rule):
    graph, (y, z, do, given_) = case
    step = getattr(theory, rule)(graph, y, z, do=do, given=given_)
    assert step.holds == (step.path is None) and bool(step.reason) != step.holds
    models = BinaryModels(graph, 4)
    if step.holds:
        assert models.gaps(*sides(rule, models, y, z, do, given_)).max() < ROUNDING


@pytest.mark.parametrize(
    ("rule", "edges", "y", "z", "do", "given_", "reason"),
    [
        ("rule1", "AB", "B", "A", "", "", "A → B"),
        ("rule1", "AB BC", "C", "A", "B", "", ""),
        ("rule1", "AB BC AC", "C", "A", "B", "", "A → C"),
        ("rule2", "AB", "B", "A", "", "", ""),
        ("rule2", "UA UB AB", "B", "A", "", "", "A ← U → B"),
        ("rule2", "UA UB AB", "B", "A", "", "U", ""),
        ("rule2", "UA VU UB AB", "B", "A", "U", "", ""),
        ("rule2", "AB AC BC", "C", "B", "", "", "B ← A → C"),
        ("rule3", "AB", "A", "B", "", "", ""),
        ("rule3", "AB", "B", "A", "", "", "A → B"),
        ("rule3", "AB BC", "C", "A", "B", "", ""),
        # Z(W): setting Z takes from its effect W what W said about Y.
        ("rule3", "YZ ZW", "Y", "Z", "", "W", "Z ← Y"),
        ("rule3", "YZ", "Y", "Z", "", "", ""),
        ("rule3", "YZ YW", "Y", "Z", "", "W", ""),
    ],
)
def test_rules_on_graphs_by_hand(rule, edges, y, z, do, given_, reason):
    graph = nx.DiGraph([tuple(edge) for edge in edges.split()])
    step = getattr(theory, rule)(graph, y, z, do=list(do), given=list(given_))
    assert step.reason == reason and step.holds == (not reason)
    models = BinaryModels(graph, 100)
    gaps = models.gaps(*sides(rule, models, [y], [z], list(do), list(given_)))
    # In these graphs both sides differ in all but a null set of models.
    assert gaps.max() < ROUNDING if step.holds else np.median(gaps) > 1e-3


def test_a_step_says_what_it_is():
    graph = nx.DiGraph([("U", "A"), ("U", "B"), ("A", "B")])
    step = theory.rule2(graph, "B", "A")
    assert (step.name, step.statement) == ("rule 2", "P(B | do(A)) = P(B | A)")
    assert step.condition == "(B ⊥ A) in G without arrows out of A"
    assert str(step) == "P(B | do(A)) = P(B | A): fails, A ← U → B"
    step = theory.rule3(graph, "B", "A", do="U", given=[])
    assert step.statement == "P(B | do(U), do(A)) = P(B | do(U))"
    assert step.condition == "(B ⊥ A | U) in G without arrows into U, A"
    step = theory.rule1(graph, "B", "U", do="A")
    assert step.statement == "P(B | do(A), U) = P(B | do(A))"
    assert step.condition == "(B ⊥ U | A) in G without arrows into A"
    assert str(theory.rule2(graph, "B", "A", given="U")).endswith("= P(B | A, U): holds")


@settings(max_examples=120, deadline=None, derandomize=True)
@given(graphs_with_sets(most=5))
def test_adjustment_is_exact_where_the_back_door_criterion_holds(case):
    graph, (x, y, z) = case
    step = theory.backdoor(graph, x[0], y, z)
    if step.holds:
        models = BinaryModels(graph, 4)
        inner = models.law(y, given=[x[0], *z])
        adjusted = models.total(inner * models.law(z), z) if z else inner
        assert models.gaps(models.law(y, do=[x[0]]), adjusted).max() < ROUNDING


@pytest.mark.parametrize(
    ("edges", "z", "reason"),
    [
        ("XY", "", ""),
        ("UX UY XY", "", "X ← U → Y"),
        ("UX UY XY", "U", ""),
        ("AX AM BM BY XY", "", ""),
        ("AX AM BM BY XY", "M", "X ← A → M ← B → Y"),  # opened by the adjustment itself
        ("AX AM BM BY XY", "MB", ""),
        ("XM MY", "M", "X → M"),
        ("XY YM", "M", "X → Y → M"),
    ],
)
def test_back_doors_by_hand(edges, z, reason):
    graph = nx.DiGraph([tuple(edge) for edge in edges.split()])
    step = theory.backdoor(graph, "X", "Y", list(z))
    assert step.reason == reason and step.holds == (not reason)


def test_the_adjustment_formula_is_written_out():
    graph = nx.DiGraph([("U", "X"), ("U", "Y"), ("X", "Y")])
    step = theory.backdoor(graph, "X", "Y", "U")
    assert step.statement == "P(Y | do(X)) = Σ_u P(Y | X, u) P(u)"
    assert "no descendant of X" in step.condition
    assert theory.backdoor(graph, "X", "Y").statement == "P(Y | do(X)) = P(Y | X)"
    step = theory.frontdoor(nx.DiGraph([("X", "Z"), ("Z", "Y")]), "X", "Y", "Z")
    assert step.statement == "P(Y | do(X)) = Σ_z P(z | X) Σ_x′ P(Y | x′, z) P(x′)"


@pytest.mark.parametrize(
    ("edges", "reason"),
    [
        ("XZ ZY UX UY", ""),
        ("XZ ZY UX UY XY", "X → Y"),
        ("XZ ZY UX UY UZ", "X ← U → Z"),
        ("XZ ZY UX UY VZ VY", "Z ← V → Y"),
        ("XA AY XZ ZY", "X → A → Y"),
    ],
)
def test_front_doors_by_hand_and_by_number(edges, reason):
    graph = nx.DiGraph([tuple(edge) for edge in edges.split()])
    step = theory.frontdoor(graph, "X", "Y", "Z")
    assert step.reason == reason and step.holds == (not reason)
    models = BinaryModels(graph, 100)
    inner = models.total(models.law("Y", given="XZ") * models.law("X"), "X")
    through = models.total(models.law("Z", given="X") * inner, "Z")
    gaps = models.gaps(models.law("Y", do="X"), through)
    assert gaps.max() < ROUNDING if step.holds else np.median(gaps) > 1e-3


@pytest.mark.parametrize("rule", ["rule1", "rule2", "rule3"])
def test_rules_refuse_odd_sets(rule):
    graph = nx.DiGraph([("A", "B"), ("B", "C")])
    call = getattr(theory, rule)
    with pytest.raises(ValueError, match="z and do share the node A"):
        call(graph, "C", "A", do="A")
    with pytest.raises(ValueError, match="given names 'Q'"):
        call(graph, "C", "A", given=["Q"])
    with pytest.raises(ValueError, match="z is empty"):
        call(graph, "C", ())
    with pytest.raises(ValueError, match="cycle A → B → A"):
        call(nx.DiGraph([("A", "B"), ("B", "A")]), "A", "B")


@pytest.mark.parametrize("name", ["backdoor", "frontdoor"])
def test_criteria_refuse_odd_sets(name):
    graph = nx.DiGraph([("A", "B"), ("B", "C")])
    call = getattr(theory, name)
    with pytest.raises(TypeError, match="x must be one node"):
        call(graph, ["A"], "C", "B")
    with pytest.raises(ValueError, match="x and y share the node A"):
        call(graph, "A", "A", "B")
    if name == "frontdoor":
        with pytest.raises(ValueError, match="through is empty"):
            call(graph, "A", "C", [])
