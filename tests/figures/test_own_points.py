"""Figures of a user's own points: names as they are typed, many clients, values that may be 0."""

import warnings

import polars as pl
import pytest
from matplotlib.figure import Figure

from figures import style
from figures.convergence import draw_dynamics, draw_eigenvalues
from figures.convergence.log_axes import above_zero, log_or_note
from figures.convergence.sources import client_labels, data_name, is_own, items, plain


def spectra_of(clients, each=2):
    """As many eigenvalues a client as asked for, the first client's the smallest."""
    rows = [
        {
            "variant": variant,
            "value": 1.0 + k + 0.1 * j,
            "client": name if variant == "G*" else None,
        }
        for variant in ("G", "G*")
        for k, name in enumerate(clients)
        for j in range(each)
    ]
    frame = pl.DataFrame(rows).sort("variant", "value", descending=[False, True])
    rank = pl.int_range(1, pl.len() + 1).over("variant")
    return frame.with_columns(rank=rank, data=pl.lit("own-mine"))


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def shown(ax):
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize(
    ("source", "name", "short", "what"),
    [
        ("own-mine", "points of mine", "mine", "points"),
        ("own-gaussian", "points of gaussian", "gaussian", "points"),
        ("gaussian", "Gaussian clients", "gaussian", "training images"),
        ("digits", "digits images", "digits", "training images"),
    ],
)
def test_a_source_is_named_by_what_it_is(source, name, short, what):
    assert (data_name(source), plain(source), items(source)) == (name, short, what)
    assert is_own(source) == source.startswith("own-")


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("St. Mary's", "St. Mary's"),
        ("Köln", "Köln"),
        ("$\\foo$", "\\$\\foo\\$"),
        ("日", "\\u65e5"),
        ("日" * 12, "\\u65e5" * 2 + "…" + "\\u65e5" * 2),
        ("a\nb\tc", "a\\nb\\tc"),
        ("x" * 31, "x" * 15 + "…" + "x" * 14),
    ],
)
def test_clients_are_labelled_without_mathematics_and_missing_letters(name, label):
    assert client_labels([name])[name] == label


@pytest.mark.parametrize(
    "names",
    [
        ["university-hospital-of-the-north", "university-hospital-of-the-south"],
        ["x" * 40 + "1" + "y" * 40, "x" * 40 + "2" + "y" * 40],
        ["病院" * 12 + "a", "病院" * 12 + "b"],
        ["mnist", "MNIST", "x" * 20_000],
        ["a (2)", "a", "W" * 40, "$" * 40],
    ],
)
def test_every_client_has_its_own_entry_inside_the_figure(names):
    with style.context():
        figure = draw_eigenvalues.spectra(spectra_of(names), names)
        figure.canvas.draw()
    found = legend(figure)
    assert len(set(found)) == len(names) + 1
    box, page = figure.legends[0].get_window_extent(), figure.bbox
    assert box.x0 >= 0 and box.x1 <= page.x1 and box.y0 >= 0


@pytest.mark.parametrize("names", [["$", "$$", "$\\foo$"], ["日本", "a\nb"], ["_hidden", "<b>"]])
def test_no_name_breaks_the_drawing(names):
    with style.context(), warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = draw_eigenvalues.spectra(spectra_of(names), names)
        figure.canvas.draw()
    assert [label.split("client ")[-1] for label in legend(figure)[1:]] == [
        client_labels([name])[name] for name in names
    ]


def test_of_many_clients_those_with_the_smallest_eigenvalues_are_named():
    names = [f"c{k}" for k in range(30)]
    figure = draw_eigenvalues.spectra(spectra_of(names), names)
    labels = [label.split(", ")[-1] for label in legend(figure)]
    assert labels == ["aggregated BN", *(f"client c{k}" for k in range(7)), "other clients"]
    drawn = sum(len(line.get_xdata()) for line in figure.axes[1].lines[1:])
    assert drawn == draw_eigenvalues.TAIL


def test_the_title_counts_what_is_there():
    with style.context():
        figure = draw_eigenvalues.spectra(spectra_of(["a", "b"]), ["a", "b"])
    assert figure.axes[1].get_title(loc="left").endswith("points of mine: the 4 smallest")


def test_what_may_be_zero_leaves_a_gap_and_is_said():
    line = pl.Series([1.0, 0.0, -1e-17, 2.0])
    assert above_zero(line).is_nan().to_list() == [False, True, True, False]
    for lines, bands, scale, words in (
        ([line], [], "log", ["some may be 0:\nnot shown"]),
        ([line.abs() * -1], [], "linear", ["may be 0:\nnot shown"]),
        ([line.abs() * -1], [line], "log", ["may be 0:\nnot shown"]),
        ([line.abs() + 1], [], "log", []),
    ):
        ax = Figure().subplots()
        log_or_note(ax, lines, bands)
        assert (ax.get_yscale(), shown(ax)) == (scale, words)


def test_little_decay_fills_the_panels():
    rows = [
        {"metric": metric, "round": step, "relative": 1.0 - 0.4 * (step > 0), "variant": variant}
        for metric in ("squared_residual", "linearised", "bound")
        for step in (0, 10)
        for variant in ("f|common", "f*|common", "f|own", "f*|own")
    ]
    table = pl.DataFrame(rows).with_columns(
        data=pl.lit("own-mine"), width=512, draw=0, alpha=2.0, setting=pl.lit(None, pl.String)
    )
    figure = draw_dynamics.decay(table, "own-mine")
    assert figure.axes[0].get_ylim()[0] == pytest.approx(0.2)
    tiny = table.with_columns(relative=pl.col("relative") * 1e-12)
    assert draw_dynamics.decay(tiny, "own-mine").axes[0].get_ylim()[0] == draw_dynamics.FLOOR


def test_a_threshold_at_the_right_edge_is_labelled_on_its_left():
    for high, side in ((3.0, "left"), (90.0, "right")):
        ax = Figure().subplots()
        ax.plot([0.1, 100.0], [1.0, 2.0])
        draw_dynamics._threshold(ax, pl.Series([2.0, high]))
        assert ax.texts[0].get_ha() == side
