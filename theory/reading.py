"""Which reading of Corollary III.6 holds on given data: masked, pooled or full, each certified.

| reading | G side | G* side | proven |
|---|---|---|---|
| masked | G∞ with S_i for client i | its blocks within the clients | yes, by interlacing |
| pooled | G∞ with S = Σ p_i S_i | blocks with S_i | no: `pooled` |
| full | Λ∞ = V/α² + G∞ | Λ*∞ = V/α² + G*∞, S_i | no: `full_kernel` |

Three things are asked of each: λ_min does not fall, λ_max does not rise (the step η = 1/λ_max stays
admissible), and κ = λ_max/λ_min does not rise (the best factor is no worse, `conditioning`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from theory._client_kernels import Kernel, both_kernels
from theory._comparable import as_alphas, comparable
from theory._loose import ArrayLike, PerClient, Real, Reals, Weights
from theory.conditioning import condition_number
from theory.full_kernel import FullKernelComparison, compare_full
from theory.inequality import Inequality, as_text, in_words
from theory.pooled import (
    PooledComparison,
    as_weights,
    compare_pooled,
    pooled_kernel,
)
from theory.spectrum import Enclosure, largest_eigenvalue, smallest_eigenvalue

NAMES = ("masked", "pooled", "full")
_KERNELS = {"masked": ("G", "G*"), "pooled": ("G, S pooled", "G*, S_i"), "full": ("Λ", "Λ*")}


@dataclass(frozen=True)
class Reading:
    """One reading of the corollary on given data.

    Attributes:
        name: "masked", "pooled" or "full".
        proven: whether it holds for all data, so that "violated" would be a bug.
        smallest: λ_min of the aggregated kernel <= that of the client-specific one.
        largest: λ_max of the client-specific kernel <= that of the aggregated one.
        condition: κ of the client-specific kernel <= that of the aggregated one; None where a
            smallest eigenvalue may be 0.
    """

    name: str
    proven: bool
    smallest: Inequality
    largest: Inequality
    condition: Inequality | None

    def inequalities(self) -> dict[str, Inequality]:
        """The inequalities that there are, by what is compared."""
        found = {"smallest": self.smallest, "largest": self.largest}
        return found if self.condition is None else found | {"condition": self.condition}


@dataclass(frozen=True)
class Readings:
    """All three readings on the same points.

    Attributes:
        masked: the corollary as it is proven.
        pooled: with the pooled S in G∞.
        full: of Λ∞ at `alpha`.
        remains: what holds of the pooled reading for all points, λ_min(G) <= μ λ_min(G*).
        alpha: the scale of the initialisation, for the full reading.
        method: how the kernels were computed.
    """

    masked: Reading
    pooled: Reading
    full: Reading
    remains: Inequality
    alpha: float
    method: str

    def __iter__(self) -> Iterator[Reading]:
        """The readings one by one."""
        return iter((self.masked, self.pooled, self.full))

    def __str__(self) -> str:
        """A block of text for a terminal."""
        lines = [f"Which reading of Corollary III.6 holds (α = {self.alpha:g}; {self.method})"]
        for reading in self:
            for inequality in reading.inequalities().values():
                lines += [
                    f"  {reading.name}: {inequality.name}: {in_words(inequality, reading.proven)}",
                    f"    {as_text(inequality.lhs)} and {as_text(inequality.rhs)}",
                ]
        return "\n".join(lines)


def readings(
    x: ArrayLike,
    client: ArrayLike,
    alpha: Real = 1.0,
    covariances: PerClient = None,
    *,
    weights: Weights = None,
    tolerance: Real = 1e-10,
) -> Readings:
    """Says which reading of Corollary III.6 holds on data, with certificates.

    Closed forms where every S_i = λ_i I, `bn_gram_matrix` otherwise.

    Args:
        x: points, (n, d), centred by client (`centre`).
        client: n labels.
        alpha: scale of the initialisation, for Λ.
        covariances: S_i: a number λ or one (d, d) for all, one of either per client in order of
            first appearance, or a mapping from client to either. None takes each client's own
            covariance, `client_covariances(x, client)`.
        weights: p_i of the pooled S up to a factor, one per client; numbers of points if None.
        tolerance: of the quadrature, where one is needed.

    Raises:
        ValueError, TypeError: bad points, labels, alpha, covariances or weights; a row of zeros.
    """
    (found,) = readings_over(x, client, (alpha,), covariances, weights=weights, tolerance=tolerance)
    return found


def readings_over(
    x: ArrayLike,
    client: ArrayLike,
    alphas: Reals,
    covariances: PerClient = None,
    *,
    weights: Weights = None,
    tolerance: Real = 1e-10,
) -> tuple[Readings, ...]:
    """As `readings`, at several α: the kernels are computed once."""
    scales = as_alphas(alphas)
    kernels = reading_kernels(x, client, covariances, weights=weights, tolerance=tolerance)
    return kernels.readings(scales)


@dataclass(frozen=True)
class ReadingKernels:
    """What all readings of points are computed from.

    Attributes:
        magnitude: G∞ with S_i.
        direction: V∞ with S_i.
        pooled: G∞ with the pooled S.
        loss: a bound of μ.
        one_client: whether S is of one client, whose S_1 it then is.
    """

    magnitude: Kernel
    direction: Kernel
    pooled: Kernel
    loss: float
    one_client: bool

    def restricted(self, rows: Int[np.ndarray, " k"]) -> "ReadingKernels":
        """The kernels of some of the points, S_i and S unchanged."""
        return ReadingKernels(
            self.magnitude.restricted(rows),
            self.direction.restricted(rows),
            self.pooled.restricted(rows),
            self.loss,
            self.one_client,
        )

    def readings(self, alphas: Reals) -> tuple[Readings, ...]:
        """The readings at each α."""
        scales = as_alphas(alphas)
        found = compare_pooled(self.pooled, self.magnitude, self.loss, self.one_client)
        masked, pooled = _masked(self.magnitude), _reading("pooled", found)
        return tuple(
            Readings(
                masked,
                pooled,
                _reading("full", compare_full(self.magnitude, self.direction, scale)),
                found.remains,
                scale,
                self.magnitude.method,
            )
            for scale in scales
        )


def reading_kernels(
    x: ArrayLike,
    client: ArrayLike,
    covariances: PerClient = None,
    *,
    weights: Weights = None,
    tolerance: Real = 1e-10,
) -> ReadingKernels:
    """The kernels of `readings`, with its arguments."""
    points, groups, given = comparable(x, client, covariances)
    p = as_weights(weights, groups)
    magnitude, direction = both_kernels(points, client, given, tolerance)
    pooled, loss = pooled_kernel(points, given, p, tolerance)
    return ReadingKernels(magnitude, direction, pooled, loss, len(groups.names) == 1)


def _masked(kernel: Kernel) -> Reading:
    masked = kernel.masked()
    low, high = (
        (extreme(kernel.matrix, kernel.error), extreme(masked, masked.errors))
        for extreme in (smallest_eigenvalue, largest_eigenvalue)
    )
    return _compared("masked", low, high, len(kernel.groups.names) == 1)


def _reading(name: str, found: PooledComparison | FullKernelComparison) -> Reading:
    return _compared(
        name,
        (found.aggregated, found.client_specific),
        (found.largest_aggregated, found.largest_client_specific),
        found.one_client,
    )


def _compared(
    name: str,
    low: tuple[Enclosure, Enclosure],
    high: tuple[Enclosure, Enclosure],
    same: bool,
) -> Reading:
    whole, own = _KERNELS[name]
    proven = name == "masked"
    source = "Corollary III.6 and interlacing" if proven else "Corollary III.6, stretched"
    before, after = (condition_number(*pair) for pair in zip(low, high, strict=True))
    condition = None
    if before is not None and after is not None:
        condition = Inequality(f"κ({own}) ≤ κ({whole})", source, after, before, same)
    return Reading(
        name,
        proven,
        Inequality(f"λ_min({whole}) ≤ λ_min({own})", source, *low, same),
        Inequality(f"λ_max({own}) ≤ λ_max({whole})", source, high[1], high[0], same),
        condition,
    )
