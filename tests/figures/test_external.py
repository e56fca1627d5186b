"""The section `external` against values worked out by hand, and with parts missing."""

import polars as pl
import pytest
from synthetic import Records, student
from synthetic_experiments import METHODS, OPTIONS, training_config
from written_files import in_order

from figures.external import content, present, summarise
from figures.external.draw import harm_marks, way_marks
from figures.selection import of

FOLDS = ("mnist-m", "synth-digits")
WAYS = ("server", "adapted", "batch", "source", "identity", "total")


def served(records, algorithm, policy, seed, fold, accuracies, diverged=None):
    """Accuracies: (variant, order) -> accuracy, at the usual τ and n_t."""
    config = training_config(algorithm, policy, seed, fold)
    rows = []
    for (variant, order), value in accuracies.items():
        where = {"client": fold, "split": "test", "variant": variant, "note": order}
        if variant != "server":
            where |= {"parameter": 0.0 if variant == "batch" else 0.9, "samples": 32}
        rows += [{"metric": "accuracy", "value": value, **where}]
        rows += [{"metric": "loss", "value": 1 - value, **where}]
    full = {"study": "external", "training": config, "held_out": fold, "serving": []}
    records.add(full, [] if diverged else rows, "diverged" if diverged else "complete")
    if diverged:
        list(records.manifests.values())[-1]["diverged_in_round"] = diverged
    return records


def shuffled(**accuracies):
    return {(variant, "shuffled"): value for variant, value in accuracies.items()}


def basic(records, algorithm, seed, aggregated, specific, fold="mnist-m", diverged=None):
    """Aggregated by the server's statistics, client-specific adapted; the others 0.2 below."""
    low = shuffled(server=aggregated, adapted=aggregated - 0.2)
    high = shuffled(server=specific - 0.2, adapted=specific)
    served(records, algorithm, "aggregated", seed, fold, low, diverged)
    return served(records, algorithm, "client_specific", seed, fold, high)


def streams(records, seed, fold="mnist-m", sorted_=0.3, drift=0.1, fixed=0.25):
    """FedBN's model: sorting costs `sorted_`, a drift `drift`, or `fixed` without adapting."""
    values = {}
    for variant in WAYS:
        calm = {"server": 0.5, "identity": 0.4}.get(variant, 0.7)
        cost = {"shuffled": 0.0, "sorted": sorted_, "drifting": drift}
        if variant == "server":
            cost |= {"sorted": 0.0, "drifting": fixed}
        values |= {(variant, order): calm - lost for order, lost in cost.items()}
    served(records, "fedavg", "client_specific", seed, fold, values)
    return served(records, "fedavg", "aggregated", seed, fold, shuffled(server=0.6))


def everything(seeds=3):
    records = Records()
    for k, name in enumerate(METHODS):
        for seed in range(seeds):
            for j, fold in enumerate(FOLDS):
                gone = 7 if name == "scaffold" and seed == 1 and j == 0 else None
                if name == "fedavg":
                    wobble = 0.01 * seed
                    streams(records, seed, fold, 0.3 + wobble, 0.1 + wobble, 0.25 + wobble / 2)
                else:
                    low = 0.6 - 0.01 * k + 0.1 * j + 0.01 * seed
                    basic(records, name, seed, low, low + 0.05 + 0.002 * seed, fold, gone)
    return records


def made(records):
    return summarise(*records.both)


def shown(summary, name):
    (table,) = [t for t in content(summary).tables if t.name == name]
    return table.shown


def test_each_side_is_served_as_table_one_says():
    records = Records()
    for seed in range(3):
        basic(records, "moon", seed, 0.60 + 0.02 * seed, 0.65 + 0.03 * seed)
    summary = made(records)
    aggregated = summary.cells["moon", "aggregated", "client mnist-m"]
    assert aggregated.values == pytest.approx({0: 0.60, 1: 0.62, 2: 0.64})
    specific = summary.cells["moon", "client_specific", "client mnist-m"]
    assert specific.values == pytest.approx({0: 0.65, 1: 0.68, 2: 0.71})
    found = summary.differences["moon", "client mnist-m"].difference
    expected = student([0.05, 0.06, 0.07])
    assert (found.mean, found.lower, found.upper) == pytest.approx(expected)
    rows = shown(summary, "external").select("method", "bn_policy", "served").rows()
    assert rows == [
        ("MOON", "aggregated", "server's statistics"),
        ("MOON", "client-specific", "Eqs. (3), (4)"),
    ]


def test_the_mean_over_held_out_clients_needs_all_of_them():
    records = Records()
    for seed in range(3):
        basic(records, "moon", seed, 0.4, 0.5, "mnist-m")
    for seed in range(2):
        basic(records, "moon", seed, 0.6, 0.9, "synth-digits")
    summary = made(records)
    assert summary.clients == ["mnist-m", "synth-digits"]
    assert summary.cells["moon", "aggregated", "mean"].values == pytest.approx({0: 0.5, 1: 0.5})
    assert summary.by_method["moon"].difference.mean == pytest.approx(0.2)
    assert set(summary.cells["moon", "aggregated", "client mnist-m"].values) == {0, 1, 2}


