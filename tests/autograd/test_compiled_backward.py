"""`backward()` without arguments, one compiled call, where something else happens on its way."""

import inspect
import threading
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.engine import layout as at
from tapegrad.recording.structural import Structural, apply
from tapegrad.tape.tape import TAPE


def leaf(data: Any) -> tg.Tensor:
    return tg.tensor(np.asarray(data, np.float64), requires_grad=True)


@pytest.fixture(autouse=True)
def warm() -> None:
    """Working memory that the method may use."""
    for _ in range(2):
        x = leaf([1.0, 2.0])
        x.cumsum(0).sum().backward()


def hosted(x: tg.Tensor, vjp: Any) -> tg.Tensor:
    """A sum whose derivative is Python."""
    return apply(Structural("TestedBackward0", ((0,),), vjp), (x,), np.asarray(x.detach().numpy().sum()))


def test_a_vjp_that_raises_leaves_everything_as_it_was() -> None:
    def fails(g: tg.Tensor, ctx: Any) -> Any:
        raise KeyboardInterrupt

    x = leaf([1.0, 2.0])
    z = hosted(x * 1.0, fails)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            z.backward()
    assert x.grad is None
    assert TAPE.header[at.PINS] == 0
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_pass_inside_of_a_pass() -> None:
    inner = leaf([1.0, 3.0])

    def nested(g: tg.Tensor, ctx: Any) -> Any:
        (inner * inner).cumsum(0).sum().backward()
        return (g * tg.ones(2, dtype=tg.float64),)

    x = leaf([1.0, 2.0])
    (hosted(x * 2.0, nested) * 3.0).backward()
    assert x.grad.tolist() == [6.0, 6.0]
    assert inner.grad.tolist() == [4.0, 6.0]
    (x * x).sum().backward()
    assert x.grad.tolist() == [8.0, 10.0]


def test_a_second_pass_is_refused_in_pytorchs_words() -> None:
    x = leaf([1.0, 2.0])
    z = (x * x).prod()
    z.backward()
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()
    assert x.grad.tolist() == [8.0, 4.0]


def test_a_result_of_several_elements_is_refused() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="scalar outputs"):
        (x * x).backward()


def test_an_untracked_result_is_refused() -> None:
    with pytest.raises(RuntimeError, match="does not require grad"):
        tg.tensor([1.0]).backward()


@pytest.mark.parametrize("size", [1, 512, 513, 5000])
def test_leaves_of_any_size(size: int) -> None:
    x, y = leaf(np.arange(float(size))), leaf(2.0)
    for _ in range(2):
        ((x * y).cumsum(0)[-1] + (x * x).sum()).backward()
    assert np.array_equal(x.grad.numpy(), 2.0 * (2.0 + 2.0 * np.arange(size)))


def test_hooks_and_retained_gradients_are_served() -> None:
    x = leaf([1.0, 2.0])
    y = x * 3.0
    y.retain_grad()
    x.register_hook(lambda g: g * 2.0)
    y.cumsum(0).sum().backward()
    assert y.grad.tolist() == [2.0, 1.0]
    assert x.grad.tolist() == [12.0, 6.0]


def test_arguments_go_to_the_python_form() -> None:
    x = leaf([1.0, 2.0])
    y = x * x
    y.backward(tg.tensor([1.0, 10.0], dtype=tg.float64))
    assert x.grad.tolist() == [2.0, 40.0]
    z = (x * x).sum()
    z.backward(retain_graph=True)
    z.backward()
    assert x.grad.tolist() == [6.0, 48.0]
    with pytest.raises(TypeError):
        z.backward(wrong=True)
    names = ["self", "gradient", "retain_graph", "create_graph", "inputs"]
    assert list(inspect.signature(tg.Tensor.backward).parameters) == names


def test_a_leaf_whose_data_were_replaced_is_refused() -> None:
    before = TAPE.reshaped
    x = leaf([1.0, 2.0])
    z = (x * x).sum()
    try:
        x.data = tg.tensor([1.0, 2.0, 3.0], dtype=tg.float64)
        with pytest.raises(RuntimeError, match="replaced|changed"):
            z.backward()
    finally:
        TAPE.reshaped, TAPE.header[at.RESHAPED] = before, int(before)


def test_threads_add_to_one_gradient() -> None:
    x = leaf([1.0, 2.0])

    def work() -> None:
        for _ in range(200):
            (x * 1.0).cumsum(0).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [1600.0, 800.0]
    assert TAPE.header[at.PINS] == 0


def test_a_destructor_that_runs_a_pass_while_saved_values_are_released() -> None:
    x = leaf([1.0, 2.0])
    done = []

    class Last:
        def __del__(self) -> None:
            (x * x).sum().backward()
            done.append(True)

    class Kept(np.ndarray[Any, Any]):
        last: Any

    values = np.ones(2).view(Kept)
    values.last = Last()
    z = hosted(x * tg.tensor(values), lambda g, ctx: (g * ctx.inputs[0],))
    del values
    z.backward()
    assert x.grad is not None
    (x * 1.0).sum().backward()
    assert TAPE.header[at.PINS] == 0


def test_pass_under_a_claim_leaves_only_the_tidying_to_python() -> None:
    before = leaf([1.0, 2.0]) * 2.0  # rows below those of the pass
    x = leaf([1.0, 2.0])
    with TAPE.claim():  # what the pass saved cannot be released at once
        tg.exp(x * x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2.0 * np.array([1.0, 2.0]) * np.exp([1.0, 4.0]), rtol=1e-14)
    assert before.tolist() == [2.0, 4.0]
