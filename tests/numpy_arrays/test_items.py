"""``x[key]`` of tracked arrays is a compiled method: views, families of views and numbers are those of its Python form."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from many_cases import each

import tapegrad as tg
from tapegrad.numpy_arrays.array import Array, as_arrays
from tapegrad.numpy_arrays.indexing import getitem
from tapegrad.tensors.grad_mode import no_grad
from tapegrad.tensors.tensor import Meta

X = np.array([1.3, 0.7, 4.2, 2.1, -0.6, 3.4])
LINE = (0, -1, 5, -6, slice(1, None), slice(None, -1), slice(2, 4), slice(4, 2), slice(None), slice(-3, 100), slice(1, 5, 2))
LINE += (slice(None, None, -1), slice(np.int64(1), 3), np.int64(2), [0, 2], None, ..., (1,), (slice(1, 3),))  # type: ignore[assignment]
TABLE = (*LINE[:2], 1, -2, *LINE[4:11], (0, 1), (slice(None), 1), (1, slice(1, None)), (..., 0), [1, 0])
WRONG = (6, -7, 1 << 70, "a", 1.0, slice("a", None), slice(None, None, 0), (0, 0, 0))


def computed(array: Any) -> Array:
    """A tracked array that an operation made."""
    return as_arrays(tg.tensor(array, requires_grad=True) * 1.0)  # type: ignore[no-any-return]


def chosen(name: str) -> tuple[Array, tuple[Any, ...]]:
    line = computed(X)
    table = as_arrays(line.reshape(2, 3))
    return {
        "line": (line, LINE),
        "part of a line": (line[1:], LINE[:2] + LINE[4:11]),
        "table": (as_arrays(computed(X.reshape(2, 3))), TABLE),
        "view as a table": (table, TABLE),
        "row": (table[1], LINE[4:11]),
        "rows": (table[:1], (0, -1, slice(1), slice(None), (0, 1), (slice(None), 1))),
        "transposed": (table.T, TABLE),
        "backwards": (line[::-1], LINE),
        "single": (computed(X.astype(np.float32)), LINE),
        "empty": (computed(np.zeros((2, 0))), (0, slice(1, None))),
    }[name]


ARRAYS = ("line", "part of a line", "table", "view as a table", "row", "rows", "transposed", "backwards", "single", "empty")


def assert_alike(found: Any, expected: Any, x: Array) -> None:
    assert type(found) is type(expected)
    data, wanted = found._data, expected._data
    assert type(data) is type(wanted)
    np.testing.assert_array_equal(data, wanted)
    assert np.shape(data) == np.shape(wanted)
    assert np.may_share_memory(data, x._data) == np.may_share_memory(wanted, x._data)
    assert str(found.grad_fn).partition(" ")[0] == str(expected.grad_fn).partition(" ")[0]
    own, other = found._meta, expected._meta
    assert (own is None) == (other is None)
    if own is not None:
        assert own.base is other.base
        assert own.version is other.version
        np.testing.assert_array_equal(own.replay(own.base._data), data)
        assert sum(link() is found for link in own.base._meta.views) == 1


def slopes(z: Any, x: Any) -> list[float]:
    weights = np.cos(np.arange(np.size(z._data))).reshape(np.shape(z._data))
    (grad,) = tg.autograd.grad((z * weights).sum(), (x,), retain_graph=True)
    return np.ravel(grad.numpy()).tolist()


@each("name", ARRAYS)
def test_items_are_those_of_the_python_form(name: str) -> None:
    x, keys = chosen(name)
    for key in keys:
        found, expected = x[key], getitem(x, key)
        if isinstance(expected, Array) and np.size(expected._data):
            assert_alike(found, expected, x)
            assert slopes(found, x) == slopes(expected, x)


@each("name", ["line", "table"])
def test_wrong_keys_raise_what_the_python_form_raises(name: str) -> None:
    x, _ = chosen(name)
    for key in WRONG:
        with pytest.raises(Exception) as expected:
            getitem(x, key)
        with pytest.raises(type(expected.value)) as found:
            x[key]
        assert str(found.value) == str(expected.value)


def test_items_are_untracked_where_nothing_is_recorded() -> None:
    x = computed(X)
    x[1:]  # has what views share from now on
    with no_grad():
        assert not x[1:].requires_grad
        assert x[1:]._meta.made_without_grad == "no_grad"
    assert x[1:].requires_grad


def written_base(x: Any) -> Any:
    y = x * 1.0
    part, last = y[1:4], y[-1]
    y[2] = x[0] ** 2
    return (part * np.arange(3.0)).sum() + last * y[2]


def written_view(x: Any) -> Any:
    y = x * 1.0
    part = y[1:4]
    before = part[1] * 1.0
    part[1] = x[0] * x[5]
    return (y * np.arange(6.0)).sum() * before


def written_view_of_a_view(x: Any) -> Any:
    y = (x * 1.0).reshape(2, 3)
    row = y[1]
    end, other = row[1:], row[:2]
    end *= x[0]
    return (y * y).sum() + other[1] * end[0]


def overlapping(x: Any) -> Any:
    y = x * 1.0
    a, b, c = y[:-1], y[1:], y[:-1]
    return (a * b * c + a * a).sum() + (a - c).sum()


def written_after_it_was_saved(x: Any) -> Any:
    y = x * 1.0
    part = y[1:]
    product = part * part
    y[3] = 0.5
    return product.sum() + part.sum() * y[:2].sum()


def stepping(x: Any) -> Any:
    u = np.exp(0.1 * x)
    for _ in range(4):
        flow = 0.2 * (u[1:] - u[:-1])
        u = u + np.concatenate([flow, np.zeros(1)]) - np.concatenate([np.zeros(1), flow])
    return (u * u).sum() + u[0] * u[-1]


FUNCTIONS = [written_base, written_view, written_view_of_a_view, overlapping, written_after_it_was_saved, stepping]


@each("function", FUNCTIONS)
def test_values_and_derivatives_of_what_is_made_of_items(function: Callable[[Any], Any]) -> None:
    value, derivative = tg.value_and_grad(function)(X)
    assert value == pytest.approx(function(X), rel=1e-14)
    steps = 1e-5 * np.eye(6)
    np.testing.assert_allclose(derivative, [(function(X + h) - function(X - h)) / 2e-5 for h in steps], rtol=1e-7, atol=1e-7)
    gradient = tg.grad(function)
    rows = [(gradient(X + h) - gradient(X - h)) / 2e-5 for h in steps]
    np.testing.assert_allclose(tg.hessian(function)(X), rows, rtol=1e-6, atol=1e-6)


def test_retained_gradients_and_hooks_of_items_see_their_adjoints() -> None:
    x, seen = computed(X), []
    part, row = x[1:], x[2:4]
    part.retain_grad()
    row.register_hook(lambda g: seen.append(g.numpy().copy()))
    ((part * part).sum() + 3.0 * row.sum()).backward()
    np.testing.assert_array_equal(part.grad.numpy(), 2.0 * X[1:])
    np.testing.assert_array_equal(seen, [[3.0, 3.0]])


def test_items_of_what_was_written_after_they_were_saved_are_refused() -> None:
    x = computed(X)
    part = x[1:]
    product = (part * part).sum()
    x[:2][1] = 0.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_dead_views_are_forgotten_and_nothing_is_kept() -> None:
    x = computed(X.reshape(2, 3))
    x[1:]
    key = slice(0, 1)
    things = (x, x._data, x._meta, key)
    before = list(map(sys.getrefcount, things))
    for _ in range(1000):
        x[1]
        x[key]
        x[0][2]
    gc.collect()
    assert list(map(sys.getrefcount, things)) == before
    assert len(x._meta.views) < 16
    assert not any(isinstance(thing, Meta) and thing.base is x for thing in gc.get_objects())


def test_a_loop_over_many_elements_finds_room() -> None:
    values = np.linspace(0.1, 1.0, 3000)

    def chained(x: Any) -> Any:
        total = 0.0
        for i in range(len(x)):
            total = total + x[i] * x[i - 1]
        return total

    derivative = tg.grad(chained)(values)
    np.testing.assert_allclose(derivative, np.roll(values, 1) + np.roll(values, -1), rtol=1e-14)
