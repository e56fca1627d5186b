"""The routes that judge the BN kernels, against one another and against what is known."""

import bn_laplace as bl
import bn_oracles as bo
import bn_sampling as bs
import mpmath as mp
import numpy as np
import pytest

COMPONENTS = ("magnitude", "direction")
BOTH = pytest.mark.parametrize("component", COMPONENTS)


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(32):
        yield


def metric(rng, d, condition, size=1.0):
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    found = (basis * np.geomspace(size, size / condition, d)) @ basis.T
    return (found + found.T) / 2


def problem(d, condition, seed, *, single=False):
    rng = np.random.default_rng(seed)
    first = metric(rng, d, condition)
    second = first if single else metric(rng, d, condition, 0.3)
    x, y = rng.standard_normal((2, d))
    # An acute pair: entries of obtuse ones are small.
    return x, (y if x @ y > 0 else -y), (first, second)


@BOTH
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_multiples_of_the_identity_have_the_closed_form_to_twenty_digits(component, d):
    rng = np.random.default_rng(d)
    for scales in ((0.5, 0.5), (0.5, 3.0)):
        x, y = rng.standard_normal((2, d))
        metrics = [scale * np.eye(d) for scale in scales]
        if scales[0] != scales[1] and (component == "direction" or d > 2):
            metrics, scales = metrics[:1] * 2, scales[:1] * 2
        exact = bo.closed_form(x, y, scales, component)
        found = bl.laplace(x, y, metrics, component=component, digits=20, step=0.13)
        size = np.linalg.norm(x) * np.linalg.norm(y)
        assert abs(found.value[0] - exact) <= found.error[0] <= 1e-17 * size


@pytest.mark.slow
@BOTH
def test_two_multiples_of_the_identity_have_the_closed_form(component):
    x, y = np.random.default_rng(0).standard_normal((2, 3))
    exact = bo.closed_form(x, y, (0.5, 3.0), component)
    metrics = (0.5 * np.eye(3), 3.0 * np.eye(3))
    found = bl.laplace(x, y, metrics, component=component, digits=20, step=0.13)
    assert abs(found.value[0] - exact) <= found.error[0] <= 1e-18


@BOTH
@pytest.mark.parametrize("condition", [3, 1e3, 1e6])
def test_circle_and_double_integral_agree_to_twenty_digits(component, condition):
    for seed, single in ((0, True), (1, False)):
        if not single and (component == "direction" or condition > 10):
            continue  # minutes; in float64 below
        x, y, metrics = problem(2, condition, seed, single=single)
        exact = bo.on_a_circle(x, y, metrics, 0, 1, component)
        found = bl.laplace(x, y, metrics, component=component, digits=20, step=0.13)
        assert abs(found.value[0] - exact) <= min(found.error[0], 1e-19 * abs(exact))


SLOW = pytest.mark.slow  # seconds each: the length of v is integrated at each angle
CIRCLES = [(3, 0.0), (1e3, 0.0), (1e6, 0.0), (3, 1e-2)]
CIRCLES += [pytest.param(c, e, marks=SLOW) for c in (3, 1e3, 1e6) for e in (1e-5, 1e-2, 1.0)]


@BOTH
@pytest.mark.parametrize(("condition", "eps"), CIRCLES)
def test_circle_and_double_integral_agree_in_float64(component, condition, eps):
    for seed, single in ((0, True), (1, False)):
        x, y, metrics = problem(2, condition, seed, single=single)
        with mp.workdps(20):
            exact = bo.on_a_circle(x, y, metrics, eps, 1.5, component)
        found = bl.laplace(x, y, metrics, eps=eps, alpha=1.5, component=component)
        assert abs(found.value[0] - exact) <= found.error[0]
        assert abs(found.value[0] - exact) <= max(1e-14, 2.0**-53 * condition) * max(1, abs(exact))


@BOTH
@pytest.mark.parametrize("eps", [0.0, 1e-5, 1e-2, 1.0])
def test_a_line_agrees_with_the_double_integral(component, eps):
    for alpha in (0.5, 1.0, 5.0):
        exact = bo.on_a_line(1.3, 0.4, (2.0, 0.3), eps, alpha, component)
        metrics = (np.array([[2.0]]), np.array([[0.3]]))
        found = bl.laplace(
            [1.3], [0.4], metrics, eps=eps, alpha=alpha, component=component, step=0.1
        )
        # The logarithmic error of the trapezoid rule is slowest to fall at d = 1.
        assert abs(found.value[0] - exact) <= found.error[0] <= 1e-12
        assert bo.on_a_line(1.3, -0.4, (2.0, 0.3), eps, alpha, component) == 0


@BOTH
@pytest.mark.parametrize("single", [True, False])
def test_float64_has_the_error_that_it_states(component, single):
    for d, condition, eps in ((3, 10, 0.0), (4, 1e3, 1e-2), (3, 1e6, 0.0)):
        if not single and (component == "direction" or condition > 10):
            continue
        x, y, metrics = problem(d, condition, 5, single=single)
        with mp.workdps(24):
            exact = bl.laplace(x, y, metrics, eps=eps, component=component, digits=16, step=0.14)
        found = bl.laplace(x, y, metrics, eps=eps, component=component)
        assert abs(found.value[0] - exact.value[0]) <= found.error[0]


