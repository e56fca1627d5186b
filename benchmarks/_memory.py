"""λ_min(G*∞) of many clients, certified in a process of its own whose memory is measured.

    python -m benchmarks._memory CLIENTS SAMPLES DIMENSION

Prints one line of JSON.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import theory

_ROOT = Path(__file__).parent.parent


def in_process(clients: int, samples: int, dimension: int) -> dict[str, Any]:
    """What `measure` finds in a process of its own."""
    size = map(str, (clients, samples, dimension))
    done = subprocess.run(
        [sys.executable, "-m", __name__, *size],
        capture_output=True,
        text=True,
        check=True,
        cwd=_ROOT,
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(clients: int, samples: int, dimension: int) -> dict[str, Any]:
    """The enclosure, its time, and the largest resident memory in bytes, the points included."""
    x = np.random.default_rng(0).standard_normal((clients * samples, dimension))
    client = np.repeat(np.arange(clients), samples)
    start = time.perf_counter()
    found = theory.client_smallest_eigenvalue(x, client)
    return {
        "seconds": time.perf_counter() - start,
        "lower": found.lower,
        "upper": found.upper,
        "peak": peak(),
    }


def peak() -> float:
    """The largest resident memory of this process so far, in bytes.

    Linux hands `ru_maxrss` of the parent on to the child; VmHWM is the process's own.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text(encoding="utf-8").splitlines()
        found = [line for line in lines if line.startswith("VmHWM")]
        if found:
            return 1024.0 * int(found[0].split()[1])
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    print(json.dumps(measure(*map(int, sys.argv[1:4]))))
