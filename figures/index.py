"""Which runs a section showed last: what `--redraw` draws again."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from figures._files import write_atomically

OPTIONS: dict[str, tuple[type, ...]] = {
    "section": (str,),
    "preset": (str,),
    "federation": (str,),
    "seeds": (int, type(None)),
    "device": (str,),
    "theory_only": (bool,),
}
"""The options that a reader of the results needs, and their types."""

LATER: dict[str, tuple[type, ...]] = {"data": (str, type(None))}
"""Options that indices of former versions lack."""


class BadIndex(ValueError):
    """There is no index, or it is not what was written."""


def write_index(
    path: Path, section: str, options: Mapping[str, Any], runs: Sequence[str]
) -> dict[str, Any]:
    """Writes the index of a section, and gives it.

    Raises:
        OutputError: the file cannot be written.
    """
    kept = {key: options[key] for key in OPTIONS}
    data = options.get("data")
    kept["data"] = None if data is None else str(data).encode("utf-8", "backslashreplace").decode()
    index: dict[str, Any] = {"section": section, "options": kept}
    index["runs"] = list(runs)
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
    # Indices of former versions have no hash.
    if index.get("sha256", _digest(index)) != _digest(index):
        return "it is not what was written"
    return ""


def _digest(index: Mapping[str, Any]) -> str:
    """Finds what the eye does not: a run left out, another preset."""
    text = json.dumps([index[key] for key in ("section", "options", "runs")], sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
