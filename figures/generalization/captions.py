"""Captions of the section's figures: what is shown, what the intervals are, and n."""

from figures.experiments.cells import Cell
from figures.experiments.wide import MEAN, WIDEST, column_of
from figures.experiments.words import counts, hollow, means
from figures.generalization.claims import points_alone
from figures.generalization.gaussian import Gaussian
from figures.generalization.summary import Summary
from figures.statistics import RankCorrelation

LAYERS = (
    "d(h) = 2(1 − 2ε) of a half-space that is trained to tell the features of a seen client from "
    "those of the client held out, ε its balanced error on images that it was not trained with: "
    "no more, in expectation, than d_H, the largest of all; not clipped at 0. Mean over the seen "
    "clients; {means}, cut beyond 2. Raw inputs (dotted: their level): pixels in 100 principal "
    "directions. Layers: what comes to batch norm, normalised; of convolutions the mean over 2 × "
    "2 cells. Aggregated BN: by the server's statistics. Client-specific BN, as deployed: by the "
    "seen clients' running statistics, averages over local weights before aggregation, those of "
    "the client held out by Eqs. (3), (4). Per-unit BN: by mean and variances, full whitening: "
    "by mean and covariance, of each client's training images at this layer.{floor}"
)
FLOOR = (
    " Dashes: the same estimates for samples of one Gaussian law, whose statistics are estimated "
    "from as many other draws as the clients' are, so that nothing but estimation divides them. "
    "A half-space is nearly blind to correlations{pairs}."
)
PAIRS = ": the next figure has pairs of networks"
LAST = (
    "Features of {last}. (a) d(h) of a half-space, as in the figure by layer; it is nearly blind "
    "to correlations. (b) d_HΔH of two-layer networks, as the bounds have it: 2(P_A − P_B) of the "
    "points on which a pair found by search disagrees, on images that it was not found with. Both "
    "from below, in expectation. Per-unit BN and full whitening have the same statistics, of each "
    "client's training images, and differ in the correlations alone. Ticks: the same estimates "
    "for samples of one Gaussian law whose statistics are estimated from as many draws. A row for "
    "each client held out, mean over the seen clients; {means}, cut beyond 2."
)
TERMS = (
    "Terms of (16), and of (18) as printed, which leaves the divergence out, per client held out, "
    "mean over seeds; grey whiskers: interval of their sum over seeds. Striped: known from below "
    "only, by classifiers on held-out images (ends are means over seeds, without the guarantee "
    "of one), so that the sum is a diagnostic, not a bound. Dotted: known from above only, by one "
    "classifier for all, with labels of the client held out: an oracle's. Diamonds: J_u(f_u), the "
    "Gibbs risk of the local models' averaged predictions on its test images, which the bound "
    "speaks of; {means}. Circles: 0-1 error of the network that is served, {served}. (b) The "
    "capacities that the statements add, at most, by an upper bound of the network's VC "
    "dimension: from 1 (dotted) on they say nothing. Whitened: the divergence after full "
    "whitening, with the risk of the same network, not retrained."
)
BATCHES = (
    "d(h) of {last} with client-specific BN after t test batches have moved the statistics of the "
    "client held out by Eqs. (3), (4), measured on other images of it. Seen clients by statistics "
    "of their training images; thin: by their running statistics, as deployed. Dashed: aggregated "
    "BN; dotted: estimation alone, samples of one Gaussian law with per-unit BN. Mean over the "
    "seen clients; {means}."
)
SCATTER = (
    "Left to right: what client-specific BN, as it is served, takes from d(h) of {last}, mean "
    "over the seen clients: how much less a half-space tells seen clients' features by running "
    "statistics, stale ones included, from those of the client held out by Eqs. (3), (4) than "
    "with aggregated BN; no more than a lower bound of d_H. Upwards: what it gains in accuracy on "
    "the client held out (test-time BN against aggregated BN). A mark for each client held out "
    "and seed; lines join a client's marks to their mean. {rank} The table of rank correlations "
    "has that of per-unit BN with fresh statistics beside it."
)
GAUSSIAN = (
    "{who}. S_i have eigenvalues in [1/κ, κ] in random bases. Bars: mean of the terms of (16), "
    "whitened of (18), each at its upper end, so that a bar ends at the bound; divergence and "
    "ideal joint error are exact up to enclosures. Diamonds: exact risk of the classifier on the "
    "client from outside, mean and range. Dotted: 1, beyond which a bound is vacuous. Labels by "
    "whitened features: Eq. (17) holds; by inputs: whitening makes another rule of them for each "
    "client, which the ideal joint error pays for."
)
RESIDUAL = (
    "{who}. Exact d_HΔH of half-spaces through the origin between seen clients and the one from "
    "outside, of x, of BN of each unit of Vx, and of fully whitened Vx. Random axes: S_i have "
    "eigenvalues in [1/κ, κ] in random bases, V is random or orthogonal. Units' scales alone: "
    "VS_iVᵀ differ by a diagonal scaling, which is what per-unit BN undoes. Bold: mean over "
    "draws; thin: every draw. Per-unit BN makes the variance of every unit 1 and leaves "
    "correlations: unless these are equal (18) needs full whitening."
)


