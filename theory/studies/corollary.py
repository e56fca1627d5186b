"""Corollary III.6 over draws of clients and samples, and the spectra behind it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theory.centring import centre
from theory.conditioning import step_sizes
from theory.convergence import Verdict, compare_smallest_eigenvalues
from theory.gram import client_gram_matrix, gram_matrix
from theory.studies.points import FULL_SAMPLES, choose, gaussian_clients
from theory.studies.rows import enclosed, row, step_rows

Points = tuple[NDArray[np.float64], NDArray]
Generators = Callable[..., np.random.Generator]
Progress = Callable[[float], None]


def corollary(
    config: Mapping[str, Any], data: Points | None, generators: Generators, progress: Progress
) -> Iterator[dict[str, Any]]:
    """Compare λ_min(G*∞) with λ_min(G∞) over sizes (N, M) and draws, each with its certificate.

    Points are centred by their client's mean over its full training set before any is drawn.

    Args:
        config: `sizes` (pairs N, M), `draws`, `dimension` of Gaussian clients, `seed`.
        data: real points and their clients; None draws Gaussian clients anew for every draw.
        generators: gives a generator for (seed, purpose...).
        progress: told the fraction done.
    """
    done, total = 0, len(config["sizes"]) * config["draws"]
    real = None if data is None else (centre(*data), np.asarray(data[1]))
    for clients, samples in config["sizes"]:
        for draw in range(config["draws"]):
            generator = generators(config["seed"], "corollary", clients, samples, draw)
            if real is None:
                x, client = gaussian_clients(generator, clients, FULL_SAMPLES, config["dimension"])
                x = centre(x, client)
            else:
                x, client = real
            rows = choose(generator, client, clients, samples)
            verdict = compare_smallest_eigenvalues(x[rows], client[rows])
            yield from verdict_rows(verdict, draw=draw, clients=clients, samples=samples)
            done += 1
            progress(done / total)


def verdict_rows(verdict: Verdict, **where: Any) -> Iterator[dict[str, Any]]:
    """Write a comparison as records: both smallest and both largest eigenvalues, and why."""
    yield enclosed("smallest_eigenvalue", verdict.aggregated, variant="G", **where)
    yield enclosed(
        "smallest_eigenvalue",
        verdict.client_specific,
        variant="G*",
        client=str(verdict.client),
        note=verdict.cause,
        **where,
    )
    yield enclosed("largest_eigenvalue", verdict.largest_aggregated, variant="G", **where)
    yield enclosed("largest_eigenvalue", verdict.largest_client_specific, variant="G*", **where)
    yield row("certified", verdict.verdict == "certified", note=verdict.verdict, **where)
    yield from step_rows(step_sizes(verdict), **where)


def spectrum(
    config: Mapping[str, Any], data: Points | None, generators: Generators, progress: Progress
) -> Iterator[dict[str, Any]]:
    """Compare on all the points there are, with every eigenvalue of G∞ and of G*∞'s blocks.

    The comparison is certified; the single eigenvalues are LAPACK's and serve the picture. They
    are left out where the config has `eigenvalues` False.
    """
    del generators
    if data is None:
        raise ValueError("The spectra are those of given data: pass points and their clients.")
    names = np.asarray(data[1])
    x = centre(data[0], names)
    per_client = {"clients": len(np.unique(names)), "samples": len(x) // len(np.unique(names))}
    yield from verdict_rows(compare_smallest_eigenvalues(x, names), draw=0, **per_client)
    # Clients may differ in size: N times the rounded mean M need not be the number of points.
    yield row("points", len(x), draw=0, **per_client)
    if not config.get("eigenvalues", True):
        return
    progress(0.3)
    for rank, value in enumerate(np.linalg.eigvalsh(gram_matrix(x))):
        yield row("eigenvalue", value, variant="G", draw=rank, **per_client)
    progress(0.8)
    blocks = client_gram_matrix(x, names)
    for name, block in zip(blocks.names, blocks.blocks, strict=True):
        for rank, value in enumerate(np.linalg.eigvalsh(block)):
            yield row("eigenvalue", value, variant="G*", client=str(name), draw=rank, **per_client)
    progress(1.0)
