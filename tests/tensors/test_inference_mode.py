"""inference_mode: where it holds, what is made inside, and what is refused to that outside."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf, live_rows
from many_cases import each

import tapegrad as tg

Tensor = tg.Tensor
SAVED = "Inference tensors cannot be saved for backward"
WRITTEN = "Inplace update to inference tensor outside InferenceMode is not allowed"
FLAG = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed"


def modes() -> tuple[bool, bool]:
    return tg.is_inference_mode_enabled(), tg.is_grad_enabled()


def inferred(value: Any = (1.0, 2.0, 3.0), **options: Any) -> Tensor:
    with tg.inference_mode():
        return tg.tensor(value, **options)


def test_the_function_tells_what_the_method_tells() -> None:
    assert (tg.is_inference(inferred()), tg.is_inference(tg.ones(2))) == (True, False)


# Where the mode holds.


def test_it_is_off_by_default() -> None:
    assert modes() == (False, True)


@pytest.mark.point(71)
def test_it_switches_recording_off() -> None:
    with tg.inference_mode():
        assert modes() == (True, False)
    assert modes() == (False, True)


def test_mode_false_records_inside_of_it() -> None:
    x = leaf([1.0])
    with tg.inference_mode(), tg.inference_mode(mode=False):
        assert modes() == (False, True)
        y = x * 2.0
    assert y.requires_grad and not y.is_inference()


def test_mode_false_records_inside_of_no_grad() -> None:
    with tg.no_grad(), tg.inference_mode(False):
        assert modes() == (False, True)


@pytest.mark.point(71)
def test_leaving_an_inner_context_returns_to_the_outer_one() -> None:
    with tg.inference_mode():
        with tg.inference_mode(False):
            pass
        with tg.no_grad():
            assert modes() == (True, False)
        assert modes() == (True, False)


@pytest.mark.point(71)
def test_it_ends_with_an_exception() -> None:
    with pytest.raises(KeyError), tg.inference_mode():
        raise KeyError
    assert modes() == (False, True)


@pytest.mark.point(71)
@each("decorate", [tg.inference_mode, tg.inference_mode(), tg.inference_mode(mode=True)])
def test_as_a_decorator(decorate: Callable[[Any], Any]) -> None:
    @decorate
    def inside() -> tuple[bool, bool]:
        """Docstring."""
        return modes()

    assert inside() == (True, False)
    assert modes() == (False, True)
    assert (inside.__name__, inside.__doc__) == ("inside", "Docstring.")


@pytest.mark.point(71)
def test_mode_false_as_a_decorator() -> None:
    inside = tg.inference_mode(False)(modes)
    with tg.inference_mode():
        assert inside() == (False, True)


CLOSED: list[tuple[bool, bool]] = []


@tg.inference_mode
def steps() -> Iterator[object]:
    try:
        got = yield modes()
        while True:
            got = yield (modes(), got)
    except ValueError:
        yield modes()
    finally:
        CLOSED.append(modes())


@pytest.mark.point(71)
def test_a_decorated_generator_has_the_mode_inside_and_not_between_items() -> None:
    generator = steps()
    assert next(generator) == (True, False)
    assert modes() == (False, True)


@pytest.mark.point(71)
def test_a_decorated_generator_has_the_mode_through_send_throw_and_close() -> None:
    CLOSED.clear()
    generator: Any = steps()
    next(generator)
    assert generator.send("value") == ((True, False), "value")
    assert generator.throw(ValueError()) == (True, False)
    generator.close()
    assert len(CLOSED) == 1 and CLOSED[0] == (True, False)


@each("mode", [None, 1, "yes"])
def test_anything_else_than_a_mode_or_a_function_is_refused(mode: Any) -> None:
    with pytest.raises(TypeError, match="takes a bool, or a function"):
        tg.inference_mode(mode)


@pytest.mark.point(71)
def test_it_is_per_thread() -> None:
    seen: list[Any] = []
    x = leaf([2.0])

    def other() -> None:
        y = x * x
        seen.extend([modes(), y.requires_grad, y.is_inference(), tg.ones(1).is_inference()])

    with tg.inference_mode():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert (x * x).is_inference()
    assert seen == [(False, True), True, False, False]


def test_a_thread_that_ends_inside_no_longer_counts() -> None:
    tape = tg.tape.default_tape()
    before = tape.inferring, tape.recording_off
    thread = threading.Thread(target=tg.inference_mode().__enter__)
    thread.start()
    thread.join()
    gc.collect()
    assert (tape.inferring, tape.recording_off) == before


def test_compiled_operators_come_back_after_it() -> None:
    x = leaf(2.0)
    (x * x).backward()
    header, kind = tg.tape.default_tape().header, tg.engine.layout.TENSOR_TYPE
    with tg.inference_mode(), tg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        pass
    assert header[kind] == id(Tensor)


def test_enable_grad_inside_does_not_record() -> None:
    x = leaf([1.0])
    with tg.inference_mode(), tg.enable_grad():
        y = x * 2.0
        assert modes() == (True, True)
    assert y.is_inference() and not y.requires_grad


def test_no_rows_are_recorded() -> None:
    x = leaf([1.0])
    before = live_rows()
    with tg.inference_mode():
        y = x * 2.0
        for _ in range(10):
            y = y * x + 1.0
    assert live_rows() <= before


# What is made inside.

NEW: list[Callable[[Tensor], Tensor]] = [
    lambda x: x * 2.0, lambda x: x * x, lambda x: x.exp(), lambda x: 1.0 - x, lambda x: x.sum(), lambda x: x.sum() * 2.0,
    lambda x: x @ x, lambda x: x.clone(), lambda x: x.float(), lambda x: tg.cat([x, x]), lambda x: x[[0, 1]], lambda x: x > 0,
    lambda x: tg.where(x > 0, x, 0.0), lambda x: x.max(), lambda x: tg.ones(2), lambda x: tg.zeros_like(x),
    lambda x: tg.Tensor([1.0]),
    lambda x: tg.tensor(1.0), lambda x: tg.rand(2), lambda x: tg.arange(3), lambda x: x.new_zeros(2), lambda x: copy.deepcopy(x),
    lambda x: np.exp(x), lambda x: tg.nn.functional.softplus(x),
]  # fmt: skip
VIEWS: list[Callable[[Tensor], Tensor]] = [
    lambda x: x[:2], lambda x: x.reshape(3, 1), lambda x: x.detach(), lambda x: x.data, lambda x: x.split(1)[0],
    lambda x: x.unbind()[1],
    lambda x: x.expand(2, 3), lambda x: x.squeeze(), lambda x: x.T, lambda x: x[0],
]  # fmt: skip


@pytest.mark.point(73)
@each("tracked", [True, False])
@each("make", NEW)
def test_results_inside_are_inference_tensors_and_untracked(make: Callable[[Tensor], Tensor], tracked: bool) -> None:
    x = tg.tensor([1.0, 2.0, 3.0], requires_grad=tracked)
    with tg.inference_mode():
        y = make(x)
    assert y.is_inference() and isinstance(y, Tensor) and y.grad_fn is None


@each("make", NEW[:6])
def test_results_inside_have_the_usual_values(make: Callable[[Tensor], Tensor]) -> None:
    x = tg.tensor([1.0, 2.0, 3.0])
    with tg.inference_mode():
        y = make(x)
        z = make(y)
    np.testing.assert_array_equal(z.numpy(), make(make(x)).numpy())
    assert z.dtype == make(make(x)).dtype


@pytest.mark.point(73)
@each("make", NEW)
def test_results_outside_of_operations_on_inference_tensors_are_ordinary(make: Callable[[Tensor], Tensor]) -> None:
    assert not make(inferred()).is_inference()


@pytest.mark.point(73)
@each("make", VIEWS)
def test_views_of_inference_tensors_stay_inference_tensors(make: Callable[[Tensor], Tensor]) -> None:
    x = inferred()
    y = make(x)
    assert y.is_inference()
    with tg.inference_mode():
        x.fill_(7.0)
    assert_values(y, np.full(y.shape, 7.0))


@each("make", VIEWS)
def test_views_made_inside_of_ordinary_tensors_are_ordinary(make: Callable[[Tensor], Tensor]) -> None:
    x = tg.ones(3)
    with tg.inference_mode():
        y = make(x)
    assert not y.is_inference()
    x.fill_(7.0)
    assert_values(y, np.full(y.shape, 7.0))


def test_ordinary_tensors_may_be_written_inside() -> None:
    x = leaf([1.0, 2.0])
    with tg.inference_mode():
        x.add_(1.0)
        x[0] = 5.0
    assert not x.is_inference() and x._version == 2
    (x * x).sum().backward()
    assert_values(x.grad, [10.0, 6.0])


def test_a_write_inside_to_what_a_derivative_needs_is_noticed() -> None:
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    with tg.inference_mode():
        x.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    assert x.grad is None


def test_views_that_are_tracked_follow_a_write_inside() -> None:
    x = leaf([1.0, 2.0])
    base = x * 1.0
    part = base[:1]
    with tg.inference_mode():
        base.mul_(3.0)
    (2.0 * part).sum().backward()
    assert_values(x.grad, [2.0, 0.0])


def test_a_view_made_inside_of_a_tracked_tensor_cannot_be_written_outside() -> None:
    x = leaf([1.0, 2.0]) * 1.0
    with tg.inference_mode():
        part = x[:1]
    with pytest.raises(RuntimeError, match="A view was created in inference mode and is being modified inplace in normal mode"):
        part.add_(1.0)


def test_inference_tensors_may_be_written_inside() -> None:
    x = inferred()
    with tg.inference_mode():
        x.add_(1.0)
        x[0] = 9.0
    assert_values(x, [9.0, 3.0, 4.0])


def test_gradients_taken_inside_are_right() -> None:
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    with tg.inference_mode():
        y.backward()
    assert_values(x.grad, [2.0, 4.0])


def test_modules_made_inside_can_be_trained() -> None:
    with tg.inference_mode():
        net = tg.nn.Linear(2, 1)
    net(tg.ones(1, 2)).sum().backward()
    assert_values(net.weight.grad, [[1.0, 1.0]])


# What is refused outside.

WRITES: list[Callable[[Tensor], Any]] = [
    lambda x: x.add_(1.0), lambda x: x.mul_(x), lambda x: x.zero_(), lambda x: x.fill_(2.0), lambda x: x.copy_(tg.ones(3)),
    lambda x: x.__setitem__(0, 1.0), lambda x: x.__setitem__([0, 2], 1.0), lambda x: x[:1].add_(1.0), lambda x: x.div_(2.0),
    lambda x: x.exp_(), lambda x: x.cumsum_(0), lambda x: x.masked_fill_(x > 1, 0.0), lambda x: x.clamp_(0.0, 1.0),
    lambda x: tg.add(tg.ones(3), 1.0, out=x), lambda x: tg.no_grad()(x.add_)(1.0), lambda x: x.detach().add_(1.0),
    lambda x: np.add(x, 1.0, out=x), lambda x: tg.nn.init.zeros_(x), lambda x: x.__iadd__(1.0),
]  # fmt: skip


@pytest.mark.point(73)
@each("write", WRITES)
def test_inference_tensors_cannot_be_written_outside(write: Callable[[Tensor], Any]) -> None:
    x = inferred()
    with pytest.raises(RuntimeError, match=WRITTEN):
        write(x)
    assert_values(x, [1.0, 2.0, 3.0])


class Scaled(tg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(y)
        return x.detach() * y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g * ctx.saved_tensors[0], None


SAVES: list[Callable[[Tensor, Tensor], Tensor]] = [
    lambda w, c: w * c, lambda w, c: c * w, lambda w, c: tg.mul(c, w), lambda w, c: w / c, lambda w, c: c / w,
    lambda w, c: w[0] * c[0], lambda w, c: c[0] * w[0], lambda w, c: w * c[0], lambda w, c: w @ c, lambda w, c: tg.atan2(c, w),
    lambda w, c: tg.where(c > 1, w, 0.0) * c, lambda w, c: (w * 1.0).mul_(c), lambda w, c: w.addcmul(w, c),
    lambda w, c: tg.nn.functional.linear(w, c.reshape(1, 3)), lambda w, c: Scaled.apply(w, c),
]  # fmt: skip


@pytest.mark.point(73)
@each("size", [3, 3000])
@each("operation", SAVES)
def test_inference_tensors_cannot_be_saved_for_backward(operation: Callable[[Tensor, Tensor], Tensor], size: int) -> None:
    if size > 3 and operation is SAVES[13]:
        size = 3
    w, c = leaf(np.ones(size)), inferred(np.full(size, 2.0))
    before = live_rows()
    with pytest.raises(RuntimeError, match=SAVED):
        operation(w, c)
    gc.collect()
    assert live_rows() <= before + 4  # the leaf, and what was recorded before the refusal


@pytest.mark.point(73)
def test_a_scalar_cannot_be_saved_either() -> None:
    with pytest.raises(RuntimeError, match=SAVED):
        leaf(3.0) * inferred(2.0)


@each(
    "operation",
    [lambda w, c: w + c, lambda w, c: c - w, lambda w, c: tg.cat([w, c]), lambda w, c: w + c.exp(), lambda w, c: w * c.clone()],
)
def test_what_saves_no_inference_tensor_is_recorded(operation: Callable[[Tensor, Tensor], Tensor]) -> None:
    w, twin, c = leaf([1.0, 1.0, 1.0]), leaf([1.0, 1.0, 1.0]), inferred()
    operation(w, c).sum().backward()
    operation(twin, tg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert_values(w.grad, twin.grad.numpy())


def test_hooks_on_saved_tensors_do_not_get_inference_tensors() -> None:
    packed: list[Tensor] = []
    with tg.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t), lambda t: t), pytest.raises(RuntimeError, match=SAVED):
        leaf([1.0]) * inferred([2.0])
    assert packed == []


@pytest.mark.point(73)
def test_an_inference_tensor_cannot_be_tracked_outside() -> None:
    x = inferred()
    with pytest.raises(RuntimeError, match=FLAG):
        x.requires_grad_()
    with pytest.raises(RuntimeError, match=FLAG):
        x.requires_grad = True
    with pytest.raises(RuntimeError, match=FLAG):
        tg.nn.Parameter(x)
    assert not x.requires_grad


def test_its_flag_may_be_cleared() -> None:
    assert inferred(requires_grad=True).requires_grad_(False).requires_grad is False


def test_a_tracked_leaf_made_inside_gets_its_gradient_where_no_value_is_needed() -> None:
    x = inferred(requires_grad=True)
    assert x.is_inference() and x.requires_grad and x.is_leaf
    (3.0 * x + x).sum().backward()
    assert_values(x.grad, [4.0, 4.0, 4.0])


@each("function", [lambda x: x * x, lambda x: x.sin(), lambda x: x.pow(3.0), lambda x: x.norm()])
@each("size", [3, 3000])
def test_a_tracked_leaf_made_inside_cannot_be_saved(function: Callable[[Tensor], Tensor], size: int) -> None:
    x = inferred(np.ones(size), requires_grad=True)
    with pytest.raises(RuntimeError, match=SAVED):
        function(x)


@pytest.mark.point(73)
def test_versions_cannot_be_read() -> None:
    with pytest.raises(RuntimeError, match=r"Inference tensors do not track version counter\."):
        _ = inferred()._version


def test_it_prints_as_others_do() -> None:
    assert repr(inferred()) == "tensor([1., 2., 3.])"


@each("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_made_outside_are_ordinary(copied: Callable[[Tensor], Tensor]) -> None:
    y = copied(inferred())
    assert type(y) is Tensor
    assert_values(y, [1.0, 2.0, 3.0])


def test_it_can_be_saved_to_a_file() -> None:
    file = io.BytesIO()
    tg.save({"x": inferred()}, file)
    file.seek(0)
    loaded = tg.load(file)["x"]
    assert type(loaded) is Tensor
    assert_values(loaded, [1.0, 2.0, 3.0])


def test_inference_tensors_that_are_kept_do_not_slow_ordinary_operators() -> None:
    kept = inferred()
    header, kind = tg.tape.default_tape().header, tg.engine.layout.TENSOR_TYPE
    (leaf(2.0) * 2.0).backward()
    assert header[kind] == id(Tensor) and kept.is_inference()


@each("kept", [lambda x: x.roll(1, 0), lambda x: x.roll(2), Tensor.tril, Tensor.triu, lambda x: x.clone().tril_()])
def test_what_is_kept_for_a_shape_can_be_made_in_it(kept: Callable[[Tensor], Tensor]) -> None:
    values = np.arange(51.0).reshape(17, 3)  # a shape that nothing else here has
    with tg.inference_mode():
        kept(tg.tensor(values))
    x = tg.tensor(values, requires_grad=True)
    kept(x).sum().backward()
    assert x.grad is not None
