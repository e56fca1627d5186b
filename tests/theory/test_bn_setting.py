"""What BN kernels accept, what they refuse, and singular covariances."""

import numpy as np
import pytest

from theory import _bn_assembly
from theory.bn_kernel import bn_client_gram_matrix, bn_gram_matrix, bn_ntk
from theory.covariances import client_covariances


def made(d=4, n=6, clients=2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    halves = rng.standard_normal((clients, d, d + 2))
    return x, [k % clients for k in range(n)], halves @ halves.transpose(0, 2, 1)


X, CLIENT, S = made()
LOPSIDED = S[0] + np.triu(np.ones((4, 4)), 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.full((6, 4), np.nan)}, "NaN"),
        ({"x": X[:, :3]}, r"has shape \(2, 4, 4\)"),
        ({"client": CLIENT[:5]}, "5 labels"),
        ({"covariances": -1.0}, "positive"),
        ({"covariances": {0: S[0]}}, "no entry for client 1"),
        ({"covariances": np.stack([LOPSIDED, S[1]])}, "not symmetric"),
        ({"covariances": np.zeros((4, 4))}, "zero"),
        ({"covariances": np.diag([1.0, 1.0, 1.0, -1.0])}, "negative variance"),
        ({"covariances": np.ones((4, 4)) - 0.5 * np.eye(4)}, "no covariance"),
        ({"covariances": S[:, :3, :3]}, "one number"),
        ({"covariances": {0: 1e-80 * S[0], 1: 1e80 * S[1]}}, "100 decades"),
        ({"eps": -1e-5}, "eps"),
        ({"eps": np.inf}, "eps"),
        ({"alpha": 0.0}, "alpha"),
        ({"component": "both"}, '"magnitude" or "direction"'),
        ({"tolerance": 1e-15}, "tolerance"),
        ({"tolerance": 0.5}, "tolerance"),
    ],
)
def test_bad_input_is_refused_with_advice(change, message):
    arguments = {"x": X, "client": CLIENT, "covariances": S, **change}
    with pytest.raises(ValueError, match=message):
        bn_gram_matrix(**arguments)


TABLE = type("Series", (list,), {"index": [0, 1], "to_dict": dict})


@pytest.mark.parametrize("eps", [0.0, 1e-5, 10.0])
@pytest.mark.parametrize("depth", [1e-6, 1e-3, 1.0])
def test_a_matrix_that_is_no_covariance_is_refused_whatever_eps_is(eps, depth):
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    bad = (turn * np.array([1.0, 1.0, 0.5, -depth])) @ turn.T
    bad = (bad + bad.T) / 2
    for kernel in (bn_gram_matrix, bn_client_gram_matrix):
        with pytest.raises(ValueError, match=r"no covariance|negative variance"):
            kernel(X, CLIENT, {0: bad, 1: S[1]}, eps)


def test_a_table_with_an_index_is_not_read_by_position():
    with pytest.raises(TypeError, match="to_dict"):
        bn_gram_matrix(X, CLIENT, TABLE([1.0, 4.0]))


@pytest.mark.parametrize("covariances", [1.0, S])
@pytest.mark.parametrize("size", [1e-160, 2.0**-530, 1e160])
def test_kernels_at_the_end_of_the_range_are_refused_and_not_rounded(covariances, size):
    with pytest.raises(ValueError, match=r"range of float64|rescale"):
        bn_gram_matrix(X * size, CLIENT, covariances)


@pytest.mark.parametrize(
    ("eps", "alpha"), [(1e300, 1.0), (1e-5, 1e-200), (1e-5, 1e60), (1.0, 1e-40), (1e308, 1.0)]
)
@pytest.mark.parametrize("component", ["magnitude", "direction"])
def test_eps_out_of_all_proportion_is_refused(component, eps, alpha):
    with pytest.raises(ValueError, match=r"gram_matrix\(x, alpha\)/eps"):
        bn_gram_matrix(X, CLIENT, S, eps, alpha, component)


@pytest.mark.parametrize("component", ["magnitude", "direction"])
def test_large_eps_within_proportion_is_fine(component):
    for eps, alpha in ((1e50, 1.0), (1e-5, 1e-25), (1e-300, 1.0)):
        found = bn_gram_matrix(X[:2], CLIENT[:2], S, eps, alpha, component, tolerance=1e-3)
        assert 0 < found.error < 1e-2 * np.abs(found.matrix).max()


