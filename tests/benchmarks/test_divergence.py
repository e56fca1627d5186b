"""The benchmark of the divergence runs, and marks a promise that is broken."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks" / "results" / "divergence.md"

MARKED = """
from benchmarks.divergence import share
assert share([True] * 95 + [False] * 5, at_least=0.95) == "95.0 %"
assert share([True] * 80 + [False] * 20, at_least=0.95) == "**80.0 %**"
assert share([True] * 20 + [False] * 80, at_most=0.05) == "**20.0 %**"
assert share([True] * 20 + [False] * 80) == "20.0 %"
"""

ROWS = """
import numpy as np
from benchmarks.divergence import half_spaces, pairs_of_networks, popular
assert half_spaces(100, 0.24, 2).startswith("| 100, 0.24 | ")
assert pairs_of_networks(40, 3.0, 2).startswith("| 40, 3, 0.667 | ")
# What the popular recipe calls the divergence of one law is positive by construction.
assert all(popular(*np.random.default_rng(k).normal(size=(2, 40, 5)))[0] >= 0 for k in range(10))
"""


def run(script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr


def test_a_broken_promise_is_bold():
    run(MARKED)


def test_a_row_of_each_table():
    run(ROWS)


def test_the_stored_table_breaks_no_promise_of_ours():
    text = RESULT.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| 1") or line.startswith("| 4")]
    assert len(rows) == 18
    head = next(line for line in text.splitlines() if line.startswith("| n, d_H |"))
    ours = head.split(" | ").index("popular: mean")
    assert not any("**" in " | ".join(line.split(" | ")[:ours]) for line in rows)
