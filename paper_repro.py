"""Reproduce the paper: compute a section's theory and training, judge its claims, draw its figures.

python paper_repro.py --section convergence
"""

import difflib
import functools
import importlib
import os
import shlex
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, cast

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

__version__ = "0.2.0"

PRESETS: tuple[str, ...] = ("quick", "default", "paper")
NUMBERS = {"--seeds", "--workers", "--folds"}
MOST = 10_000  # of each of them: beyond it planning alone would never end
MARK = {
    **dict.fromkeys(("certified", "supported"), "bold green"),
    **dict.fromkeys(("consistent", "inconclusive"), "bold yellow"),
    **dict.fromkeys(("violated", "contradicted"), "bold red"),
}


class Refused(ValueError):
    """Input or output that cannot be used: one sentence, exit code 2."""


class Terminated(KeyboardInterrupt):
    """SIGTERM: the same as Ctrl-C, with an exit code of its own."""


class Terminal(Console):
    """A console whose reader may leave, and whose disk may be full."""

    def on_broken_pipe(self) -> None:
        """End as programs do whose reader has left (`| head`), but let worker processes end."""
        discard(self.file)
        raise SystemExit(141)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print.

        Raises:
            Refused: it cannot be written.
        """
        try:
            super().print(*objects, **options)
        except OSError as error:
            discard(self.file)
            self.quiet = True  # empties rich's buffer, which would be tried again
            super().print()
            self.quiet = False
            raise unprintable(error) from None


console = Terminal()
errors = Terminal(stderr=True)


def _flag(text: str) -> Any:
    return tyro.conf.arg(help=text)


@dataclass(frozen=True)
class Options:
    """Compute a section of the paper, judge its claims and draw its figures."""

    section: Annotated[str, _flag("which section, or all; --list shows them")] = ""
    preset: Annotated[str, _flag("quick, default or paper")] = "default"
    federation: Annotated[str, _flag("name of a federation; --list shows them")] = "digits"
    data: Annotated[
        Path | None,
        _flag(
            "folder of the federation's files; with --theory-only points of your own: see README"
        ),
    ] = None
    seeds: Annotated[int | None, _flag("how many seeds, counted from 0")] = None
    device: Annotated[str, _flag("auto, cpu, cuda or cuda:k")] = "auto"
    workers: Annotated[int | None, _flag("processes; one a core by default")] = None
    out: Annotated[Path, _flag("where results go")] = Path("results")
    theory_only: Annotated[bool, _flag("leave the training out")] = False
    folds: Annotated[str | None, _flag("how many clients to hold out in turn, or all")] = None
    tune: Annotated[bool, _flag("choose the methods' settings on validation images")] = False
    redraw: Annotated[bool, _flag("draw what is on disk; compute nothing")] = False
    fresh: Annotated[bool, _flag("compute again what is on disk")] = False
    list: Annotated[bool, _flag("show sections, federations and algorithms")] = False
    given: Annotated[frozenset[str], tyro.conf.Suppress] = frozenset()


@dataclass(frozen=True)
class Task:
    """One run. Its config names its records; the rest says where and about how long.

    `own` is what the manifest says of a user's own points.
    """

    label: str
    config: dict[str, Any]
    seconds: float
    store: str
    data: str | None
    fresh: bool
    own: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Section:
    """A section of the paper: what it claims, what must be computed, how it is shown.

    `flags` are the options that only some sections have.
    """

    claims: str
    minutes: Mapping[str, float]
    plan: Callable[[Options, Any], Iterable[tuple[str, dict[str, Any], float]]]
    present: Callable[..., Any]
    flags: tuple[str, ...] = ()


def plan_convergence(options: Options, found: Any) -> Iterable[tuple[str, dict[str, Any], float]]:
    """List the studies of the theory and the trainings of the section `convergence`.

    `found` is the federation's hash, or the description of a user's own points.
    """
    from theory.studies import convergence_plan

    if isinstance(found, str):
        name, own = options.federation, ()
        data = {"federation": name, "data_sha256": found}
    else:
        name, own, data = found.source, (found,), {"data_sha256": found.fingerprint}
    if not options.theory_only:
        yield from plan_experiments("convergence_trainings", options, found)
    for study in convergence_plan(options.preset, name, *own):
        added = data if study.config["data"] != "gaussian" else {}
        yield study.label, study.config | added, study.seconds


def plan_experiments(
    name: str, options: Options, found: str
) -> Iterable[tuple[str, dict[str, Any], float]]:
    """List the runs of a plan of `empirical.studies`.

    Raises:
        Refused: the federation has too few clients.
    """
    from empirical import FEDERATIONS, studies

    federation_name, data = options.federation, options.data
    if federation_name in FEDERATIONS:
        clients = FEDERATIONS[federation_name].clients
    else:
        members = federation(federation_name, None if data is None else str(data))
        clients = tuple(client.name for client in members)
    folds = options.folds if options.folds in (None, "all") else int(options.folds)
    chosen = (options.preset, federation_name, clients, found, options.device, options.seeds, folds)
    try:
        plan = getattr(studies, name)(studies.Setting(*chosen))
    except ValueError as error:
        raise Refused(f"{error}.") from None
    return [(study.label, study.config, study.seconds) for study in plan]


def planned(name: str, options: Options, found: Any) -> list[tuple[str, dict[str, Any], float]]:
    """List the runs of a section.

    Raises:
        Refused: the federation has too few clients, or one of them too few images.
    """
    return fitting(options, SECTIONS[name].plan(options, found))


def fitting(
    options: Options, plan: Iterable[tuple[str, dict[str, Any], float]]
) -> list[tuple[str, dict[str, Any], float]]:
    """Give the runs of a plan, which the federation's clients have the images for.

    Raises:
        Refused: one of them has too few.
    """
    runs = list(plan)
    configs = [config for _, config, _ in runs if "federation" in config.get("training", config)]
    if configs:
        from empirical import load_federation
        from empirical.studies import check_clients

        try:
            check_clients(configs, load_federation(options.federation, data=options.data))
        except ValueError as error:
            raise Refused(f"{error}.") from None
    return runs


def plan_joint(
    name: str, options: Options, found: str
) -> Iterable[tuple[str, dict[str, Any], float]]:
    """List the runs of a section that has trainings, what follows them, and studies of the theory.

    Raises:
        Refused: the federation has too few clients.
    """
    from theory import studies

    yield from plan_experiments(name, options, found)
    for planned_study in getattr(studies, name)(options.preset):
        yield planned_study.label, planned_study.config, planned_study.seconds


def show(name: str, *arguments: Any) -> Any:
    """Summarise, judge and draw a section."""
    return importlib.import_module(f"figures.{name}").present(*arguments)


def experiment(
    name: str, claims: str, minutes: Sequence[float], *flags: str, planner: Any = plan_experiments
) -> Section:
    """Make a section of which every run trains or serves a federation, or that `planner` plans."""
    plan = functools.partial(planner, f"{name}_plan")
    times = dict(zip(PRESETS, minutes, strict=True))
    return Section(claims, times, plan, functools.partial(show, name), flags)


SECTIONS = {
    "convergence": Section(
        "III.6: λ_min(G*) ≥ λ_min(G); III.4: the decay of f and f*; faster training of the CNN",
        {"quick": 1, "default": 5, "paper": 130},
        plan_convergence,
        functools.partial(show, "convergence"),
        ("theory_only",),
    ),
    "generalization": experiment(
        "generalization",
        "Eqs. (13)-(18) term by term: does client-specific BN remove the divergence?",
        (1, 8, 600),
        "folds",
        planner=plan_joint,
    ),
    "causal": experiment(
        "causal",
        "Proposition III.10 step by step; Eq. (20), do(S), and networks in a structural model",
        (1, 3, 300),
        "folds",
        planner=plan_joint,
    ),
    "compatibility": experiment(
        "compatibility",
        "Table I: client-specific BN helps every method, inside the federation and outside",
        (1, 15, 3000),
        "folds",
    ),
    "internal": experiment(
        "internal", "accuracy per client and method: no client pays for it", (1, 12, 1200)
    ),
    "external": experiment(
        "external", "Eqs. (3), (4) serve a client that never trained", (1, 26, 3000), "folds"
    ),
    "analysis": experiment(
        "analysis", "what it depends on: τ, n_t, lr, E, data, clients, γ, β", (1, 16, 1570), "folds"
    ),
}


@functools.cache
def federation(name: str, data: str | None) -> Any:
    """Load a federation, once a process."""
    from empirical import load_federation

    return load_federation(name, data=None if data is None else Path(data))


@functools.cache
def points(name: str, data: str | None, dimension: int | None) -> Any:
    """Give the training images of a federation as points in [0, 1]^d, reduced where asked for."""
    from empirical.data.client import as_points
    from theory.studies import principal

    x, labels = as_points(federation(name, data))
    return (x if dimension is None else principal(x, dimension)), labels


@functools.cache
def own_points(path: str, fingerprint: str, dimension: int | None) -> Any:
    """Give a user's own points and their clients, reduced where asked for."""
    from theory.data import read_points
    from theory.studies import principal

    try:
        found = read_points(path)
    except ValueError as error:
        raise Refused(f"the points changed while the studies ran: {error}") from None
    if found.fingerprint != fingerprint:
        raise Refused(f"{path} changed while the studies ran: run the command again.")
    return (found.x if dimension is None else principal(found.x, dimension)), found.client


