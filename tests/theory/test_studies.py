"""The studies against NumPy's eigenvalues and against kernels at fifty digits."""

import json
from collections import Counter
from fractions import Fraction
from importlib import import_module

import mpmath
import numpy as np
import pytest

from figures.records import SCHEMA, RunStore
from theory.centring import centre
from theory.crosscheck import Agreement
from theory.studies import ALPHAS, STUDIES, convergence_plan
from theory.studies.points import choose, gaussian_clients, unit_covariance_sample

SMALL = {"seed": 0, "data": "gaussian", "clients": 2, "samples": 3, "dimension": 4}


def generators(*purpose):
    """A stand-in for the seeds of `empirical`: every purpose has a stream of its own."""
    return np.random.default_rng([sum(map(ord, str(part))) for part in purpose])


def rows_of(study, config, data=None):
    told = []
    rows = list(STUDIES[study](config, data, generators, told.append))
    assert told == sorted(told) and told[-1] == 1.0
    return rows


def found(rows, metric, **where):
    return [r for r in rows if r["metric"] == metric and where.items() <= r.items()]


def single(rows, metric, **where):
    (row,) = found(rows, metric, **where)
    return row


def kappa(x):
    """κ₁ by its formula, in plain NumPy; wrong by about 1e-8 at most, for θ near 0."""
    size = np.linalg.norm(x, axis=1)
    c = np.clip((x @ x.T) / np.outer(size, size), -1, 1)
    angle = np.arccos(c)
    return np.outer(size, size) * (np.sin(angle) + (np.pi - angle) * c) / (2 * np.pi)


def real_points():
    x, _ = gaussian_clients(np.random.default_rng(9), 1, 31, 5)
    client = np.array(["long"] * 14 + ["mid"] * 9 + ["few"] * 8)
    order = np.random.default_rng(8).permutation(31)
    return x[order] + 2.0, client[order]


def test_every_row_fits_the_schema_of_the_records(tmp_path):
    small = {**SMALL, "alpha": 2.0, "width": 32, "steps": 20, "draw": 0}
    studies = {
        "corollary": {**SMALL, "sizes": [(2, 3)], "draws": 2},
        "spectrum": SMALL,
        "regime": {**SMALL, "draws": 2, "alphas": [0.5, 2.0]},
        "dynamics": small,
    }
    for study, config in studies.items():
        given = (*real_points(),) if study == "spectrum" else None
        rows = rows_of(study, config, given)
        store = RunStore(tmp_path)
        with store.writing({"study": study, **config}) as run:
            run.add(rows)
        back = store.read(run.hash)
        assert back.columns == [*SCHEMA, "run"] and back.height == len(rows) > 0
        # A config that came back from a manifest (lists for tuples) gives the same rows.
        again = rows_of(study, json.loads(json.dumps(config)), given)
        assert again == rows


def test_corollary_rows_enclose_the_eigenvalues_that_numpy_finds():
    x, client = real_points()
    config = {"seed": 5, "sizes": [(2, 4), (3, 8)], "draws": 3, "dimension": 5}
    rows = rows_of("corollary", config, (x, client))
    assert Counter(r["metric"] for r in rows) == {
        "smallest_eigenvalue": 12,
        "largest_eigenvalue": 12,
        "certified": 6,
        **dict.fromkeys(("step_size", "step_gain", "condition", "condition_gain"), 6),
    }
    whole = centre(x, client)  # by the mean of all the client's points, before any is drawn
    for clients, samples in config["sizes"]:
        for draw in range(3):
            where = {"clients": clients, "samples": samples, "draw": draw}
            chosen = choose(
                generators(5, "corollary", clients, samples, draw), client, clients, samples
            )
            kernel, names = kappa(whole[chosen]), client[chosen]
            masked = kernel * (names[:, None] == names[None, :])
            for variant, matrix in (("G", kernel), ("G*", masked)):
                values = np.linalg.eigvalsh(matrix)
                low = single(rows, "smallest_eigenvalue", variant=variant, **where)
                high = single(rows, "largest_eigenvalue", variant=variant, **where)
                for row, value in ((low, values[0]), (high, values[-1])):
                    assert row["lower"] <= row["value"] <= row["upper"]
                    # The reference's own error; the enclosures are far narrower.
                    assert row["lower"] - 1e-7 <= value <= row["upper"] + 1e-7
                    assert row["upper"] - row["lower"] < 1e-9 * values[-1]
            star = single(rows, "smallest_eigenvalue", variant="G*", **where)
            plain = single(rows, "smallest_eigenvalue", variant="G", **where)
            own = kernel[np.ix_(names == star["client"], names == star["client"])]
            assert abs(np.linalg.eigvalsh(own)[0] - star["value"]) < 1e-7
            assert star["upper"] >= plain["lower"] and star["note"]
            dense, blocks = (np.linalg.eigvalsh(matrix) for matrix in (kernel, masked))
            for metric, gain in (
                ("step_gain", dense[-1] / blocks[-1]),
                ("condition_gain", dense[-1] / blocks[-1] * blocks[0] / dense[0]),
            ):
                assert single(rows, metric, **where)["value"] == pytest.approx(gain, rel=1e-5)
            assert single(rows, "step_size", **where)["note"] == "certified"
            verdict = single(rows, "certified", **where)
            certain = star["lower"] >= plain["upper"]
            assert verdict["value"] == certain
            assert verdict["note"] == ("certified" if certain else "consistent")


