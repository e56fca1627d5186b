"""The sections of the experiments on a toy federation: waves, reuse, interruptions, refusals."""

import json
import shutil
from pathlib import Path

import pytest

import paper_repro
from empirical import build_algorithm
from empirical.studies import GRID, Setting
from empirical.studies.grid import Grid
from empirical.studies.presets import PRESETS, Size
from figures.experiments.product import untuned
from figures.pending import needed
from figures.records import RunStore, config_hash

HOPELESS = 1e30
"""A step size at which the first step already overflows float32."""

EXPERIMENTS = ("compatibility", "internal", "external", "analysis")
RUNS = 16
HELD_OUT = ("compatibility", "external", "analysis")


def command(section, *more):
    return ("--section", section, "--preset", "quick", "--federation", "toy", *more)


def manifests(out):
    paths = sorted(out.glob("runs/*/manifest.json"))
    found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return {manifest["hash"]: manifest for manifest in found}


def of_study(out, study):
    return {run: m for run, m in manifests(out).items() if m["config"]["study"] == study}


def changes(out):
    return {path.parent.name: path.stat().st_mtime_ns for path in out.glob("runs/*/manifest.json")}


@pytest.fixture
def done(toy_finished, toy, tmp_path):
    """Give a copy of a finished `compatibility`, to be damaged or completed."""
    return Path(shutil.copytree(toy_finished[0], tmp_path / "results"))


def test_trainings_come_first_and_are_served_from_afterwards(toy_finished):
    out, toy, outcome = toy_finished
    assert outcome.code == 0 and outcome.err == "" and "diverged" not in outcome.out
    trained, served = toy.waves
    # FedAvg with two policies, two seeds, two folds; FedBN is one of them.
    assert len(trained) == len(served) == RUNS // 2 == 8 and f"{RUNS} runs" in outcome.out
    assert sorted(served) == sorted(f"outside: {label}" for label in trained)
    ((name, rows, shown, folder, options),) = toy.shown
    assert name == "compatibility" and folder == out / "compatibility"
    assert set(rows["run"].unique()) == set(shown) == set(manifests(out))
    assert (options["section"], options["folds"]) == ("compatibility", None)


def test_what_a_run_outside_leaves(done):
    for manifest in of_study(done, "external").values():
        config = manifest["config"]
        rows = RunStore(done / "runs").read(manifest["hash"]).to_dicts()
        ways = [
            (w["variant"], w["momentum"], w["batch_size"], w["order"]) for w in config["serving"]
        ]
        where = ("variant", "parameter", "samples", "note")
        assert [tuple(row[name] for name in where) for row in rows[::2]] == ways
        assert {row["client"] for row in rows} == {config["held_out"]}
        assert {row["split"] for row in rows} == {"test"}
        assert [row["metric"] for row in rows] == ["loss", "accuracy"] * len(ways)
        source = manifests(done)[needed(config)]
        assert source["config"] == {**config["training"], "version": paper_repro.__version__}
        clients = {row["client"] for row in RunStore(done / "runs").read(source["hash"]).to_dicts()}
        assert config["held_out"] not in clients and len(clients) == 3  # and the server
        assert source["chosen"] in ("the authors' defaults", "nothing to choose")
        assert manifest["data"] == source["data"]


def test_a_second_time_computes_nothing(cli, toy, done):
    before = changes(done)
    outcome = cli(*command("compatibility"), "--out", done)
    assert outcome.code == 0 and f"{RUNS} already there" in outcome.out
    assert toy.waves == [] and changes(done) == before


def test_sections_share_their_runs(cli, toy, done):
    outcome = cli(*command("external", "--folds", "all"), "--out", done)
    assert outcome.code == 0 and f"24 runs, {RUNS} already there" in " ".join(outcome.out.split())
    assert len(toy.labels) == 8 and all("without toy-0" in label for label in toy.labels)


