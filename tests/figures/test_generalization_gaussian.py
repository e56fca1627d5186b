"""What the section says of Gaussian clients, against values worked out by hand."""

import polars as pl
import pytest
from synthetic import Records
from synthetic_generalization import OPTIONS
from synthetic_spreads import gaussian

from figures.claims import Claim
from figures.generalization import content, present, summarise
from figures.generalization.captions import RESIDUAL, gaussian_caption


def study(records, rows, teacher="whitened", **more):
    config = {"study": "gaussian_bounds", "data": "gaussian", "teacher": teacher}
    config |= {"clients": 4, "dimension": 5, "samples": 1000, "draws": 2, "delta": 0.05, **more}
    return records.add(config, rows)


def pair_rows(values, half=0.0):
    """(variant, κ, draw) -> d_HΔH."""
    return [
        {
            "metric": "pair_divergence",
            "value": value,
            "lower": max(0.0, value - half),
            "upper": value + half,
            "variant": variant,
            "parameter": spread,
            "draw": draw,
        }
        for (variant, spread, draw), value in values.items()
    ]


def claims(records) -> dict[str, Claim]:
    return {claim.id: claim for claim in content(summarise(*records.both)).claims}


def test_means_and_ranges_over_draws_by_hand():
    values = {("raw", 2.0, 0): 0.4, ("raw", 2.0, 1): 0.8, ("raw", 4.0, 0): 1.0}
    found = summarise(*study(Records(), pair_rows(values, 0.1)).both).gaussian.divergence
    rows = found.select("parameter", "value", "least", "most", "lower", "upper", "draws").rows()
    assert rows[0] == pytest.approx((2.0, 0.6, 0.4, 0.8, 0.3, 0.9, 2))
    assert rows[1] == pytest.approx((4.0, 1.0, 1.0, 1.0, 0.9, 1.1, 1))


def test_divergence_counts_once_where_two_teachers_have_the_same():
    records = Records()
    for teacher in ("whitened", "input"):
        study(records, pair_rows({("raw", 2.0, 0): 0.4}), teacher)
    assert summarise(*records.both).gaussian.draws.height == 1


def test_a_violated_bound_is_a_bug(tmp_path, coarse):
    product = present(*gaussian(broken=("raw", 4.0)).both, tmp_path, OPTIONS)
    found = {c.id: c for c in product.claims}["gaussian.bound"]
    # 2 teachers, 5 spreads, 4 draws, 3 features; broken for one spread of one of them.
    assert found.verdict == "violated" and "112 of 120" in found.measured
    assert not product.proven_hold


def test_an_open_case_leaves_the_bound_consistent():
    rows = [
        {"metric": "holds", "value": v, "variant": "raw", "parameter": 1.0, "draw": k}
        for k, v in enumerate((1.0, 0.0))
    ]
    assert claims(study(Records(), rows))["gaussian.bound"].verdict == "consistent"


@pytest.mark.parametrize(
    ("value", "half", "verdict"),
    [(0.0, 0.0, "certified"), (0.0, 0.1, "consistent"), (0.3, 0.1, "violated")],
)
def test_whitening_leaves_nothing_or_it_is_a_bug(value, half, verdict):
    records = study(Records(), pair_rows({("whitened", 2.0, 0): value}, half))
    assert claims(records)["gaussian.whitened-zero"].verdict == verdict


@pytest.mark.parametrize(("value", "verdict"), [(0.3, "certified"), (0.05, "consistent")])
def test_per_unit_bn_leaves_divergence_where_that_is_certain(value, verdict):
    values = {("per_unit", 1.0, 0): 0.0, ("per_unit", 4.0, 0): value, ("per_unit", 4.0, 1): 0.5}
    found = claims(study(Records(), pair_rows(values, 0.1)))["gaussian.per-unit-residual"]
    assert found.verdict == verdict
    assert "does not hold" in found.claim and "κ = 4" in found.measured
    assert found.interval == pytest.approx((max(0.0, value - 0.1), 0.6))


def test_per_unit_bn_that_adds_divergence_is_said_to():
    values = {("raw", 2.0, 0): 0.4, ("per_unit", 2.0, 0): 0.8}
    found = claims(study(Records(), pair_rows(values, 0.1)))["gaussian.per-unit-adds"]
    assert found.verdict == "certified" and found.interval == pytest.approx((2.0, 2.0))
    # Enclosures that overlap prove nothing.
    assert "gaussian.per-unit-adds" not in claims(study(Records(), pair_rows(values, 0.3)))
    assert "gaussian.per-unit-adds" not in claims(gaussian())


