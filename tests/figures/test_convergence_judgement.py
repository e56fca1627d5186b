"""Every verdict that a claim of the section can get, and what it takes to get it."""

import numpy as np
import polars as pl
import pytest
from scipy import stats
from synthetic import OPTIONS, Records, corollary, descent, regime, spectrum, training

from figures.convergence import judge, present, summarise
from figures.convergence.judgement import overall


def claims(records):
    return {claim.id: claim for claim in judge(summarise(*records.both))}


def only(records, name):
    return claims(records)[name]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["certified"] * 3, "certified"),
        (["certified", "consistent"], "consistent"),
        (["certified", None], "consistent"),
        (["certified", "violated", "consistent", None], "violated"),
        ([], "consistent"),
    ],
)
def test_one_violation_counts_and_so_does_one_open_verdict(verdicts, expected):
    assert overall(pl.Series(verdicts, dtype=pl.String)) == expected


def test_corollary_over_draws():
    pairs = [(1.0, 2.0), (1.0, 4.0)]
    claim = only(corollary(Records(), {(2, 8): pairs}), "corollary-iii.6.draws.gaussian")
    assert claim.verdict == "certified" and claim.measured == "2 of 2 draws certified"
    # Certain bounds of all ratios, from the ends of the enclosures.
    assert claim.interval == pytest.approx((1.99 / 1.01, 4.01 / 0.99), rel=1e-14)
    assert claim.interval[0] < 1.99 / 1.01 and claim.interval[1] > 4.01 / 0.99
    open_ = only(
        corollary(Records(), {(2, 8): [*pairs, (1.0, 1.005)]}), "corollary-iii.6.draws.gaussian"
    )
    assert open_.verdict == "consistent" and open_.measured == "2 of 3 draws certified"


def test_a_singular_draw_is_open_and_has_no_ratio():
    claim = only(
        corollary(Records(), {(2, 8): [(1.0, 2.0), (0.0, 0.0)]}), "corollary-iii.6.draws.gaussian"
    )
    assert claim.verdict == "consistent" and claim.interval is None
    whole = only(spectrum(Records(), 0.0, 0.005), "corollary-iii.6.digits")
    assert whole.verdict == "consistent" and whole.interval is None
    assert whole.measured == "λ_min(G∞) or λ_min(G*∞) may be 0"


def test_corollary_on_all_points_counts_them():
    claim = only(spectrum(Records(), 1.0, 2.0, points=5), "corollary-iii.6.digits")
    assert claim.verdict == "certified" and "on all 5 training images" in claim.claim
    assert claim.measured == "λ_min(G*∞)/λ_min(G∞) = 2.0000"
    assert claim.interval == pytest.approx((1.99 / 1.01, 2.01 / 0.99), rel=1e-14)


@pytest.mark.usefixtures("coarse")
def test_one_violated_draw_breaks_what_is_proven(tmp_path):
    good = [(1.0, 2.0)] * 19
    for pairs, holds in ((good, True), ([*good, (2.0, 1.0)], False)):
        records = corollary(Records(), {(2, 8): pairs})
        product = present(*records.both, tmp_path, OPTIONS)
        verdict = {c.id: c.verdict for c in product.claims}["corollary-iii.6.draws.gaussian"]
        assert (verdict, product.proven_hold) == ("certified" if holds else "violated", holds)


@pytest.mark.usefixtures("coarse")
def test_experiments_and_networks_that_disagree_are_findings_not_bugs(tmp_path):
    records = descent(Records(), decay="violated", eigen="violated", slack=-1.0)
    for seed in range(4):
        training(records, "aggregated", seed, [4.0, 1.0 + 0.01 * seed])
        training(records, "client_specific", seed, [4.0, 3.0 - 0.01 * seed])
    product = present(*records.both, tmp_path, OPTIONS)
    verdicts = {c.id: c.verdict for c in product.claims}
    assert verdicts["theorem-iii.4.decay"] == "violated"
    assert verdicts["cnn.train-loss.last-round"] == "contradicted"
    assert product.proven_hold


