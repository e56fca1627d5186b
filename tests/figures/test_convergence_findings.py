"""Where the corollary stops: claims with every verdict, tables by hand, what the axes show."""

import numpy as np
import polars as pl
import pytest
from synthetic import OPTIONS, Records, comparison, corollary, everything, spectrum
from synthetic_findings import proofs, read

from figures import style
from figures.convergence import draw_findings, draw_step_sizes, drawings, judge, present, summarise
from figures.convergence.layouts import tables
from figures.selection import of
from figures.style import look
from figures.tables import as_text_rows


def made(records):
    return summarise(*records.both)


def claims(records):
    return {claim.id: claim for claim in judge(made(records))}


@pytest.fixture(autouse=True)
def styled():
    with style.context():
        yield


def test_counterexamples_are_negated_statements():
    found = claims(proofs(Records()))
    pooled = found["corollary-iii.6.pooled.counterexample"]
    assert pooled.verdict == "certified" and "does not extend" in pooled.claim
    assert "λ_min(G∞) = 0.3000 > λ_min(G*∞) = 0.2500" in pooled.measured
    # The second Gaussian draw is given own + whole > whole: it is no counterexample.
    assert pooled.measured.endswith("and in 1 of 2 Gaussian draws")
    assert pooled.interval == pytest.approx((1.2, 1.5), rel=1e-4)
    full = found["corollary-iii.6.full-kernel.counterexample"]
    assert full.verdict == "certified" and "to Λ" in full.claim
    assert full.interval[0] < 0.42 / 0.41 < 0.5 / 0.4 < full.interval[1]


@pytest.mark.parametrize(
    ("own", "verdict"), [(0.2, "certified"), (0.3, "consistent"), (0.4, "violated")]
)
@pytest.mark.usefixtures("coarse")
def test_a_counterexample_that_is_none_is_a_bug(own, verdict, tmp_path):
    records = proofs(Records(), examples={"pooled.orthogonal": (0.3, own)})
    assert claims(records)["corollary-iii.6.pooled.counterexample"].verdict == verdict
    assert present(*records.both, tmp_path, OPTIONS).proven_hold == (verdict != "violated")


@pytest.mark.parametrize("verdict", ["certified", "consistent", "violated"])
def test_one_side_of_a_threshold_decides_and_so_does_one_comparison(verdict):
    found = claims(proofs(Records(), sides=verdict, remains=verdict))
    for name in ("pooled.threshold", "full-kernel.threshold", "pooled.remains"):
        assert found[f"corollary-iii.6.{name}"].verdict == verdict
    proven = 2 if verdict == "certified" else 1
    assert f"for {proven} of 2 pairs" in found["corollary-iii.6.pooled.threshold"].measured


def test_what_remains_counts_examples_and_draws():
    records = read(proofs(Records()), [(2.0, 1.5, 1.1)] * 3)
    # Two examples, two Gaussian draws and three draws of data.
    measured = claims(records)["corollary-iii.6.pooled.remains"].measured
    assert measured == "7 of 7 comparisons certified"


@pytest.mark.usefixtures("coarse")
def test_a_reading_says_what_was_found(tmp_path):
    name = "reading.pooled.isotropic.digits"
    holds = claims(read(Records(), [(2.0, 1.5, 1.1), (2.0, 1.2, 1.1)]))[name]
    assert holds.verdict == "certified" and holds.claim.startswith("λ_min(G*∞) ≥ λ_min(G∞)")
    assert holds.interval == pytest.approx((1.2, 1.5), rel=1e-5)
    records = read(Records(), [(2.0, 1.5, 1.1), (2.0, 0.8, 0.9)])
    fails = claims(records)[name]
    assert fails.verdict == "certified" and fails.claim.startswith("Not always")
    assert "hold in 1 and to fail in 1 of 2" in fails.measured
    assert fails.interval == pytest.approx((0.8, 1.5), rel=1e-5)
    full = claims(records)["reading.full-kernel.isotropic.digits"]
    assert full.claim.startswith("Not always") and "fail in 2 of 4" in full.measured
    assert present(*records.both, tmp_path, OPTIONS).proven_hold  # a finding, no bug
    open_ = claims(read(Records(), [(2.0, 1.0, 1.1)]))[name]
    assert open_.verdict == "consistent" and not open_.claim.startswith("Not")


