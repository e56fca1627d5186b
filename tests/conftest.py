"""Lets the tests import paper_repro, and runs its section once, tiny, for all that look at it."""

import contextlib
import functools
import io
import os
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

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


FEW = {"rounds": 1, "seeds": 2, "methods": ("fedavg", "fedbn"), "orders": ("shuffled", "sorted")}
VARIED = {
    "epochs": 2,
    "lrs": (0.01, 0.1),
    "local_epochs": (1, 2),
    "fractions": (1.0, 0.5),
    "per_domain": (1, 2),
    "momenta": (0.0, 0.9),
    "batch_sizes": (8, 32),
}


@dataclass(frozen=True)
class Toy:
    """A section of the experiments on a toy federation, computed in this process.

    `waves` are the labels of the runs computed, a list for each wave; `shown` are the arguments
    with which sections were presented.
    """

    waves: list[list[str]]
    shown: list[tuple]

    @property
    def labels(self) -> list[str]:
        return [label for wave in self.waves for label in wave]

    def forget(self) -> None:
        self.waves.clear()
        self.shown.clear()


def toy_world(patch: pytest.MonkeyPatch) -> Toy:
    """Three toy clients as the federation `toy`, tiny presets, no worker processes, no figures."""
    import paper_repro
    from empirical.data import FEDERATIONS, Federation
    from empirical.studies.presets import PRESETS, Size

    patch.syspath_prepend(ROOT / "tests" / "empirical")
    from federations import toy_federation

    clients = toy_federation((24, 24, 24), test=20)
    names = tuple(client.name for client in clients)
    known = Federation("toy", "a toy", names, 10, (3, 28, 28), 0.0, lambda *_: clients)
    patch.setitem(FEDERATIONS, "toy", known)
    sizes = PRESETS["quick"].sizes
    for name in ("convergence", "compatibility", "internal", "external"):
        patch.setitem(sizes, name, Size(**FEW))
    patch.setitem(sizes, "analysis", Size(**{**FEW, **VARIED}))
    found = Toy([], [])

    def compute(tasks, workers):
        found.waves.append([])
        for task in tasks:
            paper_repro.execute(task, lambda _: None)
            found.waves[-1].append(task.label)

    def show(name, *arguments):
        found.shown.append((name, *arguments))
        product = arguments[2] / "report.html"
        return SimpleNamespace(claims=[], figures=[], report=product, proven_hold=True, written=[])

    patch.setattr(paper_repro, "compute", compute)
    for name, section in paper_repro.SECTIONS.items():
        blind = replace(section, present=functools.partial(show, name))
        patch.setitem(paper_repro.SECTIONS, name, blind)
    return found


@pytest.fixture
def toy(monkeypatch):
    """Give what is computed and shown of the federation `toy`."""
    return toy_world(monkeypatch)


@pytest.fixture(scope="session")
def toy_finished(tmp_path_factory):
    """Give the folder of a finished toy `compatibility`, and what was computed and shown."""
    out = tmp_path_factory.mktemp("toy") / "results"
    with pytest.MonkeyPatch.context() as patch:
        found = toy_world(patch)
        command = ("--section", "compatibility", "--preset", "quick", "--federation", "toy")
        return out, found, call(*command, "--out", out)
