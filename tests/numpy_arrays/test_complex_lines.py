"""Functions with complex numbers in them have the value under a driver that they have without, and its derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from complex_lines_of_numpy import COMPLEX_LINES, COMPLEX_WRITES
from many_cases import each

import tapegrad as tg
import tapegrad.numpy

NAMESPACES = {"numpy": np, "tapegrad.numpy": tapegrad.numpy}
X = np.array([1.5, -0.7, 2.2, 0.37])


def result_of(text: str, xp: Any, x: Any) -> Any:
    names = {"np": xp, "x": x, "z": x + 1j * x[::-1]}
    exec(text, names)
    return names["r"]


def parts(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [part for value in result for part in parts(value)]
    return [np.real(result), np.imag(result)]


def classes(result: Any) -> list[type]:
    """Classes of all results, as `isinstance` finds them."""
    return [kind for part in result for kind in classes(part)] if isinstance(result, (tuple, list)) else [result.__class__]


def weighted(result: Any) -> Any:
    total: Any = 0.0
    for k, part in enumerate(parts(result)):
        weights = np.cos(1.0 + 0.7 * k + np.arange(np.size(part))).reshape(np.shape(part))
        total = total + (part * weights).sum()
    return total


def values(result: Any) -> list[Any]:
    return [np.asarray(tg.stop_gradient(part)) if isinstance(part, tg.Tensor) else np.asarray(part) for part in parts(result)]


@each("name", NAMESPACES)
@each("text", [*(f"r = {line}" for line in COMPLEX_LINES), *COMPLEX_WRITES])
def test_complex_lines_have_their_value_and_derivative(text: str, name: str) -> None:
    seen: list[Any] = []
    found: list[type] = []

    def loss(x: Any) -> Any:
        result = result_of(text, NAMESPACES[name], x)
        seen[:], found[:] = values(result), classes(result)
        return weighted(result) + 0.0 * x[0]

    def own(x: Any) -> Any:
        return weighted(result_of(text, np, x))

    gradient = tg.grad(loss)(X)
    assert found == classes(result_of(text, np, X.copy()))
    for got, want in zip(seen, values(result_of(text, np, X.copy())), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-14, atol=2e-15 * np.max(np.abs(want), initial=0.0))
    e = 1e-5 * np.eye(4)
    slope = [(8.0 * (own(X + d) - own(X - d)) - (own(X + 2 * d) - own(X - 2 * d))) / 12e-5 for d in e]
    np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-7)


@each(
    "text",
    [
        "z.item(0)", "z.tolist()", "complex(z[0])", "np.array(z)", "z.view(float)", "np.median(z)", "np.linalg.qr(z.reshape(2, 2))",
        "np.pad(z, 1, mode='maximum')", "np.trapezoid(x, z)", "z.astype(float)", "np.add(z, 1, where=x > 0)",
        "np.add(z, 1, out=np.zeros(4))",
    ],
)  # fmt: skip
def test_what_complex_numbers_have_not_says_what_to_write(text: str) -> None:
    with pytest.raises((TypeError, AttributeError), match="differentiated|derivative|imaginary part"):
        tg.grad(lambda x: weighted(result_of(f"r = {text}", np, x)))(X)


def test_a_part_takes_real_numbers() -> None:
    with pytest.raises(TypeError, match="takes real numbers"):
        tg.grad(lambda x: weighted(result_of("z.real = z; r = z", np, x)))(X)


@each("line", COMPLEX_LINES)
def test_single_precision_has_numpys_dtypes(line: str) -> None:
    seen: list[Any] = []
    x = X.astype(np.float32)

    def loss(x: Any) -> Any:
        result = result_of(f"r = {line}", np, x)
        seen[:] = values(result)
        return (weighted(result) + 0.0 * x[0]).astype(np.float32)

    assert tg.grad(loss)(x).dtype == np.float32
    assert [part.dtype for part in seen] == [part.dtype for part in values(result_of(f"r = {line}", np, x))]
