"""Primitives whose derivatives the user gives: to any order, of any arguments."""

from typing import Any

import autograd.numpy as np
import numpy as onp
import pytest
import scipy.linalg
import scipy.special
from autograd import elementwise_grad, grad, hessian, jacobian, make_jvp
from autograd.core import primitive_vjps
from autograd.extend import (
    SparseObject,
    VJPNode,
    VSpace,
    def_linear,
    defjvp,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    notrace_primitive,
    primitive,
    register_notrace,
    vspace,
)
from autograd.scipy.linalg import orth, solveh_banded
from autograd.scipy.special import radian
from autograd.test_util import check_grads
from autograd.tracer import getval, isbox

from tapegrad.as_autograd.remembered import remembered

X = onp.array([0.3, 0.7, 1.1])


@primitive
def logsumexp(x: Any) -> Any:
    assert type(x) is onp.ndarray
    return onp.log(onp.exp(x).sum())


defvjp(logsumexp, lambda ans, x: lambda g: g * np.exp(x - ans))


@primitive
def product(x: Any, y: Any, power: float = 1.0) -> Any:
    return (x * y) ** power


defvjp(
    product,
    lambda ans, x, y, power=1.0: lambda g: g * power * (x * y) ** (power - 1.0) * y,
    lambda ans, x, y, power=1.0: lambda g: g * power * (x * y) ** (power - 1.0) * x,
)


@primitive
def cube(x: Any) -> Any:
    return x**3


defjvp(cube, lambda g, ans, x: 3.0 * x**2 * g)


@primitive
def turned(p: Any, q: Any) -> Any:
    """Takes and gives containers."""
    return {"sum": p["a"] + q, "products": (p["a"] * q, 7)}


def _of_turned(argnum: int, ans: Any, args: Any, kwargs: Any) -> Any:
    p, q = args
    of_p = lambda g: {"a": g["sum"] + g["products"][0] * q, "b": 0.0 * p["b"]}  # noqa: E731
    return of_p if argnum == 0 else lambda g: g["sum"] + g["products"][0] * p["a"]


defvjp_argnum(turned, _of_turned)


def of_turned(a: Any, q: Any) -> Any:
    found = turned({"a": a, "b": 2.0 * a}, q)
    return np.sum(found["sum"] ** 2 * found["products"][0]) * found["products"][1]


@primitive
def first(x: Any) -> Any:
    return x[0] + 0.0


def _of_first(ans: Any, x: Any) -> Any:
    def vjp(g: Any) -> Any:
        def add(total: Any) -> Any:
            total[0] += g
            return total

        return SparseObject(vspace(x), add)

    return vjp


defvjp(first, _of_first)


