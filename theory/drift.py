"""How far V(t), G(t), Λ(t) of Eq. (9) move in training and how far from infinite width they are.

Theorem III.4 rests on two facts about a wide network: at the start Λ(0) is near Λ∞, and training
hardly moves it. At t = 0 the kernels are means over m independent neurons, K(0) = 1/m Σ_k K_k with
E K_k = K∞, so that √m (K(0) − K∞) tends to a Gaussian matrix and ‖K(0) − K∞‖₂ falls as m^(−1/2).
The movement ‖K(t) − K(0)‖₂ is no mean of independent terms; that it falls too is what is measured.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from theory._engine import Engine
from theory._loose import Anything, ArrayLike, Real, Steps, Whole
from theory._validate import as_matrix, positive
from theory.descent import Problem, as_steps, as_task, descend
from theory.finite_width import Kernels, kernels_of
from theory.gram import direction_gram_matrix, normalised_gram_matrix
from theory.network import Array, Inputs, Network, as_inputs, at_least

PARTS = ("V", "G", "Lambda")
"""Kernels whose drift is recorded, in the order of the columns."""


@dataclass(frozen=True)
class KernelDrift:
    """Spectral norms of what separates the kernels of a run from their limits and their start.

    Attributes:
        steps: (k,) the steps recorded.
        from_limit: (k, 3), columns ‖V(t) − V∞‖₂, ‖G(t) − G∞‖₂ and ‖Λ(t) − Λ∞‖₂; for f* the limits
            are V∞, G*∞ and Λ*∞.
        from_start: (k, 3), the same with V(0), G(0) and Λ(0) in place of the limits.
        limit_norms: (3,), ‖V∞‖₂, ‖G∞‖₂ and ‖Λ∞‖₂, to make either relative.
        smallest_eigenvalue: (k,) λ_min(Λ(t)), as LAPACK computes it; `gradient_descent` gives the
            bound of its error where a certificate is wanted.
        status: "finished" or "diverged".
        diverged_at: the first step whose loss is not finite or has grown beyond measure, or None.
        step_size: η, the same for V and γ.
    """

    steps: Int[Array, " k"]
    from_limit: Float[Array, "k 3"]
    from_start: Float[Array, "k 3"]
    limit_norms: Float[Array, "3"]
    smallest_eigenvalue: Float[Array, " k"]
    status: Literal["finished", "diverged"]
    diverged_at: int | None
    step_size: float


def kernel_limits(
    network: Network | Anything, x: ArrayLike, client: ArrayLike, covariances: ArrayLike
) -> Kernels:
    """V∞, G∞ (or G*∞) and Λ∞ = V∞/α² + G∞ of a network at infinite width, for S_i = λI.

    G∞ = κ₁/(dλ) and V∞ = ((x·y)P₀ − κ₁/d)/λ (`normalised_gram_matrix`, `direction_gram_matrix`);
    for f* G∞ is masked between clients and V∞ is not. Neither depends on the width.

    Args:
        network: f or f*; its parameters do not matter, its α and its kind do.
        x: (n, d) points, centred by their client's mean.
        client: n labels, each one of `network.clients`.
        covariances: λ of S_i = λI.

    Raises:
        ValueError, TypeError: bad points or labels, or covariances that are matrices: their
            kernels have no closed form.
    """
    return _limits_of(network, as_inputs(network, x, client, covariances))


def kernel_drift(
    network: Network | Anything,
    problem: Problem | Anything,
    limits: Kernels | None = None,
    *,
    step_size: Real,
    steps: Whole,
    kernels_at: Steps = (0,),
) -> KernelDrift:
    """Distances of V(t), G(t), Λ(t) from V∞, G∞, Λ∞ and from t = 0, along gradient descent.

    Trains as `gradient_descent` does: the same steps, to the last bit.

    Args:
        network: f or f* at t = 0.
        problem: points, targets, clients and covariances.
        limits: V∞, G∞ (G*∞ for f*) and Λ∞. For S_i = λI they have closed forms and may be left out
            (`kernel_limits`).
        step_size: η > 0.
        steps: number of steps, 0 or more.
        kernels_at: steps at which the kernels are looked at; step 0 always is.

    Raises:
        ValueError, TypeError: bad points, targets, labels, covariances, step size or steps; limits
            of a wrong shape, or none where the covariances are matrices.
    """
    inputs, targets = as_task(network, problem)
    eta, total = positive(step_size, "step_size"), at_least(steps, 0, "steps")
    wanted = as_steps(kernels_at, total) | {0}
    limit = _limits_of(network, inputs) if limits is None else _checked(limits, len(targets))
    engine = Engine(network, inputs, targets)
    start, rows, count = None, [], 0
    for t, _ in descend(engine, eta, total):
        count = t + 1
        if t not in wanted:
            continue
        now = kernels_of(engine.network(), inputs)
        start = now if start is None else start
        smallest = float(np.linalg.eigvalsh(now.Lambda)[0])
        rows.append((t, *_distances(now, limit), *_distances(now, start), smallest))
    table = np.array(rows, dtype=np.float64).reshape(-1, 8)
    return KernelDrift(
        table[:, 0].astype(np.int64),
        table[:, 1:4],
        table[:, 4:7],
        np.array([_norm(getattr(limit, part)) for part in PARTS]),
        table[:, 7],
        "finished" if count == total + 1 else "diverged",
        None if count == total + 1 else count,
        eta,
    )


def _limits_of(network: Network, inputs: Inputs) -> Kernels:
    scale = inputs.covariances
    if isinstance(scale, np.ndarray):
        raise ValueError(
            "The limits have a closed form for S_i = λI only: pass limits=Kernels(V, G, Lambda) "
            "of these covariances."
        )
    direction = direction_gram_matrix(inputs.x, scale)
    magnitude = normalised_gram_matrix(inputs.x, scale)
    if network.client_specific:
        magnitude = magnitude * (inputs.column[:, None] == inputs.column[None, :])
    return Kernels(direction, magnitude, direction / network.alpha**2 + magnitude)


def _checked(limits: object, count: int) -> Kernels:
    if not isinstance(limits, Kernels):
        raise TypeError(f"limits must be Kernels(V, G, Lambda), not {type(limits).__name__}.")
    parts = [as_matrix(getattr(limits, part), f"limits.{part}") for part in PARTS]
    for part, matrix in zip(PARTS, parts, strict=True):
        if matrix.shape != (count, count):
            raise ValueError(
                f"limits.{part} has shape {matrix.shape}; ({count}, {count}) is needed, one row "
                "per point."
            )
    return Kernels(*parts)


def _distances(one: Kernels, other: Kernels) -> list[float]:
    return [_norm(getattr(one, part) - getattr(other, part)) for part in PARTS]


def _norm(matrix: Float[Array, "n n"]) -> float:
    """‖K‖₂ of a symmetric matrix."""
    return float(np.abs(np.linalg.eigvalsh(matrix)).max())
