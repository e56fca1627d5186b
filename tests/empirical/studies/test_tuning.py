"""Choosing hyper-parameters: the grid, the criterion, ties, divergence, the committed files."""

import inspect
import json
from importlib import resources

import pytest

import empirical.tuned
from empirical import ALGORITHMS, FEDERATIONS, MODELS, build_algorithm
from empirical.studies import (
    GRID,
    Candidate,
    Setting,
    at_edge,
    choose,
    compatibility_plan,
    internal_plan,
    origin,
    tuning_plan,
    tuning_record,
    untuned,
    validation_accuracy,
)
from empirical.studies.tuning import AUTHORS, CHOSEN, CRITERION, SEED
from empirical.tuned import choices, file_name
from figures.records import config_hash

CLIENTS = ("a", "b", "c")
SETTING = Setting("default", "digits", CLIENTS, "0" * 64)


@pytest.mark.parametrize("method", GRID)
def test_the_authors_default_is_in_the_grid_and_is_the_factory_s(method):
    grid = GRID[method]
    assert grid.authors in grid.candidates()
    parameters = inspect.signature(ALGORITHMS[method]).parameters
    assert {name: parameters[name].default for name in grid.values} == grid.authors
    for candidate in grid.candidates():
        build_algorithm(method, **candidate)
    assert all(list(values) == sorted(set(values)) for values in grid.values.values())


def test_every_candidate_is_tried_with_both_policies_on_validation_at_a_seed_of_its_own():
    configs = [study.config for study in tuning_plan(SETTING)]
    assert len(configs) == 2 * sum(len(GRID[method].candidates()) for method in GRID)
    for config in configs:
        assert config["validation"] is True and "held_out" not in config
        assert config["schedule"]["seed"] == SEED
        assert config["schedule"]["rounds"] == 20 == config["schedule"]["measure_every"]
    reported = {s.config["schedule"]["seed"] for s in internal_plan(SETTING)}
    assert SEED not in reported


def row(client, round_, value, metric="accuracy", split="test"):
    return {"metric": metric, "split": split, "client": client, "round": round_, "value": value}


def test_the_criterion_is_the_clients_mean_after_the_last_round():
    rows = [row("a", 0, 0.1), row("a", 20, 0.5), row("b", 20, 0.7), row("server", 20, 0.9)]
    rows += [row("a", 20, 3.0, "loss"), row("a", 20, 0.99, split="train")]
    assert validation_accuracy(rows) == pytest.approx(0.6)
    with pytest.raises(ValueError, match="no accuracy"):
        validation_accuracy(rows[3:])


def candidates(method, *accuracies):
    pairs = zip(GRID[method].candidates(), accuracies, strict=True)
    return [
        Candidate(s, dict(zip(("aggregated", "client_specific"), a, strict=True))) for s, a in pairs
    ]


def test_the_best_mean_over_both_policies_is_chosen():
    # 0.001: 0.5, 0.01: 0.45, 0.1: 0.55, 1: 0.5
    tried = candidates("fedprox", (0.9, 0.1), (0.5, 0.4), (0.4, 0.7), (0.5, 0.5))
    assert choose("fedprox", tried) == {"mu": 0.1}


def test_ties_go_to_the_authors_default_and_else_to_the_smaller():
    assert choose("fedprox", candidates("fedprox", *[(0.5, 0.5)] * 4)) == {"mu": 0.01}
    tried = candidates("fedprox", (0.2, 0.2), (0.1, 0.1), (0.2, 0.2), (0.2, 0.2))
    assert choose("fedprox", tried) == {"mu": 0.001}


def test_a_tie_in_images_is_a_tie_however_the_means_round():
    # (495 + 516)/596 and (493 + 518)/596 images are right; their means differ in the last bit.
    default = (0.8305369127516777, 0.8657718120805369)
    other = (0.8271812080536912, 0.8691275167785235)
    assert sum(default) / 2 < sum(other) / 2
    assert choose("fedprox", candidates("fedprox", (0.8, 0.8), default, (0.8, 0.8), other)) == {
        "mu": 0.01
    }


def test_what_diverged_is_never_chosen():
    tried = candidates("fedprox", (0.1, 0.1), (0.2, 0.2), (0.99, None), (None, None))
    assert [c.score for c in tried] == [0.1, 0.2, None, None]
    assert choose("fedprox", tried) == {"mu": 0.01}
    lost = candidates("fedprox", *[(0.9, None)] * 4)
    assert choose("fedprox", lost) == GRID["fedprox"].authors


