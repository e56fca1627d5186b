"""What several modules ask of a user's numbers, and a warning that points at the user's line."""

import sys
import warnings
from typing import TypeGuard

import numpy as np

LARGEST = float(np.finfo(np.float32).max)  # a factor beyond it is no float32, and torch fails late


def is_real(value: object) -> TypeGuard[float]:
    """Whether `value` is a number with an order: neither a bool nor complex nor text."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether `value` is an integer, and no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def warn(message: str) -> None:
    """Warns at the first line outside this package, however deep inside it the cause is found."""
    package = __name__.partition(".")[0]
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)
