"""Class-balanced draws that never take the same index twice."""

import numpy as np
from jaxtyping import Int64


def balanced(total: int, classes: int = 10) -> Int64[np.ndarray, " classes"]:
    """How many of each class: equal, the first classes one more where `total` asks for it."""
    counts = np.full(classes, total // classes, dtype=np.int64)
    counts[: total % classes] += 1
    return counts


def draw(
    labels: Int64[np.ndarray, " n"],
    parts: list[Int64[np.ndarray, " classes"]],
    rng: np.random.Generator,
) -> list[Int64[np.ndarray, " _"]]:
    """Disjoint index sets with the given number of each class, every one in shuffled order.

    Each class is shuffled once and cut into consecutive pieces, so that a source sorted by class,
    or by writer, leaves no trace.

    Raises:
        ValueError: a class has fewer members than the parts ask for.
    """
    taken: list[list[np.ndarray]] = [[] for _ in parts]
    for label in range(len(parts[0])):
        members = rng.permutation(np.flatnonzero(labels == label))
        ends = np.cumsum([counts[label] for counts in parts])
        if ends[-1] > len(members):
            raise ValueError(f"class {label}: {ends[-1]} images asked for, {len(members)} there")
        for part, end, counts in zip(taken, ends, parts, strict=True):
            part.append(members[end - counts[label] : end])
    return [rng.permutation(np.concatenate(part)) for part in taken]


def in_proportion(
    labels: Int64[np.ndarray, " n"], rng: np.random.Generator
) -> Int64[np.ndarray, " n"]:
    """All indices in an order whose every beginning holds each class in proportion.

    Member r of the n_c of a class, in shuffled order, stands at the place (r + ½)/n_c; equal
    places are shuffled too. So the first m of n hold m n_c/n of the class, to within one.
    """
    place = np.empty(len(labels))
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        place[rng.permutation(members)] = (np.arange(len(members)) + 0.5) / len(members)
    return np.lexsort((rng.permutation(len(labels)), place))