@dataclass(frozen=True)
class Unwritten:
    """What a worker returns where disk or data refuse: that is no failure of the run."""

    why: str


def execute(task: Task, report: Callable[[float], None]) -> str | Unwritten:
    """Compute one run in a worker process and put its records on disk; return its hash."""
    from figures.records import OutputError

    try:
        with plain_warnings():
            return computed(task, report)
    except (OutputError, Refused) as error:
        return Unwritten(str(error))


def computed(task: Task, report: Callable[[float], None]) -> str:
    """Compute one run and put its records on disk; return its hash."""
    from empirical.data import fingerprint
    from empirical.worker import threads_in_use
    from figures.records import RunStore

    config = task.config
    with RunStore(task.store).writing(config, fresh=task.fresh) as run:
        source = config.get("training", config)
        if "data_sha256" in source and task.own is not None:
            run.manifest.update(task.own)
        elif "data_sha256" in source:
            run.manifest["data"] = fingerprint(federation(source["federation"], task.data))
        KINDS.get(config["study"], study)(config, task, run, report)
        run.manifest["threads"] = threads_in_use()
    return run.hash


def study(config: dict[str, Any], task: Task, run: Any, report: Callable[[float], None]) -> None:
    """Run a study of the theory."""
    from empirical.seeds import numpy_generator
    from theory.studies import STUDIES

    small = config["study"] in ("regime", "dynamics", "drift", "local_steps", "readings")
    reduced = config["dimension"] if small else None
    data = None
    if "federation" in config:
        data = points(config["federation"], task.data, reduced)
    elif "data_sha256" in config:
        data = own_points(str(task.data), config["data_sha256"], reduced)
    run.add(STUDIES[config["study"]](config, data, numpy_generator, report))