def test_an_interrupted_second_wave_goes_on_from_there(cli, toy, tmp_path, monkeypatch):
    compute, count = paper_repro.compute, []

    def interrupted(tasks, workers):
        count.append(len(tasks))
        if len(count) == 2:
            compute(tasks[:3], workers)
            raise KeyboardInterrupt
        compute(tasks, workers)

    monkeypatch.setattr(paper_repro, "compute", interrupted)
    assert cli(*command("compatibility"), "--out", tmp_path).code == 130
    trained = {run: changes(tmp_path)[run] for run in of_study(tmp_path, "training")}
    toy.forget()
    monkeypatch.setattr(paper_repro, "compute", compute)
    outcome = cli(*command("compatibility"), "--out", tmp_path)
    assert outcome.code == 0 and "11 already there" in outcome.out
    assert [len(wave) for wave in toy.waves] == [5]
    assert all(label.startswith("outside: ") for label in toy.labels)
    assert {run: changes(tmp_path)[run] for run in trained} == trained


def one_of(out):
    """Find a run outside the federation and the training that it was served from."""
    run, manifest = next(iter(of_study(out, "external").items()))
    return run, needed(manifest["config"])


def test_a_missing_run_outside_is_computed_alone(cli, toy, done):
    run, _ = one_of(done)
    before = changes(done)
    shutil.rmtree(done / "runs" / run)
    assert cli(*command("compatibility"), "--out", done).code == 0
    assert len(toy.labels) == 1
    assert {r for r, moment in changes(done).items() if moment != before[r]} == {run}


def flipped(path):
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])


@pytest.mark.parametrize("damage", [flipped, lambda path: path.unlink()], ids=["flipped", "gone"])
def test_a_checkpoint_that_is_needed_and_damaged_is_made_again(cli, toy, done, damage):
    run, source = one_of(done)
    before = changes(done)
    content = (done / "runs" / source / "checkpoint.safetensors").read_bytes()
    damage(done / "runs" / source / "checkpoint.safetensors")
    shutil.rmtree(done / "runs" / run)
    outcome = cli(*command("compatibility"), "--out", done)
    assert outcome.code == 0
    said = " ".join(outcome.out.split())
    assert "checkpoint.safetensors" in said and "that training is computed again" in said
    assert "run the command again" not in said
    assert [len(wave) for wave in toy.waves] == [1, 1]
    assert {r for r, moment in changes(done).items() if moment != before[r]} == {run, source}
    assert (done / "runs" / source / "checkpoint.safetensors").read_bytes() == content


def test_a_run_outside_is_not_kept_without_its_training(cli, toy, done):
    run, source = one_of(done)
    shutil.rmtree(done / "runs" / source)
    before = changes(done)
    assert cli(*command("compatibility"), "--out", done).code == 0
    assert [len(wave) for wave in toy.waves] == [1, 1]
    assert {r for r, moment in changes(done).items() if moment != before.get(r)} == {run, source}
    assert not (done / "runs" / "replaced").exists(), "the same training gives the same results"


def test_fresh_computes_both_waves_again_and_finds_the_same(cli, toy, done):
    assert cli(*command("compatibility"), "--fresh", "--out", done).code == 0
    assert [len(wave) for wave in toy.waves] == [8, 8]
    assert not (done / "runs" / "replaced").exists()


def test_a_diverged_training_gives_a_diverged_run_outside(cli, toy, tmp_path, monkeypatch):
    schedule = Setting.schedule

    def hopeless(self, size, seed, **other):
        return schedule(self, size, seed, **({"lr": HOPELESS} if seed == 1 else {}), **other)

    monkeypatch.setattr(Setting, "schedule", hopeless)
    outcome = cli(*command("compatibility"), "--out", tmp_path)
    assert outcome.code == 0 and f"\n{RUNS // 2} of {RUNS} runs diverged: see the" in outcome.out
    for manifest in of_study(tmp_path, "external").values():
        lost = manifest["config"]["training"]["schedule"]["seed"] == 1
        assert manifest["status"] == ("diverged" if lost else "complete")
        assert (manifest["rows"] == 0) is lost
        assert manifest.get("diverged_in_round") == (1 if lost else None)
    toy.forget()
    assert cli(*command("compatibility"), "--out", tmp_path).code == 0
    assert toy.waves == [], "finished is finished"


