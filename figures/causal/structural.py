"""The structural model's answers, exact and simulated, and the networks trained on it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from scipy import stats

from figures.experiments.cells import Cell, cells, difference
from figures.experiments.comparisons import Compared, compare
from figures.experiments.measures import POLICIES, SAMPLES
from figures.selection import of

ANSWERS = ("observational", "backdoor", "do_f", "do_s", "bayes")
EQUAL = ("shift", "feature scales")
"""Scenarios in which do(S) cuts the domain off: it differs by location and scale alone."""
UNEQUAL = ("label shift", "confounded")
"""Scenarios in which it is not."""
_Z = float(stats.norm.ppf(0.975))
_KEYS = ["scenario", "answer", "strength", "samples"]
_RUN: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(("run", "scenario", "bn_policy", "held_out", "status"), pl.String),
    "strength": pl.Float64,
    **dict.fromkeys(("seed", "diverged_in_round"), pl.Int64),
}


@dataclass(frozen=True)
class Where:
    """Where the networks of a scenario are compared: strength, and points in a test batch."""

    strength: float
    samples: int | None


@dataclass(frozen=True)
class Structural:
    """What the model answers and what networks do, on the client that was not trained on.

    Attributes:
        scenarios: in the order of the records.
        risks: scenario, answer, strength, samples (null: the population's statistics), exact and
            simulated errors with their ends, z (how many standard errors lie between them).
        errors: (scenario, policy, strength, samples) -> error per seed.
        alone: the same of client-specific BN where each batch has its own statistics (τ = 0).
        distances: (scenario, policy, strength, samples, answer) -> mean |p_net − p_answer|.
        where: scenario -> where its networks are compared.
        gains: scenario -> error of aggregated minus client-specific BN, one family.
        closer: scenario -> distance to P(Y | F) with the domain cut off ("do_f"), aggregated minus
            client-specific BN, one family.
        causal: scenario -> client-specific BN: distance to P(Y | X) minus to "do_f", one family.
        follows: the same of "do_f" minus do(S), in scenarios in which these differ.
        small: scenario -> client-specific BN, each batch alone: error with the smallest minus with
            the largest batches, one family.
        simulations: points simulated for each answer, where the manifests say.
        diverged: a sentence for each training that diverged.
    """

    scenarios: list[str]
    risks: pl.DataFrame
    errors: dict[tuple[Any, ...], Cell]
    alone: dict[tuple[Any, ...], Cell]
    distances: dict[tuple[Any, ...], Cell]
    where: dict[str, Where]
    gains: dict[str, Compared]
    closer: dict[str, Compared]
    causal: dict[str, Compared]
    follows: dict[str, Compared]
    small: dict[str, Compared]
    simulations: int | None
    diverged: list[str]

    @property
    def near(self) -> list[str]:
        """The answers that networks' own were held against, in the usual order."""
        there = {key[4] for key, cell in self.distances.items() if cell.values}
        return [answer for answer in ANSWERS if answer in there]

    def error(self, scenario: str, policy: str) -> Cell | None:
        """A policy's error where the scenario's networks are compared."""
        return self.errors.get(_key(scenario, policy, self.where.get(scenario)))

    def gains_by_strength(self, scenario: str) -> dict[float, float]:
        """Strength -> mean error of aggregated minus client-specific BN, served as in `where`."""
        at = self.where.get(scenario)
        if at is None:
            return {}
        found: dict[float, float] = {}
        strengths = {key[2] for key in self.errors if key[0] == scenario}
        for strength in sorted(strengths - {None}):
            first, second = _two(self.errors, scenario, Where(strength, at.samples))
            one = difference(first, second) if first and second else None
            if one is not None:
                found[strength] = one.mean
        return found

    def distance(self, scenario: str, policy: str, answer: str) -> Cell | None:
        """The same of the distance to an answer."""
        return self.distances.get((*_key(scenario, policy, self.where.get(scenario)), answer))


def summarise_structural(
    rows: pl.DataFrame, manifests: Mapping[str, Mapping[str, Any]]
) -> Structural:
    """Summarise the records of the studies "structural" and "structural_training"."""
    configs = {run: m["config"] for run, m in manifests.items()}
    ours = {run for run, config in configs.items() if config["study"] == "structural"}
    risks = _risks(rows.filter(pl.col("run").is_in(list(ours))))
    behind = _trainings(manifests)
    frame = rows.join(behind, on="run", how="inner", maintain_order="left")
    errors = _cells(of(frame, metric="risk"), behind, ["samples"])
    alone = _cells(of(frame, metric="batch_risk"), behind, ["samples"])
    distances = _cells(of(frame, metric="distance"), behind, ["samples", "note"])
    scenarios = list(dict.fromkeys([*risks["scenario"], *behind["scenario"]]))
    known = {s: set(of(risks, scenario=s)["strength"]) for s in scenarios}
    where = {s: at for s in scenarios if (at := _where(s, errors, known[s])) is not None}
    sizes = [configs[run].get("simulations") for run in ours]
    unequal = {s: at for s, at in where.items() if s in UNEQUAL}
    others = {s: at for s, at in where.items() if s not in UNEQUAL}
    return Structural(
        scenarios,
        risks,
        errors,
        alone,
        distances,
        where,
        compare({s: _two(errors, s, at) for s, at in where.items()}),
        compare({s: _two(distances, s, at, "do_f") for s, at in where.items()}),
        compare(
            {s: _answers(distances, s, at, "observational", "do_f") for s, at in others.items()}
        ),
        compare({s: _answers(distances, s, at, "do_f", "do_s") for s, at in unequal.items()}),
        compare({s: _fewest(alone, s, at) for s, at in where.items()}),
        max((n for n in sizes if n is not None), default=None),
        _lost(behind),
    )


def _risks(rows: pl.DataFrame) -> pl.DataFrame:
    """Exact and simulated errors beside one another, and z, which uses the nearer half-width."""
    named = rows.rename({"split": "scenario", "variant": "answer", "parameter": "strength"})
    exact, simulated = (
        of(named, metric=metric)
        .select(
            *_KEYS,
            pl.col("value").alias(name),
            pl.col("lower").alias(f"{name}_lower"),
            pl.col("upper").alias(f"{name}_upper"),
        )
        .unique(_KEYS, keep="first", maintain_order=True)
        for metric, name in (("risk", "exact"), ("risk_simulated", "simulated"))
    )
    # Joins leave out nulls: -1 stands for the population's statistics meanwhile.
    exact, simulated = (t.with_columns(pl.col("samples").fill_null(-1)) for t in (exact, simulated))
    both = exact.join(simulated, on=_KEYS, how="full", coalesce=True, maintain_order="left_right")
    both = both.with_columns(pl.when(pl.col("samples") >= 0).then(pl.col("samples")))
    ahead = pl.col("exact") - pl.col("simulated")
    # Intervals of proportions are not symmetric: the half that faces the exact value counts.
    half = pl.when(ahead > 0).then(pl.col("simulated_upper") - pl.col("simulated"))
    half = half.otherwise(pl.col("simulated") - pl.col("simulated_lower"))
    z = pl.when(ahead == 0).then(0.0).when(half > 0).then(_Z * ahead / half)
    return both.with_columns(z.alias("z"))


def _trainings(manifests: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """One row per training on the model, those that diverged too."""
    found = []
    for run, manifest in manifests.items():
        config = manifest["config"]
        if config["study"] != "structural_training":
            continue
        known = {**config, "run": run, "status": manifest["status"], "held_out": None}
        known["diverged_in_round"] = manifest.get("diverged_in_round")
        found.append({name: known.get(name) for name in _RUN})
    return pl.DataFrame(found, schema=_RUN)


def _cells(values: pl.DataFrame, behind: pl.DataFrame, within: list[str]) -> dict[Any, Cell]:
    """(scenario, policy, strength, *within) -> cell; what diverged has a cell of its own."""
    found: dict[Any, Cell] = {}
    by = ["scenario", "bn_policy", "strength"]
    for group in behind.select(by).unique(maintain_order=True).rows():
        own = dict(zip(by, group, strict=True))
        there, runs = of(values, **own), of(behind, **own)
        found |= cells(there, runs, by, within)
        lost = of(runs, status="diverged")
        if there.is_empty() and lost.height:
            gone = dict(lost["seed", "diverged_in_round"].rows())
            found[(*group, *[None] * len(within))] = Cell({}, gone)
    return {key: cell for key, cell in found.items() if cell.values or cell.diverged}


def _where(scenario: str, errors: Mapping[Any, Cell], known: set[Any]) -> Where | None:
    """The largest strength trained with (of those that answers are known at, if any).

    With test batches of 32, or the largest that there are.
    """
    keys = [key for key, cell in errors.items() if key[0] == scenario and cell.values]
    if not keys:
        return None
    trained = {key[2] for key in keys}
    strength = max(trained & known or trained)
    sizes = [key[3] for key in keys if key[1] == POLICIES[1] and key[2] == strength]
    served = [n for n in sizes if n is not None]
    return Where(strength, SAMPLES if SAMPLES in served else max(served, default=None))


def _key(scenario: str, policy: str, at: Where | None) -> tuple[Any, ...]:
    if at is None:
        return (scenario, policy, None, None)
    return (scenario, policy, at.strength, at.samples if policy == POLICIES[1] else None)


def _two(table: Mapping[Any, Cell], scenario: str, at: Where, *more: str) -> tuple[Any, Any]:
    """The aggregated and the client-specific side."""
    first, second = (table.get((*_key(scenario, policy, at), *more)) for policy in POLICIES)
    return first, second


def _answers(
    table: Mapping[Any, Cell], scenario: str, at: Where, first: str, second: str
) -> tuple[Any, Any]:
    """Client-specific BN: the distances to two answers."""
    own = _key(scenario, POLICIES[1], at)
    return table.get((*own, first)), table.get((*own, second))


def _fewest(table: Mapping[Any, Cell], scenario: str, at: Where) -> tuple[Any, Any]:
    """Client-specific BN with the smallest and with the largest batches."""
    start = (scenario, POLICIES[1], at.strength)
    sizes = sorted(k[3] for k in table if k[:3] == start and k[3] is not None)
    if len(sizes) < 2:
        return None, None
    return table[(*start, sizes[0])], table[(*start, sizes[-1])]


def _lost(behind: pl.DataFrame) -> list[str]:
    found = []
    for run in of(behind, status="diverged").iter_rows(named=True):
        policy = f"{(run['bn_policy'] or 'unknown').replace('_', '-')} BN"
        when = f" in round {run['diverged_in_round']}" if run["diverged_in_round"] else ""
        strength = "" if run["strength"] is None else f", strength {run['strength']:g}"
        found.append(
            f"This training on the structural model diverged{when} and is left out: "
            f"{run['scenario']}{strength}, {policy}, seed {run['seed']}."
        )
    return found
