"""Where a computation spends its time: samples of what its threads are doing."""

import linecache
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import theory

_OWN = str(Path(theory.__file__).parent)
_EVERY = 0.005  # seconds


def profile(work: Callable[[], object], most: int = 6) -> list[str]:
    """Runs `work`; returns the lines of theory/ that it was in most often, with their shares.

    A line stands for itself and for what it calls outside theory/, such as BLAS. Threads that wait
    for others do not count, nor do those that are not in theory/ at all.
    """
    found: Counter[tuple[str, int, str]] = Counter()
    done = threading.Event()
    sampler = threading.Thread(target=_sample, args=(found, done), daemon=True)
    sampler.start()
    try:
        work()
    finally:
        done.set()
        sampler.join()
    total = max(1, sum(found.values()))
    return [
        f"{count / total:.0%} `{Path(file).name}:{line}` in `{name}`: "
        f"`{linecache.getline(file, line).strip()}`"
        for (file, line, name), count in found.most_common(most)
        if count >= total / 50
    ]


def _sample(found: Counter[tuple[str, int, str]], done: threading.Event) -> None:
    own = threading.get_ident()
    while not done.is_set():
        for thread, frame in sys._current_frames().items():
            place = _innermost(frame)
            if thread != own and place is not None:
                found[place] += 1
        time.sleep(_EVERY)


def _innermost(frame: FrameType | None) -> tuple[str, int, str] | None:
    """The innermost line of theory/, or None where there is none or the thread waits."""
    if frame is None or frame.f_code.co_filename == threading.__file__:
        return None
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_OWN):
            return code.co_filename, frame.f_lineno, code.co_name
        frame = frame.f_back
    return None
