"""What is a view of what, and what a number of its own, is as NumPy has it: a later write is seen where NumPy sees it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from many_cases import each

import tapegrad as tg

X = np.array([1.3, 0.7, 4.2, 2.1, -0.6, 3.4])
# A line makes z of y, which is 2 x 3, or of what lies otherwise in memory; then one of the two is written into.
PARTS = """
y[0, 1] | y[-1, 2] | y.T[1, 0] | y[::-1][0, 1] | y[0][1] | y[1][::-1][1] | list(y[:, 1])[0] | y[np.array(0), np.array(1)] | y[0, ..., 1]
y[..., 1] | y[0, 1, ...] | y[0, 1:2].reshape(()) | y[:, 1] | y[0] | y[()] | y[...] | y[None, 0] | y[True] | y[0, True] | y[0, None, 1]
y[::-1] | y[:, ::-1] | y[::-1, ::-2] | y[0, ::-1] | y[::-1][::-1] | y.T[::-1] | y[::-1].T | y[::-1].reshape(-1) | y[::-1].ravel()
y[[0, 1]] | y[range(1)] | y[:, range(2)] | y[:, [0]] | y[:, (-1,)] | y[[1]] | y.T[:, [1]] | y[0, [2]] | y[np.array([1]), 1:] | y[y > 1.0] | y[::-1, [0, 1]] | y[0, [1, 2]] | y.ravel() | y.flatten() | y.reshape(3, 2) | y.T.reshape(3, 2)
y.reshape(-1, order="F") | y.T.reshape(-1, order="F") | y.ravel("F") | y.T.ravel("F") | y.T.ravel("K") | y.copy() | y.view() | y.squeeze()
y.swapaxes(0, 1) | y.transpose(1, 0) | y.T | y.mT | y.real | y.conj() | +y | y.astype(float) | y.astype(float, copy=False)
y.astype(np.float32) | y.astype(int) | y.astype(np.float32)[0, 1] | y.astype(int)[0, 1] | (y > 0.0)[0, 1]
y.take([0]) | y.take(1) | y.repeat(1) | np.flip(y) | np.flip(y, 1) | np.fliplr(y) | np.flipud(y) | np.rot90(y) | np.rot90(y, 2) | np.rot90(y, 0)
np.diagonal(y.copy()) | np.broadcast_to(y[0], (2, 3)) | np.split(y, 2)[0] | np.array_split(y, 2, axis=1)[0] | np.moveaxis(y, 0, 1)
np.meshgrid(y[0], y[1])[0] | np.expand_dims(y, 0) | np.roll(y, 0) | np.tril(y, 5) | np.sort(y) | np.where(True, y, y)
np.diag(y[:, :2]) | np.diag(y[0, :2]) | np.take(y, 1, axis=0) | np.take(y, [1], 0) | y.flat[:] | y.flat[1:3] | y.T.flat[1:3] | y.flat[2] | next(y.flat)
np.lib.stride_tricks.sliding_window_view(y, 2, 1) | np.lib.stride_tricks.sliding_window_view(y.T, (2, 1)) | np.einsum("ij->ji", y) | np.nan_to_num(y)
np.reshape(y, -1, copy=True) | np.reshape(y, -1, copy=False) | np.reshape(y.T, -1, copy=None) | np.squeeze(y[None]) | np.atleast_3d(y) | np.concatenate([y])
np.trim_zeros(y[0]) | np.add.reduce(y[None]) | np.sum(y, axis=()) | np.positive(y) | np.compress([True, False], y, 0) | np.tile(y, 1) | np.resize(y, (2, 3))
y[:, 0].ravel() | y[0, ::-1].ravel() | y[0, ::2].ravel() | y[:, 0].flatten() | y[:, 0].reshape(-1) | y[:, 1:].ravel() | np.ravel(y[::-1])
np.hstack([y]) | np.vstack((y, y.copy()))[:2] | np.diff(y, axis=0) | np.diff(y.T) | np.trace(y[:, :2]) | np.tensordot(y, y.copy())
np.copy(y.T).ravel("K") | y.T.astype(float).ravel("K") | y.T.copy().ravel("K") | y.T.copy("K").ravel("K") | np.copy(y.T, order="C").ravel("K")
"""  # noqa: E501
CASES = [text.strip() for text in PARTS.strip().replace("\n", " | ").split(" | ")]


def _written_whole(part: Any, x: Any, writable: bool) -> Any:
    y = x.reshape(2, 3).copy()
    z = part(y)
    y[0, 1], y[1] = 7.0, x[:3]
    return (z * np.cos(np.arange(np.size(z))).reshape(np.shape(z))).sum() * x.sum() + y[0, 0]


def _written_part(part: Any, x: Any, writable: bool) -> Any:
    y = x.reshape(2, 3).copy()
    z = part(y)
    if writable:
        z *= 2
        z += 1
    return (y * np.cos(np.arange(6.0)).reshape(2, 3)).sum() * x.sum() + z.sum()


@each("text", CASES)
@each("written", [_written_whole, _written_part])
def test_writes_are_seen_where_numpy_sees_them(written: Any, text: str) -> None:
    part = eval(f"lambda y: {text}", {"np": np})
    found = part(X.reshape(2, 3).copy())
    writable = isinstance(found, np.ndarray) and found.flags.writeable and found.dtype.kind == "f"
    value, derivative = tg.value_and_grad(lambda x: written(part, x, writable))(X)
    tolerance = 1e-6 if "float32" in text else 4e-15  # a driver adds float32 up in float64
    np.testing.assert_allclose(value, written(part, X, writable), rtol=tolerance)
    if "float32" not in text:
        steps = 1e-6 * np.eye(6)
        expected = [(written(part, X + h, writable) - written(part, X - h, writable)) / 2e-6 for h in steps]
        np.testing.assert_allclose(derivative, expected, rtol=1e-6, atol=1e-6)


def swapped(x: Any) -> Any:
    y = x.reshape(2, 3).copy()
    y[0, 0], y[1, 2] = y[1, 2], y[0, 0]
    kept = y[0, 1]
    y[0, 1] = y[1, 0]
    y[1, 0] = kept
    return y


def through_zero_dimensions(x: Any) -> Any:
    y = x.copy()
    z = y[..., 0]
    z += 3.0
    w = y[1:2].reshape(())
    w *= x[0]
    return y


def by_itself(x: Any) -> Any:
    y = x.copy()
    y *= y
    y[1:] += y[:-1]
    y[::-1] -= y
    return y


def backwards(x: Any) -> Any:
    y = np.outer(x, x)
    z = y[::-1, ::-2]
    z[0] *= 2.0
    z[1, ::-1] += x[0]
    y[5, 1] = 0.5
    z[::-1].sort(axis=0)
    return y


def put(x: Any) -> Any:
    y = x.copy()
    y.put([0, 2], [1, 2])
    y.put([1, 3, 5], x[:2])
    y.put([4], [])
    return y


def flat(x: Any) -> Any:
    y = x.reshape(2, 3).copy()
    y.flat[1] = 3.0
    y.flat[2:4] = x[:2]
    return y * y.T.flat[1]


@each("function", [swapped, through_zero_dimensions, by_itself, backwards, put, flat])
def test_values_and_derivatives_after_writes(function: Any) -> None:
    def weighed(x: Any) -> Any:
        result = function(x)
        return (result * np.cos(np.arange(np.size(result))).reshape(np.shape(result))).sum()

    value, derivative = tg.value_and_grad(weighed)(X)
    np.testing.assert_allclose(value, weighed(X), rtol=1e-15)
    expected = [(weighed(X + h) - weighed(X - h)) / 2e-6 for h in 1e-6 * np.eye(6)]
    np.testing.assert_allclose(derivative, expected, rtol=1e-6, atol=1e-6)


def test_writes_that_would_get_lost_raise() -> None:
    with pytest.raises(RuntimeError, match="write into a copy"):
        tg.grad(lambda x: np.nan_to_num(x, copy=False).sum())(X)
    with pytest.raises(TypeError, match="order 'K'"):
        tg.grad(lambda x: x.reshape(1, 2, 3).transpose(2, 0, 1).copy()[:, :, ::-1].ravel("K").sum())(X)


# What NumPy gives for a number, which is a value, is on memory of its own; for an array without dimensions it may be a view.
NUMBERS = {
    "a sum": lambda y: y.sum(), "an element": lambda y: y[0, 1], "a reduction": lambda y: np.subtract.reduce(y[0]),
    "a quantile": lambda y: np.quantile(y, 0.3), "an array": lambda y: y[0, 1:2].reshape(()),
    "an array's own": lambda y: np.tensordot(y, y, 2),
}  # fmt: skip
OF_NUMBERS = """
s.reshape(1) | s.reshape(()) | s.ravel() | s.flatten() | s[...] | s[None] | s[()] | s.T | s.squeeze() | s.view() | s.copy()
s.transpose() | s.conj() | np.atleast_1d(s) | np.atleast_2d(s) | np.expand_dims(s, 0) | np.reshape(s, 1) | np.ravel(s)
np.squeeze(s) | np.transpose(s) | np.broadcast_to(s, 2) | s.astype(float) | np.nan_to_num(s) | np.flip(s)
np.where(True, s, 0.0) | np.meshgrid(s, copy=False)[0] | np.einsum("->", s) | np.sum(s) | np.sum(s, keepdims=True)
s.take([0]) | np.stack([s]) | np.hstack([s]) | np.tile(s, 1)
"""
CASES_OF_NUMBERS = [text.strip() for text in OF_NUMBERS.strip().replace("\n", " | ").split(" | ")]


@each("text", CASES_OF_NUMBERS)
@each("number", NUMBERS)
def test_what_is_made_of_a_number_is_apart_from_it(number: str, text: str) -> None:
    part = eval(f"lambda s: {text}", {"np": np})
    found = part(NUMBERS[number](X.reshape(2, 3).copy()))
    writable = isinstance(found, np.ndarray) and found.flags.writeable

    def into_the_part(x: Any) -> Any:
        s = NUMBERS[number](x.reshape(2, 3).copy())
        z = part(s)
        if writable:
            z[...] = 2.0 * z
        z += 1.0
        return s * x.sum() + z.sum()

    def into_the_whole(x: Any) -> Any:
        s = NUMBERS[number](x.reshape(2, 3).copy())
        z = part(s)
        if number.startswith("an array"):
            s[...] = x[2]
        s *= 3.0
        return s * x.sum() + z.sum()

    for f in (into_the_part, into_the_whole) if found.flags.writeable or not isinstance(found, np.ndarray) else (into_the_whole,):
        value, derivative = tg.value_and_grad(f)(X)
        np.testing.assert_allclose(value, f(X), rtol=4e-15)
        expected = [(f(X + h) - f(X - h)) / 2e-6 for h in 1e-6 * np.eye(6)]
        np.testing.assert_allclose(derivative, expected, rtol=1e-6, atol=1e-6)


def in_the_order_of_elements(x: Any) -> Any:
    y = x.reshape(2, 3).copy().T
    places = y.flat
    first, second = next(places), next(places)
    places[2] = x[0] * first
    y.flat[4:] = second * x[:2]
    y.flat[[0, 1]] *= 2.0
    assert len(places) == 6
    assert places.base is y
    return np.array(list(range(6))) * np.multiply(y.flat, y.flat.copy()) + sum(v * v for v in y.flat) + np.sum(places == y.flat)


def test_elements_are_read_and_written_in_their_order() -> None:
    def f(x: Any) -> Any:
        return in_the_order_of_elements(x).sum()

    value, derivative = tg.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X), rtol=4e-15)
    np.testing.assert_allclose(derivative, [(f(X + h) - f(X - h)) / 2e-6 for h in 1e-6 * np.eye(6)], rtol=1e-6, atol=1e-6)
    for place in (6, -7):
        with pytest.raises(IndexError, match=f"index {place} is out of bounds"):
            tg.grad(lambda x, place=place: x.flat[place])(X)


USES_OF_ELEMENTS: dict[str, Any] = {
    "an array of places": lambda y: y.flat[np.array([4, 0])],
    "a mask": lambda y: y.flat[np.arange(6) % 2 == 1],
    "a place that is an array": lambda y: y.flat[np.array(4)],
    "joined": lambda y: np.concatenate([y.flat, (y * y).flat]),
    "stacked, with a list": lambda y: np.vstack((y.flat, list(range(6)))),
    "by name": lambda y: np.sum(a=y.flat) * np.dot(np.arange(6.0), b=y.flat),
    "chosen": lambda y: np.where(y.flat > 0.5, y.flat, 0.0),
}


@each("use", USES_OF_ELEMENTS)
def test_elements_are_what_numpy_takes_them_for(use: str) -> None:
    def f(x: Any) -> Any:
        found = USES_OF_ELEMENTS[use](x.reshape(2, 3).T)
        return (found * np.cos(np.arange(np.size(found))).reshape(np.shape(found))).sum()

    value, derivative = tg.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X), rtol=4e-15)
    np.testing.assert_allclose(derivative, [(f(X + h) - f(X - h)) / 2e-6 for h in 1e-6 * np.eye(6)], rtol=1e-6, atol=1e-6)


def test_a_number_is_flipped_to_itself() -> None:
    np.testing.assert_array_equal(tg.grad(lambda x: np.flip(x[0]) * x[1])(X), [X[1], X[0], 0.0, 0.0, 0.0, 0.0])


@each("join", [np.concatenate, np.hstack])
def test_an_empty_vector_is_no_part_of_a_matrix(join: Any) -> None:
    with pytest.raises(ValueError, match="same number of dimensions"):
        tg.grad(lambda x: join([x[:0], np.ones((2, 3)) * x[0]]).sum())(X)
