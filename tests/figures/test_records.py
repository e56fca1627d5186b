import errno
import hashlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from figures._environment import git_commit
from figures._files import write_atomically
from figures._rows import decode, encode
from figures.records import (
    SCHEMA,
    DamagedRun,
    MissingRun,
    OutputError,
    RunStore,
    config_hash,
)

CONFIG = {"section": "convergence", "seed": 0, "lr": 0.01, "clients": ["a", "b"]}
ROWS = [
    {"metric": "loss", "value": 0.1 + 0.2, "round": 0, "client": "mnist", "split": "train"},
    {"metric": "smallest", "value": 5e-324, "lower": -0.0, "upper": 1e300, "note": "naïve\n→ λ"},
    {"metric": "loss", "value": np.float32(0.1), "round": np.int64(3), "draw": 2**62},
]


def write(store, config=CONFIG, rows=ROWS, **options):
    with store.writing(config, **options) as run:
        run.add(rows)
    return run.hash


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "results" / "runs")


# ---- writing and reading back


def test_what_was_written_is_read_back_to_the_last_bit(store):
    name = write(store)
    frame = store.read([name])
    assert frame.schema == pl.Schema({**SCHEMA, "run": pl.String})
    assert frame["value"].to_list() == [0.30000000000000004, 5e-324, float(np.float32(0.1))]
    assert math.copysign(1, frame["lower"][1]) == -1
    assert frame["round"].to_list() == [0, None, 3]
    assert frame["draw"].to_list() == [None, None, 2**62]
    assert frame["note"][1] == "naïve\n→ λ"
    assert frame["run"].to_list() == [name] * 3


@given(st.floats(allow_nan=False, allow_infinity=False), st.text(min_size=1))
@settings(max_examples=200, deadline=None)
def test_a_line_gives_the_row_back(value, text):
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        with pytest.raises(ValueError, match="Unicode"):
            encode({"metric": "m", "value": value, "note": text})
        return
    row = decode(encode({"metric": "m", "value": value, "note": text})[:-1])
    assert (row["value"], row["note"]) == (value, text)
    assert math.copysign(1, row["value"]) == math.copysign(1, value)


def test_the_same_rows_give_the_same_bytes_in_the_documented_order(tmp_path):
    texts = []
    for folder in ("one", "two"):
        store = RunStore(tmp_path / folder)
        name = write(store)
        texts.append((store.folder(name) / "records.jsonl").read_bytes())
        time.sleep(0.01)
    assert texts[0] == texts[1]
    assert list(json.loads(texts[0].splitlines()[0])) == [
        *("metric", "value", "lower", "upper", "round", "client", "split"),
        *("variant", "draw", "clients", "samples", "parameter", "note"),
    ]


def test_the_manifest_says_what_was_run_and_with_what(store):
    with store.writing(CONFIG) as run:
        run.add(ROWS)
        run.manifest["last_batch_of_one"] = "folded"
        run.manifest.update(status="diverged", diverged_round=3)
        (run.folder / "checkpoint.safetensors").write_bytes(b"weights")
    manifest = store.manifest(run.hash)
    assert manifest["config"] == CONFIG
    assert manifest["hash"] == run.hash == config_hash(CONFIG)
    assert (manifest["status"], manifest["diverged_round"], manifest["rows"]) == ("diverged", 3, 3)
    content = (store.folder(run.hash) / "records.jsonl").read_bytes()
    assert manifest["records_sha256"] == hashlib.sha256(content).hexdigest()
    assert manifest["wall_seconds"] >= 0 and manifest["started"].endswith("+00:00")
    assert {"python", "numpy", "scipy", "polars"} <= manifest["versions"].keys()
    assert manifest["platform"]["system"] and "git" in manifest
    assert list(manifest["files"]) == ["checkpoint.safetensors"]
    assert store.file(run.hash, "checkpoint.safetensors").read_bytes() == b"weights"
    with pytest.raises(MissingRun, match="no file 'other'"):
        store.file(run.hash, "other")


def test_several_runs_come_in_the_order_asked_for(store):
    names = [write(store, {**CONFIG, "seed": seed}) for seed in (1, 0)]
    assert store.read(names)["run"].unique(maintain_order=True).to_list() == names
    assert store.read(names[1])["run"].unique().to_list() == [names[1]]
    assert store.read([]).schema == store.read(names).schema
    with pytest.raises(ValueError, match="count double"):
        store.read([names[0], names[0]])


def test_a_run_may_have_no_rows(store):
    assert store.read(write(store, rows=[])).height == 0


