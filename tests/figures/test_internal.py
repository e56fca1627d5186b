"""The section `internal` against values worked out by hand, and with parts missing."""

import pytest
from synthetic import Records, student
from synthetic_experiments import CLIENTS, METHODS, OPTIONS, trained, training_config
from written_files import in_order

from figures.internal import content, present, summarise
from figures.internal.draw import accuracy_marks
from figures.selection import of

# Half of a 95 % Student t interval of three values at equal distances d: t(0.975, 2) d / √3.
HALF = 4.302653 / 3**0.5


def accuracies(first, rest=0.9):
    return {name: rest for name in CLIENTS} | first


def both(records, algorithm, seed, aggregated, specific, *, diverged=None, **more):
    for policy, values in (("aggregated", aggregated), ("client_specific", specific)):
        gone = diverged if policy == "aggregated" else None
        trained(records, training_config(algorithm, policy, seed, **more), values, diverged=gone)
    return records


def three_seeds(algorithm="fedavg", records=None, gain=0.05):
    """MNIST: 70, 72, 74 with aggregated BN; 5, 6, 7 points above with client-specific BN."""
    records = records or Records()
    for seed in range(3):
        low = accuracies({"mnist": 0.70 + 0.02 * seed})
        high = accuracies({"mnist": 0.70 + gain + 0.03 * seed})
        both(records, algorithm, seed, low, high)
    return records


def everything(seeds=3):
    records = Records()
    for k, name in enumerate(METHODS):
        for seed in range(seeds):
            low = {c: 0.9 - 0.1 * i - 0.01 * k + 0.01 * seed for i, c in enumerate(CLIENTS)}
            high = {c: v + 0.03 + 0.002 * seed for c, v in low.items()}
            gone = 7 if (name == "scaffold" and seed == 1) or name == "fedadam" else None
            both(records, name, seed, low, high, diverged=gone)
    return records


def made(records):
    return summarise(*records.both)


def shown(summary, name):
    """A table as people see it: row by its first cells -> the cells by heading."""
    (table,) = [t for t in content(summary).tables if t.name == name]
    return table.shown


def test_cells_are_means_over_seeds_with_intervals():
    summary = made(three_seeds())
    cell = summary.cells["fedavg", "aggregated", "client mnist"]
    assert cell.values == pytest.approx({0: 0.70, 1: 0.72, 2: 0.74})
    found = cell.interval
    assert (found.mean, found.lower, found.upper) == pytest.approx(student([0.70, 0.72, 0.74]))
    assert found.upper - found.mean == pytest.approx(0.02 * HALF, rel=1e-6)
    mean = summary.cells["fedavg", "aggregated", "mean"]
    # Three clients at 0.9 and MNIST.
    assert mean.values == pytest.approx({k: (0.70 + 0.02 * k + 2.7) / 4 for k in range(3)})
    assert summary.columns == [*(f"client {name}" for name in CLIENTS), "mean", "worst"]


def test_the_worst_client_is_that_of_each_seed():
    records = Records()
    for seed, names in enumerate((("mnist", "optdigits"), ("optdigits", "mnist"))):
        values = accuracies({names[0]: 0.5, names[1]: 0.6})
        both(records, "fedavg", seed, values, 0.8)
    summary = made(records)
    # 0.5 in both seeds, although no client has a mean below 0.55.
    assert summary.cells["fedavg", "aggregated", "worst"].values == {0: 0.5, 1: 0.5}
    assert summary.worst["fedavg"].difference.mean == pytest.approx(0.3)


