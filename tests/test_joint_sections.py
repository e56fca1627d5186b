"""Sections that join theory and training, on toy clients; and clients unlike in classes."""

import json
from dataclasses import replace

import pytest
import torch

import paper_repro
import theory.studies
from empirical import Client, Split
from empirical.data import FEDERATIONS
from empirical.studies import Setting
from empirical.studies.presets import PRESETS
from theory.studies import Study

FEW = ("--preset", "quick", "--federation", "toy", "--seeds", 1, "--folds", 1)


def manifests(out):
    found = [json.loads(path.read_text("utf-8")) for path in out.glob("runs/*/manifest.json")]
    return {manifest["hash"]: manifest for manifest in found}


@pytest.fixture
def small(toy, monkeypatch):
    """Train one round; of the theory's own studies keep the one that takes no time."""
    study = Study("graphs", {"study": "graphs", "data": "gaussian", "seed": 0}, 0.1)
    for name in ("generalization", "causal"):
        size = replace(PRESETS["quick"].sizes[name], rounds=1, seeds=1)
        monkeypatch.setitem(PRESETS["quick"].sizes, name, size)
        monkeypatch.setattr(theory.studies, f"{name}_plan", lambda _: [study])
    monkeypatch.setattr("empirical.studies.sections.structural_trainings", lambda _: [])
    return toy


@pytest.mark.parametrize(
    ("section", "late", "metrics"),
    [
        ("generalization", "divergence", {"divergence", "term", "kind", "external_error"}),
        ("causal", "label_shift", {"accuracy"}),
    ],
)
def test_trainings_come_first_and_what_needs_them_follows(
    cli, small, tmp_path, section, late, metrics
):
    outcome = cli("--section", section, *FEW, "--out", tmp_path)
    assert outcome.code == 0 and outcome.err == ""
    first, second = small.waves
    ((_, rows, shown, *_),) = small.shown
    kinds = {run: manifest["config"]["study"] for run, manifest in shown.items()}
    assert set(kinds.values()) == {"training", late, "graphs"}
    assert len(second) == list(kinds.values()).count(late) == list(kinds.values()).count("training")
    assert len(first) == len(second) + 1
    behind = rows.filter(rows["run"].is_in([run for run, kind in kinds.items() if kind == late]))
    assert metrics <= set(behind["metric"])
    small.forget()
    assert cli("--section", section, *FEW, "--out", tmp_path).code == 0
    assert small.waves == []


def test_what_follows_a_diverged_training_is_diverged_too(cli, small, tmp_path, monkeypatch):
    usual = Setting.schedule
    monkeypatch.setattr(Setting, "schedule", lambda *a, **k: usual(*a, **{**k, "lr": 1e30}))
    outcome = cli("--section", "generalization", *FEW, "--out", tmp_path)
    assert outcome.code == 0 and "4 of 5 runs diverged" in outcome.out
    lost = [m for m in manifests(tmp_path).values() if m["status"] == "diverged"]
    assert len(lost) == 4 and {m["diverged_in_round"] for m in lost} == {1}


def recoloured(clients):
    """Give the clients' images one client the classes 0 to 4 and the others 5 to 9."""

    def relabelled(split, first):
        labels = first + torch.arange(len(split)) % 5
        return Split(split.images, labels, split.classes)

    return [
        Client(c.name, *(relabelled(split, 5 * (k > 0)) for split in (c.train, c.test)))
        for k, c in enumerate(clients)
    ]


def test_clients_unlike_in_their_classes_are_mentioned_and_noted(cli, small, tmp_path, monkeypatch):
    plain = cli("--section", "internal", *FEW[:-2], "--out", tmp_path / "plain")
    assert plain.code == 0 and "classes differ" not in plain.out
    known = FEDERATIONS["toy"]
    odd = recoloured(known.load(None, None))
    monkeypatch.setitem(FEDERATIONS, "toy", replace(known, load=lambda *_: odd))
    paper_repro.federation.cache_clear()
    outcome = cli("--section", "internal", *FEW[:-2], "--out", tmp_path / "odd")
    paper_repro.federation.cache_clear()
    assert outcome.code == 0
    said = " ".join(outcome.out.split())
    assert "The clients' classes differ" in said and "test-time batch norm assumes" in said
    for manifest in manifests(tmp_path / "odd").values():
        assert any("classes differ" in note for note in manifest["notes"])
    assert manifests(tmp_path / "odd")
