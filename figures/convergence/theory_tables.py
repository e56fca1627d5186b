"""Tables of the theory: Corollary III.6, the spectra, the regimes of α, the decay of f and f*."""

import polars as pl

from figures.selection import of

KEY = ["data", "clients", "samples"]
RUN = ["data", "alpha", "width", "draw"]


def comparisons(frame: pl.DataFrame) -> pl.DataFrame:
    """One row per draw: both enclosures of λ_min and of λ_max, the verdict, client and cause."""
    theory = of(frame, study=["corollary", "spectrum"])
    wide = theory.filter(pl.col("metric") == "certified").select(
        "run", "study", *KEY, "draw", pl.col("note").alias("verdict")
    )
    for metric, short in (("smallest_eigenvalue", "min"), ("largest_eigenvalue", "max")):
        for variant, suffix in (("G", ""), ("G*", "_star")):
            part = of(theory, metric=metric, variant=variant)
            named = [pl.col(end).alias(f"{short}{suffix}_{end}") for end in ("lower", "upper")]
            named.append(pl.col("value").alias(f"{short}{suffix}"))
            if short == "min" and suffix:
                named += [pl.col("client"), pl.col("note").alias("cause")]
            wide = wide.join(
                part.select("run", *KEY, "draw", *named),
                on=["run", *KEY, "draw"],
                how="left",
                maintain_order="left",
            )
    size = of(theory, metric="points").select(
        "run", *KEY, "draw", pl.col("value").cast(pl.Int64).alias("points")
    )
    wide = wide.join(size, on=["run", *KEY, "draw"], how="left", maintain_order="left")
    return wide.with_columns(
        pl.coalesce("points", pl.col("clients") * pl.col("samples")).alias("points"), *_ratios()
    )


def _ratios() -> list[pl.Expr]:
    """λ_min(G*∞)/λ_min(G∞) with certain bounds; nulls where either may be 0."""
    positive = (pl.col("min_lower") > 0) & (pl.col("min_star_lower") > 0)
    # A quotient errs by half a unit of 2⁻⁵²: one unit outwards covers it.
    return [
        pl.when(positive).then(numerator / denominator * factor).alias(name)
        for name, numerator, denominator, factor in (
            ("ratio", pl.col("min_star"), pl.col("min"), 1.0),
            ("ratio_lower", pl.col("min_star_lower"), pl.col("min_upper"), 1.0 - 2.0**-51),
            ("ratio_upper", pl.col("min_star_upper"), pl.col("min_lower"), 1.0 + 2.0**-51),
        )
    ]


def comparison_summary(draws: pl.DataFrame) -> pl.DataFrame:
    """Per data, N and M: median and range over draws, how many are certified, widest enclosure.

    `min_certain` and `min_star_certain`, the medians of the lower ends, and the least of them,
    `…_low_certain`, bound the median and the range from below: not positive, they may be 0.
    """
    width = pl.max_horizontal(
        (pl.col("min_upper") - pl.col("min_lower")) / pl.col("min"),
        (pl.col("min_star_upper") - pl.col("min_star_lower")) / pl.col("min_star"),
    )
    columns = []
    for name in ("min", "min_star", "ratio", "max", "max_star"):
        columns += [
            pl.col(name).median().alias(name),
            pl.col(name).min().alias(f"{name}_low"),
            pl.col(name).max().alias(f"{name}_high"),
        ]
    for name in ("min", "min_star"):
        lower = pl.col(f"{name}_lower")
        columns += [lower.median().alias(f"{name}_certain")]
        columns += [lower.min().alias(f"{name}_low_certain")]
    return draws.group_by(KEY, maintain_order=True).agg(
        pl.len().alias("draws"),
        *((pl.col("verdict") == v).sum().alias(v) for v in ("certified", "consistent", "violated")),
        *columns,
        width.max().alias("relative_width"),
        pl.col("client").mode().sort().first().alias("driving_client"),
    )


def spectra(frame: pl.DataFrame) -> pl.DataFrame:
    """Every eigenvalue of G∞ and of the blocks of G*∞, with its rank from the largest."""
    values = of(frame, study="spectrum", metric="eigenvalue")
    return (
        values.sort("data", "variant", "value", descending=[False, False, True])
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("data", "variant"))
        .select("data", "variant", "rank", "value", "client")
    )


