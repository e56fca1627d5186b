"""Trouble around the computing: full disks, readers that leave, signals, crashes, odd encodings."""

import contextlib
import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

import paper_repro
from empirical.executor import Result, TaskError
from empirical.state import FederationState
from figures.index import write_index
from figures.records import OutputError, RunStore

ROOT = Path(__file__).parent.parent
SECTION = ("--section", "convergence")
FULL = "No space left on device"


def task(store, **config):
    return paper_repro.Task("one", config, 1.0, str(store), None, False)


def script(*arguments, **options):
    """Run the script itself, as a user does."""
    command = [sys.executable, "paper_repro.py", *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False, **options
    )


def raising(error):
    def run_section(name, options):
        raise error

    return run_section


# ---- disks that are full


def test_a_disk_that_refuses_a_worker_is_output_trouble(cli, quick, tiny, tmp_path, monkeypatch):
    def full(function, tasks, *, workers):
        def refuse(*_):
            raise OSError(errno.ENOSPC, FULL)

        with monkeypatch.context() as patch:
            patch.setattr("figures._run.os.fsync", refuse)
            for name, argument in tasks.items():
                yield Result(name, function(argument, lambda _: None))

    monkeypatch.setattr("empirical.executor.run_tasks", full)
    outcome = cli(*quick, "--theory-only", "--out", tmp_path / "r")
    assert outcome.code == 2
    assert outcome.sentence.startswith("cannot write ") and f"{FULL}; free" in outcome.sentence
    assert "Error" not in outcome.sentence
    assert list((tmp_path / "r" / "runs").iterdir()) == []


@pytest.mark.parametrize(
    "error", [SafetensorError(f"I/O error: {FULL} (os error 28)"), OSError(errno.ENOSPC, FULL)]
)
def test_a_checkpoint_that_cannot_be_written_is_output_trouble(monkeypatch, tmp_path, error):
    def refuse(*_):
        raise error

    monkeypatch.setattr("empirical.checkpoint.save_file", refuse)
    state = FederationState("complete", 1, {"w": torch.zeros(2)}, {}, {}, ())
    run = tmp_path / "runs" / ".partial-1"
    run.mkdir(parents=True)
    with pytest.raises(OutputError) as caught:
        paper_repro.save(run / "c.safetensors", state)
    place = run.parent
    assert str(caught.value) == f"cannot write a checkpoint to {place}: {FULL}; free some space"
    assert list(run.iterdir()) == []


def test_other_errors_of_a_worker_stay_what_they_are(tmp_path):
    with pytest.raises(KeyError):
        paper_repro.execute(task(tmp_path, study="nonsense", data="gaussian", seed=0), print)
    assert list(tmp_path.iterdir()) == []


def test_a_traceback_that_cannot_be_written_is_said_to_be_lost(cli, monkeypatch, tmp_path):
    (tmp_path / "r").write_text("not a folder")
    failed = TaskError("one", "failed: KeyError: 'two'", "Traceback …")
    monkeypatch.setattr(paper_repro, "run_section", raising(failed))
    outcome = cli(*SECTION, "--out", tmp_path / "r")
    assert outcome.code == 3
    assert "task 'one' failed" in outcome.sentence and "traceback is lost" in outcome.sentence


def test_what_ended_workers_had_begun_is_removed(cli, quick, tiny, tmp_path, monkeypatch):
    def ended(tasks, workers):
        (Path(tasks[0].store) / ".partial-abc-1").mkdir()
        raise TaskError("one", "was killed")

    monkeypatch.setattr(paper_repro, "compute", ended)
    assert cli(*quick, "--theory-only", "--out", tmp_path).code == 3
    assert list((tmp_path / "runs").iterdir()) == []


# ---- crashes


@pytest.mark.parametrize(
    "error", [RuntimeError("odd"), OSError("odd"), ValueError("odd"), RecursionError("odd")]
)
def test_a_crash_is_not_taken_for_a_violated_statement(cli, monkeypatch, error):
    monkeypatch.setattr(paper_repro, "run_section", raising(error))
    outcome = cli(*SECTION)
    assert outcome.code == 3
    assert "Traceback" in outcome.err and f"{type(error).__name__}: odd" in outcome.err


def test_a_crash_of_the_explanation_is_one_too(cli, monkeypatch):
    monkeypatch.setattr(paper_repro, "run_section", raising(RuntimeError("odd")))
    monkeypatch.setitem(sys.modules, "empirical.executor", None)
    outcome = cli(*SECTION)
    assert outcome.code == 3 and "RuntimeError: odd" in outcome.err


# ---- standard output


class Closed(io.StringIO):
    """A pipe whose reader has left."""

    def write(self, _):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


class Full(io.StringIO):
    """A file on a full disk; buffered, it refuses only when it is flushed."""

    def __init__(self, *, buffered):
        super().__init__()
        self.buffered = buffered

    def write(self, _):
        return 1 if self.buffered else self.flush()

    def flush(self):
        raise OSError(errno.ENOSPC, FULL)


def into(stream, *arguments):
    err = io.StringIO()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(err):
        try:
            code = paper_repro.main(list(arguments))
        except SystemExit as stop:
            code = stop.code
    return code, err.getvalue()


@pytest.mark.parametrize("arguments", [("--list",), ("--help",)])
def test_a_reader_that_left_ends_it_quietly(cli, arguments):
    assert into(Closed(), *arguments) == (141, "")
    assert cli(*arguments).code == 0, "nothing is left over for the next output"


