"""Scalars, control flow, calls, containers."""

from __future__ import annotations

import collections
import math

import numba
import numpy as np
from compiled_case import Table

TABLE = Table()
X = np.array([1.3, 0.7, 1.1, 0.9, 1.6])
TABLE_OF_NUMBERS = np.array([1.0, 2.0, 3.0])
FACTOR = 2.5
Pair = collections.namedtuple("Pair", "first second")


@numba.njit
def square(u):
    return u * u


@numba.njit
def same(u):
    return u


@numba.njit
def twice(f, x):
    return f(f(x))


@numba.njit
def with_defaults(a, b=2.0, c=3.0):
    return a * b + c * a * a


@numba.njit
def sum_of_squares(*args):
    s = 0.0
    for a in args:
        s += a * a
    return s


@numba.njit
def power(x, n):
    if n <= 0:
        return 1.0
    return x * power(x, n - 1)


@numba.njit("float64(float64,float64)")
def of_one_signature(a, b):
    return a / b + a * b


@numba.njit
def squares(x):
    for v in x:
        yield v * v


@TABLE.case(1.3)
def arithmetic(x):
    return abs(-x) + x % 0.4 + x // 1 + x**3 + x**-2 + 2**x + x**x + x**0.5 + 1 / x - (+x) * 2


@TABLE.case(1.3)
def functions(x):
    y = min(x, 2.0) + max(x, 1, 3.0) + math.atan2(x, 2.0) + math.hypot(x, 1) + np.exp(x) + math.log(x) + math.erf(x)
    return y + np.sqrt(x) * math.cos(x) + math.lgamma(x) + np.logaddexp(x, 1.0) + math.fabs(x) + np.maximum(x, 0.5)


@TABLE.case(1.3)
def conversions(x):
    return round(x, 3) + int(x) * x + float(x) + math.floor(x) + np.float64(x) * np.sign(x) + bool(x)


@TABLE.case(1.3)
def loops(x):
    s, i = 0, 0
    while True:
        i += 1
        if i > 10:
            break
        if i % 2:
            continue
        s = s + x * i if s < 20 else s - x
    return s if s > 0 else -s


@TABLE.case(X)
def conditions(x):
    y = 0.0 if x[0] > 5 else x[0] * 2
    z = x[1] if x[1] > 0 else 1
    if (0.0 < x[2] < 10 and not np.isnan(x[3])) or x[4] < 0:
        y *= x[2]
    if x[3]:
        y += x[3] and x[4]
    return y * z


@TABLE.case(X)
def a_constant_on_one_path(x):
    s = 0
    for k in range(3):
        s = s + 1 if x[k] > 1.2 else s + x[k] * x[k + 1]
    return s


@TABLE.case(X)
def newtons_method(x):
    y = 1.0
    for _ in range(30):
        d = (y * y - x[0]) / (2 * y)
        y -= d
        if abs(d) < 1e-14:
            break
    return y


@TABLE.case(X)
def exchange(x):
    a, b = x[0], x[1]
    for _ in range(3):
        a, b = b, a * b
    return a - b


@TABLE.case(1.3)
def calls(x):
    return same(x) * with_defaults(x, c=x) + with_defaults(b=x, a=1.0) + with_defaults(x) + sum_of_squares(x, 2.0, x)


@TABLE.case(1.3)
def functions_as_arguments(x):
    return twice(square, x)


@numba.njit
def joined(first, *args):
    t = (first, *args, *args)
    s = 0.0
    for a in t:
        s = s * 0.5 + a * a
    return s


@TABLE.case(X)
def given_numbers_as_a_part_of_a_tuple(x):
    return joined(x[0]) * joined(x[1], x[2]) + joined(x[3], 1.0, x[4]) * joined(x[0], x[1], x[2], 0.5)


@TABLE.case(X)
def functions_of_python_that_apply_others(x):
    s = 0.0
    for v in map(square, x):
        s = s * 0.5 + v * v
    for v, w in zip(map(with_defaults, x, x[1:]), filter(lambda u: u > 0.8, x)):
        s = s * 0.5 + v * w
    return s


@TABLE.case(1.3)
def recursion(x):
    return power(x, 4)


@TABLE.case(1.3)
def closure(x):
    k = 3.0

    def inner(y):
        return y * k + x

    return inner(x) * inner(2.0)


@TABLE.case(1.3)
def an_explicit_signature_converts_constants(x):
    return of_one_signature(x, 2)


@TABLE.case(X)
def global_constants(x):
    return x[0] * TABLE_OF_NUMBERS[1] + FACTOR * x[1]


@TABLE.case(X)
def generator(x):
    s = 0.0
    for v in squares(x):
        s += v
    return s


@TABLE.case(X)
def tuples(x):
    t = (x[0], 2.0, x[1])
    s = 0.0
    for i in range(3):
        s += t[i] * t[i]
    for v in (x[2], 1.0):
        s *= v
    p = Pair(x[3] * 2, 1.0)
    q = Pair(p.second, p.first)
    return s + q.second * p.first + q.first


@TABLE.case(X)
def lists(x):
    found = []
    for v in x:
        found.append(v * v)
    mixed = [1.0, 2.0]
    mixed.append(x[0])
    mixed[0] = x[1]
    return sum(found) + max(found) * min(found) + mixed[0] * mixed[2] + mixed[1]


@TABLE.case(X)
def a_list_of_constants_is_overwritten(x):
    values = [0.0] * 4
    for i in range(4):
        values[i] = x[i] * 2
    return values[0] * values[3]


@TABLE.case(X)
def lists_of_constants_that_grew_are_overwritten(x):
    made, grown = [float(i) for i in range(4)], []
    for i in range(3):
        grown.append(i + 0.5)
    grown.insert(0, 1.5)
    made[1] += x[0] * x[1]
    grown[2] = x[2] * made[1]
    return made[1] * grown[2] + made[3] * grown[0] * x[3] + grown[3]


@TABLE.case(X)
def dictionaries(x):
    d = {}
    for i in range(3):
        d[i] = x[i] * x[i]
    return d[0] * d[1] + d[2]


@TABLE.case(X)
def optional(x):
    y = None
    if x[0] > 0:
        y = x[0] * 2
    if y is None:
        return 0.0
    return y * 1.5


@TABLE.case(X)
def iteration(x):
    s = 0.0
    for i, v in enumerate(x):
        s += i * v * v
    for a, b in zip(x, x[1:]):
        s += a * b
    for i in numba.prange(len(x)):
        s += x[i] * i
    return s


@TABLE.case(X)
def caught_exception(x):
    s = 0.0
    try:
        if x[0] > 0.1:
            raise ValueError
        s = x[0]
    except Exception:
        s = x[1] * 3
    return s


@TABLE.case(X)
def random_numbers_are_constants(x):
    np.random.seed(3)
    return x[0] * np.random.random()


@TABLE.case(X)
def integers_cut(x):
    return x[int(x[0] * 2)] * x[1]


@TABLE.case(X, [1.0, 2.0])
def a_list_argument_is_changed(x, values):
    values[1] = 5.0
    values.append(3.0)
    return values[1] * x[0] + values[2]


@numba.njit
def quotient(a, b):
    return a / b


@TABLE.case(X)
def errors_of_calls_that_are_caught(x):
    s = 0.0
    for i in range(3):
        try:
            s += quotient(x[i], i - 1) * x[0]
        except Exception:
            s += x[3] * s
    return s
