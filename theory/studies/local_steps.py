"""f and f* trained by E local steps a round, some clients taking part: beyond Theorem III.4."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from theory.descent import Problem
from theory.federated_descent import FederatedTrajectory, federated_descent, sample_participants
from theory.finite_width import kernels
from theory.network import Network, initialise
from theory.rates import log_factor
from theory.spectrum import Enclosure, largest_eigenvalue
from theory.studies.corollary import Generators, Points, Progress
from theory.studies.dynamics import NETS, limits
from theory.studies.points import unit_covariance_sample
from theory.studies.rows import enclosed, row

FLOOR = 1e-12
"""The fraction of the squared residual down to which a rate is read off a curve."""

EVERYONE = 1.0


def local_steps(
    config: Mapping[str, Any], data: Points | None, generators: Generators, progress: Progress
) -> Iterator[dict[str, Any]]:
    """Train f and f* federatedly at one α and width, over E and the fraction that takes part.

    With the step that is admissible for every client's own loss, η = min_i p_i/λ_max(Λ_ii(0)):
    the blocks Λ_ii of f and f* are the same, so both have this one η; it is at most 1/λ_max(Λ(0)),
    as Σ_i λ_max(Λ_ii) ≥ λ_max(Λ). With everyone also with η = 1/λ_max(Λ(0)), the largest that the
    theorem admits, which may be too long a step for a client alone.

    Args:
        config: `clients`, `samples`, `dimension`, `alpha`, `width`, `rounds`, `local_steps` (the
            E), `fractions` (of the clients), `draw`, `seed`.
        data: real points and their clients, or None for Gaussian clients.
        generators: gives a generator for (seed, purpose...).
        progress: told the fraction done.
    """
    x, client = unit_covariance_sample(config, data, generators, config["draw"])
    random = generators(config["seed"], "local steps", config["data"], config["draw"])
    problem = Problem(x, random.choice([-1.0, 1.0], size=len(x)), client, 1.0)
    seed, draw = (int(random.integers(2**62)) for _ in range(2))
    names, alpha = tuple(np.unique(client).tolist()), config["alpha"]
    limit = limits(x, client, alpha)
    yield row("magnitude_dominates", limit.magnitude_dominates)
    runs = [("client", e, c) for c in config["fractions"] for e in config["local_steps"]]
    runs += [("server", e, EVERYONE) for e in config["local_steps"]]
    chosen = {
        fraction: sample_participants(names, fraction, config["rounds"], draw)
        for _, _, fraction in runs
    }
    for k, (net, specific) in enumerate(NETS.items()):
        network = initialise(
            config["width"], x.shape[1], names, alpha=alpha, seed=seed, client_specific=specific
        )
        sizes = _step_sizes(network, problem)
        yield from _promise(limit.e0(net), sizes, net, config["rounds"])
        for j, (choice, steps, fraction) in enumerate(runs):
            found = federated_descent(
                network,
                problem,
                step_size=sizes[choice],
                rounds=config["rounds"],
                local_steps=steps,
                participants=chosen[fraction],
            )
            yield from _run_rows(found, f"{net}|{choice}|{fraction:g}|{steps}")
            progress((k + (j + 1) / len(runs)) / 2)


def _step_sizes(network: Network, problem: Problem) -> dict[str, float]:
    """The largest step on L that the theorem admits, and that which every client's L_i admits."""
    matrix = kernels(network, problem.x, problem.client, problem.covariances).Lambda
    client = np.asarray(problem.client)
    tops = []
    for name in network.clients:
        rows = np.flatnonzero(client == name)
        top = largest_eigenvalue(np.ascontiguousarray(matrix[np.ix_(rows, rows)])).upper
        tops.append(top * len(client) / len(rows))
    server = 1.0 / largest_eigenvalue(matrix).upper
    return {"server": server, "client": min(server, 1.0 / max(tops))}


def _promise(
    e0: Enclosure, sizes: Mapping[str, float], net: str, rounds: int
) -> Iterator[dict[str, Any]]:
    """η, e₀ and (1 − ηe₀/2)^t of the start, what the theorem says for E = 1 and everyone."""
    yield enclosed("limit_smallest_eigenvalue", e0, variant=net)
    for choice, size in sizes.items():
        yield row("step_size", size, variant=f"{net}|{choice}")
        if e0.lower > 0:
            decay = log_factor(e0.lower, size)
            where = {"variant": f"{net}|{choice}", "note": "E = 1, everyone"}
            yield row("promised_decades", -decay / np.log(10), **where)
            for t in _grid(rounds):
                yield row("promised", np.exp(decay * t), round=t, **where)


def _run_rows(found: FederatedTrajectory, variant: str) -> Iterator[dict[str, Any]]:
    """The squared residual by its start over rounds, and its mean decay a round, in decades."""
    note = "inside the theorem" if found.inside_theorem else "outside the theorem"
    where = {"variant": variant, "note": note}
    yield row("diverged" if found.diverged_at is not None else "finished", 1.0, **where)
    if found.diverged_at is not None:
        yield row("diverged_at", found.diverged_at, **where)
    curve = found.squared_residuals
    if not curve.size or curve[0] == 0:
        return
    relative, last = curve / curve[0], len(curve) - 1
    for t in _grid(last):
        yield row("relative_residual", relative[t], round=t, **where)
    if found.diverged_at is None and last:
        low = np.flatnonzero(relative <= FLOOR)
        end = int(low[0]) if low.size else last
        if relative[end] > 0:
            yield row("decades_a_round", -np.log10(relative[end]) / end, round=end, **where)


def _grid(rounds: int) -> list[int]:
    return sorted({int(t) for t in np.linspace(0, rounds, 61).round()})