def record(best):
    configs = [study.config for study in tuning_plan(SETTING)]
    found = []
    for config in configs:
        tried = {name: config["settings"][name] for name in GRID[config["algorithm"]].values}
        found.append(0.9 if tried == best[config["algorithm"]] else 0.5)
    return tuning_record(configs, found)


def test_the_record_says_what_was_tried_found_and_chosen():
    best = {method: grid.candidates()[-1] for method, grid in GRID.items()}
    written = json.loads(json.dumps(record(best)))
    assert written["choice"] == best
    assert (written["federation"], written["data_sha256"]) == ("digits", "0" * 64)
    for method, grid in GRID.items():
        scores = written["scores"][method]
        assert [score["settings"] for score in scores] == grid.candidates()
        assert [score["score"] for score in scores[:-1]] == [0.5] * (len(scores) - 1)
        assert scores[-1]["accuracy"] == {"aggregated": 0.9, "client_specific": 0.9}
        assert written["grid"][method] == {n: list(v) for n, v in grid.values.items()}


@pytest.fixture
def committed(monkeypatch):
    """Pretend that a choice was committed for the federation of the tests."""
    best = {method: grid.candidates()[-1] for method, grid in GRID.items()}
    written = record(best)
    monkeypatch.setattr(
        empirical.tuned,
        "_committed",
        lambda name: {"digits.compact_cnn.json": written}.get(name, {}),
    )
    return best


def settings(setting):
    return {
        s.config["algorithm"]: {
            n: s.config["settings"][n] for n in GRID[s.config["algorithm"]].values
        }
        for s in internal_plan(setting)
        if s.config["algorithm"] in GRID
    }


def test_plans_take_the_choice_for_the_same_data_and_net_alone(committed):
    authors = {method: grid.authors for method, grid in GRID.items()}
    assert settings(SETTING) == committed != authors
    assert settings(Setting("default", "digits", CLIENTS, "1" * 64)) == authors
    assert settings(Setting("default", "other", CLIENTS, "0" * 64)) == authors
    assert settings(Setting("paper", "digits", CLIENTS, "0" * 64)) == authors


def test_both_policies_get_the_same_choice(committed):
    found = {}
    for study in internal_plan(SETTING):
        own = found.setdefault(study.config["algorithm"], study.config["settings"])
        assert own == study.config["settings"]


def test_tuning_itself_tries_the_grid_whatever_was_committed(committed):
    mine = [s.config for s in tuning_plan(SETTING)]
    tried = [c["settings"]["mu"] for c in mine if c["algorithm"] == "fedprox"]
    assert sorted(set(tried)) == list(GRID["fedprox"].values["mu"])


def test_a_run_says_where_its_settings_come_from(committed):
    found = {s.config["algorithm"]: origin(s.config) for s in internal_plan(SETTING)}
    assert found.pop("fedavg") == "nothing to choose"
    assert set(found.values()) == {CHOSEN}
    other = internal_plan(Setting("default", "other", CLIENTS, "0" * 64))
    assert {origin(s.config) for s in other if s.config["algorithm"] != "fedavg"} == {AUTHORS}
    given = {**other[-1].config, "algorithm": "fedprox", "settings": {"mu": 7.0}}
    assert origin(given) == "given"


def test_choices_of_two_nets_for_one_federation_stay_apart(committed, monkeypatch):
    found = {"digits.compact_cnn.json": record(committed)}
    found["digits.digits_cnn.json"] = record({m: g.candidates()[0] for m, g in GRID.items()})
    found["digits.digits_cnn.json"]["model"] = "digits_cnn"
    monkeypatch.setattr(empirical.tuned, "_committed", lambda name: found.get(name, {}))
    assert settings(SETTING) == committed
    first = {method: grid.candidates()[0] for method, grid in GRID.items()}
    assert settings(Setting("paper", "digits", CLIENTS, "0" * 64)) == first


def test_tuning_is_done_with_the_net_of_the_preset():
    for preset, net in (("default", "compact_cnn"), ("paper", "digits_cnn")):
        configs = [s.config for s in tuning_plan(Setting(preset, "digits", CLIENTS, "0" * 64))]
        written = tuning_record(configs, [0.5] * len(configs))
        assert {c["model"] for c in configs} == {net} == {written["model"]}
        assert file_name("digits", written["model"]) == f"digits.{net}.json"