def test_a_diverged_fold_is_named_and_its_seed_left_out_of_the_mean():
    records = Records()
    for seed in range(2):
        for fold in FOLDS:
            gone = 7 if (seed, fold) == (1, "mnist-m") else None
            basic(records, "scaffold", seed, 0.5, 0.7, fold, gone)
    summary = made(records)
    whole = summary.cells["scaffold", "aggregated", "mean"]
    assert (set(whole.values), whole.diverged) == ({0}, {1: 7})
    # The other fold of that seed stands in its own column.
    assert set(summary.cells["scaffold", "aggregated", "client synth-digits"].values) == {0, 1}
    assert "round 7" in shown(summary, "external")["lost"][0]
    (note,) = content(summary).notes
    assert "in round 7" in note and "without mnist-m" in note
    assert summary.averaged == []
    assert not [c for c in content(summary).claims if c.id.startswith("external.client")]


def test_where_everything_diverged_the_tables_say_so():
    records = Records()
    for seed in range(2):
        for policy in ("aggregated", "client_specific"):
            for fold in FOLDS:
                served(records, "fedavg", policy, seed, fold, {}, diverged=3 + seed)
    summary = made(records)
    assert summary.cells["fedavg", "aggregated", "client mnist-m"].diverged == {0: 3, 1: 4}
    columns = ["method", "served", "client mnist-m", "mean", "lost"]
    lost = ("–", "–", "diverged (rounds 3 to 4), all 2 seeds")
    assert shown(summary, "external").select(columns).rows() == [
        ("FedAvg", "server's statistics", *lost),
        ("FedBN", "Eqs. (3), (4)", *lost),
    ]
    assert shown(summary, "ways").select("served", "lost").rows() == [
        ("server's statistics", lost[-1]),
        ("adapted, Eqs. (3), (4)", lost[-1]),
    ]
    assert content(summary).drawings == {}


def test_captions_say_what_diverged_and_how_many_seeds_are_left():
    records = Records()
    for seed in range(2):
        streams(records, seed)
        basic(records, "moon", seed, 0.5, 0.6, diverged=4 if seed == 1 else None)
    moon = "Left out: MOON, aggregated BN: diverged (round 4), 1 of 2 seeds."
    captions = {name: one.caption for name, one in content(made(records)).drawings.items()}
    assert "mean over 1 to 2 seeds" in captions["external"] and moon in captions["external"]
    for name in ("ways", "streams"):
        # What FedAvg's models do lacks nothing.
        assert "mean over 2 seeds" in captions[name] and "Left out" not in captions[name]
    served(records, "fedavg", "client_specific", 2, "mnist-m", {}, diverged=5)
    summary = made(records)
    captions = {name: one.caption for name, one in content(summary).drawings.items()}
    for caption in captions.values():
        assert "FedBN, client-specific BN: diverged (round 5), 1 of 3 seeds" in caption
        assert "hollow marks lack seeds that diverged" in caption
    assert "MOON" in captions["external"] and "MOON" not in captions["ways"]
    assert all(harm_marks(summary)["hollow"])
    table = of(way_marks(summary), panel="mean", row="server")
    assert dict(table["series", "hollow"].rows()) == {"aggregated": False, "client_specific": True}


def test_a_row_says_of_all_held_out_clients_what_diverged():
    records = Records()
    lost = {(0, "mnist-m"): 7, (1, "synth-digits"): 2}
    for seed in range(3):
        for fold in FOLDS:
            basic(records, "moon", seed, 0.5, 0.7, fold, lost.get((seed, fold)))
    assert shown(made(records), "external")["lost"][0] == "diverged (rounds 2 to 7), 2 of 3 seeds"


def test_ways_are_held_against_adapting():
    records = Records()
    for seed in range(3):
        ways = dict(server=0.5, adapted=0.7, batch=0.66, source=0.7, identity=0.4, total=0.71)
        ways = {name: value + 0.01 * seed * (name == "adapted") for name, value in ways.items()}
        served(records, "fedavg", "client_specific", seed, "mnist-m", shuffled(**ways))
        served(records, "fedavg", "aggregated", seed, "mnist-m", shuffled(server=0.6))
    summary = made(records)
    gains = {v: found.difference.mean for (v, c), found in summary.gains.items() if c == "mean"}
    expected = {"server": 0.21, "batch": 0.05, "source": 0.01, "identity": 0.31, "total": 0.0}
    assert gains == pytest.approx(expected | {"aggregated": 0.11})
    assert set(summary.chosen) == {"server", "batch", "identity"}
    claims = {c.id: c for c in content(summary).claims}
    # 20, 21, 22 points.
    low, high = student([20.0, 21.0, 22.0])[1:]
    assert claims["serving.adapted-server"].interval == pytest.approx((low, high))
    marks = of(way_marks(summary), panel="mean", row="batch", series="client_specific")
    assert marks["mean"].to_list() == pytest.approx([66.0])


