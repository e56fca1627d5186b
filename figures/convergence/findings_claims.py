"""Claims on where Corollary III.6 stops, and on what it says of the step size besides."""

from collections.abc import Iterator

import polars as pl

from figures.claims import Claim
from figures.convergence.findings_tables import Findings
from figures.convergence.judgement import overall, span
from figures.convergence.sources import items, plain
from figures.selection import of
from figures.tables import number

POOLED = "figures/pooled.pdf"
FULL = "figures/full_kernel.pdf"
STEPS = "figures/step_sizes.pdf"
HERE = "derived here; UniFed, Corollary III.6"
INTERLACING = "interlacing, derived here; UniFed, Corollary III.6 and Theorem III.4"
COVARIANCES = {"isotropic": "S_i = λ_i I", "own": "S_i the clients' covariances"}
NEGATED = {"violated": "certified", "certified": "violated"}


def findings(found: Findings) -> Iterator[Claim]:
    """Every claim that the records speak about."""
    yield from _counterexamples(found.examples)
    yield from _thresholds(found.sides)
    yield from _remains(found.remains)
    yield from _readings(found.readings)
    yield from _step_sizes(found.gains)


def _counterexamples(examples: pl.DataFrame) -> Iterator[Claim]:
    """What is proven: the named examples. What Gaussian draws do is told beside."""
    for kind, named, words, kernels in (
        (
            "pooled",
            {
                "pooled.orthogonal": "two orthogonal points",
                "pooled.own": "clients with their own S_i",
            },
            "Corollary III.6 does not extend to a pooled S in G∞ against S_i in G*∞",
            ("G∞", "G*∞"),
        ),
        (
            "full-kernel",
            {"full.orthogonal": "90°, d = 2, α = 1", "full.obtuse": "120°, d = 10, α = 1"},
            "Corollary III.6 does not extend to Λ = V/α² + G",
            ("Λ∞", "Λ*∞"),
        ),
    ):
        rows = of(examples, split=list(named))
        if rows.is_empty():
            continue
        told = [
            f"{named[row['split']]}: λ_min({kernels[0]}) = {number(row['aggregated_value'], 4)} > "
            f"λ_min({kernels[1]}) = {number(row['client_specific_value'], 4)}"
            for row in rows.iter_rows(named=True)
        ]
        drawn = of(examples, split=f"{kind}.gaussian")
        if drawn.height:
            fails = int((drawn["verdict"] == "violated").sum())
            told.append(f"and in {fails} of {drawn.height} Gaussian draws")
        ratio = span(
            rows["aggregated_lower"] / rows["client_specific_upper"] * (1 - 2.0**-51),
            rows["aggregated_upper"] / rows["client_specific_lower"] * (1 + 2.0**-51),
        )
        verdicts = [NEGATED.get(verdict, verdict) for verdict in rows["verdict"]]
        yield Claim(
            f"corollary-iii.6.{kind}.counterexample",
            words,
            HERE,
            "; ".join(told),
            ratio,
            overall(pl.Series(verdicts, dtype=pl.String)),
            POOLED if kind == "pooled" else FULL,
        )


def _thresholds(sides: pl.DataFrame) -> Iterator[Claim]:
    for metric, name, words, figure in (
        (
            "pooled_sides",
            "pooled",
            "Two points at an angle θ, one per client, S_i = λ_i I, equal weights: with a pooled S "
            "the corollary fails exactly for λ_2/λ_1 < 1 − 2(sin θ + (π − θ) cos θ)/π",
            POOLED,
        ),
        (
            "full_sides",
            "full-kernel",
            "Two points at an angle θ, one per client: λ_min(Λ*) < λ_min(Λ) exactly for α < α*, "
            "α*² = 2 + 2d(π − θ)/(tan(π − θ) − (π − θ))",
            FULL,
        ),
    ):
        rows = of(sides, metric=metric)
        if rows.height:
            proven = int((rows["verdict"] == "certified").sum())
            yield Claim(
                f"corollary-iii.6.{name}.threshold",
                words,
                HERE,
                f"the sign is certified a millionth below and above it for {proven} of "
                f"{rows.height} pairs of points",
                None,
                overall(rows["verdict"]),
                figure,
            )


