"""`saved_tensors_hooks`: what is packed, when it is unpacked, and that derivatives use what comes back."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

Tensor = tg.Tensor
saved_tensors_hooks = tg.autograd.graph.saved_tensors_hooks


class Held:
    """Something that can be watched."""


class Counted:
    """A pair of hooks that keep copies and count."""

    def __init__(self) -> None:
        self.packed: list[Any] = []
        self.unpacked = 0

    def pack(self, t: Tensor) -> Any:
        self.packed.append(t.tolist())
        return t.tolist(), t.dtype

    def unpack(self, kept: Any) -> Tensor:
        self.unpacked += 1
        return tg.tensor(kept[0], dtype=kept[1])

    def context(self) -> Any:
        return saved_tensors_hooks(self.pack, self.unpack)


@pytest.fixture
def x() -> Tensor:
    return tg.tensor([0.5, 2.0], requires_grad=True)


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.mark.point(56)
@pytest.mark.parametrize("value", [3.0, [1.0, 2.0]])
def test_packs_once_a_saved_tensor_and_unpacks_once_a_use(value: Any, counted: Counted) -> None:
    x = tg.tensor(value, requires_grad=True)
    with counted.context():
        y = x * x
    assert counted.packed == [value, value]
    assert counted.unpacked == 0
    y.sum().backward()
    assert counted.unpacked == 2
    np.testing.assert_array_equal(x.grad.tolist(), 2 * np.array(value))


@pytest.mark.point(56)
@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x * 3.0, lambda x: x + x, lambda x: x.sum(), lambda x: x[:1], lambda x: -x, lambda x: tg.cat([x, x]),
        lambda x: x / 4.0,
    ],
)  # fmt: skip
def test_numbers_and_linear_operations_pack_nothing(x: Tensor, counted: Counted, operation: Callable[[Tensor], Tensor]) -> None:
    with counted.context():
        operation(x)
    assert counted.packed == []


@pytest.mark.point(56)
def test_inner_pair_wins(x: Tensor, counted: Counted) -> None:
    inner = Counted()
    with counted.context():
        with inner.context():
            tg.sin(x)
        tg.exp(x)
    tg.cos(x)
    assert inner.packed == [[0.5, 2.0]]
    assert counted.packed == [tg.exp(x).tolist()]


@pytest.mark.point(56)
def test_custom_functions_pack_what_they_save(x: Tensor, counted: Counted) -> None:
    class Cube(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            y = x**3
            ctx.save_for_backward(x, None, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            x, nothing, y = ctx.saved_tensors
            assert nothing is None
            return 3 * g * y / x

    with counted.context():
        y = Cube.apply(x)
    assert counted.packed == [[0.5, 2.0], [0.125, 8.0]]
    (g,) = tg.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(g.tolist(), [0.75, 12.0])
    np.testing.assert_allclose(tg.autograd.grad(g.sum(), x)[0].tolist(), [3.0, 12.0])


PROGRAMS: dict[str, Callable[[Tensor], Tensor]] = {
    "elementwise": lambda x: tg.sin(x) * tg.exp(-x) / (1.0 + x**2),
    "scalars": lambda x: tg.exp(x[0] * x[1]) * x[0],
    "structural": lambda x: tg.softmax(tg.stack([x, x * x]) @ x, 0) * x.prod() + tg.cumsum(x, 0),
    "indices": lambda x: x[tg.tensor([1, 1])] * x.norm(),
    "written in place": lambda x: (x + 0.0).mul_(x).sin_().exp_(),
    "scalars written in place": lambda x: (x[0] * x[1]).mul_(x[0]).exp_(),
    "numbers and arrays": lambda x: (2.0**x) * np.array([1.0, 3.0]) * tg.tensor(0.5),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_those_without_hooks(x: Tensor, name: str, counted: Counted) -> None:
    def derivatives() -> list[Any]:
        (g,) = tg.autograd.grad(PROGRAMS[name](x).sum(), x, create_graph=True)
        (h,) = tg.autograd.grad((g * g).sum(), x)
        return [g.tolist(), h.tolist()]

    expected = derivatives()
    with counted.context():
        packed = derivatives()
    assert counted.unpacked > 0
    np.testing.assert_allclose(packed, expected, rtol=1e-13)
    np.testing.assert_allclose(derivatives(), expected, rtol=0)


def test_derivatives_use_what_is_unpacked(x: Tensor) -> None:
    with saved_tensors_hooks(lambda t: None, lambda _: tg.tensor([10.0, 20.0])):
        y = tg.exp(x)
    y.sum().backward()
    assert x.grad.tolist() == [10.0, 20.0]


def test_packed_values_are_released_by_the_pass(x: Tensor) -> None:
    links: list[Any] = []

    def pack(t: Tensor) -> Any:
        held = Held()
        links.append(weakref.ref(held))
        return held, t.tolist()

    with saved_tensors_hooks(pack, lambda kept: tg.tensor(kept[1])):
        y = tg.exp(x).sum()
        z = tg.sin(x)
    y.backward(retain_graph=True)
    assert links[0]() is not None
    y.backward()
    assert links[0]() is None
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    del z
    assert links[1]() is None


def test_packed_tensor_that_is_written_later_raises(x: Tensor) -> None:
    t = x * 1.0
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = tg.sin(t)
    t.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    assert x.grad is None


def test_pack_hook_may_not_write_to_its_argument(x: Tensor) -> None:
    rows = tg.tape.default_tape().rows
    t = x * 1.0
    with (
        saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t),
        pytest.raises(RuntimeError, match="pack hook is modifying its input"),
    ):
        tg.sin(t)
    del t
    gc.collect()
    assert tg.tape.default_tape().rows <= rows + 1


def test_unpack_hook_must_return_a_tensor(x: Tensor) -> None:
    with saved_tensors_hooks(lambda t: t.tolist(), lambda kept: kept):
        y = tg.sin(x)
    with pytest.raises(TypeError, match="Output of saved tensor unpack_hook expected to be a Tensor but got result of type list"):
        y.sum().backward()
    assert x.grad is None


def test_exceptions_of_pack_hooks_end_the_context(x: Tensor) -> None:
    def fail(t: Tensor) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"), saved_tensors_hooks(fail, lambda kept: kept):
        tg.sin(x)
    tg.sin(x).sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), np.cos([0.5, 2.0]))


def test_other_threads_are_not_concerned(x: Tensor, counted: Counted) -> None:
    results: list[Any] = []

    def run() -> None:
        results.append(tg.autograd.grad((tg.sin(x) * x).sum(), x)[0].tolist())

    with counted.context():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert counted.packed == []
    np.testing.assert_allclose(results[0], np.cos([0.5, 2.0]) * [0.5, 2.0] + np.sin([0.5, 2.0]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_process_has_only_its_own_hooks() -> None:
    code = """
