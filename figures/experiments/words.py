"""Phrases that the captions and notes of the experiments share."""

from collections.abc import Iterable, Mapping

import polars as pl

from figures.experiments.cells import Cell
from figures.statistics import PairedDifference

BOOTSTRAP_FROM = 10
"""Seeds from which intervals are BCa bootstrap (see `figures.statistics`)."""
WITHIN = "within 0 to 100, where intervals are cut"
"""Where axes of accuracies end: intervals of few seeds reach beyond."""


def counts(cells: Iterable[Cell]) -> list[int]:
    """How many seeds are behind each mean that is there."""
    return [len(cell.values) for cell in cells if cell.values]


def over_seeds(counts: Iterable[int]) -> str:
    """Over how many seeds means are, from the fewest to the most."""
    there = sorted(counts) or [0]
    few, many = there[0], there[-1]
    if many < 2:
        return "one seed"
    return f"mean over {few} to {many} seeds" if few < many else f"mean over {many} seeds"


def means(counts: Iterable[int], kind: str = "bars") -> str:
    """What marks and their bars (or lines and their bands) are, by the seeds behind each."""
    there = sorted(counts) or [0]
    if there[-1] < 2:
        return "one seed, so no intervals"
    names = ["Student t"] * (there[0] < BOOTSTRAP_FROM)
    names += ["BCa bootstrap"] * (there[-1] >= BOOTSTRAP_FROM)
    alone = ", none of one seed" * (there[0] < 2)
    return f"{over_seeds(there)}; {kind}: 95 % {' or '.join(names)} intervals{alone}"


def in_rounds(counts: Iterable[int]) -> str:
    """Numbers of rounds, each once."""
    there = list(dict.fromkeys(counts))
    return f"{', '.join(map(str, there))} round{'s' * (there != [1])}"


def hollow(cells: Iterable[Cell]) -> str:
    """What hollow marks are, where a mean lacks seeds that diverged."""
    some = any(cell.values and cell.diverged for cell in cells)
    return "; hollow marks lack seeds that diverged" * some


def equal(found: Iterable[PairedDifference]) -> str:
    """Say why a difference of several seeds has no interval, where one has none."""
    bare = any(one.n > 1 and one.lower is None for one in found)
    return " (no interval where all differences are equal)" * bare


def what_diverged(cells: Mapping[str, Cell]) -> str:
    """Say, by what each cell is called, which seeds diverged; empty where none did."""
    lost = [f"{name}: {cell.lost}" for name, cell in cells.items() if cell.diverged]
    return f" Left out: {'; '.join(lost)}." if lost else ""


def lost(behind: pl.DataFrame) -> list[str]:
    """Say of each training behind the runs that diverged what it was, and in which round."""
    names = {"local_epochs": "E = {}", "fraction": "share {:g}"}
    names |= {"per_domain": "{} clients a domain", "held_out": "without {}"}
    if behind["lr"].n_unique() > 1:
        names["lr"] = "lr = {:g}"
    found = []
    for run in behind.filter(status="diverged").iter_rows(named=True):
        policy = f"{(run['bn_policy'] or 'unknown').replace('_', '-')} BN"
        words = [f"{run['algorithm']}, {policy}, seed {run['seed']}"]
        words += [text.format(run[name]) for name, text in names.items() if run[name] is not None]
        when = f" in round {run['diverged_in_round']}" if run["diverged_in_round"] else ""
        found.append(f"This training diverged{when} and is left out: {', '.join(words)}.")
    return list(dict.fromkeys(found))
