"""The section's tables: in per cent for people, with every digit in the CSV files."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from figures.causal.draw_distance import ROWS
from figures.causal.draw_steps import columns as graphs_shown
from figures.causal.draw_structural import strength_of
from figures.causal.graphs import Graphs, rule_of, title
from figures.causal.skew import WAYS, Skew
from figures.causal.structural import Structural
from figures.causal.summary import Summary
from figures.experiments.cells import NONE, Cell
from figures.experiments.comparisons import Compared, Sheet, compared_sheet, differences_of
from figures.experiments.names import BN, client_titles
from figures.experiments.product import Table
from figures.experiments.wide import MEAN, column_of
from figures.experiments.words import equal
from figures.selection import of
from figures.tables import Layout, number, with_interval

ANSWER = {
    "observational": "P(Y | X)",
    "backdoor": "back-door, Eq. (20)",
    "do_f": "P(Y | F), domain cut off",
}
ANSWER |= {"do_s": "do(S)", "bayes": "Bayes, knows the domain"}
SKEWED = {"adapted": "skewed stream", "balanced": "balanced stream", "server": "server"}
FAMILIES = {
    "gains": "error: aggregated − client-specific BN",
    "closer": "distance to P(Y | F), domain cut off: aggregated − client-specific BN",
    "causal": "client-specific BN: distance to P(Y | X) − to P(Y | F), domain cut off",
    "follows": "client-specific BN: distance to P(Y | F), domain cut off − to do(S)",
    "small": "client-specific BN, τ = 0: error with the smallest − the largest batches",
}


def tables(summary: Summary) -> list[Table]:
    """The tables in the order of the report."""
    found, skew = summary.structural, summary.skew
    made = [*_steps(summary.graphs), _risks(found), _networks(found), _differences(found)]
    return [*made, _label_shift(skew), _harms(skew)]


def _steps(graphs: Graphs) -> list[Table]:
    """The steps in the paper's graph of testing, and beside one another in all graphs."""
    shown: dict[str, dict[str, str]] = {}
    names = graphs_shown(graphs)
    for row in of(graphs.ordered, graph=names).iter_rows(named=True):
        line = {"statement": row["statement"], "by": rule_of(row["step"])}
        line |= dict.fromkeys(names, NONE)
        found = "holds" if row["holds"] else row["path"] or "fails"
        shown.setdefault(row["step"], line)[row["graph"]] = found
    caption = (
        "The steps of Proposition III.10 and of Eq. (20) as its main idea reads, each checked by "
        "d-separation in the graph that its rule asks for: it holds, or a path is open that breaks "
        "it. A rule that does not apply does not license the step; it does not say that the two "
        "sides differ in every distribution."
    )
    heads = {"statement": "statement", "by": "by"}
    first = names[:1]
    tables = []
    for name, wanted in (("steps", first), ("steps_by_graph", names[1:])):
        if wanted:
            keep = [row for row in shown.values() if any(row[g] != NONE for g in wanted)]
            layout = Layout(
                caption,
                f"tab:causal-{name.replace('_', '-')}",
                heads | {graph: title(graph) for graph in wanted},
                compact=True,
            )
            own = of(graphs.ordered, graph=wanted)
            words = "Steps of Proposition III.10"
            words += ", graph by graph" * (wanted != first)
            tables.append(Table(name, words, own, layout, _texts(keep)))
    return tables


def _risks(found: Structural) -> Table:
    rows = []
    for scenario in found.scenarios:
        strength, here = strength_of(found, scenario), of(found.risks, scenario=scenario)
        if strength not in here["strength"] and here.height:
            strength = float(here["strength"].to_numpy().max())
        for row in here.filter(pl.col("strength").eq_missing(strength)).iter_rows(named=True):
            names = ("exact", "simulated", "simulated_lower", "simulated_upper")
            percent = [None if row[name] is None else 100 * row[name] for name in names]
            estimated = row["answer"] == "do_s"
            rows.append(
                {
                    "scenario": scenario,
                    "strength": f"{row['strength']:g}",
                    "answer": ANSWER.get(row["answer"], row["answer"]),
                    "samples": points(row["samples"]) if estimated else NONE,
                    "exact": number(percent[0], 4),
                    "simulated": with_interval(percent[1], percent[2], percent[3]),
                    "z": NONE if row["z"] is None else number(round(row["z"], 1), 2),
                }
            )
    size = "" if found.simulations is None else f" of {found.simulations:,} points"
    caption = (
        "0-1 error (%) on the unseen client of each answer of the structural model: exact, and "
        f"simulated{size} with its 95 % interval; z: the standard errors between them. Shown is "
        "the strength at which networks are compared; the CSV has all."
    )
    names = ("scenario", "strength", "answer", "exact", "simulated", "z")
    columns = {name: name for name in names[:3]} | {"samples": "statistics of"}
    columns |= {name: name for name in names[3:]}
    layout = Layout(caption, "tab:causal-risks", columns)
    return Table("risks", "Answers of the structural model", found.risks, layout, _texts(rows))


def points(samples: int | None) -> str:
    """How many points are behind statistics."""
    return "the population" if samples is None else f"{samples} points"


