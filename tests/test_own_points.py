"""The theory on a user's own points from the command line: what it prints, leaves and refuses."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import paper_repro
import theory.studies

THEORY = ("--section", "convergence", "--preset", "quick", "--theory-only")
SIZES = (12, 15, 10)
NAMES = ("St. Mary's <b>", "a/b [red]", "$x$ 日本")


def arrays(seed=0):
    random = np.random.default_rng(seed)
    return random.standard_normal((sum(SIZES), 3)), np.repeat(NAMES, SIZES)


def few(preset, data, given=None):
    """Only what runs on the user's points as a whole."""
    studies = PLAN(preset, data, given)
    return [s for s in studies if s.config["data"] == data and s.config["study"] in KEPT]


PLAN = theory.studies.convergence_plan
KEPT = ("corollary", "spectrum")


@pytest.fixture(autouse=True)
def short(request, monkeypatch):
    if "slow" not in request.keywords:
        monkeypatch.setattr(theory.studies, "convergence_plan", few)


@pytest.fixture(scope="module")
def computed_once(cli, tmp_path_factory):
    """Give the file of points, the folder of results, and what the command printed."""
    folder = tmp_path_factory.mktemp("own")
    x, client = arrays()
    np.savez(folder / "My Points.npz", x=x, client=client)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theory.studies, "convergence_plan", few)
        command = (*THEORY, "--data", folder / "My Points.npz", "--workers", 1)
        return folder / "My Points.npz", folder / "out", cli(*command, "--out", folder / "out")


@pytest.fixture
def own(computed_once, tmp_path):
    """Give copies of the file and of the results, to be changed."""
    file, out, _ = computed_once
    copy = shutil.copy(file, tmp_path / file.name)
    return Path(copy), Path(shutil.copytree(out, tmp_path / "out"))


def claims(out):
    text = (out / "convergence" / "claims.json").read_text(encoding="utf-8")
    return {claim["id"]: claim for claim in json.loads(text)}


