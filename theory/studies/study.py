"""A planned study of the theory."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Study:
    """One study to run: what to call it, its config, about how many seconds on one core."""

    label: str
    config: dict[str, Any]
    seconds: float
