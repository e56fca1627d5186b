"""The report of a section: one HTML file that holds its figures and needs no network."""

import base64
import os
import re
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from figures._files import explained, shown, write_atomically
from figures.claims import EXPERIMENTS, MATHEMATICS, Claim
from figures.tables import (
    SAME,
    Layout,
    as_text_rows,
    number,
    numeric,
    spanned,
    with_interval,
)

VERDICTS: dict[str, tuple[str, str, str]] = {
    "certified": (
        "good",
        "✓",
        "proven: for all values that the stated enclosures allow, by a rule on a graph, or with "
        "the stated probability; enclosures count the rounding of what they enclose, not that of "
        "the steps of a training before it",
    ),
    "consistent": ("fair", "≈", "nothing that was computed contradicts it; not proven"),
    "violated": ("bad", "✗", "refuted by what was computed: for a proven statement, a bug"),
    "supported": (
        "good",
        "✓",
        "the 95 % interval excludes zero, on the claim's side, also after Holm's correction",
    ),
    "inconclusive": (
        "fair",
        "?",
        "not decided: the interval contains zero, or not after Holm's correction, or few seeds",
    ),
    "contradicted": ("bad", "✗", "the 95 % interval excludes zero, on the other side: a finding"),
}
CITATION = """\
@article{jiang2023unifed,
  title   = {{UniFed}: A Unified Framework for Federated Learning on Non-IID Image Features},
  author  = {Jiang, Meirui and Li, Xiaoxiao and Zhang, Xiaofei and Kamp, Michael and Dou, Qi},
  journal = {arXiv preprint arXiv:2110.09974},
  year    = {2023}
}
@inproceedings{li2021fedbn,
  title     = {{FedBN}: Federated Learning on Non-IID Features via Local Batch Normalization},
  author    = {Li, Xiaoxiao and Jiang, Meirui and Zhang, Xiaofei and Kamp, Michael and Dou, Qi},
  booktitle = {International Conference on Learning Representations},
  year      = {2021}
}"""
_PNG = b"\x89PNG\r\n\x1a\n"
# CSS pixels per pixel of a 300 dpi file: a column's width is then some 450 px, a page's 920.
_SCALE = 0.44
_INDEX = re.compile(r"\b(λ|σ|η|κ|e)_(min|max|\d+)\b")


@dataclass(frozen=True)
class Picture:
    """A figure with its caption: what is shown, what the intervals are, and n."""

    title: str
    caption: str
    png: Path
    pdf: Path | None = None


@dataclass(frozen=True)
class Sheet:
    """A table as people see it, with its files."""

    title: str
    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    csv: Path | None = None
    tex: Path | None = None
    groups: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True)
class Report:
    """What a report says. All text is plain; `facts` maps a heading to what was run."""

    title: str
    lead: str
    command: str
    claims: Sequence[Claim]
    facts: Mapping[str, str] = field(default_factory=dict)
    pictures: Sequence[Picture] = ()
    sheets: Sequence[Sheet] = ()
    notes: Sequence[str] = ()
    citation: str = CITATION


def sheet(
    title: str, frame: pl.DataFrame, layout: Layout, files: tuple[Path, Path] | None = None
) -> Sheet:
    """A sheet from what was given to, and returned by, `tables.write_table`."""
    headings, rows = as_text_rows(frame, layout)
    csv, tex = files or (None, None)
    return Sheet(title, layout.caption, headings, rows, csv, tex, layout.groups)


def write_report(path: str | Path, report: Report) -> Path:
    """Writes the report; the same content gives the same bytes.

    Raises:
        ValueError: a picture is missing or no PNG.
        OutputError: the file cannot be written.
    """
    path = Path(path)
    pictures = [_picture(k, item, path.parent) for k, item in enumerate(report.pictures, start=1)]
    page = _template().render(
        report=report,
        claims=[_claim(claim, report.pictures, path.parent) for claim in report.claims],
        counts=_counts(report.claims),
        used=[word for word in VERDICTS if any(c.verdict == word for c in report.claims)],
        verdicts=VERDICTS,
        pictures=pictures,
        sheets=[_sheet(k, item, path.parent) for k, item in enumerate(report.sheets, start=1)],
    )
    return write_atomically(path, page)


def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["signs"] = _signs
    return environment.get_template("report.html")


def _counts(claims: Sequence[Claim]) -> list[tuple[str, int]]:
    found = Counter(claim.verdict for claim in claims)
    return [(word, found[word]) for word in MATHEMATICS + EXPERIMENTS if found[word]]


def _claim(claim: Claim, pictures: Sequence[Picture], folder: Path) -> dict[str, Any]:
    if isinstance(claim.measured, str):
        measured = claim.measured
        if claim.interval is not None:
            low, high = (number(bound, 4) for bound in claim.interval)
            measured += f" [{low}, {high}]"
    else:
        measured = with_interval(claim.measured, *(claim.interval or (None, None)), digits=4)
    anchor = None
    if claim.figure is not None:
        wanted = (folder / claim.figure).with_suffix("").resolve()
        for k, picture in enumerate(pictures, start=1):
            if picture.png.with_suffix("").resolve() == wanted:
                anchor = (f"#figure-{k}", f"Fig. {k}")
        anchor = anchor or (quote(claim.figure), Path(claim.figure).name)
    return {"claim": claim, "measured": measured, "anchor": anchor}


def _picture(k: int, picture: Picture, folder: Path) -> dict[str, Any]:
    with explained("read", picture.png):
        data = picture.png.read_bytes()
    if not data.startswith(_PNG) or len(data) < 24:
        raise ValueError(f"{shown(picture.png)} is no PNG: draw the figures again with --redraw")
    width, height = struct.unpack(">II", data[16:24])
    return {
        "number": k,
        "title": picture.title,
        "caption": picture.caption,
        "data": base64.b64encode(data).decode("ascii"),
        "width": round(width * _SCALE),
        "height": round(height * _SCALE),
        "links": _links({"PDF": picture.pdf, "PNG": picture.png}, folder),
    }


def _sheet(k: int, item: Sheet, folder: Path) -> dict[str, Any]:
    ragged = [row for row in item.rows if len(row) != len(item.headings)]
    if ragged:
        raise ValueError(f"table {item.title!r}: a row has {len(ragged[0])} cells, not "
                         f"{len(item.headings)}: {list(ragged[0])}")  # fmt: skip
    right = numeric(item.rows, len(item.headings))
    return {
        "number": k,
        "title": item.title,
        "caption": item.caption,
        "headings": item.headings,
        "groups": item.groups,
        "rows": [_cells(row, right) for row in item.rows],
        "numeric": right,
        "links": _links({"CSV": item.csv, "LaTeX": item.tex}, folder),
    }


def _cells(row: Sequence[str], right: Sequence[bool]) -> list[tuple[str, int, bool]]:
    """Text, columns and flushness of each cell; one that holds for several columns says so."""
    cells, column = [], 0
    for cell, span in spanned(row):
        cells.append((f"{cell} {SAME}" if span > 1 else cell, span, right[column]))
        column += span
    return cells


def _signs(text: str) -> Markup:
    """Escapes text and sets the indices of λ_min, λ_max and the like low."""
    return Markup(_INDEX.sub(r"\1<sub>\2</sub>", str(escape(text))))


def _links(files: Mapping[str, Path | None], folder: Path) -> list[tuple[str, str]]:
    return [
        (name, quote(Path(os.path.relpath(path, folder)).as_posix()))
        for name, path in files.items()
        if path is not None
    ]
