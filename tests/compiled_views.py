"""Arrays that share memory, and arguments that are overwritten: where a recording that is wrong is wrong in silence."""

from __future__ import annotations

import numba
import numpy as np
from compiled_case import Table

TABLE = Table()
X = np.array([1.3, 0.7, 1.1, 0.9, 1.6, 0.55, 1.25])
C = np.array([0.3, 1.7, 0.4, 0.8, 0.2, 1.9, 0.6])
M = np.array([[0.2, 1.1, 0.7], [1.3, 0.4, 0.9], [0.8, 1.6, 0.5], [0.1, 1.2, 1.4]])


@numba.njit
def same(u):
    return u


@numba.njit
def choose(a, b, k):
    if k > 0:
        return a
    return b


@TABLE.case(X)
def views_of_a_work_array(x):
    w = np.zeros((3, 4))
    row, flat = w[1], w.reshape(12)
    row[0] = x[0] * 2
    flat[5] = x[1] * row[0]
    w.T[2, 1] = x[2]
    return w[1, 0] * w[1, 1] + w[1, 2] ** 2


@TABLE.case(X)
def slices_of_slices(x):
    w = np.zeros(7)
    a = w[1:6]
    b = a[::2]
    b[:] = x[:3]
    a[1] = b[0] * b[1]
    w[::-1][0] = x[6]
    return (w * w).sum()


@TABLE.case(X)
def elements_exchanged(x):
    x[0], x[1] = x[1] * 2, x[0] * 3
    return x[0] - x[1] ** 2


@TABLE.case(X)
def overlapping_copy(x):
    x[1:] = x[:-1]
    return (x * np.arange(7)).sum()


@TABLE.case(X)
def overlapping_sum(x):
    x[1:] += x[:-1]
    return (x * np.arange(7)).sum()


@TABLE.case(X)
def overlapping_statement(x):
    x[1:] += x[:-1] * 2
    return (x * np.arange(7)).sum()


@TABLE.case(X)
def a_reversed_view_is_written(x):
    y = x[::-1]
    z = y[1:4]
    z[0] = z[1] * 2
    return (x * y).sum()


@TABLE.case(X)
def a_helper_returns_its_argument(x):
    y = same(x)
    y[0] = y[1] * 3
    return (x * x).sum()


@TABLE.case(X)
def two_names_of_an_argument(x):
    a, b = x, x
    a[0] = 2.0
    return b.sum() * a[1]


@TABLE.case(X)
def arrays_exchange_places(x):
    u, new = x.copy(), np.empty_like(x)
    for _ in range(4):
        for i in range(len(u)):
            new[i] = u[i] * u[(i + 1) % 7]
        u, new = new, u
    return u.sum() + new[0]


@TABLE.case(X)
def an_element_read_before_and_after_a_write(x):
    before = x[0]
    square = x[0] * x[0]
    x[0] = x[1] * 3.0
    return before * x[0] + square * x[0] + before


@TABLE.case(X)
def rows_are_written_while_iterated(x):
    m = x[:6].reshape(2, 3)
    s = 0.0
    for r in m:
        r[0] = r[1] * 2
        for v in r:
            s += v * v
    return s + x[0]


@TABLE.case(X)
def flat_iterators(x):
    m = x[:6].reshape(2, 3).copy()
    s = 0.0
    for v in m.flat:
        s += v * v
    m.flat[2] = x[0]
    for v in np.nditer(m):
        s += v.item()
    for i, v in np.ndenumerate(m):
        s += v * i[0]
    return s


@TABLE.case(M)
def transposed_and_raveled(m):
    w = np.zeros((3, 4))
    w[:] = m.T
    w[0, :] *= 2
    f = w.ravel()
    f[3] = f[4]
    s = 0.0
    for i in range(3):
        for j in range(4):
            s += w[i, j] ** 2 * m[j, i]
    return s + m.size + m.shape[0]


@TABLE.case(np.asfortranarray(M))
def fortran_order(m):
    m[0, 1] = m[1, 0] * 2
    return (m.T * m.T).sum() + m.T.ravel()[1]


@TABLE.case(np.arange(1.0, 49.0).reshape(8, 6)[::2, 1::2] / 10)
def a_strided_argument(m):
    m[0, 1] = m[1, 0] * 2
    return (m * m).sum() + m[:, 1].sum()


@TABLE.case(X)
def fill_and_slices(x):
    w = np.empty(3)
    w.fill(x[0])
    w[1:] = x[1]
    w[:] = w * 2
    return w.sum() * w[0]