def test_differences_are_client_specific_minus_aggregated_paired_by_seed():
    summary = made(three_seeds())
    found = summary.differences["fedavg", "client mnist"].difference
    # 5, 6 and 7 points.
    assert found.mean == pytest.approx(0.06)
    assert found.upper - found.mean == pytest.approx(0.01 * HALF, rel=1e-6)
    # All other clients: no difference, in one family of six comparisons with MNIST, mean, worst.
    same = summary.differences["fedavg", "client optdigits"]
    assert (same.difference.mean, same.adjusted, same.verdict) == (0.0, 1.0, "inconclusive")
    raw = found.p_value
    # MNIST, the mean (a quarter of it) and the worst client share that p, the smallest of six.
    assert summary.differences["fedavg", "client mnist"].adjusted == pytest.approx(6 * raw)


def test_fedbn_is_the_client_specific_side_of_fedavg_and_shown_once():
    summary = made(three_seeds("fedprox", three_seeds()))
    table = shown(summary, "internal")
    rows = table.select("method", "bn_policy").rows()
    assert rows == [
        ("FedAvg", "aggregated"),
        ("FedBN", "client-specific"),
        ("FedProx", "aggregated"),
        ("FedProx", "client-specific"),
    ]
    assert table["client mnist"][1] == "78.0 ± 7.5"  # 75, 78, 81: 3 × 4.30/√3 = 7.45
    pairs = shown(summary, "differences")
    assert pairs["method"].to_list() == ["FedAvg, FedBN", "FedProx"]
    claims = {claim.id: claim for claim in content(summary).claims}
    assert claims["worst-client.fedbn"].claim == "FedBN serves its worst client better than FedAvg"
    assert "worst-client.fedavg" not in claims


def test_per_fedavg_says_that_it_is_measured_after_its_step():
    summary = made(three_seeds("perfedavg"))
    assert set(shown(summary, "internal")["method"]) == {"Per-FedAvg, after its adaptation step"}
    assert "after its adaptation step" in content(summary).drawings["internal"].caption


def test_claims_average_over_methods_that_lost_no_seed():
    records = three_seeds("fedprox", three_seeds(), gain=0.07)
    for seed in range(3):
        gone = 7 if seed == 1 else None
        both(records, "moon", seed, 0.1, 0.9, diverged=gone)
    summary = made(records)
    assert summary.averaged == ["fedavg", "fedprox"]
    claims = {claim.id: claim for claim in content(summary).claims}
    claim = claims["internal.mnist"]
    assert "mean over 2 methods" in claim.claim
    # FedAvg gains 5, 6, 7 points, FedProx 7, 8, 9: their mean 6, 7, 8.
    assert claim.interval == pytest.approx((7 - HALF, 7 + HALF))
    assert claim.measured.startswith("+7.0") and claim.verdict == "supported"
    assert claims["internal.optdigits"].verdict == "inconclusive"
    assert claims["worst-client.moon"].measured.startswith("+80.0 points over 2 seeds")
    assert "1 seed without a pair left out" in claims["worst-client.moon"].measured


def test_a_diverged_seed_is_named_counted_and_left_out():
    records = Records()
    for seed in range(3):
        both(records, "scaffold", seed, 0.5 + 0.1 * seed, 0.8, diverged=7 if seed == 1 else None)
    summary = made(records)
    cell = summary.cells["scaffold", "aggregated", "client mnist"]
    assert (cell.values, cell.diverged) == ({0: 0.5, 2: 0.7}, {1: 7})
    table = shown(summary, "internal")
    assert table["client mnist"][0].endswith("n = 2")
    assert "round 7" in table["lost"][0] and "1 of 3 seeds" in table["lost"][0]
    assert table["lost"][1] == ""
    (note,) = content(summary).notes
    assert "in round 7" in note and "scaffold, aggregated BN, seed 1" in note