def train(config: dict[str, Any], task: Task, run: Any, report: Callable[[float], None]) -> None:
    """Train a federation."""
    from empirical.studies import at_edge, origin, train_study
    from figures.pending import CHECKPOINT

    clients = federation(config["federation"], task.data)
    with warnings.catch_warnings():  # said once, before all runs, and in the notes below
        warnings.filterwarnings("ignore", "the clients' classes differ")
        state = train_study(config, clients, run.add, report)
    save(run.folder / CHECKPOINT, state)
    run.manifest.update(p=dict(state.p), notes=[*state.notes, *unlike(clients)])
    run.manifest.update(chosen=origin(config), at_edge=at_edge(config))
    if state.status == "diverged":
        run.manifest.update(status="diverged", diverged_in_round=state.round)


def serve(config: dict[str, Any], task: Task, run: Any, report: Callable[[float], None]) -> None:
    """Serve the client that a training left out; where that diverged, this did too."""
    from empirical import studies

    if (state := trained(config, task, run)) is not None:
        serving = getattr(studies, f"{config['study']}_study")
        clients = federation(config["training"]["federation"], task.data)
        run.manifest["notes"] = list(serving(config, clients, state, run.add, report))


def diverge(config: dict[str, Any], task: Task, run: Any, report: Callable[[float], None]) -> None:
    """Estimate the terms of the bounds from what a trained federation's nets make of images."""
    from empirical.seeds import numpy_generator
    from empirical.studies import divergence_data
    from theory.studies import divergence_rows

    if (state := trained(config, task, run)) is not None:
        clients = federation(config["training"]["federation"], task.data)
        seen = divergence_data(config, clients, state, lambda part: report(0.2 * part))
        later = divergence_rows(config, seen, numpy_generator, lambda p: report(0.2 + 0.8 * p))
        run.add(later)
        run.manifest["notes"] = list(seen["notes"])