def manifests(out):
    paths = sorted(out.glob("runs/*/manifest.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def test_it_says_what_it_read_before_it_starts(computed_once):
    _, _, outcome = computed_once
    assert outcome.code == 0 and outcome.err == ""
    first, second = outcome.out.splitlines()[:2]
    assert first == "points of my-points: 37 points of 3 clients, 10 to 15 each, in d = 3"
    assert second.startswith("convergence, quick preset: 2 runs")


def test_claims_tables_and_figures_name_the_points(computed_once):
    _, out, outcome = computed_once
    found = claims(out)
    whole = found["corollary-iii.6.own-my-points"]
    assert "all 37 points of my-points" in whole["claim"]
    assert whole["verdict"] == "certified"
    assert found["corollary-iii.6.draws.own-my-points"]["verdict"] == "certified"
    folder = out / "convergence"
    for name in ("smallest_eigenvalues", "spectra"):
        for kind in ("pdf", "png"):
            assert (folder / "figures" / f"{name}.{kind}").stat().st_size > 0
    table = (folder / "tables" / "corollary.csv").read_text(encoding="utf-8")
    assert "own-my-points" in table
    report = (folder / "report.html").read_text(encoding="utf-8")
    for words in ("37 points of 3 clients", "--theory-only", "--data", "Spectra on all points"):
        assert words in report
    for words in ("training image", "digits", "CNN federation", "<b>"):
        assert words not in report.split("<style")[0] + report.split("</style>")[-1], words
    assert "images" not in " ".join(claim["claim"] for claim in found.values())
    assert "[red]" not in outcome.out


def test_every_run_records_the_hash_of_the_points(computed_once):
    file, out, _ = computed_once
    fingerprint = theory.read_points(file).fingerprint
    for manifest in manifests(out):
        assert manifest["data"]["sha256"] == manifest["config"]["data_sha256"] == fingerprint
        assert manifest["data"]["counts"] == list(SIZES)
        assert "federation" not in manifest["config"]


def test_a_second_time_computes_nothing(cli, own, computed, undrawn):
    file, out = own
    outcome = cli(*THEORY, "--data", file, "--out", out)
    assert outcome.code == 0 and "2 already there" in outcome.out and computed == []
    np.savez(file, *[], **dict(zip(("x", "client"), arrays(), strict=True)), y=np.ones(3))
    assert cli(*THEORY, "--data", file, "--out", out).code == 0 and computed == []


def test_other_points_of_the_same_name_are_computed_anew(cli, own, computed, undrawn):
    file, out = own
    x, client = arrays(seed=1)
    np.savez(file, x=x, client=client)
    assert cli(*THEORY, "--data", file, "--workers", 1, "--out", out).code == 0
    assert len(computed) == 2 and len(manifests(out)) == 4


def test_redraw_needs_no_points_and_draws_the_same(cli, own, computed_once, computed):
    file, out = own
    file.unlink()
    for name in ("figures", "tables"):
        shutil.rmtree(out / "convergence" / name)
    assert cli("--section", "convergence", "--redraw", "--out", out).code == 0
    assert computed == []
    for path in sorted((computed_once[1] / "convergence").rglob("*.*")):
        twin = out / "convergence" / path.relative_to(computed_once[1] / "convergence")
        if path.suffix in (".png", ".csv", ".tex", ".pdf"):
            assert twin.read_bytes() == path.read_bytes()


def test_an_index_of_a_former_version_is_still_read(cli, own, undrawn):
    _, out = own
    path = out / "convergence" / "runs.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    assert index["options"].pop("data").endswith("My Points.npz")
    del index["sha256"]
    path.write_text(json.dumps(index), encoding="utf-8")
    assert cli("--section", "convergence", "--redraw", "--out", out).code == 0
    index["options"]["data"] = 7
    path.write_text(json.dumps(index), encoding="utf-8")
    assert cli("--section", "convergence", "--redraw", "--out", out).code == 2


def test_a_folder_of_csv_files_is_the_same_as_an_archive(cli, own, computed, undrawn, tmp_path):
    file, out = own
    folder = tmp_path / "My Points"
    folder.mkdir()
    x = arrays()[0]
    parts = dict(zip("abc", np.split(x, np.cumsum(SIZES)[:-1]), strict=True))
    for name, part in parts.items():
        np.savetxt(folder / f"{name}.csv", part, delimiter=";", fmt="%.17g")
    np.savez(file, x=x, client=np.repeat(list("abc"), SIZES))
    first = cli(*THEORY, "--data", file, "--workers", 1, "--out", out)
    assert first.code == 0 and len(computed) == 2
    second = cli(*THEORY, "--data", folder, "--out", out)
    assert second.code == 0 and "2 already there" in second.out and len(computed) == 2


def test_what_is_left_out_is_printed_and_in_the_report(cli, tmp_path, undrawn):
    x = np.random.default_rng(2).standard_normal((5, 3))
    np.savez(tmp_path / "five.npz", x=x, client=[0, 0, 1, 1, 1])
    out = tmp_path / "out"
    outcome = cli(*THEORY, "--data", tmp_path / "five.npz", "--workers", 1, "--out", out)
    assert outcome.code == 0 and outcome.err == ""
    report = (out / "convergence" / "report.html").read_text(encoding="utf-8")
    for words in ("row 0 and row 1", "whitening a client takes 4 or more"):
        assert words in outcome.out and words in report


@pytest.mark.parametrize("kind", ["file", "folder", "absent"])
def test_points_without_theory_only_are_refused_with_advice(cli, own, tmp_path, kind):
    file, out = own
    folder = tmp_path / "sites"
    folder.mkdir()
    (folder / "a.CSV").write_text("1\n2\n")
    data = {"file": file, "folder": folder, "absent": tmp_path / "absent.npz"}[kind]
    outcome = cli("--section", "convergence", "--data", data, "--out", out)
    assert outcome.code == 2 and "--theory-only" in outcome.sentence and outcome.out == ""


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("absent.npz", None, "no such file or folder"),
        ("text.npz", b"1,2,3", "no .npz file"),
        ("a.csv", b"1,2\n3,4\n", "the folder that holds it"),
        ("empty", "folder", "no CSV file"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(cli, tmp_path, name, content, words):
    place = tmp_path / name
    if content == "folder":
        place.mkdir()
    elif content is not None:
        place.write_bytes(content)
    outcome = cli(*THEORY, "--data", place, "--out", tmp_path / "out")
    assert outcome.code == 2 and words in outcome.sentence and str(place) in outcome.sentence
    assert outcome.out == "" and not (tmp_path / "out").exists()


def test_points_that_change_while_the_studies_run_are_noticed(own):
    file, _ = own
    paper_repro.own_points.cache_clear()
    with pytest.raises(ValueError, match="changed while the studies ran"):
        paper_repro.own_points(str(file), "0" * 64, None)


@pytest.mark.parametrize("change", ["other points", "damaged", "gone"])
def test_points_that_change_during_the_run_are_bad_input(cli, tmp_path, monkeypatch, change):
    file, real = tmp_path / "points.npz", paper_repro.compute
    np.savez(file, **dict(zip(("x", "client"), arrays(), strict=True)))

    def compute(tasks, workers):
        if change == "other points":
            np.savez(file, **dict(zip(("x", "client"), arrays(seed=1), strict=True)))
        else:
            file.unlink()
        if change == "damaged":
            file.write_bytes(b"1,2,3")
        real(tasks, workers)

    monkeypatch.setattr(paper_repro, "compute", compute)
    outcome = cli(*THEORY, "--data", file, "--workers", 1, "--out", tmp_path / "out")
    assert outcome.code == 2 and "changed while the studies ran" in outcome.sentence
    assert str(file) in outcome.sentence and ".." not in outcome.sentence
    assert not (tmp_path / "out" / "traceback.txt").exists()


@pytest.mark.parametrize("name", ["xyz", "./mine", "digit"])
def test_an_unknown_federation_beside_own_points_is_refused(cli, own, name):
    file, out = own
    outcome = cli(*THEORY, "--data", file, "--federation", name, "--out", out)
    assert outcome.code == 2 and f"Unknown federation '{name}'" in outcome.sentence
    assert "digits" in outcome.sentence and outcome.out == ""


OTHERS = [
    ("--data", "other.npz"),
    ("--seeds", "2"),
    ("--preset", "paper"),
    ("--device", "cuda"),
    ("--federation", "other"),
    ("--no-theory-only",),
    ("--workers", "1"),
]


@pytest.mark.parametrize("asked", OTHERS, ids=[option[0] for option in OTHERS])
def test_redraw_refuses_what_it_would_ignore(cli, own, undrawn, asked):
    _, out = own
    redraw = ("--section", "convergence", "--redraw", "--out", out)
    outcome = cli(*redraw, *asked)
    said = asked[0] if asked[0] == "--workers" else " ".join(asked)
    assert outcome.code == 2 and said in outcome.sentence and outcome.out == ""
    path = out / "convergence" / "runs.json"
    stored = json.loads(path.read_text(encoding="utf-8"))["options"]["data"]
    assert cli(*redraw, "--data", stored, *THEORY[2:]).code == 0


def test_the_commands_of_the_readme_run_as_printed(cli, tmp_path, monkeypatch, undrawn):
    text = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    block = text.split("## Your own data")[1].split("```bash\n")[1].split("```")[0]
    make, run = (shlex.split(line) for line in block.splitlines())
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, *make[1:]], check=True)
    assert run[1] == "paper_repro.py"
    outcome = cli(*run[2:], "--preset", "quick", "--workers", 1)
    assert outcome.code == 0 and "200 points of 2 clients" in outcome.out


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_the_quick_preset_runs_whole_on_own_points(cli, tmp_path, computed, kind):
    random = np.random.default_rng(5)
    parts = {name: random.standard_normal((24 + 3 * k, 6)) for k, name in enumerate("pqr")}
    data = tmp_path / "sites"
    if kind == "csv":
        data.mkdir()
        for name, part in parts.items():
            np.savetxt(data / f"{name}.csv", part, delimiter=",", header="u,v,w,x,y,z", comments="")
    else:
        data = data.with_suffix(".npz")
        client = np.repeat(list(parts), [len(part) for part in parts.values()])
        np.savez(data, x=np.concatenate(list(parts.values())), client=client)
    out = tmp_path / "out"
    outcome = cli(*THEORY, "--data", data, "--out", out)
    assert outcome.code == 0 and outcome.err == ""
    found = claims(out)
    for name in ("corollary-iii.6.own-sites", "corollary-iii.6.draws.own-sites"):
        assert found[name]["verdict"] == "certified"
    for name in ("theorem-iii.4.decay", "eq-10.not-the-limit", "alpha.threshold"):
        assert found[name]["verdict"] == "certified"
    assert not any(name.startswith("cnn.") for name in found)
    for name in ("decay_own-sites", "regimes", "widths", "spectra"):
        assert (out / "convergence" / "figures" / f"{name}.png").is_file()
    whole = len(computed)
    assert cli(*THEORY, "--data", data, "--out", out).code == 0 and len(computed) == whole
    assert cli("--section", "convergence", "--redraw", "--out", out).code == 0
