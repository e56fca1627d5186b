"""Label shift in the section `causal`: harm, its family, what is left out."""

import pytest
from synthetic import Records, student
from synthetic_causal import HELD, claims, made, skewed, table

from figures.causal import content


def test_harm_is_balanced_minus_adapted_paired_by_seed():
    records = Records()
    for seed in range(3):
        for client in HELD[:2]:
            skewed(records, client, seed)
    skew = made(records).skew
    assert skew.ratios == [1, 2, 5, 10, 20, 50]
    harm = skew.harms["client mnist", 10.0].difference
    # One decade: 6, 6.4 and 6.8 points.
    assert (harm.mean, harm.lower, harm.upper) == pytest.approx(student([0.06, 0.064, 0.068]))
    assert not any(ratio == 1 for _, ratio in skew.harms)
    assert skew.columns == ["mean", "client mnist", "client optdigits"]
    found = claims(records)
    claim = found["label-shift.harm"]
    assert claim.verdict == "supported" and "50 times as frequent" in claim.claim
    assert "mean over 2 clients" in claim.claim
    assert claim.measured.startswith("+10.9 points over 3 seeds")
    assert found["label-shift.harm.optdigits"].claim.endswith("(Optdigits held out)")
    # The server is 10 points below balanced, adapted 10.9.
    assert found["label-shift.server"].measured.startswith("−0.9 points")


def test_the_mean_is_over_clients_that_have_every_seed():
    records = Records()
    for seed in range(3):
        skewed(records, "mnist", seed)
        if seed < 2:
            skewed(records, "optdigits", seed)
    cell = made(records).skew.cells["adapted", "mean", 1.0]
    assert sorted(cell.values) == [0, 1]
    # MNIST 90, Optdigits 80, half a point more in seed 1.
    assert cell.values[1] == pytest.approx(0.855)


def test_one_client_has_no_mean():
    records = Records()
    for seed in range(3):
        skewed(records, "mnist", seed)
    assert made(records).skew.columns == ["client mnist"]
    found = claims(records)
    assert set(found) == {"label-shift.harm", "label-shift.server"}
    assert "MNIST held out" in found["label-shift.harm"].claim


def test_without_a_skewed_stream_there_is_no_claim():
    records = Records()
    for seed in range(3):
        skewed(records, "mnist", seed, ratios=(1,))
    assert claims(records) == {}


def test_other_methods_than_fedbn_do_not_count():
    records = skewed(Records(), "mnist", 0)
    before = made(records).skew.cells
    skewed(records, "mnist", 1)
    records.manifests[list(records.manifests)[-1]]["config"]["training"]["algorithm"] = "moon"
    assert made(records).skew.cells == before


def test_images_scored_are_the_fewest():
    rows = table(skewed(Records(), "mnist", 0), "label_shift")
    assert [row[-1] for row in rows] == ["1000", "590", "383", "302", "250", "203"]


def test_the_table_of_harms_is_in_points_with_its_family():
    records = Records()
    for seed in range(3):
        skewed(records, "mnist", seed, ratios=(1, 10))
    (row,) = table(records, "label_shift_harm")
    half = 100 * (student([0.06, 0.064, 0.068])[2] - 0.064)
    assert row[:2] == ["MNIST", "10"] and row[2] == f"6.4 ± {half:.1f}"
    assert row[3] == "3" and row[5] == "supported"


def test_harms_have_two_families_and_both_places_say_which():
    records = Records()
    for seed in range(3):
        skewed(records, "mnist", seed, ratios=(1, 10, 50))
    shown = content(made(records))
    (harms,) = [t for t in shown.tables if t.name == "label_shift_harm"]
    assert "these 2 differences. The claims are a family of their own" in harms.layout.caption
    assert "the one at ratio 50" in harms.layout.caption
    caption = shown.drawings["label_shift"].caption
    assert "claims over the one difference at ratio 50, the table over all 2." in caption


def test_a_stream_of_a_training_that_diverged_is_named():
    records = skewed(Records(), "mnist", 0)
    skewed(records, "mnist", 1, diverged=9)
    summary = made(records)
    assert "in round 9" in summary.diverged[0] and "without mnist" in summary.diverged[0]
    caption = content(summary).drawings["label_shift"].caption
    assert "MNIST held out: diverged (round 9), 1 of 2 seeds" in caption
