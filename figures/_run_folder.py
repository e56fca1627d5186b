"""What makes a folder a valid run, and where invalid, stale and replaced folders go."""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from figures._files import explained, lock_folder, shown, unlock
from figures._rows import decode

RECORDS, MANIFEST = "records.jsonl", "manifest.json"
RECORDS_VERSION = 1
STATUS = ("complete", "diverged")
# Only where locks do not work: no run that still writes leaves its folder alone for a day.
_STALE_SECONDS = 86_400.0


class Damage(Exception):
    """Why a folder is no valid run."""


def config_hash(config: Mapping[Any, Any]) -> str:
    """The name of a run: 16 hexadecimal digits of SHA-256 over the config's canonical JSON.

    Raises:
        TypeError: a key is not a string, or a value is not plain JSON.
        ValueError: a number is not finite.
    """
    _plain("config", config)
    text = json.dumps(config, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


def sha256(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def same_content(one: Path, other: Path) -> bool:
    """Whether two runs have the same records and further files; manifests hold times."""
    digests = []
    for folder in (one, other):
        files = sorted(f for f in folder.rglob("*") if f.is_file() and f.name != MANIFEST)
        digests.append({file.relative_to(folder).as_posix(): sha256(file) for file in files})
    return digests[0] == digests[1]


def checked_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run, whose further files are there in their sizes.

    Raises:
        Damage: it is missing, unreadable, of another version or of another run, or a file is gone.
    """
    try:
        manifest = json.loads(_content(folder, MANIFEST))
    except (ValueError, RecursionError) as error:
        raise Damage(f"{MANIFEST} is not readable JSON: {error}") from error
    if not isinstance(manifest, dict):
        raise Damage(f"{MANIFEST} is not a JSON object")
    version = manifest.get("records_version")
    if version != RECORDS_VERSION:
        raise Damage(
            f"{MANIFEST} has records version {version!r}, this program reads {RECORDS_VERSION}"
        )
    if not _names(manifest.get("config"), folder.name):
        raise Damage(f"{MANIFEST} describes another run")
    if manifest.get("status") not in STATUS or not _lists_files(manifest.get("files")):
        raise Damage(f"{MANIFEST} lacks a valid status or its list of files")
    for key, fits in _SHAPES.items():
        if key in manifest and not fits(manifest[key]):
            raise Damage(f"{MANIFEST} has {key} that are not what was written")
    for name, about in manifest["files"].items():
        size = _size(folder, name)
        if size != about["bytes"]:
            found = "is missing" if size is None else f"has {size} bytes, not {about['bytes']}"
            raise Damage(f"{name} {found}")
    return manifest


def checked_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a run, held against its manifest.

    Raises:
        Damage: they are not what was written.
    """
    manifest = checked_manifest(folder)
    content = _content(folder, RECORDS)
    if content and not content.endswith(b"\n"):
        raise Damage(f"the last line of {RECORDS} is cut off")
    if hashlib.sha256(content).hexdigest() != manifest.get("records_sha256"):
        raise Damage(f"the SHA-256 of {RECORDS} is not the one in the manifest")
    rows = []
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        try:
            rows.append(decode(line))
        except (ValueError, RecursionError) as error:
            raise Damage(f"line {number} of {RECORDS} is no record: {error}") from error
    if len(rows) != manifest.get("rows"):
        raise Damage(f"{RECORDS} has {len(rows)} rows, the manifest says {manifest.get('rows')}")
    return rows


def set_aside(folder: Path, reason: str) -> str:
    """Moves a damaged run to `damaged/` beside it; says so in a clause."""
    try:
        place = move(folder, folder.parent / "damaged")
    except OSError as error:
        why = error.strerror or str(error)
        return (
            f"{shown(folder)} is damaged ({reason}) and could not be set aside ({why}): "
            "move it away yourself"
        )
    return f"{shown(folder)} is damaged ({reason}) and was set aside as {shown(place)}"


def move(folder: Path, into: Path) -> Path:
    """Renames a folder to the first free `<into>/<name>-<k>`; never onto what is there."""
    into.mkdir(exist_ok=True)
    k = 1
    while os.path.lexists(into / f"{folder.name}-{k}"):
        k += 1
    place = into / f"{folder.name}-{k}"
    os.rename(folder, place)
    return place


def remove_if_stale(partial: Path) -> None:
    """Removes what a killed writer left; a living writer holds its folder's lock."""
    with suppress(OSError):
        lock = lock_folder(partial, wait=False)
        if lock is None and time.time() - _last_change(partial) < _STALE_SECONDS:
            return
        shutil.rmtree(partial, ignore_errors=True)
        unlock(lock)


def _last_change(folder: Path) -> float:
    return max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))


def _names(config: object, name: str) -> bool:
    # json.loads lets NaN pass, which config_hash refuses.
    with suppress(ValueError, RecursionError):
        return isinstance(config, dict) and config_hash(config) == name
    return False


def _lists_files(files: object) -> bool:
    return isinstance(files, dict) and all(
        isinstance(about, dict)
        and type(about.get("bytes")) is int
        and isinstance(about.get("sha256"), str)
        for about in files.values()
    )


def _maps_to(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(type(v) is kind for v in value.values())


_SHAPES: dict[str, Callable[[Any], bool]] = {
    "notes": lambda value: isinstance(value, list) and all(isinstance(n, str) for n in value),
    "versions": _maps_to(str),
    "threads": _maps_to(int),
}
"""What a reader of the results relies on beside the config."""


def _size(folder: Path, name: str) -> int | None:
    absent = (FileNotFoundError, NotADirectoryError, ValueError)  # ValueError: no name of a file
    with explained("read", folder / name), suppress(*absent):
        return (folder / name).stat().st_size
    return None


def _content(folder: Path, name: str) -> bytes:
    # A file that may not be read is no damaged file: say so and leave it where it is.
    with explained("read", folder / name):
        try:
            return (folder / name).read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise Damage(f"{name} is missing") from error


def _plain(where: str, value: object) -> None:
    """Refuses what JSON would refuse or silently change."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}: keys must be strings")
            _plain(f"{where}[{key!r}]", item)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _plain(f"{where}[{index}]", item)
    elif isinstance(value, float):
        if value - value != 0:
            raise ValueError(f"{where} is {value}: a config holds finite numbers only")
    elif value is not None and not isinstance(value, (str, int)):
        raise TypeError(
            f"{where} is a {type(value).__name__}: use strings, numbers, booleans, lists and dicts"
        )