def test_the_hash_forgets_the_order_of_keys_and_nothing_else():
    assert config_hash({"a": 1, "b": (2, 3)}) == config_hash({"b": [2, 3], "a": 1})
    different = [{"a": 1}, {"a": 2}, {"a": "1"}, {"a": [1]}, {"a": None}, {"a": 1, "b": 0}]
    assert len({config_hash(config) for config in different}) == len(different)
    # Pinned: a changed rule would orphan every finished run.
    assert config_hash({"a": 1}) == hashlib.sha256(b'{"a":1}').hexdigest()[:16]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"lr": math.nan}, r"config\['lr'\] is nan"),
        ({"a": {"b": [1, math.inf]}}, r"config\['a'\]\['b'\]\[1\] is inf"),
        ({"n": np.int64(3)}, r"config\['n'\] is a int64"),
        ({3: 1}, "key 3: keys must be strings"),
    ],
)
def test_a_config_that_json_would_change_is_refused(config, message):
    with pytest.raises((TypeError, ValueError), match=message):
        config_hash(config)


# ---- bad rows


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"metric": "loss", "value": math.nan}, "metric 'loss': value is nan"),
        ({"metric": "loss", "value": 1.0, "upper": math.inf}, "metric 'loss': upper is inf"),
        ({"metric": "loss", "value": None}, "'loss' has no value"),
        ({"metric": "loss"}, "'loss' has no value"),
        ({"value": 1.0}, "needs the name of its metric"),
        ({"metric": "loss", "value": 1.0, "seed": 3}, r"unknown columns \['seed'\]"),
        ({"metric": "loss", "value": True}, "must be a number, not True"),
        ({"metric": "loss", "value": np.True_}, "must be a number"),
        ({"metric": "loss", "value": "1.0"}, "must be a number"),
        ({"metric": "loss", "value": np.ones(2)}, "one real number"),
        ({"metric": "loss", "value": 1j}, "one real number"),
        ({"metric": "loss", "value": 1.0, "round": 1.0}, "round must be an integer"),
        ({"metric": "loss", "value": 1.0, "draw": 2**63}, "does not fit in 64 bits"),
        ({"metric": "loss", "value": 1.0, "client": 3}, "client must be a string"),
        ({"metric": "loss", "value": 1.0, "lower": 2.0, "upper": 1.0}, "exceeds upper"),
        (["loss", 1.0], "a row is a mapping"),
    ],
)
def test_a_bad_row_is_refused_by_name_and_leaves_nothing(store, row, message):
    with pytest.raises((TypeError, ValueError), match=message), store.writing(CONFIG) as run:
        run.add([ROWS[0], row])
    assert list(store.root.iterdir()) == []


def test_a_single_row_must_be_wrapped(store):
    with pytest.raises(TypeError, match="wrap a single one"), store.writing(CONFIG) as run:
        run.add(ROWS[0])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"status": "failed"}, "not 'failed'"),
        ({"config": {}}, "set by the store"),
        ({"x": math.nan}, "cannot be written as JSON"),
    ],
)
def test_a_bad_manifest_is_refused(store, entry, message):
    with pytest.raises(ValueError, match=message), store.writing(CONFIG) as run:
        run.manifest.update(entry)
    assert list(store.root.iterdir()) == []


# ---- visible only when complete


def test_a_run_is_invisible_until_complete(store):
    with store.writing(CONFIG) as run:
        run.add(ROWS)
        assert not store.has(run.hash)
        with pytest.raises(MissingRun, match="without --redraw"):
            store.read(run.hash)
    assert store.has(run.hash)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failed_run_leaves_nothing(store, error):
    with pytest.raises(error), store.writing(CONFIG) as run:
        run.add(ROWS)
        raise error
    assert list(store.root.iterdir()) == []


