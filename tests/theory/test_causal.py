"""Fig. 2, Eq. (20) and Proposition III.10: by the graph, and by enumeration of binary models."""

import subprocess
import sys
from itertools import product

import networkx as nx
import numpy as np
import pytest
from binary_models import BinaryModels

import theory

VARIANTS = {
    "paper": {},
    "population": {"statistics": "population"},
    "aggregated": {"policy": "aggregated"},
    "label shift": {"label": "shift"},
    "label shift, population": {"label": "shift", "statistics": "population"},
    "content": {"label": "content"},
}
POLICIES, STATISTICS = ("client_specific", "aggregated"), ("batch", "stream", "population")
LABELS = ("feature", "shift", "content")
TWO = np.array(["aggregated", "x"])
COMBINED = list(product(POLICIES, STATISTICS, LABELS))


def both_sides(models):
    """Left and right of every step, by truncated factorisation and conditioning."""
    p, total = models.law, models.total
    x_averaged = total(p("Y", given="XR") * p("X"), "X")
    return {
        "separation.S": (p("Y", given="SF"), p("Y", given="F")),
        "separation.D": (p("F", given="D"), p("F")),
        "rule1.D.S": (p("Y", do="S", given="D"), p("Y", do="S")),
        "rule1.D.F": (p("Y", do="F", given="D"), p("Y", do="F")),
        "rule1.D": (p("Y", given="DF"), p("Y", given="F")),
        "rule2.S": (p("F", do="S"), p("F", given="S")),
        "rule2.S|R": (p("F", do="S", given="R"), p("F", given="SR")),
        "rule2.S|D": (p("F", do="S", given="D"), p("F", given="SD")),
        "rule2.F": (p("Y", do="F"), p("Y", given="F")),
        "rule3.S": (p("Y", do="FS"), p("Y", do="F")),
        "rule2.F.S": (p("Y", do="SF"), p("Y", do="S", given="F")),
        "rule3.S|F": (p("Y", do="S", given="F"), p("Y", given="F")),
        "rule2.S.Y": (p("Y", do="S"), p("Y", given="S")),
        "rule2.S.Y|R": (p("Y", do="S", given="R"), p("Y", given="SR")),
        "mixture": (p("Y", do="S"), total(p("Y", do="F") * p("F", do="S"), "F")),
        "backdoor.S": (p("Y", do="S"), total(p("Y", given="SR") * p("R"), "R")),
        "rule2.X": (p("Y", do="X"), p("Y", given="X")),
        "backdoor.X": (p("Y", do="X"), total(p("Y", given="XD") * p("D"), "D")),
        "frontdoor.X": (p("Y", do="X"), total(p("R", given="X") * x_averaged, "R")),
    }


def steps_of(**variant):
    return {s.name: s for s in theory.proposition_iii10(theory.test_graph(**variant))}


@pytest.mark.parametrize(("policy", "statistics", "label"), COMBINED)
def test_each_step_holds_in_all_models_or_fails_in_generic_ones(policy, statistics, label):
    variant = {"policy": policy, "statistics": statistics, "label": label}
    steps = steps_of(**variant)
    models = BinaryModels(theory.test_graph(**variant), 400, seed=3)
    sides = both_sides(models)
    assert set(sides) == set(steps)
    for name, step in steps.items():
        gaps = models.gaps(*sides[name])
        if step.holds:
            assert gaps.max() < 1e-12, name  # rounding of sums of at most 256 numbers
        else:
            # Drawn tables differ from any null set: all gaps are positive, most can be seen.
            assert gaps.min() > 1e-12 and np.median(gaps) > 1e-5, name


