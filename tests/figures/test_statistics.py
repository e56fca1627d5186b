import math
import warnings
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy import stats

from figures.rounds import interval_table, rounds_to_target, summarise_rounds
from figures.statistics import (
    PairedDifference,
    holm,
    mean_interval,
    paired_difference,
    verdict,
    verdicts_holm,
)


def seeds(values):
    return dict(enumerate(values))


def difference(lower, upper, p=0.01):
    mean = 0.0 if lower is None else (lower + upper) / 2
    return PairedDifference(mean, lower, upper, 3, p, 0.95, "by hand")


# ---- means


def test_student_interval_by_hand():
    # mean 2, sd 1, t(.975; 2) = 4.302653: half-width 4.302653 / sqrt(3) = 2.484138
    found = mean_interval([1.0, 2.0, 3.0])
    assert (found.mean, found.sd, found.n) == (2.0, 1.0, 3)
    assert found.lower == pytest.approx(2 - 2.484138, abs=1e-6)
    assert found.upper == pytest.approx(2 + 2.484138, abs=1e-6)
    assert found.method == "Student t, n = 3"


@pytest.mark.parametrize("n", [2, 5, 9])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_student_interval_is_scipys(n, level):
    x = np.random.default_rng(n).normal(size=n)
    found = mean_interval(x, level)
    theirs = stats.ttest_1samp(x, 0.0).confidence_interval(level)
    assert (found.lower, found.upper) == pytest.approx((theirs.low, theirs.high), rel=1e-12)


def test_from_ten_values_the_bootstrap_is_used_and_repeats_itself():
    x = np.random.default_rng(1).exponential(size=10)
    found = mean_interval(x)
    assert found.method == "BCa bootstrap, n = 10"
    assert found == mean_interval(list(x))
    assert mean_interval(x[:9]).method == "Student t, n = 9"
    # Skewed data: BCa reaches further on the long side, which Student t cannot.
    assert found.upper - found.mean > found.mean - found.lower


def test_the_bootstrap_is_bca_by_hand():
    x = np.random.default_rng(1).gamma(4.0, size=10)
    found = mean_interval(x)
    # Other resamples: 9,999 of them leave about 1 % of the width as Monte Carlo error.
    width = found.upper - found.lower
    assert (found.lower, found.upper) == pytest.approx(bca_by_hand(x), abs=0.03 * width)


def bca_by_hand(x):
    means = np.random.default_rng(7).choice(x, size=(40_000, len(x))).mean(axis=1)
    z0 = stats.norm.ppf(np.mean(means < x.mean()))
    jackknife = (x.sum() - x) / (len(x) - 1)
    d = jackknife.mean() - jackknife
    a = (d**3).sum() / (6 * (d**2).sum() ** 1.5)
    z = stats.norm.ppf([0.025, 0.975])
    return tuple(np.quantile(means, stats.norm.cdf(z0 + (z0 + z) / (1 - a * (z0 + z)))))


def coverage(n, trials, seed):
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(trials):
        found = mean_interval(rng.normal(3.0, 2.0, size=n))
        hits += found.lower <= 3.0 <= found.upper
    return hits / trials


@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_student_interval_covers_what_it_says(n):
    trials = 1_500
    # Four binomial standard deviations.
    assert abs(coverage(n, trials, n) - 0.95) < 4 * math.sqrt(0.95 * 0.05 / trials)


def test_bootstrap_interval_covers_about_what_it_says():
    # BCa at n = 10 is known to cover some 90 % of normal samples, not 95 %.
    trials = 600
    assert abs(coverage(10, trials, 0) - 0.90) < 0.03 + 4 * math.sqrt(0.9 * 0.1 / trials)


def test_one_value_has_no_interval():
    found = mean_interval([0.7])
    assert (found.mean, found.lower, found.upper, found.sd) == (0.7, None, None, None)
    assert found.method == "one value: no interval"


