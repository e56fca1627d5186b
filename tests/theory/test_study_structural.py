"""The study of the structural model: rows, draws to train on, and the plan."""

import json

import numpy as np
import pytest
from scipy.stats import beta

from empirical.seeds import numpy_generator
from figures.records import SCHEMA, RunStore
from theory import structural_answer, structural_model, structural_risk
from theory.scenarios import SCENARIOS
from theory.structural_answers import ANSWERS
from theory.studies import STUDIES, structural_data
from theory.studies.structural import BATCH_SIZES, STRENGTHS, structural_studies

CONFIG = {
    "study": "structural",
    "data": "gaussian",
    "scenario": "label shift",
    "strengths": [0.0, 0.3],
    "batch_sizes": [2, 8],
    "simulations": 5000,
    "clients": 3,
    "separation": 1.0,
    "seed": 0,
}
TRAINING = {
    "scenario": "shift",
    "strength": 2.0,
    "clients": 3,
    "separation": 1.5,
    "samples": 40,
    "outside": 60,
    "seed": 1,
}


def rows(config):
    told = []
    found = list(STUDIES["structural"](config, None, numpy_generator, told.append))
    assert told == sorted(told) and told[-1] == 1.0
    return found


def test_every_answer_has_an_exact_and_a_simulated_risk(tmp_path):
    found = rows(CONFIG)
    ways = [(answer, None) for answer in ANSWERS] + [("do_s", 2), ("do_s", 8)]
    for metric in ("risk", "risk_simulated"):
        own = [r for r in found if r["metric"] == metric]
        assert [(r["parameter"], r["variant"], r["samples"]) for r in own] == [
            (t, *way) for t in (0.0, 0.3) for way in ways
        ]
        assert all(r["lower"] <= r["value"] <= r["upper"] for r in own)
        assert {r["split"] for r in own} == {"label shift"}
    store = RunStore(tmp_path)
    with store.writing(CONFIG) as run:
        run.add(found)
    back = store.read(run.hash)
    assert back.columns == [*SCHEMA, "run"] and back.height == len(found)
    assert rows(json.loads(json.dumps(CONFIG))) == found


def test_the_rows_hold_the_model_s_risks_and_clopper_pearson():
    found = rows({**CONFIG, "strengths": [0.3]})
    model = structural_model("label shift", 0.3, 3, 1.0)
    for row in found:
        risk = structural_risk(model, row["variant"], row["samples"])
        if row["metric"] == "risk":
            assert (row["value"], row["lower"], row["upper"]) == (
                risk.value,
                risk.lower,
                risk.upper,
            )
            continue
        n = int(row["note"].split()[0])
        assert n == 5000
        wrong = round(row["value"] * n)
        assert row["lower"] == pytest.approx(beta.ppf(0.025, wrong, n - wrong + 1), rel=1e-9)
        assert row["upper"] == pytest.approx(beta.ppf(0.975, wrong + 1, n - wrong), rel=1e-9)
        assert abs(row["value"] - risk.value) < 5 * np.sqrt(risk.value * (1 - risk.value) / n)


def test_large_batches_are_drawn_fewer_times():
    found = rows({**CONFIG, "strengths": [0.0], "batch_sizes": [1024]})
    (row,) = [r for r in found if r["metric"] == "risk_simulated" and r["samples"] == 1024]
    assert row["note"] == "256 points"


def test_training_data_are_the_model_s_with_its_answers():
    data = structural_data(TRAINING, numpy_generator)
    assert list(data["train"]) == ["domain 1", "domain 2", "domain 3"]
    assert all(x.shape == (40, 3) and y.shape == (40,) for x, y in data["train"].values())
    x, y = data["unseen"]
    assert x.shape == (60, 3) and set(np.unique(y)) == {0, 1}
    model = structural_model("shift", 2.0, 3)
    assert list(data["answers"]) == list(ANSWERS)
    for name, p in data["answers"].items():
        np.testing.assert_array_equal(p, structural_answer(model, name, x))


def test_scenarios_and_strengths_are_compared_on_the_same_draws():
    plain = structural_data({**TRAINING, "strength": 0.0}, numpy_generator)
    moved = structural_data(TRAINING, numpy_generator)
    model = structural_model("shift", 2.0, 3)
    for name, domain in zip(plain["train"], model.domains, strict=True):
        (x, y), (other, same) = plain["train"][name], moved["train"][name]
        np.testing.assert_array_equal(y, same)
        np.testing.assert_allclose(domain.scale * x + domain.shift, other, atol=1e-12)
    again = structural_data({**TRAINING, "seed": 2}, numpy_generator)
    assert not np.array_equal(again["unseen"][0], moved["unseen"][0])
    assert not np.array_equal(moved["train"]["domain 1"][0], moved["train"]["domain 2"][0])


@pytest.mark.parametrize("quick", [True, False])
def test_the_plan_names_each_scenario_once(quick):
    plan = structural_studies(quick)
    assert [config["scenario"] for _, config, _ in plan] == list(SCENARIOS)
    for label, config, seconds in plan:
        assert config["scenario"] in label and seconds > 0
        assert set(config["strengths"]) <= set(STRENGTHS[config["scenario"]])
        assert 0.0 in config["strengths"] and config["batch_sizes"] == list(BATCH_SIZES)
        # The strongest case is where networks are compared.
        assert max(config["strengths"]) == max(STRENGTHS[config["scenario"]])
        json.dumps(config)
