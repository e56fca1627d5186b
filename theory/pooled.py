"""Corollary III.6 with a pooled S in G∞ and the clients' S_i in G*∞: where it fails.

The corollary's proof takes the blocks of G*∞ from G∞. They are the same matrices only if both
kernels normalise a client's points by the same ‖v‖_S. Aggregated BN, taken literally, normalises by
the statistics of all clients together, S = Σ p_i S_i, and then

    G_pq = E φ(v·x_p)φ(v·x_q)/vᵀSv,    G*_pq = E φ(v·x_p)φ(v·x_q)/vᵀS_i v within client i.

**What fails.** For S_i = λ_i I both are κ₁/d over a number, λ̄ = Σ p_i λ_i or λ_i. With K = κ₁(x, x)
the inequality λ_min(G*) >= λ_min(G) fails if and only if some client has

    λ_min(K_ii)/λ_min(K) < λ_i/λ̄,

that is, where the masking gains less than a client of large variance loses. For two points, one per
client, lengths 1 and ℓ, and λ_1 >= λ_2: K = ½ [[1, ℓg], [ℓg, ℓ²]] with g = 2κ₁ of the unit points,
2λ_min(K) = m = (1 + ℓ²)/2 − √((1 − ℓ²)²/4 + ℓ²g²), 2K_11 = 1. So it fails if and only if
λ_1/λ̄ > 1/m, or with p = p_1 and r = λ_2/λ_1, where λ̄/λ_1 = p + (1 − p)r,

    r < r* = (m − p)/(1 − p)        (ℓ = 1, p = ½: r* = 1 − 2g; at 90°, g = 1/π: r* = 1 − 2/π).

(Client 2 cannot be the one: λ_2 <= λ̄ and m <= ℓ².) Two orthogonal unit vectors and λ = 1 and 0.1
are enough: λ_min(G*) = 1/2d and λ_min(G) = (1 − 1/π)/2d/0.55, which is 1.24 times as large.

**What remains.** Let μ be the least number with S_i ⪯ μS for every i. Then 1/vᵀSv <= μ/vᵀS_iv, so
that G_ii ⪯ μG*_ii, and with interlacing λ_min(G) <= min_i λ_min(G_ii) <= μ λ_min(G*). Since
p_i S_i ⪯ S, μ <= 1/min p_i: N for equal weights. The constant is the best one: two points at θ → π
(g → 0) and λ_2 → 0 attain it.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import scipy.linalg
from jaxtyping import Float

from theory import _certify
from theory._client_kernels import (
    Covariances,
    Kernel,
    client_kernel,
    frobenius,
    isotropic,
    pooled_covariance,
)
from theory._comparable import comparable
from theory._loose import ArrayLike, PerClient, Real, Weights
from theory._supplement import SLACK, coupling, digits, enclosed, supplement
from theory._validate import Groups, positive
from theory.inequality import Inequality, as_text, in_words
from theory.spectrum import Enclosure, largest_eigenvalue, smallest_eigenvalue

_LEAST_WEIGHT = Fraction(1, 10**100)


@dataclass(frozen=True)
class PooledComparison:
    """G∞ with the pooled S against G*∞ with the clients' S_i.

    Attributes:
        aggregated: λ_min(G∞), S pooled.
        client_specific: λ_min(G*∞), S_i.
        largest_aggregated: λ_max(G∞).
        largest_client_specific: λ_max(G*∞).
        loss: a bound of μ, the least number with S_i ⪯ μS for every client.
        client: the client that attains λ_min(G*∞).
        method: how the kernels were computed.
        one_client: whether there is one client, so that S = S_1 and both kernels are the same.
    """

    aggregated: Enclosure
    client_specific: Enclosure
    largest_aggregated: Enclosure
    largest_client_specific: Enclosure
    loss: float
    client: Hashable
    method: str
    one_client: bool = False

    @property
    def inequality(self) -> Inequality:
        """λ_min(G) ≤ λ_min(G*): "violated" where it certainly fails, which it can."""
        return Inequality(
            "λ_min(G∞), S pooled ≤ λ_min(G*∞), S_i",
            "Corollary III.6, stretched",
            self.aggregated,
            self.client_specific,
            self.one_client,
        )

    @property
    def remains(self) -> Inequality:
        """λ_min(G) ≤ μ λ_min(G*), which holds for all points and covariances."""
        return Inequality(
            "λ_min(G∞), S pooled ≤ μ λ_min(G*∞), S_i",
            "derived here",
            self.aggregated,
            self.client_specific.scaled(self.loss),
            self.one_client,  # μ = 1
        )

    def __str__(self) -> str:
        """A block of text for a terminal."""
        words = in_words(self.inequality)
        return "\n".join(
            (
                f"λ_min(G*∞) ≥ λ_min(G∞) with a pooled S in G∞ and S_i in G*∞: {words}",
                f"  λ_min(G∞)  = {as_text(self.aggregated)}",
                f"  λ_min(G*∞) = {as_text(self.client_specific)}, client {self.client!r}",
                f"  λ_min(G∞) ≤ {self.loss:.4g} λ_min(G*∞) holds for all points",
            )
        )


def pooled_comparison(
    x: ArrayLike,
    client: ArrayLike,
    covariances: PerClient = None,
    *,
    weights: Weights = None,
    tolerance: Real = 1e-10,
) -> PooledComparison:
    """Compares λ_min of G∞ with a pooled S and of G*∞ with S_i; derived in the module's docstring.

    Closed forms where every S_i = λ_i I, `bn_gram_matrix` otherwise. The pooled S is Σ p_i S_i, as
    rounded where the S_i are matrices.

    Args:
        x: points, (n, d), centred by client.
        client: n labels.
        covariances: S_i: a number λ or one (d, d) for all, one of either per client in order of
            first appearance, or a mapping from client to either. None takes each client's own
            covariance, `client_covariances(x, client)`.
        weights: p_i up to a factor, one positive number per client; numbers of points if None.
        tolerance: of the quadrature, where one is needed.

    Raises:
        ValueError, TypeError: bad points, labels, covariances or weights; a row of zeros.
    """
    points, groups, given = comparable(x, client, covariances)
    p = as_weights(weights, groups)
    own = client_kernel(points, client, given, tolerance=tolerance)
    whole, loss = pooled_kernel(points, given, p, tolerance)
    return compare_pooled(whole, own, loss, len(groups.names) == 1)


def pooled_kernel(
    points: Float[np.ndarray, "n d"],
    covariances: Covariances,
    p: Mapping[Hashable, Fraction],
    tolerance: Real = 1e-10,
) -> tuple[Kernel, float]:
    """G∞ with S = Σ p_i S_i, and a bound of μ."""
    pooled = pooled_covariance(covariances, p, points.shape[1])
    together = [0] * len(points)  # one S for all: to the quadrature these are one client
    whole = client_kernel(points, together, {0: pooled}, tolerance=tolerance)
    if isinstance(pooled, float):  # rounded once, so is the kernel, which is linear in 1/S
        whole = replace(whole, error=whole.error + 2.0**-52 * frobenius(whole.matrix))
    return whole, _loss(covariances, pooled, p)


def compare_pooled(whole: Kernel, own: Kernel, loss: float, one_client: bool) -> PooledComparison:
    """As `pooled_comparison`, from kernels that are there already; `one_client` if S = S_1."""
    masked = own.masked()
    low_star = smallest_eigenvalue(masked, masked.errors)
    return PooledComparison(
        smallest_eigenvalue(whole.matrix, whole.error),
        low_star,
        largest_eigenvalue(whole.matrix, whole.error),
        largest_eigenvalue(masked, masked.errors),
        loss,
        low_star.block,
        whole.method,
        one_client,
    )


def pooled_threshold(angle: Real, weight: Real = 0.5, length: Real = 1.0) -> Enclosure:
    """The ratio λ_2/λ_1 below which III.6 fails with a pooled S: r* = (m − p)/(1 − p).

    Two points, one per client, S_i = λ_i I, in any dimension. Derived in the module's docstring.

    Args:
        angle: between the points, in radians, 0 < θ <= π, taken as exact.
        weight: p of client 1, whose variance is the larger one, 0 < p < 1.
        length: ℓ, the length of client 2's point by that of client 1's.

    Returns:
        An enclosure of r*; where it is not positive the inequality holds at every ratio.

    Raises:
        TypeError, ValueError: parameters outside their range.
    """
    p, size = Decimal(positive(weight, "weight")), Decimal(positive(length, "length"))
    if p >= 1:
        raise ValueError(f"weight must lie between 0 and 1, not {weight!r}.")
    with digits():
        square, g = size * size, coupling(supplement(angle))
        root = ((1 - square) ** 2 / 4 + square * g * g).sqrt()
        # m by the product of the roots: their difference cancels where ℓ is large or small.
        m = square * (1 - g) * (1 + g) / ((1 + square) / 2 + root)
        ratio = (m - p) / (1 - p)
        slack = SLACK * (1 + 1 / (1 - p))
        return enclosed(ratio - slack, ratio + slack, "sixty digits")


def as_weights(weights: object, groups: Groups) -> dict[Hashable, Fraction]:
    """p_i as exact fractions that sum to 1, none of them below 1e-100."""
    if weights is None:
        sizes = {n: Fraction(len(rows)) for n, rows in zip(groups.names, groups.rows, strict=True)}
    elif isinstance(weights, Mapping) and all(name in weights for name in groups.names):
        sizes = {n: Fraction(positive(weights[n], f"weight of {n!r}")) for n in groups.names}
    else:
        raise ValueError("weights must map every client to a positive number.")
    total, least = sum(sizes.values()), min(sizes, key=sizes.__getitem__)
    if sizes[least] < _LEAST_WEIGHT * total:
        raise ValueError(
            f"the weight of {least!r} is below 1e-100 of all weights together, which bounds "
            "nothing: drop the client or weigh it more."
        )
    return {name: size / total for name, size in sizes.items()}


def _loss(
    covariances: Covariances,
    pooled: float | Float[np.ndarray, "d d"],
    p: Mapping[Hashable, Fraction],
) -> float:
    """A bound of μ: S_i ⪯ μS, certified; 1/min p_i where nothing better is."""
    if len(p) == 1:
        return 1.0
    most = _certify.rounded(1 / min(p.values()), up=True)
    if isotropic(covariances):
        mean = sum(p[n] * Fraction(v) for n, v in covariances.items())  # type: ignore[arg-type]
        largest = max(Fraction(v) for v in covariances.values())  # type: ignore[arg-type]
        return min(most, _certify.rounded(largest / mean, up=True))
    found, d, whole = 1.0, len(pooled), np.asarray(pooled)  # type: ignore[arg-type]
    # S was rounded: S_i ⪯ (S + E)/p_i ⪯ (1 + ‖E‖/λ_min(S)) S/p_i. (Of a singular S the exact one.)
    least = smallest_eigenvalue(whole).lower
    rounded = (len(p) + 2) * 2.0**-52 * frobenius(whole) * d
    most *= 1 + 1e-9 + (rounded / least if least > 0 else 0.0)
    for value in covariances.values():
        matrix = value * np.eye(d) if isinstance(value, float) else np.asarray(value)
        try:
            ratio = scipy.linalg.eigh(matrix, whole, eigvals_only=True)[-1] * (1 + 1e-9)
        except np.linalg.LinAlgError:  # S not positive definite in float64
            return most
        gap = ratio * whole - matrix
        rounding = 3 * 2.0**-53 * (frobenius(ratio * whole) + frobenius(matrix))
        if smallest_eigenvalue(gap, rounding).lower < 0:
            return most
        found = max(found, float(ratio))
    return min(most, found)