@pytest.mark.parametrize("n", [2, 9, 10, 30])
def test_equal_values_have_an_interval_of_no_width_and_no_warning(n):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mean_interval([0.1] * n)
    assert (found.mean, found.lower, found.upper, found.sd) == (0.1, 0.1, 0.1, 0.0)


def test_nearly_degenerate_values_stay_finite():
    found = mean_interval([0.0] * 10 + [1.0])
    assert math.isfinite(found.lower) and found.lower <= found.mean <= found.upper


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "non-empty"),
        ([[1.0, 2.0]], "non-empty list"),
        (1.0, "non-empty list"),
        ([1.0, math.nan], r"values\[1\] is nan"),
        (["a", "b"], "real numbers"),
        ([True, False], "real numbers"),
        ([1j, 2.0], "real numbers"),
    ],
)
def test_bad_values_are_refused(values, message):
    with pytest.raises((TypeError, ValueError), match=message):
        mean_interval(values)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, math.nan])
def test_bad_levels_are_refused(level):
    with pytest.raises(ValueError, match="level must lie between"):
        mean_interval([1.0, 2.0], level)
    with pytest.raises(ValueError, match="level must lie between"):
        paired_difference({0: 1.0}, {0: 2.0}, level)


# ---- paired differences


def test_paired_difference_by_hand():
    # differences 1, 2, 3: as above; t = 2 / (1 / sqrt(3)) = 3.4641, p = 0.0741799
    found = paired_difference({0: 2.0, 1: 3.0, 2: 5.0}, {2: 2.0, 1: 1.0, 0: 1.0})
    assert found.mean == pytest.approx(2.0)
    assert found.lower == pytest.approx(2 - 2.484138, abs=1e-6)
    assert found.p_value == pytest.approx(0.0741799, abs=1e-6)
    assert (found.n, found.unpaired, found.method) == (3, (), "paired Student t, n = 3")


def test_pairing_removes_what_the_seeds_share():
    rng = np.random.default_rng(0)
    shared = rng.normal(0, 10, size=6)
    a, b = shared + 1 + rng.normal(0, 0.1, 6), shared + rng.normal(0, 0.1, 6)
    found = paired_difference(seeds(a), seeds(b))
    theirs = stats.ttest_rel(a, b)
    assert verdict(found, "greater") == "supported"
    assert found.p_value == pytest.approx(theirs.pvalue, rel=1e-9)
    assert stats.ttest_ind(a, b).pvalue > 0.5, "unpaired, nothing would be seen"


def test_sides_are_antisymmetric():
    a, b = seeds([0.5, 0.7, 0.9]), seeds([0.4, 0.65, 0.7])
    one, other = paired_difference(a, b), paired_difference(b, a)
    assert (one.lower, one.upper) == pytest.approx((-other.upper, -other.lower), rel=1e-12)
    assert one.p_value == pytest.approx(other.p_value, rel=1e-12)


@pytest.mark.parametrize("n", [10, 12])
def test_from_ten_pairs_sign_flips_give_p(n):
    x = np.random.default_rng(n).normal(0.4, 1, size=n)
    found = paired_difference(seeds(x), seeds(np.zeros(n)))
    assert found.method == f"paired BCa bootstrap, n = {n}"
    sums = [abs(np.dot(signs, x)) for signs in product((-1, 1), repeat=n)]
    by_hand = np.mean(np.array(sums) >= abs(x.sum()) * (1 - 1e-12))
    assert found.p_value == pytest.approx(by_hand, rel=1e-12)


def test_sampled_sign_flips_agree_with_the_t_test():
    x = np.random.default_rng(3).normal(0.5, 1, size=25)
    found = paired_difference(seeds(x), seeds(np.zeros(25)))
    p = stats.ttest_1samp(x, 0).pvalue
    # Both tests are right for normal differences; 9,999 samples of p = .02 scatter by .0014.
    assert found.p_value == pytest.approx(p, abs=0.01)
    assert found == paired_difference(seeds(x), seeds(np.zeros(25)))


