"""Corners of the language that Numba compiles: results in given arrays, numbers taken apart, typed containers, searches."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from compiled_case import Table
from numba import literal_unroll
from numba.typed import Dict, List

TABLE = Table()
X = np.array([1.3, 0.7, 1.1, 0.9, 1.6])
C = np.array([0.3, 1.7, 0.4, 0.8, 0.2])
TABLE_OF_NUMBERS = np.array([2.0, 3.0])
M = np.array([[0.2, 1.1, 0.7], [1.3, 0.4, 0.9], [0.8, 1.6, 0.5], [0.1, 1.2, 1.4]])


@TABLE.case(X, C)
def results_in_given_arrays(x, c):
    out = np.empty(5)
    np.exp(x, out)
    same = np.add(x, c, out[:])
    np.multiply(out, x, out)
    return (out * same).sum()


@TABLE.case(X)
def results_in_given_arrays_of_more_dimensions(x):
    out = np.empty((2, 5))
    np.multiply(x.reshape(1, 5), 2.0, out)
    np.add(out, x, out)
    return (out * out).sum()


@TABLE.case(X)
def results_in_memory_that_is_read(x):
    out = x.copy()
    np.add(out[:-1], out[:-1], out[1:])
    return (out**3).sum()


@TABLE.case(X)
def results_in_an_argument(x):
    np.multiply(x, x, x)
    return (x * x).sum()


@TABLE.case(X)
def quotients_and_remainders(x):
    q, r = divmod(x[0] * 5, x[1])
    p, s = np.divmod(7.3, x[1])
    n, k = divmod(7, 3)
    return q * r * x[1] + s * p * x[0] + n * k


@TABLE.case(X)
def mantissas_and_exponents(x):
    mantissa, exponent = math.frexp(x[0] * x[1] * 5)
    return mantissa * exponent * x[1] + math.ldexp(x[0] * x[1], 3) * np.ldexp(x[2], -1)


@TABLE.case(X)
def rounding(x):
    return np.round(x[0] * 7) * x[1] + np.around(x, 1)[3] * x[2] + round(x[0], 1) * x[4]


@TABLE.case(X)
def a_choice_is_the_result(x):
    return np.where(x[0] > 1, x[0] * x[1], 2.0)


@TABLE.case(X)
def type_of_an_argument(x):
    kind = type(x[0])
    return kind(math.sin(x[0])) / kind(2)


@TABLE.case(X)
def kind_of_a_number(x):
    y = x[0] * x[1]
    return y * 2 if isinstance(y, float) else y


@TABLE.case(X)
def parts_of_a_float(x):
    y = x[0] * x[1]
    return y.real * 2 + y.imag + y.conjugate()


@TABLE.case(X)
def parts_that_are_asked_for(x):
    return x[0] * x[1] if hasattr(x[1], "real") else x[2]


@TABLE.case(X)
def running_integers_as_indices(x):
    flags = np.ones(4, np.bool_)
    flags[1] = x[0] < x[1]
    counts = np.full(3, 2)
    return x[flags.cumsum()[2]] * x[np.cumsum(flags)[0]] * x[counts.cumprod()[1]]


@TABLE.case(X, C)
def running_sums_that_are_overwritten(x, c):
    y = np.cumsum(c)
    y[0] = x[0]
    return (y * y).sum()


@TABLE.case(X, 2)
def norm_of_order_two(x, ord):
    return np.linalg.norm(x, ord) * x[0]


@TABLE.case(X)
def items_at_places(x):
    return (np.take(x, np.array([1, 2, 0])) ** 2).sum()


@TABLE.case(X)
def ranges(x):
    return (np.arange(0.0, x[0], 0.5) * x[1]).sum() + (np.arange(x[0], 3.0, x[1]) ** 2).sum()


@TABLE.case(X)
def typed_lists(x):
    inferred, declared = List(), List.empty_list(numba.float64)
    for i in range(3):
        inferred.append(x[i] * x[i])
        declared.append(x[i])
    declared[1] = 2.0
    return inferred[0] * inferred[1] + declared[0] * declared[1] * declared[2]


@TABLE.case(X)
def typed_dictionaries(x):
    inferred, plain, declared = Dict(), dict(), Dict.empty(numba.int64, numba.float64)  # noqa: C408
    for i in range(3):
        inferred[i] = x[i] * x[i]
        plain[i] = x[i]
        declared[i] = 2.0 if i == 1 else x[i]
    return inferred[0] * inferred[1] + plain[1] * plain[2] + declared[0] * declared[1] * declared[2]


@TABLE.case(X)
@numba.njit(locals={"r": numba.float64, "n": numba.int64})
def declared_locals(x):
    r = x[0] * x[1]
    n = 3
    return r * n


@numba.njit
def applied(function: Any, x):
    return function(x)


@TABLE.case(X)
def functions_of_numpy_as_arguments(x):
    total = applied(math.sin, x[0]) * applied(np.tanh, x).sum() * applied(max, x)
    for function in literal_unroll((np.sum, np.linalg.norm, np.median)):
        total += function(x) * x[1]
    return total


@TABLE.case(X)
@numba.njit(locals={"s": numba.float64})
def numbers_converted_and_taken_apart(x):
    s = 0
    for v in x:
        s += v.real * numba.float64(v)
    if s < 0.0:
        raise ValueError("the sum is", s)
    return s * (x.real * x).sum() + math.gamma(x[0]) * math.gamma(x[1] - 1.0)


@TABLE.case(X)
def products_and_diagonals_in_given_arrays(x):
    filled, out, tall, cube = np.zeros((2, 2)), np.empty((2, 2)), np.zeros((7, 2)), np.zeros((2, 2, 2))
    np.fill_diagonal(filled, x[0])
    np.dot(filled, x[1:].reshape(2, 2), out)
    np.dot(out=filled, b=filled.copy(), a=out)
    np.fill_diagonal(tall, x[:3], wrap=True)
    np.fill_diagonal(cube, x[3])
    around = np.outer(x[:3], x[:3])
    np.fill_diagonal(around, around.reshape(9)[2:5])  # the last of which is on the diagonal
    np.fill_diagonal(around[1:], (x[0], x[1]))
    total = (out * filled).sum() + (around * np.arange(9.0).reshape(3, 3)).sum()
    return total + np.nan_to_num(x[0] * x[1]) + (tall * np.arange(14.0).reshape(7, 2)).sum() * cube.sum()


@TABLE.case(X)
def random_numbers_by_their_parameters(x):
    np.random.seed(3)
    return (
        np.random.normal(x[0], scale=x[1]) * np.random.uniform(high=x[2], low=x[3])
        + x[0] * np.random.normal() * np.random.normal(0.0, 1.0, 3).sum()
    )


@TABLE.case(X, np.random.default_rng(3))
def random_numbers_of_a_generator(x, generator):
    return generator.normal(x[0], x[1]) * generator.uniform(x[2], x[3]) * generator.random()


@TABLE.case(X)
def lists_that_are_copies(x):
    a, b = list(TABLE_OF_NUMBERS), list(x.shape)
    a[0] = x[0]
    return (a[0] * a[1] + a[0]) * b[0]


@TABLE.case(X)
def largest_items_of_tuples(x):
    mixed = (x[0], 1, x[1])
    return max(mixed) * min(mixed) * max((x[2], x[3]))
