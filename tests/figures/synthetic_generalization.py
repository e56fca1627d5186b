"""Records of the section `generalization` made by hand: seen clients, layers, terms, Gaussians."""

import itertools

from synthetic import Records
from synthetic_experiments import CLIENTS, training_config
from synthetic_spreads import gaussian, wobble

OPTIONS = {"section": "generalization", "preset": "default", "federation": "digits", "seeds": None}
OPTIONS |= {"device": "cpu", "theory_only": False}
LAYERS = ("layer 1", "layer 2", "layer 3")
HALF = 0.07
"""Half of the interval of one d(h)."""
RISKS = ("empirical risk", "half the divergence", "ideal joint error")
CAPACITIES = ("capacity of the divergence", "capacity of the risk")
LEVELS = {"aggregated": 1.8, "client_specific": 0.9, "affine": 1.0, "whitened": 0.3}
LEVELS["per_unit"] = 0.6
"""Divergence of the last layer; each layer before has 0.1 more."""
EASE = {"mnist": 0.0, "optdigits": -0.2, "mnist-m": 0.15, "synth-digits": 0.05}
STEPS = (1, 2, 4, 8, 15)


def estimate(metric, value, half=HALF, **where):
    """A row of d(h) with its interval, cut where d(h) ends; `parameter` is a p-value."""
    low, high = max(-2.0, value - half), min(2.0, value + half)
    p = 0.001 if low > 0 else 0.4
    at = {"samples": 400, "parameter": p, **where}
    return {"metric": metric, "value": value, "lower": low, "upper": high, **at}


def divergences(policy, held_out, seed, layers=LAYERS, shift=0.0):
    """d(h) of each seen client and their mixture, by layer, and its lower bound."""
    rows = []
    ways = ["aggregated"]
    if policy != "aggregated":
        ways = ["client_specific", "affine", "whitened", "per_unit"]
    for client in [*(c for c in CLIENTS if c != held_out), "mixture"]:
        ease = EASE.get(held_out, 0) + EASE.get(client, -0.1)
        found = {("input", "raw"): min(1.95, 1.85 + ease / 5)}
        for way in ways:
            for k, layer in enumerate(layers):
                value = LEVELS[way] + 0.1 * (len(layers) - 1 - k) + ease + shift
                value += 0.04 * wobble(held_out, client, way, k, seed)
                found[layer, way] = max(-0.15, min(1.97, value))
        for (split, variant), value in found.items():
            where = {"client": client, "split": split, "variant": variant}
            rows.append(estimate("divergence", value, **where))
            low = {**where, "samples": 400, "parameter": rows[-1]["parameter"]}
            rows.append(
                {"metric": "divergence_lower", "value": max(0.0, value - 0.06), **low}
            )  # fmt: skip
    return rows


def floors(held_out, seed, layers=LAYERS, level=0.2):
    """What is found between samples of one Gaussian law, whitened or scaled."""
    rows = []
    for client in [c for c in CLIENTS if c != held_out]:
        for k, variant in enumerate(("whitened", "per_unit")):
            value = level - 0.05 * k + 0.02 * wobble("floor", held_out, client, seed)
            where = {"client": client, "split": layers[-1], "variant": variant, "samples": 2000}
            rows.append({"metric": "divergence_floor", "value": value, **where})
            rows.append({"metric": "pair_divergence_floor", "value": value + 0.1, **where})
    return rows


def batches(held_out, seed, layers=LAYERS, shift=0.0, steps=STEPS):
    """What the last layer's divergence is after t test batches: it falls to that of all images."""
    rows = []
    for client in [*(c for c in CLIENTS if c != held_out), "mixture"]:
        ease = EASE.get(held_out, 0) + EASE.get(client, -0.1)
        for t, variant in itertools.product(steps, ("client_specific", "per_unit")):
            value = LEVELS[variant] + ease + shift + 0.5 / t
            value += 0.03 * wobble(held_out, client, t, seed)
            where = {"client": client, "split": layers[-1], "variant": variant}
            rows.append(estimate("divergence_after", min(1.97, value), samples=t, **where))
    return rows


def statement(held_out, name, values, kind=0):
    """The terms of one statement: (value, lower, upper) each, or a number that is exact."""
    rows, ends = [], []
    for split, given in values.items():
        value, lower, upper = given if isinstance(given, tuple) else (given, given, given)
        ends.append((lower, upper))
        where = {"client": held_out, "variant": name, "split": split, "note": f"how {split}"}
        rows.append({"metric": "term", "value": value, "lower": lower, "upper": upper, **where})
    low = sum(lower for lower, _ in ends)
    high = None if any(upper is None for _, upper in ends) else sum(upper for _, upper in ends)
    total = {"client": held_out, "variant": name, "split": "total", "note": "sum of the terms"}
    middle = low if high is None else (low + high) / 2
    rows.append({"metric": "term", "value": middle, "lower": low, "upper": high, **total})
    title = "bound" if kind else "diagnostic, not a bound"
    note = {"client": held_out, "variant": name, "note": f"Eq. ({name}): {title}"}
    rows.append({"metric": "kind", "value": float(kind), **note})
    return rows


def terms(policy, held_out, seed, shift=0.0, vacuous=(310.0, 330.0)):
    """Eq. (16), and beside client-specific BN also whitened and Eq. (18)."""
    small = 0.02 * wobble(held_out, policy, seed)
    ways = {"16": "aggregated"}
    if policy != "aggregated":
        ways = {"16": "client_specific", "16 per unit": "per_unit"}
        ways |= {"16 whitened": "whitened", "18": None}
    rows = []
    for name, way in ways.items():
        half = 0.0
        if way is not None:
            half = max(0.0, (LEVELS[way] + EASE.get(held_out, 0) + shift) / 2 + small)
        values = {
            "empirical risk": (0.06 + small / 2, 0.05 + small / 2, 0.07 + small / 2),
            "half the divergence": (half, max(0.0, half - 0.02), None if name != "18" else half),
            "ideal joint error": (0.1 + small, 0.08 + small, 0.12 + small),
            "capacity of the divergence": vacuous[0] if name != "18" else 0.0,
            "capacity of the risk": vacuous[1],
        }
        rows += statement(held_out, name, values)
    return rows


