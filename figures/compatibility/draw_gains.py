"""The external difference in its two parts: a panel for serving, one for training."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from figures.compatibility.columns import POLICY_NAMES
from figures.compatibility.draw import PAPER, beside, head_beside, name_rows, ordered
from figures.compatibility.gains import EFFECTS, Gain, Gains, gains
from figures.compatibility.summary import AGGREGATED, SPECIFIC, Summary
from figures.experiments.cells import difference_text
from figures.experiments.names import paired_labels
from figures.statistics import PairedDifference
from figures.style import DOUBLE, GRID, INK, MUTED, letter, look, panels

TITLES = {
    "serving": "serving: Eqs. (3), (4) − server's statistics,\nthe aggregated model",
    "training": "training: client-specific − aggregated BN,\nboth served by Eqs. (3), (4)",
}
COLOURS = {"serving": AGGREGATED, "training": SPECIFIC}
"""What each effect changes: the aggregated model's serving, or the training."""


def effects(summary: Summary) -> Figure:
    """Draw both effects with intervals on one scale, a row a method, and the mean below a line."""
    found = gains(summary)
    place = {row.method: k for k, row in enumerate(ordered(summary.rows))}
    rows = sorted(found.rows, key=lambda row: place[row.method])
    names = [paired_labels([row.method])[row.method] for row in rows]
    names += [f"mean of {found.counted}"] * bool(found.effects)
    height = 0.26 * len(names) + 0.95
    figure, axes = panels(
        1, len(EFFECTS), width="double", ratio=height / DOUBLE, sharex=True, sharey=True
    )
    for ax, name in zip(axes, EFFECTS, strict=True):
        _panel(ax, name, rows, found, summary.seeds)
        name_rows(ax, names)
        ax.set_title(TITLES[name])
        ax.set_xlabel("difference of external accuracy (points)")
        head_beside(ax)
    axes[0].margins(x=0.06)
    axes[0].xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10], min_n_ticks=3))
    letter(axes)
    return figure


def _panel(ax: Axes, name: str, rows: list[Gain], found: Gains, seeds: int) -> None:
    ax.axvline(0.0, color=INK, linewidth=0.8, zorder=1.5)
    for k, row in enumerate(rows):
        effect = row.effects.get(name)
        if effect is not None:
            _mark(ax, k, effect, name)
            beside(ax, k, difference_text(effect, of=seeds))
        elif why := _why(row, name):
            where = ax.get_yaxis_transform()
            style = {"va": "center", "ha": "right", "fontsize": 8, "color": MUTED, "bbox": PAPER}
            ax.text(0.98, k, why, transform=where, **style)
    mean = found.effects.get(name)
    if mean is not None:
        ax.axhline(len(rows) - 0.5, color=GRID, linewidth=1.2)
        _mark(ax, len(rows), mean.difference, name)
        beside(ax, len(rows), difference_text(mean.difference, of=seeds), mean.verdict, INK)


def _mark(ax: Axes, k: int, effect: PairedDifference, name: str) -> None:
    low, high = (effect.mean if end is None else end for end in (effect.lower, effect.upper))
    error = [[100 * (effect.mean - low)], [100 * (high - effect.mean)]]
    keywords = look(COLOURS[name]).points(label=False)
    ax.errorbar(100 * effect.mean, k, xerr=error, elinewidth=1.0, **keywords)


def _why(row: Gain, name: str) -> str:
    """Say which side of an effect diverged."""
    lost = {policy for policy, way in EFFECTS[name] if row.cells[policy, way].diverged}
    return ", ".join(f"{POLICY_NAMES[policy]} BN diverged" for policy in sorted(lost))
