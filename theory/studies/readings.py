"""Which reading of Corollary III.6 holds in draws from given clients, over α."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from theory.centring import centre
from theory.covariances import client_covariances
from theory.reading import Reading, ReadingKernels, reading_kernels
from theory.studies.corollary import Generators, Points, Progress
from theory.studies.points import FULL_SAMPLES, choose, gaussian_clients
from theory.studies.rows import enclosed, verdict_row

Rows = Iterator[dict[str, Any]]


TOLERANCE = 1e-8
"""Of the quadrature for clients' own covariances: far below the gaps that are judged."""


def readings(
    config: Mapping[str, Any],
    data: Points | None,
    generators: Generators,
    progress: Progress,
) -> Rows:
    """Say which reading of Corollary III.6 holds in draws of clients and samples, over α.

    S_i is taken over the client's full set of points. As λ_i I of the same trace (`isotropic`)
    kernels are closed forms and every draw has its own clients and points; with the covariances
    themselves (`own`) the kernels of `pool` points a client are computed once and drawn from.

    Args:
        config: `covariances` ("isotropic" or "own"), `clients`, `samples`, `pool`, `dimension`,
            `draws`, `alphas`, `seed`.
        data: points and their clients, already in `dimension`; None for Gaussian clients.
        generators: gives a generator for (seed, purpose...).
        progress: told the fraction done.
    """
    make = _drawn_anew if config["covariances"] == "isotropic" else _from_a_pool
    for draw, kernels in enumerate(make(config, data, generators)):
        found = kernels.readings(config["alphas"])
        yield verdict_row("remains", found[0].remains, draw=draw)
        for reading in (found[0].masked, found[0].pooled):
            yield from _reading_rows(reading, draw=draw)
        for one in found:
            yield from _reading_rows(one.full, draw=draw, parameter=one.alpha)
        progress((draw + 1) / config["draws"])


def _drawn_anew(
    config: Mapping[str, Any], data: Points | None, generators: Generators
) -> Iterator[ReadingKernels]:
    for draw in range(config["draws"]):
        generator = generators(config["seed"], "readings", config["data"], draw)
        x, client = _centred(config, data, generator)
        rows = choose(generator, client, config["clients"], config["samples"])
        yield reading_kernels(x[rows], client[rows], isotropic_variances(x, client))


def _from_a_pool(
    config: Mapping[str, Any], data: Points | None, generators: Generators
) -> Iterator[ReadingKernels]:
    generator = generators(config["seed"], "readings", config["data"], "pool")
    x, client = _centred(config, data, generator)
    pool = choose(generator, client, config["clients"], config["pool"])
    own = client_covariances(x, client)
    kernels = reading_kernels(x[pool], client[pool], own, tolerance=TOLERANCE)
    for draw in range(config["draws"]):
        generator = generators(config["seed"], "readings", config["data"], "pool", draw)
        rows = choose(generator, client[pool], config["clients"], config["samples"])
        yield kernels.restricted(rows)


def _centred(
    config: Mapping[str, Any], data: Points | None, generator: np.random.Generator
) -> Points:
    if data is None:
        data = gaussian_clients(generator, config["clients"], FULL_SAMPLES, config["dimension"])
    return centre(*data), np.asarray(data[1])


def isotropic_variances(x: Float[NDArray, "n d"], client: NDArray) -> dict[Any, float]:
    """Every client's λ_i = tr S_i/d, S_i the covariance of its centred points."""
    return {name: float(np.mean(x[client == name] ** 2)) for name in np.unique(client).tolist()}


def _reading_rows(reading: Reading, **where: Any) -> Rows:
    for what, inequality in reading.inequalities().items():
        at = {"variant": reading.name, "split": what, **where}
        yield verdict_row("reading", inequality, **at)
        yield enclosed("reading_left", inequality.lhs, **at)
        yield enclosed("reading_right", inequality.rhs, **at)