KILLED = """
import sys, time
from figures.records import RunStore
with RunStore(sys.argv[1]).writing({"seed": 1}) as run:
    run.add([{"metric": "loss", "value": 1.0}])
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_killed_writer_leaves_a_partial_folder_that_the_next_store_removes(store):
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(store.root)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        RunStore(store.root)
        assert len(list(store.root.glob(".partial-*"))) == 1, "a living writer's folder stays"
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert len(list(store.root.glob(".partial-*"))) == 1
        assert not store.has(config_hash({"seed": 1}))
        RunStore(store.root)
        assert list(store.root.iterdir()) == []
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_without_locks_only_old_partial_folders_are_removed(store, monkeypatch):
    monkeypatch.setattr("figures._files.fcntl", None)
    young, old = store.root / ".partial-a-1", store.root / ".partial-b-1"
    for folder in (young, old):
        folder.mkdir()
    two_days_ago = time.time() - 2 * 86_400
    os.utime(old, (two_days_ago, two_days_ago))
    name = write(store)
    RunStore(store.root)
    assert young.exists() and not old.exists() and store.has(name)


def test_the_run_that_appeared_first_is_kept(store):
    with store.writing(CONFIG) as late:
        late.add(ROWS[:1])
        write(store, rows=ROWS)
    assert store.read(late.hash).height == len(ROWS)
    assert [path.name for path in store.root.iterdir()] == [late.hash]


def test_many_writers_of_one_run_leave_one_intact_run(store):
    threads = [threading.Thread(target=write, args=(store,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.name for path in store.root.iterdir()] == [config_hash(CONFIG)]
    assert store.read(config_hash(CONFIG)).height == len(ROWS)


def test_fresh_takes_the_place_and_keeps_records_that_differ(store):
    name = write(store)
    write(store, fresh=True)
    assert [path.name for path in store.root.iterdir()] == [name]
    with pytest.warns(UserWarning, match="differ"):
        write(store, rows=ROWS[:1], fresh=True)
    assert store.read(name).height == 1
    old = store.root / "replaced" / f"{name}-1" / "records.jsonl"
    assert len(old.read_bytes().splitlines()) == len(ROWS)


# ---- damage


def truncate(folder):
    path = folder / "records.jsonl"
    path.write_bytes(path.read_bytes()[:-5])


def drop_a_line(folder):
    path = folder / "records.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def change_a_digit(folder):
    path = folder / "records.jsonl"
    path.write_bytes(path.read_bytes().replace(b"0.30000000000000004", b"0.30000000000000005"))


def edit_manifest(**changes):
    def edit(folder):
        path = folder / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return edit


def forge(line):
    def edit(folder):
        path = folder / "records.jsonl"
        content = path.read_bytes() + line
        path.write_bytes(content)
        edit_manifest(records_sha256=hashlib.sha256(content).hexdigest(), rows=4)(folder)

    return edit


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (truncate, "last line of records.jsonl is cut off"),
        (drop_a_line, "SHA-256"),
        (change_a_digit, "SHA-256"),
        (lambda folder: (folder / "records.jsonl").unlink(), "records.jsonl is missing"),
        (lambda folder: (folder / "manifest.json").unlink(), "manifest.json is missing"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "not readable JSON"),
        (lambda folder: (folder / "manifest.json").write_bytes(b"\xff\xfe"), "not readable JSON"),
        (lambda folder: (folder / "manifest.json").write_text("[]"), "not a JSON object"),
        (edit_manifest(records_version=99), "records version 99"),
        (edit_manifest(config={"seed": 7}), "describes another run"),
        (edit_manifest(config={"seed": math.nan}), "describes another run"),
        (edit_manifest(status="running"), "lacks a valid status"),
        (edit_manifest(rows=7), "has 3 rows, the manifest says 7"),
        (forge(b"{}\n"), "line 4 of records.jsonl is no record"),
        (forge(b"nonsense\n"), "line 4 of records.jsonl is no record"),
        (forge(encode(ROWS[0]).replace(b"0.30000000000000004", b"NaN")), "NaN is not a number"),
        (forge(encode(ROWS[0]).replace(b'"loss"', b"null")), "metric holds None"),
        (forge(encode(ROWS[0]).replace(b"0.30000000000000004", b"3")), "value holds 3"),
    ],
)
def test_a_damaged_run_is_named_set_aside_and_recomputed(store, harm, message):
    name, healthy = write(store), write(store, {"seed": 2})
    harm(store.folder(name))
    left = sorted((path.name, path.read_bytes()) for path in store.folder(name).iterdir())
    with pytest.raises(DamagedRun, match=message) as caught:
        store.read([healthy, name])
    text = str(caught.value)
    assert name in text and "damaged" in text and "run the command again: only this run" in text
    assert text.endswith("recomputed, and what starts from it")
    assert "\n" not in text
    aside = store.root / "damaged" / f"{name}-1"
    assert left == sorted((path.name, path.read_bytes()) for path in aside.iterdir())
    assert not store.has(name) and store.has(healthy)
    write(store)
    assert store.read([name, healthy]).height == 2 * len(ROWS)


def test_damage_twice_overwrites_nothing(store):
    for k in (1, 2, 3):
        name = write(store)
        truncate(store.folder(name))
        with pytest.raises(DamagedRun, match=f"{name}-{k};"):
            store.read(name)
    assert len(list((store.root / "damaged").iterdir())) == 3


def test_all_damaged_runs_are_named_at_once(store):
    names = [write(store, {"seed": seed}) for seed in range(3)]
    truncate(store.folder(names[0]))
    change_a_digit(store.folder(names[2]))
    with pytest.raises(DamagedRun, match="only these runs are recomputed") as caught:
        store.read(names)
    assert names[0] in str(caught.value) and names[2] in str(caught.value)
    assert [store.has(name) for name in names] == [False, True, False]


def test_a_damaged_manifest_or_checkpoint_is_found_without_reading_rows(store):
    name = write(store)
    (store.folder(name) / "manifest.json").write_text("")
    with pytest.raises(DamagedRun, match="not readable JSON"):
        store.manifest(name)
    with store.writing(CONFIG) as run:
        (run.folder / "checkpoint.safetensors").write_bytes(b"weights")
    (store.folder(name) / "checkpoint.safetensors").write_bytes(b"weightz")
    with pytest.raises(DamagedRun, match="is not the file that was written"):
        store.file(name, "checkpoint.safetensors")


def test_a_writer_that_meets_a_damaged_run_sets_it_aside(store):
    name = write(store)
    (store.folder(name) / "manifest.json").unlink()
    assert not store.has(name)
    with pytest.warns(UserWarning, match="manifest.json is missing.*set aside"):
        write(store)
    assert store.read(name).height == len(ROWS)
    assert (store.root / "damaged" / f"{name}-1" / "records.jsonl").exists()


def test_a_run_that_cannot_be_moved_is_left_and_said_so(store, monkeypatch):
    name = write(store)
    truncate(store.folder(name))

    def refuse(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("figures._run_folder.os.rename", refuse)
    with pytest.raises(DamagedRun, match=r"could not be set aside \(Read-only"):
        store.read(name)
    assert store.folder(name).exists()


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "G" * 16, "a" * 15])
def test_a_name_that_is_no_hash_is_refused(store, name):
    with pytest.raises(ValueError, match="16 hexadecimal digits"):
        store.read(name)


# ---- places that cannot be written


def test_results_below_a_file_are_refused_at_once(tmp_path):
    (tmp_path / "results").write_text("not a folder")
    for root in (tmp_path / "results", tmp_path / "results" / "runs"):
        with pytest.raises(OutputError, match="results is not a folder; choose another"):
            RunStore(root)
    assert (tmp_path / "results").read_text() == "not a folder"


def test_a_dangling_link_is_refused(tmp_path):
    (tmp_path / "results").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputError, match="is not a folder"):
        RunStore(tmp_path / "results" / "runs")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder nobody can write")
def test_a_place_nobody_can_write_is_refused():
    with pytest.raises(OutputError, match="cannot write results to /proc/self/runs"):
        RunStore("/proc/self/runs")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="Permission denied"):
        RunStore(tmp_path / "runs")


def test_too_long_a_name_is_one_sentence(tmp_path):
    with pytest.raises(OutputError, match="too long"):
        RunStore(tmp_path / ("x" * 5000))


def test_a_full_disk_is_one_sentence_and_leaves_nothing(store, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("figures._run.os.fsync", full)
    with pytest.raises(OutputError, match="No space left on device; free some space"):
        write(store)
    assert list(store.root.iterdir()) == []


# ---- atomic files, environment


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = write_atomically(tmp_path / "new" / "a.txt", "one")
    assert write_atomically(path, b"two").read_bytes() == b"two"
    assert path.stat().st_mode & 0o077 == 0o066 & ~current_umask()

    def refuse(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("figures._files.os.replace", refuse)
    with pytest.raises(OutputError, match=r"cannot write .*a\.txt: Input/output error"):
        write_atomically(path, b"three")
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]
    assert path.read_bytes() == b"two"


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_commit_is_that_of_this_checkout_only(tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
        subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True
        )

    assert git_commit(tmp_path) is None
    git("init")
    assert git_commit(tmp_path) is None
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-m", "one")
    clean = git_commit(tmp_path)
    assert clean is not None and len(str(clean["commit"])) == 40 and clean["modified"] is False
    (tmp_path / "file").write_text("2")
    assert git_commit(tmp_path) == clean | {"modified": True}
    (tmp_path / "site-packages").mkdir()
    assert git_commit(tmp_path / "site-packages") is None
