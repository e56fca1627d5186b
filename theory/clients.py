"""G*∞ block by block: every client's Gram matrix is built, certified and freed by itself."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from theory._cores import blas_threads, in_threads
from theory._kernels import Kernel, as_kernel
from theory._loose import ArrayLike, Real
from theory._memory import as_memory, gib
from theory._progress import Meter, Progress
from theory._strategy import COPIES_UP_TO, Resources
from theory._validate import Groups, as_groups, as_points
from theory.spectrum import Enclosure, enclose, extreme_of


def client_smallest_eigenvalue(
    x: ArrayLike,
    client: ArrayLike,
    alpha: Real = 1.0,
    kernel: str = "printed",
    scale: Real = 1.0,
    progress: "Progress | None" = None,
) -> Enclosure:
    """Encloses λ_min(G*∞), Eq. (11), at any number of clients.

    A block-diagonal matrix has the eigenvalues of its blocks, so that no two of them need be there
    at once: as many as BLAS has threads are, each with one thread. The result is independent of
    their number, and that of `smallest_eigenvalue(client_gram_matrix(x, client, alpha), errors)`
    up to the rounding of BLAS's threads.

    Args:
        x: (n, d) points, centred by client (`theory.centre`).
        client: n labels.
        alpha: scale of the initialisation, for the printed kernel.
        kernel: "printed" for Eq. (11); "normalised" for κ₁/(dλ) at S = λI.
        scale: λ of the normalised kernel.
        progress: called now and then with the fraction done, from 0 to 1.

    Returns:
        The enclosure for the exact kernel, entry errors included; `block` names the client.

    Raises:
        TypeError: points, parameters, kernel or progress of a wrong type.
        ValueError: bad points, labels or parameters, or a block that does not fit the memory.
    """
    return _extreme((x, client), as_kernel(kernel, alpha, scale), 1, progress)


def client_largest_eigenvalue(
    x: ArrayLike,
    client: ArrayLike,
    alpha: Real = 1.0,
    kernel: str = "printed",
    scale: Real = 1.0,
    progress: "Progress | None" = None,
) -> Enclosure:
    """Encloses λ_max(G*∞) at any number of clients; all else as `client_smallest_eigenvalue`."""
    return _extreme((x, client), as_kernel(kernel, alpha, scale), -1, progress)


def _extreme(
    data: tuple[ArrayLike, ArrayLike], kernel: Kernel, sign: int, progress: object
) -> Enclosure:
    meter = Meter(progress)
    points = as_points(data[0])
    found = certify_blocks(Blocks(points, as_groups(data[1], len(points)), kernel), (sign,), meter)
    meter(1.0)
    return extreme_of([block[0] for block in found], sign)


@dataclass(frozen=True)
class Blocks:
    """The clients' points, whose Gram matrices are the blocks of G*∞."""

    points: Float[np.ndarray, "n d"]
    groups: Groups
    kernel: Kernel

    def block(self, at: int) -> tuple[Float[np.ndarray, "k k"], float]:
        """One client's Gram matrix and the bound of its error."""
        own = self.points[self.groups.rows[at]]
        return self.kernel.matrix(own), self.kernel.error(own)

    def rows(self, at: int) -> Int[np.ndarray, " k"]:
        """The rows of one client."""
        return self.groups.rows[at]


def certify_blocks(
    blocks: Blocks, signs: Sequence[int], meter: Meter, memory: float | None = None
) -> list[tuple[Enclosure, ...]]:
    """Encloses the smallest (sign 1) or largest (-1) eigenvalue of every block of G*∞.

    Raises:
        ValueError: a point outside the range of the kernel, or a block larger than the memory.
    """
    names = blocks.groups.names
    blocks.kernel.error(blocks.points)  # refuses rows by their numbers here
    sizes = [len(rows) for rows in blocks.groups.rows]
    budget = as_memory(memory)
    largest = int(np.argmax(sizes))
    need = block_bytes(sizes[largest])
    if need > budget:
        raise ValueError(
            f"the block of client {names[largest]!r} ({sizes[largest]:,} points) takes "
            f"{gib(need)}, more than the {gib(budget)} there are: certify a sample of its points, "
            "free memory or raise `memory`."
        )
    # A single block has all of BLAS's threads; of several each has one.
    alone = len(names) == 1
    room = budget if alone else budget / min(blas_threads(), len(names), budget // need)

    def certified(at: int) -> tuple[Enclosure, ...]:
        matrix, error = blocks.block(at)
        # Only a block's own memory is at stake: working in it needs no consent.
        use = Resources(None, max(room - matrix.nbytes, 1.0), meter if alone else Meter(None))
        found = (
            enclose(matrix, f"block {names[at]!r}", error, sign, use, blocks.rows(at))
            for sign in signs
        )
        return tuple(replace(part, block=names[at]) for part in found)

    if alone:
        return [certified(0)]
    work = [float(size) ** 3 + 1e6 * size for size in sizes]
    return in_threads(certified, range(len(names)), meter, int(budget // need), work)


def block_bytes(points: int) -> float:
    """Memory to certify a block: itself, one copy where copies are made, and vectors."""
    matrix = 8.0 * points * points
    return (2 * matrix if points <= COPIES_UP_TO else matrix) + 8.0 * points * 1000
