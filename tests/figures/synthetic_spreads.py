"""Records of the study "gaussian_bounds" made by hand, for the section `generalization`."""

import math

from synthetic import Records


def wobble(*parts):
    """A number in (−1, 1) that depends on its arguments alone."""
    text = "/".join(map(str, parts))
    return math.sin(sum((k + 1) * ord(letter) for k, letter in enumerate(text)))


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