def test_one_fold_or_all(cli, toy, tmp_path):
    assert cli(*command("compatibility", "--folds", 1, "--seeds", 1), "--out", tmp_path).code == 0
    assert len(toy.labels) == 4 and all("without toy-2" in label for label in toy.labels)
    redraw = ("--section", "compatibility", "--redraw", "--out", tmp_path)
    assert cli(*redraw, "--folds", 1).code == 0
    outcome = cli(*redraw, "--folds", 2)
    assert outcome.code == 2 and "not with --folds 2" in outcome.sentence
    for usual in (
        ("--preset", "default"),
        ("--federation", "digits"),
        ("--federation=digits",),
        ("--seeds", "None"),
        ("--folds", "None"),
    ):
        outcome = cli(*redraw, *usual)
        assert outcome.code == 2 and "draws what was shown last" in outcome.sentence
    same = ("--preset", "quick", "--federation", "toy", "--seeds", 1, "--device", "auto")
    assert cli(*redraw, *same, "--no-theory-only").code == 0


def test_a_config_that_a_plan_lists_twice_is_run_once(cli, toy, tmp_path, monkeypatch):
    section = paper_repro.SECTIONS["internal"]

    def twice(options, found):
        plan = list(section.plan(options, found))
        return [*plan, *((f"{label} again", *rest) for label, *rest in plan)]

    again = paper_repro.replace(section, plan=twice)
    monkeypatch.setitem(paper_repro.SECTIONS, "internal", again)
    assert cli(*command("internal"), "--out", tmp_path).code == 0
    assert len(toy.labels) == 4 == len(manifests(tmp_path))
    assert not any("again" in label for label in toy.labels)


def test_redrawing_all_draws_what_there_is_and_says_what_there_is_not(cli, toy, done, tmp_path):
    toy.forget()
    outcome = cli("--section", "all", "--redraw", "--out", done)
    assert outcome.code == 0 and toy.waves == []
    assert [name for name, *_ in toy.shown] == ["compatibility"]
    others = "convergence, generalization, causal, internal, external, analysis"
    assert outcome.out.startswith(f"Not drawn, since never computed: {others}.\n")
    assert sorted(path.name for path in done.iterdir()) == ["compatibility", "runs"]
    # What is there but damaged is refused as ever, and where nothing is there is nothing to do.
    (done / "internal").mkdir()
    (done / "internal" / "runs.json").write_text("{", encoding="utf-8")
    outcome = cli("--section", "all", "--redraw", "--out", done)
    assert outcome.code == 2 and "runs.json cannot be read" in outcome.sentence
    outcome = cli("--section", "all", "--redraw", "--out", tmp_path / "none")
    assert outcome.code == 2 and "nothing to redraw" in outcome.sentence
    assert not (tmp_path / "none").exists()


REFUSED = {
    "theory": (("--section", "compatibility", "--theory-only"), ("--theory-only", "convergence")),
    "all theory": (("--section", "all", "--theory-only"), ("--theory-only", "every section")),
    "no folds": (("--section", "convergence", "--folds", "2"), ("--folds", "compatibility")),
    "inside": (("--section", "internal", "--folds", "all"), ("--folds", "compatibility")),
    "zero folds": (("--section", "external", "--folds", "0"), ("at least 1", "'0'")),
    "some folds": (("--section", "external", "--folds", "some"), ("or all", "'some'")),
    "far folds": (("--section", "external", "--folds", "9"), ("1 … 4", "not 9")),
    "tune a section": (("--tune", "--section", "internal"), ("--section", "--tune")),
    "tune all": (("--tune", "--section", "all"), ("--section", "--tune")),
    "tune seeds": (("--tune", "--seeds", "3"), ("--seeds", "--tune")),
    "tune folds": (("--tune", "--folds", "3"), ("--folds", "--tune")),
    "tune theory": (("--tune", "--theory-only"), ("--theory-only", "--tune")),
    "tune redraw": (("--tune", "--redraw"), ("--redraw", "--tune")),
    "tune where": (("--tune", "--federation", "digit"), ("did you mean 'digits'",)),
}


