"""What the section claims of clients outside the federation, and of the streams they send."""

from collections.abc import Iterator

from figures.claims import Claim
from figures.experiments.names import client_titles, method_labels, slugs
from figures.experiments.wide import column_of
from figures.external.summary import Summary

METHODS, WAYS, STREAMS = (f"figures/{name}.pdf" for name in ("external", "ways", "streams"))
TABLE_ONE = "UniFed, Table I (external), Eqs. (3), (4)"
EQUATIONS = "UniFed, Eqs. (3), (4)"
OWN = "derived here; UniFed, Eqs. (3), (4)"
OTHERS = {
    "server": ("the clients' mean statistics", EQUATIONS),
    "batch": ("each batch's own statistics (τ = 0)", EQUATIONS),
    "identity": ("adapting with γ = 1, β = 0", OWN),
}
STREAM_CLAIMS = {
    "sorted.adapted": "A stream sorted by class harms test-time BN (Eqs. (3), (4), τ = 0.9)",
    "sorted.batch": "A stream sorted by class harms BN by each batch's own statistics (τ = 0)",
    "drifting.adapted": "As the images drift test-time BN loses less than fixed statistics do",
}


def judge(summary: Summary) -> Iterator[Claim]:
    """Judge by method, by held-out client, by way of serving and by stream."""
    labels = method_labels(summary.methods)
    for algorithm, found in summary.by_method.items():
        words = f"{labels[algorithm]} with client-specific BN and test-time BN serves clients from"
        words += " outside better than with aggregated BN"
        if algorithm == "fedavg":
            words = "FedBN with test-time BN serves clients from outside better than FedAvg"
        name = "fedbn" if algorithm == "fedavg" else slugs([algorithm])[algorithm]
        yield found.claim(f"external.method.{name}", words, TABLE_ONE, METHODS)
    yield from _by_client(summary)
    for variant, found in summary.chosen.items():
        other, source = OTHERS[variant]
        words = f"FedBN's model serves clients from outside better adapted than by {other}"
        yield found.claim(f"serving.adapted-{variant}", words, source, WAYS)
    for name, found in summary.claimed.items():
        yield found.claim(f"stream.{name}", STREAM_CLAIMS[name], OWN, STREAMS)


def _by_client(summary: Summary) -> Iterator[Claim]:
    names, ids = client_titles(summary.clients), slugs(summary.clients)
    number = len(summary.averaged)
    over = "FedBN against FedAvg" if summary.averaged == ["fedavg"] else (
        f"mean over {number} method{'s' * (number > 1)}"
    )  # fmt: skip
    for client in summary.clients:
        found = summary.by_client.get(column_of(client))
        if found is not None:
            words = f"Client-specific BN with test-time BN serves {names[client]} from outside "
            words += f"better than aggregated BN ({over})"
            yield found.claim(f"external.client.{ids[client]}", words, TABLE_ONE, METHODS)
