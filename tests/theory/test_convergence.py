import dataclasses
import math
import warnings

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theory.assumption import check_assumption
from theory.centring import centre
from theory.convergence import Inequality, corollary_iii5, corollary_iii6, theorem_iii4
from theory.descent import Problem, gradient_descent
from theory.finite_width import kernels
from theory.gram import gram_matrix, normalised_gram_error, normalised_gram_matrix
from theory.network import initialise
from theory.rates import convergence_rate, required_width
from theory.spectrum import Enclosure, smallest_eigenvalue


def enclose(lower, upper=None):
    return Enclosure(lower=lower, upper=lower if upper is None else upper, method="test")


# --- inequalities ---------------------------------------------------------------------------


@given(*[st.floats(-10, 10) for _ in range(4)])
def test_a_verdict_says_what_holds_for_all_values_enclosed(a, b, c, d):
    lhs, rhs = enclose(min(a, b), max(a, b)), enclose(min(c, d), max(c, d))
    verdict = Inequality("", "", lhs, rhs).verdict
    corners = [x <= y for x in (lhs.lower, lhs.upper) for y in (rhs.lower, rhs.upper)]
    assert verdict == (
        "certified" if all(corners) else "consistent" if any(corners) else "violated"
    )
    assert (Inequality("", "", lhs, rhs).slack >= 0) == (verdict == "certified")


def test_slack_in_decades():
    assert Inequality("", "", enclose(1.0, 2.0), enclose(20.0, 30.0)).slack_decades == 1.0
    assert Inequality("", "", enclose(0.0), enclose(1.0)).slack_decades == math.inf
    assert Inequality("", "", enclose(1.0), enclose(0.0)).slack_decades == -math.inf
    assert math.isnan(Inequality("", "", enclose(-1.0), enclose(1.0)).slack_decades)


def test_corollary_iii6_puts_the_aggregated_side_first():
    result = corollary_iii6(enclose(0.1, 0.2), enclose(0.3))
    assert result.verdict == "certified" and result.slack == pytest.approx(0.1)
    assert corollary_iii6(enclose(0.3), enclose(0.1, 0.2)).verdict == "violated"


# --- Theorem III.4 and Corollary III.5 ------------------------------------------------------


def federation(seed=0, clients=4, samples=8, d=20):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((clients * samples, d))
    return x, rng.standard_normal(len(x)), np.repeat(np.arange(clients), samples)


def run(alpha, *, client_specific=False, width=2048, factor=1.0, steps=60):
    x, y, client = federation()
    network = initialise(width, 20, 4, alpha=alpha, seed=1, client_specific=client_specific)
    top = np.linalg.eigvalsh(kernels(network, x, client, 1.0).Lambda)[-1]
    return gradient_descent(
        network,
        Problem(x, y, client, 1.0),
        step_size=factor / top,
        steps=steps,
        kernels_at=range(0, steps + 1, 20),
    )


def true_e0():
    x, _, _ = federation()
    return smallest_eigenvalue(normalised_gram_matrix(x), normalised_gram_error(x))


def test_the_bound_holds_where_G_dominates_and_its_hypotheses_are_named():
    trajectory = run(20.0, factor=0.9)
    check = theorem_iii4(trajectory, true_e0())
    assert check.source == "Theorem III.4"
    assert check.decay.verdict == "certified" and check.worst_slack_decades > 0
    assert check.eigenvalue is not None and check.eigenvalue.verdict == "certified"
    flags = check.hypotheses
    assert flags.alpha_above_one and flags.g_dominated and flags.step_size_admissible
    assert flags.wide_enough is False  # nobody can run the theorem's width
    # Both sides, step by step, recomputed plainly.
    e0, eta = true_e0().midpoint, trajectory.step_size
    expected = (1 - eta * e0 / 2) ** np.arange(61) * trajectory.squared_residuals[0]
    np.testing.assert_array_equal(check.measured, trajectory.squared_residuals)
    # The enclosure of e0 may be 1e-6 e0 wide.
    np.testing.assert_allclose(check.bound[:, 0], expected, rtol=1e-6)
    np.testing.assert_allclose(check.bound[:, 1], expected, rtol=1e-6)
    assert (check.bound[:, 0] <= check.bound[:, 1]).all()
    np.testing.assert_allclose(check.slack_decades, np.log10(expected / check.measured), atol=1e-6)
    assert check.worst_step == 1 + np.argmin(check.slack_decades[1:])


