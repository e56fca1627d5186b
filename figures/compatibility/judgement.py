"""The claims of Table I: client-specific BN inside, outside and on the way, method by method."""

from collections.abc import Iterator

from figures.claims import Claim
from figures.compatibility.summary import AGGREGATED, SPECIFIC, Row, Summary
from figures.experiments.cells import measured
from figures.style import looks

TABLE = "UniFed, Table I"
KINDS = {
    "internal": (
        "{method}: client-specific BN gives a higher internal accuracy than aggregated BN{after}",
        TABLE,
        "points",
        "figures/compatibility.pdf",
    ),
    "external": (
        "{method}: client-specific BN served by Eqs. (3), (4) gives a higher external accuracy "
        "than aggregated BN with the server's statistics",
        f"{TABLE}; Eqs. (3), (4)",
        "points",
        "figures/compatibility.pdf",
    ),
    "faster": (
        "{method}: client-specific BN gives a lower training loss than aggregated BN, mean over "
        "the rounds{after}",
        "UniFed, Section III; Table I",
        "",
        "figures/losses.pdf",
    ),
}
FEDBN = "FedBN: Eqs. (3), (4) give a higher external accuracy than the clients' mean BN"
AFTER = {"perfedavg": " (after its adaptation step)"}


def judge(summary: Summary) -> Iterator[Claim]:
    """Judge each method's differences; where no seed has both sides, say why."""
    known = looks(row.method for row in summary.rows)
    for kind, (words, source, unit, figure) in KINDS.items():
        for row in summary.rows:
            method = known[row.method].label
            words_here = FEDBN if (row.merged and kind == "external") else words
            claim = words_here.format(method=method, after=AFTER.get(row.method, ""))
            identity = f"compatibility.{kind}.{row.method.replace('_', '-')}"
            found = row.differences.get(kind)
            if found is None:
                why = _unpaired(row, kind)
                if why:
                    yield Claim(identity, claim, source, why, None, "inconclusive", figure)
                continue
            verdict, p = summary.verdicts[row.method, kind]
            scale = 100.0 if unit else 1.0
            interval = None
            if found.lower is not None and found.upper is not None:
                interval = (scale * found.lower, scale * found.upper)
            text = measured(found, p, unit)
            yield Claim(identity, claim, source, text, interval, verdict, figure)


def _unpaired(row: Row, kind: str) -> str:
    """Say why a difference is not there: runs that diverged; empty where a side was not run."""
    if row.merged and kind != "external":
        return ""
    pair = {"internal": row.internal, "external": row.external, "faster": row.losses}[kind]
    sides = [(policy, pair[policy]) for policy in (AGGREGATED, SPECIFIC)]
    if not all(cell.values or cell.diverged for _, cell in sides):
        return ""
    lost = [f"{policy.replace('_', '-')} BN {cell.lost}" for policy, cell in sides if cell.lost]
    return f"no seed has both sides: {', '.join(lost) or 'the seeds differ'}"
