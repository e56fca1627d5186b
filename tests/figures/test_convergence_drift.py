"""Drift, the width asked for and local steps: tables worked out by hand, verdicts, drawings."""

import numpy as np
import polars as pl
import pytest
from synthetic import OPTIONS, Records, descent, drifted, locally, student

from figures import style
from figures.convergence import draw_drift, draw_local, drawings, judge, present, summarise
from figures.convergence.draw_dynamics import FLOOR
from figures.convergence.drift_claims import falls, near_half
from figures.convergence.layouts import tables
from figures.selection import of
from figures.style import look
from figures.tables import as_text_rows

WIDTHS = (256, 1024, 4096)


def made(records):
    return summarise(*records.both)


def three(**special):
    records = Records()
    for width in WIDTHS:
        drifted(records, width=width, **special)
    return records


@pytest.fixture(autouse=True)
def styled():
    with style.context():
        yield


def claims(records):
    return {claim.id: claim for claim in judge(made(records))}


@pytest.mark.parametrize(("start", "moved"), [(-0.5, -1.0), (-0.25, 0.3)])
def test_slopes_are_the_powers_of_the_width(start, moved):
    slopes = made(three(start=start, moved=moved)).drift.slopes
    assert slopes.height == 2 * 3 * 2
    for row in slopes.iter_rows(named=True):
        power = start if row["quantity"] == "start" else moved
        assert row["mean"] == pytest.approx(power, abs=1e-12)
        assert row["lower"] == pytest.approx(power, abs=1e-9) == row["upper"]
        assert row["draws"] == (3 if row["quantity"] == "start" else 2) and row["widths"] == 3


def test_the_interval_of_a_slope_is_over_draws():
    records = three()
    frame, manifests = records.both
    # The second draw's deviation falls as m^(−1), the third's as m^0.
    width = pl.col("run").replace_strict({f"{k:016x}": w for k, w in enumerate(WIDTHS)})
    power = pl.when(pl.col("draw") == 1).then(-0.5).when(pl.col("draw") == 2).then(0.5).otherwise(0)
    far = pl.col("metric") == "drift_from_limit"
    changed = pl.when(far).then(pl.col("value") * width.cast(pl.Float64).pow(power))
    frame = frame.with_columns(value=changed.otherwise(pl.col("value")))
    row = of(summarise(frame, manifests).drift.slopes, quantity="start", part="G", net="f")
    mean, lower, upper = student([-0.5, -1.0, 0.0])
    assert row["mean"].item() == pytest.approx(mean)
    assert (row["lower"].item(), row["upper"].item()) == pytest.approx((lower, upper))


def test_spread_is_the_geometric_mean_and_the_range_over_draws():
    spread = made(three()).drift.spread
    for j, part in enumerate(("V", "G", "Lambda")):
        row = of(spread, quantity="start", net="f*", part=part, width=1024).to_dicts()[0]
        values = [3 * (1 + draw) * 2**j / 32 for draw in range(3)]
        assert (row["low"], row["high"]) == pytest.approx((values[0], values[2]))
        assert row["value"] == pytest.approx(np.prod(values) ** (1 / 3)) and row["draws"] == 3
        row = of(spread, quantity="movement", net="f*", part=part, width=1024).to_dicts()[0]
        assert (row["low"], row["high"]) == pytest.approx((20 / 1024, 40 / 1024))


def test_a_draw_that_diverged_has_no_movement_and_is_named():
    records = drifted(drifted(Records(), width=1024, lost=("f",)), width=256)
    drift = made(records).drift
    moved = of(drift.spread, quantity="movement", part="G")
    assert of(moved, net="f", width=1024)["draws"].item() == 1
    assert of(moved, net="f*", width=1024)["draws"].item() == 2
    # The other draw alone has both widths: one slope and no interval.
    row = of(drift.slopes, quantity="movement", part="G", net="f").to_dicts()[0]
    assert row["draws"] == 1 and row["lower"] is None and row["mean"] == pytest.approx(-1.0)
    assert drift.diverged == ["f on gaussian, α = 10, m = 1024, draw 0, at step 30"]
    assert of(drift.slopes, quantity="start", part="G", net="f")["draws"].item() == 3


