"""What the section claims: steps of Proposition III.10, the structural model, label shift."""

import re
from collections.abc import Iterator, Mapping

from scipy import stats

from figures.causal.draw_graphs import TITLES
from figures.causal.graphs import Graphs
from figures.causal.skew import Skew
from figures.causal.structural import Structural
from figures.causal.summary import Summary
from figures.claims import Claim
from figures.experiments.cells import measured
from figures.experiments.comparisons import Compared
from figures.experiments.names import client_titles, slugs
from figures.experiments.wide import MEAN, column_of
from figures.tables import number

PROVEN = ("step.", "structural.simulated")
"""Ids (their beginnings) of the statements that are proven: a violation is a bug."""
GRAPHS, ANSWERS, BATCHES, DISTANCE, SKEW = (
    f"figures/{name}.pdf" for name in ("graphs", "answers", "batch_size", "distance", "label_shift")
)
PROPOSITION = "UniFed, Proposition III.10, Fig. 2"
MODEL = "derived here; UniFed, Eq. (20), Proposition III.10"
STREAM = "derived here; UniFed, Eqs. (3), (4)"
RULES = {"rule1": "rule 1", "rule2": "rule 2", "rule3": "rule 3"}
FALSE_ALARM = 1e-3  # the chance that a right simulation is called wrong


def judge(summary: Summary) -> Iterator[Claim]:
    """Judge the steps, the simulation against the exact values, the networks, the streams."""
    yield from steps(summary.graphs)
    yield from simulation(summary.structural)
    yield from networks(summary.structural)
    yield from streams(summary.skew)


def steps(graphs: Graphs) -> Iterator[Claim]:
    """Every step as it was found: what fails is claimed to fail, with the path that shows it.

    A step that holds although a path is open, or fails without one, contradicts itself.
    """
    ids = slugs(f"{row['step']}\n{row['graph']}" for row in graphs.steps.iter_rows(named=True))
    alone = graphs.steps["step"].value_counts()
    once = set(alone.filter(alone["count"] == 1)["step"])
    for row in graphs.steps.iter_rows(named=True):
        words, rule = row["statement"], rule_of(row["step"])
        where = f"in the graph of {in_words(row['graph'])}"
        if row["holds"]:
            said = f"{words} {where}" if rule is None else f"{words} {where}, by {rule}"
            found, verdict = "no open path", "violated" if row["path"] else "certified"
        else:
            said = f"{rule or 'd-separation'} does not give {words} {where}"
            said = said[0].upper() + said[1:]
            verdict = "certified" if row["path"] else "violated"
            found = "no open path"
        if row["path"]:
            found = f"open path {row['path']}"
        name = slugs([row["step"]])[row["step"]] if row["step"] in once else None
        identity = name or ids[f"{row['step']}\n{row['graph']}"]
        yield Claim(f"step.{identity}", said, PROPOSITION, found, None, verdict, GRAPHS)


def rule_of(step: str) -> str | None:
    """The rule of the do-calculus that a step's id names, if any."""
    return RULES.get(re.split(r"[^a-z0-9]", step.lower())[0])


def in_words(graph: str) -> str:
    """A graph's title as plain text."""
    return TITLES.get(graph, graph).replace("$", "")


def simulation(found: Structural) -> Iterator[Claim]:
    """All simulated errors against the exact ones, by the largest |z| of as many comparisons."""
    z = found.risks["z"].drop_nulls().abs()
    if z.is_empty():
        return
    largest = float(z.to_numpy().max())
    limit = float(stats.norm.ppf(1 - FALSE_ALARM / (2 * z.len())))
    yield Claim(
        "structural.simulated",
        "The structural model simulated gives the errors that are computed exactly: of every "
        "answer, at every strength and size of the batch",
        MODEL,
        f"largest |z| = {number(largest)} of {z.len()} comparisons, where {number(limit)} is "
        f"exceeded with probability {number(FALSE_ALARM, 1)}",
        None,
        "consistent" if largest <= limit else "violated",
        ANSWERS,
    )


def networks(found: Structural) -> Iterator[Claim]:
    """Client-specific against aggregated BN by scenario, and what its answers are near to."""
    ids = slugs(found.scenarios)
    for scenario, at in found.where.items():
        served = "" if at.samples is None else f", statistics of n_t = {at.samples} points"
        under = f"Scenario {scenario}, strength {at.strength:g}: "
        specific = f"client-specific BN{served}"
        start = f"structural.{ids[scenario]}"
        gain, near = found.gains.get(scenario), found.closer.get(scenario)
        causal, small = found.causal.get(scenario), found.small.get(scenario)
        if gain is not None:
            words = f"{under}{specific}, errs less on the unseen client than aggregated BN"
            yield gain.claim(f"{start}.client-specific", words, MODEL, ANSWERS)
        if near is not None:
            words = f"{under}a network with {specific}, answers more as do(F) does than one with "
            words += "aggregated BN"
            yield _distance(near, f"{start}.interventional", words)
        if causal is not None:
            words = f"{under}a network with {specific}, answers more as do(F) does than as P(Y | X)"
            yield _distance(causal, f"{start}.causal", words)
        if small is not None:
            words = f"{under}client-specific BN errs more with statistics of few points than of "
            yield small.claim(f"{start}.batch-size", f"{words}many", MODEL, BATCHES)


def _distance(found: Compared, identity: str, words: str) -> Claim:
    """The same of a difference of mean |p_net − p_answer|, which has no unit."""
    one = found.difference
    ends = None if one.lower is None or one.upper is None else (one.lower, one.upper)
    said = measured(one, found.adjusted, "")
    return Claim(identity, words, MODEL, said, ends, found.verdict, DISTANCE)


def streams(found: Skew) -> Iterator[Claim]:
    """The harm of a skewed stream at the largest ratio, and whether adapting is still worth it."""
    if not found.worst and not found.ahead:
        return
    ratio = found.ratios[-1]
    when = f"Where the commonest class is {ratio:g} times as frequent as the rarest, "
    titles = client_titles(found.clients)
    names = {column_of(name): title for name, title in titles.items()}
    ids = {column_of(name): slug for name, slug in slugs(found.clients).items()}
    mean = f"mean over {len(found.clients)} clients held out in turn"
    for column in found.columns:
        who = mean if column == MEAN else f"{names[column]} held out"
        tail = "" if column == found.columns[0] else f".{ids[column]}"
        for table, name, words in (
            (found.worst, "harm", "test-time BN loses accuracy against statistics of a balanced"),
            (found.ahead, "server", "test-time BN stays more accurate than the server's"),
        ):
            yield from _stream(table, column, f"label-shift.{name}{tail}", f"{when}{words}", who)


def _stream(
    table: Mapping[str, Compared], column: str, identity: str, words: str, who: str
) -> Iterator[Claim]:
    if column in table:
        rest = "stream" if words.endswith("balanced") else "statistics"
        yield table[column].claim(identity, f"{words} {rest} ({who})", STREAM, SKEW)
