"""Upper bounds of the VC dimension: half-spaces exactly, piecewise-linear networks by counting."""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from theory._loose import Anything, Flag, Whole
from theory._validate import flag
from theory.network import at_least

__all__ = ["Layer", "half_space_vc_dimension", "vc_dimension"]

_MOST = 10**60  # of any number given; what is computed from them then fits into float64
_UNITS = 1 + 2.0**-40  # a sum over layers in float64 is far more exact than this


_TEXT = str | bytes | bytearray | memoryview


class Layer(NamedTuple):
    """What counts about a layer: how many decisions it takes, on how many parameters.

    Attributes:
        units: outputs before the activation; of a convolution at every position.
        parameters: free ones, each shared weight once.
        comparisons: pairs of units that the layer compares: u(q − 1)/2 for max-pooling of u units
            in disjoint windows of q.
    """

    units: Whole
    parameters: Whole
    comparisons: Whole = 0


def vc_dimension(
    layers: "Sequence[Layer | tuple[int, ...]] | Anything", *, pieces: Whole = 2
) -> int:
    """At least the VC dimension of a piecewise-linear network (Bartlett et al. 2019, Theorem 6).

    The growth function is counted layer by layer. Fix N inputs and a region of parameter space in
    which all earlier layers take the same pieces on every input. There the inputs of layer l's
    activations are polynomials of degree l in the W_l parameters of layers 1 to l. Which pieces
    they fall in is the signs of N((p − 1)k_l + c_l) such polynomials (k_l units with p pieces, c_l
    comparisons of max-pooling), and M polynomials have at most 2(2eMl/W_l)^{W_l} sign patterns for
    M ≥ W_l (Warren 1968), 2^M always. The regions multiply, so that Π(N) is at most the product,
    in which the last layer counts the signs of its output. D points that are shattered have 2^D
    patterns: the VC dimension is at most the largest N with 2^N ≤ Π(N), found in logarithms. The
    logarithm of each factor is concave in N, and so this N is found by bisection.

    Batch norm at test time is affine in each unit and folds into the weights before it: it adds
    neither units nor parameters. If each client keeps its own, give such a layer twice, first with
    the weights, then with γ and β of every client as the parameters: with statistics given,
    γ_i(w·x)/σ_i is a polynomial of one degree more. Max-pooling may stand before or after an
    activation that does not fall. A single layer with one unit is linear in its parameters, where
    their number is the bound (Dudley 1978).

    With K ≥ 2 outputs the class is {(x, y) : argmax f(x) ≠ y}, K(K − 1)/2 signs a point: the 0-1
    losses, to be used with `risk_capacity`.

    Args:
        layers: `Layer`s or tuples (units, parameters[, comparisons]) from input to output; layers
            without parameters belong to the one before.
        pieces: linear pieces p of the activation: 2 for the ReLU and its leaky kin.

    Raises:
        TypeError, ValueError: no layer; numbers that are no integers, not positive
            (comparisons may be 0) or above 10^60; one output that max-pooling compares.
    """
    counted = _layers(layers)
    breaks = _count(pieces, 2, "pieces") - 1
    *hidden, (outputs, parameters, compared) = counted
    if compared:
        raise ValueError(
            "the last layer is the output and compares nothing: give max-pooling to the layer "
            "whose units it pools."
        )
    if not hidden and outputs == 1:
        return parameters
    decisions = [breaks * units + pairs for units, _, pairs in hidden]
    decisions.append(outputs * (outputs - 1) // 2 if outputs > 1 else 1)
    factors, total = [], 0
    for depth, (signs, layer) in enumerate(zip(decisions, counted, strict=True), 1):
        total += layer.parameters
        factors.append((signs, depth, total))
    return _largest(factors)


def half_space_vc_dimension(d: Whole, homogeneous: Flag = False) -> int:
    """VC dimension of half-spaces {w·x ≥ c} in R^d: d + 1; d for those through the origin.

    The unit vectors (and the origin) are shattered; any d + 2 points are an affine, any d + 1 a
    linear combination of one another with two signs, and so one labelling is missed (Radon 1921).

    Raises:
        TypeError, ValueError: d no positive integer; a flag that is no boolean.
    """
    dimension = at_least(d, 1, "d")
    return dimension if flag(homogeneous, "homogeneous") else dimension + 1


def log2_growth(factors: Iterable[tuple[int, int, int]], n: int) -> float:
    """log₂ of the bound of Π(n), from (signs a point, degree, parameters) of every layer."""
    return math.fsum(_log2_patterns(n * signs, degree, w) for signs, degree, w in factors)


def _log2_patterns(count: int, degree: int, parameters: int) -> float:
    """log₂ min{2^M, 2(2eMl/W)^W}, the second for M ≥ W alone."""
    if count < parameters:
        return float(count)
    warren = 1 + parameters * (math.log2(2 * math.e * degree) + math.log2(count / parameters))
    return min(float(count), warren)


def _largest(factors: list[tuple[int, int, int]]) -> int:
    """The largest N with N ≤ log₂ Π(N); Π(1) ≥ 2, and from the first failure on all fail."""
    high = 2
    while high <= log2_growth(factors, high) * _UNITS:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if middle <= log2_growth(factors, middle) * _UNITS:
            low = middle
        else:
            high = middle
    return low


def _count(value: object, least: int, name: str) -> int:
    count = at_least(value, least, name)
    if count > _MOST:
        raise ValueError(f"{name} is above 10^60, more than any network has: correct the number.")
    return count


def _layers(layers: object) -> list[Layer]:
    refused = isinstance(layers, _TEXT | Mapping | Set)
    if refused or not isinstance(layers, Iterable):
        raise TypeError(
            "layers must be a sequence of (units, parameters) from input to output, not "
            f"{layers!r}."
        )
    found = []
    for i, layer in enumerate(layers):
        if not isinstance(layer, Sequence) or isinstance(layer, _TEXT) or len(layer) not in (2, 3):
            raise TypeError(
                f"layer {i} is {layer!r}: give (units, parameters), or (units, parameters, "
                "comparisons) with max-pooling."
            )
        least = zip(layer, (1, 1, 0), Layer._fields, strict=False)
        found.append(Layer(*(_count(v, low, f"{name} of layer {i}") for v, low, name in least)))
    if not found:
        raise ValueError("there is no layer: give (units, parameters) of at least one.")
    return found
