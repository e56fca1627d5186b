"""The section's tables: Table I, the worst client, rounds; how methods were set and served."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from figures.compatibility.captions import METHOD_NOTES, TABLES
from figures.compatibility.columns import (
    HEADINGS,
    POLICY_NAMES,
    Types,
    labelled,
    number_table,
    pair_cells,
    pair_headings,
    pair_numbers,
    pair_types,
    word_table,
)
from figures.compatibility.layout_gains import gains_table
from figures.compatibility.summary import SERVED, TARGET, Summary
from figures.experiments.cells import NONE, Cell, column_types
from figures.experiments.measures import POLICIES
from figures.experiments.product import Table
from figures.rounds import CensoredRounds
from figures.style import looks
from figures.tables import SAME, Layout

SERVINGS = {
    "server": "server's",
    "source": "EMA from\nserver's",
    "batch": "batch\nalone",
    "adapted": "Eqs.\n(3), (4)",
    "total": "total\nvariance",
    "identity": "γ = 1, β = 0",
}
WHOLE = ("first", "last", "reached", "n", "horizon")
Made = tuple[pl.DataFrame, pl.DataFrame, dict[str, str], list[tuple[str, int]]]


def tables(summary: Summary, words: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the tables that have rows, with their captions filled in from `words`."""
    for name, make in (
        ("compatibility", _compatibility),
        ("gains", gains_table),
        ("worst", _worst),
        ("rounds", _rounds),
        ("settings", _settings),
        ("serving", _serving),
    ):
        frame, shown, headings, groups = make(summary)
        title, caption = TABLES[name]
        layout = Layout(
            caption.format(**words).strip(),
            f"tab:{name}",
            headings,
            groups=groups,
            compact=bool(groups),
        )
        if frame.height:
            yield Table(name, title, frame, layout, shown)


def _compatibility(summary: Summary) -> Made:
    kinds = ("internal", "external")
    numbers, cells = [], []
    for row, label in labelled(summary):
        number: dict[str, Any] = {"method": row.method, "note": METHOD_NOTES.get(row.method)}
        cell = {"method": label}
        for kind in kinds:
            number |= pair_numbers(row, kind, getattr(row, kind), summary)
            cell |= pair_cells(row, kind, getattr(row, kind), summary)
        numbers.append(number)
        cells.append(cell)
    types: Types = {"method": pl.String, "note": pl.String}
    headings = {"method": "method"}
    for kind in kinds:
        types |= pair_types(kind)
        headings |= pair_headings(kind)
    groups = [("", 1), *((f"{kind} accuracy (%)", 4) for kind in kinds)]
    return number_table(numbers, types), word_table(cells, headings), headings, groups


def _worst(summary: Summary) -> Made:
    numbers, cells = [], []
    names = looks({name for row in summary.rows for name in row.weakest.values() if name})
    for row, label in labelled(summary):
        who = {f"client_{p}": row.weakest[p] for p in POLICIES}
        numbers.append(
            {"method": row.method, **pair_numbers(row, "worst", row.worst, summary), **who}
        )
        known = {key: NONE if name is None else names[name].label for key, name in who.items()}
        if row.merged:
            known[f"client_{POLICIES[1]}"] = SAME
        cells.append({"method": label, **pair_cells(row, "worst", row.worst, summary), **known})
    types: Types = {"method": pl.String, **pair_types("worst")}
    types |= {f"client_{p}": pl.String for p in POLICIES}
    headings = {"method": "method", **pair_headings("worst", judged=False)}
    headings |= {f"client_{p}": HEADINGS[p] for p in POLICIES}
    groups = [("", 1), ("smallest accuracy of a client (%)", 3), ("most often that of", 2)]
    return number_table(numbers, types), word_table(cells, headings), headings, groups


def _rounds(summary: Summary) -> Made:
    numbers, cells = [], []
    types: Types = {"method": pl.String}
    for policy in POLICIES:
        types |= {f"rounds_{policy}_median": pl.Float64}
        types |= {f"rounds_{policy}_{name}": pl.Int64 for name in WHOLE}
    for row, label in labelled(summary):
        number: dict[str, Any] = {"method": row.method}
        cell = {"method": label}
        for policy in POLICIES:
            found = row.rounds[policy]
            number |= _reached(f"rounds_{policy}", found)
            cell[f"rounds_{policy}"] = NONE if found is None else str(found).replace(", ", "\n")
        if row.merged:
            cell[f"rounds_{POLICIES[1]}"] = SAME
        numbers.append(number | pair_numbers(row, "faster", row.losses, summary))
        cells.append(cell | pair_cells(row, "faster", row.losses, summary, 1.0))
    headings = {"method": "method"}
    headings |= {f"rounds_{policy}": HEADINGS[policy] for policy in POLICIES}
    headings |= pair_headings("faster")
    groups = [("", 1), (f"rounds to {100 * TARGET:g} % accuracy", 2), ("mean training loss", 4)]
    types |= pair_types("faster")
    return number_table(numbers, types), word_table(cells, headings), headings, groups


def _reached(name: str, found: CensoredRounds | None) -> dict[str, Any]:
    parts = ("median", *WHOLE)
    return {f"{name}_{part}": None if found is None else getattr(found, part) for part in parts}


def _settings(summary: Summary) -> Made:
    numbers, cells = [], []
    for row, label in labelled(summary):
        own = summary.settings.filter(pl.col("algorithm") == row.method)
        for settings, chosen, model, head, edges in own.drop("algorithm").rows():
            values = json.loads(settings)
            text = ", ".join(f"{key} = {value}" for key, value in values.items()) or NONE
            source = "not recorded" if chosen is None else chosen
            net = f"{model} + projection head ({head})" if head is not None else model
            number = {"method": row.method, "settings": settings, "chosen": source}
            numbers.append(number | {"at_edge": edges, "model": model, "projection": head})
            where = f"{source};\n{edges} at the grid's edge" if edges else source
            shown = {"method": label.rstrip("†"), "settings": text, "chosen": where, "model": net}
            cells.append(shown)
    headings = {"method": "method", "settings": "hyper-parameters", "chosen": "where from"}
    headings |= {"model": "net"}
    types: Types = dict.fromkeys(("method", "settings", "chosen", "at_edge", "model"), pl.String)
    types["projection"] = pl.Int64
    return number_table(numbers, types), word_table(cells, headings), headings, []


def _serving(summary: Summary) -> Made:
    variants = [v for v in SERVED if any(key[2] == v for key in summary.serving)]
    types: Types = {"method": pl.String, "bn_policy": pl.String}
    for variant in variants:
        types |= column_types(variant)
    headings = {"method": "method", "bn": "BN", **{v: SERVINGS[v] for v in variants}}
    groups = [("", 2), ("external accuracy (%) by the statistics that normalise", len(variants))]
    numbers, cells = [], []
    for row, label in labelled(summary):
        for policy, name in POLICY_NAMES.items():
            own = {v: summary.serving.get((row.method, policy, v)) for v in variants}
            if any(own.values()):
                number: dict[str, Any] = {"method": row.method, "bn_policy": policy}
                for variant, cell in own.items():
                    number |= (cell or Cell()).columns(variant)
                numbers.append(number)
                texts = {v: (cell or Cell()).text(of=summary.seeds) for v, cell in own.items()}
                cells.append({"method": label.rstrip("†"), "bn": name, **texts})
    return number_table(numbers, types), word_table(cells, headings), headings, groups