def test_the_theorem_is_judged_where_g_dominates_alone():
    records = descent(Records(), slack=0.5, ratio=3.0)
    descent(records, alpha=2.0, dominated=False, decay="violated", eigen="violated", slack=-5.0)
    found = claims(records)
    decay, eigen = found["theorem-iii.4.decay"], found["theorem-iii.4.eigenvalue"]
    assert decay.verdict == eigen.verdict == "certified"
    # f at the common η and at its own is one and the same run.
    most = "up to 6.00 after the last step"
    assert decay.measured == f"smallest slack 0.500 decades, {most}, over 3 runs"
    assert decay.interval == (0.5, 1.5) and eigen.interval == (3.0, 4.0)
    assert "every recorded step" in eigen.claim
    nowhere = claims(descent(Records(), dominated=False))
    assert not any(name.startswith("theorem") for name in nowhere)


@pytest.mark.parametrize("verdict", ["consistent", "violated"])
def test_one_run_that_is_not_certified_decides(verdict):
    records = descent(descent(Records()), draw=1, decay=verdict, eigen=verdict)
    found = claims(records)
    assert found["theorem-iii.4.decay"].verdict == verdict
    assert found["theorem-iii.4.eigenvalue"].verdict == verdict


def test_a_run_that_diverged_where_g_dominates_breaks_the_bound():
    found = claims(descent(descent(Records()), draw=1, lost=("f*|own",)))
    assert found["theorem-iii.4.decay"].verdict == "violated"
    assert found["theorem-iii.4.decay"].measured.endswith("over 6 runs, 1 of them diverged")
    assert found["theorem-iii.4.eigenvalue"].verdict == "consistent"
    every = [f"{net}|{choice}" for net in ("f", "f*") for choice in ("common", "own")]
    lost = claims(descent(Records(), lost=every))["theorem-iii.4.decay"]
    assert lost.verdict == "violated" and lost.interval is None
    assert lost.measured.endswith("over 3 runs, 3 of them diverged")
    unseen = descent(Records(), dominated=False, lost=every)
    assert "theorem-iii.4.decay" not in claims(unseen)


def test_the_printed_kernel_is_excluded_by_the_widest_networks():
    name = "eq-10.not-the-limit"
    narrow = descent(Records(), gaps=(0.5, 0.8))
    assert only(narrow, name).verdict == "consistent"
    descent(narrow, width=8192, gaps=(0.6, 2.5))
    claim = only(narrow, name)
    assert claim.verdict == "certified"
    assert "2.50 or more Hoeffding radii from (10) at m = 8192, at most 0.600" in claim.measured
    # One α at which the widest network does not decide leaves the claim open.
    assert only(descent(narrow, width=8192, alpha=0.2, gaps=(0.5, 0.9)), name).verdict == (
        "consistent"
    )


@pytest.mark.usefixtures("coarse")
def test_a_network_outside_its_own_radius_is_a_bug(tmp_path):
    records = descent(descent(Records(), width=8192, gaps=(0.5, 4.0)), gaps=(1.01, 4.0))
    assert only(records, "eq-10.not-the-limit").verdict == "violated"
    assert not present(*records.both, tmp_path, OPTIONS).proven_hold


def test_the_printed_rate_is_refuted_by_the_ends_of_the_enclosures():
    name = "eq-10.rate-refuted"
    # Halves of the enclosures are 0.01: λ_min(Λ) ends at 2.01 (f*), e₀ begins at 99.99 or 4.02.
    claim = only(descent(Records(), lambda_min=1.0, printed=100.0), name)
    # 1.01 by half of 99.99 for f, 2.01 for f*.
    assert claim.verdict == "certified" and claim.interval is None
    assert claim.measured == "λ_min(Λ(0))/(e₀/2) at most 0.0402 over 4 runs"
    for printed, verdict in ((4.0301, "certified"), (4.0299, "consistent"), (4.0, "consistent")):
        assert only(descent(Records(), lambda_min=1.0, printed=printed), name).verdict == verdict
    # Below α = 2 the claim says nothing.
    assert name not in claims(descent(Records(), alpha=1.5, printed=0.1))
    both = descent(descent(Records()), alpha=1.5, printed=0.1)
    assert only(both, name).verdict == "certified"


