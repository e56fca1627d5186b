"""A user's points described, and the sizes at which the studies of the section run on them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from theory.assumption import Assumption, check_assumption
from theory.centring import centre
from theory.data import Points
from theory.studies.points import leading_directions, whiten

MOST_EIGENVALUES = 6000
"""Points up to which every eigenvalue is computed, for the picture of the spectra."""

_CLIENTS = (2, 3, 4, 8, 16, 32, 64)
_SAMPLES = (2, 5, 10, 25, 50, 100, 200)
_DRAWS = 20
_SECONDS_AT_3000 = 12.0  # a comparison, or all eigenvalues, of 3,000 points
_WELL_CONDITIONED = 1e-7  # thousandfold what whitening asks for: rounding decides nothing


@dataclass(frozen=True)
class Described:
    """What a plan needs to know of a user's points, and what the user is told of them.

    Attributes:
        source: the name of the points in configs, tables and file names.
        fingerprint: SHA-256 of the arrays.
        counts: points of each client, clients in order of first appearance.
        features: d.
        dimension: dimensions in which every client can be whitened; 0 where it cannot.
        headline: name, N, n_i and d in one line.
        sentences: what of the points breaks Assumption III.1, and what is left out and why.
    """

    source: str
    fingerprint: str
    counts: tuple[int, ...]
    features: int
    dimension: int
    headline: str
    sentences: tuple[str, ...]

    @property
    def manifest(self) -> dict[str, Any]:
        """What a run's manifest records: the points, and notes for the report."""
        data = {"points": self.headline, "sha256": self.fingerprint, "counts": list(self.counts)}
        return {"data": data, "notes": list(self.sentences)}


def describe(points: Points, most_dimensions: int) -> Described:
    """Describes points: their sizes, the dimension for whitened studies, what to tell the user."""
    x = centre(points.x, points.client)
    _, first, counts = np.unique(points.client, return_index=True, return_counts=True)
    sizes = tuple(int(count) for count in counts[np.argsort(first)])
    dimension, why = _dimension(points, sizes, most_dimensions)
    n, least, most = len(x), min(sizes), max(sizes)
    each = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    headline = (
        f"points of {points.name}: {n:,} points of {len(sizes):,} client{'s' * (len(sizes) > 1)}, "
        f"{each} each, in d = {x.shape[1]:,}"
    )
    sentences = [*_assumption(points, check_assumption(x, points.client))]
    if len(sizes) == 1:
        sentences.append("There is one client only: G*∞ and G∞ are the same matrix.")
    if n > MOST_EIGENVALUES:
        sentences.append(
            f"The picture of all eigenvalues is left out above {MOST_EIGENVALUES:,} points."
        )
    if not comparison_sizes(sizes, 800):
        sentences.append(
            "Draws of clients and samples are left out: the clients have too few points to draw "
            "from."
        )
    if why:
        sentences.append(
            "On these points only the smallest and largest eigenvalues and the condition numbers "
            "of G∞ and G*∞ are compared; the exact kernel of BN, the readings of the full kernel, "
            f"regimes, networks and all else that whitens clients are left out: {why}."
        )
    return Described(
        points.source, points.fingerprint, sizes, x.shape[1], dimension, headline, tuple(sentences)
    )


