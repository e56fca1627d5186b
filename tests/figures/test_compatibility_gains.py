"""The external difference parted into serving and training, against values worked out by hand."""

import html
import json

import pytest
from synthetic import Records, student
from synthetic_experiments import FOLDS, OPTIONS, pair, served, table_one, trained, training_config
from test_compatibility import frame_of, made, no_number, shown

from figures.claims import read_claims
from figures.compatibility import present
from figures.compatibility.gains import CORNERS, gains, judge_gains

POLICIES = ("aggregated", "client_specific")
EFFECTS = ("serving", "training")


def square(records, algorithm, seed, corners, folds=FOLDS):
    """Four external accuracies in the order of `CORNERS`; None: not served so."""
    for fold in folds:
        for k, policy in enumerate(POLICIES):
            config = training_config(algorithm, policy, seed, fold)
            trained(records, config, 0.8)
            ways = zip(("server", "adapted"), corners[2 * k : 2 * k + 2], strict=True)
            served(records, config, {way: value for way, value in ways if value is not None})
    return records


def two():
    """Serving effects 0.08, 0.10, 0.12 and 0.04, 0.02, 0.06; of training 0.01, 0, 0.02 and 0."""
    records = Records()
    square(records, "fedavg", 0, (0.40, 0.48, 0.41, 0.49))
    square(records, "fedavg", 1, (0.40, 0.50, 0.41, 0.50))
    square(records, "fedavg", 2, (0.40, 0.52, 0.41, 0.54))
    square(records, "fedprox", 0, (0.30, 0.34, 0.31, 0.34))
    square(records, "fedprox", 1, (0.30, 0.32, 0.31, 0.32))
    square(records, "fedprox", 2, (0.30, 0.36, 0.31, 0.36))
    return records


def test_corners_and_effects_of_a_method_by_hand():
    summary = made(two())
    avg = gains(summary).rows[0]
    assert avg.method == "fedavg"
    assert avg.cells["aggregated", "adapted"].values == pytest.approx({0: 0.48, 1: 0.50, 2: 0.52})
    assert avg.cells["client_specific", "server"].values == pytest.approx(
        dict.fromkeys(range(3), 0.41)
    )
    for name, values in (("serving", [0.08, 0.10, 0.12]), ("training", [0.01, 0.0, 0.02])):
        found = avg.effects[name]
        assert (found.mean, found.lower, found.upper) == pytest.approx(student(values))
    # Together they are Table I's difference.
    table = next(row for row in summary.rows if row.method == "fedavg").differences["external"]
    assert avg.effects["serving"].mean + avg.effects["training"].mean == pytest.approx(table.mean)


def test_fedbn_is_no_method_of_its_own_here():
    assert [row.method for row in gains(made(two())).rows] == ["fedavg", "fedprox"]
    assert list(shown(made(two()), "gains")) == ["FedAvg, FedBN", "FedProx", "mean of\n2 methods"]


def test_claims_are_of_the_mean_over_methods_per_seed_and_one_family():
    serving, training = judge_gains(made(two()))
    # Per seed (0.08 + 0.04)/2, (0.10 + 0.02)/2, (0.12 + 0.06)/2; (0.01, 0, 0.02)/2.
    assert serving.interval == pytest.approx(student([6.0, 6.0, 9.0])[1:])
    assert training.interval == pytest.approx(student([0.5, 0.0, 1.0])[1:])
    # t = 7 with 2 degrees of freedom: p = 0.0198, twice that for the smaller of two.
    assert (serving.id, serving.verdict) == ("compatibility.gain.serving", "supported")
    assert serving.measured == (
        "+7.0 points over 3 seeds, Holm-adjusted p = 0.040; mean of 2 methods"
    )
    # t = √3: p = 0.225.
    assert (training.id, training.verdict) == ("compatibility.gain.training", "inconclusive")
    assert training.measured.startswith("+0.5 points over 3 seeds, Holm-adjusted p = 0.23")
    assert serving.source == "measured here; UniFed, Table I and Eqs. (3), (4)"
    assert serving.figure == "figures/gains.pdf"


def test_a_training_that_lowers_is_a_contradiction():
    records = Records()
    for seed in range(3):
        square(records, "fedavg", seed, (0.4, 0.5, 0.4, 0.40 + 0.001 * seed))
    claims = {claim.id: claim for claim in judge_gains(made(records))}
    assert claims["compatibility.gain.training"].verdict == "contradicted"
    assert shown(made(records), "gains")["mean of\n1 method"][5].endswith("\n▽")


def test_a_mean_has_only_the_methods_with_all_four_cells_in_a_seed():
    records = two()
    # Not served by Eqs. (3), (4): counts in no seed. Another: in seed 1 alone.
    for seed in range(3):
        square(records, "moon", seed, (0.9, None, 0.9, 0.9))
    square(records, "feddc", 1, (0.1, 0.2, 0.1, 0.23))
    found = gains(made(records))
    assert found.methods == (2, 3) and found.counted == "2 to 3 methods"
    # Seed 1: (0.10 + 0.02 + 0.10)/3 and (0 + 0 + 0.03)/3.
    one = found.effects["serving"].difference
    assert one.mean == pytest.approx((0.06 + 0.22 / 3 + 0.09) / 3)
    assert found.effects["training"].difference.mean == pytest.approx((0.005 + 0.01 + 0.01) / 3)
    moon = shown(made(records), "gains")["MOON"]
    assert moon == ("90.0 ± 0", "–", "90.0 ± 0", "90.0 ± 0", "–", "–")


