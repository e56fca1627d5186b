"""Plans: which runs a section asks for, which it shares, and that pairs differ in one thing."""

import functools
import inspect
import json
from collections import Counter, defaultdict

import pytest

from empirical import ALGORITHMS, BN_POLICIES, Schedule, build_algorithm
from empirical.serving import Serving
from empirical.studies import (
    GRID,
    METHODS,
    Setting,
    analysis_plan,
    causal_plan,
    compatibility_plan,
    convergence_trainings,
    external_plan,
    generalization_plan,
    internal_plan,
    tuning_plan,
)
from empirical.studies.presets import PRESETS

CLIENTS = ("mnist", "optdigits", "mnist-m", "synth-digits")
PLANS = {
    "convergence": convergence_trainings,
    "compatibility": compatibility_plan,
    "internal": internal_plan,
    "external": external_plan,
    "analysis": analysis_plan,
    "tuning": tuning_plan,
    "generalization": generalization_plan,
    "causal": causal_plan,
}


def setting(preset="default", **other):
    return Setting(preset, "digits", CLIENTS, "0" * 64, **other)


@functools.cache
def planned(name, preset="default"):
    return tuple(PLANS[name](setting(preset)))


def key(config):
    return json.dumps(config, sort_keys=True)


def trainings(plan):
    return [study.config for study in plan if study.config["study"] == "training"]


def outside(plan):
    return [study.config for study in plan if study.config["study"] == "external"]


def without(config, *names):
    return key({name: value for name, value in config.items() if name not in names})


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", PLANS)
def test_labels_and_configs_are_each_there_once_and_can_be_run(preset, name):
    plan = planned(name, preset)
    assert len({study.label for study in plan}) == len(plan), "a label twice would drop a task"
    assert len({key(study.config) for study in plan}) == len(plan)
    assert all(study.seconds > 0 for study in plan)
    for config in trainings(plan):
        Schedule(**config["schedule"])
        build_algorithm(config["algorithm"], **config["settings"])
    for config in outside(plan):
        assert config["held_out"] == config["training"]["held_out"]
        assert [Serving(**way) for way in config["serving"]]


def test_all_nine_methods_are_there():
    assert {name for name in METHODS if name != "fedbn"} <= set(ALGORITHMS)
    assert set(GRID) == set(METHODS) - {"fedavg", "fedbn"}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    "name", ["convergence", "compatibility", "internal", "external", "tuning", "generalization"]
)
def test_the_two_columns_differ_in_the_policy_alone(preset, name):
    pairs = defaultdict(list)
    for config in trainings(planned(name, preset)):
        pairs[without(config, "bn_policy")].append(config["bn_policy"])
    assert pairs
    assert all(sorted(p) == ["aggregated", "client_specific"] for p in pairs.values())


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", ["compatibility", "external", "analysis"])
def test_every_training_that_is_served_from_is_in_the_plan_and_every_held_out_one_served(
    preset, name
):
    plan = planned(name, preset)
    sources = [key(config["training"]) for config in outside(plan)]
    assert sorted(sources) == sorted(key(c) for c in trainings(plan) if "held_out" in c)


def test_methods_of_one_seed_and_fold_share_everything_else():
    for name in ("compatibility", "internal"):
        groups = defaultdict(set)
        for config in trainings(planned(name)):
            cell = (config["schedule"]["seed"], config.get("held_out"))
            own = ("algorithm", "settings", "bn_policy", "projection")
            groups[cell].add(without(config, *own))
        assert all(len(rest) == 1 for rest in groups.values())


def test_compatibility_holds_the_last_clients_out_in_turn():
    def folds(**other):
        plan = compatibility_plan(setting(**other))
        return list(dict.fromkeys(config["held_out"] for config in trainings(plan)))

    assert folds() == ["mnist-m", "synth-digits"]
    assert folds(folds=1) == ["synth-digits"]
    assert folds(folds="all") == list(CLIENTS) == folds(preset="paper")


def test_compatibility_serves_as_table_i_says():
    for config in outside(planned("compatibility")):
        ways = [Serving(**way) for way in config["serving"]]
        assert {Serving("server"), Serving("adapted")} <= set(ways)
        assert (Serving("adapted").momentum, Serving("adapted").batch_size) == (0.9, 32)


def test_fedbn_is_fedavg_with_client_specific_bn_and_computed_once():
    plan = compatibility_plan(setting(seeds=1, folds=1))
    assert Counter(c["algorithm"] for c in trainings(plan))["fedavg"] == 2
    assert "fedbn" not in {c["algorithm"] for c in trainings(plan)}


