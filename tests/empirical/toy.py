"""Small clients and nets whose results can be worked out or repeated by plain loops."""

import inspect
from collections.abc import Callable

import torch
from torch import Tensor, nn

from empirical.data.client import Client, Split


def unchecked(subject: Callable) -> Callable:
    """A function or class of the package without the tests' type checker, which answers first."""
    if not isinstance(subject, type):
        return inspect.unwrap(subject)

    def build(*values: object, **named: object) -> object:
        made = object.__new__(subject)
        inspect.unwrap(subject.__init__)(made, *values, **named)
        return made

    return build


def client(name: str, train: int, test: int = 6, seed: int = 0, size: int = 4) -> Client:
    """Random images of two classes; the seed and the name fix them."""
    draws = torch.Generator().manual_seed(1000 * seed + sum(map(ord, name)))

    def split(n: int) -> Split:
        images = torch.randint(0, 256, (n, 3, size, size), generator=draws, dtype=torch.uint8)
        return Split(images, torch.randint(0, 2, (n,), generator=draws), 2)

    return Client(name, split(train), split(test))


def signs(name: str, values: list[int], labels: list[int]) -> Client:
    """A client of 1×1 images whose normalised pixels are +1 or -1, the same in every channel."""
    images = torch.tensor([255 if value > 0 else 0 for value in values], dtype=torch.uint8)
    split = Split(images.view(-1, 1, 1, 1).expand(-1, 3, 1, 1), torch.tensor(labels), 2)
    return Client(name, split, split)


class Slope(nn.Module):
    """Logits (0, w x) of one pixel: the loss of label 1 is log(1 + exp(-w x))."""

    def __init__(self, start: float = 0.0) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor(start, dtype=torch.float64))

    def forward(self, images: Tensor) -> Tensor:
        x = images[:, 0, 0, 0]
        return torch.stack([torch.zeros_like(x), self.w * x], 1)


class Branches(nn.Module):
    """Bright batches use one layer, dark ones the other, whose gradient is then None or 0.

    One last layer for both, so that MOON finds a representation.
    """

    def __init__(self, *, zero: bool) -> None:
        super().__init__()
        layers = [nn.Sequential(*list(plain_net(seed).children())[:3]) for seed in (0, 1)]
        self.layers, self.zero = nn.ModuleList(layers), zero
        self.head = list(plain_net(2).children())[3]

    def forward(self, images: Tensor) -> Tensor:
        bright = int(images.mean() > 0)
        used = self.layers[bright](images)
        return self.head(used + 0 * self.layers[1 - bright](images) if self.zero else used)


class Residual(nn.Module):
    """A ResNet-like block: no batch-norm layer has "bn" in its name."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.body = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.downsample = nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4))
        self.head = nn.Linear(4, 2)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        return self.head((self.body(x) + self.downsample(x)).relu().mean((2, 3)))


def _seeded(build: type[nn.Module] | object, seed: int) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return build().double()  # type: ignore[operator]


def bn_net(seed: int = 0) -> nn.Module:
    """Float64, batch norm after a convolution and after a dense layer."""
    return _seeded(
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16, 5),
            nn.BatchNorm1d(5),
            nn.ReLU(),
            nn.Linear(5, 2),
        ),
        seed,
    )


def plain_net(seed: int = 0) -> nn.Module:
    """Float64, no batch norm."""
    return _seeded(
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(48, 5), nn.ReLU(), nn.Linear(5, 2)), seed
    )


def residual_net(seed: int = 0) -> nn.Module:
    """Float64, `Residual`."""
    return _seeded(Residual, seed)
