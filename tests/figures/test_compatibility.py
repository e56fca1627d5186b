"""Table I against values worked out by hand, and what is said where something is missing."""

import json
import re
import shutil
import subprocess

import polars as pl
import pytest
from synthetic import Records, student
from synthetic_experiments import (
    FOLDS,
    LOSSES,
    OPTIONS,
    coarsely,
    pair,
    served,
    table_one,
    trained,
    training_config,
)

from figures import style
from figures.claims import read_claims
from figures.compatibility import judge, present, summarise, tables
from figures.statistics import holm, paired_difference

WORDS = dict.fromkeys(
    (
        "mean",
        "marks",
        "lines",
        "rounds",
        "federation",
        "net",
        "averaged",
        "averaged_worst",
        "left_out",
        "dagger",
        "dagger_inside",
        "equal",
        "measured",
        "apart",
        "head",
        "power",
        "mean_row",
        "meta",
        "parted",
        "schedule",
    ),
    "",
)


def made(records):
    return summarise(*records.both)


def rows_of(summary):
    return {row.method: row for row in summary.rows}


def shown(summary, name):
    """A table as people see it: method -> cells."""
    table = next(table for table in tables(summary, WORDS) if table.name == name)
    return {row[0]: row[1:] for row in table.shown.rows()}


def frame_of(summary, name):
    table = next(table for table in tables(summary, WORDS) if table.name == name)
    return {row["method"]: row for row in table.frame.rows(named=True)}


def two_methods():
    """FedAvg and FedProx, three seeds, whose numbers the tests work out."""
    records = Records()
    for seed in range(3):
        pair(records, "fedavg", seed, (0.70 + 0.01 * seed, 0.4), (0.80 + 0.02 * seed, 0.5))
        pair(records, "fedprox", seed, (0.72, 0.45 + 0.01 * seed), (0.71, 0.40))
    return records


def test_rows_are_methods_in_the_order_of_the_paper_with_fedbn_among_them():
    names = [row.method for row in made(table_one()).rows]
    expected = ["fedavg", "fedprox", "scaffold", "fedadam", "fednova", "fedbn", "moon", "feddc"]
    assert names == [*expected, "perfedavg"]


def test_columns_are_as_the_table_is_defined():
    rows = rows_of(made(two_methods()))
    avg, bn = rows["fedavg"], rows["fedbn"]
    # Aggregated: "server" of the aggregated run; client-specific: "adapted" of the other.
    assert avg.internal["aggregated"].values == pytest.approx({0: 0.70, 1: 0.71, 2: 0.72})
    assert avg.external["aggregated"].values == pytest.approx(dict.fromkeys(range(3), 0.4))
    assert avg.external["client_specific"].values == pytest.approx(dict.fromkeys(range(3), 0.5))
    # FedBN: the client-specific run on both sides; outside its server's (mean) BN, 0.1 below.
    assert bn.internal["aggregated"] == bn.internal["client_specific"]
    assert bn.internal["aggregated"] == avg.internal["client_specific"]
    assert bn.external["aggregated"].values == pytest.approx(dict.fromkeys(range(3), 0.4))
    assert bn.external["client_specific"] == avg.external["client_specific"]
    assert set(bn.differences) == {"external"}


def test_cells_intervals_and_differences_by_hand():
    summary = made(two_methods())
    row = frame_of(summary, "compatibility")["fedavg"]
    for name, values in (
        ("internal_aggregated", [0.70, 0.71, 0.72]),
        ("internal_client_specific", [0.80, 0.82, 0.84]),
        ("internal_difference", [0.10, 0.11, 0.12]),
    ):
        found = (row[name], row[f"{name}_lower"], row[f"{name}_upper"])
        assert found == pytest.approx(student(values))
        assert row[f"{name}_n"] == 3
    # Half-widths: 4.3027 × 0.01 / √3 = 0.0248, and twice that.
    cells = shown(summary, "compatibility")["FedAvg"]
    assert cells[:3] == ("71.0 ± 2.5", "82.0 ± 5.0", "+11.0 ± 2.5")
    # All differences outside are the same 0.1: below six seeds no test can decide that.
    assert cells[4:] == ("40.0 ± 0", "50.0 ± 0", "+10.0", "○")