def test_the_threshold_needs_every_draw():
    name = "alpha.threshold"
    claim = only(regime(Records(), [(1.0, 9.0), (1.0, 16.0)], half=1e-9), name)
    assert claim.verdict == "certified" and "from 3.00 to 4.00 over 2 draws" in claim.measured
    assert claim.interval[0] < 3.0 < 4.0 < claim.interval[1]
    assert claim.interval == pytest.approx((3.0, 4.0), rel=1e-8)
    assert only(regime(Records(), [(1.0, 9.0), (1.0, 0.5)]), name).verdict == "consistent"
    assert only(regime(Records(), [(1.0, 0.9), (1.0, 0.5)]), name).verdict == "violated"
    # Enclosures too wide to tell, and a G that may be singular.
    assert only(regime(Records(), [(1.0, 9.0)], (0.5, 2.9), 0.2), name).verdict == "consistent"
    assert name not in claims(regime(Records(), [(1e-9, 9.0)]))
    assert only(regime(Records(), [(1e-9, 9.0), (1.0, 0.5)]), name).verdict != "violated"


def test_experiments_are_corrected_by_holm():
    records = Records()
    for seed, gap in enumerate((0.4, 0.44, 0.42)):
        training(records, "aggregated", seed, [4.0, 2.0, 1.0], 0.7)
        training(records, "client_specific", seed, [4.0, 1.9 + seed, 1.0 - gap], 0.7)
    found = {c.id: c for c in judge(summarise(*records.both))}
    assert len(found) == 4
    last = found["cnn.train-loss.last-round"]
    # −0.42 of the first client and half of it for the second: the mean is −0.42 · 0.75.
    assert last.verdict == "supported" and last.measured.startswith("−0.315 over 3 seeds, Holm")
    assert last.interval[0] < -0.42 * 0.75 < last.interval[1] < 0
    # The p-value of t = −36.4 on two degrees of freedom, times four.
    alone = 2 * stats.t.sf(0.42 / (0.02 / np.sqrt(3)), 2)
    assert last.measured.endswith(f"p = {4 * alone:.4f}")
    assert found["cnn.train-loss.mean-over-rounds"].verdict == "inconclusive"
    assert found["cnn.test-accuracy.last-round"].verdict == "inconclusive"
    assert "lower train loss" in last.claim
    assert "higher test accuracy" in found["cnn.test-accuracy.last-round"].claim


def test_an_interval_without_zero_is_not_enough_within_a_table():
    records = Records()
    # t = 5.20 on two degrees of freedom: p = .035 alone, .14 after Holm over four.
    for seed, gap in enumerate((0.2, 0.3, 0.4)):
        training(records, "aggregated", seed, [4.0, 1.0], 0.7)
        training(records, "client_specific", seed, [4.0, 1.0 - gap], 0.7)
    claim = only(records, "cnn.train-loss.last-round")
    assert claim.interval[1] < 0 and claim.verdict == "inconclusive"


def test_one_seed_decides_nothing():
    records = training(Records(), "aggregated", 0, [4.0, 2.0])
    training(records, "client_specific", 0, [4.0, 1.0])
    claim = only(records, "cnn.train-loss.last-round")
    assert claim.verdict == "inconclusive" and claim.interval is None


def test_every_claim_points_to_a_figure_that_was_drawn(shown):
    folder, product = shown
    drawn = {path.relative_to(folder).as_posix() for path in product.figures}
    assert len({claim.id for claim in product.claims}) == len(product.claims) == 29
    assert {claim.figure for claim in product.claims} <= drawn
    assert product.proven_hold
