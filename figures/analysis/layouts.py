"""The section's tables: in per cent for people, with every digit in the CSV files."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from figures.analysis.outside import WAYS, Choice, Grid
from figures.analysis.summary import Summary
from figures.analysis.sweeps import Sweep
from figures.experiments.comparisons import Compared, Sheet, compared_sheet, differences_of
from figures.experiments.measures import POLICIES
from figures.experiments.product import Table
from figures.experiments.wide import MEAN, WORST, Row, cell_frames, column_of, lost_column
from figures.experiments.words import equal
from figures.style import look
from figures.tables import Layout

SERIES = {name: look(name).label for name in (*POLICIES, "local")}
SWEEPS = {
    "steps": ("Step size", "lr", "SGD's step size lr, all else the same"),
    "epochs": ("Local epochs", "E", "local epochs a round, at a fixed number in total"),
    "data": ("Amount of data", "share", "the share of each client's training images that is kept"),
    "domains": ("Clients a domain", "clients", "the number of clients that share a domain"),
}
"""Field of the summary -> title, heading of the value, what it is."""


def value_text(name: str, value: float) -> str:
    """A value of a sweep for people."""
    return f"{100 * value:g} %" if name == "data" else f"{value:g}"


def tables(summary: Summary) -> Iterator[Table]:
    """The tables in the order of the report."""
    yield _grid(summary.grid)
    for name in SWEEPS:
        yield _sweep(name, getattr(summary, name))
    yield _choice(summary.choice)
    yield _ahead(summary)


def _grid(grid: Grid) -> Table:
    """For people the mean over the held-out clients; the CSV has each of them."""
    cells = {(o, c, t, str(n)): cell for (o, c, t, n), cell in grid.cells.items()}
    sizes = [str(n) for n in grid.sizes]
    names = {column_of(client): client for client in grid.clients}
    rows = [
        Row((order, column, tau), {"order": order, "held_out": name, "tau": f"{tau:g}"}, {})
        for order in grid.orders
        for column, name in {MEAN: "(mean)", **names}.items()
        for tau in grid.taus
    ]
    means = [
        replace(row, labels={"order": row.key[0], "tau": row.names["tau"]})
        for row in rows
        if row.key[1] == MEAN
    ]
    numbers, _ = cell_frames(cells, rows, sizes, grid.seeds)
    _, shown = cell_frames(cells, means, sizes, grid.seeds)
    columns = {"order": "stream", "tau": "τ"}
    columns |= {n: f"n_t = {n}" for n in sizes} | lost_column(shown)
    caption = (
        "FedBN's model adapted by Eqs. (3), (4) with the momentum τ on batches of n_t images: test "
        f"accuracy (%), mean over the clients held out in turn ({len(grid.clients)}; the CSV has "
        "each), then over seeds ± 95 % interval. τ = 0: each batch alone."
    )
    layout = Layout(caption, "tab:grid", columns, compact=True)
    return Table("momentum", "Momentum τ and batch n_t", numbers, layout, shown)


def _sweep(name: str, sweep: Sweep) -> Table:
    title, heading, words = SWEEPS[name]
    there = [s for s in SERIES if any(s == series for _, series in sweep.cells)]
    rows = []
    for value in sweep.values:
        labels = {"value": value_text(name, value), "rounds": f"{sweep.rounds[value]}"}
        rows.append(Row((value,), {"value": f"{value:g}", "rounds": labels["rounds"]}, labels))
    numbers, shown = cell_frames(sweep.cells, rows, there, sweep.seeds)
    columns = {"value": heading, "rounds": "rounds", **{s: SERIES[s] for s in there}}
    note = " Mean over domains of the mean over their clients." if name == "domains" else ""
    caption = (
        f"FedAvg with either policy against {words}: test accuracy (%) after the last round, mean "
        f"over clients, then over seeds ± 95 % interval.{note}"
    )
    layout = Layout(caption, f"tab:{name}", columns | lost_column(shown))
    return Table(name, title, numbers, layout, shown)


def _choice(choice: Choice) -> Table:
    rows = [Row((p,), {"bn_policy": p}, {"bn_policy": look(p).label}) for p in choice.policies]
    numbers, shown = cell_frames(choice.cells, rows, [MEAN, WORST, *WAYS], choice.seeds)
    columns = {"bn_policy": "BN", MEAN: "inside: mean", WORST: "inside: worst client"}
    columns |= {"server": "outside: server's statistics", "adapted": "outside: adapted"}
    columns |= {"identity": "outside: adapted, γ = 1, β = 0"}
    caption = (
        "FedAvg with each policy: test accuracy (%) inside, mean over clients and the worst "
        "client, and of the clients held out in turn, served by the server's statistics or "
        "adapted by Eqs. (3), (4) with γ, β the server's or 1, 0. Mean over seeds ± 95 % interval."
    )
    layout = Layout(caption, "tab:choice", columns | lost_column(shown), compact=True)
    return Table("choice", "What of BN stays with the clients", numbers, layout, shown)


def _ahead(summary: Summary) -> Table:
    """Every comparison of the section; each pair of analysis and what is subtracted a family."""
    found: dict[tuple[str, ...], Compared] = {}
    for name, (title, heading, _) in SWEEPS.items():
        sweep: Sweep = getattr(summary, name)
        for minus, ahead in (("aggregated BN", sweep.ahead), ("local only", sweep.alone)):
            for value, one in ahead.items():
                found[title, f"{heading} = {value_text(name, value)}", minus] = one
    found |= _rest(summary)
    caption = (
        "Differences in points of test accuracy, paired by seed, with the 95 % "
        f"interval{equal(differences_of(found))}. Of the first four analyses: client-specific BN "
        "minus what is named; Holm's correction within "
        "each analysis and what is subtracted."
    )
    what = Sheet("ahead", "Paired differences", caption, "tab:ahead")
    names = {"analysis": "analysis", "at": "at", "minus": "minus"}
    return compared_sheet(what, found, names)


def _rest(summary: Summary) -> Mapping[tuple[str, ...], Compared]:
    momentum = {
        ("Momentum, τ = 0.9", f"n_t = {n}", "τ = 0"): one
        for n, one in summary.grid.momentum.items()
    }
    inside = {
        ("BN inside, all of it with the clients", "mean", look(p).label): one
        for p, one in summary.choice.inside.items()
    }
    outside = {
        ("BN outside, γ and β given", look(p).label, "γ = 1, β = 0"): one
        for p, one in summary.choice.outside.items()
    }
    return momentum | inside | outside