@BOTH
def test_float64_is_as_good_at_every_angle(component):
    rng = np.random.default_rng(3)
    _, _, (first, second) = problem(5, 30, 3)
    x = rng.standard_normal(5)
    for angle in (1e-1, 1e-6, 0.0):
        for sign in (1, -1):
            p = rng.standard_normal(5)
            y = sign * x + angle * p
            found = bl.laplace(x, y, (first, first), component=component)
            with mp.workdps(24):
                exact = bl.laplace(x, y, (first, first), component=component, digits=16, step=0.14)
            assert abs(found.value[0] - exact.value[0]) <= found.error[0] <= 1e-12, (angle, sign)
    pair = bl.laplace(np.stack([x, x]), np.stack([x, 2 * x]), (first, second), component=component)
    assert pair.value[1] == pytest.approx(2 * pair.value[0], rel=1e-13)


@BOTH
@pytest.mark.parametrize("eps", [0.0, 0.05])
def test_monte_carlo_agrees_with_the_double_integral(component, eps):
    rng = np.random.default_rng(7)
    d, alpha = 5, 1.5
    metrics = {"a": metric(rng, d, 1e3), "b": metric(rng, d, 30.0)}
    x, client = rng.standard_normal((4, d)), ["a", "b", "a", "b"]
    mean, error = bs.monte_carlo(x, client, metrics, eps, alpha, component, 400_000, 0)
    exact = oracle_matrix(x, client, metrics, eps, alpha, component)
    z = (mean - exact) / error
    assert np.abs(z).max() < 5
    assert np.abs(z).max() > 0.1  # errors that are no errors would pass
    assert (error < 0.02 * np.sqrt(np.outer(np.diag(exact), np.diag(exact)))).all()


def oracle_matrix(x, client, metrics, eps, alpha, component):
    found = np.zeros((len(x), len(x)))
    for p in range(len(x)):
        for q in range(p + 1):
            pair = (metrics[client[p]], metrics[client[q]])
            value = bl.laplace(x[p], x[q], pair, eps=eps, alpha=alpha, component=component).value
            found[p, q] = found[q, p] = value[0]
    return found


@BOTH
def test_the_error_of_monte_carlo_falls_as_one_over_the_root(component):
    rng = np.random.default_rng(2)
    metrics = {"a": metric(rng, 3, 100.0), "b": metric(rng, 3, 10.0)}
    x, client = rng.standard_normal((2, 3)), ["a", "b"]
    exact = oracle_matrix(x, client, metrics, 0.0, 1.0, component)
    sizes = [640, 6400, 64000]
    squares = []
    for size in sizes:
        gaps = [
            bs.monte_carlo(x, client, metrics, 0.0, 1.0, component, size, [size, k])[0] - exact
            for k in range(24)
        ]
        squares.append(np.mean(np.square(gaps) / exact**2))
    slope = np.polyfit(np.log(sizes), np.log(squares) / 2, 1)[0]
    # 24 repeats of 3 dependent entries: the logarithm of each error is wrong by some 10 %.
    assert slope == pytest.approx(-0.5, abs=0.08)


@pytest.mark.slow
def test_the_wide_network_agrees():
    rng = np.random.default_rng(11)
    d, n, width, parts = 4, 5, 10_000, 20
    metrics = {"a": metric(rng, d, 20.0), "b": metric(rng, d, 20.0)}
    x, client = rng.standard_normal((n, d)), ["a", "b", "a", "b", "a"]
    g, v = bs.wide_network(x, client, metrics, width, 0, parts=parts)
    exact = oracle_matrix(x, client, metrics, 0.0, 1.0, "magnitude")
    reach = [np.sqrt(p @ np.linalg.solve(metrics[c], p)) for p, c in zip(x, client, strict=True)]
    # |φ(v·x)|/‖v‖_S <= ‖x‖ in the metric S⁻¹; Hoeffding at 1e-9 for each of the entries.
    bound = np.outer(reach, reach) * np.sqrt(np.log(2 / 1e-9) / (2 * width * parts))
    assert (np.abs(g.mean(axis=0) - exact) <= bound).all()
    exact = oracle_matrix(x, client, metrics, 0.0, 1.0, "direction")
    z = (v.mean(axis=0) - exact) / (v.std(axis=0, ddof=1) / np.sqrt(parts))
    assert np.abs(z).max() < 6  # Student's t of 19 degrees: 1e-5 a pair


def test_automatic_derivatives_of_the_network_agree():
    rng = np.random.default_rng(12)
    d, n, width, parts = 3, 3, 500, 20
    metrics = {"a": metric(rng, d, 20.0), "b": metric(rng, d, 20.0)}
    x, client = rng.standard_normal((n, d)), ["a", "b", "b"]
    found = bs.differentiated_network(x, client, metrics, width, 0, parts=parts)
    for component, values in zip(COMPONENTS, found, strict=True):
        exact = oracle_matrix(x, client, metrics, 0.0, 1.0, component)
        z = (values.mean(axis=0) - exact) / (values.std(axis=0, ddof=1) / np.sqrt(parts))
        assert np.abs(z).max() < 6, component


@pytest.mark.slow
@BOTH
def test_two_steps_of_the_double_integral_agree_over_many_cases(component):
    rng = np.random.default_rng(4)
    for _ in range(60):
        d = int(rng.choice([2, 3, 4, 6, 10, 24]))
        pair = [metric(rng, d, 10 ** rng.uniform(0, 6), 10 ** rng.uniform(-2, 2)) for _ in "ij"]
        if rng.random() < 0.3:
            pair[1] = pair[0]
        x, y = rng.standard_normal((2, 2, d))
        y[1] = x[1] * rng.choice([-1, 1]) + 10 ** rng.uniform(-9, -3) * rng.standard_normal(d)
        options = {"eps": rng.choice([0, 1e-5, 1e-2, 1.0]), "alpha": rng.choice([0.5, 1, 5.0])}
        first, second = (
            bl.laplace(x, y, pair, component=component, step=step, **options)
            for step in (0.16, 0.11)
        )
        assert (np.abs(first.value - second.value) <= first.error + second.error).all()
