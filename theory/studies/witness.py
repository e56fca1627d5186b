"""Both arc-cosine kernels against neural-tangents, where that is installed."""

from collections.abc import Iterator, Mapping
from typing import Any

from theory.crosscheck import crosscheck
from theory.studies.corollary import Generators, Points, Progress
from theory.studies.points import gaussian_clients
from theory.studies.rows import row


def witness(
    config: Mapping[str, Any], data: Points | None, generators: Generators, progress: Progress
) -> Iterator[dict[str, Any]]:
    """Record how far the two routes are apart on Gaussian clients, for κ₁ and for (x·y)P₀.

    Args:
        config: `clients`, `samples`, `dimension`, `seed`.
        data: None; Gaussian clients serve.
        generators: gives a generator for (seed, purpose...).
        progress: told the fraction done.
    """
    del data
    generator = generators(config["seed"], "witness")
    x, _ = gaussian_clients(generator, config["clients"], config["samples"], config["dimension"])
    for variant, order in (("printed", 1), ("slope", 0)):
        found = crosscheck(x, order=order)
        value, note = found.largest_difference, str(found)
        yield row("crosscheck_difference", value, variant=variant, note=note)
    progress(1.0)
