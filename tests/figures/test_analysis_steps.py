"""Step sizes in the section `analysis`: what they show, and that they change nothing else."""

import pytest
from synthetic import Records, student
from synthetic_analysis import FOUR, POLICIES, alone, everything, made, shown, trained, usual
from synthetic_experiments import training_config

from figures.analysis import content
from figures.analysis.sweeps import usual_lr
from figures.experiments.frame import runs


def of_other_steps(records, seed, lr=0.1):
    """Runs like those of every part, but with another step size and all accuracies 0.99 or 0.01."""
    for number in (1, 4, 8, 16):
        for policy in POLICIES:
            rounds = {"rounds": 32 // number, "local_epochs": number}
            trained(records, training_config("fedavg", policy, seed, lr=lr, **rounds), 0.99)
    usual(records, seed, 0.99, 0.01, lr=lr)
    alone(records, seed, 0.99, lr=lr)
    for share in (0.5, 0.3):
        usual(records, seed, 0.99, 0.01, lr=lr, fraction=share)
    for fold in ("mnist-m", "optdigits"):
        for policy in FOUR:
            config = training_config("fedavg", policy, seed, fold, lr=lr)
            trained(records, config, 0.99)
            at = {"metric": "accuracy", "client": fold, "split": "test", "note": "shuffled"}
            how = {"variant": "adapted", "parameter": 0.9, "samples": 32}
            full = {"study": "external", "training": config, "held_out": fold, "serving": []}
            records.add(full, [{"value": 0.99, **at, **how}])
    return records


def test_steps_are_compared_at_one_schedule_with_what_is_ahead_at_each():
    records = Records()
    for seed in range(3):
        usual(records, seed, 0.80, 0.86 + 0.01 * seed)
        usual(records, seed, 0.90, 0.92, lr=0.03)
        usual(records, seed, 0.91, 0.93 - 0.01 * seed, lr=0.1)
        usual(records, seed, 0.5, 0.6, fraction=0.5)  # that 0.01 is usual
        usual(records, seed, 0.1, 0.2, rounds=40)  # another schedule: no part of it
        alone(records, seed, 0.7)  # only at the usual step: no part of it
    summary = made(records)
    sweep = summary.steps
    assert summary.lr == 0.01
    assert sweep.values == [0.01, 0.03, 0.1]
    assert sweep.rounds == {0.01: 20, 0.03: 20, 0.1: 20}
    assert set(sweep.cells) == {(lr, policy) for lr in sweep.values for policy in POLICIES}
    assert sweep.cells[0.1, "client_specific"].values == pytest.approx({0: 0.93, 1: 0.92, 2: 0.91})
    found = sweep.ahead[0.01].difference
    assert (found.mean, found.lower, found.upper) == pytest.approx(student([0.06, 0.07, 0.08]))
    found = sweep.ahead[0.1].difference
    assert (found.mean, found.lower, found.upper) == pytest.approx(student([0.02, 0.01, 0.0]))
    rows = shown(summary, "steps").select("value", "rounds", "aggregated").rows()
    assert rows == [
        ("0.01", "20", "80.0 ± 0"),
        ("0.03", "20", "90.0 ± 0"),
        ("0.1", "20", "91.0 ± 0"),
    ]
    claims = {claim.id: claim for claim in content(summary).claims}
    assert {"steps.0.01", "steps.0.03", "steps.0.1"} <= set(claims)
    assert claims["steps.0.1"].claim == "Client-specific BN is ahead of aggregated BN with lr = 0.1"
    assert "+1.0 points over 3 seeds" in claims["steps.0.1"].measured
    words = content(summary).drawings["steps"].caption
    assert "after 20 rounds" in words and "at lr = 0.01." in words and "over 3 seeds" in words


def test_runs_of_another_step_change_nothing_but_the_steps():
    first, last, plain = Records(), everything(), made(everything())
    for seed in range(3):
        of_other_steps(first, seed)
        of_other_steps(last, seed)
    # Before the others, too: nothing may depend on which come first.
    count = len(first.manifests)
    for number, (run, manifest) in enumerate(everything().manifests.items()):
        assert run == f"{number:016x}"
        first.manifests[f"{number + count:016x}"] = manifest
    first.rows += [{**r, "run": f"{int(r['run'], 16) + count:016x}"} for r in everything().rows]
    for records in (first, last):
        mixed = made(records)
        assert mixed.lr == plain.lr == 0.01
        for part in ("grid", "epochs", "data", "domains", "choice"):
            assert getattr(mixed, part) == getattr(plain, part), part
        assert plain.steps.values == [] and mixed.steps.values == [0.01, 0.1]


def test_the_usual_step_is_that_of_most_runs_the_smaller_of_two():
    records = usual(usual(Records(), 0, lr=0.1), 0)
    assert usual_lr(runs(records.manifests)) == 0.01
    alone(records, 0, 0.5, lr=0.1)
    assert usual_lr(runs(records.manifests)) == 0.1
    assert usual_lr(runs({})) is None