import os, threading, tapegrad as tg
tape = tg.tape.default_tape()
entered, done = threading.Event(), threading.Event()
def run():
    with tg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        entered.set()
        done.wait()
thread = threading.Thread(target=run)
thread.start()
entered.wait()
before = tape.packers
child = os.fork()
if child == 0:
    os._exit(10 * before + tape.packers)
done.set()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    answer = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "10"


graph = tg.autograd.graph


@pytest.mark.point(100)
def test_hooks_may_be_disabled() -> None:
    with graph.disable_saved_tensors_hooks("outer"):
        with graph.disable_saved_tensors_hooks("inner"), pytest.raises(RuntimeError, match="inner"), tracing():
            pass
        with pytest.raises(RuntimeError, match="outer"), tracing():
            pass
    with tracing():
        pass


def tracing() -> Any:
    return saved_tensors_hooks(lambda t: t, lambda t: t)


@pytest.mark.point(100)
def test_hooks_in_use_cannot_be_disabled(x: Tensor) -> None:
    with tracing(), pytest.raises(RuntimeError, match="not now"), graph.disable_saved_tensors_hooks("not now"):
        pass
    with tracing():
        (x * x).sum().backward()


@pytest.mark.point(100)
def test_disabling_as_a_decorator() -> None:
    @graph.disable_saved_tensors_hooks("decorated")
    def run() -> None:
        with tracing():
            pass

    with pytest.raises(RuntimeError, match="decorated"):
        run()
    with tracing():
        pass


