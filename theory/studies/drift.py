"""How far V, G and Λ lie from infinite width and move in training, over draws, at one width."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theory.affordable import affordable_width
from theory.descent import Problem
from theory.drift import PARTS, KernelDrift, kernel_drift
from theory.finite_width import kernels
from theory.network import Network, initialise
from theory.rates import required_width
from theory.spectrum import largest_eigenvalue
from theory.studies.corollary import Generators, Points, Progress
from theory.studies.dynamics import NETS, limits
from theory.studies.points import unit_covariance_sample
from theory.studies.rows import enclosed, row

MEMORY = 8 * 2**30
"""Bytes of memory that a machine is taken to have for one network."""


def drift(
    config: Mapping[str, Any], data: Points | None, generators: Generators, progress: Progress
) -> Iterator[dict[str, Any]]:
    """Train f and f* at one α and width, each with η = 1/λ_max(Λ(0)), and record their drift.

    Args:
        config: `clients`, `samples`, `dimension`, `alpha`, `width`, `steps`, `draws` (points and
            networks that are trained), `starts` (draws in all; the others are looked at untrained),
            `seed`.
        data: real points and their clients, or None for Gaussian clients.
        generators: gives a generator for (seed, purpose...).
        progress: told the fraction done.
    """
    starts = max(config["starts"], config["draws"])
    size = config["clients"] * config["samples"], config["dimension"], config["clients"]
    yield row("affordable_width", affordable_width(*size, MEMORY), note=f"{MEMORY // 2**30} GiB")
    for draw in range(starts):
        trained = draw < config["draws"]
        x, client = unit_covariance_sample(config, data, generators, draw)
        purpose = "drift", config["data"], config["width"], draw
        random = generators(config["seed"], *purpose)
        problem = Problem(x, random.choice([-1.0, 1.0], size=len(x)), client, 1.0)
        seed = int(random.integers(2**62))
        if trained:
            yield from _theory_rows(x, client, config["alpha"], draw)
        for net, specific in NETS.items():
            network = initialise(
                config["width"],
                x.shape[1],
                tuple(np.unique(client).tolist()),
                alpha=config["alpha"],
                seed=seed,
                client_specific=specific,
            )
            found = _trained(network, problem, config["steps"] if trained else 0)
            yield from _drift_rows(found, net, draw)
        progress((draw + 1) / starts)


def _trained(network: Network, problem: Problem, steps: int) -> KernelDrift:
    matrix = kernels(network, problem.x, problem.client, problem.covariances).Lambda
    step_size = 1.0 / largest_eigenvalue(matrix).upper
    recorded = sorted({int(step) for step in np.linspace(0, steps, 7).round()})
    return kernel_drift(network, problem, step_size=step_size, steps=steps, kernels_at=recorded)


def _theory_rows(
    x: NDArray[np.float64], client: NDArray, alpha: float, draw: int
) -> Iterator[dict[str, Any]]:
    """e₀ of f and f*, and the width that Theorem III.4 asks for where e₀ is certainly positive."""
    limit = limits(x, client, alpha)
    yield row("magnitude_dominates", limit.magnitude_dominates, draw=draw)
    for net in NETS:
        e0 = limit.e0(net)
        yield enclosed("limit_smallest_eigenvalue", e0, variant=net, draw=draw)
        if e0.lower > 0:
            asked = required_width(e0, len(x), alpha)
            yield row("required_width", asked.width, variant=net, draw=draw)


def _drift_rows(found: KernelDrift, net: str, draw: int) -> Iterator[dict[str, Any]]:
    """Distances relative to the limit's norm, and λ_min(Λ(t)), at the recorded steps.

    Nothing is relative to a limit that is 0 but for rounding, as V∞ is in one dimension.
    """
    least = 1e-12 * found.limit_norms.max()
    if found.diverged_at is not None:
        yield row("diverged_at", found.diverged_at, variant=net, draw=draw)
    for k, step in enumerate(found.steps):
        at = {"round": int(step), "draw": draw}
        for j, part in enumerate(PARTS):
            where = {"variant": f"{net}|{part}", **at}
            norm = found.limit_norms[j]
            if norm > least:
                yield row("drift_from_limit", found.from_limit[k, j] / norm, **where)
                yield row("drift_by_training", found.from_start[k, j] / norm, **where)
        yield row("smallest_eigenvalue_during", found.smallest_eigenvalue[k], variant=net, **at)
