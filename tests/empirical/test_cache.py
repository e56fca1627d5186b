import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from federations import toy_federation

from empirical.data import cache, digits, load_federation, pins, sources
from empirical.data.client import Client, Split, fingerprint


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNIFED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def toys():
    return toy_federation((7, 5), classes=3, image=9, test=4)


def test_what_is_written_is_read_back(toys):
    file = cache.path("toys", {"recipe": "1"})
    assert cache.read(file) is None
    cache.write(file, toys)
    back = cache.read(file, fingerprint(toys))
    assert [client.name for client in back] == ["toy-0", "toy-1"]
    assert fingerprint(back) == fingerprint(toys)
    assert back[0].train.classes == 3
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]


def test_another_key_is_another_file():
    first = cache.path("digits", {"recipe": "1", "numpy": "2.4"})
    assert first == cache.path("digits", {"numpy": "2.4", "recipe": "1"})
    assert first != cache.path("digits", {"recipe": "2", "numpy": "2.4"})


def test_the_users_cache_folder_is_the_default(monkeypatch):
    import platformdirs

    monkeypatch.delenv("UNIFED_CACHE")
    assert str(cache.folder()) == platformdirs.user_cache_dir("unifed", appauthor=False)


def truncated(content):
    return content[: len(content) // 2]


def flipped(content):
    return content[:-100] + bytes([content[-100] ^ 1]) + content[-99:]


@pytest.mark.parametrize(
    "damage",
    [truncated, flipped, lambda _: b"", lambda _: b"not a federation", lambda c: c[:8] + b"x" * 99],
)
def test_a_damaged_file_is_set_aside_whole(toys, damage):
    file = cache.path("toys", {})
    cache.write(file, toys)
    broken = damage(file.read_bytes())
    file.write_bytes(broken)
    with pytest.warns(UserWarning, match="was damaged .*set aside as toys-.*damaged-"):
        assert cache.read(file) is None
    (aside,) = file.parent.iterdir()
    assert aside != file and aside.read_bytes() == broken
    cache.write(file, toys)
    assert cache.read(file) is not None
    assert aside.exists()


def test_a_file_of_another_federation_or_without_metadata_is_damaged(toys):
    import safetensors.torch

    file = cache.path("toys", {})
    cache.write(file, toys)
    with pytest.warns(UserWarning, match="not the pinned ones"):
        assert cache.read(file, {"other": {}}) is None
    file.write_bytes(safetensors.torch.save({"x": torch.zeros(1)}))
    with pytest.warns(UserWarning, match="was damaged"):
        assert cache.read(file) is None
    assert len(list(file.parent.iterdir())) == 2


def test_a_folder_that_cannot_be_written_costs_a_warning_only(toys, tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("UNIFED_CACHE", str(blocked / "cache"))
    with pytest.warns(UserWarning, match=r"cannot cache .*set UNIFED_CACHE"):
        cache.write(cache.path("toys", {}), toys)
    assert blocked.read_text() == "in the way"


def test_a_home_that_is_not_there_costs_a_warning_only(toys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNIFED_CACHE", "~no-such-user/cache")
    built = quick_build(monkeypatch, toys)
    pin(monkeypatch, {"sha256": fingerprint(toys), "versions": [sources.versions()]})
    for count in (1, 2):
        with pytest.warns(UserWarning, match=r"cannot cache .*set UNIFED_CACHE") as caught:
            assert fingerprint(load_federation("digits")) == fingerprint(toys)
        assert len(caught) == 1 and len(built) == count
    assert list(tmp_path.iterdir()) == []


def test_a_home_is_found(toys, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("UNIFED_CACHE", "~/cache")
    file = cache.path("toys", {})
    cache.write(file, toys)
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == [file.name]
    assert cache.read(file, fingerprint(toys)) is not None


def test_a_folder_in_place_of_the_file_is_set_aside_once(toys, monkeypatch):
    built = quick_build(monkeypatch, toys)
    pin(monkeypatch, {"sha256": fingerprint(toys), "versions": [sources.versions()]})
    file = cache.path(digits.NAME, {"recipe": str(digits.RECIPE), **sources.versions()})
    file.mkdir(parents=True)
    (file / "kept").write_text("kept")
    with pytest.warns(UserWarning, match=r"damaged \(it is a folder\).*set aside as") as caught:
        load_federation("digits")
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_federation("digits")
    (aside,) = (entry for entry in file.parent.iterdir() if entry.is_dir())
    assert len(built) == 1 and (aside / "kept").read_text() == "kept"


def test_a_warning_shows_the_users_own_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from empirical import load_federation\n\nclients = load_federation('digits')\n"
    )
    blocked = tmp_path / "blocked"
    blocked.write_text("in the way")
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "UNIFED_CACHE": str(blocked / "cache"), "PYTHONPATH": root}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    shown = [line for line in done.stderr.splitlines() if "Warning: cannot" in line]
    assert shown and all(line.startswith(f"{script}:3: UserWarning: ") for line in shown)


def test_a_failed_write_leaves_nothing_behind(toys, monkeypatch):
    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "fsync", no_space)
    file = cache.path("toys", {})
    with pytest.warns(UserWarning, match="No space left"):
        cache.write(file, toys)
    assert list(file.parent.iterdir()) == []


def quick_build(monkeypatch, clients):
    built = []

    def build(progress=None):
        built.append(True)
        if progress:
            progress(0.5)
        return clients

    monkeypatch.setattr(digits, "build", build)
    return built


def pin(monkeypatch, *entries):
    monkeypatch.setattr(pins, "pinned", lambda: list(entries))


def test_known_versions_are_built_once_and_then_read(toys, monkeypatch):
    built = quick_build(monkeypatch, toys)
    pin(monkeypatch, {"sha256": fingerprint(toys), "versions": [sources.versions()]})
    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = load_federation("digits", progress=told.append)
        second = load_federation("digits", progress=told.append)
    assert len(built) == 1 and told == [0.5, 1.0, 1.0]
    assert fingerprint(first) == fingerprint(second) == fingerprint(toys)


def test_known_versions_with_other_pixels_are_an_error(toys, monkeypatch):
    quick_build(monkeypatch, toys)
    expected = fingerprint(toys)
    expected["toy-1"]["test_images"] = "0" * 64
    pin(monkeypatch, {"sha256": expected, "versions": [sources.versions()]})
    with pytest.raises(ValueError, match=r"different in toy-1/test_images although.*reinstall"):
        load_federation("digits")
    assert not cache.path("digits", {"recipe": "1", **sources.versions()}).exists()


def test_unknown_versions_warn_of_new_hashes_once(toys, monkeypatch):
    built = quick_build(monkeypatch, toys)
    pin(monkeypatch)
    digest = fingerprint(toys)["toy-0"]["train_images"]
    with pytest.warns(UserWarning, match=f"new pixels.*{digest}") as caught:
        load_federation("digits")
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_federation("digits")
    assert len(built) == 1


def test_unknown_versions_with_pinned_pixels_are_silent(toys, monkeypatch):
    quick_build(monkeypatch, toys)
    pin(monkeypatch, {"sha256": fingerprint(toys), "versions": [{"numpy": "0"}]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_federation("digits")


def test_a_cache_with_other_than_the_pinned_pixels_is_rebuilt(toys, monkeypatch):
    file = cache.path("digits", {"recipe": str(digits.RECIPE), **sources.versions()})
    train = toys[0].train
    cache.write(file, [Client("x", train, Split(train.images, train.labels, 3))])
    built = quick_build(monkeypatch, toys)
    pin(monkeypatch, {"sha256": fingerprint(toys), "versions": [sources.versions()]})
    with pytest.warns(UserWarning, match="set aside"):
        assert len(load_federation("digits")) == 2
    assert built and len(list(file.parent.iterdir())) == 2


@pytest.mark.slow
def test_processes_that_build_at_once_all_succeed(own_cache):
    code = (
        "import warnings; warnings.simplefilter('error');"
        "from empirical.data import load_federation, fingerprint;"
        "print(fingerprint(load_federation('digits')))"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    outputs = [process.communicate(timeout=120)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0]
    assert len(set(outputs)) == 1 and "synth-digits" in outputs[0]
    assert [entry.suffix for entry in own_cache.iterdir()] == [".safetensors"]
