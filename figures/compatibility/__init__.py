"""The section `compatibility`: Table I of the paper, its figures, claims and a report."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from figures.compatibility.captions import (
    APART,
    FIGURES,
    HEAD,
    MEAN_MARK,
    MEAN_ROW,
    METHOD_NOTES,
    PARTED,
    SEEDS_ONLY,
)
from figures.compatibility.draw import dumbbells
from figures.compatibility.draw_curves import curves
from figures.compatibility.draw_gains import effects
from figures.compatibility.gains import gains, judge_gains
from figures.compatibility.judgement import judge
from figures.compatibility.layouts import tables
from figures.compatibility.summary import TARGET, Row, Summary, summarise
from figures.experiments.product import Content, Drawing, Manifests, Product, publish
from figures.experiments.words import BOOTSTRAP_FROM, equal, in_rounds
from figures.statistics import PairedDifference
from figures.style import looks

__all__ = ["Product", "Summary", "judge", "present", "summarise", "tables"]

LEAD = (
    "Does client-specific batch normalization fit any federated algorithm, and does it raise the "
    "accuracy inside the federation and, by Eqs. (3), (4), at clients outside? Table I of UniFed, "
    "measured anew: each algorithm is trained with aggregated and with client-specific BN, with "
    "the same hyper-parameters."
)


def present(
    rows: pl.DataFrame,
    manifests: Mapping[str, Mapping[str, Any]],
    folder: Path,
    options: Mapping[str, Any],
) -> Product:
    """Summarise, judge, draw and report; write everything under `folder`."""
    summary = summarise(rows, manifests)
    words = _words(summary, manifests)
    content = Content(
        title="Compatibility",
        lead=LEAD,
        # Beside the external claims, which alone would be read as the training's.
        claims=sorted((*judge(summary), *judge_gains(summary)), key=lambda c: ".faster." in c.id),
        drawings=drawings(summary, words),
        tables=list(tables(summary, words)),
        whole={"curves": summary.curves},
        facts={"schedule": words["schedule"], "left out in turn": words["folds"] or "nobody"},
        notes=[f"Left out of the means: {line}." for line in summary.lost],
    )
    return publish(content, manifests, folder, options)


def drawings(summary: Summary, words: Mapping[str, Any]) -> dict[str, Drawing]:
    """Name the figures that the records allow, in the order of the report."""
    makers = {}
    if summary.rows:
        makers["compatibility"] = lambda: dumbbells(summary)
    if gains(summary).drawn:
        makers["gains"] = lambda: effects(summary)
    if summary.curves.height:
        makers["curves"] = lambda: curves(summary, "accuracy")
        makers["losses"] = lambda: curves(summary, "loss")
    return {
        name: Drawing(FIGURES[name][0], FIGURES[name][1].format(**words), make)
        for name, make in makers.items()
    }


def _words(summary: Summary, manifests: Manifests) -> dict[str, Any]:
    """Fill the captions' blanks from what was run."""
    configs = [m["config"] for m in manifests.values() if m["config"]["study"] == "training"]
    schedules = [config["schedule"] for config in configs]
    folds = " and ".join(looks([name])[name].label for name in summary.folds)
    many = len(summary.folds) > 1
    turn = " in turn, averaged" * many
    marked = any(row.method in METHOD_NOTES for row in summary.rows)
    rounds = summary.curves["round"].unique().sort().to_list()
    return {
        **_seeds(summary),
        "equal": equal(_differences(summary)),
        "rounds": in_rounds(sorted(s["rounds"] for s in schedules)),
        "federation": _joined(config["federation"] for config in configs),
        "net": _joined(config["model"] for config in configs),
        "folds": folds,
        "target": f"{100 * TARGET:g}",
        "averaged": f", averaged over the federations without {folds} in turn" if many else "",
        "averaged_worst": f"averaged over the federations without {folds} in turn, " * many,
        "left_out": f"the client left out ({folds}{turn})" if folds else "not measured",
        "panel_b": f"(b) Accuracy on the client left out ({folds}{turn}): "
        "squares with the server's statistics, circles by Eqs. (3), (4), τ = 0.9, batches of 32. "
        if folds
        else "",
        "dagger": "† Per-FedAvg: internal after its adaptation step, external its un-adapted "
        "meta-model. " * marked,
        "dagger_inside": "† Per-FedAvg: after its adaptation step. " * marked,
        "measured": ", ".join(map(str, rounds)) if len(rounds) < 12 else f"0 to {rounds[-1]}",
        "schedule": _schedule(schedules) + _own_steps(summary),
        **_apart(summary),
        "lost": f" Left out: {'; '.join(summary.lost)}." if summary.lost else "",
    }


