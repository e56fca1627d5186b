"""A federation of quadratic losses, whose optima and rounds can be worked out by hand."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from empirical.data.client import Client, Split


class Quadratics(nn.Module):
    """One weight w; client i, whose pixels have the value i, has the loss 1 + a_i/2 (w - b_i)².

    It is a cross-entropy: with the logits (0, z) that of label 0 is log(1 + e^z), which is q for
    z = log(e^q - 1).
    """

    def __init__(self, a: Sequence[float], b: Sequence[float], start: float = 0.0) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor(start, dtype=torch.float64))
        self.a, self.b = (torch.tensor(values, dtype=torch.float64) for values in (a, b))

    def forward(self, images: Tensor) -> Tensor:
        i = ((images[:, 0, 0, 0] + 1) * 127.5).round().long()
        q = 1 + self.a[i] / 2 * (self.w - self.b[i]) ** 2
        return torch.stack([torch.zeros_like(q), q.expm1().log()], 1)


def clients(*sizes: int) -> list[Client]:
    """Clients "a", "b", ... of that many images, for `Quadratics`."""
    made = []
    for i, size in enumerate(sizes):
        images = torch.full((size, 3, 1, 1), i, dtype=torch.uint8)
        split = Split(images, torch.zeros(size, dtype=torch.int64), 2)
        made.append(Client("abcdefgh"[i], split, split))
    return made


# Three unequal ones: Σ n a b / Σ n a = 13/23 with the sizes as weights, Σ a b / Σ a = 9/7 without.
A, B, SIZES = (1.0, 2.0, 4.0), (-1.0, 1.0, 2.0), (9, 3, 2)
WEIGHTED, UNWEIGHTED = 13 / 23, 9 / 7