def test_readings_of_both_kinds_of_covariances_are_told_apart():
    records = read(Records(), [(2.0, 1.5, 1.1)])
    found = claims(read(records, [(2.0, 0.5, 1.1)], covariances="own", data="gaussian"))
    assert "S_i = λ_i I" in found["reading.pooled.isotropic.digits"].claim
    assert "the clients' covariances" in found["reading.pooled.own.gaussian"].claim
    assert found["reading.pooled.own.gaussian"].claim.startswith("Not always")
    assert "at every α from 1 to 9" in found["reading.full-kernel.own.gaussian"].claim


def test_a_reading_without_a_positive_eigenvalue_has_no_ratio():
    records = read(Records(), [(1.0, 1e-7, 1.0)], half=1e-6)
    table = made(records).findings.readings
    row = of(table, variant="pooled", split="smallest").row(0, named=True)
    assert row["ratio"] is None and row["verdict"] == "violated"
    assert claims(records)["reading.pooled.isotropic.digits"].interval is None


def test_the_step_and_the_condition_number_on_all_points():
    found = claims(spectrum(Records(), 1.0, 1.2))
    step = found["corollary-iii.6.step-size.digits"]
    assert step.verdict == "certified" and step.interval == (1.99, 2.01)
    assert found["corollary-iii.6.condition.digits"].interval == pytest.approx((2.39, 2.41))
    gain = found["step-size.gain.digits"]
    assert gain.verdict == "certified" and "the smaller λ_max gives more" in gain.claim
    assert gain.measured == "λ_max falls 2.000-fold, λ_min rises 1.200-fold"
    more = claims(spectrum(Records(), 1.0, 3.0))["step-size.gain.digits"]
    assert more.verdict == "certified" and "the larger λ_min gives more" in more.claim
    assert claims(spectrum(Records(), 1.0, 2.0))["step-size.gain.digits"].verdict == "consistent"


def test_a_singular_kernel_has_a_step_but_no_condition_number():
    found = claims(spectrum(Records(), 0.0, 0.005))
    assert "corollary-iii.6.step-size.digits" in found
    assert not {"corollary-iii.6.condition.digits", "step-size.gain.digits"} & set(found)


@pytest.mark.usefixtures("coarse")
def test_a_larger_step_that_is_none_is_a_bug(tmp_path):
    rows = comparison(1.0, 2.0, draw=0, clients=2, samples=8)
    for row in rows:
        if row["metric"] == "step_size":
            row["note"] = "violated"
    records = Records().add({"study": "corollary", "data": "gaussian"}, rows)
    assert claims(records)["corollary-iii.6.step-size.draws.gaussian"].verdict == "violated"
    assert not present(*records.both, tmp_path, OPTIONS).proven_hold


def test_tables_show_examples_and_readings():
    summary = made(read(proofs(Records()), [(2.0, 1.5, 1.1), (2.0, 0.8, 1.3)]))
    shown = {name: as_text_rows(frame, layout) for name, _, frame, layout in tables(summary)}
    headings, rows = shown["counterexamples"]
    assert len(rows) == 5 and headings[-1] == "λ_min ≤ λ*_min"
    assert {row[-1] for row in rows} == {"fails, certified"}
    _, rows = shown["readings"]
    cells = {(row[2], row[3]): row for row in rows}
    assert len(rows) == 9
    pooled = cells["G∞ with S, G*∞ with S_i", "λ_min ≤ λ*_min"]
    assert pooled[4:8] == ["2", "1", "1", "0"]
    full = cells["Λ∞ and Λ*∞", "λ*_max ≤ λ_max"]
    assert full[4:8] == ["4", "4", "0", "0"]


