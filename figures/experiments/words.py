"""Phrases that the captions and notes of the experiments share."""

import polars as pl

BOOTSTRAP_FROM = 10
"""Seeds from which intervals are BCa bootstrap (see `figures.statistics`)."""
WITHIN = "within 0 to 100, where bars are cut"
"""Where axes of accuracies end: intervals of few seeds reach beyond."""


def means(seeds: int, kind: str = "bars") -> str:
    """What marks and their bars (or lines and their bands) are."""
    if seeds < 2:
        return "one seed, so no intervals"
    method = "BCa bootstrap" if seeds >= BOOTSTRAP_FROM else "Student t"
    return f"mean over {seeds} seeds; {kind}: 95 % {method} intervals"


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
