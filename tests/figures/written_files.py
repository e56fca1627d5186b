"""What every section's files must hold, whatever was run."""

import re

from figures.claims import read_claims


def in_order(product, folder):
    """Claims can be read again, point to figures that are there, and no file holds a NaN."""
    assert read_claims(folder / "claims.json") == product.claims
    for claim in product.claims:
        assert claim.figure is None or (folder / claim.figure).is_file()
    for path in product.written:
        if path.suffix in (".csv", ".tex", ".json", ".html"):
            text = re.sub(r"data:[^\"]*", "", path.read_text(encoding="utf-8"))
            assert not re.search(r"\b(nan|inf|undefined)\b", text, re.IGNORECASE), path.name
