"""Networks on the structural model: pixels, the served answers, the rows, the plan."""

import json
from collections import Counter

import numpy as np
import pytest
import torch

from empirical.algorithms import build_algorithm
from empirical.bn_policy import BN_POLICIES
from empirical.data.client import Client, Split
from empirical.federate import federate
from empirical.schedule import Schedule
from empirical.seeds import numpy_generator
from empirical.serving import Serving, serve_external
from empirical.studies import Setting, structural_study, structural_trainings
from empirical.studies.structural import (
    STRENGTHS,
    as_pixels,
    pixel_net,
    structural_training,
)
from theory.studies import structural_data
from theory.studies.structural import STRENGTHS as THEORY_STRENGTHS

SMALL = {"samples": 60, "outside": 90, "rounds": 2, "batch_sizes": [2, 8], "clients": 3}


def config(policy, scenario="shift", strength=2.0, **other):
    return {**structural_training(scenario, strength, policy, 0), **SMALL, **other}


def studied(chosen, data=None):
    rows, told = [], []
    data = structural_data(chosen, numpy_generator) if data is None else data
    state = structural_study(chosen, data, rows.extend, told.append)
    return state, rows, told


def test_points_become_pixels_within_half_a_level():
    x = np.random.default_rng(0).uniform(-16, 16, (500, 3))
    pixels = as_pixels(x)
    assert pixels.shape == (500, 3, 1, 1) and pixels.dtype == torch.uint8
    seen = Split(pixels, torch.zeros(500, dtype=torch.int64), 2).inputs()[:, :, 0, 0].numpy()
    error = 16 * seen.astype(np.float64) - x
    assert np.abs(error).max() <= 16 / 255 + 1e-5  # float32 of numbers up to 16
    assert error.std() == pytest.approx(32 / 255 / np.sqrt(12), rel=0.05)
    ends = as_pixels(np.array([[-16.0, 16.0, 99.0], [-1e300, 0.0, -99.0]]))
    assert ends[:, :, 0, 0].tolist() == [[0, 255, 255], [0, 128, 0]]


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((2, 2)),
        np.zeros((0, 3)),
        np.zeros(3),
        np.full((1, 3), np.nan),
        np.zeros((1, 3), dtype=np.float32),
        [[0.0, 0.0, 0.0]],
    ],
    ids=["features", "empty", "one", "nan", "float32", "list"],
)
def test_what_is_no_points_is_refused(x):
    with pytest.raises(ValueError, match="points must be"):
        as_pixels(x)


@pytest.mark.parametrize("policy", ["aggregated", "client_specific"])
def test_rows_hold_the_risk_and_the_distance_to_each_answer(policy):
    state, rows, told = studied(config(policy))
    assert state.status == "complete" and told == sorted(told) and told[-1] == 1.0
    counts = Counter((row["metric"], row["samples"]) for row in rows)
    if policy == "aggregated":
        assert counts == {("risk", None): 1, ("distance", None): 5}
    else:
        assert counts == {
            (f"{prefix}{metric}", n): k
            for prefix in ("", "batch_")
            for metric, k in (("risk", 1), ("distance", 5))
            for n in (2, 8)
        }
    answers = ["observational", "backdoor", "do_f", "do_s", "bayes"]
    for row in rows:
        assert row["variant"] == policy and row["split"] == "shift" and row["parameter"] == 2.0
        assert 0 <= row["value"] <= 1 and ("note" in row) == ("distance" in row["metric"])
    assert [row["note"] for row in rows if row["metric"] == "distance"][:5] == answers


@pytest.mark.parametrize("policy", ["aggregated", "client_specific"])
def test_risks_are_those_of_the_pipeline_that_serves_real_images(policy):
    chosen = config(policy)
    data = structural_data(chosen, numpy_generator)
    _, rows, _ = studied(chosen, data)

    def client(name, x, y):
        split = Split(as_pixels(x), torch.from_numpy(y), 2)
        return Client(name, split, split)

    members = [client(name, *given) for name, given in data["train"].items()]
    schedule = Schedule(rounds=2, batch_size=32, lr=chosen["lr"], seed=0)
    net = pixel_net(16, 0)
    run = federate(build_algorithm("fedavg"), BN_POLICIES[policy], net, members, schedule)
    for _ in run:
        pass
    outside = client("unseen", *data["unseen"])
    ways = {("risk", None): Serving("server")}
    if policy == "client_specific":
        ways = {("risk", n): Serving("adapted", 0.9, n) for n in (2, 8)}
        ways |= {("batch_risk", n): Serving("batch", 0.0, n) for n in (2, 8)}
    for (metric, n), serving in ways.items():
        served = serve_external(net, run.state, outside, serving, 0)
        (row,) = [r for r in rows if r["metric"] == metric and r["samples"] == n]
        assert row["value"] == pytest.approx(1 - served.accuracy, abs=1e-12)