def test_the_family_of_holm_is_the_whole_table_and_the_losses_are_another():
    summary = made(two_methods())
    rows = rows_of(summary)
    names = [
        (method, kind)
        for method in ("fedavg", "fedprox", "fedbn")
        for kind in ("internal", "external")
        if kind in rows[method].differences
    ]
    assert len(names) == 5
    raw = [rows[method].differences[kind].p_value for method, kind in names]
    # FedAvg inside: t = 0.11/(0.01/√3) = 19.05 with 2 degrees of freedom.
    assert raw[0] == pytest.approx(0.00274, rel=2e-3)
    for name, adjusted in zip(names, holm(raw), strict=True):
        assert summary.verdicts[name][1] == pytest.approx(adjusted)
    assert summary.verdicts["fedavg", "internal"] == ("supported", pytest.approx(5 * raw[0]))
    faster = [key for key in summary.verdicts if key[1] == "faster"]
    assert faster == [("fedavg", "faster"), ("fedprox", "faster")]


def test_a_contradiction_is_a_finding():
    records = Records()
    for seed in range(3):
        pair(records, "fedavg", seed, (0.80 + 0.001 * seed, 0.4), (0.60, 0.5))
    summary = made(records)
    claims = {claim.id: claim for claim in judge(summary)}
    assert claims["compatibility.internal.fedavg"].verdict == "contradicted"
    assert shown(summary, "compatibility")["FedAvg"][3] == "▽"


def test_claims_say_points_seeds_and_their_interval():
    claims = {claim.id: claim for claim in judge(made(two_methods()))}
    inside = claims["compatibility.internal.fedavg"]
    assert inside.claim == (
        "FedAvg: client-specific BN gives a higher internal accuracy than aggregated BN"
    )
    assert (inside.source, inside.verdict) == ("UniFed, Table I", "supported")
    assert inside.measured.startswith("+11.0 points over 3 seeds, Holm-adjusted p = 0.01")
    low, high = student([10.0, 11.0, 12.0])[1:]
    assert inside.interval == pytest.approx((low, high))
    assert "Eqs. (3), (4)" in claims["compatibility.external.fedprox"].claim
    assert "clients' mean BN" in claims["compatibility.external.fedbn"].claim
    assert {k for k in claims if k.endswith("fedbn")} == {"compatibility.external.fedbn"}


def test_training_losses_are_means_over_rounds_and_lower_is_faster():
    records = Records()
    for seed, gain in enumerate((0.80, 0.82, 0.84)):
        pair(records, "fedavg", seed, (0.7, 0.4), (0.8, 0.5), gain=gain)
    summary = made(records)
    # 0.775 is the mean of LOSSES after the start.
    found = rows_of(summary)["fedavg"].differences["faster"]
    expected = student([-0.2 * 0.775, -0.18 * 0.775, -0.16 * 0.775])
    assert (found.mean, found.lower, found.upper) == pytest.approx(expected)
    claim = next(c for c in judge(summary) if c.id == "compatibility.faster.fedavg")
    assert (claim.verdict, claim.figure) == ("supported", "figures/losses.pdf")
    assert shown(summary, "rounds")["FedAvg"][2] == "0.775 ± 0"


def test_rounds_to_the_target_are_of_the_mean_over_folds_and_censored():
    records = Records()
    # 0.9 (1 − loss/4): 0.63 in round 5, 0.72, 0.765 in round 15, 0.9 in the last.
    for fold, accuracy in zip(FOLDS, (0.9, 0.9), strict=True):
        trained(records, training_config("fedavg", "aggregated", 0, fold), accuracy)
    # The mean over folds, 0.76 in the last round, arrives; the second fold alone never does.
    for fold, accuracy in zip(FOLDS, (0.9, 0.62), strict=True):
        trained(records, training_config("fedavg", "aggregated", 1, fold), accuracy)
    for fold in FOLDS:
        trained(records, training_config("fedavg", "aggregated", 2, fold), 0.9, diverged=12)
    found = rows_of(made(records))["fedavg"].rounds
    assert str(found["aggregated"]) == "20 (15 to >20), 2 of 3 seeds reached"
    assert found["client_specific"] is None


def test_the_worst_client_is_the_mean_of_the_folds_smallest_and_is_named():
    records = Records()
    first = {"mnist": 0.9, "optdigits": 0.5, "synth-digits": 0.8}
    second = {"mnist": 0.7, "optdigits": 0.6, "mnist-m": 0.8}
    for policy in ("aggregated", "client_specific"):
        for fold, accuracy in zip(FOLDS, (first, second), strict=True):
            trained(records, training_config("fedavg", policy, 0, fold), accuracy)
    summary = made(records)
    row = frame_of(summary, "worst")["fedavg"]
    assert row["worst_aggregated"] == pytest.approx(0.55)
    assert row["client_aggregated"] == "optdigits"
    assert shown(summary, "worst")["FedAvg"] == ("55.0", "55.0", "0.0", "Optdigits", "Optdigits")


