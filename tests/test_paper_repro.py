"""The section end to end, with real worker processes: what it leaves, and what it repeats."""

import json
import re
import shutil
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import figures.convergence
import paper_repro
from figures._environment import environment

RUNS = 17  # of the tiny plan: thirteen studies of the theory and four trainings


def bytes_of(folder, *patterns):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for pattern in patterns
        for path in sorted(folder.glob(pattern))
        if path.is_file()
    }


def records(folder):
    return bytes_of(folder, "runs/*/records.jsonl")


def shown(folder):
    # The report tells the time at which it was written.
    return bytes_of(folder, *(f"convergence/{n}" for n in ("claims.json", "figures/*", "tables/*")))


def claims(folder):
    return json.loads((folder / "convergence" / "claims.json").read_text(encoding="utf-8"))


def run_of(folder, study, **values):
    """Find the folder of the one run of these settings."""
    found = []
    for path in folder.glob("runs/*/manifest.json"):
        config = json.loads(path.read_text(encoding="utf-8"))["config"]
        if config["study"] == study and values.items() <= config.items():
            found.append(path.parent)
    assert len(found) == 1
    return found[0]


def changes(folder):
    return {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/*.json*")}


@pytest.fixture
def nothing_is_computed(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("something was computed")

    monkeypatch.setattr(paper_repro, "compute", refuse)
    monkeypatch.setattr(paper_repro, "federation", refuse)
    return refuse


def test_it_ends_with_the_verdicts_and_the_paths_of_the_figures(finished):
    folder, outcome = finished
    assert outcome.code == 0 and outcome.err == ""
    assert f"{RUNS} runs" in outcome.out and "1 process on cpu" in " ".join(outcome.out.split())
    for claim in claims(folder):
        assert claim["verdict"] in outcome.out
    last = [Path(line) for line in outcome.out.splitlines() if line.startswith(str(folder))]
    assert outcome.out.rstrip().endswith(str(last[-1]))
    assert last[-1].name == "report.html" and all(path.stat().st_size > 0 for path in last)
    assert len([path for path in last if path.suffix == ".pdf"]) >= 4
    for path in last[:-1]:
        assert path.with_suffix(".png").stat().st_size > 0


def test_the_required_claims_are_there(finished):
    found = {claim["id"]: claim for claim in claims(finished[0])}
    assert found["corollary-iii.6.draws.digits"]["verdict"] == "certified"
    assert found["theorem-iii.4.decay"]["verdict"] == "certified"
    assert found["theorem-iii.4.eigenvalue"]["verdict"] == "certified"
    assert found["eq-10.not-the-limit"]["verdict"] == "certified"
    compared = [claim for name, claim in found.items() if name.startswith("cnn.")]
    assert compared
    for claim in compared:
        low, high = claim["interval"]
        assert low <= high
        assert re.match(r"[−\d.×⁻]+ over 2 seeds, Holm-adjusted p = \d", claim["measured"])
        assert claim["verdict"] in ("supported", "inconclusive", "contradicted")
    for claim in found.values():
        assert list(claim) == ["id", "claim", "source", "measured", "interval", "verdict", "figure"]
        assert (finished[0] / "convergence" / claim["figure"]).is_file()
    for name in ("pooled", "full-kernel"):
        assert found[f"corollary-iii.6.{name}.counterexample"]["verdict"] == "certified"
    for name in ("exact.gaussian", "step-size.draws.digits", "pooled.remains"):
        assert found[f"corollary-iii.6.{name}"]["verdict"] == "certified"


def test_records_and_claims_hold_no_times(finished):
    folder = finished[0]
    rows = [
        json.loads(line) for content in records(folder).values() for line in content.splitlines()
    ]
    assert rows
    names = {key for row in rows + claims(folder) for key in row}
    names |= {row["metric"] for row in rows}
    clock = re.compile(r"wall|second|minute|time|date|start|elapsed|duration", re.IGNORECASE)
    assert [name for name in names if clock.search(name)] == []


def test_two_workers_give_the_bytes_of_one(cli, quick, finished, tiny, tmp_path):
    out = tmp_path / "elsewhere"
    outcome = cli(*quick, "--workers", 2, "--out", out)
    assert outcome.code == 0 and "2 processes" in outcome.out
    assert len(records(out)) == RUNS
    assert records(out) == records(finished[0])
    assert shown(out) == shown(finished[0])


def test_a_second_time_computes_nothing_and_gives_the_same(
    cli, quick, finished, results, undrawn, nothing_is_computed
):
    before = changes(results)
    shutil.rmtree(results / "convergence")
    outcome = cli(*quick, "--out", results)
    assert outcome.code == 0 and f"{RUNS} already there" in outcome.out
    assert changes(results) == before and len(before) == 2 * RUNS
    # A figure that is not drawn is not named; the rest of the claims is the same.
    undrawn_claims = [{**claim, "figure": None} for claim in claims(finished[0])]
    assert [{**claim, "figure": None} for claim in claims(results)] == undrawn_claims


def test_redraw_draws_the_same_and_computes_nothing(
    cli, finished, results, nothing_is_computed, monkeypatch
):
    monkeypatch.setattr(paper_repro, "loaded", nothing_is_computed)
    for name in ("claims.json", "figures", "tables", "report.html"):
        path = results / "convergence" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert cli("--section", "convergence", "--redraw", "--out", results).code == 0
    assert shown(results) == shown(finished[0])
    assert (results / "convergence" / "report.html").stat().st_size > 0


def test_a_killed_command_is_completed_without_repeating_what_is_finished(
    cli, quick, finished, results, computed, undrawn
):
    lost = run_of(results, "regime")
    before = changes(results)
    partial = results / "runs" / f".partial-{lost.name}-abc"
    partial.mkdir()
    (partial / "records.jsonl").write_bytes((lost / "records.jsonl").read_bytes()[:100])
    shutil.rmtree(lost)
    outcome = cli(*quick, "--workers", 1, "--out", results)
    assert outcome.code == 0 and f"{RUNS - 1} already there" in outcome.out
    assert computed == ["regimes"] and not partial.exists()
    after = changes(results)
    assert {path for path in before if after[path] != before[path]} == {
        lost / "manifest.json",
        lost / "records.jsonl",
    }
    assert records(results) == records(finished[0])


def cut(content):
    return content[: len(content) // 2]


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("damage", [cut, flipped])
@pytest.mark.parametrize("redraw", [(), ("--redraw",)])
def test_damaged_records_are_named_and_set_aside(
    cli, quick, results, undrawn, nothing_is_computed, damage, redraw
):
    hurt = run_of(results, "corollary", data="gaussian")
    content = damage((hurt / "records.jsonl").read_bytes())
    (hurt / "records.jsonl").write_bytes(content)
    outcome = cli(*quick, *redraw, "--out", results)
    assert outcome.code == 2
    aside = results / "runs" / "damaged" / f"{hurt.name}-1"
    for words in (str(hurt), "records.jsonl", str(aside)):
        assert words in outcome.sentence
    assert not hurt.exists() and (aside / "records.jsonl").read_bytes() == content
    assert len(records(results)) == RUNS - 1


def test_after_damage_only_the_damaged_run_is_computed_again(
    cli, quick, finished, results, undrawn, computed
):
    hurt = run_of(results, "corollary", data="gaussian")
    (hurt / "records.jsonl").write_bytes(cut((hurt / "records.jsonl").read_bytes()))
    assert cli(*quick, "--out", results).code == 2
    redrawn = cli(*quick, "--redraw", "--out", results)
    assert redrawn.code == 2
    assert hurt.name in redrawn.sentence and "without --redraw" in redrawn.sentence
    assert computed == []
    assert cli(*quick, "--workers", 1, "--out", results).code == 0
    assert computed == ["corollary, gaussian"]
    assert records(results) == records(finished[0])


def test_fresh_computes_everything_again_and_finds_the_same(
    cli, quick, finished, results, undrawn, computed
):
    before = changes(results)
    outcome = cli(*quick, "--theory-only", "--fresh", "--workers", 1, "--out", results)
    assert outcome.code == 0 and "already there" not in outcome.out
    again = {path.parent for path, moment in changes(results).items() if moment != before[path]}
    assert len(computed) == len(set(computed)) == len(again) == RUNS - 4
    assert records(results) == records(finished[0])
    assert not (results / "runs" / "replaced").exists()


def test_theory_only_leaves_the_training_out(cli, quick, results, nothing_is_computed, monkeypatch):
    whole = claims(results)
    shutil.rmtree(results / "convergence")
    outcome = cli(*quick, "--theory-only", "--out", results)
    assert outcome.code == 0 and f"{RUNS - 4} runs" in outcome.out
    assert claims(results) == [claim for claim in whole if not claim["id"].startswith("cnn.")]
    assert not (results / "convergence" / "figures" / "training.pdf").exists()
    index = json.loads((results / "convergence" / "runs.json").read_text(encoding="utf-8"))
    assert len(index["runs"]) == RUNS - 4 and index["options"]["theory_only"] is True


def test_the_folder_shows_only_what_was_asked_for_last(
    cli, quick, results, tmp_path, nothing_is_computed, monkeypatch
):
    real = figures.convergence.drawings
    monkeypatch.setattr(
        figures.convergence, "drawings", lambda summary: dict.fromkeys(real(summary), Figure)
    )
    note = results / "convergence" / "figures" / "note.png"
    note.write_text("mine")
    alone = tmp_path / "alone"
    shutil.copytree(results / "runs", alone / "runs")
    for out in (results, alone):
        assert cli(*quick, "--theory-only", "--out", out).code == 0
    there, wanted = (
        {file.relative_to(out) for file in (out / "convergence").rglob("*.*")}
        for out in (results, alone)
    )
    assert there == wanted | {note.relative_to(results)}
    assert cli(*quick, "--out", results).code == 0
    assert (results / "convergence" / "figures" / "training.pdf").exists()
    assert note.read_text() == "mine"


def test_a_place_that_cannot_be_written_is_named_and_keeps_the_runs(cli, quick, results, undrawn):
    shutil.rmtree(results / "convergence")
    (results / "convergence").write_text("precious")
    outcome = cli(*quick, "--out", results)
    assert outcome.code == 2
    assert str(results / "convergence") in outcome.sentence
    assert (results / "convergence").read_text() == "precious"
    assert len(records(results)) == RUNS


@pytest.mark.slow
def test_the_quick_preset_gives_the_same_bytes_and_the_required_claims(cli, quick, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for workers, out in ((1, one), (2, two)):
        assert cli(*quick, "--workers", workers, "--out", out).code == 0
    assert records(one) == records(two) and records(one)
    assert shown(one) == shown(two)
    found = {claim["id"]: claim for claim in claims(one)}
    for name in ("corollary-iii.6.digits", "corollary-iii.6.draws.digits", "eq-10.not-the-limit"):
        assert found[name]["verdict"] == "certified"
    for name in ("theorem-iii.4.decay", "theorem-iii.4.eigenvalue"):
        assert found[name]["verdict"] in ("certified", "consistent")
    assert any(name.startswith("cnn.") and claim["interval"] for name, claim in found.items())
    seeds = {
        json.loads(path.read_text(encoding="utf-8"))["config"].get("schedule", {}).get("seed")
        for path in one.glob("runs/*/manifest.json")
    }
    assert len(seeds - {None}) >= 3


def test_runs_of_other_versions_are_mentioned_and_threads_recorded(cli, quick, results):
    manifests = sorted((results / "runs").glob("*/manifest.json"))
    assert manifests
    for path in manifests:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        assert manifest["threads"] and set(manifest["threads"].values()) == {1}
        # A commit made while the tests run is no other version.
        path.write_text(json.dumps(manifest | environment()), encoding="utf-8")
    assert "--fresh" not in cli(*quick, "--out", results).out
    manifest = json.loads(manifests[0].read_text(encoding="utf-8"))
    manifest["versions"]["numpy"] = "0.9"
    manifests[0].write_text(json.dumps(manifest), encoding="utf-8")
    assert "1 of the runs were computed with other versions" in cli(*quick, "--out", results).out