@pytest.mark.parametrize("alpha", [1e-170, 1e160])
def test_alpha_that_leaves_float64_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha"):
        bn_ntk(X, CLIENT, S, alpha=alpha, client_specific=False)


@pytest.mark.parametrize(("size", "what"), [(1e-170, "too small"), (1e170, "too large")])
def test_covariances_that_lose_their_digits_are_refused(size, what):
    with pytest.raises(ValueError, match=what):
        client_covariances(X * size, CLIENT)


@pytest.mark.parametrize("covariances", ["identity", [["a"]], {0: "a", 1: "b"}, None])
def test_what_is_no_covariance_is_refused(covariances):
    with pytest.raises((TypeError, ValueError), match="covariances"):
        bn_gram_matrix(X, CLIENT, covariances)


def test_all_forms_of_one_covariance_are_the_same_kernel():
    one = bn_gram_matrix(X, CLIENT, S[0]).matrix
    for same in (np.stack([S[0], S[0]]), {0: S[0], 1: S[0].copy()}, S[0].tolist()):
        assert (bn_gram_matrix(X, CLIENT, same).matrix == one).all()
    number = bn_gram_matrix(X, CLIENT, 2.0)
    matrix = bn_gram_matrix(X, CLIENT, 2.0 * np.eye(4))
    assert (number.matrix == matrix.matrix).all() and number.method.startswith("closed form")


def ranged(rank=3, d=5, seed=1):
    """Two clients whose covariances share a range of that rank, and points in it."""
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.standard_normal((d, rank)))
    halves = rng.standard_normal((2, rank, rank + 2))
    small = halves @ halves.transpose(0, 2, 1)
    low = rng.standard_normal((6, rank))
    wide = np.stack([basis @ s @ basis.T for s in small])
    return low, small, low @ basis.T, (wide + wide.transpose(0, 2, 1)) / 2


@pytest.mark.parametrize("component", ["magnitude", "direction"])
def test_a_common_range_is_all_that_counts(component):
    low, small, x, wide = ranged()
    found = bn_gram_matrix(x, CLIENT, wide, component=component)
    inside = bn_gram_matrix(low, CLIENT, small, component=component)
    # ‖v‖² counts all directions: E‖v‖²h = (d - 2)E h for h of degree -2, on either side.
    factor = 1.0 if component == "magnitude" else (5 - 2) / (3 - 2)
    gap = np.linalg.norm(found.matrix - factor * inside.matrix, 2)
    assert gap <= found.error + factor * inside.error
    assert found.error <= 1e-8 * np.trace(found.matrix)


@pytest.mark.parametrize("component", ["magnitude", "direction"])
def test_singular_covariances_are_the_limit_of_a_small_ridge(component):
    _, _, x, wide = ranged()
    found = bn_gram_matrix(x, CLIENT, wide, component=component)
    gaps = []
    for ridge in (1e-3, 1e-5):
        near = bn_gram_matrix(x, CLIENT, wide + ridge * np.eye(5), component=component)
        gaps.append(float(np.linalg.norm(near.matrix - found.matrix, 2)))
    size = float(np.linalg.norm(found.matrix, 2))
    # V of rank 3 nears its limit as slowly as the square root of the ridge.
    fall, left = (0.1, 1e-3) if component == "magnitude" else (0.2, 1e-2)
    assert gaps[1] < fall * gaps[0] and gaps[1] < left * size


def test_a_point_outside_the_range_is_named():
    _, _, x, wide = ranged()
    x = x.copy()
    x[4] += 0.1
    with pytest.raises(ValueError, match=r"row 4 .* leaves the range.*eps > 0"):
        bn_gram_matrix(x, CLIENT, wide)
    assert bn_gram_matrix(x, CLIENT, wide, eps=0.1).error > 0


