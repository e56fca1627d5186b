"""The size of a network as bounds of its VC dimension count it: units and parameters by layer."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

Layer = tuple[int, int]
"""Units and parameters of one layer of computation."""

_LINEAR = (nn.Flatten, nn.Identity, nn.Dropout, nn.AvgPool2d, nn.AdaptiveAvgPool2d)


@torch.no_grad()
def architecture(net: nn.Module, inputs: Tensor) -> list[Layer]:
    """(units, parameters) of every layer of computation of a piecewise linear net, in their order.

    A unit is one output at one position; a convolution's parameters are counted once, although
    all positions share them. In eval mode batch norm is an affine map per channel, which the
    weights and bias before it take up: a net with other statistics, γ and β is one of the same
    architecture without batch norm, so that it adds neither units nor parameters. ReLU belongs to
    the layer before it. Max-pooling over k values is a tournament, max(a, b) = a + ReLU(b − a):
    ⌈log₂ k⌉ layers of ReLU units, k − 1 in all for each output, without parameters.

    Args:
        net: of convolutions, linear layers, batch norm, ReLU, max- and average pooling; run once
            in eval mode, and left in the mode in which it was.
        inputs: (n, ...) as the net takes them.

    Raises:
        ValueError: another layer with parameters or of another kind, or no layer with parameters.
    """
    found: list[Layer] = []

    def see(layer: nn.Module, _: tuple[Any, ...], output: Tensor) -> None:
        units = output[0].numel()
        if isinstance(layer, _ConvNd | nn.Linear):
            found.append((units, sum(p.numel() for p in layer.parameters())))
        elif isinstance(layer, nn.MaxPool2d):
            found.extend(_tournament(units, layer.kernel_size))
        elif not isinstance(layer, (_BatchNorm, nn.ReLU, *_LINEAR)):
            raise ValueError(
                f"a layer {type(layer).__name__} has no count of units here: the net must be made "
                "of convolutions, linear layers, batch norm, ReLU and pooling"
            )

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
    if not any(parameters for _, parameters in found):
        raise ValueError(
            "the net has no layer with parameters, whose VC dimension could be bounded"
        )
    return found


def _tournament(outputs: int, kernel: int | tuple[int, ...]) -> list[Layer]:
    """The comparisons round by round until one value of each window is left."""
    left = kernel**2 if isinstance(kernel, int) else math.prod(kernel)
    rounds: list[Layer] = []
    while left > 1:
        rounds.append((outputs * (left // 2), 0))
        left -= left // 2
    return rounds
