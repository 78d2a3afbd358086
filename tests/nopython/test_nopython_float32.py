"""float32 in compiled functions: values keep their bits, derivatives are those of the same function in float64."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numba
import numpy as np
import pytest
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.errors import CompileError

F, D = np.float32, np.float64  # F is float64 in the functions that these are compared with
X = np.array([1.3, 0.7, 1.1, 0.9, 1.6])
M = np.arange(9.0).reshape(3, 3) % 5 + np.eye(3)
REGULAR = M + np.diag([2.0, 4.0, 7.0])  # eigenvalues apart and positive: BLAS's kernels round float32 in ways of their own
TWICE = {F: numba.njit("float32(float32)")(lambda a: a * a), D: numba.njit(lambda a: a * a)}
twice = TWICE[F]


def casts_of_numbers(x):
    y = F(x[0] * x[1])
    z = np.sin(y) * y + F(x[2]) / F(3) - y**2
    larger = max(z, F(x[3])) * min(F(x[4]), 2.0) * abs(-y)
    return larger + z * 2.0 + z * 2 + float(z) * D(y) + twice(x[1])


def work_arrays(x):
    w = np.zeros(3, F)
    w[0] = x[0] * x[1]
    w[1:] = x[3:]
    w[1] += w[0] * x[2]
    v = np.full(3, w[1])
    u = np.ones_like(w)
    u *= x[:3]
    t = np.array([x[0], w[0]], dtype=F)
    return (w * v).sum() + np.dot(u, w) * t[1] + np.empty_like(w, D).size


def conversions_of_arrays(x):
    y = x.astype(F)
    z = y.astype(D) * x
    w = y * 2.0 + np.exp(y)
    return (z * y).sum() + w.sum() + np.asarray(y, D)[2] * np.copy(y)[1]


def loops_and_containers(x):
    s, t = F(0), F(1)
    for k in range(len(x)):
        s += F(x[k]) * t if k % 2 else F(x[k])
    for value in (F(x[0]), F(x[1]), F(3)):
        t *= value
    items = [F(x[2]), s]
    items.append(t * F(x[0]))
    for value in items:
        s += value * t
    pair = F(2) if x[0] < 0 else F(x[4])
    return s * pair


def squared_distance(x):  # as umap and pynndescent declare theirs
    result = 0
    for k in range(len(x) - 1):
        difference = x[k] - x[k + 1]
        result += difference * difference
    return np.sqrt(result)


def arguments(x):
    y = x * x + np.sqrt(x)
    total = y.sum() + x.mean() - np.dot(x, y) + (y * 2.0).max() + x.prod() * np.median(x)
    return total + np.cumsum(y)[3] * np.cumprod(x)[2] + np.std(x) * np.linalg.norm(x[::2]) + np.clip(x, F(0.8), F(1.2)).sum()


def matrices(a):
    b = a @ a
    return b.sum() + np.sum(a, 0)[1] * (a.T @ a[0])[2] + np.trace(b) + np.linalg.det(a) + np.linalg.matrix_power(a, 3)[1, 0]


def decompositions(a):
    w, v = np.linalg.eigh(a + a.T)
    u, s, vt = np.linalg.svd(a)
    q, r = np.linalg.qr(a)
    spectral = ((v * np.exp(-w)) @ v.T)[0, 1] + ((u * s * s) @ vt)[1, 2]
    return spectral + q[0, 1] ** 2 + r[1, 2] ** 2 + (np.linalg.pinv(a) @ s)[1]


CASES = [
    (casts_of_numbers, X, {}),
    (work_arrays, X, {}),
    (conversions_of_arrays, X, {}),
    (loops_and_containers, X, {}),
    (squared_distance, X, {"result": numba.float32, "difference": numba.float32}),
    (squared_distance, X.astype(F), {"result": numba.float32, "difference": numba.float32}),
    (arguments, X.astype(F), {}),
    (arguments, np.repeat(X, 2).astype(F)[::2], {}),
    (matrices, M.astype(F), {}),
    (decompositions, REGULAR.astype(F), {}),
    (decompositions, np.asfortranarray(REGULAR, F), {}),
]


def wide(function: Any, types: dict[str, Any]) -> Any:
    """The same function in float64."""
    space = function.__globals__ | {"F": D, "twice": TWICE[D]}
    made = FunctionType(function.__code__, space, function.__name__)
    return numba.njit(made, locals=dict.fromkeys(types, numba.float64))


@pytest.mark.parametrize(("function", "point", "types"), CASES, ids=lambda p: getattr(p, "__name__", None))
def test_value_has_the_bits_and_derivative_is_that_in_float64(function: Any, point: np.ndarray, types: dict[str, Any]) -> None:
    f, g = numba.njit(function, locals=types), wide(function, types)
    value, gradient = tg.value_and_grad(f)(point)
    assert value == f(point)
    assert gradient.dtype == point.dtype
    x, expected = point.astype(D), np.zeros(point.shape)
    for place in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[place] = 1e-6
        expected[place] = (g(x + step) - g(x - step)) / 2e-6
    np.testing.assert_allclose(gradient, expected, rtol=3e-6, atol=3e-6 * np.abs(expected).max())


@numba.njit
def cubes(x, scale):
    y = x * x * x
    return (y * scale).sum()


@numba.njit
def squares(x):
    return x * x


POINT = np.array([1.0, 2.0], F)


def test_derivatives_have_the_type_of_the_argument() -> None:
    value, (by_array, by_number) = tg.value_and_grad(cubes, (0, 1))(POINT, F(2))
    assert (value, by_array.tolist(), by_number) == (18.0, [6.0, 24.0], 9.0)
    found = [
        by_array, by_number, tg.hessian(cubes)(POINT, F(2)), tg.jacobian(squares)(POINT), tg.vjp(squares, POINT)[1](POINT)[0],
        tg.jvp(squares, (POINT,), (POINT,))[1], tg.elementwise_grad(squares)(POINT), tg.vjp(squares, POINT)[0],
    ]  # fmt: skip
    assert [part.dtype for part in found] == [np.dtype(F)] * len(found)
    assert tg.hessian(cubes)(POINT, F(2)).tolist() == [[12.0, 0.0], [0.0, 24.0]]


def test_tensors_of_float32() -> None:
    x = tg.tensor(POINT, requires_grad=True)
    y = tg.njit_op(squares)(x)
    assert y.dtype == tg.float32
    y.sum().backward()
    assert x.grad.dtype == tg.float32
    assert x.grad.tolist() == [2.0, 4.0]


def test_gradient_inside_of_compiled_code() -> None:
    value, (by_array, by_number) = tg.njit_derivative(cubes, (0, 1))(POINT, F(2))
    assert (value, by_array.tolist(), by_number, by_array.dtype) == (18.0, [6.0, 24.0], 9.0, F)


def test_float32_of_a_registered_function_is_a_float32() -> None:
    @numba.njit
    def g(x):
        return np.float32(x) * np.float32(x)

    tg.register_derivative(g, numba.njit(lambda x: 2.0 * x))
    f = numba.njit(lambda x: g(x) / F(3))
    assert tg.value_and_grad(f)(1.3) == (f(1.3), pytest.approx(2.6 / 3))


def test_sinc_of_an_array_of_float32_is_refused() -> None:
    f = numba.njit(lambda x: np.sinc(x).sum())
    with pytest.raises(CompileError, match=r"np\.sinc.*astype\(np\.float64\)"):
        tg.grad(f)(POINT)