@pytest.mark.parametrize(("arguments", "words"), REFUSED.values(), ids=REFUSED)
def test_options_that_make_no_sense_are_refused_in_one_sentence(
    cli, tmp_path, monkeypatch, arguments, words
):
    monkeypatch.setattr(paper_repro, "compute", None)
    outcome = cli(*arguments, "--out", tmp_path)
    assert outcome.code == 2
    assert all(word in outcome.sentence for word in words)
    assert list(tmp_path.iterdir()) == []


def test_points_without_labels_are_refused_where_everything_trains(cli, tmp_path):
    (tmp_path / "points.npz").write_bytes(b"")
    outcome = cli("--section", "internal", "--data", tmp_path / "points.npz", "--out", tmp_path)
    assert outcome.code == 2 and "--section convergence --theory-only" in outcome.sentence


@pytest.mark.parametrize("section", HELD_OUT)
def test_two_clients_are_too_few_to_hold_one_out(cli, toy, tmp_path, monkeypatch, section):
    from empirical.data import FEDERATIONS

    pair = paper_repro.replace(FEDERATIONS["toy"], clients=("toy-0", "toy-1"))
    monkeypatch.setitem(FEDERATIONS, "toy", pair)
    outcome = cli(*command(section), "--out", tmp_path)
    assert outcome.code == 2 and "needs at least 3" in outcome.sentence and toy.waves == []
    assert list(tmp_path.iterdir()) == []


def few_images(monkeypatch, train=24, test=20, *, last=True):
    """Give the toy federation a first or last client of so few images."""
    from federations import toy_federation

    from empirical.data import FEDERATIONS

    usual, few = toy_federation((24,) * 3, test=20), toy_federation((train,) * 3, test=test)
    clients = [*usual[:2], few[2]] if last else [few[0], *usual[1:]]
    known = paper_repro.replace(FEDERATIONS["toy"], load=lambda *_: clients)
    monkeypatch.setitem(FEDERATIONS, "toy", known)
    paper_repro.federation.cache_clear()
    return f"toy-{2 * last}"


@pytest.fixture
def forgetful():
    """Forget what other tests loaded as `toy`, and what this one did."""
    paper_repro.federation.cache_clear()
    yield
    paper_repro.federation.cache_clear()


@pytest.mark.parametrize("section", [*paper_repro.SECTIONS, "all"])
def test_one_training_image_is_refused_before_anything(
    cli, toy, forgetful, tmp_path, monkeypatch, section
):
    name = few_images(monkeypatch, train=1, last=False)
    outcome = cli(*command(section), "--out", tmp_path / "results")
    assert outcome.code == 2 and f"'{name}' has one training image" in outcome.sentence
    assert toy.waves == [] and not (tmp_path / "results").exists()


@pytest.mark.parametrize("section", [*HELD_OUT, "all"])
def test_one_test_image_is_refused_where_it_would_be_served(
    cli, toy, forgetful, tmp_path, monkeypatch, section
):
    name = few_images(monkeypatch, test=1)
    outcome = cli(*command(section), "--out", tmp_path / "results")
    assert outcome.code == 2 and f"'{name}' has one test image" in outcome.sentence
    assert toy.waves == [] and not (tmp_path / "results").exists()


