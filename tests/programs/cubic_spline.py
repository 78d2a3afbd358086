"""A natural cubic spline: Thomas algorithm for the second derivatives, bisection for the interval, constant outside."""

import numba
import numpy as np
from program import Program


@numba.njit
def second_derivatives(x, y):
    n = len(x)
    m = np.zeros(n)
    cp = np.zeros(n)
    dp = np.zeros(n)
    for i in range(1, n - 1):
        h0, h1 = x[i] - x[i - 1], x[i + 1] - x[i]
        rhs = 6.0 * ((y[i + 1] - y[i]) / h1 - (y[i] - y[i - 1]) / h0)
        denom = 2.0 * (h0 + h1) - h0 * cp[i - 1]
        cp[i] = h1 / denom
        dp[i] = (rhs - h0 * dp[i - 1]) / denom
    for i in range(n - 2, 0, -1):
        m[i] = dp[i] - cp[i] * m[i + 1]
    return m


@numba.njit
def evaluate(x, y, m, t):
    if t <= x[0]:
        return y[0]
    if t >= x[-1]:
        return y[-1]
    lo, hi = 0, len(x) - 1
    while hi - lo > 1:
        mid = (lo + hi) // 2
        if x[mid] > t:
            hi = mid
        else:
            lo = mid
    h = x[hi] - x[lo]
    a = (x[hi] - t) / h
    b = (t - x[lo]) / h
    return a * y[lo] + b * y[hi] + ((a**3 - a) * m[lo] + (b**3 - b) * m[hi]) * h * h / 6.0


@numba.njit
def squared_error(x, y, ts, data):
    m = second_derivatives(x, y)
    err = np.array([evaluate(x, y, m, t) for t in ts]) - data
    return (err**2).mean()


def twin(x, y, ts, data):
    n, h = len(x), np.diff(x)
    a = np.eye(n, dtype=complex)
    b = np.zeros(n, complex)
    for i in range(1, n - 1):
        a[i, i - 1 : i + 2] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
        b[i] = 6 * ((y[i + 1] - y[i]) / h[i] - (y[i] - y[i - 1]) / h[i - 1])
    m = np.linalg.solve(a, b)
    total = 0.0
    for t, d in zip(ts, data, strict=True):
        i = int(np.searchsorted(x.real, t.real)) - 1
        if i < 0 or i >= n - 1:
            value = y[0] if i < 0 else y[-1]
        else:
            u = t - x[i]
            slope = (y[i + 1] - y[i]) / h[i] - h[i] * (2 * m[i] + m[i + 1]) / 6
            value = y[i] + slope * u + m[i] / 2 * u**2 + (m[i + 1] - m[i]) / (6 * h[i]) * u**3
        total = total + (value - d) ** 2
    return total / len(ts)


RANDOM = np.random.default_rng(5)
PROGRAM = Program(
    "cubic spline",
    squared_error,
    (
        np.array([0.0, 0.7, 1.1, 2.0, 2.4, 3.5]),
        RANDOM.standard_normal(6),
        np.array([-0.2, 0.3, 0.9, 1.05, 1.7, 2.2, 3.1, 3.9]),
        RANDOM.standard_normal(8),
    ),
    (0, 1, 2),
    twin,
)
