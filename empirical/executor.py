"""Tasks over spawned processes with a fixed number of threads each, and their progress."""

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from empirical.checks import is_whole
from empirical.worker import Task, work

_PATIENCE = 5.0  # seconds between asking a process to end and killing it

_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)

# glibc otherwise maps and unmaps every large tensor afresh: a fifth of digits_cnn's time in faults.
_ALLOCATOR = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**32),
    "MALLOC_TOP_PAD_": str(2**26),
}

# cuBLAS gives the same bits in every run only with a fixed workspace.
_CUDA = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


@dataclass(frozen=True)
class Progress:
    """A task says how much of it is done.

    Attributes:
        task: its name.
        fraction: between 0 and 1.
    """

    task: str
    fraction: float


@dataclass(frozen=True)
class Result:
    """A task is finished.

    Attributes:
        task: its name.
        value: what the function returned.
    """

    task: str
    value: Any


class TaskError(RuntimeError):
    """A task failed, in one sentence.

    Attributes:
        task: its name.
        details: the worker's own traceback; empty where the worker was killed.
    """

    def __init__(self, task: str, reason: str, details: str = "") -> None:
        super().__init__(f"task '{task}' {reason}")
        self.task = task
        self.details = details


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    task: str = ""


def run_tasks(
    function: Task, tasks: Mapping[str, object], *, workers: int, threads: int = 1
) -> Iterator[Progress | Result]:
    """Runs `function(argument, report)` for every task, over spawned processes.

    Each process computes with `threads` threads (BLAS, OpenMP, torch), whatever their number, so
    that results do not depend on `workers`. Closing the iterator, an error, Ctrl-C or the end of
    this process, however it ends, ends the others.

    Args:
        function: importable by name; `report(fraction)` tells the caller how far it is.
        tasks: name -> argument, which can be pickled; begun in this order.
        workers: processes at most.
        threads: threads of each process.

    Yields:
        `Progress` as it is reported, and a `Result` as each task finishes, in no fixed order.

    Raises:
        ValueError: fewer than one worker or thread.
        TypeError: workers or threads that are no whole number, tasks without names, or a
            function or argument that cannot be sent to another process.
        TaskError: a task raised, or its process died; the tasks not finished by then are ended.
    """
    if not (is_whole(workers) and is_whole(threads)):
        raise TypeError(f"workers and threads must be whole numbers, got {workers!r}, {threads!r}")
    if not isinstance(tasks, Mapping):
        raise TypeError(
            f"tasks must map each name to its argument, got {type(tasks).__name__}: use a dict"
        )
    if workers < 1 or threads < 1:
        raise ValueError(f"workers and threads must be at least 1, got {workers} and {threads}")
    _check_picklable(function, tasks)
    return _events(function, dict(tasks), workers, threads)


def _check_picklable(function: Task, tasks: Mapping[str, object]) -> None:
    named = [(f"task '{name}'", argument) for name, argument in tasks.items()]
    for what, value in [("the function", function), *named]:
        try:
            pickle.dumps(value)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TypeError(
                f"{what} cannot be sent to another process ({error}): use a function defined at "
                "the top of a module and plain arguments"
            ) from error


def _events(
    function: Task, tasks: dict[str, object], workers: int, threads: int
) -> Iterator[Progress | Result]:
    queue = list(tasks.items())
    pool: dict[Connection, _Worker] = {}
    try:
        for _ in range(min(workers, len(queue))):
            worker = _start(function, threads)
            pool[worker.pipe] = worker
            _assign(worker, queue)
        busy = dict(pool)
        while busy:
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # pyright: ignore[reportArgumentType]
                event = _receive(worker)
                yield event
                if isinstance(event, Result):
                    if queue:
                        _assign(worker, queue)
                    else:
                        del busy[worker.pipe]
    finally:
        for worker in pool.values():
            worker.pipe.close()
            worker.process.terminate()
        deadline = time.monotonic() + _PATIENCE
        for worker in pool.values():
            worker.process.join(max(0.0, deadline - time.monotonic()))
            worker.process.kill()
            worker.process.join()


def _assign(worker: _Worker, queue: list[tuple[str, object]]) -> None:
    worker.task, argument = queue.pop(0)
    try:
        worker.pipe.send(argument)
    except OSError:  # it died; reading from it says how
        _receive(worker)


def _receive(worker: _Worker) -> Progress | Result:
    try:
        kind, value = worker.pipe.recv()
    except (EOFError, OSError) as error:
        worker.process.join(_PATIENCE)
        raise TaskError(worker.task, _death(worker.process.exitcode)) from error
    if kind == "error":
        reason, details = value
        raise TaskError(worker.task, f"failed: {reason}", details)
    return (Progress if kind == "progress" else Result)(worker.task, value)


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        memory = "; often memory ran out: use fewer workers" if name == "SIGKILL" else ""
        return f"was killed ({name}{memory})"
    return (
        f"ended without a result (exit code {code}): a script that starts tasks must do so under "
        "`if __name__ == '__main__':`, and a task must not call exit"
    )


def _start(function: Task, threads: int) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(function, theirs, threads), daemon=True)
    with _inherited(threads):
        process.start()
    theirs.close()
    return _Worker(process, ours)


@contextmanager
def _inherited(threads: int) -> Iterator[None]:
    """What a child must know before its first import; and it leaves Ctrl-C to us."""
    settings = dict.fromkeys(_THREADS, str(threads)) | _ALLOCATOR | _CUDA
    before = {name: os.environ.get(name) for name in settings}
    main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        if main:
            signal.signal(signal.SIGINT, handler)
