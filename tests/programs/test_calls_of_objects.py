"""Calls with objects, and with containers of arrays, are done at once by machine code, and look at all that there is in them."""

from __future__ import annotations

import abc
import collections
import dataclasses
import enum
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.drivers.containers import flatten

X, W = np.linspace(0.5, 1.5, 4), np.cos(np.arange(4.0))
Change = Callable[[], Any]
Story = Callable[[], tuple[Callable[[Any], Any], Change]]


def bits(value: Any) -> Any:
    """Types, shapes and bytes of all that a container holds."""
    found: list[Any] = []
    structure = flatten(value, found)
    return _types(structure), [(type(x), np.shape(x), np.asarray(x).dtype, (np.asarray(x) + 0.0).tobytes()) for x in found]


def _types(structure: Any) -> Any:
    return None if structure is None else (type(structure.like), structure.keys, [_types(child) for child in structure.children])


class Model:
    """A function with numbers and arrays of its own."""

    power = 2.0

    def __init__(self) -> None:
        self.w, self.scale, self.flag = W.copy(), 2.0, True
        self.parts = [1.5, W + 1.0]

    def loss(self, x: Any) -> Any:
        y = self.w * x * self.scale * self.power
        return self.factor() * (y * self.parts[1])[0] * self.parts[0] + (y[1] * y[2] if self.flag else y[3])

    def factor(self) -> float:
        return 3.0


class Slotted:
    """One whose attributes are slots."""

    __slots__ = ("scale", "w")

    def __init__(self) -> None:
        self.w, self.scale = W.copy(), 2.0

    def loss(self, x: Any) -> Any:
        y = self.w * x * self.scale
        return y[0] * y[1]


class Shape(abc.ABC):
    """An abstract class."""

    @abc.abstractmethod
    def area(self) -> float: ...


class Square(Shape):
    side = 2.0

    def area(self) -> float:
        return self.side

    @property
    def double(self) -> float:
        return 2.0 * self.side

    @staticmethod
    def three() -> float:
        return 3.0


def fresh(kind: type) -> Any:
    """An object of a class that no other test changes."""
    return type(kind.__name__, (kind,), dict(vars(kind)) if "__slots__" not in vars(kind) else {"__slots__": ()})()


def of_model(change: Callable[[Any], Any], kind: type = Model) -> Story:
    """A change of an object that a function sees."""

    def story() -> tuple[Any, Change]:
        m = fresh(kind)
        return lambda x: m.loss(x), lambda: change(m)

    return story


def replaced(m: Any) -> None:
    m.__dict__ = {**m.__dict__, "scale": 5.0}


def of_another_class(m: Any) -> None:
    class Other(Model):
        def factor(self) -> float:
            return 7.0

    m.__class__ = Other


def with_other_bases(m: Any) -> None:
    class Base:
        def factor(self) -> float:
            return 9.0

    del type(m).factor
    type(m).__bases__ = (Base, *type(m).__bases__)


def of_square(change: Callable[[Any], Any]) -> Story:
    def story() -> tuple[Any, Change]:
        s = fresh(Square)
        return lambda x: x[0] * x[1] * s.area() * s.double * s.three(), lambda: change(s)

    return story


def of_bases() -> tuple[Any, Change]:
    class Base:
        scale = 2.0

    class Heir(Base):
        pass

    heir = Heir()
    return lambda x: x[0] * x[1] * heir.scale, lambda: setattr(Base, "scale", 3.0)


def of_attributes_of_functions() -> tuple[Any, Change]:
    def g(x: Any, *, power: float = 2.0) -> Any:
        return x[0] * x[1] * g.scale * power  # type: ignore[attr-defined]

    g.scale = 2.0  # type: ignore[attr-defined]
    return lambda x: g(x), lambda: setattr(g, "scale", 3.0)


def of_named_defaults() -> tuple[Any, Change]:
    def g(x: Any, *, power: float = 2.0) -> Any:
        return x[0] * x[1] * power

    return lambda x: g(x), lambda: g.__kwdefaults__.update(power=3.0)


def of_partials() -> tuple[Any, Change]:
    def f(x: Any, scale: float) -> Any:
        return x[0] * x[1] * scale

    g = functools.partial(f, scale=2.0)
    return lambda x: g(x), lambda: g.keywords.update(scale=3.0)


