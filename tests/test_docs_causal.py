"""docs/causal.md: what it names exists, and its snippets print what it says."""

import contextlib
import io
import re
from functools import reduce
from pathlib import Path

import pytest

import theory

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "causal.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", TEXT, flags=re.DOTALL)
QUOTED = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL))


def test_each_snippet_is_followed_by_what_it_prints():
    assert TEXT.count("```python") == len(SNIPPETS) >= 5


@pytest.mark.parametrize("place", range(len(SNIPPETS)))
def test_snippets_print_what_the_page_says(place: int):
    code, expected = SNIPPETS[place]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, f"docs/causal.md, snippet {place}", "exec"), {})
    assert printed.getvalue() == expected


def test_what_the_page_names_exists():
    functions = [q for q in QUOTED if re.fullmatch(r"theory(\.\w+)+", q)]
    tests = [q for q in QUOTED if q.startswith("tests/")]
    files = [q for q in QUOTED if re.fullmatch(r"theory/\w+\.py", q)]
    assert len(functions) >= 9 and tests and files
    for name in functions:
        assert callable(reduce(getattr, name.split(".")[1:], theory)), name
    for name in tests:
        path, function = name.split("::")
        assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), name
    for name in [*files, *(f"docs/{p}" for p in re.findall(r"\]\(([^)#]+)\)", TEXT))]:
        assert (ROOT / name).is_file(), name
