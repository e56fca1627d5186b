"""What the section claims: client-specific BN serves the clients better, the worst one too."""

from collections.abc import Iterator

from figures.claims import Claim
from figures.experiments.names import cell_label, client_titles, method_labels, slugs
from figures.experiments.wide import WORST, column_of
from figures.internal.summary import Summary

FIGURE = "figures/internal.pdf"
SOURCE = "UniFed, Table I (internal); FedBN, Fig. 5"


def judge(summary: Summary) -> Iterator[Claim]:
    """Judge by client, over the methods, and by method, for its worst client."""
    names, ids = client_titles(summary.clients), slugs(summary.clients)
    number = len(summary.averaged)
    over = f"mean over {number} methods" if number > 1 else "FedBN against FedAvg"
    if number == 1 and summary.averaged != ["fedavg"]:
        over = cell_label(summary.averaged[0], "")
    for client in summary.clients:
        found = summary.by_column.get(column_of(client))
        if found is not None:
            words = f"Client-specific BN gives {names[client]} a higher test accuracy than"
            words += f" aggregated BN ({over})"
            yield found.claim(f"internal.{ids[client]}", words, SOURCE, FIGURE)
    found = summary.by_column.get(WORST)
    if found is not None:
        words = "Client-specific BN raises the test accuracy of the worst client above that of"
        yield found.claim("worst-client", f"{words} aggregated BN ({over})", SOURCE, FIGURE)
    labels = method_labels(summary.methods)
    for algorithm, found in summary.worst.items():
        words = f"{labels[algorithm]} with client-specific BN serves its worst client better"
        if algorithm == "fedavg":
            words = "FedBN serves its worst client better"
        words += " than FedAvg" if algorithm == "fedavg" else " than with aggregated BN"
        name = "fedbn" if algorithm == "fedavg" else slugs([algorithm])[algorithm]
        yield found.claim(f"worst-client.{name}", words, SOURCE, FIGURE)
