"""Independent jobs on all cores, one BLAS thread each: no result depends on the cores."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from threadpoolctl import threadpool_info, threadpool_limits

from theory._progress import Meter

Job = TypeVar("Job")
Result = TypeVar("Result")


def blas_threads() -> int:
    """How many threads BLAS would use now: what the caller grants a computation."""
    counts = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(counts, default=1)


def in_threads(
    function: Callable[[Job], Result],
    jobs: Sequence[Job],
    meter: Meter,
    most: int | None = None,
    sizes: Sequence[float] | None = None,
) -> list[Result]:
    """Returns [function(job) for job in jobs], by as many threads as BLAS has at the moment.

    Jobs start in their order and only as threads become free, so that no more of them hold memory.
    A single thread, as in a worker process, computes them in the caller's. The first exception, in
    time, ends it; `meter` is told from the caller's thread only.

    Args:
        function: must spend its time in NumPy, which lets other threads run.
        jobs: its arguments.
        meter: told the fraction done.
        most: the largest number of threads.
        sizes: the share of each job in the work, equal by default.
    """
    weights = list(sizes or [1.0] * len(jobs))
    total, done = sum(weights) or 1.0, 0.0
    count = max(1, min(blas_threads(), len(jobs), most or len(jobs)))
    results: list[Result | None] = [None] * len(jobs)
    with threadpool_limits(limits=1, user_api="blas"):
        if count == 1:
            for i, job in enumerate(jobs):
                results[i] = function(job)
                done += weights[i]
                meter(done / total)
            return results  # pyright: ignore[reportReturnType]
        pool = ThreadPoolExecutor(count)
        try:
            left = iter(range(len(jobs)))
            running: dict[Future[Result], int] = {}
            for i in left:
                running[pool.submit(function, jobs[i])] = i
                while len(running) == count or (i == len(jobs) - 1 and running):
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        at = running.pop(future)
                        results[at] = future.result()
                        done += weights[at]
                        meter(done / total)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return results  # pyright: ignore[reportReturnType]