def test_harm_is_shuffled_minus_the_other_order():
    records = Records()
    for seed in range(3):
        streams(records, seed, sorted_=0.3 + 0.01 * seed)
    summary = made(records)
    found = summary.harms["sorted", "client_specific", "adapted", "client mnist-m"].difference
    expected = student([0.30, 0.31, 0.32])
    assert (found.mean, found.lower, found.upper) == pytest.approx(expected)
    # Statistics that stay the same know no order: that is no finding.
    assert ("sorted", "client_specific", "server", "mean") not in summary.harms
    fixed = summary.harms["drifting", "client_specific", "server", "mean"].difference
    assert fixed.mean == pytest.approx(0.25)
    row = {"panel": "sorted", "row": "client_specific batch", "series": "mean"}
    assert of(harm_marks(summary), **row)["mean"].to_list() == pytest.approx([31.0])


def test_the_legend_of_the_streams_says_which_mean_it_has():
    records = Records()
    for fold in FOLDS:
        streams(records, 0, fold)
    figure = content(made(records)).drawings["streams"].make()
    (legend,) = figure.legends
    assert legend.get_texts()[-1].get_text() == "mean over the held-out clients"


def test_claims_of_the_streams():
    records = Records()
    for seed in range(3):
        streams(records, seed, sorted_=0.3 + 0.01 * seed, drift=0.1 - 0.01 * seed)
    claims = {c.id: c for c in content(made(records)).claims}
    assert claims["stream.sorted.adapted"].verdict == "supported"
    # Fixed statistics lose 25 points by the drift; adapted ones 10, 9, 8: 15, 16, 17 less.
    low, high = student([15.0, 16.0, 17.0])[1:]
    assert claims["stream.drifting.adapted"].interval == pytest.approx((low, high))
    assert claims["stream.drifting.adapted"].verdict == "supported"


def test_a_stream_that_does_no_harm_contradicts_the_claim():
    records = Records()
    for seed in range(3):
        streams(records, seed, sorted_=-0.1 - 0.001 * seed)
    claims = {c.id: c.verdict for c in content(made(records)).claims}
    assert claims["stream.sorted.adapted"] == "contradicted"


def test_other_momenta_and_batches_are_left_to_the_analysis():
    records = Records()
    for seed in range(2):
        streams(records, seed)
    whole = made(records)
    config = training_config("fedavg", "client_specific", 0, "mnist-m")
    where = {"client": "mnist-m", "split": "test", "variant": "adapted", "note": "shuffled"}
    row = {"metric": "accuracy", "value": 0.1, "parameter": 0.5, "samples": 8, **where}
    full = {"study": "external", "training": config, "held_out": "mnist-m", "serving": [1]}
    records.add(full, [row])
    assert made(records).ways == whole.ways


def one_policy():
    return served(Records(), "fedavg", "aggregated", 0, "mnist-m", shuffled(server=0.5))


def all_diverged():
    return served(Records(), "fedavg", "aggregated", 0, "mnist-m", {}, diverged=2)


PARTS = {
    "nothing": (Records, set()),
    "one seed": (lambda: basic(Records(), "fedavg", 0, 0.5, 0.6), {"external", "ways"}),
    "one seed with streams": (lambda: streams(Records(), 0), {"external", "ways", "streams"}),
    "one policy": (one_policy, {"external"}),
    "all diverged": (all_diverged, set()),
    "no FedAvg": (lambda: basic(Records(), "moon", 0, 0.5, 0.6), {"external"}),
    "two held out": (
        lambda: basic(basic(Records(), "moon", 0, 0.5, 0.6), "moon", 0, 0.5, 0.6, "mnist"),
        {"external"},
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("part", PARTS)
def test_parts_that_are_missing_are_left_out(part, tmp_path):
    make, names = PARTS[part]
    product = present(*make().both, tmp_path, OPTIONS | {"section": "external"})
    assert {path.stem for path in product.figures} == names
    assert all(claim.verdict == "inconclusive" for claim in product.claims)  # one seed
    in_order(product, tmp_path)


@pytest.mark.usefixtures("coarse")
def test_the_whole_section_lies_on_disk(tmp_path):
    product = present(*everything().both, tmp_path, OPTIONS | {"section": "external"})
    assert [path.stem for path in product.figures] == ["external", "ways", "streams"]
    names = {path.stem for path in (tmp_path / "tables").glob("*.csv")}
    assert names == {"external", "differences", "by_client", "ways", "gains", "streams", "harms"}
    in_order(product, tmp_path)
    table = pl.read_csv(tmp_path / "tables" / "external.csv")
    # Eight methods, two policies, two clients and their mean.
    assert table.height == 8 * 2 * 3
    lost = of(table, method="scaffold", bn_policy="aggregated", column="mean")
    assert lost["accuracy_n"].to_list() == [2] and lost["accuracy_diverged"].to_list() == [1]
