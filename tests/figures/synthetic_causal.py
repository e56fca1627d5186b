"""Records of the section `causal` made by hand, laid out as the program writes them."""

import math

from synthetic import Records
from synthetic_experiments import training_config

from figures.causal import content, summarise
from figures.tables import as_text_rows

OPTIONS = {"section": "causal", "preset": "default", "federation": "digits", "seeds": None}
OPTIONS |= {"device": "cpu", "theory_only": False}
SCENARIOS = ("shift", "label shift", "confounded")
STRENGTHS = (0.0, 1.0, 2.0, 3.0)
BATCHES = (4, 8, 16, 32, 64, 128)
RATIOS = (1, 2, 5, 10, 20, 50)
HELD = ("mnist", "optdigits", "mnist-m", "synth-digits")
GRAPHS = {
    "train aggregated": ("X D R F Y", "DX DR XR RF FY", "DF", "", ""),
    "train client_specific": ("X D R F Y", "DX DR XR RF FY", "", "", ""),
    "test": ("X D R S F Y", "DX DR XR RF RS SF FY", "", "", ""),
    "test do(S)": ("X D R S F Y", "DX DR XR RF SF FY", "", "RS", "S"),
    "test do(F)": ("X D R S F Y", "DX DR XR RS FY", "", "RF SF", "F"),
}
STEPS = {
    "train aggregated": (("separation.D", "(D ⊥ F)", False, "D → F"),),
    "train client_specific": (
        ("separation.D", "(D ⊥ F)", False, "D → R → F"),
        ("backdoor.X", "P(Y | do(X)) = Σ_d P(Y | X, d) P(d)", True, ""),
    ),
    "test": (
        ("separation.S", "(S ⊥ Y | F)", True, ""),
        ("rule2.S", "P(F | do(S)) = P(F | S)", False, "S ← R → F"),
        ("rule2.S|R", "P(F | do(S), R) = P(F | S, R)", True, ""),
        ("mixture", "P(Y | do(S)) = Σ_f P(Y | do(f)) P(f | do(S))", True, ""),
        ("backdoor.X", "P(Y | do(X)) = Σ_d P(Y | X, d) P(d)", True, ""),
    ),
    "test do(S)": (("rule1.D.S", "P(Y | do(S), D) = P(Y | do(S))", False, "D → R → F → Y"),),
    "test, label shift": (
        ("separation.S", "(S ⊥ Y | F)", False, "S ← R ← D → Y"),
        ("rule2.S", "P(F | do(S)) = P(F | S)", False, "S ← R → F"),
        ("mixture", "P(Y | do(S)) = Σ_f P(Y | do(f)) P(f | do(S))", False, "F ← R ← D → Y"),
    ),
}


def graphs(records, steps=None, drawn=None):
    """The five graphs of Fig. 2, and steps by the graph that they are checked in."""
    rows = []
    for name, (nodes, solid, dashed, removed, changed) in (drawn or GRAPHS).items():
        for k, node in enumerate(nodes.split()):
            kind = "intervened" if node in changed else "latent" if node == "D" else "observed"
            at = {"variant": name, "client": node}
            rows.append({"metric": "node", "value": float(k), "note": kind, **at})
        for kind, edges in (("solid", solid), ("dashed", dashed), ("removed", removed)):
            for source, target in edges.split():
                at = {"variant": name, "client": source, "split": target}
                rows.append({"metric": "edge", "value": 1.0, "note": kind, **at})
    for name, checked in (STEPS if steps is None else steps).items():
        for step, words, holds, path in checked:
            at = {"variant": name, "client": step, "split": words}
            rows.append({"metric": "step", "value": float(holds), "note": path, **at})
    return records.add({"study": "graphs", "data": "gaussian", "seed": 0}, rows)


def phi(x):
    return 0.5 * math.erfc(x / math.sqrt(2))


def answers(scenario, strength):
    """Errors as a model with signal 1.2 and a nuisance of this strength would have them."""
    clean, blind = phi(1.2), phi(1.2 / (1 + 0.5 * strength))
    own = {"shift": clean, "label shift": phi(1.2 / (1 + 0.12 * strength))}
    own["confounded"] = phi(1.2 / (1 + 0.3 * strength))
    return {
        "observational": min(0.5, blind + 0.03 * strength * (scenario == "confounded")),
        "backdoor": phi(1.2 / (1 + 0.35 * strength)),
        "do_f": clean,
        "do_s": own.get(scenario, clean),
        "bayes": clean - 0.02 * (scenario == "label shift") * strength,
    }