def test_seeds_of_one_side_are_named_and_left_out():
    with pytest.warns(UserWarning, match=r"seeds \[2, 7\] are on one side only"):
        found = paired_difference({0: 1.0, 1: 2.0, 2: 9.0}, {0: 0.0, 1: 0.5, 7: 9.0})
    assert (found.n, found.unpaired, found.mean) == (2, (2, 7), 1.25)


def test_no_common_seed_is_refused():
    with pytest.raises(ValueError, match=r"one side has seeds \[0, 1\], the other \[2\]"):
        paired_difference({0: 1.0, 1: 2.0}, {2: 1.0})
    with pytest.raises(ValueError, match="nothing to pair"):
        paired_difference({}, {})
    with pytest.raises(ValueError, match=r"b\[1\] is inf"):
        paired_difference({0: 1.0, 1: 2.0}, {0: 1.0, 1: math.inf})


def test_one_pair_decides_nothing():
    found = paired_difference({0: 1.0}, {0: 0.0})
    assert (found.mean, found.lower, found.p_value) == (1.0, None, None)
    assert verdict(found, "greater") == "inconclusive"


def test_equal_differences_are_no_proof_below_six_pairs():
    # .3 − .2 and .8 − .7 differ in their last bits: Student t would take that for certainty.
    few = paired_difference(seeds([0.3, 0.8, 0.5]), seeds([0.2, 0.7, 0.4]))
    assert (few.lower, few.p_value) == (None, 0.25)
    assert verdict(few, "greater") == "inconclusive"
    many = paired_difference(seeds([0.3] * 6), seeds([0.2] * 6))
    assert many.p_value == 2**-5 and verdict(many, "greater") == "supported"
    none = paired_difference(seeds([0.3, 0.8]), seeds([0.3, 0.8]))
    assert (none.mean, none.lower, none.upper, none.p_value) == (0.0, 0.0, 0.0, 1.0)
    assert verdict(none, "greater") == "inconclusive"


# ---- verdicts


@pytest.mark.parametrize(
    ("lower", "upper", "direction", "expected"),
    [
        (0.1, 0.2, "greater", "supported"),
        (0.1, 0.2, "less", "contradicted"),
        (-0.2, -0.1, "greater", "contradicted"),
        (-0.2, -0.1, "less", "supported"),
        (-0.1, 0.2, "greater", "inconclusive"),
        (0.0, 0.2, "greater", "inconclusive"),
        (-0.2, 0.0, "less", "inconclusive"),
        (None, None, "less", "inconclusive"),
    ],
)
def test_verdict_needs_an_interval_without_zero(lower, upper, direction, expected):
    assert verdict(difference(lower, upper), direction) == expected


def test_false_support_is_as_rare_as_stated():
    rng, trials = np.random.default_rng(0), 1_500
    found = [
        verdict(paired_difference(seeds(rng.normal(size=3)), seeds(rng.normal(size=3))), "greater")
        for _ in range(trials)
    ]
    for wrong in ("supported", "contradicted"):
        # Four binomial standard deviations around 2.5 %.
        rate = found.count(wrong) / trials
        assert abs(rate - 0.025) < 4 * math.sqrt(0.025 * 0.975 / trials)


def test_holm_by_hand():
    # sorted .005 .01 .03 .04 times 4 3 2 1 -> .02 .03 .06 .04 -> running maximum .02 .03 .06 .06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.9, 0.8]) == (1.0, 1.0)
    assert holm([0.2]) == (0.2,)
    assert holm([]) == ()


@pytest.mark.parametrize("p", [[1.1], [-0.1], [math.nan]])
def test_holm_refuses_what_is_no_probability(p):
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm(p)