def test_the_ideal_error_is_needed_where_a_case_shows_it():
    for value, verdict in ((-1.0, "certified"), (1.0, "consistent")):
        row = {"metric": "holds_without_ideal_error", "variant": "whitened", "parameter": 2.0}
        records = study(Records(), [{**row, "value": value, "draw": 0}], "input")
        assert claims(records)["gaussian.ideal-error"].verdict == verdict


def test_bars_end_at_the_bound():
    found = summarise(*gaussian().both).gaussian
    split = pl.col("split")
    parts = found.terms.filter(split != "total").group_by("teacher", "variant", "parameter")
    sums = {
        key: end for *key, end in parts.agg(pl.col("end").sum()).iter_rows() for key in [tuple(key)]
    }
    totals = found.terms.filter(split == "total")
    for row in totals.iter_rows(named=True):
        key = (row["teacher"], row["variant"], row["parameter"])
        assert sums[key] == pytest.approx(row["end"])


def test_an_interval_is_stacked_at_its_upper_end():
    row = {"metric": "term", "variant": "raw", "parameter": 2.0, "split": "ideal joint error"}
    rows = [{**row, "draw": k, "value": 0.1, "lower": 0.0, "upper": 0.2 * k} for k in (1, 2)]
    (end,) = summarise(*study(Records(), rows).both).gaussian.terms["end"]
    assert end == pytest.approx(0.3)


def test_the_table_has_a_row_for_teacher_features_and_spread():
    (found,) = [t for t in content(summarise(*gaussian().both)).tables if t.name == "gaussian"]
    assert found.frame.height == 2 * 3 * 5
    assert "n = 100,000" in found.layout.caption
    totals = found.frame.filter(pl.col("variant") == "whitened")["half the divergence"]
    assert totals.to_list() == [0.0] * 10


def test_captions_say_what_was_drawn_and_leave_out_what_differs():
    one = summarise(*gaussian().both).gaussian
    assert "4 seen, d = 5, 4 draws" in gaussian_caption(one, RESIDUAL)
    two = gaussian(teachers=("whitened",))
    study(two, pair_rows({("raw", 2.0, 0): 0.4}), "input", dimension=9)
    assert "seen, d = " not in gaussian_caption(summarise(*two.both).gaussian, RESIDUAL)


def test_of_two_runs_of_one_kind_the_first_counts():
    records = Records()
    for value in (0.4, 0.8):
        study(records, pair_rows({("raw", 2.0, 0): value}), samples=round(1000 * value))
    found = summarise(*records.both).gaussian
    assert found.draws["value"].to_list() == [0.4] and found.facts["samples"] == 400


def test_settings_stand_by_themselves():
    records = study(Records(), pair_rows({("per_unit", 4.0, 0): 0.5, ("raw", 4.0, 0): 0.3}))
    rows = pair_rows({("per_unit", 4.0, 0): 0.2, ("raw", 4.0, 0): 0.3})
    study(records, rows, directions="orthogonal")
    study(records, pair_rows({("per_unit", 4.0, 0): 1e-9, ("raw", 4.0, 0): 0.7}), shift="scale")
    found = summarise(*records.both).gaussian
    assert found.settings == ["rotation, gaussian", "rotation, orthogonal", "scale, gaussian"]
    said = claims(records)
    assert said["gaussian.per-unit-residual"].interval == (0.5, 0.5)
    assert said["gaussian.per-unit-residual.orthogonal"].interval == (0.2, 0.2)
    assert set(said) & {"gaussian.per-unit-adds", "gaussian.per-unit-adds.orthogonal"} == {
        "gaussian.per-unit-adds"
    }
    assert said["gaussian.per-unit-scale"].verdict == "certified"


@pytest.mark.parametrize(
    ("value", "half", "verdict"), [(0.0, 0.1, "consistent"), (0.3, 0.1, "violated")]
)
def test_per_unit_bn_undoes_scales_or_it_is_a_bug(value, half, verdict):
    rows = pair_rows({("per_unit", 4.0, 0): value}, half)
    found = claims(study(Records(), rows, shift="scale"))["gaussian.per-unit-scale"]
    assert found.verdict == verdict


def test_terms_are_those_of_the_main_setting_or_of_the_only_one():
    records = gaussian(teachers=("whitened",))
    other = {"metric": "term", "variant": "raw", "parameter": 1.0, "split": "total", "draw": 0}
    study(records, [{**other, "value": 9.0}], shift="scale")
    assert 9.0 not in summarise(*records.both).gaussian.terms["value"]
    alone = study(Records(), [{**other, "value": 9.0}], shift="scale")
    assert summarise(*alone.both).gaussian.terms["value"].to_list() == [9.0]
