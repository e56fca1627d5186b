"""The points of the studies: Gaussian clients, and real ones reduced and whitened."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.linalg
from jaxtyping import Float, Int
from numpy.typing import NDArray

FULL_SAMPLES = 743
"""Points of a Gaussian client's full training set: as many as a client of the digits has."""


def gaussian_clients(
    generator: np.random.Generator, clients: int, samples: int, dimension: int
) -> tuple[Float[NDArray, "n d"], Int[NDArray, " n"]]:
    """Draw clients with feature shift: x^i ~ N(0, S_i), S_i of condition 10 in a random basis.

    Assumption III.1 of the paper. Each client has its own basis and its own order of the
    eigenvalues, so that no two covariances commute.

    Returns:
        The points (clients * samples, dimension) and each one's client, 0 to clients - 1.
    """
    spread = np.geomspace(1.0, np.sqrt(10.0), dimension)
    drawn = []
    for _ in range(clients):
        basis, _ = np.linalg.qr(generator.standard_normal((dimension, dimension)))
        drawn.append((generator.standard_normal((samples, dimension)) * spread) @ basis.T)
    return np.concatenate(drawn), np.repeat(np.arange(clients), samples)


def principal(x: Float[NDArray, "n d"], dimension: int) -> Float[NDArray, "n k"]:
    """Project on the leading principal directions of all clients together.

    Raises:
        ValueError: if fewer than `dimension` directions carry any variance, or none is asked for.
    """
    values, directions = leading_directions(x, dimension)
    if len(values) < dimension or values[-1] <= 1e-12 * values[0]:
        raise ValueError(
            f"The data span fewer than {dimension} directions: ask for a smaller dimension."
        )
    return x @ directions


def leading_directions(
    x: Float[NDArray, "n d"], dimension: int
) -> tuple[Float[NDArray, " k"], Float[NDArray, "d k"]]:
    """The largest sums of squares about the mean, and their directions as columns.

    Fewer than `dimension` where there are fewer points.

    Raises:
        ValueError: more dimensions than there are, or none, is asked for.
    """
    d = x.shape[1]
    if not 1 <= dimension <= d:
        raise ValueError(f"The data have {d} dimensions: ask for 1 to {d}, not {dimension}.")
    centred = x - x.mean(axis=0)
    if len(x) < d:
        # The covariance of many features would take d³ steps.
        _, singular, right = np.linalg.svd(centred, full_matrices=False)
        return singular[:dimension] ** 2, right[:dimension].T
    values, directions = scipy.linalg.eigh(
        centred.T @ centred, subset_by_index=(d - dimension, d - 1)
    )
    return values[::-1], directions[:, ::-1]


def whiten(
    x: Float[NDArray, "n d"], client: NDArray, condition: float = 1e-10
) -> Float[NDArray, "n d"]:
    """Centre each client and multiply by S_i^(-1/2), so that its covariance is the identity.

    The shift of mean and covariance between the clients is gone afterwards: what is left is the
    case S_i = I of the theory, for which the kernels have closed forms.

    Raises:
        ValueError: if a client's covariance is singular: its smallest eigenvalue is at most
            `condition` of its largest.
    """
    result = np.empty_like(x)
    for name in np.unique(client):
        rows = client == name
        centred = x[rows] - x[rows].mean(axis=0)
        values, basis = np.linalg.eigh(centred.T @ centred / rows.sum())
        if values[0] <= condition * values[-1]:
            raise ValueError(
                f"Client {str(name)!r} has a singular covariance in {x.shape[1]} dimensions from "
                f"{rows.sum()} points: reduce the dimension or give more points."
            )
        result[rows] = centred @ (basis / np.sqrt(values)) @ basis.T
    return result


def choose(
    generator: np.random.Generator, client: NDArray, clients: int, samples: int
) -> Int[NDArray, " k"]:
    """Draw rows without replacement: `samples` of each of `clients` clients, themselves drawn.

    The rows of a client lie together, in the order of the data.

    Raises:
        ValueError: if there are fewer clients, or a client has fewer points.
    """
    names = np.unique(client)
    if clients > names.size:
        raise ValueError(f"{clients} clients were asked for and the data have {names.size}.")
    chosen = np.sort(generator.choice(names.size, clients, replace=False))
    rows = []
    for name in names[chosen].tolist():
        own = np.flatnonzero(client == name)
        if samples > own.size:
            raise ValueError(
                f"{samples} samples a client were asked for and {name!r} has {own.size}."
            )
        rows.append(np.sort(generator.choice(own, samples, replace=False)))
    return np.concatenate(rows)


def unit_covariance_sample(
    config: Mapping[str, Any],
    data: tuple[NDArray[np.float64], NDArray] | None,
    generators: Callable[..., np.random.Generator],
    draw: int,
) -> tuple[Float[NDArray, "n d"], NDArray]:
    """Draw N clients of M points whose covariance over the full training set is the identity.

    Gaussian clients where `data` is None; otherwise the data, which must already be in the
    `dimension` of the config. Both are whitened per client.
    """
    generator = generators(config["seed"], "points", config["data"], draw)
    clients, samples = config["clients"], config["samples"]
    if data is None:
        x, client = gaussian_clients(generator, clients, FULL_SAMPLES, config["dimension"])
    else:
        x, client = data
    rows = choose(generator, client, clients, samples)
    return whiten(x, client)[rows], client[rows]
