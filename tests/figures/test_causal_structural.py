"""The structural model in the section `causal`: exact against simulated errors, networks."""

import pytest
from matplotlib.text import Text
from synthetic import Records, student
from synthetic_causal import SCENARIOS, answers, claims, made, nets, structural, table, trained

from figures.causal import content
from figures.selection import of


def test_exact_and_simulated_errors_stand_beside_one_another():
    found = made(structural(Records(), off=1.5)).structural
    for answer, value in answers("shift", 2.0).items():
        rows = of(found.risks, answer=answer, strength=2.0)
        row = rows.filter(rows["samples"].is_null()).row(0, named=True)
        assert row["exact"] == pytest.approx(value)
        # Simulated 1.5 standard errors above: the exact value lies 1.5 below.
        assert row["z"] == pytest.approx(-1.5, rel=1e-4)
    sizes = of(found.risks, answer="do_s", strength=2.0)["samples"].to_list()
    assert sorted(n for n in sizes if n) == [4, 8, 16, 32, 64, 128] and sizes.count(None) == 1


@pytest.mark.parametrize(("off", "verdict"), [(2.5, "consistent"), (6.0, "violated")])
def test_a_simulation_that_disagrees_is_a_bug(off, verdict):
    claim = claims(structural(Records(), off=off))["answers.simulated"]
    assert claim.verdict == verdict
    # Five answers and six sizes of the batch at four strengths; normal quantile of 1 − 0.001/88.
    assert f"largest |z| = {off}" in claim.measured and "44 comparisons" in claim.measured
    assert "where 4.24 is exceeded" in claim.measured


def test_z_uses_the_half_of_the_interval_that_faces_the_exact_value():
    at = {"variant": "do_f", "split": "shift", "parameter": 1.0}
    rows = [{"metric": "risk", "value": 0.13, "lower": 0.13, "upper": 0.13, **at}]
    rows.append({"metric": "risk_simulated", "value": 0.1, "lower": 0.09, "upper": 0.12, **at})
    records = Records().add({"study": "structural", "scenario": "shift"}, rows)
    z = made(records).structural.risks["z"].to_list()
    assert z == pytest.approx([1.959964 * 0.03 / 0.02])


def by_hand(scenario, points=None, **errors):
    """One strength; errors: answer -> (value, half of its numerical error); points simulated."""
    rows = []
    for answer, (value, half) in errors.items():
        at = {"variant": answer, "split": scenario, "parameter": 1.0}
        ends = {"lower": value - half, "upper": value + half}
        rows.append({"metric": "risk", "value": value, **ends, **at})
        if points:
            around = {"lower": value - 0.01, "upper": value + 0.01}
            rows.append({"metric": "risk_simulated", "value": value, **around, **at})
    config = {"study": "structural", "scenario": scenario}
    return Records().add(config | ({"simulations": points} if points else {}), rows)


@pytest.mark.parametrize(
    ("do_s", "verdict"), [(0.1, "consistent"), (0.1003, "consistent"), (0.11, "violated")]
)
def test_do_s_is_do_f_where_domains_are_one_location_scale_family(do_s, verdict):
    found = claims(by_hand("shift", do_f=(0.1, 0.0), do_s=(do_s, 0.0002)))
    assert found["answers.shift.do-s"].verdict == verdict


@pytest.mark.parametrize(
    ("do_s", "points", "verdict"),
    [
        (0.3, 1000, "certified"),  # Hoeffding's radius is 0.10
        (0.3, 200, "consistent"),  # and here 0.23
        (0.3, None, "consistent"),  # a quadrature's error is no proof
        (0.1001, 1000, "consistent"),
        (0.05, 1000, "violated"),
    ],
)
def test_under_label_shift_do_s_falls_short_of_do_f(do_s, points, verdict):
    found = claims(by_hand("label shift", points, do_f=(0.1, 0.0), do_s=(do_s, 0.0002)))
    claim = found["answers.label-shift.do-s"]
    assert claim.verdict == verdict and "does not cut the domain off" in claim.claim
    gap = 100 * (do_s - 0.1)
    assert claim.interval == pytest.approx((gap - 0.02, gap + 0.02))


@pytest.mark.parametrize(("backdoor", "verdict"), [(0.2, "consistent"), (0.09, "violated")])
def test_nothing_errs_less_than_the_bayes_rule(backdoor, verdict):
    found = claims(by_hand("my own", bayes=(0.1, 1e-6), backdoor=(backdoor, 1e-6)))
    assert found["answers.bayes"].verdict == verdict
    # Of a scenario that nobody knows nothing is expected.
    assert set(found) == {"answers.bayes"}


def test_networks_are_compared_at_the_largest_strength_with_batches_of_32():
    found = made(nets(records=nets(strength=1.0), strength=3.0)).structural
    at = found.where["shift"]
    assert (at.strength, at.samples) == (3.0, 32)
    cell = found.error("shift", "client_specific")
    assert cell == found.errors["shift", "client_specific", 3.0, 32]
    assert found.error("shift", "aggregated") == found.errors["shift", "aggregated", 3.0, None]
    other = found.errors["shift", "aggregated", 3.0, None]
    gain = found.gains["shift"].difference
    expected = student([other.values[seed] - cell.values[seed] for seed in range(3)])
    assert (gain.mean, gain.lower, gain.upper) == pytest.approx(expected)
    assert gain.lower < gain.mean


