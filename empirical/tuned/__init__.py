"""The hyper-parameters that were chosen on validation images and committed, by data and net."""

import functools
import json
from importlib import resources
from typing import Any


def file_name(federation: str, model: str) -> str:
    """What the file of the choices for a federation with a net is called."""
    return f"{federation}.{model}.json"


@functools.cache
def _committed(name: str) -> dict[str, Any]:
    """A committed file; empty where there is none."""
    for file in resources.files(__name__).iterdir():
        if file.name == name:
            return json.loads(file.read_text(encoding="utf-8"))
    return {}


def record(federation: str, data_sha256: str, model: str) -> dict[str, Any]:
    """The committed record of what was tried and chosen on these data with this net, or nothing."""
    found = _committed(file_name(federation, model))
    same = found.get("data_sha256") == data_sha256 and found.get("model") == model
    return found if same else {}


def choices(federation: str, data_sha256: str, model: str) -> dict[str, dict[str, float]]:
    """Algorithm -> its chosen settings, where they were chosen on these data with this net.

    Otherwise it is empty, and the authors' defaults stay.
    """
    return record(federation, data_sha256, model).get("choice", {})