def test_the_caption_says_what_diverged_and_how_many_seeds_are_left():
    def words(gone):
        records = Records()
        for seed in range(2):
            diverged = 7 if seed == 1 and gone else None
            both(records, "scaffold", seed, 0.5, 0.8, diverged=diverged)
        summary = made(records)
        table = of(accuracy_marks(summary), panel="mean")
        return content(summary).drawings["internal"].caption, table["hollow"].to_list()

    caption, hollow = words(gone=True)
    assert hollow == [True, False]
    assert "mean over 1 to 2 seeds; bars: 95 % Student t intervals, none of one seed" in caption
    assert "hollow marks lack seeds that diverged" in caption
    assert caption.endswith(" Left out: SCAFFOLD, aggregated BN: diverged (round 7), 1 of 2 seeds.")
    caption, hollow = words(gone=False)
    assert hollow == [False, False] and "mean over 2 seeds" in caption
    assert "hollow" not in caption and "diverged" not in caption


def test_where_all_seeds_diverged_the_figure_says_so():
    records = both(Records(), "fedadam", 0, 0.5, 0.8, diverged=3)
    table = of(accuracy_marks(made(records)), panel="mean", series="aggregated")
    assert table["mean"].to_list() == [None] and table["lost"].to_list() == ["diverged (round 3)"]


def test_only_the_whole_federation_counts():
    records = three_seeds()
    for more in ({"held_out": "mnist"}, {"fraction": 0.5}, {"per_domain": 2}, {"validation": True}):
        both(records, "fedavg", 0, 0.1, 0.1, **more)
    expected = made(three_seeds())
    assert made(records).cells == expected.cells


def test_clients_may_have_any_names():
    records = Records()
    names = ("mean", "worst client", "A$B_^{", "Hôpital 1", "hôpital-1", "x" * 90)
    for seed in range(2):
        for policy, value in (("aggregated", 0.6), ("client_specific", 0.7)):
            config = training_config("fedavg", policy, seed)
            rows = [
                {"metric": "accuracy", "value": value, "split": "test", "round": 20, "client": name}
                for name in (*names, "server")
            ]
            records.add(config, rows)
    summary = made(records)
    assert summary.clients == list(names)
    ids = [claim.id for claim in content(summary).claims]
    assert len(ids) == len(set(ids)) == len(names) + 2
    content(summary).drawings["internal"].make().draw_without_rendering()


PARTS = {
    "nothing": (Records, False),
    "one seed": (lambda: both(Records(), "fedavg", 0, 0.7, 0.8), True),
    "one policy": (
        lambda: trained(Records(), training_config("fedavg", "aggregated", 0), 0.7),
        True,
    ),
    "all diverged": (
        lambda: trained(Records(), training_config("fedavg", "aggregated", 0), 0.7, diverged=0),
        False,
    ),
    "an algorithm that is not in the table": (lambda: both(Records(), "mine", 0, 0.7, 0.8), True),
    "seeds without a partner": (
        lambda: trained(
            trained(Records(), training_config("moon", "aggregated", 0), 0.7),
            training_config("moon", "client_specific", 1),
            0.8,
        ),
        True,
    ),
    "other policies too": (
        lambda: trained(
            both(Records(), "fedavg", 0, 0.7, 0.8), training_config("fedavg", "client_affine"), 0.7
        ),
        True,
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("part", PARTS)
def test_parts_that_are_missing_are_left_out(part, tmp_path):
    make, drawn = PARTS[part]
    product = present(*make().both, tmp_path, OPTIONS | {"section": "internal"})
    assert bool(product.figures) == drawn
    if part in ("one policy", "all diverged", "seeds without a partner", "nothing"):
        assert product.claims == []
    in_order(product, tmp_path)


@pytest.mark.usefixtures("coarse")
def test_the_whole_section_lies_on_disk_without_a_nan(tmp_path):
    product = present(*everything().both, tmp_path, OPTIONS | {"section": "internal"})
    assert [path.name for path in product.figures] == ["internal.pdf"]
    names = {path.name for path in (tmp_path / "tables").glob("*.csv")}
    assert names == {"internal.csv", "differences.csv", "by_client.csv"}
    assert product.proven_hold and len(product.claims) == len(CLIENTS) + 1 + 7
    in_order(product, tmp_path)