def test_the_proposition_step_by_step():
    reasons = {name: step.reason for name, step in steps_of().items()}
    assert reasons == {
        "separation.S": "",
        "separation.D": "D → R → F",
        "rule1.D": "",
        "rule1.D.S": "D → R → F → Y",
        "rule1.D.F": "",
        "rule2.S": "S ← R → F",
        "rule2.S|R": "",
        "rule2.S|D": "S ← R → F",
        "rule2.F": "",
        "rule3.S": "",
        "rule2.F.S": "",
        "rule3.S|F": "",
        "rule2.S.Y": "S ← R → F → Y",
        "rule2.S.Y|R": "",
        "mixture": "",
        "backdoor.S": "",
        "rule2.X": "X ← D → R → F → Y",
        "backdoor.X": "",
        "frontdoor.X": "X ← D → R",
    }
    assert theory.proposition_iii10() == theory.proposition_iii10(theory.test_graph())


@pytest.mark.parametrize(
    ("variant", "changed"),
    [
        ("population", {"rule2.S": "S ← D → R → F", "rule2.S|D": ""}),
        (
            "aggregated",
            {"separation.D": "D → F", "rule1.D.S": "D → F → Y", "rule2.X": "X ← D → F → Y"},
        ),
        (
            "label shift",
            {
                "separation.S": "S ← R ← D → Y",
                "rule1.D": "D → Y",
                "rule1.D.S": "D → Y",
                "rule1.D.F": "D → Y",
                "rule2.F": "F ← R ← D → Y",
                "rule2.F.S": "F ← R ← D → Y",
                "rule3.S|F": "S ← R ← D → Y",
                "rule2.S.Y": "S ← R ← D → Y",
                "mixture": "F ← R ← D → Y",
                "rule2.X": "X ← D → Y",
            },
        ),
        (
            "content",
            {
                "separation.S": "S ← R ← X ← C → Y",
                "rule1.D": "D → X ← C → Y",
                "rule2.F": "F ← R ← X ← C → Y",
                "backdoor.X": "X ← C → Y",
            },
        ),
    ],
)
def test_what_changes_with_the_graph(variant, changed):
    """Only the steps named here, except for "population" and "content": there those at least."""
    usual, found = steps_of(), steps_of(**VARIANTS[variant])
    for name, reason in changed.items():
        assert found[name].reason == reason, name
    if variant in ("aggregated", "label shift"):
        assert {n for n in found if found[n].reason != usual[n].reason} == set(changed)


def test_statements_and_the_reading_of_the_mixture():
    steps = steps_of()
    assert steps["rule2.S"].statement == "P(F | do(S)) = P(F | S)"
    assert steps["rule2.S|R"].statement == "P(F | do(S), R) = P(F | S, R)"
    assert steps["rule3.S"].statement == "P(Y | do(F), do(S)) = P(Y | do(F))"
    assert steps["backdoor.X"].statement == "P(Y | do(X)) = Σ_d P(Y | X, d) P(d)"
    assert steps["separation.S"].statement == "(S ⊥ Y | F)"
    # Where the label is no effect of F, do(S) and do(F) are alike idle.
    content = steps_of(label="content")["mixture"]
    assert content.holds and "neither S nor F is a cause of Y" in content.condition


@pytest.mark.parametrize("policy", ["aggregated", "client_specific"])
def test_equation_20_in_the_training_graphs(policy):
    steps = {s.name: s.reason for s in theory.equation_20(theory.training_graph(policy))}
    direct = policy == "aggregated"
    assert steps == {
        "rule2.F": "",
        "rule1.D": "",
        "separation.D": "D → F" if direct else "D → R → F",
        "rule2.X": "X ← D → F → Y" if direct else "X ← D → R → F → Y",
        "backdoor.X": "",
        "frontdoor.X": "X ← D → R",
    }
    models = BinaryModels(theory.training_graph(policy), 100)
    adjusted = models.total(models.law("Y", given="XD") * models.law("D"), "D")
    assert models.gaps(models.law("Y", do="X"), adjusted).max() < 1e-12
    assert models.gaps(models.law("Y", do="X"), models.law("Y", given="X")).min() > 1e-12
    assert theory.equation_20() == theory.equation_20(theory.training_graph("aggregated"))


