"""The section `causal`: steps, answers and streams against values by hand, with parts missing."""

import pytest
from synthetic import Records, student
from synthetic_causal import (
    GRAPHS,
    HELD,
    OPTIONS,
    SCENARIOS,
    STEPS,
    answers,
    everything,
    graphs,
    skewed,
    structural,
    trained,
)
from written_files import in_order

from figures.causal import content, present, summarise
from figures.causal.graphs import walk
from figures.selection import of
from figures.tables import as_text_rows


def made(records):
    return summarise(*records.both)


def claims(records):
    return {claim.id: claim for claim in content(made(records)).claims}


def table(records, name):
    """The rows of a table as people see them."""
    (found,) = [t for t in content(made(records)).tables if t.name == name]
    return as_text_rows(found.frame if found.shown is None else found.shown, found.layout)[1]


def nets(scenario="shift", seeds=3, records=None, **special):
    records = records or Records()
    for seed in range(seeds):
        for policy in ("aggregated", "client_specific"):
            trained(records, scenario, policy, seed, **special)
    return records


# ---- the steps of Proposition III.10


def test_a_step_that_fails_is_claimed_to_fail_with_its_path():
    found = claims(graphs(Records()))
    assert list(found) == [
        "step.independence",
        "step.rule2-s",
        "step.rule2-s-given-r",
        "step.rule3-f",
    ]
    fails = found["step.rule2-s"]
    assert fails.claim.startswith("Rule 2 does not give P(F | do(S)) = P(F | S)")
    assert (fails.measured, fails.verdict) == ("open path S ← R → F", "certified")
    holds = found["step.rule2-s-given-r"]
    assert holds.claim == "P(F | do(S), R) = P(F | S, R) in the graph of testing, by rule 2"
    assert (holds.measured, holds.verdict) == ("no open path", "certified")
    assert "by" not in found["step.independence"].claim.split()


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize(
    ("holds", "path", "verdict"),
    [
        (True, "", "certified"),
        (False, "S ← R → F", "certified"),
        (True, "S ← R → F", "violated"),
        (False, "", "violated"),
    ],
)
def test_a_step_that_contradicts_itself_is_a_bug(holds, path, verdict, tmp_path):
    records = graphs(Records(), [("rule2.S", "P(F | do(S)) = P(F | S)", holds, path)])
    product = present(*records.both, tmp_path, OPTIONS)
    assert [claim.verdict for claim in product.claims] == [verdict]
    assert product.proven_hold == (verdict == "certified")


def test_one_step_in_two_graphs_has_two_claims():
    records = graphs(Records())
    at = {"metric": "step", "variant": "train aggregated", "client": "rule3.F", "value": 0.0}
    at |= {"split": "P(Y | do(D)) = P(Y)", "note": "D → F → Y"}
    records.add({"study": "graphs", "data": "gaussian", "seed": 0}, [at])
    found = [name for name in claims(records) if "rule3" in name]
    assert found == ["step.rule3-f-test", "step.rule3-f-train-aggregated"]


def test_the_table_of_steps_names_rule_and_path():
    rows = table(graphs(Records()), "steps")
    assert rows[0] == ["(S ⊥ Y | F)", "testing", "d-separation", "yes", "–"]
    assert rows[1] == ["P(F | do(S)) = P(F | S)", "testing", "rule 2", "no", "S ← R → F"]
    assert len(rows) == len(STEPS)


@pytest.mark.parametrize("path", ["S ← R → F", "S <- R -> F", "S←R ⇢ F"])
def test_a_path_is_read_with_any_arrows(path):
    assert walk(path) == ["S", "R", "F"]
    assert walk("") == []


def test_a_graph_recorded_twice_counts_once():
    once, twice = made(graphs(Records())), made(graphs(graphs(Records())))
    for name in ("nodes", "edges", "steps"):
        assert getattr(once.graphs, name).equals(getattr(twice.graphs, name))
    assert once.graphs.names == list(GRAPHS)


# ---- the structural model


def test_exact_and_simulated_errors_stand_beside_one_another():
    found = made(structural(Records(), off=1.5)).structural
    exact = answers("shift", 2.0)
    for answer, value in exact.items():
        row = of(found.risks, answer=answer, strength=2.0).row(0, named=True)
        assert row["samples"] is None
        assert row["exact"] == pytest.approx(value)
        # Simulated 1.5 standard errors above: the exact value lies 1.5 below.
        assert row["z"] == pytest.approx(-1.5, rel=1e-4)
    sizes = of(found.risks, answer="do_s", strength=2.0)["samples"].to_list()
    assert sorted(n for n in sizes if n) == [4, 8, 16, 32, 64, 128] and sizes.count(None) == 1


@pytest.mark.parametrize(("off", "verdict"), [(2.5, "consistent"), (6.0, "violated")])
def test_a_simulation_that_disagrees_is_a_bug(off, verdict):
    claim = claims(structural(Records(), off=off))["structural.simulated"]
    assert claim.verdict == verdict
    assert f"largest |z| = {off}" in claim.measured and "44 comparisons" in claim.measured


