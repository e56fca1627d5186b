"""Records of the section `convergence` made by hand, so that every table can be worked out."""

import polars as pl

from figures.records import SCHEMA
from figures.statistics import mean_interval

CLIENTS = ("mnist", "my-own")
OPTIONS = {"section": "convergence", "preset": "quick", "federation": "digits", "seeds": None}
OPTIONS |= {"device": "cpu", "theory_only": False}


class Records:
    """Rows and manifests as the store gives them, run by run."""

    def __init__(self):
        self.rows, self.manifests = [], {}

    def add(self, config, rows, status="complete"):
        run = f"{len(self.manifests):016x}"
        self.manifests[run] = {"config": config, "status": status}
        self.rows += [{**dict.fromkeys(SCHEMA), **row, "run": run} for row in rows]
        return self

    @property
    def both(self):
        return pl.DataFrame(self.rows, schema={**SCHEMA, "run": pl.String}), self.manifests


def enclosed(metric, value, half=0.0, **where):
    return {"metric": metric, "value": value, "lower": value - half, "upper": value + half, **where}


def comparison(low, star, half=0.01, **where):
    """A comparison of Corollary III.6: λ_min 'low' and 'star', λ_max 10 and 5."""
    certain = star - half >= low + half
    violated = star + half < low - half
    verdict = "certified" if certain else "violated" if violated else "consistent"
    return [
        enclosed("smallest_eigenvalue", low, half, variant="G", **where),
        enclosed(
            "smallest_eigenvalue", star, half, variant="G*", client="mnist", note="a pair", **where
        ),
        enclosed("largest_eigenvalue", 10.0, half, variant="G", **where),
        enclosed("largest_eigenvalue", 5.0, half, variant="G*", **where),
        {"metric": "certified", "value": float(certain), "note": verdict, **where},
        {"metric": "step_size", "value": 1.0, "note": "certified", **where},
        enclosed("step_gain", 2.0, half, **where),
        *_condition(low, star, half, **where),
    ]


def _condition(low, star, half, **where):
    """Twice the ratio of λ_min, since λ_max halves; nothing where either may be 0."""
    if min(low, star) <= half:
        return []
    return [
        {"metric": "condition", "value": 1.0, "note": "certified", **where},
        enclosed("condition_gain", 2 * star / low, half, **where),
    ]


def corollary(records, cells, data="gaussian"):
    """Cells: (N, M) to a list of (λ_min, λ*_min), one a draw."""
    rows = []
    for (n, m), draws in cells.items():
        for draw, (low, star) in enumerate(draws):
            rows += comparison(low, star, draw=draw, clients=n, samples=m)
    return records.add({"study": "corollary", "data": data}, rows)


def spectrum(records, low=1.0, star=2.0, data="digits", points=5):
    """Two clients, of three and two points."""
    where = {"draw": 0, "clients": 2, "samples": 2}
    rows = comparison(low, star, **where)
    rows.append({"metric": "points", "value": float(points), **where})
    for rank, value in enumerate((1.0, 3.0, 2.0, 10.0, 9.0)):
        rows.append({"metric": "eigenvalue", "value": value, "variant": "G", "draw": rank})
    for name, values in (("mnist", (2.0, 4.0, 5.0)), ("my-own", (3.0, 4.5))):
        rows += [
            {"metric": "eigenvalue", "value": v, "variant": "G*", "client": name, "draw": rank}
            for rank, v in enumerate(values)
        ]
    return records.add({"study": "spectrum", "data": data}, rows)


def regime(records, pairs, alphas=(0.5, 2.0), half=1e-6, data="gaussian"):
    """Pairs (λ_min(G), λ_min(V)) by draw; Λ is given their sum, the printed kernel α²·20·G."""
    rows = []
    for draw, (g, v) in enumerate(pairs):
        rows.append(enclosed("smallest_eigenvalue", g, half, variant="G", draw=draw))
        for a in alphas:
            at = {"draw": draw, "parameter": a}
            rows += [
                enclosed("smallest_eigenvalue", v / a**2, half / a**2, variant="V", **at),
                enclosed("smallest_eigenvalue", v / a**2 + g, half, variant="Lambda", **at),
                enclosed("smallest_eigenvalue", v / a**2 + 2 * g, half, variant="Lambda*", **at),
                enclosed("smallest_eigenvalue", 20 * a**2 * g, half, variant="printed", **at),
            ]
    return records.add({"study": "regime", "data": data}, rows)


