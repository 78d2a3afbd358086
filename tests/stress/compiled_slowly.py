"""Functions of NumPy that Numba takes seconds to compile, in the function itself and in its recording."""

from __future__ import annotations

import numpy as np
from compiled_case import Table

TABLE = Table()
X = np.array([1.3, 0.7, 1.1, 0.9, 1.6, 0.55, 1.25])
C = np.array([0.3, 1.7, 0.4, 0.8, 0.2, 1.9, 0.6])
M = np.array([[0.2, 1.1, 0.7], [1.3, 0.4, 0.9], [0.8, 1.6, 0.5], [0.1, 1.2, 1.4]])


@TABLE.case(X)
def choosing_numbers(x):
    return np.where(x[0] > 1, x[0] * x[1], 2.0) * x[2]


@TABLE.case(np.array([[3.0, 0.4, 0.2], [0.1, 2.5, 0.7], [0.6, 0.3, 2.8]]))
def linear_systems(a):
    return np.linalg.solve(a, a[0]).sum() + np.linalg.det(a) + np.linalg.inv(a)[0, 1] + np.linalg.norm(a)


@TABLE.case(X)
def moments(x):
    return np.var(x) + x.std() + np.median(x) + np.ptp(x)


@TABLE.case(X)
def sorting(x):
    return (np.sort(x) * np.arange(7)).sum() + (x[np.argsort(x)] ** np.arange(7)).sum()


@TABLE.case(X)
def choosing(x):
    y = x * 2
    y[y > 2.0] = 0.0
    return np.where(x > 0.95, x * x, 0.0).sum() + x[x > 0.95].sum() + y.sum() + np.clip(x, 0.75, 1.15).sum()


@TABLE.case(X)
def interpolation(x):
    return np.interp(x, np.array([0.0, 1.0, 2.0]), np.array([0.0, 3.0, 4.0])).sum() + (np.linspace(x[0], x[1], 5) ** 2).sum()


@TABLE.case(X)
def interpolation_at_a_number(x):
    return np.interp(x[0], np.array([0.0, 1.0, 2.0]), np.array([0.0, 3.0, 4.0])) * x[1]


@TABLE.case(np.asfortranarray(M), np.asfortranarray(M + 1.0))
def memory_order_of_results(m, c):
    weights = np.arange(12.0)
    total = 0.0
    for a in (m * 2.0, (m + c) * m, -m):
        total += (a.T.reshape(12) * weights).sum() ** 2
    b = m * 2.0 + np.ascontiguousarray(m)
    return total + (b.reshape(12) * weights)[5] + (np.exp(c) * m).T.ravel()[3]


@TABLE.case(M)
def elements_of_an_inverse_in_memory_order(m):
    q = np.linalg.inv(m[:3])
    flat = q.ravel()
    flat[1] = 7.0
    return (q * m[:3]).sum()


@TABLE.case(X, C)
def turned_view_of_an_argument(x, c):
    v = np.rot90(c[:6].reshape(2, 3))
    v[0, 0] = x[0] * x[1]
    return c[2] * x[2]


@TABLE.case(X)
def norms_of_vectors(x):
    return np.linalg.norm(x, 1) * np.linalg.norm(x - 1, np.inf) * np.linalg.norm(x, -np.inf) + np.linalg.norm(x - 1, 3)


@TABLE.case(M)
def norms_of_matrices(m):
    return np.linalg.norm(m, 1) * np.linalg.norm(m, -np.inf) + np.linalg.norm(m, 2)


@TABLE.case(X)
def quantiles(x):
    return np.percentile(x, 30) * x[0]


@TABLE.case(X)
def searches(x):
    table = np.array([0.0, 1.0, 2.0])
    return x[np.searchsorted(table, x[0])] * x[np.searchsorted(np.sort(x), 1.0, side="right")]


@TABLE.case(X)
def sorts_of_what_is_no_number(x):
    w = x.copy()
    w[1] = np.nan
    v = w.copy()
    v.sort()
    order = np.argsort(w)
    return v[0] * v[1] + w[order[2]] * w[order[3]] + np.unique(w)[4]
