"""Eqs. (3), (4) at one batch-norm layer: the running statistics that a test batch moves."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from empirical.checks import is_real

_CHOICES = {
    "variance": ("within", "total"),
    "affine": ("given", "identity"),
    "first": ("batch", "source"),
    "prediction": ("after", "before"),
    "batch_variance": ("biased", "unbiased"),
}


def checked_options(momentum: object, **chosen: object) -> dict[str, float | str]:
    """The options of `adapt`, for a manifest.

    Raises:
        ValueError: a momentum outside [0, 1], or an unknown choice.
    """
    if not (is_real(momentum) and 0 <= momentum <= 1):
        raise ValueError(f"momentum is the weight τ of the past, in [0, 1], got {momentum!r}")
    for name, value in chosen.items():
        if value not in _CHOICES[name]:
            raise ValueError(f"{name} is {' or '.join(map(repr, _CHOICES[name]))}, not {value!r}")
    return {"momentum": float(momentum), **{name: str(value) for name, value in chosen.items()}}


class RunningNorm:
    """A batch-norm layer in eval mode whose running statistics move just before it normalises.

    Attributes:
        name: the layer's name in its model.
        layer: the layer.
        reached: whether any batch came to it.
        still: whether batches leave the statistics as they are.
    """

    def __init__(self, name: str, layer: _BatchNorm, options: Mapping[str, float | str]) -> None:
        """Takes the options of `adapt`; `name` is for messages."""
        self.name, self.layer = name or type(layer).__name__, layer
        self.reached = self.still = False
        self._tau = float(options["momentum"])
        self._total = options["variance"] == "total"
        self._correction = int(options["batch_variance"] == "unbiased")
        self._started = options["first"] == "source"
        self._batch, self._called = -1, False

    def update(
        self, _layer: nn.Module, inputs: tuple[Tensor, ...], named: dict[str, Tensor]
    ) -> None:
        """Eqs. (3), (4) as a forward pre-hook; in eval mode the layer then uses the result."""
        if self.still:
            return
        values = inputs[0] if inputs else next(iter(named.values()))
        self._check(values)
        # Half precision has too few digits for a sum over a batch.
        values = values.to(torch.promote_types(values.dtype, torch.float32))
        rest = [axis for axis in range(values.ndim) if axis != 1]
        moments = torch.var_mean(values, rest, correction=self._correction)
        variance, mean = (part.double() for part in moments)
        if self._started:
            # In float64, so that each step rounds the layer's own numbers once.
            old_mean, old_variance = (part.double() for part in self.statistics())
            tau, spread = self._tau, (mean - old_mean).square()
            variance = tau * old_variance + (1 - tau) * variance
            if self._total:
                variance += tau * (1 - tau) * spread
            mean = tau * old_mean + (1 - tau) * mean
        for kept, moved in zip(self.statistics(), (mean, variance), strict=True):
            kept.copy_(moved)
        self._started = self.reached = True

    def statistics(self) -> tuple[Float[Tensor, " channels"], Float[Tensor, " channels"]]:
        """The layer's own running mean and variance."""
        mean, variance = self.layer.running_mean, self.layer.running_var
        assert mean is not None and variance is not None  # `label` refuses a layer without
        return mean, variance

    def drop_affine(self) -> None:
        """Sets γ = 1 and β = 0, where the layer has them."""
        for parameter, value in ((self.layer.weight, 1), (self.layer.bias, 0)):
            if parameter is not None:
                parameter.fill_(value)

    def begin(self, batch: int) -> None:
        """Says which batch comes next."""
        self._batch, self._called = batch, False

    def _check(self, values: Tensor) -> None:
        if self._called:
            raise ValueError(
                f"batch-norm layer '{self.name}' is called twice in one pass, so that its "
                "statistics of a batch are not one: give each place its own layer, on one device"
            )
        self._called = True
        if self.layer.training:
            raise ValueError(
                f"batch-norm layer '{self.name}' is in training mode, where it normalises with the "
                "batch, although the model's eval() was called: let its forward leave the mode"
            )
        if values.numel() == values.shape[1] and not (self._total and not self._correction):
            lacks = "variance within" if not self._total else "unbiased variance"
            biased = " with batch_variance='biased'" if self._correction else ""
            raise ValueError(
                f"batch {self._batch} gives batch-norm layer '{self.name}' one value per channel, "
                f"which has no {lacks}: join it to the batch before it, or use "
                f"variance='total'{biased}"
            )
