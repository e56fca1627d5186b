"""Our FedAvg and FedBN beside the authors' own code on the same files of FedBN's digits.

`python -m benchmarks.fedbn_reference --data FOLDER` trains `federate` with FedBN's settings
(digits_cnn, plain SGD of step 0.01, batches of 32, one local epoch, equal weights, 20 rounds, each
seed its own initial net) and compares accuracies and training loss with `fedbn_reference.json`
after rounds 5, 10 and 20. Each finished run is stored at once, so that the same command goes on
where it was stopped. The table goes to results/fedbn_reference.md; exit code 1 if a number lies
outside its allowance.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks._agreement import Comparison, compared
from empirical import BN_POLICIES, Schedule, build_algorithm, build_model, federate, fingerprint
from empirical.data import fedbn_digits
from empirical.executor import Result, run_tasks

HERE = Path(__file__).parent
POLICIES = {"fedavg": "aggregated", "fedbn": "client_specific"}  # the reference's name of a mode
ROUNDS, EVERY = 20, 5
LOSS = "training loss"


@dataclass(frozen=True)
class Task:
    """One run: where its data lie, what it is, and where its measurements go."""

    data: Path
    mode: str
    schedule: Schedule
    store: Path

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the numbers, apart from the data."""
        return {"mode": self.mode, "model": "digits_cnn", "schedule": asdict(self.schedule)}

    @property
    def file(self) -> Path:
        """Where the run is stored."""
        return self.store / f"{self.mode}_seed{self.schedule.seed}.json"


def train(task: Task, report: Callable[[float], None]) -> str:
    """Trains and stores one run; says where."""
    clients = fedbn_digits.load(task.data)
    schedule, began = task.schedule, time.monotonic()
    run = federate(
        build_algorithm("fedavg"),
        BN_POLICIES[POLICIES[task.mode]],
        build_model("digits_cnn", schedule.seed),
        clients,
        schedule,
    )
    rows = []
    for measurement in run:
        rows.append(asdict(measurement))
        report(measurement.round / schedule.rounds)
    content = {
        **task.settings,
        "data": fingerprint(clients),
        "status": run.state.status,
        "seconds": time.monotonic() - began,
        "rows": rows,
    }
    aside = task.file.with_suffix(".partial")
    aside.write_text(json.dumps(content, indent=1), "utf-8")
    os.replace(aside, task.file)
    return str(task.file)


def stored(task: Task, data: dict[str, Any]) -> dict[str, Any] | None:
    """The run on disk, or None where there is none of these settings on these data."""
    if not task.file.is_file():
        return None
    content = json.loads(task.file.read_text("utf-8"))
    same = all(content[key] == value for key, value in task.settings.items())
    return content if same and content["data"] == data else None


def progress(tasks: dict[str, Task], workers: int) -> Iterator[str]:
    """Runs the tasks; yields a line whenever one has done another tenth."""
    said = dict.fromkeys(tasks, 0)
    began = time.monotonic()
    for event in run_tasks(train, tasks, workers=workers, threads=1):
        done = 1.0 if isinstance(event, Result) else event.fraction
        if isinstance(event, Result) or int(10 * done) > said[event.task]:
            said[event.task] = int(10 * done)
            yield f"{time.monotonic() - began:6.0f} s  {event.task}: {done:.0%}"


def values(runs: list[dict[str, Any]], round_: int) -> dict[str, list[float]]:
    """Client -> test accuracy in per cent, and the clients' mean training loss; by run."""
    found: dict[str, list[float]] = {name: [] for name in (*fedbn_digits.CLIENTS, LOSS)}
    for run in runs:
        rows = {
            (row["client"], row["split"], row["metric"]): row["value"]
            for row in run["rows"]
            if row["round"] == round_
        }
        for name in fedbn_digits.CLIENTS:
            found[name].append(100 * rows[name, "test", "accuracy"])
        found[LOSS].append(fmean(rows[name, "train", "loss"] for name in fedbn_digits.CLIENTS))
    return found