def test_gaussian_clients_are_drawn_anew_for_every_draw_and_centred():
    config = {"seed": 0, "sizes": [(2, 3)], "draws": 2, "dimension": 4}
    rows = rows_of("corollary", config)
    generator = generators(0, "corollary", 2, 3, 1)
    x, client = gaussian_clients(generator, 2, 743, 4)
    chosen = choose(generator, client, 2, 3)
    expected = np.linalg.eigvalsh(kappa(centre(x, client)[chosen]))[0]
    values = [r["value"] for r in found(rows, "smallest_eigenvalue", variant="G")]
    assert abs(values[1] - expected) < 1e-7 and abs(values[0] - values[1]) > 1e-3


def test_spectrum_lists_every_eigenvalue_and_counts_the_points_of_unequal_clients():
    x, client = real_points()
    rows = rows_of("spectrum", {"data": "real"}, (x, client))
    kernel = kappa(centre(x, client))
    values = [r["value"] for r in found(rows, "eigenvalue", variant="G")]
    np.testing.assert_allclose(values, np.linalg.eigvalsh(kernel), atol=1e-7)
    for name, size in (("long", 14), ("mid", 9), ("few", 8)):
        own = [r["value"] for r in found(rows, "eigenvalue", variant="G*", client=name)]
        block = kernel[np.ix_(client == name, client == name)]
        assert len(own) == size
        np.testing.assert_allclose(own, np.linalg.eigvalsh(block), atol=1e-7)
    assert single(rows, "points")["value"] == 31
    assert single(rows, "points")["clients"] * single(rows, "points")["samples"] != 31
    assert single(rows, "certified")["note"] == "certified"


def test_spectrum_needs_data():
    with pytest.raises(ValueError, match="pass points"):
        list(STUDIES["spectrum"](SMALL, None, generators, print))


def _exact(x, client, alpha):
    """λ_min of G, V/α², Λ, Λ* and of Eq. (10), of the very float64 points, at 50 digits."""
    n, d = x.shape
    points = [[mpmath.mpf(float(v)) for v in row] for row in x]
    size = [mpmath.sqrt(sum(v * v for v in row)) for row in points]
    scale = mpmath.mpf(float(alpha)) ** 2
    g, v, masked = (mpmath.zeros(n) for _ in range(3))
    for p in range(n):
        for q in range(n):
            dot = sum(a * b for a, b in zip(points[p], points[q], strict=True))
            c = dot / (size[p] * size[q]) if p != q else mpmath.mpf(1)
            angle = mpmath.acos(c)
            k1 = size[p] * size[q] * (mpmath.sin(angle) + (mpmath.pi - angle) * c) / 2 / mpmath.pi
            g[p, q] = k1 / d
            v[p, q] = (dot * (mpmath.pi - angle) / 2 / mpmath.pi - k1 / d) / scale
            masked[p, q] = g[p, q] if client[p] == client[q] else 0
    matrices = {"G": g, "V": v, "Lambda": v + g, "Lambda*": v + masked, "printed": scale * d * g}
    return {name: min(mpmath.eigsy(m, eigvals_only=True)) for name, m in matrices.items()}


@pytest.mark.parametrize("alpha", [0.3, 0.7, 17.3])
def test_regime_encloses_the_exact_eigenvalues(alpha):
    rows = rows_of("regime", {**SMALL, "draws": 2, "alphas": [alpha]})
    with mpmath.workdps(50):
        for draw in range(2):
            x, client = unit_covariance_sample(SMALL, None, generators, draw)
            for variant, value in _exact(x, client, alpha).items():
                row = single(rows, "smallest_eigenvalue", variant=variant, draw=draw)
                assert mpmath.mpf(row["lower"]) <= value <= mpmath.mpf(row["upper"]), variant
                assert row["upper"] - row["lower"] < 1e-10 * abs(row["value"])


def test_regime_scales_with_alpha_and_the_printed_kernel_by_alpha_squared_d():
    alphas = [0.5, 1.0, 2.0, 10.0]
    rows = rows_of("regime", {**SMALL, "draws": 1, "alphas": alphas})
    g = single(rows, "smallest_eigenvalue", variant="G")
    one = single(rows, "smallest_eigenvalue", variant="V", parameter=1.0)["value"]
    for alpha in alphas:
        at = {
            variant: single(rows, "smallest_eigenvalue", variant=variant, parameter=alpha)
            for variant in ("V", "Lambda", "Lambda*", "printed")
        }
        # Enclosures are about 1e-12 of λ_min wide here.
        assert at["V"]["value"] * alpha**2 == pytest.approx(one, rel=1e-10)
        assert at["printed"]["value"] == pytest.approx(alpha**2 * 4 * g["value"], rel=1e-10)
        assert at["Lambda"]["upper"] >= at["V"]["lower"] + g["lower"]  # Weyl