def test_two_steps_that_combine_rules_fail_at_the_one_that_breaks():
    graph = theory.test_graph()
    graph.add_edge("S", "Y")  # statistics that act on the label past F
    (mixture,) = [s for s in theory.proposition_iii10(graph) if s.name == "mixture"]
    assert not mixture.holds and mixture.reason == "S → Y"
    models = BinaryModels(graph, 50)
    assert models.gaps(*both_sides(models)["mixture"]).min() > 1e-12


def test_training_graphs():
    aggregated = theory.training_graph("aggregated")
    own = theory.training_graph("client_specific")
    assert set(aggregated.edges) - set(own.edges) == {("D", "F")}
    assert aggregated.edges["D", "F"]["style"] == "dashed"
    assert {e for *e, style in own.edges(data="style") if style != "solid"} == set()
    assert set(own.edges) == {("D", "X"), ("D", "R"), ("X", "R"), ("R", "F"), ("F", "Y")}
    assert dict(own.nodes(data="role")) == {
        "D": "latent", "X": "observed", "R": "observed", "F": "observed", "Y": "observed"
    }  # fmt: skip
    # The path that the paper names, and the one that remains without the dashed arrow.
    assert theory.open_path(aggregated, "X", "Y", ["R"]) == ("X", "←", "D", "→", "F", "→", "Y")
    assert theory.d_separated(own, "X", "Y", ["R"])
    cut = theory.mutilated(own, under="X")
    assert " ".join(theory.open_path(cut, "X", "Y") or ()) == "X ← D → R → F → Y"


@pytest.mark.parametrize("policy", ["aggregated", "client_specific"])
def test_the_dashed_arrow_does_not_touch_the_law_of_the_label_given_the_feature(policy):
    assert theory.rule2(theory.training_graph(policy), "Y", "F").holds
    assert not theory.rule2(theory.training_graph(policy, label="shift"), "Y", "F").holds


def test_without_an_arrow_from_the_domain_to_the_feature_nothing_needs_adjustment():
    """A network whose weights all clients share makes R of X alone."""
    graph = theory.test_graph()
    graph.remove_edge("D", "R")
    steps = {s.name: s for s in theory.proposition_iii10(graph)}
    assert steps["rule2.X"].holds and steps["backdoor.X"].holds and steps["frontdoor.X"].holds
    sides = both_sides(models := BinaryModels(graph, 50))
    assert models.gaps(*sides["rule2.X"]).max() < 1e-12


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: theory.training_graph("local"), "policy must be one of aggregated, client_speci"),
        (
            lambda: theory.test_graph(statistics="own"),
            "statistics must be one of batch, stream, po",
        ),
        (lambda: theory.test_graph(label=["x"]), "label must be one of feature, shift, content"),
        (lambda: theory.training_graph(TWO), "policy must be one of .*, not a ndarray"),
        (lambda: theory.training_graph("aggregated", label=TWO), "label must be .*, not a ndarray"),
        (lambda: theory.test_graph(TWO), "policy must be one of .*, not a ndarray"),
        (lambda: theory.test_graph(statistics=TWO), "statistics must be .*, not a ndarray"),
        (lambda: theory.test_graph(label=TWO), "label must be one of .*, not a ndarray"),
        (
            lambda: theory.proposition_iii10(theory.training_graph("aggregated")),
            "graph lacks S: its nodes must include D, X, R, S, F, Y; start",
        ),
    ],
)
def test_unknown_words_and_other_graphs_are_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_other_things_than_graphs_are_refused():
    with pytest.raises(TypeError, match=r"networkx\.DiGraph, not MultiGraph"):
        theory.proposition_iii10(nx.MultiGraph())


def test_importing_theory_does_not_import_networkx():
    code = "import sys, theory; sys.exit('networkx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
