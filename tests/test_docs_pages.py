"""docs/causal.md, docs/generalization.md: what they name exists, snippets print what they say."""

import contextlib
import io
import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("causal", "generalization")
TEXTS = {page: (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in PAGES}
SNIPPETS = [
    (page, place, *snippet)
    for page, text in TEXTS.items()
    for place, snippet in enumerate(
        re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, flags=re.DOTALL)
    )
]


def quoted(page):
    """Give what stands in backquotes outside of code blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", TEXTS[page], flags=re.DOTALL))


def found(name):
    """Give what a dotted name means."""
    package, *parts = name.split(".")
    try:
        return reduce(getattr, parts, import_module(package))
    except AttributeError:  # a function and its module may share a name
        *where, last = parts
        return getattr(import_module(".".join([package, *where])), last)


@pytest.mark.parametrize("page", PAGES)
def test_each_snippet_is_followed_by_what_it_prints(page):
    own = [snippet for snippet in SNIPPETS if snippet[0] == page]
    assert TEXTS[page].count("```python") == len(own) >= 4


@pytest.mark.parametrize(
    ("page", "place", "code", "expected"), SNIPPETS, ids=[f"{s[0]}-{s[1]}" for s in SNIPPETS]
)
def test_snippets_print_what_the_page_says(page, place, code, expected):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, f"docs/{page}.md, snippet {place}", "exec"), {})
    assert printed.getvalue() == expected


@pytest.mark.parametrize("page", PAGES)
def test_what_the_page_names_exists(page):
    names = quoted(page)
    functions = [name for name in names if re.fullmatch(r"(theory|empirical)(\.\w+)+", name)]
    tests = [name for name in names if name.startswith("tests/")]
    files = [name for name in names if re.fullmatch(r"(theory|benchmarks)/[\w/]+\.(py|md)", name)]
    linked = re.findall(r"\]\(([^)#]+)\)", TEXTS[page])
    assert len(functions) >= 9 and linked
    for name in functions:
        assert callable(found(name)), name
    for name in tests:
        path, function = name.split("::")
        assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), name
    for path in [*(ROOT / file for file in files), *(ROOT / "docs" / link for link in linked)]:
        assert path.is_file(), path
