"""Records of the section `generalization` made by hand: seen clients, layers, terms, Gaussians."""

import math

from synthetic import Records
from synthetic_experiments import CLIENTS, training_config

OPTIONS = {"section": "generalization", "preset": "default", "federation": "digits", "seeds": None}
OPTIONS |= {"device": "cpu", "theory_only": False}
LAYERS = ("layer 1", "layer 2", "layer 3")
HALF = 0.07
"""Half of the interval of one d(h)."""
RISKS = ("empirical risk", "half the divergence", "ideal joint error")
CAPACITIES = ("capacity of the divergence", "capacity of the risk")
LEVELS = {"aggregated": 1.8, "client_specific": 0.9, "affine": 1.0, "whitened": 0.3}
"""Divergence of the last layer; each layer before has 0.1 more."""
EASE = {"mnist": 0.0, "optdigits": -0.2, "mnist-m": 0.15, "synth-digits": 0.05}
STEPS = (1, 2, 4, 8, 15)


def wobble(*parts):
    """A number in (−1, 1) that depends on its arguments alone."""
    text = "/".join(map(str, parts))
    return math.sin(sum((k + 1) * ord(letter) for k, letter in enumerate(text)))


def estimate(metric, value, half=HALF, **where):
    """A row of d(h) with its interval, cut where d(h) ends; `parameter` is a p-value."""
    low, high = max(-2.0, value - half), min(2.0, value + half)
    p = 0.001 if low > 0 else 0.4
    at = {"samples": 400, "parameter": p, **where}
    return {"metric": metric, "value": value, "lower": low, "upper": high, **at}


def divergences(policy, held_out, seed, layers=LAYERS, shift=0.0):
    """d(h) of each seen client and their mixture, by layer, and its lower bound."""
    rows = []
    ways = ["aggregated"] if policy == "aggregated" else ["client_specific", "affine", "whitened"]
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
    """What is found between whitened samples of one Gaussian law."""
    rows = []
    for client in [c for c in CLIENTS if c != held_out]:
        value = level + 0.02 * wobble("floor", held_out, client, seed)
        where = {"client": client, "split": layers[-1], "variant": "whitened", "samples": 2000}
        rows.append({"metric": "divergence_floor", "value": value, **where})
    return rows


def batches(held_out, seed, layers=LAYERS, shift=0.0, steps=STEPS):
    """What the last layer's divergence is after t test batches: it falls to that of all images."""
    rows = []
    for client in [*(c for c in CLIENTS if c != held_out), "mixture"]:
        ease = EASE.get(held_out, 0) + EASE.get(client, -0.1)
        for t in steps:
            value = LEVELS["client_specific"] + ease + shift + 0.5 / t
            value += 0.03 * wobble(held_out, client, t, seed)
            where = {"client": client, "split": layers[-1], "variant": "client_specific"}
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
        ways = {"16": "client_specific", "16 whitened": "whitened", "18": None}
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
    """0-1 error on the held-out client's test images; aggregated BN has more by `gain`."""
    base = 0.22 + 0.6 * max(0.0, EASE.get(held_out, 0)) + 0.02 * wobble("e", held_out, seed)
    found = {"server": base + gain, "adapted": base + 0.1}
    if policy != "aggregated":
        found = {"server": base + 0.15, "adapted": base}
    return [
        {
            "metric": "external_error",
            "value": value,
            "lower": value - 0.03,
            "upper": value + 0.03,
            "client": held_out,
            "variant": variant,
        }
        for variant, value in found.items()
    ]


def mixtures(policy, held_out, seed, fails=True):
    """Both right sides of Eq. (15), and the risks of model j on client i behind them."""
    seen = [name for name in CLIENTS if name != held_out]
    rows, away = [], 0.5 if fails else 0.02
    for i in seen:
        for j in seen:
            home = 0.05 + 0.01 * wobble(i, seed, policy)
            value = home if i == j else away + 0.05 * wobble(i, j, seed)
            where = {"client": i, "variant": j}
            rows.append({"metric": "cross_risk", "value": value, **where})
            rows.append({"metric": "cross_error", "value": 0.9 * value, **where})
    risks = {(row["client"], row["variant"]): row["value"] for row in rows[::2]}
    convex = sum(risks.values()) / len(risks)
    printed = sum(risks[i, i] for i in seen) / len(seen)
    sides = {"measured": convex - 1e-9, "printed": printed, "convex": convex}
    return rows + [{"metric": "mixture_risk", "value": v, "variant": k} for k, v in sides.items()]