def test_eigenvalues_are_held_against_half_of_e0():
    records = drifted(drifted(Records(), ratio=3.0), width=1024, ratio=0.95)
    drift = made(records).drift
    held = {(r["net"], r["width"]): r for r in drift.holds.iter_rows(named=True)}
    for net in ("f", "f*"):
        assert held[net, 256]["smallest"] == pytest.approx(3.0)
        assert held[net, 256]["held"] == held[net, 256]["draws"] == 2
        # 0.95 in the first draw, 1.045 in the second.
        assert held[net, 1024]["smallest"] == pytest.approx(0.95)
        assert (held[net, 1024]["held"], held[net, 1024]["draws"]) == (1, 2)
    at = of(drift.along, quantity="eigenvalue", net="f*", width=256).sort("round")
    assert at["value"].to_list() == pytest.approx([6.3, 3.15, 3.15])
    assert at["low"].to_list() == pytest.approx([6.0, 3.0, 3.0])
    far = of(drift.along, quantity="distance", net="f", width=256, round=40)
    # Trained draws alone: 2·3(1 + draw)/16 + 10(1 + draw)/256.
    assert far["low"].item() == pytest.approx(6 / 16 + 10 / 256)
    assert far["high"].item() == pytest.approx(12 / 16 + 20 / 256) and far["draws"].item() == 2


def test_the_width_asked_for_stands_beside_the_one_that_fits():
    row = of(made(three(asked=6e8)).drift.asked, net="f").to_dicts()[0]
    assert (row["low"], row["asked"], row["high"]) == pytest.approx((6e8, 3.3e9, 6e9))
    assert (row["largest"], row["affordable"], row["memory"]) == (4096, 3e6, "8 GiB")
    assert row["times"] == pytest.approx(1100) and row["draws"] == 2


def test_rates_are_means_over_draws_by_round_and_by_local_step():
    records = locally(locally(Records()), draw=1, lost=("f|client|0.5|4",))
    rates = made(records).drift.rates
    row = of(rates, net="f*", choice="client", fraction=1.0, steps=4).to_dicts()[0]
    assert (row["low"], row["rate"], row["high"]) == pytest.approx((0.8, 1.2, 1.6))
    assert row["step_rate"] == pytest.approx(0.3) and row["promised"] == pytest.approx(0.02)
    assert row["theorem"] == "outside the theorem" and (row["runs"], row["diverged"]) == (2, 0)
    inside = of(rates, theorem="inside the theorem").select("fraction", "steps").unique()
    assert inside.rows() == [(1.0, 1)]
    half = of(rates, net="f", fraction=0.5, steps=4).to_dicts()[0]
    assert (half["runs"], half["diverged"]) == (2, 1) and half["rate"] == pytest.approx(0.2)
    (lost,) = made(records).drift.diverged
    assert lost == "f on gaussian, α = 10, E = 4, participation 0.5, draw 1, in round 7"


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (-0.55, -0.45, "supported"),
        (-0.6, -0.4, "supported"),
        (-0.61, -0.45, "inconclusive"),
        (-0.55, -0.39, "inconclusive"),
        (-0.9, -0.1, "inconclusive"),
        (-0.39, -0.2, "contradicted"),
        (-1.1, -0.61, "contradicted"),
        (None, None, "inconclusive"),
    ],
)
def test_a_slope_is_a_half_only_if_its_whole_interval_says_so(lower, upper, expected):
    assert near_half(lower, upper) == expected


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        ([-1.0, -0.9], [-0.5, -0.1], "supported"),
        ([-1.0, -0.9], [-0.5, 0.1], "inconclusive"),
        ([-1.0, 0.1], [-0.5, 0.3], "contradicted"),
        ([-1.0, None], [-0.5, None], "inconclusive"),
    ],
)
def test_movement_falls_only_if_it_does_for_all(lower, upper, expected):
    frame = pl.DataFrame({"lower": lower, "upper": upper}, schema_overrides={"lower": pl.Float64})
    assert falls(frame) == expected


def test_the_claims_of_the_drift():
    found = claims(three())
    start, movement = found["drift.start.gaussian"], found["drift.movement.gaussian"]
    assert start.verdict == movement.verdict == "supported"
    assert start.measured == "slope −0.500 over 3 widths, mean of 3 draws"
    assert start.interval == pytest.approx((-0.5, -0.5))
    assert movement.interval == pytest.approx((-1.0, -1.0))
    assert start.figure == movement.figure == "figures/drift_gaussian.pdf"
    wrong = claims(three(start=-0.2, moved=0.1))
    assert wrong["drift.start.gaussian"].verdict == "contradicted"
    assert wrong["drift.movement.gaussian"].verdict == "contradicted"
    assert not claims(drifted(Records()))  # one width: no slope, no claim


