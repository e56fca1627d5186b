"""What the BN kernels keep whatever the numbers: symmetries, scales, limits, degenerate points."""

import numpy as np
import pytest

import theory
from theory.bn_kernel import bn_client_gram_matrix, bn_gram_matrix, bn_ntk

COMPONENTS = ("magnitude", "direction")
BOTH = pytest.mark.parametrize("component", COMPONENTS)
SLOW = pytest.mark.slow
# V takes a few times the nodes of G: the fast suite shows with G what holds for both.
FIRST = pytest.mark.parametrize("component", ["magnitude", pytest.param("direction", marks=SLOW)])
EPS = pytest.mark.parametrize("eps", [0.0, pytest.param(0.05, marks=SLOW)])
CLOSE, LOOSE = 1e-7, 1e-4  # tolerances without and with eps, which takes many nodes


def metric(rng, d, condition=30.0, size=1.0):
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    found = (basis * np.geomspace(size, size / condition, d)) @ basis.T
    return (found + found.T) / 2


def problem(d=4, n=5, seed=0):
    rng = np.random.default_rng(seed)
    metrics = {"a": metric(rng, d), "b": metric(rng, d, 100.0, 0.3)}
    return rng, rng.standard_normal((n, d)), list("ababba")[:n], metrics


def kernel(x, client, metrics, eps=0.0, alpha=1.0, component="magnitude"):
    return bn_gram_matrix(
        x, client, metrics, eps, alpha, component, tolerance=LOOSE if eps else CLOSE
    )


def same(first, second, factor=1.0):
    """K = factor K' within the bounds of both."""
    gap = np.linalg.norm(first.matrix - factor * second.matrix, 2)
    assert gap <= first.error + abs(factor) * second.error
    assert first.error + second.error <= 1e-2 * np.linalg.norm(first.matrix, 2)


@EPS
@BOTH
def test_symmetric_and_positive_semidefinite_within_the_error(component, eps):
    for d, n in ((2, 6), (4, 6)):
        _, x, client, metrics = problem(d, n)
        x[2] = -x[0]
        x[3] = x[0] * (1 + 1e-9)
        x[4] = x[1]
        for given in (metrics, metrics["a"], 0.7):
            found = kernel(x, client, given, eps, 1.5, component)
            assert (found.matrix == found.matrix.T).all()
            assert np.linalg.eigvalsh(found.matrix)[0] >= -found.error
            assert 0 < found.error < 1e-3 * np.linalg.norm(found.matrix, 2)
            assert found.method


@EPS
@FIRST
def test_a_joint_rotation_changes_nothing(component, eps):
    rng, x, client, metrics = problem()
    turn = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    turned = {name: turn @ s @ turn.T for name, s in metrics.items()}
    turned = {name: (s + s.T) / 2 for name, s in turned.items()}
    first = kernel(x, client, metrics, eps, 1.5, component)
    second = kernel(x @ turn.T, client, turned, eps, 1.5, component)
    gap = np.linalg.norm(first.matrix - second.matrix, 2)
    # The rotated matrices are rounded: 1e-13 a condition of 100 leaves of them.
    assert gap <= first.error + second.error + 1e-13 * np.linalg.norm(first.matrix, 2)


@EPS
@FIRST
def test_scales_of_metrics_and_points_come_out(component, eps):
    _, x, client, metrics = problem()
    plain = kernel(x, client, metrics, eps, 1.5, component)
    scaled = {name: 4 * s for name, s in metrics.items()}
    same(kernel(x, client, scaled, 4 * eps, 1.5, component), plain, 0.25)
    sizes = np.array([2.0, 1e-3, 1.0, 7.0, 1e4])
    rows = kernel(sizes[:, None] * x, client, metrics, eps, 1.5, component)
    gap = np.linalg.norm(rows.matrix - np.outer(sizes, sizes) * plain.matrix, 2)
    assert gap <= rows.error + sizes.max() ** 2 * plain.error
    # In v/α, eps/α² takes the place of eps, and everything else is free of α.
    other = kernel(x, client, metrics, eps / 4, 0.75, component)
    same(plain, other)


