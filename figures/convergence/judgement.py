"""The claims of the section `convergence`, each judged from the tables."""

from collections.abc import Iterator

import polars as pl

from figures.claims import Claim
from figures.convergence.sources import items, plain
from figures.selection import of
from figures.statistics import PairedDifference, verdicts_holm
from figures.tables import number

SMALLEST = "figures/smallest_eigenvalues.pdf"
REGIMES = "figures/regimes.pdf"
TRAINING = "figures/training.pdf"

# The net with the larger λ_max has its own η as the common one: one run, not two.
RUN = ["data", "alpha", "width", "draw", "net", "step_size"]


def overall(verdicts: pl.Series) -> str:
    """Join verdicts of mathematics: one violation counts, and so does one that is open or lost."""
    found = set(verdicts.to_list())
    if "violated" in found:
        return "violated"
    return "certified" if found == {"certified"} else "consistent"


def corollary(draws: pl.DataFrame) -> Iterator[Claim]:
    """Corollary III.6 on all points of the federation, and over draws."""
    for row in of(draws, study="spectrum").iter_rows(named=True):
        ratio = row["ratio"]
        yield Claim(
            f"corollary-iii.6.{row['data']}",
            f"λ_min(G*∞) ≥ λ_min(G∞) on all {row['points']:,} {items(row['data'])} of "
            f"{plain(row['data'])}",
            "UniFed, Corollary III.6",
            "λ_min(G∞) or λ_min(G*∞) may be 0"
            if ratio is None
            else f"λ_min(G*∞)/λ_min(G∞) = {number(ratio, 5)}",
            None if ratio is None else (row["ratio_lower"], row["ratio_upper"]),
            row["verdict"],
            SMALLEST,
        )
    for (data,), part in of(draws, study="corollary").group_by("data", maintain_order=True):
        certified = int((part["verdict"] == "certified").sum())
        yield Claim(
            f"corollary-iii.6.draws.{data}",
            f"λ_min(G*∞) ≥ λ_min(G∞) in every draw of clients and samples from {plain(data)}",
            "UniFed, Corollary III.6",
            f"{certified} of {part.height} draws certified",
            None if part["ratio"].has_nulls() else span(part["ratio_lower"], part["ratio_upper"]),
            overall(part["verdict"]),
            SMALLEST,
        )


def span(low: pl.Series, high: pl.Series | None = None) -> tuple[float, float]:
    """Smallest and largest value that is there, as plain numbers."""
    ends = (low, low if high is None else high)
    least, most = (series.drop_nulls().to_numpy() for series in ends)
    return float(least.min()), float(most.max())


def decay(descents: pl.DataFrame) -> Iterator[Claim]:
    """Theorem III.4 and Corollary III.5 on the runs of f and f* in which G dominates.

    A run that diverged breaks the bound; of its eigenvalues nothing is known.
    """
    dominated = descents.filter("g_dominated")
    dominated = dominated.unique(subset=RUN, keep="first", maintain_order=True)
    if dominated.is_empty():
        return
    lost = dominated["diverged_at"].is_not_null()
    for identity, column, words, unit, diverged in (
        (
            "theorem-iii.4.decay",
            "bound_slack_decades",
            "‖f(t) − y‖² ≤ (1 − ηe₀/2)^t ‖f(0) − y‖² at every step of every run in which G "
            "dominates, e₀ of the kernel that the network has",
            "smallest slack {} decades",
            "violated",
        ),
        (
            "theorem-iii.4.eigenvalue",
            "eigenvalue_over_half_e0",
            "λ_min(Λ(t)) ≥ e₀/2 at every recorded step of every run in which G dominates, "
            "e₀ of the kernel that the network has",
            "smallest λ_min(Λ(t))/(e₀/2) {}",
            "consistent",
        ),
    ):
        verdicts = dominated[f"{column}_verdict"].to_list()
        verdicts = [diverged if gone else v for v, gone in zip(verdicts, lost, strict=True)]
        values = dominated[column].drop_nulls()
        ends = None if values.is_empty() else span(values)
        measured = unit.format(number(ends[0] if ends else None))
        if column == "bound_slack_decades" and dominated["final_slack_decades"].count():
            most = dominated["final_slack_decades"].max()
            measured += f", up to {number(most)} after the last step,"
        measured += f" over {dominated.height} runs"
        yield Claim(
            identity,
            words,
            "UniFed, Theorem III.4 and Corollary III.5",
            measured + (f", {lost.sum()} of them diverged" if lost.any() else ""),
            ends,
            overall(pl.Series(verdicts, dtype=pl.String)),
            f"figures/decay_{dominated['data'][0]}.pdf",
        )


