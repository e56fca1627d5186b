"""Small federations with feature shift, quick to make, for the tests of the loop."""

import torch

from empirical.data.client import Client, Split
from empirical.seeds import generator


def toy_federation(
    sizes: tuple[int, ...] = (48, 48),
    seed: int = 0,
    classes: int = 10,
    image: int = 28,
    test: int = 40,
) -> list[Client]:
    """One client for each training size; `test` test images each.

    A class is a coarse pattern that all clients share; a client is a contrast, a brightness and
    a colour that only it has: feature shift without label shift. Labels run through the classes
    in turn, so that class counts differ by one at most. A small CNN learns it in a few epochs.
    """
    coarse = torch.rand(classes, 1, 7, 7, generator=generator(seed, "toy", "patterns")) > 0.5
    pattern = torch.nn.functional.interpolate(coarse.float(), size=(image, image), mode="nearest")
    return [
        Client(
            f"toy-{k}",
            _split(pattern, size, classes, (seed, k, "train")),
            _split(pattern, test, classes, (seed, k, "test")),
        )
        for k, size in enumerate(sizes)
    ]


def _split(pattern, size, classes, purpose):
    seed, k, part = purpose
    shift = generator(seed, "toy", "client", k)
    dark, span = torch.rand(2, 1, 3, 1, 1, generator=shift)
    labels = torch.arange(size) % classes
    noise = torch.randn(size, 3, *pattern.shape[2:], generator=generator(seed, "toy", k, part))
    value = 0.5 * dark + (0.25 + 0.25 * span) * pattern[labels] + 0.08 * noise
    return Split(value.clamp(0, 1).mul(255).round().to(torch.uint8), labels, classes)