def test_one_test_image_is_enough_where_nobody_is_served(
    cli, toy, forgetful, tmp_path, monkeypatch
):
    few_images(monkeypatch, test=1)
    assert cli(*command("internal"), "--out", tmp_path).code == 0 and toy.labels


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(command("analysis"), "3 training images"), (("--tune", "--federation", "toy"), "2 training")],
)
def test_too_few_images_to_be_divided_are_refused(
    cli, toy, forgetful, tmp_path, monkeypatch, arguments, words
):
    few_images(monkeypatch, train=int(words[0]), last=False)
    outcome = cli(*arguments, "--out", tmp_path / "results")
    assert outcome.code == 2 and words in outcome.sentence
    assert toy.waves == [] and not (tmp_path / "results").exists()


# ---- tuning


@pytest.fixture
def grid():
    """Give the grid, emptied; it is filled again in its order, which monkeypatch does not keep."""
    kept = dict(GRID)
    GRID.clear()
    yield GRID
    GRID.clear()
    GRID.update(kept)


@pytest.fixture
def few_settings(grid):
    """Leave one method with three settings to choose from."""
    grid["scaffold"] = Grid({"server_lr": (0.5, 1.0, HOPELESS)}, {"server_lr": 1.0})


def test_tune_tries_chooses_prints_and_writes(cli, toy, few_settings, tmp_path):
    tune = ("--tune", "--preset", "quick", "--federation", "toy", "--out", tmp_path)
    outcome = cli(*tune)
    assert outcome.code == 0 and outcome.err == ""
    (wave,) = toy.waves
    assert len(wave) == 6 and len(manifests(tmp_path)) == 6
    place = tmp_path / "tuning" / "toy.compact_cnn.json"
    record = json.loads(place.read_text(encoding="utf-8"))
    assert str(place) in outcome.out.replace("\n", "")
    scores = record["scores"]["scaffold"]
    assert [score["settings"]["server_lr"] for score in scores] == [0.5, 1.0, HOPELESS]
    assert scores[2]["score"] is None and outcome.out.count("diverged") == 3
    best = max(score["score"] for score in scores[:2])
    chosen = [score["settings"] for score in scores[:2] if score["score"] == best]
    assert record["choice"]["scaffold"] in chosen
    for manifest in manifests(tmp_path).values():
        assert manifest["config"]["validation"] is True
        assert manifest["config"]["data_sha256"] == record["data_sha256"]
    toy.forget()
    again = cli(*tune)
    assert again.code == 0 and "6 already there" in again.out and toy.waves == []


def test_tune_takes_the_net_of_the_preset(cli, toy, grid, monkeypatch, tmp_path):
    grid["scaffold"] = Grid({"server_lr": (1.0,)}, {"server_lr": 1.0})
    monkeypatch.setitem(PRESETS["paper"].sizes, "tuning", Size(rounds=1, seeds=1))
    tune = ("--tune", "--preset", "paper", "--federation", "toy", "--out", tmp_path)
    assert cli(*tune).code == 0
    (place,) = (tmp_path / "tuning").iterdir()
    assert place.name == "toy.digits_cnn.json"
    assert json.loads(place.read_text(encoding="utf-8"))["model"] == "digits_cnn"


def test_settings_that_nobody_chose_are_said_before_training_and_in_the_report(
    cli, toy, monkeypatch, tmp_path
):
    few = Size(rounds=1, seeds=1, methods=("fedavg", "fedprox", "scaffold"))
    monkeypatch.setitem(PRESETS["quick"].sizes, "internal", few)
    run = (*command("internal"), "--out", tmp_path)
    said = "The authors' defaults train fedprox, scaffold, since no settings were chosen "
    said += "for toy with compact_cnn: python paper_repro.py --tune --federation toy chooses them "
    outcome = cli(*run)
    assert outcome.code == 0 and said in outcome.out
    assert outcome.out.index(said) < outcome.out.index("internal, quick preset")
    ((_, _, shown, _, _),) = toy.shown
    assert untuned(shown) == [
        "With the authors' defaults, not chosen for these data and the net compact_cnn: "
        "FedProx, SCAFFOLD."
    ]
    assert "authors' defaults" not in cli(*run).out, "nothing trains any more"