def errors(policy, held_out, seed, gain=0.12):
    """0-1 error on the held-out client's test images; aggregated BN has more by `gain`.

    The Gibbs risk of averaged predictions is larger by 0.05.
    """
    base = 0.22 + 0.6 * max(0.0, EASE.get(held_out, 0)) + 0.02 * wobble("e", held_out, seed)
    found = {"server": base + gain, "adapted": base + 0.1}
    if policy != "aggregated":
        found = {"server": base + 0.15, "adapted": base}
    served = found["server" if policy == "aggregated" else "adapted"]
    rows = [("external_error", variant, value, 0.03) for variant, value in found.items()]
    rows.append(("external_risk", "averaged", served + 0.05, 0.04))
    return [
        {
            "metric": metric,
            "value": value,
            "lower": value - half,
            "upper": value + half,
            "client": held_out,
            "variant": variant,
        }
        for metric, variant, value, half in rows
    ]


def mixtures(policy, held_out, seed, fails=True):
    """Both right sides of Eq. (15) in both readings, and the risks behind them."""
    return [*reading(policy, held_out, seed, fails), *reading(policy, held_out, seed, fails, True)]


def reading(policy, held_out, seed, fails, on_inputs=False):
    """The same of models as functions of features, or of inputs, where they fail by more."""
    more = "_on_inputs" if on_inputs else ""
    seen = [name for name in CLIENTS if name != held_out]
    rows, away = [], (0.6 if on_inputs else 0.5) if fails else 0.02
    for i in seen:
        for j in seen:
            home = 0.05 + 0.01 * wobble(i, seed, policy)
            value = home if i == j else away + 0.05 * wobble(i, j, seed)
            where = {"client": i, "variant": j}
            rows.append({"metric": f"cross_risk{more}", "value": value, **where})
            rows.append({"metric": f"cross_error{more}", "value": 0.9 * value, **where})
    risks = {(row["client"], row["variant"]): row["value"] for row in rows[::2]}
    convex = sum(risks.values()) / len(risks)
    printed = sum(risks[i, i] for i in seen) / len(seen)
    sides = {"measured": convex - 1e-9, "printed": printed, "convex": convex}
    metric = f"mixture_risk{more}"
    return rows + [{"metric": metric, "value": v, "variant": k} for k, v in sides.items()]


def pairs(policy, held_out, seed, layers=LAYERS, shift=0.0):
    """d_HΔH by a search over pairs of networks: a little above d(h)."""
    ways = ["aggregated"]
    if policy != "aggregated":
        ways = ["client_specific", "per_unit", "whitened"]
    rows = []
    for client in [c for c in CLIENTS if c != held_out]:
        ease = EASE.get(held_out, 0) + EASE.get(client, 0) + 0.02 * wobble(client, seed)
        found = [(layers[-1], way, LEVELS[way] + 0.1 + ease + shift) for way in ways]
        for split, variant, value in [("input", "raw", 1.8 + ease / 5), *found]:
            where = {"client": client, "split": split, "variant": variant}
            rows.append(estimate("pair_divergence", min(1.98, value), **where))
    return rows


def measured(records, policy, held_out, seed, *, layers=LAYERS, shift=0.0, **more):
    """One run of the study "divergence". More: gain, fails, diverged (its round)."""
    training = training_config("fedavg", policy, seed, held_out)
    config = {"study": "divergence", "training": training, "held_out": held_out}
    config |= {"batches": list(STEPS), "capacity": "linear", "delta": 0.05, "reading": "features"}
    rows = []
    if more.get("diverged") is None:
        rows += divergences(policy, held_out, seed, layers, shift)
        if policy != "aggregated":
            rows += batches(held_out, seed, layers, shift)
            rows += floors(held_out, seed, layers, more.get("floor", 0.2))
        rows += pairs(policy, held_out, seed, layers, shift)
        rows += terms(policy, held_out, seed, shift)
        rows += errors(policy, held_out, seed, more.get("gain", 0.12))
        rows += mixtures(policy, held_out, seed, more.get("fails", True))
    records.add(config, rows, "complete" if rows else "diverged")
    if not rows:
        list(records.manifests.values())[-1]["diverged_in_round"] = more["diverged"]
    return records


def trained(records=None, seeds=3, folds=CLIENTS, **more):
    """Both policies of every fold and seed; the gain depends on the client."""
    records = records or Records()
    for seed in range(seeds):
        for k, fold in enumerate(folds):
            for policy in ("aggregated", "client_specific"):
                gain = {"gain": 0.05 + 0.05 * k + 0.01 * seed} | more
                measured(records, policy, fold, seed, **gain)
    return records


def everything():
    """All parts, as the default preset leaves them."""
    return gaussian(trained())


def run(records, policy, seed, rows, fold="mnist-m", status="complete", **manifest):
    """A run of the study "divergence" with these rows."""
    training = training_config("fedavg", policy, seed, fold)
    records.add({"study": "divergence", "training": training, "held_out": fold}, rows, status)
    list(records.manifests.values())[-1].update(manifest)
    return records


def distances(values, variant, layer="layer 2", metric="divergence", **more):
    """Values: seen client -> d(h)."""
    where = {"split": layer, "variant": variant, **more}
    return [estimate(metric, v, client=c, **where) for c, v in values.items()]
