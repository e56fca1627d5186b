import json
import math
import re

import numpy as np
import pytest

from figures.claims import EXPERIMENTS, MATHEMATICS, Claim, read_claims, write_claims
from figures.records import OutputError

FIELDS = {
    "id": "corollary-iii.6",
    "claim": "λ_min(G*∞) ≥ λ_min(G∞)",
    "source": "UniFed, Corollary III.6",
    "measured": 0.1 + 0.2,
    "interval": (0.25, 0.5),
    "verdict": "certified",
    "figure": "figures/spectrum.pdf",
}


def claim(**changes):
    return Claim(**(FIELDS | changes))


def test_claims_are_read_back_as_written(tmp_path):
    claims = [
        claim(),
        claim(id="z", measured="f* first in 3 of 3 seeds", interval=None, figure=None),
        claim(id="a", verdict="contradicted", measured=np.float32(0.1), interval=[-1, np.int64(2)]),
    ]
    path = write_claims(tmp_path / "convergence" / "claims.json", claims)
    assert read_claims(path) == claims
    rows = json.loads(path.read_text())
    assert [row["id"] for row in rows] == ["corollary-iii.6", "z", "a"], "in the order given"
    keys = ["id", "claim", "source", "measured", "interval", "verdict", "figure"]
    assert all(list(row) == keys for row in rows)
    assert rows[0]["measured"] == 0.30000000000000004
    assert "λ_min(G*∞)" in path.read_text(encoding="utf-8")


def test_the_same_claims_give_the_same_bytes(tmp_path):
    one = write_claims(tmp_path / "one.json", [claim()])
    two = write_claims(tmp_path / "two.json", (claim() for _ in range(1)))
    assert one.read_bytes() == two.read_bytes()
    assert read_claims(write_claims(tmp_path / "none.json", [])) == []


@pytest.mark.parametrize("verdict", MATHEMATICS + EXPERIMENTS)
def test_the_verdict_tells_the_kind(verdict):
    kind = "mathematics" if verdict in MATHEMATICS else "experiment"
    assert claim(verdict=verdict).kind == kind


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"verdict": "true"}, "has the verdict 'true': mathematics is certified"),
        ({"verdict": ""}, "has the verdict ''"),
        ({"id": ""}, "lower-case words"),
        ({"id": "Two words"}, "lower-case words"),
        ({"claim": " "}, "lacks its claim"),
        ({"source": ""}, "lacks its source"),
        ({"measured": math.nan}, "measured is nan; say in words"),
        ({"measured": None}, "not a number or a phrase"),
        ({"measured": ""}, "not a number or a phrase"),
        ({"measured": True}, "not a number or a phrase"),
        ({"measured": [1, 2]}, "not a number"),
        ({"interval": (2.0, 1.0)}, "lower 2.0 exceeds upper 1.0"),
        ({"interval": (0.0, math.inf)}, "a bound is inf"),
        ({"interval": (0.0, None)}, "a bound is None"),
        ({"interval": 1.0}, "interval is .lower, upper."),
        ({"interval": (1.0, 2.0, 3.0)}, "interval is .lower, upper."),
    ],
)
def test_a_claim_that_a_reader_could_not_rely_on_is_refused(changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        claim(**changes)


def test_shared_ids_are_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(ValueError, match=r"share the ids \['corollary-iii.6'\]"):
        write_claims(tmp_path / "claims.json", [claim(), claim()])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b"{}", b"[1]", b'[{"id": "a"}]', b'[{"verdict": NaN}]']
)
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "claims.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(f"{path} is no claims file")):
        read_claims(path)


def test_an_edited_verdict_is_found(tmp_path):
    path = write_claims(tmp_path / "claims.json", [claim()])
    path.write_text(path.read_text().replace("certified", "proved"))
    with pytest.raises(ValueError, match="has the verdict 'proved'"):
        read_claims(path)


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(OutputError, match=r"cannot read .*No such file"):
        read_claims(tmp_path / "claims.json")
