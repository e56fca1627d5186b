"""Claims about the structural model: simulated, against Bayes, do(S) against the domain cut off.

The records' "do_f" is P(Y | F) with the domain cut off: P(Y | do(F)) if F causes Y as UniFed draws.
"""

import math
from collections.abc import Iterator

import polars as pl
from scipy import stats

from figures.causal.structural import EQUAL, UNEQUAL, Structural
from figures.claims import Claim
from figures.experiments.names import slugs
from figures.selection import of
from figures.tables import number

ANSWERS, BATCHES = "figures/answers.pdf", "figures/batch_size.pdf"
SOURCE = "derived here; UniFed, Eq. (20), Proposition III.10"
CUT = "P(Y | F) with the domain cut off"
FALSE_ALARM = 1e-3  # the chance that a right simulation is called wrong
ROUNDING = 1e-9  # of risks, beside the numerical error that the records give
RISK = 1e-9  # the chance that a certificate from simulated points is wrong


def answers(found: Structural) -> Iterator[Claim]:
    """Judge the exact errors by one another and by the simulation."""
    yield from _simulation(found)
    yield from _bayes(found)
    ids = slugs(found.scenarios)
    for scenario in found.scenarios:
        rows = _beside(found, scenario)
        if rows.height and scenario in EQUAL:
            yield _equal(rows, scenario, ids[scenario])
        if rows.height and scenario in UNEQUAL:
            yield _unequal(rows, scenario, ids[scenario], found.simulations)


def _simulation(found: Structural) -> Iterator[Claim]:
    """All simulated errors against the exact ones, by the largest |z| of as many comparisons."""
    z = found.risks["z"].drop_nulls().abs()
    if z.is_empty():
        return
    largest = float(z.to_numpy().max())
    limit = float(stats.norm.ppf(1 - FALSE_ALARM / (2 * z.len())))
    yield Claim(
        "answers.simulated",
        "The structural model simulated gives the errors that are computed exactly: of every "
        "answer, at every strength and size of the batch",
        SOURCE,
        f"largest |z| = {number(largest)} of {z.len()} comparisons, where {number(limit)} is "
        f"exceeded with probability {number(FALSE_ALARM, 1)} at most",
        None,
        "consistent" if largest <= limit else "violated",
        ANSWERS,
    )


def _bayes(found: Structural) -> Iterator[Claim]:
    """No answer errs less than the Bayes rule of the unseen domain."""
    exact = found.risks.drop_nulls("exact")
    where = ["scenario", "strength"]
    best = of(exact, answer="bayes").select(
        *where, pl.col("exact_lower").alias("best"), pl.col("exact").alias("bayes")
    )
    others = exact.filter(pl.col("answer") != "bayes").join(best, on=where)
    if others.is_empty():
        return
    margin = float((others["exact_upper"] - others["best"]).to_numpy().min())
    least = float((others["exact"] - others["bayes"]).to_numpy().min())
    yield Claim(
        "answers.bayes",
        "No answer errs less on the unseen client than the Bayes rule that knows its domain",
        SOURCE,
        f"{number(100 * least, 2)} points more at least, of {others.height} errors",
        None,
        "consistent" if margin >= -ROUNDING else "violated",
        ANSWERS,
    )


def _beside(found: Structural, scenario: str) -> pl.DataFrame:
    """do(S), with the population's statistics, beside the domain cut off, by strength."""
    rows = of(found.risks, scenario=scenario).filter(pl.col("samples").is_null())
    columns = ["strength", "exact", "exact_lower", "exact_upper", "simulated"]
    do_s, do_f = (of(rows, answer=a).drop_nulls("exact").select(columns) for a in ("do_s", "do_f"))
    return do_s.join(do_f, on="strength", suffix="_f").sort("strength")


def _equal(rows: pl.DataFrame, scenario: str, name: str) -> Claim:
    """Where domains are one location-scale family with one law of labels, do(S) cuts them off."""
    apart = (rows["exact"] - rows["exact_f"]).abs()
    width = (rows["exact_upper"] - rows["exact_lower"]) + (
        rows["exact_upper_f"] - rows["exact_lower_f"]
    )
    same = bool((apart <= width + ROUNDING).all())
    return Claim(
        f"answers.{name}.do-s",
        f"Scenario {scenario}: do(S) with the population's statistics errs as {CUT} does, since "
        "domains differ by location and scale of the features alone",
        SOURCE,
        f"at most {number(100 * float(apart.to_numpy().max()), 1)} points apart, at "
        f"{rows.height} strength{'s' * (rows.height > 1)}",
        None,
        "consistent" if same else "violated",
        ANSWERS,
    )


def _unequal(rows: pl.DataFrame, scenario: str, name: str, simulations: int | None) -> Claim:
    """Where the label moves statistics differently per domain, do(S) does not cut it off.

    "do_f" is a closed form, do(S) a quadrature whose error is estimated and not proven: the
    certificate is Hoeffding's, of do(S)'s simulated points.
    """
    last = rows.row(-1, named=True)
    exact = (
        last["exact_lower"] - last["exact_upper_f"],
        last["exact_upper"] - last["exact_lower_f"],
    )
    apart, behind = -math.inf, ""
    if last["simulated"] is not None and simulations:
        radius = math.sqrt(math.log(1 / RISK) / (2 * simulations))
        apart = last["simulated"] - radius - last["exact_upper_f"]
        behind = f"; by {number(100 * apart, 2)} points at least with probability 1 − {RISK:.0e}, "
        behind += f"from {simulations} simulated points"
    verdict = "certified" if apart > 0 else "violated" if exact[1] < 0 else "consistent"
    return Claim(
        f"answers.{name}.do-s",
        f"Scenario {scenario}: do(S) does not cut the domain off, however many points are behind "
        f"the statistics: it errs more than {CUT}",
        SOURCE,
        f"{number(100 * last['exact'])} % against {number(100 * last['exact_f'])} % at strength "
        f"{last['strength']:g}, {number(100 * (last['exact'] - last['exact_f']))} points more"
        f"{behind if apart > 0 else ''}",
        (100 * exact[0], 100 * exact[1]),
        verdict,
        ANSWERS,
    )
