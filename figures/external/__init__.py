"""The section `external`: clients outside the federation, how they are served, what harms them."""

import polars as pl

from figures.experiments.comparisons import differences_of
from figures.experiments.measures import POLICIES, SERVED
from figures.experiments.names import client_looks, paired_labels, run_label
from figures.experiments.product import Content, Drawing, presenter
from figures.experiments.wide import MEAN, WIDEST, column_of
from figures.experiments.words import WITHIN, counts, equal, hollow, means, what_diverged
from figures.external.claims import judge
from figures.external.draw import accuracies, harm_marks, harms, method_marks, way_marks
from figures.external.layouts import STREAMS, WAYS, tables, titles
from figures.external.summary import Summary, summarise
from figures.style import INK, Look

__all__ = ["Summary", "content", "present", "summarise"]

LEAD = (
    "One client is held out of the training and then served by the server's model: with "
    "aggregated BN by the server's statistics, with client-specific BN by test-time batch "
    "normalization, UniFed's Eqs. (3) and (4), on batches of the client's own images as they "
    "arrive. Then FedBN's model is served in other ways, and with streams that are not shuffled."
)
PER_FEDAVG = " † Per-FedAvg serves its un-adapted meta-model."


def content(summary: Summary) -> Content:
    """What the section says of the records."""
    claims, found = list(judge(summary)), drawings(summary)
    return Content("External", LEAD, claims, found, tables(summary), notes=summary.diverged)


present = presenter(summarise, content)


def drawings(summary: Summary) -> dict[str, Drawing]:
    """The figures that the records allow."""
    found: dict[str, Drawing] = {}
    panels = {c: f"{name} held out" for c, name in titles(summary).items()}
    panels[MEAN] = "mean over the held-out clients"
    if len(summary.clients) == 1:
        del panels[MEAN]
    methods = method_marks(summary)
    if methods["mean"].count():
        labels = paired_labels(summary.methods, "†")
        caption = _methods_caption(summary)
        found["external"] = Drawing(
            "Leave one client out", caption, lambda: accuracies(methods, panels, labels)
        )
    ways = way_marks(summary)
    if ways["mean"].count() and ways["row"].n_unique() > 1:
        rows = {name: WAYS[name] for name in SERVED if name in ways["row"]}
        found["ways"] = Drawing(
            "Ways to serve a client from outside",
            _ways_caption(summary),
            lambda: accuracies(ways, panels, rows),
        )
    return found | _streams(summary)


def _streams(summary: Summary) -> dict[str, Drawing]:
    lost = harm_marks(summary)
    if not lost["mean"].count():
        return {}
    rows = {f"{POLICIES[0]} server": "FedAvg, server's statistics"}
    rows |= {f"{POLICIES[1]} {name}": WAYS[name] for name in SERVED}
    rows = {name: label for name, label in rows.items() if name in lost["row"]}
    orders = {name: label for name, label in STREAMS.items() if name in lost["panel"]}
    series = {column_of(n): style for n, style in client_looks(summary.clients[:WIDEST]).items()}
    if len(summary.clients) > 1:
        series[MEAN] = Look("mean over the held-out clients", INK, "-", "D")
    lost = lost.filter(pl.col("row").is_in(list(rows)))
    return {
        "streams": Drawing(
            "Streams that are sorted or drift",
            _streams_caption(summary),
            lambda: harms(lost, orders, rows, series),
        )
    }


def _methods_caption(summary: Summary) -> str:
    drawn = summary.cells.values()
    step = PER_FEDAVG if "perfedavg" in summary.methods else ""
    return (
        "Test accuracy of the client that was held out, after the last round. Aggregated BN: the "
        "server's statistics. Client-specific BN: adapted by Eqs. (3), (4), τ = 0.9, n_t = 32, "
        "γ and β the clients' mean, a shuffled stream. Marks: "
        f"{means(counts(drawn))}{hollow(drawn)}; a grey line joins the policies of a method, in "
        f"the first row FedAvg and FedBN. Every panel has its own scale, {WITHIN}."
        f"{_lost(summary)}{step}"
    )


def _lost(summary: Summary, *methods: str) -> str:
    """Say which trainings of these methods, or of all, were lost for any held-out client."""
    found = {key[:2]: cell for key, cell in summary.cells.items() if key[2] == MEAN}
    wanted = {key: cell for key, cell in found.items() if not methods or key[0] in methods}
    return what_diverged({run_label(*key): cell for key, cell in wanted.items()})


def _ways_caption(summary: Summary) -> str:
    drawn = [cell for (policy, *_), cell in summary.ways.items() if policy in POLICIES]
    return (
        "The models of FedAvg (aggregated BN) and FedBN (client-specific BN) serve the client "
        "that was held out by: the server's statistics, which are those aggregated, or the mean "
        "of the clients'; Eq. (4) started from these; each batch's own statistics; Eqs. (3), (4) "
        "started from the first batch; these with the spread between batches in the variance; "
        f"with γ = 1, β = 0. Marks: {means(counts(drawn))}{hollow(drawn)}. Every panel has its own "
        f"scale, {WITHIN}.{_lost(summary, 'fedavg')}"
    )


def _streams_caption(summary: Summary) -> str:
    drawn = [summary.streams[key] for key in summary.harms]
    found = differences_of(summary.harms)
    return (
        "Accuracy on a shuffled stream minus that on the same images sorted by class, or with "
        "contrast that fades and brightness that grows as they come, τ = 0.9, n_t = 32; FedBN's "
        "model where no other is named. Right of zero the order harms; what fixed statistics "
        "answer does not depend on the order of the same images. Paired by seed; marks: "
        f"{means(one.n for one in found)}{equal(found)}{hollow(drawn)}.{_lost(summary, 'fedavg')}"
    )
