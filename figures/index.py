"""Which runs a section showed last, and in which files: what `--redraw` draws again."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from figures._files import explained, write_atomically

OPTIONS: dict[str, tuple[type, ...]] = {
    "section": (str,),
    "preset": (str,),
    "federation": (str,),
    "seeds": (int, type(None)),
    "device": (str,),
    "theory_only": (bool,),
}
"""The options that a reader of the results needs, and their types."""

LATER: dict[str, tuple[type, ...]] = {"data": (str, type(None)), "folds": (str, type(None))}
"""Options that indices of former versions lack."""


# A name that leads out of the section's folder, or to what is no drawing, is never removed.
_DRAWN = re.compile(r"(figures|tables)/[\w-][\w.-]*\.(pdf|png|csv|tex)")


class BadIndex(ValueError):
    """There is no index, or it is not what was written."""


def write_index(
    path: Path, section: str, options: Mapping[str, Any], runs: Sequence[str]
) -> dict[str, Any]:
    """Writes the index of a section, and gives it; the files of the former one stay listed.

    Raises:
        OutputError: the file cannot be written.
    """
    kept = {key: options[key] for key in OPTIONS}
    data = options.get("data")
    kept["data"] = None if data is None else str(data).encode("utf-8", "backslashreplace").decode()
    kept["folds"] = options.get("folds")
    index: dict[str, Any] = {"section": section, "options": kept}
    index["runs"] = list(runs)
    index["files"] = {}
    with suppress(BadIndex):
        index["files"] = read_index(path, section).get("files", {})
    return _written(path, index)


def replace_files(path: Path, section: str, written: Iterable[Path]) -> None:
    """Lists a section's new figures and tables, and removes the former ones not among them.

    A file is removed only where it still holds, byte for byte, what this program wrote into it.

    Args:
        path: the index, in the folder of the section.
        section: its name.
        written: every file that was written this time, in that folder.

    Raises:
        BadIndex: the index is not there, or damaged.
        OutputError: a file cannot be removed, or the index not written.
    """
    index = read_index(path, section)
    names = {file.relative_to(path.parent).as_posix(): file for file in written}
    new = {name: _content(file) for name, file in names.items() if _DRAWN.fullmatch(name)}
    for name, content in index.get("files", {}).items():
        file = path.parent / name
        if name in new or file.is_symlink() or not file.is_file():
            continue
        with explained("remove the former", file):
            if _content(file) == content:
                file.unlink(missing_ok=True)
    _written(path, {**index, "files": new})


def _content(file: Path) -> str:
    with explained("read", file):
        return hashlib.sha256(file.read_bytes()).hexdigest()


def _written(path: Path, index: dict[str, Any]) -> dict[str, Any]:
    index["sha256"] = _digest(index)
    write_atomically(path, json.dumps(index, indent=2) + "\n")
    return index


def read_index(path: Path, section: str) -> dict[str, Any]:
    """The index of a section.

    Raises:
        BadIndex: it is not there, or damaged.
    """
    try:
        index = json.loads(path.read_bytes())
        trouble = _trouble(index, section)
        if not trouble:
            return index
    except (FileNotFoundError, NotADirectoryError):
        text = f"There is nothing to redraw in {path.parent}: run without --redraw."
        raise BadIndex(text) from None
    except RecursionError:
        trouble = "it is nested too deeply"
    except (ValueError, OSError) as error:
        trouble = str(error)
    raise BadIndex(f"{path} cannot be read ({trouble}): run without --redraw.")


def _trouble(index: Any, section: str) -> str:
    """What is wrong with an index; empty where nothing is."""
    if not isinstance(index, dict) or index.get("section") != section:
        return "it is not this section's"
    options, runs = index.get("options"), index.get("runs")
    if not isinstance(options, dict) or not all(
        type(options.get(key, missing)) in kinds
        for known, missing in ((OPTIONS, ...), (LATER, None))
        for key, kinds in known.items()
    ):
        return "its options are not what was written"
    if not isinstance(runs, list) or not runs or len(runs) != len({*map(repr, runs)}):
        return "it names no runs, or one twice"
    if not all(isinstance(run, str) and re.fullmatch("[0-9a-f]{16}", run) for run in runs):
        return "its runs are not what was written"
    files = index.get("files", {})
    if not isinstance(files, dict) or not all(
        _DRAWN.fullmatch(name)
        and isinstance(content, str)
        and re.fullmatch("[0-9a-f]{64}", content)
        for name, content in files.items()
    ):
        return "its files are not what was written"
    # Indices of former versions have no hash, and no files.
    if index.get("sha256", _digest(index)) != _digest(index):
        return "it is not what was written"
    return ""


def _digest(index: Mapping[str, Any]) -> str:
    """Finds what the eye does not: a run left out, another preset."""
    parts = ("section", "options", "runs", "files")
    text = json.dumps([index[key] for key in parts if key in index], sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
