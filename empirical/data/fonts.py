"""Open fonts of installed packages whose ten digits a person can read at 20 pixels.

Left out on purpose: hairline weights, symbol fonts and old-style figures (cmex10, cmsy10, cmmi10);
Source Sans' TrueType twins; what is not the same everywhere, namely Lato and Manrope, which the
FreeTypes in Pillow 10 … 13 hint differently, and cmti10, which matplotlib has since 3.11 only.
Licences: docs/federation.md.
"""

from functools import cache, lru_cache
from pathlib import Path

from PIL import ImageFont

from empirical.data.sources import package_file

FONTS: tuple[tuple[str, str], ...] = tuple(
    (package, f"{folder}/{stem}")
    for package, folder, stems in (
        ("font_amatic_sc", "files", ("AmaticSC-Bold.ttf", "AmaticSC-Regular.ttf")),
        (
            "font_caladea",
            "files",
            [f"Caladea-{w}.ttf" for w in ("Bold", "BoldItalic", "Italic", "Regular")],
        ),
        (
            "font_hanken_grotesk",
            "files",
            [
                f"HankenGrotesk-{w}.otf"
                for w in ("Bold", "BoldItalic", "Italic", "Light", "Medium", "Regular", "SemiBold")
            ],
        ),
        (
            "font_roboto",
            "files",
            [
                f"Roboto-{w}.ttf"
                for w in (
                    "Black",
                    "BlackItalic",
                    "Bold",
                    "BoldItalic",
                    "Italic",
                    "Light",
                    "Medium",
                    "Regular",
                )
            ],
        ),
        (
            "font_source_sans_pro",
            "files",
            [
                f"SourceSansPro-{w}.otf"
                for w in ("Black", "BlackIt", "Bold", "BoldIt", "It", "Light", "Regular")
            ],
        ),
        (
            "matplotlib",
            "mpl-data/fonts/ttf",
            [
                f"{family}{style}.ttf"
                for family, styles in (
                    ("DejaVuSans", ("", "-Bold", "-BoldOblique", "-Oblique")),
                    ("DejaVuSansMono", ("", "-Bold")),
                    ("DejaVuSerif", ("", "-Bold", "-BoldItalic", "-Italic")),
                    ("STIXGeneral", ("", "Bol", "BolIta", "Italic")),
                    ("cm", ("b10", "r10", "ss10", "tt10")),
                )
                for style in styles
            ],
        ),
    )
    for stem in stems
)


@cache
def _file(font: int) -> Path:
    return package_file(*FONTS[font])


@lru_cache(maxsize=2048)
def font_of_height(font: int, height: int) -> ImageFont.FreeTypeFont:
    """Font number `font` of `FONTS`, sized so that its digit 8 is about `height` pixels tall.

    Fonts of one nominal size differ by a third in the height of their digits; the basic layout
    engine is what every build of Pillow has.
    """
    basic = ImageFont.Layout.BASIC
    probe = ImageFont.truetype(_file(font), 100, layout_engine=basic)
    box = probe.getbbox("8")
    size = max(1, round(100 * height / (box[3] - box[1])))
    return ImageFont.truetype(_file(font), size, layout_engine=basic)