def test_the_decay_far_below_the_width_asked_for():
    name = "theorem-iii.4.width"
    claim = claims(descent(Records(), width=512))[name]
    assert claim.verdict == "certified" and claim.kind == "mathematics"
    # 1e9 and 1e9 + 1 by 512; f has one step size, f* two.
    assert "m from 512 to 512, 2.0×10⁶ to 2.0×10⁶ times" in claim.measured
    assert "over 3 runs" in claim.measured
    for special in ({"decay": "violated"}, {"lost": ("f|common",)}):
        assert claims(descent(Records(), **special))[name].verdict == "violated"
    assert claims(descent(Records(), decay="consistent"))[name].verdict == "consistent"
    assert name not in claims(descent(Records(), dominated=False))
    assert name not in claims(descent(Records(), width=2 * 10**8))  # a factor of five is not far
    assert name in claims(descent(Records(), width=10**8))


def holds(line, x, y):
    np.testing.assert_allclose(np.asarray(line.get_xdata(), float), np.asarray(x, float))
    np.testing.assert_allclose(np.asarray(line.get_ydata(), float), np.asarray(y, float))


def labels(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_drift_shows_every_kernel_over_the_width_with_its_slope():
    records = three()
    for width in WIDTHS:
        drifted(records, width=width, alpha=2.0)
    drift = made(records).drift
    figure = draw_drift.drift(drift.spread, drift.slopes, "gaussian")
    assert len(figure.axes) == 6
    for k, (quantity, part, alphas) in enumerate(
        [
            ("start", "V", [2.0]),
            ("start", "G", [2.0]),
            ("start", "Lambda", [2.0, 10.0]),
            ("movement", "V", [2.0, 10.0]),
            ("movement", "G", [2.0, 10.0]),
            ("movement", "Lambda", [2.0, 10.0]),
        ]
    ):
        ax = figure.axes[k]
        drawn = iter(ax.lines)
        for alpha in alphas:
            for net, policy in (("f", "aggregated"), ("f*", "client_specific")):
                rows = of(drift.spread, quantity=quantity, part=part, alpha=alpha, net=net)
                line = next(drawn)
                holds(line, rows["width"], rows["value"])
                assert line.get_color() == look(policy).colour
        guide = next(drawn).get_ydata()
        assert guide[0] / guide[1] == pytest.approx(4.0) and guide[0] < rows["low"].max()
        power = "−0.50" if quantity == "start" else "−1.00"
        texts = [text.get_text() for text in ax.texts]
        assert texts == [f"{power} [{power}, {power}]"] * 2
    assert labels(figure)[:2] == [look(p).label for p in ("aggregated", "client_specific")]


def test_along_shows_the_narrowest_and_the_widest_and_what_the_theorem_needs():
    drift = made(three()).drift
    figure = draw_drift.along(drift.along)
    top, bottom = figure.axes
    for ax, quantity in ((top, "distance"), (bottom, "eigenvalue")):
        drawn = iter(ax.lines)
        for net in ("f", "f*"):
            for width in (256, 4096):
                rows = of(drift.along, quantity=quantity, net=net, width=width).sort("round")
                holds(next(drawn), rows["round"], rows["value"])
    assert list(bottom.lines[-1].get_ydata()) == [1.0, 1.0]
    assert "256" in labels(figure)[2] and "4{,}096" in labels(figure)[3]


def test_asked_shows_both_widths_of_every_alpha():
    records = three()
    drifted(records, width=64, alpha=2.0, asked=1e11)
    drift = made(records).drift
    ax = draw_drift.asked(drift.asked).axes[0]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [
        "$\\alpha = 10$",
        "$\\alpha = 2$",
    ]
    marks = {
        (line.get_color(), round(float(np.mean(line.get_ydata())), 2)): line for line in ax.lines
    }
    assert marks[look("aggregated").colour, 0.15].get_xdata()[0] == pytest.approx(5.5e9)
    assert marks[look("client_specific").colour, 0.85].get_xdata()[0] == pytest.approx(5.5e11)
    black = sorted(float(line.get_xdata()[0]) for line in ax.lines if line.get_marker() == "D")
    assert black == [64, 64, 4096, 4096]


def test_local_shows_every_e_and_participation_at_the_largest_alpha():
    drift = made(locally(locally(Records(), alpha=2.0))).drift
    figure = draw_local.local(drift.federated, "gaussian")
    assert len(figure.axes) == 4
    for k, (fraction, steps) in enumerate([(1.0, 1), (1.0, 4), (0.5, 1), (0.5, 4)]):
        drawn = iter(figure.axes[k].lines)
        for net, policy in (("f", "aggregated"), ("f*", "client_specific")):
            at = {"net": net, "choice": "client", "alpha": 10.0}
            promised = of(drift.federated, metric="promised", **at)
            dashed, solid = next(drawn), next(drawn)
            holds(dashed, promised["round"], promised["value"])
            rows = of(drift.federated, metric="relative_residual", **at)
            rows = of(rows, fraction=fraction, steps=steps)
            holds(solid, rows["round"], rows["value"].clip(lower_bound=FLOOR))
            assert dashed.is_dashed() and not solid.is_dashed()
            assert dashed.get_color() == solid.get_color() == look(policy).colour
    assert "the theorem is for $E=1$, everyone" in labels(figure)[-1]
    assert figure.axes[2].get_ylabel().startswith("50 % of the clients")


def test_rates_shows_rounds_above_local_steps():
    drift = made(locally(Records())).drift
    figure = draw_local.rates(drift.rates)
    for ax, column in zip(figure.axes, ("rate", "step_rate"), strict=True):
        drawn = iter(ax.lines)
        for net in ("f", "f*"):
            for choice, fraction in (("client", 1.0), ("client", 0.5), ("server", 1.0)):
                rows = of(drift.rates, net=net, choice=choice, fraction=fraction).sort("steps")
                holds(next(drawn), rows["steps"], rows[column])
    assert sum(text.strip() != "" for text in labels(figure)) == 5


PARTS = {
    "one width": (lambda: drifted(Records()), {"drift_gaussian", "along", "asked"}),
    "no e0": (
        lambda: drifted(Records(), e0=0.0),
        {"drift_gaussian", "asked"},
    ),
    "all trained draws lost": (
        lambda: drifted(Records(), lost=("f", "f*")),
        {"drift_gaussian", "along", "asked"},
    ),
    "two sources": (
        lambda: drifted(drifted(Records(), data="own-x"), data="digits"),
        {"drift_own-x", "drift_digits", "along", "asked"},
    ),
    "local steps": (lambda: locally(Records()), {"local_gaussian", "rates"}),
    "everyone only": (
        lambda: locally(Records(), fractions=(1.0,)),
        {"local_gaussian", "rates"},
    ),
    "all local runs diverged": (
        lambda: locally(
            Records(),
            lost=[
                f"{net}|{run}"
                for net in ("f", "f*")
                for run in (
                    "client|1|1",
                    "client|1|4",
                    "client|0.5|1",
                    "client|0.5|4",
                    "server|1|4",
                )
            ],
        ),
        {"local_gaussian"},
    ),
}


SLOW = ("two sources", "everyone only", "all trained draws lost")


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize(
    "part", [pytest.param(p, marks=[pytest.mark.slow] * (p in SLOW)) for p in PARTS]
)
def test_a_part_alone_is_shown_without_the_others(part, tmp_path):
    make, names = PARTS[part]
    records = make()
    assert set(drawings(made(records))) == names
    product = present(*records.both, tmp_path, OPTIONS)
    assert {path.stem for path in product.figures} == names
    for claim in product.claims:
        assert claim.figure is None or (tmp_path / claim.figure).is_file()
    page = product.report.read_text(encoding="utf-8")
    assert ("diverged" in page) == ("lost" in part or "diverged" in part)
    assert "None" not in page


def test_tables_for_people():
    records = locally(three())
    shown = {name: as_text_rows(frame, layout) for name, _, frame, layout in tables(made(records))}
    assert set(shown) == {"drift", "held", "asked", "local_steps"}
    headings, rows = shown["asked"]
    assert rows[0][:3] == ["Gaussian clients", "10", "f"] and "3000000" in rows[0]
    assert "8 GiB" in rows[0] and headings[3] == "m asked for"
    headings, rows = shown["local_steps"]
    inside = [row for row in rows if "inside the theorem" in row]
    assert len(inside) == 2 and all("everyone" in row and "1" in row for row in inside)
    _, rows = shown["held"]
    assert ["Gaussian clients", "10", "f", "256", "3.00", "2", "2"] in rows
