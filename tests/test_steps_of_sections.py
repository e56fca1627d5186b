"""Sections that share a folder of results: none is shown another's runs of another step size."""

import json

COMMAND = ("--preset", "quick", "--federation", "toy", "--section")


def test_no_section_is_shown_runs_of_another_step(cli, toy, tmp_path):
    few = ("--seeds", 1, "--folds", 1, "--out", tmp_path)
    for section in ("analysis", "compatibility"):
        assert cli(*COMMAND, section, *few).code == 0
    assert cli(*COMMAND, "internal", *few[:2], *few[4:]).code == 0

    def steps(found):
        configs = [manifest["config"] for manifest in found.values()]
        return {config.get("training", config)["schedule"]["lr"] for config in configs}

    paths = tmp_path.glob("runs/*/manifest.json")
    every = {path: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    assert steps(every) == {0.01, 0.1}
    found = {name: (set(rows["run"]), shown) for name, rows, shown, *_ in toy.shown}
    assert steps(found["analysis"][1]) == {0.01, 0.1}
    for name in ("compatibility", "internal"):
        ran, shown = found[name]
        assert ran == set(shown) and steps(shown) == {0.01}
