"""Every snippet of the page can be pasted, and prints what the page says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "where_the_claim_stops.md"
BLOCKS = re.findall(
    r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", PAGE.read_text(encoding="utf-8"), re.DOTALL
)
NUMBER = re.compile(r"\d+\.\d+(?:e-?\d+)?|\d+e-?\d+")


def printed(code):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(PAGE), "exec"), {})
    return out.getvalue()


def test_there_are_snippets():
    assert len(BLOCKS) == 6 and sum(bool(text) for _, text in BLOCKS) == 5


@pytest.mark.parametrize("k", range(len(BLOCKS)))
def test_a_snippet_prints_what_the_page_says(k):
    code, text = BLOCKS[k]
    found = printed(code)
    assert found.strip()
    if text:
        # Words exactly; numbers as exactly as other processors round, widths by their size.
        assert NUMBER.sub("#", found) == NUMBER.sub("#", text)
        for one, other in zip(NUMBER.findall(found), NUMBER.findall(text), strict=True):
            if "e-" in other:
                assert float(one) == pytest.approx(float(other), rel=0.9)
            else:
                assert float(one) == pytest.approx(float(other), rel=2e-8)


def test_both_examples_of_a_pooled_s_fail_and_so_does_the_full_kernel():
    words = [printed(code).splitlines()[0] for code, _ in BLOCKS[:3]]
    assert all(line.endswith("fails, certified") for line in words)
