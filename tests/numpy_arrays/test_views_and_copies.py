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
y[[0, 1]] | y[range(1)] | y[:, range(2)] | y[:, [0]] | y[y > 1.0] | y[::-1, [0, 1]] | y[0, [1, 2]] | y.ravel() | y.flatten() | y.reshape(3, 2) | y.T.reshape(3, 2)
y.reshape(-1, order="F") | y.T.reshape(-1, order="F") | y.ravel("F") | y.T.ravel("F") | y.T.ravel("K") | y.copy() | y.view() | y.squeeze()
y.swapaxes(0, 1) | y.transpose(1, 0) | y.T | y.mT | y.real | y.conj() | +y | y.astype(float) | y.astype(float, copy=False)
y.astype(np.float32) | y.astype(int) | y.astype(np.float32)[0, 1] | y.astype(int)[0, 1] | (y > 0.0)[0, 1]
y.take([0]) | y.take(1) | y.repeat(1) | np.flip(y) | np.flip(y, 1) | np.fliplr(y) | np.flipud(y) | np.rot90(y) | np.rot90(y, 2) | np.rot90(y, 0)
np.diagonal(y.copy()) | np.broadcast_to(y[0], (2, 3)) | np.split(y, 2)[0] | np.array_split(y, 2, axis=1)[0] | np.moveaxis(y, 0, 1)
np.meshgrid(y[0], y[1])[0] | np.expand_dims(y, 0) | np.roll(y, 0) | np.tril(y, 5) | np.sort(y) | np.where(True, y, y)
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
    with pytest.raises(RuntimeError, match="read-only"):
        tg.grad(lambda x: _assigned(x.reshape(2, 3).copy().T))(X)
    with pytest.raises(RuntimeError, match="write into a copy"):
        tg.grad(lambda x: np.nan_to_num(x, copy=False).sum())(X)
    with pytest.raises(TypeError, match="order 'K'"):
        tg.grad(lambda x: x.reshape(1, 2, 3).transpose(2, 0, 1).copy()[:, :, ::-1].ravel("K").sum())(X)


def _assigned(y: Any) -> Any:
    y.flat[1] = 3.0
    return y.sum()


def test_a_number_is_flipped_to_itself() -> None:
    np.testing.assert_array_equal(tg.grad(lambda x: np.flip(x[0]) * x[1])(X), [X[1], X[0], 0.0, 0.0, 0.0, 0.0])
