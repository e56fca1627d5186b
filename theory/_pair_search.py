"""Search for two networks whose agreement tells two domains apart: objective, gradient, starts."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray
Labelled = tuple[np.ndarray, np.ndarray]  # points, and which of them are of A

_DECAYS = (0.01, 0.03, 0.1)
_FEATURES, _DIRECTIONS = 200, 128  # above so many features the networks see so many directions
_SHARP = 3.0  # of a start's hyperplanes: tanh of it is nearly the sign one standard deviation off
_SMALL = 0.1  # weights of a start's spare units


@dataclass(frozen=True, eq=False)
class Networks:
    """f and f' of the two-layer class: f(x) = Σ c_k φ(w_k·x + b_k), φ the ReLU.

    Attributes:
        w: (2, m, d).
        b: (2, m).
        c: (2, m).
    """

    w: Float[Array, "2 m d"]
    b: Float[Array, "2 m"]
    c: Float[Array, "2 m"]

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n 2"]:
        """f(x) and f'(x)."""
        return np.einsum("nkm,km->nk", self.hidden(x), self.c)

    def hidden(self, x: Float[Array, "n d"]) -> Float[Array, "n 2 m"]:
        """Activations of both."""
        two, m, d = self.w.shape
        active = x @ self.w.reshape(two * m, d).T
        active += self.b.reshape(-1)
        np.maximum(active, 0, out=active)
        return active.reshape(len(x), two, m)

    def agree(self, x: Float[Array, "n d"]) -> Bool[Array, " n"]:
        """Where both are positive, or neither is."""
        positive = self(x) > 0
        return positive[:, 0] == positive[:, 1]

    def flat(self) -> Float[Array, " p"]:
        """All parameters as one vector."""
        return np.concatenate([self.w.ravel(), self.b.ravel(), self.c.ravel()])

    def like(self, flat: Float[Array, " p"]) -> "Networks":
        """Networks of this shape with other parameters."""
        ends = np.cumsum([self.w.size, self.b.size])
        parts = np.split(flat, ends)
        return Networks(*(p.reshape(old.shape) for p, old in zip(parts, self.parts, strict=True)))

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """w, b, c."""
        return self.w, self.b, self.c


def best_pair(
    fit: Labelled,
    validation: Labelled,
    linear: tuple[Float[Array, " d"], float],
    effort: tuple[int, int, int],
    rng: np.random.Generator,
) -> tuple[Networks, float]:
    """The pair with the greatest d on the validation part, and its weight decay (0: a bare start).

    Args:
        fit: points to fit, and which of them are of A.
        validation: points to choose with.
        linear: (w, c) of a half-space that says A where w·x > c.
        effort: width, number of random starts, iterations from each start.
        rng: of the starts.
    """
    (x, of_a), (width, extra, steps) = fit, effort
    weight = np.where(of_a, 1 / of_a.sum(), -1 / (~of_a).sum())
    best: tuple[float, Networks, float] | None = None
    for start in _starts(x, of_a, linear, width, extra, rng):
        ends = [(start, 0.0)] + [(_descend(start, x, weight, k, steps), k) for k in _DECAYS]
        for nets, decay in ends:
            agree = nets.agree(validation[0])
            d = float(agree[validation[1]].mean() - agree[~validation[1]].mean())
            if best is None or d > best[0]:
                best = d, nets, decay
    assert best is not None
    return best[1], best[2]


def _descend(
    start: Networks, x: Float[Array, "n d"], weight: Float[Array, " n"], decay: float, steps: int
) -> Networks:
    from scipy.optimize import minimize

    def value(flat: Array) -> tuple[float, Array]:
        return loss(start.like(flat), x, weight, decay)

    found = minimize(value, start.flat(), jac=True, method="L-BFGS-B", options={"maxiter": steps})
    return start.like(found.x)


def _starts(
    x: Float[Array, "n d"],
    of_a: Bool[Array, " n"],
    linear: tuple[Float[Array, " d"], float],
    width: int,
    extra: int,
    rng: np.random.Generator,
) -> Iterator[Networks]:
    (w, c), d = linear, x.shape[1]
    norm = float(np.linalg.norm(w))
    if norm > 0:
        sharp = _SHARP / norm
        constant = np.stack([sharp * w, np.zeros(d)])
        yield linear_start(constant, np.array([-sharp * c, 1.0]), width, rng)
    for planes in slabs(x[of_a], x[~of_a]):
        yield linear_start(*planes, width, rng)
    for _ in range(extra):
        yield random_start(d, width, rng)