def test_a_diverged_seed_is_said_with_its_round_left_out_and_counted():
    records = Records()
    for seed in range(3):
        pair(records, "scaffold", seed, 7 if seed == 1 else (0.7, 0.4), (0.8 + 0.01 * seed, 0.5))
    summary = made(records)
    cells = shown(summary, "compatibility")["SCAFFOLD"]
    assert cells[0] == "70.0 ± 0\ndiverged (round 7)\n1 of 3 seeds"
    assert cells[4] == "40.0 ± 0\ndiverged (round 7)\n1 of 3 seeds"
    assert cells[2].endswith("\nn = 2")
    row = frame_of(summary, "compatibility")["scaffold"]
    assert row["internal_aggregated_n"] == 2 and row["internal_client_specific_n"] == 3
    assert row["internal_aggregated_diverged_in_round"] == 7
    expected = student([0.10, 0.12])
    found = rows_of(summary)["scaffold"].differences["internal"]
    assert (found.mean, found.lower, found.upper) == pytest.approx(expected)
    claim = next(c for c in judge(summary) if c.id == "compatibility.internal.scaffold")
    assert claim.measured.endswith("1 seed without a pair left out")
    assert summary.lost == ["SCAFFOLD, aggregated BN: diverged (round 7), 1 of 3 seeds"]


def test_where_all_seeds_diverged_the_cell_and_the_claim_say_so():
    records = Records()
    for seed in range(2):
        pair(records, "feddc", seed, 3 + seed, (0.8, 0.5))
    summary = made(records)
    cells = shown(summary, "compatibility")["FedDC"]
    assert cells[0] == cells[4] == "diverged (rounds 3 to 4)\nall 2 seeds"
    assert cells[2:4] == ("–", "–")
    claims = {claim.id: claim for claim in judge(summary)}
    said = "no seed has both sides: aggregated BN diverged (rounds 3 to 4), all 2 seeds"
    for kind in ("internal", "external", "faster"):
        claim = claims[f"compatibility.{kind}.feddc"]
        assert (claim.measured, claim.verdict, claim.interval) == (said, "inconclusive", None)


def test_an_external_run_that_was_never_made_of_a_diverged_training_is_diverged_too():
    records = Records()
    for seed, gone in enumerate((None, 5)):
        config = training_config("fedavg", "aggregated", seed, "mnist-m")
        trained(records, config, 0.7, diverged=gone)
        if gone is None:
            served(records, config, {"server": 0.4})
    cell = rows_of(made(records))["fedavg"].external["aggregated"]
    assert (cell.values, cell.diverged) == ({0: 0.4}, {1: 5})


def test_fewer_seeds_in_one_column_are_said_with_their_number():
    records = two_methods()
    pair(records, "moon", 0, (0.7, 0.4), (0.8, 0.5))
    pair(records, "moon", 1, (0.7, 0.4), (0.8, 0.5))
    cells = shown(made(records), "compatibility")["MOON"]
    assert cells[0] == "70.0 ± 0, n = 2" and cells[2] == "+10.0\nn = 2"


def test_perfedavg_is_marked_inside_and_not_outside():
    summary = made(table_one(methods=("perfedavg",)))
    cells = shown(summary, "compatibility")["Per-FedAvg†"]
    assert cells[0].endswith("†") and cells[1].endswith("†")
    assert not cells[4].endswith("†") and not cells[5].endswith("†")
    note = frame_of(summary, "compatibility")["perfedavg"]["note"]
    assert note == "internal: after its adaptation step; external: un-adapted"
    claims = [c for c in judge(summary) if c.id == "compatibility.internal.perfedavg"]
    assert claims[0].claim.endswith("(after its adaptation step)")


def test_settings_and_where_they_come_from_are_shown():
    records, tuned = Records(), "chosen on validation images"
    for policy in ("aggregated", "client_specific"):
        for name, values, edges in (
            ("fedprox", {"mu": 0.01}, {}),  # as before manifests said what lies at an edge
            ("moon", {"mu": 1.0}, {"at_edge": []}),
            ("fedadam", {"server_lr": 0.1, "tau": 0.001}, {"at_edge": ["server_lr", "tau"]}),
        ):
            config = training_config(name, policy, 0, "mnist-m", settings=values)
            trained(records, config, 0.7, chosen=tuned, **edges)
        trained(records, training_config("fedavg", policy, 0, "mnist-m"), 0.7)
    found = shown(made(records), "settings")
    assert found == {
        "FedAvg": ("–", "not recorded", "compact_cnn"),
        "FedProx": ("mu = 0.01", tuned, "compact_cnn"),
        "FedAdam": (
            "server_lr = 0.1, tau = 0.001",
            f"{tuned};\nserver_lr, tau at the grid's edge",
            "compact_cnn",
        ),
        "FedBN": ("–", "not recorded", "compact_cnn"),
        "MOON": ("mu = 1.0", tuned, "compact_cnn"),
    }
    numbers = frame_of(made(records), "settings")
    assert {name: row["at_edge"] for name, row in numbers.items()} == {
        "fedavg": None,
        "fedprox": None,
        "fedadam": "server_lr, tau",
        "fedbn": None,
        "moon": "",
    }


