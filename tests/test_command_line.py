"""Command line: input that is refused in one sentence, the list, and what is planned."""

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import paper_repro
from empirical import BN_POLICIES, FEDERATIONS, MODELS, Client, Split, methods
from figures.records import RunStore, config_hash
from paper_repro import Options

ROOT = Path(__file__).parent.parent
SECTION = ("--section", "convergence")
no_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")

REFUSED = {
    "no section": ((), ("--section convergence", "--list")),
    "section": (("--section", "convergense"), ("'convergense'", "did you mean 'convergence'")),
    "far section": (
        ("--section", "xyz"),
        (
            "'xyz'",
            "convergence, generalization, causal, compatibility, internal, external, analysis, all",
        ),
    ),
    "preset": ((*SECTION, "--preset", "defualt"), ("'defualt'", "did you mean 'default'")),
    "federation": ((*SECTION, "--federation", "digit"), ("'digit'", "did you mean 'digits'")),
    "path": ((*SECTION, "--federation", "./mine"), ("'./mine' is a path", "digits")),
    "no folder": ((*SECTION, "--federation", "fedbn_digits"), ("is read from a folder", "--data")),
    "bad folder": (
        (*SECTION, "--federation", "fedbn_digits", "--data", "none"),
        ("none lacks the folders MNIST", "unpacks to"),
    ),
    "no seeds": ((*SECTION, "--seeds", "0"), ("--seeds must be at least 1, not 0",)),
    "negative seeds": ((*SECTION, "--seeds", "-1"), ("--seeds must be at least 1, not -1",)),
    "no workers": ((*SECTION, "--workers", "0"), ("--workers must be at least 1, not 0",)),
    "many seeds": ((*SECTION, "--seeds", "9" * 20), ("--seeds must be at most 10000",)),
    "many workers": ((*SECTION, "--workers", "10001"), ("--workers must be at most 10000",)),
    **{
        f"endless {flag}": (
            ("--section", "external", f"--{flag}", "7" * 5000),
            (f"--{flag} is at most 10000, and no number of 5000 digits",),
        )
        for flag in ("seeds", "workers", "folds")
    },
    "endless after =": ((*SECTION, f"--seeds={'7' * 5000}"), ("no number of 5000 digits",)),
    "endless below 0": ((*SECTION, "--workers", "-" + "7" * 5000), ("of 5000 digits",)),
    "many folds": (("--section", "external", "--folds", "9" * 20), ("1 … 4", "not 9999")),
    "device": ((*SECTION, "--device", "gpu"), ("unknown device 'gpu'", "'cuda'")),
    "both": ((*SECTION, "--redraw", "--fresh"), ("--redraw", "--fresh", "one of them")),
    "no seeds redrawn": ((*SECTION, "--redraw", "--seeds", "0"), ("--seeds must be",)),
    "empty data": ((*SECTION, "--theory-only", "--data="), ("--data is empty",)),
    "blank data": ((*SECTION, "--theory-only", "--data", " "), ("--data is empty",)),
    "empty seeds": ((*SECTION, "--seeds", ""), ("--seeds is empty",)),
    "data twice": ((*SECTION, "--data", "a", "--data=b"), ("--data is given twice",)),
    "flag twice": ((*SECTION, "--theory-only", "--theory_only"), ("--theory-only is given twice",)),
    "section twice": ((*SECTION, *SECTION), ("--section is given twice",)),
    "far CUDA": ((*SECTION, "--device", "cuda:99"), ("'cuda:99' is not there", "'cpu'")),
}


@pytest.fixture(autouse=True)
def nothing_is_computed(monkeypatch):
    def compute(tasks, workers):
        raise AssertionError(f"{len(tasks)} runs were computed")

    monkeypatch.setattr(paper_repro, "compute", compute)