def _dimension(points: Points, sizes: tuple[int, ...], most: int) -> tuple[int, str]:
    """The most dimensions in which every client is whitened from two points a dimension."""
    least = min(sizes)
    if points.x.shape[1] < 2:
        return 0, "they have one dimension, in which all points lie on one line"
    if least < 4:
        where = points.client[int(np.isin(points.client, _smallest(points)).argmax())]
        return 0, (
            f"client {str(where)!r} has {least} points, and whitening a client takes 4 or more"
        )
    values, directions = leading_directions(points.x, min(most, points.x.shape[1], least // 2))
    carried = int((values > 1e-9 * values[0]).sum())
    why = "all points together vary in one direction only"
    for dimension in range(carried, 1, -1):
        try:
            whiten(points.x @ directions[:, :dimension], points.client, _WELL_CONDITIONED)
        except ValueError as error:
            why = str(error).split(": ")[0].replace("Client", "client", 1)
        else:
            return dimension, ""
    return 0, why


def _smallest(points: Points) -> np.ndarray:
    names, counts = np.unique(points.client, return_counts=True)
    return names[counts == counts.min()]


def _assumption(points: Points, found: Assumption) -> Iterator[str]:
    """What of Assumption III.1 the points break once centred, with their places in the file."""
    counted = "" if points.lines.size else " (rows counted from 0)"
    for pairs, kind, effect in (
        (found.parallel, "parallel", "which makes G∞ singular"),
        (found.antiparallel, "antiparallel", "which breaks Assumption III.1"),
    ):
        if pairs:
            shown = "; ".join(f"{points.place(p)} and {points.place(q)}" for p, q in pairs[:3])
            more = f"; {len(pairs):,} pairs in all" if len(pairs) > 3 else ""
            yield (
                f"Points that are {kind} once centred by client, {effect}: {shown}{more}{counted}."
            )


def comparison_sizes(counts: tuple[int, ...], most: int) -> dict[tuple[int, int], int]:
    """Sizes (N, M) for draws from clients of these sizes, each with the draws worth making.

    N runs over the clients at one M and M at one N, where N·M ≤ `most`; a size of which there is
    only one draw, everything, is left to the comparison on all points.
    """
    clients, least = len(counts), min(counts)
    middle = min(50, least)
    over_n = sorted({n for n in (*_CLIENTS, clients) if n <= clients and n * middle <= most})
    base = max((n for n in over_n if n <= 4), default=min(clients, 2))
    over_m = sorted({m for m in (*_SAMPLES, least) if m <= least and base * m <= most})[-5:]
    wanted = dict.fromkeys([(n, middle) for n in over_n] + [(base, m) for m in over_m])
    draws = {size: possible_draws(counts, *size) for size in wanted}
    return {size: count for size, count in draws.items() if count > 1}


def possible_draws(counts: tuple[int, ...], clients: int, samples: int) -> int:
    """How many draws there are of that many clients and samples, counted up to twenty."""
    found = math.comb(len(counts), clients)
    # The smallest clients have the fewest choices: at least so many in any draw of clients.
    for count in sorted(counts)[:clients]:
        found *= math.comb(count, samples)
        if found >= _DRAWS:
            return _DRAWS
    return found


def own_comparisons(given: Described, quick: bool) -> Iterator[tuple[str, dict[str, Any], float]]:
    """Lists the comparisons of Corollary III.6 on a user's points: label, config, seconds."""
    common = {"data": given.source, "seed": 0}
    sizes = comparison_sizes(given.counts, 250 if quick else 800)
    for draws in sorted(set(sizes.values()), reverse=True):
        at = [size for size, count in sizes.items() if count == draws]
        config = {"study": "corollary", "sizes": at, "draws": draws, **common}
        seconds = 0.5 + draws * sum(_seconds(n * m) for n, m in at)
        label = f"corollary III.6, {given.source}, {draws} draw{'s' * (draws > 1)}"
        yield label, config, seconds
    n = sum(given.counts)
    config, seconds = {"study": "spectrum", **common}, 0.5 + 2 * _seconds(n)
    if n > MOST_EIGENVALUES:
        config, seconds = {**config, "eigenvalues": False}, 0.5 + _seconds(n)
    yield f"spectra, all {given.source}", config, seconds


def _seconds(n: int) -> float:
    return 0.01 + _SECONDS_AT_3000 * (n / 3000) ** 3


def own_sample(given: Described) -> dict[str, int]:
    """The sizes of the studies that whiten clients; only where there is a dimension for them."""
    clients, samples = min(4, len(given.counts)), min(8, min(given.counts))
    return {"clients": clients, "samples": samples, "dimension": given.dimension}