def test_runs_from_before_and_after_manifests_named_edges_are_one_row():
    records = Records()
    for seed, edges in enumerate(({}, {"at_edge": ["mu"]})):
        config = training_config("moon", "aggregated", seed, "mnist-m", settings={"mu": 0.1})
        trained(records, config, 0.7, chosen="chosen on validation images", **edges)
    table = next(table for table in tables(made(records), WORDS) if table.name == "settings")
    assert table.frame["at_edge"].to_list() == ["mu"]


def test_the_schedule_s_step_is_not_said_of_methods_with_steps_of_their_own(tmp_path, coarse):
    own = {"perfedavg": {"beta": 0.03, "order": 1}, "fednova": {"momentum": 0.9}}
    wanted = {
        "perfedavg": "; but Per-FedAvg steps by its own β = 0.03 on two batches each time",
        "fednova": "; but FedNova has local momentum 0.9",
        "fedavg": "",
    }
    for name, words in wanted.items():
        records = Records()
        config = training_config(name, "aggregated", 0, "mnist-m", settings=own.get(name, {}))
        present(*trained(records, config, 0.7).both, tmp_path / name, OPTIONS)
        page = (tmp_path / name / "report.html").read_text(encoding="utf-8")
        assert f"SGD with step 0.01, clients weighted by size{words}<" in page


def test_ways_of_serving_stand_beside_one_another():
    summary = made(two_methods())
    table = next(t for t in tables(summary, WORDS) if t.name == "serving")
    assert table.shown is not None and table.shown.height == 5
    rows = {row[:2]: row[2:] for row in table.shown.rows()}
    # server, source, batch, adapted, total, identity
    expected = ("40.0 ± 0", "30.0 ± 0", "30.0 ± 0", "50.0 ± 0", "30.0 ± 0", "30.0 ± 0")
    assert rows["FedAvg", "client-specific"] == rows["FedBN", "client-specific"] == expected
    assert rows["FedAvg", "aggregated"][0] == "40.0 ± 0"


def test_trainings_of_all_clients_do_not_mix_with_the_folds():
    records = two_methods()
    trained(records, training_config("fedavg", "aggregated", 0), 0.1)
    trained(records, training_config("fedavg", "aggregated", 9), 0.1)
    assert made(records).rows == made(two_methods()).rows


def both_without_folds():
    records = Records()
    for seed in range(2):
        for policy in ("aggregated", "client_specific"):
            trained(records, training_config("fedavg", policy, seed), 0.7 + 0.1 * seed)
    return records


def one_policy():
    return trained(Records(), training_config("moon", "aggregated", 0, "mnist-m"), 0.7)


def all_lost():
    return pair(pair(Records(), "fedavg", 0, 3, 4), "moon", 0, 5, 6)


