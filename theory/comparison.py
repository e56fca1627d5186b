"""Corollary III.6 on data: λ_min of G∞ and of G*∞ enclosed, and what drives each of them."""

import math
import warnings
from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from theory._loose import ArrayLike, Real
from theory._validate import Groups, as_groups, as_points, positive
from theory.assumption import centredness
from theory.blocks import BlockDiagonal, diagonal_blocks
from theory.drivers import Driver, find_driver
from theory.gram import gram_error, gram_matrix, normalised_gram_error, normalised_gram_matrix
from theory.inequality import Inequality, Judgement
from theory.spectrum import Enclosure, largest_eigenvalue, smallest_eigenvalue


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
        ratio: λ_min(G*∞)/λ_min(G∞) at the midpoints; NaN if the latter is not positive.
        kernel: "printed" for Eq. (10), "normalised" for κ₁/(dλ).
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

    @property
    def cause(self) -> str:
        """What drives λ_min(G*∞), in one sentence."""
        return self.driver.sentence

    @property
    def inequality(self) -> Inequality:
        """λ_min(G∞) ≤ λ_min(G*∞) with both sides."""
        return Inequality(
            "λ_min(G∞) ≤ λ_min(G*∞)", "Corollary III.6", self.aggregated, self.client_specific
        )

    def __str__(self) -> str:
        """A block of text for a terminal."""
        across = " These are of several clients, which only G∞ couples."
        lines = [
            f"Corollary III.6, λ_min(G*∞) ≥ λ_min(G∞): {self.verdict} ({self.reason})",
            f"  λ_min(G∞)  = {_interval(self.aggregated)}",
            f"  λ_min(G*∞) = {_interval(self.client_specific)}"
            + ("" if math.isnan(self.ratio) else f", {self.ratio:.3g} times as large"),
            f"  λ_max(G∞)  = {_interval(self.largest_aggregated)}",
            f"  λ_max(G*∞) = {_interval(self.largest_client_specific)}",
            f"  λ_min(G*∞) is attained by client {self.client!r}: {self.driver.sentence}",
            f"  λ_min(G∞): {self.aggregated_driver.sentence}"
            + (across if self.across_clients else ""),
        ]
        return "\n".join(lines)


def compare_smallest_eigenvalues(
    x: ArrayLike,
    client: ArrayLike,
    alpha: Real = 1.0,
    kernel: str = "printed",
    scale: Real = 1.0,
) -> Verdict:
    """Corollary III.6 on data: λ_min(G*∞) ≥ λ_min(G∞), certified, and what drives both.

    Both kernels are taken from one matrix, so that the blocks of G*∞ are literally those of G∞.
    n = 3,000 points take a few seconds.

    Args:
        x: (n, d) points, centred by client (`theory.centre`). Points that are further from centred
            than sampling explains draw a warning, no error: the comparison holds for any points,
            only the paper's setting does not.
        client: n labels.
        alpha: scale of the initialisation, for the printed kernel; the other is free of it.
        kernel: "printed" for Eqs. (10), (11); "normalised" for the true limit κ₁/(dλ) at S = λI.
        scale: λ of the normalised kernel; the printed one has no S.

    Raises:
        ValueError, TypeError: bad points (also a zero row), labels, alpha, scale or kernel, or a
            value other than 1 of the parameter that the kernel does not have.
    """
    points = as_points(x)
    groups = as_groups(client, len(points))
    _refuse_zero_rows(points)
    _warn_unless_centred(points, groups)
    dense, masked, error = _kernels(points, client, kernel, alpha, scale)
    low, low_star = smallest_eigenvalue(dense, error), smallest_eigenvalue(masked, masked.errors)
    names, label = groups.names, groups.labels()
    labels = [label[row] for row in range(len(points))]
    attained = low_star.block if low_star.block in names else names[0]
    block = names.index(attained)
    driver = find_driver(masked.blocks[block], groups.rows[block], low_star, points, labels)
    aggregated_driver = find_driver(dense, np.arange(len(points)), low, points, labels)
    verdict, reason = _judge(low, low_star, len(names))
    return Verdict(
        verdict,
        reason,
        low,
        low_star,
        largest_eigenvalue(dense, error),
        largest_eigenvalue(masked, masked.errors),
        attained,
        driver,
        aggregated_driver,
        len(set(aggregated_driver.clients)) > 1,
        low_star.midpoint / low.midpoint if low.midpoint > 0 else math.nan,
        kernel,
    )


def _refuse_zero_rows(points: Float[np.ndarray, "n d"]) -> None:
    zero = ~points.any(axis=1)
    if zero.any():
        raise ValueError(
            f"row {int(zero.argmax())} of x is zero ({int(zero.sum())} in all): it makes both "
            "kernels singular and lies on every line; drop it."
        )


def _kernels(
    points: Float[np.ndarray, "n d"],
    client: ArrayLike,
    kernel: object,
    alpha: Real,
    scale: Real,
) -> tuple[Float[np.ndarray, "n n"], BlockDiagonal, float]:
    """G∞, G*∞ with the blocks of G∞, and the bound of ‖ΔG∞‖₂."""
    if not isinstance(kernel, str):
        raise TypeError(f'kernel must be "printed" or "normalised", not {type(kernel).__name__}.')
    given = {"alpha": positive(alpha, "alpha"), "scale": positive(scale, "scale")}
    if kernel == "printed":
        matrix, bound, name, idle = gram_matrix, gram_error, "alpha", "scale"
    elif kernel == "normalised":
        matrix, bound = normalised_gram_matrix, normalised_gram_error
        name, idle = "scale", "alpha"
    else:
        raise ValueError(f'kernel must be "printed" or "normalised", not {kernel!r}.')
    if given[idle] != 1:
        raise ValueError(
            f"{idle} = {given[idle]:g} has no effect on the {kernel} kernel, which takes {name} "
            f"only: leave {idle} out, or choose the other kernel."
        )
    parameter = given[name]
    dense = matrix(points, parameter)
    masked = diagonal_blocks(dense, client)
    errors = tuple(bound(points[rows], parameter) for rows in masked.rows)
    return dense, replace(masked, errors=errors), bound(points, parameter)


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
    return f"{value.midpoint:.9g} ± {(value.upper - value.lower) / 2:.1g}"


def _warn_unless_centred(points: Float[np.ndarray, "n d"], groups: Groups) -> None:
    centred = centredness(points, groups)
    if centred.state == "absent":
        warnings.warn(
            f"Client {centred.client!r} is not centred (its mean is {centred.ratio:.2g} of its "
            "points' size), as Assumption III.1 asks: use theory.centre(x, client) first.",
            stacklevel=3,
        )
