"""Corollary III.6 for more points than a matrix of all pairs has room for.

λ_min(G*∞) and λ_max(G*∞) come from the blocks, one after the other (`theory.clients`). Of G∞, which
is never stored:

* λ_min(G∞) >= 0, for the exact kernel is a mean of φφᵀ; and it is at most λ_min of the principal
  submatrix of few rows that `theory.submatrix` finds, as of every client's block.
* λ_max(G∞) lies between a Rayleigh quotient and weighted row sums (`theory._row_sums`).
"""

from collections.abc import Hashable
from dataclasses import dataclass

from theory._memory import gib
from theory._progress import Meter
from theory._row_sums import largest_by_tiles
from theory._strategy import COPIES_UP_TO, Resources
from theory.clients import Blocks, certify_blocks
from theory.drivers import Driver, find_driver
from theory.spectrum import Enclosure, extreme_of
from theory.submatrix import Submatrix, lowest_submatrix

LARGEST_SUBMATRIX = 2048
"""Rows of the submatrix, where the memory allows them."""


@dataclass(frozen=True)
class AtScale:
    """What a comparison without G∞ found; fields as those of `Verdict`."""

    aggregated: Enclosure
    client_specific: Enclosure
    largest_aggregated: Enclosure
    largest_client_specific: Enclosure
    client: Hashable
    driver: Driver
    aggregated_driver: Driver
    method: str


def dense_bytes(n: int, sizes: list[int]) -> float:
    """Memory of the comparison with both kernels stored: them, and one copy where one is made."""
    copy = max([size for size in (n, *sizes) if size <= COPIES_UP_TO], default=0)
    return 8.0 * (n * n + sum(size * size for size in sizes) + copy * copy)


def compare_at_scale(
    blocks: Blocks, labels: list[Hashable], memory: float, meter: Meter
) -> AtScale:
    """Encloses both extreme eigenvalues of G∞ and of G*∞, blocks and tiles at a time.

    Raises:
        ValueError: a block, or the vectors that the search needs, exceed the memory.
    """
    points, kernel = blocks.points, blocks.kernel
    alone = len(blocks.groups.names) == 1
    size = 0 if alone else _submatrix_size(len(points), memory)
    found = certify_blocks(blocks, (1, -1), meter.part(0.0, 1.0 if alone else 0.4), memory)
    low_star = extreme_of([low for low, _ in found], 1)
    high_star = extreme_of([high for _, high in found], -1)
    at = blocks.groups.names.index(low_star.block)
    matrix, _ = blocks.block(at)
    driver = find_driver(matrix, blocks.rows(at), low_star, points, labels)
    del matrix
    if alone:
        low, high, name = low_star, high_star, low_star.block
        return AtScale(low, low_star, high, high_star, name, driver, driver, low.method)
    use = Resources(None, memory, meter.part(0.4, 0.7))
    part = lowest_submatrix(points, kernel, size, use)
    aggregated_driver = find_driver(part.matrix, part.rows, part.low, points, labels)
    high = largest_by_tiles(points, kernel, meter.part(0.7, 1.0))
    low = _aggregated(part, low_star)
    method = (
        f"G∞ of {len(points):,} points was not stored; {low.method}; blocks of G*∞ one by one: "
        f"{low_star.method}"
    )
    return AtScale(
        low, low_star, high, high_star, low_star.block, driver, aggregated_driver, method
    )


def _aggregated(part: Submatrix, low_star: Enclosure) -> Enclosure:
    method = (
        f"λ_min(G∞) is at least 0, as for any exact kernel, and at most that of {len(part.rows):,} "
        "rows with the nearest pairs"
    )
    upper = part.low.upper
    if low_star.upper < upper:
        upper, method = low_star.upper, f"{method} (here: of a client's block)"
    cause = part.low.cause or "without its matrix no lower bound but 0 is known."
    return Enclosure(0.0, max(upper, 0.0), method, cause, rows=part.low.rows)


def _submatrix_size(n: int, memory: float) -> int:
    """As many rows as take a quarter of the memory, with a copy and the buffers of the search."""
    size = min(n, LARGEST_SUBMATRIX, int((memory / 4 / 24) ** 0.5))
    # Panels' vectors of the row sums, at most 128 at a time, and a few of the pairs.
    need = 8.0 * n * 150
    if size < min(n, 2) or need > memory:
        raise ValueError(
            f"the search over {n:,} points takes {gib(need + 24.0 * 64 * 64)}, more than the "
            f"{gib(memory)} there are: raise `memory`, or compare a sample of the points."
        )
    return size