def test_an_answer_that_the_network_gives_itself_is_at_distance_zero():
    chosen = config("aggregated")
    data = structural_data(chosen, numpy_generator)
    state, _, _ = studied(chosen, data)
    net = pixel_net(16, 0)
    net.load_state_dict({**net.state_dict(), **state.server})
    x, y = data["unseen"]
    with torch.no_grad():
        inputs = Split(as_pixels(x), torch.from_numpy(y), 2).inputs()
        own = net.eval()(inputs).double().softmax(1)[:, 1].numpy()
    _, rows, _ = studied(chosen, {**data, "answers": {"own": own, "opposite": 1 - own}})
    found = {row["note"]: row["value"] for row in rows if row["metric"] == "distance"}
    assert found["own"] < 1e-6  # float32, in another order of the points
    assert found["opposite"] == pytest.approx(np.abs(2 * own - 1).mean(), abs=1e-6)


def test_a_training_that_diverges_leaves_no_rows():
    state, rows, _ = studied(config("aggregated", lr=1e30))
    assert state.status == "diverged" and rows == []


def test_wrong_labels_and_policies_are_refused():
    chosen = config("aggregated")
    data = structural_data(chosen, numpy_generator)
    x, y = data["unseen"]
    for labels in (y.astype(float), y.tolist()):
        with pytest.raises(ValueError, match="labels of 'unseen' must be an array of integers"):
            studied(chosen, {**data, "unseen": (x, labels)})
    with pytest.raises(ValueError, match="outside 0 … 1"):
        studied(chosen, {**data, "unseen": (x, y + 1)})
    with pytest.raises(ValueError, match="did you mean 'aggregated'"):
        studied({**chosen, "bn_policy": "aggregate"}, data)


@pytest.mark.parametrize("preset", ["quick", "default", "paper"])
def test_the_plan_pairs_the_policies_on_the_same_draws(preset):
    plan = structural_trainings(Setting(preset, "digits", ("a", "b", "c"), "0" * 64))
    keys = [json.dumps(study.config, sort_keys=True) for study in plan]
    assert len(set(keys)) == len(keys) and len({study.label for study in plan}) == len(plan)
    assert all(study.seconds > 0 for study in plan)
    pairs = Counter((s.config["scenario"], s.config["strength"], s.config["seed"]) for s in plan)
    assert set(pairs.values()) == {2}
    if preset == "default":  # three minutes on one core, by the estimate
        assert sum(study.seconds for study in plan) < 180
    fewer = Setting(preset, "digits", ("a", "b", "c"), "0" * 64, seeds=1)
    assert {s.config["seed"] for s in structural_trainings(fewer)} == {0}


def test_strengths_trained_at_are_strengths_whose_risks_are_computed():
    assert STRENGTHS.keys() == THEORY_STRENGTHS.keys()
    for scenario, strengths in STRENGTHS.items():
        assert set(strengths) <= set(THEORY_STRENGTHS[scenario])


def outcome(scenario, strength):
    """Answers at n_t = 32, mean over two seeds: policy -> {"risk": …, answer: distance}."""
    found = {}
    for policy, n in (("aggregated", None), ("client_specific", 32)):
        each = []
        for seed in (0, 1):
            chosen = structural_training(scenario, strength, policy, seed)
            _, rows, _ = studied({**chosen, "batch_sizes": [32]})
            own = [r for r in rows if r["samples"] == n and r["metric"] in ("risk", "distance")]
            each.append({r.get("note", "risk"): r["value"] for r in own})
        found[policy] = {name: np.mean([one[name] for one in each]) for name in each[0]}
    return found


@pytest.mark.slow
def test_under_shift_client_specific_bn_gives_the_interventional_answer():
    found = outcome("shift", 4.0)
    assert found["client_specific"]["do_f"] < 0.04 < 0.15 < found["client_specific"]["backdoor"]
    assert found["client_specific"]["risk"] < 0.1 and found["aggregated"]["risk"] > 0.4
    assert found["aggregated"]["backdoor"] < 0.15 < 0.4 < found["aggregated"]["do_f"]


@pytest.mark.slow
def test_under_label_shift_it_gives_do_s_instead_at_a_price():
    found = outcome("label shift", 0.45)
    assert found["client_specific"]["do_s"] < 0.08 < 0.25 < found["client_specific"]["do_f"]
    assert found["client_specific"]["risk"] > 0.35 and found["aggregated"]["risk"] < 0.1


@pytest.mark.slow
def test_confounded_within_domains_neither_policy_removes_the_nuisance():
    found = outcome("confounded", 2.0)
    for policy in found.values():
        assert policy["do_f"] > 0.45 and policy["observational"] < 0.12 and policy["risk"] > 0.5


@pytest.mark.slow
def test_features_scaled_apart_are_undone_by_half():
    found = outcome("feature scales", 0.8)
    assert 0.03 < found["client_specific"]["do_f"] < 0.08 < found["aggregated"]["do_f"]