def shared(one, other, **what):
    configs = [
        {key(c) for c in trainings(planned(name)) if what.items() <= c.items()}
        for name in (one, other)
    ]
    return configs[0] & configs[1], configs


def test_internal_has_the_runs_of_convergence_and_external_those_of_compatibility():
    both, (_, internal) = shared("convergence", "internal", algorithm="fedavg")
    assert both == internal and len(both) == 2 * 3
    both, (_, compatibility) = shared("external", "compatibility")
    assert both == compatibility
    served = [{key(c) for c in outside(planned(name))} for name in ("compatibility", "external")]
    assert served[0] < served[1]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    ("name", "study", "policies"),
    [
        ("generalization", "divergence", {"aggregated", "client_specific"}),
        ("causal", "label_shift", {"client_specific"}),
    ],
)
def test_each_training_is_followed_by_what_it_is_made_for(preset, name, study, policies):
    plan = [s.config for s in planned(name, preset) if s.config["study"] != "structural_training"]
    firsts, seconds = plan[::2], plan[1::2]
    assert len(firsts) == len(seconds) and all(c["study"] == "training" for c in firsts)
    for training, config in zip(firsts, seconds, strict=True):
        assert config["study"] == study and config["training"] == training
        assert config["held_out"] == training["held_out"] and training["algorithm"] == "fedavg"
    assert {config["bn_policy"] for config in firsts} == policies


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", ["generalization", "causal"])
def test_divergence_and_label_shift_start_from_runs_that_other_sections_have(preset, name):
    known = {key(c) for c in trainings(planned("compatibility", preset))}
    if name == "generalization" and preset != "quick":
        known = {key(c) for c in trainings(planned("external", preset))}
    found = {key(c) for c in trainings(planned(name, preset))}
    assert found and found <= known


def test_generalization_holds_every_client_out_and_causal_two():
    folds = {
        name: {c["held_out"] for c in trainings(planned(name))}
        for name in ("generalization", "causal")
    }
    assert folds == {"generalization": set(CLIENTS), "causal": {"mnist-m", "synth-digits"}}


def test_the_structural_model_is_trained_on_in_causal_alone():
    def there(name):
        return {s.config["study"] for s in planned(name)} >= {"structural_training"}

    assert [name for name in PLANS if there(name)] == ["causal"]


@pytest.mark.parametrize("name", ["generalization", "causal"])
def test_what_quick_measures_is_planned_to_fit_a_minute_on_two_cores(name):
    # Half of it at most, for the theory's own studies come on top.
    assert sum(study.seconds for study in planned(name, "quick")) / 2 < 25


def test_the_analysis_starts_from_runs_of_the_other_sections():
    plan = trainings(planned("analysis"))
    usual = [c for c in plan if not {"held_out", "fraction", "per_domain"} & set(c)]
    internal = {key(c) for c in trainings(planned("internal"))}
    assert sum(key(c) in internal for c in usual) == 2 * 3
    left_out = [
        c for c in plan if "held_out" in c and c["bn_policy"] in ("aggregated", "client_specific")
    ]
    compatibility = {key(c) for c in trainings(planned("compatibility"))}
    assert left_out and all(key(c) in compatibility for c in left_out)


def test_the_analysis_varies_what_the_paper_leaves_open():
    plan = planned("analysis")
    epochs = defaultdict(set)
    for config in trainings(plan):
        schedule = config["schedule"]
        if config["algorithm"] == "fedavg" and "held_out" not in config:
            epochs[schedule["rounds"] * schedule["local_epochs"]].add(schedule["local_epochs"])
    assert epochs[32] == {1, 4, 8, 16}
    assert {c["fraction"] for c in trainings(plan) if "fraction" in c} == {0.5, 0.2, 0.1}
    assert {c["per_domain"] for c in trainings(plan) if "per_domain" in c} == {2, 4, 8}
    held = [c for c in trainings(plan) if "held_out" in c]
    assert {c["bn_policy"] for c in held} == set(BN_POLICIES)
    for config in outside(plan):
        ways = [Serving(**way) for way in config["serving"]]
        assert {"server", "adapted", "identity"} <= {way.variant for way in ways}
        swept = {(w.momentum, w.batch_size) for w in ways if w.variant == "adapted"}
        assert (len(swept) > 10) == (config["training"]["bn_policy"] == "client_specific")


