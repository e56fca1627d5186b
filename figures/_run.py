"""A run while it is being written."""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from figures._environment import environment
from figures._files import explained, sync_folder, to_json
from figures._rows import encode
from figures._run_folder import MANIFEST, RECORDS, RECORDS_VERSION, STATUS, config_hash, sha256

_OWN_KEYS = ("records_version", "hash", "config", "rows", "records_sha256", "files")
_OWN_KEYS += ("started", "wall_seconds", "versions", "platform", "git")


class Run:
    """A run being written: rows go in with `add`, further files into `folder`.

    `manifest` takes whatever the producer wants to state, and `status`: `complete` (the default)
    or `diverged`.
    """

    def __init__(self, folder: Path, config: Mapping[Any, Any]):
        self.folder = folder
        self.hash = config_hash(config)
        self.config: dict[str, Any] = json.loads(json.dumps(config))
        self.manifest: dict[str, Any] = {}
        self._started, self._clock = datetime.now(UTC), time.perf_counter()
        self._digest, self._rows = hashlib.sha256(), 0
        self._file: IO[bytes] = (folder / RECORDS).open("wb")

    def add(self, rows: Iterable[Any]) -> None:
        """Appends rows (mappings of columns to values) in the order given; the rest is null.

        Raises:
            ValueError, TypeError: a row breaks the schema; the message names its metric.
            OutputError: the disk refuses.
        """
        if isinstance(rows, Mapping):
            raise TypeError("add takes several rows: wrap a single one in a list")
        for row in rows:
            line = encode(row)
            with explained("write", self.folder / RECORDS):
                self._file.write(line)
            self._digest.update(line)
            self._rows += 1

    def close(self) -> None:
        """Lets go of the records file."""
        with suppress(OSError):  # what fails to be flushed here was said before, or is not wanted
            self._file.close()

    def finish(self) -> None:
        """Writes the manifest last and makes everything in the folder durable."""
        content = self._full_manifest()
        with explained("write", self.folder):
            _close_durably(self._file)
            with (self.folder / MANIFEST).open("wb") as file:
                file.write(to_json(content, "the manifest").encode("utf-8"))
                _close_durably(file)
            sync_folder(self.folder)

    def _full_manifest(self) -> dict[str, Any]:
        added = dict(self.manifest)
        taken = [key for key in _OWN_KEYS if key in added]
        if taken:
            raise ValueError(f"the manifest's {taken} are set by the store: use other names")
        status = added.pop("status", "complete")
        if status not in STATUS:
            raise ValueError(f"a finished run's status is one of {list(STATUS)}, not {status!r}")
        return {
            "records_version": RECORDS_VERSION,
            "hash": self.hash,
            "status": status,
            "config": self.config,
            "rows": self._rows,
            "records_sha256": self._digest.hexdigest(),
            "files": _other_files(self.folder),
            **added,
            "started": self._started.isoformat(timespec="seconds"),
            "wall_seconds": round(time.perf_counter() - self._clock, 3),
            **environment(),
        }


def _other_files(folder: Path) -> dict[str, dict[str, Any]]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): {
            "bytes": path.stat().st_size,
            "sha256": sha256(path),
        }
        for path in found
        if path != folder / RECORDS
    }


def _close_durably(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
    file.close()
