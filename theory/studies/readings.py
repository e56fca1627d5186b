"""Which reading of Corollary III.6 holds in draws from given clients, over α."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from theory.centring import centre
from theory.reading import Reading, Readings, readings_over
from theory.studies.corollary import Generators, Points, Progress
from theory.studies.points import FULL_SAMPLES, choose, gaussian_clients
from theory.studies.rows import enclosed, verdict_row

Rows = Iterator[dict[str, Any]]


def readings(
    config: Mapping[str, Any],
    data: Points | None,
    generators: Generators,
    progress: Progress,
) -> Rows:
    """Say which reading of Corollary III.6 holds in draws of clients and samples, over α.

    S_i is taken over the client's full set of points, as λ_i I with the same trace.

    Args:
        config: `clients`, `samples`, `dimension`, `draws`, `alphas`, `seed`.
        data: points and their clients, already in `dimension`; None for Gaussian clients.
        generators: gives a generator for (seed, purpose...).
        progress: told the fraction done.
    """
    for draw in range(config["draws"]):
        generator = generators(config["seed"], "readings", config["data"], draw)
        if data is None:
            x, client = gaussian_clients(
                generator, config["clients"], FULL_SAMPLES, config["dimension"]
            )
        else:
            x, client = data
        x = centre(x, client)
        rows = choose(generator, client, config["clients"], config["samples"])
        variances = isotropic_variances(x, client)
        found = readings_over(x[rows], client[rows], config["alphas"], variances)
        yield from _reading_rows(found, draw)
        progress((draw + 1) / config["draws"])


def isotropic_variances(x: Float[NDArray, "n d"], client: NDArray) -> dict[Any, float]:
    """Every client's λ_i = tr S_i/d, S_i the covariance of its centred points."""
    return {name: float(np.mean(x[client == name] ** 2)) for name in np.unique(client).tolist()}


def _reading_rows(found: tuple[Readings, ...], draw: int) -> Rows:
    yield verdict_row("remains", found[0].remains, draw=draw)
    for reading in (found[0].masked, found[0].pooled):
        yield from _one_reading(reading, draw=draw)
    for one in found:
        yield from _one_reading(one.full, draw=draw, parameter=one.alpha)


def _one_reading(reading: Reading, **where: Any) -> Rows:
    for what, inequality in reading.inequalities().items():
        at = {"variant": reading.name, "split": what, **where}
        yield verdict_row("reading", inequality, **at)
        yield enclosed("reading_left", inequality.lhs, **at)
        yield enclosed("reading_right", inequality.rhs, **at)
