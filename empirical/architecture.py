"""The size of a network as bounds of its VC dimension count it, layer by layer."""

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from empirical.calls import Call, traced
from empirical.checks import is_whole

Layer = tuple[int, int, int]
"""Units, parameters, comparisons."""

_LINEAR = (nn.Flatten, nn.Identity, nn.Dropout, nn.AvgPool2d, nn.AdaptiveAvgPool2d)

_SHAPES = "flatten unflatten view reshape view_as permute transpose movedim squeeze unsqueeze"
_PARTS = "contiguous to float double clone detach expand chunk split __getitem__ cat stack pad"
_SUMS = "add add_ sub sub_ neg mean sum avg_pool2d adaptive_avg_pool2d dropout relu relu_"
_LINEAR_FUNCTIONS = {*_SHAPES.split(), *_PARTS.split(), *_SUMS.split()}


def architecture(net: nn.Module, inputs: Tensor, norms: int = 1) -> list[Layer]:
    """(units, parameters, comparisons) of every layer of a piecewise linear net, in their order.

    A unit is one output at one position; a convolution's parameters are counted once, although
    all positions share them. In eval mode batch norm is an affine map per channel. Where all
    clients have one, and it alone takes what a layer with weights gives, these take it up: it
    counts for nothing but the bias, if that layer has none. Elsewhere (after ReLU, pooling or a
    sum, or first of all), and where each client has its own, γ and β of all of them are the
    parameters of a further layer of as many units. ReLU belongs to the layer before it, and
    max-pooling too: it compares each pair of the q values of a window, q(q − 1)/2 comparisons an
    output.

    Args:
        net: of the modules convolution, linear layer, batch norm, ReLU, max- and average pooling;
            what they give may be reshaped, added, concatenated or averaged, and go through ReLU.
            Run once in eval mode, and left in the mode in which it was.
        inputs: (n, ...) as the net takes them.
        norms: how many sets of γ and β share the weights: 1, or one for each client.

    Raises:
        ValueError: a layer or a function of another kind, pooling before any layer that counts,
            or none of these; norms that is no positive whole number.
    """
    if not (is_whole(norms) and norms >= 1):
        raise ValueError(f"norms is how many sets of γ and β there are, at least 1, got {norms!r}")
    seen = traced(net, inputs[:1])
    for function, arguments in seen.functions:
        _check(function, arguments)
    found: list[Layer] = []
    weighed: dict[int, tuple[int, bool]] = {}  # what a layer gives -> its place, whether it has b
    for call in seen.calls:
        folds = norms == 1 and isinstance(call.layer, _BatchNorm) and seen.uses[id(call.given)] == 1
        if folds and id(call.given) in weighed:
            place, biased = weighed[id(call.given)]
            units, parameters, compared = found[place]
            shifts = 0 if biased else call.given.shape[1]
            found[place] = units, parameters + shifts, compared
            continue
        _count(found, call, norms)
        if isinstance(call.layer, _ConvNd | nn.Linear):
            weighed[id(call.gives)] = len(found) - 1, call.layer.bias is not None
    if not found:
        raise ValueError("the net has no layer with parameters: its VC dimension is zero")
    return found


def _count(found: list[Layer], call: Call, norms: int) -> None:
    """Adds to what was found a layer that is called."""
    layer = call.layer
    own = sum(p.numel() for p in layer.parameters())
    if isinstance(layer, _ConvNd | nn.Linear):
        found.append((call.gives[0].numel(), own, 0))
    elif not isinstance(layer, (_BatchNorm, nn.MaxPool2d, nn.ReLU, *_LINEAR)):
        raise ValueError(
            f"a layer {type(layer).__name__} has no count of units here: the net must be made of "
            "convolutions, linear layers, batch norm, ReLU and pooling"
        )
    elif isinstance(layer, _BatchNorm):
        # Without γ and β each set of statistics scales and shifts all the same.
        found.append((call.gives[0].numel(), norms * max(own, 2 * call.given.shape[1]), 0))
    elif isinstance(layer, nn.MaxPool2d):
        if not found:
            raise ValueError("the net begins with pooling, which belongs to no layer before it")
        before, parameters, compared = found.pop()
        pairs = call.gives[0].numel() * _pairs(layer.kernel_size)
        found.append((before, parameters, compared + pairs))


def _check(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Refuses what is called as a function unless it is linear, or a ReLU."""
    name = getattr(function, "__name__", str(function))
    scaled = name in ("mul", "div") and sum(isinstance(a, Tensor) for a in arguments) == 1
    if not scaled and name not in _LINEAR_FUNCTIONS:
        raise ValueError(
            f"the net calls {name} as a function, which has no count of units here: use a module, "
            "such as nn.MaxPool2d or nn.Linear, and no activation but ReLU"
        )


def _pairs(kernel: int | tuple[int, ...]) -> int:
    return math.comb(kernel**2 if isinstance(kernel, int) else math.prod(kernel), 2)
