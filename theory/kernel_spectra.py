"""Extreme eigenvalues of the kernels along a run, and how far they may be wrong."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from theory.finite_width import kernels_of
from theory.kernel_error import kernels_error_of
from theory.network import Array, Inputs, Network
from theory.spectrum import largest_eigenvalue, smallest_eigenvalue


@dataclass(frozen=True)
class KernelSpectra:
    """Smallest and largest eigenvalue of the kernels at the recorded steps.

    Attributes:
        steps: (k,) step numbers.
        V, G, Lambda: (k, 2), columns smallest and largest. V and Lambda = V/α² + G as in Eq. (9).
        rounding: (k, 2), bounds of the errors of Lambda's two eigenvalues: those of the matrix
            (`kernels_error`) and of the eigensolver (`smallest_eigenvalue`, `largest_eigenvalue`).
            Infinite where a covariance is too ill-conditioned. V and G carry none.
    """

    steps: Int[Array, " k"]
    V: Float[Array, "k 2"]
    G: Float[Array, "k 2"]
    Lambda: Float[Array, "k 2"]
    rounding: Float[Array, "k 2"]


def extremes(network: Network, inputs: Inputs) -> tuple[float, ...]:
    """Smallest and largest eigenvalue of V, G and Λ, and the bounds of Λ's two errors."""
    kernels = kernels_of(network, inputs)
    out: list[float] = []
    for matrix in (kernels.V, kernels.G):
        values = np.linalg.eigvalsh(matrix)
        out += [float(values[0]), float(values[-1])]
    error = kernels_error_of(network, inputs)
    known = error if math.isfinite(error) else 0.0
    ends = [enclose(kernels.Lambda, known) for enclose in (smallest_eigenvalue, largest_eigenvalue)]
    out += [end.midpoint for end in ends]
    for end in ends:
        radius = max(end.midpoint - end.lower, end.upper - end.midpoint)
        out.append(math.nextafter(radius, math.inf) if known == error else math.inf)
    return tuple(out)


def as_spectra(recorded: dict[int, tuple[float, ...]]) -> KernelSpectra:
    """Gathers what `extremes` gave, by step."""
    table = np.array(list(recorded.values()), dtype=np.float64).reshape(-1, 8)
    steps = np.array(list(recorded), dtype=np.int64)
    return KernelSpectra(steps, table[:, 0:2], table[:, 2:4], table[:, 4:6], table[:, 6:8])
