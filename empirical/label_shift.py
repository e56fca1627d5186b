"""Whether clients differ in their classes, which test-time batch norm takes for other features."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, Int64

from empirical.checks import is_real, is_whole
from empirical.data.client import Client, Split, as_clients
from empirical.seeds import derive, numpy_generator

Ratio = float | int | np.integer | np.floating

SIGNIFICANT, LARGE = 1e-3, 0.1
"""The p-value below which, and the distance above which, a user is told."""

_DRAWS = 4999
_FEW = 5.0  # expected counts below which χ² is no good approximation (Cochran 1954)


@dataclass(frozen=True)
class LabelShift:
    """How far the clients' class proportions are from those of the federation.

    Attributes:
        distances: client -> total variation ½ Σ_c |p_c(client) − p_c(federation)|, in [0, 1).
        pair: the two clients whose proportions are farthest apart.
        pair_distance: total variation between them.
        statistic: χ² of the table of clients by classes.
        p_value: of the hypothesis that all clients have the same proportions.
        method: "χ²", or "permutation" where expected counts are small.
        images: how many were counted.
    """

    distances: Mapping[str, float]
    pair: tuple[str, str]
    pair_distance: float
    statistic: float
    p_value: float
    method: str
    images: int

    @property
    def sentence(self) -> str | None:
        """Advice where the shift is significant (p < 0.001) and above 0.1; else None."""
        name = max(self.distances, key=lambda client: self.distances[client])
        largest = self.distances[name]
        if not (self.p_value < SIGNIFICANT and largest > LARGE):
            return None
        return (
            f"the clients' classes differ (total variation {largest:.2f} between '{name}' and the "
            f"federation, {self.pair_distance:.2f} between '{self.pair[0]}' and '{self.pair[1]}'; "
            f"p {_said(self.p_value)}): test-time batch norm assumes that a client outside has the "
            "classes of the others, and takes other classes for other features; compare it with "
            "the server's statistics (variant 'server') before you trust it"
        )


def label_shift(clients: Iterable[Client], seed: int | np.integer = 0) -> LabelShift:
    """Total variation between each client's class proportions and the federation's, and a test.

    All labels count, training and test. Classes are numbered alike everywhere: a client that knows
    fewer than others has no image of the rest. Pearson's χ² of homogeneity has (N − 1)(C − 1)
    degrees of freedom for N clients and the C classes that occur. Where an expected count is below
    5 the p-value is that of 4,999 random tables with the same margins, (1 + #{χ² ≥ seen})/5,000.

    Args:
        clients: at least two.
        seed: of the random tables.

    Raises:
        TypeError: no collection of `Client`; a seed that is no integer.
        ValueError: fewer than two clients, or two of one name.
    """
    members, start = as_clients(clients), _as_seed(seed)
    names = [client.name for client in members]
    if len(members) < 2:
        given = "one client" if members else "no clients"
        raise ValueError(f"{given} cannot differ in classes: give two or more")
    if len(set(names)) < len(names):
        raise ValueError("two clients have one name: give each its own")
    table, shares, whole = class_shares(members)
    distances = {n: variation(share, whole) for n, share in zip(names, shares, strict=True)}
    pairs = {
        (names[i], names[j]): variation(shares[i], shares[j])
        for i, j in combinations(range(len(names)), 2)
    }
    pair = max(pairs, key=lambda both: pairs[both])
    statistic, p_value, method = _homogeneity(table, start)
    total = int(table.sum())
    return LabelShift(distances, pair, pairs[pair], statistic, p_value, method, total)


def skewed(
    split: Split, ratio: Ratio, seed: int | np.integer, size: int | np.integer | None = None
) -> Split:
    """Images of a split with geometric class proportions, the commonest `ratio` times the rarest.

    The K classes that occur, in an order that the seed draws, get the shares ∝ ratio^(−k/(K−1)),
    k = 0 … K − 1; counts are rounded by largest remainders. No image is taken twice, and the
    images keep their order.

    Args:
        split: to draw from.
        ratio: at least 1, which is balanced.
        seed: of the order of the classes and of the images.
        size: how many images; as many as the classes allow if left out.

    Raises:
        TypeError: no `Split`; a seed that is no integer.
        ValueError: a ratio below 1 or not finite; fewer than two classes; a size that is no
            positive whole number or more than the classes allow; none left of the rarest class.
    """
    present, counts, shares = _plan(split, ratio, seed)
    most, size = _most(counts, shares), _plain(size)
    if size is not None and not (is_whole(size) and 1 <= size <= most):
        raise ValueError(
            f"with the ratio {ratio:g} this split allows 1 … {most} images, got {size!r}"
        )
    wanted = _rounded(most if size is None else size, shares)
    if wanted.min() < 1:
        raise ValueError(
            f"with the ratio {ratio:g} no image of the rarest class is left among "
            f"{wanted.sum()}: give more images or a smaller ratio"
        )
    rng = numpy_generator(_as_seed(seed), "label_shift", "images")
    labels = split.labels.numpy()
    rows = [
        rng.permutation(np.flatnonzero(labels == label))[:count]
        for label, count in zip(present, wanted, strict=True)
    ]
    kept = torch.from_numpy(np.sort(np.concatenate(rows)))
    return Split(split.images[kept], split.labels[kept], split.classes)


def largest_skewed(split: Split, ratio: Ratio, seed: int | np.integer) -> int:
    """How many images `skewed` can draw at most; raises as it does."""
    _, counts, shares = _plan(split, ratio, seed)
    return _most(counts, shares)


def _plan(
    split: object, ratio: object, seed: object
) -> tuple[np.ndarray, Int64[np.ndarray, " k"], Float64[np.ndarray, " k"]]:
    """The classes in the drawn order, how many images each has, and the share each is to get."""
    if not isinstance(split, Split):
        raise TypeError(
            f"split must be a Split, got {type(split).__name__}: give a client's, such as "
            "client.test, or Split(images, labels)"
        )
    number = _as_ratio(ratio)
    present, counts = np.unique(split.labels.numpy(), return_counts=True)
    if len(present) < 2:
        raise ValueError("the split has one class, whose share cannot be skewed: give two or more")
    order = numpy_generator(_as_seed(seed), "label_shift", "order").permutation(len(present))
    shares = number ** (-np.arange(len(present)) / (len(present) - 1))
    return present[order], counts[order], shares / shares.sum()


def _most(counts: np.ndarray, shares: np.ndarray) -> int:
    # A share times the number of images may round to just above a whole number.
    with np.errstate(over="ignore"):  # of a tiny share there are images enough
        return int(np.floor((counts / shares).min() * (1 + 1e-12)))


def _as_ratio(ratio: object) -> float:
    try:
        number = float(ratio) if is_real(ratio) else math.nan
    except OverflowError:
        number = math.inf
    if not 1 <= number < math.inf:
        raise ValueError(
            f"ratio is how many times the commonest class exceeds the rarest, at least 1, got "
            f"{ratio!r}"
        )
    return number


def _as_seed(seed: object) -> int:
    """A seed that `derive` takes, NumPy's integers included."""
    start = _plain(seed)
    if not is_whole(start):
        raise TypeError(f"a seed must be an integer, got {type(seed).__name__}")
    derive(start)  # refuses a negative one
    return start


def _plain(number: Any) -> Any:
    """NumPy's integers as Python's; everything else as it is."""
    return int(number) if isinstance(number, np.integer) else number


def _rounded(size: int, shares: np.ndarray) -> Int64[np.ndarray, " k"]:
    quotas = size * shares
    whole = np.floor(quotas * (1 + 1e-12)).astype(np.int64)
    first = np.argsort(whole - quotas, kind="stable")[: size - whole.sum()]
    whole[first] += 1
    return whole


def class_shares(members: list[Client]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Clients by classes that occur: counts, each client's shares, and the federation's (K,)."""
    known = max(client.train.classes for client in members)
    labels = [torch.cat([client.train.labels, client.test.labels]) for client in members]
    table = np.stack([torch.bincount(part, minlength=known).numpy() for part in labels])
    table = table[:, table.sum(0) > 0]
    return table, table / table.sum(1, keepdims=True), table.sum(0) / table.sum()


def variation(p: np.ndarray, q: np.ndarray) -> float:
    """Total variation between two shares."""
    return 0.5 * float(np.abs(p - q).sum())


def _homogeneity(table: np.ndarray, seed: int) -> tuple[float, float, str]:
    """χ², its p-value, and how that was got."""
    rows, columns = table.sum(1), table.sum(0)
    expected = np.outer(rows, columns) / table.sum()
    observed = float(chi_square(table, expected))
    if len(columns) == 1:
        return 0.0, 1.0, "χ²"
    if expected.min() >= _FEW:
        half = 0.5 * (len(rows) - 1) * (len(columns) - 1)
        tail = torch.special.gammaincc(*torch.tensor([half, 0.5 * observed], dtype=torch.float64))
        return observed, float(tail), "χ²"
    drawn = chi_square(_tables(rows, columns, seed), expected)
    # Equal tables may differ in the last bits of their sums.
    as_large = int((drawn >= observed * (1 - 1e-9)).sum())
    return observed, (1 + as_large) / (1 + _DRAWS), "permutation"


def _tables(rows: np.ndarray, columns: np.ndarray, seed: int) -> Int64[np.ndarray, "t n k"]:
    """Tables as random relabelling gives them: hypergeometric, cell after cell, for all at once."""
    rng = numpy_generator(seed, "label_shift", "tables")
    tables = np.zeros((_DRAWS, len(rows), len(columns)), dtype=np.int64)
    left = np.tile(columns, (_DRAWS, 1))  # not dealt yet
    for i, size in enumerate(rows):
        need, others = np.full(_DRAWS, size), left.sum(1)
        for k in range(len(columns)):
            others = others - left[:, k]
            tables[:, i, k] = rng.hypergeometric(left[:, k], others, need)
            need = need - tables[:, i, k]
        left = left - tables[:, i]
    return tables


def chi_square(tables: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Pearson's χ² of one table, or of each of several."""
    return np.asarray(((tables - expected) ** 2 / expected).sum((-2, -1)))


def _said(p_value: float) -> str:
    return "< 1e-12" if p_value < 1e-12 else f"= {p_value:.2g}"
