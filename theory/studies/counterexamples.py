"""Where Corollary III.6 may not be stretched to: counterexamples, thresholds, and their signs."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from theory.full_kernel import FullKernelComparison, compare_full_kernels, full_kernel_threshold
from theory.inequality import Inequality, Judgement
from theory.pooled import PooledComparison, pooled_comparison, pooled_threshold
from theory.studies.corollary import Generators, Points, Progress
from theory.studies.rows import enclosed, row, verdict_row

Rows = Iterator[dict[str, Any]]

DIMENSIONS = (2, 10, 100, 1000)
WEIGHTS = (0.1, 0.5, 0.9)
REFERENCE = {"degrees": 120.0, "dimension": 10, "alpha": 1.0}
"""The pair at which Λ is drawn over α, and the α of the counterexample."""

# Near 90° the curves of large d are steep.
_ANGLES = (
    *np.arange(60, 84),
    *np.arange(84, 89, 0.1),
    *np.arange(89, 91, 0.02),
    *np.arange(91, 180),
    179.5,
)
_SIDE = 1e-6  # how far from a threshold, relatively, the sign is certified


def counterexamples(
    config: Mapping[str, Any], data: Points | None, generators: Generators, progress: Progress
) -> Rows:
    """Certify the counterexamples, the thresholds as curves, and the signs on both their sides.

    Args:
        config: `dimension`, `samples`, `draws`, `seed` of the Gaussian example.
        data: nothing.
        generators: gives a generator for (seed, purpose...).
        progress: told the fraction done.
    """
    del data
    yield from _pooled_examples(config, generators)
    yield from _full_examples()
    progress(0.3)
    yield from _pooled_curves()
    yield from _full_curves()
    progress(0.6)
    yield from _sides()
    yield from _over_alpha()
    progress(1.0)


def triangle(radius: float, degrees: float) -> Float[NDArray, "3 2"]:
    """Three points on a circle, 120° apart: their mean is 0 and their covariance radius²/2 · I."""
    angles = np.radians([degrees, degrees + 120, degrees + 240])
    return radius * np.column_stack([np.cos(angles), np.sin(angles)])


def pair(degrees: float, dimension: int) -> Float[NDArray, "2 d"]:
    """Two unit vectors at this angle."""
    x = np.zeros((2, dimension))
    x[0, 0] = 1.0
    x[1, :2] = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return x


def _pooled_examples(config: Mapping[str, Any], generators: Generators) -> Rows:
    yield from _example("pooled.orthogonal", pooled_comparison(np.eye(2), [0, 1], [1.0, 0.1]))
    x = np.concatenate([triangle(4.0, 0.0), triangle(1.0, 50.0), triangle(1.0, 80.0)])
    own = pooled_comparison(x, [0] * 6 + [1] * 3, [4.25, 0.5])
    yield from _example("pooled.own", own)
    n, d = config["samples"], config["dimension"]
    for draw in range(config["draws"]):
        generator = generators(config["seed"], "pooled", draw)
        x = generator.standard_normal((2 * n, d))
        found = pooled_comparison(x, np.repeat([0, 1], n), [1.0, 0.05])
        yield from _example("pooled.gaussian", found, draw=draw)


def _full_examples() -> Rows:
    yield from _example("full.orthogonal", compare_full_kernels(np.eye(2), [0, 1], 1.0))
    x = pair(REFERENCE["degrees"], int(REFERENCE["dimension"]))
    yield from _example("full.obtuse", compare_full_kernels(x, [0, 1], REFERENCE["alpha"]))


def _example(name: str, found: PooledComparison | FullKernelComparison, **where: Any) -> Rows:
    """Both sides of an example, and the verdict on the inequality that it is to break."""
    at = {"split": name, **where}
    yield enclosed("example_smallest", found.aggregated, variant="aggregated", **at)
    yield enclosed("example_smallest", found.client_specific, variant="client_specific", **at)
    yield verdict_row("example", found.inequality, **at)
    if isinstance(found, PooledComparison):
        yield verdict_row("remains", found.remains, **at)


def _pooled_curves() -> Rows:
    for degrees in (*range(2, 180, 2), 179.5):
        for weight in WEIGHTS:
            limit = pooled_threshold(math.radians(degrees), weight)
            at = {"variant": f"{weight:g}", "parameter": degrees}
            yield enclosed("pooled_threshold", limit, **at)


def _full_curves() -> Rows:
    for degrees in _ANGLES:
        for dimension in DIMENSIONS:
            limit = full_kernel_threshold(math.radians(degrees), dimension)
            if limit is not None:
                at = {"variant": str(dimension), "parameter": float(degrees)}
                yield enclosed("full_threshold", limit, **at)


def _sides() -> Rows:
    """The sign just below and just above each threshold, certified from the kernels themselves."""
    for degrees in (70.0, 90.0, 110.0, 130.0, 150.0, 165.0):
        limit = pooled_threshold(math.radians(degrees)).midpoint
        if limit > 0:
            x = pair(degrees, 2)
            below, above = (
                pooled_comparison(x, [0, 1], [1.0, limit * side]) for side in _both_sides()
            )
            yield _side_row("pooled_sides", below.inequality, above.inequality, degrees)
        for dimension in (2, 10, 100):
            limit = full_kernel_threshold(math.radians(degrees), dimension)
            if limit is not None:
                x = pair(degrees, dimension)
                below, above = (
                    compare_full_kernels(x, [0, 1], limit.midpoint * side) for side in _both_sides()
                )
                at = below.inequality, above.inequality, degrees
                yield _side_row("full_sides", *at, variant=str(dimension))


def _both_sides() -> tuple[float, float]:
    return 1 - _SIDE, 1 + _SIDE


def _side_row(
    metric: str, below: Inequality, above: Inequality, degrees: float, **where: Any
) -> dict[str, Any]:
    """Certified where the inequality certainly fails below the threshold and holds above it."""
    found = below.verdict, above.verdict
    verdict: Judgement = "consistent"
    if found == ("violated", "certified"):
        verdict = "certified"
    elif found[0] == "certified" or found[1] == "violated":
        verdict = "violated"
    return row(metric, verdict == "certified", note=verdict, parameter=degrees, **where)


def _over_alpha() -> Rows:
    x = pair(REFERENCE["degrees"], int(REFERENCE["dimension"]))
    for alpha in np.geomspace(0.5, 50, 41):
        found = compare_full_kernels(x, [0, 1], alpha)
        at = {"parameter": float(alpha)}
        yield enclosed("over_alpha", found.aggregated, variant="aggregated", **at)
        yield enclosed("over_alpha", found.client_specific, variant="client_specific", **at)
