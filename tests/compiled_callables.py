"""What is called inside of compiled functions: functions chosen by values, ufuncs, stencils, methods, object mode, generators."""

from __future__ import annotations

import heapq
import math
from typing import Any, NamedTuple

import numba
import numpy as np
from compiled_case import Later, Table
from numba import literal_unroll, prange
from numba.core import types

TABLE = Table()
X = np.array([1.3, 0.7, 1.1, 0.9, 1.6])
T = np.arange(5.0)
SQUARE = np.arange(4.0).reshape(2, 2)
SCALE = 2.0


@numba.njit
def product(x):
    return x[0] * x[1]


@numba.njit
def product_and_one(x):
    return x[2] * x[0] + 1


class Held(NamedTuple):
    """A function and a number in a tuple."""

    function: Any
    factor: float


@TABLE.case(X, 1, Held(product, 2.0))
def functions_chosen_by_values(x, k, held):
    g = product if k > 0 else product_and_one
    if k == 0:
        h = product
    elif k == 1:
        h = product_and_one
    else:
        h = g
    total = g(x) * h(x) + held.function(x) * held.factor * x.dtype.type(2)
    for i in range(3):
        total += h(x) * i
        if i == 1:
            h = g
    return total + (product if total > 0 else product_and_one)(x)


@numba.vectorize
def wave(a, b):
    return a * math.sin(b) * SCALE


@numba.vectorize(["float32(float32,float32)", "float64(float64,float64)"])
def shifted(a, b):
    return a * b + SCALE


@TABLE.case(X)
def ufuncs_of_numba(x):
    out = np.zeros((2, 5))
    shifted(x, np.ones((2, 1)), out)
    total = wave(x, x[::-1]).sum() * wave(x[0], 2) + (out * out).sum() + shifted(x, 2)[1] * shifted(3, x[2])
    return total + (wave(x.reshape(5, 1), x[:2]) * np.arange(10.0).reshape(5, 2)).sum()


@numba.guvectorize("(m,n),(n)->(m)")
def times(a, b, out):
    for i in range(a.shape[0]):
        out[i] = 0.0
        for j in range(a.shape[1]):
            out[i] += a[i, j] * b[j]


@numba.guvectorize(["(float64[:],float64,float64[:])"], "(n),()->()")
def length(a, b, out):
    out[0] = 0.0
    for value in a:
        out[0] += value * value * b


@TABLE.case(X)
def generalized_ufuncs_of_numba(x):
    a = x[:4].copy().reshape(2, 2)
    products, one, lengths = np.empty((3, 2)), np.empty(2), np.zeros(2)
    times(a, x.reshape(5, 1)[:3] * np.ones((3, 2)), products)
    times(a, x[3:], one)
    length(a, x[4], lengths)
    return (products * products).sum() * one[0] * one[1] * lengths[0] * lengths[1]


@numba.stencil
def neighbours(a, b, c):
    return a[-1, 0] * b[0, 1] * c + a[1, 0]


@numba.stencil(neighborhood=((-1, 1),), cval=3.0)
def around(a, w):
    total = 0.0
    for k in range(-1, 2):
        total += a[k] * a[0] * SCALE * w
    return total


@numba.stencil(standard_indexing=("w",))
def weighed(a, w):
    return a[-1] * w[0] + a[0] * w[1]


@TABLE.case(X)
def stencils(x):
    a, out = x.reshape(1, 5) * x.reshape(5, 1), np.ones(5)
    around(x, 2.0, out=out)
    return (out * x).sum() + (neighbours(a, a.T, x[0]) * a).sum() + (around(x, x[1]) * x).sum() * (weighed(x, x[1:3]) * x).sum()


@numba.experimental.jitclass([("rate", numba.float64), ("rates", numba.float64[:])])
class Model:
    def __init__(self, rate):
        self.rate = rate
        self.rates = np.ones(3)

    def value(self, x):
        return self.rate * x * x

    def mean(self, x, k=2.0):
        return self.rate * x.sum() * k

    def dot(self, a, b):
        return self.value(a) * b

    def copy(self, a):
        return a * self.rates[1]

    def sort(self, a):
        return a * self.rates[0]

    def astype(self, a):
        return a * self.rate

    @staticmethod
    def power(a, exponent=2):
        return a**exponent


@numba.njit
def model_of(rate):
    return Model(rate)


@TABLE.case(X)
def methods_of_instances(x):
    model, inside = model_of(0.7), Model(0.5)
    return (
        model.mean(x) * model.power(x[0]) * model.mean(x, 3.0)
        + model.dot(x[0], x[1]) * inside.copy(x[2])
        + inside.mean(x, k=x[3]) * inside.sort(x[4]) * inside.astype(x[0])
        + model.value(2.0)
    )


