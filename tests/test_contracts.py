"""Contracts of the whole: what an import brings in, the version, the README's commands."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import paper_repro

ROOT = Path(__file__).parent.parent
PARTS = ("theory", "empirical", "figures")


def imported(statement):
    """List the top-level modules that a new interpreter has after a statement."""
    code = f"import sys; {statement}; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("statement", "wanted", "unwanted"),
    [
        (
            "import theory, empirical, figures, figures.convergence, theory.studies, paper_repro",
            {*PARTS, "paper_repro", "torch", "matplotlib"},
            {"jax", "jaxlib", "neural_tangents", "tensorflow"},
        ),
        (
            "import theory, theory.studies",
            {"theory", "numpy"},
            {"empirical", "figures", "paper_repro", "torch", "matplotlib", "polars", "jax"},
        ),
        (
            "import figures, figures.records, figures.convergence, figures.report",
            {"figures", "matplotlib", "polars"},
            {"theory", "empirical", "paper_repro", "torch", "jax"},
        ),
        (
            "import empirical",
            {"empirical", "torch"},
            {"theory", "figures", "paper_repro", "matplotlib", "polars", "jax"},
        ),
        # What refuses a wrong flag at once, and what every worker process starts with.
        ("import paper_repro", {"paper_repro", "tyro"}, {*PARTS, "torch", "matplotlib", "polars"}),
    ],
    ids=["all", "theory", "figures", "empirical", "paper_repro"],
)
def test_an_import_brings_in_no_more_than_it_needs(statement, wanted, unwanted):
    modules = imported(statement)
    assert wanted <= modules
    assert modules & unwanted == set()


def test_the_version_is_that_of_the_project():
    assert re.fullmatch(r"\d+\.\d+\.\d+", paper_repro.__version__)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["setuptools"]["dynamic"]["version"] == {
        "attr": "paper_repro.__version__"
    }
    assert settings["project"]["scripts"] == {"unifed": "paper_repro:main"}


def test_the_version_is_that_of_the_installation():
    try:
        installed = metadata.version("unifed")
    except metadata.PackageNotFoundError:
        pytest.skip("needs unifed to be installed")
    assert installed == paper_repro.__version__


@pytest.fixture
def readme_command():
    """Load the script that reads the README's commands."""
    spec = importlib.util.spec_from_file_location("readme_command", ROOT / ".ci/readme_command.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


README = """# A title
<!-- command: main -->
```bash
make everything && \\
  run
```
Words, and another block:
```bash
never this
```
<!-- command: test -->

```sh
test it
```
<!-- command: prose --> and no block before the next words.

```text
not a shell
```
"""


@pytest.fixture
def made_up(readme_command, tmp_path, monkeypatch):
    """Give the script's function, reading a README of our own."""
    (tmp_path / "README.md").write_text(README, encoding="utf-8")
    monkeypatch.setattr(readme_command, "__file__", str(tmp_path / ".ci" / "readme_command.py"))
    return readme_command.command


@pytest.mark.parametrize(
    ("name", "text"), [("main", "make everything && \\\n  run"), ("test", "test it")]
)
def test_a_marked_command_is_found(made_up, name, text):
    assert made_up(name) == text


@pytest.mark.parametrize("name", ["absent", "prose", "m.in", ""])
def test_a_command_that_is_not_marked_is_refused(made_up, name):
    with pytest.raises(SystemExit, match=re.escape(f"no command block marked '{name}'")):
        made_up(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [("main", "paper_repro.py --section convergence"), ("test", "-m pytest")],
)
def test_the_readme_gives_both_commands(name, words):
    command = [sys.executable, str(ROOT / ".ci" / "readme_command.py"), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert words in done.stdout and "pip install" in done.stdout
    checked = subprocess.run(["bash", "-n", "-c", done.stdout], capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_ci_runs_the_readme_s_test_command_and_the_main_job():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert ".ci/readme_command.py test" in script
    assert "paper_repro.py --section convergence" in script


def readme_blocks():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


WORDS = (
    "certified",
    "Cholesky",
    "d(h) = 0.980",
    "server",
    "momentum",
)  # what each README block prints


@pytest.mark.parametrize("number", range(len(WORDS)))
def test_the_python_of_the_readme_runs_as_printed(number):
    blocks = readme_blocks()
    assert len(blocks) == len(WORDS)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", blocks[number]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and done.stderr == ""
    assert WORDS[number] in done.stdout
