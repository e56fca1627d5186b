"""`bn_gram_matrix` against routes that share nothing with it, within what it states."""

import bn_laplace as bl
import bn_oracles as bo
import bn_sampling as bs
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theory.bn_kernel import bn_gram_matrix, bn_ntk

COMPONENTS = ("magnitude", "direction")
SLOW = pytest.mark.slow
BOTH = pytest.mark.parametrize("component", COMPONENTS)
EPS = (0.0, 1e-5, 1e-2, 1.0)
ALPHAS = (0.5, 1.0, 5.0)


def metric(rng, d, condition, size=1.0):
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    found = (basis * np.geomspace(size, size / condition, d)) @ basis.T
    return (found + found.T) / 2


def points_of(rng, d, n):
    """Generic points, and one in three close to ± an earlier one, at angles 1e-9 to 1e-3, or 0."""
    x = rng.standard_normal((n, d)) * np.exp(rng.standard_normal((n, 1)))
    for p in range(1, n):
        if rng.random() < 1 / 3:
            angle = rng.choice([0.0, *np.geomspace(1e-9, 1e-3, 7)])
            turn = angle * rng.standard_normal(d) * np.linalg.norm(x[p - 1]) / np.sqrt(d)
            x[p] = rng.choice([-1.0, 1.0]) * x[p - 1] + turn
    return x


def within(found, exact, error):
    """‖K - K'‖₂ within the bound of the one and the errors of the other."""
    gap = np.linalg.norm(found.matrix - exact, 2)
    assert gap <= found.error + np.linalg.norm(error), (gap, found.error, np.linalg.norm(error))
    assert (found.matrix == found.matrix.T).all()


