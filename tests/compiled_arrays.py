"""Work arrays, whole-array arithmetic, reductions, products."""

from __future__ import annotations

import math

import numba
import numpy as np
from compiled_case import Table

TABLE = Table()
X = np.array([1.3, 0.7, 1.1, 0.9, 1.6, 0.55, 1.25])
C = np.array([0.3, 1.7, 0.4, 0.8, 0.2, 1.9, 0.6])
M = np.array([[0.2, 1.1, 0.7], [1.3, 0.4, 0.9], [0.8, 1.6, 0.5], [0.1, 1.2, 1.4]])


@TABLE.case(X)
def work_arrays(x):
    n = len(x)
    w, u, v, f = np.zeros(n + 1), np.empty((n, 2)), np.ones(3), np.full(2, 1.5)
    for i in range(n):
        w[i + 1] = w[i] * 0.5 + x[i] * x[i]
        u[i, 0] = w[i + 1]
        u[i, -1] = w[i] * x[i]
    v[1] = x[0]
    f[0] *= x[1]
    s = v[0] + v[1] * f[0] * f[1]
    for i in range(n):
        s += u[i, 0] * u[i, 1] if u[i, 0] > 0.9 else -2.0 * u[i, 1]
    return s


@TABLE.case(X)
def arrays_like_others(x):
    a, b, c = np.zeros_like(x), np.ones_like(x), np.full_like(x, 2.0)
    d = np.empty_like(x)
    a[0], b[1], c[2] = x[0], x[1], x[2]
    d[:] = a * b + c
    return d.sum() * d[2]


@TABLE.case(X)
def elements_accumulated(x):
    w = np.zeros(3)
    for i in range(7):
        w[i % 3] += x[i] * x[i]
        w[i % 3] *= 1.5
    return w[0] * w[1] * w[2]


@TABLE.case(X)
def integer_arrays_stay(x):
    count = np.zeros(2, np.int64)
    for v in x:
        count[0 if v < 1.0 else 1] += 1
    return x.sum() * count[0] + count.sum()


@TABLE.case(X, C)
def broadcasting(x, c):
    m = np.outer(x, c) * x.reshape(7, 1) + c - 1.0
    return (m / (1.0 + m * m)).sum()


@TABLE.case(X)
def functions_of_arrays(x):
    y = np.sqrt(x) + np.abs(x - 1.0) + 1 / x + x**2 + 2.0**x + np.maximum(x, 1.0) - np.tanh(-x)
    return y.mean() + (-x).sum()


@TABLE.case(X, C)
def written_in_place(x, c):
    y = np.exp(-((x - c) ** 2) / 2.0) * c + x
    z = y.copy()
    z[1:] += y[:-1] * 2
    z *= 0.5
    z -= c
    return (z * z).sum()


@TABLE.case(M)
def sums(m):
    return np.sum(m * m) + m.sum() * m.mean() + (m.sum(axis=0) ** 2).sum() + (np.sum(m, axis=1) ** 3).sum()


@TABLE.case(X)
def extremes(x):
    return np.max(x) * np.min(x) + x.max() - x.min() ** 2 + x[np.argmax(x)] * x[x.argmin()]


@TABLE.case(X)
def products(x):
    return np.prod(x) + (np.cumsum(x) * np.cumprod(x)).sum() + (np.diff(x) ** 2).sum()


@TABLE.case(X)
def joining(x):
    return (np.concatenate((x, x * 2)) ** 2).sum() + (np.roll(x, 1) * x).sum() + np.vstack((x, x))[1, 2]


@TABLE.case(X)
def arrays_from_lists(x):
    a = np.array([v * v for v in x])
    b = np.array([x[0], x[1], 1.0])
    c = np.array([[x[0], 1.0], [x[2], x[1]]])
    return a.sum() + b.sum() * b[1] + c[1, 0] * c[0, 1] * np.asarray(x)[3]


@TABLE.case(X, C)
def inner_products(x, c):
    return np.dot(x, c) * np.dot(x, x) + x @ c + x.dot(x)


@TABLE.case(M)
def matrix_products(m):
    return (m.T @ m).sum() + np.dot(m, m[0]).sum() ** 2


@TABLE.case(X)
def three_dimensions(x):
    t = np.zeros((2, 2, 2))
    for i in range(2):
        for j in range(2):
            for k in range(2):
                t[i, j, k] = x[i] * x[j + 1] * x[k + 2]
    return t.sum(axis=0)[0, 1] * t[1].sum() + t[:, 1, :].T[0, 1]


@TABLE.case(X)
def infinities_in_a_work_array(x):
    d = np.full(8, np.inf)
    d[0] = 0.0
    for i in range(7):
        a, b = d[i], d[i + 1]
        m = min(a, b)
        d[i + 1] = x[i] * x[i] + m - math.log(math.exp(-(a - m)) + math.exp(-(b - m)))
    return d[7]


@TABLE.case(X)
def tables_that_become_variables(x):
    u = np.linspace(0, 1, 7)
    for _ in range(3):
        u = u * x + 1
    m = np.eye(3)
    m[0, 1] = x[0]
    m *= x[1]
    return u.sum() * m.sum()


@TABLE.case(X)
def division_by_zero_in_an_array(x):
    return (x / np.array([1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]))[0] * x[1]


@TABLE.case(X)
def items(x):
    total = 0.0
    for view in np.nditer(x):
        number = view.item()
        total += number.item() * number
    return total


@TABLE.case(X)
def dtypes(x):
    if x.dtype.kind == "i":
        return 0.0 * x[0]
    a = np.zeros(3, x.dtype)
    a[0] = x[0]
    return a.sum() + np.ones(3, dtype=np.float64)[0] * x[1] + x.astype(np.float64)[2] * x.astype(np.int64)[0]


@numba.njit
def step(u, new, a):
    for i in range(1, len(u) - 1):
        new[i] = u[i] + a * (u[i + 1] - 2 * u[i] + u[i - 1])


@TABLE.case(X, 0.1)
def heat_equation(u, a):
    new = u.copy()
    for _ in range(5):
        step(u, new, a)
        u, new = new, u
    return (u * u).sum()


@TABLE.case(X)
def larger_of_a_number_and_of_none(x):
    y = x[0] * np.nan
    return np.fmax(y, x[1]) * np.fmin(x[2], y) + max(x[3], y) * min(x[4], y)


@TABLE.case(X)
def running_sums_of_float32(x):
    sums = np.cumsum(np.array([0.1, 0.2, 0.3], dtype=np.float32))
    return sums[2] * x[0] + x[np.cumsum(np.array([0, 1, 2]))[2]]


@TABLE.case(X)
def running_products_with_a_zero(x):
    w = x.copy()
    w[2] = 0.0
    w[4] = x[2] - 1.1
    return (np.cumprod(w[3:]) * x[3:]).sum() + np.cumprod(w)[1] + np.cumprod(w)[6]


@TABLE.case(X)
def array_of_no_dimensions(x):
    w = np.full((), 2.0)
    w[()] = x[0]
    return (w * x).sum() + w * 3.0 + x.take(1) * x[2]
