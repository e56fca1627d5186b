"""What Gaussian clients prove: the bound, what whitening takes away, what per-unit BN leaves."""

from collections.abc import Iterator

import polars as pl

from figures.claims import Claim
from figures.convergence.judgement import overall, span
from figures.generalization.gaussian import Gaussian
from figures.selection import of
from figures.tables import number

TERMS, RESIDUAL = "figures/gaussian_terms.pdf", "figures/residual.pdf"
VERDICTS = {1.0: "certified", 0.0: "consistent", -1.0: "violated"}
BOUND = "UniFed, Corollaries III.8 and III.9, Eqs. (16), (18)"
LAWS = "derived here; UniFed, Eqs. (17), (18)"


def judge_gaussian(found: Gaussian) -> Iterator[Claim]:
    """Judge what the records speak about."""
    if found.holds.height:
        verdicts = _verdicts(found.holds)
        certified = int((verdicts == "certified").sum())
        yield Claim(
            "gaussian.bound",
            "Gaussian clients: J_u(f) is at most (16) for raw and per-unit features and (18) for "
            "whitened ones, with all terms exact but the empirical risk",
            BOUND,
            f"{certified} of {verdicts.len()} cases certified",
            None,
            overall(verdicts),
            TERMS,
        )
    yield from _ideal_error(found.without)
    yield from _whitened(of(found.draws, variant="whitened"))
    yield from _per_unit(found.draws)


def _verdicts(rows: pl.DataFrame) -> pl.Series:
    return rows["value"].replace_strict(VERDICTS, default="consistent", return_dtype=pl.String)


def _ideal_error(rows: pl.DataFrame) -> Iterator[Claim]:
    """Whether the ideal joint error could be left out; where labels need it, it cannot."""
    for (teacher,), part in of(rows, variant="whitened").group_by("teacher", maintain_order=True):
        if teacher != "input":
            continue
        fails = int((part["value"] < 0).sum())
        yield Claim(
            "gaussian.ideal-error",
            "(18) does not hold without its ideal joint error where labels depend on the inputs: "
            "whitening makes another rule of them for each client",
            LAWS,
            f"without it J_u(f) is certified to exceed the sum in {fails} of {part.height} cases",
            None,
            "certified" if fails else "consistent",
            TERMS,
        )


def _whitened(rows: pl.DataFrame) -> Iterator[Claim]:
    if rows.is_empty():
        return
    exact = bool((rows["upper"] == 0).fill_null(False).all())
    verdict = "violated" if (rows["lower"] > 0).any() else "certified" if exact else "consistent"
    yield Claim(
        "gaussian.whitened-zero",
        "Full whitening leaves no divergence between Gaussian clients, whatever their covariances",
        LAWS,
        f"d_HΔH over {rows.height} draws and spreads at most {number(rows['upper'].max())}",
        None,
        verdict,
        RESIDUAL,
    )


def _per_unit(draws: pl.DataFrame) -> Iterator[Claim]:
    rows = of(draws, variant="per_unit").filter(pl.col("parameter") > 1)
    if rows.is_empty():
        return
    left = (rows["lower"] > 0).fill_null(False)
    largest = of(rows, parameter=rows["parameter"].max())
    yield Claim(
        "gaussian.per-unit-residual",
        "(18) does not hold with per-unit BN: divergence is left between Gaussian clients whose "
        "covariances differ, since only the variances of the units become equal",
        LAWS,
        f"d_HΔH certified above 0 in {int(left.sum())} of {rows.height} draws with κ > 1; mean "
        f"{number(largest['value'].mean())} at κ = {largest['parameter'][0]:g}, range",
        span(largest["lower"], largest["upper"]),
        "certified" if left.all() else "consistent",
        RESIDUAL,
    )
    both = rows.join(of(draws, variant="raw"), on=["parameter", "draw"], suffix="_raw")
    more = int((both["lower"] > both["upper_raw"]).fill_null(False).sum())
    if more:
        ratio = (both["value"] / both["value_raw"]).filter(both["value_raw"] > 0)
        yield Claim(
            "gaussian.per-unit-adds",
            "Per-unit BN may even add divergence between Gaussian clients",
            LAWS,
            f"d_HΔH certified above that of the raw inputs in {more} of {both.height} draws with "
            "κ > 1; ratio of the two",
            span(ratio),
            "certified",
            RESIDUAL,
        )