def pairs(policy, held_out, seed, layers=LAYERS, shift=0.0):
    """d_HΔH by a search over pairs of networks: a little above d(h)."""
    way = "aggregated" if policy == "aggregated" else "client_specific"
    rows = []
    for client in [c for c in CLIENTS if c != held_out]:
        ease = EASE.get(held_out, 0) + EASE.get(client, 0) + 0.02 * wobble(client, seed)
        for split, variant, value in (
            ("input", "raw", 1.8 + ease / 5),
            (layers[-1], way, LEVELS[way] + 0.1 + ease + shift),
        ):
            where = {"client": client, "split": split, "variant": variant}
            rows.append(estimate("pair_divergence", min(1.98, value), **where))
    return rows


def measured(records, policy, held_out, seed, *, layers=LAYERS, shift=0.0, **more):
    """One run of the study "divergence". More: gain, fails, diverged (its round)."""
    training = training_config("fedavg", policy, seed, held_out)
    config = {"study": "divergence", "training": training, "held_out": held_out}
    config |= {"batches": list(STEPS), "capacity": "linear", "delta": 0.05}
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


SPREADS = (1.0, 2.0, 4.0, 8.0, 16.0)


def residual(variant, spread, draw):
    """Exact Σ ω_i d_HΔH of the synthetic Gaussians: none at κ = 1, none when whitened."""
    if variant == "whitened" or spread == 1:
        return 0.0
    level = {"raw": 0.9, "per_unit": 0.35}[variant]
    return level * math.log2(spread) ** 0.5 * (1 + 0.1 * wobble(draw, variant))


def gaussian(records=None, teachers=("whitened", "input"), draws=4, broken=None, **more):
    """Runs of the study "gaussian_bounds". `broken`: (variant, spread) whose bound fails."""
    records = records or Records()
    spreads = more.get("spreads", SPREADS)
    for teacher in teachers:
        config = {"study": "gaussian_bounds", "data": "gaussian", "teacher": teacher}
        config |= {"clients": 4, "dimension": 5, "samples": 100_000, "spreads": list(spreads)}
        config |= {"draws": draws, "delta": 0.05, "seed": 0}
        rows = []
        for spread in spreads:
            for draw in range(draws):
                for variant in ("raw", "per_unit", "whitened"):
                    bad = broken == (variant, spread)
                    rows += _gaussian_terms(teacher, variant, spread, draw, bad)
        records.add(config, rows)
    return records


def _gaussian_terms(teacher, variant, spread, draw, broken):
    at = {"variant": variant, "parameter": spread, "draw": draw}
    half = residual(variant, spread, draw) / 2
    # A teacher on the inputs is another function of z for every client.
    ideal = 0.0 if (teacher == "whitened") == (variant == "whitened") else 0.08 * (spread > 1)
    values = {
        "empirical risk": 0.05 + 0.02 * wobble(draw, variant) ** 2,
        "half the divergence": half,
        "ideal joint error": ideal,
        "capacity of the divergence": 0.0,
        "capacity of the risk": 0.09,
    }
    rows = [
        {"metric": "term", "value": v, "lower": v, "upper": v, "split": name, "note": "exact", **at}
        for name, v in values.items()
    ]
    total = sum(values.values())
    ends = {"lower": total, "upper": total, "split": "total", "note": "Eq. (16): bound"}
    rows.append({"metric": "term", "value": total, **ends, **at})
    risk = 0.06 + 0.3 * half + ideal / 2 + (total if broken else 0.0)
    exact = {"lower": risk - 1e-9, "upper": risk + 1e-9}
    rows.append({"metric": "external_risk", "value": risk, **exact, **at})
    both = {"lower": 2 * half, "upper": 2 * half + (1e-12 if half else 0.0)}
    rows.append({"metric": "pair_divergence", "value": 2 * half, **both, **at})
    note = {"value": -1.0, "note": "violated"} if broken else {"value": 1.0, "note": "certified"}
    return [*rows, {"metric": "holds", **note, **at}]


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
