"""Arguments of compiled functions that can be written into, each with a function that does."""

from __future__ import annotations

import array
import enum
import mmap
import tempfile
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.experimental import jitclass, structref
from numba.typed import Dict, List, Set

X = np.array([1.3, 0.7])
RECORD = np.dtype([("a", np.float64), ("n", np.int32)])
Pair = namedtuple("Pair", "a b")


class Colour(enum.Enum):
    RED = 1


class Number(enum.IntEnum):
    ONE = 1


@jitclass([("n", types.int64), ("w", types.float64[:])])
class Instance:
    def __init__(self, n, w):
        self.n, self.w = n, w


@jitclass([("inner", Instance.class_type.instance_type), ("items", types.ListType(types.float64)), ("name", types.unicode_type)])
class Outer:
    def __init__(self, inner, items, name):
        self.inner, self.items, self.name = inner, items, name


@jitclass([("items", types.List(types.float64))])
class OfList:
    def __init__(self):
        self.items = [1.0]


@structref.register
class CounterType(types.StructRef):
    pass


class Counter(structref.StructRefProxy):
    def __new__(cls, n, w):
        return structref.StructRefProxy.__new__(cls, n, w)


structref.define_proxy(Counter, CounterType, ["n", "w"])


@numba.njit
def parts_of(counter):
    return counter.n, counter.w.copy()


# Each writes into the argument, and returns a number made of it, times x[0].
def add_one(x, a):
    a[0] += 1
    return a[0] * x[0]


def change_date(x, a):
    a[0] = a[1]
    return (2.0 if a[0] == a[1] else 3.0) * x[0]


def write_field(x, a):
    a.a = 5.0
    return a.a * x[0]


def write_fields(x, a):
    a[0].a = 5.0
    a[0].n += 1
    return a[0].a * a[0].n * x[0]


def write_fields_by_name(x, a):
    a[0]["a"] = 5.0
    for record in a.flat:
        record.n = 4
    return a[0].a * a[1].n * x[0]


def write_contiguous(x, a):
    np.ascontiguousarray(a)[0] = 7.0
    return a[0] * x[0]


def write_while_iterating(x, a):
    for element in np.nditer(a):
        element[()] = 7.0
    return a[0] * x[0]


def append(x, a):
    a.append(7.0)
    return a[-1] * len(a) * x[0]


def write_deep(x, a):
    a[0][0] += 1.0
    return a[0][0] * x[0]


def write_deeper(x, a):
    a[0][0][0] += 1.0
    return a[0][0][0] * x[0]


def write_second(x, a):
    a[1][0] += 1.0
    return a[0] * a[1][0] * x[0]


def add_to_set(x, a):
    a.add(7.0)
    return len(a) * x[0]


def write_table(x, a):
    a[1] = 3.0
    a[2] = 4.0
    return len(a) * x[0]


def step(x, a):
    a.n += 1
    a.w[0] += 1.0
    a.w = a.w[1:]
    return a.n * a.w.size * x[0]


def step_in_container(x, a):
    a[0].n += 1
    a[0].w[0] += 1.0
    return a[0].n * a[0].w[0] * x[0]


def step_inside(x, a):
    a.inner.n += 1
    a.inner.w[0] += 1.0
    a.items.append(3.0)
    a.items[0] = 9.0
    a.name = "other"
    return a.inner.n * a.items[0] * len(a.items) * x[0]


def write_list_inside(x, a):
    a.items[0] = 9.0
    return a.items[0] * x[0]


def write_coefficient(x, a):
    a.coef[0] = 5.0
    return a.coef[0] * x[0]


def as_list(value: Any) -> Any:
    return np.asarray(value).tolist()


def lists(value: Any) -> Any:
    return [as_list(item) for item in value]


def of_instance(value: Any) -> Any:
    return value.n, value.w.tolist()


def of_outer(value: Any) -> Any:
    return of_instance(value.inner), list(value.items), value.name


def of_first(value: Any) -> Any:
    return of_instance(value[0])


def of_counter(value: Any) -> Any:
    n, w = parts_of(value)
    return n, w.tolist()


def typed_dictionary() -> Any:
    made = Dict.empty(types.int64, types.float64)
    made[1] = 2.0
    return made


def dictionary_of_lists() -> Any:
    made = Dict.empty(types.int64, types.ListType(types.float64))
    made[0] = List([1.0, 2.0])
    return made


def typed_set() -> Any:
    made = Set.empty(types.float64)
    made.add(1.0)
    return made


def small_map() -> Any:
    made = mmap.mmap(-1, 16)
    made[0] = 3
    return made


