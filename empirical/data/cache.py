"""Built federations on disk: one file each, written whole or not at all, checked when read."""

import hashlib
import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path

import platformdirs
import safetensors.torch
from safetensors import SafetensorError

from empirical.checks import warn
from empirical.data.client import Client, Split, fingerprint


def folder() -> Path:
    """Where built federations lie: $UNIFED_CACHE, else the user's cache folder.

    A "~" at its start is left to `read` and `write`, for which no home is like no folder.
    """
    chosen = os.environ.get("UNIFED_CACHE")
    if chosen:
        return Path(chosen)
    return Path(platformdirs.user_cache_dir("unifed", appauthor=False))


def path(name: str, key: Mapping[str, str]) -> Path:
    """The file of a federation built under `key`; another key is another file."""
    text = json.dumps(dict(key), sort_keys=True)
    return folder() / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.safetensors"


def read(file: Path, expected: Mapping[str, object] | None = None) -> list[Client] | None:
    """The clients in `file`, or None when they are to be built.

    A file whose content is not what was written, or whose fingerprint is not `expected`, is set
    aside under another name, never deleted, with a warning; so is a folder in its place.
    """
    try:
        file = file.expanduser()
        content = file.read_bytes()
    except (FileNotFoundError, RuntimeError):  # RuntimeError: no such home, as `write` will say
        return None
    except IsADirectoryError:
        _set_aside(file, "it is a folder")
        return None
    except OSError as error:
        warn(f"cannot read the cached federation {file} ({error})")
        return None
    try:
        return _parsed(content, expected)
    except (SafetensorError, ValueError, TypeError, KeyError, AttributeError) as error:
        _set_aside(file, str(error))
        return None


def write(file: Path, clients: list[Client]) -> None:
    """Writes beside `file` and renames, so that no reader ever sees a part of it.

    Two processes may build at once: each renames its own whole file. Where the folder cannot be
    written there is a warning and no file.
    """
    tensors = {
        f"{client.name}/{part}_{array}": getattr(getattr(client, part), array).clone()
        for client in clients
        for part in ("train", "test")
        for array in ("images", "labels")
    }
    metadata = {
        "clients": json.dumps({client.name: client.train.classes for client in clients}),
        "fingerprint": json.dumps(fingerprint(clients)),
    }
    try:
        file = file.expanduser()
        aside = file.with_name(f".{file.name}.{uuid.uuid4().hex}.partial")
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with aside.open("xb") as stream:
                stream.write(safetensors.torch.save(tensors, metadata))
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(aside, file)
        finally:
            aside.unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: no such home
        warn(
            f"cannot cache the federation in {file.parent} ({error}); it stays in memory and is "
            "built again next time; set UNIFED_CACHE to a folder that can be written"
        )


def _parsed(content: bytes, expected: Mapping[str, object] | None) -> list[Client]:
    tensors = safetensors.torch.load(content)
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    metadata = header["__metadata__"]
    clients = [
        Client(
            name,
            *(
                Split(tensors[f"{name}/{part}_images"], tensors[f"{name}/{part}_labels"], classes)
                for part in ("train", "test")
            ),
        )
        for name, classes in json.loads(metadata["clients"]).items()
    ]
    found = fingerprint(clients)
    if found != json.loads(metadata["fingerprint"]):
        raise ValueError("its content has other hashes than when it was written")
    if expected is not None and found != expected:
        raise ValueError("its hashes are not the pinned ones")
    return clients


def _set_aside(file: Path, cause: str) -> None:
    aside = file.with_name(f"{file.stem}.damaged-{uuid.uuid4().hex[:8]}{file.suffix}")
    try:
        os.replace(file, aside)
    except FileNotFoundError:  # another process was faster
        return
    except OSError as error:
        warn(
            f"the cached federation {file} is damaged ({cause}) and cannot be set aside "
            f"({error}); it is built again"
        )
        return
    warn(
        f"the cached federation {file} was damaged ({cause}); it was set aside as {aside.name} "
        "and is built again"
    )
