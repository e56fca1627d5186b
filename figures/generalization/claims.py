"""What the section claims of trained networks: which terms shrink, and whether accuracy follows."""

from collections.abc import Iterator

import polars as pl

from figures.claims import Claim
from figures.convergence.judgement import span
from figures.experiments.measures import POLICIES
from figures.generalization.divergence_claims import DIVERGENCE, claim_of, judge_divergence
from figures.generalization.gaussian_claims import judge_gaussian
from figures.generalization.names import CAPACITIES, between
from figures.generalization.summary import Summary
from figures.selection import of
from figures.statistics import RankCorrelation

TERMS, SCATTER = "figures/terms.pdf", "figures/scatter.pdf"
BOUND = "UniFed, Corollary III.8, Eq. (16)"
MIXTURE = "derived here; UniFed, Eq. (15)"
ROUNDING = 1e-5
"""Of mean risks of predictions in float32."""

READ = {
    "features": ("", "models as functions of features that each client normalises itself"),
    "inputs": ("-on-inputs", "models as functions of inputs, with their own statistics"),
}
"""Reading of Eq. (15) -> end of a claim's id, and what it is of."""


def judge(summary: Summary) -> Iterator[Claim]:
    """Judge divergence, terms, accuracy and Eq. (15), then what Gaussian clients show."""
    yield from judge_divergence(summary)
    yield from _terms(summary)
    if summary.rank is not None:
        yield _rank(summary.rank, summary.rank_of_points)
    yield from _mixtures(summary)
    yield from judge_gaussian(summary.gaussian)


def _terms(summary: Summary) -> Iterator[Claim]:
    if (found := summary.claimed.get("terms")) is not None:
        words = (
            "The terms of (16) without capacities, the divergence from below and the ideal joint "
            "error from above, add up to less with client-specific BN, as deployed, than with "
            "aggregated BN"
        )
        yield claim_of(found, "terms.sum", words, BOUND, TERMS)
    if (found := summary.claimed.get("gap")) is not None:
        words = (
            "The Gibbs risk that (18) counts, of each model at home, is below that of their "
            "averaged predictions outside: the other terms have to pay for the way there"
        )
        yield claim_of(found, "terms.home-risk", words, DIVERGENCE, TERMS)
    rows = summary.terms.filter(pl.col("split").is_in(CAPACITIES)).drop_nulls("drawn")
    if rows.height:
        by = ["held_out", "bn_policy", "variant"]
        sums = rows.group_by(by, maintain_order=True).agg(pl.col("drawn").sum())["drawn"]
        above = int((sums > 1).sum())
        yield Claim(
            "terms.vacuous",
            "With the bound of the VC dimension that is known, the capacities exceed 1, so that "
            "(16) and (18) say nothing of J_u ≤ 1; with the dimension itself they may be smaller",
            BOUND,
            f"{above} of {sums.len()} sums of the capacities' upper ends exceed 1; they are "
            f"{between(span(sums))}",
            span(sums),
            # An upper bound certifies nothing of the capacity itself.
            "consistent" if above == sums.len() else "inconclusive",
            TERMS,
        )


def _rank(found: RankCorrelation, of_points: RankCorrelation | None) -> Claim:
    words = "Where client-specific BN takes more of the divergence it gains more accuracy outside"
    several = "s" * (found.groups > 1)
    points = (
        f"{found.n} pair{'s' * (found.n > 1)} of client and seed, {found.groups} client{several}"
    )
    if found.value is None:
        return Claim(
            "gain.rank", words, DIVERGENCE, f"{found.method}, {points}", None, "inconclusive",
            SCATTER,
        )  # fmt: skip
    said = f"Spearman's ρ = {found.value:.2f} over {points}".replace("-", "−")
    said += points_alone(of_points)
    if found.lower is None or found.upper is None:
        said += f"; {found.method}"
        return Claim("gain.rank", words, DIVERGENCE, said, None, "inconclusive", SCATTER)
    verdict = "supported" if found.lower > 0 else "contradicted" if found.upper < 0 else (
        "inconclusive"
    )  # fmt: skip
    ends = (found.lower, found.upper)
    said += f"; {interval_text(*ends)} with clients as the independent ones"
    return Claim("gain.rank", words, DIVERGENCE, said, ends, verdict, SCATTER)


def points_alone(found: RankCorrelation | None) -> str:
    """What the interval would be if seeds of one client were independent."""
    if found is None or found.lower is None or found.upper is None:
        return ""
    return f"; {interval_text(found.lower, found.upper)} if those of one client were independent"


def interval_text(lower: float, upper: float) -> str:
    """An interval of a correlation."""
    return f"[{lower:.2f}, {upper:.2f}]".replace("-", "−")


def _mixtures(summary: Summary) -> Iterator[Claim]:
    for reading, (end, of_what) in READ.items():
        rows = of(summary.mixtures, reading=reading)
        # With aggregated BN all local models are one, and both sides equal.
        yield from _printed(of(rows, bn_policy=POLICIES[1]), f"eq15.printed-fails{end}", of_what)
        rows = rows.drop_nulls("over_convex")
        if rows.height:
            over = rows["over_convex"]
            yield Claim(
                f"eq15.convex{end}",
                "What convexity gives for averaged predictions: Ĵ_s(f_u) ≤ Σ_iΣ_j ω_iω_j Ĵ_i(f_j)"
                f", {of_what}",
                MIXTURE,
                "the Gibbs risk is linear, so that both are equal up to rounding; left less right "
                f"side: {between(span(over))}",
                span(over),
                "violated" if span(over)[1] > ROUNDING else "consistent",
            )


def _printed(rows: pl.DataFrame, identity: str, of_what: str) -> Iterator[Claim]:
    rows = rows.drop_nulls("exceeds")
    if rows.is_empty():
        return
    over = rows["exceeds"]
    fails = int((over > ROUNDING).sum())
    words = "Eq. (15) as printed does not hold for averaged predictions: "
    words += f"Ĵ_s(f_u) exceeds Σ ω_i Ĵ_i(f_i), {of_what}"
    yield Claim(
        identity,
        words if fails else f"{words}, in some federations, which these are not",
        MIXTURE,
        f"left side larger, by more than float rounding, in {fails} of {rows.height} trainings "
        f"with client-specific BN; left less right side: {between(span(over))}",
        span(over),
        "certified" if fails else "consistent",
    )
