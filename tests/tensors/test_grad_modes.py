"""no_grad, enable_grad, set_grad_enabled: contexts, decorators, generators, threads, and what they change."""

import gc
import threading
from collections.abc import Callable, Iterator

import pytest
from engine_fixtures import assert_values, leaf, live_rows

import tapegrad as tg


@pytest.mark.point(71)
def test_recording_is_on_by_default() -> None:
    assert tg.is_grad_enabled() is True


@pytest.mark.point(72)
def test_no_grad_results_are_untracked() -> None:
    x = leaf([1.0])
    with tg.no_grad():
        y = x * 2
    assert not y.requires_grad and y.grad_fn is None and y.is_leaf


def test_no_grad_adds_no_rows() -> None:
    x = leaf([1.0])
    y = x * 2
    before = live_rows()
    with tg.no_grad():
        for _ in range(10):
            y = y * x + 1.0
    assert live_rows() <= before


@pytest.mark.point(71)
def test_no_grad_restores_the_mode() -> None:
    with tg.no_grad():
        pass
    assert tg.is_grad_enabled()


@pytest.mark.point(71)
def test_no_grad_restores_the_mode_after_an_exception() -> None:
    with pytest.raises(KeyError), tg.no_grad():
        raise KeyError
    assert tg.is_grad_enabled()


@pytest.mark.point(71)
def test_enable_grad_inside_no_grad_records() -> None:
    x = leaf([1.0])
    with tg.no_grad(), tg.enable_grad():
        y = x * 2
    assert y.requires_grad


@pytest.mark.point(71)
def test_leaving_enable_grad_returns_to_no_grad() -> None:
    with tg.no_grad():
        with tg.enable_grad():
            pass
        assert not tg.is_grad_enabled()


@pytest.mark.point(71)
def test_contexts_nest() -> None:
    with tg.no_grad():
        with tg.no_grad():
            pass
        assert not tg.is_grad_enabled()
    assert tg.is_grad_enabled()


@pytest.mark.point(71)
@pytest.mark.parametrize("mode", [True, False])
def test_set_grad_enabled_as_a_context(mode: bool) -> None:
    with tg.set_grad_enabled(mode):
        assert tg.is_grad_enabled() is mode
    assert tg.is_grad_enabled() is True


@pytest.mark.point(71)
def test_set_grad_enabled_as_a_function() -> None:
    tg.set_grad_enabled(False)
    try:
        assert not tg.is_grad_enabled()
    finally:
        tg.set_grad_enabled(True)


def decorated_without_parentheses() -> Callable[[], bool]:
    @tg.no_grad
    def mode() -> bool:
        return tg.is_grad_enabled()

    return mode


def decorated_with_parentheses() -> Callable[[], bool]:
    @tg.no_grad()
    def mode() -> bool:
        return tg.is_grad_enabled()

    return mode


@pytest.mark.point(71)
@pytest.mark.parametrize("make", [decorated_without_parentheses, decorated_with_parentheses])
def test_no_grad_as_a_decorator(make: Callable[[], Callable[[], bool]]) -> None:
    assert make()() is False
    assert tg.is_grad_enabled()


def test_decorated_function_keeps_its_name() -> None:
    @tg.no_grad()
    def evaluate() -> None:
        """Docstring."""

    assert (evaluate.__name__, evaluate.__doc__) == ("evaluate", "Docstring.")


@pytest.mark.point(71)
def test_enable_grad_as_a_decorator() -> None:
    @tg.enable_grad()
    def mode() -> bool:
        return tg.is_grad_enabled()

    with tg.no_grad():
        assert mode() is True


@pytest.mark.point(71)
def test_set_grad_enabled_as_a_decorator() -> None:
    @tg.set_grad_enabled(False)
    def mode() -> bool:
        return tg.is_grad_enabled()

    assert mode() is False and tg.is_grad_enabled()


@pytest.mark.point(71)
def test_decorator_restores_the_mode_after_an_exception() -> None:
    @tg.no_grad()
    def fails() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert tg.is_grad_enabled()


@tg.no_grad()
def modes() -> Iterator[object]:
    try:
        got = yield tg.is_grad_enabled()
        while True:
            got = yield (tg.is_grad_enabled(), got)
    except ValueError:
        yield ("thrown", tg.is_grad_enabled())
    finally:
        CLOSED.append(tg.is_grad_enabled())


CLOSED: list[bool] = []


