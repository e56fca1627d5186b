import math
import shutil
import subprocess

import polars as pl
import pytest

from figures._latex import escape
from figures.records import OutputError
from figures.tables import (
    SAME,
    Layout,
    as_text_rows,
    number,
    numeric,
    spanned,
    to_latex,
    with_interval,
    write_table,
)

FRAME = pl.DataFrame(
    {
        "policy": ["client-specific BN (f*)", "R&D_50%"],
        "mean": [0.91234567890123456, 0.1 + 0.2],
        "lower": [0.9083, None],
        "upper": [0.9164, None],
        "rounds": [7, None],
        "e0": [5.28e-9, -0.0528],
    }
)
LAYOUT = Layout(
    caption="Accuracy of f and f*: λ₀ ≥ 10⁻¹² & more",
    label="tab:accuracy",
    columns={"policy": "Policy", "mean": "Accuracy", "rounds": "Rounds", "e0": "e₀"},
    intervals={"mean": ("lower", "upper")},
)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.0528123, 3, "0.0528"),
        (2.78, 3, "2.78"),
        (2.0, 3, "2.00"),
        (123456.0, 3, "123000"),
        (999.96, 4, "1000"),
        (1e6, 3, "1.00×10⁶"),
        (9.9999e-5, 3, "0.000100"),
        (1.2e-9, 2, "1.2×10⁻⁹"),
        (-0.5, 2, "−0.50"),
        (-1.5e-12, 1, "−2×10⁻¹²"),
        (0.0, 3, "0"),
        (14_219_210, 3, "14219210"),
        (-3, 3, "−3"),
        (None, 3, "–"),
        (True, 3, "yes"),
        ("text", 3, "text"),
        (math.inf, 3, "∞"),
        (math.nan, 3, "undefined"),
    ],
)
def test_numbers_for_people(value, digits, text):
    assert number(value, digits) == text


@pytest.mark.parametrize(
    ("value", "lower", "upper", "text"),
    [
        (0.91234, 0.9083, 0.9164, "0.912 ± 0.004"),
        (0.91234, 0.8984, 0.92628, "0.912 ± 0.014"),
        (5.0, 4.04, 5.96, "5.0 ± 1.0"),
        (0.912, 0.90, 0.92, "0.912 [0.900, 0.920]"),
        (123.4, 100.5, 146.3, "123 ± 23"),
        (-0.02, -0.05, 0.01, "−0.02 ± 0.03"),
        (0.7, None, None, "0.700"),
        (0.7, 0.7, 0.7, "0.700 ± 0"),
        (0.0528, 0.0528 - 3e-15, 0.0528 + 3e-15, "0.0528 (± 3×10⁻¹⁵)"),
        (2e7, 1e7, 3e7, "2.00×10⁷ [1.00×10⁷, 3.00×10⁷]"),
        (1.0, -math.inf, 2.0, "1.00 [−∞, 2.00]"),
        (None, 1.0, 2.0, "–"),
    ],
)
def test_intervals_for_people(value, lower, upper, text):
    assert with_interval(value, lower, upper) == text


def test_rows_as_people_see_them():
    headings, rows = as_text_rows(FRAME, LAYOUT)
    assert headings == ["Policy", "Accuracy", "Rounds", "e₀"]
    assert rows == [
        ["client-specific BN (f*)", "0.912 ± 0.004", "7", "5.28×10⁻⁹"],
        ["R&D_50%", "0.300", "–", "−0.0528"],
    ]
    assert as_text_rows(FRAME)[0] == FRAME.columns
    only = Layout(intervals={"mean": ("lower", "upper")})
    assert as_text_rows(FRAME, only)[0] == ["policy", "mean", "rounds", "e0"]


def test_the_csv_keeps_every_column_and_digit(tmp_path):
    csv, tex = write_table(tmp_path / "tables" / "accuracy.v1", FRAME, LAYOUT)
    assert (csv.name, tex.name) == ("accuracy.v1.csv", "accuracy.v1.tex")
    assert pl.read_csv(csv).equals(FRAME)
    assert "0.30000000000000004" in csv.read_text()
    again = write_table(tmp_path / "again", FRAME, LAYOUT)
    assert [p.read_bytes() for p in again] == [csv.read_bytes(), tex.read_bytes()]


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("50 % of R&D, $5 #1 a_b {x}", r"50 \% of R\&D, \$5 \#1 a\_b \{x\}"),
        ("a~b^c\\d <e>", r"a\textasciitilde{}b\textasciicircum{}c\textbackslash{}d "
         r"\textless{}e\textgreater{}"),
        ("λ₁₂", r"$\lambda_{12}$"),
        ("λ_min ≤ λ_max of a_min", r"$\lambda_{\min}$ $\leq$ $\lambda_{\max}$ of a\_min"),
        ("x₁²", r"x$_{1}^{2}$"),
        ("1.2×10⁻¹²", r"1.2$\times$10$^{-12}$"),
        ("−3 ± 1", r"$-$3 $\pm$ 1"),
        ("G∞ ≥ 0 – naïve", r"G$\infty$ $\geq$ 0 -- naïve"),
    ],
)  # fmt: skip
def test_special_characters_are_escaped(text, latex):
    assert escape(text) == latex


