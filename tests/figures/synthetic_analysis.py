"""Records of the section `analysis` made by hand, part by part."""

from synthetic import Records
from synthetic_experiments import CLIENTS, training_config

from figures.analysis import content, summarise

POLICIES = ("aggregated", "client_specific")
FOUR = (*POLICIES, "client_statistics", "client_affine")


def trained(records, config, accuracy, clients=CLIENTS, diverged=None):
    """A training whose clients have this accuracy after the last round (or each its own)."""
    last = config["schedule"]["rounds"]
    clients = [name for name in clients if name != config.get("held_out")]
    rows = []
    for name in (*clients, "server"):
        value = accuracy[name] if isinstance(accuracy, dict) and name != "server" else accuracy
        for round_, factor in ((0, 0.1), (last, 1.0)):
            value = 0.0 if name == "server" else value
            at = {"round": round_, "client": name, "split": "test", "metric": "accuracy"}
            if diverged is None or round_ < diverged:
                rows.append({"value": value * factor, **at})
    records.add(config, rows, "complete" if diverged is None else "diverged")
    if diverged is not None:
        list(records.manifests.values())[-1]["diverged_in_round"] = diverged
    return records


def epochs(records, seed, gains, total=32, base=0.7, diverged=None):
    """Gains: E -> client-specific minus aggregated."""
    for number, gain in gains.items():
        for policy, value in zip(POLICIES, (base, base + gain), strict=True):
            rounds = {"rounds": total // number, "local_epochs": number}
            config = training_config("fedavg", policy, seed, **rounds)
            gone = diverged if (number, policy) == (max(gains), "aggregated") else None
            trained(records, config, value, diverged=gone)
    return records


def usual(records, seed, aggregated=0.7, specific=0.75, **more):
    for policy, value in zip(POLICIES, (aggregated, specific), strict=True):
        trained(records, training_config("fedavg", policy, seed, **more), value)
    return records


def alone(records, seed, value, **more):
    return trained(records, training_config("local", "client_specific", seed, **more), value)


def adapted(records, seed, fold, values, order="shuffled", variant="adapted"):
    """Values: (τ, n_t) -> accuracy of FedBN's model."""
    config = training_config("fedavg", "client_specific", seed, fold)
    where = {"metric": "accuracy", "client": fold, "split": "test"}
    where |= {"variant": variant, "note": order}
    rows = [{"value": v, "parameter": t, "samples": n, **where} for (t, n), v in values.items()]
    serving = [order, variant, len(records.manifests)]
    full = {"study": "external", "training": config, "held_out": fold, "serving": serving}
    return records.add(full, rows)


def policies(records, seed, fold, inside, outside, names=FOUR):
    """Inside: policy -> accuracy; outside: policy -> (server, adapted, identity)."""
    for name in names:
        config = training_config("fedavg", name, seed, fold)
        trained(records, config, inside[name])
        where = {"metric": "accuracy", "client": fold, "split": "test", "note": "shuffled"}
        rows = []
        for variant, value in zip(("server", "adapted", "identity"), outside[name], strict=True):
            how = {} if variant == "server" else {"parameter": 0.9, "samples": 32}
            rows.append({"value": value, "variant": variant, **where, **how})
        full = {"study": "external", "training": config, "held_out": fold, "serving": []}
        records.add(full, rows)
    return records


def everything(seeds=3):
    records = Records()
    for seed in range(seeds):
        gains = {e: 0.02 + 0.001 * e + 0.002 * seed for e in (1, 4, 16)}
        epochs(records, seed, gains, diverged=1 if seed == 1 else None)
        usual(records, seed)
        alone(records, seed, 0.6)
        for share in (0.5, 0.1):
            low = 0.7 * share**0.2
            usual(records, seed, low, low + 0.03 + 0.001 * seed, fraction=share)
            alone(records, seed, low - 0.1 + 0.01 * seed, fraction=share)
        for k in (2, 4):
            names = [f"{name}/{i}" for name in CLIENTS for i in range(1, k + 1)]
            for policy, value in zip(POLICIES, (0.65, 0.7 + 0.01 * seed), strict=True):
                config = training_config("fedavg", policy, seed, per_domain=k)
                trained(records, config, value, names)
        for fold in ("mnist-m", "synth-digits"):
            inside = {name: 0.6 + 0.03 * k + 0.01 * seed for k, name in enumerate(FOUR)}
            outside = {name: (0.4, 0.5 + 0.01 * seed, 0.3) for name in FOUR}
            policies(records, seed, fold, inside, outside)
            for order in ("shuffled", "sorted", "drifting"):
                grid = {(t, n): 0.5 + 0.1 * t - 0.2 / n + 0.01 * seed for t in (0.0, 0.9)
                        for n in (8, 32)}  # fmt: skip
                adapted(records, seed, fold, grid, order)
    return records


def made(records):
    return summarise(*records.both)


def shown(summary, name):
    (table,) = [t for t in content(summary).tables if t.name == name]
    return table.shown
