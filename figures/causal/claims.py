"""What the section claims: steps of Proposition III.10, the structural model, label shift."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from figures.causal.answer_claims import CUT, answers
from figures.causal.skew import Skew
from figures.causal.step_claims import steps
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
ANSWERS, BATCHES, DISTANCE, SKEW = (
    f"figures/{name}.pdf" for name in ("answers", "batch_size", "distance", "label_shift")
)
MODEL = "derived here; UniFed, Eq. (20), Proposition III.10"
STREAM = "derived here; UniFed, Eqs. (3), (4)"


def judge(summary: Summary) -> Iterator[Claim]:
    """Judge the steps, the model's answers, the networks, the streams."""
    yield from steps(summary.graphs)
    yield from answers(summary.structural)
    yield from networks(summary.structural)
    yield from streams(summary.skew)


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
            said = f"{_errors(found, scenario)}: {claim.measured}{_range(found, scenario)}"
            yield replace(claim, measured=said)
        for name, table, words in (
            ("interventional", found.closer, f"as {CUT} does than one with {POLICIES[0]} BN"),
            ("causal", found.causal, f"as {CUT} does than as P(Y | X)"),
            ("follows", found.follows, f"as do(S) does than as {CUT}"),
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


def _range(found: Structural, scenario: str) -> str:
    """The same difference over all strengths, since the strongest alone is judged."""
    means = found.gains_by_strength(scenario)
    if len(means) < 2:
        return ""
    low, high = (f"{100 * f(means.values()):+.1f}".replace("-", "−") for f in (min, max))
    said = f"; over strengths {min(means):g} to {max(means):g} from {low} to {high} points"
    worse = [f"{strength:g}" for strength, mean in means.items() if mean < 0]
    if 0 < len(worse) < len(means):
        said += f", client-specific BN erring more at {', '.join(worse)}"
    return f"{said} (not judged)"


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
