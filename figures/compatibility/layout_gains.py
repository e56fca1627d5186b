"""The table of the four corners: trained with which BN, served how; and the two effects."""

from typing import Any

import polars as pl

from figures.compatibility.columns import Types, number_table, word_table
from figures.compatibility.gains import ADAPTED, CORNERS, EFFECTS, Gains, gains
from figures.compatibility.summary import Summary
from figures.experiments.cells import (
    NONE,
    SIGNS,
    column_types,
    difference_columns,
    difference_text,
    difference_types,
)
from figures.experiments.names import paired_labels

MEAN = "mean"
WAYS = {False: "server's", True: "Eqs.\n(3), (4)"}


def gains_table(
    summary: Summary,
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, str], list[tuple[str, int]]]:
    """One row per method, then the mean over those with all four corners and its verdicts."""
    found = gains(summary)
    labels = paired_labels(row.method for row in found.rows)
    numbers, cells = [], []
    for row in found.rows:
        number: dict[str, Any] = {"method": row.method}
        cell = {"method": labels[row.method]}
        for corner in CORNERS:
            number |= row.cells[corner].columns("_".join(corner))
            cell["_".join(corner)] = row.cells[corner].text(of=summary.seeds)
        for name in EFFECTS:
            number |= difference_columns(name, row.effects.get(name))
            cell[name] = difference_text(row.effects.get(name), of=summary.seeds)
        numbers.append(number)
        cells.append(cell)
    if found.effects:
        number, cell = _mean(found, summary)
        numbers.append(number)
        cells.append(cell)
    columns = ["_".join(corner) for corner in CORNERS]
    ways = [WAYS[way == ADAPTED] for _, way in CORNERS]
    headings = {"method": "method", **dict(zip(columns, ways, strict=True))}
    headings |= {name: name for name in EFFECTS}
    groups = [("", 1), ("aggregated BN (%)", 2), ("client-specific BN (%)", 2)]
    groups += [("difference (points)", len(EFFECTS))]
    return number_table(numbers, _types(columns)), word_table(cells, headings), headings, groups


def _mean(found: Gains, summary: Summary) -> tuple[dict[str, Any], dict[str, str]]:
    number: dict[str, Any] = {"method": MEAN}
    cell = {"method": f"mean of\n{found.counted}"}
    for corner, mean in found.mean.items():
        number |= mean.columns("_".join(corner))
        cell["_".join(corner)] = mean.text(of=summary.seeds)
    for name in EFFECTS:
        one = found.effects.get(name)
        number |= difference_columns(name, None if one is None else one.difference)
        if one is None:
            cell[name] = NONE
            continue
        number |= {f"{name}_verdict": one.verdict, f"{name}_holm_p": one.adjusted}
        text = difference_text(one.difference, of=summary.seeds)
        cell[name] = f"{text}\n{SIGNS[one.verdict]}"
    return number, cell


def _types(columns: list[str]) -> Types:
    types: Types = {"method": pl.String}
    for name in columns:
        types |= column_types(name)
    for name in EFFECTS:
        types |= difference_types(name)
        types |= {f"{name}_verdict": pl.String, f"{name}_holm_p": pl.Float64}
    return types