def report(runs: dict[str, list[dict[str, Any]]], reference: dict[str, Any]) -> tuple[str, bool]:
    """The comparison as Markdown, and whether all of it is within its allowance."""
    tables: list[str] = []
    every: list[Comparison] = []
    for round_, modes in reference["rounds"].items():
        for mode, theirs in modes.items():
            found = compared(values(runs[mode], int(round_)), theirs, LOSS)
            every += found
            tables += ["", f"## Round {round_}, {mode} ({POLICIES[mode]} batch norm)", "", HEAD]
            tables += [row.row(4 if row.what == LOSS else 2) for row in found]
    outside = sum(not row.agrees for row in every)
    seconds = [run["seconds"] / ROUNDS for members in runs.values() for run in members]
    source = reference["source"]
    text = HEADER.format(
        seeds=", ".join(map(str, range(len(runs["fedavg"])))),
        theirs=", ".join(map(str, source["seeds"])),
        torch=version("torch"),
        least=min(seconds),
        most=max(seconds),
        verdict=f"{outside} of {len(every)} numbers lie outside their allowance."
        if outside
        else f"All {len(every)} numbers lie within their allowance.",
        **{key: source[key] for key in ("code", "settings", "measured", "data_sha256")},
    )
    return "\n".join([text, *tables, "", *by_seed(runs), ""]), not outside


def by_seed(runs: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Our numbers, run by run."""
    names = fedbn_digits.CLIENTS
    lines = ["## Our runs", "", f"| round | mode | seed | {' | '.join(names)} | {LOSS} |"]
    lines.append("|---" * (4 + len(names)) + "|")
    for round_ in range(EVERY, ROUNDS + 1, EVERY):
        for mode, members in runs.items():
            found = values(members, round_)
            for seed in range(len(members)):
                shown = " | ".join(f"{found[name][seed]:.1f}" for name in names)
                lines.append(f"| {round_} | {mode} | {seed} | {shown} | {found[LOSS][seed]:.4f} |")
    return lines


HEAD = (
    "| | ours: mean (sd) | theirs: mean (sd) | difference | standard error | allowed | |\n"
    "|---|---|---|---|---|---|---|"
)
HEADER = """# FedAvg and FedBN beside the authors' own code

Written by `python -m benchmarks.fedbn_reference --data FOLDER`. **{verdict}**

- Theirs: {code}; seeds {theirs}.
- Ours: `federate` with FedAvg, aggregated and client-specific batch norm, seeds {seeds}, torch
  {torch}, one thread a run, {least:.1f} to {most:.1f} s a round of wall time on a busy machine.
- Both: {settings}. The files are the same ({data_sha256}).
- Measured {measured}. Ours is the mean over all training images, of which theirs is an estimate
  without bias: their last batch, of seven images drawn afresh, counts as much as one of 32.
- Allowed: mean over clients 3 standard errors + 0.5 points; each client 4 standard errors + 1.5
  points; training loss 3 standard errors + 0.005 (half a point more of the right digit's
  probability p moves its loss by 0.005 / p, so by 0.005 at least). The standard error is that of
  the difference of the two means over seeds."""


def main() -> int:
    """Runs what is missing, compares, writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder of MNIST, SVHN, …")
    parser.add_argument("--store", type=Path, default=Path("results/fedbn_reference"))
    parser.add_argument("--seeds", type=int, default=3, help="how many, counted from 0")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "fedbn_reference.md")
    options = parser.parse_args()
    reference = json.loads((HERE / "fedbn_reference.json").read_text("utf-8"))
    data = fingerprint(fedbn_digits.load(options.data))
    if hashed(data) != reference["source"]["data_sha256"]:
        parser.error(f"{options.data} holds other files than those of the reference's runs")
    options.store.mkdir(parents=True, exist_ok=True)
    tasks = {
        f"{mode}, seed {seed}": Task(
            options.data,
            mode,
            Schedule(rounds=ROUNDS, weights="uniform", seed=seed, measure_every=EVERY),
            options.store,
        )
        for seed in range(options.seeds)
        for mode in POLICIES
    }
    missing = {name: task for name, task in tasks.items() if stored(task, data) is None}
    for line in progress(missing, options.workers):
        print(line, flush=True)
    runs: dict[str, list[dict[str, Any]]] = {mode: [] for mode in POLICIES}
    for name, task in tasks.items():
        run = stored(task, data)
        if run is None or run["status"] != "complete":
            parser.exit(1, f"{name} {run['status'] if run else 'is not stored'}\n")
        runs[task.mode].append(run)
    text, agrees = report(runs, reference)
    options.out.write_text(text, "utf-8")
    print(text)
    return 0 if agrees else 1


def hashed(data: dict[str, Any]) -> str:
    """One hash of a federation, as the manifests of runs give it."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