def mapped_file() -> Any:
    with tempfile.TemporaryFile() as file:
        made = np.memmap(file, np.float64, "w+", shape=(2,))
    made[:] = 2.0
    return made


WRITTEN: dict[str, tuple[Callable[[], Any], Any, Callable[[Any], Any]]] = {
    "array": (lambda: np.array([2.0, 3.0]), add_one, as_list),
    "array of integers": (lambda: np.array([2, 3]), add_one, as_list),
    "array of float32": (lambda: np.array([2, 3], np.float32), add_one, as_list),
    "array of truth values": (lambda: np.array([False, True]), change_date, as_list),
    "array of dates": (lambda: np.array(["2020-01-01", "2021-01-01"], "M8[D]"), change_date, as_list),
    "array of spans": (lambda: np.array([1, 2], "m8[s]"), change_date, as_list),
    "array of text": (lambda: np.array(["ab", "cd"]), change_date, as_list),
    "array of bytes": (lambda: np.array([b"ab", b"cd"]), change_date, as_list),
    "array of records": (lambda: np.ones(2, RECORD), write_fields, as_list),
    "array of records by name": (lambda: np.ones(2, RECORD), write_fields_by_name, as_list),
    "array as contiguous": (lambda: np.array([2.0, 3.0]), write_contiguous, as_list),
    "array by an iterator": (lambda: np.array([2.0, 3.0]), write_while_iterating, as_list),
    "recarray": (lambda: np.ones(2, RECORD).view(np.recarray), write_fields, as_list),
    "record": (lambda: np.ones(2, RECORD)[1], write_field, lambda value: value.item()),
    "matrix": (lambda: np.matrix([[1.0, 2.0]]), write_deep, as_list),
    "memmap": (mapped_file, add_one, as_list),
    "array with strides": (lambda: np.arange(6.0)[::-2], add_one, as_list),
    "bytearray": (lambda: bytearray(b"ab"), add_one, bytes),
    "array.array": (lambda: array.array("d", [1.0]), add_one, list),
    "memoryview": (lambda: memoryview(np.array([1.0])), add_one, list),
    "memoryview with strides": (lambda: memoryview(np.arange(6.0))[::2], add_one, list),
    "mmap": (small_map, add_one, bytes),
    "list": (lambda: [1.0, 2.0], append, list),
    "list of arrays": (lambda: [np.ones(2)], write_deep, lists),
    "list of tuples": (lambda: [(np.ones(2), np.zeros(2))], write_deeper, lists),
    "set": (lambda: {1.0}, add_to_set, set),
    "tuple of arrays": (lambda: (np.ones(2), np.ones(2)), write_deep, lists),
    "tuple of a number and an array": (lambda: (2.0, np.ones(2)), write_second, lists),
    "tuple of a number and a list": (lambda: (2.0, [1.0]), write_second, lists),
    "named tuple": (lambda: Pair(2.0, np.ones(2)), write_second, lists),
    "tuple of tuples": (lambda: ((np.ones(2),), 1), write_deeper, lambda value: lists(value[0])),
    "tuple of a bytearray": (lambda: (bytearray(b"ab"),), write_deep, lambda value: bytes(value[0])),
    "typed list": (lambda: List([1.0, 2.0]), append, list),
    "typed list of arrays": (lambda: List([np.ones(2)]), write_deep, lists),
    "typed list of lists": (lambda: List([List([1.0])]), write_deep, lists),
    "typed list of tuples": (lambda: List([(np.ones(2), np.ones(2))]), write_deeper, lists),
    "typed list of named tuples": (lambda: List([Pair(np.ones(2), np.ones(2))]), write_deeper, lists),
    "typed dictionary": (typed_dictionary, write_table, dict),
    "typed dictionary of lists": (dictionary_of_lists, write_deep, lambda value: lists(value.values())),
    "typed set": (typed_set, add_to_set, set),
    "instance": (lambda: Instance(1, np.ones(2)), step, of_instance),
    "instance in a tuple": (lambda: (Instance(1, np.ones(2)),), step_in_container, of_first),
    "instance in a named tuple": (lambda: Pair(Instance(1, np.ones(2)), 1), step_in_container, of_first),
    "instance in a typed list": (lambda: List([Instance(1, np.ones(2))]), step_in_container, of_first),
    "instance in an instance": (lambda: Outer(Instance(1, np.ones(2)), List([1.0]), "name"), step_inside, of_outer),
    "structure": (lambda: Counter(1, np.ones(2)), step, of_counter),
    "structure in a tuple": (lambda: (Counter(1, np.ones(2)), 1), step_in_container, lambda value: of_counter(value[0])),
}  # fmt: skip
