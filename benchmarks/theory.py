"""Speed of Gram matrices and certified eigenvalues, as ratios against a peer in the same run.

    python -m benchmarks.theory

Prints a table and writes benchmarks/results/theory.md. Ours and the peer alternate and the best of
several rounds counts, so that other load on the machine moves both.
"""

import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy
from scipy import linalg
from threadpoolctl import threadpool_info

import theory

POINTS = 4000
RESULT = Path(__file__).parent / "results" / "theory.md"


def best(
    ours: Callable[[], object], peer: Callable[[], object], rounds: int
) -> tuple[float, float]:
    """Returns the shortest times of both, in seconds, measured alternately."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for work, into in zip((ours, peer), times, strict=True):
            start = time.perf_counter()
            work()
            into.append(time.perf_counter() - start)
    return min(times[0]), min(times[1])


def rows() -> list[tuple[str, str, float, float, str]]:
    """Measures; returns what, peer, our time, the peer's time, target."""
    rng = np.random.default_rng(0)
    result = []
    for d in (784, 20):
        x = rng.standard_normal((POINTS, d))
        if d == 784:
            ours, peer = best(lambda x=x: theory.gram_matrix(x), lambda x=x: x @ x.T, 7)
            result.append((f"gram_matrix, d = {d}", "X Xᵀ", ours, peer, "2"))
        k = theory.gram_matrix(x)
        ours, peer = best(
            lambda k=k: theory.smallest_eigenvalue(k), lambda k=k: linalg.eigvalsh(k), 3
        )
        result.append((f"smallest_eigenvalue, d = {d}", "scipy eigvalsh", ours, peer, "0.4"))
        found, trace = theory.smallest_eigenvalue(k), float(np.trace(k))
        allowed = 1e-6 * found.upper + 4 * (POINTS + 3) * 2.0**-53 * trace
        result.append((f"its width, d = {d}", "allowed width", found.width, allowed, "1"))
    return result


def table() -> str:
    """The measurements as Markdown."""
    threads = sorted({pool["num_threads"] for pool in threadpool_info()})
    lines = [
        "# Theory: speed and tightness",
        "",
        f"n = {POINTS:,}, float64, BLAS threads {threads}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, {platform.machine()}. Times in seconds, best of several.",
        "",
        "| what | against | ours | peer | ratio | target |",
        "|---|---|---|---|---|---|",
    ]
    for what, peer_name, ours, peer, target in rows():
        lines.append(
            f"| {what} | {peer_name} | {ours:.3g} | {peer:.3g} | {ours / peer:.2f} | <= {target} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = table()
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(text, encoding="utf-8")
    print(text)
