"""A frozen network beside the one in training, for losses on their representations (MOON)."""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from empirical.algorithm import Features
from empirical.weights import load

BATCH = 100  # in eval mode no result depends on it beyond rounding


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


def with_representation(
    net: nn.Module, inputs: Float[Tensor, "batch ..."]
) -> tuple[Tensor, Float[Tensor, "batch features"]]:
    """One pass: what `net` answers, and what its last linear layer was given (last).

    Raises:
        ValueError: the net has no linear layer, or its forward did not call the last of them.
    """
    given: list[Tensor] = []

    def see(_layer: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        given.extend([*positional, *named.values()])

    handle = last_linear(net).register_forward_pre_hook(see, with_kwargs=True)
    try:
        outputs = net(inputs)
    finally:
        handle.remove()
    if not given:
        raise ValueError(
            "the model's forward does not call its last linear layer, whose input represents an "
            "image: register the layers in the order of their use"
        )
    return outputs, given[-1].flatten(1)


class Contrast:
    """What a client's received and previous networks make of its images, in eval mode.

    Frozen networks do not change within a round and in eval mode see each image by itself, so
    that each image passes through them once a round however many epochs the client trains.
    """

    def __init__(self, net: nn.Module, example: Float[Tensor, "batch ..."]) -> None:
        """Copies `net` and tries the copy on `example`; raises as `with_representation` does."""
        self._frozen = copy.deepcopy(net).requires_grad_(False).eval()
        self._received = self._represent(None, example)
        self._previous: Tensor | None = None

    def begin(
        self,
        received: Mapping[str, Tensor],
        previous: Mapping[str, Tensor] | None,
        images: Float[Tensor, "n ..."],
    ) -> None:
        """Represents a client's images by two networks, given by all their tensors.

        Args:
            received: the client's network as it begins this round, its own batch norm included.
            previous: as it left its last round; None in its first.
            images: its training images.
        """
        self._received = self._represent(received, images)
        self._previous = None if previous is None else self._represent(previous, images)

    def features(
        self, z: Float[Tensor, "batch features"], rows: Int64[Tensor, " batch"]
    ) -> Features:
        """The representations of these rows of the images, of which the live network's is `z`."""
        previous = None if self._previous is None else self._previous[rows]
        return Features(z, self._received[rows], previous)

    @torch.no_grad()
    def _represent(self, weights: Mapping[str, Tensor] | None, images: Tensor) -> Tensor:
        if weights is not None:
            load(self._frozen, weights)
        return torch.cat([with_representation(self._frozen, x)[1] for x in images.split(BATCH)])
