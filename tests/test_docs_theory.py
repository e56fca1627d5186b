"""docs/theory.md: every equation has a function and a test that exist, and snippets print that."""

import ast
import contextlib
import importlib
import io
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
QUOTED = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL))
FUNCTIONS = sorted({q for q in QUOTED if re.fullmatch(r"(theory|empirical)(\.\w+)+", q)})
TESTS = sorted({q for q in QUOTED if q.startswith("tests/") and "::" in q})
FILES = sorted({q for q in QUOTED if re.fullmatch(r"[\w/]+/[\w/]+\.(py|md)", q)})
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if re.match(r"\| (\(|Assumption|Lemma|Theorem|Corollary|Proposition)", line)
]
STATEMENTS = [
    *(f"({number})" for number in range(1, 21)),
    *("Assumption III.1", "Lemma III.3", "Theorem III.4", "Theorem III.7"),
    "Proposition III.10",
    *(f"Corollary III.{number}" for number in (5, 6, 8, 9)),
]
SNIPPETS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", TEXT, flags=re.DOTALL)


@cache
def functions_of(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def test_the_page_names_functions_tests_and_snippets():
    assert len(FUNCTIONS) > 25 and len(TESTS) > 30 and len(SNIPPETS) >= 4
    assert TEXT.count("```python") == len(SNIPPETS)  # each with what it prints
    assert all(len(row) == 4 for row in ROWS)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_statement_has_a_function_and_a_test(statement: str):
    own = [row for row in ROWS if statement in row[0].split(", ")]
    assert own, f"{statement} has no row"
    for row in own:
        assert re.search(r"`(theory|empirical)\.", row[2]), row
        assert "`tests/" in row[3] and "::test_" in row[3], row


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_named_exists(name: str):
    package, *parts = name.split(".")
    value: Any = importlib.import_module(package)
    at = package
    for part in parts:
        at = f"{at}.{part}"
        if not hasattr(value, part):
            importlib.import_module(at)
        value = getattr(value, part)
    assert callable(value), name


@pytest.mark.parametrize("name", TESTS)
def test_every_test_named_exists(name: str):
    path, function = name.split("::")
    assert function in functions_of(path), name


@pytest.mark.parametrize("path", FILES)
def test_every_file_named_exists(path: str):
    assert (ROOT / path).is_file()


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / "docs" / target).is_file(), target


@pytest.mark.parametrize("place", range(len(SNIPPETS)))
def test_snippets_print_what_the_page_says(place: int):
    code, expected = SNIPPETS[place]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, f"docs/theory.md, snippet {place}", "exec"), {})
    assert printed.getvalue() == expected
