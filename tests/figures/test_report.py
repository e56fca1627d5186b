import base64
import re
from html.parser import HTMLParser

import polars as pl
import pytest

from figures import style
from figures.claims import Claim, write_claims
from figures.records import OutputError
from figures.report import VERDICTS, Picture, Report, Sheet, sheet, write_report
from figures.tables import Layout, write_table

CLAIMS = [
    Claim(
        "corollary-iii.6",
        "λ_min(G*∞) ≥ λ_min(G∞) on the embedded digits",
        "UniFed, Corollary III.6",
        0.0528123,
        (0.0528122, 0.0528124),
        "certified",
        "figures/training.pdf",
    ),
    Claim("iii.6.lambda", "III.6 does not extend to Λ", "Counterexample, two points at 120°",
          "0.41667 against 0.41122", None, "consistent"),
    Claim("cnn.loss", "Client-specific BN lowers the training loss after 15 rounds",
          "UniFed, Section IV", -0.05, (-0.09, -0.01), "supported", "figures/training.pdf"),
    Claim("cnn.accuracy", "Client-specific BN raises the mean test accuracy",
          "UniFed, Section IV", 0.004, (-0.011, 0.019), "inconclusive", "figures/other.pdf"),
    Claim("cnn.rounds", "Client-specific BN needs fewer rounds to a loss of 0.5", "UniFed, Fig. 5",
          "9 (8 to >15) against 7 (6 to 9)", (1.0, 3.0), "contradicted"),
    Claim("printed", "e₀/2 of Eq. (10) bounds Λ(t)", "UniFed, Theorem III.4", 2, None, "violated"),
]  # fmt: skip


