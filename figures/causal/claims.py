"""What the section claims: steps of Proposition III.10, the structural model, label shift."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from figures.causal.answer_claims import answers
from figures.causal.graphs import BASE, SEPARATION, Graphs, rule_of, title
from figures.causal.skew import Skew
from figures.causal.structural import Structural
from figures.causal.summary import Summary
from figures.claims import Claim
from figures.experiments.cells import measured
from figures.experiments.comparisons import Compared
from figures.experiments.measures import POLICIES
from figures.experiments.names import BN, client_titles, slugs
from figures.experiments.wide import MEAN, column_of

PROVEN = ("step.", "answers.")
"""Ids (their beginnings) of the statements that are proven: a violation is a bug."""
GRAPHS, STEPS, ANSWERS, BATCHES, DISTANCE, SKEW = (
    f"figures/{name}.pdf"
    for name in ("graphs", "steps", "answers", "batch_size", "distance", "label_shift")
)
PROPOSITION = "UniFed, Proposition III.10, Fig. 2"
TWENTY = "UniFed, Eq. (20), Fig. 2"
MODEL = "derived here; UniFed, Eq. (20), Proposition III.10"
STREAM = "derived here; UniFed, Eqs. (3), (4)"


def judge(summary: Summary) -> Iterator[Claim]:
    """Judge the steps, the model's answers, the networks, the streams."""
    yield from steps(summary.graphs)
    yield from answers(summary.structural)
    yield from networks(summary.structural)
    yield from streams(summary.skew)


def steps(graphs: Graphs) -> Iterator[Claim]:
    """Every step as it was found: what fails is claimed to fail, with the path that shows it.

    A step that holds although a path is open, or fails without one, contradicts itself.
    """
    taken: set[str] = set()
    for row in graphs.telling():
        rule, where = rule_of(row["step"]), f"in the graph of {title(row['graph'])}"
        if row["holds"]:
            by = "" if rule == SEPARATION else f", by {_the(rule)}"
            said = f"{row['statement']} {where}{by}"
        else:
            verb = "do" if rule.startswith("rules") else "does"
            said = f"{_the(rule)} {verb} not give {row['statement']} {where}"
        consistent = row["holds"] == (row["path"] == "")
        path = f"open path {row['path']}" if row["path"] else "no open path"
        source = TWENTY if row["step"].endswith((".X", ".D", ".F")) else PROPOSITION
        verdict = "certified" if consistent else "violated"
        words = said[0].upper() + said[1:]
        figure = GRAPHS if row["graph"] in graphs.names else STEPS
        yield Claim(_identity(row, taken), words, source, path, None, verdict, figure)


def _the(rule: str) -> str:
    return f"the {rule}" if rule.endswith("criterion") else rule


def _identity(row: Mapping[str, str], taken: set[str]) -> str:
    """step.<id>, in other graphs than the paper's of testing step.<graph>.<id>."""
    graph = "" if row["graph"] == BASE else f"{row['graph'].removeprefix('test, ')}."
    plain = re.sub(r"[^a-z0-9.]+", "-", f"{graph}{row['step']}".lower())
    plain = re.sub(r"[.-]*\.[.-]*", ".", plain).strip(".-") or "unnamed"
    name, k = plain, 1
    while name in taken:
        k += 1
        name = f"{plain}-{k}"
    taken.add(name)
    return f"step.{name}"


def networks(found: Structural) -> Iterator[Claim]:
    """Client-specific against aggregated BN by scenario, and what its answers are near to."""
    ids = slugs(found.scenarios)
    for scenario, at in found.where.items():
        served = "" if at.samples is None else f" (test batches of {at.samples} points)"
        under = f"Scenario {scenario}, strength {at.strength:g}: "
        specific = f"client-specific BN{served}"
        start = f"structural.{ids[scenario]}"
        gain, small = found.gains.get(scenario), found.small.get(scenario)
        if gain is not None:
            words = f"{under}{specific} errs less on the unseen client than aggregated BN"
            claim = gain.claim(f"{start}.client-specific", words, MODEL, ANSWERS)
            yield replace(claim, measured=f"{_errors(found, scenario)}: {claim.measured}")
        for name, table, words in (
            ("interventional", found.closer, f"as do(F) does than one with {POLICIES[0]} BN"),
            ("causal", found.causal, "as do(F) does than as P(Y | X)"),
            ("follows", found.follows, "as do(S) does than as do(F)"),
        ):
            if scenario in table:
                words = f"{under}a network with {specific} answers more {words}"
                yield _distance(table[scenario], f"{start}.{name}", words)
        if small is not None:
            words = f"{under}client-specific BN errs more where small test batches have each their "
            words += "own statistics (τ = 0) than where large ones do"
            yield small.claim(f"{start}.batch-size", words, MODEL, BATCHES)


def _errors(found: Structural, scenario: str) -> str:
    """Both mean errors, over the seeds that each policy has."""
    said = []
    for policy in POLICIES:
        one = found.error(scenario, policy)
        if one is not None and one.interval is not None:
            said.append(f"{100 * one.interval.mean:.1f} % with {BN[policy]}")
    return f"{', '.join(said)} BN"


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
