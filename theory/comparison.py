"""Corollary III.6 on data: λ_min of G∞ and of G*∞ enclosed, and what drives each of them."""

import math
import warnings
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from theory._comparable import refuse_zero_rows
from theory._kernels import Kernel, as_kernel
from theory._loose import ArrayLike, Real
from theory._memory import as_memory
from theory._progress import Meter, Progress
from theory._validate import Groups, as_groups, as_points
from theory.assumption import centredness
from theory.at_scale import AtScale, compare_at_scale, dense_bytes
from theory.blocks import BlockDiagonal, diagonal_blocks
from theory.clients import Blocks
from theory.drivers import Driver, find_driver
from theory.inequality import Inequality, Judgement
from theory.spectrum import Enclosure, largest_eigenvalue, smallest_eigenvalue

STORED = "both kernels stored"


@dataclass(frozen=True)
class Verdict:
    """Outcome of `compare_smallest_eigenvalues`.

    Attributes:
        verdict: "certified" if λ_min(G*∞) ≥ λ_min(G∞) for all values enclosed, "violated" if for
            none (impossible for exact kernels: a bug), "consistent" otherwise.
        reason: why that verdict.
        aggregated: λ_min(G∞).
        client_specific: λ_min(G*∞).
        largest_aggregated: λ_max(G∞).
        largest_client_specific: λ_max(G*∞).
        client: the client that attains λ_min(G*∞).
        cause: what drives λ_min(G*∞), in a sentence.
        driver: the same with its points.
        aggregated_driver: what drives λ_min(G∞).
        across_clients: whether that is points of several clients, which hurt G∞ only.
        ratio: λ_min(G*∞)/λ_min(G∞) at the midpoints; where G∞ was not stored, a lower bound of it.
            NaN if the latter is not positive.
        kernel: "printed" for Eq. (10), "normalised" for κ₁/(dλ).
        method: "both kernels stored", or how the bounds were found without.
        one_client: whether there is one client, so that G∞ and G*∞ are the same matrix.
    """

    verdict: Judgement
    reason: str
    aggregated: Enclosure
    client_specific: Enclosure
    largest_aggregated: Enclosure
    largest_client_specific: Enclosure
    client: Hashable
    driver: Driver
    aggregated_driver: Driver
    across_clients: bool
    ratio: float
    kernel: str
    method: str = STORED
    one_client: bool = False

    @property
    def cause(self) -> str:
        """What drives λ_min(G*∞), in one sentence."""
        return self.driver.sentence

    @property
    def inequality(self) -> Inequality:
        """λ_min(G∞) ≤ λ_min(G*∞) with both sides."""
        return Inequality(
            "λ_min(G∞) ≤ λ_min(G*∞)",
            "Corollary III.6",
            self.aggregated,
            self.client_specific,
            self.one_client,
        )

    def __str__(self) -> str:
        """A block of text for a terminal."""
        across = " These are of several clients, which only G∞ couples."
        stored = self.method == STORED
        least = "" if stored else "at least "
        lines = [
            f"Corollary III.6, λ_min(G*∞) ≥ λ_min(G∞): {self.verdict} ({self.reason})",
            f"  λ_min(G∞)  = {_interval(self.aggregated)}",
            f"  λ_min(G*∞) = {_interval(self.client_specific)}"
            + ("" if math.isnan(self.ratio) else f", {least}{self.ratio:.3g} times as large"),
            f"  λ_max(G∞)  = {_interval(self.largest_aggregated)}",
            f"  λ_max(G*∞) = {_interval(self.largest_client_specific)}",
            f"  λ_min(G*∞) is attained by client {self.client!r}: {self.driver.sentence}",
            f"  λ_min(G∞): {self.aggregated_driver.sentence}"
            + (across if self.across_clients else ""),
        ]
        if not stored:
            lines.append(f"  {self.method}.")
        return "\n".join(lines)


def compare_smallest_eigenvalues(  # noqa: PLR0913 - the data, the kernel, and the resources
    x: ArrayLike,
    client: ArrayLike,
    alpha: Real = 1.0,
    kernel: str = "printed",
    scale: Real = 1.0,
    *,
    memory: "Real | None" = None,
    progress: "Progress | None" = None,
) -> Verdict:
    """Corollary III.6 on data: λ_min(G*∞) ≥ λ_min(G∞), certified, and what drives both.

    Both kernels are taken from one matrix, so that the blocks of G*∞ are literally those of G∞.
    n = 3,000 points take a few seconds. Where both and one copy exceed the memory, G∞ is not
    stored: the blocks are certified one by one, λ_min(G∞) is bounded above by a principal submatrix
    with the nearest pairs and λ_max(G∞) by row sums (`theory.at_scale`); n = 100,000 points take
    minutes, and the verdict's `method` says so. Give a smaller `memory` to ask for that.

    Args:
        x: (n, d) points, centred by client (`theory.centre`). Points that are further from centred
            than sampling explains draw a warning, no error: the comparison holds for any points,
            only the paper's setting does not.
        client: n labels.
        alpha: scale of the initialisation, for the printed kernel; the other is free of it.
        kernel: "printed" for Eqs. (10), (11); "normalised" for the true limit κ₁/(dλ) at S = λI.
        scale: λ of the normalised kernel; the printed one has no S.
        memory: bytes that may be used; by default what the system leaves.
        progress: called now and then with the fraction done, from 0 to 1.

    Raises:
        ValueError, TypeError: bad points (also a zero row), labels, alpha, scale or kernel, or a
            value other than 1 of the parameter that the kernel does not have; a client whose own
            block exceeds the memory.
    """
    points = as_points(x)
    groups = as_groups(client, len(points))
    chosen = as_kernel(kernel, alpha, scale)
    budget, meter = as_memory(memory), Meter(progress)
    refuse_zero_rows(points)
    _warn_unless_centred(points, groups)
    blocks, label = Blocks(points, groups, chosen), groups.labels()
    labels = [label[row] for row in range(len(points))]
    if dense_bytes(len(points), [len(rows) for rows in groups.rows]) <= budget:
        found = _compare_stored(blocks, labels, budget, meter)
    else:
        found = compare_at_scale(blocks, labels, budget, meter)
    meter(1.0)
    return _verdict(found, len(groups.names), chosen.name)


