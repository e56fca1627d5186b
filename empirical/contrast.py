"""Frozen networks beside the one in training, for losses on their representations (MOON)."""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from empirical.algorithm import Features
from empirical.weights import load


def last_linear(net: nn.Module) -> nn.Linear:
    """The layer whose input represents an image: the last linear one that `net` registers.

    Raises:
        ValueError: there is none.
    """
    layers = [layer for layer in net.modules() if isinstance(layer, nn.Linear)]
    if not layers:
        raise ValueError(
            "the model has no linear layer, whose input would represent an image: end it with "
            "nn.Linear, or use a method without a loss on representations"
        )
    return layers[-1]


class Contrast:
    """Two frozen copies of a network, in eval mode, and what all three make of a batch."""

    def __init__(self, net: nn.Module) -> None:
        """Copies `net`; raises ValueError where it has no linear layer (see `last_linear`)."""
        last_linear(net)
        self._net = net
        self._frozen = [copy.deepcopy(net).requires_grad_(False).eval() for _ in range(2)]
        self._has_previous = False

    def begin(self, received: Mapping[str, Tensor], previous: Mapping[str, Tensor] | None) -> None:
        """Loads what the client received, its own batch norm included, and its last network."""
        load(self._frozen[0], received)
        self._has_previous = previous is not None
        if previous is not None:
            load(self._frozen[1], previous)

    @contextmanager
    def watching(self) -> Iterator["Watch"]:
        """Sees what the network in training gives its last linear layer, for one block."""
        with watch(self._net) as seen:
            yield seen

    def features(self, z: Tensor, inputs: Tensor) -> Features:
        """The representations of `inputs`, of which the live network's is `z`."""
        old = [_represent(net, inputs) for net in self._frozen[: 1 + self._has_previous]]
        return Features(z, old[0], old[1] if self._has_previous else None)


class Watch:
    """What a network's last linear layer was given in its last pass.

    Attributes:
        z: (n, features); None before the first pass.
    """

    z: Tensor | None = None

    def __call__(self, _layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        """A forward pre-hook."""
        self.z = inputs[0].flatten(1)


@contextmanager
def watch(net: nn.Module) -> Iterator[Watch]:
    """Watches the last linear layer of `net` for one block."""
    seen = Watch()
    handle = last_linear(net).register_forward_pre_hook(seen)
    try:
        yield seen
    finally:
        handle.remove()


@torch.no_grad()
def _represent(net: nn.Module, inputs: Tensor) -> Tensor:
    with watch(net) as seen:
        net(inputs)
    if seen.z is None:
        raise ValueError(
            "the model's forward does not call its last linear layer, whose input represents an "
            "image: register the layers in the order of their use"
        )
    return seen.z
