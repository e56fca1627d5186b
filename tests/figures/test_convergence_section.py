"""The section as a whole: parts that were not run, what lies on disk, the same twice."""

import json

import polars as pl
import pytest
from synthetic import OPTIONS, Records, corollary, descent, everything, regime, spectrum, training

from figures.claims import read_claims
from figures.convergence import drawings, judge, present, summarise
from figures.convergence.layouts import tables


def one_corollary():
    return corollary(Records(), {(2, 8): [(1.0, 2.0)]})


def one_training():
    return training(Records(), "aggregated", 0, [4.0, 2.0])


def diverged_training():
    return training(Records(), "client_specific", 0, [4.0, 2.0], status="diverged")


def lost_descent():
    every = [f"{net}|{choice}" for net in ("f", "f*") for choice in ("common", "own")]
    return descent(descent(Records(), lost=every), width=8192, lost=every)


PARTS = {
    "nothing": (Records, set()),
    "corollary": (one_corollary, {"smallest_eigenvalues", "step_sizes"}),
    "spectrum": (lambda: spectrum(Records()), {"smallest_eigenvalues", "spectra", "step_sizes"}),
    "regime": (lambda: regime(Records(), [(1.0, 9.0)]), {"regimes"}),
    "one descent": (lambda: descent(Records()), {"decay_gaussian"}),
    "descents of two sources": (
        lambda: descent(descent(Records(), width=8192), data="digits", draw=1),
        {"decay_gaussian", "decay_digits", "widths"},
    ),
    "descents that all diverged": (lost_descent, set()),
    "one training": (one_training, {"training"}),
    "a diverged training": (diverged_training, set()),
    "regime beside another source's descent": (
        lambda: descent(regime(Records(), [(1.0, 9.0)]), data="digits"),
        {"regimes", "decay_digits"},
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("part", PARTS)
def test_a_part_alone_is_shown_without_the_others(part, tmp_path):
    make, names = PARTS[part]
    records = make()
    summary = summarise(*records.both)
    assert set(drawings(summary)) == names
    product = present(*records.both, tmp_path, OPTIONS)
    assert {path.stem for path in product.figures} == names
    for claim in product.claims:
        assert claim.figure is None or (tmp_path / claim.figure).is_file()
    assert read_claims(tmp_path / "claims.json") == product.claims
    assert product.report.is_file()


def test_nothing_is_judged_where_nothing_was_run():
    summary = summarise(*Records().both)
    assert judge(summary) == [] and list(tables(summary)) == []


def test_the_whole_section_lies_on_disk(shown):
    folder, _ = shown
    assert {path.stem for path in (folder / "figures").glob("*.pdf")} == {
        "smallest_eigenvalues",
        "spectra",
        "decay_digits",
        "decay_gaussian",
        "regimes",
        "widths",
        "drift_gaussian",
        "along",
        "asked",
        "local_gaussian",
        "rates",
        "pooled",
        "full_kernel",
        "step_sizes",
        "training",
    }
    written = {path.name for path in (folder / "tables").glob("*.csv")}
    named = {"corollary", "descents", "training", "clients", "rounds", "paired"}
    named |= {"drift", "held", "asked", "local_steps", "counterexamples", "readings"}
    kept = {f"all_{name}" for name in ("draws", "descents", "thresholds", "regimes", "spectra")}
    kept |= {"all_drift", "all_along", "all_local_steps"}
    kept |= {"all_examples", "all_readings", "all_gains"}
    assert written == {f"{name}.csv" for name in named | kept}
    claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert all(claim["id"] in page or claim["claim"] in page for claim in claims)
    assert pl.read_csv(folder / "tables" / "all_descents.csv").height == 64
    # Which α are driven by V and which by G is what the runs say, not what we remember.
    assert "in every draw at α = 2, 10; not so at none of these" in page

    assert "aggregated BN, seed 7" in page  # the training that diverged


@pytest.mark.slow
def test_the_same_records_give_the_same_files(shown, tmp_path):
    folder, _ = shown
    present(*everything().both, tmp_path, OPTIONS)
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    assert len(paths) > 30
    for path in paths:
        assert path.read_bytes() == (tmp_path / path.relative_to(folder)).read_bytes(), path.name
