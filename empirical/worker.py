"""The other end of `run_tasks`: what a spawned process does all its life."""

import multiprocessing
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any

import threadpoolctl

Task = Callable[[Any, Callable[[float], None]], Any]


def work(function: Task, pipe: Connection, threads: int) -> None:
    """Runs one argument after another until the parent closes the pipe."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threadpoolctl.threadpool_limits(threads)
    if "torch" in sys.modules:  # imported with the function; later imports read the environment
        sys.modules["torch"].set_num_threads(threads)
    while True:
        try:
            argument = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            value = function(
                pickle.loads(argument),
                lambda fraction: pipe.send(("progress", float(fraction))),
            )
            answer = ForkingPickler.dumps(("result", value))
        except BaseException as error:  # a task that calls sys.exit has failed like any other
            reason = traceback.format_exception_only(error)[-1].strip()
            answer = ForkingPickler.dumps(("error", (reason, traceback.format_exc())))
        with suppress(OSError):  # the parent closed the pipe and wants no answer
            pipe.send_bytes(answer)


def usable_cores() -> int:
    """How many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def threads_in_use() -> dict[str, int]:
    """Threads of the libraries that compute in this process, by kind, for a manifest."""
    counts = {pool["user_api"]: pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
    if "torch" in sys.modules:
        counts["torch"] = sys.modules["torch"].get_num_threads()
    return counts


def _end_with_parent() -> None:
    """Ends this process as soon as its parent is gone, even when that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
