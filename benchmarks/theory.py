"""Speed, tightness and memory of the theory, as ratios against a peer or a limit in one run.

    python -m benchmarks.theory                  # all parts, minutes; writes results/theory.md
    python -m benchmarks.theory --only gram      # one part (repeatable), printed only
    python -m benchmarks.theory --quick          # small sizes, printed only: does it run at all?

Ours and the peer alternate and the best of several rounds counts, so that other load on the machine
moves both. Where a target is missed, a profile under the table says what takes the time.
"""

import argparse
import dataclasses
import os
import platform
import sys
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy
from scipy import linalg
from threadpoolctl import threadpool_info

import theory
from benchmarks import _memory, _neural_tangents
from benchmarks._profile import profile
from benchmarks._timing import Row, Work, best, seconds

RESULT = Path(__file__).parent / "results" / "theory.md"
TOLERANCE = 1e-10
SECONDS = 90.0
GIB = 2.0**30


@dataclass(frozen=True)
class Sizes:
    """How large everything is; the defaults are those that the targets speak of."""

    points: int = 4000
    dimensions: tuple[int, int] = (784, 20)
    one_covariance: int = 2000
    samples: int = 2000
    own: int = 200
    clients: tuple[int, int] = (50, 1000)
    rounds: int = 7
    pixels: int = 28


QUICK = Sizes(300, (40, 20), 200, 100, 20, (6, 50), 2, 4)


def threads() -> int:
    """Threads of BLAS."""
    return max(pool["num_threads"] for pool in threadpool_info())


def gram(size: Sizes) -> Iterator[Row]:
    """Eq. (10) in closed form against the matrix product that it contains, and neural-tangents."""
    n, d = size.points, size.dimensions[0]
    x = np.random.default_rng(0).standard_normal((n, d))
    what = f"`gram_matrix`, n = {n:,}, d = {d}"

    def work() -> object:
        return theory.gram_matrix(x)

    ours, peer = best(work, lambda: x @ x.T, size.rounds)
    yield _judged(Row(what, "X Xᵀ", ours, peer, "s", 2), work)
    name = "neural-tangents, jitted"
    if not _neural_tangents.installed():
        yield Row(what, f"{name}: not installed", ours, None, "s", 1)
        return
    found = _neural_tangents.in_process(n, d, size.rounds, threads())
    if "failed" in found:
        yield Row(what, f"{name}: failed ({found['failed']})", ours, None, "s", 1)
        return
    note = (
        f"{found['versions']}, {threads()} threads, float64, compiled before; entries agree to "
        f"{found['difference']:.0e} of their size."
    )
    yield _judged(Row(what, name, found["ours"], found["peer"], "s", 1, note), work)