ONE = {**SMALL, "clients": 1, "samples": 1, "draws": 8, "alphas": [0.3, 0.7, 1.9]}


@pytest.mark.parametrize("alpha", ONE["alphas"])
def test_regime_counts_the_rounding_of_the_weighted_sum(alpha, monkeypatch):
    """One point, kernels without error of their own: the eigenvalue is the rounded sum itself."""
    module, kept = import_module("theory.studies.regime"), []
    direction = module.direction_gram_matrix
    for name in ("direction_gram_error", "normalised_gram_error"):
        monkeypatch.setattr(module, name, lambda _: 0.0)
    monkeypatch.setattr(module, "direction_gram_matrix", lambda x: kept.append(x) or direction(x))
    rows, off = rows_of("regime", {**ONE, "alphas": [alpha]}), Counter()
    for draw, x in enumerate(kept):
        v = Fraction(direction(x).item()) / Fraction(alpha) ** 2
        g = Fraction(module.normalised_gram_matrix(x).item())
        for variant, exact in {"V": v, "Lambda": v + g, "Lambda*": v + g}.items():
            row = single(rows, "smallest_eigenvalue", variant=variant, draw=draw)
            assert Fraction(row["lower"]) <= exact <= Fraction(row["upper"])
            off[variant] += Fraction(row["value"]) != exact
    assert min(off.values()) > 0


def test_regime_counts_the_errors_of_both_kernels(monkeypatch):
    """Kernels moved by known amounts, with bounds that say so: all enclosures still hold."""
    module, alpha = import_module("theory.studies.regime"), 0.7
    config = {**SMALL, "draws": 1, "alphas": [alpha]}
    plain = {r.get("variant"): r for r in rows_of("regime", config)}
    moved = {"normalised_gram": 1e-3, "direction_gram": 3e-3}
    for name, error in moved.items():
        matrix = getattr(module, f"{name}_matrix")
        monkeypatch.setattr(module, f"{name}_error", lambda _, e=error: e)
        for sign in (1, -1):
            shifted = lambda x, m=matrix, e=sign * error: m(x) + e * np.eye(len(x))  # noqa: E731
            monkeypatch.setattr(module, f"{name}_matrix", shifted)
            for row in rows_of("regime", config):
                # 1e-9: what the plain enclosures are wide.
                value = plain[row["variant"]]["value"]
                assert row["lower"] - 1e-9 <= value <= row["upper"] + 1e-9, row
        monkeypatch.setattr(module, f"{name}_matrix", matrix)
    rows = {r["variant"]: r for r in rows_of("regime", config)}
    both = moved["normalised_gram"] + moved["direction_gram"] / alpha**2
    for variant, error in {"V": 3e-3 / alpha**2, "Lambda": both, "Lambda*": both}.items():
        assert rows[variant]["upper"] - rows[variant]["lower"] == pytest.approx(2 * error, rel=1e-6)


def test_the_witness_says_how_far_the_two_routes_are_apart(monkeypatch):
    module = import_module("theory.studies.witness")
    seen = []

    def crosscheck(x, order):
        seen.append(x)
        return Agreement((4e-16, 2e-16)[order], "0.6.5", len(x), order, nearly_parallel=9e-9)

    monkeypatch.setattr(module, "crosscheck", crosscheck)
    rows = rows_of("witness", SMALL)
    for variant, value, subject in (("printed", 2e-16, "Eq. (10)"), ("slope", 4e-16, "P₀")):
        row = single(rows, "crosscheck_difference", variant=variant)
        assert row["value"] == value and row["note"].count(subject) == 1
        assert "0.6.5" in row["note"] and "6 points" in row["note"]
    assert "9e-09" in row["note"]
    assert [x.shape for x in seen] == [(6, 4)] * 2


def test_the_plan_names_each_run_once_and_every_study_that_there_is():
    with pytest.raises(KeyError):
        convergence_plan("huge", "digits")
    for preset in ("quick", "default", "paper"):
        plan = convergence_plan(preset, "digits")
        labels = [study.label for study in plan]
        assert len(set(labels)) == len(labels)
        # The witness is planned where neural-tangents is installed, and not in haste.
        elsewhere = {"graphs", "gaussian_bounds", "structural"}  # studies of other sections
        assert {study.config["study"] for study in plan} | {"witness"} == set(STUDIES) - elsewhere
        assert all(s.config["draws"] >= 20 for s in plan if s.config["study"] == "corollary")
        json.dumps([study.config for study in plan])
    trained = {s.config["alpha"] for s in plan if s.config["study"] == "dynamics"}
    assert trained == set(ALPHAS)