def structure(config: dict[str, Any], _: Task, run: Any, report: Callable[[float], None]) -> None:
    """Train a federation on draws of the structural model, and hold it against exact answers."""
    from empirical.seeds import numpy_generator
    from empirical.studies import structural_study
    from theory.studies import structural_data

    state = structural_study(config, structural_data(config, numpy_generator), run.add, report)
    if state.status == "diverged":
        run.manifest.update(status="diverged", diverged_in_round=state.round)


def trained(config: Mapping[str, Any], task: Task, run: Any) -> Any:
    """Give the state that a run starts from; None where its training diverged, as is then noted."""
    from empirical import load_checkpoint
    from figures.pending import CHECKPOINT, needed
    from figures.records import RunStore

    store, source = RunStore(task.store), needed(config) or ""
    lost = store.manifest(source).get("diverged_in_round")
    if lost is not None:
        run.manifest.update(status="diverged", diverged_in_round=lost)
        return None
    return load_checkpoint(store.file(source, CHECKPOINT))


KINDS: dict[str, Callable[..., None]] = {
    "training": train,
    "external": serve,
    "label_shift": serve,
    "divergence": diverge,
    "structural_training": structure,
}
"""What computes a run, by its study; any other study is the theory's own."""


def save(path: Path, state: Any) -> None:
    """Save a checkpoint of a run; a disk that refuses it is no failure of the run."""
    from empirical.checkpoint import save_checkpoint
    from figures._files import explained

    with explained("write a checkpoint to", path.parent.parent):  # the run's own folder goes
        try:
            save_checkpoint(path, state)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error.__cause__ or error)
            raise OSError(error.errno or 0, why) from error


def near(what: str, given: str, known: Iterable[str]) -> str:
    """Say that a name is unknown, with the nearest ones first."""
    names = list(known)
    close = difflib.get_close_matches(given.lower(), names, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    return f"Unknown {what} {given!r}: {hint}There are {', '.join(names)}."


def checked(options: Options) -> Options:
    """Refuse what cannot be used, before anything is computed; fill in what is automatic.

    Raises:
        Refused: with one sentence that says what to do.
    """
    names = [*SECTIONS, "all"]
    if not (options.section or options.tune):
        raise Refused(f"No section: give --section {' or '.join(names)}, or --list to see them.")
    if options.section and options.section not in names:
        raise Refused(near("section", options.section, names))
    refuse_foreign(options)
    if options.preset not in PRESETS:
        raise Refused(near("preset", options.preset, PRESETS))
    for flag, value in (("seeds", options.seeds), ("workers", options.workers)):
        if value is not None and not 1 <= value <= MOST:
            bound = "least 1" if value < 1 else f"most {MOST}"
            raise Refused(f"--{flag} must be at {bound}, not {value}.")
    if options.redraw and options.fresh:
        raise Refused("--redraw computes nothing and --fresh computes again: give one of them.")
    try:
        out = options.out.expanduser()
    except RuntimeError as error:
        raise Refused(f"--out {options.out}: {error}") from None
    options = replace(options, out=out)
    if options.redraw:
        return options
    from empirical.schedule import chosen_device
    from empirical.worker import usable_cores

    try:
        device = chosen_device(options.device)
    except ValueError as error:
        raise Refused(f"{error}.") from None
    return replace(options, device=device, workers=options.workers or usable_cores())


def refuse_foreign(options: Options) -> None:
    """Refuse the options that the section, or --tune, does not have."""
    what = "--tune" if options.tune else f"the section {options.section}"
    sections = SECTIONS.values() if options.section == "all" else [SECTIONS.get(options.section)]
    known = {flag for section in sections if section for flag in section.flags}
    if options.section == "all" and not options.tune:
        what, known = "every section", known - {"theory_only"}  # of others nothing would be left
    only_tuned = ("section", "seeds", "redraw") if options.tune else ()
    for flag in (*only_tuned, "theory_only", "folds"):
        if flag not in known and getattr(options, flag) != getattr(Options, flag):
            owners = [name for name, section in SECTIONS.items() if flag in section.flags]
            where = f", only {' and '.join(owners)}" if owners else ""
            raise Refused(
                f"--{flag.replace('_', '-')} does not go with {what}{where}: leave it out."
            )
    folds = options.folds
    if folds not in (None, "all") and not (folds.isdecimal() and int(folds) >= 1):
        raise Refused(f"--folds is a number of clients, at least 1, or all, not {folds!r}.")


def described(path: Path) -> Any:
    """Read a user's own points; say what they are and what of them to mind.

    Raises:
        Refused: they cannot be used.
    """
    from theory.data import read_points
    from theory.studies import DIMENSION, describe

    try:
        with console.status("reading the points"):
            found = describe(read_points(path), DIMENSION)
    except (ValueError, MemoryError) as error:
        raise Refused(str(error) or f"{path} does not fit into memory.") from None
    for line, style in ((found.headline, "bold"), *((s, "yellow") for s in found.sentences)):
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
    return found


def loaded(options: Options) -> Any:
    """Load (and, the first time, build) the federation; return the hash of its arrays.

    With --theory-only --data may hold points of the user's own: then return their description.
    """
    from empirical import FEDERATIONS, load_federation
    from empirical.data.client import content_hash

    name, place = options.federation, options.data
    reads = place is not None and place.is_dir() and name in FEDERATIONS
    if place is not None and not (reads and FEDERATIONS[name].reads_data):
        if options.theory_only:
            if name not in FEDERATIONS:
                raise Refused(near("federation", name, FEDERATIONS))
            return described(place)
        if place.suffix == ".npz" or place.is_file() or any(place.glob("*.[cC][sS][vV]")):
            only = "" if options.section == "convergence" else "--section convergence "
            raise Refused(
                f"--data {place} names points, which have no labels to train on: add "
                f"{only}--theory-only."
            )
    with bars() as progress:
        job = progress.add_task(f"the federation {name}", total=1.0, note="")
        try:
            clients = load_federation(
                name, data=options.data, progress=lambda done: progress.update(job, completed=done)
            )
        except (ValueError, OSError) as error:
            known = "" if any(f in str(error) for f in FEDERATIONS) else f" ({[*FEDERATIONS]})"
            raise Refused(f"{error}{known}") from None
        progress.update(job, completed=1.0)
    return content_hash(clients)


def bars() -> Progress:
    """Make the progress bars; where nobody watches, nothing moves."""
    columns = (TextColumn("{task.description:<42}"), BarColumn(), TextColumn("{task.fields[note]}"))
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)