def steps(preset):
    """Configs of FedAvg, whole federation and data, one local epoch, the analysis' rounds."""
    rounds = PRESETS[preset].sizes["analysis"].rounds
    extras = {"held_out", "fraction", "per_domain"}
    for config in trainings(planned("analysis", preset)):
        schedule = config["schedule"]
        once = (schedule["rounds"], schedule["local_epochs"]) == (rounds, 1)
        if config["algorithm"] == "fedavg" and once and not extras & set(config):
            yield config


@pytest.mark.parametrize(
    ("preset", "lrs"),
    [("quick", (0.01, 0.1)), ("default", (0.01, 0.03, 0.1)), ("paper", (0.01, 0.03, 0.1))],
)
def test_the_analysis_varies_the_step_of_both_policies_with_every_seed(preset, lrs):
    found = [(c["bn_policy"], c["schedule"]["seed"], c["schedule"]["lr"]) for c in steps(preset)]
    seeds = range(PRESETS[preset].sizes["analysis"].seeds)
    both = ("aggregated", "client_specific")
    assert sorted(found) == sorted((p, seed, lr) for p in both for seed in seeds for lr in lrs)


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_the_usual_step_is_that_of_internal_and_the_others_differ_in_the_step_alone(preset):
    internal = {key(c) for c in trainings(planned("internal", preset))}
    shared = {key(c) for c in trainings(planned("analysis", preset)) if "fraction" in c}
    for config in steps(preset):
        if config["schedule"]["lr"] == 0.01:
            assert key(config) in internal
        else:  # schedule and seed are those of the runs on less data
            schedule = {**config["schedule"], "lr": 0.01}
            assert key({**config, "schedule": schedule, "fraction": 0.5}) in shared


@pytest.mark.parametrize("preset", PRESETS)
def test_no_other_run_has_another_step(preset):
    other = {key(c) for c in steps(preset)}
    for name in PLANS:
        for config in trainings(planned(name, preset)):
            assert config["schedule"]["lr"] == 0.01 or (name == "analysis" and key(config) in other)
        for config in outside(planned(name, preset)):
            assert config["training"]["schedule"]["lr"] == 0.01


def test_the_quick_analysis_is_planned_to_fit_a_minute_on_two_cores():
    # The rest of it is for starting and drawing.
    assert sum(study.seconds for study in planned("analysis", "quick")) / 2 < 50


def test_more_seeds_or_folds_keep_the_runs_of_fewer():
    for name in ("compatibility", "internal", "external", "analysis"):
        fewer = {key(s.config) for s in PLANS[name](setting(seeds=1))}
        assert fewer < {key(s.config) for s in PLANS[name](setting(seeds=2))}
    fewer = {key(s.config) for s in compatibility_plan(setting(folds=1))}
    assert fewer < {key(s.config) for s in compatibility_plan(setting(folds="all"))}


def test_moon_alone_has_a_projection_head():
    for config in trainings(planned("internal")):
        assert config.get("projection") == (256 if config["algorithm"] == "moon" else None)


def test_settings_name_every_hyper_parameter():
    found = {
        config["algorithm"]: set(config["settings"])
        for config in trainings(compatibility_plan(setting(seeds=1, folds=1)))
    }
    assert found == {name: set(inspect.signature(ALGORITHMS[name]).parameters) for name in found}
    # Not read off the factories: what is not tuned is named, too.
    assert found == {
        "fedavg": set(),
        "fedprox": {"mu"},
        "scaffold": {"server_lr", "option"},
        "fedadam": {"server_lr", "beta1", "beta2", "tau"},
        "fednova": {"momentum", "mu"},
        "moon": {"mu", "temperature"},
        "feddc": {"alpha"},
        "perfedavg": {"alpha", "beta", "order", "delta"},
    }


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"preset": "quik"}, "did you mean 'quick'"),
        ({"seeds": 0}, "at least 1, got 0"),
        ({"folds": 0}, "give 1 … 4 or 'all'"),
        ({"folds": 5}, "has 4, not 5"),
        ({"folds": "some"}, "not 'some'"),
    ],
)
def test_what_cannot_be_planned_is_refused(other, words):
    with pytest.raises(ValueError, match=words):
        setting(**other)


@pytest.mark.parametrize(
    "name", ["compatibility", "external", "analysis", "generalization", "causal"]
)
def test_two_clients_are_too_few_to_hold_one_out(name):
    few = Setting("default", "pair", ("a", "b"), "0" * 64)
    with pytest.raises(ValueError, match="needs at least 3"):
        PLANS[name](few)
    assert internal_plan(few)
