"""The study of a trained federation's features, on arrays whose laws and risks are known."""

import json

import numpy as np
import pytest
from scipy.stats import norm

from empirical.seeds import numpy_generator
from theory import vc_dimension
from theory.studies import divergence_rows
from theory.studies.terms import Layer, bound_rows, mixture, share

SEEN, UNSEEN = ("a", "b"), "u"
CLASSES, N, D = 3, 400, 4
SHIFTED = {"client_specific": 1.0, "affine": 1.0, "per_unit": 0.5, "whitened": 0.0}
ARCHITECTURE = [(6, 20, 0), (3, 12, 0)]


def labels(name, n):
    return np.random.default_rng(sum(map(ord, name)) + n).integers(0, CLASSES, n)


def features(shift, seed, whitened=True):
    """Gaussian features of all clients, a class's mean added; the unseen client is shifted."""
    rng, at = np.random.default_rng(seed), {}
    for name in (*SEEN, UNSEEN):
        x = rng.standard_normal((N, D))
        x[:, 0] += shift * (name == UNSEEN)
        x[:, 1:] += 3 * np.eye(CLASSES)[labels(name, N)][:, :3]
        at[name] = x
    return at


def probabilities(name, n, models, seed=0):
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    p = rng.dirichlet(np.ones(CLASSES), (models, n))
    return p if models > 1 else p[0]


def arrays(policy="client_specific", shift=2.0):
    variants = ["aggregated"]
    if policy != "aggregated":
        variants = list(SHIFTED)
    found = {"input": {"raw": features(shift, 1)}}
    for layer in ("layer 1", "layer 2"):
        found[layer] = {
            v: features(shift * SHIFTED.get(v, 1.0), [len(v), int(layer[-1])]) for v in variants
        }
    specific = policy != "aggregated"
    return {
        "seen": list(SEEN),
        "unseen": UNSEEN,
        "weights": np.array([0.25, 0.75]),
        "features": found,
        "after": {1: features(3.0, 7)[UNSEEN][:200], 4: features(1.0, 8)[UNSEEN][:200]}
        if specific
        else {},
        "probabilities": {name: probabilities(name, 60 + 20 * k, 2) for k, name in enumerate(SEEN)},
        "on_inputs": {
            name: probabilities(name, 60 + 20 * k, 2, seed=1) for k, name in enumerate(SEEN)
        },
        "external": probabilities(UNSEEN, N, 2),
        "train_labels": {name: labels(name, 60 + 20 * k) for k, name in enumerate(SEEN)},
        "test_labels": {name: labels(name, N) for name in (*SEEN, UNSEEN)},
        "served": {v: probabilities(v, N, 1) for v in ("server", "adapted")},
        "architecture": ARCHITECTURE,
        "whitened_by": {"a": 100, "b": 100, "u": 50} if specific else {},
    }


def last_alone():
    """The same without other layers and without batches."""
    given = arrays()
    given["features"] = {"layer 2": given["features"]["layer 2"]}
    return given | {"after": {}}


def config(**other):
    training = {"schedule": {"seed": 3}}
    given = {"training": training, "held_out": UNSEEN, "capacity": "linear", "delta": 0.06}
    return given | {"pairs": False} | other


def rows(given=None, **other):
    told = []
    found = list(divergence_rows(config(**other), given or arrays(), numpy_generator, told.append))
    assert told == sorted(told) and told[-1] == 1
    return found


@pytest.fixture(scope="module")
def specific():
    return rows()


def pick(found, **where):
    return [r for r in found if all(r.get(k) == v for k, v in where.items())]


def one(found, **where):
    (row,) = pick(found, **where)
    return row


def test_every_seen_client_and_the_mixture_has_a_divergence_at_every_layer(specific):
    keys = [(r["split"], r["variant"], r["client"]) for r in pick(specific, metric="divergence")]
    expected = [("input", "raw")]
    expected += [(layer, v) for layer in ("layer 1", "layer 2") for v in SHIFTED]
    assert keys == [(*at, c) for at in expected for c in (*SEEN, "mixture")]
    low = [
        (r["split"], r["variant"], r["client"]) for r in pick(specific, metric="divergence_lower")
    ]
    assert low == keys