def compute(tasks: Sequence[Task], workers: int) -> None:
    """Run the tasks over processes, with bars and an estimate of the time left.

    Raises:
        TaskError: a task failed.
        OutputError: a task's records cannot be written, or its data changed.
    """
    from empirical.executor import Result, run_tasks
    from figures.records import OutputError

    queue = {task.label: task for task in sorted(tasks, key=lambda task: -task.seconds)}
    total, began, said = sum(task.seconds for task in tasks), time.monotonic(), 0
    done = dict.fromkeys(queue, 0.0)
    events = cast(Generator[Any], run_tasks(execute, queue, workers=workers))
    with bars() as progress, closing(events):
        whole = progress.add_task("everything", total=total, note="")
        shown: dict[str, Any] = {}
        for event in events:
            finished = isinstance(event, Result)
            if finished and isinstance(event.value, Unwritten):
                raise OutputError(event.value.why)
            done[event.task] = 1.0 if finished else min(1.0, event.fraction)
            work = sum(queue[label].seconds * part for label, part in done.items())
            left = (time.monotonic() - began) * (total - work) / work if work else float("inf")
            count = sum(part == 1.0 for part in done.values())
            note = f"{count} of {len(queue)} runs"
            note += f", about {clock(left)} left" if work > 0.03 * total else ""
            progress.update(whole, completed=work, note=note)
            if event.task not in shown:
                shown[event.task] = progress.add_task(event.task, total=1.0, note="")
            progress.update(shown[event.task], completed=done[event.task], visible=not finished)
            if not console.is_terminal and int(10 * work / total) > said:
                said = int(10 * work / total)
                console.print(f"{work / total:4.0%} done: {note}", highlight=False)