@TABLE.case(X)
def fancy_indices(x):
    y = np.zeros(7)
    y[np.array([1, 2, 5])] = x[:3]
    z = x[np.array([1, 1, 5])]
    return (y * x).sum() + (z * z).sum()


@TABLE.case(X)
def lists_of_views(x):
    w = [np.zeros(2), np.zeros(2)]
    w[0][0] = x[0]
    w[1] = w[0] * 2
    w[0][0] = 3.0
    pieces = [x[:2], x[2:4]]
    return w[1].sum() + w[0].sum() + (pieces[0] * pieces[1]).sum()


@TABLE.case(X)
def the_argument_is_overwritten(x):
    x[0] = x[1] * x[0]
    x *= 2.0
    x[2] = 5.0
    return (x * x).sum()


@TABLE.case(X, C)
def a_constant_argument_is_overwritten(x, c):
    c[0] = x[0] * 2
    c[1:] += x[1:]
    return (c * c).sum()


@TABLE.case(X, C)
def a_view_of_a_constant_argument_is_overwritten(x, c):
    v = c[1:]
    v[0] = x[0]
    c.ravel()[2] = 5.0
    c.flat[3] = 4.0
    return (c * x).sum()


@TABLE.case(X, C)
def a_constant_argument_is_filled_and_sorted(x, c):
    c.sort()
    s = (c * x).sum()
    c.fill(2.0)
    return s * (c * x).sum()


@TABLE.case(X, np.array([3, 0, 5, 1, 2, 6, 4]))
def an_integer_argument_is_overwritten(x, order):
    order[0] = 3
    order += 0
    return (x[order] * np.arange(7)).sum()


@TABLE.case(X, C)
def copies_of_constants_are_overwritten(x, c):
    w, y, z = c.copy(), c * 2, np.sin(c)
    w[0], y[1], z[2] = x[0], x[1], x[2]
    return w.sum() * y.sum() * z.sum()


@TABLE.case(X, C)
def a_helper_returns_one_of_two(x, c):
    u = choose(x, c, 0)
    u[0] = x[0] * 3
    return u.sum() * c.sum()


@TABLE.case(X)
def equal_arrays_of_which_one_is_written_into(x):
    a = x * 1.0
    b = x * 1.0
    a[0] = 5.0
    p = x * x
    x[0] = x[1] * 3
    q = x * x
    return a[0] * b[0] + p[0] * q[0]


@TABLE.case(X)
def copies_by_equal_indices_of_which_one_is_written_into(x):
    idx = np.array([0, 1])
    a, b = x[idx], x[idx]
    a[0] = 5.0
    c, d = x[idx], x[idx]
    d += 1.0
    return a[0] * b[0] + c[0] * d[0]


@TABLE.case(X)
def equal_index_arrays_of_which_one_is_written_into(x):
    idx = np.array([0, 1])
    i, j = idx + 1, idx + 1
    i[0] = 3
    return (x[i] * x[j]).sum() + x[i[0]] * x[j[0]]


@numba.njit
def element_again_and_again(w):
    yield w[0] * w[0]
    a = w[0]
    yield a
    yield a * w[0] + w[1]


@TABLE.case(X)
def generator_over_an_array_that_changes(x):
    total = 0.0
    for v in element_again_and_again(x):
        total += v * x[2]
        x[0] = x[0] * x[3] + x[1]
    return total


@TABLE.case(X, (C[:-1], C[1:]))
def tuple_of_arrays_that_overlap(x, pair):
    return (pair[0] * x[1:]).sum() * pair[1][0]


@TABLE.case(X, [C] * 2)
def list_of_one_array_twice(x, arrays):
    arrays[0][1] += 3.0
    return arrays[1][1] * x[0] ** 2


@TABLE.case(X)
def contiguous_part_of_a_work_array(x):
    w = np.zeros(7)
    w[:] = x
    part = np.ascontiguousarray(w[::1])
    part[0] = 5.0 * x[1]
    return w[0] * x[1] + part[2]


@TABLE.case(M)
def conversion_of_a_transpose(m):
    a = m.T.astype(np.float64)
    flat = a.T.ravel()
    flat[1] = 4.0 * m[0, 0]
    return a[1, 0] * m[1, 1]


@TABLE.case(X)
def view_by_name_of_its_real_part(x):
    w = np.array([0.0, 1.0, 2.0])
    v = np.real(w)
    v[0] = x[0]
    return w[0] * x[1]