@EPS
@FIRST
def test_points_and_clients_may_come_in_any_order(component, eps):
    rng, x, client, metrics = problem()
    plain = kernel(x, client, metrics, eps, 1.5, component)
    order = rng.permutation(5)
    moved = kernel(x[order], [client[k] for k in order], metrics, eps, 1.5, component)
    back = np.argsort(order)
    gap = np.linalg.norm(moved.matrix[np.ix_(back, back)] - plain.matrix, 2)
    assert gap <= plain.error + moved.error
    renamed = [{"a": 7, "b": "z"}[c] for c in client]
    same(kernel(x, renamed, {7: metrics["a"], "z": metrics["b"]}, eps, 1.5, component), plain)
    stack = np.stack([metrics["a"], metrics["b"]])
    same(kernel(x, client, stack, eps, 1.5, component), plain)


@FIRST
def test_free_of_alpha_without_eps_and_not_with(component):
    _, x, client, metrics = problem()
    plain = kernel(x, client, metrics, component=component)
    for alpha in (0.5, 5.0):
        same(kernel(x, client, metrics, 0.0, alpha, component), plain)
    first, second = (kernel(x, client, metrics, 0.05, a, component) for a in (0.5, 5.0))
    gap = np.linalg.norm(first.matrix - second.matrix, 2)
    assert gap > 100 * (first.error + second.error)


@BOTH
@SLOW
def test_small_eps_is_no_eps(component):
    _, x, client, metrics = problem()
    limit = kernel(x, client, metrics, component=component)
    gaps = []
    for eps in (1e-2, 1e-4, 1e-6):
        found = kernel(x, client, metrics, eps, 1.0, component)
        gap = np.linalg.norm(found.matrix - limit.matrix, 2)
        gaps.append(gap - found.error - limit.error)
        if component == "magnitude":
            # eps raises every q: it lowers every entry.
            assert (found.matrix <= limit.matrix + found.error + limit.error).all()
    size = np.linalg.norm(limit.matrix, 2)
    assert gaps[0] > gaps[1] > gaps[2] and gaps[0] > 1e-3 * size > gaps[2]


@FIRST
def test_large_eps_leaves_the_plain_kernels(component):
    _, x, client, metrics = problem(n=3)
    alpha, d = 1.5, 4
    printed = theory.gram_matrix(x, alpha)
    # E‖v‖² = α²d whatever the direction, times (x·y)P₀.
    slope = alpha**2 * d * (theory.direction_gram_matrix(x) + theory.gram_matrix(x) / d)
    limit = printed if component == "magnitude" else slope
    for eps in (1e3, 1e8):
        found = kernel(x, client, metrics, eps, alpha, component)
        gap = np.linalg.norm(eps * found.matrix - limit, 2)
        # q = eps (1 + vᵀSv/eps), vᵀSv <= α²·40 but for a part of 1e-6.
        assert gap <= eps * found.error + 40 * alpha**2 * d / eps * np.linalg.norm(limit, 2)


@EPS
@BOTH
def test_equal_metrics_are_one_metric(component, eps):
    _, x, client, metrics = problem()
    one = kernel(x, client, metrics["a"], eps, 1.5, component)
    same(kernel(x, client, dict.fromkeys("ab", metrics["a"]), eps, 1.5, component), one)
    copies = np.stack([metrics["a"], metrics["a"].copy()])
    same(kernel(x, client, copies, eps, 1.5, component), one)
    # Nearly equal ones have nearly the same kernel: no seam between the methods.
    nearly = {"a": metrics["a"], "b": metrics["a"] * (1 + 1e-9)}
    close = kernel(x, client, nearly, eps, 1.5, component)
    gap = np.linalg.norm(close.matrix - one.matrix, 2)
    assert gap <= close.error + one.error + 1e-8 * np.linalg.norm(one.matrix, 2)