TRAINED = {"compatibility", "curves", "losses"}
ALL = TRAINED | {"gains"}
PARTS = {
    "nothing": (Records, set()),
    "one seed": (
        lambda: table_one(1, FOLDS, ("fedavg", "moon")),
        ALL,
    ),
    "one fold": (
        lambda: table_one(2, FOLDS[:1], ("perfedavg",)),
        ALL,
    ),
    "no folds": (both_without_folds, TRAINED),
    "one policy, nothing served": (one_policy, TRAINED),
    "two methods": (two_methods, ALL),
    "all diverged": (all_lost, {"compatibility"}),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("part", PARTS)
def test_a_part_alone_is_shown_and_nothing_is_nan(part, tmp_path):
    make, names = PARTS[part]
    product = present(*make().both, tmp_path, OPTIONS)
    assert {path.stem for path in product.figures} == names
    assert product.proven_hold
    assert read_claims(tmp_path / "claims.json") == product.claims
    for claim in product.claims:
        assert claim.verdict in ("supported", "inconclusive", "contradicted")
        assert claim.figure is None or (tmp_path / claim.figure).is_file()
    no_number(tmp_path)


def no_number(folder):
    """No file holds what stands for a missing number; JSON's null and "none of" are words."""
    for path in folder.rglob("*"):
        if path.suffix in (".csv", ".tex", ".json", ".html"):
            text = path.read_text(encoding="utf-8")
            text = re.sub(r"(?s)<head>.*</head>|base64,[^\"]*|none of", "", text)
            bad = r"\b(nan|inf|none)\b" if path.suffix == ".json" else r"\b(nan|inf|none|null)\b"
            assert not re.search(bad, text, re.I), path


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder and the product of a whole table, with a seed that diverged."""
    folder = tmp_path_factory.mktemp("compatibility")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "save", coarsely)
        records = table_one(methods=("fedavg", "scaffold", "perfedavg"))
        return folder, present(*records.both, folder, OPTIONS)


def test_the_whole_section_lies_on_disk(whole):
    folder, product = whole
    written = {path.relative_to(folder).as_posix() for path in product.written}
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert written == files
    names = {"compatibility", "gains", "worst", "rounds", "settings", "serving"}
    expected = {f"tables/{name}.{kind}" for name in names for kind in ("csv", "tex")}
    assert {f for f in files if f.startswith("tables/")} == expected | {"tables/all_curves.csv"}
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("<img") == 4
    assert "Left out of the means: SCAFFOLD, aggregated BN: diverged (round 7)" in page
    assert "--section compatibility" in page and "averaged over the federations" in page
    claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    assert len(claims) == 3 + 4 + 3 + 2
    no_number(folder)


def test_fedbn_is_merged_in_latex_and_html_and_doubled_in_csv(whole):
    folder, _ = whole
    latex = (folder / "tables" / "compatibility.tex").read_text(encoding="utf-8")
    line = next(line for line in latex.splitlines() if line.startswith("FedBN &"))
    assert line.startswith(r"FedBN & \multicolumn{2}{c}{84.0 $\pm$ 0.5} & -- & -- & 50.0")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert '<th colspan="4" class="group" scope="colgroup">internal accuracy (%)</th>' in page
    row = page[page.index("<td>FedBN</td>") :].split("</tr>")[0]
    assert '<td colspan="2" class="both">84.0 ± 0.5 (both)</td>' in row
    table = pl.read_csv(folder / "tables" / "compatibility.csv")
    fedbn = table.filter(pl.col("method") == "fedbn").row(0, named=True)
    assert fedbn["internal_aggregated"] == fedbn["internal_client_specific"] == pytest.approx(0.84)
    assert fedbn["internal_difference"] is None and fedbn["external_difference"] is not None


def test_every_latex_row_fills_its_columns_and_braces_close(whole):
    folder, _ = whole
    for path in (folder / "tables").glob("*.tex"):
        text = path.read_text(encoding="utf-8")
        assert text.count("{") == text.count("}")
        columns = len(re.search(r"\\begin\{tabular\}\{@\{\}([lrc]+)@\{\}\}", text).group(1))
        body = text[text.index("\\toprule") : text.index("\\bottomrule")]
        rows = [line for line in body.splitlines() if line.endswith("\\\\")]
        assert len(rows) >= 4 + 1
        for row in rows:
            inner = re.sub(r"\\begin\{tabular\}.*?\\end\{tabular\}", "", row)
            spans = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", inner))
            assert len(re.split(r"(?<!\\)&", inner)) + spans == columns, row


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX here")
def test_latex_takes_the_tables_with_booktabs_alone(whole, tmp_path):
    folder, _ = whole
    body = "".join(path.read_text(encoding="utf-8") for path in (folder / "tables").glob("*.tex"))
    head = "\\documentclass{article}\\usepackage{booktabs}\\usepackage[utf8]{inputenc}"
    (tmp_path / "t.tex").write_text(f"{head}\\begin{{document}}\n{body}\\end{{document}}\n")
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "t.tex"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2_000:]


def test_the_order_of_runs_changes_no_number():
    rows, manifests = table_one(folds=("mnist", *FOLDS), methods=("fedavg", "scaffold")).both
    turned = rows.sort("run", descending=True, maintain_order=True)
    backwards = summarise(turned, dict(reversed(list(manifests.items()))))
    forwards = summarise(rows, manifests)
    assert frame_of(backwards, "compatibility") == frame_of(forwards, "compatibility")
    assert frame_of(backwards, "rounds") == frame_of(forwards, "rounds")


def test_differences_are_those_of_the_statistics():
    row = rows_of(made(table_one(methods=("feddc",))))["feddc"]
    sides = (row.external[p].values for p in ("client_specific", "aggregated"))
    assert row.differences["external"] == paired_difference(*sides)
    assert LOSSES[20] == 0.5
