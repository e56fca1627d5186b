"""Finished runs on disk: each is visible only when complete, and is checked when read."""

import errno
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from figures import _run_folder as rules
from figures._files import (
    OutputError,
    explained,
    lock_folder,
    shown,
    sync_folder,
    unlock,
    writable_folder,
)
from figures._rows import SCHEMA
from figures._run import Run
from figures._run_folder import MANIFEST, RECORDS_VERSION, Damage, config_hash

__all__ = [
    "RECORDS_VERSION",
    "SCHEMA",
    "DamagedRun",
    "MissingRun",
    "OutputError",
    "Run",
    "RunStore",
    "config_hash",
]


class DamagedRun(ValueError):
    """A run on disk is not what was written; it has been set aside: `what` says which and why."""

    def __init__(self, what: str, advice: str = "") -> None:
        super().__init__(f"{what}; {advice}" if advice else what)
        self.what = what


class MissingRun(ValueError):
    """A run, or a file of it, that was asked for is not there."""


class RunStore:
    """The folder of finished runs, `<root>/<config hash>/{manifest.json, records.jsonl, …}`.

    Making a store proves that the folder can be written and removes what killed writers left.

    Raises:
        OutputError: the folder cannot be made or written.
    """

    def __init__(self, root: str | Path):
        self.root = Path(root).expanduser().absolute()
        # First: what killed writers left may be what fills the disk.
        if os.path.isdir(self.root):
            self.sweep()
        writable_folder(self.root)

    def sweep(self) -> None:
        """Removes the unfinished runs of writers that were killed.

        Raises:
            OutputError: the folder cannot be looked at.
        """
        with self._guarded("look at", self.root):
            for partial in self.root.glob(".partial-*"):
                rules.remove_if_stale(partial)

    def folder(self, name: str) -> Path:
        """Where the run of this hash lies, whether it is there or not."""
        if len(name) != 16 or set(name) - set("0123456789abcdef"):
            raise ValueError(f"a run is named by 16 hexadecimal digits, not {name!r}")
        return self.root / name

    def has(self, name: str) -> bool:
        """Whether a finished run of this hash is visible; its content is checked when read."""
        return (self.folder(name) / MANIFEST).is_file()

    @contextmanager
    def writing(self, config: Mapping[Any, Any], *, fresh: bool = False) -> Iterator[Run]:
        """A new run; it becomes visible when the block ends without an exception.

        Where the same run has appeared meanwhile, that one is kept; with `fresh` it gives way: an
        older run whose content differs is moved to `<root>/replaced`, with a warning.

        Raises:
            OutputError: the run cannot be written.
        """
        name = config_hash(config)
        partial, lock = self._open_partial(name)
        run = None
        try:
            with explained("write", partial):
                run = Run(partial, config)
            yield run
            run.finish()
            self._publish(partial, self.folder(name), fresh=fresh)
        finally:
            if run is not None:
                run.close()
            shutil.rmtree(partial, ignore_errors=True)
            unlock(lock)

    def manifest(self, name: str) -> dict[str, Any]:
        """The manifest of a run.

        Raises:
            MissingRun: there is no such run.
            DamagedRun: the manifest is unreadable or not this run's; the run was set aside.
        """
        folder = self._existing(name)
        try:
            return rules.checked_manifest(folder)
        except Damage as damage:
            raise _damaged({folder: str(damage)}) from None

    def file(self, name: str, relative: str) -> Path:
        """The path of a further file of a run (a checkpoint), its content checked.

        Raises:
            MissingRun: there is no such run, or it has no such file.
            DamagedRun: the file is not what was written; the run was set aside.
        """
        files = self.manifest(name)["files"]
        path = self.folder(name) / relative
        if relative not in files:
            raise MissingRun(f"the run {name} has no file {relative!r}, only {list(files)}")
        with explained("read", path):
            intact = path.is_file() and rules.sha256(path) == files[relative].get("sha256")
        if not intact:
            raise _damaged({self.folder(name): f"{relative} is not the file that was written"})
        return path

    def read(self, names: str | Iterable[str]) -> pl.DataFrame:
        """The rows of the runs, in the order given, with the run's hash in the column `run`.

        Raises:
            MissingRun: a run is not there.
            DamagedRun: runs are damaged; all of them were set aside.
        """
        wanted = [names] if isinstance(names, str) else list(names)
        if len(set(wanted)) != len(wanted):
            raise ValueError("a run is asked for twice: its rows would count double")
        schema = {**SCHEMA, "run": pl.String}
        columns: dict[str, list[Any]] = {column: [] for column in schema}
        damaged: dict[Path, str] = {}
        for folder in [self._existing(name) for name in wanted]:
            try:
                rows = rules.checked_rows(folder)
            except Damage as damage:
                damaged[folder] = str(damage)
                continue
            for column in SCHEMA:
                columns[column].extend(row[column] for row in rows)
            columns["run"].extend([folder.name] * len(rows))
        if damaged:
            raise _damaged(damaged)
        return pl.DataFrame(columns, schema=schema, strict=True)

    def _existing(self, name: str) -> Path:
        folder = self.folder(name)
        if not folder.is_dir():
            raise MissingRun(
                f"the run {name} is not in {shown(self.root)}; run the command without --redraw"
            )
        return folder

    @contextmanager
    def _guarded(self, doing: str, path: Path) -> Iterator[None]:
        """Holds the root's lock, for the moments in which folders change their names."""
        with explained(doing, path):
            guard = lock_folder(self.root, wait=True)
            try:
                yield
            finally:
                unlock(guard)

    def _open_partial(self, name: str) -> tuple[Path, int | None]:
        # Without the guard a cleaner could come between the folder's birth and its own lock.
        with self._guarded("write a run to", self.root):
            partial = Path(tempfile.mkdtemp(prefix=f".partial-{name}-", dir=self.root))
            partial.chmod(self.root.stat().st_mode & 0o777)
            return partial, lock_folder(partial, wait=False)

    def _publish(self, partial: Path, target: Path, *, fresh: bool) -> None:
        with self._guarded("write a run to", target):
            if os.path.lexists(target) and not _makes_way(target, partial, fresh=fresh):
                return
            try:
                os.rename(partial, target)
            except OSError as error:
                # Where locks do not work, another process may have been faster: its run stays.
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            sync_folder(self.root)


def _makes_way(target: Path, partial: Path, *, fresh: bool) -> bool:
    """Whether the new run takes the place of one that is already there; moves that one."""
    try:
        rules.checked_rows(target)
    except Damage as damage:
        warnings.warn(rules.set_aside(target, str(damage)), stacklevel=2)
        return True
    if not fresh:
        return False
    if rules.same_content(target, partial):
        target.unlink() if target.is_symlink() else shutil.rmtree(target)
        return True
    place = rules.move(target, target.parent / "replaced")
    warnings.warn(
        f"the fresh content of {target.name} differs from the former one, kept in {shown(place)}",
        stacklevel=2,
    )
    return True


def _damaged(runs: Mapping[Path, str]) -> DamagedRun:
    """Sets the runs aside; the error to raise."""
    clauses = [rules.set_aside(folder, reason) for folder, reason in runs.items()]
    only = "this run is recomputed" if len(clauses) == 1 else "these runs are recomputed"
    only += ", and what starts from it" if len(clauses) == 1 else ", and what starts from them"
    return DamagedRun("; ".join(clauses), f"run the command again: only {only}")