@BOTH
def test_multiples_of_the_identity_are_the_closed_form_of_the_package(component):
    _, x, client, _ = problem()
    closed = {
        "magnitude": theory.normalised_gram_matrix,
        "direction": theory.direction_gram_matrix,
    }[component]
    scales = {"a": 0.25, "b": 4.0}
    root = np.sqrt([scales[c] for c in client])
    metrics = {name: scale * np.eye(4) for name, scale in scales.items()}
    found = kernel(x, client, metrics, component=component)
    exact = closed(x) / np.outer(root, root)
    assert np.linalg.norm(found.matrix - exact, 2) <= found.error + 1e-13
    one = kernel(x, client, 0.7, component=component)
    assert np.linalg.norm(one.matrix - closed(x, 0.7), 2) <= one.error + 1e-13


@BOTH
@pytest.mark.parametrize("sign", [1, -1])
def test_duplicates_and_antipodes_across_and_within_clients(component, sign):
    rng, x, _, metrics = problem(n=4)
    client = list("aabb")
    for angle in (0.0, 1e-9, 1e-4):
        for near in (1, 2):  # within the client, and across
            moved = x.copy()
            moved[near] = sign * 3 * (x[0] + angle * rng.standard_normal(4))
            found = kernel(moved, client, metrics, component=component)
            assert np.linalg.eigvalsh(found.matrix)[0] >= -found.error
            size = np.sqrt(found.matrix[0, 0] * found.matrix[near, near])
            if sign < 0 and component == "magnitude":
                # φ(v·x)φ(-v·x) = 0; at an angle its third power is left.
                assert abs(found.matrix[0, near]) <= found.error + 10 * angle**3 * size
            elif sign > 0 and near == 1:
                ratio = found.matrix[0, 1] / found.matrix[0, 0]
                # The half-planes differ on a part of the size of the angle.
                slack = 2 * found.error / found.matrix[0, 0] + 30 * angle
                assert ratio == pytest.approx(3, abs=3 * slack)


@BOTH
@pytest.mark.parametrize(("d", "n"), [(1, 1), (1, 4), (2, 1), (2, 4), (5, 1)])
def test_few_points_and_few_dimensions(component, d, n):
    rng = np.random.default_rng(d)
    x, one = rng.standard_normal((n, d)), metric(rng, d)
    for eps in (0.0, 0.05):
        found = kernel(x, ["only"] * n, one, eps, 1.5, component)
        assert found.matrix.shape == (n, n) and np.isfinite(found.matrix).all()
        assert found.error >= 0
        if d == 1 and component == "magnitude" and eps == 0:
            expected = np.where(x @ x.T > 0, x @ x.T, 0) / (2 * one[0, 0])
            assert np.linalg.norm(found.matrix - expected, 2) <= found.error + 1e-15
        if d == 1 and component == "direction" and eps == 0:
            # No direction is left to turn in.
            assert np.linalg.norm(found.matrix, 2) <= found.error + 1e-15


@EPS
def test_the_clients_kernel_and_the_tangent_kernels_are_made_of_these(eps):
    _, x, client, metrics = problem()
    alpha = 1.5
    tolerance = LOOSE if eps else CLOSE
    g = kernel(x, client, metrics, eps, alpha)
    v = kernel(x, client, metrics, eps, alpha, "direction")
    blocks = bn_client_gram_matrix(x, client, metrics, eps, alpha, tolerance=tolerance)
    mask = np.equal.outer(client, client)
    dense = np.zeros_like(g.matrix)
    for rows, block, error in zip(blocks.rows, blocks.blocks, blocks.errors, strict=True):
        dense[np.ix_(rows, rows)] = block
        assert np.linalg.norm(block - g.matrix[np.ix_(rows, rows)], 2) <= error + g.error
    assert (dense[~mask] == 0).all()
    for specific, own in ((False, g.matrix), (True, dense)):
        found = bn_ntk(
            x, client, metrics, alpha=alpha, client_specific=specific, eps=eps, tolerance=tolerance
        )
        gap = np.linalg.norm(found.matrix - v.matrix / alpha**2 - own, 2)
        assert gap <= found.error + v.error / alpha**2 + g.error
