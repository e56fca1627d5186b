"""The section's tables: in per cent for people, with every digit in the CSV files."""

from figures.experiments.comparisons import (
    Sheet,
    compared_sheet,
    compared_table,
    differences_of,
)
from figures.experiments.measures import POLICIES
from figures.experiments.names import BN, STEP, cell_label, method_labels, paired_labels
from figures.experiments.product import Table
from figures.experiments.wide import (
    MEAN,
    WORST,
    Row,
    cell_frames,
    difference_texts,
    headings,
    left_out,
    lost_column,
)
from figures.experiments.words import equal
from figures.internal.summary import Summary
from figures.tables import Layout


def titles(summary: Summary) -> dict[str, str]:
    """Column -> heading, for the clients that a page holds, the mean and the worst client."""
    return headings(summary.clients, **{MEAN: "mean", WORST: "worst client"})


def tables(summary: Summary) -> list[Table]:
    """The tables in the order of the report."""
    return [_accuracies(summary), _differences(summary), _by_client(summary)]


def _accuracies(summary: Summary) -> Table:
    rows = []
    for algorithm in summary.methods:
        for policy in POLICIES:
            step = f", {STEP}" if algorithm == "perfedavg" else ""
            labels = {"method": cell_label(algorithm, policy) + step, "bn_policy": BN[policy]}
            names = {"method": algorithm, "bn_policy": policy}
            rows.append(Row((algorithm, policy), names, labels))
    numbers, shown = cell_frames(summary.cells, rows, summary.columns, summary.seeds)
    caption = (
        "Test accuracy (%) of each training client after the last round, each with the BN that "
        "the policy gives it: mean over seeds ± 95 % interval. Worst client: the smallest "
        "accuracy of a client, per seed. FedBN is FedAvg with client-specific BN. Seeds that "
        f"diverged are named and left out of the means.{left_out(summary.clients)}"
    )
    columns = {"method": "method", "bn_policy": "BN", **titles(summary), **lost_column(shown)}
    layout = Layout(caption, "tab:internal", columns, compact=True)
    return Table("internal", "Accuracy by client", numbers, layout, shown)


def _differences(summary: Summary) -> Table:
    labels = paired_labels(summary.methods)
    rows = [Row((name,), {}, {"method": labels[name]}) for name in summary.methods]
    shown = difference_texts(summary.differences, rows, summary.columns, summary.seeds)
    caption = (
        "Client-specific minus aggregated BN in points of test accuracy, paired by seed, with "
        f"the 95 % interval{equal(differences_of(summary.differences))}; the first row is FedBN "
        "minus FedAvg. Star: the interval excludes "
        f"zero, also by Holm's correction over these {len(summary.differences)} differences."
    )
    frame = compared_table(summary.differences, ["method", "column"])
    columns = {"method": "method", **titles(summary)}
    layout = Layout(caption, "tab:internal-differences", columns, compact=True)
    return Table("differences", "Client-specific minus aggregated BN", frame, layout, shown)


def _by_client(summary: Summary) -> Table:
    labels, heads = method_labels(summary.methods), titles(summary)
    means = {("all methods", heads.get(c, c)): one for c, one in summary.by_column.items()}
    alone = {(paired_labels([a])[a], heads[WORST]): one for a, one in summary.worst.items()}
    methods = ", ".join(labels[name] for name in summary.averaged)
    caption = (
        "Client-specific minus aggregated BN in points of test accuracy, paired by seed, with "
        f"the 95 % interval{equal(differences_of(means | alone))}. All methods: mean over those "
        f"without a lost seed ({methods}). Holm's correction within these, and within the worst "
        "client by method."
    )
    return compared_sheet(
        Sheet("by_client", "Who gains from client-specific BN", caption, "tab:internal-clients"),
        means | alone,
        {"method": "method", "client": "client"},
    )