def _networks(found: Structural) -> Table:
    numbers, shown = [], []
    for (scenario, policy, strength, samples), cell in found.errors.items():
        key = (scenario, policy, strength, samples)
        far = {name: found.distances.get((*key, name), Cell()) for name in found.near}
        row: dict[str, Any] = {"scenario": scenario, "strength": strength, "bn_policy": policy}
        row |= {"samples": samples, **cell.columns("error")}
        row |= found.alone.get(key, Cell()).columns("error_of_batches")
        numbers.append(row | {k: v for n, c in far.items() for k, v in c.columns(n).items()})
        at = found.where.get(scenario)
        if at is None or at.strength == strength:
            served = "server's" if samples is None else f"batches of {samples}"
            texts = {name: c.text(1.0) for name, c in far.items()}
            labels = {"scenario": scenario, "bn_policy": BN.get(policy, policy), "samples": served}
            alone = found.alone.get(key, Cell()).text()
            shown.append(labels | {"error": cell.text(), "alone": alone, **texts})
    frame = pl.DataFrame(numbers, infer_schema_length=None)
    caption = (
        "Networks trained on the structural model, on the client that they have not seen: 0-1 "
        "error (%) and mean |p_net − p_answer| for each answer; mean over seeds ± 95 % interval. "
        "Statistics: the server's, or Eqs. (3), (4) with batches of so many points; error, τ = 0: "
        "each batch has its own. At the strength at which networks are compared; the CSV has all."
    )
    columns = {"scenario": "scenario", "bn_policy": "BN", "samples": "statistics", "error": "error"}
    columns |= {"alone": "error, τ = 0"}
    columns |= {name: f"to {ROWS[name]}" for name in found.near}
    layout = Layout(caption, "tab:causal-networks", columns, compact=True)
    return Table("networks", "Networks on the structural model", frame, layout, _texts(shown))


def _differences(found: Structural) -> Table:
    every: dict[tuple[str, ...], Compared] = {}
    for name, words in FAMILIES.items():
        family: Mapping[str, Compared] = getattr(found, name)
        every |= {(words, scenario): one for scenario, one in family.items()}
    caption = (
        "Differences in points of error, or in hundredths of a probability, paired by seed, with "
        f"the 95 % interval{equal(differences_of(every))}; Holm's correction within each kind of "
        "difference, over the scenarios."
    )
    return compared_sheet(
        Sheet("network_differences", "What networks differ by", caption, "tab:causal-differences"),
        every,
        {"what": "difference of", "scenario": "scenario"},
    )


def column_titles(skew: Skew) -> dict[str, str]:
    """Column -> what it is called, the mean first."""
    names = {column_of(name): title for name, title in client_titles(skew.clients).items()}
    return {c: names.get(c, "mean over the held-out clients") for c in skew.columns}


def _label_shift(skew: Skew) -> Table:
    numbers, shown = [], []
    for column, name in column_titles(skew).items():
        for ratio in skew.ratios:
            own = {way: skew.cells.get((way, column, ratio), Cell()) for way in WAYS}
            if not any(cell.values or cell.diverged for cell in own.values()):
                continue
            images = skew.images.get((column, ratio))
            row: dict[str, Any] = {"column": column, "ratio": ratio, "images": images}
            numbers.append(row | {k: v for n, c in own.items() for k, v in c.columns(n).items()})
            texts = {way: cell.text(of=skew.seeds) for way, cell in own.items()}
            labels = {"client": name, "ratio": f"{ratio:g}", "images": number(images)}
            shown.append(labels | texts)
    caption = (
        "Accuracy (%) on a stream of the held-out client whose commonest class is so many times "
        "as frequent as its rarest, with the statistics of that stream, of a balanced one of the "
        "same client, and of the server: mean over seeds ± 95 % interval. Images: scored, the "
        "fewest of the runs."
    )
    columns = {"client": "held out", "ratio": "ratio", **SKEWED, "images": "images"}
    layout = Layout(caption, "tab:causal-label-shift", columns, compact=True)
    frame = pl.DataFrame(numbers, infer_schema_length=None)
    return Table("label_shift", "Label shift", frame, layout, _texts(shown))


def _harms(skew: Skew) -> Table:
    titles = column_titles(skew)
    found = {(titles[c], f"{ratio:g}"): one for (c, ratio), one in skew.harms.items()}
    caption = (
        "Accuracy with statistics of a balanced stream minus that with those of the skewed "
        "stream itself, on the same skewed images, in points, paired by seed, with the 95 % "
        f"interval{equal(differences_of(found))}; Holm's correction over these {len(found)} "
        f"differences.{_claimed(skew)} "
        + MEAN.capitalize()
        + ": over the clients held out in turn."
    )
    return compared_sheet(
        Sheet("label_shift_harm", "Harm of label shift", caption, "tab:causal-harm"),
        found,
        {"client": "held out", "ratio": "ratio"},
    )


def _claimed(skew: Skew) -> str:
    """Why the claims have other p-values."""
    if len(skew.worst) == len(skew.harms):
        return ""
    number = len(skew.worst)
    return (
        f" The claims are a family of their own, the {number if number > 1 else 'one'} at ratio "
        f"{skew.ratios[-1]:g}, so that their p-values are smaller."
    )


def _texts(rows: list[dict[str, str]]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None)