def _compare_stored(blocks: Blocks, labels: list[Hashable], memory: float, meter: Meter) -> AtScale:
    """Encloses the eigenvalues of both kernels, stored."""
    points, groups = blocks.points, blocks.groups
    dense, masked, error = _kernels(points, groups, blocks.kernel)
    meter(0.1)
    left = max(memory - dense.nbytes - sum(block.nbytes for block in masked.blocks), 1.0)

    def part(start: float, stop: float) -> dict[str, Any]:
        return {"memory": left, "progress": meter.part(start, stop)}

    low = smallest_eigenvalue(dense, error, **part(0.1, 0.5))
    low_star = smallest_eigenvalue(masked, masked.errors, **part(0.5, 0.7))
    attained = low_star.block if low_star.block in groups.names else groups.names[0]
    block = groups.names.index(attained)
    driver = find_driver(masked.blocks[block], groups.rows[block], low_star, points, labels)
    aggregated_driver = find_driver(dense, np.arange(len(points)), low, points, labels)
    high = largest_eigenvalue(dense, error, **part(0.7, 0.9))
    high_star = largest_eigenvalue(masked, masked.errors, **part(0.9, 1.0))
    return AtScale(low, low_star, high, high_star, attained, driver, aggregated_driver, STORED)


def _verdict(found: AtScale, clients: int, kernel: str) -> Verdict:
    low, low_star = found.aggregated, found.client_specific
    verdict, reason = _judge(low, low_star, clients)
    stored = found.method == STORED
    if verdict == "consistent" and not stored and low_star.lower > 0:
        reason = "the bound of λ_min(G∞) from above, by few of its rows, does not tell them apart"
    top, bottom = low_star.midpoint, low.midpoint
    if not stored and clients > 1:
        top, bottom = low_star.lower, low.upper
    ratio = top / bottom if bottom > 0 and (stored or top > 0) else math.nan
    return Verdict(
        verdict,
        reason,
        low,
        low_star,
        found.largest_aggregated,
        found.largest_client_specific,
        found.client,
        found.driver,
        found.aggregated_driver,
        len(set(found.aggregated_driver.clients)) > 1,
        ratio,
        kernel,
        found.method,
        clients == 1,
    )


def _kernels(
    points: Float[np.ndarray, "n d"], groups: Groups, kernel: Kernel
) -> tuple[Float[np.ndarray, "n n"], BlockDiagonal, float]:
    """G∞, G*∞ with the blocks of G∞, and the bound of ‖ΔG∞‖₂."""
    dense = kernel.matrix(points)
    label = groups.labels()
    client: Any = [label[row] for row in range(len(points))]
    masked = diagonal_blocks(dense, client)
    errors = tuple(kernel.error(points[rows]) for rows in masked.rows)
    return dense, replace(masked, errors=errors), kernel.error(points)


def _judge(low: Enclosure, low_star: Enclosure, clients: int) -> tuple[Judgement, str]:
    if clients == 1:
        return "certified", "one client: G*∞ and G∞ are the same matrix"
    if low_star.lower >= low.upper:
        return "certified", "the enclosures do not overlap"
    if low_star.upper < low.lower:
        return "violated", "impossible for exact kernels: a bug, or an error bound too small"
    if low.lower <= 0 and low_star.lower <= 0:
        return "consistent", "both may be singular, so that both sides may be 0"
    return "consistent", "equal up to the width of the enclosures: points of one client drive both"


def _interval(value: Enclosure) -> str:
    if value.lower >= 0 and value.width > 1e-3 * value.upper:
        return f"between {value.lower:.9g} and {value.upper:.9g}"
    return f"{value.midpoint:.9g} ± {(value.upper - value.lower) / 2:.1g}"


def _warn_unless_centred(points: Float[np.ndarray, "n d"], groups: Groups) -> None:
    centred = centredness(points, groups)
    if centred.state == "absent":
        warnings.warn(
            f"Client {centred.client!r} is not centred (its mean is {centred.ratio:.2g} of its "
            "points' size), as Assumption III.1 asks: use theory.centre(x, client) first.",
            stacklevel=3,
        )
