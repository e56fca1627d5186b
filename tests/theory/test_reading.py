import numpy as np
import pytest

from theory.reading import NAMES, reading_kernels, readings, readings_over

VARIANCES = {"a": 0.4, "b": 2.0, "c": 1.0}


def sample(seed, n=9, d=4):
    x = np.random.default_rng(seed).standard_normal((n, d))
    return x, np.array(list("abc") * (n // 3))


def plain(x, client, alpha):
    """Both sides of every reading by NumPy alone; κ₁ by its formula, wrong by about 1e-8."""
    d, own = x.shape[1], np.array([VARIANCES[name] for name in client])
    size = np.linalg.norm(x, axis=1)
    c = np.clip(x @ x.T / np.outer(size, size), -1, 1)
    angle = np.arccos(c)
    kappa = np.outer(size, size) * (np.sin(angle) + (np.pi - angle) * c) / 2 / np.pi / d
    v = (x @ x.T * (np.pi - angle) / 2 / np.pi - kappa) / np.sqrt(np.outer(own, own)) / alpha**2
    g, same = kappa / np.sqrt(np.outer(own, own)), client[:, None] == client[None, :]
    sides = {"masked": (g, g * same), "pooled": (kappa / own.mean(), g * same)}
    sides["full"] = v + g, v + g * same
    return {name: [np.linalg.eigvalsh(m) for m in pair] for name, pair in sides.items()}


@pytest.mark.parametrize("alpha", [0.5, 6.0])
@pytest.mark.parametrize("seed", range(3))
def test_every_side_is_that_of_plain_numpy(seed, alpha):
    x, client = sample(seed)
    found, wanted = readings(x, client, alpha, VARIANCES), plain(x, client, alpha)
    assert tuple(reading.name for reading in found) == NAMES
    for reading in found:
        whole, own = wanted[reading.name]
        for inequality, (left, right) in (
            (reading.smallest, (whole[0], own[0])),
            (reading.largest, (own[-1], whole[-1])),
            (reading.condition, (own[-1] / own[0], whole[-1] / whole[0])),
        ):
            assert inequality.lhs.midpoint == pytest.approx(left, rel=1e-5)
            assert inequality.rhs.midpoint == pytest.approx(right, rel=1e-5)
            certain = "certified" if left < right else "violated"
            assert inequality.verdict == certain
    assert found.masked.proven and not found.pooled.proven and not found.full.proven
    loss = 2.0 / np.mean([0.4, 2.0, 1.0])
    assert found.remains.rhs.midpoint == pytest.approx(loss * found.pooled.smallest.rhs.midpoint)
    assert found.remains.verdict == "certified"


def test_one_point_of_each_kind_of_failure():
    # Orthogonal points: pooled fails at λ = 1 and 0.1, Λ fails at α = 1; masking never does.
    found = readings(np.eye(2), [0, 1], 1.0, [1.0, 0.1])
    assert [reading.smallest.verdict for reading in found] == ["certified", "violated", "violated"]
    assert found.full.largest.verdict == found.full.condition.verdict == "violated"
    text = str(found)
    assert "masked: λ_min(G) ≤ λ_min(G*): holds, certified, as proven" in text
    assert "full: λ_min(Λ) ≤ λ_min(Λ*): fails, certified" in text and "closed form" in text


def test_a_large_alpha_leaves_the_corollary():
    x, client = sample(5)
    found = readings(x, client, 1e4, 1.0)
    full, masked = found.full.smallest, found.masked.smallest
    assert full.lhs.midpoint == pytest.approx(masked.lhs.midpoint, rel=1e-3)
    assert full.verdict == "certified"


def test_several_alphas_share_their_kernels():
    x, client = sample(4)
    over = readings_over(x, client, (0.5, 2.0), VARIANCES)
    for alpha, found in zip((0.5, 2.0), over, strict=True):
        assert found == readings(x, client, alpha, VARIANCES) and found.alpha == alpha


def test_a_singular_kernel_has_no_condition_number():
    x, client = sample(6)
    x[1] = 3 * x[0]  # of another client
    found = readings(x, client, 1.0, VARIANCES)
    assert found.masked.condition is None and found.pooled.condition is None
    assert found.masked.inequalities().keys() == {"smallest", "largest"}
    assert found.masked.smallest.verdict in ("certified", "consistent")


def test_bad_input_is_refused_in_one_sentence():
    x, client = sample(8)
    with pytest.raises(ValueError, match="alpha must be positive"):
        readings(x, client, 0.0, 1.0)
    with pytest.raises(ValueError, match="8 labels"):
        readings(x, client[:-1], 1.0, 1.0)


def general(seed=0, n=8, d=3):
    """Two clients with covariances that do not commute, of condition about 3."""
    random = np.random.default_rng(seed)
    roots = random.standard_normal((2, d, d))
    covariances = {k: 0.3 * r @ r.T + np.eye(d) for k, r in zip("ab", roots, strict=True)}
    return random.standard_normal((n, d)), np.array(list("ab") * (n // 2)), covariances


def test_general_covariances_agree_with_monte_carlo():
    x, client, covariances = general()
    kernels = reading_kernels(x, client, covariances, tolerance=1e-8)
    v = np.random.default_rng(1).standard_normal((200_000, 3))
    active = np.maximum(v @ x.T, 0)
    size = np.stack([np.einsum("ij,jk,ik->i", v, covariances[c], v) for c in client], axis=1)
    mean = sum(covariances.values()) / 2
    pooled = np.einsum("ij,jk,ik->i", v, mean, v)
    for kernel, weighted in (
        (kernels.magnitude, active / np.sqrt(size)),
        (kernels.pooled, active / np.sqrt(pooled)[:, None]),
    ):
        # Standard errors are below 2e-3 here: five of them.
        np.testing.assert_allclose(kernel.matrix, weighted.T @ weighted / len(v), atol=1e-2)
        assert kernel.error < 1e-6


def test_draws_from_a_pool_are_the_kernels_of_the_draws():
    x, client, covariances = general(2, n=12)
    rows = np.array([10, 1, 2, 3, 4, 11])
    part = reading_kernels(x, client, covariances, tolerance=1e-8).restricted(rows)
    alone = reading_kernels(x[rows], client[rows], covariances, tolerance=1e-8)
    for name in ("magnitude", "direction"):
        whole, own = getattr(part, name), getattr(alone, name)
        assert np.linalg.norm(whole.matrix - own.matrix, 2) <= whole.error + own.error
        assert whole.groups.names == own.groups.names == ("a", "b")
    for found, wanted in zip(part.readings([2.0])[0], alone.readings([2.0])[0], strict=True):
        assert found.smallest.rhs.midpoint == pytest.approx(wanted.smallest.rhs.midpoint, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_proven_holds_for_general_covariances(seed):
    x, client, covariances = general(seed)
    found = readings(x, client, 1.5, covariances, tolerance=1e-6)
    assert "quadrature" in found.method and found.remains.verdict == "certified"
    for inequality in found.masked.inequalities().values():
        assert inequality.verdict == "certified"


@pytest.mark.parametrize("covariances", [1.0, {"a": 3.0}, np.diag([1.0, 2.0, 3.0]), None])
def test_with_one_client_both_sides_of_every_reading_are_one_matrix(covariances):
    x = np.random.default_rng(0).standard_normal((6, 3))
    found = readings(x - x.mean(axis=0), ["a"] * 6, 1.3, covariances, tolerance=1e-6)
    for reading in found:
        assert len(reading.inequalities()) == 3
        for inequality in reading.inequalities().values():
            assert inequality.same and inequality.verdict == "certified"
            assert inequality.lhs.midpoint == pytest.approx(inequality.rhs.midpoint, rel=1e-9)
            # One number: its two enclosures meet.
            assert inequality.lhs.lower <= inequality.rhs.upper
            assert inequality.rhs.lower <= inequality.lhs.upper
    assert found.remains.verdict == "certified"
    assert str(found).count("holds, certified") == 9 and "not decided" not in str(found)


def test_draws_of_one_client_from_a_pool_of_two_keep_the_pooled_covariance():
    x, client, covariances = general(2, n=12)
    kernels = reading_kernels(x, client, covariances, tolerance=1e-6)
    (found,) = kernels.restricted(np.flatnonzero(client == "a")).readings([1.0])
    assert found.masked.smallest.same and found.full.smallest.same
    assert not found.pooled.smallest.same
    gap = found.pooled.smallest.lhs.midpoint - found.pooled.smallest.rhs.midpoint
    assert abs(gap) > 1e-4 * found.pooled.smallest.rhs.midpoint


def test_an_equality_of_a_proven_reading_holds_and_is_not_called_undecided():
    # Uncoupled but for one client: the pair of client a drives both kernels.
    x = np.array([[1.0, 0, 0], [1.0, 1e-9, 0], [-1.0, 1e-9, 1e-9], [-1.0, 0, 2e-9]])
    found = readings(x, ["a", "a", "b", "b"], 1.0, 1.0)
    assert found.masked.smallest.verdict == "consistent"
    lines = str(found).splitlines()
    (line,) = [text for text in lines if text.startswith("  masked: λ_min")]
    assert line.endswith("holds, as proven: equal up to the width of the enclosures")
    assert any(text.startswith("  pooled: λ_min") and "not decided" in text for text in lines)