def layers_caption(summary: Summary, pairs: bool) -> str:
    """Of the divergence by layer; `pairs` tells whether the next figure is of these."""
    words = _means(list(summary.divergence.values()))
    floor = FLOOR.format(pairs=PAIRS * pairs) if summary.floor else ""
    return LAYERS.format(means=words, floor=floor) + _fewer(summary)


def last_caption(summary: Summary) -> str:
    """Of the last layer's divergence."""
    cells = [c for found in (summary.divergence, summary.pairs) for c in found.values()]
    return LAST.format(last=summary.last, means=_means(cells)) + _fewer(summary)


def terms_caption(summary: Summary) -> str:
    """Of the bound's terms."""
    drawn = [cell for (_, c), cell in summary.risks.items() if c != MEAN]
    number = max(counts(drawn), default=0)
    words = means(counts(drawn)) if number > 1 else "one seed, with Hoeffding's 95 % interval"
    served = "with the server's statistics (aggregated) or test-time BN"
    return TERMS.format(means=words, served=served) + _fewer(summary)


def batches_caption(summary: Summary) -> str:
    """Of the divergence by test batches."""
    cells = list(summary.after.values())
    return BATCHES.format(last=summary.last, means=_means(cells)) + _fewer(summary)


def scatter_caption(summary: Summary) -> str:
    """Of divergence and accuracy."""
    if summary.rank is None:
        return ""
    return SCATTER.format(last=summary.last, rank=_rank(summary.rank, summary.rank_of_points))


def gaussian_caption(found: Gaussian, text: str) -> str:
    """Of either figure of Gaussian clients."""
    facts = found.facts
    who = ["Gaussian clients"]
    for name, words in (("clients", "{} seen"), ("dimension", "d = {}"), ("draws", "{} draws")):
        if facts[name] is not None:
            who.append(words.format(facts[name]))
    if facts["samples"] is not None:
        who.append(f"n = {facts['samples']:,} points")
    return text.format(who=", ".join(who))


def _means(cells: list[Cell]) -> str:
    return f"{means(counts(cells))}{hollow(cells)}"


def _rank(found: RankCorrelation, of_points: RankCorrelation | None) -> str:
    if found.value is None:
        return f"There is no rank correlation: {found.method}."
    if found.lower is None:
        return (
            f"Spearman's ρ has no interval: points of one client are not independent, and of "
            f"{found.method}{points_alone(of_points)}."
        )
    return (
        "The interval of Spearman's ρ (Bonett and Wright) counts the "
        f"{found.groups} clients, not the {found.n} marks: those of one client are not independent"
        f"{points_alone(of_points)}."
    )


def _fewer(summary: Summary) -> str:
    more = len(summary.clients) - WIDEST
    return " The tables have more clients." if more > 0 else ""


def panel_titles(summary: Summary, names: dict[str, str]) -> dict[str, str]:
    """Column -> title of its panel."""
    return {column_of(c): f"{names[c]} held out" for c in summary.clients[:WIDEST]}