class Page(HTMLParser):
    """Tags with their attributes, and the text outside style."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self._style = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._style = tag == "style"

    def handle_data(self, data):
        if not self._style:
            self.words.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


def demonstration(folder, **changes):
    """Made-up results, drawn and written as a section would."""
    rounds = list(range(16))
    with style.context():
        figure, axes = style.panels(1, 2, width="double", ratio=0.36)
        for name, rate in (("aggregated", 0.86), ("client_specific", 0.8)):
            mine = style.look(name)
            loss = [2.3 * rate**k + 0.05 for k in rounds]
            band = [0.12 * v for v in loss]
            for ax, values in zip(axes, (loss, [1 - v / 2.6 for v in loss]), strict=True):
                ax.plot(rounds, values, **mine.line())
                low = [v - b for v, b in zip(values, band, strict=True)]
                high = [v + b for v, b in zip(values, band, strict=True)]
                ax.fill_between(rounds, low, high, **mine.band())
                ax.set_xlabel("communication round")
                style.whole_numbers(ax)
        axes[0].set(ylabel="mean over clients", title="Training loss")
        axes[1].set(ylabel="mean over clients", title="Test accuracy")
        style.letter(axes)
        style.legend_below(figure, axes)
    pdf, png = style.save(figure, folder / "figures" / "training")
    with style.context():
        figure, axes = style.panels(ratio=0.75)
        for colour, m in zip(style.ramp(4), (64, 256, 1024, 8192), strict=True):
            axes[0].plot(
                rounds, [0.7 ** (k * m**0.1) for k in rounds], color=colour, label=f"{m:,}"
            )
        axes[0].set(yscale="log", xlabel="step", ylabel="squared residual", title="Decay of f*")
        axes[0].legend(title="width m")
    column = style.save(figure, folder / "figures" / "decay")
    frame = pl.DataFrame(
        {
            "policy": ["aggregated BN (f)", "client-specific BN (f*)"],
            "accuracy": [0.8812, 0.8854],
            "lower": [0.87, 0.871],
            "upper": [0.8924, 0.8998],
            "rounds": ["9 (8 to >15), 2 of 3 seeds reached", "7 (6 to 9)"],
            "e0": [5.28e-9, 0.1118],
        }
    )
    layout = Layout(
        caption="Mean over four clients with Student t intervals over three seeds.",
        label="tab:final",
        columns={"policy": "Policy", "accuracy": "Test accuracy", "rounds": "Rounds to loss 0.5",
                 "e0": "e₀"},
        intervals={"accuracy": ("lower", "upper")},
    )  # fmt: skip
    files = write_table(folder / "tables" / "final", frame, layout)
    write_claims(folder / "claims.json", CLAIMS)
    content = {
        "title": "Convergence of client-specific batch normalization",
        "lead": "Made-up numbers: does a federation converge faster when each client keeps its own "
        "batch normalization? The spectra of the two kernels, and the training of a network.",
        "command": "python paper_repro.py --section convergence --preset default --seeds 3",
        "claims": CLAIMS,
        "facts": {
            "Preset": "default",
            "Federation": "digits: MNIST, Optdigits, MNIST-M, Synth-Digits; 743 images each",
            "Seeds": "0, 1, 2",
            "Versions": "Python 3.11.7, torch 2.13, numpy 2.4",
        },
        "pictures": (
            Picture(
                "Loss and accuracy per round",
                "Mean over four clients; bands are 95 % Student t intervals over n = 3 seeds.",
                png,
                pdf,
            ),
            Picture("Decay by width", "One run per width, common step size.", column[1], column[0]),
        ),
        "sheets": (sheet("Final values", frame, layout, files),),
        "notes": ("A last batch of one image was folded into the one before it.",),
    }
    return write_report(folder / "report.html", Report(**(content | changes)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("convergence")
    demonstration(folder)
    return folder


@pytest.fixture(scope="module")
def page(folder):
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def test_the_page_says_what_was_found_and_run(page):
    for words in (
        "Convergence of client-specific batch normalization",
        "λ min (G*∞) ≥ λ min (G∞) on the embedded digits",
        "UniFed, Corollary III.6",
        "0.05281 (± 1×10⁻⁷)",
        "−0.05 ± 0.04",
        "9 (8 to >15) against 7 (6 to 9) [1.000, 3.000]",
        "0, 1, 2",
        "python paper_repro.py --section convergence --preset default --seeds 3",
        "arXiv:2110.09974",
        "bands are 95 % Student t intervals over n = 3 seeds",
        "0.881 ± 0.011",
        "folded into the one before it",
    ):
        assert words in page.text, words


def test_every_verdict_has_its_badge_and_meaning(page):
    badges = [a["class"] for tag, a in page.tags if "badge" in (a.get("class") or "")]
    assert badges == [f"badge {VERDICTS[word][0]}" for word in VERDICTS] + [
        f"badge {VERDICTS[claim.verdict][0]}" for claim in CLAIMS
    ]
    for word, (_, sign, meaning) in VERDICTS.items():
        assert f"{sign} {word}" in page.text and meaning in page.text


def test_the_figures_are_inside_and_their_files_beside(folder, page):
    images = page.all("img")
    assert [image["width"] for image in images] == ["924", "449"]
    data = base64.b64decode(images[0]["src"].removeprefix("data:image/png;base64,"))
    assert data == (folder / "figures" / "training.png").read_bytes()
    assert "Student t intervals" in images[0]["alt"]
    links = [a["href"] for a in page.all("a")]
    for link in ("figures/training.pdf", "tables/final.csv", "tables/final.tex", "claims.json"):
        assert link in links and (folder / link).is_file()
    assert links.count("#figure-1") == 2, "claims point at the figure in the page"
    assert "figures/other.pdf" in links, "or at the file, where the page does not hold it"
    anchors = {a["id"] for _, a in page.tags if "id" in a}
    assert {link[1:] for link in links if link.startswith("#")} <= anchors


def test_nothing_is_loaded_from_elsewhere(folder, page):
    assert "script" not in [tag for tag, _ in page.tags] and not page.all("link")
    text = re.sub(r"data:image/png;base64,[\w+/=]+", "", (folder / "report.html").read_text())
    assert not re.search(r"https?://|url\(|@import|src=\"(?!\")", text)
    policy = next(m for m in page.all("meta") if m.get("http-equiv"))["content"]
    assert policy.startswith("default-src 'none'")


def test_the_same_content_gives_the_same_bytes(folder, tmp_path):
    assert demonstration(tmp_path).read_bytes() == (folder / "report.html").read_bytes()


def test_text_cannot_become_markup(tmp_path):
    hostile = "<script>alert('x')</script> & \"quoted\""
    claim = Claim("x", hostile, hostile, hostile, None, "certified", 'figures/"><b>.pdf')
    path = demonstration(
        tmp_path,
        title=hostile,
        lead=hostile,
        command=hostile,
        claims=[claim],
        facts={hostile: hostile},
        sheets=[Sheet(hostile, hostile, [hostile], [[hostile]])],
        notes=[hostile],
        citation=hostile,
    )
    page = Page(path.read_text(encoding="utf-8"))
    assert not page.all("script") and not page.all("b")
    assert page.text.count(hostile) >= 10


def test_a_report_without_anything_is_still_a_page(tmp_path):
    path = write_report(tmp_path / "r.html", Report("Title", "Lead.", "command", []))
    page = Page(path.read_text(encoding="utf-8"))
    assert "No claim was judged" in page.text
    assert not page.all("img")
    assert "#figures" not in [a["href"] for a in page.all("a")]


def test_a_missing_or_broken_picture_is_named(tmp_path):
    png = tmp_path / "a.png"
    report = Report("T", "L", "c", [], pictures=[Picture("a", "b", png)])
    with pytest.raises(OutputError, match=r"cannot read .*a\.png"):
        write_report(tmp_path / "r.html", report)
    png.write_bytes(b"GIF89a")
    with pytest.raises(ValueError, match=r"a\.png is no PNG: draw the figures again"):
        write_report(tmp_path / "r.html", report)
    assert not (tmp_path / "r.html").exists()


def test_only_columns_of_numbers_are_set_to_the_right(page):
    heads = page.all("th")[-4:]
    assert [head.get("class") for head in heads] == [None, "number", None, "number"]


def test_indices_are_set_low(folder):
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "λ<sub>min</sub>(G*∞) ≥ λ<sub>min</sub>(G∞)" in text


def test_ragged_tables_are_refused(tmp_path):
    report = Report("T", "L", "c", [], sheets=[Sheet("t", "", ["a", "b"], [["1", "2"], ["3"]])])
    with pytest.raises(ValueError, match="a row has 1 cells, not 2"):
        write_report(tmp_path / "r.html", report)


def test_links_with_spaces_are_quoted(tmp_path):
    item = Sheet("t", "", ["a"], [["1"]], csv=tmp_path / "my tables" / "50%.csv")
    page = Page(
        write_report(tmp_path / "r.html", Report("T", "L", "c", [], sheets=[item])).read_text()
    )
    assert "my%20tables/50%25.csv" in [a["href"] for a in page.all("a")]
