import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from federations import toy_federation
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from empirical.algorithms import build_algorithm
from empirical.bn_policy import CLIENT_SPECIFIC
from empirical.checkpoint import load_checkpoint, save_checkpoint
from empirical.federate import federate
from empirical.models import build_model
from empirical.schedule import Schedule
from empirical.state import FederationState
from empirical.weights import load


@pytest.fixture(scope="module")
def state() -> FederationState:
    clients = toy_federation((9, 12), test=8)
    schedule = Schedule(1, batch_size=8, participation=0.5)
    run = federate(
        build_algorithm("fedavg"), CLIENT_SPECIFIC, build_model("compact_cnn", 0), clients, schedule
    )
    assert list(run)
    return run.state


def test_a_checkpoint_gives_back_every_bit(state: FederationState, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, state)
    back = load_checkpoint(path)
    assert list(tmp_path.iterdir()) == [path]
    assert (back.status, back.round, back.p, back.notes) == (
        "complete",
        1,
        dict(state.p),
        state.notes,
    )
    assert sum(bool(own) for own in back.clients.values()) == 1
    for name in ("server", "toy-0", "toy-1"):
        one, two = state.weights(name), back.weights(name)
        assert one.keys() == two.keys()
        assert all(torch.equal(one[k], two[k]) and one[k].dtype == two[k].dtype for k in one)
    model = build_model("compact_cnn", 9)
    load(model, back.weights("toy-0"))
    assert torch.equal(model.state_dict()["0.weight"], state.server["0.weight"])


def test_unknown_clients_are_named(state: FederationState) -> None:
    with pytest.raises(ValueError, match=r"unknown client 'toy-7'.*toy-0, toy-1"):
        state.weights("toy-7")


def test_damaged_and_foreign_files_are_refused(state: FederationState, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        load_checkpoint(tmp_path / "nothing")
    path = tmp_path / "cut"
    save_checkpoint(path, state)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="damaged"):
        load_checkpoint(path)
    other = tmp_path / "other"
    save_file({"w": torch.ones(1)}, other)
    with pytest.raises(ValueError, match="no checkpoint of a federation"):
        load_checkpoint(other)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError("I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_failed_write_leaves_the_old_file(
    state: FederationState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    path = tmp_path / "checkpoint"
    save_checkpoint(path, state)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr("empirical.checkpoint.save_file", full)
    words = r"checkpoint .* cannot be written \(.*No space left.*\): free some space$"
    with pytest.raises(OSError, match=words) as caught:
        save_checkpoint(path, state)
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_is_an_os_error(state: FederationState, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("kept")
    for path in (tmp_path / "missing" / "checkpoint", in_the_way / "checkpoint"):
        with pytest.raises(OSError, match=r"checkpoint .* cannot be written .*takes files"):
            save_checkpoint(path, state)
    assert list(tmp_path.iterdir()) == [in_the_way]
    assert in_the_way.read_text() == "kept"


def test_only_a_regular_file_is_replaced(state: FederationState, tmp_path: Path) -> None:
    folder, pipe, device = tmp_path / "folder", tmp_path / "pipe", tmp_path / "device"
    folder.mkdir()
    os.mkfifo(pipe)
    device.symlink_to("/dev/null")
    for path in (folder, pipe, device):
        with pytest.raises(OSError, match="it is there and no regular file"):
            save_checkpoint(path, state)
    assert folder.is_dir() and pipe.is_fifo() and device.is_char_device()
    assert len(list(tmp_path.iterdir())) == 3


def test_equal_states_give_equal_bytes(state: FederationState, tmp_path: Path) -> None:
    for number in range(8):  # by chance alone once in 128 runs
        save_checkpoint(tmp_path / str(number), state)
    assert len({(tmp_path / str(number)).read_bytes() for number in range(8)}) == 1


def test_a_checkpoint_of_a_former_version_is_read(state: FederationState, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", state)
    with safe_open(tmp_path / "c", framework="pt") as file:
        about = file.metadata()["about"]
    save_file(load_file(tmp_path / "c"), tmp_path / "c", {"format": "unifed-1", "about": about})
    assert load_checkpoint(tmp_path / "c").round == state.round
    save_file(load_file(tmp_path / "c"), tmp_path / "c", {"format": "unifed-9", "about": about})
    with pytest.raises(ValueError, match="is no checkpoint"):
        load_checkpoint(tmp_path / "c")


def test_tensors_of_one_memory_are_saved_each(state: FederationState, tmp_path: Path) -> None:
    whole = torch.arange(6.0).reshape(2, 3)
    server = {"whole": whole, "again": whole, "row": whole[1], "turned": whole.T}
    save_checkpoint(tmp_path / "c", replace(state, server=server))
    back = load_checkpoint(tmp_path / "c").server
    assert all(torch.equal(back[name], tensor) for name, tensor in server.items())


def test_a_client_called_server_is_not_saved(state: FederationState, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="rename that client"):
        save_checkpoint(tmp_path / "c", replace(state, clients={"server": {}}))


@pytest.mark.parametrize(
    "change",
    [
        {"owners": ["server", "toy-0", "toy-0"]},
        {"owners": ["toy-0", "server", "toy-1"]},
        {"owners": ["server", "toy-0"]},
        {"owners": ["server", "toy-0", 1]},
        {"owners": ["server", "toy-0", []]},
        {"owners": "server"},
        {"owners": []},
        {"owners": None},
        {"status": "paused"},
        {"status": []},
        {"round": -1},
        {"round": "1"},
        {"p": [0.5, 0.5]},
        {"p": {"toy-0": "half"}},
        {"notes": "text"},
        {"notes": [1]},
    ],
    ids=str,
)
def test_a_damaged_description_is_refused(state: FederationState, tmp_path: Path, change) -> None:
    def about(said: dict) -> str:
        return json.dumps({**said, **change})

    with pytest.raises(ValueError, match="is damaged: it says of itself"):
        load_checkpoint(rewritten(tmp_path, state, about=about))


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "{}", "[" * 100_000])
def test_a_description_that_is_none_is_refused(
    state: FederationState, tmp_path: Path, text: str
) -> None:
    with pytest.raises(ValueError, match="is damaged: it says of itself"):
        load_checkpoint(rewritten(tmp_path, state, about=lambda _: text))


@pytest.mark.parametrize("key", ["-1/w", "3/w", "00/w", "+0/w", " 0/w", "w", "/w", "x/w"])
def test_a_tensor_of_nobody_is_refused(state: FederationState, tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match="is damaged: it says of itself"):
        load_checkpoint(rewritten(tmp_path, state, more={key: torch.ones(1)}))


def rewritten(folder: Path, state: FederationState, about=json.dumps, more=None) -> Path:
    """A checkpoint of which the description, or a tensor more, is another's work."""
    path = folder / "checkpoint"
    save_checkpoint(path, state)
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    said = about(json.loads(metadata["about"]))
    save_file({**load_file(path), **(more or {})}, path, {**metadata, "about": said})
    return path
