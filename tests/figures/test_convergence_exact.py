"""Tables, claim and figure of the exact kernel of BN, worked by hand."""

import matplotlib.pyplot as plt
import polars as pl
import pytest

from figures.convergence.draw_exact import exact_drawings
from figures.convergence.exact_tables import exact_claims, exact_sheets, summarise_exact
from figures.tables import to_latex

COLUMNS = ("metric", "value", "lower", "upper", "variant", "note", "round", "parameter")


def frame(refused: bool = False, verdict: str = "certified") -> pl.DataFrame:
    rows = []
    for ridge in (0.0, 0.1):
        at = (20, ridge)
        rows.append(("exact_condition", 100.0, None, None, None, None, *at))
        if refused and ridge == 0:
            rows.append(("exact_refused", 1.0, None, None, None, "singular", *at))
            continue
        rows.append(("exact_error", 1e-9, None, None, None, "quadrature", *at))
        rows.append(("exact_smallest", 0.2, 0.1, 0.3, "G", None, *at))
        rows.append(("exact_smallest", 0.6, 0.5, 0.7, "G*", None, *at))
        rows.append(("exact_largest", 4.0, 3.9, 4.1, "G", None, *at))
        rows.append(("exact_largest", 2.0, 1.9, 2.1, "G*", None, *at))
        rows.append(("exact", 1.0, None, None, None, verdict, *at))
    table = pl.DataFrame(rows, schema=COLUMNS, orient="row", infer_schema_length=None)
    return table.with_columns(
        pl.lit("exact").alias("study"), pl.lit("digits").alias("data"), pl.lit("N").alias("setting")
    )


def test_the_ratio_has_the_interval_of_its_enclosures():
    table = summarise_exact(frame()).table
    assert table["ratio"].to_list() == pytest.approx([3.0, 3.0])
    assert table["ratio_lower"].to_list() == pytest.approx([0.5 / 0.3] * 2)
    assert table["ratio_upper"].to_list() == pytest.approx([7.0] * 2)


def test_a_setting_without_a_kernel_stays_in_the_table_and_out_of_the_claim():
    found = summarise_exact(frame(refused=True))
    assert found.table.height == 2
    (claim,) = exact_claims(found)
    assert claim.measured == "1 of 1 certified" and claim.verdict == "certified"
    ((_, _, table, layout),) = exact_sheets(found)
    assert table["outcome"].to_list() == ["no kernel: S_i singular", "certified"]
    assert "singular" in to_latex(table, layout)


@pytest.mark.parametrize("verdict", ["consistent", "violated"])
def test_one_open_or_violated_setting_decides_the_claim(verdict):
    (claim,) = exact_claims(summarise_exact(frame(verdict=verdict)))
    assert claim.verdict == verdict and claim.measured == "0 of 2 certified"


def test_the_figure_draws_every_setting_that_has_a_kernel_and_none_without():
    drawings = exact_drawings(summarise_exact(frame()))
    figure = drawings["exact"]()
    smallest = figure.axes[0]
    assert [list(line.get_ydata()) for line in smallest.lines] == [[0.2, 0.2], [0.6, 0.6]]
    assert [label.get_text() for label in smallest.get_xticklabels()] == ["0", "0.1"]
    plt.close(figure)
    assert exact_drawings(summarise_exact(frame().clear())) == {}
