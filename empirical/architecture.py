"""The size of a network as bounds of its VC dimension count it, layer by layer."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from empirical.checks import is_whole

Layer = tuple[int, int, int]
"""Units, parameters, comparisons."""

_LINEAR = (nn.Flatten, nn.Identity, nn.Dropout, nn.AvgPool2d, nn.AdaptiveAvgPool2d)


@torch.no_grad()
def architecture(net: nn.Module, inputs: Tensor, norms: int = 1) -> list[Layer]:
    """(units, parameters, comparisons) of every layer of a piecewise linear net, in their order.

    A unit is one output at one position; a convolution's parameters are counted once, although
    all positions share them. In eval mode batch norm is an affine map per channel. Where all
    clients have one, the weights and bias before it take it up: it counts for nothing. Where each
    has its own, γ and β of all of them are the parameters of a further layer of as many units.
    ReLU belongs to the layer before it, and max-pooling too: it compares each pair of the q
    values of a window, q(q − 1)/2 comparisons an output.

    Args:
        net: of convolutions, linear layers, batch norm, ReLU, max- and average pooling; run once
            in eval mode, and left in the mode in which it was.
        inputs: (n, ...) as the net takes them.
        norms: how many sets of γ and β share the weights: 1, or one for each client.

    Raises:
        ValueError: a layer of another kind, batch norm or pooling before any layer with weights,
            or none of these; norms that is no positive whole number.
    """
    if not (is_whole(norms) and norms >= 1):
        raise ValueError(f"norms is how many sets of γ and β there are, at least 1, got {norms!r}")
    found: list[Layer] = []

    def see(layer: nn.Module, _: tuple[Any, ...], output: Tensor) -> None:
        _count(found, layer, output[0].numel(), norms)

    leaves = [layer for layer in net.modules() if not list(layer.children())]
    handles = [layer.register_forward_hook(see) for layer in leaves]
    modes = {module: module.training for module in net.modules()}
    try:
        net.eval()(inputs[:1])
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    if not found:
        raise ValueError("the net has no layer with parameters: its VC dimension is zero")
    return found


def _count(found: list[Layer], layer: nn.Module, units: int, norms: int) -> None:
    """Adds to what was found a layer that gives so many values."""
    own = sum(p.numel() for p in layer.parameters())
    if isinstance(layer, _ConvNd | nn.Linear):
        found.append((units, own, 0))
    elif not isinstance(layer, (_BatchNorm, nn.MaxPool2d, nn.ReLU, *_LINEAR)):
        raise ValueError(
            f"a layer {type(layer).__name__} has no count of units here: the net must be made of "
            "convolutions, linear layers, batch norm, ReLU and pooling"
        )
    elif isinstance(layer, _BatchNorm | nn.MaxPool2d) and not found:
        raise ValueError("the net begins with a layer that belongs to none before it")
    elif isinstance(layer, _BatchNorm) and norms > 1:
        found.append((units, norms * own, 0))
    elif isinstance(layer, nn.MaxPool2d):
        before, parameters, compared = found.pop()
        found.append((before, parameters, compared + units * _pairs(layer.kernel_size)))


def _pairs(kernel: int | tuple[int, ...]) -> int:
    return math.comb(kernel**2 if isinstance(kernel, int) else math.prod(kernel), 2)
