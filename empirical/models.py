"""The networks, by name; a seed fixes the initial weights."""

from collections.abc import Callable

from torch import nn

from empirical.checks import is_whole
from empirical.registry import find
from empirical.seeds import forked


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


def build_model(name: str, seed: int, classes: int = 10) -> nn.Module:
    """The registered network with torch's default initialisation.

    The draws depend on the seed and the name alone, not on the policy, the algorithm or what
    was drawn before; the global generator is left as it was.

    Raises:
        ValueError: unknown name (the nearest are offered), or fewer than two classes.
    """
    build = find(MODELS, name, "model")
    if not (is_whole(classes) and classes >= 2):
        raise ValueError(f"a classifier needs at least two classes, got {classes!r}")
    with forked(seed, "model", name):
        return build(classes)
