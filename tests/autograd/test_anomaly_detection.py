"""detect_anomaly: what is named, what is shown, what stays as it was, and that passes inside are the passes outside."""

from __future__ import annotations

import gc
import inspect
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf

import tapegrad as tg

Tensor = tg.Tensor
set_detect_anomaly = tg.autograd.set_detect_anomaly
IGNORED = ("Anomaly Detection has been enabled", "Error detected", ".*Previous calc")
NO_TRACE = r"No forward pass information available\. Enable detect anomaly during forward pass for more information\."
pytestmark = pytest.mark.filterwarnings(*(f"ignore:{message}" for message in IGNORED))


@pytest.fixture
def looking() -> Iterator[None]:
    with set_detect_anomaly(True):
        yield


def state() -> tuple[bool, bool]:
    return tg.is_anomaly_enabled(), tg.is_anomaly_check_nan_enabled()


def here() -> int:
    """Line of the caller."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


def shown(run: Callable[[], Any]) -> list[str]:
    """Warnings before the error that a call raises."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError):
            run()
    return [str(w.message) for w in caught]


# The setting.


def test_it_is_off_by_default() -> None:
    assert state() == (False, True)


def test_contexts_nest_and_restore_both_settings() -> None:
    with set_detect_anomaly(True, check_nan=False):
        assert state() == (True, False)
        with tg.autograd.detect_anomaly():
            assert state() == (True, True)
        assert state() == (True, False)
    assert state() == (False, True)


def test_it_ends_with_an_exception() -> None:
    with pytest.raises(KeyError), tg.autograd.detect_anomaly():
        raise KeyError
    assert state() == (False, True)


def test_setting_it_as_a_function() -> None:
    set_detect_anomaly(True)
    try:
        assert state() == (True, True)
    finally:
        set_detect_anomaly(False)
    assert state() == (False, True)


def test_the_context_warns_that_it_is_slow_at_the_line_that_makes_it() -> None:
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled") as caught:
        tg.autograd.detect_anomaly()
    assert caught[0].filename == __file__


def test_it_holds_in_all_threads(looking: None) -> None:
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(state()))
    thread.start()
    thread.join()
    assert seen == [(True, True)]


def test_entries_and_operators_are_the_compiled_ones_again_afterwards() -> None:
    tape, kind = tg.tape.default_tape(), tg.engine.layout.TENSOR_TYPE
    (leaf([1.0]) * leaf([1.0])).sum().backward()
    array, join = tape.compiled("array2"), tape.compiled("join_row")
    with set_detect_anomaly(True), tg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert tape.array2 is not array
    assert (tape.array2, tape.join_row, tape.header[kind]) == (array, join, id(Tensor))


# What is found.


def scaled_by_nan(x: Tensor) -> Tensor:
    return x * tg.tensor([float("nan"), 1.0])


