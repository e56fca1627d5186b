"""Block-diagonal symmetric matrices, one block per client, never allocated in full."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from theory._loose import ArrayLike, Arrays, Names, Numbers
from theory._validate import as_groups, as_label, as_matrix, real


@dataclass(frozen=True, eq=False)
class BlockDiagonal:
    """A block-diagonal matrix after Eq. (11): entries between two clients are zero.

    Attributes:
        names: the clients, in order of first appearance.
        blocks: one symmetric (k, k) matrix per client.
        rows: for each client, the indices of its k rows in the original order.
        errors: for each block a bound of ‖ΔK‖₂, its distance from the exact kernel; pass it on as
            `smallest_eigenvalue(K, error=K.errors)`. Zeros when the entries are taken as exact.
    """

    names: Names
    blocks: Arrays
    rows: Arrays
    errors: Numbers = ()

    def __post_init__(self) -> None:
        """Converts lists to tuples and arrays, and refuses parts that do not fit.

        Raises:
            TypeError: a part that is no sequence, blocks or errors that are no real numbers, rows
                that are no integers.
            ValueError: parts of different lengths, a block that is not square and finite, a name
                used twice, rows that are not a permutation, a negative error.
        """
        for part in ("names", "blocks", "rows", "errors"):
            object.__setattr__(self, part, _as_tuple(getattr(self, part), part))
        if not self.errors:
            object.__setattr__(self, "errors", (0.0,) * len(self.blocks))
        if not self.blocks or len({len(self.names), len(self.blocks), len(self.rows)}) != 1:
            raise ValueError("names, blocks and rows must be of one length, at least 1.")
        names = tuple(as_label(name, f"name {i} in names") for i, name in enumerate(self.names))
        if len(set(names)) < len(names):
            raise ValueError("names must hold every client once.")
        errors = tuple(real(error, "each of errors") for error in self.errors)
        if len(errors) != len(self.blocks) or not all(error >= 0 for error in errors):
            raise ValueError("errors must hold one number >= 0 per block.")
        pairs = list(zip(names, self.blocks, strict=True))
        object.__setattr__(self, "blocks", tuple(as_matrix(b, f"block {n!r}") for n, b in pairs))
        object.__setattr__(self, "rows", tuple(_as_indices(rows) for rows in self.rows))
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "errors", errors)
        for name, block, rows in zip(self.names, self.blocks, self.rows, strict=True):
            if block.shape != (len(rows), len(rows)):
                raise ValueError(
                    f"block {name!r} has shape {block.shape} but {len(rows)} rows: make it square."
                )
        together = np.sort(np.concatenate(self.rows))
        if not np.array_equal(together, np.arange(len(together))):
            raise ValueError("rows must hold each of 0..n-1 exactly once.")

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n), the shape of the full matrix."""
        n = sum(len(rows) for rows in self.rows)
        return n, n

    def trace(self) -> float:
        """Sum of the diagonal."""
        return float(sum(np.trace(block) for block in self.blocks))

    def dense(self) -> Float[np.ndarray, "n n"]:
        """Returns the full matrix with rows in their original order; this allocates n² doubles."""
        result = np.zeros(self.shape)
        for block, rows in zip(self.blocks, self.rows, strict=True):
            result[np.ix_(rows, rows)] = block
        return result


def _as_tuple(part: object, name: str) -> tuple[object, ...]:
    shape = getattr(part, "shape", (0,))
    if isinstance(part, str | bytes | Mapping | Set) or not isinstance(part, Iterable) or not shape:
        raise TypeError(f"{name} must be a sequence with one entry per client.")
    return tuple(part)


def _as_indices(rows: object) -> Int[np.ndarray, " _"]:
    try:
        array = np.asarray(rows)
    except (TypeError, ValueError, RuntimeError):
        array = np.empty(0)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError("rows must hold one array of integer indices per client.")
    return array.astype(np.intp, copy=False)


def diagonal_blocks(matrix: ArrayLike, client: ArrayLike) -> BlockDiagonal:
    """Copies the clients' diagonal blocks of a dense matrix: the mask of Eq. (11), exactly.

    For the blocks so copied λ_min(blocks) >= λ_min(matrix) holds without any rounding.

    Args:
        matrix: symmetric, (n, n).
        client: one label per row.

    Raises:
        ValueError: not a square matrix, or not one label per row.
    """
    full = as_matrix(matrix, "matrix")
    if full.shape[0] != full.shape[1]:
        raise ValueError(f"matrix must be square, not {full.shape}.")
    groups = as_groups(client, len(full))
    blocks = tuple(full[np.ix_(rows, rows)] for rows in groups.rows)
    return BlockDiagonal(groups.names, blocks, groups.rows)
