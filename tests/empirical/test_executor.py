"""Each test starts real processes; a start costs about a second, an import of torch more."""

import inspect
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from executor_tasks import (
    Unreadable,
    broken_pipe,
    call_exit,
    die,
    fail,
    interrupt,
    leave,
    sleep,
    square,
    stubborn,
    threads_of,
    train,
    unsendable,
)

from empirical.executor import Progress, Result, TaskError, run_tasks


def results(function, tasks, workers=1, threads=1) -> dict[str, object]:
    events = run_tasks(function, tasks, workers=workers, threads=threads)
    return {event.task: event.value for event in events if isinstance(event, Result)}


def test_results_and_progress_of_every_task() -> None:
    tasks = {f"task {k}": k for k in range(5)}
    events = list(run_tasks(square, tasks, workers=2))
    assert {e.task: e.value for e in events if isinstance(e, Result)} == {
        f"task {k}": k * k for k in range(5)
    }
    assert [e.fraction for e in events if isinstance(e, Progress)] == [0.5] * 5
    for name in tasks:  # a task's progress comes before its result
        assert [type(e) for e in events if e.task == name] == [Progress, Result]


def test_no_tasks_start_no_process() -> None:
    assert list(run_tasks(square, {}, workers=3)) == []


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_fixed_in_the_worker(threads: int) -> None:
    before = dict(os.environ)
    found = results(threads_of, {"t": None}, threads=threads)["t"]
    assert found == {"pools": {threads}, "torch": threads, "variable": str(threads)}
    assert dict(os.environ) == before


def test_an_error_names_its_task_and_keeps_the_workers_traceback() -> None:
    with pytest.raises(
        TaskError, match="task 'b' failed: ValueError: two is not allowed"
    ) as caught:
        list(run_tasks(fail, {"a": 1, "b": 2, "c": 3}, workers=1))
    assert caught.value.task == "b"
    assert 'raise ValueError("two is not allowed")' in caught.value.details


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (die, r"task 'x' was killed \(SIGKILL; often memory ran out: use fewer workers\)"),
        (leave, r"task 'x' ended without a result \(exit code 3\)"),
        (unsendable, "task 'x' failed: .*pickle"),
        (broken_pipe, "task 'x' failed: BrokenPipeError: the task's own pipe"),
        (interrupt, "task 'x' failed: KeyboardInterrupt"),
        (call_exit, "task 'x' failed: SystemExit: enough"),
    ],
)
def test_a_dead_worker_is_one_clear_error(function, message: str, capfd) -> None:
    with pytest.raises(TaskError, match=message) as caught:
        list(run_tasks(function, {"x": None}, workers=2))
    assert (" failed: " in message) is (function.__name__ in caught.value.details)
    assert capfd.readouterr().err == ""


def test_an_argument_that_cannot_be_read_names_its_task() -> None:
    with pytest.raises(TaskError, match="task 'x' failed: ValueError: invalid literal"):
        list(run_tasks(square, {"x": Unreadable()}, workers=1))


def test_what_cannot_be_sent_is_refused_before_any_process() -> None:
    with pytest.raises(TypeError, match="the function cannot be sent"):
        run_tasks(lambda number, _: number, {"a": 1}, workers=1)
    with pytest.raises(TypeError, match="task 'a' cannot be sent"):
        run_tasks(square, {"a": lambda: 1}, workers=1)
    with pytest.raises(ValueError, match="at least 1, got 0 and 1"):
        run_tasks(square, {"a": 1}, workers=0)


@pytest.mark.parametrize(
    ("tasks", "counts", "message"),
    [
        ({"a": 1}, {"workers": 1.5}, r"must be whole numbers, got 1\.5, 1"),
        ({"a": 1}, {"workers": None}, "must be whole numbers, got None, 1"),
        ({"a": 1}, {"workers": True}, "must be whole numbers, got True, 1"),
        ({"a": 1}, {"workers": 1, "threads": "2"}, "must be whole numbers, got 1, '2'"),
        ([1, 2], {"workers": 1}, "tasks must map each name to its argument, got list"),
        (None, {"workers": 1}, "tasks must map each name to its argument, got NoneType"),
    ],
)
def test_settings_of_the_wrong_kind_are_refused(tasks, counts, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        inspect.unwrap(run_tasks)(square, tasks, **counts)  # the type checker would answer first


def gone(process: int) -> bool:
    """Ended, perhaps not yet reaped."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_closing_the_iterator_ends_the_workers(tmp_path: Path) -> None:
    events = run_tasks(sleep, {"s": str(tmp_path / "id")}, workers=1)
    assert next(events) == Progress("s", 0.1)
    events.close()  # type: ignore[attr-defined]
    assert gone(int((tmp_path / "id").read_text()))


def test_a_worker_that_will_not_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("empirical.executor._PATIENCE", 0.2)
    events = run_tasks(stubborn, {"s": str(tmp_path / "id")}, workers=1)
    assert next(events) == Progress("s", 0.1)
    begin = time.monotonic()
    events.close()  # type: ignore[attr-defined]
    assert gone(int((tmp_path / "id").read_text()))
    assert time.monotonic() - begin < 10  # its task sleeps for 60


SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs inherit it ignored
from empirical.executor import run_tasks, Result

def work(path, report):
    import os, pathlib, time
    pathlib.Path(path).write_text(str(os.getpid()))
    report(0.5)
    time.sleep(float(sys.argv[2]))
    return "done"

if __name__ == "__main__":
    for event in run_tasks(work, {"only": sys.argv[1]}, workers=2):
        print(event, flush=True)
"""


def script(tmp_path: Path, seconds: str) -> subprocess.Popen[str]:
    (tmp_path / "script.py").write_text(SCRIPT)
    root = str(Path(__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "script.py", str(tmp_path / "id"), seconds],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_tasks_may_be_defined_in_a_script(tmp_path: Path) -> None:
    out, err = script(tmp_path, "0").communicate(timeout=60)
    assert (err, out.splitlines()[-1]) == ("", "Result(task='only', value='done')")


def test_ctrl_c_ends_the_workers_quietly(tmp_path: Path) -> None:
    process = script(tmp_path, "60")
    assert process.stdout is not None
    assert "Progress" in process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: parent and children
    _, err = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert err.count("Traceback") == 1  # the parent's own KeyboardInterrupt, none of a child's
    assert gone(int((tmp_path / "id").read_text()))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_a_parent_that_could_not_end_them(tmp_path: Path, how: int) -> None:
    process = script(tmp_path, "60")
    assert process.stdout is not None
    assert "Progress" in process.stdout.readline()
    process.send_signal(how)
    assert process.wait(30) == -how
    worker, deadline = int((tmp_path / "id").read_text()), time.monotonic() + 10
    while not gone(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert gone(worker)
    process.communicate()


def test_results_do_not_depend_on_the_number_of_workers() -> None:
    tasks = {name: name for name in ("aggregated", "client_specific")}
    assert results(train, tasks, workers=1) == results(train, tasks, workers=2)
