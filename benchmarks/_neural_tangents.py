"""`gram_matrix` beside neural-tangents' jitted kernel, in a process of their own.

    python -m benchmarks._neural_tangents POINTS DIMENSION ROUNDS

Prints one line of JSON. A process of its own, because JAX and TensorFlow are heavy and their
threads would disturb the other measurements. XLA takes as many threads as NPROC says, BLAS those
of the caller's environment. Both get points that lie ready as float64 (JAX's on its device), and
compilation is left out; the two matrices are compared as well.
"""

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import theory
from benchmarks._timing import best

_ROOT = Path(__file__).parent.parent


def installed() -> bool:
    """Whether neural-tangents is there; imports nothing."""
    return importlib.util.find_spec("neural_tangents") is not None


def in_process(points: int, dimension: int, rounds: int, threads: int) -> dict[str, Any]:
    """What `measure` finds in a process of its own, or {"failed": why}."""
    count = str(threads)
    variables = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(points), str(dimension), str(rounds)],
        capture_output=True,
        text=True,
        check=False,
        cwd=_ROOT,
        env=os.environ | dict.fromkeys(variables, count) | {"TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["no output"])[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(points: int, dimension: int, rounds: int) -> dict[str, Any]:
    """Times of both, the largest difference over √(K_pp K_qq), and the versions."""
    jax: Any = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    stax: Any = importlib.import_module("neural_tangents.stax")
    x = np.random.default_rng(0).standard_normal((points, dimension))
    _, _, kernel_fn = stax.serial(
        stax.Dense(1, W_std=np.sqrt(dimension), b_std=None),
        stax.Relu(),
        stax.Dense(1, W_std=1.0, b_std=None),
    )
    # Without x2 the diagonal stays exact, and it is the faster call.
    jitted = jax.jit(lambda z: kernel_fn(z, None, "nngp"))
    there = jax.device_put(x)
    theirs = np.asarray(jitted(there).block_until_ready())
    assert theirs.dtype == np.float64
    mine = theory.gram_matrix(x)
    size = np.sqrt(mine.diagonal())
    ours, peer = best(
        lambda: theory.gram_matrix(x), lambda: jitted(there).block_until_ready(), rounds
    )
    return {
        "ours": ours,
        "peer": peer,
        "difference": float((np.abs(theirs - mine) / size[:, None] / size).max()),
        "versions": f"neural-tangents {importlib.metadata.version('neural-tangents')}, "
        f"JAX {importlib.metadata.version('jax')}",
    }


if __name__ == "__main__":
    print(json.dumps(measure(*map(int, sys.argv[1:4]))))
