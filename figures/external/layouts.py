"""The section's tables: in per cent for people, with every digit in the CSV files."""

from figures.experiments.comparisons import (
    Sheet,
    compared_sheet,
    compared_table,
    differences_of,
)
from figures.experiments.measures import POLICIES, SERVED
from figures.experiments.names import BN, cell_label, method_labels, paired_labels
from figures.experiments.product import Table
from figures.experiments.wide import (
    MEAN,
    Row,
    cell_frames,
    difference_texts,
    headings,
    left_out,
    lost_column,
)
from figures.experiments.words import equal
from figures.external.summary import ORDERS, SERVICE, Summary
from figures.tables import Layout

SERVED_AS = {"server": "server's statistics", "adapted": "Eqs. (3), (4)"}
WAYS = {
    "server": "server's statistics",
    "source": "adapted from the server's",
    "batch": "batch alone (τ = 0)",
    "adapted": "adapted, Eqs. (3), (4)",
    "total": "adapted, total variance",
    "identity": "adapted, γ = 1, β = 0",
}
"""Ways of serving -> what they are called."""
STREAMS = {"sorted": "sorted by class", "drifting": "drifting"}
HELD = "each column: the client held out"


def titles(summary: Summary) -> dict[str, str]:
    """Column -> heading, for the held-out clients that a page holds and their mean."""
    return headings(summary.clients, **{MEAN: "mean"})


def tables(summary: Summary) -> list[Table]:
    """The tables in the order of the report."""
    made = [_accuracies(summary), _differences(summary), _gains_by_client(summary)]
    return [*made, _ways(summary), _gains(summary), _streams(summary), _harms(summary)]


def _accuracies(summary: Summary) -> Table:
    rows = []
    for algorithm in summary.methods:
        for policy in POLICIES:
            labels = {"method": cell_label(algorithm, policy), "bn_policy": BN[policy]}
            labels["served"] = SERVED_AS[SERVICE[policy]]
            names = {"method": algorithm, "bn_policy": policy, "variant": SERVICE[policy]}
            rows.append(Row((algorithm, policy), names, labels))
    numbers, shown = cell_frames(summary.cells, rows, summary.columns, summary.seeds)
    caption = (
        "Test accuracy (%) of the client that was held out of the training; "
        f"{HELD}. Aggregated BN with the server's statistics; client-specific BN adapted by Eqs. "
        "(3), (4) with τ = 0.9, n_t = 32, a shuffled stream, γ and β the clients' mean. Mean "
        "over seeds ± 95 % interval; mean: over the clients held out in turn. Per-FedAvg serves "
        f"its un-adapted meta-model.{left_out(summary.clients)}"
    )
    columns = {"method": "method", "bn_policy": "BN", "served": "served by", **titles(summary)}
    layout = Layout(caption, "tab:external", columns | lost_column(shown), compact=True)
    return Table("external", "Leave one client out", numbers, layout, shown)


def _differences(summary: Summary) -> Table:
    labels = paired_labels(summary.methods)
    rows = [Row((name,), {}, {"method": labels[name]}) for name in summary.methods]
    shown = difference_texts(summary.differences, rows, summary.columns, summary.seeds)
    caption = (
        "Client-specific BN adapted by Eqs. (3), (4) minus aggregated BN with the server's "
        "statistics, in points of test accuracy, paired by seed, with the 95 % "
        f"interval{equal(differences_of(summary.differences))}; {HELD}; the first row is FedBN "
        "minus FedAvg. Star: the interval excludes zero, also by "
        f"Holm's correction over these {len(summary.differences)} differences."
    )
    frame = compared_table(summary.differences, ["method", "column"])
    layout = Layout(caption, "tab:external-differences", {"method": "method", **titles(summary)},
                    compact=True)  # fmt: skip
    return Table("differences", "Adapted minus aggregated", frame, layout, shown)


def _gains_by_client(summary: Summary) -> Table:
    labels, heads = method_labels(summary.methods), titles(summary)
    methods = ", ".join(labels[name] for name in summary.averaged)
    means = {("all methods", heads.get(c, c)): one for c, one in summary.by_client.items()}
    alone = {(paired_labels([a])[a], "mean"): one for a, one in summary.by_method.items()}
    caption = (
        "Client-specific BN adapted by Eqs. (3), (4) minus aggregated BN, in points of test "
        "accuracy outside the federation, paired by seed, with the 95 % "
        f"interval{equal(differences_of(means | alone))}. All methods: "
        f"mean over those without a lost seed ({methods}). Holm's correction within these, and "
        "within the mean over held-out clients by method."
    )
    what = Sheet("by_client", "Who gains outside the federation", caption, "tab:external-clients")
    return compared_sheet(what, means | alone, {"method": "method", "client": "client held out"})