def test_where_V_dominates_the_flag_says_so_and_the_printed_kernel_is_refuted():
    trajectory = run(2.0)
    check = theorem_iii4(trajectory, true_e0())
    assert check.hypotheses.alpha_above_one and check.hypotheses.g_dominated is False
    assert check.decay.verdict == "certified"
    x, _, _ = federation()
    printed = smallest_eigenvalue(gram_matrix(x, 2.0))
    refuted = theorem_iii4(trajectory, printed)
    assert refuted.eigenvalue is not None and refuted.eigenvalue.verdict == "violated"
    assert theorem_iii4(run(0.5), true_e0()).hypotheses.alpha_above_one is False


def test_too_large_a_step_is_flagged():
    assert theorem_iii4(run(20.0, factor=1.5), true_e0()).hypotheses.step_size_admissible is False


def test_corollary_iii5_is_for_f_star_and_theorem_iii4_for_f():
    plain, starred = run(20.0, steps=20), run(20.0, steps=20, client_specific=True)
    assert corollary_iii5(starred, true_e0()).decay.verdict == "certified"
    for theorem, wrong in ((theorem_iii4, starred), (corollary_iii5, plain)):
        with pytest.raises(ValueError, match="other network"):
            theorem(wrong, true_e0())


def test_a_bare_curve_at_the_bound_and_across_it():
    eta, e0 = 0.1, 2.0
    exact = 7.0 * 0.9 ** np.arange(50)
    # Right at the bound: neither proven nor refuted, rounding decides.
    assert theorem_iii4(exact, e0, step_size=eta).decay.verdict == "consistent"
    below = theorem_iii4(0.999 ** np.arange(50) * exact, e0, step_size=eta)
    assert below.decay.verdict == "certified" and below.worst_step == 1
    broken = exact.copy()
    broken[30] *= 1.5
    check = theorem_iii4(broken, e0, step_size=eta)
    assert check.decay.verdict == "violated" and check.worst_step == 30
    assert check.worst_slack_decades == pytest.approx(-np.log10(1.5))
    assert check.eigenvalue is None and check.hypotheses.g_dominated is None
    # A multiple of the curve, such as the loss, gives the same slack.
    half = theorem_iii4(broken / 2, e0, step_size=eta)
    np.testing.assert_allclose(half.slack_decades, check.slack_decades, atol=1e-12)


def test_the_enclosure_of_e0_widens_the_bound_on_both_sides():
    curve = 0.9 ** np.arange(10)
    check = theorem_iii4(curve, enclose(1.0, 3.0), step_size=0.1)
    np.testing.assert_allclose(check.bound[:, 0], 0.85 ** np.arange(10))
    np.testing.assert_allclose(check.bound[:, 1], 0.95 ** np.arange(10))
    assert check.decay.verdict == "consistent"
    # One step above both ends decides, however far the others lie between them.
    long = 0.9 ** np.arange(40)
    long[1] = 1.5
    broken = theorem_iii4(long, enclose(1.0, 3.0), step_size=0.1)
    assert broken.decay.verdict == "violated" and broken.worst_step == 1
    # A lower end below zero, as for a nearly singular matrix, is cut at zero.
    np.testing.assert_allclose(
        theorem_iii4(curve, enclose(-1.0, 3.0), step_size=0.1).bound[:, 1], 1.0
    )


def test_a_curve_that_reaches_zero_and_a_long_run_stay_finite():
    check = theorem_iii4([1.0, 0.0, 0.0], 1.0, step_size=0.1)
    assert check.decay.verdict == "certified" and check.worst_slack_decades == math.inf
    times = np.arange(200_000)
    long = theorem_iii4(1.0 / (1 + times), 1.0, step_size=1.0)
    assert long.decay.verdict == "violated" and not np.isnan(long.bound).any()


@given(
    st.floats(1e-3, 1.0),
    st.floats(1e-3, 1.0),
    st.floats(1e-6, 1e6),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30),
)
def test_decay_at_least_as_fast_as_the_factor_is_never_violated(eta, e0, start, extra):
    factors = (1 - eta * e0 / 2) * (1 - 0.5 * np.array(extra))
    curve = start * np.concatenate([[1.0], np.cumprod(factors)])
    assert theorem_iii4(curve, e0, step_size=eta).decay.verdict != "violated"


