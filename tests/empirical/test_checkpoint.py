from pathlib import Path

import pytest
import torch
from federations import toy_federation
from safetensors.torch import save_file

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


def test_a_failed_write_leaves_the_old_file(
    state: FederationState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "checkpoint"
    save_checkpoint(path, state)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("empirical.checkpoint.save_file", full)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(path, state)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