def distances(table: pl.DataFrame) -> pl.DataFrame:
    """Per data, α and m: the largest |log10| of measured by linearised, above rounding."""
    sides = ["squared_residual", "linearised"]
    rows = table.filter(pl.col("metric").is_in(sides))
    wide = _wide(rows, "metric", [*RUN, "variant", "round"], "relative", sides)
    wide = wide.filter((pl.col("squared_residual") > 1e-20) & (pl.col("linearised") > 1e-20))
    gap = (pl.col("squared_residual") / pl.col("linearised")).log10().abs()
    return wide.group_by("data", "alpha", "width", maintain_order=True).agg(value=gap.max())


def slacks(table: pl.DataFrame) -> pl.DataFrame:
    """Per data, α and m: the smallest λ_min(Λ(t))/(e₀/2) over f, f*, draws and steps, computed.

    Not the certified lower end: far from its linearisation training drives neurons onto the edge
    of their half-spaces, where the kernel jumps and nothing can be certified.
    """
    known = table.filter(pl.col("e0") > 0)
    return known.group_by("data", "alpha", "width", maintain_order=True).agg(
        value=(pl.col("smallest_during") / (pl.col("e0") / 2)).min()
    )


def regimes(frame: pl.DataFrame) -> pl.DataFrame:
    """Per data, α and matrix: median and range over draws of the enclosed smallest eigenvalue.

    `certain` and `low_certain` bound the median and the range from below, by the lower ends.
    """
    rows = of(frame, study="regime", metric="smallest_eigenvalue")
    # G∞ is free of α: it is the same at every one.
    alphas = rows.select("data", "parameter").drop_nulls().unique(maintain_order=True)
    magnitude = of(rows, variant="G").drop("parameter").join(alphas, on="data")
    rows = pl.concat([rows.drop_nulls("parameter"), magnitude.select(rows.columns)])
    return (
        rows.group_by("data", "parameter", "variant", maintain_order=True)
        .agg(
            pl.col("value").median(),
            pl.col("value").min().alias("low"),
            pl.col("value").max().alias("high"),
            pl.col("lower").median().alias("certain"),
            pl.col("lower").min().alias("low_certain"),
            pl.len().alias("draws"),
            pl.col("setting").first(),
        )
        .rename({"parameter": "alpha"})
    )


def thresholds(frame: pl.DataFrame) -> pl.DataFrame:
    """Per data and draw: the α from which λ_min(V∞)/α² < λ_min(G∞), exact by scaling.

    `alpha_lower` and `alpha_upper` enclose it; nulls where λ_min(G∞) or λ_min(V∞) may be 0.
    `above_one_certified` says that at some α > 1 the enclosures prove λ_min(V∞)/α² > λ_min(G∞).
    """
    rows = of(frame, study="regime", metric="smallest_eigenvalue")
    magnitude = of(rows, variant="G").select(
        "data", "draw", *(pl.col(end).alias(f"g_{end}") for end in ("value", "lower", "upper"))
    )
    direction = of(rows, variant="V").select("data", "draw", "parameter", "value", "lower", "upper")
    both = direction.join(magnitude, on=["data", "draw"], how="inner", maintain_order="left")
    proven = (pl.col("parameter") > 1) & (pl.col("lower") > pl.col("g_upper"))
    positive = (pl.col("g_lower") > 0) & (pl.col("lower") > 0)

    def scaled(v: str, g: str) -> pl.Expr:
        root = (pl.col(v) / pl.col(g)).sqrt() * pl.col("parameter")
        return pl.when(positive).then(root)

    # Every α gives an enclosure of the same number: the narrowest ends count, four roundings out.
    slack = 4 * 2.0**-52
    return both.group_by("data", "draw", maintain_order=True).agg(
        scaled("value", "g_value").median().alias("alpha"),
        (scaled("lower", "g_upper").max() * (1 - slack)).alias("alpha_lower"),
        (scaled("upper", "g_lower").min() * (1 + slack)).alias("alpha_upper"),
        proven.any().alias("above_one_certified"),
    )


