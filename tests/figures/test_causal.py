"""The section `causal`: steps as claims and as tables, parts that are missing, files."""

import pytest
from synthetic import Records
from synthetic_causal import (
    GRAPHS,
    HELD,
    OPTIONS,
    SCENARIOS,
    STEPS,
    claims,
    everything,
    graphs,
    made,
    nets,
    skewed,
    structural,
    table,
    trained,
)
from written_files import in_order

from figures.causal import content, present
from figures.causal.graphs import rule_of, walk
from figures.tables import to_latex

# ---- the steps of Proposition III.10


def test_a_step_that_fails_is_claimed_to_fail_with_its_path():
    found = claims(graphs(Records()))
    fails = found["step.rule2.s"]
    words = "Rule 2 does not give P(F | do(S)) = P(F | S) in the graph of testing"
    assert (fails.claim, fails.measured) == (words, "open path S ← R → F")
    assert (fails.verdict, fails.figure) == ("certified", "figures/graphs.pdf")
    holds = found["step.rule2.s-r"]
    assert holds.claim == "P(F | do(S), R) = P(F | S, R) in the graph of testing, by rule 2"
    assert (holds.measured, holds.verdict) == ("no open path", "certified")
    assert found["step.separation.s"].claim == "(S ⊥ Y | F) in the graph of testing"
    assert "III.10" in fails.source and "(20)" in found["step.backdoor.x"].source


def test_other_graphs_are_claimed_where_they_come_out_otherwise():
    found = claims(graphs(Records()))
    assert list(found) == [
        *("step.separation.s", "step.rule2.s", "step.rule2.s-r", "step.mixture"),
        "step.backdoor.x",
        # D and F in training, since the paper speaks of it; do(S), which "test" does not have.
        *("step.train-aggregated.separation.d", "step.train-client-specific.separation.d"),
        *("step.test-do-s.rule1.d.s", "step.label-shift"),
    ]
    claim = found["step.label-shift"]
    # Not of rule2.S, which fails without label shift, too.
    assert claim.claim == (
        "In the graph of testing (label shift, D → Y), unlike in the paper's, the rules do not "
        "give (S ⊥ Y | F); P(Y | do(S)) = Σ_f P(Y | do(f)) P(f | do(S))"
    )
    assert claim.measured == "open paths S ← R ← D → Y, F ← R ← D → Y"
    assert (claim.verdict, claim.figure) == ("certified", "figures/steps.pdf")


def test_what_another_graph_mends_is_said():
    words = "P(F | do(S), D) = P(F | S, D)"
    steps = {"test": [("rule2.S|D", words, False, "S ← R → F")]}
    steps["test, population statistics"] = [("rule2.S|D", words, True, "")]
    claim = claims(graphs(Records(), steps))["step.population-statistics"]
    assert claim.claim.endswith(f"unlike in the paper's, the rules do give {words}")
    assert (claim.measured, claim.verdict) == ("no open path", "certified")


@pytest.mark.parametrize(
    ("holds", "path", "verdict"),
    [
        (True, "", "certified"),
        (False, "S ← R → F", "certified"),
        (True, "S ← R → F", "violated"),
        (False, "", "violated"),
    ],
)
def test_a_step_that_contradicts_itself_is_violated(holds, path, verdict):
    found = claims(graphs(Records(), {"test": [("rule2.S", "P(F) = P(F)", holds, path)]}))
    assert found["step.rule2.s"].verdict == verdict


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize(
    ("records", "holds"),
    [
        (lambda: graphs(Records(), {"test": [("rule2.S", "P(F) = P(F)", True, "S → F")]}), False),
        (lambda: structural(Records(), strengths=(1.0,), batches=(), off=6.0), False),
        (lambda: structural(Records(), strengths=(1.0,), batches=()), True),
    ],
)
def test_what_is_proven_cannot_be_violated_but_by_a_bug(records, holds, tmp_path):
    assert present(*records().both, tmp_path, OPTIONS).proven_hold == holds


def test_ids_of_steps_are_words_and_each_its_own():
    names = ("rule2.S|R", "rule2.S.R", "rule2.S-R", "…", "RULE2.s|r")
    found = claims(graphs(Records(), {"test": [(n, "P(F) = P(F)", True, "") for n in names]}))
    assert list(found) == [
        *("step.rule2.s-r", "step.rule2.s.r", "step.rule2.s-r-2"),
        *("step.unnamed", "step.rule2.s-r-3"),
    ]


def test_the_tables_of_steps_name_rule_and_path():
    rows = table(graphs(Records()), "steps")
    assert rows[0] == ["(S ⊥ Y | F)", "d-separation", "holds"]
    assert rows[1] == ["P(F | do(S)) = P(F | S)", "rule 2", "S ← R → F"]
    assert len(rows) == len(STEPS["test"])
    beside = {row[0]: row[1:] for row in table(graphs(Records()), "steps_by_graph")}
    # The columns are label shift and the training with two steps.
    assert beside["(S ⊥ Y | F)"] == ["d-separation", "S ← R ← D → Y", "–"]
    assert beside["(D ⊥ F)"] == ["d-separation", "–", "D → R → F"]
    assert "P(F | do(S), R) = P(F | S, R)" not in beside


