"""Exit codes: proven statements, experiments, diverged trainings, tasks that fail."""

import dataclasses
import json
import math
from types import SimpleNamespace

import pytest

import paper_repro
from figures.records import RunStore, config_hash

REDRAW = ("--section", "convergence", "--redraw")
HOPELESS = 1e30
"""A step size at which the first step already overflows float32."""


def manifests(folder):
    paths = sorted(folder.glob("runs/*/manifest.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def rows_of(folder, manifest):
    text = (folder / "runs" / manifest["hash"] / "records.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def doctor(folder, study, change):
    """Write every run of a study anew, its rows changed, as if it had been computed so."""
    store, doctored = RunStore(folder / "runs"), 0
    for manifest in manifests(folder):
        config = manifest["config"]
        if config["study"] == study:
            rows = [{**row, **change(row, config)} for row in rows_of(folder, manifest)]
            with (
                pytest.warns(UserWarning, match="differs from the former"),
                store.writing(config, fresh=True) as run,
            ):
                run.add(rows)
            doctored += 1
    assert doctored


def verdicts(folder):
    text = (folder / "convergence" / "claims.json").read_text(encoding="utf-8")
    return {claim["id"]: claim["verdict"] for claim in json.loads(text)}


def test_a_violated_corollary_is_a_bug_and_exits_1(cli, results, undrawn):
    def violated(row, config):
        return {"note": "violated", "value": 0.0} if row["metric"] == "certified" else {}

    doctor(results, "corollary", violated)
    outcome = cli(*REDRAW, "--out", results)
    assert outcome.code == 1 and outcome.err == ""
    assert verdicts(results)["corollary-iii.6.draws.digits"] == "violated"
    assert "violated" in outcome.out


def test_a_violated_limit_of_the_kernel_is_a_bug_and_exits_1(cli, results, undrawn):
    def outside(row, config):
        hit = row["metric"] == "entry_gap" and row["variant"] == "limit"
        return {"value": 1.5} if hit else {}

    doctor(results, "dynamics", outside)
    assert cli(*REDRAW, "--out", results).code == 1
    assert verdicts(results)["eq-10.not-the-limit"] == "violated"


def test_an_open_verdict_exits_0(cli, results, undrawn):
    def undecided(row, config):
        return {"note": "consistent", "value": 0.0} if row["metric"] == "certified" else {}

    doctor(results, "corollary", undecided)
    assert cli(*REDRAW, "--out", results).code == 0
    assert verdicts(results)["corollary-iii.6.draws.digits"] == "consistent"


def test_an_experiment_that_contradicts_the_paper_is_a_finding_and_exits_0(cli, results, undrawn):
    def worse(row, config):
        """Make client-specific BN plainly worse, a little differently for each seed."""
        if row["metric"] not in ("loss", "accuracy"):
            return {}
        behind = config["bn_policy"] == "client_specific"
        noise = 1e-4 * config["schedule"]["seed"] * behind
        better = {"loss": 1.0, "accuracy": 0.9}[row["metric"]]
        worse = {"loss": 2.0, "accuracy": 0.1}[row["metric"]]
        return {"value": (worse if behind else better) + noise}

    doctor(results, "training", worse)
    outcome = cli(*REDRAW, "--out", results)
    assert outcome.code == 0 and "contradicted" in outcome.out
    found = {name: word for name, word in verdicts(results).items() if name.startswith("cnn.")}
    assert set(found.values()) == {"contradicted"} and len(found) == 4


@pytest.mark.parametrize("hold", [True, False])
def test_the_exit_code_is_the_product_s_word(cli, results, monkeypatch, hold):
    product = SimpleNamespace(claims=[], figures=[], report=results, proven_hold=hold, written=[])
    section = paper_repro.SECTIONS["convergence"]
    section = dataclasses.replace(section, present=lambda *_: product)
    monkeypatch.setitem(paper_repro.SECTIONS, "convergence", section)
    assert cli(*REDRAW, "--out", results).code == (0 if hold else 1)


def hopeless(monkeypatch, *runs):
    """Give the trainings of these (policy, seed) a step size at which they diverge."""
    section = paper_repro.SECTIONS["convergence"]

    def plan(options, fingerprint):
        for label, config, seconds in section.plan(options, fingerprint):
            if config["study"] == "training":
                schedule = config["schedule"]
                if (config["bn_policy"], schedule["seed"]) in runs:
                    config = {**config, "schedule": {**schedule, "lr": HOPELESS}}
            yield label, config, seconds

    changed = dataclasses.replace(section, plan=plan)
    monkeypatch.setitem(paper_repro.SECTIONS, "convergence", changed)

    # In this process: what matters here is what the section makes of it.
    def compute(tasks, workers):
        for task in tasks:
            paper_repro.execute(task, lambda _: None)

    monkeypatch.setattr(paper_repro, "compute", compute)


def lost(folder):
    return [m for m in manifests(folder) if m["config"].get("schedule", {}).get("lr") == HOPELESS]


def test_a_diverged_training_is_a_finished_run_without_nan(results):
    (config,) = (
        m["config"]
        for m in manifests(results)
        if m["config"].get("bn_policy") == "aggregated" and m["config"]["schedule"]["seed"] == 0
    )
    config["schedule"]["lr"] = HOPELESS
    told = []
    task = paper_repro.Task("lost", config, 1.0, str(results / "runs"), None, False)
    assert paper_repro.execute(task, told.append) == config_hash(config)
    (manifest,) = lost(results)
    assert manifest["status"] == "diverged" and manifest["diverged_in_round"] == 1
    rows = rows_of(results, manifest)
    assert {row["round"] for row in rows} == {0}
    assert all(math.isfinite(row["value"]) for row in rows)
    assert "checkpoint.safetensors" in manifest["files"] and set(told) == {0.0}


@pytest.mark.parametrize(
    ("seeds", "runs"),
    [
        (2, [("aggregated", 1)]),
        (1, [("aggregated", 0), ("client_specific", 0)]),
    ],
    ids=["one of four", "all"],
)
def test_a_diverged_training_is_said_and_left_out(cli, quick, results, monkeypatch, seeds, runs):
    hopeless(monkeypatch, *runs)
    outcome = cli(*quick, "--seeds", seeds, "--out", results)
    assert outcome.code == 0
    assert len(lost(results)) == len(runs)
    page = (results / "convergence" / "report.html").read_text(encoding="utf-8")
    for policy, seed in runs:
        assert f"diverged and is left out: {policy.replace('_', '-')} BN, seed {seed}" in page
    compared = {name: v for name, v in verdicts(results).items() if name.startswith("cnn.")}
    # A pair is left only where both policies of a seed are there; one pair decides nothing.
    assert set(compared.values()) == ({"inconclusive"} if seeds == 2 else set())
    # Finished is finished: nothing is computed again.
    monkeypatch.setattr(paper_repro, "compute", None)
    monkeypatch.setattr("figures.convergence.drawings", lambda _: {})
    assert cli(*quick, "--seeds", seeds, "--out", results).code == 0


def test_a_failed_task_is_one_sentence_and_its_traceback_a_file(
    cli, quick, tiny, tmp_path, monkeypatch
):
    from theory.studies import Study

    broken = [Study("broken", {"study": "nonsense", "data": "gaussian", "seed": 0}, 1.0)]
    monkeypatch.setattr("theory.studies.convergence_plan", lambda *_: broken)
    outcome = cli(*quick, "--theory-only", "--out", tmp_path)
    assert outcome.code == 3
    assert "'broken' failed: KeyError" in outcome.sentence
    trace = tmp_path / "traceback.txt"
    assert str(trace) in outcome.sentence
    assert "Traceback" in trace.read_text(encoding="utf-8")
    assert not list(tmp_path.glob("runs/*/*"))
