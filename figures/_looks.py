"""Colour, line style, marker and name of every policy, algorithm, client and theory line.

Colours are Okabe and Ito's (2008, safe for colour-blind readers) with some of Tol's; line styles
and markers differ too, so that nothing is lost in a grey print.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.colors import to_hex

Dash = str | tuple[int, tuple[float | int, ...]]
_LONG: Dash = (0, (6, 2))
_DOTS: Dash = (0, (1, 1.4))
_DASH_DOT: Dash = (0, (5, 1.6, 1, 1.6))
_DASH_TWO_DOTS: Dash = (0, (5, 1.4, 1, 1.4, 1, 1.4))


@dataclass(frozen=True)
class Look:
    """Colour, line style, marker and display name of one thing."""

    label: str
    colour: str
    dash: Dash
    marker: str

    def line(
        self, *, label: bool = True, markers: bool = True, points: int | None = None
    ) -> dict[str, Any]:
        """Keywords for `ax.plot`; `points`, the line's length, thins the markers to about 15."""
        keywords: dict[str, Any] = {"color": self.colour, "linestyle": self.dash}
        if markers:
            keywords |= {"marker": self.marker, "markeredgecolor": "white"}
        if markers and points is not None:
            keywords |= {"markevery": max(1, -(-points // 15))}
        return keywords | ({"label": self.label} if label else {})

    def band(self) -> dict[str, Any]:
        """Keywords for `ax.fill_between` around the line: its interval."""
        return {"color": self.colour, "alpha": 0.18, "linewidth": 0}

    def points(self, *, label: bool = True) -> dict[str, Any]:
        """Keywords for `ax.errorbar` or `ax.plot` without a line."""
        return {**self.line(label=label), "linestyle": "none"}


_LOOKS: dict[str, Look] = {
    # batch-normalization policies
    "aggregated": Look("aggregated BN (f)", "#004488", _LONG, "s"),
    "client_specific": Look("client-specific BN (f*)", "#d55e00", "-", "o"),
    "client_statistics": Look("client statistics only", "#009e73", _DASH_DOT, "^"),
    "client_affine": Look("client affine only", "#cc79a7", _DOTS, "D"),
    # features whose divergence is measured; per-unit scaling is what client-specific BN does
    "raw": Look("raw inputs", "#777777", _DASH_TWO_DOTS, "D"),
    "per_unit": Look("per-unit BN", "#d55e00", "-", "o"),
    "affine": Look("client-specific BN, with its γ, β", "#d55e00", _DOTS, "v"),
    "whitened": Look("full whitening", "#00a878", _DASH_DOT, "^"),
    # algorithms
    "fedavg": Look("FedAvg", "#1a1a1a", "-", "o"),
    "fedprox": Look("FedProx", "#0072b2", _LONG, "s"),
    "scaffold": Look("SCAFFOLD", "#e69f00", _DASH_DOT, "^"),
    "fedadam": Look("FedAdam", "#009e73", _DOTS, "D"),
    "fednova": Look("FedNova", "#d55e00", _DASH_TWO_DOTS, "v"),
    "fedbn": Look("FedBN", "#cc79a7", "-", "P"),
    "moon": Look("MOON", "#56b4e9", _LONG, "X"),
    "feddc": Look("FedDC", "#882255", _DASH_DOT, "<"),
    "perfedavg": Look("Per-FedAvg", "#999933", _DOTS, ">"),
    "local": Look("local only", "#777777", _DASH_TWO_DOTS, "*"),
    # theory beside measurement
    "measured": Look("measured", "#1a1a1a", "-", "o"),
    "predicted": Look("linearised prediction", "#0072b2", _DASH_DOT, "^"),
    "bound": Look("bound of Theorem III.4", "#777777", _DOTS, "v"),
    "true_kernel": Look("kernel of the normalised network", "#009e73", "-", "D"),
    "printed_kernel": Look("Eq. (10) as printed", "#aa3377", _LONG, "X"),
    # the answers of the structural causal model
    "observational": Look("observational, P(Y | X)", "#56b4e9", "-", "v"),
    "backdoor": Look("back-door adjustment, Eq. (20)", "#009e73", _DASH_DOT, "^"),
    "do_f": Look("P(Y | F), domain cut off", "#882255", "-", "D"),
    "do_s": Look("do(S), statistics of the population", "#e69f00", _LONG, "P"),
    "bayes": Look("Bayes rule that knows the domain", "#777777", _DOTS, "X"),
    # the clients of the embedded federation
    "mnist": Look("MNIST", "#332288", "-", "o"),
    "optdigits": Look("Optdigits", "#117733", _LONG, "s"),
    "mnist-m": Look("MNIST-M", "#cc6677", _DASH_DOT, "^"),
    "synth-digits": Look("Synth-Digits", "#ddaa33", _DOTS, "D"),
}
SPARE_COLOURS = ("#332288", "#117733", "#cc6677", "#ddaa33", "#882255", "#44aa99", "#999933")
_SPARE_DASHES = ("-", _LONG, _DASH_DOT, _DOTS, _DASH_TWO_DOTS)
_SPARE_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h")


def look(name: str) -> Look:
    """The look of a known policy, algorithm, client or theory line.

    Raises:
        ValueError: an unknown name; see `looks` for clients of other federations.
    """
    if name not in _LOOKS:
        near = difflib.get_close_matches(name, _LOOKS, n=3) or list(_LOOKS)
        raise ValueError(f"no look is defined for {name!r}; nearest: {', '.join(near)}")
    return _LOOKS[name]


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Looks for any names: known ones keep theirs, others get spare ones in the order given.

    Raises:
        ValueError: more unknown names than can be told apart.
    """
    wanted = list(dict.fromkeys(names))
    taken = {(_LOOKS[n].colour, _LOOKS[n].dash) for n in wanted if n in _LOOKS}
    # Five dashes and seven colours have no common factor: both change at every step.
    steps = range(len(SPARE_COLOURS) * len(_SPARE_DASHES))
    pairs = ((SPARE_COLOURS[k % 7], _SPARE_DASHES[k % 5], _SPARE_MARKERS[k % 11]) for k in steps)
    free = (pair for pair in pairs if pair[:2] not in taken)
    found = {}
    for name in wanted:
        spare = None if name in _LOOKS else next(free, None)
        if name not in _LOOKS and spare is None:
            raise ValueError(f"{len(wanted)} lines cannot be told apart: draw fewer, or panels")
        found[name] = _LOOKS[name] if spare is None else Look(name, *spare)
    return found


def ramp(n: int) -> list[str]:
    """Colours from dark to light for n steps of an ordered quantity, all legible on white."""
    if n < 1:
        raise ValueError(f"a ramp needs at least one colour, not {n}")
    colours = mpl.colormaps["viridis"]
    stops = [0.0] if n == 1 else [0.82 * k / (n - 1) for k in range(n)]
    return [to_hex(colours(stop)) for stop in stops]
