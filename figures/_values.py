"""Values that a statistic takes: finite real numbers, and a confidence level."""

import numpy as np
from jaxtyping import Float


def as_values(values: object, name: str) -> Float[np.ndarray, " n"]:
    """Finite real numbers in a row, or advice."""
    x = np.asarray(values)
    if x.ndim != 1 or x.size == 0:
        raise ValueError(f"{name} must be a non-empty list of numbers, not of shape {x.shape}")
    if x.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be real numbers, not {x.dtype}")
    x = x.astype(float)
    if not np.isfinite(x).all():
        bad = int(np.flatnonzero(~np.isfinite(x))[0])
        raise ValueError(f"{name}[{bad}] is {x[bad]}: leave diverged runs out and say so")
    return x


def check_level(level: float) -> None:
    """Refuse a confidence level outside (0, 1)."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