def _differences(summary: Summary) -> list[PairedDifference]:
    """All that the tables and figures show."""
    shown = (*summary.rows, *gains(summary).rows)
    parts = [r.differences if isinstance(r, Row) else r.effects for r in shown]
    return [one for found in parts for one in found.values()]


def _apart(summary: Summary) -> dict[str, str]:
    """Say what Table I's cells join, and what the rows do not have in common."""
    found, momenta = gains(summary), _settings_of(summary, "fednova", "momentum") - {0.0}
    shown = {row.method for row in found.rows}
    headed = "moon" in set(summary.settings.drop_nulls("projection")["algorithm"])
    steps = (("scaffold", "server_lr"), ("fedadam", "server_lr"), ("perfedavg", "beta"))
    which = ["step sizes"] if any(_settings_of(summary, *own) for own in steps) else []
    which += [f"FedNova's momentum of {_joined(momenta)}"] if momenta else []
    which += ["MOON's projection head"] if headed else []
    return {
        "parted": PARTED * bool(found.rows),
        "head": HEAD * headed,
        "apart": APART.format(which=_listed(which)) * bool(which),
        "mean_row": MEAN_ROW.format(counted=found.counted) * bool(found.effects),
        "mean_mark": MEAN_MARK.format(counted=found.counted) * bool(found.effects),
        "meta": "Per-FedAvg: its un-adapted meta-model. " * ("perfedavg" in shown),
    }


def _settings_of(summary: Summary, algorithm: str, name: str) -> set[Any]:
    """The values that a method's runs have of a setting."""
    known = summary.settings.filter(algorithm=algorithm)["settings"]
    return {json.loads(settings).get(name) for settings in known} - {None}


def _own_steps(summary: Summary) -> str:
    """Say which methods do not take plain steps of the schedule's size on one batch."""
    found = []
    for beta in sorted(_settings_of(summary, "perfedavg", "beta")):
        orders = _settings_of(summary, "perfedavg", "order")
        batches = "three" if orders == {2} else "two"
        found.append(f"Per-FedAvg steps by its own β = {beta:g} on {batches} batches each time")
    momenta = _settings_of(summary, "fednova", "momentum") - {0.0}
    found += [f"FedNova has local momentum {momentum:g}" for momentum in sorted(momenta)]
    return f"; but {_listed(found)}" if found else ""


def _seeds(summary: Summary) -> dict[str, str]:
    """Say over how many seeds the means are, and of which kind their intervals."""
    methods = set(summary.curves["method"])
    kind = "BCa bootstrap" if any("BCa" in method for method in methods) else "Student t"
    if summary.seeds < 2:
        alone = "one seed, so no intervals"
        said = {"mean": alone.capitalize(), "marks": f"Marks: {alone}", "lines": f"Lines: {alone}"}
        return said | {"power": ""}
    n, interval = f"{summary.seeds} seeds", f"95 % {kind} interval"
    return {
        "mean": f"Mean over {n} with the {interval} ({SEEDS_ONLY}; unadjusted)",
        "marks": f"Marks: mean over {n}, bars: {interval}s ({SEEDS_ONLY}; unadjusted)",
        "lines": f"Lines: mean over {n}; bands: {interval}s ({SEEDS_ONLY})",
        "power": f" (at {n} the power is low)" if summary.seeds < BOOTSTRAP_FROM else "",
    }


def _schedule(schedules: Iterable[Mapping[str, Any]]) -> str:
    words = {
        f"{in_rounds([s['rounds']])}, E = {s['local_epochs']}, batches of {s['batch_size']}, "
        f"SGD with step {s['lr']:g}, clients weighted by {s['weights']}"
        for s in schedules
    }
    return "; ".join(sorted(words)) or "nothing trained"


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def _joined(values: Iterable[Any]) -> str:
    return ", ".join(map(str, sorted(set(values)))) or "nothing"
