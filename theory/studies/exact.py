"""Corollary III.6 with the exact kernel of BN, over the dimension kept and the ridge added."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from theory.blocks import diagonal_blocks
from theory.bn_kernel import bn_gram_matrix
from theory.centring import centre
from theory.covariances import client_covariances
from theory.inequality import Inequality
from theory.spectrum import largest_eigenvalue, smallest_eigenvalue
from theory.studies.corollary import Generators, Points, Progress
from theory.studies.points import FULL_SAMPLES, choose, gaussian_clients, leading_directions
from theory.studies.rows import enclosed, row, verdict_row

TOLERANCE = 1e-9
"""Of the quadrature: far below the gaps between the two smallest eigenvalues."""


def exact(
    config: Mapping[str, Any], data: Points | None, generators: Generators, progress: Progress
) -> Iterator[dict[str, Any]]:
    """Compare λ_min and λ_max of the exact G∞ and its blocks, S_i with a ridge, in k directions.

    S_i is the covariance of a client's full set of points, projected on the k leading directions
    of all clients together, plus ρ (tr S_i/k) I. The same points are taken throughout. Where S_i
    are singular in different directions there is no kernel: recorded as such. With one client both
    kernels are the same matrix, which certifies the corollary.

    Args:
        config: `clients`, `samples`, `kept` (the k), `ridges` (the ρ), `dimension` of Gaussian
            clients, `seed`.
        data: points and their clients; None for Gaussian clients.
        generators: gives a generator for (seed, purpose...).
        progress: told the fraction done.
    """
    generator = generators(config["seed"], "exact", config["data"])
    if data is None:
        data = gaussian_clients(generator, config["clients"], FULL_SAMPLES, config["dimension"])
    client = np.asarray(data[1])
    _, directions = leading_directions(data[0], max(config["kept"]))
    x = centre(data[0] @ directions, client)
    rows = choose(generator, client, config["clients"], config["samples"])
    total, done = len(config["kept"]) * len(config["ridges"]), 0
    for kept in config["kept"]:
        for ridge in config["ridges"]:
            at = {"split": f"k = {kept}", "round": kept, "parameter": ridge}
            yield from _compared(x[:, :kept], client, rows, at)
            done += 1
            progress(done / total)


def _compared(
    x: np.ndarray, client: np.ndarray, rows: np.ndarray, at: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    own = client_covariances(x, client, at["parameter"])
    used = {name: own[name] for name in dict.fromkeys(client[rows].tolist())}
    spectra = [np.linalg.eigvalsh(s) for s in used.values()]
    least = min(float(s[0] / s[-1]) for s in spectra)
    yield row("exact_condition", 1 / max(least, 1e-18), **at)
    try:
        kernel = bn_gram_matrix(x[rows], client[rows], used, tolerance=TOLERANCE)
    except ValueError as error:
        yield row("exact_refused", 1, note=str(error), **at)
        return
    masked = diagonal_blocks(kernel.matrix, client[rows])
    # A block errs by no more than the whole.
    masked = replace(masked, errors=(kernel.error,) * len(masked.blocks))
    yield row("exact_error", kernel.error, note=kernel.method, **at)
    low = smallest_eigenvalue(kernel.matrix, kernel.error)
    low_star = smallest_eigenvalue(masked, masked.errors)
    yield enclosed("exact_smallest", low, variant="G", **at)
    yield enclosed("exact_smallest", low_star, variant="G*", client=str(low_star.block), **at)
    top = largest_eigenvalue(kernel.matrix, kernel.error)
    top_star = largest_eigenvalue(masked, masked.errors)
    yield enclosed("exact_largest", top, variant="G", **at)
    yield enclosed("exact_largest", top_star, variant="G*", **at)
    claim = Inequality("λ_min(G∞) ≤ λ_min(G*∞)", "Corollary III.6", low, low_star, len(used) == 1)
    yield verdict_row("exact", claim, **at)
