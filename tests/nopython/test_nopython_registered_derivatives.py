"""Functions whose derivative users say: of C, compiled, of arrays, in second order, and what is not accepted."""

from __future__ import annotations

import ctypes
from typing import Any

import numba
import numpy as np
import pytest
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from numba.extending import get_cython_function_address
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.errors import CompileError

OF_ONE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)


def of_scipy(name: str) -> Any:
    pytest.importorskip("scipy")
    return OF_ONE(get_cython_function_address("scipy.special.cython_special", name))


def test_c_functions_whose_partials_call_each_other_have_both_derivatives() -> None:
    special = pytest.importorskip("scipy.special")
    j0, j1 = of_scipy("j0"), of_scipy("j1")
    tg.register_derivative(j0, numba.njit(lambda x: -j1(x)))
    tg.register_derivative(j1, [numba.njit(lambda x: j0(x) - j1(x) / x)])
    again = of_scipy("j1")  # another object that points to the same function

    @numba.njit
    def f(x):
        return j0(x[0]) * again(x[1])

    x, y = point = np.array([1.1, 2.3])
    value, gradient = tg.value_and_grad(f)(point)
    assert value == f(point)
    (a, da, dda), (b, db, ddb) = ([special.jvp(n, at, k) for k in range(3)] for n, at in ((0, x), (1, y)))
    np.testing.assert_allclose(gradient, [da * b, a * db], rtol=1e-13)
    np.testing.assert_allclose(tg.hessian(f)(point), [[dda * b, da * db], [da * db, a * ddb]], rtol=1e-12)
    np.testing.assert_allclose(tg.hvp(f, point, np.array([1.0, 0.0])), [dda * b, da * db], rtol=1e-12)


@numba.njit
def root(x, tolerance=1e-15):
    y = x
    for _ in range(100):
        step = (y**3 + y - x) / (3 * y * y + 1)
        y -= step
        if abs(step) <= tolerance:
            break
    return y


def test_a_compiled_function_has_the_registered_derivative_also_where_it_was_recorded_before() -> None:
    @numba.njit
    def f(x):
        return root(x * x) * x

    before = tg.hessian(f)(1.2)
    slope = numba.njit(lambda x, tolerance: 1.0 / (3 * root(x, tolerance) ** 2 + 1))
    tg.register_derivative(root, (slope, None))
    np.testing.assert_allclose(tg.hessian(f)(1.2), before, rtol=1e-12)
    tg.register_derivative(root, (numba.njit(lambda x, tolerance: 2.0), None))
    assert tg.grad(root)(1.3) == 2.0
    np.testing.assert_allclose(tg.grad(f)(1.2), root(1.44) + 2.0 * 2.4 * 1.2, rtol=1e-15)


@numba.njit
def scaled_squares(a, k, s):
    total = 0.0
    for v in a:
        total += v * v
    return total * s * k


@numba.njit
def by_array(a, k, s):
    out = np.empty(3)
    for i in range(3):
        out[i] = 2.0 * a[i] * s * k
    return out


def test_partials_by_arrays_and_numbers_beside_constants() -> None:
    tg.register_derivative(scaled_squares, (by_array, None, numba.njit(lambda a, k, s: scaled_squares(a, k, 1.0))))
    x = np.array([1.0, 2.0, -3.0])
    f = numba.njit(lambda x: scaled_squares(x, k=3, s=x[1]))
    assert f(x) == 84.0
    unit = np.eye(3)[1]
    np.testing.assert_allclose(tg.grad(f)(x), 6.0 * x * x[1] + 3.0 * (x @ x) * unit, rtol=1e-14)
    np.testing.assert_allclose(tg.hessian(f)(x), 6.0 * (np.eye(3) * x[1] + np.outer(x, unit) + np.outer(unit, x)), rtol=1e-14)


@numba.cfunc("float64(float64)")
def square(x):
    return x * x


def test_callbacks_are_recorded_by_their_text() -> None:
    f = numba.njit(lambda x: square(x[0]) * square(x[1]))
    np.testing.assert_array_equal(tg.grad(f)(np.array([2.0, 3.0])), [36.0, 24.0])