def printed_kernel(gaps: pl.DataFrame, descents: pl.DataFrame) -> Iterator[Claim]:
    """Eq. (10) as printed: not the limit of G(t), and its rate refuted."""
    if not gaps.is_empty():
        # Hoeffding's radius shrinks with m: the widest networks of every α have to decide.
        widest = of(gaps, width=gaps["width"].max())
        excluded = (widest["gap_printed"] > 1).fill_null(False)
        inside = (gaps["gap_limit"] <= 1).fill_null(False)
        verdict = "certified" if excluded.all() and inside.all() else "consistent"
        if (gaps["gap_limit"] > 1).any():
            verdict = "violated"
        least, most = span(widest["gap_printed"])[0], span(gaps["gap_limit"])[1]
        yield Claim(
            "eq-10.not-the-limit",
            "Eq. (10) as printed is not the limit of G(t); for S = λI the limit is κ₁/(dλ)",
            "derived here; UniFed, Eq. (10)",
            f"G(0) lies {number(least)} or more Hoeffding radii from (10) at m = "
            f"{number(gaps['width'].max())}, at most {number(most)} from κ₁/(dλ); "
            f"{gaps['note'][0]} a run",
            None,
            verdict,
            REGIMES,
        )
    part = descents.filter(pl.col("alpha") >= 2)
    if not part.is_empty():
        refuted = (part["lambda_min_upper"] < part["e0_printed_lower"] / 2).fill_null(False)
        ratio = (part["lambda_min_upper"] / (part["e0_printed_lower"] / 2)).drop_nulls()
        most = None if ratio.is_empty() else float(ratio.max())  # type: ignore[arg-type]
        yield Claim(
            "eq-10.rate-refuted",
            "At α ≥ 2 the network breaks λ_min(Λ(0)) ≥ e₀/2 if e₀ is taken from (10) as printed",
            "derived here; UniFed, Theorem III.4 with Eq. (10)",
            f"λ_min(Λ(0))/(e₀/2) at most {number(most)} over {part.height} runs",
            None,
            "certified" if refuted.all() else "consistent",
            REGIMES,
        )


def threshold(thresholds: pl.DataFrame) -> Iterator[Claim]:
    """α > 1 does not make G dominate: certified if every draw shows it, violated if none can."""
    known = thresholds.drop_nulls("alpha")
    if known.is_empty():
        return
    low, high = span(known["alpha_lower"], known["alpha_upper"])
    verdict = "certified" if thresholds["above_one_certified"].all() else "consistent"
    if known.height == thresholds.height and high <= 1:
        verdict = "violated"
    yield Claim(
        "alpha.threshold",
        "α > 1 does not make G dominate: the threshold is √(λ_min(V∞)/λ_min(G∞))",
        "derived here; UniFed, before Definition III.2",
        f"threshold α from {number(low)} to {number(high)} over {known.height} draws",
        (low, high),
        verdict,
        REGIMES,
    )


def training(found: dict[str, PairedDifference]) -> Iterator[Claim]:
    """The CNN federation: client-specific against aggregated BN, paired by seed."""
    directions = {name: "less" if "loss" in name else "greater" for name in found}
    verdicts = verdicts_holm(found, directions)  # type: ignore[arg-type]
    for name, difference in found.items():
        quantity, when = name.split(", ")
        alone = len(difference.unpaired)
        left_out = f", {alone} seed{'s' * (alone > 1)} without a pair left out" if alone else ""
        lower = "lower" if directions[name] == "less" else "higher"
        interval = None
        if difference.lower is not None and difference.upper is not None:
            interval = (difference.lower, difference.upper)
        yield Claim(
            f"cnn.{quantity.replace(' ', '-')}.{when.replace(' ', '-')}",
            f"Client-specific BN gives a {lower} {quantity} than aggregated BN ({when})",
            "UniFed, Section III; FedBN, Fig. 3",
            f"{number(difference.mean)} over {difference.n} seeds, "
            f"Holm-adjusted p = {number(verdicts[name][1], 2)}{left_out}",
            interval,
            verdicts[name][0],
            TRAINING,
        )
