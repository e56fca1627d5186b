"""Tables of the bounds' terms: what they are, by which route, and which function computes them."""

from typing import Any

import polars as pl

from figures.experiments.cells import NONE, Cell
from figures.experiments.names import client_titles
from figures.experiments.product import Table
from figures.experiments.wide import WIDEST, column_of, left_out
from figures.generalization.names import AVERAGED, CAPACITIES, SERVED, STATEMENTS, TERMS, TOTAL
from figures.generalization.summary import Summary
from figures.tables import Layout, number, with_interval

FUNCTIONS = {
    "empirical risk": "theory.cross_losses_risk",
    "half the divergence": "theory.proxy_a_distance",
    "ideal joint error": "theory.oracle_ideal_error",
    "capacity of the divergence": "theory.divergence_capacity",
    "capacity of the risk": "theory.risk_capacity",
    "total": "theory.generalization_bound",
}
"""Term -> what computes it; of a divergence by a search over pairs of networks see below."""
PAIRS = "theory.pair_divergence"
HEADINGS = {
    "empirical risk": "risk",
    "half the divergence": "½ divergence",
    "ideal joint error": "ideal error",
    "capacity of the divergence": "capacity (d)",
    "capacity of the risk": "capacity (J)",
    "total": "total",
}
RISK, ERROR = "external risk", "external error"
LEFT_OUT = "left out"
"""How a record begins that says that a term is not there."""


def term_tables(summary: Summary) -> list[Table]:
    """The terms by statement and held-out client, and the route by which each was got."""
    return [_terms(summary), _routes(summary)]


def computed_by(statement: str, term: str, note: str | None) -> str:
    """The function behind a term; `note` is how its record says that it was got."""
    if term == "half the divergence":
        if statement == "18":
            return "theory.corollary_iii9"
        if "d_HΔH" in (note or ""):
            return PAIRS
    return FUNCTIONS.get(term, "")


def _terms(summary: Summary) -> Table:
    names = client_titles(summary.clients[:WIDEST])
    by = ["held_out", "bn_policy", "variant"]
    shown = []
    for key, part in summary.terms.group_by(by, maintain_order=True):
        client, policy, statement = map(str, key)
        if client not in names or (policy, statement) not in STATEMENTS:
            continue
        texts = {name: NONE for name in TERMS}
        for row in part.iter_rows(named=True):
            texts[row["split"]] = _ends(row)
        title = part["kind"][0]
        row = {"client": names[client], "statement": STATEMENTS[policy, statement], **texts}
        column, served = column_of(client), SERVED.get(policy, "")
        row[RISK] = _outside(summary, summary.risks.get((policy, column)), policy, column, AVERAGED)
        error = summary.errors.get((policy, column, served))
        row[ERROR] = _outside(summary, error, policy, column, served)
        row["kind"] = {1.0: "bound", 0.0: "diagnostic"}.get(title, NONE)
        shown.append(row)
    frame = summary.terms.with_columns(
        pl.struct("variant", "split", "note")
        .map_batches(lambda keys: pl.Series([computed_by(*k.values()) for k in keys]), pl.String)
        .alias("computed_by")
    )
    caption = (
        "Terms of (16) and (18): means over seeds of the ends that hold each term in one seed "
        "(the means themselves have no such guarantee), ≥ where it is known from below only, so "
        "that the sum is a diagnostic, not a bound; ≤: capacities (of the divergence, of the "
        "risk), by an upper bound of the VC dimension, so that the total is at least the sum "
        "without them. (18) as printed leaves the divergence "
        "out. The risk of the whitened row is that of the same network, not retrained. External "
        "risk: Gibbs risk of the local models' averaged predictions on the test images of the "
        "client held out, the J_u(f_u) of the bound. External error: 0-1 error of the network "
        "that is served, with the server's statistics (aggregated) or test-time BN."
        f"{left_out(summary.clients)}"
    )
    columns = {"client": "held out", "statement": "statement", **HEADINGS}
    columns |= {RISK: RISK, ERROR: ERROR, "kind": "is"}
    layout = Layout(caption, "tab:terms", columns, compact=True)
    return Table("terms", "The bound, term by term", frame, layout, pl.DataFrame(shown))


def _ends(row: dict[str, Any]) -> str:
    value, lower, upper = row["value"], row["lower"], row["upper"]
    if (row["note"] or "").startswith(LEFT_OUT):
        return LEFT_OUT
    if row["split"] in CAPACITIES:
        return f"{'≤ ' * (row['drawn'] > 0)}{number(row['drawn'])}"
    if row["split"] == TOTAL and lower is None:
        return NONE if upper is None else f"≤ {number(upper)}"
    if upper is None or lower is None:
        return f"≥ {number(value if lower is None else lower)}"
    low, high = number(lower), number(upper)
    return number(value) if low == high else f"{low} to {high}"


def _outside(summary: Summary, cell: Cell | None, policy: str, column: str, variant: str) -> str:
    """A risk or error with its interval over seeds; of one seed with that of its images."""
    found = None if cell is None else cell.interval
    if found is None:
        return NONE
    ends = (found.lower, found.upper)
    if found.n == 1:
        ends = summary.ends.get((policy, column, variant), (None, None))
    return with_interval(found.mean, *ends)


def _routes(summary: Summary) -> Table:
    rows = []
    by = ["bn_policy", "variant", "split"]
    for key, part in summary.terms.group_by(by, maintain_order=True):
        policy, statement, term = map(str, key)
        notes = part["note"].drop_nulls().unique(maintain_order=True).to_list()
        more = f" (and {len(notes) - 1} more, see the CSV of terms)" if len(notes) > 1 else ""
        row = {"statement": STATEMENTS.get((policy, statement), f"({statement})"), "term": term}
        row["computed_by"] = computed_by(statement, term, notes[0] if notes else None)
        rows.append(row | {"route": notes[0] + more if notes else NONE})
    caption = (
        "How each term was got, in the words of the function that computes it; what stands after "
        "a semicolon is the condition that is not met."
    )
    columns = {"statement": "statement", "term": "term"}
    columns |= {"computed_by": "computed by", "route": "route"}
    layout = Layout(caption, "tab:routes", columns, compact=True)
    return Table("routes", "Where the terms come from", pl.DataFrame(rows), layout)
