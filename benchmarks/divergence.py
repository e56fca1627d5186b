"""Bias and power of the estimates of d_H and d_HΔH where the truth is known, beside a popular one.

    python -m benchmarks.divergence               # about 15 minutes on one core; writes the table
    python -m benchmarks.divergence --quick       # few draws, printed only: does it run at all?

d_H: `proxy_a_distance` of two Gaussians N(0, I) and N(δe, I) in 50 dimensions, for half-spaces.
Popular: the recipe in wide use (unshuffled halves, ten strengths of which the one with the least
test error is reported, an error above a half flipped), with the same solver.
d_HΔH: `pair_divergence` of N(0, I) and N(0, diag(ρ, 1/ρ, 1, ...)) in 20 dimensions, whose total
variation a pair of half-spaces attains: d_HΔH = (8/π) arctan √ρ − 2, exactly.
"""

import argparse
import math
import platform
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import scipy
import sklearn
from scipy.stats import binom, norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import theory

RESULT = Path(__file__).parent / "results" / "divergence.md"
DELTA = LEVEL = 0.05
SIZES, TRUE, DIMENSION = (100, 400, 1000), (0.0, 0.24, 0.5, 1.0), 50
PAIR_SIZES, RATIOS, PAIR_DIMENSION = (400, 1000), (1.0, 3.0, 9.0), 20
STRENGTHS = np.logspace(-5, 4, 10)

HEAD = (
    "n, d_H | mean | bias | sd | < 0 | d(h) | lower | lower ≤ d_H | d(h) inside | p ≤ 5 % "
    "| popular: mean | bias | sd | p ≤ 5 %"
)
PAIR_HEAD = (
    "n, ρ, d_HΔH | mean | bias | sd | < 0 | lower | lower ≤ d_HΔH | p ≤ 5 % "
    "| half-spaces: mean | p ≤ 5 %"
)


