"""Tables of the training: curves, final values, rounds to a target, paired differences."""

import warnings

import polars as pl

from figures.rounds import interval_table, rounds_to_target, summarise_rounds
from figures.selection import of
from figures.statistics import PairedDifference, paired_difference

TARGETS = (1.0, 0.5, 0.25)
"""Training losses to which rounds are counted; fixed before any run, none chosen on results."""

POLICIES = ("aggregated", "client_specific")


def per_seed(frame: pl.DataFrame, *, diverged: bool = False) -> pl.DataFrame:
    """Mean over the clients (not the server) of loss and accuracy, per policy, seed and round.

    Trainings that diverged are left out, unless asked for: there they end early.
    """
    status = ["complete", "diverged"] if diverged else "complete"
    rows = of(frame, study="training", status=status, metric=["loss", "accuracy"])
    return (
        rows.filter(pl.col("client") != "server")
        .group_by("bn_policy", "seed", "split", "metric", "round", maintain_order=True)
        .agg(pl.col("value").mean())
    )


def curves(seeds: pl.DataFrame) -> pl.DataFrame:
    """Mean over seeds with its 95 % interval, per policy, split, metric and round."""
    return interval_table(seeds, ["bn_policy", "split", "metric", "round"])


def final_per_client(frame: pl.DataFrame) -> pl.DataFrame:
    """Test accuracy after the last round: per policy and client, mean over seeds, interval."""
    rows = of(frame, study="training", status="complete", metric="accuracy", split="test")
    last = rows.filter(pl.col("round") == pl.col("round").max())
    return interval_table(last, ["bn_policy", "client"])


def differences(seeds: pl.DataFrame) -> dict[str, PairedDifference]:
    """Client-specific minus aggregated BN, paired by seed: last round, and mean over rounds."""
    found = {}
    for split, metric in (("train", "loss"), ("test", "accuracy")):
        rows = of(seeds, split=split, metric=metric)
        last = rows.filter(pl.col("round") == pl.col("round").max())
        trained = rows.filter(pl.col("round") > 0)
        for name, part in (("last round", last), ("mean over rounds", trained)):
            sides = [_by_seed(of(part, bn_policy=policy)) for policy in POLICIES]
            if set(sides[0]) & set(sides[1]):
                found[f"{split} {metric}, {name}"] = _paired(*sides)
    return found


def _paired(aggregated: dict[int, float], specific: dict[int, float]) -> PairedDifference:
    with warnings.catch_warnings():
        # The claim counts the seeds left out and the report names the trainings.
        warnings.filterwarnings("ignore", "seeds .* are on one side only", UserWarning)
        return paired_difference(specific, aggregated)


def paired_curves(seeds: pl.DataFrame) -> pl.DataFrame:
    """Client-specific minus aggregated BN per round, paired by seed, with the interval."""
    index = ["seed", "split", "metric", "round"]
    if not set(POLICIES) <= set(seeds["bn_policy"]):
        return curves(seeds.clear())
    wide = seeds.pivot(on="bn_policy", index=index, values="value").drop_nulls(list(POLICIES))
    wide = wide.with_columns(value=pl.col(POLICIES[1]) - pl.col(POLICIES[0]))
    return interval_table(wide, ["split", "metric", "round"])


def difference_table(found: dict[str, PairedDifference]) -> pl.DataFrame:
    """The paired differences as a table."""
    return pl.DataFrame(
        [(name, d.mean, d.lower, d.upper, d.p_value, d.n, d.method) for name, d in found.items()],
        schema={
            "quantity": pl.String,
            **dict.fromkeys(("difference", "lower", "upper", "p_value"), pl.Float64),
            "n": pl.Int64,
            "method": pl.String,
        },
        orient="row",
    )


def rounds(frame: pl.DataFrame) -> pl.DataFrame:
    """Rounds until the mean training loss reaches each target: median and range over seeds.

    A training that diverged before counts as one that never reaches it.
    """
    losses = of(per_seed(frame, diverged=True), split="train", metric="loss")
    horizon = int(losses["round"].max() or 0)  # pyright: ignore[reportArgumentType]
    table = []
    for policy in POLICIES:
        own = of(losses, bn_policy=policy)
        for target in TARGETS:
            reached = [
                rounds_to_target(dict(zip(curve["round"], curve["value"], strict=True)), target)
                for _, curve in own.group_by("seed", maintain_order=True)
            ]
            if reached:
                table.append((policy, target, str(summarise_rounds(reached, horizon))))
    schema = {"bn_policy": pl.String, "target": pl.Float64, "rounds": pl.String}
    return pl.DataFrame(table, schema=schema, orient="row")


def _by_seed(rows: pl.DataFrame) -> dict[int, float]:
    means = rows.group_by("seed", maintain_order=True).agg(pl.col("value").mean())
    return dict(zip(means["seed"].to_list(), means["value"].to_list(), strict=True))
