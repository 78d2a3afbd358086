"""What a function sees besides its arguments: where that changes between two calls, the program's value is the function's own."""

from __future__ import annotations

import collections
import contextlib
import datetime
import enum
import functools
import os
import sys
import sysconfig
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.programs.snapshot_contents import snapshot_of

X = np.array([0.5, -1.2, 2.0])
WITH_ZERO = np.array([0.5, 0.0, 2.0])
Change = Callable[[], Any]
Story = Callable[[], tuple[Callable[[Any], Any], Change]]


def attributes_of_the_function() -> tuple[Any, Change]:
    def f(x: Any) -> Any:
        return x.sum() * getattr(f, "scale", 1.0)

    return f, lambda: setattr(f, "scale", 3.0)


def names_of_attributes() -> tuple[Any, Change]:
    o = types.SimpleNamespace(scale=2.0)

    def change() -> None:
        del o.scale
        o.shift = 2.0

    return lambda x: (x * getattr(o, "scale", 1.0) + getattr(o, "shift", 0.0)).sum(), change


def order_of_attributes() -> tuple[Any, Change]:
    o = types.SimpleNamespace(a=1.0, b=2.0)

    def change() -> None:
        vars(o).clear()
        vars(o).update(b=1.0, a=2.0)

    return lambda x: (x * o.a + o.b).sum(), change


def names_of_globals() -> tuple[Any, Change]:
    space: dict[str, Any] = {"a": 2.0}
    exec("def f(x):\n    try:\n        return (x * a).sum()\n    except NameError:\n        return (x + b).sum()", space)

    def change() -> None:
        space["b"] = space.pop("a")

    return space["f"], change


def names_of_defaults() -> tuple[Any, Change]:
    def f(x: Any, *, s: float = 1.0, t: float = 2.0) -> Any:
        return (s * x + t).sum()

    def change() -> None:
        f.__kwdefaults__.clear()
        f.__kwdefaults__.update(t=1.0, s=2.0)

    return f, change


def arrays_among_defaults() -> tuple[Any, Change]:
    scale = np.array([2.0, 3.0, 4.0])

    def f(x: Any, scale: Any = scale, np: Any = np) -> Any:
        return np.exp(x * scale[0]).sum()

    def change() -> None:
        scale[0] = 0.5

    return f, change


def lists_among_defaults() -> tuple[Any, Change]:
    def f(x: Any, scale: Any = [2.0]) -> Any:  # noqa: B006
        return (x * scale[0]).sum()

    return f, lambda: f.__defaults__[0].__setitem__(0, 3.0)  # type: ignore[index]


def functions_among_defaults() -> tuple[Any, Change]:
    held = np.array([2.0])

    def f(x: Any, g: Any = lambda x: x * held) -> Any:
        return g(x).sum()

    return f, lambda: held.__setitem__(0, 3.0)


def other_defaults() -> tuple[Any, Change]:
    def f(x: Any, scale: Any = np.array([2.0])) -> Any:  # noqa: B008
        return (x * scale).sum()

    return f, lambda: setattr(f, "__defaults__", (np.array([3.0]),))


def deep_containers() -> tuple[Any, Change]:
    c = {"a": {"b": {"c": {"d": {"e": 2.0}}}}}
    return lambda x: (x * c["a"]["b"]["c"]["d"]["e"]).sum(), lambda: c["a"]["b"]["c"]["d"].update(e=3.0)


def metaclasses() -> tuple[Any, Change]:
    class Meta(type):
        scale = 2.0

    class Scaled(metaclass=Meta):
        pass

    return lambda x: (x * Scaled.scale).sum(), lambda: setattr(Meta, "scale", 3.0)


class Slotted:
    __slots__ = ("__scale",)

    def scale(self, value: float | None = None) -> float:
        if value is not None:
            self.__scale = value
        return self.__scale


def slots_with_mangled_names() -> tuple[Any, Change]:
    o = Slotted()
    o.scale(2.0)
    return lambda x: (x * o.scale()).sum(), lambda: o.scale(3.0)


