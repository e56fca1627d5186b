"""The networks, by name; a seed fixes the initial weights."""

import copy
from collections.abc import Callable

from torch import nn
from torch.nn.parameter import is_lazy

from empirical.checks import is_whole
from empirical.contrast import last_linear
from empirical.registry import find
from empirical.seeds import forked

WIDEST = 2**20
"""Of a projection: beyond it a head would not fit into memory."""


def _conv(inputs: int, outputs: int, *, pool: bool) -> list[nn.Module]:
    layers = [nn.Conv2d(inputs, outputs, 5, padding=2), nn.BatchNorm2d(outputs), nn.ReLU()]
    return [*layers, nn.MaxPool2d(2)] if pool else layers


def _dense(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU()]


def digits_cnn(classes: int = 10) -> nn.Sequential:
    """FedBN's net for digits (Li et al. 2021): (n, 3, 28, 28) -> (n, classes).

    Convolutions 64, 64, 128 of 5×5, fully connected 2048, 512; batch norm after each;
    14,219,210 parameters with ten classes.
    """
    return nn.Sequential(
        *_conv(3, 64, pool=True),
        *_conv(64, 64, pool=True),
        *_conv(64, 128, pool=False),
        nn.Flatten(),
        *_dense(128 * 7 * 7, 2048),
        *_dense(2048, 512),
        nn.Linear(512, classes),
    )


def compact_cnn(classes: int = 10) -> nn.Sequential:
    """A quarter of FedBN's widths and one hidden layer, for a CPU: (n, 3, 28, 28) -> (n, classes).

    Convolutions 16, 32, 64 of 5×5, fully connected 128; four batch-norm layers.
    """
    return nn.Sequential(
        *_conv(3, 16, pool=True),
        *_conv(16, 32, pool=True),
        *_conv(32, 64, pool=False),
        nn.Flatten(),
        *_dense(64 * 7 * 7, 128),
        nn.Linear(128, classes),
    )


MODELS: dict[str, Callable[[int], nn.Module]] = {
    "compact_cnn": compact_cnn,
    "digits_cnn": digits_cnn,
}


def build_model(
    name: str, seed: int, classes: int = 10, projection: int | None = None
) -> nn.Module:
    """The registered network with torch's default initialisation.

    The draws depend on the seed and the name alone, not on the policy, the algorithm or what
    was drawn before; the global generator is left as it was.

    Args:
        name: a key of `MODELS`.
        seed: fixes the initial weights.
        classes: outputs.
        projection: width of a projection head (`with_projection_head`); 256 is MOON's.

    Raises:
        ValueError: unknown name (the nearest are offered), fewer than two classes, or a
            projection that is no positive whole number.
    """
    build = find(MODELS, name, "model")
    if not (is_whole(classes) and classes >= 2):
        raise ValueError(f"a classifier needs at least two classes, got {classes!r}")
    with forked(seed, "model", name):
        model = build(classes)
    return model if projection is None else with_projection_head(model, seed, projection)


def with_projection_head(model: nn.Module, seed: int, width: int = 256) -> nn.Module:
    """A copy of `model` with MOON's projection head (Li, He and Song 2021, Section 3.2).

    The last linear layer, d -> classes, gives way to Linear(d, d), ReLU, Linear(d, width) and the
    classifier Linear(width, classes), whose input MOON compares. The head draws its weights from
    the seed; the others stay as they are.

    A layer that goes by several names gives way under each of them.

    Raises:
        TypeError: the model is no module.
        ValueError: a model without a linear layer, or one without a shape yet; a width that is no
            whole number in 1 … 2²⁰.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"{model!r} is no Module: use build_model(name, seed)")
    if not (is_whole(width) and width >= 1):
        raise ValueError(f"a projection has a whole width of at least 1, got {width!r}")
    if width > WIDEST:
        raise ValueError(f"a projection beyond a width of {WIDEST} is too wide: MOON's is 256")
    model = copy.deepcopy(model)
    old = last_linear(model)
    if is_lazy(old.weight):
        raise ValueError(
            "the last linear layer has no shape yet: run the model once on an example before use"
        )
    like = {"device": old.weight.device, "dtype": old.weight.dtype}
    with forked(seed, "projection", device=old.weight.device):
        head = nn.Sequential(
            nn.Linear(old.in_features, old.in_features, **like),
            nn.ReLU(),
            nn.Linear(old.in_features, width, **like),
            nn.Linear(width, old.out_features, **like),
        ).train(old.training)
    if old is model:
        return head
    everywhere = list(model.named_modules(remove_duplicate=False))
    for parent, _, leaf in (name.rpartition(".") for name, layer in everywhere if layer is old):
        setattr(model.get_submodule(parent), leaf, head)
    return model