def _remains(remains: pl.DataFrame) -> Iterator[Claim]:
    if remains.height:
        certified = int((remains["verdict"] == "certified").sum())
        yield Claim(
            "corollary-iii.6.pooled.remains",
            "With a pooled S in G∞ and S_i in G*∞, λ_min(G∞) ≤ μ λ_min(G*∞), μ the least number "
            "with S_i ⪯ μS for every client, at most 1/min p_i",
            HERE,
            f"{certified} of {remains.height} comparisons certified",
            None,
            overall(remains["verdict"]),
            POOLED,
        )


def _readings(readings: pl.DataFrame) -> Iterator[Claim]:
    """What was found on data: no theorem, so the words follow the finding."""
    smallest = of(readings, split="smallest")
    for variant, name, what, figure in (
        ("pooled", "pooled", "λ_min(G*∞) ≥ λ_min(G∞) with S pooled in G∞ and S_i in G*∞", POOLED),
        ("full", "full-kernel", "λ_min(Λ*∞) ≥ λ_min(Λ∞)", FULL),
    ):
        chosen = of(smallest, variant=variant)
        for (data, kind), rows in chosen.group_by("data", "covariances", maintain_order=True):
            where = f"draws from {plain(str(data))}, {COVARIANCES[str(kind)]}"
            yield _found(f"reading.{name}.{kind}.{data}", what, rows, where, figure)


def _found(identity: str, what: str, rows: pl.DataFrame, where: str, figure: str) -> Claim:
    fails, holds = of(rows, verdict="violated").height, of(rows, verdict="certified").height
    scales = rows["parameter"].drop_nulls().unique().sort()
    at = f", at every α from {scales[0]:g} to {scales[-1]:g}" if scales.len() > 1 else ""
    words, verdict = f"{what} in all {where}{at}", overall(rows["verdict"])
    if fails:
        words, verdict = f"Not always {what}: it fails in {where}", "certified"
    ratio = rows.drop_nulls("ratio")
    return Claim(
        identity,
        words,
        "measured here; UniFed, Corollary III.6",
        f"certified to hold in {holds} and to fail in {fails} of {rows.height} comparisons; "
        "ratio of the two",
        None if ratio.height < rows.height else span(ratio["ratio_lower"], ratio["ratio_upper"]),
        verdict,
        figure,
    )


def _step_sizes(gains: pl.DataFrame) -> Iterator[Claim]:
    for row in of(gains, study="spectrum").iter_rows(named=True):
        yield from _on_all_points(row)
    for (data,), rows in of(gains, study="corollary").group_by("data", maintain_order=True):
        certified = int((rows["step_verdict"] == "certified").sum())
        yield Claim(
            f"corollary-iii.6.step-size.draws.{data}",
            f"λ_max(G*∞) ≤ λ_max(G∞) in every draw of clients and samples from {plain(str(data))}",
            INTERLACING,
            f"{certified} of {rows.height} draws certified; λ_max(G∞)/λ_max(G*∞)",
            span(rows["step_lower"], rows["step_upper"]),
            overall(rows["step_verdict"]),
            STEPS,
        )


def _on_all_points(row: dict) -> Iterator[Claim]:
    data = row["data"]
    where = f"on all {row['points']:,} {items(data)} of {plain(data)}"
    yield Claim(
        f"corollary-iii.6.step-size.{data}",
        f"λ_max(G*∞) ≤ λ_max(G∞) {where}: the step η stays admissible, a larger one becomes so",
        INTERLACING,
        f"λ_max(G∞)/λ_max(G*∞) = {number(row['step'], 5)}",
        (row["step_lower"], row["step_upper"]),
        row["step_verdict"],
        STEPS,
    )
    if row["condition"] is None:
        return
    yield Claim(
        f"corollary-iii.6.condition.{data}",
        f"κ = λ_max/λ_min, which sets the best factor over η, does not rise {where}",
        INTERLACING,
        f"κ(G∞)/κ(G*∞) = {number(row['condition'], 5)}",
        (row["condition_lower"], row["condition_upper"]),
        row["condition_verdict"],
        STEPS,
    )
    more = row["step_lower"] > row["smallest_upper"]
    less = row["step_upper"] < row["smallest_lower"]
    names = ("smaller λ_max", "larger λ_min")
    first, second = names[::-1] if less else names
    yield Claim(
        f"step-size.gain.{data}",
        f"Of what client-specific BN gains by κ the {first} gives more than the {second} {where}",
        "measured here; UniFed, Corollary III.6",
        f"λ_max falls {number(row['step'], 4)}-fold, λ_min rises {number(row['smallest'], 4)}-fold",
        (row["condition_lower"], row["condition_upper"]),
        "certified" if more or less else "consistent",
        STEPS,
    )