def functions_of_missing_items() -> tuple[Any, Change]:
    scale = [2.0]
    d: Any = collections.defaultdict(lambda: scale[0])
    return lambda x: (x * d.default_factory()).sum(), lambda: scale.append(scale.pop() + 1.0)


def arrays_of_objects() -> tuple[Any, Change]:
    w = np.empty(1, object)
    w[0] = [2.0]
    return lambda x: (x * w[0][0]).sum(), lambda: w[0].insert(0, 3.0)


def records() -> tuple[Any, Change]:
    record: Any = np.ones(1, [("a", float)])[0]
    return lambda x: (x * float(record["a"])).sum(), lambda: record.__setitem__("a", 3.0)


def members_of_enumerations() -> tuple[Any, Change]:
    class Kind(enum.Enum):
        ONE = 1

    member: Any = Kind.ONE
    member.scale = 2.0
    return lambda x: (x * member.scale).sum(), lambda: setattr(member, "scale", 3.0)


def slices() -> tuple[Any, Change]:
    part = slice([2.0], None)
    return lambda x: (x * part.start[0]).sum(), lambda: part.start.insert(0, 3.0)


def code_of_functions() -> tuple[Any, Change]:
    def g(x: Any) -> Any:
        return x.sum()

    def other(x: Any) -> Any:
        return 2.0 * x.sum()

    return lambda x: g(x), lambda: setattr(g, "__code__", other.__code__)


def functions_in_decorators_of_others() -> tuple[Any, Change]:
    scale = [2.0]

    @contextlib.contextmanager
    def scaled() -> Any:
        yield scale[0]

    def f(x: Any) -> Any:
        with scaled() as s:
            return (x * s).sum()

    return f, lambda: scale.insert(0, 3.0)


def functions_of_types() -> tuple[Any, Change]:
    scale = [2.0]

    @functools.singledispatch
    def g(x: Any) -> Any:
        return (x * scale[0]).sum()

    return lambda x: g(x), lambda: scale.insert(0, 3.0)


def _module(name: str) -> Any:
    module: Any = types.ModuleType(name)
    module.__file__, module.scale = f"/nowhere/{name}.py", 2.0
    sys.modules[name] = module
    return module


def modules_that_it_imports() -> tuple[Any, Change]:
    module = _module("programs_settings")

    def f(x: Any) -> Any:
        import programs_settings

        return (x * programs_settings.scale).sum()

    return f, lambda: setattr(module, "scale", 3.0)


def names_that_it_imports() -> tuple[Any, Change]:
    module = _module("programs_settings")

    def f(x: Any) -> Any:
        from programs_settings import scale

        return (x * scale).sum()

    return f, lambda: setattr(module, "scale", 3.0)


def modules_by_text() -> tuple[Any, Change]:
    module = _module("programs_by_text")
    names = ["scale"]
    return lambda x: (x * getattr(module, names[0])).sum(), lambda: setattr(module, "scale", 3.0)


def modules_in_containers() -> tuple[Any, Change]:
    module = _module("programs_in_containers")
    held = [module]
    return lambda x: (x * held[0].scale).sum(), lambda: setattr(module, "scale", 3.0)


def globals_by_text() -> tuple[Any, Change]:
    space: dict[str, Any] = {"scale": 2.0}
    exec("def f(x): return (x * globals()['sc' + 'ale']).sum()", space)
    return space["f"], lambda: space.update(scale=3.0)


def text_as_code() -> tuple[Any, Change]:
    space: dict[str, Any] = {"scale": 2.0}
    exec("def f(x): return (x * eval('scale')).sum()", space)
    return space["f"], lambda: space.update(scale=3.0)


def globals_of_a_function_that_is_installed() -> tuple[Any, Change]:
    space: dict[str, Any] = {"scale": 2.0}
    exec(
        compile("def f(x): return (x * scale).sum()", os.path.join(sysconfig.get_path("purelib"), "some_library.py"), "exec"), space
    )
    return space["f"], lambda: space.update(scale=3.0)


