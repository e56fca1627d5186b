"""Symmetric input: checked, brought to Fortran order and to a moderate scale, without rounding."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from theory._memory import gib
from theory._validate import as_matrix

_TILE = 256
_ASYMMETRY = (
    1e-12  # relative to the largest entry: rounding of any product that should be symmetric
)
_MODERATE = 60  # |log2| of the largest entry up to which no scaling is needed


@dataclass(frozen=True)
class Symmetric:
    """2^exponent · A, with A given by the lower triangle of `matrix` (Fortran order).

    Attributes:
        matrix: entries of moderate size.
        exponent: the power of two taken out.
        defect: bound of the distance, in the 2-norm and in A's scale, to the symmetric part of the
            input: asymmetry and entries that underflowed.
    """

    matrix: Float[np.ndarray, "n n"]
    exponent: int
    defect: Fraction


def as_symmetric(value: object, name: str, memory: float = math.inf) -> Symmetric:
    """Checks a symmetric matrix; copies it only if its type, order or scale asks for that.

    Raises:
        TypeError: entries that are no real numbers.
        ValueError: not square, not symmetric up to rounding, empty, or not finite; or a copy would
            exceed `memory`.
    """
    if isinstance(value, np.ndarray) and value.dtype != np.float64:
        _refuse_copy(value, name, f"its type is {value.dtype}", memory)
    full = as_matrix(value, name)
    if full.shape[0] != full.shape[1]:
        raise ValueError(f"{name} must be square, not {full.shape}.")
    largest = max(float(full.max()), -float(full.min()))
    asymmetry = _asymmetry(full, largest, name)
    if not (full.flags.c_contiguous or full.flags.f_contiguous):
        _refuse_copy(full, name, "it is not contiguous", memory)
    matrix = full.T if full.flags.c_contiguous else np.asfortranarray(full)
    exponent = math.frexp(largest)[1]
    if abs(exponent) <= _MODERATE:
        return Symmetric(matrix, 0, Fraction(asymmetry))
    _refuse_copy(full, name, f"its entries are about 2^{exponent}, to be rescaled", memory)
    with np.errstate(under="ignore"):
        matrix = np.ldexp(matrix, -exponent)
    scaled = Fraction(asymmetry) / Fraction(2) ** exponent
    return Symmetric(matrix, exponent, scaled + Fraction(len(full), 2**1022))


def _refuse_copy(value: np.ndarray, name: str, reason: str, memory: float) -> None:
    if 8.0 * value.size > memory:
        raise ValueError(
            f"{name} has to be copied, because {reason}; a copy takes {gib(8.0 * value.size)}, "
            f"more than the {gib(memory)} there are: pass a contiguous float64 array with entries "
            "of moderate size."
        )


def _asymmetry(full: Float[np.ndarray, "n n"], largest: float, name: str) -> float:
    """Bound of ‖T - (K + Kᵀ)/2‖₂ for T made of either triangle of K: ‖K - Kᵀ‖_F / 2."""
    n = len(full)
    worst, where, norms = 0.0, (0, 0), []
    for top in range(0, n, _TILE):
        for left in range(top, n, _TILE):
            a = full[top : top + _TILE, left : left + _TILE]
            b = full[left : left + _TILE, top : top + _TILE].T
            if np.array_equal(a, b):
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                gap = np.abs(a - b)
                most = float(gap.max())
                # Relative to the tile's largest, whose square cannot underflow.
                squares = (2 if left > top else 1) * float(((gap / most) ** 2).sum())
            norms.append(most * math.sqrt(squares))
            if most > worst:
                p, q = np.unravel_index(int(gap.argmax()), gap.shape)
                worst, where = most, (top + int(p), left + int(q))
    if worst > _ASYMMETRY * largest:
        raise ValueError(
            f"{name} is not symmetric: entries {where} and {where[::-1]} differ by {worst:.3g}; "
            f"pass ({name} + {name}.T)/2 if they should agree."
        )
    if not norms:
        return 0.0
    return math.nextafter(math.hypot(*norms) / 2 * (1 + 1e-6), math.inf)