@pytest.mark.point(71)
def test_decorated_generator_has_the_mode_inside() -> None:
    assert next(modes()) is False


@pytest.mark.point(71)
def test_decorated_generator_leaves_the_mode_outside_between_items() -> None:
    generator = modes()
    next(generator)
    assert tg.is_grad_enabled()


@pytest.mark.point(71)
def test_decorated_generator_has_the_mode_through_send() -> None:
    generator = modes()
    next(generator)
    assert generator.send("value") == (False, "value")


@pytest.mark.point(71)
def test_decorated_generator_has_the_mode_through_throw() -> None:
    generator = modes()
    next(generator)
    assert generator.throw(ValueError()) == ("thrown", False)


@pytest.mark.point(71)
def test_decorated_generator_has_the_mode_through_close() -> None:
    CLOSED.clear()
    generator = modes()
    next(generator)
    generator.close()
    assert CLOSED == [False]


@pytest.mark.point(71)
def test_mode_is_per_thread() -> None:
    seen: list[bool] = []
    with tg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(tg.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


@pytest.mark.point(72)
def test_factory_under_no_grad_makes_a_tracked_leaf() -> None:
    with tg.no_grad():
        x = tg.zeros(2, requires_grad=True)
    assert x.requires_grad and x.is_leaf


@pytest.mark.point(72)
def test_leaf_made_under_no_grad_receives_gradients() -> None:
    with tg.no_grad():
        x = leaf([2.0])
    (x * x).backward()
    assert_values(x.grad, [4.0])


@pytest.mark.point(72)
def test_in_place_under_no_grad_makes_no_node() -> None:
    y = leaf([2.0]) * 1.0
    before = y.grad_fn
    with tg.no_grad():
        y.mul_(2.0)
    assert y.grad_fn is before


def test_result_used_under_no_grad_is_a_constant_outside() -> None:
    x = leaf([2.0])
    with tg.no_grad():
        c = x * 3
    (x * c).backward()
    assert_values(x.grad, [6.0])


def test_mode_is_off_in_a_loop_that_evaluates_and_on_in_one_that_trains() -> None:
    x = leaf([2.0])
    for _ in range(3):
        with tg.no_grad():
            assert not (x * x).requires_grad
        (x * x).backward()
    assert_values(x.grad, [12.0])


def test_a_thread_that_ends_without_recording_no_longer_counts() -> None:
    tape = tg.tape.default_tape()
    before = tape.recording_off
    thread = threading.Thread(target=tg.set_grad_enabled, args=(False,))
    thread.start()
    thread.join()
    gc.collect()
    assert tape.recording_off == before


def test_mode_that_a_hook_sets_ends_with_the_recorded_pass() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    x.register_hook(lambda g: tg.set_grad_enabled(False) and None)
    try:
        tg.autograd.grad((x * x).sum(), x, create_graph=True)
        assert tg.is_grad_enabled()
    finally:
        tg.set_grad_enabled(True)


def _in_backward(x: tg.Tensor) -> tg.Tensor:
    class Square(tg.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            ctx.save_for_backward(t)
            return t * t

        @staticmethod
        def backward(ctx, g):
            (t,) = ctx.saved_tensors
            result = 2.0 * t * g
            tg.set_grad_enabled(False)
            return result

    return Square.apply(x)


def _in_a_hook_before(x: tg.Tensor) -> tg.Tensor:
    y = x * x
    unused = y * 1.0
    unused.register_hook(lambda g: tg.set_grad_enabled(False) and None)
    return y + 0.0 * unused


def _in_a_hook_of_the_node(x: tg.Tensor) -> tg.Tensor:
    y = x * x
    y.grad_fn.register_hook(lambda inputs, outputs: tg.set_grad_enabled(False) and None)
    return y


@pytest.mark.parametrize("square", [_in_backward, _in_a_hook_before, _in_a_hook_of_the_node])
def test_mode_that_a_row_s_function_of_the_user_sets_does_not_stop_the_recording_of_other_rows(
    square: Callable[[tg.Tensor], tg.Tensor],
) -> None:
    x = leaf([1.0, 2.0])
    y = (x * x * x).sum() + square(x).sum()
    try:
        (slope,) = tg.autograd.grad(y, x, create_graph=True)
        (curvature,) = tg.autograd.grad(slope.sum(), x)
    finally:
        tg.set_grad_enabled(True)
    assert_values(curvature, [8.0, 14.0])