def _ways(summary: Summary) -> Table:
    rows = []
    for policy in POLICIES:
        for variant in SERVED:
            labels = {"bn_policy": BN[policy], "served": WAYS[variant]}
            names = {"bn_policy": policy, "variant": variant}
            rows.append(Row((policy, variant), names, labels))
    numbers, shown = cell_frames(summary.ways, rows, summary.columns, summary.seeds)
    caption = (
        "Ways to serve a client from outside with the model of FedAvg (aggregated BN) or FedBN "
        f"(client-specific): test accuracy (%), {HELD}; mean over seeds ± 95 % interval. "
        "τ = 0.9 and n_t = 32 where they matter, a shuffled stream. Server's statistics: those "
        "that were aggregated, or the mean of the clients'."
    )
    columns = {"bn_policy": "BN in training", "served": "served by", **titles(summary)}
    layout = Layout(caption, "tab:ways", columns | lost_column(shown), compact=True)
    return Table("ways", "Ways to serve a client from outside", numbers, layout, shown)


def _gains(summary: Summary) -> Table:
    names = {v: WAYS[v] for v in SERVED if v != "adapted"}
    names["aggregated"] = "FedAvg, server's statistics"
    rows = [Row((variant,), {}, {"other": label}) for variant, label in names.items()]
    shown = difference_texts(summary.gains, rows, summary.columns, summary.seeds)
    caption = (
        "FedBN's model adapted by Eqs. (3), (4) minus the same model served in another way (last "
        "row: FedAvg's), in points of test accuracy, paired by seed, with the 95 % "
        f"interval{equal(differences_of(summary.gains))}; {HELD}. Star: the interval excludes "
        "zero, also by Holm's correction over these "
        f"{len(summary.gains)} differences."
    )
    frame = compared_table(summary.gains, ["minus", "column"])
    layout = Layout(caption, "tab:ways-differences", {"other": "minus", **titles(summary)},
                    compact=True)  # fmt: skip
    return Table("gains", "What adapting by Eqs. (3), (4) gains", frame, layout, shown)


def _stream_rows(orders: tuple[str, ...]) -> list[Row]:
    rows = []
    for order in orders:
        for policy in POLICIES:
            for variant in SERVED:
                labels = {"order": STREAMS.get(order, order), "bn_policy": BN[policy]}
                names = {"order": order, "bn_policy": policy, "variant": variant}
                rows.append(
                    Row((order, policy, variant), names, labels | {"served": WAYS[variant]})
                )
    return rows


def _streams(summary: Summary) -> Table:
    rows = _stream_rows(ORDERS)
    numbers, shown = cell_frames(summary.streams, rows, summary.columns, summary.seeds)
    caption = (
        "Streams that are not shuffled: test accuracy (%) of the models of FedAvg and FedBN, "
        f"{HELD}; mean over seeds ± 95 % interval; τ = 0.9, n_t = 32. Sorted: all images of a "
        "class after one another. Drifting: the images lose contrast and gain brightness as "
        "they come."
    )
    columns = {"order": "stream", "bn_policy": "BN in training", "served": "served by"}
    columns |= titles(summary) | lost_column(shown)
    layout = Layout(caption, "tab:streams", columns, compact=True)
    return Table("streams", "Streams in another order", numbers, layout, shown)


def _harms(summary: Summary) -> Table:
    shown = difference_texts(summary.harms, _stream_rows(ORDERS), summary.columns, summary.seeds)
    caption = (
        "Accuracy lost: shuffled minus the other stream, in points, paired by seed, with the "
        f"95 % interval{equal(differences_of(summary.harms))}; {HELD}. Sorting cannot harm the "
        "server's statistics. Star: the "
        "interval excludes zero, also by Holm's correction over these "
        f"{len(summary.harms)} differences."
    )
    frame = compared_table(summary.harms, ["order", "bn_policy", "variant", "column"])
    columns = {"order": "stream", "bn_policy": "BN in training", "served": "served by"}
    layout = Layout(caption, "tab:harms", columns | titles(summary), compact=True)
    return Table("harms", "What another order costs", frame, layout, shown)
