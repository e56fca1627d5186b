"""Gradient descent on f and f* against Theorem III.4, Corollary III.5 and the linearisation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from theory.convergence import DecayCheck, corollary_iii5, required_width, theorem_iii4
from theory.descent import Problem, Trajectory, gradient_descent, linearised_losses
from theory.finite_width import kernels, predict
from theory.gram import (
    direction_gram_error,
    direction_gram_matrix,
    gram_error,
    gram_matrix,
    normalised_client_gram_matrix,
    normalised_gram_error,
    normalised_gram_matrix,
)
from theory.kernel_error import kernels_error
from theory.network import Network, initialise
from theory.rates import log_factor
from theory.spectrum import Enclosure, largest_eigenvalue, smallest_eigenvalue
from theory.studies.corollary import Generators, Points, Progress
from theory.studies.points import unit_covariance_sample
from theory.studies.rows import enclosed, row

CONFIDENCE = 1e-9
"""Probability with which Hoeffding's bound may fail, over all pairs of points together."""

TOLERANCE = 1e-3
"""The fraction of the squared residual to which steps are counted."""

NETS = {"f": False, "f*": True}


@dataclass(frozen=True)
class Limits:
    """What infinite width says: e₀ of f and of f*, λ_min(V∞)/α², and λ_min of Eq. (10) printed."""

    aggregated: Enclosure
    client_specific: Enclosure
    direction: Enclosure
    printed: Enclosure

    @property
    def magnitude_dominates(self) -> bool:
        """Whether λ_min(V∞)/α² < λ_min(G∞), by the enclosures."""
        return self.direction.upper < self.aggregated.lower

    def e0(self, net: str) -> Enclosure:
        """The theorem's e₀ for a net."""
        return self.client_specific if NETS[net] else self.aggregated


def limits(x: Float[NDArray, "n d"], client: NDArray, alpha: float) -> Limits:
    """Enclose the smallest eigenvalues that the theorem is about, for S = I."""
    error = normalised_gram_error(x)
    rounding = 2 * np.finfo(float).eps * float(np.linalg.norm(direction_gram_matrix(x)))
    return Limits(
        smallest_eigenvalue(normalised_gram_matrix(x), error),
        smallest_eigenvalue(normalised_client_gram_matrix(x, client), error),
        smallest_eigenvalue(
            direction_gram_matrix(x) / alpha**2, (direction_gram_error(x) + rounding) / alpha**2
        ),
        smallest_eigenvalue(gram_matrix(x, alpha), gram_error(x, alpha)),
    )


def dynamics(
    config: Mapping[str, Any], data: Points | None, generators: Generators, progress: Progress
) -> Iterator[dict[str, Any]]:
    """Train f and f* at one α and width: at a common η, and each at its own largest η.

    Args:
        config: `clients`, `samples`, `dimension`, `alpha`, `width`, `steps`, `draw`, `seed`.
        data: real points and their clients, or None for Gaussian clients.
        generators: gives a generator for (seed, purpose...).
        progress: told the fraction done.
    """
    x, client = unit_covariance_sample(config, data, generators, config["draw"])
    random = generators(config["seed"], "dynamics", config["data"], config["draw"])
    y = random.choice([-1.0, 1.0], size=len(x))
    problem, seed = Problem(x, y, client, 1.0), int(random.integers(2**62))
    names, alpha = tuple(np.unique(client).tolist()), config["alpha"]
    limit = limits(x, client, alpha)
    yield from _limit_rows(limit, len(x), alpha)
    nets = {
        net: initialise(
            config["width"], x.shape[1], names, alpha=alpha, seed=seed, client_specific=specific
        )
        for net, specific in NETS.items()
    }
    yield from _entry_rows(nets["f"], problem, alpha)
    own = {}
    for net, network in nets.items():
        smallest, largest = _start(network, problem)
        own[net] = 1.0 / largest.upper
        yield enclosed("smallest_eigenvalue", smallest, variant=net)
        yield enclosed("largest_eigenvalue", largest, variant=net)
    common, done = min(own.values()), 0
    for net, network in nets.items():
        descents = _descents(network, problem, (common, own[net]), config["steps"])
        for choice, (trajectory, prediction) in zip(("common", "own"), descents, strict=True):
            yield from _descent_rows(trajectory, prediction, limit, f"{net}|{choice}")
            done += 1
            progress(done / 4)


def _start(network: Network, problem: Problem) -> tuple[Enclosure, Enclosure]:
    """λ_min and λ_max of Λ(0), the rounding of the kernel counted."""
    arguments = network, problem.x, problem.client, problem.covariances
    matrix, error = kernels(*arguments).Lambda, kernels_error(*arguments)
    return smallest_eigenvalue(matrix, error), largest_eigenvalue(matrix, error)


