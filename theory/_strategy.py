"""How an extreme eigenvalue is computed: from copies of the matrix, or in its own memory."""

import mmap
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from theory import _certify, _extreme
from theory._in_place import InPlace, mirrored
from theory._memory import gib
from theory._progress import Meter
from theory._symmetric import Symmetric

COPIES_UP_TO = 8000
"""Rows up to which copies are the faster way: two of the three factors are in single precision."""

_INDEXED = 46_340  # rows up to which n² is within 32 bits, as many builds of LAPACK count


@dataclass(frozen=True)
class Resources:
    """What a computation may use.

    Attributes:
        in_place: whether it may work in the matrix given: yes, no, or None for where it pays.
        memory: bytes that it may allocate.
        meter: told the fraction done.
    """

    in_place: bool | None
    memory: float
    meter: Meter

    def part(self, start: float, stop: float) -> "Resources":
        """Returns the resources of a part of the work."""
        return Resources(self.in_place, self.memory, self.meter.part(start, stop))


class Copies:
    """Extreme eigenvalues of a matrix that is only read; needs memory for one copy."""

    method = "Cholesky and Rayleigh quotient"

    def __init__(self, matrix: Float[np.ndarray, "n n"], meter: Meter) -> None:
        """Takes the lower triangle of a matrix in Fortran order."""
        self.matrix, self.diagonal = matrix, matrix.diagonal()
        self.size = _certify.frobenius(matrix)
        self._meter = meter

    def __enter__(self) -> "Copies":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def approximate(self, sign: int) -> _extreme.Approximation:
        """Approximates the smallest (sign 1) or the largest (-1) eigenpair."""
        found = _extreme.smallest(self.matrix) if sign > 0 else _extreme.largest(self.matrix)
        self._meter(0.6)
        return found

    def rayleigh(self, vector: Float[np.ndarray, " n"]) -> tuple[Fraction, Fraction]:
        """Rigorous bounds of a Rayleigh quotient."""
        return _certify.rayleigh(self.matrix, vector, self.size)

    def shifted_bound(self, shift: float, sign: int) -> Fraction | None:
        """A certified bound near `shift`, or None where the factorisation breaks down."""
        return _certify.shifted_bound(self.matrix, shift, sign)


def choose(value: object, name: str, symmetric: Symmetric, use: Resources) -> "Copies | InPlace":
    """Chooses from the rows and the memory there is.

    Args:
        value: the matrix as given, whose memory `symmetric.matrix` may share.
        name: what to call it.
        symmetric: the matrix as checked.
        use: what may be used.

    Raises:
        ValueError: neither a copy fits nor may the matrix itself be worked in; or the latter was
            asked for and cannot be.
    """
    matrix = symmetric.matrix
    n, owned = len(matrix), not _shares(matrix, value)
    fits = 8.0 * n * n <= use.memory
    if use.in_place is False or (use.in_place is None and n <= COPIES_UP_TO and fits):
        if not fits:
            raise ValueError(f"{_too_large(name, n, use.memory)}, or allow in_place.")
        if n <= _INDEXED:
            return Copies(matrix, use.meter)
        return InPlace(np.array(matrix, order="F"), use.meter)
    obstacle = None if owned and use.in_place is None else _obstacle(value, symmetric)
    if obstacle is None:
        return InPlace(matrix, use.meter)
    if use.in_place:
        raise ValueError(
            f"{name} cannot be worked in, because {obstacle}: pass a writable, contiguous, exactly "
            "symmetric float64 array, or leave in_place out."
        )
    if not fits:
        raise ValueError(
            f"{_too_large(name, n, use.memory)}, or pass a matrix to work in; this one cannot "
            f"serve, because {obstacle}."
        )
    return InPlace(np.array(matrix, order="F"), use.meter)


def _too_large(name: str, n: int, memory: float) -> str:
    return (
        f"{name} has {n:,} rows and a copy takes {gib(8.0 * n * n)}, more than the {gib(memory)} "
        "there are: free memory or raise `memory`"
    )


def _obstacle(value: object, symmetric: Symmetric) -> str | None:
    """Why a matrix as given cannot lend its lower triangle, or None."""
    if not isinstance(value, np.ndarray):
        return f"it is no NumPy array but {type(value).__name__}"
    if value.dtype != np.float64 or not value.dtype.isnative:
        return f"its type is {value.dtype}"
    if not (value.flags.c_contiguous or value.flags.f_contiguous):
        return "it is not contiguous"
    if not value.flags.writeable:
        return "it is read-only"
    if _mapped(value):
        return "it is a file mapped into memory, which an interruption could spoil"
    if symmetric.exponent != 0:
        return f"its entries, about 2^{symmetric.exponent}, have to be rescaled"
    if symmetric.defect or not mirrored(symmetric.matrix):
        return "it is symmetric only up to rounding (or the sign of zeros)"
    return None


def _shares(matrix: np.ndarray, value: object) -> bool:
    """Whether the checked matrix lies in the caller's memory; if in doubt, it does."""
    if isinstance(value, np.ndarray):
        return np.may_share_memory(matrix, value)
    return not isinstance(value, list | tuple)


def _mapped(value: object) -> bool:
    while isinstance(value, np.ndarray):
        if isinstance(value, np.memmap):
            return True
        value = value.base
    return isinstance(value.obj if isinstance(value, memoryview) else value, mmap.mmap)
