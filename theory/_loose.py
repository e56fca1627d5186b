"""Types of the inputs that functions check by hand: exact for a type checker, anything at run time.

A run-time type checker would otherwise answer bad input before the function's own advice does.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from numpy.typing import ArrayLike

    Means = Mapping[Hashable, object]
    Real = float
    Whole = int
else:
    ArrayLike = Means = Real = Whole = object

__all__ = ["ArrayLike", "Means", "Real", "Whole"]
