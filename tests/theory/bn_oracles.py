"""Routes to single entries of the BN kernels that share nothing with the package.

Definitions, with q_i(v) = vᵀS_i v + eps, v ~ N(0, α²I), x of client i and y of client j:

    G = E φ(v·x) φ(v·y) / √(q_i q_j),
    V = E ‖v‖²/√(q_i q_j) ⟨x - S_i v (v·x)/q_i, y - S_j v (v·y)/q_j⟩ 1{v·x > 0} 1{v·y > 0}.

* `closed_form`: S_i = λ_i I. * `on_a_line`: d = 1. * `on_a_circle`: d = 2, over the angle of v.

mpmath's precision is the caller's. Any d: `bn_laplace.laplace`.
"""

from itertools import pairwise

import mpmath as mp


def closed_form(x, y, scales, component):
    """S_i = λ_i I: κ₁/(d√(λ_iλ_j)), and ((x·y)P₀ - κ₁/d)/√(λ_iλ_j); exact mpf."""
    x, y = [mp.mpf(float(t)) for t in x], [mp.mpf(float(t)) for t in y]
    nx, ny = mp.norm(x), mp.norm(y)
    gap = [a / nx - b / ny for a, b in zip(x, y, strict=True)]
    total = [a / nx + b / ny for a, b in zip(x, y, strict=True)]
    theta = 2 * mp.atan2(mp.norm(gap), mp.norm(total))
    arc = mp.pi - theta
    kappa = nx * ny * (mp.sin(theta) + arc * mp.cos(theta)) / (2 * mp.pi) / len(x)
    root = mp.sqrt(mp.mpf(float(scales[0])) * mp.mpf(float(scales[1])))
    if component == "magnitude":
        return kappa / root
    return (nx * ny * mp.cos(theta) * arc / (2 * mp.pi) - kappa) / root


def on_a_line(x, y, variances, eps, alpha, component):
    """d = 1, where x - S v (v·x)/q = x eps/q: an integral over v > 0, or 1/2 of it at eps = 0."""
    x, y, s, t, eps, alpha = (mp.mpf(float(k)) for k in (x, y, *variances, eps, alpha))
    if x * y <= 0:
        return mp.mpf(0)
    if eps == 0:
        return x * y / (2 * mp.sqrt(s * t)) if component == "magnitude" else mp.mpf(0)

    def density(v):
        q, r = s * v * v + eps, t * v * v + eps
        value = x * y * v * v / mp.sqrt(q * r) * mp.npdf(v, 0, alpha)
        return value if component == "magnitude" else value * eps * eps / (q * r)

    turns = {mp.sqrt(eps / k) for k in (s, t)} | {alpha}
    ends = {factor * turn for factor in (mp.mpf(1) / 8, 1, 8) for turn in turns}
    far = 20 * alpha
    return mp.quad(density, [0, *sorted(e for e in ends if e < far), far])


def on_a_circle(x, y, metrics, eps, alpha, component):
    """d = 2: over the angle of v, where both half-planes are active; eps > 0 adds its length."""
    x, y = ([mp.mpf(float(t)) for t in point] for point in (x, y))
    s, t = ([[mp.mpf(float(c)) for c in row] for row in metric] for metric in metrics)
    eps, alpha = mp.mpf(float(eps)), mp.mpf(float(alpha))
    middle_x, middle_y = mp.atan2(x[1], x[0]), mp.atan2(y[1], y[0])
    turn = middle_y - middle_x
    turn -= 2 * mp.pi * mp.nint(turn / (2 * mp.pi))
    lower = max(middle_x, middle_x + turn) - mp.pi / 2
    upper = min(middle_x, middle_x + turn) + mp.pi / 2

    def at(angle):
        u = (mp.cos(angle), mp.sin(angle))
        images = [[m[k][0] * u[0] + m[k][1] * u[1] for k in (0, 1)] for m in (s, t)]
        q = [image[0] * u[0] + image[1] * u[1] for image in images]
        a, b = u[0] * x[0] + u[1] * x[1], u[0] * y[0] + u[1] * y[1]

        def on_ray(squared):
            """The integrand at v = √squared u; E over the squared length is outside."""
            r = [squared * value + eps for value in q]
            root = squared / mp.sqrt(r[0] * r[1])
            if component == "magnitude":
                return root * a * b
            left = [x[k] - squared * images[0][k] * a / r[0] for k in (0, 1)]
            right = [y[k] - squared * images[1][k] * b / r[1] for k in (0, 1)]
            return root * (left[0] * right[0] + left[1] * right[1])

        if eps == 0:
            return on_ray(mp.mpf(1))
        return ray_mean(on_ray, [eps / value for value in q], 2 * alpha**2)

    peaks = [mp.atan2(2 * m[0][1], m[0][0] - m[1][1]) / 2 + mp.pi / 2 for m in (s, t)]
    widths = [mp.sqrt(mp.det(mp.matrix(m))) / (m[0][0] + m[1][1]) for m in (s, t)]
    order = 24 if eps == 0 else 14
    return arc_integral(at, (lower, upper), peaks, widths, order) / (2 * mp.pi)


def ray_mean(function, turns, scale):
    """E function(scale·T), T exponential of mean 1, by the trapezoid rule in log T.

    `turns` are where the function's poles are, at -turn: its strip of analyticity is π wide.
    """
    step = mp.mpf(1) / 5
    low = min(mp.log(min(turns) / scale), 0) - 28
    count = int((mp.log(60) - low) / step) + 1
    total = mp.mpf(0)
    for k in range(count):
        t = mp.exp(low + k * step)
        total += mp.exp(-t) * t * function(scale * t)
    return total * step


def arc_integral(function, ends, peaks, widths, order):
    """Gauss-Legendre on pieces that shrink towards the peaks, whose poles are `widths` away."""
    lower, upper = ends
    cuts = {lower, upper}
    for peak, width in zip(peaks, widths, strict=True):
        for turn in range(-3, 4):
            centre = peak + turn * mp.pi
            offset = width
            cuts.add(centre)
            while offset < 3:
                cuts |= {centre - offset, centre + offset}
                offset *= 3
    inside = sorted(c for c in cuts if lower <= c <= upper)
    nodes = gauss_legendre(order)
    total = mp.mpf(0)
    for left, right in pairwise(inside):
        half, middle = (right - left) / 2, (right + left) / 2
        total += half * mp.fsum(w * function(middle + half * z) for z, w in nodes)
    return total


def gauss_legendre(n):
    """Nodes and weights on [-1, 1] in the working precision, from Newton's method."""
    found = []
    for k in range(n):
        z = mp.cos(mp.pi * (4 * k + 3) / (4 * n + 2))
        for _ in range(8):
            p, before = z, mp.mpf(1)
            for m in range(2, n + 1):
                p, before = ((2 * m - 1) * z * p - (m - 1) * before) / m, p
            slope = n * (z * p - before) / (z * z - 1)
            z -= p / slope
        found.append((z, 2 / ((1 - z * z) * slope**2)))
    return found
