"""The closed form of Eq. (10) against neural-tangents, where that is installed."""

from collections.abc import Iterator, Mapping
from typing import Any

from theory.crosscheck import crosscheck
from theory.studies.corollary import Generators, Points, Progress
from theory.studies.points import gaussian_clients
from theory.studies.rows import row


def witness(
    config: Mapping[str, Any], data: Points | None, generators: Generators, progress: Progress
) -> Iterator[dict[str, Any]]:
    """Record how far the two routes are apart on Gaussian clients.

    Args:
        config: `clients`, `samples`, `dimension`, `seed`.
        data: None; Gaussian clients serve.
        generators: gives a generator for (seed, purpose...).
        progress: told the fraction done.
    """
    del data
    generator = generators(config["seed"], "witness")
    x, _ = gaussian_clients(generator, config["clients"], config["samples"], config["dimension"])
    found = crosscheck(x)
    yield row("crosscheck_difference", found.largest_difference, variant="printed", note=str(found))
    progress(1.0)
