"""Complex numbers between real inputs and real outputs: values, first and second derivatives."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from compiled_refusals import OF_COMPLEX_NUMBERS
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.errors import CompileError

X = np.array([1.3, 0.7, 1.1, 0.9, 1.6])
Z = np.array([1 + 2j, 0.5 - 1j, 2j, -1 + 0.1j, 1.0])


def transfer_function(x):
    s = 2j * x[4]
    h = (s * x[0] + x[1]) / (s**2 + s * x[2] + x[3])
    return 20 * np.log10(abs(h)) + math.atan2(h.imag, h.real) * np.angle(h)


def arithmetic(x):
    z = x[0] * 1j + x[1]
    w = z * z + 2.0 * z - 1j / z + complex(x[2], -x[3])
    w *= z.conjugate() - np.conj(w) / (2 - x[4])
    powers = z**3 + z**-2 + z**0.5 + z**2.5 + z**1 + z ** len(x)
    equal = 1 if z == z and w != z else 0
    return abs(w) + w.real * np.imag(w) + (-powers).imag + (+powers).real * equal


def functions(x):
    z = complex(x[0], x[1])
    found = np.exp(z) * np.log(z) + np.sqrt(z) / np.sin(z) + np.cos(z) * np.tanh(z) + np.sinh(z)
    found += cmath.exp(x[2] * 1j) * cmath.sqrt(-x[3]) + cmath.log(complex(x[4], 0.3))
    return abs(found) + cmath.phase(found)


@numba.njit
def weighed(z, w=1.0):
    return z * w + z.conjugate()


def loops_and_containers(x):
    spectrum = 0j
    for k in range(5):
        spectrum += x[k] * np.exp(-2j * np.pi * k / 5)
    z = complex(x[0], x[1])
    for _ in range(10):
        z = z * z * 0.1 + complex(x[2], 0)
        if abs(z) > 10:
            break
    p = 0j
    for value in x:
        p = p * (0.3 + 0.7j) + value
    items = [1j, 2 + 0j]
    items.append(x[1] * 1j)
    for item in items:
        z += item * p
    pair = (weighed(z, 2j), weighed(x[3]))
    return abs(spectrum) ** 2 + abs(pair[0] * pair[1]) + (p if x[0] > 0 else 0j).real


def arrays(x, c):
    z, table = np.zeros(5, np.complex128), c.copy()
    for k in range(5):
        z[k] = x[k] * np.exp(1j * k)
    table[0] = x[0] * table[1]
    w = x.astype(np.complex128) + np.array([x[0] + 1j, 2j, 0j, 1 + 0j, x[1] * 1j])
    w.imag[2] = x[3]
    w[1:] *= 2.0 * z[1:]
    u = np.zeros_like(w)
    u[:] = w * c + np.sqrt(z + 1j * x[::-1])
    total = np.abs(u).sum() + np.abs(z.sum()) * (z * z).real.sum() + z.imag.sum() * np.real(u).sum()
    total += np.abs(np.outer(x, c).sum(axis=1)).sum()
    return total + np.angle(u).sum() + abs(table.mean()) + (u * u.conj()).real.max()


def products(x, c):
    z, a = x * c, np.outer(x, x) + 1j * np.outer(x, x * x)
    return abs(np.dot(c, z) + np.vdot(z, c)) + np.abs(a @ z).sum() + (a @ a.T).real.sum()


CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (transfer_function, ()), (arithmetic, ()), (functions, ()), (loops_and_containers, ()), (arrays, (Z,)), (products, (Z,)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "args"), CASES, ids=lambda p: getattr(p, "__name__", ""))
def test_value_and_derivatives(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    f = numba.njit(function)
    value, gradient = tg.value_and_grad(f)(X, *args)
    assert value == f(X, *args)
    steps = 1e-6 * np.eye(5)
    differences = [(f(X + step, *args) - f(X - step, *args)) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-6 * np.abs(gradient).max())
    if args:
        return  # arrays have the rows of their items
    of = tg.grad(f)
    second = [(of(X + step, *args) - of(X - step, *args)) / 2e-6 for step in steps]
    hessian = tg.hessian(f)(X, *args)
    np.testing.assert_allclose(hessian, second, rtol=1e-6, atol=1e-6 * np.abs(hessian).max())


def test_second_derivatives_along_a_direction() -> None:
    f = numba.njit(lambda x: abs(x[0] * 1j + x[1] * x[2] * np.exp(1j * x[3])))
    np.testing.assert_allclose(tg.hvp(f, X, X), tg.hessian(f)(X) @ X, rtol=1e-12)


def test_absolute_value_and_angle_of_zero_have_the_derivative_zero() -> None:
    f = numba.njit(lambda x: abs(complex(0.0, 0.0) * x[0]) + np.angle(x[1] * 0j) + x[2])
    assert tg.grad(f)(X).tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(("text", "construct", "instead"), OF_COMPLEX_NUMBERS, ids=[text for text, _, _ in OF_COMPLEX_NUMBERS])
def test_what_is_not_recorded_says_what_to_write(text: str, construct: str, instead: str) -> None:
    space: dict[str, Any] = {"np": np}
    exec(f"def f(x):\n    return {text}", space)
    with pytest.raises(CompileError) as caught:
        tg.grad(numba.njit(space["f"]))(X)
    assert construct in str(caught.value)
    assert instead in str(caught.value)


def test_complex_result_is_refused() -> None:
    with pytest.raises(CompileError, match="returns TapeComplex|complex"):
        tg.grad(numba.njit(lambda x: x[0] * 1j))(X)
