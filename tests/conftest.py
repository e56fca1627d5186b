"""Lets the tests import paper_repro, and runs its section once, tiny, for all that look at it."""

import contextlib
import io
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import threadpoolctl

# One thread a test process: two of them with two threads each would wait for one another's cores.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
threadpoolctl.threadpool_limits(1)  # what plugins have loaded already read no variable any more

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for bare `pytest`; worker processes inherit it

QUICK = ("--section", "convergence", "--preset", "quick")
COMMON = {"seed": 0, "dimension": 20}


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code and what it printed."""

    code: object
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one line on standard error of a command that was refused."""
        lines = self.err.splitlines()
        assert len(lines) == 1 and lines[0].strip(), f"one line is wanted, not:\n{self.err}"
        assert "Traceback" not in lines[0]
        return lines[0]


def call(*arguments: object) -> Outcome:
    """Run the command line in this process."""
    import paper_repro

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: object = paper_repro.main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
    return Outcome(code, out.getvalue(), err.getvalue())


def tiny_plan(preset: str, data: str) -> list:
    """As few and as small studies as still make the claims of the section."""
    from theory.studies import Study

    small = {"clients": 4, "samples": 8, **COMMON}
    plan = [
        Study(
            f"corollary, {source}",
            {"study": "corollary", "data": source, "sizes": sizes, "draws": 2, **COMMON},
            1.0,
        )
        for source, sizes in ((data, [(2, 6), (4, 6)]), ("gaussian", [(2, 4), (4, 4), (4, 8)]))
    ]
    regime = {"study": "regime", "data": "gaussian", "draws": 2, "alphas": [2.0, 20.0], **small}
    plan.append(Study("regimes", regime, 1.0))
    for alpha in (2.0, 20.0):
        for width in (128, 512):
            config = {"study": "dynamics", "data": "gaussian", "draw": 0, "alpha": alpha}
            config |= {"width": width, "steps": 20, **small}
            plan.append(Study(f"f and f*, α = {alpha:g}, m = {width}", config, 1.0))
    for width in (64, 256):
        config = {"study": "drift", "data": "gaussian", "alpha": 10.0, "width": width}
        config |= {"draws": 2, "starts": 4, "steps": 5, **small}
        plan.append(Study(f"drift, m = {width}", config, 1.0))
    config = {"study": "local_steps", "data": "gaussian", "alpha": 10.0, "draw": 0, "width": 64}
    config |= {"local_steps": [1, 2], "fractions": [1.0], "rounds": 4, **small}
    plan.append(Study("local steps", config, 1.0))
    config = {"study": "counterexamples", "data": "gaussian", "samples": 4, "draws": 2, **COMMON}
    plan.append(Study("counterexamples", config, 1.0))
    config = {"study": "readings", "data": "gaussian", "covariances": "isotropic", "alphas": [2.0]}
    plan.append(Study("readings", {**config, **small, "samples": 6, "draws": 2}, 1.0))
    config = {"study": "exact", "data": "gaussian", "kept": [5], "ridges": [0.1], **small}
    plan.append(Study("the exact kernel", {**config, "samples": 4}, 1.0))
    return plan


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Make the quick preset tiny: one round, two seeds, few points."""
    import theory.studies
    from empirical.studies.presets import PRESETS, Size

    patch.setattr(theory.studies, "convergence_plan", tiny_plan)
    patch.setitem(PRESETS["quick"].sizes, "convergence", Size(rounds=1, seeds=2))


@pytest.fixture(scope="session")
def cli():
    """Run the command line in this process: `cli(*arguments)` gives code, out, err, sentence."""
    return call


@pytest.fixture(scope="session")
def quick():
    """Give the arguments that choose the section and the quick preset."""
    return QUICK


@pytest.fixture
def tiny(monkeypatch):
    """Make the quick preset tiny."""
    shrink(monkeypatch)


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """Give the folder of a tiny section computed by one worker process, and what it printed."""
    out = tmp_path_factory.mktemp("finished") / "results"
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        return out, call(*QUICK, "--workers", 1, "--out", out)


@pytest.fixture
def results(finished, tiny, tmp_path):
    """Give a copy of the finished section, to be damaged, redrawn or completed."""
    return Path(shutil.copytree(finished[0], tmp_path / "results"))


@pytest.fixture
def undrawn(monkeypatch):
    """Leave the figures out, which take most of the time."""
    import figures.convergence

    monkeypatch.setattr(figures.convergence, "drawings", lambda _: {})


@pytest.fixture
def computed(monkeypatch):
    """List the labels of the tasks that are computed from now on."""
    import paper_repro

    labels: list[str] = []
    original = paper_repro.compute

    def compute(tasks, workers):
        labels.extend(task.label for task in tasks)
        original(tasks, workers)

    monkeypatch.setattr(paper_repro, "compute", compute)
    return labels
