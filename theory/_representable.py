"""Sizes at which the products in a network's kernels would leave the range of float64."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

_DECADES = 140  # the squares of such sizes are normal, with room for a sum


@dataclass(frozen=True)
class Sizes:
    """The parameters of a network that have a scale."""

    v: Float[np.ndarray, "m d"]
    gamma: Float[np.ndarray, "m g"]
    alpha: float


def refuse_out_of_range(name: str, size: float, advice: str) -> None:
    """Raises ValueError unless a positive size has a square well within float64."""
    _refuse(name, math.log10(size), math.log10(size), advice)


def refuse_extremes(
    network: Sizes, points: Float[np.ndarray, "n d"], metric: Float[np.ndarray, "N d d"] | float
) -> None:
    """Raises ValueError where an output, a derivative or a kernel could over- or underflow."""
    # Least and greatest, as logarithms: their sums do not overflow.
    x, v, s = (np.log10(pair) for pair in (_lengths(points), _lengths(network.v), _stretch(metric)))
    gamma = np.log10(np.abs(network.gamma).max() or 1.0)
    norm, image = v + s, v + 2 * s
    # ∂f/∂v = w x − e S v with w = γ/‖v‖_S and e = w x·v/‖v‖_S².
    w = gamma - norm[::-1]
    e = w + x + v - 2 * norm[::-1]
    derivative = w + x
    derivative[1] = max(derivative[1], e[1] + image[1])
    for name, (least, most) in (
        ("the length of x", x),
        ("the length of v", v),
        ("x·v", x + v),
        ("‖v‖_S", norm),
        ("Sv", image),
        ("x·v/‖v‖_S", x - s[::-1]),
        ("γ/‖v‖_S", w),
        ("γ x·v/‖v‖_S", w + x + v),
        ("γ x·v/‖v‖_S³", e),
        ("∂f/∂v", derivative),
        ("α∂f/∂v", np.log10(network.alpha) + derivative),
    ):
        _refuse(name, float(least), float(most), _ADVICE)


def _refuse(name: str, least: float, most: float, advice: str) -> None:
    for power in (least, most):
        if not abs(power) <= _DECADES:
            raise ValueError(
                f"{name} reaches 1e{power:+.0f}, where kernels leave the range of float64: "
                f"{advice}."
            )


_ADVICE = "bring x, v, alpha and the covariances to moderate sizes"


def _lengths(rows: Float[np.ndarray, "k d"]) -> tuple[float, float]:
    """Bounds of the shortest and longest row that are not zero; (1, 1) if all are."""
    largest = np.abs(rows).max(axis=1)
    largest = largest[largest > 0]
    if not largest.size:
        return 1.0, 1.0
    # Beyond float64 for sizes that are refused anyway.
    with np.errstate(over="ignore"):
        return float(largest.min()), float(largest.max() * np.sqrt(rows.shape[1]))


def _stretch(metric: Float[np.ndarray, "N d d"] | float) -> tuple[float, float]:
    """Bounds of ‖v‖_S/‖v‖, wide ones for matrices: positive definite is what exceeds rounding."""
    if not isinstance(metric, np.ndarray):
        return float(np.sqrt(metric)), float(np.sqrt(metric))
    top = np.diagonal(metric, axis1=1, axis2=2).max(axis=1)
    least, most = float(np.sqrt(top.min())), float(np.sqrt(top.max()))
    return least * 2.0**-26, most * np.sqrt(metric.shape[1])
