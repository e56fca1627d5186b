"""What MOON's projection head costs by itself: FedAvg on the net with the head and without.

    python -m benchmarks.moon_head [--rounds N] [--seeds N]

MOON's row of Table I is trained with the head of its authors, the other rows are not. Trains on the
federation `digits` (compact_cnn) with either batch norm, two processes, and prints a table of the
mean test accuracy over the clients after the last round.
"""

import argparse
import itertools
import statistics
from collections.abc import Callable
from typing import Any

from empirical import (
    BN_POLICIES,
    Result,
    Schedule,
    build_algorithm,
    build_model,
    federate,
    load_federation,
    run_tasks,
)
from empirical.studies.study import PROJECTION

HEADS = {"without": None, "with": PROJECTION}
METHODS = ("fedavg", "moon")


def accuracy(task: dict[str, Any], report: Callable[[float], None]) -> float:
    """Mean test accuracy over the clients after the last round."""
    schedule = Schedule(rounds=task["rounds"], seed=task["seed"], measure_every=task["rounds"])
    run = federate(
        build_algorithm(task["algorithm"], **task["settings"]),
        BN_POLICIES[task["policy"]],
        build_model("compact_cnn", task["seed"], projection=HEADS[task["head"]]),
        load_federation("digits"),
        schedule,
    )
    rows = list(run)
    report(1.0)
    return statistics.fmean(
        row.value
        for row in rows
        if (row.round, row.split, row.metric) == (schedule.rounds, "test", "accuracy")
        and row.client != "server"
    )


def main() -> None:
    """Prints the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--mu", type=float, help="MOON's; its default is the authors', 5")
    chosen = options.parse_args()
    policies = ("aggregated", "client_specific")
    tasks: dict[str, dict[str, Any]] = {}
    for method, head, policy in itertools.product(METHODS, HEADS, policies):
        settings = {"mu": chosen.mu} if method == "moon" and chosen.mu is not None else {}
        for seed in range(chosen.seeds):
            tasks[f"{method} {head} {policy} {seed}"] = {
                "algorithm": method,
                "settings": settings,
                "head": head,
                "policy": policy,
                "rounds": chosen.rounds,
                "seed": seed,
            }
    found = {
        event.task: event.value
        for event in run_tasks(accuracy, tasks, workers=2)
        if isinstance(event, Result)
    }
    print("| method | head | " + " | ".join(policies) + " |")
    print("|---|---|" + "---|" * len(policies))
    for method, head in itertools.product(METHODS, HEADS):
        cells = []
        for policy in policies:
            values = [found[f"{method} {head} {policy} {seed}"] for seed in range(chosen.seeds)]
            spread = f" ({100 * statistics.stdev(values):.1f})" if len(values) > 1 else ""
            cells.append(f"{100 * statistics.fmean(values):.1f}{spread}")
        print(f"| {method} | {head} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
