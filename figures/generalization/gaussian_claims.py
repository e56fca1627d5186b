"""What Gaussian clients prove: the bound, what whitening takes away, what per-unit BN leaves."""

from collections.abc import Iterator

import polars as pl

from figures.claims import Claim
from figures.convergence.judgement import overall, span
from figures.generalization.gaussian import MAIN, Gaussian
from figures.generalization.names import between
from figures.selection import of
from figures.tables import number

TERMS, RESIDUAL = "figures/gaussian_terms.pdf", "figures/residual.pdf"
NOTHING = 1e-6
"""A divergence below this is what rounding may leave."""
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
    for setting in found.settings:
        yield from _per_unit(of(found.draws, setting=setting), setting)


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


def _per_unit(draws: pl.DataFrame, setting: str) -> Iterator[Claim]:
    rows = of(draws, variant="per_unit").filter(pl.col("parameter") > 1)
    if rows.is_empty():
        return
    shift, directions = setting.split(", ")
    if shift == "scale":
        yield _scales(rows)
        return
    more = "" if setting == MAIN else f".{directions}"
    kind = "" if setting == MAIN else f" and units see them in {directions} directions"
    left = (rows["lower"] > 0).fill_null(False)
    largest = of(rows, parameter=rows["parameter"].max())
    ends = span(largest["lower"], largest["upper"])
    yield Claim(
        f"gaussian.per-unit-residual{more}",
        "(18) does not hold with per-unit BN: divergence is left between Gaussian clients whose "
        f"covariances differ in their axes{kind}, since only the variances of the units become "
        "equal",
        LAWS,
        f"d_HΔH certified above 0 in {int(left.sum())} of {rows.height} cases with κ > 1; at κ = "
        f"{largest['parameter'][0]:g} mean {number(largest['value'].mean())}, range "
        f"{between(ends)}",
        ends,
        "certified" if left.all() else "consistent",
        RESIDUAL,
    )
    both = rows.join(of(draws, variant="raw"), on=["parameter", "draw"], suffix="_raw")
    adds = int((both["lower"] > both["upper_raw"]).fill_null(False).sum())
    if adds:
        ratio = span((both["value"] / both["value_raw"]).filter(both["value_raw"] > 0))
        yield Claim(
            f"gaussian.per-unit-adds{more}",
            "Per-unit BN may even add divergence between Gaussian clients whose covariances "
            f"differ in their axes{kind}",
            LAWS,
            f"d_HΔH certified above that of the raw inputs in {adds} of {both.height} cases with "
            f"κ > 1; ratio of the two: {between(ratio)}",
            ratio,
            "certified",
            RESIDUAL,
        )


def _scales(rows: pl.DataFrame) -> Claim:
    """Where clients differ in nothing else, per-unit BN is a full whitening of their difference."""
    gone = (rows["upper"] <= NOTHING).fill_null(False)
    return Claim(
        "gaussian.per-unit-scale",
        "Where Gaussian clients differ in the scales of their units alone, per-unit BN leaves no "
        "divergence, as (18) asks",
        LAWS,
        f"d_HΔH certified below 10⁻⁶ in {int(gone.sum())} of {rows.height} cases with κ > 1",
        None,
        "violated"
        if (rows["lower"] > NOTHING).any()
        else "certified"
        if gone.all()
        else "consistent",
        RESIDUAL,
    )
