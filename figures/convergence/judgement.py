"""The claims of the section `convergence`, each judged from the tables."""

from collections.abc import Iterator

import polars as pl

from figures.claims import Claim
from figures.convergence.frame import of
from figures.statistics import PairedDifference, verdicts_holm
from figures.tables import number

SMALLEST = "figures/smallest_eigenvalues.pdf"
DECAY = "figures/decay_gaussian.pdf"
REGIMES = "figures/regimes.pdf"
TRAINING = "figures/training.pdf"


def overall(verdicts: pl.Series) -> str:
    """Join verdicts of mathematics: one violation counts, and so does one that is open."""
    found = set(verdicts.to_list())
    if "violated" in found:
        return "violated"
    return "certified" if found == {"certified"} else "consistent"


def corollary(draws: pl.DataFrame) -> Iterator[Claim]:
    """Corollary III.6 on all points of the federation, and over draws."""
    for row in of(draws, study="spectrum").iter_rows(named=True):
        n = row["clients"] * row["samples"]
        low = row["min_star_lower"] / row["min_upper"]
        high = row["min_star_upper"] / row["min_lower"] if row["min_lower"] > 0 else None
        yield Claim(
            f"corollary-iii.6.{row['data']}",
            f"λ_min(G*∞) ≥ λ_min(G∞) on all {n:,} training images of {row['data']}",
            "UniFed, Corollary III.6",
            f"λ_min(G*∞)/λ_min(G∞) = {number(row['ratio'], 4)}",
            None if high is None else (low, high),
            row["verdict"],
            SMALLEST,
        )
    for (data,), part in of(draws, study="corollary").group_by("data", maintain_order=True):
        certified = int((part["verdict"] == "certified").sum())
        yield Claim(
            f"corollary-iii.6.draws.{data}",
            f"λ_min(G*∞) ≥ λ_min(G∞) in every draw of clients and samples from {data}",
            "UniFed, Corollary III.6",
            f"{certified} of {part.height} draws certified",
            (float(part["ratio"].min()), float(part["ratio"].max())),  # type: ignore[arg-type]
            overall(part["verdict"]),
            SMALLEST,
        )


def decay(descents: pl.DataFrame) -> Iterator[Claim]:
    """Theorem III.4 and Corollary III.5 on the runs of f and f* in which G dominates."""
    dominated = descents.filter("g_dominated")
    for identity, column, words, unit in (
        (
            "theorem-iii.4.decay",
            "bound_slack_decades",
            "‖f(t) − y‖² ≤ (1 − ηe₀/2)^t ‖f(0) − y‖² wherever G dominates, "
            "e₀ of the kernel that the network has",
            "smallest slack {} decades",
        ),
        (
            "theorem-iii.4.eigenvalue",
            "eigenvalue_over_half_e0",
            "λ_min(Λ(t)) ≥ e₀/2 throughout wherever G dominates, "
            "e₀ of the kernel that the network has",
            "smallest λ_min(Λ(t))/(e₀/2) {}",
        ),
    ):
        part = dominated.drop_nulls(column)
        if part.is_empty():
            continue
        values = part[column]
        yield Claim(
            identity,
            words,
            "UniFed, Theorem III.4 and Corollary III.5",
            f"{unit.format(number(float(values.min())))} over {part.height} runs",  # type: ignore[arg-type]
            (float(values.min()), float(values.max())),  # type: ignore[arg-type]
            overall(part[f"{column}_verdict"]),
            DECAY,
        )


def printed_kernel(gaps: pl.DataFrame, descents: pl.DataFrame) -> Iterator[Claim]:
    """Eq. (10) as printed: not the limit of G(t), and its rate refuted."""
    if not gaps.is_empty():
        # Hoeffding's radius shrinks with m: the widest networks of every α have to decide.
        widest = of(gaps, width=gaps["width"].max())
        excluded = widest["gap_printed"] > 1
        inside = gaps["gap_limit"] <= 1
        verdict = "certified" if excluded.all() else "consistent"
        yield Claim(
            "eq-10.not-the-limit",
            "Eq. (10) as printed is not the limit of G(t); for S = λI the limit is κ₁/(dλ)",
            "derived here; UniFed, Eq. (10)",
            f"G(0) lies {number(float(widest['gap_printed'].min()))} or more Hoeffding radii "  # type: ignore[arg-type]
            f"from (10), at most {number(float(gaps['gap_limit'].max()))} from κ₁/(dλ)",  # type: ignore[arg-type]
            None,
            verdict if inside.all() else "violated",
            REGIMES,
        )
    part = descents.filter(pl.col("alpha") >= 2)
    if not part.is_empty():
        refuted = part["lambda_min_upper"] < part["e0_printed_lower"] / 2
        ratio = part["lambda_min"] / (part["e0_printed"] / 2)
        yield Claim(
            "eq-10.rate-refuted",
            "At α ≥ 2 the network breaks λ_min(Λ(0)) ≥ e₀/2 if e₀ is taken from (10) as printed",
            "derived here; UniFed, Theorem III.4 with Eq. (10)",
            f"λ_min(Λ(0))/(e₀/2) at most {number(float(ratio.max()))}",  # type: ignore[arg-type]
            (float(ratio.min()), float(ratio.max())),  # type: ignore[arg-type]
            "certified" if refuted.all() else "consistent",
            REGIMES,
        )


def threshold(thresholds: pl.DataFrame) -> Iterator[Claim]:
    """α > 1 does not make G dominate."""
    if thresholds.is_empty():
        return
    low, high = (float(x) for x in (thresholds["alpha"].min(), thresholds["alpha"].max()))  # type: ignore[arg-type]
    yield Claim(
        "alpha.threshold",
        "α > 1 does not make G dominate: the threshold is √(λ_min(V∞)/λ_min(G∞))",
        "derived here; UniFed, before Definition III.2",
        f"threshold α from {number(low)} to {number(high)} over {thresholds.height} draws",
        (low, high),
        "certified" if thresholds["above_one_certified"].all() else "consistent",
        REGIMES,
    )


def training(found: dict[str, PairedDifference]) -> Iterator[Claim]:
    """The CNN federation: client-specific against aggregated BN, paired by seed."""
    directions = {name: "less" if "loss" in name else "greater" for name in found}
    verdicts = verdicts_holm(found, directions)  # type: ignore[arg-type]
    for name, difference in found.items():
        quantity, when = name.split(", ")
        lower = "lower" if directions[name] == "less" else "higher"
        interval = None
        if difference.lower is not None and difference.upper is not None:
            interval = (difference.lower, difference.upper)
        yield Claim(
            f"cnn.{quantity.replace(' ', '-')}.{when.replace(' ', '-')}",
            f"Client-specific BN gives a {lower} {quantity} than aggregated BN ({when})",
            "UniFed, Section III; FedBN, Fig. 3",
            difference.mean,
            interval,
            verdicts[name][0],
            TRAINING,
        )