def test_the_table_has_every_number_and_both_verdicts():
    rows = frame_of(made(two()), "gains")
    assert list(rows) == ["fedavg", "fedprox", "mean"]
    mean = rows["mean"]
    values = [mean["_".join(corner)] for corner in CORNERS]
    # (0.40 + 0.30)/2, (0.50 + 0.34)/2, (0.41 + 0.31)/2, (0.51 + 0.34)/2.
    assert values == pytest.approx([0.35, 0.42, 0.36, 0.425])
    assert (mean["serving"], mean["training"]) == pytest.approx((0.07, 0.005))
    assert (mean["serving_verdict"], mean["training_verdict"]) == ("supported", "inconclusive")
    assert rows["fedavg"]["serving_verdict"] is None and rows["fedavg"]["serving_n"] == 3
    cells = shown(made(two()), "gains")
    # Half-width of 0.08, 0.10, 0.12: 4.3027 × 0.02/√3 = 0.0497.
    assert cells["FedAvg, FedBN"][4] == "+10.0 ± 5.0"
    assert cells["mean of\n2 methods"][4:] == ("+7.0 ± 4.3\n△", "+0.5 ± 1.2\n○")


def test_where_runs_diverged_the_table_the_figure_and_the_claims_say_so(tmp_path, coarse):
    records = Records()
    for seed in range(2):
        pair(records, "fedavg", seed, (0.7, 0.4), 5)
    product = present(*records.both, tmp_path, OPTIONS)
    assert "gains" in {path.stem for path in product.figures}
    claims = {claim.id: claim for claim in read_claims(tmp_path / "claims.json")}
    for name in EFFECTS:
        claim = claims[f"compatibility.gain.{name}"]
        assert claim.measured == "no seed has a method with all four cells: runs diverged"
        assert (claim.verdict, claim.interval) == ("inconclusive", None)
    cells = shown(made(records), "gains")["FedAvg, FedBN"]
    assert cells[2] == cells[3] == "diverged (round 5)\nall 2 seeds" and cells[5] == "–"
    assert cells[4] == "−20.0"
    no_number(tmp_path)


def test_a_side_that_nobody_ran_makes_no_claim():
    records = Records()
    for seed in range(2):
        square(records, "fedavg", seed, (0.4, None, 0.4, 0.5))
    assert list(judge_gains(made(records))) == []
    assert not gains(made(records)).drawn
    assert list(shown(made(records), "gains")) == ["FedAvg, FedBN"]
    assert list(judge_gains(made(Records()))) == []


def test_captions_say_what_is_joined_whose_head_and_where_settings_are(tmp_path, coarse):
    records = table_one(methods=("fedavg",))
    for policy in POLICIES:
        for fold in FOLDS:
            more = {"settings": {"momentum": 0.9}}
            config = training_config("fednova", policy, 0, fold, **more)
            trained(records, config, 0.8, chosen="chosen on validation images")
            trained(records, training_config("moon", policy, 0, fold, projection=256), 0.8)
    present(*records.both, tmp_path, OPTIONS)
    page = html.unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    figure = page[page.index("Aggregated against client-specific BN.") :].split("</figcaption>")[0]
    table, settings = (
        (tmp_path / "tables" / f"{name}.tex").read_text(encoding="utf-8")
        for name in ("compatibility", "settings")
    )
    for caption in (figure, table):
        assert "joins two effects" in caption and "table and the figure" in caption
        assert "not by method alone, but also by FedNova's momentum of 0.9 and MOON's" in caption
        assert "of seeds only, not of the test sample, clients or folds; unadjusted" in caption
        assert "not decided (at 3 seeds the power is low)" in caption
    assert "MOON's net has its authors' projection head" in settings
    assert "all clients, those left out later among them" in settings and "one seed" in settings
    ids = [claim["id"] for claim in json.loads((tmp_path / "claims.json").read_text("utf-8"))]
    assert ids.index("compatibility.gain.serving") < ids.index("compatibility.faster.fedavg")
    cells = shown(made(records), "settings")
    assert cells["MOON"][2] == "compact_cnn + projection head (256)"
    assert cells["FedNova"] == ("momentum = 0.9", "chosen on validation images", "compact_cnn")


def test_captions_leave_out_what_was_not_run(tmp_path, coarse):
    records = Records()
    for policy in POLICIES:
        trained(records, training_config("fedavg", policy), 0.7)
    present(*records.both, tmp_path, OPTIONS)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "“gains”" not in page and "projection head" not in page and "momentum" not in page
    assert "table “settings”" not in page
