"""Runs on a disk that is full, in folders that are none, and with manifests of odd shapes."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from figures.records import DamagedRun, OutputError, RunStore, config_hash

CONFIG = {"seed": 0}
ROWS = [{"metric": "loss", "value": 0.5}]
WEIGHTS = "checkpoint.safetensors"


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs")


def write(store, **options):
    with store.writing(CONFIG, **options) as run:
        run.add(ROWS)
        (run.folder / WEIGHTS).write_bytes(b"weights")
    return run.hash


def fill_the_disk(run, buffering):
    """Let the records go to a full device: what is buffered fails again when it is closed."""
    run.close()
    run._file = Path("/dev/full").open("wb", buffering=buffering)  # noqa: SIM115


full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full device")


@full
@pytest.mark.parametrize("buffering", [0, -1], ids=["while written", "at the end"])
def test_a_full_disk_keeps_its_error_and_frees_what_was_written(store, buffering):
    with (
        pytest.raises(OutputError, match="No space left on device; free some space"),
        store.writing(CONFIG) as run,
    ):
        fill_the_disk(run, buffering)
        run.add(ROWS)
    assert list(store.root.iterdir()) == []


@full
def test_another_error_is_not_hidden_by_a_file_that_cannot_be_closed(store):
    with pytest.raises(ZeroDivisionError), store.writing(CONFIG) as run:
        fill_the_disk(run, -1)
        run.add(ROWS)
        _ = 1 / 0
    assert list(store.root.iterdir()) == []
    write(store)  # the lock was given back too


def test_what_killed_writers_left_is_removed_before_the_disk_is_tried(store, monkeypatch):
    partial = store.root / ".partial-a-1"
    partial.mkdir()

    def full_of_it(folder):
        if partial.exists():
            raise OutputError("No space left on device")
        return folder

    monkeypatch.setattr("figures.records.writable_folder", full_of_it)
    RunStore(store.root)
    partial.mkdir()
    store.sweep()
    assert list(store.root.iterdir()) == []


# ---- something else in the place of a run


def dangling(folder):
    folder.symlink_to(folder.parent / "nowhere")


def plain_file(folder):
    folder.write_text("precious")


def empty_folder(folder):
    folder.mkdir()


@pytest.mark.parametrize("occupy", [dangling, plain_file, empty_folder])
@pytest.mark.parametrize("fresh", [False, True])
def test_what_lies_in_the_place_of_a_run_is_set_aside(store, occupy, fresh):
    folder = store.folder(config_hash(CONFIG))
    occupy(folder)
    assert not store.has(folder.name)
    with pytest.warns(UserWarning, match="manifest.json is missing.*set aside"):
        write(store, fresh=fresh)
    assert store.read(folder.name).height == len(ROWS)
    assert os.path.lexists(store.root / "damaged" / f"{folder.name}-1")


def test_a_run_behind_a_link_is_replaced_and_the_other_one_left(store, tmp_path):
    name = write(store)
    elsewhere = store.folder(name).rename(tmp_path / "elsewhere")
    store.folder(name).symlink_to(elsewhere)
    write(store, fresh=True)
    assert not store.folder(name).is_symlink() and store.read(name).height == len(ROWS)
    assert (elsewhere / "manifest.json").is_file()


# ---- manifests and further files


def edited(**changes):
    def edit(folder):
        path = folder / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return edit


def nested(name, prefix=""):
    return lambda folder: (folder / name).write_text(prefix + "[" * 100_000 + "\n")


HARMS = {
    "nested manifest": (nested("manifest.json"), "manifest.json is not readable JSON"),
    "nested config": (
        edited(config=json.loads('{"a": ' + "[" * 900 + "]" * 900 + "}")),
        "describes another run",
    ),
    "config a list": (edited(config=[]), "describes another run"),
    "status a list": (edited(status=["complete"]), "valid status"),
    "files a list": (edited(files=[WEIGHTS]), "list of files"),
    "files without sizes": (edited(files={WEIGHTS: {}}), "list of files"),
    "files with odd sizes": (edited(files={WEIGHTS: {"bytes": "7", "sha256": ""}}), "list of"),
    "files that are none": (edited(files={"\0": {"bytes": 7, "sha256": ""}}), "is missing"),
    "notes a number": (edited(notes=7), "has notes that are not"),
    "notes of numbers": (edited(notes=[7]), "has notes that are not"),
    "versions a list": (edited(versions=["numpy"]), "has versions that are not"),
    "versions of lists": (edited(versions={"numpy": [2]}), "has versions that are not"),
    "threads of lists": (edited(threads={"blas": [1]}), "has threads that are not"),
    "no checkpoint": (lambda folder: (folder / WEIGHTS).unlink(), f"{WEIGHTS} is missing"),
    "cut checkpoint": (
        lambda folder: (folder / WEIGHTS).write_bytes(b"weig"),
        f"{WEIGHTS} has 4 bytes, not 7",
    ),
}


@pytest.mark.parametrize("reading", ["manifest", "read"])
@pytest.mark.parametrize(("harm", "message"), HARMS.values(), ids=HARMS)
def test_a_run_of_another_shape_is_set_aside_in_one_sentence(store, harm, message, reading):
    name = write(store)
    harm(store.folder(name))
    with pytest.raises(DamagedRun, match=message) as caught:
        getattr(store, reading)(name)
    assert "\n" not in str(caught.value)
    assert not store.has(name) and (store.root / "damaged" / f"{name}-1").is_dir()
    write(store)
    assert store.manifest(name)["files"][WEIGHTS]["bytes"] == 7


def test_a_record_nested_too_deeply_is_damage(store):
    name = write(store)
    content = b"[" * 100_000 + b"\n"
    (store.folder(name) / "records.jsonl").write_bytes(content)
    edited(records_sha256=hashlib.sha256(content).hexdigest())(store.folder(name))
    with pytest.raises(DamagedRun, match=r"line 1 of records\.jsonl is no record"):
        store.read(name)