def of_bound_methods() -> tuple[Any, Change]:
    m = fresh(Model)
    return m.loss, lambda: setattr(m, "scale", 3.0)


def of_enumerations() -> tuple[Any, Change]:
    class Kind(enum.Enum):
        ONE = 1

    member: Any = Kind.ONE
    member.scale = 2.0
    return lambda x: x[0] * x[1] * member.scale, lambda: setattr(member, "scale", 3.0)


def of_programs() -> tuple[Any, Change]:
    factor = [2.0]
    p = tg.program(lambda x: x[0] * x[1] * factor[0])
    return lambda x: p(x) * x[2], lambda: factor.insert(0, 3.0)


def of_attributes_of_programs() -> tuple[Any, Change]:
    p = tg.program(lambda x: x[0] * x[1])
    return lambda x: p(x) * getattr(p, "scale", 2.0), lambda: setattr(p, "scale", 3.0)


STORIES: dict[str, Story] = {
    "number": of_model(lambda m: setattr(m, "scale", 3.0)),
    "bool": of_model(lambda m: setattr(m, "flag", False)),
    "number of the instance": of_model(lambda m: setattr(m, "power", 3.0)),
    "number of the class": of_model(lambda m: setattr(type(m), "power", 3.0)),
    "number of a base": of_bases,
    "array": of_model(lambda m: setattr(m, "w", W + 2.0)),
    "contents of an array": of_model(lambda m: m.w.__setitem__(0, 7.0)),
    "list": of_model(lambda m: m.parts.__setitem__(0, 9.0)),
    "array in a list": of_model(lambda m: m.parts[1].__setitem__(0, 9.0)),
    "method": of_model(lambda m: setattr(type(m), "factor", lambda self: 5.0)),
    "method of the instance": of_model(lambda m: setattr(m, "factor", lambda: 5.0)),
    "code of a method": of_model(lambda m: setattr(type(m).factor, "__code__", (lambda self: 5.0).__code__)),
    "attributes": of_model(replaced),
    "class": of_model(of_another_class),
    "bases": of_model(with_other_bases),
    "missing attribute": of_model(lambda m: delattr(m, "scale"), type("Whole", (Model,), {"scale": 4.0})),
    "slot": of_model(lambda m: setattr(m, "scale", 3.0), Slotted),
    "array in a slot": of_model(lambda m: m.w.__setitem__(0, 7.0), Slotted),
    "number of an abstract class": of_square(lambda s: setattr(type(s), "side", 3.0)),
    "property": of_square(lambda s: setattr(type(s), "double", property(lambda self: 9.0))),
    "static method": of_square(lambda s: setattr(type(s), "three", staticmethod(lambda: 9.0))),
    "attribute of a function": of_attributes_of_functions,
    "named default": of_named_defaults,
    "partial": of_partials,
    "bound method": of_bound_methods,
    "enumeration": of_enumerations,
    "program": of_programs,
    "attribute of a program": of_attributes_of_programs,
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_objects_are_looked_at(story: Story) -> None:
    f, change = story()
    p = tg.program(f)
    drivers, own = [p, tg.grad(p), tg.hessian(p)], [f, tg.grad(f), tg.hessian(f)]
    for _ in range(5):
        for run in drivers:
            run(X)
        p.compile()
    assert all(one.call is not None for one in p._direct.values())
    before = f(X)
    change()
    assert f(X) != before
    for run, called in zip(drivers, own, strict=True):
        np.testing.assert_allclose(run(X), called(X), rtol=1e-13)


@pytest.mark.parametrize("change", [
    lambda m: setattr(m, "scale", 3.0), lambda m: m.w.__setitem__(0, 5.0), lambda m: setattr(type(m), "power", 3.0), lambda m: None,
], ids=["number", "contents", "class", "nothing"])  # fmt: skip
def test_programs_of_methods_look_at_their_object(change: Callable[[Any], Any]) -> None:
    class Fitted(Model):
        program = tg.program(Model.loss)

    m, other = Fitted(), Fitted()
    drivers = [m.program, tg.grad(m.program), tg.hessian(m.program), lambda x: tg.jvp(m.program, (x,), (W,))]
    for _ in range(5):
        for run in drivers:
            run(X)
        Fitted.program.compile()
    assert sum(one.call is not None for one in Fitted.program._direct.values()) == 4
    change(m)
    other.scale = 7.0
    for owner in (m, other, m):
        called = [owner.loss(X), tg.grad(owner.loss)(X), tg.hessian(owner.loss)(X), tg.jvp(owner.loss, (X,), (W,))]
        own = [owner.program, tg.grad(owner.program), tg.hessian(owner.program), lambda x, o=owner: tg.jvp(o.program, (x,), (W,))]
        for run, expected in zip(own if owner is other else drivers, called, strict=True):
            for a, b in zip(np.atleast_1d(run(X)), np.atleast_1d(expected), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-13)


@dataclasses.dataclass
class Data:
    a: Any
    b: Any = 2.0

    @property
    def both(self) -> Any:
        return self.a * self.b


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    a: Any
    b: Any = 2.0


class Pair(NamedTuple):
    a: Any
    b: Any = 2.0


Plain = collections.namedtuple("Plain", "a b")


def of_items(d: Any, x: Any, n: int = 2) -> Any:
    a, b = (d[k] for k in (d if isinstance(d, dict) else range(len(d))))
    return (a * x)[0] * b * b + a[1] * a[2] * n


def of_fields(d: Any, x: Any, n: int = 2) -> Any:
    return (d.a * x)[0] * d.b * d.b + d.a[1] * d.a[2] * n


def of_nested(d: Any, x: Any, n: int = 2) -> Any:
    (a, b), c = d["w"], d["z"]["c"]
    return (a * x)[0] * b * c + a[1] * a[2] * n


CONTAINERS: dict[str, tuple[Callable[..., Any], Callable[[Any, float], Any]]] = {
    "tuple": (of_items, lambda a, b: (a, b)),
    "list": (of_items, lambda a, b: [a, b]),
    "dict": (of_items, lambda a, b: {"a": a, "b": b}),
    "dataclass": (of_fields, lambda a, b: Data(a, b)),
    "frozen dataclass": (of_fields, lambda a, b: Frozen(a, b)),
    "named tuple": (of_fields, lambda a, b: Pair(a, b)),
    "plain named tuple": (of_fields, lambda a, b: Plain(a, b)),
    "nested": (of_nested, lambda a, b: {"w": [a, b], "z": {"c": b + 1.0, "none": None}}),
}


def drivers_of(f: Any, v: Any) -> dict[str, Callable[..., Any]]:
    """Drivers by a container, by the array beside it, and by both."""
    return {
        "value": f,
        "value_and_grad": tg.value_and_grad(f),
        "both": tg.value_and_grad(f, (0, 1)),
        "array": tg.value_and_grad(f, 1),
        "hessian": tg.hessian(f),
        "jvp": lambda d, x: tg.jvp(f, (d, x), (v, W)),
        "linearize": lambda d, x: with_product(tg.linearize(f, d, x), v, W),
        "vjp": lambda d, x: with_product(tg.vjp(f, d, x), 1.5),
    }


def with_product(both: Any, *vectors: Any) -> tuple[Any, Any]:
    """The value, and the product with vectors."""
    return both[0], both[1](*vectors)


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_are_taken_apart_by_code(name: str) -> None:
    f, make = CONTAINERS[name]
    p = tg.program(f)
    v = make(np.sin(X), 0.3)
    found, called = drivers_of(p, v), drivers_of(f, v)
    if f is of_fields:  # which is an object where nothing is differentiated by it
        del found["array"]
    for _ in range(5):
        for run in found.values():
            run(make(X, 1.5), W)
        p.compile()
    assert {what for (what, _), one in p._direct.items() if one.call is not None} >= {
        "value",
        "",
        "hessian",
        "value_jvp",
        "jvp",
        "vjp",
    }
    assert len(p.traces) == (2 if f is of_fields else 3)  # by the container, by both, and by the array
    for a, b, x in ((X, 1.5, W), (W, -2.0, X), (X * 0.0, 0.5, -W)):
        for what, run in found.items():
            assert bits(run(make(a, b), x)) == bits(called[what](make(a, b), x)), what


def test_products_with_the_hessian_by_containers() -> None:
    f, make = CONTAINERS["dict"]
    p = tg.program(lambda d: f(d, W))
    for _ in range(5):
        tg.hvp(p, make(X, 1.5), make(W, 0.5))
        p.compile()
    assert p._direct["hvp", 0].call is not None
    d, v = make(W, -2.0), make(np.sin(X), 0.3)
    assert bits(tg.hvp(p, d, v)) == bits(tg.hvp(p.function, d, v))


ARGUMENTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = {
    "order of names": (lambda d: d["a"][0] * (2.0 if next(iter(d)) == "a" else 3.0), ({"a": X, "b": W},), ({"b": W, "a": X},)),
    "other names": (lambda d: d["a"][0] * (2.0 if "b" in d else 3.0), ({"a": X, "b": W},), ({"a": X, "c": W},)),
    "another name": (lambda d: d["a"][0] * len(d), ({"a": X, "b": W},), ({"a": X, "b": W, "c": 1.0},)),
    "longer list": (lambda d: d[0][0] * len(d), ([X, W],), ([X, W, 1.0],)),
    "tuple for a list": (lambda d: d[0][0] * (2.0 if type(d) is list else 3.0), ([X, W],), ((X, W),)),
    "another class": (lambda d: d.a[0] * (2.0 if type(d) is Data else 3.0), (Data(X, W),), (Frozen(X, W),)),
    "integer": (lambda x, n: (x**n)[0], (X, 2), (X, 3)),
    "bool for an integer": (lambda x, n: x[0] * (2.0 if n is True else 3.0), (X, 1), (X, True)),
    "bool": (lambda x, n: x[0] * (2.0 if n else 3.0), (X, False), (X, True)),
    "text": (lambda x, n: x[0] * len(n), (X, "a"), (X, "ab")),
    "none": (lambda x, n: x[0] * (2.0 if n is None else 3.0), (X, None), (X, 0)),
    "integer in a dict": (lambda x, d: x[0] * d["n"], (X, {"n": 2}), (X, {"n": 3})),
    "function": (lambda x, g: g(x[0]), (X, np.sin), (X, np.cos)),
    "one array twice": (lambda d: d[0][0] * (2.0 if d[0] is d[1] else 3.0), ([X, W],), ([X, X],)),
    "shape": (lambda d: d["a"].sum() * 2.0, ({"a": X},), ({"a": X[:3].copy()},)),
    "dtype": (lambda d: d["a"].sum() * 2.0, ({"a": X},), ({"a": X.astype(np.float32)},)),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_that_are_not_alike_are_other_calls(name: str) -> None:
    f, args, others = ARGUMENTS[name]
    p = tg.program(f)
    for _ in range(5):
        p(*args)
        p.compile()
    assert p._direct["value", None].call is not None
    for given in (others, args):
        np.testing.assert_allclose(p(*given), f(*given), rtol=1e-6 if name == "dtype" else 1e-14)


def test_an_attribute_besides_its_fields_is_looked_at() -> None:
    p = tg.program(lambda d: d.a[0] * getattr(d, "scale", 2.0))
    d = Data(X, W)
    for _ in range(5):
        p(d)
        p.compile()
    assert p._direct["value", None].call is not None
    d.scale = 3.0  # type: ignore[attr-defined]
    assert p(d) == X[0] * 3.0


def test_what_the_class_of_a_container_computes_is_looked_at() -> None:
    class Own(Data):
        pass

    kind = dataclasses.dataclass(Own)
    p = tg.program(lambda d: (d.both * d.a)[0])
    for _ in range(5):
        p(kind(X, W))
        p.compile()
    assert p._direct["value", None].call is not None
    kind.both = property(lambda d: d.a)  # type: ignore[assignment, method-assign]
    assert p(kind(X, W)) == X[0] * X[0]


def test_contents_of_objects_among_arguments_are_looked_at() -> None:
    p = tg.program(lambda x, m: m.loss(x))
    m = Model()
    for _ in range(5):
        p(X, m)
        p.compile()
    assert p._direct["value", None].call is not None
    m.parts[1][0] = 11.0
    np.testing.assert_allclose(p(X, m), m.loss(X), rtol=1e-14)


def test_a_function_that_writes_into_the_fields_of_its_argument_is_called() -> None:
    def f(d: Any) -> Any:
        d.b = d.b + 1.0
        return d.a[0] * d.b

    p, own, other = tg.program(f), Data(X, 2.0), Data(X, 2.0)
    for _ in range(4):
        assert p(own) == f(other)
        assert own.b == other.b


def test_a_changed_container_does_not_change_what_calls_are_taken_for() -> None:
    p = tg.program(lambda d: d["a"][0] * d["b"][1] * (3.0 if "c" in d else 2.0))
    d: dict[str, Any] = {"a": X, "b": W}
    for _ in range(3):
        tg.grad(p)(d)
        p.compile()
    d["c"] = 1
    for _ in range(3):
        tg.hvp(p, {"a": X, "b": W}, {"a": X, "b": W})
        p.compile()
    with pytest.raises(TypeError):
        tg.grad(p)(d)
    assert bits(tg.grad(p)({"a": X, "b": W})) == bits(tg.grad(p.function)({"a": X, "b": W}))


def test_large_arrays_of_the_closure_beside_containers() -> None:
    data = np.linspace(0.0, 1.0, 4400).reshape(1100, 4)

    def f(d: Any) -> Any:
        z = data @ d["a"] * d["b"]
        return (z * z).sum()

    p, d, v = tg.program(f), {"a": X, "b": 1.5}, {"a": W, "b": 0.5}
    drivers = {
        "gradient": lambda f: tg.grad(f)(d),
        "hvp": lambda f: tg.hvp(f, d, v),
        "jvp": lambda f: tg.jvp(f, (d,), (v,)),
        "vjp": lambda f: with_product(tg.vjp(f, d), 1.5),
    }
    for _ in range(5):
        for run in drivers.values():
            run(p)
        p.compile()
    assert all(p._direct[where].call is not None for where in [("", 0), ("hvp", 0), ("value_jvp", range(1)), ("vjp", range(1))])
    for change in (data, data * 2.0, data[:, ::-1].copy()):
        data = change
        for name, run in drivers.items():
            for a, b in zip(flat(run(p)), flat(run(f)), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=name)


def flat(value: Any) -> list[Any]:
    """What a container holds."""
    found: list[Any] = []
    flatten(value, found)
    return found


def test_settings_are_objects() -> None:
    """Their numbers say how long arrays are."""
    p = tg.program(lambda x, d: (x[: int(d.a)] * np.arange(0.0, d.a, d.b)).sum())
    for settings in (Data(2.0, 1.0), Data(3.0, 1.0), Pair(2.0, 1.0)):
        for _ in range(4):
            tg.grad(p)(X, settings)
            p.compile()
        assert p._direct["", 0].call is not None
        np.testing.assert_array_equal(tg.grad(p)(X, settings), tg.grad(p.function)(X, settings))


def test_dataclasses_are_run_again() -> None:
    p = tg.program(of_fields)
    tg.grad(p)(Data(X, 2.0), W)
    called = p.function

    def never(*args: Any) -> Any:
        raise AssertionError("the function was called")

    p.function = never
    assert bits(tg.grad(p)(Data(W, 1.0), X)) == bits(tg.grad(called)(Data(W, 1.0), X))


def test_a_number_beside_float32_is_looked_at_by_direct_calls() -> None:
    p, x = tg.program(lambda x, s: (x * s)[0] * x[1] * x[2]), X.astype(np.float32)
    run = tg.value_and_grad(p)
    for _ in range(6):
        run(x, 0.1)
        p.compile()
    assert p._direct["", 0].call is not None
    for s in (0.1, 0.3, 0.0, -0.0, np.float64(0.1), 0.1):
        assert bits(run(x, s)) == bits(tg.value_and_grad(p.function)(x, s))


def test_thousands_of_objects_and_of_arguments_are_looked_at_by_loops() -> None:
    models = [Model() for _ in range(400)]
    p = tg.program(lambda x: x[0] * x[1] * models[7].scale)
    q = tg.program(lambda arrays: arrays[0][0] * arrays[3][1])
    arrays = [X + k for k in range(1200)]
    for _ in range(4):
        p(X), q(arrays)
        p.compile(), q.compile()
    assert p._direct["value", None].call is None
    assert q._direct["value", None].call is None
    models[7].scale = 5.0
    arrays[3] = X
    assert p(X) == p.function(X)
    assert q(arrays) == q.function(arrays)