def test_what_has_no_derivative_is_refused_and_says_how_it_gets_one() -> None:
    y0 = of_scipy("y0")
    f = numba.njit(lambda x: y0(x[0]))
    with pytest.raises(CompileError, match=r"of C is called with a variable .* say what it is by tg.register_derivative"):
        tg.grad(f)(np.ones(1))
    of_constants = numba.njit(lambda x: y0(1.5) * x)
    assert tg.grad(of_constants)(2.0) == y0(1.5)
    y1 = of_scipy("y1")
    tg.register_derivative(y0, numba.njit(lambda x: -y1(x)))
    np.testing.assert_array_equal(tg.grad(f)(np.full(1, 1.5)), [-y1(1.5)])
    with pytest.raises(CompileError, match="of C is called with a variable"):  # y1 in the second derivative
        tg.hessian(f)(np.full(1, 1.5))


one = numba.njit(lambda x: x)
BAD = {
    "tg.register_derivative(one, lambda x: x)": (TypeError, "partial 0 of <lambda> must be compiled, and is function"),
    "tg.register_derivative(one, (one, one))": (ValueError, "the arguments of <lambda> are x, but the number of partials is 2"),
    "tg.register_derivative(one, scaled_squares)": (ValueError, "must take the arguments of <lambda>, x, but it takes 3"),
    "tg.register_derivative(one, None)": (ValueError, "there is no partial of <lambda> at all"),
    "tg.register_derivative(np.sin, one)": (ValueError, "sin has a derivative already"),
    "tg.register_derivative(3.0, one)": (TypeError, "3.0 is not a function that compiled code calls"),
    "tg.register_derivative(lambda x: x, one)": (TypeError, "Numba does not know <lambda>"),
    "tg.register_derivative(ctypes.CFUNCTYPE(None, ctypes.c_double)(0), one)": (TypeError, "must return ctypes.c_double"),
    "tg.register_derivative(numba.njit(lambda *x: x), one)": (ValueError, r"takes \*args"),
    "tg.register_derivative(numba.njit(inline='always')(lambda x: x), one)": (ValueError, "compiled with inline"),
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_not_accepted(text: str) -> None:
    kind, message = BAD[text]
    with pytest.raises(kind, match=message):
        eval(text)


@numba.njit
def squared_in_place(a):
    a[0] = a[0] * a[0]
    return a.sum()


def test_functions_that_write_into_arrays_of_variables_are_refused_where_they_are_called() -> None:
    tg.register_derivative(squared_in_place, numba.njit(lambda a: np.ones_like(a)))

    @numba.njit
    def f(x):
        work = x * 1.0
        return squared_in_place(work) * work[0]

    with pytest.raises(ValueError, match="has written into an array of variables"):
        tg.grad(f)(np.array([1.3, 0.7]))


class Beta(numba.types.WrapperAddressProtocol):
    """The beta function of SciPy, as packages hand out its functions."""

    def __wrapper_address__(self) -> int:
        return int(get_cython_function_address("scipy.special.cython_special", "beta"))

    def signature(self) -> Any:
        return numba.float64(numba.float64, numba.float64)


def test_objects_with_an_address_are_c_functions() -> None:
    special = pytest.importorskip("scipy.special")
    beta = Beta()
    f = numba.njit(lambda x: beta(x[0], 2.0) * x[1])
    point = np.array([1.5, 3.0])
    with pytest.raises(CompileError, match=r"Beta of C is called with a variable.*tg\.register_derivative"):
        tg.grad(f)(point)
    tg.register_derivative(beta, (numba.njit(lambda a, b: -(2 * a + 1) * beta(a, b) ** 2), None))
    slope = -(2 * 1.5 + 1) / (1.5 * 2.5) ** 2  # as beta(a, 2) = 1 / (a * (a + 1))
    np.testing.assert_allclose(tg.grad(f)(point), [3.0 * slope, special.beta(1.5, 2.0)], rtol=1e-12)


def test_objects_with_an_address_must_return_floats() -> None:
    class Counting(Beta):
        """A function of whole numbers."""

        def signature(self) -> Any:
            return numba.int64(numba.int64)

    with pytest.raises(TypeError, match="Counting must return a float, not int64"):
        tg.register_derivative(Counting(), numba.njit(lambda n: 1.0))
