"""The records of the experiments with what their runs were beside them, one column each."""

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

RUN: dict[str, type[pl.DataType]] = {
    "run": pl.String,
    "study": pl.String,
    "algorithm": pl.String,
    "bn_policy": pl.String,
    "seed": pl.Int64,
    "held_out": pl.String,
    "settings": pl.String,
    "chosen": pl.String,
    "at_edge": pl.String,
    "model": pl.String,
    "federation": pl.String,
    "last_round": pl.Int64,
    "local_epochs": pl.Int64,
    "lr": pl.Float64,
    "weights": pl.String,
    "fraction": pl.Float64,
    "per_domain": pl.Int64,
    "projection": pl.Int64,
    "validation": pl.Boolean,
    "status": pl.String,
    "diverged_in_round": pl.Int64,
}
"""Columns of `runs`. `last_round`, `local_epochs`, `lr` and `weights` are the schedule's;
`settings` is JSON with sorted keys; `chosen` says where the settings come from, `at_edge` which of
them lie at an edge of their grid (null where nobody said)."""


def runs(manifests: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """One row per run, also for those without rows: see `RUN`.

    An external run (study "external") has the columns of the training that it serves; null where
    a run has no such setting.
    """
    table: dict[str, list[Any]] = {name: [] for name in RUN}
    for run, manifest in manifests.items():
        for name, value in _facts(run, manifest).items():
            table[name].append(value)
    return pl.DataFrame(table, schema=RUN)


def joined(rows: pl.DataFrame, manifests: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """Add to every row of the records the columns of its run; rows keep their order."""
    return rows.join(runs(manifests), on="run", how="left", maintain_order="left")


def _facts(run: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
    config = manifest["config"]
    training = config.get("training", config)
    schedule = training.get("schedule", {})
    edges = manifest.get("at_edge")
    known = {
        **training,
        "run": run,
        "study": config["study"],
        "held_out": config.get("held_out", training.get("held_out")),
        "settings": json.dumps(training.get("settings", {}), sort_keys=True),
        "chosen": manifest.get("chosen"),
        "at_edge": None if edges is None else ", ".join(edges),
        "last_round": schedule.get("rounds"),
        "status": manifest["status"],
        "diverged_in_round": manifest.get("diverged_in_round"),
    }
    known |= {name: schedule.get(name) for name in ("seed", "local_epochs", "lr", "weights")}
    return {name: known.get(name) for name in RUN}
