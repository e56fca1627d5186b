"""What comes to each batch-norm layer: normalised per channel, rescaled, or fully whitened."""

from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from empirical.batch_checks import DivergedError
from empirical.taps import passes
from empirical.whitening import Whitening

CELLS = 2
"""A map of a convolution is averaged over CELLS × CELLS cells of its positions."""


@dataclass(frozen=True, eq=False)
class LayerFeatures:
    """A batch-norm layer's input r for every image, averaged over cells, and its own numbers.

    Each of the maps below is affine per position, the same one at all of them, so that averaging
    first and mapping then is the same as the other way round.

    Attributes:
        name: of the layer in its model.
        cells: (n, channels, cells) the mean of r over each cell; one cell at a dense layer.
        mean, variance, gamma, beta: (channels,) of the layer, in eval mode.
        eps: ε.
    """

    name: str
    cells: Float64[Tensor, "n channels cells"]
    mean: Float64[Tensor, " channels"]
    variance: Float64[Tensor, " channels"]
    gamma: Float64[Tensor, " channels"]
    beta: Float64[Tensor, " channels"]
    eps: float

    def normalised(self) -> Float64[Tensor, "n features"]:
        """(r − μ)/√(σ² + ε) by the layer's own statistics: z, before γ and β."""
        return self._z().flatten(1)

    def affine(self) -> Float64[Tensor, "n features"]:
        """γ z + β: what the layer gives."""
        return (self.gamma[:, None] * self._z() + self.beta[:, None]).flatten(1)

    def whitened(self, by: Whitening) -> Float64[Tensor, "n features"]:
        """Σ^(-1/2)(r − μ) by statistics of `by`, in place of the layer's.

        Raises:
            ValueError: `by` is of a layer with other channels.
        """
        return torch.matmul(by.root, self._about(by)).flatten(1)

    def per_unit(self, by: Whitening) -> Float64[Tensor, "n features"]:
        """(r − μ)/√(diag Σ + ε) by the very μ and Σ that whiten: what the rest of Σ adds to it.

        Raises:
            ValueError: as `whitened`.
        """
        return (self._about(by) / (by.variance + self.eps).sqrt()[:, None]).flatten(1)

    def _about(self, by: Whitening) -> Float64[Tensor, "n channels cells"]:
        if len(by.mean) != len(self.mean):
            raise ValueError(
                f"layer '{self.name}' has {len(self.mean)} channels, the whitening "
                f"{len(by.mean)}: take that of the same layer"
            )
        return self.cells - by.mean[:, None]

    def _z(self) -> Tensor:
        return (self.cells - self.mean[:, None]) / (self.variance + self.eps).sqrt()[:, None]


def layer_features(net: nn.Module, inputs: Tensor) -> list[LayerFeatures]:
    """The input of every batch-norm layer of `net`, in the order of the forward pass.

    The net runs in eval mode, so that each image passes by itself. Maps (n, C, h, w) are averaged
    over 2 × 2 cells (those of `adaptive_avg_pool2d`, which overlap by one row where h is odd) and
    give 4C features; a dense layer's C values stay as they are. All is float64 on the CPU.

    Args:
        net: with batch norm; run, and left as it is.
        inputs: (n, ...) as the net takes them, on its device and of its dtype.

    Raises:
        TypeError: no module, or inputs that are no tensor.
        ValueError: no input; a net without batch norm, or whose batch norm keeps no statistics, is
            called twice or with neither maps nor vectors.
        DivergedError: a ValueError; features that are not finite.
    """
    layers: dict[str, _BatchNorm] = {}
    parts: dict[str, list[Tensor]] = {}
    for batch in passes(net, inputs):
        for name, (layer, r) in batch.items():
            layers[name] = layer
            parts.setdefault(name, []).append(_cells(r))
    found = [_features(name, layers[name], torch.cat(cells)) for name, cells in parts.items()]
    for layer in found:
        if not bool(layer.cells.isfinite().all()):
            raise DivergedError(
                f"what comes to batch-norm layer '{layer.name}' is not finite: the model diverged"
            )
    return found


def _features(name: str, layer: _BatchNorm, cells: Tensor) -> LayerFeatures:
    return LayerFeatures(
        name,
        cells,
        mean=_double(layer.running_mean, 0.0, cells),
        variance=_double(layer.running_var, 1.0, cells),
        gamma=_double(layer.weight, 1.0, cells),
        beta=_double(layer.bias, 0.0, cells),
        eps=float(layer.eps),
    )


def _double(tensor: Tensor | None, value: float, like: Tensor) -> Tensor:
    """A layer's numbers in float64 on the CPU; `value` for each channel where it has none."""
    if tensor is None:
        return torch.full((like.shape[1],), value, dtype=torch.float64)
    return tensor.detach().cpu().double().clone()


def _cells(r: Tensor) -> Tensor:
    r = r.detach().cpu().double()
    if r.ndim == 2:
        return r[:, :, None]
    height, width = (min(CELLS, size) for size in r.shape[2:])
    return functional.adaptive_avg_pool2d(r, (height, width)).flatten(2)


@torch.no_grad()
def principal_coordinates(
    images: Tensor, reference: Tensor, directions: int
) -> Float64[Tensor, "n k"]:
    """Images in the leading principal directions of other images, about their mean.

    Any half-space of these coordinates is one of the images themselves, so that what bounds a
    divergence from below here bounds it there.

    Args:
        images: (n, ...).
        reference: (m, ...) of the same size, at least two; fixes mean and directions alone.
        directions: how many are kept, at least 1; fewer if there are fewer.

    Raises:
        ValueError: fewer than two images of reference, no direction, or images of another size.
    """
    x, by = images.flatten(1).double().cpu(), reference.flatten(1).double().cpu()
    if len(by) < 2 or x.shape[1] != by.shape[1] or directions < 1:
        raise ValueError(
            f"{tuple(reference.shape)} gives no {directions} directions for {tuple(images.shape)}: "
            "give two images or more, of one size, and at least one direction"
        )
    mean = by.mean(0)
    _, _, axes = torch.linalg.svd(by - mean, full_matrices=False)
    # About their mean, m points span m − 1 directions.
    return (x - mean) @ axes[: min(directions, len(by) - 1)].T