def attributes_of_a_decorated_function() -> tuple[Any, Change]:
    factor = contextlib.contextmanager(lambda: iter(()))
    factor.scale = 2.0  # type: ignore[attr-defined]
    return lambda x: (x * factor.scale).sum(), lambda: setattr(factor, "scale", 3.0)


def attributes_in_lists_of_a_decorated_function() -> tuple[Any, Change]:
    factor = contextlib.contextmanager(lambda: iter(()))
    factor.scales = [2.0]  # type: ignore[attr-defined]

    def change() -> None:
        factor.scales[0] = 3.0  # type: ignore[attr-defined]

    return lambda x: (x * factor.scales[0]).sum(), change  # type: ignore[attr-defined]


def what_a_decorated_function_was() -> tuple[Any, Change]:
    factor = contextlib.contextmanager(lambda x: x * 2.0)
    return lambda x: factor.__wrapped__(x).sum(), lambda: setattr(factor, "__wrapped__", lambda x: x * 3.0)  # type: ignore[attr-defined]


def variables_of_the_environment() -> tuple[Any, Change]:
    os.environ["TAPEGRAD_TEST_SCALE"] = "2.0"
    return lambda x: (x * float(os.environ["TAPEGRAD_TEST_SCALE"])).sum(), lambda: os.environ.update(TAPEGRAD_TEST_SCALE="3.0")


STORIES: tuple[Story, ...] = (
    attributes_of_the_function, names_of_attributes, order_of_attributes, names_of_globals, names_of_defaults, deep_containers,
    arrays_among_defaults, lists_among_defaults, functions_among_defaults, other_defaults,
    metaclasses, slots_with_mangled_names, functions_of_missing_items, arrays_of_objects, records, members_of_enumerations, slices,
    code_of_functions, functions_in_decorators_of_others, functions_of_types, modules_that_it_imports, names_that_it_imports,
    modules_by_text, modules_in_containers, globals_by_text, text_as_code,
    globals_of_a_function_that_is_installed, variables_of_the_environment,
    attributes_of_a_decorated_function, attributes_in_lists_of_a_decorated_function, what_a_decorated_function_was,
)  # fmt: skip


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_changes_are_seen(story: Story) -> None:
    f, change = story()
    p = tg.program(f)
    for _ in range(3):
        assert p(X) == f(X)
    before = f(X)
    change()
    assert f(X) != before
    assert p(X) == f(X)
    assert np.array_equal(tg.grad(p)(X), tg.grad(f)(X))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_changes_are_seen_where_code_is_called_at_once(story: Story) -> None:
    f, change = story()
    p = tg.program(f)
    drivers = [p, tg.grad(p), tg.hessian(p)]
    for _ in range(4):
        for run in drivers:
            run(X)
        p.compile()
    change()
    for run, own in zip(drivers, [f, tg.grad(f), tg.hessian(f)], strict=True):
        np.testing.assert_allclose(run(X), own(X), rtol=1e-14)


def test_attributes_of_programs_are_seen() -> None:
    p = tg.program(lambda x: (x * p.scale).sum())
    p.scale = 2.0
    assert p(X) == p(X) == (X * 2.0).sum()
    p.scale = 3.0
    assert p(X) == (X * 3.0).sum()


def test_keys_of_dicts_that_are_equal_are_told_apart() -> None:
    p = tg.program(lambda d: sum(np.copysign(1.0, key) * value for key, value in d.items()))
    assert p({0.0: 2.0}) == 2.0
    assert p({-0.0: 2.0}) == -2.0


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.sum() * datetime.datetime.now().year,
        lambda x: x.sum() * (np.fromfile(os.devnull).size + 1),
    ],
)
def test_what_is_told_by_the_system_is_asked_each_time(f: Any) -> None:
    p = tg.program(f)
    assert p(X) == f(X)
    assert not p.traces


