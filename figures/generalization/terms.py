"""The bounds' terms over seeds, their sums per run, and both right sides of Eq. (15)."""

import polars as pl

from figures.generalization.names import (
    CAPACITIES,
    IDEAL,
    READINGS,
    RISKS,
    STATEMENTS,
    TERMS,
    TOTAL,
)
from figures.selection import of

_KEY = ("run", "bn_policy", "seed", "held_out", "variant")


WITHOUT = ", without the capacities, which are known from above alone"
"""What is said of a total."""


def stated(frame: pl.DataFrame) -> pl.DataFrame:
    """The records, with capacities and totals stated as what is known of them.

    Capacities rest on an upper bound of the VC dimension: they have no lower end, unless they are
    0, and their value is the upper one. The lower end of a total is then the sum of the other
    terms' lower ends; none where one of these is missing.
    """
    name, key = pl.col("split"), ["run", "variant"]
    term = pl.col("metric") == "term"
    above = term & name.is_in(CAPACITIES) & (pl.col("upper") > 0)
    sums = (
        frame.filter(term & name.is_in(RISKS))
        .group_by(key)
        .agg(pl.col("lower").sum().alias("sum"), pl.col("lower").count().alias("known"))
        .with_columns(pl.when(pl.col("known") == len(RISKS)).then(pl.col("sum")).alias("sum"))
    )
    total = term & (name == TOTAL)
    lower = pl.when(above).then(None).when(total).then(pl.col("sum")).otherwise(pl.col("lower"))
    ends = pl.coalesce("upper", pl.when(total).then(pl.col("sum")))
    open_above = total & pl.col("upper").is_null()
    return (
        frame.join(sums, on=key, how="left", maintain_order="left")
        .with_columns(
            lower.alias("lower"),
            pl.when(above | total).then(ends).otherwise(pl.col("value")).alias("value"),
            pl.when(open_above).then(pl.col("note") + WITHOUT).otherwise("note").alias("note"),
        )
        .drop("sum", "known")
    )


def drawn() -> pl.Expr:
    """What a figure shows of a term: its value; of what is bounded from above alone, the upper end.

    Those are the ideal joint error, by an oracle, and capacities, by a bound of the VC dimension:
    half of it would be a number that nobody measured.
    """
    above = pl.when(pl.col("split").is_in([IDEAL, *CAPACITIES])).then(pl.col("upper"))
    return pl.coalesce(above, pl.col("value"))


def terms(frame: pl.DataFrame) -> pl.DataFrame:
    """Mean over seeds of each term: value, ends, number of seeds, route, whether it is a bound.

    `drawn` is the mean of `drawn()`. An upper end is missing where that of a seed is. `kind` is
    that of the statement: 1 only where it is a bound with every seed; null where nobody said.
    """
    by = ["bn_policy", "held_out", "variant", "split"]
    means = (
        of(frame, metric="term")
        .group_by(by, maintain_order=True)
        .agg(
            pl.col("value").mean(),
            drawn().mean().alias("drawn"),
            *(
                pl.when(pl.col(end).is_null().any())
                .then(None)
                .otherwise(pl.col(end).mean())
                .alias(end)
                for end in ("lower", "upper")
            ),
            pl.col("seed").n_unique().alias("n"),
            pl.col("note").first(),
        )
    )
    kinds = (
        of(frame, metric="kind")
        .group_by(by[:3])
        .agg(pl.col("value").min().alias("kind"), pl.col("note").first().alias("title"))
    )
    return _placed(means.join(kinds, on=by[:3], how="left"), frame)


def _placed(table: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    """By held-out client as the runs came, then by statement, then by term."""
    order = {name: k for k, name in enumerate(TERMS)}
    rows = pl.DataFrame(
        [(*key, k) for k, key in enumerate(STATEMENTS)],
        schema={"bn_policy": pl.String, "variant": pl.String, "row_place": pl.Int64},
        orient="row",
    )
    clients = frame.select("held_out").unique(maintain_order=True).with_row_index("client_place")
    return (
        table.join(rows, on=["bn_policy", "variant"], how="left")
        .join(clients, on="held_out", how="left")
        .with_columns(
            pl.col("row_place").fill_null(len(STATEMENTS)),
            pl.col("split").replace_strict(order, default=len(order)).alias("term_place"),
        )
        .sort("client_place", "row_place", "term_place", maintain_order=True)
        .drop("client_place", "row_place", "term_place")
    )


def summed(frame: pl.DataFrame) -> pl.DataFrame:
    """The sum of a statement's `drawn` terms without capacities, per run that has all of them."""
    rows = of(frame, metric="term", split=list(RISKS))
    rows = rows.with_columns(drawn().alias("value"))
    sums = rows.group_by(_KEY, maintain_order=True).agg(pl.col("value").sum(), pl.len())
    return sums.filter(pl.col("len") == len(RISKS)).drop("len")


def mixtures(frame: pl.DataFrame) -> pl.DataFrame:
    """Eq. (15) per run and reading: Ĵ_s(f_u), the printed right side, and that of convexity.

    `exceeds` is by how much the left side is above the printed one for sure, `over_convex` by how
    much it is above the other.
    """
    by = ["bn_policy", "held_out", "seed", "reading"]
    names = {metric: reading for reading, metric in READINGS.items()}
    rows = of(frame, metric=list(names)).with_columns(
        pl.col("metric").replace_strict(names, default=None).alias("reading"),
        *(pl.coalesce(end, "value").alias(end) for end in ("lower", "upper")),
    )

    def side(name: str, column: str = "value") -> pl.Expr:
        return pl.col(column).filter(pl.col("variant") == name).first()

    found = rows.group_by(by, maintain_order=True).agg(
        *(side(name).alias(name) for name in ("measured", "printed", "convex")),
        (side("measured", "lower") - side("printed", "upper")).alias("exceeds"),
        (side("measured") - side("convex")).alias("over_convex"),
    )
    clients = frame.select("held_out").unique(maintain_order=True).with_row_index("place")
    found = found.join(clients, on="held_out", how="left")
    order = ["place", "bn_policy", "reading", "seed"]
    return found.sort(order, maintain_order=True).drop("place")
