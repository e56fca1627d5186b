"""Tasks for the executor's tests, in a module whose name no installed package has.

Started processes import it by name; `tests` itself is a name that packages have taken.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path


def square(number: int, report) -> int:
    report(0.5)
    return number * number


def threads_of(_, report) -> dict[str, object]:
    import numpy as np
    import threadpoolctl
    import torch

    np.ones((2, 2)) @ np.ones((2, 2))
    return {
        "pools": {pool["num_threads"] for pool in threadpoolctl.threadpool_info()},
        "torch": torch.get_num_threads(),
        "variable": os.environ["OMP_NUM_THREADS"],
    }


def fail(number: int, report) -> int:
    if number == 2:
        raise ValueError("two is not allowed")
    return number


def die(_, report) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave(_, report) -> None:
    os._exit(3)


def unsendable(_, report):
    return lambda: None


def broken_pipe(_, report) -> None:
    raise BrokenPipeError("the task's own pipe")


def interrupt(_, report) -> None:
    raise KeyboardInterrupt


def call_exit(_, report) -> None:
    sys.exit("enough")


def stubborn(path: str, report) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleep(path, report)


class Unreadable:
    """Can be sent, and not be read."""

    def __reduce__(self):
        return int, ("no number",)


def sleep(path: str, report) -> None:
    Path(path).write_text(str(os.getpid()))
    report(0.1)
    time.sleep(60)


def train(policy: str, report) -> str:
    from federations import toy_federation

    from empirical.algorithms import build_algorithm
    from empirical.bn_policy import BN_POLICIES
    from empirical.federate import federate
    from empirical.models import build_model
    from empirical.schedule import Schedule

    run = federate(
        build_algorithm("fedavg"),
        BN_POLICIES[policy],
        build_model("compact_cnn", 0),
        toy_federation((40, 48)),
        Schedule(1),
    )
    rows = []
    for row in run:
        rows.append([row.client, row.metric, row.value])
        report(row.round)
    return json.dumps(rows)
