"""A finished run's weights on disk (safetensors): the server's, and what stays with each client."""

import errno
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeGuard

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from empirical.checks import is_real, is_whole
from empirical.state import STATUSES, FederationState
from empirical.weights import Weights

_FORMAT = "unifed-1"


def save_checkpoint(path: str | os.PathLike[str], state: FederationState) -> None:
    """Writes `state` aside and renames it to `path`, so that no half-written file is seen.

    Raises:
        ValueError: a client is called "server".
        OSError: the folder is missing or full, or `path` is there and no regular file; an older
            checkpoint stays as it was.
    """
    if "server" in state.clients:
        raise ValueError("'server' names the server's own weights: rename that client")
    owners = ["server", *sorted(state.clients)]
    models: dict[str, Weights] = {"server": state.server, **state.clients}
    flat = {  # cloned: safetensors takes no two tensors of one memory
        f"{number}/{name}": tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for number, owner in enumerate(owners)
        for name, tensor in models[owner].items()
    }
    about = {
        "format": _FORMAT,
        "owners": owners,
        "status": state.status,
        "round": state.round,
        "p": dict(state.p),
        "notes": state.notes,
    }
    target = Path(path)
    aside = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        if target.exists() and not target.is_file():
            raise OSError("it is there and no regular file")
        try:
            # One entry: safetensors writes several in any order, and equal states other bytes.
            save_file(flat, aside, {"about": json.dumps(about, sort_keys=True)})
            aside.replace(target)
        finally:
            aside.unlink(missing_ok=True)
    except (OSError, SafetensorError) as error:
        full = _number(error) in (errno.ENOSPC, errno.EDQUOT)
        advice = "free some space" if full else "give a file's name in a folder that takes files"
        failure = OSError(f"the checkpoint {target} cannot be written ({error}): {advice}")
        failure.errno = _number(error)
        raise failure from error


def _number(error: Exception) -> int | None:
    """The system's number of what went wrong, which safetensors has in its words alone."""
    if isinstance(error, OSError):
        return error.errno
    found = re.search(r"os error (\d+)", str(error))
    return int(found[1]) if found else None


def load_checkpoint(path: str | os.PathLike[str]) -> FederationState:
    """Reads what `save_checkpoint` wrote, onto the CPU.

    `load(model, state.weights("mnist"))` puts a client's model together.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a damaged file, or one that is no checkpoint of this package.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no checkpoint at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged or no safetensors file: {error}") from error
    # Former versions named the format beside the description.
    if metadata.get("format", _FORMAT if "about" in metadata else None) != _FORMAT:
        raise ValueError(f"{path} is no checkpoint of a federation (format {_FORMAT})")
    try:
        return _state(json.loads(metadata["about"]), tensors)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(
            f"{path} is damaged: it says of itself what no checkpoint says ({error!r}); save it "
            "again"
        ) from error


def _state(about: Mapping[str, object], tensors: Weights) -> FederationState:
    """The state of a file, all of whose entries are to be what `save_checkpoint` writes."""
    owners, p, notes = about["owners"], about["p"], about["notes"]
    status, round_ = about["status"], about["round"]
    if not (_texts(owners) and owners[:1] == ["server"] and len(set(owners)) == len(owners)):
        raise ValueError(f"owners {owners!r}")
    if not (isinstance(p, dict) and all(map(is_real, p.values()))):
        raise ValueError(f"p {p!r}")
    if not (_texts(notes) and status in STATUSES and is_whole(round_) and round_ >= 0):
        raise ValueError(f"status {status!r}, round {round_!r}, notes {notes!r}")
    models: dict[str, Weights] = {str(number): {} for number in range(len(owners))}
    for key, tensor in tensors.items():
        number, _, name = key.partition("/")
        models[number][name] = tensor
    server, *clients = models.values()
    return FederationState(
        status, round_, server, dict(zip(owners[1:], clients, strict=True)), p, tuple(notes)
    )


def _texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)