def subspace(
    z: Float[Array, "n d"], w: Float[Array, " d"], seed: int
) -> Float[Array, "k d"] | None:
    """Leading principal directions of the points, and the unit vector along w; None if d is small.

    The directions are divided by the root mean square of the coordinates along them, so that these
    are of the order of 1, as single features are.
    """
    if z.shape[1] <= _FEATURES:
        return None
    from sklearn.decomposition import PCA

    count = min(_DIRECTIONS, len(z) - 1)
    found = PCA(count, svd_solver="randomized", random_state=seed % 2**32).fit(z)
    leading = np.asarray(found.components_)
    size = float((z @ leading.T).std()) or 1.0
    along = w / (float(np.linalg.norm(w)) or 1.0)
    return np.concatenate([leading / size, along[None]])


def loss(
    nets: Networks, x: Float[Array, "n d"], weight: Float[Array, " n"], decay: float
) -> tuple[float, Float[Array, " p"]]:
    """−Σ weight tanh f tanh f' + ½ decay ‖parameters‖², and its gradient.

    With weights 1/n_A on A and −1/n_B on B the sum is E_A[ss'] − E_B[ss'], signs smoothed.
    """
    h = nets.hidden(x)
    t = np.tanh(np.einsum("nkm,km->nk", h, nets.c))
    # ∂/∂f = −weight tanh f' (1 − tanh² f), and the same with f and f' exchanged.
    back = -weight[:, None] * t[:, ::-1] * (1 - t * t)
    c = np.einsum("nkm,nk->km", h, back)
    at_hidden = (h > 0) * (back[:, :, None] * nets.c)
    w = at_hidden.reshape(len(x), -1).T @ x
    flat = nets.flat()
    gradient = np.concatenate([w.ravel(), at_hidden.sum(axis=0).ravel(), c.ravel()])
    value = -weight @ (t[:, 0] * t[:, 1]) + 0.5 * decay * flat @ flat
    return float(value), gradient + decay * flat


def linear_start(
    w: Float[Array, "2 d"], b: Float[Array, " 2"], width: int, rng: np.random.Generator
) -> Networks:
    """f(x) = w·x + b, as φ(t) − φ(−t) = t, and small spare units that may grow."""
    d = w.shape[1]
    units = _SMALL / np.sqrt(d) * rng.normal(size=(2, width, d))
    bias, out = np.zeros((2, width)), _SMALL / np.sqrt(width) * rng.normal(size=(2, width))
    units[:, 0], units[:, 1] = w, -w
    bias[:, 0], bias[:, 1] = b, -b
    out[:, 0], out[:, 1] = 1.0, -1.0
    return Networks(units, bias, out)


def random_start(d: int, width: int, rng: np.random.Generator) -> Networks:
    """He's initialisation."""
    w = rng.normal(size=(2, width, d)) * np.sqrt(2 / d)
    c = rng.normal(size=(2, width)) * np.sqrt(2 / width)
    return Networks(w, rng.normal(size=(2, width)), c)


def slabs(a: Float[Array, "n d"], b: Float[Array, "m d"]) -> Iterator[tuple[Array, Array]]:
    """Pairs of parallel hyperplanes across which the spread of both samples differs most.

    The points between w·x = −t and w·x = t are where sign(w·x − t) ≠ sign(w·x + t): a set of HΔH
    for half-spaces, along the first and the last generalised eigenvector of the covariances.
    """
    from scipy.linalg import eigh

    both = np.cov(np.concatenate([a, b]).T).reshape(a.shape[1], -1)
    first = np.cov(a.T).reshape(both.shape)
    ridge = 0.1 * (float(both.trace()) / len(both) or 1.0) * np.eye(len(both))
    _, vectors = eigh(first, both + ridge)
    for u in (vectors[:, -1], vectors[:, 0]):
        centre = np.concatenate([a, b]).mean(axis=0) @ u
        p, q = np.sort(np.abs(a @ u - centre)), np.sort(np.abs(b @ u - centre))
        grid = np.concatenate([p, q])
        gap = np.searchsorted(p, grid) / len(p) - np.searchsorted(q, grid) / len(q)
        k = int(np.abs(gap).argmax())
        sharp = _SHARP / max(float(np.std(grid)), 1e-6)  # constant features are 0 up to rounding
        # Agreement outside of the slab is to be commoner in A: it is where A has less within.
        sign = 1.0 if gap[k] < 0 else -1.0
        w = sharp * np.stack([u, sign * u])
        yield w, sharp * np.array([-centre - grid[k], sign * (-centre + grid[k])])
