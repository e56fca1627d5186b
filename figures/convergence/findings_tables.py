"""Tables of where Corollary III.6 stops: counterexamples, thresholds, readings, step sizes."""

from dataclasses import dataclass

import polars as pl

from figures.selection import of

READING = ["data", "covariances", "variant", "split", "parameter"]
_ENDS = ("value", "lower", "upper")


@dataclass(frozen=True)
class Findings:
    """Empty where a part was not run.

    Attributes:
        examples: both smallest eigenvalues of every counterexample, and the verdict on λ ≤ λ*.
        limits: the thresholds r* and α* over the angle.
        sides: per threshold, whether the sign is certified just below and just above it.
        over_alpha: λ_min of Λ and of Λ* of one pair over α.
        readings: every inequality of every draw, with right by left side as `ratio`.
        remains: verdicts on λ_min(G∞) ≤ μ λ_min(G*∞).
        gains: per comparison, what λ_min, the step and the condition number gain.
    """

    examples: pl.DataFrame
    limits: pl.DataFrame
    sides: pl.DataFrame
    over_alpha: pl.DataFrame
    readings: pl.DataFrame
    remains: pl.DataFrame
    gains: pl.DataFrame


def summarise_findings(frame: pl.DataFrame, draws: pl.DataFrame) -> Findings:
    """Summarise; `draws` are the comparisons of Corollary III.6."""
    proofs = of(frame, study="counterexamples")
    everywhere = of(frame, study=["counterexamples", "readings"], metric="remains")
    kinds = ["pooled_threshold", "full_threshold"]
    return Findings(
        examples=examples(proofs),
        limits=of(proofs, metric=kinds).select("metric", "variant", "parameter", *_ENDS),
        sides=of(proofs, metric=["pooled_sides", "full_sides"]).select(
            "metric", "variant", "parameter", pl.col("note").alias("verdict")
        ),
        over_alpha=of(proofs, metric="over_alpha").select("variant", "parameter", *_ENDS),
        readings=readings(of(frame, study="readings")),
        remains=everywhere.select("data", pl.col("note").alias("verdict")),
        gains=gains(frame, draws),
    )


def examples(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per counterexample and draw."""
    table = of(rows, metric="example").select("split", "draw", pl.col("note").alias("verdict"))
    for variant in ("aggregated", "client_specific"):
        part = of(rows, metric="example_smallest", variant=variant)
        table = table.join(
            part.select("split", "draw", *(pl.col(e).alias(f"{variant}_{e}") for e in _ENDS)),
            on=["split", "draw"],
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
    return table


def readings(rows: pl.DataFrame) -> pl.DataFrame:
    """Both sides of every inequality, the verdict, and the ratio of the right by the left side."""
    keys = ["run", *READING, "draw"]
    table = of(rows, metric="reading").select(*keys, "setting", pl.col("note").alias("verdict"))
    for side in ("left", "right"):
        part = of(rows, metric=f"reading_{side}")
        table = table.join(
            part.select(*keys, *(pl.col(end).alias(f"{side}_{end}") for end in _ENDS)),
            on=keys,
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
    positive = (pl.col("left_lower") > 0) & (pl.col("right_lower") > 0)
    # A quotient errs by half a unit of 2⁻⁵²: one unit outwards covers it.
    return table.with_columns(
        pl.when(positive).then(over / under * factor).alias(name)
        for name, over, under, factor in (
            ("ratio", pl.col("right_value"), pl.col("left_value"), 1.0),
            ("ratio_lower", pl.col("right_lower"), pl.col("left_upper"), 1.0 - 2.0**-51),
            ("ratio_upper", pl.col("right_upper"), pl.col("left_lower"), 1.0 + 2.0**-51),
        )
    )


def gains(frame: pl.DataFrame, draws: pl.DataFrame) -> pl.DataFrame:
    """Per comparison of the corollary: what λ_min gains, the step, and the condition number."""
    rows = of(frame, study=["corollary", "spectrum"])
    keys = ["data", "study", "clients", "samples", "draw"]
    table = draws.select(
        *keys, "points", *(pl.col(f"ratio{end}").alias(f"smallest{end}") for end in _SUFFIXES)
    )
    for metric, verdict, name in (
        ("step_gain", "step_size", "step"),
        ("condition_gain", "condition", "condition"),
    ):
        ends = zip(_ENDS, _SUFFIXES, strict=True)
        parts = (
            of(rows, metric=metric).select(
                *keys, *(pl.col(end).alias(f"{name}{suffix}") for end, suffix in ends)
            ),
            of(rows, metric=verdict).select(*keys, pl.col("note").alias(f"{name}_verdict")),
        )
        for part in parts:
            table = table.join(part, on=keys, how="left", maintain_order="left")
    return table.drop_nulls("step")


_SUFFIXES = ("", "_lower", "_upper")