def test_the_divergence_is_that_of_the_shifted_laws(specific):
    # The best half-space between N(0, 1) and N(2, 1) along the shift.
    exact = 2 * (2 * norm.cdf(1) - 1)
    for row in pick(specific, metric="divergence", variant="client_specific"):
        assert row["lower"] <= row["value"] <= row["upper"]
        assert row["lower"] < exact < row["upper"] + 0.1
        assert row["samples"] == 200 and row["parameter"] < 1e-6
        same = {k: row[k] for k in ("split", "variant", "client")}
        low = one(specific, metric="divergence_lower", **same)
        assert row["lower"] < low["value"] <= row["value"] and "lower" not in low
    for row in pick(specific, metric="divergence", variant="whitened"):
        assert row["lower"] < 0.0 < row["upper"]
    exact = 2 * (2 * norm.cdf(0.5) - 1)
    for row in pick(specific, metric="divergence", variant="per_unit"):
        assert row["lower"] < exact < row["upper"] + 0.1


def test_the_divergence_after_t_batches_is_that_of_the_features_then(specific):
    found = pick(specific, metric="divergence_after")
    assert [(r["variant"], r["client"], r["samples"]) for r in found] == [
        (v, c, t) for v in ("client_specific", "per_unit") for c in SEEN for t in (1, 4)
    ]
    for row in found:
        assert row["split"] == "layer 2"
        exact = 2 * (2 * norm.cdf({1: 3.0, 4: 1.0}[row["samples"]] / 2) - 1)
        assert row["lower"] - 0.1 < exact < row["upper"] + 0.1
    # The same images of the unseen client beside other features of the seen ones.
    by = [[r["value"] for r in pick(found, variant=v)] for v in ("client_specific", "per_unit")]
    assert by[0] != by[1]


