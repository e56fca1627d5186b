"""G*∞ block by block against the same with all blocks stored, and its memory."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import threadpoolctl

import theory
from theory import clients
from theory._kernels import as_kernel
from theory._progress import Meter

PAIRS = (
    (theory.client_smallest_eigenvalue, theory.smallest_eigenvalue),
    (theory.client_largest_eigenvalue, theory.largest_eigenvalue),
)


def federation(n=240, d=7, clients=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.permutation(np.arange(n) % clients)


@pytest.mark.parametrize(("by_block", "stored"), PAIRS)
def test_it_is_what_all_blocks_stored_give(by_block, stored):
    x, client = federation()
    blocks = theory.client_gram_matrix(x, client, 1.7)
    # One thread of BLAS here as there, so that all bits agree.
    assert by_block(x, client, 1.7) == stored(blocks, blocks.errors)
    blocks = theory.normalised_client_gram_matrix(x, client, 0.3)
    found = by_block(x, client, kernel="normalised", scale=0.3)
    assert found == stored(blocks, blocks.errors)
    assert found.block in client


def test_the_number_of_threads_changes_nothing():
    x, client = federation(clients=5)
    found = []
    for threads in (1, 2, 4):
        with threadpoolctl.threadpool_limits(threads, user_api="blas"):
            found.append([by_block(x, client) for by_block, _ in PAIRS])
    assert found[0] == found[1] == found[2]


def test_clients_of_one_point_one_client_and_unequal_clients():
    x = np.random.default_rng(2).standard_normal((6, 20))
    entries = (x**2).sum(axis=1) / 2
    single = theory.client_smallest_eigenvalue(x, list("uvwxyz"))
    assert single.contains(entries.min()) and single.block == "uvwxyz"[entries.argmin()]
    assert theory.client_largest_eigenvalue(x, list("uvwxyz")).contains(entries.max())
    one = theory.client_smallest_eigenvalue(x, [("a", 1)] * 6)
    same = theory.smallest_eigenvalue(theory.gram_matrix(x), theory.gram_error(x))
    assert (one.lower, one.upper, one.block) == (same.lower, same.upper, ("a", 1))
    uneven = theory.client_smallest_eigenvalue(x, list("abbbbb"))
    blocks = theory.client_gram_matrix(x, list("abbbbb"))
    assert uneven == theory.smallest_eigenvalue(blocks, blocks.errors)


def test_a_singular_client_is_named_with_its_rows_and_others_do_not_matter():
    x, client = federation()
    first, second = np.flatnonzero(client == 3)[[2, 5]]
    x[second] = 2 * x[first]
    x[np.flatnonzero(client == 1)[0]] = x[np.flatnonzero(client == 2)[0]]  # across: harmless
    found = theory.client_smallest_eigenvalue(x, client)
    assert found.lower <= 0 <= found.upper and found.block == 3
    assert found.rows == (first, second) and "duplicates" in found.cause


def test_progress_reaches_one():
    x, client = federation()
    for labels in (client, client * 0):
        seen = []
        theory.client_smallest_eigenvalue(x, labels, progress=seen.append)
        assert seen == sorted(set(seen)) and seen[-1] == 1.0


def test_no_more_blocks_are_held_than_are_worked_on():
    x, client = federation(n=6000, d=4, clients=30)
    tracemalloc.start()
    theory.client_smallest_eigenvalue(x, client)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    block, points = 8 * 200**2, 8 * 6000 * 4
    # A block, a copy, two subspaces of 150 vectors, and some copies of the points: not 30 blocks.
    assert peak < 2 * block + 8 * 200 * 320 + 10 * points < 20 * block


def test_bad_input_is_refused():
    x, client = federation(n=12, clients=2)
    for change, error, message in (
        (dict(x=x[0]), ValueError, "two dimensions"),
        (dict(client=client[:3]), ValueError, "3 labels"),
        (dict(alpha=-1.0), ValueError, "alpha must be positive"),
        (dict(kernel="exact"), ValueError, '"printed" or "normalised"'),
        (dict(kernel="printed", scale=2.0), ValueError, "leave scale out"),
        (dict(progress=1), TypeError, "progress must be a function"),
        (dict(x=np.where(np.arange(12)[:, None] == 7, 1e-200, x)), ValueError, "row 7 of x"),
    ):
        with pytest.raises(error, match=message):
            theory.client_smallest_eigenvalue(**(dict(x=x, client=client) | change))


def test_a_block_that_does_not_fit_is_refused_by_name():
    x, client = federation()
    blocks = clients.Blocks(x, clients.as_groups(client, len(x)), as_kernel("printed", 1.0, 1.0))
    need = clients.block_bytes(40)
    found = clients.certify_blocks(blocks, (1,), Meter(None), need)
    assert len(found) == 6 and {part[0].block for part in found} == set(range(6))
    with pytest.raises(ValueError, match=r"block of client \d \(40 points\) takes .* a sample"):
        clients.certify_blocks(blocks, (1,), Meter(None), need - 1)


SCRIPT = """
import resource
import numpy as np, theory
x = np.random.default_rng(0).standard_normal((50_000, 784))
found = theory.client_smallest_eigenvalue(x, np.repeat(np.arange(50), 1000))
assert found.lower > 0, found
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_fifty_clients_of_a_thousand_samples_take_less_than_two_gigabytes():
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 2 * 2**30
