"""Types of the inputs that functions check by hand: exact for a type checker, anything at run time.

A run-time type checker would otherwise answer bad input before the function's own advice does.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Mapping
    from typing import Never

    import numpy as np
    from numpy.typing import ArrayLike

    Anything = Never  # of `Network | Anything` a type checker reads Network alone
    Array = np.ndarray
    Arrays = tuple[np.ndarray, ...]
    Numbers = tuple[float, ...]
    Covariances = ArrayLike | Mapping[Hashable, ArrayLike | float]
    Flag = bool
    Means = Mapping[Hashable, object]
    Names = tuple[Hashable, ...]
    PerClient = ArrayLike | Mapping[Hashable, ArrayLike] | None
    Real = float
    Reals = Iterable[float]
    Rounds = Iterable[Collection[Hashable]]
    Steps = Iterable[int]
    Weights = Mapping[Hashable, float] | None
    Whole = int
else:
    Anything = Array = Arrays = ArrayLike = Covariances = Flag = Means = Names = Numbers = Real = (
        Steps
    ) = Whole = object
    PerClient = Reals = Rounds = Weights = object

__all__ = [
    "Anything",
    "Array",
    "ArrayLike",
    "Arrays",
    "Covariances",
    "Flag",
    "Means",
    "Names",
    "Numbers",
    "PerClient",
    "Real",
    "Reals",
    "Rounds",
    "Steps",
    "Weights",
    "Whole",
]