def test_ranges_that_differ_are_refused_between_clients_but_not_within():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((6, 4))
    x[::2, 3] = 0.0
    x[1::2, 0] = 0.0
    s = {0: np.diag([1.0, 2.0, 3.0, 0.0]), 1: np.diag([0.0, 1.0, 1.0, 4.0])}
    with pytest.raises(ValueError, match=r"different directions.*ridge"):
        bn_gram_matrix(x, CLIENT, s)
    blocks = bn_client_gram_matrix(x, CLIENT, s)
    alone = bn_gram_matrix(x[::2, :3], [0] * 3, np.diag([1.0, 2.0, 3.0]))
    gap = np.linalg.norm(blocks.blocks[0] - alone.matrix, 2)
    assert gap <= blocks.errors[0] + alone.error
    ridged = client_covariances(x, CLIENT, ridge=1e-2)
    assert bn_gram_matrix(x, CLIENT, ridged).error < 1e-6


def test_the_direction_part_of_a_plane_in_space_is_infinite():
    low, small, _, _ = ranged(rank=2, d=2)
    x = np.hstack([low, np.zeros((6, 1))])
    wide = np.zeros((2, 3, 3))
    wide[:, :2, :2] = small
    assert bn_gram_matrix(x, CLIENT, wide).error > 0
    with pytest.raises(ValueError, match="rank 2 < 3"):
        bn_gram_matrix(x, CLIENT, wide, component="direction")


def test_zero_points_have_zero_rows():
    x = X.copy()
    x[2] = 0
    for component in ("magnitude", "direction"):
        found = bn_gram_matrix(x, CLIENT, S, component=component).matrix
        assert not found[2].any() and not found[:, 2].any() and found[0, 0] > 0
    assert not bn_gram_matrix(np.zeros((2, 4)), [0, 1], S).matrix.any()


@pytest.mark.parametrize("size", [1e-120, 1e120])
def test_extreme_units_of_the_points_only_scale(size):
    plain = bn_gram_matrix(X, CLIENT, S)
    found = bn_gram_matrix(X * size, CLIENT, S * size, tolerance=1e-10)
    assert np.allclose(found.matrix / size, plain.matrix, rtol=1e-9)


def test_the_sum_of_kernels_counts_both_errors():
    arguments = X, CLIENT, S
    turning = bn_gram_matrix(*arguments, component="direction")
    growing = bn_gram_matrix(*arguments)
    for specific in (False, True):
        found = bn_ntk(*arguments, alpha=3.0, client_specific=specific)
        mask = np.equal.outer(CLIENT, CLIENT) if specific else 1.0
        assert np.allclose(found.matrix, turning.matrix / 9 + growing.matrix * mask, rtol=1e-9)
        assert found.error > turning.error / 9
    with pytest.raises(TypeError, match="client_specific"):
        bn_ntk(*arguments, alpha=3.0, client_specific="yes")


@pytest.mark.parametrize("component", ["magnitude", "direction"])
def test_threads_change_no_bit(component, monkeypatch):
    single = bn_gram_matrix(X, CLIENT, S, component=component)
    monkeypatch.setattr(_bn_assembly, "_WORTH_THREADS", 1)
    monkeypatch.setattr(_bn_assembly, "threadpool_info", lambda: [{"num_threads": 3}])
    several = bn_gram_matrix(X, CLIENT, S, component=component)
    assert (single.matrix == several.matrix).all() and single.error == several.error


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("component", ["magnitude", "direction"])
def test_batches_of_nodes_and_tiles_change_nothing_but_rounding(component, batch, monkeypatch):
    from theory import _bn_blocks

    whole = bn_gram_matrix(X, CLIENT, S, component=component)
    monkeypatch.setattr(_bn_blocks, "_BATCH", batch * 9)
    monkeypatch.setattr(_bn_blocks, "_TILE", 2)
    parts = bn_gram_matrix(X, CLIENT, S, component=component)
    assert np.allclose(whole.matrix, parts.matrix, rtol=1e-12, atol=1e-14)
    assert parts.error == pytest.approx(whole.error, rel=1e-6)


def test_a_covariance_is_that_of_the_centred_points_with_its_ridge():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((9, 3)) + 5
    client = [0] * 4 + [1] * 5
    found = client_covariances(x, client, ridge=0.5)
    for name, rows in ((0, slice(0, 4)), (1, slice(4, 9))):
        plain = np.cov(x[rows].T, bias=True)
        assert np.allclose(found[name], plain + 0.5 * np.trace(plain) / 3 * np.eye(3))
    with pytest.raises(ValueError, match=r"client 1.*no covariance"):
        client_covariances(x[:5], client[:5])
    with pytest.raises(ValueError, match="ridge"):
        client_covariances(x, client, ridge=-1.0)
