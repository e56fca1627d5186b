"""The section `internal`: accuracy of every client in the federation, by method and BN policy."""

from figures.experiments.measures import POLICIES
from figures.experiments.names import STEP, paired_labels, run_label
from figures.experiments.product import Content, Drawing, presenter
from figures.experiments.wide import MEAN, WIDEST, WORST
from figures.experiments.words import WITHIN, counts, hollow, means, what_diverged
from figures.internal.claims import judge
from figures.internal.draw import accuracies, accuracy_marks
from figures.internal.layouts import tables, titles
from figures.internal.summary import Summary, summarise

__all__ = ["Summary", "content", "present", "summarise"]

LEAD = (
    "Every method of UniFed's Table I trains all clients of the federation, once with aggregated "
    "and once with client-specific batch normalization, and each client is measured on its own "
    "test images. FedBN is FedAvg with client-specific BN, so the two share a row."
)


def content(summary: Summary) -> Content:
    """What the section says of the records."""
    table = accuracy_marks(summary)
    panels = titles(summary) | {MEAN: "mean over the clients", WORST: "worst client"}
    labels = paired_labels(summary.methods, "†")
    drawings = {}
    if table["mean"].count():
        drawings["internal"] = Drawing(
            "Accuracy by client and method",
            _caption(summary),
            lambda: accuracies(table, panels, labels),
        )
    claims = list(judge(summary))
    return Content("Internal", LEAD, claims, drawings, tables(summary), notes=summary.diverged)


present = presenter(summarise, content)


def _caption(summary: Summary) -> str:
    fewer = " The table has more clients." if len(summary.clients) > WIDEST else ""
    step = f" † Per-FedAvg is measured {STEP}." if "perfedavg" in summary.methods else ""
    nets = summary.settings
    drawn = {key: cell for key, cell in summary.cells.items() if key[1] in POLICIES}
    lost = {run_label(a, p): cell for (a, p, c), cell in drawn.items() if c == MEAN}
    return (
        f"Test accuracy after round {nets['rounds']}, {nets['net']}, each client with the BN that "
        f"the policy gives it. Marks: {means(counts(drawn.values()))}"
        f"{hollow(drawn.values())}; a grey line joins the policies of "
        "a method, in the first row FedAvg and FedBN. Worst client: smallest accuracy of a "
        f"client, per seed. Every panel has its own scale, {WITHIN}."
        f"{what_diverged(lost)}{step}{fewer}"
    )
