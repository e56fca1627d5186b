"""Claims about the steps of Proposition III.10 and Eq. (20): as found, with their paths."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from figures.causal.graphs import BASE, SEPARATION, Graphs, rule_of, title
from figures.claims import Claim

GRAPHS, STEPS = "figures/graphs.pdf", "figures/steps.pdf"
PROPOSITION = "UniFed, Proposition III.10, Fig. 2"
TWENTY = "UniFed, Eq. (20), Fig. 2"
OF_TWENTY = ("rule2.F", "rule1.D", "separation.D", "rule2.X", "backdoor.X", "frontdoor.X")
"""Steps towards Eq. (20), and what the domain does to F and Y; the others are III.10's."""
Row = Mapping[str, Any]


def steps(graphs: Graphs) -> Iterator[Claim]:
    """What fails is claimed to fail, with the path that shows it.

    A step that holds although a path is open, or fails without one, contradicts itself.
    """
    taken: set[str] = set()
    for row in graphs.telling():
        figure = GRAPHS if row["graph"] in graphs.names else STEPS
        source = TWENTY if row["step"] in OF_TWENTY else PROPOSITION
        path = f"open path {row['path']}" if row["path"] else "no open path"
        name = _identity(row["graph"], row["step"], taken)
        yield Claim(name, _words(row), source, path, None, _verdict([row]), figure)
    for graph, rows in graphs.otherwise().items():
        yield _otherwise(graph, rows, _identity(graph, "", taken))


def _words(row: Row) -> str:
    """The statement, or that its rule does not give it."""
    rule, where = rule_of(row["step"]), f"in the graph of {title(row['graph'])}"
    the = f"the {rule}" if rule.endswith("criterion") else rule
    if row["holds"]:
        return f"{row['statement']} {where}" + ("" if rule == SEPARATION else f", by {the}")
    verb = "do" if rule.startswith("rules") else "does"
    said = f"{the} {verb} not give {row['statement']} {where}"
    return said[0].upper() + said[1:]


def _otherwise(graph: str, rows: Sequence[Row], name: str) -> Claim:
    """The steps of a graph that come out otherwise than in the paper's, as one claim."""
    parts = []
    for holds, verb in ((False, "do not give"), (True, "do give")):
        some = [row["statement"] for row in rows if row["holds"] == holds]
        if some:
            parts.append(f"{verb} {'; '.join(some)}")
    paths = list(dict.fromkeys(row["path"] for row in rows if row["path"]))
    measured = f"open path{'s' * (len(paths) > 1)} {', '.join(paths)}" if paths else "no open path"
    words = (
        f"In the graph of {title(graph)}, unlike in the paper's, the rules {', but '.join(parts)}"
    )
    return Claim(name, words, PROPOSITION, measured, None, _verdict(rows), STEPS)


def _verdict(rows: Sequence[Row]) -> str:
    """Certified by its path, or by the absence of one."""
    consistent = all(row["holds"] == (row["path"] == "") for row in rows)
    return "certified" if consistent else "violated"


def _identity(graph: str, step: str, taken: set[str]) -> str:
    """step.<id>, in other graphs than the paper's of testing step.<graph>.<id>."""
    before = "" if graph == BASE else f"{graph.removeprefix('test, ')}."
    plain = re.sub(r"[^a-z0-9.]+", "-", f"{before}{step}".lower())
    plain = re.sub(r"[.-]*\.[.-]*", ".", plain).strip(".-") or "unnamed"
    name, k = plain, 1
    while name in taken:
        k += 1
        name = f"{plain}-{k}"
    taken.add(name)
    return f"step.{name}"