def test_z_uses_the_half_of_the_interval_that_faces_the_exact_value():
    at = {"variant": "do_f", "split": "shift", "parameter": 1.0}
    rows = [{"metric": "risk", "value": 0.13, "lower": 0.13, "upper": 0.13, **at}]
    rows.append({"metric": "risk_simulated", "value": 0.1, "lower": 0.09, "upper": 0.12, **at})
    records = Records().add({"study": "structural", "scenario": "shift"}, rows)
    z = made(records).structural.risks["z"].to_list()
    assert z == pytest.approx([1.959964 * 0.03 / 0.02])


def test_networks_are_compared_at_the_largest_strength_with_32_points():
    records = nets(records=nets(strength=1.0), strength=3.0)
    found = made(records).structural
    at = found.where["shift"]
    assert (at.strength, at.samples) == (3.0, 32)
    cell = found.error("shift", "client_specific")
    assert cell == found.errors["shift", "client_specific", 3.0, 32]
    assert found.error("shift", "aggregated") == found.errors["shift", "aggregated", 3.0, None]
    gain = found.gains["shift"].difference
    values = [
        found.errors["shift", "aggregated", 3.0, None].values[seed] - cell.values[seed]
        for seed in range(3)
    ]
    assert (gain.mean, gain.lower, gain.upper) == pytest.approx(student(values))


def test_without_32_points_the_most_are_taken():
    found = made(nets(batches=(4, 16, 64))).structural
    assert found.where["shift"].samples == 64


def test_verdicts_follow_the_paired_differences():
    records = Records()
    for scenario in SCENARIOS:
        nets(scenario, 3, records)
    found = claims(records)
    for scenario in ("shift", "label-shift", "confounded"):
        assert found[f"structural.{scenario}.client-specific"].verdict == "supported"
        assert found[f"structural.{scenario}.batch-size"].measured.startswith("+")
    claim = found["structural.shift.interventional"]
    own, other = (0.03 + answers("shift", 3.0)["do_s"] / 3 + 0.2 / 32), 0.26
    assert "points over" not in claim.measured
    assert claim.measured.startswith(f"+{other - own:.3f}"[:5])
    assert claim.interval[0] < other - own < claim.interval[1]


def test_a_claim_that_the_records_contradict_says_so():
    records = Records()
    for seed in range(3):
        for policy, error in (("aggregated", 0.1), ("client_specific", 0.3)):
            config = {"study": "structural_training", "scenario": "label shift", "strength": 2.0}
            config |= {"bn_policy": policy, "seed": seed}
            n = 32 if policy == "client_specific" else None
            at = {"variant": policy, "split": "label shift", "parameter": 2.0, "samples": n}
            wobble = 0.002 * seed * (1 if n else -1)
            records.add(config, [{"metric": "risk", "value": error + wobble, **at}])
    claim = claims(records)["structural.label-shift.client-specific"]
    assert claim.verdict == "contradicted" and claim.measured.startswith("−20.4 points")


def test_a_training_that_diverged_is_named_and_left_out():
    records = nets("confounded", 2)
    trained(records, "confounded", "aggregated", 2, diverged=5)
    trained(records, "confounded", "client_specific", 2)
    summary = made(records)
    cell = summary.structural.error("confounded", "aggregated")
    assert (sorted(cell.values), cell.diverged) == ([0, 1], {2: 5})
    (note,) = content(summary).notes
    assert "in round 5" in note and "confounded, strength 3, aggregated BN, seed 2" in note
    caption = content(summary).drawings["answers"].caption
    assert "hollow marks lack seeds that diverged" in caption
    assert "confounded, strength 3, aggregated BN: diverged (round 5), 1 of 3 seeds" in caption
    claim = claims(records)["structural.confounded.client-specific"]
    assert "over 2 seeds" in claim.measured and "1 seed without a pair left out" in claim.measured


def test_where_every_seed_diverged_the_table_says_so():
    records = Records()
    for seed in range(2):
        trained(records, "shift", "aggregated", seed, diverged=3)
        trained(records, "shift", "client_specific", seed)
    rows = table(records, "networks")
    lost = [row for row in rows if row[1] == "aggregated"]
    assert [row[3] for row in lost] == ["diverged (round 3)\nall 2 seeds"]
    assert "structural.shift.client-specific" not in claims(records)


def test_tables_of_risks_show_per_cent_at_the_strength_of_the_networks():
    records = nets(records=structural(Records()), strength=2.0)
    rows = table(records, "risks")
    assert {row[1] for row in rows} == {"2"}
    backdoor = next(row for row in rows if row[2].startswith("back-door"))
    assert float(backdoor[4]) == pytest.approx(100 * answers("shift", 2.0)["backdoor"], abs=0.01)
    assert {row[3] for row in rows if row[2] == "do(S)"} >= {"the population", "32 points"}


# ---- label shift