def clock(seconds: float) -> str:
    """Write a duration as a person would."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def run_section(name: str, options: Options) -> bool:
    """Compute, judge and draw a section; say whether every statement proven true held."""
    from figures._files import writable_folder
    from figures.index import read_index, replace_files, write_index
    from figures.records import RunStore

    section, index = SECTIONS[name], options.out / name / "runs.json"
    new: set[str] = set()
    if options.redraw:
        shown, store = read_index(index, name), RunStore(options.out / "runs")
        refuse_others(options, shown["options"])
    else:
        found = loaded(options)
        plan = planned(name, options, found)  # first: what is refused leaves no folders
        store = RunStore(options.out / "runs")
        writable_folder(options.out / name)
        mention_label_shift(options, plan)
        hashes, new = complete(name, options, found, plan)
        shown = write_index(index, name, vars(options), hashes)
    rows = store.read(shown["runs"])
    manifests = {run: store.manifest(run) for run in shown["runs"]}
    if not options.redraw:
        mention_older({run: manifest for run, manifest in manifests.items() if run not in new})
    with console.status("drawing the figures"):
        product = section.present(rows, manifests, options.out / name, shown["options"])
        replace_files(index, name, product.written)
    report_on(product)
    if diverged := sum(manifest["status"] == "diverged" for manifest in manifests.values()):
        text = f"{diverged} of {len(manifests)} runs diverged: see the report."
        console.print(text, style="yellow", highlight=False, soft_wrap=True)
    return product.proven_hold


def complete(
    name: str, options: Options, found: Any, plan: Iterable[tuple[str, dict[str, Any], float]]
) -> tuple[list[str], set[str]]:
    """Compute what of a plan is missing; give the hashes of all its runs, and of the new ones."""
    from figures.pending import pending
    from figures.records import RunStore, config_hash

    store, own = RunStore(options.out / "runs"), None if isinstance(found, str) else found.manifest
    data = None if options.data is None else str(options.data)
    tasks: dict[str, Task] = {}
    for label, config, seconds in plan:
        config = {**config, "version": __version__}
        task = Task(label, config, seconds, str(store.root), data, options.fresh, own)
        tasks.setdefault(config_hash(config), task)
    left = pending(store, {run: task.config for run, task in tasks.items()}, fresh=options.fresh)
    for sentence in left.sentences:
        console.print(sentence, style="yellow", markup=False, highlight=False, soft_wrap=True)
    waves = [[replace(tasks[run], fresh=run in left.again) for run in w] for w in left.waves]
    todo = [task for wave in waves for task in wave]
    mention_untuned(options, todo)
    announce(name, options, len(tasks), todo)
    try:
        for wave in filter(None, waves):
            compute(wave, options.workers or 1)
    finally:
        if any(waves):
            with suppress(OSError, ValueError):
                store.sweep()  # what ended workers had begun
    return list(tasks), {run for wave in left.waves for run in wave}


def refuse_others(options: Options, shown: Mapping[str, Any]) -> None:
    """Refuse options that --redraw could only ignore: those that ask for other runs than shown."""
    from empirical.schedule import chosen_device

    if "workers" in options.given:
        raise Refused("--redraw computes nothing, so that --workers has no use: leave it out.")
    for name in ("preset", "federation", "data", "seeds", "theory_only", "device", "folds"):
        given = getattr(options, name)
        asked = chosen_device(given) if given == "auto" else given
        if name in options.given and str(asked) != str(shown.get(name)):
            flag = f"{'no-' * (given is False)}{name.replace('_', '-')}"
            raise Refused(
                f"--redraw draws what was shown last, which was not with --{flag}"
                f"{'' if isinstance(given, bool) else f' {given}'}: leave that out, or --redraw."
            )


def mention_older(manifests: Mapping[str, Any]) -> None:
    """Say which of the runs that were already there another version or commit computed."""
    from figures.pending import from_elsewhere

    if count := from_elsewhere(manifests):
        text = f"{count} of the runs were computed with other versions, another commit or on"
        console.print(f"{text} another machine: --fresh computes them again.", soft_wrap=True)


def mention_label_shift(
    options: Options, plan: Sequence[tuple[str, dict[str, Any], float]]
) -> None:
    """Say where clients differ in their classes, for which no batch norm of a client's own fits."""
    if not any(config["study"] == "training" for _, config, _ in plan):
        return
    from empirical import load_federation

    for sentence in unlike(load_federation(options.federation, data=options.data)):
        text = f"{sentence[:1].upper()}{sentence[1:]}."
        console.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)


def unlike(clients: Sequence[Any]) -> list[str]:
    """Give the sentence on clients that differ in their classes; none where they do not."""
    from empirical.label_advice import label_advice

    sentence = label_advice(list(clients))
    return [sentence] if sentence else []