def structural(records, scenario="shift", strengths=STRENGTHS, batches=BATCHES, **special):
    """Special: off (standard errors between simulated and exact values), simulations."""
    s = {"off": 0.5, "simulations": 20_000, **special}
    rows = []
    for strength in strengths:
        found = {(a, None): v for a, v in answers(scenario, strength).items()}
        full = found["do_s", None]
        found |= {("do_s", n): full + (0.5 - full) * 0.6 / math.sqrt(n) for n in batches}
        for (answer, n), value in found.items():
            at = {"variant": answer, "split": scenario, "parameter": strength, "samples": n}
            rows.append(_ends("risk", value, 1e-9, **at))
            half = 1.96 * math.sqrt(value * (1 - value) / s["simulations"])
            rows.append(_ends("risk_simulated", value + s["off"] * half / 1.96, half, **at))
    config = {"study": "structural", "data": "gaussian", "scenario": scenario, "seed": 0}
    config |= {"strengths": list(strengths), "batch_sizes": list(batches)}
    return records.add(config | {"simulations": s["simulations"]}, rows)


def _ends(metric, value, half, **at):
    return {"metric": metric, "value": value, "lower": value - half, "upper": value + half, **at}


def trained(records, scenario, policy, seed, strength=3.0, *, diverged=None, batches=BATCHES):
    """A network on the model: aggregated BN near P(Y | X), client-specific BN near do(S)."""
    exact, wobble = answers(scenario, strength), 0.004 * ((7 * seed) % 5 - 2)
    wobble *= -0.5 if policy == "aggregated" else 1
    config = {"study": "structural_training", "data": "gaussian", "scenario": scenario}
    config |= {"strength": strength, "bn_policy": policy, "rounds": 40, "seed": seed}
    if policy == "aggregated":
        errors = {None: exact["observational"] + 0.02 + wobble}
        far = {"observational": 0.06, "backdoor": 0.12, "do_f": 0.2 + 0.02 * strength, "do_s": 0.2}
    else:
        full = exact["do_s"] + 0.01
        errors = {n: full + (0.5 - full) * 0.7 / math.sqrt(n) + wobble for n in batches}
        far = {"observational": 0.2, "backdoor": 0.14, "do_f": 0.03 + exact["do_s"] / 3}
        far |= {"do_s": 0.03}
    rows = []
    for n, error in errors.items():
        at = {"variant": policy, "split": scenario, "parameter": strength, "samples": n}
        rows.append({"metric": "risk", "value": error, **at})
        if n:
            rows.append({"metric": "batch_risk", "value": error + 0.3 / n, **at})
        for k, (answer, value) in enumerate(far.items()):
            value += wobble * (1 + 0.1 * k) + (0.2 / n if n else 0.0)
            rows.append({"metric": "distance", "value": value, "note": answer, **at})
    records.add(config, [] if diverged else rows, "diverged" if diverged else "complete")
    if diverged:
        list(records.manifests.values())[-1]["diverged_in_round"] = diverged
    return records


def skewed(records, client, seed, *, ratios=RATIOS, loss=0.06, diverged=None):
    """Accuracy `loss` · log10(ratio) below a balanced stream's; the server's is 10 points below."""
    config = training_config("fedavg", "client_specific", seed, client)
    base, rows = 0.9 - 0.1 * (HELD.index(client) if client in HELD else 4), []
    for ratio in ratios:
        balanced = base + 0.005 * seed + 0.004 * math.log(ratio)
        lost = (loss + 0.004 * seed) * math.log10(ratio)
        found = {"adapted": balanced - lost, "balanced": balanced, "server": balanced - 0.1}
        for way, value in found.items():
            at = {"client": client, "variant": way, "parameter": float(ratio)}
            samples = int(1000 / (1 + math.log(ratio)))
            rows.append({"metric": "accuracy", "value": value, "samples": samples, **at})
    full = {"study": "label_shift", "training": config, "held_out": client}
    full |= {"ratios": list(ratios)}
    records.add(full, [] if diverged else rows, "diverged" if diverged else "complete")
    if diverged:
        list(records.manifests.values())[-1]["diverged_in_round"] = diverged
    return records


def everything(seeds=3, strengths=(1.0, 3.0)):
    """All parts, all scenarios; a training on the model and one on images diverge."""
    records = graphs(Records())
    for scenario in SCENARIOS:
        structural(records, scenario)
        for strength in strengths:
            for policy in ("aggregated", "client_specific"):
                for seed in range(seeds):
                    gone = scenario == "confounded" and policy == "aggregated" and seed == 2
                    trained(records, scenario, policy, seed, strength, diverged=5 if gone else None)
    for client in HELD:
        for seed in range(seeds):
            gone = 9 if client == "optdigits" and seed == 1 else None
            skewed(records, client, seed, diverged=gone)
    return records


def made(records):
    return summarise(*records.both)


def claims(records):
    return {claim.id: claim for claim in content(made(records)).claims}


def table(records, name):
    """The rows of a table as people see them."""
    (found,) = [t for t in content(made(records)).tables if t.name == name]
    return as_text_rows(found.frame if found.shown is None else found.shown, found.layout)[1]


def nets(scenario="shift", seeds=3, records=None, **special):
    records = records or Records()
    for seed in range(seeds):
        for policy in ("aggregated", "client_specific"):
            trained(records, scenario, policy, seed, **special)
    return records