def raised_in_it(x: Any) -> Any:
    with np.errstate(all="raise"):
        try:
            return (1.0 / x).sum()
        except FloatingPointError:
            return x.sum()


def warned_in_it(x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return (1.0 / x).sum()
        except RuntimeWarning:
            return x.sum()


@pytest.mark.parametrize("f", [raised_in_it, warned_in_it])
def test_floating_point_errors_that_it_catches_are_its_own(f: Any) -> None:
    p = tg.program(f)
    for x in (X, X, WITH_ZERO, X):
        assert p(x) == f(x)


def test_floating_point_errors_are_raised_where_numpy_raises_them() -> None:
    p = tg.program(lambda x: (1.0 / x).sum())
    assert p(X) == p(X)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        p(WITH_ZERO)


def counting() -> Any:
    count = [0.0]

    def f(x: Any) -> Any:
        count[0] += 1.0
        return (x * count[0]).sum()

    return f


def remembering() -> Any:
    cache: dict[int, Any] = {}

    def f(x: Any) -> Any:
        if len(x) not in cache:
            cache[len(x)] = np.arange(float(len(x)))
        return (x * cache[len(x)]).sum()

    return f


def changing_once() -> Any:
    settings = types.SimpleNamespace(scale=1.0)

    def f(x: Any) -> Any:
        result = (x * settings.scale).sum()
        settings.scale = 2.0
        return result

    return f


@pytest.mark.parametrize("make", [counting, remembering, changing_once], ids=lambda make: make.__name__)
def test_what_a_function_changes_it_changes_once(make: Callable[[], Any]) -> None:
    p, f = tg.program(make()), make()
    assert [p(X) for _ in range(5)] == [f(X) for _ in range(5)]
    p, f = tg.program(make()), make()
    for _ in range(5):
        (value, gradient), (own, expected) = tg.value_and_grad(p)(X), tg.value_and_grad(f)(X)
        assert value == own
        assert np.array_equal(gradient, expected)


def test_caches_are_filled_before_paths_are_recorded() -> None:
    p = tg.program(remembering())
    for _ in range(3):
        p(X)
    assert len(p.traces) == 1


def test_functions_that_change_what_they_see_are_not_recorded_for_ever() -> None:
    state = [1.0]

    def f(x: Any) -> Any:
        state.append(state.pop() + 1.0)
        value = (x * state[0]).sum()
        if state[0] > 2.0:
            state[0] = 1.0
        return value

    p = tg.program(f)
    assert [p(X) for _ in range(50)] == [(X * s).sum() for s in (2.0, 3.0) * 25]
    assert "changes what it sees" in p.explain()


def test_errors_and_values_of_the_first_call_are_of_one_call() -> None:
    called = []

    def f(x: Any) -> Any:
        print(called.append(1))
        if x[0] > 0.0:
            raise ValueError
        return x.sum()

    with pytest.raises(ValueError):
        tg.program(f)(X)
    assert len(called) == 1


def test_arrays_that_are_one_are_told_from_two() -> None:
    w = X.copy()
    p = tg.program(lambda x, y: (x * y).sum() * (2.0 if x is y else 3.0 if x is w else 1.0))
    other = X.copy()
    for x, y, factor in [(X, other, 1.0), (X, other, 1.0), (X, X, 2.0), (w, X, 3.0), (w, w, 2.0), (X, other, 1.0)]:
        assert p(x, y) == (x * y).sum() * factor
    shared = tg.program(lambda xs: (xs[0] * xs[1]).sum() * (2.0 if xs[0] is xs[1] else 1.0))
    assert [shared([X, other]), shared([X, X])] == [(X * X).sum(), 2.0 * (X * X).sum()]


def test_orders_of_elements_in_memory_are_told_apart() -> None:
    a = np.arange(24.0).reshape(2, 3, 4)
    p = tg.program(lambda x, m: x.sum() * m.ravel("K")[1])
    for axes in [(0, 1, 2), (1, 0, 2), (2, 0, 1), (0, 2, 1), (2, 1, 0)]:
        m = a.transpose(axes).copy().transpose(np.argsort(axes))
        assert p(X, m) == X.sum() * m.ravel("K")[1]
        assert p(m, X) == m.sum() * X[1]


def test_hooks_see_the_values_of_the_present_call() -> None:
    def f(x: Any) -> Any:
        y, first = x * 2.0, x[0]
        if isinstance(y, tg.Tensor):
            y.register_hook(lambda g: g * float(first.detach()))
        return (y * y).sum()

    p = tg.program(f)
    for x in (X, X, 2.0 * X, -X):
        assert np.array_equal(tg.grad(p)(x), tg.grad(f)(x))


def test_functions_that_are_typed_are_followed_where_operations_call_them() -> None:
    text = "def f(x): return x[0] * np.apply_along_axis(lambda v: v[0] if str(v[0]).startswith('-') else v[1], 0, x)"
    space: dict[str, Any] = {"np": np, "__name__": "__main__"}
    exec(compile(text, "<stdin>", "exec"), space)
    p, f = tg.program(space["f"]), space["f"]
    for x in (X, X, -X, X[::-1].copy()):
        assert tg.value_and_grad(p)(x)[0] == f(x)
        assert np.array_equal(tg.grad(p)(x), tg.grad(f)(x))


def test_profilers_that_it_starts_are_its_own() -> None:
    def f(x: Any) -> Any:
        sys.setprofile(None)
        return (x * x).sum()

    p = tg.program(f)
    assert [p(X), p(X), p(-X)] == [f(X)] * 3
    assert "profile" in p.explain()


def test_what_code_names_of_modules_is_looked_at_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    losses: Any = types.ModuleType("losses_of_a_user")
    settings: Any = types.ModuleType("settings_of_a_user")
    for module in (losses, settings):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    exec("def loss(x):\n    return (DATA * x).sum() * factor()\ndef factor():\n    return 2.0", vars(losses))
    losses.DATA, settings.shift = np.array([1.0, 2.0, 3.0]), 1.0
    space: Any = {"losses": losses, "settings": settings}
    exec("def f(x):\n    return losses.loss(x) + settings.shift * x[0]", space)
    p = tg.program(space["f"])

    def check() -> None:
        for _ in range(3):
            value, gradient = tg.value_and_grad(p)(X)
            assert value == pytest.approx(space["f"](X), rel=1e-13)
            np.testing.assert_allclose(gradient, tg.grad(space["f"])(X), rtol=1e-13)

    check()
    p.compile()
    check()
    assert snapshot_of(p._surroundings) is not None
    losses.DATA[1] = 5.0
    check()
    exec("def factor():\n    return 3.0", vars(losses))
    check()
    settings.shift = -2.0
    check()
    losses.DATA = np.ones(3)
    check()
    space["settings"] = types.SimpleNamespace(shift=4.0)
    check()
    space["settings"] = settings
    del settings.shift
    with pytest.raises(AttributeError):
        tg.grad(p)(X)


def test_functions_that_wrap_others_are_looked_at_quickly() -> None:
    space: Any = {"logsumexp": tg.logsumexp, "scale": 2.0}
    exec("def own(x):\n    return x * scale", space)
    space["wrapped"] = contextlib.contextmanager(space["own"])  # installed code around the user's
    exec("def f(x):\n    return logsumexp(wrapped.__wrapped__(x), 0)", space)
    p = tg.program(space["f"])

    def check() -> None:
        for _ in range(3):
            np.testing.assert_allclose(tg.grad(p)(X), tg.grad(space["f"])(X), rtol=1e-13)

    check()
    assert snapshot_of(p._surroundings) is not None
    space["scale"] = -1.0
    check()
    (cell,) = (cell for cell in space["wrapped"].__closure__ if cell.cell_contents is space["own"])
    exec("def own(x):\n    return x * scale * x", space)
    cell.cell_contents = space["wrapped"].__wrapped__ = space["own"]
    check()
    space["logsumexp"] = lambda x, axis: x.sum()
    check()
