"""Calls that are done at once by machine code look at everything that other calls look at."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture

import tapegrad as tg

X, V = np.linspace(0.5, 1.5, 4), np.cos(np.arange(4.0))  # no more than four inputs for an output, for Jacobians
SCALE = 2.0
WEIGHTS = np.arange(1.0, 5.0)


def bits(value: Any) -> Any:
    """Types and bytes of results."""
    if isinstance(value, (tuple, list)):
        return type(value), [bits(part) for part in value]
    if isinstance(value, dict):
        return type(value), [(name, bits(part)) for name, part in value.items()]
    return type(value), np.asarray(value).tobytes(), np.shape(value), np.asarray(value).dtype, np.asarray(value).strides


def without_signs_of_zeros(value: Any) -> Any:
    """The same for results that have zeros of either sign."""
    if isinstance(value, (tuple, list)):
        return type(value), [without_signs_of_zeros(part) for part in value]
    return type(value), bits(np.asarray(value) + 0.0)


def drivers(f: Any) -> dict[str, Callable[..., Any]]:
    """What has direct calls."""
    return {
        "value": f,
        "value_and_grad": tg.value_and_grad(f),
        "grad": tg.grad(f),
        "tuple": tg.value_and_grad(f, (0,)),
        "hvp": lambda x: tg.hvp(f, x, V),
        "jacobian": tg.jacobian(f, mode="forward"),
        "value_and_jacobian": tg.value_and_jacobian(f, (0,), mode="forward"),
        "hessian": tg.hessian(f),
        "jvp": lambda x: tg.jvp(f, (x,), (V,)),
        "linearize": lambda x: with_product(tg.linearize(f, x), V),
        "vjp": lambda x: with_product(tg.vjp(f, x), 1.5),
    }


def with_product(both: Any, vector: Any) -> tuple[Any, Any]:
    """The value, and the product with a vector."""
    value, product = both
    return value, product(vector)


def direct(program: Any, *args: Any) -> dict[str, Callable[..., Any]]:
    """Drivers of a program whose calls at these arguments are direct."""
    found = drivers(program)
    for _ in range(2):
        for run in found.values():
            run(*args)
        program.compile()
    for run in found.values():
        run(*args)
        run(*args)
    assert all(one.call is not None for one in program._direct.values())
    return found


def agree(found: dict[str, Callable[..., Any]], function: Callable[..., Any], *args: Any) -> None:
    """All drivers give what they give of the function."""
    for name, run in drivers(function).items():
        assert bits(found[name](*args)) == bits(run(*args)), name


def test_results_are_those_of_calls() -> None:
    def f(x: Any) -> Any:
        return (np.tanh(x) * x)[0] + x[1] * x[2] * x[3]

    found = direct(tg.program(f), X)
    for x in (X, -X, np.zeros(4), np.full(4, np.inf)):
        agree(found, f, x)


def test_a_result_is_not_written_over_by_the_next_call() -> None:
    p = tg.program(lambda x: x[0] * x[1] * x[2])
    found = direct(p, X)
    first, product = found["grad"](X), found["hvp"](X)
    kept = first.copy(), product.copy()
    found["grad"](X + 1.0), found["hvp"](X + 1.0)
    assert bits((first, product)) == bits(kept)


def test_a_global_is_looked_at() -> None:
    def f(x: Any) -> Any:
        return x[0] * x[1] * SCALE

    found = direct(tg.program(f), X)
    space = sys.modules[__name__].__dict__
    try:
        space["SCALE"] = 3.0
        agree(found, f, X)
    finally:
        space["SCALE"] = 2.0
    agree(found, f, X)


def test_a_closure_is_looked_at() -> None:
    factor = 2.0

    def f(x: Any) -> Any:
        return x[0] * x[1] * factor

    found = direct(tg.program(f), X)
    factor = 3.0
    agree(found, f, X)


def test_contents_of_an_array_of_the_closure_are_looked_at() -> None:
    weights = np.arange(1.0, 5.0)

    def f(x: Any) -> Any:
        return (x * weights)[0] * x[1]

    found = direct(tg.program(f), X)
    weights[0] = 5.0
    agree(found, f, X)


def test_a_default_is_looked_at() -> None:
    def f(x: Any, k: float = 2.0) -> Any:
        return x[0] * x[1] * k

    found = direct(tg.program(f), X)
    f.__defaults__ = (3.0,)
    agree(found, f, X)


def test_code_is_looked_at() -> None:
    def f(x: Any) -> Any:
        return x[0] * x[1]

    def other(x: Any) -> Any:
        return x[0] * x[2] * x[2]

    found = direct(tg.program(f), X)
    f.__code__ = other.__code__
    agree(found, other, X)


def test_an_attribute_of_the_function_is_looked_at() -> None:
    def f(x: Any) -> Any:
        return x[0] * x[1] * getattr(f, "scale", 1.0)

    program = tg.program(f)
    found = drivers(program)
    for _ in range(3):
        for run in found.values():
            run(X)
        program.compile()
    f.scale = 4.0  # type: ignore[attr-defined]
    agree(found, f, X)


def test_large_arrays_of_the_closure_are_read_where_they_are() -> None:
    data = np.linspace(0.0, 1.0, 4400).reshape(1100, 4)

    def f(x: Any) -> Any:
        z = data @ x
        return (z * z).sum()

    program = tg.program(f)
    found = direct(program, X)
    for change in (data * 2.0, data[:, ::-1].copy(), data[:500].copy()):
        data = change
        for name in ("value", "grad", "hvp"):
            np.testing.assert_allclose(found[name](X), drivers(f)[name](X), rtol=1e-12)
    data[0, 0] = 7.0
    np.testing.assert_allclose(found["grad"](X), tg.grad(f)(X), rtol=1e-12)


@pytest.mark.parametrize(
    "x",
    [X[:3].copy(), X.astype(np.float32), X[::-1], np.arange(4), X.reshape(2, 2), np.stack([X, X], 1)[:, 0]],
    ids=["shorter", "float32", "backwards", "integers", "matrix", "strided"],
)
def test_other_arguments_are_other_calls(x: Any) -> None:
    def f(x: Any) -> Any:
        return (x * x).sum() if x.ndim == 1 else (x * x * x).sum()

    found = direct(tg.program(f), X)
    for name in ("value", "grad"):
        expected: Any
        try:
            expected = drivers(f)[name](x)
        except TypeError:
            with pytest.raises(TypeError):
                found[name](x)
            continue
        result = found[name](x)
        assert type(result) is type(expected)
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_a_dtype_that_is_gone_is_not_taken_for_another_one_in_its_place() -> None:
    def f(x: Any) -> Any:
        return x[0] * x[1] * x[2]

    program, v = tg.program(f), V.astype(np.dtype(np.float64, metadata={"unit": "m"}))
    for _ in range(4):
        tg.hvp(program, X, v)
        program.compile()
    assert program._direct["hvp", 0].call is not None
    place = id(v.dtype)
    del v
    gc.collect()
    kept = []
    for _ in range(10_000):
        kept.append(np.dtype(np.float64).newbyteorder(">"))
        if id(kept[-1]) == place:
            break
    v = V.astype(kept[-1])
    assert bits(tg.hvp(program, X, v)) == bits(tg.hvp(f, X, v))


def test_one_array_twice_is_another_call() -> None:
    def f(x: Any, y: Any) -> Any:
        return (x * y)[0] if x is y else (x + y)[0]

    p = tg.program(f)
    for _ in range(4):
        p(X, V)
        p.compile()
    assert p._direct["value", None].call is not None
    assert p(X, X) == f(X, X)
    assert p(X, V) == f(X, V)


def test_an_array_of_the_closure_as_argument_is_another_call() -> None:
    weights = np.arange(1.0, 5.0)

    def f(x: Any) -> Any:
        return x[0] * 2.0 if x is weights else (x * weights)[1]

    found = direct(tg.program(f), X)
    assert found["value"](weights) == f(weights)
    assert found["value"](X) == f(X)


def test_several_arguments_and_numbers() -> None:
    def f(x: Any, s: Any, y: Any) -> Any:
        return (x * y)[0] * s * s

    p = tg.program(f)
    for argnums in (0, (0,), (0, 1), (2, 1, 0)):
        run, called = tg.value_and_grad(p, argnums), tg.value_and_grad(f, argnums)
        for s in (2.0, np.float64(3.0)):
            for _ in range(4):
                run(X, s, V)
                p.compile()
            assert p._direct["", argnums].call is not None
            assert bits(run(X, s, V)) == bits(called(X, s, V))


@pytest.mark.parametrize("argnums", [0, (0,)])
def test_gradients_in_a_tuple_and_not_share_a_path(argnums: Any) -> None:
    p = tg.program(lambda x: x[0] * x[1])
    one, other = tg.grad(p, argnums), tg.grad(p, (0,) if argnums == 0 else 0)
    for _ in range(4):
        one(X), other(X)
        p.compile()
    for _ in range(3):
        assert type(one(X)) is (tuple if argnums == (0,) else np.ndarray)
        assert type(other(X)) is (np.ndarray if argnums == (0,) else tuple)


def test_values_of_several_kinds() -> None:
    def f(x: Any) -> Any:
        return x * 2.0, x[0], x.reshape(2, 2).T * 3.0, 3.0 * x[1]

    p = tg.program(f)
    for _ in range(4):
        found = p(X)
        p.compile()
    for a, b in zip(found, f(X), strict=True):
        assert bits(a) == bits(b)
        assert np.asarray(a).strides == np.asarray(b).strides


def test_values_in_a_dict() -> None:
    p = tg.program(lambda x: {"a": x * 2.0, "b": x[0] + 1.0})
    for _ in range(4):
        found = p(X)
        p.compile()
    assert p._direct["value", None].call is not None
    assert list(found) == ["a", "b"]
    assert bits(found["a"]) == bits(X * 2.0)
    assert bits(found["b"]) == bits(X[0] + 1.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_without_dimensions_keep_their_dtype(dtype: Any) -> None:
    def f(x: Any) -> Any:
        return np.where(x[0] > 0.0, x[0] * x[1], x[1]), x[..., 1], x[:1].reshape(())

    p, x = tg.program(f), X.astype(dtype)
    for _ in range(4):
        found = p(x)
        p.compile()
    assert bits(found) == bits(f(x))


def test_functions_without_results() -> None:
    p = tg.program(lambda x: ())
    for _ in range(4):
        assert p(X) == ()
        p.compile()


def test_a_guard_that_fails_takes_the_other_path() -> None:
    def f(x: Any) -> Any:
        return x[0] * x[1] if x[0] > 0.0 else x[2] * x[2] * x[0]

    found = direct(tg.program(f), X)
    agree(found, f, -X)
    agree(found, f, X)


def test_modes_are_looked_at() -> None:
    def f(x: Any) -> Any:
        return x[0] * x[1]

    found = direct(tg.program(f), X)
    called = 0

    def counted(x: Any) -> Any:
        nonlocal called
        called += 1
        return f(x)

    with tg.no_grad():
        assert found["value"](X) == f(X)
        agree(found, f, X)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        found["value"](np.full(4, 1e300))
    t = tg.tensor(X, requires_grad=True)
    found["value"](t).backward()
    assert t.grad is not None
    inner = tg.grad(lambda x: found["value"](x) * found["value"](X))(X)
    assert bits(inner) == bits(tg.grad(lambda x: f(x) * f(X))(X))


def test_the_default_dtype_is_looked_at() -> None:
    def f(x: Any) -> Any:
        return x[0] * x[1] * tg.tensor(0.1).item()

    program = tg.program(f)
    run = tg.grad(program)
    for _ in range(4):
        run(X)
        program.compile()
    tg.set_default_dtype(np.float32)
    try:
        assert bits(run(X)) == bits(tg.grad(f)(X))
    finally:
        tg.set_default_dtype(np.float64)


def test_a_program_of_a_method_is_not_that_of_its_arguments() -> None:
    class Holder:
        @tg.program
        def f(self, x: Any = None) -> Any:
            return (self * self).sum() * 1.0 if x is None else x[0] * x[1] * x[2]  # type: ignore[operator]

    program: Any = Holder.__dict__["f"]
    direct(program, X)
    product = tg.hvp(Holder().f, X, V)
    assert bits(product) == bits(tg.hvp(lambda x: x[0] * x[1] * x[2], X, V))


def test_checks_go_on() -> None:
    program = tg.program(lambda x: x[0] * x[1])
    found = direct(program, X)
    hidden = [1.0]

    class Hidden:
        def __getattr__(self, name: str) -> float:
            return hidden[0]

    program.check = 1
    assert all(one.call((X, V) if what == "hvp" else (X,)) is None for (what, _), one in program._direct.items())
    agree(found, program.function, X)


def test_threads_get_their_own_results() -> None:
    def f(x: Any) -> Any:
        return (np.sin(x) * x)[0] * x[1]

    found = direct(tg.program(f), X)
    points = [X + 0.1 * k for k in range(4)]
    expected = [{name: bits(run(x)) for name, run in drivers(f).items()} for x in points]
    wrong: list[str] = []

    def work(k: int) -> None:
        for _ in range(300):
            wrong.extend(name for name, run in found.items() if bits(run(points[k])) != expected[k][name])

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong, set(wrong)


def test_products_with_inf_in_matrices_are_left_to_the_steps() -> None:
    A = np.arange(1.0, 17.0).reshape(4, 4)

    def f(x: Any) -> Any:
        return (A @ np.exp(x)).sum()

    program = tg.program(f)
    found = direct(program, X)
    x = np.array([800.0, 0.0, 0.0, 0.0])
    v = np.array([0.0, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(tg.hvp(program, x, v), tg.hvp(f, x, v))
    np.testing.assert_allclose(found["hvp"](X), tg.hvp(f, X, V), rtol=1e-12)


def vector(x: Any, s: Any, y: Any) -> Any:
    """Several results of several arguments."""
    return x * y * s, (x * y)[0] * s


def of_several(f: Any) -> dict[str, Callable[..., Any]]:
    """Drivers of such a function."""
    return {
        "value_and_jacobian": tg.value_and_jacobian(f, (2, 1, 0), mode="forward"),
        "jacobian": tg.jacobian(f, 1, mode="forward"),
        "jvp": lambda *args: tg.jvp(f, args, (V, 0.5, X)),
        "linearize": lambda *args: with_products(tg.linearize(f, *args), (V, 0.5, X)),
        "vjp": lambda *args: with_products(tg.vjp(f, *args), ((V, 2.0),)),
    }


def with_products(both: Any, vectors: tuple[Any, ...]) -> tuple[Any, Any]:
    """The value, and the product with vectors."""
    value, product = both
    return value, product(*vectors)


def test_matrices_and_products_of_several_arguments_and_results() -> None:
    p = tg.program(vector)
    found, called = of_several(p), of_several(vector)
    for _ in range(4):
        for run in found.values():
            run(X, 2.0, V)
        p.compile()
    for k, (x, s, y) in enumerate([(X, 2.0, V), (V, -1.5, X), (X * 0.0, 3.0, -V)]):
        for name, run in found.items():
            assert without_signs_of_zeros(run(x, s, y)) == without_signs_of_zeros(called[name](x, s, y)), (name, k)


@pytest.mark.parametrize("argnums", [0, 1, (1, 0), (0, 1, 2)])
def test_hessians_by_several_arguments(argnums: Any) -> None:
    def f(x: Any, s: Any, y: Any) -> Any:
        return (np.sin(x) * y)[0] * s * s + x[1] * x[2] * y[1]

    p = tg.program(f)
    run, called = tg.hessian(p, argnums), tg.hessian(f, argnums)
    for _ in range(4):
        run(X, 2.0, V)
        p.compile()
    for x, s, y in ((X, 2.0, V), (V, -1.5, X)):
        assert bits(run(x, s, y)) == bits(called(x, s, y))


def products(p: Any) -> tuple[Any, Any]:
    """What gives products with the Jacobian from both sides, at a point that is written over then, as values are."""
    for _ in range(4):
        tg.linearize(p, X)[1](V), tg.vjp(p, X)[1](V)
        p.compile()
    assert {what for (what, _), one in p._direct.items() if one.call is not None} == {"jvp", "vjp"}
    x = X.copy()
    (value, push), (other, pull) = tg.linearize(p, x), tg.vjp(p, x)
    for array in (x, value, other):
        array[:] = 7.0
    return push, pull


def test_products_are_those_of_the_point_that_they_were_asked_for_at() -> None:
    p = tg.program(lambda x: np.sin(x) * x[0])
    push, pull = products(p)
    tg.linearize(p, V)[1](V), tg.vjp(p, V)[1](V)
    matrix = tg.jacobian(p.function)(X)
    np.testing.assert_allclose(push(V), matrix @ V, rtol=1e-13)
    np.testing.assert_allclose(pull(V)[0], V @ matrix, rtol=1e-13)


def test_products_with_vectors_of_other_kinds() -> None:
    p = tg.program(lambda x: np.sin(x) * x[0])
    push, pull = products(p)
    matrix = tg.jacobian(p.function)(X)
    for v in (V.astype(np.float32), np.stack([V, V], 1)[:, 0], np.array([1, 2, 3, 4])):
        np.testing.assert_allclose(push(v), matrix @ v, rtol=1e-12)
        np.testing.assert_allclose(pull(v)[0], v @ matrix, rtol=1e-12)
    with pytest.raises(TypeError):
        push(V, V)
    with pytest.raises(ValueError, match="shape"):
        pull(V[:2])
    v = tg.tensor(V, requires_grad=True)
    push(v).sum().backward()
    np.testing.assert_allclose(v.grad.numpy(), matrix.sum(0), rtol=1e-12)


def test_products_outlive_changes_of_what_the_function_sees() -> None:
    factor = 2.0
    p = tg.program(lambda x: np.sin(x) * x[0] * factor)
    push, pull = products(p)
    matrix = tg.jacobian(p.function)(X)
    factor = 3.0
    np.testing.assert_allclose(push(V), matrix @ V, rtol=1e-13)
    np.testing.assert_allclose(pull(V)[0], V @ matrix, rtol=1e-13)
    np.testing.assert_allclose(push(V.astype(np.float32)), matrix @ V.astype(np.float32), rtol=1e-12)


def test_matrices_are_not_written_over_by_the_next_call() -> None:
    p = tg.program(lambda x: np.sin(x) * x[0])
    run = tg.jacobian(p)
    for _ in range(4):
        run(X)
        p.compile()
    first = run(X)
    kept = first.copy()
    run(V)
    assert bits(first) == bits(kept)


@pytest.mark.parametrize("count", [80, 77])
def test_large_matrices_are_written_where_they_are_returned(count: int) -> None:
    rng = np.random.default_rng(0)
    x, other, v = rng.normal(size=(3, count))
    matrix = rng.normal(size=(5000, 3))

    def curved(x: Any, s: Any) -> Any:
        return (np.sin(x[1:] * x[:-1]) * s).sum()

    def f(x: Any) -> Any:
        return np.sin(x) * x[::-1], x[0] * x

    cases = [
        (curved, lambda f, x: tg.hessian(f)(x, 2.0), "hessian"),
        (curved, lambda f, x: tg.hessian(f, (1, 0))(x, 2.0), "hessian"),
        (f, lambda f, x: tg.value_and_jacobian(f, mode="forward")(x), "jacobian"),
        (lambda x: np.sin(x) * x[0], lambda f, x: tg.jacobian(f, mode="forward")(x), "jacobian"),
        (lambda x: (x[:3] * matrix, x[0] * matrix[:, 0]), lambda f, x: tg.jvp(f, (x,), (v,)), "value_jvp"),
    ]
    for function, run, what in cases:
        p = tg.program(function)
        for _ in range(4):
            run(p, x)
            p.compile()
        assert [one.call is not None for (kind, _), one in p._direct.items() if kind == what] == [True]
        first = run(p, x)
        kept = bits(first)
        assert without_signs_of_zeros(run(p, other)) == without_signs_of_zeros(run(function, other))
        assert bits(first) == kept


@pytest.mark.parametrize("argnums", [(0, 1), (1, 0)])
def test_values_of_a_path_leave_its_gradients_in_a_tuple(argnums: tuple[int, int]) -> None:
    p = tg.program(lambda x, y: (x * x * y).sum())
    x, y = np.arange(3.0), np.ones(3)
    both = tg.value_and_grad(p, argnums)
    both(x, y)
    for _ in range(5):
        p(x, y)
        p.compile()
    assert p._direct["value", None].call is not None
    found, expected = both(x, y)[1], tg.grad(p.function, argnums)(x, y)
    assert len(found) == 2
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