def mention_untuned(options: Options, todo: Sequence[Task]) -> None:
    """Say which methods are about to train with settings that nobody chose for this task."""
    trainings = [task.config for task in todo if task.config["study"] == "training"]
    if not trainings:
        return
    from empirical.studies import untuned

    if methods := untuned(trainings):
        flags = {"preset": options.preset.replace("quick", "default")}  # the same net, trained
        flags |= {name: getattr(options, name) for name in ("federation", "data")}
        usual = {name: getattr(Options, name) for name in flags}
        given = "".join(f" --{n} {shlex.quote(str(v))}" for n, v in flags.items() if v != usual[n])
        console.print(
            f"The authors' defaults train {', '.join(methods)}, since no settings were chosen for "
            f"{options.federation} with {trainings[0]['model']}: "
            f"python paper_repro.py --tune{given} chooses them on validation images.",
            style="yellow",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def announce(name: str, options: Options, runs: int, todo: Sequence[Task]) -> None:
    """Say what is about to happen and about how long it takes."""
    workers = min(options.workers or 1, max(1, len(todo)))
    longest = max((task.seconds for task in todo), default=0.0)
    about = max(longest, sum(task.seconds for task in todo) / workers) + 5.0
    where = f"{workers} process{'es' * (workers > 1)} on {options.device}"
    kept = f", {runs - len(todo)} already there" if len(todo) < runs else ""
    text = f"{runs} runs{kept}: about {clock(about)} in {where}"
    console.print(
        f"[bold]{name}[/], {options.preset} preset: {text}", highlight=False, soft_wrap=True
    )


def report_on(product: Any) -> None:
    """Print the verdicts and where the figures are."""
    table = Table("claim", "measured", "verdict", box=None, pad_edge=False, header_style="dim")
    for claim in product.claims:
        measured = claim.measured if isinstance(claim.measured, str) else f"{claim.measured:.4g}"
        style = MARK[claim.verdict]
        table.add_row(claim.claim, measured, f"[{style}]{claim.verdict}[/]")
    console.print(table, highlight=False)
    for path in (*product.figures, product.report):
        console.print(path, style="cyan", highlight=False, soft_wrap=True)


def tune(options: Options) -> int:
    """Choose each method's settings on validation images; say and write what was chosen."""
    from empirical import studies
    from empirical.tuned import file_name
    from figures._files import to_json, write_atomically
    from figures.records import RunStore

    found = loaded(options)
    plan = fitting(options, plan_experiments("tuning_plan", options, found))
    runs, _ = complete("tuning", options, found, plan)
    store = RunStore(options.out / "runs")
    manifests, accuracies = [store.manifest(run) for run in runs], []
    for run, manifest in zip(runs, manifests, strict=True):
        lost = manifest["status"] == "diverged"
        rows = store.read(run).to_dicts()
        accuracies.append(None if lost else studies.validation_accuracy(rows))
    record = studies.tuning_record([m["config"] for m in manifests], accuracies)
    table = Table("method", "settings", *record["policies"], "mean", box=None, pad_edge=False)
    for *cells, chosen in studies.tuning_rows(record):
        table.add_row(*cells, style="bold green" if chosen else None)
    console.print(table, highlight=False)
    place = options.out / "tuning" / file_name(options.federation, record["model"])
    console.print(write_atomically(place, to_json(record, "the choice")), style="cyan")
    console.print("Sections train with it once it lies in empirical/tuned.", highlight=False)
    return 0


def show_list() -> None:
    """Print the sections, federations and methods that there are."""
    from empirical import BN_POLICIES, FEDERATIONS, MODELS, methods

    table = Table("section", "claims", "minutes: " + ", ".join(PRESETS), box=None, pad_edge=False)
    for name, section in SECTIONS.items():
        table.add_row(name, section.claims, ", ".join(f"{m:g}" for m in section.minutes.values()))
    console.print(table, highlight=False)
    for name, known in FEDERATIONS.items():
        console.print(f"federation {name}: {known.description}", highlight=False)
    for what, names in (("methods", methods()), ("BN policies", BN_POLICIES), ("nets", MODELS)):
        console.print(f"{what}: {', '.join(names)}", highlight=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    0: done; 1: a statement that is proven true came out violated; 2: bad input, or a place that
    cannot be written or read; 3: a run or the program failed; 130: interrupted; 143: terminated;
    141: the reader of the output has left.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue]
    options = Options()
    try:
        with plain_warnings(), sigterm_interrupts():
            options = parsed(arguments)
            return delivered(command(options))
    except SystemExit as stop:
        raise SystemExit(delivered(stop.code)) from None
    except KeyboardInterrupt as stop:
        with suppress(Refused):
            console.print("Stopped. Finished runs are kept: the same command goes on from there.")
        return 143 if isinstance(stop, Terminated) else 130
    except Exception as error:
        try:
            return explain(error, options)
        except Exception as crash:
            complain("".join(traceback.format_exception(crash)).rstrip())
            return 3


def parsed(arguments: Sequence[str] | None) -> Options:
    """Read the command line; the parser prints its help itself.

    Raises:
        Refused: an empty value, which as a path would mean this folder, or a flag given twice.
    """
    words, seen = list(sys.argv[1:] if arguments is None else arguments), set()
    for word, after in zip(words, [*words[1:], "nothing"], strict=False):
        flag, equals, value = word.partition("=")
        flag = flag.replace("_", "-")
        if not flag.startswith("--"):
            continue
        if not (value if equals else after).strip():
            raise Refused(f"{flag} is empty: give it a value, or leave it out.")
        if flag in seen:
            raise Refused(f"{flag} is given twice: give it once.")
        digits = (value if equals else after).strip().lstrip("+-").replace("_", "")
        if flag in NUMBERS and digits.isdecimal() and len(digits) > 20:  # int() takes no thousands
            raise Refused(f"{flag} is at most {MOST}, and no number of {len(digits)} digits.")
        seen.add(flag)
    try:
        options = tyro.cli(Options, args=arguments, description=Options.__doc__)
    except BrokenPipeError:
        discard(sys.stdout)
        raise SystemExit(141) from None
    except OSError as error:
        discard(sys.stdout)
        raise unprintable(error) from None
    names = (flag.removeprefix("--").removeprefix("no-").replace("-", "_") for flag in seen)
    return replace(options, given=frozenset(names))


def command(options: Options) -> int:
    """Do what the options say; return 0, or 1 where a statement proven true is violated."""
    if options.list:
        show_list()
        return 0
    options = checked(options)
    if options.tune:
        return tune(options)
    names = list(SECTIONS) if options.section == "all" else [options.section]
    if options.section == "all" and options.redraw:
        names = drawable(options.out)
    elif len(names) > 1:
        found = loaded(options)
        for name in names:  # before the first computes for hours
            planned(name, options, found)
    return 0 if all([run_section(name, options) for name in names]) else 1


def drawable(out: Path) -> list[str]:
    """Name the sections that there are to be drawn again; say which there are not.

    Raises:
        Refused: there is none.
    """
    there = [name for name in SECTIONS if os.path.lexists(out / name / "runs.json")]
    if not there:
        raise Refused(f"There is nothing to redraw in {out}: run without --redraw.")
    if missing := [name for name in SECTIONS if name not in there]:
        text = f"Not drawn, since never computed: {', '.join(missing)}."
        console.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)
    return there