def descent(records, *, alpha=10.0, width=512, draw=0, data="gaussian", **special):
    """Both nets at both steps. Special: dominated, verdicts, slack, ratio, gaps, lost, start."""
    s = {"dominated": True, "decay": "certified", "eigen": "certified", "slack": 0.5}
    s |= {"ratio": 3.0, "gaps": (0.5, 4.0), "lost": (), "start": 8.0, "e0": 0.5, "printed": 100.0}
    s |= {"lambda_min": 1.0, **special}
    rows = [{"metric": "magnitude_dominates", "value": float(s["dominated"])}]
    for k, name in enumerate(("limit", "printed")):
        rows.append(
            {"metric": "entry_gap", "value": s["gaps"][k], "variant": name, "note": "Hoeffding"}
        )
    rows.append(enclosed("limit_smallest_eigenvalue", 3.0, 0.01, variant="V"))
    rows.append(enclosed("limit_smallest_eigenvalue", s["printed"], 0.01, variant="printed"))
    for k, net in enumerate(("f", "f*")):
        rows.append(enclosed("limit_smallest_eigenvalue", s["e0"] * (k + 1), 0.01, variant=net))
        rows.append({"metric": "required_width", "value": 1e9 + k, "variant": net})
        rows.append(enclosed("smallest_eigenvalue", s["lambda_min"] + k, 0.01, variant=net))
        for choice, eta in (("common", 0.1), ("own", 0.1 + k)):
            rows += _run(s, f"{net}|{choice}", eta, k)
    config = {"study": "dynamics", "data": data, "draw": draw, "alpha": alpha, "width": width}
    return records.add(config, rows)


def _run(s, variant, eta, k):
    where = {"variant": variant}
    rows = [{"metric": "step_size", "value": eta, **where}]
    if variant in s["lost"]:
        return [*rows, {"metric": "diverged_at", "value": 7.0, **where}]
    for step, decay in ((0, 1.0), (10, 0.1), (20, 0.001)):
        for metric, factor in (("squared_residual", 1.0), ("linearised", 1.0 + 0.1 * step * k)):
            value = s["start"] * decay * factor
            rows.append({"metric": metric, "value": value, "round": step, **where})
        rows.append(enclosed("bound", s["start"] * 0.99**step, round=step, **where))
    # Far above the certified ratio at first; then what the ratio is of: computed, e₀ (k + 1) by 2.
    for step, factor in ((0, 9.0), (20, 1.0)):
        value = factor * (s["ratio"] + k) * s["e0"] * (k + 1) / 2
        metric = "smallest_eigenvalue_during"
        rows.append({"metric": metric, "value": value, "round": step, **where})
    note = {"note": s["decay"], "round": 10, **where}
    return [
        *rows,
        {"metric": "bound_slack_decades", "value": s["slack"] + k, **note},
        {"metric": "final_slack_decades", "value": 10 * s["slack"] + k, "round": 20, **where},
        {"metric": "eigenvalue_over_half_e0", "value": s["ratio"] + k, "note": s["eigen"], **where},
        {"metric": "g_dominated_during", "value": 1.0, **where},
        {"metric": "steps_to_thousandth", "value": 20.0, **where},
        {"metric": "factor", "value": 0.99, **where},
        {"metric": "steps_promised", "value": 688.0, **where},
    ]


def drifted(records, *, width=256, alpha=10.0, data="gaussian", **special):
    """Three draws, two of them trained. Start: 3(1 + draw)/√m by 1 for V, 2 for G, 4 for Λ.

    Training moves as 10(1 + draw)/m, twice as far for f*. Special: start, moved (their powers of
    m), lost (nets whose first draw diverged), e0, ratio (λ_min(Λ(t)) by e₀/2), asked.
    """
    s = {"start": -0.5, "moved": -1.0, "lost": (), "e0": 0.5, "ratio": 3.0, "asked": 1e9}
    s |= special
    rows = [{"metric": "affordable_width", "value": 3e6, "note": "8 GiB"}]
    for draw in range(3):
        for k, net in enumerate(("f", "f*")):
            at = {"variant": net, "draw": draw}
            steps = (0, 20, 40) if draw < 2 else (0,)
            if net in s["lost"] and draw == 0:
                rows.append({"metric": "diverged_at", "value": 30.0, **at})
                steps = (0, 20)
            if draw < 2:
                rows.append(enclosed("limit_smallest_eigenvalue", s["e0"] * (k + 1), 0.01, **at))
                rows.append({"metric": "required_width", "value": s["asked"] * 10**draw, **at})
            for step in steps:
                rows += _drift_step(s, net, draw, step, width)
    config = {"study": "drift", "data": data, "alpha": alpha, "width": width}
    config |= {"clients": 4, "samples": 8, "dimension": 20}
    return records.add(config, rows)


