"""What the section claims of trained networks: which terms shrink, and whether accuracy follows."""

from collections.abc import Iterator

import polars as pl

from figures.claims import Claim
from figures.convergence.judgement import span
from figures.experiments.cells import measured
from figures.experiments.comparisons import Compared
from figures.experiments.measures import POLICIES
from figures.experiments.names import client_titles, slugs
from figures.experiments.wide import column_of
from figures.generalization.gaussian_claims import judge_gaussian
from figures.generalization.names import CAPACITIES
from figures.generalization.summary import Summary
from figures.selection import of
from figures.statistics import RankCorrelation

LAYERS, BATCHES, TERMS, SCATTER = (
    f"figures/{name}.pdf" for name in ("layers", "batches", "terms", "scatter")
)
DIVERGENCE = "UniFed, Corollary III.9 and Eqs. (3), (4)"
WHITENING = "derived here; UniFed, Eq. (17)"
BOUND = "UniFed, Corollary III.8, Eq. (16)"
MIXTURE = "derived here; UniFed, Eq. (15)"
ROUNDING = 1e-5
"""Of mean risks of predictions in float32."""


def judge(summary: Summary) -> Iterator[Claim]:
    """Judge divergence, terms, accuracy and Eq. (15), then what Gaussian clients show."""
    yield from _divergences(summary)
    yield from _terms(summary)
    if summary.rank is not None:
        yield _rank(summary.rank, summary.rank_of_points)
    yield from _mixtures(summary)
    yield from judge_gaussian(summary.gaussian)


def _divergences(summary: Summary) -> Iterator[Claim]:
    last, claimed = summary.last, summary.claimed
    words = f"Client-specific BN has a smaller estimated divergence in {last} between seen clients "
    words += "and {} than aggregated BN"
    found = claimed.get("client-specific")
    if found is not None:
        who = "a client from outside"
        yield _claim(found, "divergence.client-specific", words.format(who), DIVERGENCE, LAYERS)
    names, ids = client_titles(summary.clients), slugs(summary.clients)
    if len(summary.clients) > 1:
        for client in summary.clients:
            found = summary.by_client.get(column_of(client))
            if found is not None:
                identity = f"divergence.client.{ids[client]}"
                yield _claim(found, identity, words.format(names[client]), DIVERGENCE, LAYERS)
    for layer, found in summary.by_layer.items():
        text = words.replace(str(last), layer).format("a client from outside")
        identity = f"divergence.{slugs([layer])[layer]}"
        yield _claim(found, identity, text, DIVERGENCE, LAYERS)
    if (found := claimed.get("whitened")) is not None:
        text = f"Full whitening leaves a smaller estimated divergence in {last} than "
        text += "client-specific BN, which scales each unit alone"
        yield _claim(found, "divergence.whitened", text, WHITENING, LAYERS)
    if (found := claimed.get("floor")) is not None:
        text = f"Full whitening leaves more divergence in {last} than estimating means and "
        text += "covariances does between samples of one Gaussian law"
        yield _claim(found, "divergence.whitened-floor", text, WHITENING, LAYERS)
    if (found := claimed.get("batches")) is not None:
        numbers = sorted({t for _, t in summary.after})
        text = f"The divergence falls with the test batches seen: after {numbers[-1]} it is "
        text += f"smaller than after {numbers[0]}"
        yield _claim(found, "divergence.batches", text, DIVERGENCE, BATCHES)


def _terms(summary: Summary) -> Iterator[Claim]:
    if (found := summary.claimed.get("terms")) is not None:
        words = (
            "The terms of (16) without capacities, the divergence from below and the ideal joint "
        )
        words += "error from above, add up to less with client-specific than with aggregated BN"
        yield _claim(found, "terms.sum", words, BOUND, TERMS)
    if (found := summary.claimed.get("gap")) is not None:
        words = (
            "The risk that (18) counts, of each model at home, is below the external error: its "
        )
        words += "other terms have to pay for the way there"
        yield _claim(found, "terms.home-risk", words, DIVERGENCE, TERMS)
    rows = summary.terms.filter(pl.col("split").is_in(CAPACITIES)).drop_nulls("lower")
    if rows.height:
        by = ["held_out", "bn_policy", "variant"]
        sums = rows.group_by(by, maintain_order=True).agg(pl.col("lower").sum())["lower"]
        vacuous = int((sums >= 1).sum())
        yield Claim(
            "terms.vacuous",
            "With the VC dimension of the networks (16) and (18) say nothing of J_u ≤ 1: their "
            "capacities alone exceed 1",
            BOUND,
            f"{vacuous} of {sums.len()} sums of capacities, which are",
            span(sums),
            "certified" if vacuous == sums.len() else "consistent",
            TERMS,
        )


def _claim(found: Compared, identity: str, words: str, source: str, figure: str) -> Claim:
    one = found.difference
    ends = None if one.lower is None or one.upper is None else (one.lower, one.upper)
    said = measured(one, found.adjusted, "")
    return Claim(identity, words, source, said, ends, found.verdict, figure)


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
    ends, said = (found.lower, found.upper), f"{said}; with clients as the independent ones"
    return Claim("gain.rank", words, DIVERGENCE, said, ends, verdict, SCATTER)


def points_alone(found: RankCorrelation | None) -> str:
    """What the interval would be if seeds of one client were independent."""
    if found is None or found.lower is None or found.upper is None:
        return ""
    ends = f"[{found.lower:.2f}, {found.upper:.2f}]".replace("-", "−")
    return f"; {ends} if those of one client were independent"


def _mixtures(summary: Summary) -> Iterator[Claim]:
    # With aggregated BN all local models are one, and both sides equal.
    rows = of(summary.mixtures, bn_policy=POLICIES[1]).drop_nulls(["measured", "printed"])
    if rows.height:
        over = rows["measured"] - rows["printed"]
        fails = int((over > ROUNDING).sum())
        words = "Eq. (15) as printed does not hold for averaged predictions: "
        words += "Ĵ_s(f_u) exceeds Σ ω_i Ĵ_i(f_i)"
        yield Claim(
            "eq15.printed-fails",
            words if fails else f"{words} in some federations, which these are not",
            MIXTURE,
            f"left side larger in {fails} of {rows.height} trainings with client-specific BN; by",
            span(over),
            "certified" if fails else "consistent",
        )
    rows = summary.mixtures.drop_nulls(["measured", "convex"])
    if rows.height:
        over = rows["measured"] - rows["convex"]
        yield Claim(
            "eq15.convex",
            "What convexity gives for averaged predictions: Ĵ_s(f_u) ≤ Σ_iΣ_j ω_iω_j Ĵ_i(f_j)",
            MIXTURE,
            "the Gibbs risk is linear, so that both are equal up to rounding; left less right side",
            span(over),
            "violated" if span(over)[1] > ROUNDING else "consistent",
        )