def test_pooled_shows_thresholds_and_every_draw():
    summary = made(read(proofs(Records()), [(2.0, 1.5, 1.1), (2.0, 0.8, 1.3)]))
    first, second = draw_findings.pooled(summary.findings).axes
    for line, weight in zip(first.lines, (0.1, 0.5), strict=False):
        np.testing.assert_allclose(line.get_xdata(), [90, 120])
        np.testing.assert_allclose(line.get_ydata(), [0.45 + weight / 10, 0.6 + weight / 10])
    assert len(first.collections) == 1  # p = 0.5 is shaded
    drawn = [sorted(np.asarray(line.get_ydata()).tolist()) for line in second.lines[:4]]
    assert drawn[0] == pytest.approx([2.0, 2.0]) and drawn[1] == []
    assert drawn[2] == pytest.approx([1.5]) and drawn[3] == pytest.approx([0.8])
    assert second.lines[3].get_marker() == "X"
    assert second.get_ylim()[0] < 0.8


def test_the_full_kernel_shows_thresholds_the_pair_and_draws_over_alpha():
    summary = made(read(proofs(Records()), [(2.0, 1.5, 1.1), (2.0, 0.8, 1.3)]))
    first, second, third = draw_findings.full_kernel(summary.findings).axes
    assert len(first.lines) == 3 and first.get_yscale() == "log"
    np.testing.assert_allclose(second.lines[0].get_ydata(), [0.9, 1.2])
    assert second.lines[0].get_color() == look("client_specific").colour
    assert second.texts[0].get_text() == "$\\alpha^{*} = 1.600$"
    np.testing.assert_allclose(third.lines[0].get_xdata(), [1.0, 9.0])
    np.testing.assert_allclose(third.lines[0].get_ydata(), [1.2, 1.2])


def test_the_clients_own_covariances_are_drawn_where_they_are_there():
    records = read(proofs(Records()), [(2.0, 1.5, 1.1)])
    read(records, [(2.0, 1.5, 3.0)], covariances="own")
    third = draw_findings.full_kernel(made(records).findings).axes[2]
    assert [line.get_ydata()[0] for line in third.lines[:1]] == pytest.approx([3.0])


def test_step_sizes_shows_medians_and_ranges_of_all_three_gains():
    cells = {(2, 8): [(1.0, 2.0), (1.0, 4.0), (1.0, 3.0)], (2, 16): [(1.0, 3.0)]}
    gains = made(corollary(Records(), cells)).findings.gains
    (ax,) = draw_step_sizes.step_sizes(gains).axes
    for line, values in zip(ax.lines, ([3.0, 3.0], [2.0, 2.0], [6.0, 6.0]), strict=False):
        np.testing.assert_allclose(line.get_xdata(), [8, 16])
        np.testing.assert_allclose(line.get_ydata(), values)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["8", "16"]


PARTS = {
    "proofs": (lambda: proofs(Records()), {"pooled", "full_kernel"}),
    "readings": (lambda: read(Records(), [(2.0, 1.5, 1.1)]), {"pooled", "full_kernel"}),
    "one draw": (
        lambda: corollary(Records(), {(2, 8): [(1.0, 2.0)]}),
        {"smallest_eigenvalues", "step_sizes"},
    ),
    "own points": (
        lambda: read(Records(), [(2.0, 0.5, 1.1)], data="own-a-rather-long-name-of-points"),
        {"pooled", "full_kernel"},
    ),
    "singular": (lambda: read(Records(), [(0.0, 0.0, 0.0)]), set()),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("part", PARTS)
def test_a_part_alone_is_shown_without_the_others(part, tmp_path):
    make, names = PARTS[part]
    records = make()
    assert names == set(drawings(made(records)))
    product = present(*records.both, tmp_path, OPTIONS)
    assert names == {path.stem for path in product.figures}
    assert product.proven_hold and product.report.is_file()


def test_every_row_of_the_whole_section_is_used():
    summary = made(everything())
    found = summary.findings
    assert found.examples.height == 6 and found.limits.height == 8 and found.sides.height == 4
    assert found.readings.height == 2 * 2 * (3 + 3 + 6)
    assert found.gains.height == summary.draws.height
    assert isinstance(found.remains, pl.DataFrame) and found.remains.height == 8
