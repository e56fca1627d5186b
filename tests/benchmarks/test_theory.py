"""The benchmark of the theory runs in every part and judges what it measures."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=ROOT
    )


def test_parts_run_at_small_sizes_and_leave_the_stored_result_alone():
    stored = (ROOT / "benchmarks" / "results" / "theory.md").read_bytes()
    parts = ("spectrum", "one_covariance", "gaussian_clients", "federation")
    done = run("-m", "benchmarks.theory", "--quick", *(f"--only={part}" for part in parts))
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| `")]
    assert len(rows) == 5 and all("met |" in row or "**missed** |" in row for row in rows)
    assert sum(row.startswith("| its width") for row in done.stdout.splitlines()) == 2
    assert "λ_min(G*∞) certified" in done.stdout
    assert (ROOT / "benchmarks" / "results" / "theory.md").read_bytes() == stored


@pytest.mark.slow
def test_all_parts_run_at_small_sizes():
    done = run("-m", "benchmarks.theory", "--quick")
    assert done.returncode == 0, done.stderr
    assert "neural-tangents" in done.stdout and "digits 4×4" in done.stdout


JUDGED = """
from benchmarks._timing import Row
above, at, alone = (Row("w", "p", 2.0, peer, "s", 1) for peer in (1.9, 2.0, None))
assert above.missed and "**missed**" in str(above)
assert not at.missed and str(at).endswith("met |")
assert not alone.missed and "none" in str(alone)
assert Row("w", "p", float("nan"), 1.0, "s", 1).missed
"""

PROFILED = """
import numpy as np, theory
from benchmarks._profile import profile
k = theory.gram_matrix(np.random.default_rng(0).standard_normal((1200, 20)))
lines = profile(lambda: theory.smallest_eigenvalue(k))
assert lines and all("%" in line and ".py:" in line for line in lines), lines
assert profile(lambda: None) == []
"""


@pytest.mark.parametrize("script", [JUDGED, PROFILED], ids=["judged", "profiled"])
def test_rows_are_judged_and_misses_profiled(script):
    done = run("-c", script)
    assert done.returncode == 0, done.stderr