@TABLE.case(X, Later(lambda: (Model(0.7), Model(0.5))))
def methods_of_instances_in_a_tuple(x, models):
    return models[0].copy(x[0]) * models[1].dot(x[1], x[2])


@numba.extending.overload_method(types.Array, "scaled_sum")
def _scaled_sum(a, factor=2.0, power=1):
    def impl(a, factor=2.0, power=1):
        return (a**power).sum() * factor

    return impl


@TABLE.case(X)
def methods_that_packages_add(x):
    return x.scaled_sum() * x.scaled_sum(3.0) + x.scaled_sum(power=2) + x[1:].scaled_sum(x[0])


@TABLE.case(X, 3)
def object_mode_of_constants(x, n):
    with numba.objmode(y="float64", z="float64[:]"):
        y = float(len(str(n)) + 1)
        z = np.array([1.0, 2.0])
    return (y * x[1] * z * x[:2]).sum()


@TABLE.case(X)
def heaps_and_dictionaries_with_a_constant_start(x):
    pairs, numbers = [(0.0, 0)], [0.0]
    for k in range(5):
        heapq.heappush(pairs, (x[k] * x[k], k))
        heapq.heappush(numbers, x[k] * x[k])
    total, weight, table = 0.0, 1.0, {1: 1.0}
    table[2] = x[4]
    while len(pairs) > 0:
        value, k = heapq.heappop(pairs)
        total += weight * value
        weight += 1.0
    return total * table[2] * heapq.heappop(numbers) + heapq.heappop(numbers) * 2.0 + heapq.heappop(numbers)


@TABLE.case(X)
def tables_that_are_written_over(x):
    a, b, c, d = T.copy(), np.empty_like(T), T * 2.0, SQUARE @ SQUARE
    d[0, 1] = x[3] * x[4]
    a[1] = x[0] * x[1]
    a[2:4] *= x[2]
    b[:] = T
    b[0] += x[0]
    c[0] = x[0] * c[1]
    return (a * a).sum() + b.sum() * b[0] + c.sum() * c[0] * d.sum()


@numba.njit
def square_or_none(a):
    if a > 1.0:
        return a * a
    return None


@numba.njit
def scaled_or_none(x, k):
    if k == 0:
        return None
    return x * k


@TABLE.case(X, 2)
def an_array_or_none(x, k):
    found = scaled_or_none(x, k)
    if found is None:
        return 0.0
    return found.sum() * np.sum(found) + (found * 2.0)[0] * found[1] + np.dot(found, x) + np.exp(found).max() + np.median(found)


@numba.njit
def running(x):
    total = 0.0
    for value in x:
        total += value * value
        yield total


@TABLE.case(X, X.copy(), None)
def nones_and_generators(x, w, v):
    total = w[1] * x[0] if w is not None else 0.0
    total += x[2] if v is not None else 0.0
    largest = None
    for k in range(5):
        found = square_or_none(x[k])
        if found is not None:
            total += found * (v[k] if v is not None else 2.0)
        if largest is None or x[k] > largest:
            largest = x[k]
    for value in running(x):
        total += value * value
    for item in literal_unroll((x[0], 1, 2.5)):
        total += item * item
    return total * largest


@TABLE.case(X)
def loops_over_tuples_of_several_types(x):
    total, factor = 0.0, 0.0
    if x[0] > 0.0:
        factor = x[0] * x[1]
    for item in literal_unroll((math.tanh(factor), 2, 1.5)):
        total = total * 0.5 + np.sin(item)
    for item in literal_unroll((x, x[2] * x[3], 3, x.reshape(5, 1))):
        total += np.sum(item * item)
    return total


@TABLE.case(X, 2)
def scaled_by_powers_of_two(x, k):
    shifted = np.ldexp(x, np.arange(5)).sum() * np.ldexp(x[2], np.arange(3)).sum()
    return np.ldexp(x[0] * x[1], k) + np.ldexp(x, 2).sum() + shifted


@TABLE.case(X)
@numba.njit(parallel=True)
def reductions_in_parallel(x):
    total, largest, sums = 0.0, 0.0, np.zeros(2)
    for k in prange(x.size):
        total += x[k] * x[k]
    for k in prange(x.size):
        largest = max(largest, x[k] * 2)
    for k in prange(x.size):
        sums += np.array([x[k], x[k] * x[k]])
    return total * largest * sums[0] * sums[1]
