"""Records of where Corollary III.6 stops, made by hand."""

from synthetic import enclosed

EXAMPLES = {
    "pooled.orthogonal": (0.3, 0.25),
    "pooled.own": (3e-4, 2e-4),
    "pooled.gaussian": (0.2, 0.1),
    "full.orthogonal": (0.5, 0.4),
    "full.obtuse": (0.42, 0.41),
}
"""λ_min, aggregated and client-specific."""


def verdict_of(left, right, half=0.0):
    if left + half <= right - half:
        return "certified"
    return "violated" if left - half > right + half else "consistent"


def proofs(records, *, examples=None, sides="certified", remains="certified"):
    """Every example, two points a curve, two sides a threshold, two α of the pair."""
    rows = []
    for name, (whole, own) in {**EXAMPLES, **(examples or {})}.items():
        for draw in (0, 1) if name.endswith("gaussian") else (None,):
            at = {"split": name, "draw": draw}
            kinds = {"aggregated": whole, "client_specific": own + (draw or 0) * whole}
            for variant, value in kinds.items():
                rows.append(enclosed("example_smallest", value, 1e-9, variant=variant, **at))
            note = verdict_of(*kinds.values(), 1e-9)
            rows.append({"metric": "example", "value": -1.0, "note": note, **at})
            if name.startswith("pooled"):
                rows.append({"metric": "remains", "value": 1.0, "note": remains, **at})
    rows += _curves(sides)
    config = {"study": "counterexamples", "data": "gaussian", "seed": 0, "dimension": 20}
    return records.add(config, rows)


def _curves(sides):
    rows = []
    for metric, variants in (("pooled_threshold", (0.1, 0.5)), ("full_threshold", (2, 10))):
        for variant in variants:
            for degrees in (90.0, 120.0):
                at = {"variant": f"{variant:g}", "parameter": degrees}
                rows.append(enclosed(metric, degrees / 200 + variant / 10, 1e-12, **at))
    for metric in ("pooled_sides", "full_sides"):
        for degrees, note in ((90.0, "certified"), (120.0, sides)):
            at = {"parameter": degrees, "variant": "10", "note": note}
            rows.append({"metric": metric, "value": 1.0, **at})
    for alpha, own in ((1.0, 0.9), (10.0, 1.2)):
        for variant, value in (("aggregated", 1.0), ("client_specific", own)):
            at = {"variant": variant, "parameter": alpha}
            rows.append(enclosed("over_alpha", value, 1e-12, **at))
    return rows


def read(records, ratios, *, data="digits", covariances="isotropic", half=1e-6, alphas=(1.0, 9.0)):
    """Per draw: λ_min(G*)/λ_min(G) masked, pooled, and of Λ, the last the same at every α.

    The aggregated λ_min is 1, both λ_max are 8 and 4, κ falls by twice the ratio.
    """
    rows = []
    for draw, triple in enumerate(ratios):
        rows.append({"metric": "remains", "value": 1.0, "note": "certified", "draw": draw})
        for variant, ratio in zip(("masked", "pooled", "full"), triple, strict=True):
            for alpha in alphas if variant == "full" else (None,):
                at = {"variant": variant, "draw": draw, "parameter": alpha}
                parts = [("smallest", 1.0, ratio), ("largest", 4.0, 8.0)]
                parts += [("condition", 4.0 / ratio, 8.0)] if ratio else []
                for split, left, right in parts:
                    note = verdict_of(left, right, half)
                    one = {"split": split, **at}
                    rows.append({"metric": "reading", "value": 0.0, "note": note, **one})
                    rows.append(enclosed("reading_left", left, half, **one))
                    rows.append(enclosed("reading_right", right, half, **one))
    config = {"study": "readings", "data": data, "covariances": covariances}
    config |= {"clients": 4, "samples": 50, "dimension": 20}
    return records.add(config, rows)