@pytest.mark.parametrize("arguments", [("--list",), ("--help",)])
@pytest.mark.parametrize("buffered", [True, False])
def test_an_output_that_takes_nothing_is_one_sentence(cli, arguments, buffered):
    code, err = into(Full(buffered=buffered), *arguments)
    assert code == 2
    assert err.splitlines() == [f"The output cannot be printed: {FULL}."]
    assert cli(*arguments).code == 0


def test_nobody_to_tell_is_no_crash(monkeypatch):
    with contextlib.redirect_stderr(Full(buffered=False)):
        assert paper_repro.main(["--section", "nonsense"]) == 2
    monkeypatch.setattr(paper_repro, "run_section", raising(KeyboardInterrupt()))
    assert into(Full(buffered=False), *SECTION)[0] == 130


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_any_encoding_of_the_output_will_do(encoding):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    assert into(stream, "--list") == (0, "")
    text = raw.getvalue().decode(encoding)
    assert "?_min(G*)" in text and "federation digits" in text


def test_the_script_itself_survives_pipes_disks_and_encodings():
    reading, writing = os.pipe()
    os.close(reading)
    done = script("--list", stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")
    env = os.environ | {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    done = script("--list", stdout=subprocess.PIPE, env=env)
    assert (done.returncode, done.stderr) == (0, "") and "?_min(G*)" in done.stdout
    if os.path.exists("/dev/full"):
        with Path("/dev/full").open("w") as nowhere:
            done = script("--list", stdout=nowhere)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and FULL in done.stderr


# ---- signals


def test_sigterm_stops_as_ctrl_c_does_and_leaves_the_handler(cli, monkeypatch):
    ended = []

    def run_section(name, options):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10)
        finally:
            ended.append(name)

    monkeypatch.setattr(paper_repro, "run_section", run_section)
    before = signal.getsignal(signal.SIGTERM)
    outcome = cli(*SECTION)
    assert outcome.code == 143 and "Finished runs are kept" in outcome.out
    assert ended == ["convergence"] and signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("error", [KeyboardInterrupt, paper_repro.Terminated, OutputError])
def test_workers_are_ended_before_anything_is_said(monkeypatch, tmp_path, error):
    ended = []

    def run_tasks(function, tasks, *, workers):
        try:
            if error is OutputError:
                yield Result("one", paper_repro.Unwritten("full"))
            raise error
        finally:
            ended.append("workers")

    monkeypatch.setattr("empirical.executor.run_tasks", run_tasks)
    with pytest.raises(error) as caught:
        paper_repro.compute([task(tmp_path)], 1)
    # The traceback still holds the frames: closing was no work of the garbage collector.
    assert ended == ["workers"] and caught.tb is not None


# ---- names of folders, the index, warnings


def test_a_home_folder_that_is_not_there_is_refused(cli):
    outcome = cli(*SECTION, "--out", "~nosuchuser/x")
    assert outcome.code == 2 and "--out ~nosuchuser/x" in outcome.sentence


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"runs": {}}'])
def test_an_index_that_cannot_be_used_is_one_sentence(cli, results, content):
    index = results / "convergence" / "runs.json"
    index.write_bytes(content)
    outcome = cli(*SECTION, "--redraw", "--out", results)
    assert outcome.code == 2 and str(index) in outcome.sentence


def test_a_run_taken_out_of_the_index_is_noticed(cli, results):
    path = results / "convergence" / "runs.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    del index["runs"][0]
    path.write_text(json.dumps(index), encoding="utf-8")
    assert "not what was written" in cli(*SECTION, "--redraw", "--out", results).sentence


def test_any_part_of_the_runs_can_be_drawn(cli, results, undrawn):
    path = results / "convergence" / "runs.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    for run in index["runs"]:
        write_index(path, "convergence", index["options"], [run])
        assert cli(*SECTION, "--redraw", "--out", results).code == 0


def test_a_lost_checkpoint_is_said_and_only_its_run_computed_again(
    cli, quick, results, undrawn, computed
):
    lost = next(results.glob("runs/*/checkpoint.safetensors"))
    lost.unlink()
    outcome = cli(*quick, "--workers", 1, "--out", results)
    assert outcome.code == 2
    assert "checkpoint.safetensors is missing" in outcome.sentence and computed == []
    assert cli(*quick, "--workers", 1, "--out", results).code == 0
    assert len(computed) == 1 and lost.is_file()


def test_warnings_for_users_are_sentences_and_others_keep_their_place():
    former = warnings.formatwarning
    with paper_repro.plain_warnings():
        shown = [
            warnings.formatwarning("set aside", kind, "file.py", 7, "code")
            for kind in (UserWarning, RuntimeWarning)
        ]
    assert shown[0] == "set aside\n" and "file.py:7" in shown[1]
    assert warnings.formatwarning is former


def test_a_dangling_link_in_the_place_of_a_run_does_not_stop_the_section(
    cli, quick, results, undrawn, computed
):
    store = RunStore(results / "runs")
    (run,) = (
        path.parent
        for path in store.root.glob("*/manifest.json")
        if json.loads(path.read_text(encoding="utf-8"))["config"]["study"] == "regime"
    )
    run.rename(results / "gone")
    run.symlink_to(results / "nowhere")
    outcome = cli(*quick, "--workers", 1, "--out", results)
    assert outcome.code == 0 and "Error" not in outcome.err
    assert computed == ["regimes"] and (store.root / "damaged" / f"{run.name}-1").is_symlink()