def test_chosen_settings_and_methods_without_any_are_not_spoken_of(cli, toy, monkeypatch, tmp_path):
    from empirical import tuned

    few = Size(rounds=1, seeds=1, methods=("fedavg", "fedprox"))
    monkeypatch.setitem(PRESETS["quick"].sizes, "internal", few)
    digest = paper_repro.loaded(paper_repro.Options(federation="toy"))
    grid = {"fedprox": {"mu": [0.1, 1.0]}}
    made = {"data_sha256": digest, "model": "compact_cnn", "choice": {"fedprox": {"mu": 1.0}}}
    monkeypatch.setattr(
        tuned,
        "_committed",
        lambda name: {**made, "grid": grid} if name == "toy.compact_cnn.json" else {},
    )
    outcome = cli(*command("internal"), "--out", tmp_path)
    assert outcome.code == 0 and "--tune" not in outcome.out
    ((_, _, shown, _, _),) = toy.shown
    assert untuned(shown) == []
    found = {m["config"]["algorithm"]: (m["chosen"], m["at_edge"]) for m in shown.values()}
    assert found == {
        "fedavg": ("nothing to choose", []),
        "fedprox": ("chosen on validation images", ["mu"]),
    }


def test_tuning_never_sees_the_test_images(cli, toy, few_settings, tmp_path, monkeypatch):
    from empirical import studies

    seen, train = [], studies.train_study

    def spy(config, clients, add, report):
        from empirical.studies import study_clients

        seen.append({len(c.test) for c in study_clients(config, clients)})
        return train(config, clients, add, report)

    monkeypatch.setattr(studies, "train_study", spy)
    tune = ("--tune", "--preset", "quick", "--federation", "toy", "--out", tmp_path)
    assert cli(*tune).code == 0
    # A fifth of 24 training images; the test split has 40.
    assert seen and all(sizes == {5} for sizes in seen)


# ---- as users see it


@pytest.mark.parametrize(
    "section",
    [
        "internal",
        *(pytest.param(name, marks=pytest.mark.slow) for name in EXPERIMENTS if name in HELD_OUT),
    ],
)
def test_a_tiny_section_end_to_end(cli, toy, tmp_path, monkeypatch, section):
    show = paper_repro.functools.partial(paper_repro.show, section)
    real = paper_repro.replace(paper_repro.SECTIONS[section], present=show)
    monkeypatch.setitem(paper_repro.SECTIONS, section, real)
    outcome = cli(*command(section), "--out", tmp_path)
    assert outcome.code == 0, outcome.err
    folder = tmp_path / section
    assert (folder / "report.html").stat().st_size > 0
    assert list(folder.glob("tables/*.csv")) and list(folder.glob("figures/*.pdf"))
    for claim in json.loads((folder / "claims.json").read_text(encoding="utf-8")):
        assert claim["verdict"] in ("supported", "inconclusive", "contradicted")
    drawn = {path.name: path.read_bytes() for path in folder.glob("tables/*")}
    assert cli("--section", section, "--redraw", "--out", tmp_path).code == 0
    assert drawn == {path.name: path.read_bytes() for path in folder.glob("tables/*")}


def test_the_list_has_every_section_with_its_minutes(cli):
    outcome = cli("--list")
    for name in EXPERIMENTS:
        section = paper_repro.SECTIONS[name]
        assert name in outcome.out
        assert list(section.minutes) == list(paper_repro.PRESETS)
        assert ", ".join(f"{minutes:g}" for minutes in section.minutes.values()) in outcome.out


def test_a_training_s_hash_is_that_of_its_own_run(done):
    for manifest in of_study(done, "external").values():
        training = {**manifest["config"]["training"], "version": manifest["config"]["version"]}
        assert config_hash(training) in of_study(done, "training")
        assert build_algorithm(training["algorithm"], **training["settings"])