def test_latex_has_booktabs_caption_and_label():
    latex = to_latex(FRAME, LAYOUT)
    assert "\\begin{tabular}{@{}lrrr@{}}" in latex
    for rule in ("\\toprule", "\\midrule", "\\bottomrule", "\\label{tab:accuracy}"):
        assert latex.count(rule) == 1
    assert "R\\&D\\_50\\% & 0.300 & -- & $-$0.0528 \\\\" in latex
    assert "caption" not in to_latex(FRAME).replace("% needs", "")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles(tmp_path):
    from figures._latex import _MATH, _SPECIAL

    every = pl.DataFrame({"signs": [*_MATH, *_SPECIAL, "".join(_MATH), "x₀₁ 10⁻¹² α₁²"]})
    body = to_latex(FRAME, LAYOUT) + to_latex(every[:60]) + to_latex(every[60:])
    head = "\\documentclass{article}\\usepackage{booktabs}\\usepackage[utf8]{inputenc}"
    (tmp_path / "t.tex").write_text(f"{head}\\begin{{document}}\n{body}\\end{{document}}\n")
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "t.tex"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2_000:]


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (Layout(columns={"nothing": "x"}), r"no columns \['nothing'\]"),
        (Layout(intervals={"mean": ("low", "upper")}), r"no columns \['low'\]"),
        (Layout(digits=0), "at least one significant digit"),
    ],
)
def test_a_layout_that_does_not_fit_is_refused(tmp_path, layout, message):
    with pytest.raises(ValueError, match=message):
        write_table(tmp_path / "t", FRAME, layout)
    assert list(tmp_path.iterdir()) == []


def test_lists_in_cells_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"columns \['a'\] hold lists"):
        write_table(tmp_path / "t", pl.DataFrame({"a": [[1, 2]]}))


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "tables").write_text("a file")
    with pytest.raises(OutputError, match="cannot write"):
        write_table(tmp_path / "tables" / "t", FRAME)


WORDS = pl.DataFrame(
    {
        "method": ["FedBN", "FedDC"],
        "a": ["80.1 ± 0.2", "+7.0†\ndiverged (round 3)"],
        "b": [SAME, "–"],
        "c": ["△", "yes"],
    }
)
GROUPED = Layout(groups=[("", 1), ("inside (%)", 2), ("", 1)], compact=True)


def test_cells_may_hold_for_two_columns_and_have_lines_below_headings_of_groups():
    lines = to_latex(WORDS, GROUPED).splitlines()
    assert "\\footnotesize" in lines
    assert "\\begin{tabular}{@{}lrll@{}}" in lines
    top = lines.index("\\toprule")
    assert lines[top + 1] == r" & \multicolumn{2}{c}{inside (\%)} &  \\"
    assert lines[top + 2] == r"\cmidrule(lr){2-3}"
    assert r"FedBN & \multicolumn{2}{c}{80.1 $\pm$ 0.2} & $\bigtriangleup$ \\" in lines
    cell = r"+7.0$^{\dagger}$ \\ \scriptsize diverged (round 3)"
    row = rf"FedDC & \begin{{tabular}}[t]{{@{{}}r@{{}}}}{cell}\end{{tabular}} & -- & yes \\"
    assert row in lines


def test_a_cell_that_is_one_with_the_one_before_needs_one_before():
    assert spanned(["x", SAME, SAME, "y"]) == [("x", 3), ("y", 1)]
    assert spanned([SAME, "y"]) == [(SAME, 1), ("y", 1)]


def test_columns_of_numbers_in_words_are_set_flush_right():
    rows = [["1.2 ± 0.3, n = 2", "5 (1 to >7)\n2 of 3 seeds", "5 or 6"], [SAME, "–", "6"]]
    assert numeric(rows, 3) == [True, True, False]


def test_headings_of_groups_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="span 3 columns; the table has 4"):
        to_latex(WORDS, Layout(groups=[("", 1), ("x", 2)]))


def test_people_see_words_and_programs_numbers(tmp_path):
    numbers = pl.DataFrame({"method": ["fedbn"], "a": [0.801234567890123]})
    csv, tex = write_table(tmp_path / "t", numbers, GROUPED, WORDS)
    assert csv.read_text(encoding="utf-8") == "method,a\nfedbn,0.801234567890123\n"
    assert "80.1" in tex.read_text(encoding="utf-8")


def test_an_interval_may_be_asked_for_more_places():
    assert with_interval(80.0, 76.0, 84.0) == "80 ± 4"
    assert with_interval(80.0, 76.0, 84.0, least=1) == "80.0 ± 4.0"
    assert with_interval(80.0, 79.96, 80.04, least=1) == "80.00 ± 0.04"
