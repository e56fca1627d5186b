import re
import subprocess
import sys
import warnings

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from figures import style
from figures.records import OutputError

POLICIES = ("aggregated", "client_specific", "client_statistics", "client_affine")
ALGORITHMS = (
    *("fedavg", "fedprox", "scaffold", "fedadam", "fednova", "fedbn"),
    *("moon", "feddc", "perfedavg", "local"),
)
CLIENTS = ("mnist", "optdigits", "mnist-m", "synth-digits")
THEORY = ("measured", "predicted", "bound", "true_kernel", "printed_kernel")
# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
SIGHT = {
    "full": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}


def lab(colour, sight="full"):
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(SIGHT[sight] @ linear, 0, 1)
    xyz = (
        np.array(
            [
                [0.4124, 0.3576, 0.1805],
                [0.2126, 0.7152, 0.0722],
                [0.0193, 0.1192, 0.9505],
            ]
        )
        @ linear
    )
    t = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * t[1] - 16, 500 * (t[0] - t[1]), 200 * (t[1] - t[2])])


def draw(scale=1.0):
    with style.context():
        figure, axes = style.panels(1, 2, width="double", ratio=0.4, sharey=True)
        for name in POLICIES:
            axes[0].plot([0, 1, 2], [scale, 0.5, 0.2], **style.look(name).line())
            axes[0].fill_between([0, 1], [0, 0], [1, 1], **style.look(name).band())
        axes[1].errorbar([1], [0.5], yerr=[0.1], **style.look("measured").points())
        axes[0].set(xlabel="round", title="λ₀ of $G^{*\\infty}$")
        style.letter(axes)
        style.whole_numbers(axes[0])
        style.legend_below(figure, axes)
    return figure


# ---- looks


@pytest.mark.parametrize("group", [POLICIES, ALGORITHMS, CLIENTS, THEORY])
def test_lines_of_one_group_differ_in_colour_and_without_colour(group):
    found = [style.look(name) for name in group]
    assert len({item.colour for item in found}) == len(found)
    assert len({item.marker for item in found}) == len(found)
    assert len({item.label for item in found}) == len(found)


@pytest.mark.parametrize("sight", SIGHT)
def test_policies_can_be_told_apart_by_colour_blind_readers(sight):
    points = [lab(style.look(name).colour, sight) for name in POLICIES]
    # A CIELAB distance of 2.3 is just noticeable; thin lines need several times that.
    gaps = [np.linalg.norm(a - b) for i, a in enumerate(points) for b in points[:i]]
    assert min(gaps) > 12


def test_the_two_policies_of_the_paper_differ_in_grey_too():
    aggregated, specific = style.look("aggregated"), style.look("client_specific")
    assert abs(lab(aggregated.colour)[0] - lab(specific.colour)[0]) > 20
    assert aggregated.dash != specific.dash and aggregated.marker != specific.marker
    assert (aggregated.label, specific.label) == ("aggregated BN (f)", "client-specific BN (f*)")


@pytest.mark.parametrize("name", POLICIES + THEORY)
def test_lines_are_visible_on_white(name):
    # Lightness 70 is a contrast of about 2.2 with white.
    assert lab(style.look(name).colour)[0] < 70


def test_an_unknown_name_gets_advice():
    with pytest.raises(ValueError, match=r"'fedavgg'; nearest: fedavg"):
        style.look("fedavgg")


def test_unknown_clients_get_spare_looks_and_known_ones_keep_theirs():
    found = style.looks(["hospital A", "mnist", "hospital B", "hospital A"])
    assert list(found) == ["hospital A", "mnist", "hospital B"]
    assert found["mnist"] == style.look("mnist")
    assert found["hospital A"].label == "hospital A"
    many = style.looks([*CLIENTS, *(f"c{k}" for k in range(25))])
    assert len({(item.colour, item.dash) for item in many.values()}) == 29
    with pytest.raises(ValueError, match="cannot be told apart"):
        style.looks(f"c{k}" for k in range(50))


def test_markers_are_thinned_on_long_lines():
    line = style.look("fedavg").line(points=100, label=False)
    assert line["markevery"] == 7 and "label" not in line
    assert style.look("fedavg").line(points=10)["markevery"] == 1
    assert "marker" not in style.look("fedavg").line(markers=False)


