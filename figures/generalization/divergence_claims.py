"""What the section claims of the divergence: between features, against floors, over batches."""

from collections.abc import Iterator

from figures.claims import Claim
from figures.experiments.cells import measured
from figures.experiments.comparisons import Compared
from figures.experiments.names import client_titles, slugs
from figures.experiments.wide import column_of
from figures.generalization.summary import Summary

LAYERS, LAST, BATCHES = (f"figures/{name}.pdf" for name in ("layers", "last_layer", "batches"))
DIVERGENCE = "UniFed, Corollary III.9 and Eqs. (3), (4)"
WHITENING = "derived here; UniFed, Eq. (17)"

LEAVES = "{of} leaves more divergence in {last} than {what} do between samples of one Gaussian law"
DIAGONAL, FULL = "estimating means and variances", "estimating means and covariances"
PAIRED = "; d_HΔH by the search over pairs of networks"
SPECIFIC = "client-specific"
PLANNED = {
    "fresh": (
        "fresh",
        "Per-unit BN by statistics of each client's training images has a smaller estimated "
        "divergence in {last} between seen clients and a client from outside than aggregated BN",
        DIVERGENCE,
        LAYERS,
    ),
    "stale": (
        "stale",
        "Part of the divergence in {last} with client-specific BN as deployed is due to stale "
        "running statistics of the seen clients: fresh ones, of their training images, leave "
        "less, with the same features of the client from outside after {many} test batches",
        DIVERGENCE,
        BATCHES,
    ),
    "whitened pairs": (
        "whitened",
        "Full whitening leaves a smaller d_HΔH in {last}, as the bounds have it, than per-unit BN "
        "by the same statistics: what their correlations add",
        WHITENING,
        LAST,
    ),
    "whitened": (
        "whitened-half-spaces",
        "Full whitening leaves a smaller divergence in {last} than per-unit BN by the same "
        "statistics, also for a half-space, which is nearly blind to correlations",
        WHITENING,
        LAST,
    ),
    "whitened floor": (
        "whitened-floor",
        LEAVES.format(of="Full whitening", last="{last}", what=FULL),
        WHITENING,
        LAST,
    ),
    "per_unit floor": (
        "per-unit-floor",
        LEAVES.format(of="Per-unit BN", last="{last}", what=DIAGONAL),
        WHITENING,
        LAST,
    ),
    "whitened pair floor": (
        "whitened-floor-pairs",
        LEAVES.format(of="Full whitening", last="{last}", what=FULL) + PAIRED,
        WHITENING,
        LAST,
    ),
    "per_unit pair floor": (
        "per-unit-floor-pairs",
        LEAVES.format(of="Per-unit BN", last="{last}", what=DIAGONAL) + PAIRED,
        WHITENING,
        LAST,
    ),
    "batches": (
        "batches",
        "The divergence to seen clients by statistics of their training images falls with the "
        "test batches seen: after {many} it is smaller than after {few}",
        DIVERGENCE,
        BATCHES,
    ),
}
"""Of what is claimed -> end of its id, words, source, figure."""


def judge_divergence(summary: Summary) -> Iterator[Claim]:
    """Judge it in the last layer, by client, by layer, then what else was planned."""
    last, claimed = summary.last, summary.claimed
    words = f"Client-specific BN as deployed has a smaller estimated divergence in {last} between "
    words += "seen clients and {} than aggregated BN"
    found = claimed.get(SPECIFIC)
    if found is not None:
        who = "a client from outside"
        yield claim_of(found, "divergence.client-specific", words.format(who), DIVERGENCE, LAYERS)
    names, ids = client_titles(summary.clients), slugs(summary.clients)
    if len(summary.clients) > 1:
        for client in summary.clients:
            found = summary.by_client.get(column_of(client))
            if found is not None:
                identity = f"divergence.client.{ids[client]}"
                yield claim_of(found, identity, words.format(names[client]), DIVERGENCE, LAYERS)
    for layer, found in summary.by_layer.items():
        text = words.replace(str(last), layer).format("a client from outside")
        identity = f"divergence.{slugs([layer])[layer]}"
        yield claim_of(found, identity, text, DIVERGENCE, LAYERS)
    numbers = sorted({t for *_, t in summary.after}) or [0]
    where = {"last": last, "few": numbers[0], "many": numbers[-1]}
    for name, (end, text, source, figure) in PLANNED.items():
        if (found := claimed.get(name)) is not None:
            yield claim_of(found, f"divergence.{end}", text.format(**where), source, figure)


def claim_of(found: Compared, identity: str, words: str, source: str, figure: str) -> Claim:
    """What is claimed of a difference of divergences or risks."""
    one = found.difference
    ends = None if one.lower is None or one.upper is None else (one.lower, one.upper)
    said = measured(one, found.adjusted, "")
    return Claim(identity, words, source, said, ends, found.verdict, figure)