def test_a_bound_that_underflows_certifies_nothing_that_was_broken_before():
    """400 ones against 0.1^t: broken from t = 1, though the last value and bound are both 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check = theorem_iii4(np.r_[np.ones(400), 0.0], 1.8, step_size=1.0)
    assert check.decay.verdict == "violated"
    assert math.isfinite(check.worst_slack_decades) and check.worst_slack_decades < -300
    assert not np.isnan(check.slack_decades).any() and check.slack_decades[-1] == math.inf


steps_and_zeros = st.lists(st.sampled_from([0.0, 1e-320, 1e-200, 0.1, 1.0, 1e200]), min_size=1)


@given(steps_and_zeros, st.floats(0.01, 1.999), st.floats(0.01, 1.999), st.sampled_from([1, 400]))
@settings(max_examples=200, deadline=None)
def test_the_verdict_is_that_of_every_step_in_exact_arithmetic(tail, one, other, repeat):
    curve = np.r_[1.0, np.repeat(tail, repeat)]
    e0 = enclose(min(one, other), max(one, other))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check = theorem_iii4(curve, e0, step_size=1.0)
    assert not np.isnan(check.slack_decades).any() and not math.isnan(check.worst_slack_decades)
    with mp.workdps(40):
        least, most = (1 - mp.mpf(end) / 2 for end in (e0.upper, e0.lower))
        broken = any(mp.mpf(v) > most**t for t, v in enumerate(curve.tolist()))
        kept = all(mp.mpf(v) <= least**t for t, v in enumerate(curve.tolist()))
    # Values of the curve are far from the bound, or equal to it: rounding leaves those open.
    assert (check.decay.verdict == "violated") <= broken
    assert (check.decay.verdict == "certified") <= kept
    worst = check.worst_step
    assert (check.decay.verdict == "violated") == (curve > check.bound[:, 1])[1:].any()
    assert (check.decay.verdict == "certified") == (curve <= check.bound[:, 0])[1:].all()
    assert check.decay.lhs.upper == curve[worst]


@pytest.mark.parametrize("start", [1e-200, 1.0, 3e150])
@pytest.mark.parametrize("gap", [2.0**-53, 1e-15, 1e-12, 1e-3, 0.4, 0.6, 0.999])
def test_the_bound_encloses_the_exact_one_also_where_the_factor_is_nearly_0(gap, start):
    e0, eta = 2 * (1 - gap) / 0.3, 0.3
    while eta * e0 >= 2:
        e0 = np.nextafter(e0, 0)
    check = theorem_iii4(start * np.ones(40), float(e0), step_size=eta)
    with mp.workdps(60):
        factor = 1 - mp.mpf(eta) * mp.mpf(float(e0)) / 2
        for t, (low, high) in enumerate(check.bound.tolist()):
            exact = mp.mpf(start) * factor**t
            assert mp.mpf(low) <= exact <= mp.mpf(high)
            if exact > 1e-280:
                assert high - low < 1e-11 * exact


# --- the covariances of a run ---------------------------------------------------------------


def general_run(size, seed=0):
    x, y, client = federation()
    roots = np.random.default_rng(seed).standard_normal((4, 20, 60)) / np.sqrt(60)
    s = size * roots @ roots.transpose(0, 2, 1)
    network = initialise(256, 20, 4, alpha=20.0, seed=1, client_specific=False)
    top = np.linalg.eigvalsh(kernels(network, x, client, s).Lambda)[-1]
    problem = Problem(x, y, client, s)
    return gradient_descent(network, problem, step_size=0.5 / top, steps=20), (x, client, s)


def test_whose_kernel_e0_is_is_known_only_for_a_multiple_of_the_identity():
    plain = run(20.0, steps=5)
    assert plain.scale == 1.0 and theorem_iii4(plain, true_e0()).hypotheses.kernel_known is True
    other, _ = general_run(1.0)
    check = theorem_iii4(other, 1e-4)
    assert other.scale is None and check.hypotheses.kernel_known is False
    assert theorem_iii4([1.0, 0.1], 1.0, step_size=0.1).hypotheses.kernel_known is None


def test_an_e0_that_the_covariances_rule_out_is_refused():
    trajectory, (x, client, s) = general_run(1e4)
    with pytest.raises(ValueError, match="belongs to another kernel"):
        theorem_iii4(trajectory, true_e0())
    # No diagonal entry of the kernel exceeds xᵀS⁻¹x/2, however wide the network.
    wide = initialise(20_000, 20, 4, alpha=1.0, seed=1, client_specific=False)
    forms = [p @ np.linalg.solve(s[i], p) / 2 for p, i in zip(x, client, strict=True)]
    assert (kernels(wide, x, client, s).G.diagonal() <= forms).all()
    assert trajectory.e0_limit == pytest.approx(min(forms), rel=1e-9)
    assert theorem_iii4(trajectory, 0.01 * min(forms)).hypotheses.kernel_known is False
    # Where the kernel has a closed form an impossible e0 is judged: Eq. (10) is refuted above.
    assert run(20.0, steps=5).e0_limit == math.inf


def test_a_run_without_a_rounding_bound_is_refused():
    trajectory, _ = general_run(1.0)
    rounding = np.where(np.arange(21) == 3, np.inf, trajectory.rounding)
    with pytest.raises(ValueError, match="step 3 cannot be bounded"):
        theorem_iii4(dataclasses.replace(trajectory, rounding=rounding), 1e-4)
    unknown = dataclasses.replace(
        run(20.0, steps=20).spectra, rounding=np.array([[1e-9, 1e-9], [np.inf, np.inf]])
    )
    check = theorem_iii4(dataclasses.replace(run(20.0, steps=20), spectra=unknown), true_e0())
    assert check.eigenvalue is None and check.hypotheses.step_size_admissible is True


def test_the_rounding_of_each_step_widens_that_step():
    trajectory = run(20.0, steps=20)
    rounding = np.zeros(21)
    rounding[7] = 1e3
    check = theorem_iii4(dataclasses.replace(trajectory, rounding=rounding), true_e0())
    assert check.decay.verdict == "consistent" and check.worst_step == 7


BAD_CURVES = [
    ([1.0], {}, "at least one more"),
    ([[1.0, 0.5]], {}, "one value per step"),
    ([1.0, np.nan], {}, "NaN"),
    ([1.0, -0.5], {}, "negative"),
    ([0.0, 0.0], {}, "starts at 0"),
    ([1.0, 0.5], dict(step_size=None), "step_size=η"),
    ([1.0, 0.5], dict(step_size=-1.0), "step_size"),
    ([1.0, 0.5], dict(e0=0.0), "not positive"),
    ([1.0, 0.5], dict(e0=math.nan), "finite"),
    ([1.0, 0.5], dict(e0=30.0), "factor"),
]


@pytest.mark.parametrize(("curve", "change", "message"), BAD_CURVES)
def test_bad_curves_are_refused(curve, change, message):
    arguments = dict(e0=1.0, step_size=0.1) | change
    with pytest.raises(ValueError, match=message):
        theorem_iii4(curve, **arguments)


def test_a_trajectory_with_another_step_size_or_that_diverged_at_once():
    with pytest.raises(ValueError, match="knows its step size"):
        theorem_iii4(run(20.0, steps=20), true_e0(), step_size=0.1)
    x, y, client = federation()
    network = initialise(8, 20, 4, alpha=1.0, seed=1, client_specific=False)
    bad = gradient_descent(network, Problem(x, y, client, 1.0), step_size=1e200, steps=5)
    assert bad.status == "diverged"
    with pytest.raises(ValueError, match="diverged"):
        theorem_iii4(bad, 1e-201)


# --- rates and widths -----------------------------------------------------------------------


def test_rate_at_the_largest_step():
    rate = convergence_rate(0.5, 10.0)
    assert rate.step_size == rate.largest_step_size == 0.1
    assert rate.factor == pytest.approx(0.975)
    assert 0.975**rate.rounds <= 1e-3 < 0.975 ** (rate.rounds - 1)


def test_an_enclosure_is_used_conservatively():
    rate = convergence_rate(enclose(0.4, 0.6), enclose(9.0, 11.0), tolerance=0.5)
    assert rate.largest_step_size == pytest.approx(1 / 11)
    assert rate.factor == pytest.approx(1 - 0.4 / 22)


@given(st.floats(1e-6, 1.0), st.floats(1.0, 1e6), st.floats(1e-6, 1.0), st.floats(1e-9, 0.99))
@settings(max_examples=200)
def test_a_larger_e0_never_needs_more_rounds(e0, top, part, tolerance):
    slow = convergence_rate(e0 * part, top, tolerance=tolerance)
    fast = convergence_rate(e0, top, tolerance=tolerance)
    assert 0 < fast.factor <= slow.factor <= 1
    assert 1 <= fast.rounds <= slow.rounds
    assert fast.rounds * math.log1p(-e0 / top / 2) <= math.log(tolerance) * (1 - 1e-12)


def test_a_tiny_e0_gives_a_finite_number_of_rounds():
    assert convergence_rate(1e-20, 1.0).rounds == pytest.approx(2e20 * math.log(1e3), rel=1e-9)


BAD_RATES = [
    (dict(e0=0.0), "not positive.*duplicate"),
    (dict(e0=-1.0), "not positive"),
    (dict(e0=math.nan), "finite"),
    (dict(e0=math.inf), "finite"),
    (dict(e0=enclose(-1e-15, 1.0)), "not positive"),
    (dict(largest_eigenvalue=0.0), "largest_eigenvalue"),
    (dict(largest_eigenvalue=math.nan), "largest_eigenvalue"),
    (dict(step_size=0.11), "exceeds 1/λ_max"),
    (dict(step_size=0.0), "step_size"),
    (dict(step_size=math.nan), "step_size"),
    (dict(tolerance=1.0), "tolerance"),
    (dict(tolerance=0.0), "tolerance"),
    (dict(e0=25.0), "factor.*printed"),
    (dict(e0=5e-324), "too small"),
]


@pytest.mark.parametrize(("change", "message"), BAD_RATES)
def test_bad_rates_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        convergence_rate(**(dict(e0=0.5, largest_eigenvalue=10.0) | change))


def test_the_reciprocal_itself_is_admissible():
    for top in np.random.default_rng(0).uniform(0.1, 100, 200):
        assert convergence_rate(0.01, float(top), step_size=1 / float(top)).step_size == 1 / top


def test_required_width_term_by_term():
    log = math.log(32 / 0.05)
    wide = required_width(0.05, 32, 2.0)
    assert wide.quartic == pytest.approx(32**4 * log / (16 * 0.05**4))
    assert wide.quadratic == pytest.approx(32**2 * log / 0.05**2)
    assert wide.width == float(wide) == wide.quartic and wide.constant == 1.0
    far = required_width(0.05, 32, 1e4)
    assert far.width == far.quadratic > far.quartic
    assert required_width(enclose(0.05, 0.1), 32, 2.0) == wide
    assert required_width(1.0, 1, 1.0, delta=0.5).width == pytest.approx(math.log(2))
    assert required_width(1e-300, 10**6, 1.0).width == math.inf


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 4, 1.0), "e0"),
        ((0.1, 0, 1.0), "n must be at least 1"),
        ((0.1, 4, 0.0), "alpha"),
        ((0.1, 4, -1.0), "alpha"),
        ((0.1, 4, 1.0, 0.0), "delta"),
        ((0.1, 4, 1.0, 1.0), "delta"),
    ],
)
def test_bad_widths_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        required_width(*arguments)


# --- Assumption III.1 -----------------------------------------------------------------------

LABELS = np.repeat(["a", "b"], 6)


def cloud(n=12, d=8, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def test_generic_centred_points_meet_the_assumption():
    result = check_assumption(centre(cloud(), LABELS), LABELS)
    assert result.holds and result.centring == "exact" and result.worst_mean < 1e-15
    assert result.parallel == result.antiparallel == result.zero_rows == ()
    x = centre(cloud(), LABELS)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosine = np.abs(unit @ unit.T)[np.triu_indices(12, 1)].max()
    assert result.smallest_angle == pytest.approx(math.acos(cosine), rel=1e-12)
    assert str(result).startswith("Assumption III.1 holds.")


def test_centring_exact_within_sampling_and_absent():
    many = np.random.default_rng(1).standard_normal((400, 8))
    labels = np.repeat(["a", "b"], 200)
    within = check_assumption(many, labels)
    assert within.holds and within.centring == "sampling" and within.sampling_scale == 200**-0.5
    many[labels == "b"] += 1.0
    off = check_assumption(many, labels)
    assert not off.holds and off.centring == "absent" and off.worst_client == "b"
    assert off.worst_mean == pytest.approx(2**-0.5, abs=0.05)
    assert "theory.centre" in off.advice
    # One sample a client cannot tell.
    assert check_assumption(cloud(4), np.arange(4)).centring == "sampling"


def test_pairs_on_a_line_are_found_with_their_rows_and_consequences():
    x = cloud()
    x[9] = 3.0 * x[2]
    x[5] = 1e-5 * x[0]
    x[7] = -0.1 * x[1]
    result = check_assumption(x, LABELS)
    assert not result.holds
    assert result.parallel == ((0, 5), (2, 9)) and result.antiparallel == ((1, 7),)
    assert result.smallest_angle < 1e-15
    assert "1 of them within a client" in result.advice
    assert "One pair breaks the assumption without making G∞ singular" in result.advice


def test_one_antipodal_pair_alone_breaks_the_assumption_and_not_the_matrix():
    x = cloud(6)
    x[3] = -x[0]
    result = check_assumption(x, np.zeros(6, int))
    assert not result.holds and result.antiparallel == ((0, 3),) and result.parallel == ()
    assert "makes G∞ singular" not in result.advice and "drop" not in result.advice
    assert np.linalg.eigvalsh(gram_matrix(x))[0] > 1e-3
    # As many pairs as dimensions may do, and so may three in a plane: only the rank decides.
    points = cloud(8, d=5)
    for some, lines, rank in (
        (points, 8, 5),
        (points[:5], 5, 5),
        (points[:3] * [1, 1, 0, 0, 0], 3, 2),
    ):
        both = np.concatenate([some, -some])
        many = check_assumption(both, np.arange(len(both)) % 2)
        assert len(many.antiparallel) == lines
        singular = f"Their {lines} lines span only {rank} dimensions" in many.advice
        assert singular == (rank < lines)
        assert singular == (np.linalg.eigvalsh(gram_matrix(both))[0] < 1e-12)


@pytest.mark.parametrize("angle", [1e-12, 1e-9, 1e-7, 1e-4, 0.3])
@pytest.mark.parametrize("sign", [1, -1])
def test_small_angles_are_accurate(angle, sign):
    x = np.array([[1.0, 0.0, 0.0], [math.cos(angle), math.sin(angle), 0.0], [0.0, 0.0, 1.0]])
    x[1] *= sign * 7.0
    result = check_assumption(x, ["a"] * 3, tolerance=1e-8)
    # Rounding of the coordinates moves the angle by about u; 1e-12 then keeps four digits.
    assert result.smallest_angle == pytest.approx(angle, rel=1e-3 if angle < 1e-10 else 1e-6)
    assert (result.parallel if sign > 0 else result.antiparallel) == (
        ((0, 1),) if angle <= 1e-8 else ()
    )


def test_many_copies_across_tiles_and_degenerate_data_stay_quick():
    x = cloud(1200, d=3)
    x[1100] = x[3]
    x[700] = x[600]
    result = check_assumption(x, np.zeros(1200, int))
    assert {(3, 1100), (600, 700)} <= set(result.parallel)
    same = check_assumption(np.ones((600, 2)), np.zeros(600, int))
    assert len(same.parallel) == 100_000 and "more pairs" in same.advice


def test_zero_rows_single_points_and_other_dtypes():
    x = cloud()
    x[4] = 0.0
    result = check_assumption(x, LABELS)
    assert not result.holds and result.zero_rows == (4,) and "Zero rows" in result.advice
    alone = check_assumption([[1.0, 2.0]], ["a"])
    assert alone.holds and alone.smallest_angle == math.inf
    assert not check_assumption(np.zeros((2, 3)), ["a", "b"]).holds
    whole = np.array([[1, 0], [2, 0], [0, 1]], dtype=np.int8)
    assert check_assumption(whole, [0, 0, 0]).parallel == ((0, 1),)
    tiny = check_assumption(cloud() * 1e-200, LABELS)
    assert tiny.smallest_angle == pytest.approx(check_assumption(cloud(), LABELS).smallest_angle)
    assert check_assumption(cloud().astype(np.float32), LABELS).holds


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(x=cloud()[0]), "two dimensions"),
        (dict(x=np.where(np.arange(96).reshape(12, 8) == 17, np.nan, cloud())), "row 2"),
        (dict(client=LABELS[:5]), "5 labels"),
        (dict(tolerance=0.0), "tolerance"),
        (dict(tolerance=1.0), "below 0.1"),
    ],
)
def test_bad_input_to_the_assumption_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        check_assumption(**(dict(x=cloud(), client=LABELS) | change))