def test_the_methods_without_a_choice_are_known_before_they_train(committed):
    def found(*which):
        return untuned(s.config for s in internal_plan(Setting(*which, CLIENTS, "0" * 64)))

    assert found("default", "digits") == []
    assert found("paper", "digits") == found("default", "other") == list(GRID)
    assert untuned(s.config for s in tuning_plan(Setting("paper", "digits", CLIENTS, "x"))) == []
    assert untuned([{"study": "regime", "data": "gaussian"}]) == []


def test_a_run_says_which_of_its_chosen_settings_lie_at_an_edge(committed, monkeypatch):
    def edges(best):
        written = record(best)
        monkeypatch.setattr(empirical.tuned, "_committed", lambda _: written)
        return {s.config["algorithm"]: at_edge(s.config) for s in internal_plan(SETTING)}

    assert edges(committed) == {"fedavg": [], **{m: list(g.values) for m, g in GRID.items()}}
    inner = committed | {"fedprox": {"mu": 0.1}, "fedadam": {"server_lr": 0.01, "tau": 0.01}}
    found = edges(inner | {"moon": {"mu": 0.1}})
    assert (found["fedprox"], found["fedadam"], found["moon"]) == ([], ["tau"], ["mu"])
    other = internal_plan(Setting("default", "other", CLIENTS, "0" * 64))
    monkeypatch.setattr(empirical.tuned, "_committed", lambda _: {})
    assert all(at_edge(study.config) == [] for study in other)


def committed_records():
    files = [f for f in resources.files(empirical.tuned).iterdir() if f.name.endswith(".json")]
    assert files, "no committed choice: plans would fall back to the authors' defaults"
    return {file.name: json.loads(file.read_text(encoding="utf-8")) for file in files}


def test_what_is_committed_is_what_its_scores_choose_from_the_grid_of_today():
    for name, written in committed_records().items():
        assert name == file_name(written["federation"], written["model"])
        assert written["federation"] in FEDERATIONS and written["model"] in MODELS
        assert len(written["data_sha256"]) == 64 and written["criterion"] == CRITERION
        assert written["choice"].keys() == written["scores"].keys() == set(GRID)
        assert written["runs"]["schedule"]["seed"] == SEED and written["runs"]["validation"] is True
        for method, grid in GRID.items():
            rows = written["scores"][method]
            tried = [Candidate(row["settings"], row["accuracy"]) for row in rows]
            assert [c.settings for c in tried] == grid.candidates()
            assert all(c.accuracy.keys() == set(written["policies"]) for c in tried)
            assert [c.score for c in tried] == pytest.approx([row["score"] for row in rows])
            assert written["choice"][method] == choose(method, tried)
            assert written["authors"][method] == grid.authors
            assert written["grid"][method] == {n: list(v) for n, v in grid.values.items()}


DIGITS = "ad5be7917f5c5ebab96a384b870160352c1ac6dd6b62e8a15f2a9d83fb85cb23"
TRAINED = {
    "fedavg": {},
    "fedprox": {"mu": 0.01},
    "scaffold": {"server_lr": 1.5, "option": 2},
    "fedadam": {"server_lr": 0.1, "beta1": 0.9, "beta2": 0.99, "tau": 0.001},
    "fednova": {"momentum": 0.9, "mu": 0.0},
    "moon": {"mu": 0.1, "temperature": 0.5},
    "feddc": {"alpha": 0.1},
    "perfedavg": {"alpha": 0.03, "beta": 0.03, "order": 1, "delta": 0.001},
}
"""What the methods train with on the digits, compact_cnn: a change makes every run a new one."""


@pytest.mark.parametrize("preset", ["quick", "default"])
def test_what_the_methods_train_with_on_the_digits_stays(preset):
    setting = Setting(preset, "digits", FEDERATIONS["digits"].clients, DIGITS)
    for study in compatibility_plan(setting):
        config = study.config.get("training", study.config)
        assert config["settings"] == TRAINED[config["algorithm"]]
    assert choices("digits", DIGITS, "digits_cnn") == {}


def test_the_hash_of_a_run_stays():
    setting = Setting("default", "digits", FEDERATIONS["digits"].clients, DIGITS)
    moon = setting.training("moon", "aggregated", setting.schedule(setting.size("internal"), 0))
    # As version 0.2.0 named it when the choices were still kept by federation alone.
    assert config_hash({**moon, "version": "0.2.0"}) == "ce9ce4e5ced6dbcf"