def test_hooks_are_disabled_in_one_thread() -> None:
    found: list[bool] = []

    def run() -> None:
        with tracing():
            found.append(True)

    with graph.disable_saved_tensors_hooks("here"):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert found == [True]


WRITTEN: dict[str, Any] = {
    "operand": lambda t: ((t * t).sum(), t.mul_(3.0)),
    "power": lambda t: ((t**2).sum(), t.sin_()),
    "product": lambda t: (t[None] @ t[:, None], t.zero_()),
    "view": lambda t: ((t * t).sum(), t[:1].add_(1.0)),
    "scalar": lambda t: ((lambda s: (s * s, s.add_(1.0)))(t.sum()))[0],
    "item": lambda t: (t.exp().sum() + t.cumprod(0).sum(), t.__setitem__(0, 7.0)),
    "in place of itself": lambda t: (t.exp_().log().sum(), t.mul_(2.0)),
}


@pytest.mark.point(101)
@pytest.mark.parametrize("name", WRITTEN)
def test_saved_values_may_be_written_where_that_is_allowed(name: str) -> None:
    def loss(t: Tensor) -> Tensor:
        made = WRITTEN[name](t)
        return (made[0] if isinstance(made, tuple) else made).sum()

    x = tg.tensor([0.5, 2.0], requires_grad=True)
    with graph.allow_mutation_on_saved_tensors():
        loss(x.clone()).backward()
    step = 1e-6
    plain = [
        (loss(tg.tensor([0.5, 2.0]) + tg.tensor(d)) - loss(tg.tensor([0.5, 2.0]) - tg.tensor(d))).item() / (2 * step)
        for d in ([step, 0.0], [0.0, step])
    ]
    np.testing.assert_allclose(x.grad.numpy(), plain, rtol=1e-8)


@pytest.mark.point(101)
def test_results_may_be_written_where_that_is_allowed(x: Tensor) -> None:
    with graph.allow_mutation_on_saved_tensors():
        y = x.exp()
        y.mul_(2.0)
        y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2.0 * np.exp([0.5, 2.0]))


@pytest.mark.point(101)
@pytest.mark.parametrize("end", ["leave", "clear"])
def test_what_was_kept_ends_with_the_context(end: str, x: Tensor) -> None:
    with graph.allow_mutation_on_saved_tensors() as kept:
        y = (x * x).sum()
        if end == "clear":
            kept.clear()
            with pytest.raises(AssertionError, match="Trying to backward outside"):
                y.backward()
    with pytest.raises(AssertionError, match="Trying to backward outside"):
        y.backward()
    assert x.grad is None


@pytest.mark.point(101)
def test_allowing_is_not_nested_nor_done_where_hooks_are_disabled(x: Tensor) -> None:
    with (
        graph.allow_mutation_on_saved_tensors(),
        pytest.raises(RuntimeError, match="cannot be nested"),
        graph.allow_mutation_on_saved_tensors(),
    ):
        pass
    with (
        graph.disable_saved_tensors_hooks("none"),
        pytest.raises(RuntimeError, match="none"),
        graph.allow_mutation_on_saved_tensors(),
    ):
        pass
    with graph.allow_mutation_on_saved_tensors():
        (x * x).sum().backward()


@pytest.mark.point(101)
def test_what_was_recorded_before_is_checked_as_ever(x: Tensor) -> None:
    t = x.clone()
    y = (t * t).sum()
    with graph.allow_mutation_on_saved_tensors():
        t.mul_(2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()
