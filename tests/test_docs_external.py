"""docs/external_clients.md: its snippets run, one after another, and print what it says."""

import contextlib
import inspect
import io
import re
from pathlib import Path

import pytest

import empirical

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "external_clients.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", TEXT, flags=re.DOTALL)
MEASURED = re.compile(r"0\.\d{3}\b")
ROWS = re.compile(r"^\|.*\|$", flags=re.MULTILINE)


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> list[str]:
    """What each snippet prints."""
    names, texts = {}, []
    with contextlib.chdir(tmp_path_factory.mktemp("page")):
        for number, (code, _) in enumerate(BLOCKS):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, f"docs/external_clients.md, snippet {number}", "exec"), names)
            texts.append(out.getvalue())
    return texts


def test_snippets_print_what_the_page_says(printed: list[str]) -> None:
    assert len(BLOCKS) == 5 and sum(bool(text) for _, text in BLOCKS) == 3
    for found, (_, text) in zip(printed, BLOCKS, strict=True):
        assert MEASURED.sub("#", found) == MEASURED.sub("#", text)
        for one, other in zip(MEASURED.findall(found), MEASURED.findall(text), strict=True):
            # Other processors round otherwise, and training spreads that over a few images.
            assert float(one) == pytest.approx(float(other), abs=0.05)


def test_sorting_by_class_does_harm_and_drift_less_to_the_batch(printed: list[str]) -> None:
    rows = [line.split() for line in printed[3].splitlines()]
    found = {(variant, order): float(value) for variant, order, value in rows}
    assert len(found) == 9
    assert found["batch", "shuffled"] > found["batch", "sorted"] + 0.1
    assert found["adapted", "shuffled"] > found["adapted", "sorted"] + 0.03
    assert found["server", "shuffled"] == found["server", "sorted"]
    lost = {v: found[v, "shuffled"] - found[v, "drifting"] for v in ("server", "batch")}
    assert lost["server"] > lost["batch"] + 0.02


def test_the_third_snippet_is_three_lines() -> None:
    assert BLOCKS[1][0].count("\n") == 3


def test_every_option_and_variant_is_on_the_page() -> None:
    names = {*inspect.signature(empirical.adapt).parameters, *empirical.VARIANTS}
    names -= {"model", "batches"}
    assert len(names) == 12
    assert {name for name in names if f"`{name}`" not in TEXT} == set()
    for name in ("batch_size", "order", "last"):
        assert f"`stream({name}=)`" in TEXT


@pytest.mark.slow
def test_the_tables_are_those_that_the_command_prints() -> None:
    from benchmarks.external_clients import tables

    clients = {client.name: client for client in empirical.load_federation("digits")}
    outside = clients.pop("mnist-m")
    page = [line for line in ROWS.findall(TEXT) if re.search(r"\d\d\.\d \|$", line)]
    printed = [line for line in tables(outside, list(clients.values()), 10, 0) if " | " in line]
    printed = [line for line in printed if re.search(r"\d\d\.\d \|$", line)]
    assert len(page) == len(printed) == 26
    for one, other in zip(page, printed, strict=True):
        assert one.split("|")[1] == other.split("|")[1]
        values = [[float(v) for v in line.split("|")[2:-1]] for line in (one, other)]
        assert values[0] == pytest.approx(values[1], abs=4)  # other processors round otherwise
