"""The records of the section `convergence` with the settings of their runs beside them."""

from collections.abc import Mapping
from typing import Any

import polars as pl

SETTINGS: dict[str, type[pl.DataType]] = {
    "study": pl.String,
    "data": pl.String,
    "alpha": pl.Float64,
    "width": pl.Int64,
    "bn_policy": pl.String,
    "seed": pl.Int64,
    "status": pl.String,
    "setting": pl.String,
    "covariances": pl.String,
}


def joined(rows: pl.DataFrame, manifests: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """Add to every row its run's study, data, α, m, BN policy, seed, status and sizes.

    A draw that is a setting of the run (f and f*) fills the column `draw`.
    """
    table: dict[str, list[Any]] = {name: [] for name in ("run", "run_draw", *SETTINGS)}
    for run, manifest in manifests.items():
        config = manifest["config"]
        known = {**config, "status": manifest["status"]}
        if "schedule" in config:
            known["seed"] = config["schedule"]["seed"]
        sizes = {"N": "clients", "M": "samples", "d": "dimension"}
        if set(sizes.values()) <= config.keys():
            known["setting"] = ", ".join(f"{n} = {config[key]}" for n, key in sizes.items())
        known.setdefault("data", config.get("federation"))
        table["run"].append(run)
        table["run_draw"].append(config.get("draw"))
        for name in SETTINGS:
            table[name].append(known.get(name))
    settings = pl.DataFrame(table, schema={"run": pl.String, "run_draw": pl.Int64, **SETTINGS})
    both = rows.join(settings, on="run", how="left", maintain_order="left")
    return both.with_columns(pl.coalesce("draw", "run_draw").alias("draw")).drop("run_draw")