def test_without_batches_of_32_the_largest_are_taken():
    found = made(nets(batches=(4, 16, 64))).structural
    assert found.where["shift"].samples == 64


def test_networks_are_compared_where_the_answers_are_known():
    records = nets(records=nets(records=structural(Records()), strength=2.0), strength=4.0)
    assert made(records).structural.where["shift"].strength == 2.0
    other = nets(records=structural(Records(), strengths=(1.0,)), strength=4.0)
    assert made(other).structural.where["shift"].strength == 4.0
    # No strength in common: the answers' own largest is shown.
    assert {row[1] for row in table(other, "risks")} == {"1"}
    for drawing in content(made(other)).drawings.values():
        drawing.make().draw_without_rendering()


def test_verdicts_follow_the_paired_differences():
    records = Records()
    for scenario in SCENARIOS:
        nets(scenario, 3, records)
    found = claims(records)
    for scenario in ("shift", "label-shift", "confounded"):
        claim = found[f"structural.{scenario}.client-specific"]
        assert claim.verdict == "supported" and "% with aggregated, " in claim.measured
    claim = found["structural.shift.interventional"]
    # 0.26 of aggregated BN, 0.03 + Φ(−1.2)/3 + 0.2/32 of client-specific BN.
    expected = 0.26 - (0.03 + answers("shift", 3.0)["do_s"] / 3 + 0.2 / 32)
    assert claim.measured.startswith(f"+{expected:.3f}") and "points" not in claim.measured
    assert claim.interval[0] < expected < claim.interval[1]
    assert "structural.shift.causal" in found and "structural.shift.follows" not in found
    follows = found["structural.label-shift.follows"]
    assert (
        "as do(S) does than as P(Y | F) with the domain cut off" in follows.claim
        and follows.verdict == "supported"
    )


def test_small_batches_are_those_that_have_each_their_own_statistics():
    records = nets("shift", 3)
    small = made(records).structural.small["shift"].difference
    alone = made(records).structural.alone
    few, many = (alone["shift", "client_specific", 3.0, n].values for n in (4, 128))
    expected = student([few[seed] - many[seed] for seed in range(3)])
    assert small.mean == pytest.approx(expected[0])
    assert "τ = 0" in claims(records)["structural.shift.batch-size"].claim


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
    assert claim.verdict == "contradicted"
    said = "9.8 % with aggregated, 30.2 % with client-specific BN: −20.4 points over 3 seeds"
    assert claim.measured.startswith(said)


def test_a_gain_is_also_told_at_the_strengths_that_are_not_judged():
    records = Records()
    for seed in range(3):
        for strength, aggregated in ((1.0, 0.1), (2.0, 0.4)):
            for policy, error, n in (
                ("aggregated", aggregated, None),
                ("client_specific", 0.2, 32),
            ):
                config = {"study": "structural_training", "scenario": "shift", "seed": seed}
                config |= {"strength": strength, "bn_policy": policy}
                at = {"variant": policy, "split": "shift", "parameter": strength, "samples": n}
                value = error + 0.001 * seed * (n is None)
                records.add(config, [{"metric": "risk", "value": value, **at}])
    claim = claims(records)["structural.shift.client-specific"]
    assert claim.verdict == "supported" and "strength 2: " in claim.claim
    said = "; over strengths 1 to 2 from −9.9 to +20.1 points, client-specific BN erring more at 1"
    assert said in claim.measured


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
    lost = [row for row in table(records, "networks") if row[1] == "aggregated"]
    assert [row[3] for row in lost] == ["diverged (round 3)\nall 2 seeds"]
    assert "structural.shift.client-specific" not in claims(records)


def test_tables_of_risks_show_per_cent_at_the_strength_of_the_networks():
    records = nets(records=structural(Records()), strength=2.0)
    rows = table(records, "risks")
    assert {row[1] for row in rows} == {"2"}
    backdoor = next(row for row in rows if row[2].startswith("back-door"))
    assert float(backdoor[4]) == pytest.approx(100 * answers("shift", 2.0)["backdoor"], abs=0.01)
    assert {row[3] for row in rows if row[2] == "do(S)"} >= {"the population", "32 points"}
    assert {row[3] for row in rows if row[2] != "do(S)"} == {"–"}


def test_no_conditional_law_is_called_an_intervention_on_the_feature():
    """σ(2 δ·V) is P(Y | F) in a neutral domain; in the model's own graph do(F) leaves P(Y)."""
    records = nets("label shift", 3, nets(records=structural(Records())))
    shown = content(made(records))
    for claim in shown.claims:
        assert "do(F)" not in claim.claim, claim.id
    for name in ("answers", "batch_size", "distance"):
        caption = shown.drawings[name].caption
        assert "P(Y | do(F)) if F causes Y by one law in all domains" in caption
        assert caption.count("do(F)") == 1
        figure = shown.drawings[name].make()
        labels = [text.get_text() for text in figure.findobj(Text)]
        assert any("domain cut off" in label for label in labels)
        assert not any("do(F)" in label for label in labels)
    for name in ("risks", "networks", "network_differences"):
        assert "do(F)" not in str(table(records, name))
