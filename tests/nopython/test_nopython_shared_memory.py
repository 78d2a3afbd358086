"""Memory that arguments of a compiled function share, or that overlaps itself: what is written into one is not lost for another."""

from __future__ import annotations

import array
import mmap
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from compiled_arguments import RECORD, Counter, Instance, Outer, X
from numba.typed import List
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from unoptimised_numba import numba_is_quicker  # noqa: F401 - a fixture

import tapegrad as tg


def write_and_read(x, a):
    x[0] = 5.0 * x[1]
    return x[0] * a[0]


def write_and_read_deep(x, a):
    x[0] = 5.0 * x[1]
    return x[0] * a[0][0]


def write_and_read_instance(x, a):
    x[0] = 5.0 * x[1]
    return x[0] * a.w[0]


def write_and_read_instance_inside(x, a):
    x[0] = 5.0 * x[1]
    return x[0] * a[0].w[0]


def write_and_read_record(x, a):
    x[0] = 5.0 * x[1]
    return x[0] * a.a


def of_buffer(make: Callable[[], Any]) -> Callable[[], Any]:
    def both() -> Any:
        buffer = make()
        x = np.frombuffer(buffer)
        x[:] = X
        return x, buffer

    return both


def beside_array(make: Callable[[Any], Any]) -> Callable[[], Any]:
    def both() -> Any:
        x = X.copy()
        return x, make(x)

    return both


def of_records() -> Any:
    records = np.ones(2, RECORD)
    return records["a"], records[0]


SHARED: dict[str, tuple[Any, Callable[[], Any]]] = {
    "array": (write_and_read, beside_array(lambda x: x)),
    "view": (write_and_read, beside_array(lambda x: x[::-1])),
    "memoryview": (write_and_read, beside_array(memoryview)),
    "memoryview for reading": (write_and_read, beside_array(lambda x: memoryview(x).toreadonly())),
    "bytearray": (write_and_read, of_buffer(lambda: bytearray(16))),
    "array.array": (write_and_read, of_buffer(lambda: array.array("d", [0.0, 0.0]))),
    "mmap": (write_and_read, of_buffer(lambda: mmap.mmap(-1, 16))),
    "record": (write_and_read_record, of_records),
    "tuple": (write_and_read_deep, beside_array(lambda x: (x,))),
    "tuple of a memoryview": (write_and_read_deep, beside_array(lambda x: (memoryview(x), 1))),
    "list": (write_and_read_deep, beside_array(lambda x: [x])),
    "typed list": (write_and_read_deep, beside_array(lambda x: List([x]))),
    "instance": (write_and_read_instance, beside_array(lambda x: Instance(0, x))),
    "instance in a tuple": (write_and_read_instance_inside, beside_array(lambda x: (Instance(0, x),))),
    "instance in a typed list": (write_and_read_instance_inside, beside_array(lambda x: List([Instance(0, x)]))),
    "structure": (write_and_read_instance, beside_array(lambda x: Counter(0, x))),
}


@pytest.mark.parametrize("name", SHARED)
def test_writing_into_memory_that_another_argument_shares_is_refused(name: str) -> None:
    f, make = SHARED[name]
    x, a = make()
    before = x.tolist()
    with pytest.raises(ValueError, match="share memory"):
        tg.grad(numba.njit(f))(x, a)
    assert x.tolist() == before


def test_an_array_that_an_instance_and_a_tuple_share_is_refused() -> None:
    @numba.njit
    def f(x, pair, instance):
        pair[0][0] = 5.0
        return instance.w[0] * x[0]

    w = np.ones(2)
    with pytest.raises(ValueError, match="share memory"):
        tg.grad(f)(X, (w, 1), Instance(0, w))


def test_a_typed_list_that_an_instance_holds_and_an_argument_is_refused() -> None:
    @numba.njit
    def f(x, items, outer):
        items[0] = 5.0
        return outer.items[0] * x[0]

    items = List([1.0])
    with pytest.raises(ValueError, match="share a List"):
        tg.grad(f)(X, items, Outer(Instance(0, X.copy()), items, ""))


def test_instances_that_share_an_array_see_each_others_writes() -> None:
    @numba.njit
    def f(x, a, b):
        a.w[0] = 5.0
        return b.w[0] * x[0]

    w = np.ones(2)
    assert tg.grad(f)(X, Instance(0, w), Instance(0, w)).tolist() == [5.0, 0.0]
    assert w.tolist() == [1.0, 1.0]


def test_a_typed_list_held_twice_by_another_stays_one() -> None:
    @numba.njit
    def f(x, lists):
        lists[0][0] = 5.0
        return lists[1][0] * x[0]

    inner = List([1.0])
    assert tg.grad(f)(X, List([inner, inner])).tolist() == [5.0, 0.0]
    assert inner[0] == 1.0


def test_one_bytearray_given_twice_stays_one() -> None:
    @numba.njit
    def f(x, a, b):
        a[0] = 9
        return b[0] * x[0]

    buffer = bytearray(2)
    assert tg.grad(f)(X, buffer, buffer).tolist() == [9.0, 0.0]
    assert buffer[0] == 0


def overlapping(base: np.ndarray) -> np.ndarray:
    return as_strided(base, (3, 2), (8, 8))


def squares_after_a_write(x):
    x[0, 1] = 10.0
    return (x * x).sum()


def squares(x):
    return (x * x).sum()


def weighted(x, a):
    a[0, 1] = 10.0
    return (x * a).sum()


def test_writing_into_an_array_that_overlaps_itself_is_refused() -> None:
    for f, args in ((squares_after_a_write, ()), (weighted, (overlapping(np.arange(4.0)),))):
        x = overlapping(np.arange(1.0, 5.0))
        with pytest.raises(ValueError, match="elements of one array"):
            tg.grad(numba.njit(f))(x, *args)


@pytest.mark.parametrize(
    "x",
    [overlapping(np.arange(1.0, 5.0)), np.broadcast_to(np.arange(3.0), (2, 3)), sliding_window_view(np.arange(4.0), 2)],
    ids=range(3),
)
def test_an_array_that_overlaps_itself_may_be_read(x: np.ndarray) -> None:
    np.testing.assert_array_equal(tg.grad(numba.njit(squares))(x), 2.0 * x)
