"""What changes between two calls of a program does not change what belongs to the first, and is looked at by the second."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

X, W = np.linspace(0.5, 1.5, 4), np.cos(np.arange(4.0))


@dataclasses.dataclass
class Data:
    a: Any
    b: Any = 2.0


def ready(p: Any, *calls: Callable[[], Any]) -> None:
    """Call a program until it has code, by which it does such calls at once."""
    for _ in range(5):
        for call in calls:
            call()
        p.compile()
    assert any(one.call is not None for one in p._direct.values())


def plain(value: Any) -> np.ndarray:
    (value,) = value if isinstance(value, tuple) else (value,)
    return np.asarray(value.detach() if isinstance(value, tg.Tensor) else value)


@pytest.mark.parametrize("driver", [tg.linearize, tg.vjp], ids=["linearize", "vjp"])
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "by code"])
def test_products_that_come_later_are_of_what_the_function_saw(driver: Callable[..., Any], at_once: bool) -> None:
    class Model:
        scale = 2.0

    p = tg.program(lambda x: x * Model.scale)
    ready(p, lambda: driver(p, X)[1](W))
    if not at_once:
        for direct in p._direct.values():
            direct.call = None
    zero = np.zeros(4)  # where the value does not tell
    _, product = driver(p, zero)
    Model.scale = 5.0
    v = tg.tensor(W, requires_grad=True)
    found = product(v)
    (found[0] if isinstance(found, tuple) else found).sum().backward()
    np.testing.assert_array_equal(plain(found), 2.0 * W)
    np.testing.assert_array_equal(plain(v.grad), np.full(4, 2.0))


def test_products_from_the_left_have_the_dtype_of_arrays_without_dimensions() -> None:
    def f(x: Any) -> Any:
        return x * x

    p = tg.program(f)
    x = np.array(1.5, np.float32)
    for _ in range(5):
        (found,) = tg.vjp(p, x)[1](1.1)
        (expected,) = tg.vjp(f, x)[1](1.1)
        assert found.dtype == expected.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        p.compile()


def first_two(x: Any, scale: float) -> Any:
    return x[0] * x[1] * scale


def of_attributes_of_partials() -> tuple[Any, Callable[[], Any]]:
    g: Any = functools.partial(first_two, scale=2.0)
    g.power = 2.0
    return lambda x: g(x) * g.power, lambda: setattr(g, "power", 3.0)


def of_states_of_partials() -> tuple[Any, Callable[[], Any]]:
    g: Any = functools.partial(first_two, scale=2.0)
    return lambda x: g(x), lambda: g.__setstate__((lambda x, scale: x[0] * scale, (), g.keywords, None))


def of_classes_of_partials() -> tuple[Any, Callable[[], Any]]:
    class Scaled(functools.partial):  # type: ignore[type-arg]
        power = 2.0

    g = Scaled(first_two, scale=2.0)
    return lambda x: g(x) * g.power, lambda: setattr(Scaled, "power", 3.0)


def of_classes_without_a_module() -> tuple[Any, Callable[[], Any]]:
    space: dict[str, Any] = {}
    exec("class Settings:\n    scale = 2.0", space)
    kind = space["Settings"]
    return lambda x: x[0] * x[1] * kind.scale, lambda: setattr(kind, "scale", 3.0)


def of_names_that_modules_compute() -> tuple[Any, Callable[[], Any]]:
    module: Any = types.ModuleType("settings_of_a_test")
    module.__file__ = __file__
    table = {"scale": 2.0}
    module.__getattr__ = lambda name: table[name]
    space = {"settings": module}
    exec("def f(x):\n    return x[0] * x[1] * settings.scale", space)
    return space["f"], lambda: table.update(scale=3.0)


STORIES = [
    of_attributes_of_partials,
    of_states_of_partials,
    of_classes_of_partials,
    of_classes_without_a_module,
    of_names_that_modules_compute,
]


@pytest.mark.parametrize("story", STORIES)
def test_what_holds_functions_is_looked_at(story: Callable[[], tuple[Any, Callable[[], Any]]]) -> None:
    f, change = story()
    p = tg.program(f)
    for _ in range(5):
        p(X), tg.grad(p)(X)
        p.compile()
    before = f(X)
    change()
    assert p(X) == f(X) != before
    np.testing.assert_allclose(tg.grad(p)(X), tg.grad(f)(X), rtol=1e-14)


def test_gradients_have_no_attributes_that_others_were_given() -> None:
    p = tg.program(lambda d: (d.a * d.a).sum() * d.b)
    first: Any = Data(X, 1.5)
    ready(p, lambda: tg.grad(p)(first))
    first.name = "first"
    assert vars(tg.grad(p)(Data(W, 2.0))).keys() == {"a", "b"}


def test_a_field_that_was_deleted_is_not_the_one_in_the_class() -> None:
    def f(d: Any) -> Any:
        return d.a[0] * d.a[1] * d.b * getattr(d, "scale", 2.0)

    p = tg.program(f)
    ready(p, lambda: p(Data(X)))
    d: Any = Data(X)
    del d.b
    d.scale = 7.0
    assert p(d) == f(d)


def test_the_order_of_fields_in_an_instance_is_looked_at() -> None:
    def f(d: Any) -> Any:
        return next(iter(vars(d).values())) * d.a * d.b

    p = tg.program(f)
    ready(p, lambda: p(Data(2.0, 3.0)))
    d = Data(2.0, 3.0)
    del d.a
    d.a = 2.0
    assert p(d) == f(d) == 18.0


@pytest.mark.parametrize("argnums", [True, 1.0])
def test_what_is_no_argnums_is_refused_by_programs_too(argnums: Any) -> None:
    p = tg.program(lambda x, y: (x * y).sum())
    for _ in range(5):
        tg.grad(p, 1)(X, W)
        p.compile()
    with pytest.raises(TypeError, match="argnums"):
        tg.grad(p, argnums)(X, W)


@pytest.mark.parametrize("empty", [None, [], {"a": ()}], ids=repr)
def test_programs_are_differentiated_by_containers_of_nothing(empty: Any) -> None:
    def f(x: Any, d: Any) -> Any:
        return (x * x).sum()

    p = tg.program(f)
    for _ in range(4):
        assert tg.hessian(p, 1)(X, empty) == tg.hessian(f, 1)(X, empty)
        assert tg.value_and_jacobian(p, 1)(X, empty) == tg.value_and_jacobian(f, 1)(X, empty)
        p.compile()


def test_results_have_no_attributes_that_others_were_given() -> None:
    p = tg.program(lambda x: Data(x * x, x[0] * 2.0))
    first = p(X)
    first.name = "first"
    for _ in range(5):
        assert vars(p(X)).keys() == {"a", "b"}
        p.compile()
    assert p._direct["value", None].call is not None


@pytest.mark.parametrize("share", [np.shares_memory, np.may_share_memory])
def test_functions_that_ask_whether_arguments_share_memory_are_called(share: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        return (x * y).sum() * (2.0 if share(x, y) else 1.0)

    p = tg.program(f)
    for _ in range(4):
        assert p(X, W) == f(X, W)
        p.compile()
    memory = np.linspace(0.5, 1.5, 8)
    assert p(memory[:4], memory[2:6]) == f(memory[:4], memory[2:6])


@dataclasses.dataclass
class Body:
    place: float


SHARED: dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = {
    "lists": (lambda x, a, b: x[0] * a[0] * (2.0 if a is b else 3.0), (X, [1.0], [1.0]), (X, *[[1.0]] * 2)),
    "dicts": (lambda x, a, b: x[0] * a["k"] * (2.0 if a is b else 3.0), (X, {"k": 1.0}, {"k": 1.0}), (X, *[{"k": 1.0}] * 2)),
    "inner lists": (lambda x, a: x[0] * a[0][0] * (2.0 if a[0] is a[1] else 3.0), (X, [[1.0], [1.0]]), (X, [[1.0]] * 2)),
    "dataclasses": (lambda a, b: a.place * (2.0 if a is b else 3.0), (Body(1.0), Body(2.0)), tuple([Body(1.0)] * 2)),
}


@pytest.mark.parametrize("name", SHARED)
def test_which_containers_are_one_is_looked_at(name: str) -> None:
    f, apart, one = SHARED[name]
    if name == "dataclasses":  # of which the second is an object, the same one in both
        apart = (apart[0], one[1])
    p = tg.program(f)
    drivers, own = [p], [f]
    if name != "dataclasses":
        drivers, own = [p, tg.grad(p)], [f, tg.grad(f)]
    for _ in range(5):
        for run in drivers:
            run(*apart)
        p.compile()
    assert p._direct["value", None].call is not None
    for args in (one, apart, one):
        for run, called in zip(drivers, own, strict=True):
            np.testing.assert_array_equal(run(*args), called(*args))


def test_calls_with_a_container_twice_are_run() -> None:
    rows = [[1.0, 2.0]] * 2

    def f(x: Any, a: Any, g: Any, h: Any) -> Any:
        return g(x[0] * a[0][0]) * h(x[1] * a[1][1])

    p = tg.program(f)
    for _ in range(5):
        assert p(X, rows, np.sin, np.sin) == f(X, rows, np.sin, np.sin)
        assert p(X, [[1.0], [1.0, 2.0]], np.sin, np.sin) == f(X, rows, np.sin, np.sin)
        p.compile()
    assert len(p.traces) == 2
    assert p._direct["value", None].call is not None