def test_a_ramp_goes_from_dark_to_light():
    lightness = [lab(colour)[0] for colour in style.ramp(6)]
    assert lightness == sorted(lightness) and lightness[-1] < 85
    assert len(style.ramp(1)) == 1
    with pytest.raises(ValueError, match="at least one"):
        style.ramp(0)


# ---- settings


def test_the_style_is_valid_and_leaves_the_users_settings_alone():
    mpl.rcParams["lines.linewidth"] = 7.0
    try:
        with style.context():
            assert mpl.rcParams["lines.linewidth"] != 7.0
            assert mpl.rcParams["pdf.fonttype"] == 42
        assert mpl.rcParams["lines.linewidth"] == 7.0
    finally:
        mpl.rcdefaults()
    assert style.publication() == style.publication()
    assert style.publication() is not style.publication()


def test_no_text_is_smaller_than_seven_points():
    figure = draw()
    with style.context():
        figure.draw_without_rendering()
    sizes = [
        text.get_fontsize() for text in figure.findobj(mpl.text.Text) if text.get_text().strip()
    ]
    assert len(sizes) > 10 and min(sizes) >= 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("wide",), "'column' or 'double'"), (("column", 0.0), "ratio"), (("column", 9.0), "ratio")],
)
def test_impossible_sizes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        style.size(*arguments)


def test_sizes_are_those_of_columns():
    assert style.size() == (3.4, pytest.approx(2.312))
    assert style.size("double", 0.5) == (7.0, 3.5)


# ---- files


def test_pyplot_is_never_loaded():
    code = "import sys; from figures import style; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_same_figure_gives_the_same_bytes_without_dates(tmp_path):
    one = style.save(draw(), tmp_path / "figures" / "a.1")
    two = style.save(draw(), tmp_path / "b")
    other = style.save(draw(scale=2.0), tmp_path / "c")
    assert [path.name for path in one] == ["a.1.pdf", "a.1.png"]
    for first, second, third in zip(one, two, other, strict=True):
        assert first.read_bytes() == second.read_bytes() != third.read_bytes()
    pdf, png = (path.read_bytes() for path in one)
    assert b"CreationDate" not in pdf and b"/Type3" not in pdf.replace(b" ", b"")
    assert re.search(rb"/Subtype\s*/Type0", pdf), "fonts are embedded as TrueType"
    assert b"Software" not in png
    width, height = np.frombuffer(png[16:24], dtype=">u4")
    assert (width, height) == (2100, 840)


def test_every_sign_has_a_glyph(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with style.context():
            figure, axes = style.panels()
            axes[0].set(
                title="G*∞ λ₀ κ₁ ‖x‖ ≥ ½ − ± × η α γ β Λ Σ √ ∈ é", xlabel=r"$\lambda_{\min}$"
            )
        style.save(figure, tmp_path / "signs")


def test_one_legend_names_each_line_once():
    figure = draw()
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == [*(style.look(name).label for name in POLICIES), "measured"]
    assert figure.axes[0].get_title(loc="left").startswith("(a) λ₀")
    assert figure.axes[1].get_title(loc="left") == "(b)"


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "figures").write_text("a file")
    with pytest.raises(OutputError, match="cannot write"):
        style.save(draw(), tmp_path / "figures" / "a")


# ---- looks of the features whose divergence is measured


@pytest.mark.parametrize("sight", SIGHT)
def test_features_can_be_told_apart_by_colour_blind_readers(sight):
    names = ("raw", "aggregated", "client_specific", "whitened")
    points = [lab(style.look(name).colour, sight) for name in names]
    gaps = [np.linalg.norm(a - b) for i, a in enumerate(points) for b in points[:i]]
    assert min(gaps) > 12
    assert len({style.look(name).marker for name in names}) == len(names)
    assert len({style.look(name).dash for name in names}) == len(names)


def test_per_unit_scaling_has_the_colour_of_client_specific_bn():
    colours = {style.look(n).colour for n in ("per_unit", "affine", "client_specific")}
    assert len(colours) == 1