FUNCTIONS = {
    "of an array": (logsumexp, (X,)),
    "with keywords": (lambda x, y: product(x, y, power=2.5), (X, 1.0 + X)),
    "of which operands are broadcast": (product, (onp.ones((2, 3)) * 0.5, X)),
    "of numbers": (product, (0.5, 0.7)),
    "by one argument": (lambda x: product(x, X), (X,)),
    "of containers": (of_turned, (X, 1.0 - X)),
    "with a derivative in forward mode": (cube, (X,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_primitive_has_derivatives_of_any_order(name: str) -> None:
    f, point = FUNCTIONS[name]
    check_grads(f, tuple(range(len(point))), order=3)(*point)


def test_second_derivatives_are_those_of_the_same_formula_without_a_primitive() -> None:
    plain = lambda x: np.log(np.sum(np.exp(x)))  # noqa: E731
    onp.testing.assert_allclose(hessian(logsumexp)(X), hessian(plain)(X), rtol=1e-12)
    onp.testing.assert_allclose(jacobian(hessian(logsumexp))(X), jacobian(hessian(plain))(X), rtol=1e-9, atol=1e-13)


def test_sparse_cotangents_are_added() -> None:
    onp.testing.assert_allclose(grad(lambda x: first(x) ** 2 + np.sum(x))(X), [1.6, 1.0, 1.0])


def test_a_cotangent_can_be_kept_and_written_into() -> None:
    kept = []

    @primitive
    def same(x: Any) -> Any:
        return x

    def of_same(ans: Any, x: Any) -> Any:
        def vjp(g: Any) -> Any:
            kept.append(g)
            h = g.copy()
            g *= 0.0
            return h

        return vjp

    defvjp(same, of_same)
    onp.testing.assert_allclose(grad(lambda x: np.sum(same(x) ** 2 + x))(X), 2 * X + 1)
    assert kept[0].tolist() == [0.0, 0.0, 0.0]


def test_a_result_does_not_share_memory_with_the_functions_own() -> None:
    store = onp.array([1.0, 2.0, 3.0])
    stored = primitive(lambda x: store)
    defvjp(stored, lambda ans, x: lambda g: g * ans)

    def f(x: Any) -> Any:
        found = stored(x)
        store[:] = 5.0
        return np.sum(found)

    onp.testing.assert_allclose(grad(f)(X), [1.0, 2.0, 3.0])


def test_derivatives_by_several_arguments_at_once() -> None:
    f = primitive(lambda x, y: x * y)
    asked = []

    def together(argnums: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        asked.append(argnums)
        return lambda g: [g * args[1 - argnum] for argnum in argnums]

    defvjp_argnums(f, together)
    assert grad(lambda x: f(x, x))(3.0) == 6.0
    assert asked == [(0, 1)]
    assert f in primitive_vjps


def test_none_is_no_derivative() -> None:
    f = primitive(lambda x, n: x**n)
    defvjp(f, lambda ans, x, n: lambda g: g * n * x ** (n - 1.0), None)
    assert grad(lambda x: f(x, x))(3.0) == 27.0


def test_constants_by_request() -> None:
    f = primitive(lambda x: x * 2.0)
    register_notrace(VJPNode, f)
    assert grad(lambda x: f(x) * x)(3.0) == 6.0
    assert grad(lambda x: notrace_primitive(lambda y: y * 2.0)(x) * x)(3.0) == 6.0


def test_a_primitive_of_values_is_the_function() -> None:
    assert product(2.0, 3.0, power=2.0) == 36.0
    assert turned({"a": 1.0, "b": 2.0}, 3.0) == {"sum": 4.0, "products": (3.0, 7)}


def test_what_is_differentiated_is_known() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append((isbox(x), isbox(getval(x)), type(getval(x)), vspace(x).shape))
        return np.sum(x)

    grad(f)(X)
    assert seen == [(True, False, onp.ndarray, (3,))]
    assert not isbox(X)
    assert isinstance(vspace({"a": 1.0}), VSpace)


def test_the_value_of_what_is_differentiated_is_an_attribute() -> None:
    seen: list[Any] = []

    def f(both: Any) -> Any:
        x, z = both
        seen.extend([x._value, (x[0] * x)._value, x[1]._value, z._value])
        return np.sum(np.abs(z * x))

    grad(f)((X, X + 1.0j))
    for found, wanted in zip(seen, [X, X[0] * X, X[1], X + 1.0j], strict=True):
        assert type(found) in (onp.ndarray, onp.float64)
        onp.testing.assert_array_equal(found, wanted)


def test_a_function_of_scipy_can_be_without_derivative() -> None:
    register_notrace(VJPNode, orth)
    assert grad(lambda x: np.sum(orth(x) * x))(onp.eye(2)).tolist() == abs(scipy.linalg.orth(onp.eye(2))).tolist()


def _known_by_itself() -> Any:
    f = primitive(lambda x: 2.0 * x)
    def_linear(f)
    return f


REFUSALS = {
    "a linear function that only itself describes": (lambda: grad(_known_by_itself())(1.0), NotImplementedError, "not defined"),
    "no derivative": (lambda: grad(primitive(lambda x: x))(1.0), NotImplementedError, "VJP of .* not defined"),
    "none for an argument": (lambda: grad(_only_second(), 0)(1.0, 2.0), NotImplementedError, "wrt argnum 0 not defined"),
    "a keyword that is differentiated": (lambda: grad(lambda x: product(1.0, 2.0, power=x))(1.0), TypeError, "by position"),
    "a derivative that is none": (lambda: defvjp(primitive(abs), 3.0), TypeError, "Bad VJP"),
    "a complex cotangent": (lambda: grad(_complex())(1.0), TypeError, "real part"),
}


def _only_second() -> Any:
    f = primitive(lambda x, y: x * y)
    defvjp(f, lambda ans, x, y: lambda g: g * x, argnums=[1])
    return f


def _complex() -> Any:
    f = primitive(lambda x: x)
    defvjp(f, lambda ans, x: lambda g: g * 1.0j)
    return f


@pytest.mark.parametrize(
    ("fun", "define", "given"),
    [
        (np.sin, defvjp, lambda ans, x: lambda g: g * 100.0),
        (np.sin, defjvp, lambda g, ans, x: g * 100.0),
        (np.sum, defvjp, lambda ans, x: lambda g: g * 100.0),
    ],
    ids=["ufunc", "forward mode", "function"],
)
def test_what_is_given_for_a_function_of_numpy_is_said_not_to_be_used(fun: Any, define: Any, given: Any) -> None:
    with pytest.warns(UserWarning, match=f"given for {fun.__name__} is not used") as seen:
        define(fun, given)
    assert seen[0].filename == __file__
    onp.testing.assert_array_equal(elementwise_grad(np.sin)(X), onp.cos(X))


def test_a_function_of_scipy_without_derivative_takes_one() -> None:
    a = onp.array([[0.0, 1.0, 1.0], [4.0, 5.0, 6.0]])  # diagonals of a symmetric matrix, the upper one first
    b = onp.array([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError):
        grad(lambda b: np.sum(solveh_banded(a, b)))(b)
    defvjp(solveh_banded, None, lambda ans, a, b: lambda g: solveh_banded(a, g))
    full = onp.diag(a[1]) + onp.diag(a[0, 1:], 1) + onp.diag(a[0, 1:], -1)
    onp.testing.assert_allclose(
        grad(lambda b: np.sum(solveh_banded(a, b) ** 2))(b), 2.0 * onp.linalg.inv(full) @ onp.linalg.inv(full) @ b
    )
    onp.testing.assert_array_equal(solveh_banded(a, b), scipy.linalg.solveh_banded(a, b))


def test_a_ufunc_of_scipy_without_derivative_takes_one() -> None:
    with pytest.raises(TypeError):
        grad(radian)(30.0, 0.0, 0.0)
    defvjp(radian, lambda ans, d, m, s: lambda g: g * np.pi / 180.0)
    assert grad(lambda d: radian(d, 0.0, 0.0) ** 2)(30.0) == pytest.approx(2.0 * (np.pi / 180.0) ** 2 * 30.0)


def test_what_is_given_for_a_function_of_linear_algebra_is_used() -> None:
    matrix, other = np.diag(np.array([1.0, 4.0])), np.eye(2)  # no other test has the derivative of this function
    plain = make_jvp(np.linalg.cond)(matrix)(other)[1]
    defjvp(np.linalg.cond, lambda g, ans, x: 100.0 * g[0, 0])
    assert (plain, make_jvp(np.linalg.cond)(matrix)(other)[1]) == (pytest.approx(-3.0), 100.0)


def test_what_is_given_for_a_plain_function_has_no_effect() -> None:
    def plain(x: Any) -> Any:
        return x**2

    defvjp(plain, lambda ans, x: lambda g: g * 100.0)
    assert grad(plain)(3.0) == 6.0


@pytest.mark.parametrize("name", REFUSALS)
def test_refused(name: str) -> None:
    call, error, message = REFUSALS[name]
    with pytest.raises(error, match=message):
        call()


def test_a_custom_vector_in_forward_mode() -> None:
    value, tangent = make_jvp(logsumexp)(X)(onp.ones(3))
    assert value == pytest.approx(onp.log(onp.exp(X).sum()))
    assert tangent == pytest.approx(1.0)


@pytest.mark.parametrize("count", [31, 32, 33, 70])
def test_a_primitive_takes_any_number_of_arguments(count: int) -> None:
    @primitive
    def total(*args: Any) -> Any:
        return sum(k * x**2 for k, x in enumerate(args))

    defvjp_argnum(total, lambda argnum, ans, args, kwargs: lambda g: g * 2.0 * argnum * args[argnum])
    found = grad(lambda x: total(*(part for part in x)) ** 2)(onp.ones(count))
    onp.testing.assert_allclose(found, 4.0 * onp.arange(count) * onp.arange(count).sum())


def test_values_of_ufuncs_are_remembered_by_value() -> None:
    ufunc = onp.frompyfunc(lambda a, b: a * b, 2, 1)
    seen: list[Any] = []

    def counted(a: Any, b: Any) -> Any:
        seen.append((a, b))
        return a * b

    counting = remembered(onp.frompyfunc(counted, 2, 1))
    x = onp.array([1.0, 2.0])
    first = counting(2.0, x)
    first[0] = 7.0  # what was given belongs to the caller
    assert counting(2.0, x).tolist() == ufunc(2.0, x).tolist() == [2.0, 4.0]
    assert len(seen) == 2
    x[0] = 5.0
    assert counting(2.0, x).tolist() == [10.0, 4.0]
    assert counting(2, x.astype(int)).tolist() == [10, 4]
    assert len(seen) == 6


def test_elements_that_come_again_are_remembered_to_the_bit() -> None:
    gammaincc = remembered(scipy.special.gammaincc)
    x = onp.array([0.0, -0.0, onp.nan, onp.inf, 1.0, 2.5, 0.3] * 5)
    for part in (x[x != 1.0], x, x[::-3], x.reshape(7, 5)[:, 1:]):
        for a in (0.5, onp.float64(2.0), 0.5):
            assert gammaincc(a, part).tobytes() == scipy.special.gammaincc(a, part).tobytes()