def test_the_floor_is_what_estimated_whitening_leaves_between_equal_laws(specific):
    found = pick(specific, metric="divergence_floor")
    both = ("per_unit", "whitened")
    assert [(r["client"], r["variant"]) for r in found] == [(c, v) for c in SEEN for v in both]
    assert all(r["lower"] <= r["value"] <= r["upper"] for r in found)
    # Half of the clients' own 400 points are held out, as in what the floor stands under.
    assert all(r["samples"] == 200 == N // 2 for r in found)
    # Clients of equal sizes have one floor.
    assert found[0]["value"] == found[2]["value"]
    # The means of 100 and of 50 others lie apart by √(4 (1/100 + 1/50)) = 0.35 standard deviations.
    assert all(0.0 < r["value"] < 0.6 for r in found)
    given = last_alone()
    given["whitened_by"] = {"a": 8, "b": 100_000, UNSEEN: 100_000}
    wild, none = (pick(rows(given), metric="divergence_floor", client=c) for c in SEEN)
    # Six draws of 200 held out: their mean has a standard deviation of 0.04.
    assert all(abs(r["value"]) < 0.15 for r in none) and all(r["value"] > 0.5 for r in wild)
    assert abs(none[0]["value"] - none[1]["value"]) < 0.02  # the same draws, next to no difference


READINGS = pytest.mark.parametrize(
    ("reading", "suffix"), [("probabilities", ""), ("on_inputs", "_on_inputs")]
)


@READINGS
def test_cross_risks_are_means_over_the_clients_training_images(specific, reading, suffix):
    given = arrays()
    for i in SEEN:
        y, p = given["train_labels"][i], given[reading][i]
        for j, model in enumerate(SEEN):
            risk = one(specific, metric=f"cross_risk{suffix}", client=i, variant=model)
            error = one(specific, metric=f"cross_error{suffix}", client=i, variant=model)
            own = [p[j, k, y[k]] for k in range(len(y))]
            assert risk["value"] == pytest.approx(1 - sum(own) / len(y), abs=1e-12)
            assert error["value"] == pytest.approx(np.mean(p[j].argmax(1) != y), abs=1e-12)
            assert risk["samples"] == len(y) and risk["split"] == "train"


@READINGS
def test_both_right_sides_of_15_stand_beside_the_left(specific, reading, suffix):
    given, metric = arrays(), f"cross_risk{suffix}"
    cross = np.array(
        [[one(specific, metric=metric, client=i, variant=j)["value"] for j in SEEN] for i in SEEN]
    )
    omega = given["weights"]
    expected = {"printed": omega @ np.diag(cross), "convex": omega @ cross @ omega}
    # The Gibbs risk is linear in the prediction: convexity holds with equality.
    expected["measured"] = expected["convex"]
    for variant, value in expected.items():
        row = one(specific, metric=f"mixture_risk{suffix}", variant=variant)
        assert row["value"] == pytest.approx(value, abs=1e-12)
        assert row["lower"] <= value + 1e-15 and value <= row["upper"] + 1e-15
    row = one(specific, metric=f"mixture_risk{suffix}", variant="printed")
    assert ("not implied" in row["note"]) == (expected["printed"] < expected["convex"])
    _, measured = mixture(given, reading)
    assert measured.lower <= expected["measured"] <= measured.upper


def test_the_external_risk_is_that_of_averaged_predictions_with_hoeffdings_interval(specific):
    given = arrays()
    averaged = 0.25 * given["external"][0] + 0.75 * given["external"][1]
    y = given["test_labels"][UNSEEN]
    row = one(specific, metric="external_risk")
    assert (row["client"], row["variant"], row["samples"]) == (UNSEEN, "averaged", N)
    assert row["value"] == pytest.approx(np.mean([1 - averaged[k, y[k]] for k in range(N)]))
    radius = np.sqrt(np.log(2 / 0.06) / 2 / N)
    assert row["upper"] - row["value"] == pytest.approx(radius)
    assert row["value"] - row["lower"] == pytest.approx(radius) and "Hoeffding" in row["note"]


def test_the_external_error_is_counted(specific):
    given = arrays()
    for variant, p in given["served"].items():
        row = one(specific, metric="external_error", variant=variant)
        assert row["value"] == np.mean(p.argmax(1) != given["test_labels"][UNSEEN])
        assert row["lower"] < row["value"] < row["upper"] and row["samples"] == N
        assert row["upper"] - row["lower"] < 4 * (0.25 / N) ** 0.5 * 1.2


TERMS = [
    "empirical risk",
    "half the divergence",
    "ideal joint error",
    "capacity of the divergence",
    "capacity of the risk",
    "total",
]


STATEMENTS = ("16", "16 per unit", "16 whitened", "18")


def test_the_terms_of_each_statement_add_up_and_none_is_a_bound(specific):
    for statement in STATEMENTS:
        terms = pick(specific, metric="term", variant=statement)
        assert [row["split"] for row in terms] == TERMS
        assert all(row["client"] == UNSEEN and row["note"] for row in terms)
        *parts, total = terms
        assert total["lower"] == pytest.approx(sum(row["lower"] for row in parts), rel=1e-12)
        assert total["upper"] is None and total["value"] == total["lower"]
        kind = one(specific, metric="kind", variant=statement)
        assert kind["value"] == 0 and kind["note"].endswith("diagnostic, not a bound")
    assert "Eq. (18)" in kind["note"]


def test_the_statements_differ_where_they_should(specific):
    def term(statement, split):
        return one(specific, metric="term", variant=statement, split=split)

    cross = one(specific, metric="mixture_risk", variant="convex")["value"]
    printed = one(specific, metric="mixture_risk", variant="printed")["value"]
    assert term("16", "empirical risk")["value"] == pytest.approx(cross, abs=1e-9)
    for statement in ("16 per unit", "16 whitened"):
        row = term(statement, "empirical risk")
        assert row["value"] == pytest.approx(cross, abs=1e-9)
        assert "not trained with the features of this statement" in row["note"]
    assert "not trained" not in term("16", "empirical risk")["note"]
    assert term("18", "empirical risk")["value"] == pytest.approx(printed, abs=1e-9)
    half = {s: term(s, "half the divergence") for s in STATEMENTS}
    values = [half[s]["value"] for s in STATEMENTS]
    assert values[0] > 0.4 > values[1] > values[2] >= 0 == values[3]
    assert all(row["upper"] is None for row in half.values())
    assert "one law of the features is not shown" in half["18"]["note"]
    assert term("18", "capacity of the divergence")["value"] == 0
    # d of so small a network is not small either, and the sums are vacuous.
    d = vc_dimension(ARCHITECTURE)
    for statement in ("16", "18"):
        row = term(statement, "capacity of the risk")
        assert row["value"] > 0.5 and f"d ≤ {d:,}" in row["note"]
    # ω of the seen clients' 60 and 80 points, though the unseen one has 400.
    assert "n_eff = 123.871" in term("16", "capacity of the risk")["note"]


def test_the_divergence_of_the_bound_is_the_weighted_lower_bound_at_its_share(specific):
    given = arrays()
    assert share(config(), given) == pytest.approx(0.06 / 3 / 2)
    row = one(specific, metric="term", variant="16", split="half the divergence")
    at = {"split": "layer 2", "variant": "client_specific"}
    lower = [one(specific, metric="divergence_lower", client=c, **at)["value"] for c in SEEN]
    # The same classifier with less risk: somewhat lower.
    assert 0.4 * (given["weights"] @ lower) < row["value"] < 0.5 * (given["weights"] @ lower)
    assert "confidence 0.99" in row["note"]


def test_the_oracles_error_is_small_where_one_classifier_fits_all():
    def ideal(given):
        last = Layer("client_specific", given["features"]["layer 2"]["client_specific"], None, 1)
        found = list(bound_rows(config(), given, last))
        return one(found, variant="16", split="ideal joint error")

    easy, hard = arrays(), arrays()
    for client in easy["features"]["layer 2"]["client_specific"]:
        easy["features"]["layer 2"]["client_specific"][client][:, 1:] = (
            9 * np.eye(CLASSES)[labels(client, N)]
        )
    hard["test_labels"] = {**hard["test_labels"], UNSEEN: (hard["test_labels"][UNSEEN] + 1) % 3}
    # Hoeffding at 0.02: √(log(2/0.02)/2 (1/200 + …)) on both sides.
    radius = (np.log(100) / 2) ** 0.5
    weights = (1 / 16 + 9 / 16) / 200
    expected = radius * (weights**0.5 + (1 / 200) ** 0.5)
    assert ideal(easy)["upper"] == pytest.approx(expected, abs=1e-9)
    assert ideal(easy)["lower"] == 0 and "labels of the unseen client" in ideal(easy)["note"]
    assert ideal(hard)["upper"] > 0.9 + expected / 2


def test_an_aggregated_run_has_one_statement_and_no_statistics_of_its_own():
    found = rows(arrays("aggregated"))
    assert {r["variant"] for r in pick(found, metric="divergence")} == {"raw", "aggregated"}
    assert {r["variant"] for r in pick(found, metric="kind")} == {"16"}
    missing = {"divergence_after", "divergence_floor", "pair_divergence", "pair_divergence_floor"}
    assert not missing & {r["metric"] for r in found}


@pytest.mark.parametrize(
    ("policy", "where"),
    [
        ("aggregated", [("input", "raw"), ("layer 2", "aggregated")]),
        ("client_specific", [("layer 2", v) for v in ("client_specific", "per_unit", "whitened")]),
    ],
)
def test_pairs_are_searched_at_the_ends_and_enter_the_bound(policy, where, monkeypatch):
    import theory.studies.layers as layers

    monkeypatch.setitem(layers.SEARCH, "width", 4)
    monkeypatch.setitem(layers.SEARCH, "steps", 20)
    found = rows(arrays(policy), pairs=True)
    pairs = pick(found, metric="pair_divergence")
    assert [(r["split"], r["variant"], r["client"]) for r in pairs] == [
        (*at, c) for at in where for c in SEEN
    ]
    assert all("0.99" in r["note"] and r["samples"] == 133 for r in pairs)
    row = one(found, metric="term", variant="16", split="half the divergence")
    assert "d_HΔH" in row["note"] and row["value"] > 0.3
    floors = pick(found, metric="pair_divergence_floor")
    expected = [(c, v) for c in SEEN for v in ("per_unit", "whitened")]
    assert [(r["client"], r["variant"]) for r in floors] == expected * (policy != "aggregated")
    for floor in floors:
        assert -0.5 < floor["lower"] <= floor["value"] <= floor["upper"] < 1.2
        assert floor["split"] == "layer 2" and floor["samples"] == 133


def test_records_are_plain_and_the_same_again(specific):
    assert json.loads(json.dumps(specific, allow_nan=False)) == specific
    given = last_alone()
    again = rows(given)
    # What is left out moves nothing that stays.
    assert all(row in specific for row in again) and len(again) < len(specific)
    assert again != rows(given, training={"schedule": {"seed": 4}})
    allowed = {"metric", "value", "lower", "upper", "client", "split", "variant"}
    assert {key for row in specific for key in row} <= allowed | {"samples", "parameter", "note"}


def test_the_measured_left_side_of_15_is_that_of_averaged_predictions():
    given = arrays()
    _, measured = mixture(given)
    losses = []
    for weight, i in zip(given["weights"], SEEN, strict=True):
        averaged = 0.25 * given["probabilities"][i][0] + 0.75 * given["probabilities"][i][1]
        y = given["train_labels"][i]
        losses.append(weight * np.mean([1 - averaged[k, y[k]] for k in range(len(y))]))
    assert measured.lower <= sum(losses) <= measured.upper
    assert measured.upper - measured.lower < 1e-11


def test_too_few_images_are_refused_with_advice():
    given = arrays()
    few = {c: x[:5] for c, x in given["features"]["input"]["raw"].items()}
    given["features"]["input"]["raw"] = few
    with pytest.raises(ValueError, match="at least 8"):
        rows(given)