def popular(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """2(1 − 2ε) with all that was chosen on the test half, and the p-value as if nothing was."""
    half = len(a) // 2
    fit = np.concatenate([a[:half], b[:half]])
    test = np.concatenate([a[half:], b[half:]])
    of_a, truth = np.arange(len(fit)) < half, np.arange(len(test)) < len(a) - half
    least, said = 1.0, truth
    for strength in STRENGTHS:
        decisions = LogisticRegression(C=strength, max_iter=200).fit(fit, of_a).predict(test)
        error = float((decisions != truth).mean())
        flipped = error > 0.5
        if min(error, 1 - error) < least:
            least, said = min(error, 1 - error), decisions ^ flipped
    naive = theory.held_out_divergence(said[truth], said[~truth], delta=DELTA)
    return 2 * (1 - 2 * least), naive.p_value


def true_divergence(classifier: object, shift: float) -> float:
    """d(h) of a fitted half-space under N(0, I) and N(shift e₁, I), in closed form."""
    w, c = classifier.half_space  # type: ignore[attr-defined]
    size = float(np.linalg.norm(w))
    if size == 0:
        return 0.0
    return 2 * float(norm.cdf(-c / size) - norm.cdf((shift * w[0] - c) / size))


def half_spaces(n: int, exact: float, draws: int) -> str:
    """A row: d_H at one number of points and one truth."""
    shift = 2 * float(norm.ppf((exact / 2 + 1) / 2))
    mean = shift * np.eye(DIMENSION)[0]
    known = theory.half_space_divergence(
        theory.Gaussian(np.zeros(DIMENSION), np.eye(DIMENSION)),
        theory.Gaussian(mean, np.eye(DIMENSION)),
    )
    assert abs(known.lower - exact) < 1e-9, known
    ours, true, others = [], [], []
    for draw in range(draws):
        rng = np.random.default_rng([n, round(100 * exact), draw])
        a, b = rng.standard_normal((2, n, DIMENSION))
        b += mean
        ours.append(theory.proxy_a_distance(a, b, seed=draw, delta=DELTA))
        true.append(true_divergence(ours[-1].classifier, shift))
        others.append(popular(a, b))
    pairs = list(zip(ours, true, strict=True))
    values = np.array([value for value, _ in others])
    return row(
        f"{n}, {exact:g}",
        *summary(ours, exact),
        f"{np.mean(true):.3f}",
        f"{np.mean([e.lower for e in ours]):.3f}",
        share((e.lower <= exact for e in ours), at_least=1 - DELTA),
        share((e.interval[0] <= d <= e.interval[1] for e, d in pairs), at_least=1 - DELTA),
        share((e.p_value <= LEVEL for e in ours), at_most=None if exact else LEVEL),
        f"{values.mean():.3f}",
        f"{values.mean() - exact:+.3f}",
        f"{values.std(ddof=1):.3f}",
        share((p <= LEVEL for _, p in others), at_most=None if exact else LEVEL),
    )


def pairs_of_networks(n: int, ratio: float, draws: int) -> str:
    """A row: d_HΔH at one number of points and one ratio of spreads."""
    exact = 8 / math.pi * math.atan(math.sqrt(ratio)) - 2
    scale = np.ones(PAIR_DIMENSION)
    scale[:2] = ratio, 1 / ratio
    known = theory.homogeneous_pair_divergence(np.eye(PAIR_DIMENSION), np.diag(scale))
    assert abs(known.lower - exact) < 1e-9, known
    ours, single = [], []
    for draw in range(draws):
        rng = np.random.default_rng([n, round(100 * ratio), draw])
        a, b = rng.standard_normal((2, n, PAIR_DIMENSION))
        b *= np.sqrt(scale)
        ours.append(theory.pair_divergence(a, b, seed=draw, delta=DELTA))
        single.append(theory.proxy_a_distance(a, b, seed=draw, delta=DELTA))
    null = ratio == 1
    return row(
        f"{n}, {ratio:g}, {exact:.3f}",
        *summary(ours, exact),
        f"{np.mean([e.lower for e in ours]):.3f}",
        share((e.lower <= exact for e in ours), at_least=1 - DELTA),
        share((e.p_value <= LEVEL for e in ours), at_most=LEVEL if null else None),
        f"{np.mean([e.value for e in single]):.3f}",
        share((e.p_value <= LEVEL for e in single), at_most=LEVEL if null else None),
    )


def summary(found: list[theory.Estimate], exact: float) -> tuple[str, ...]:
    """Mean, bias, standard deviation, share of negatives."""
    values = np.array([e.value for e in found])
    return (
        f"{values.mean():.3f}",
        f"{values.mean() - exact:+.3f}",
        f"{values.std(ddof=1):.3f}",
        share(values < 0),
    )


def share(
    events: Iterable[bool], at_least: float | None = None, at_most: float | None = None
) -> str:
    """How often; bold where a promise is broken, by a binomial test at 1 %."""
    happened = np.array(list(events), dtype=bool)
    count, n, broken = int(happened.sum()), len(happened), False
    if at_least is not None:
        broken = float(binom.cdf(count, n, at_least)) < 0.01
    if at_most is not None:
        broken = float(binom.sf(count - 1, n, at_most)) < 0.01
    text = f"{100 * count / n:.1f} %"
    return f"**{text}**" if broken else text


def row(*cells: str) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def lines(draws: int, pair_draws: int) -> Iterator[str]:
    """The page."""
    setting = (
        f"`python -m benchmarks.divergence`, {draws} and {pair_draws} draws a row, δ = {DELTA:g}, "
        f"float64, Python {platform.python_version()}, NumPy {np.__version__}, SciPy "
        f"{scipy.__version__}, scikit-learn {sklearn.__version__}. Bold: a promise broken by a "
        "binomial test at 1 %. A mean has a standard error of sd/√draws."
    )
    yield from ("# Divergence from samples: bias, coverage, power", "", setting, "")
    yield f"## d_H of half-spaces, N(0, I) and N(δe, I), {DIMENSION} dimensions, n points each"
    yield from ("", row(*HEAD.split(" | ")), f"|{'---|' * len(HEAD.split(' | '))}")
    for n in SIZES:
        for exact in TRUE:
            yield half_spaces(n, exact, draws)
    yield from (
        "",
        "- `proxy_a_distance` to the left: mean, bias against d_H, sd, share of negative values; "
        "d(h), the true divergence of the half-space that was found, in closed form, which the "
        "value estimates without bias: what is missing to d_H is what n points could not teach; "
        "mean of the lower bound, how often it held, how often the 95 % interval contained d(h), "
        "and how often p ≤ 5 %: false alarms where d_H = 0, power elsewhere.",
        "- Popular: unshuffled halves, the least test error of ten strengths, an error above a "
        "half flipped. Its p-value is that of the same decisions, as if nothing had been chosen.",
        "",
        f"## d_HΔH, N(0, I) and N(0, diag(ρ, 1/ρ, 1, ...)), {PAIR_DIMENSION} dimensions",
        "",
        row(*PAIR_HEAD.split(" | ")),
        f"|{'---|' * len(PAIR_HEAD.split(' | '))}",
    )
    for n in PAIR_SIZES:
        for ratio in RATIOS:
            yield pairs_of_networks(n, ratio, pair_draws)
    yield from (
        "",
        "- `pair_divergence` to the left, which holds a third of the points out; "
        "`proxy_a_distance` with half-spaces on the same points to the right: it sees only what "
        "one half-space sees.",
    )


def main() -> None:
    """Prints the page, and stores it unless `--quick`."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--draws", type=int, default=300)
    options.add_argument("--pair-draws", type=int, default=100)
    options.add_argument("--quick", action="store_true")
    chosen = options.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # of the popular recipe's large strengths
    counts = (3, 2) if chosen.quick else (chosen.draws, chosen.pair_draws)
    page = []
    for line in lines(*counts):
        print(line, flush=True)
        page.append(line)
    if not chosen.quick:
        RESULT.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