@pytest.mark.parametrize(("arguments", "words"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_refused_in_one_sentence(cli, tmp_path, arguments, words):
    outcome = cli(*arguments, "--out", tmp_path / "results")
    assert outcome.code == 2
    for word in words:
        assert word in outcome.sentence
    assert outcome.out == ""


@pytest.mark.parametrize("empty", [("--out", ""), ("--out=",), ("--out", "  ")])
def test_an_empty_place_for_results_is_not_this_folder(cli, tmp_path, monkeypatch, empty):
    monkeypatch.chdir(tmp_path)
    outcome = cli(*SECTION, *empty)
    assert outcome.code == 2 and "--out is empty" in outcome.sentence
    assert not list(tmp_path.iterdir())


@no_cuda
def test_absent_cuda_is_refused(cli, tmp_path):
    outcome = cli(*SECTION, "--device", "cuda", "--out", tmp_path)
    assert outcome.code == 2
    assert "'cuda' is not there" in outcome.sentence and "'cpu'" in outcome.sentence


@pytest.mark.parametrize("below", ["", "deeper/still"])
def test_a_file_in_the_way_of_the_results_is_refused(cli, tmp_path, below):
    file = tmp_path / "occupied"
    file.write_text("precious")
    outcome = cli(*SECTION, "--out", file / below)
    assert outcome.code == 2
    assert str(file) in outcome.sentence and "not a folder" in outcome.sentence
    assert file.read_text() == "precious"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder closed even to root")
def test_a_folder_that_takes_no_files_is_refused(cli):
    outcome = cli(*SECTION, "--out", "/proc/results")
    assert outcome.code == 2
    assert "/proc/results" in outcome.sentence and "--out" in outcome.sentence


def test_nothing_to_redraw_is_refused(cli, tmp_path):
    outcome = cli(*SECTION, "--redraw", "--out", tmp_path)
    assert outcome.code == 2
    assert "nothing to redraw" in outcome.sentence and "without --redraw" in outcome.sentence


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[1]",
        b"7",
        b"{}",
        b'{"section": "convergence", "options": {}, "runs": ["0123456789abcdef"]}',
        b'{"section": "convergence", "options": {"preset": "quick"}, "runs": ["xyz"]}',
        b'{"section": "convergence", "options": {}, "runs": []}',
        b'{"section": "convergence", "options": {}, "runs": 3}',
    ],
)
def test_a_damaged_index_is_refused(cli, tmp_path, content):
    index = tmp_path / "convergence" / "runs.json"
    index.parent.mkdir()
    index.write_bytes(content)
    outcome = cli(*SECTION, "--redraw", "--out", tmp_path)
    assert outcome.code == 2
    assert str(index) in outcome.sentence and "without --redraw" in outcome.sentence
    assert index.read_bytes() == content


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(("--seeds", "x"), "--seeds"), (("--sedes", "3"), "--sedes"), (("--workers",), "--workers")],
)
def test_what_the_parser_refuses_names_the_flag(cli, tmp_path, arguments, word):
    # tyro explains itself in a frame of several lines: its words, our exit code.
    outcome = cli(*SECTION, *arguments)
    assert outcome.code == 2
    assert word in outcome.err and "Traceback" not in outcome.err and outcome.out == ""


