"""Files that appear whole or not at all, and one clear sentence where they cannot."""

import errno
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: no advisory locks; staleness then goes by age
    fcntl = None


class OutputError(ValueError):
    """The place for results cannot be written or read."""


def shown(path: Path) -> str:
    """The path as a reader wants it: relative where it lies below the current folder."""
    with suppress(ValueError, OSError):
        return str(path.relative_to(Path.cwd()))
    return str(path)


@contextmanager
def explained(doing: str, path: Path) -> Iterator[None]:
    """Turns an OSError inside the block into an OutputError that says what was being done."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        advice = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        raise OutputError(
            f"cannot {doing} {shown(path)}: {why}; "
            f"{advice or 'choose another folder with --out or mend its permissions'}"
        ) from error


def writable_folder(folder: Path) -> Path:
    """Creates the folder with its parents and proves, by writing, that it takes files.

    Raises:
        OutputError: it is a file, lies below a file, or refuses a new file.
    """
    for ancestor in (folder, *folder.parents):
        with explained("look at", ancestor):
            exists, is_folder = os.path.lexists(ancestor), ancestor.is_dir()
        if exists and not is_folder:
            raise OutputError(
                f"cannot write results to {shown(folder)}: {shown(ancestor)} is not a folder; "
                "choose another folder with --out"
            )
    with explained("write results to", folder):
        folder.mkdir(parents=True, exist_ok=True)
        # A trial is the only honest probe: permission bits do not know quotas or read-only mounts.
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"probe")
    return folder


def sync_folder(folder: Path) -> None:
    """Makes renames inside the folder durable, where the platform can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_atomically(path: Path, content: bytes | str) -> Path:
    """Replaces the file in one step; a reader sees the old content or the new one.

    Raises:
        OutputError: the folder cannot be made or written.
    """
    path = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    with explained("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
        sync_folder(path.parent)
    return path


def left_traceback(out: Path, text: str) -> str:
    """Writes the traceback of a failed task to a file in the results; says where it is."""
    with suppress(RuntimeError):  # no home folder
        out = out.expanduser()
    try:
        return f"Its traceback is in {write_atomically(out / 'traceback.txt', text)}"
    except OutputError as trouble:
        return f"Its traceback is lost ({trouble})"


def to_json(value: object, what: str) -> str:
    """Indented JSON in the order given; refuses NaN and what JSON has no word for."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} cannot be written as JSON: {error}") from error


def lock_folder(folder: Path, *, wait: bool) -> int | None:
    """Takes an exclusive lock that dies with its process; the open descriptor, or None.

    None means that this file system or platform knows no such locks.

    Raises:
        BlockingIOError: another living process holds it, and `wait` is false.
    """
    if fcntl is None:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def unlock(descriptor: int | None) -> None:
    """Releases what `lock_folder` took."""
    if descriptor is not None:
        os.close(descriptor)


def _umask() -> int:
    # mkstemp makes private files; results are as public as the user's other files.
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o022
