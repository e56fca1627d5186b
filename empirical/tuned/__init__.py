"""The hyper-parameters that were chosen on validation images and committed, by federation."""

import functools
import json
from importlib import resources
from typing import Any


@functools.cache
def _committed(federation: str) -> dict[str, Any]:
    """The committed file of a federation; empty where there is none."""
    for file in resources.files(__name__).iterdir():
        if file.name == f"{federation}.json":
            return json.loads(file.read_text(encoding="utf-8"))
    return {}


def choices(federation: str, data_sha256: str, model: str) -> dict[str, dict[str, float]]:
    """Algorithm -> its chosen settings, where they were chosen on these data with this net.

    Otherwise it is empty, and the authors' defaults stay.
    """
    found = _committed(federation)
    same = found.get("data_sha256") == data_sha256 and found.get("model") == model
    return found["choice"] if same else {}
