"""Text for LaTeX: special characters escaped, the field's signs as mathematics."""

import re

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\n": " ",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
}
_GREEK = (
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
    "kappa",
    "lambda",
    "mu",
    "nu",
    "xi",
    "omicron",
    "pi",
    "rho",
    "varsigma",
    "sigma",
    "tau",
    "upsilon",
    "phi",
    "chi",
    "psi",
    "omega",
)
_MATH = {
    **{chr(0x3B1 + k): rf"\{name}" for k, name in enumerate(_GREEK) if name != "omicron"},
    **{chr(0x391 + k): rf"\{_GREEK[k].capitalize()}" for k in (2, 3, 7, 10, 13, 15)},
    "Σ": r"\Sigma",
    "Υ": r"\Upsilon",
    "Φ": r"\Phi",
    "Ψ": r"\Psi",
    "Ω": r"\Omega",
    "∞": r"\infty",
    "±": r"\pm",
    "×": r"\times",
    "·": r"\cdot",
    "−": "-",
    "≤": r"\leq",
    "≥": r"\geq",
    "≠": r"\neq",
    "≈": r"\approx",
    "∝": r"\propto",
    "∈": r"\in",
    "→": r"\to",
    "←": r"\gets",
    "⊥": r"\perp",
    "′": r"'",
    "∑": r"\sum",
    "∆": r"\Delta",
    "µ": r"\mu",
    "‖": r"\Vert",
    "√": r"\surd",
    "½": r"\frac{1}{2}",
    "∗": r"\ast",
    "△": r"\bigtriangleup",
    "▽": r"\bigtriangledown",
    "○": r"\circ",
    "†": r"^{\dagger}",
    **{chr(0x2080 + k): f"_{{{k}}}" for k in range(10)},
    "⁰": "^{0}",
    "¹": "^{1}",
    "²": "^{2}",
    "³": "^{3}",
    **{chr(0x2070 + k): f"^{{{k}}}" for k in range(4, 10)},
    "⁻": "^{-}",
    "ᵀ": r"^{\top}",
    "ₘ": "_{m}",
    "ᵢ": "_{i}",
    # Private signs, which stand for the words below while a text is cut into runs.
    "\ue000": r"_{\min}",
    "\ue001": r"_{\max}",
}
_WORDS = {"λ_min": "λ\ue000", "λ_max": "λ\ue001"}
_RUN = re.compile(f"([{''.join(map(re.escape, _MATH))}]+)")


def escape(text: object) -> str:
    """Escapes one cell or caption for LaTeX; runs of mathematical signs become one formula."""
    pieces = []
    source = str(text)
    for word, signs in _WORDS.items():
        source = source.replace(word, signs)
    for run in _RUN.split(source):
        if run and run[0] in _MATH:
            pieces.append(f"${_merged(''.join(_MATH[sign] for sign in run))}$")
        else:
            pieces.append("".join(_SPECIAL.get(sign, sign) for sign in run))
    return "".join(pieces)


def _merged(formula: str) -> str:
    """Two indices or two powers in a row become one: LaTeX refuses a double subscript."""
    while (shorter := re.sub(r"([_^])\{([^}]*)\}\1\{", r"\1{\2", formula)) != formula:
        formula = shorter
    return re.sub(r"([_^]\{[^}]*\}[_^]\{[^}]*\})(?=[_^])", r"\1{}", formula)