@pytest.mark.parametrize("path", ["S ← R → F", "S <- R -> F", "S←R ⇢ F"])
def test_a_path_is_read_with_any_arrows(path):
    assert walk(path) == ["S", "R", "F"]
    assert walk("") == []


def test_rules_are_told_by_the_first_word_of_a_step():
    assert rule_of("rule2.S|R") == "rule 2" and rule_of("backdoor.X") == "back-door criterion"
    assert rule_of("mixture") == "rules 2 and 3" and rule_of("anything") == "d-separation"


def test_a_graph_recorded_twice_counts_once():
    once, twice = made(graphs(Records())), made(graphs(graphs(Records())))
    for name in ("nodes", "edges", "steps"):
        assert getattr(once.graphs, name).equals(getattr(twice.graphs, name))
    assert once.graphs.names == list(GRAPHS)


# ---- parts, names, files


PARTS = {
    "nothing": (Records, set()),
    "graphs": (lambda: graphs(Records()), {"graphs", "steps"}),
    "graphs without steps": (lambda: graphs(Records(), {}), {"graphs"}),
    "one graph": (
        lambda: graphs(Records(), {"test": STEPS["test"][:1]}, {"test": GRAPHS["test"]}),
        {"graphs", "steps"},
    ),
    "answers without batches": (lambda: structural(Records(), batches=()), {"answers"}),
    "one strength": (
        lambda: structural(Records(), strengths=(1.0,)),
        {"answers", "batch_size"},
    ),
    "two runs of one scenario": (
        lambda: structural(structural(Records()), strengths=(1.0,)),
        {"answers", "batch_size"},
    ),
    "networks alone": (nets, {"answers", "batch_size", "distance"}),
    "networks of one seed": (lambda: nets(seeds=1), {"answers", "batch_size", "distance"}),
    "one policy": (lambda: trained(Records(), "shift", "aggregated", 0), {"answers", "distance"}),
    "one batch size": (lambda: nets(batches=(8,)), {"answers", "batch_size", "distance"}),
    "all diverged": (lambda: trained(Records(), "shift", "aggregated", 0, diverged=1), set()),
    "another scenario": (
        lambda: nets("my own", records=structural(Records())),
        {"answers", "batch_size", "distance"},
    ),
    "one stream": (lambda: skewed(Records(), "mnist", 0), {"label_shift"}),
    "one ratio": (lambda: skewed(Records(), "mnist", 0, ratios=(1,)), {"label_shift"}),
    "streams that all diverged": (lambda: skewed(Records(), "mnist", 0, diverged=2), set()),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("part", PARTS)
def test_parts_that_are_missing_are_left_out(part, tmp_path):
    make, drawn = PARTS[part]
    product = present(*make().both, tmp_path, OPTIONS)
    assert {path.stem for path in product.figures} == drawn
    assert product.proven_hold
    in_order(product, tmp_path)


@pytest.mark.usefixtures("coarse")
def test_the_whole_section_lies_on_disk_without_a_nan(tmp_path):
    product = present(*everything().both, tmp_path, OPTIONS)
    names = ["graphs", "steps", "answers", "batch_size", "distance", "label_shift"]
    assert [path.stem for path in product.figures] == names
    tables = {path.stem for path in (tmp_path / "tables").glob("*.csv")}
    assert tables == {
        *("steps", "steps_by_graph", "risks", "networks", "network_differences"),
        *("label_shift", "label_shift_harm"),
    }
    kinds = [claim.id.split(".")[0] for claim in product.claims]
    # The model: simulated, Bayes, do(S) in each scenario; four claims for each in networks.
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "step": 9,
        "answers": 2 + len(SCENARIOS),
        "structural": 4 * len(SCENARIOS),
        "label-shift": 2 * (1 + len(HELD)),
    }
    assert all(claim.figure is not None for claim in product.claims)
    in_order(product, tmp_path)


def test_clients_and_scenarios_may_have_any_names():
    records, names = Records(), ("A$B_^{", "Hôpital 1", "hôpital-1", "x" * 90, "mean")
    for seed in range(2):
        for name in names:
            skewed(records, name, seed)
        nets("$x_{", 1, records)
    shown = content(made(records))
    ids = [claim.id for claim in shown.claims]
    assert len(ids) == len(set(ids))
    for drawing in shown.drawings.values():
        drawing.make().draw_without_rendering()


def test_signs_of_steps_are_mathematics_in_latex():
    (steps, _) = content(made(graphs(Records()))).tables[:2]
    text = to_latex(steps.shown, steps.layout)
    assert r"(S $\perp$ Y \textbar{} F)" in text and r"S $\gets$ R $\to$ F" in text