def _descents(
    network: Network, problem: Problem, step_sizes: tuple[float, float], steps: int
) -> Iterator[tuple[Trajectory, Float[NDArray, " t"]]]:
    """A descent and its linearised prediction for each step size; one serves where both agree."""
    arguments = network, problem.x, problem.client, problem.covariances
    matrix, residual = kernels(*arguments).Lambda, predict(*arguments) - np.asarray(problem.y)
    trajectory = None
    for step_size in step_sizes:
        if trajectory is None or step_size != trajectory.step_size:
            trajectory = gradient_descent(
                network, problem, step_size=step_size, steps=steps, kernels_at=_grid(steps, 9)
            )
        yield trajectory, 2.0 * linearised_losses(matrix, residual, step_size, steps)


def _grid(steps: int, points: int) -> list[int]:
    return sorted({int(step) for step in np.linspace(0, steps, points).round()})


def _limit_rows(limit: Limits, n: int, alpha: float) -> Iterator[dict[str, Any]]:
    yield enclosed("limit_smallest_eigenvalue", limit.aggregated, variant="f")
    yield enclosed("limit_smallest_eigenvalue", limit.client_specific, variant="f*")
    yield enclosed("limit_smallest_eigenvalue", limit.direction, variant="V")
    yield enclosed("limit_smallest_eigenvalue", limit.printed, variant="printed")
    yield row("magnitude_dominates", limit.magnitude_dominates)
    for net in NETS:
        # Where e₀ may be 0 the theorem asks for no finite width.
        if limit.e0(net).lower > 0:
            width = required_width(limit.e0(net), n, alpha)
            yield row("required_width", width.width, variant=net)


def _entry_rows(network: Network, problem: Problem, alpha: float) -> Iterator[dict[str, Any]]:
    """How far G(0) lies from either formula, in units of Hoeffding's radius.

    For S = I every term φ(v·x)φ(v·y)/‖v‖² of G(0)'s mean over neurons lies in [0, ‖x‖‖y‖], so
    that with probability 1 − δ every entry is within ‖x‖‖y‖ √(log(n(n+1)/δ) / 2m) of its mean.
    """
    x = np.asarray(problem.x)
    n, lengths = len(x), np.linalg.norm(x, axis=1)
    radius = np.sqrt(np.log(n * (n + 1) / CONFIDENCE) / (2 * network.width))
    radius = radius * lengths[:, None] * lengths[None, :]
    magnitude = kernels(network, x, problem.client, problem.covariances).G
    formulas = {"limit": normalised_gram_matrix(x), "printed": gram_matrix(x, alpha)}
    for variant, matrix in formulas.items():
        gap = float((np.abs(magnitude - matrix) / radius).max())
        yield row("entry_gap", gap, variant=variant, note=f"Hoeffding, δ = {CONFIDENCE:g}")


def _descent_rows(
    trajectory: Trajectory,
    prediction: Float[NDArray, " t"],
    limit: Limits,
    variant: str,
) -> Iterator[dict[str, Any]]:
    """The step size, curves at about sixty steps, the check of the theorem, and its promise."""
    where = {"variant": variant}
    yield row("step_size", trajectory.step_size, **where)
    if trajectory.diverged_at is not None:
        yield row("diverged_at", trajectory.diverged_at, **where)
        return
    net = variant.split("|")[0]
    e0 = limit.e0(net)
    check = (corollary_iii5 if NETS[net] else theorem_iii4)(trajectory, e0)
    last = len(check.measured) - 1
    for step in _grid(last, 61):
        low, high = (float(end) for end in check.bound[step])
        yield row("squared_residual", check.measured[step], round=step, **where)
        yield row("linearised", prediction[step], round=step, **where)
        yield row("bound", 0.5 * (low + high), lower=low, upper=high, round=step, **where)
    for step, ends in zip(trajectory.spectra.steps, trajectory.spectra.Lambda, strict=True):
        yield row("smallest_eigenvalue_during", ends[0], round=int(step), **where)
    yield from _check_rows(check, variant)
    reached = np.flatnonzero(check.measured <= TOLERANCE * check.measured[0])
    if reached.size:
        yield row("steps_to_thousandth", reached[0], **where)
    if e0.lower > 0:
        decay = log_factor(e0.lower, trajectory.step_size)
        yield row("factor", np.exp(decay), **where)
        yield row("steps_promised", np.ceil(np.log(TOLERANCE) / decay), **where)


def _check_rows(check: DecayCheck, variant: str) -> Iterator[dict[str, Any]]:
    """Both inequalities of the theorem as the check gives them, and the slack they leave."""
    where, last = {"variant": variant}, len(check.measured) - 1
    yield row(
        "bound_slack_decades",
        check.worst_slack_decades,
        round=check.worst_step,
        note=check.decay.verdict,
        **where,
    )
    if np.isfinite(check.slack_decades[-1]):  # infinite where the residual is exactly 0
        yield row("final_slack_decades", check.slack_decades[-1], round=last, **where)
    if check.eigenvalue is not None:
        ratio = check.eigenvalue.rhs.lower / check.eigenvalue.lhs.upper
        yield row("eigenvalue_over_half_e0", ratio, note=check.eigenvalue.verdict, **where)
    yield row("g_dominated_during", bool(check.hypotheses.g_dominated), **where)
