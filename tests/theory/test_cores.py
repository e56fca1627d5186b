import threading
import time

import pytest
import threadpoolctl

from theory._cores import blas_threads, in_threads
from theory._progress import Meter


@pytest.fixture(params=[1, 3])
def threads(request):
    with threadpoolctl.threadpool_limits(request.param, user_api="blas"):
        yield request.param


def test_results_keep_their_order_and_each_thread_has_one_of_blas(threads):
    used, seen = set(), []

    def job(i):
        used.add(threading.get_ident())
        assert blas_threads() == 1
        time.sleep(0.02 * (i % 3))
        return i * i

    before = blas_threads()
    assert in_threads(job, range(9), Meter(seen.append)) == [i * i for i in range(9)]
    assert blas_threads() == before
    assert seen == sorted(seen) and seen[-1] == 1.0 and len(seen) == 9
    # One thread is the caller's own.
    assert (used == {threading.get_ident()}) == (before == 1)
    assert len(used) <= before


def test_no_more_jobs_run_at_once_than_may(threads):
    lock, running, most = threading.Lock(), [0], [0]

    def job(_):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.01)
        with lock:
            running[0] -= 1

    in_threads(job, range(8), Meter(None), most=2)
    assert most[0] <= min(2, threads)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_it_and_restores_the_threads(threads, error):
    started = []

    def job(i):
        started.append(i)
        if i == 2:
            raise error("broken")
        time.sleep(0.01)

    before = blas_threads()
    with pytest.raises(error, match="broken"):
        in_threads(job, range(50), Meter(None))
    assert len(started) < 10 and blas_threads() == before


def test_an_error_of_the_report_ends_it_too(threads):
    def report(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_threads(abs, range(20), Meter(report))


def test_no_jobs_and_jobs_of_different_sizes():
    seen = []
    assert in_threads(abs, [], Meter(None)) == []
    in_threads(abs, [-1, -2], Meter(seen.append), sizes=[1.0, 3.0])
    assert seen == [0.25, 1.0] or seen == [0.75, 1.0]


def test_a_meter_never_goes_back_and_nests():
    seen = []
    meter = Meter(seen.append)
    meter.part(0.0, 0.5)(0.5)
    inner = meter.part(0.5, 1.0).part(0.0, 0.5)
    inner(1.0)
    meter(0.1)
    inner(2.0)
    meter(1.0)
    assert seen == [0.25, 0.75, 1.0]
    Meter(None).part(0.2, 0.3)(0.5)
    with pytest.raises(TypeError, match="progress must be a function"):
        Meter("loud")
