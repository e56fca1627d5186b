"""Records of the experiments made by hand, laid out as the program writes them."""

from synthetic import Records

OPTIONS = {"section": "compatibility", "preset": "default", "federation": "digits", "seeds": None}
OPTIONS |= {"device": "cpu", "theory_only": False}
CLIENTS = ("mnist", "optdigits", "mnist-m", "synth-digits")
FOLDS = ("mnist-m", "synth-digits")
SCHEDULE = {"rounds": 20, "local_epochs": 1, "batch_size": 32, "lr": 0.01, "participation": 1.0}
SCHEDULE |= {"weights": "size", "seed": 0, "device": "cpu", "measure_every": 5}
VARIANTS = ("server", "adapted", "batch", "source", "identity", "total")
LOSSES = {0: 2.4, 5: 1.2, 10: 0.8, 15: 0.6, 20: 0.5}


def training_config(algorithm, policy, seed=0, held_out=None, **more):
    """The config of a training; `more` are settings, further keys of the config or the schedule."""
    schedule = {**SCHEDULE, "seed": seed}
    config = {"study": "training", "algorithm": algorithm, "settings": more.pop("settings", {})}
    schedule |= {key: more.pop(key) for key in list(more) if key in schedule}
    config |= {"bn_policy": policy, "model": "compact_cnn", "schedule": schedule}
    config |= {"federation": "digits", "data_sha256": "0" * 64, **more}
    return config | ({} if held_out is None else {"held_out": held_out})


def trained(records, config, accuracy, losses=None, diverged=None, **manifest):
    """A training. `accuracy`: a number for all, or client -> accuracy after the last round.

    Test accuracy at other rounds is that × (1 − loss/4); losses: round -> training loss, the
    same for every client. The server has accuracy 0 and loss 100. `diverged`: the round in which
    it did; then only rounds before are there. `manifest`: further keys of the manifest.
    """
    losses = losses or LOSSES
    clients = [name for name in CLIENTS if name != config.get("held_out")]
    last, rows = max(losses), []
    for k, loss in losses.items():
        if diverged is not None and k >= diverged:
            continue
        for name in (*clients, "server"):
            right = accuracy[name] if isinstance(accuracy, dict) and name in accuracy else accuracy
            right = 0.0 if name == "server" else right * (1.0 if k == last else 1 - loss / 4)
            at = {"round": k, "client": name}
            for split in ("train", "test"):
                value = 100.0 if name == "server" else loss
                rows.append({"metric": "loss", "value": value, "split": split, **at})
                rows.append({"metric": "accuracy", "value": right, "split": split, **at})
            if name != "server" and k:
                rows.append({"metric": "batch_loss", "value": loss, "split": "train", **at})
    status = "complete" if diverged is None else "diverged"
    records.add(config, rows, status)
    added = {} if diverged is None else {"diverged_in_round": diverged}
    list(records.manifests.values())[-1].update(**added, **manifest)
    return records


def served(records, config, accuracies, diverged=None, **special):
    """An external run of this training. `accuracies`: variant -> accuracy.

    Special: tau, samples, order (the stream's).
    """
    at = {"tau": 0.9, "samples": 32, "order": "shuffled", **special}
    rows = []
    for variant, value in accuracies.items():
        how = {"variant": variant, "split": "test", "client": config["held_out"]}
        if variant != "server":
            tau = 0.0 if variant == "batch" else at["tau"]
            how |= {"parameter": tau, "samples": at["samples"], "note": at["order"]}
        rows.append({"metric": "accuracy", "value": value, **how})
        rows.append({"metric": "loss", "value": 1.0 - value, **how})
    full = {"study": "external", "training": config, "held_out": config["held_out"]}
    full |= {"serving": [{"variant": variant, **at} for variant in accuracies]}
    records.add(full, [] if diverged else rows, "diverged" if diverged else "complete")
    if diverged:
        list(records.manifests.values())[-1]["diverged_in_round"] = diverged
    return records


def pair(records, algorithm, seed, aggregated, specific, *, folds=FOLDS, gain=0.8, **more):
    """Both policies of a method with all folds and their external runs.

    `aggregated` and `specific`: (internal, external) accuracy, or the round of divergence (an
    int). External: "server" of the aggregated and "adapted" of the client-specific run have the
    number given; "server" of the latter is 0.1 below, every other variant 0.2. Client-specific
    BN has `gain` times the training losses of `LOSSES`.
    """
    for policy, given in (("aggregated", aggregated), ("client_specific", specific)):
        for fold in folds:
            config = training_config(algorithm, policy, seed, fold, **more)
            gone = given if isinstance(given, int) else None
            inside, outside = (0.0, 0.0) if isinstance(given, int) else given
            factor = 1.0 if policy == "aggregated" else gain
            losses = {k: factor * loss for k, loss in LOSSES.items()}
            trained(records, config, inside, losses, gone, chosen="the authors' defaults")
            best = "server" if policy == "aggregated" else "adapted"
            found = dict.fromkeys(VARIANTS, outside - 0.2) | {"server": outside - 0.1}
            served(records, config, found | {best: outside}, diverged=gone)
    return records


METHODS = ("fedavg", "fedprox", "scaffold", "fedadam", "fednova", "moon", "feddc", "perfedavg")


def table_one(seeds=3, folds=FOLDS, methods=METHODS):
    """All nine rows (FedBN is FedAvg × client-specific); SCAFFOLD's seed 1 diverges in round 7."""
    records = Records()
    for k, name in enumerate(methods):
        for seed in range(seeds):
            wobble = 0.004 * (seed - 1) * (1 + k % 3)
            low = (0.80 - 0.01 * k + wobble, 0.55 + 0.01 * k + wobble)
            high = (0.84 - 0.008 * k - wobble / 2, 0.60 + 0.003 * k * (-1) ** k + wobble / 3)
            gone = 7 if name == "scaffold" and seed == 1 else None
            gain = 0.8 + 0.01 * seed + 0.02 * k
            pair(records, name, seed, gone or low, high, folds=folds, gain=gain)
    return records


def coarsely(figure, stem):
    """Stands for `style.save`, to be fast: few dots, and no PDF worth the name."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    pdf, png = (stem.with_name(f"{stem.name}.{kind}") for kind in ("pdf", "png"))
    figure.savefig(png, dpi=30)
    pdf.touch()
    return pdf, png
