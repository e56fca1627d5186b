"""What is given to each batch-norm layer of a net, batch by batch, in eval mode."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from empirical.evaluate import BATCH
from empirical.seeds import repeatable
from empirical.weights import label

Given = dict[str, tuple[_BatchNorm, Tensor]]
"""A layer's name -> the layer and its input, in the order of the calls."""


@torch.inference_mode(False)
@torch.no_grad()
def passes(net: object, inputs: object) -> Iterator[Given]:
    """What each batch of the inputs gives to the batch-norm layers; the net is left as it was.

    Raises:
        TypeError: no module, or inputs that are no tensor.
        ValueError: no input; a net that `label` refuses, that calls no batch-norm layer or one of
            them twice, or one with neither maps nor vectors.
    """
    if not isinstance(net, nn.Module):
        raise TypeError(f"{net!r} is no Module: use build_model(name, seed) and load its weights")
    if not isinstance(inputs, Tensor):
        raise TypeError(f"inputs must be a tensor, got {type(inputs).__name__}: split.inputs()")
    if inputs.ndim < 2 or not inputs.numel():
        raise ValueError(f"inputs of shape {tuple(inputs.shape)} are empty: give (n, ...) images")
    label(net)  # refuses batch norm without running statistics
    with _tapped(net) as seen:
        for x in inputs.split(BATCH):
            seen.clear()
            with repeatable(x.device):
                net(x)
            if not seen:
                raise ValueError(
                    "the model calls no batch-norm layer, so that there is nothing normalised"
                )
            yield dict(seen)


@contextmanager
def _tapped(net: nn.Module) -> Iterator[Given]:
    """Notes what is given to each batch-norm layer, in eval mode; then leaves the net as it was."""
    seen: Given = {}

    def tap(name: str, layer: _BatchNorm) -> Any:
        def see(_: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
            if name in seen:
                raise ValueError(
                    f"batch-norm layer '{name}' is called twice in one pass, so that its input is "
                    "not one: give each place its own layer"
                )
            r = positional[0] if positional else next(iter(named.values()))
            _check_shape(r, name)
            seen[name] = layer, r

        return layer.register_forward_pre_hook(see, with_kwargs=True)

    modes = {module: module.training for module in net.modules()}
    handles = [tap(n, m) for n, m in net.named_modules() if isinstance(m, _BatchNorm)]
    net.eval()
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode


def _check_shape(r: Tensor, name: str) -> None:
    if r.ndim not in (2, 4):
        raise ValueError(
            f"batch-norm layer '{name}' is given {tuple(r.shape)}: features are made of maps "
            "(n, channels, height, width) and of vectors (n, channels)"
        )
