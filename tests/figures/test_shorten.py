"""Long texts keep their beginning and their end."""

import polars as pl
import pytest

from figures._shorten import shortened
from figures.tables import as_text_rows, write_table


@pytest.mark.parametrize(
    ("text", "longest", "short"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abc…fg"),
        ("", 3, ""),
        (["ab", "cd", "ef"], 5, "ab…ef"),
        (["ab", "cd", "ef"], 4, "ab…"),  # an escape is left out rather than cut
    ],
)
def test_the_middle_is_left_out(text, longest, short):
    assert shortened(text, longest) == short
    assert len(short) <= longest


def test_cells_are_cut_for_people_and_whole_in_the_csv(tmp_path):
    names = pl.DataFrame({"client": ["q" * 20_000 + "z", "Köln"]})
    _, rows = as_text_rows(names)
    assert [len(cell) for (cell,) in rows] == [200, 4] and rows[0][0].endswith("qz")
    csv, tex = write_table(tmp_path / "clients", names)
    assert csv.read_text().count("q") == 20_000 and len(tex.read_text()) < 1000
