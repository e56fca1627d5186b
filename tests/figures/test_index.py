"""The index of the runs that a section shows: written, read, and refused when it is damaged."""

import json
from pathlib import Path

import pytest

from figures._files import OutputError
from figures.index import BadIndex, read_index, replace_files, write_index

RUNS = ["0123456789abcdef", "f" * 16]
OPTIONS = {
    "section": "all",
    "preset": "quick",
    "federation": "digits",
    "seeds": None,
    "device": "cpu",
    "theory_only": False,
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "convergence" / "runs.json"


def test_what_was_written_is_read_back(path):
    written = write_index(path, "convergence", {**OPTIONS, "workers": 3}, RUNS)
    assert read_index(path, "convergence") == written
    assert (written["options"], written["runs"]) == ({**OPTIONS, "data": None, "folds": None}, RUNS)


def test_the_place_of_own_points_is_kept_whatever_its_letters(path):
    place = Path("sites/é\udcff.npz")
    write_index(path, "convergence", {**OPTIONS, "data": place}, RUNS)
    kept = read_index(path, "convergence")["options"]["data"]
    assert kept == "sites/é\\udcff.npz" and kept.encode("utf-8")


def option(**values):
    return lambda index: {**index, "options": {**index["options"], **values}}


def runs(*values):
    return lambda index: {**index, "runs": list(values)}


def files(given):
    return lambda index: {**index, "files": given}


CHANGES = {
    "a list": lambda index: [index],
    "null": lambda _: None,
    "another section": lambda index: {**index, "section": "other"},
    "no options": lambda _: {"section": "convergence", "runs": RUNS},
    "options a list": lambda index: {**index, "options": list(OPTIONS)},
    "an option gone": lambda index: {**index, "options": {"preset": "quick"}},
    "preset a list": option(preset=["quick"]),
    "federation null": option(federation=None),
    "device a number": option(device=0),
    "seeds a text": option(seeds="3"),
    "seeds a truth": option(seeds=True),
    "theory_only a number": option(theory_only=1),
    "runs a dict": lambda index: {**index, "runs": dict.fromkeys(RUNS)},
    "runs a text": lambda index: {**index, "runs": RUNS[0]},
    "runs of lists": runs([RUNS[0]], {}),
    "a run of numbers": runs(7, RUNS[1]),
    "a run that is a path": runs("../../etc/passwd"),
    "a run with a line feed": runs(RUNS[0] + "\n"),
    "no runs": runs(),
    "a run twice": runs(*RUNS, RUNS[0]),
    "files a list": files(["figures/a.png"]),
    "a file outside": files({"../a.png": "0" * 64}),
    "a file outside, deeper": files({"figures/../../a.png": "0" * 64}),
    "an absolute file": files({"/a.png": "0" * 64}),
    "a file of another kind": files({"figures/a.py": "0" * 64}),
    "a hidden file": files({"figures/.a.png": "0" * 64}),
    "a file with a line feed": files({"figures/a.png\n": "0" * 64}),
    "a file without a hash": files({"figures/a.png": None}),
}


@pytest.mark.parametrize("hashed", [True, False], ids=["hash", "no hash"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_index_of_another_shape_is_refused_in_one_sentence(path, change, hashed):
    index = write_index(path, "convergence", OPTIONS, RUNS)
    if not hashed:
        del index["sha256"]
    path.write_text(json.dumps(change(index)))
    with pytest.raises(BadIndex, match=r"cannot be read .*: run without --redraw") as caught:
        read_index(path, "convergence")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", [runs(RUNS[0]), runs(*RUNS[::-1]), option(preset="paper")])
def test_an_index_in_shape_that_was_changed_is_refused(path, change):
    path.write_text(json.dumps(change(write_index(path, "convergence", OPTIONS, RUNS))))
    with pytest.raises(BadIndex, match="not what was written"):
        read_index(path, "convergence")


def test_an_index_without_a_hash_is_of_a_former_version(path):
    index = write_index(path, "convergence", OPTIONS, RUNS)
    del index["sha256"], index["files"]
    path.write_text(json.dumps(index))
    assert read_index(path, "convergence") == index
    replace_files(path, "convergence", [])
    assert read_index(path, "convergence")["files"] == {}


@pytest.fixture
def drawn(path):
    """Write files of a section, list them with the index, and give their folder."""

    def draw(*names):
        write_index(path, "convergence", OPTIONS, RUNS)
        written = [path.parent / name for name in names]
        for file in written:
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"drawn {file.name}")
        replace_files(path, "convergence", written)
        return path.parent

    return draw


def test_former_files_are_removed_unless_they_are_written_again(drawn):
    folder = drawn("figures/a.png", "figures/b.pdf", "tables/all_a.csv", "report.html")
    drawn("figures/a.png", "tables/a.tex", "report.html")
    there = {str(file.relative_to(folder)) for file in folder.rglob("*.*")}
    assert there == {"figures/a.png", "tables/a.tex", "report.html", "runs.json"}
    drawn()
    there = {str(file.relative_to(folder)) for file in folder.rglob("*.*")}
    assert there == {"report.html", "runs.json"}


def test_only_what_was_written_here_is_removed(drawn, tmp_path):
    folder = drawn("figures/a.png", "figures/b.png", "figures/c.png", "figures/d.png")
    (folder / "figures" / "mine.png").write_text("mine")
    (folder / "figures" / "a.png").write_text("painted over")
    (folder / "figures" / "b.png").unlink()
    (folder / "figures" / "b.png").mkdir()
    (tmp_path / "kept.png").write_text("drawn c.png")
    (folder / "figures" / "c.png").unlink()
    (folder / "figures" / "c.png").symlink_to(tmp_path / "kept.png")
    (folder / "figures" / "d.png").unlink()
    drawn("figures/e.png")
    drawn()
    there = {file.name for file in (folder / "figures").iterdir()}
    assert there == {"mine.png", "a.png", "b.png", "c.png"}
    assert (folder / "figures" / "a.png").read_text() == "painted over"
    assert (tmp_path / "kept.png").read_text() == "drawn c.png"


def test_files_stay_listed_where_the_drawing_in_between_failed(drawn, path):
    folder = drawn("figures/a.png")
    write_index(path, "convergence", OPTIONS, RUNS)
    drawn()
    assert not (folder / "figures" / "a.png").exists()


def test_a_damaged_index_removes_nothing(drawn, path):
    folder = drawn("figures/a.png")
    path.write_text(path.read_text().replace("figures/a.png", "figures/b.png"))
    (folder / "figures" / "b.png").write_text("drawn a.png")
    drawn()
    assert (folder / "figures" / "a.png").exists() and (folder / "figures" / "b.png").exists()


def test_a_file_that_cannot_be_removed_is_named(drawn, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "not permitted")

    drawn("figures/a.png")
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(OutputError, match=r"cannot remove the former .*a\.png: not permitted"):
        drawn()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"1" * 5_000])
def test_what_is_no_json_is_refused(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(BadIndex, match="cannot be read"):
        read_index(path, "convergence")


def test_an_absent_index_and_one_that_is_a_folder_are_told_apart(path):
    with pytest.raises(BadIndex, match="nothing to redraw"):
        read_index(path, "convergence")
    path.mkdir(parents=True)
    with pytest.raises(BadIndex, match="cannot be read"):
        read_index(path, "convergence")