def test_harm_is_balanced_minus_adapted_paired_by_seed():
    records = Records()
    for seed in range(3):
        for client in HELD[:2]:
            skewed(records, client, seed)
    skew = made(records).skew
    assert skew.ratios == [1, 2, 5, 10, 20, 50]
    harm = skew.harms["client mnist", 10.0].difference
    # One decade: 6, 6.4 and 6.8 points.
    assert (harm.mean, harm.lower, harm.upper) == pytest.approx(student([0.06, 0.064, 0.068]))
    assert not any(ratio == 1 for _, ratio in skew.harms)
    assert skew.columns == ["mean", "client mnist", "client optdigits"]
    found = claims(records)
    claim = found["label-shift.harm"]
    assert claim.verdict == "supported" and "50 times as frequent" in claim.claim
    assert "mean over 2 clients" in claim.claim
    assert claim.measured.startswith("+10.9 points over 3 seeds")
    assert found["label-shift.harm.optdigits"].claim.endswith("(Optdigits held out)")
    # The server is 10 points below balanced, adapted 10.9.
    assert found["label-shift.server"].measured.startswith("−0.9 points")


def test_one_client_has_no_mean():
    records = Records()
    for seed in range(3):
        skewed(records, "mnist", seed)
    assert made(records).skew.columns == ["client mnist"]
    found = claims(records)
    assert set(found) == {"label-shift.harm", "label-shift.server"}
    assert "MNIST held out" in found["label-shift.harm"].claim


def test_other_methods_than_fedbn_do_not_count():
    records = skewed(Records(), "mnist", 0)
    run = list(records.manifests)[-1]
    before = made(records).skew
    skewed(records, "mnist", 1)
    other = list(records.manifests)[-1]
    assert run != other
    records.manifests[other]["config"]["training"]["algorithm"] = "moon"
    assert made(records).skew.cells == before.cells


def test_images_scored_are_the_fewest():
    rows = table(skewed(Records(), "mnist", 0), "label_shift")
    assert [row[-1] for row in rows] == ["1000", "590", "383", "302", "250", "203"]


def test_a_stream_of_a_training_that_diverged_is_named():
    records = skewed(Records(), "mnist", 0)
    skewed(records, "mnist", 1, diverged=9)
    summary = made(records)
    assert "in round 9" in summary.diverged[0] and "without mnist" in summary.diverged[0]
    caption = content(summary).drawings["label_shift"].caption
    assert "MNIST held out: diverged (round 9), 1 of 2 seeds" in caption


# ---- parts, names, files


def drawn_twice():
    return structural(structural(Records()), strengths=(1.0,))


PARTS = {
    "nothing": (Records, set()),
    "graphs": (lambda: graphs(Records()), {"graphs"}),
    "graphs without steps": (lambda: graphs(Records(), ()), {"graphs"}),
    "one graph": (
        lambda: graphs(Records(), STEPS, {"test": GRAPHS["test"]}),
        {"graphs"},
    ),
    "answers without batches": (lambda: structural(Records(), batches=()), {"answers"}),
    "one strength": (
        lambda: structural(Records(), strengths=(1.0,)),
        {"answers", "batch_size"},
    ),
    "two runs of one scenario": (drawn_twice, {"answers", "batch_size"}),
    "networks alone": (nets, {"answers", "batch_size", "distance"}),
    "networks of one seed": (lambda: nets(seeds=1), {"answers", "batch_size", "distance"}),
    "one policy": (
        lambda: trained(Records(), "shift", "aggregated", 0),
        {"answers", "distance"},
    ),
    "all diverged": (lambda: trained(Records(), "shift", "aggregated", 0, diverged=1), set()),
    "another scenario": (
        lambda: nets("my own", records=structural(Records())),
        {"answers", "batch_size", "distance"},
    ),
    "one stream": (lambda: skewed(Records(), "mnist", 0), {"label_shift"}),
    "one ratio": (lambda: skewed(Records(), "mnist", 0, ratios=(1,)), {"label_shift"}),
    "streams that all diverged": (lambda: skewed(Records(), "mnist", 0, diverged=2), set()),
}


def answers_of_networks_with_few_points():
    return nets(batches=(8,))


PARTS["one batch size"] = (
    answers_of_networks_with_few_points,
    {"answers", "batch_size", "distance"},
)


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
    names = ["graphs", "answers", "batch_size", "distance", "label_shift"]
    assert [path.stem for path in product.figures] == names
    tables = {path.stem for path in (tmp_path / "tables").glob("*.csv")}
    assert tables == {
        "steps",
        "risks",
        "networks",
        "network_differences",
        "label_shift",
        "label_shift_harm",
    }
    assert len(product.claims) == len(STEPS) + 1 + 4 * len(SCENARIOS) + 2 * (1 + len(HELD))
    assert all(claim.figure is not None for claim in product.claims)
    in_order(product, tmp_path)


def test_clients_and_scenarios_may_have_any_names():
    records, names = Records(), ("A$B_^{", "Hôpital 1", "hôpital-1", "x" * 90, "mean")
    for seed in range(2):
        for name in names:
            skewed(records, name, seed)
        nets("$x_{", 1, records)
    made_of = content(made(records))
    ids = [claim.id for claim in made_of.claims]
    assert len(ids) == len(set(ids))
    for drawing in made_of.drawings.values():
        drawing.make().draw_without_rendering()