def spectrum(size: Sizes) -> Iterator[Row]:
    """Certified λ_min against an eigensolver without a certificate, and how wide the enclosure."""
    n = size.points
    for d in reversed(size.dimensions):
        k = theory.gram_matrix(np.random.default_rng(0).standard_normal((n, d)))
        what = f"`smallest_eigenvalue`, n = {n:,}, d = {d}"

        def work(k: np.ndarray = k) -> object:
            return theory.smallest_eigenvalue(k)

        ours, peer = best(work, lambda k=k: linalg.eigvalsh(k), max(2, size.rounds // 2))
        yield _judged(Row(what, "scipy eigvalsh", ours, peer, "s", 0.4), work)
        found = theory.smallest_eigenvalue(k)
        allowed = 1e-6 * found.lower + 4 * (n + 3) * 2.0**-53 * float(np.trace(k))
        note = f"d = {d}: λ_min in [{found.lower:.10g}, {found.upper:.10g}]."
        yield Row(f"its width, d = {d}", "allowed width", found.width, allowed, "", 1, note)


def one_covariance(size: Sizes) -> Iterator[Row]:
    """The exact kernel of networks with BN, one covariance for all, against the matrix product."""
    n, d, samples = size.one_covariance, size.dimensions[0], size.samples
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((samples, d)), rng.standard_normal((n, d))
    s, client = w.T @ w / samples, np.zeros(n, dtype=int)

    def work() -> theory.BNGram:
        return theory.bn_gram_matrix(x, client, s, tolerance=TOLERANCE)

    ours, peer = best(work, lambda: x @ x.T, size.rounds)
    note = f"S of {samples:,} samples: {_described(work(), [s])}."
    what = f"`bn_gram_matrix`, one Wishart S, n = {n:,}, d = {d}"
    yield _judged(Row(what, "X Xᵀ", ours, peer, "s", 25, note), work)


def gaussian_clients(size: Sizes) -> Iterator[Row]:
    """The same for four clients of different covariances: six pairs, each a double integral."""
    d, samples, rng = size.dimensions[0], size.samples, np.random.default_rng(0)
    points, covariances = [], {}
    for name in "abcd":
        basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
        drawn = rng.standard_normal((samples, d)) * np.geomspace(1, 0.0165, d) @ basis.T
        drawn -= drawn.mean(axis=0)
        points.append(drawn[: size.own])
        covariances[name] = drawn.T @ drawn / samples
    yield _four(np.concatenate(points), covariances, f"Gaussian, S_i of {samples:,} samples")


def digits(size: Sizes) -> Iterator[Row]:
    """The same on the embedded digits in grey, whose covariances are singular without a ridge."""
    import empirical  # joins both sides, as only a benchmark and the command line may

    points, covariances = [], {}
    for client in empirical.load_federation("digits"):
        images = client.train.images.numpy().mean(axis=1) / 255
        side = images.shape[1] // size.pixels
        flat = images.reshape(len(images), size.pixels, side, size.pixels, side).mean(axis=(2, 4))
        x = flat.reshape(len(flat), -1)
        x = x - x.mean(axis=0)
        covariances |= theory.client_covariances(x, [client.name] * len(x), ridge=1e-3)
        rows = np.random.default_rng(0).choice(len(x), size.own, replace=False)
        points.append(x[np.sort(rows)])
    what = f"digits {size.pixels}×{size.pixels} in grey, ridge 1e-3"
    yield _four(np.concatenate(points), covariances, what)


def federation(size: Sizes) -> Iterator[Row]:
    """λ_min(G*∞) of many clients, and the memory that it takes."""
    count, samples = size.clients
    d = size.dimensions[0]
    found = _memory.in_process(count, samples, d)
    certified = "certified" if found["lower"] > 0 else "**not certified**"
    note = (
        f"λ_min(G*∞) {certified} in [{found['lower']:.10g}, {found['upper']:.10g}], "
        f"{found['seconds']:.1f} s; (NM)² numbers would take "
        f"{8 * (count * samples) ** 2 / GIB:.1f} GiB."
    )
    what = f"`client_smallest_eigenvalue`, {count} clients × {samples:,} points, d = {d}, peak RSS"
    yield Row(what, "2 GiB", found["peak"] / GIB, 2.0, "GiB", 1, note)


PARTS: dict[str, Callable[[Sizes], Iterator[Row]]] = {
    part.__name__: part
    for part in (gram, spectrum, one_covariance, gaussian_clients, digits, federation)
}


def _four(x: np.ndarray, covariances: dict[Hashable, np.ndarray], what: str) -> Row:
    own = len(x) // len(covariances)
    client = np.repeat(np.array(list(covariances)), own)
    found: list[theory.BNGram] = []
    spent: list[float] = []

    def work() -> None:
        found.append(theory.bn_gram_matrix(x, client, covariances, tolerance=TOLERANCE))

    cpu = time.process_time()
    lines = profile(lambda: spent.append(seconds(work)))  # one run: sampling costs next to nothing
    cpu = time.process_time() - cpu
    note = f"{what}: {_described(found[0], list(covariances.values()))}, {cpu:.0f} s of CPU."
    name = f"`bn_gram_matrix`, 4 clients × {own}, d = {x.shape[1]}, {what}"
    return Row(name, f"{SECONDS:g} s", spent[0], SECONDS, "s", 1, note, tuple(lines))


def _described(found: theory.BNGram, covariances: list[np.ndarray]) -> str:
    condition = max(float(np.linalg.cond(s)) for s in covariances)
    relative = found.error / float(np.trace(found.matrix))
    return (
        f"condition {condition:.1e}, tolerance {TOLERANCE:g}, {found.method}, bound of the error "
        f"{relative:.1e} of the trace"
    )


def _judged(row: Row, work: Work) -> Row:
    """The row, with a profile if its target is missed."""
    return dataclasses.replace(row, profile=tuple(profile(work))) if row.missed else row


def load() -> float:
    """How many processes want a core, a mean over the last minute; 0 where that is unknown."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def report(rows: list[Row], before: float) -> str:
    """The measurements as Markdown; `before` is the load when they began."""
    lines = [
        "# Theory: speed, tightness, memory",
        "",
        f"`python -m benchmarks.theory`, float64, {threads()} BLAS threads, Python "
        f"{platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"{platform.machine()}. Peers run in turn with ours, the best of several counts; limits "
        f"are met by one run. Load {before:.1f} before and {load():.1f} after, on {os.cpu_count()} "
        "cores: the limits in seconds are meant for a machine that does nothing else.",
        "",
        "| what | against | ours | peer or limit | ratio | target | |",
        "|---|---|---|---|---|---|---|",
        *map(str, rows),
        "",
    ]
    lines += [f"- {row.note}" for row in rows if row.note]
    for row in (row for row in rows if row.missed and row.profile):
        lines += ["", f"**{row.what} misses its target.** Where its time goes:", ""]
        lines += [f"- {line}" for line in row.profile]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measures the parts asked for and prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", choices=sorted(PARTS), help="a part to run")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    arguments = parser.parse_args()
    rows: list[Row] = []
    before = load()
    for name in arguments.only or PARTS:
        print(f"{name} …", file=sys.stderr, flush=True)
        for row in PARTS[name](QUICK if arguments.quick else Sizes()):
            print(f"  {row}", file=sys.stderr, flush=True)
            rows.append(row)
    text = report(rows, before)
    if not (arguments.only or arguments.quick):
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
