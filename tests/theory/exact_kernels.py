"""Kernels of f and f* for S_i = λ_i I at fifty digits, of the very doubles given."""

import mpmath


def exact(x, client, variances, alpha=1):
    """G with S_i, G with the pooled S (weights by number of points), V, and α²."""
    n, d = len(x), len(x[0])
    points = [[mpmath.mpf(float(v)) for v in row] for row in x]
    own = [mpmath.mpf(float(variances[name])) for name in client]
    mean = sum(own) / n
    size = [mpmath.sqrt(sum(v * v for v in row)) for row in points]
    g, pooled, v = (mpmath.zeros(n) for _ in range(3))
    for p in range(n):
        for q in range(n):
            dot = sum(a * b for a, b in zip(points[p], points[q], strict=True))
            c = mpmath.mpf(1) if p == q else dot / (size[p] * size[q])
            angle = mpmath.acos(c)
            kappa = (
                size[p] * size[q] * (mpmath.sin(angle) + (mpmath.pi - angle) * c) / 2 / mpmath.pi
            )
            root = mpmath.sqrt(own[p] * own[q])
            g[p, q], pooled[p, q] = kappa / d / root, kappa / d / mean
            v[p, q] = (dot * (mpmath.pi - angle) / 2 / mpmath.pi - kappa / d) / root
    return g, pooled, v / mpmath.mpf(float(alpha)) ** 2


def masked(matrix, client):
    out = matrix.copy()
    for p in range(matrix.rows):
        for q in range(matrix.cols):
            out[p, q] = matrix[p, q] if client[p] == client[q] else 0
    return out


def ends(matrix):
    values = mpmath.eigsy(matrix, eigvals_only=True)
    return min(values), max(values)


def inside(value, enclosure):
    return mpmath.mpf(enclosure.lower) <= value <= mpmath.mpf(enclosure.upper)