def _drift_step(s, net, draw, step, width):
    at, k = {"draw": draw, "round": step}, ("f", "f*").index(net)
    value = s["ratio"] * s["e0"] * (k + 1) / 2 * (1 + 0.1 * draw) * (1 if step else 2)
    rows = [{"metric": "smallest_eigenvalue_during", "value": value, "variant": net, **at}]
    for j, part in enumerate(("V", "G", "Lambda")):
        where = {"variant": f"{net}|{part}", **at}
        far = 3 * (1 + draw) * width ** s["start"] * 2**j
        moved = 10 * (1 + draw) * (1 + k) * width ** s["moved"] * (step / 40)
        rows.append({"metric": "drift_from_limit", "value": far + moved, **where})
        rows.append({"metric": "drift_by_training", "value": moved, **where})
    return rows


def locally(records, *, alpha=10.0, draw=0, data="gaussian", lost=(), fractions=(1.0, 0.5)):
    """f decays by 0.1 E decades a round, f* by twice that; half of it with half of the clients."""
    rows = []
    for k, net in enumerate(("f", "f*")):
        for choice in ("client", "server"):
            where = {"variant": f"{net}|{choice}", "note": "E = 1, everyone"}
            rows.append({"metric": "promised_decades", "value": 0.01 * (k + 1), **where})
            for t in (0, 5, 10):
                value = 10 ** (-0.01 * (k + 1) * t)
                rows.append({"metric": "promised", "value": value, "round": t, **where})
        runs = [("client", c, e) for c in fractions for e in (1, 4)]
        for choice, c, e in [*runs, ("server", 1.0, 4)]:
            inside = "inside" if c == 1 and e == 1 else "outside"
            where = {"variant": f"{net}|{choice}|{c:g}|{e}", "note": f"{inside} the theorem"}
            gone = where["variant"] in lost
            rows.append({"metric": "diverged" if gone else "finished", "value": 1.0, **where})
            if gone:
                rows.append({"metric": "diverged_at", "value": 7.0, **where})
            rate = 0.1 * e * (k + 1) * c * (1 + draw)
            for t in (0, 5) if gone else (0, 5, 10):
                metric = {"metric": "relative_residual", "value": 10 ** (-rate * t)}
                rows.append({**metric, "round": t, **where})
            if not gone:
                rows.append({"metric": "decades_a_round", "value": rate, "round": 10, **where})
    config = {"study": "local_steps", "data": data, "alpha": alpha, "draw": draw, "width": 512}
    config |= {"clients": 4, "samples": 8, "dimension": 20}
    return records.add(config, rows)


def training(records, policy, seed, losses, accuracy=0.8, status="complete", clients=CLIENTS):
    """Losses: of the first client by round; the second's are half of it, the server's 100."""
    rows = []
    for k, loss in enumerate(losses):
        for j, name in enumerate((*clients, "server")):
            for split in ("train", "test"):
                value = 100.0 if name == "server" else loss * 0.5**j
                right = 0.0 if name == "server" else accuracy - 0.1 * j
                at = {"round": k, "client": name, "split": split}
                rows.append({"metric": "loss", "value": value, **at})
                rows.append({"metric": "accuracy", "value": right, **at})
    config = {"study": "training", "federation": "digits", "bn_policy": policy}
    config |= {"model": "compact_cnn", "schedule": {"seed": seed}}
    return records.add(config, rows, status)


def everything():
    """Every part, two sources, widths and draws, three seeds and one that diverged."""
    from synthetic_findings import proofs, read

    records = Records()
    for data in ("digits", "gaussian"):
        cells = {(2, 8): [(1.0, 2.0)] * 2, (4, 8): [(1.0, 3.0), (2.0, 3.0)], (4, 4): [(3.0, 4.0)]}
        corollary(records, cells, data)
        regime(records, [(1.0, 9.0), (1.0, 16.0)], data=data)
        for width in (512, 8192):
            for draw in (0, 1):
                for alpha in (2.0, 10.0):
                    descent(records, alpha=alpha, width=width, draw=draw, data=data)
    spectrum(records)
    proofs(records)
    for data in ("digits", "gaussian"):
        read(records, [(1.5, 1.2, 1.1), (1.4, 0.9, 1.2)], data=data)
    for width in (256, 1024):
        drifted(records, width=width)
    for alpha in (2.0, 10.0):
        locally(records, alpha=alpha)
    for seed in range(3):
        training(records, "aggregated", seed, [4.0, 2.0 + 0.1 * seed, 1.0 + 0.1 * seed], 0.7)
        training(records, "client_specific", seed, [4.0, 1.0, 0.4], 0.8 + 0.01 * seed)
    return training(records, "aggregated", 7, [4.0, 9.0], status="diverged")


def student(values):
    """Mean and ends of the interval, by the statistics that have tests of their own."""
    found = mean_interval(values)
    return found.mean, found.lower, found.upper