@st.composite
def cases(draw, largest=24, tolerances=(1e-3, 1e-6, 1e-10), quick=False):
    d = draw(st.integers(1, largest))
    clients = draw(st.integers(1, 3 if quick else 4))
    n = draw(st.integers(clients, clients + 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = [(10 ** draw(st.floats(0, 6)), 10 ** draw(st.floats(-2, 2))) for _ in range(clients)]
    metrics = {k: metric(rng, d, *size) for k, size in enumerate(sizes)}
    if draw(st.booleans()):
        metrics = dict.fromkeys(metrics, metrics[0])
    client = np.concatenate([np.arange(clients), rng.integers(0, clients, n - clients)])
    eps, alpha = draw(st.sampled_from(EPS)), draw(st.sampled_from(ALPHAS))
    tolerance = draw(st.sampled_from(tolerances))
    if eps:  # takes many nodes
        tolerance = 1e-3 if quick else max(tolerance, 1e-6)
    return points_of(rng, d, n), client, metrics, eps, alpha, tolerance


def judge(case, component):
    x, client, metrics, eps, alpha, tolerance = case
    found = bn_gram_matrix(x, client, metrics, eps, alpha, component, tolerance=tolerance)
    exact = bl.gram(x, client, metrics, eps=eps, alpha=alpha, component=component)
    within(found, exact.value, exact.error)
    # A judge less exact than what it judges would see nothing.
    assert x.shape[1] == 1 or np.linalg.norm(exact.error) <= found.error
    assert np.linalg.eigvalsh(found.matrix)[0] >= -found.error - 1e-14 * np.trace(found.matrix)


@given(cases(quick=True))
@settings(max_examples=8, deadline=None, derandomize=True)
def test_magnitude_part_is_within_its_bound(case):
    judge(case, "magnitude")


@given(cases(largest=8, quick=True))
@settings(max_examples=4, deadline=None, derandomize=True)
def test_direction_part_is_within_its_bound(case):
    judge(case, "direction")


@SLOW
@BOTH
def test_many_cases_are_within_their_bounds(component):
    @given(cases())
    @settings(max_examples=30, deadline=None, derandomize=True)
    def check(case):
        judge(case, component)

    check()


def exact_entry(x, y, metrics, eps, alpha, component):
    """Sixteen digits: on the line, on the circle, or, for one S, by mpmath's eigenvectors."""
    if len(x) == 1:
        return bo.on_a_line(x[0], y[0], [m[0, 0] for m in metrics], eps, alpha, component)
    if len(x) == 2:
        return bo.on_a_circle(x, y, metrics, eps, alpha, component)
    options = {"eps": eps, "alpha": alpha, "component": component}
    return bl.laplace(x, y, metrics, digits=16, step=0.14, **options).value[0]


def exact_matrix(x, metrics, eps, alpha, component):
    """Entries of `exact_entry`, and the rounding to float64; `metrics` per point."""
    found = np.zeros((len(x), len(x)))
    with mp.workdps(30):
        for p in range(len(x)):
            for q in range(p + 1):
                pair = (metrics[p], metrics[q])
                entry = exact_entry(x[p], x[q], pair, eps, alpha, component)
                found[p, q] = found[q, p] = float(entry)
    return found, 2.0**-53 * np.abs(found)


@BOTH
@pytest.mark.parametrize("condition", [1, 1e3, 1e6])
def test_digits_at_two_dimensions(component, condition):
    # Where float64 has fewest: v near the smallest eigenvalue decides, and few dimensions let it.
    rng = np.random.default_rng(int(condition))
    metrics = {name: metric(rng, 2, condition) for name in "ab"}
    x, client = points_of(rng, 2, 4), list("abab")
    exact, error = exact_matrix(x, [metrics[c] for c in client], 0.0, 1.0, component)
    within(bn_gram_matrix(x, client, metrics, component=component), exact, error)
    one = dict.fromkeys("ab", metrics["a"])
    exact, error = exact_matrix(x, [one["a"]] * 4, 0.0, 1.0, component)
    within(bn_gram_matrix(x, client, one, component=component), exact, error)
    within(bn_gram_matrix(x, client, metrics["a"], component=component), exact, error)


METRICS = [("magnitude", 3, 1e2), ("magnitude", 4, 1e6)]
METRICS += [pytest.param("direction", d, c, marks=SLOW) for d in (3, 4) for c in (1e2, 1e6)]


@pytest.mark.parametrize(("component", "d", "condition"), METRICS)
def test_digits_for_one_metric(component, d, condition):
    rng = np.random.default_rng([d, int(condition)])
    x, one = points_of(rng, d, 3), metric(rng, d, condition)
    for eps in (0.0, 1e-2):
        exact, error = exact_matrix(x, [one] * 3, eps, 1.0, component)
        within(bn_gram_matrix(x, [0, 0, 0], one, eps, 1.0, component), exact, error)


@SLOW
@BOTH
@pytest.mark.parametrize("eps", EPS)
def test_digits_at_two_dimensions_with_eps(component, eps):
    rng = np.random.default_rng(8)
    for condition in (10, 1e4):
        metrics = {name: metric(rng, 2, condition) for name in "ab"}
        x, client = points_of(rng, 2, 2), list("ab")
        for alpha in ALPHAS[1:]:
            exact, error = exact_matrix(x, list(metrics.values()), eps, alpha, component)
            within(bn_gram_matrix(x, client, metrics, eps, alpha, component), exact, error)


@SLOW
@pytest.mark.parametrize("condition", [1e2, 1e4])
def test_digits_for_two_metrics_in_three_dimensions(condition):
    rng = np.random.default_rng(9)
    metrics = {name: metric(rng, 3, condition) for name in "ab"}
    x = np.abs(rng.standard_normal((2, 3)))
    found = bn_gram_matrix(x, list("ab"), metrics)
    with mp.workdps(26):
        pair = (metrics["a"], metrics["b"])
        exact = bl.laplace(x[0], x[1], pair, digits=16, step=0.14)
    assert abs(found.matrix[0, 1] - exact.value[0]) <= found.error + exact.error[0]


@BOTH
@pytest.mark.parametrize("eps", EPS)
def test_one_dimension(component, eps):
    x, client = np.array([[1.3], [0.4], [-0.7], [2.0]]), list("abba")
    metrics = {"a": np.array([[2.0]]), "b": np.array([[0.3]])}
    exact, error = exact_matrix(x, [metrics[c] for c in client], eps, 1.5, component)
    within(bn_gram_matrix(x, client, metrics, eps, 1.5, component), exact, error)


@BOTH
@pytest.mark.parametrize("d", [1, 2, 3, 20])
def test_multiples_of_the_identity(component, d):
    rng = np.random.default_rng(d)
    x, client = points_of(rng, d, 5), list("abbac")
    scales = {"a": 0.3, "b": 2.0, "c": 0.3}
    metrics = {name: scale * np.eye(d) for name, scale in scales.items()}
    with mp.workdps(40):
        exact = np.array(
            [
                [
                    float(bo.closed_form(a, b, (scales[i], scales[j]), component))
                    for b, j in zip(x, client, strict=True)
                ]
                for a, i in zip(x, client, strict=True)
            ]
        )
    rounding = 2.0**-53 * np.abs(exact)
    within(bn_gram_matrix(x, client, metrics, component=component), exact, rounding)
    # One number for all clients is the geometric mean's multiple.
    root = np.sqrt([scales[c] for c in client])
    one = bn_gram_matrix(x, client, 0.7, component=component)
    within(one, exact * np.outer(root, root) / 0.7, 4 * rounding * np.outer(root, root) / 0.7)


@BOTH
@pytest.mark.parametrize("eps", [0.0, pytest.param(0.05, marks=SLOW)])
def test_monte_carlo(component, eps):
    rng = np.random.default_rng(6)
    d, alpha = 12, 1.5
    metrics = {
        name: metric(rng, d, condition) for name, condition in zip("abc", (1, 30, 1e3), strict=True)
    }
    x, client = points_of(rng, d, 4), list("abca")
    mean, error = bs.monte_carlo(x, client, metrics, eps, alpha, component, 200_000, 1)
    tolerance = 1e-4 if eps else 1e-7
    found = bn_gram_matrix(x, client, metrics, eps, alpha, component, tolerance=tolerance)
    assert found.error < error.max()
    assert np.abs((mean - found.matrix) / np.maximum(error, found.error)).max() < 5


def test_the_wide_network():
    rng = np.random.default_rng(5)
    d, n, width, parts = 6, 6, 10_000, 20
    metrics = {name: metric(rng, d, 20.0) for name in "ab"}
    x, client = rng.standard_normal((n, d)), list("ababab")
    g, v = bs.wide_network(x, client, metrics, width, 0, parts=parts, alpha=2.0)
    reach = [np.sqrt(p @ np.linalg.solve(metrics[c], p)) for p, c in zip(x, client, strict=True)]
    # |φ(v·x)|/‖v‖_S <= ‖x‖ in the metric S⁻¹; Hoeffding at 1e-9 for each of the entries.
    bound = np.outer(reach, reach) * np.sqrt(np.log(2 / 1e-9) / (2 * width * parts))
    assert (np.abs(g.mean(axis=0) - bn_gram_matrix(x, client, metrics).matrix) <= bound).all()
    exact = bn_gram_matrix(x, client, metrics, component="direction").matrix
    z = (v.mean(axis=0) - exact) / (v.std(axis=0, ddof=1) / np.sqrt(parts))
    assert np.abs(z).max() < 6  # Student's t of 19 degrees: 1e-5 a pair
    full = bn_ntk(x, client, metrics, alpha=2.0, client_specific=False).matrix
    spread = np.sqrt(v.var(axis=0, ddof=1) / parts) / 4 + bound
    assert (np.abs(full - (v / 4 + g).mean(axis=0)) <= 6 * spread).all()


BIG = [
    # d, clients, condition, pairs of clients that are judged
    (24, 6, 1e6, 15),
    (60, 4, 1e4, 6),
    (150, 3, 1e2, 3),
    (300, 4, 1e3, 2),
    (800, 6, 1e2, 1),
    (800, 1, 1e6, 1),
]


@SLOW
@pytest.mark.parametrize(("d", "clients", "condition", "judged"), BIG)
def test_six_large_cases(d, clients, condition, judged):
    rng = np.random.default_rng([d, clients])
    sizes = 10 ** rng.uniform(-1, 1, clients)
    metrics = {k: metric(rng, d, condition, size) for k, size in enumerate(sizes)}
    client = np.repeat(np.arange(clients), 2)
    x = points_of(rng, d, 2 * clients)
    pairs = [(i, j) for i in range(clients) for j in range(max(i, 1))][:judged]
    # Fifteen pairs at d = 800 take minutes: there, G alone.
    for component in COMPONENTS[: 1 if d * clients > 2000 else 2]:
        found = bn_gram_matrix(x, client, metrics, component=component)
        for i, j in pairs:
            p, q = (m.ravel() for m in np.meshgrid([2 * i, 2 * i + 1], [2 * j, 2 * j + 1]))
            exact = bl.laplace(x[p], x[q], (metrics[i], metrics[j]), component=component, step=0.2)
            gap = np.abs(found.matrix[p, q] - exact.value)
            assert (gap <= found.error + exact.error).all(), (component, i, j, gap, found.error)
            assert exact.error.max() <= 1e-8 * np.trace(found.matrix) / len(x)
