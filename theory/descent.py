"""Full-batch gradient descent on f and f* of finite width, and its linearised prediction."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from theory._engine import Engine
from theory._loose import Anything, ArrayLike, Real, Steps, Whole
from theory._validate import as_matrix, as_real_array, positive
from theory.kernel_spectra import KernelSpectra, as_spectra, extremes
from theory.network import Array, Inputs, Network, as_inputs, at_least

# A loss this many times its start (plus that of f = 0) is called divergence: early growth that
# training recovers from, which a large step can cause, stays far below.
_GROWTH = 1e12


@dataclass(frozen=True)
class Problem:
    """A regression task: points, targets, client labels and the fixed covariances S_i.

    Attributes:
        x: (n, d) points, centred by their client's mean (`theory.centre`).
        y: n real targets.
        client: n labels, each one of the network's clients.
        covariances: (N, d, d) in the order of the network's clients, or λ for S_i = λI.
    """

    x: ArrayLike
    y: ArrayLike
    client: ArrayLike
    covariances: ArrayLike


@dataclass(frozen=True)
class Trajectory:
    """What gradient descent did.

    Attributes:
        losses: L(t) = ½‖f(t) − y‖² for t = 0, 1, …; all finite, shorter than asked if it diverged.
        status: "finished" or "diverged".
        diverged_at: the first step whose loss is not finite or has grown beyond 1e12 times the
            start, or None.
        spectra: the kernels' extreme eigenvalues at the steps asked for.
        network: the parameters after the last step; after divergence, those last recorded.
        step_size: η, the same for V and γ.
        samples: number n of points.
        rounding: for each of `losses`, a bound of the error of √(2L(t)) as ‖f(t) − y‖₂ at the
            parameters of that step as they were computed; that these drift from those of exact
            arithmetic over the steps is not part of it. Infinite where none can be given, as
            for a covariance so ill-conditioned that ‖v‖_S has no correct digit.
        scale: λ of S_i = λI, None for other covariances.
        e0_limit: no λ_min(G∞) of other covariances exceeds it: G∞_pp <= x_pᵀS_i⁻¹x_p/2. Infinite
            for S_i = λI, where the kernel has a closed form.
    """

    losses: Float[Array, " t"]
    status: Literal["finished", "diverged"]
    diverged_at: int | None
    spectra: KernelSpectra
    network: Network
    step_size: float
    samples: int
    rounding: Float[Array, " t"]
    scale: float | None
    e0_limit: float

    @property
    def squared_residuals(self) -> Float[Array, " t"]:
        """‖f(t) − y‖², the left side of Theorem III.4."""
        return 2.0 * self.losses


def gradient_descent(
    network: Network | Anything,
    problem: Problem | Anything,
    *,
    step_size: Real,
    steps: Whole,
    kernels_at: Steps = (0,),
    progress: Callable[[float], object] | None = None,
) -> Trajectory:
    """Minimises L = ½ Σ_p (f(x_p) − y_p)² over (V, γ), c fixed, by full-batch gradient descent.

    One step size η serves V and γ, as in Theorem III.4. The network given is not changed.

    Args:
        network: f or f* at t = 0.
        problem: points, targets, clients and covariances.
        step_size: η > 0.
        steps: number of steps, 0 or more.
        kernels_at: steps at which the extreme eigenvalues of V, G and Λ are recorded.
        progress: called now and then with the fraction of the steps done.

    Returns:
        The loss at every step. Divergence is a status, never a NaN.

    Raises:
        ValueError, TypeError: bad points, targets, labels, covariances, step size or step number.
    """
    inputs, targets = as_task(network, problem)
    eta = positive(step_size, "step_size")
    total = at_least(steps, 0, "steps")
    wanted = as_steps(kernels_at, total)
    engine = Engine(network, inputs, targets)
    losses: list[float] = []
    roundings: list[float] = []
    recorded: dict[int, tuple[float, ...]] = {}
    last = network
    for t, loss in descend(engine, eta, total):
        losses.append(loss)
        roundings.append(engine.rounding())
        if t in wanted or t == total:
            last = engine.network()
        if t in wanted:
            recorded[t] = extremes(last, inputs)
        if progress is not None and (t == total or t % max(1, total // 200) == 0):
            progress(1.0 if total == 0 else t / total)
    finished = len(losses) == total + 1
    return Trajectory(
        np.array(losses),
        "finished" if finished else "diverged",
        None if finished else len(losses),
        as_spectra(recorded),
        last,
        eta,
        len(targets),
        np.array(roundings),
        engine.scale,
        _e0_limit(inputs),
    )


def descend(engine: Engine, eta: float, total: int) -> Iterator[tuple[int, float]]:
    """Steps and their losses, up to the last one or to that before divergence."""
    limit = np.inf
    for t in range(total + 1):
        loss = engine.forward()
        if t == 0:
            limit = loss_limit(engine, loss)
        if not math.isfinite(loss) or loss > limit:
            return
        yield t, loss
        if t < total:
            engine.step(eta)


def loss_limit(engine: Engine, start: float) -> float:
    """The loss beyond which a run is called diverged."""
    return _GROWTH * (start + engine.loss_of_zero())


def linearised_losses(
    kernel: ArrayLike, residual: ArrayLike, step_size: Real, steps: Whole
) -> Float[Array, " t"]:
    """L(t) = ½‖(I − ηΛ)^t (f(0) − y)‖², the lazy-training prediction, for t = 0..steps.

    Args:
        kernel: (n, n) symmetric Λ(0).
        residual: n numbers, f(0) − y.
        step_size: η > 0.
        steps: 0 or more.

    Returns:
        (steps + 1,) losses; infinite where a diverging prediction overflows.

    Raises:
        ValueError, TypeError: shapes do not fit, a number is not finite, η ≤ 0 or steps < 0.
    """
    matrix = as_matrix(kernel, "kernel")
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError("kernel must be a square matrix, such as kernels(…).Lambda.")
    if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-10 * np.abs(matrix).max(initial=0.0):
        raise ValueError("kernel is not symmetric; pass (K + K.T) / 2.")
    start = as_targets(residual, len(matrix), "residual")
    eta = positive(step_size, "step_size")
    times = np.arange(at_least(steps, 0, "steps") + 1)
    values, vectors = np.linalg.eigh(matrix)
    energy = 0.5 * (vectors.T @ start) ** 2
    out = np.zeros(len(times))
    with np.errstate(over="ignore", under="ignore"):
        base = (1.0 - eta * values) ** 2
        for rate, weight in zip(base, energy, strict=True):
            if weight > 0:
                out += weight * rate**times
    return out


def as_task(
    network: Network | Anything, problem: Problem | Anything
) -> tuple[Inputs, Float[Array, " n"]]:
    """Validates a regression task against a network."""
    if not isinstance(problem, Problem):
        raise TypeError(
            f"problem must be a Problem(x, y, client, covariances), not {type(problem).__name__}."
        )
    inputs = as_inputs(network, problem.x, problem.client, problem.covariances)
    return inputs, as_targets(problem.y, len(inputs.x))


def as_targets(values: ArrayLike, count: int, name: str = "y") -> Float[Array, " n"]:
    """`count` finite real numbers as float64."""
    array = as_real_array(values, name)
    if array.shape != (count,):
        raise ValueError(f"{name} has shape {array.shape}; ({count},) is needed, one per point.")
    return array.copy()


def as_steps(kernels_at: Steps, total: int) -> set[int]:
    """Steps from 0 to `total` at which kernels are to be recorded."""
    if not isinstance(kernels_at, Iterable):
        raise TypeError(f"kernels_at must be a sequence of steps, such as ({kernels_at!r},).")
    wanted = {at_least(step, 0, "kernels_at") for step in kernels_at}
    if wanted and max(wanted) > total:
        raise ValueError(f"kernels_at asks for step {max(wanted)} of only {total} steps.")
    return wanted


def _e0_limit(inputs: Inputs) -> float:
    """The smallest x_pᵀS_i⁻¹x_p/2, with room for its rounding; infinite for S_i = λI."""
    if not isinstance(inputs.covariances, np.ndarray):
        return np.inf
    limit = np.inf
    for i in np.unique(inputs.column):
        matrix = inputs.covariances[i]
        own = inputs.x[inputs.column == i]
        room = 1 + len(matrix) ** 2 * np.finfo(float).eps * np.linalg.cond(matrix)
        forms = np.einsum("pd,dp->p", own, np.linalg.solve(matrix, own.T))
        limit = min(limit, float(forms.min()) * room / 2)
    return limit