def curves(frame: pl.DataFrame) -> pl.DataFrame:
    """Squared residual, linearised prediction and bound of every run, relative to the start."""
    rows = of(frame, study="dynamics", metric=["squared_residual", "linearised", "bound"])
    start = of(rows, metric="squared_residual", round=0).select(
        *RUN, "variant", pl.col("value").alias("start")
    )
    return rows.join(start, on=[*RUN, "variant"], maintain_order="left").select(
        *RUN, "setting", "variant", "metric", "round", relative=pl.col("value") / pl.col("start")
    )


def descents(frame: pl.DataFrame) -> pl.DataFrame:
    """One row per run of f or f*: η, e₀, the slack of the bound, the regime, steps to 10⁻³."""
    rows = of(frame, study="dynamics")
    table = of(rows, metric="step_size").select(*RUN, "variant", pl.col("value").alias("step_size"))
    table = table.with_columns(
        net=pl.col("variant").str.split("|").list.first(),
        choice=pl.col("variant").str.split("|").list.last(),
    )
    for metric in (
        "factor",
        "bound_slack_decades",
        "final_slack_decades",
        "eigenvalue_over_half_e0",
        "g_dominated_during",
        "steps_to_thousandth",
        "steps_promised",
        "diverged_at",
    ):
        part = of(rows, metric=metric)
        extra = [pl.col("value").alias(metric)]
        if metric in ("bound_slack_decades", "eigenvalue_over_half_e0"):
            extra.append(pl.col("note").alias(f"{metric}_verdict"))
        table = table.join(
            part.select(*RUN, "variant", *extra),
            on=[*RUN, "variant"],
            how="left",
            maintain_order="left",
        )
    for metric, names in (
        ("limit_smallest_eigenvalue", {"e0": None, "e0_printed": "printed"}),
        ("required_width", {"required_width": None}),
    ):
        for name, variant in names.items():
            part = of(rows, metric=metric).select(
                *RUN, pl.col("variant").alias("net"), pl.col("value").alias(name), "lower"
            )
            keys = [*RUN, "net"]
            if variant is not None:
                part, keys = of(part, net=variant).drop("net"), RUN
            table = table.join(
                part.rename({"lower": f"{name}_lower"}), on=keys, how="left", maintain_order="left"
            )
    during = of(rows, metric="smallest_eigenvalue_during")
    during = during.group_by(*RUN, "variant", maintain_order=True).agg(
        smallest_during=pl.col("value").min()
    )
    table = table.join(during, on=[*RUN, "variant"], how="left", maintain_order="left")
    start = of(rows, metric="smallest_eigenvalue").select(
        *RUN,
        pl.col("variant").alias("net"),
        pl.col("value").alias("lambda_min"),
        pl.col("upper").alias("lambda_min_upper"),
    )
    dominates = of(rows, metric="magnitude_dominates").select(
        *RUN, (pl.col("value") == 1).alias("g_dominated")
    )
    return (
        table.join(start, on=[*RUN, "net"], how="left", maintain_order="left")
        .join(dominates, on=RUN, how="left", maintain_order="left")
        .drop("required_width_lower")
    )


def entry_gaps(frame: pl.DataFrame) -> pl.DataFrame:
    """Per run: the largest distance of G(0)'s entries to either formula, in Hoeffding radii.

    `note` says with what probability a radius may fail.
    """
    rows = of(frame, study="dynamics", metric="entry_gap")
    return (
        _wide(rows, "variant", RUN, "value", ["limit", "printed"])
        .rename({"limit": "gap_limit", "printed": "gap_printed"})
        .with_columns(note=pl.lit(rows["note"].drop_nulls().first(), pl.String))
    )


def _wide(
    rows: pl.DataFrame, on: str, index: list[str], values: str, names: list[str]
) -> pl.DataFrame:
    """Pivot, with a column for every name also where no row has it."""
    wide = rows.pivot(on=on, index=index, values=values)
    lost = [pl.lit(None, pl.Float64).alias(name) for name in names if name not in wide.columns]
    return wide.with_columns(lost)
