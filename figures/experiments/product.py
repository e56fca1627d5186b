"""From a section's content to its files: figures, tables, claims.json and report.html."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from figures import style
from figures._files import write_atomically
from figures.claims import Claim, write_claims
from figures.report import Picture, Report, Sheet, sheet, write_report
from figures.tables import Layout, write_table

Manifests = Mapping[str, Mapping[str, Any]]
AUTHORS = "the authors' defaults"
"""What manifests say of settings that nobody chose."""

OPTIONS = ("section", "preset", "federation", "data", "seeds", "folds")


@dataclass(frozen=True)
class Product:
    """What a section leaves behind; `written` are all its files."""

    claims: list[Claim]
    figures: list[Path]
    report: Path
    proven_hold: bool
    written: list[Path]


@dataclass(frozen=True)
class Drawing:
    """A figure of the report: its title, what its caption says, and how it is drawn."""

    title: str
    caption: str
    make: Callable[[], Figure]


@dataclass(frozen=True)
class Table:
    """A table of the report. The CSV holds `frame`; people see `shown`, where it is given."""

    name: str
    title: str
    frame: pl.DataFrame
    layout: Layout
    shown: pl.DataFrame | None = None


@dataclass(frozen=True)
class Content:
    """What a section says.

    Attributes:
        title: heading of the report.
        lead: the paragraph below it.
        claims: the judged claims, in the report's order.
        drawings: file name -> figure, in the report's order.
        tables: those without rows are left out.
        whole: further tables that are written as all_<name>.csv, with every row and digit.
        facts: what the report adds to the facts that every section states.
        notes: sentences below the facts; those of the manifests follow.
        proven: beginnings of the ids of statements that are proven: a violation is a bug.
    """

    title: str
    lead: str
    claims: Sequence[Claim] = ()
    drawings: Mapping[str, Drawing] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    whole: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    proven: tuple[str, ...] = ()


def publish(
    content: Content, manifests: Manifests, folder: Path, options: Mapping[str, Any]
) -> Product:
    """Draw, write and report; everything goes under `folder`.

    Raises:
        ValueError: two claims share an id.
        OutputError: a file cannot be written.
    """
    claims = [_shown(claim, content.drawings) for claim in content.claims]
    pictures = _pictures(content.drawings, folder / "figures")
    sheets, written = _sheets(content.tables, folder / "tables")
    for name, table in content.whole.items():
        if table.height:
            path = folder / "tables" / f"all_{name}.csv"
            written.append(write_atomically(path, table.write_csv()))
    written.append(write_claims(folder / "claims.json", claims))
    said = sorted({note for manifest in manifests.values() for note in manifest.get("notes", ())})
    report = Report(
        title=content.title,
        lead=content.lead,
        command=command(manifests, options),
        claims=claims,
        facts={**facts(manifests, options), **content.facts},
        pictures=pictures,
        sheets=sheets,
        notes=[*content.notes, *untuned(manifests), *said],
    )
    page = write_report(folder / "report.html", report)
    bad = [c for c in claims if c.verdict == "violated" and c.id.startswith(content.proven)]
    drawn = [picture.pdf for picture in pictures if picture.pdf]
    files = [*drawn, *(picture.png for picture in pictures), *written, page]
    return Product(claims, drawn, page, not bad, files)


def presenter(
    summarise: Callable[[pl.DataFrame, Manifests], Any], content: Callable[[Any], Content]
) -> Callable[[pl.DataFrame, Manifests, Path, Mapping[str, Any]], Product]:
    """Make a section's `present`: summarise, judge, draw and report, all under a folder."""

    def present(
        rows: pl.DataFrame, manifests: Manifests, folder: Path, options: Mapping[str, Any]
    ) -> Product:
        return publish(content(summarise(rows, manifests)), manifests, folder, options)

    return present


def _pictures(drawings: Mapping[str, Drawing], folder: Path) -> list[Picture]:
    pictures = []
    with style.context():
        for name, drawing in drawings.items():
            pdf, png = style.save(drawing.make(), folder / name)
            pictures.append(Picture(drawing.title, drawing.caption, png, pdf))
    return pictures


def _sheets(tables: Sequence[Table], folder: Path) -> tuple[list[Sheet], list[Path]]:
    sheets, written = [], []
    for table in tables:
        if table.frame.is_empty():
            continue
        seen = table.frame if table.shown is None else table.shown
        files = write_table(folder / table.name, table.frame, table.layout, table.shown)
        sheets.append(sheet(table.title, seen, table.layout, files))
        written += files
    return sheets, written


def _shown(claim: Claim, drawings: Mapping[str, Drawing]) -> Claim:
    """Take from a claim the figure that was not drawn, because its part was not run."""
    drawn = claim.figure is not None and Path(claim.figure).stem in drawings
    return claim if drawn else replace(claim, figure=None)


def untuned(manifests: Manifests) -> list[str]:
    """Say which methods ran with their authors' defaults, and with which nets."""
    found: dict[str, list[str]] = {}
    for manifest in manifests.values():
        if manifest.get("chosen") == AUTHORS:
            config = manifest["config"]
            found.setdefault(config["model"], []).append(config["algorithm"])
    known = {net: style.looks(sorted(set(names))).values() for net, names in found.items()}
    return [
        f"With the authors' defaults, not chosen for these data and the net {net}: "
        f"{', '.join(look.label for look in looks)}."
        for net, looks in sorted(known.items())
    ]


def command(manifests: Manifests, options: Mapping[str, Any]) -> str:
    """Give the command that makes this section again."""
    chosen = ("section", "preset", "seeds", "data") if _own(manifests) else OPTIONS
    flags = []
    for name in chosen:
        if options.get(name) is not None:
            flags += [f"--{name}", shlex.quote(str(options[name]))]
    flags += [f"--{name.replace('_', '-')}" for name, value in options.items() if value is True]
    return "python paper_repro.py " + " ".join(flags)


def facts(manifests: Manifests, options: Mapping[str, Any]) -> dict[str, str]:
    """State what was run: preset, data, number of runs with their threads, device, software."""
    own = _own(manifests)
    return {
        "preset": options["preset"],
        **({"points": own[0]} if own else {"federation": options["federation"]}),
        "runs": f"{len(manifests)}, {_threads(manifests)}",
        "device": options["device"],
        "software": _software(manifests),
    }


def _own(manifests: Manifests) -> list[str]:
    return [m["data"]["points"] for m in manifests.values() if "points" in m.get("data", {})]


def _threads(manifests: Manifests) -> str:
    counts = {n for m in manifests.values() for n in m.get("threads", {}).values()}
    return (
        "threads not recorded" if not counts else f"threads: {', '.join(map(str, sorted(counts)))}"
    )


def _software(manifests: Manifests) -> str:
    """Name the versions behind the runs; several sets are all named."""
    names = ("python", "torch", "numpy", "scipy")
    sets = {
        ", ".join(f"{name} {versions[name]}" for name in names if name in versions)
        for versions in (manifest.get("versions", {}) for manifest in manifests.values())
    }
    return "; ".join(sorted(sets))