def explain(error: Exception, options: Options) -> int:
    """Turn an expected error into one sentence and its exit code (2 or 3); raise any other."""
    from empirical.executor import TaskError
    from figures._files import left_traceback
    from figures.index import BadIndex
    from figures.records import DamagedRun, MissingRun, OutputError

    if isinstance(error, Refused | BadIndex | DamagedRun | MissingRun | OutputError):
        complain(str(error))
        return 2
    if isinstance(error, TaskError):
        failure = str(error).rstrip(".")
        where = left_traceback(options.out, f"{error}\n\n{error.details}")
        complain(f"{failure}. {where}; finished runs are kept.")
        return 3
    raise error


def delivered(code: Any) -> Any:
    """Flush what was printed; give the exit code, another one where that fails."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
        return 141
    except OSError as error:
        discard(sys.stdout)
        complain(str(unprintable(error)))
        return 2
    return code


def unprintable(error: OSError) -> Refused:
    """Say that the output takes nothing."""
    return Refused(f"The output cannot be printed: {error.strerror or error}.")


def discard(stream: Any) -> None:
    """Send what is still to come to nowhere, or Python itself would fail on it at its end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show the warnings meant for users as sentences, without a line of source."""
    former = warnings.formatwarning

    def sentence(message: Any, category: type[Warning], *where: Any) -> str:
        return f"{message}\n" if category is UserWarning else former(message, category, *where)

    warnings.formatwarning = sentence
    try:
        yield
    finally:
        warnings.formatwarning = former


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM end this process as Ctrl-C does: bars close, and workers end first."""

    def stop(*_: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not end the clean-up
        raise Terminated

    try:
        former = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former or signal.SIG_DFL)


def complain(text: str) -> None:
    """Print one sentence on standard error; where that fails nobody can be told."""
    with suppress(Refused):
        errors.print(text, style="red", highlight=False, markup=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