class Bad(tg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g, g * float("nan")


FOUND = [
    (lambda x: x.sqrt(), "SqrtBackward0", 0),
    (lambda x: (2.0 * x).sqrt() * 3.0, "SqrtBackward0", 0),
    (lambda x: x[0].sqrt() + x[1], "SqrtBackward0", 0),
    (scaled_by_nan, "MulBackward0", 0),
    (lambda x: 1.0 + scaled_by_nan(x).exp(), "ExpBackward0", 0),
    (lambda x: tg.tensor([float("nan"), 1.0]) / x, "DivBackward0", 1),
    (lambda x: Bad.apply(tg.ones(2), x), "BadBackward", 1),
    (lambda x: x @ tg.tensor([float("nan"), 1.0]), "DotBackward0", 0),
    (lambda x: tg.cat([x, scaled_by_nan(x)]), "MulBackward0", 0),
]


@pytest.mark.point(74)
@pytest.mark.parametrize(("function", "name", "number"), FOUND)
def test_the_operation_and_the_number_of_its_operand_are_named(function: Any, name: str, number: int, looking: None) -> None:
    y = function(leaf([-1.0, 2.0])).sum()
    with pytest.raises(RuntimeError, match=rf"^Function '{name}' returned nan values in its {number}th output\.$"):
        y.backward()


@pytest.mark.point(74)
def test_the_line_that_recorded_it_is_shown(looking: None) -> None:
    x = leaf([-1.0, 2.0])
    y, line = x.sqrt(), here()
    (message,) = shown(y.sum().backward)
    assert message.startswith("Error detected in SqrtBackward0. Traceback of forward call that caused the error:\n")
    *_, place, text = message.strip().splitlines()
    assert place.split(", ")[:2] == [f'  File "{__file__}"', f"line {line}"]
    assert text.strip() == "y, line = x.sqrt(), here()"


def test_the_warning_points_at_the_line_that_started_the_pass(looking: None) -> None:
    y = leaf(-1.0).sqrt()
    with pytest.warns(UserWarning, match="Error detected") as caught, pytest.raises(RuntimeError):
        y.backward()
    assert caught[0].filename == __file__


RECORDERS: list[Callable[[Tensor], Tensor]] = [
    lambda x: x * x, lambda x: x.sum(), lambda x: x[:1], lambda x: tg.cat([x, x]), lambda x: x @ x, lambda x: x.sum() * x.sum(),
    lambda x: x.clone(), lambda x: tg.where(x > 0, x, x), lambda x: x.cumsum(0), lambda x: x.split(1)[0],
    lambda x: x.clone().exp_(),
]  # fmt: skip


@pytest.mark.parametrize("function", RECORDERS)
def test_every_kind_of_row_knows_where_it_was_recorded(function: Callable[[Tensor], Tensor], looking: None) -> None:
    y = function(leaf([1.0, 2.0]))
    (message,) = shown(lambda: y.sum().backward(tg.tensor(float("nan"))))
    assert "SumBackward0" in message
    y = function(leaf([1.0, 2.0]))
    (message,) = shown(lambda: y.backward(tg.full(y.shape, float("nan"))))
    assert "in <lambda>" in message.splitlines()[-2]


def test_rows_recorded_before_it_have_nothing_to_show() -> None:
    y = leaf(-1.0).sqrt()
    with set_detect_anomaly(True):
        (message,) = shown(y.backward)
    assert re.match(f"Error detected in SqrtBackward0. {NO_TRACE}", message)


def test_rows_keep_what_was_noted_when_it_ends_and_when_they_move() -> None:
    dead = [leaf(1.0) * 2.0 for _ in range(20)]
    with set_detect_anomaly(True):
        y, line = leaf(-1.0).sqrt(), here()
    del dead
    gc.collect()
    tg.tape.default_tape().collect()
    with set_detect_anomaly(True):
        (message,) = shown(y.backward)
    assert f"line {line}, in" in message


def test_a_later_row_in_the_same_place_does_not_get_the_note() -> None:
    with set_detect_anomaly(True):
        y = leaf(-1.0).sqrt()
    del y
    y = leaf(-1.0).sqrt()
    with set_detect_anomaly(True):
        (message,) = shown(y.backward)
    assert "No forward pass information" in message


def test_the_derivative_of_a_derivative_shows_both_lines(looking: None) -> None:
    x = leaf([2.0])
    y, first = x.sin(), here()
    (g,) = tg.autograd.grad(y, x, create_graph=True)
    second = here() - 1
    messages = shown(lambda: g.backward(tg.tensor([float("nan")])))
    assert messages[0].startswith("Error detected in MulBackward0.") and len(messages) == 2
    assert messages[1].strip().startswith("Previous calculation was induced by SinBackward0.")
    assert f"line {second}, in" in messages[0] and f"line {first}, in" in messages[1]


class Fails(tg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        raise ValueError("no derivative")


def test_an_exception_keeps_its_type_and_is_explained(looking: None) -> None:
    y = Fails.apply(leaf([1.0]))
    with pytest.warns(UserWarning, match="Error detected in FailsBackward. Traceback"), pytest.raises(ValueError, match="no d"):
        y.backward()


def test_a_recorded_pass_is_looked_at_too(looking: None) -> None:
    x = leaf([-1.0])
    with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values"):
        tg.autograd.grad(x.sqrt(), x, create_graph=True)


def test_nan_from_a_hook_is_found_where_it_goes_on(looking: None) -> None:
    y = leaf([1.0]) * 2.0
    y.register_hook(lambda g: g * float("nan"))
    with pytest.raises(RuntimeError, match="Function 'MulBackward0' returned nan values"):
        y.sum().backward()


@pytest.mark.point(74)
def test_without_check_nan_it_passes() -> None:
    x = leaf([-1.0, 4.0])
    with set_detect_anomaly(True, check_nan=False):
        x.sqrt().sum().backward()
    assert_values(x.grad, [np.nan, 0.25])


def test_infinity_is_no_anomaly(looking: None) -> None:
    x = leaf([0.0])
    x.sqrt().backward()
    assert_values(x.grad, [np.inf])


@pytest.mark.point(74)
def test_a_masked_branch_is_no_anomaly(looking: None) -> None:
    x = leaf([0.0, 4.0])
    tg.where(x > 0, x.sqrt(), 0.0).sum().backward()
    assert_values(x.grad, [0.0, 0.25])


# What stays as it was.


def test_after_an_anomaly_gradients_and_graph_are_as_before(looking: None) -> None:
    x, w = leaf([-1.0, 4.0]), leaf([1.0, 2.0])
    w.grad = tg.tensor([5.0, 6.0])
    kept = w.grad
    y = (x.sqrt() * w).sum()
    with pytest.raises(RuntimeError, match="returned nan"):
        y.backward()
    assert x.grad is None and w.grad is kept and kept.tolist() == [5.0, 6.0]
    set_detect_anomaly(False)
    y.backward()
    assert_values(x.grad, [np.nan, 0.5])
    assert_values(w.grad, [np.nan, 8.0])


# Passes inside are the passes outside.

PASSES: list[Callable[[Tensor, Tensor], Any]] = [
    lambda x, w: ((x * w).sin() + x / w).sum().backward(),
    lambda x, w: (x.sum() * w[1] * w.sum()).backward(),
    lambda x, w: (x * w).backward(tg.tensor([1.0, -2.0, 3.0])),
    lambda x, w: tg.autograd.backward([(x * w).sum(), x.exp().sum()], inputs=[x]),
    lambda x, w: tg.cat([x, w]).softmax(0)[1:4].norm().backward(),
    lambda x, w: (x.clone().mul_(w)[::2].cumsum(0) @ w[1:]).backward(),
    lambda x, w: tg.stack(tg.autograd.grad((x * x * w).sum(), (x, w))),
    lambda x, w: (tg.autograd.grad((x**3 * w).sum(), x, create_graph=True)[0] ** 2).sum().backward(),
]  # fmt: skip


@pytest.mark.parametrize("run", PASSES)
@pytest.mark.parametrize("started", [False, True])
def test_gradients_are_those_without_it(run: Callable[[Tensor, Tensor], Any], started: bool) -> None:
    results = []
    for mode in (False, True):
        x, w = leaf([0.5, 1.5, -2.0]), leaf([2.0, 3.0, 5.0])
        if started:
            x.grad, w.grad = tg.ones(3), tg.full((3,), 2.0)
        grads = x.grad, w.grad
        with set_detect_anomaly(mode):
            found = run(x, w)
        if started and run is not PASSES[-1]:
            assert x.grad is grads[0] and w.grad is grads[1]
        results.append([None if g is None else g.tolist() for g in (x.grad, w.grad, found)])
    for plain, walked in zip(*results, strict=True):
        assert (plain is None) == (walked is None)
        if plain is not None:
            np.testing.assert_allclose(walked, plain, rtol=1e-14)


def test_a_pass_frees_the_graph(looking: None) -> None:
    y = (leaf([1.0, 2.0]) ** 3).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_retain_graph_keeps_it(looking: None) -> None:
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert_values(x.grad, [4.0, 8.0])


def test_gradients_share_no_memory(looking: None) -> None:
    x, w, seed = leaf([1.0, 2.0]), leaf([1.0, 2.0]), tg.tensor([1.0, 1.0])
    (x + w).backward(seed)
    x.grad.zero_()
    seed.zero_()
    assert_values(w.grad, [1.0, 1.0])


def test_retained_gradients_and_hooks_work(looking: None) -> None:
    x = leaf([1.0, 2.0])
    y = x * 2.0
    y.retain_grad()
    seen: list[Any] = []
    y.register_hook(lambda g: 10.0 * g)
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    y.sum().backward()
    assert_values(y.grad, [10.0, 10.0])
    assert seen == [[20.0, 20.0]]


def test_a_hook_that_writes_to_its_gradient_changes_nothing(looking: None) -> None:
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = x + 0.0
    y.register_hook(lambda g: (g.zero_(), None)[1])
    (y + w).sum().backward()
    assert_values(x.grad, [1.0, 1.0])
    assert_values(w.grad, [1.0, 1.0])


def test_an_unused_input_is_refused_as_usual(looking: None) -> None:
    x, w = leaf([1.0]), leaf([1.0])
    with pytest.raises(RuntimeError, match="not have been used"):
        tg.autograd.grad(x.sum(), w)


def test_a_custom_function_runs_without_recording(looking: None) -> None:
    modes: list[bool] = []

    class Double(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2.0

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            modes.append(tg.is_grad_enabled())
            return g * 2.0

    x = leaf([1.0])
    Double.apply(x).backward()
    assert modes == [False]
    assert_values(x.grad, [2.0])


def test_notes_die_with_their_rows(looking: None) -> None:
    from tapegrad.autograd import recording_stacks

    def entries() -> int:
        return len(recording_stacks._traces.items())

    x = leaf([1.0])
    for _ in range(3000):
        _ = x * 2.0
    assert entries() < 3000


def test_pass_that_cannot_hand_its_gradients_over_leaves_the_graph() -> None:
    w = tg.tensor([1.0, 2.0], requires_grad=True)
    w.grad = tg.tensor([0.0, 0.0])
    y = (w * w).sum()
    w.grad._data.flags.writeable = False
    with tg.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError):
        y.backward()
    w.grad._data.flags.writeable = True
    y.backward()
    assert w.grad.tolist() == [2.0, 4.0]


def test_pass_that_reaches_no_leaf_frees_the_graph() -> None:
    class Nothing(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: tg.Tensor) -> tg.Tensor:
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: tg.Tensor) -> None:
            return None

    x = tg.tensor([1.0], requires_grad=True)
    y = (Nothing.apply(x) ** 2).sum()
    with tg.autograd.set_detect_anomaly(True):
        y.backward()
        with pytest.raises(RuntimeError, match="a second time"):
            y.backward()