def test_a_table_is_corrected_as_one_family():
    table = {
        "clear": difference(0.1, 0.2, 0.001),
        "weak": difference(0.1, 0.2, 0.03),
        "single": PairedDifference(1.0, None, None, 1, None, 0.95, "one"),
    }
    found = verdicts_holm(table, "greater")
    assert found["clear"] == ("supported", pytest.approx(0.003))
    assert found["weak"] == ("inconclusive", pytest.approx(0.06))
    assert found["single"] == ("inconclusive", 1.0)
    alone = verdicts_holm({"weak": table["weak"]}, {"weak": "less"})
    assert alone == {"weak": ("contradicted", 0.03)}


def test_unknown_direction_is_refused():
    with pytest.raises(ValueError, match="'greater' or 'less', not 'up'"):
        verdict(difference(0.1, 0.2), "up")


# ---- rounds to target


def test_first_round_at_the_target():
    curve = {3: 0.4, 0: 2.0, 1: 1.0, 2: 0.5}
    assert rounds_to_target(curve, 0.5) == 2
    assert rounds_to_target(curve, 0.1) is None
    assert rounds_to_target(curve, 5.0) == 0
    assert rounds_to_target({0: 0.1, 1: 0.8}, 0.75, "above") == 1


def test_bad_curves_are_refused():
    with pytest.raises(ValueError, match="empty"):
        rounds_to_target({}, 0.5)
    with pytest.raises(ValueError, match="finite"):
        rounds_to_target({0: math.nan}, 0.5)
    with pytest.raises(ValueError, match="'below' or 'above'"):
        rounds_to_target({0: 1.0}, 0.5, "under")


@pytest.mark.parametrize(
    ("rounds", "median", "text"),
    [
        ([7, 5, 9], 7, "7 (5 to 9)"),
        ([7, None, 5], 7, "7 (5 to >15), 2 of 3 seeds reached"),
        ([None, None, 5], None, ">15 (5 to >15), 1 of 3 seeds reached"),
        ([4, 7], 5.5, "5.5 (4 to 7)"),
        ([4, 6, None, None], None, ">15 (4 to >15), 2 of 4 seeds reached"),
        ([None], None, ">15, none of 1 seeds reached"),
        ([0], 0, "0 (0 to 0)"),
    ],
)
def test_unreached_targets_count_as_late_not_as_absent(rounds, median, text):
    found = summarise_rounds(rounds, 15)
    assert found.median == median
    assert str(found) == text


def test_the_median_ignores_how_late_the_unreached_would_be():
    # The rule itself: whatever beyond the horizon replaces None leaves a reported median alone.
    for late in (16, 1_000):
        values = [7, late, 5]
        assert np.median(values) == summarise_rounds([7, None, 5], 15).median


def test_impossible_rounds_are_refused():
    with pytest.raises(ValueError, match="beyond the horizon"):
        summarise_rounds([16], 15)
    with pytest.raises(ValueError, match="no seeds"):
        summarise_rounds([], 15)


# ---- tables of intervals


def test_interval_table_is_the_interval_of_each_group():
    frame = pl.DataFrame(
        {
            "variant": ["b", "b", "a", "b", "a"],
            "round": [1, 1, 1, 1, 1],
            "value": [1.0, 2.0, 5.0, 3.0, 6.0],
        }
    )
    table = interval_table(frame, ["variant", "round"])
    assert table["variant"].to_list() == ["b", "a"]
    for row in table.iter_rows(named=True):
        values = frame.filter(pl.col("variant") == row["variant"])["value"].to_list()
        found = mean_interval(values)
        assert (row["mean"], row["lower"], row["upper"]) == (found.mean, found.lower, found.upper)
        assert (row["n"], row["method"]) == (found.n, found.method)
    assert interval_table(frame.clear(), ["variant"]).height == 0
    with pytest.raises(ValueError, match=r"no columns \['seed'\]"):
        interval_table(frame, ["seed"])