@pytest.mark.parametrize("arguments", [(), ("--section", "convergence", "--out", "paper_repro.py")])
def test_the_script_itself_refuses_in_one_line(arguments):
    command = [sys.executable, "paper_repro.py", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1


def test_an_interruption_says_how_to_go_on(cli, monkeypatch):
    def interrupted(name, options):
        raise KeyboardInterrupt

    monkeypatch.setattr(paper_repro, "run_section", interrupted)
    outcome = cli(*SECTION)
    assert outcome.code == 130 and "Finished runs are kept" in outcome.out


def test_all_runs_every_section_even_after_a_violation(cli, monkeypatch):
    shown = []
    monkeypatch.setitem(
        paper_repro.SECTIONS, "second", replace(paper_repro.SECTIONS["convergence"])
    )
    monkeypatch.setattr(
        paper_repro, "run_section", lambda name, _: shown.append(name) or name == "second"
    )
    assert cli("--section", "all").code == 1
    joint, experiments = ["generalization", "causal"], ["compatibility", "internal", "external"]
    assert shown == ["convergence", *joint, *experiments, "analysis", "second"]


def test_a_tilde_means_the_home_folder_everywhere(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    options = paper_repro.checked(Options(section="convergence", out=Path("~/results")))
    assert options.out == tmp_path / "results"


def test_list_names_what_there_is(cli):
    outcome = cli("--list")
    assert outcome.code == 0 and outcome.err == ""
    for known in (paper_repro.SECTIONS, FEDERATIONS, methods(), BN_POLICIES, MODELS):
        for name in known:
            assert name in outcome.out
    for minutes in paper_repro.SECTIONS["convergence"].minutes.values():
        assert f"{minutes:g}" in outcome.out


def plan(fingerprint="0" * 64, **options):
    given = Options(section="convergence", device="cpu", **options)
    return list(paper_repro.plan_convergence(given, fingerprint))


def hashes(runs):
    return {label: config_hash(config) for label, config, _ in runs}


@pytest.mark.parametrize("preset", paper_repro.PRESETS)
def test_runs_have_labels_and_hashes_of_their_own(preset):
    runs = plan(preset=preset)
    assert len(hashes(runs)) == len(runs), "a label twice would drop a task"
    assert len(set(hashes(runs).values())) == len(runs)
    assert all(seconds > 0 for _, _, seconds in runs)


def test_the_default_preset_computes_what_the_section_promises():
    configs = [config for _, config, _ in plan()]
    trained = [config for config in configs if config["study"] == "training"]
    policies = [config["bn_policy"] for config in trained]
    seeds = {config["schedule"]["seed"] for config in trained}
    assert seeds == set(range(len(seeds))) and len(seeds) >= 3
    assert sorted(policies) == sorted(["aggregated", "client_specific"] * len(seeds))
    assert all(config["schedule"]["rounds"] >= 15 for config in trained)
    descents = [config for config in configs if config["study"] == "dynamics"]
    assert {config["alpha"] for config in descents} == {0.5, 2.0, 10.0, 20.0}
    assert len({config["width"] for config in descents}) >= 2
    assert {config["data"] for config in descents} == {"gaussian", "digits"}
    drawn = [config for config in configs if config["study"] == "corollary"]
    assert {config["data"] for config in drawn} == {"gaussian", "digits"}
    assert all(config["draws"] >= 20 for config in drawn)


def test_more_seeds_keep_the_runs_of_fewer():
    fewer, more = set(hashes(plan(seeds=2)).values()), set(hashes(plan(seeds=3)).values())
    assert fewer < more and len(more - fewer) == 2


def test_theory_only_leaves_out_the_training_and_nothing_else():
    whole, theory = plan(), plan(theory_only=True)
    assert theory == [run for run in whole if run[1]["study"] != "training"] != whole


def test_a_changed_federation_gives_other_hashes_where_it_is_used(monkeypatch):
    def clients(pixel):
        images = torch.zeros(2, 3, 28, 28, dtype=torch.uint8)
        images[1, 2, 3, 4] = pixel
        split = Split(images, torch.zeros(2, dtype=torch.int64))
        return [Client("a", split, split)]

    found = []
    for pixel in (1, 2, 1):
        made = clients(pixel)
        monkeypatch.setattr("empirical.load_federation", lambda _, made=made, **__: made)
        fingerprint = paper_repro.loaded(Options(section="convergence"))
        found.append((fingerprint, plan(fingerprint)))
    (first, before), (second, after), (third, again) = found
    assert first == third != second and before == again
    old, new = hashes(before), hashes(after)
    uses = {label for label, config, _ in before if config.get("data") != "gaussian"}
    assert {label for label in old if old[label] != new[label]} == uses != set(old)


def test_a_data_folder_for_a_federation_that_reads_none_is_refused(cli, tmp_path):
    outcome = cli("--section", "convergence", "--data", tmp_path, "--out", tmp_path / "r")
    assert outcome.code == 2
    assert "reads no folder" in outcome.sentence


def fedbn_digits(folder):
    draws = np.random.default_rng(0)
    shapes = {"MNIST": (28, 28), "SVHN": (32, 32, 3), "USPS": (16, 16)}
    for domain, shape in {**shapes, "SynthDigits": (32, 32, 3), "MNIST_M": (28, 28, 3)}.items():
        (folder / domain / "partitions").mkdir(parents=True)
        for file in ("partitions/train_part0.pkl", "test.pkl"):
            pair = draws.integers(0, 256, (4, *shape), dtype=np.uint8), np.arange(4)
            (folder / domain / file).write_bytes(pickle.dumps(pair))
    return folder


def test_a_federation_is_read_from_the_folder_given(tmp_path):
    found = []
    for name in ("here", "there"):
        place = fedbn_digits(tmp_path / name)
        options = Options("convergence", "quick", "fedbn_digits", place, device="cpu")
        found.append((paper_repro.loaded(options), paper_repro.federation("fedbn_digits", place)))
    (first, clients), (second, _) = found
    assert first == second and [len(client.train) for client in clients] == [4] * 5
    # A worker computes with it and records what it was.
    config = dict(next(iter(paper_repro.plan_convergence(options, first)))[1])
    config |= {"schedule": config["schedule"] | {"rounds": 1}}
    task = paper_repro.Task("a", config, 1.0, str(tmp_path / "runs"), str(place), False)
    run = paper_repro.execute(task, lambda _: None)
    manifest = RunStore(tmp_path / "runs").manifest(run)
    assert manifest["status"] == "complete" and set(manifest["data"]) == set(manifest["p"])
