"""Compiled writes where operands lie across the target, are its very part, or change while objects are made."""

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from loaded_writes import warm

import tapegrad as tg


@pytest.fixture(autouse=True)
def loaded() -> None:
    warm()


@pytest.mark.parametrize("key", [0, -1, (), slice(None), slice(0, 1)], ids=str)
def test_part_that_an_operator_has_written_is_not_copied_into_its_own_place(key: Any) -> None:
    x = tg.tensor([1.5, 2.5], requires_grad=True)
    y = x.clone()
    y[key] *= 3.0
    assert [node.name() for node, _ in y.grad_fn.next_functions] == ["CloneBackward0", "MulBackward0"]
    assert y._version == 2


def test_part_of_a_view_whose_base_was_untracked_meanwhile_is_refused() -> None:
    x = tg.tensor([[1.5, 2.5]], requires_grad=True)
    row = x[0]
    x.requires_grad_(False)
    part = row[:1]
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        row[:1] = part
    assert row._version == 0


WRITES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "add": (lambda t, o: t.add_(o), lambda a, b: a + b),
    "mul": (lambda t, o: t.mul_(o), lambda a, b: a * b),
    "copy": (lambda t, o: t.copy_(o), lambda a, b: b),
    "item": (lambda t, o: t.__setitem__(slice(None), o), lambda a, b: b),
}


@pytest.mark.parametrize("shift", [1, 2, 4])
@pytest.mark.parametrize("name", WRITES)
def test_operand_in_the_same_buffer_is_read_before_the_write(name: str, shift: int) -> None:
    write, expected = WRITES[name]
    buffer = bytearray(8 * 8)
    np.frombuffer(buffer)[:] = np.linspace(0.5, 2.0, 8)
    later, earlier = np.frombuffer(buffer)[shift:], np.frombuffer(buffer)[:-shift]  # arrays whose owners differ
    new = expected(later.copy(), earlier.copy())
    write(tg.from_numpy(later), tg.from_numpy(earlier))
    assert later.tolist() == new.tolist()


class Finalised:
    """What calls a function when the collector finds it."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function, self.itself = function, self

    def __del__(self) -> None:
        self.function()


@pytest.fixture
def soon() -> Iterator[Callable[[], None]]:
    """Lets the collector run at the next object that it follows."""
    before = gc.get_threshold()
    gc.collect()
    gc.disable()

    def collect_soon() -> None:
        gc.set_threshold(1, 0, 0)
        gc.enable()

    yield collect_soon
    gc.set_threshold(*before)
    gc.enable()


@pytest.mark.parametrize("start", [2.0, [2.0, 3.0]], ids=["number", "array"])
def test_number_that_a_destructor_writes_meanwhile_has_the_value_of_its_row(start: Any, soon: Callable[[], None]) -> None:
    w = tg.tensor(1.5, requires_grad=True)
    y, target = w * 1.0, tg.tensor(start)  # whose counter of writes is still to be made
    Finalised(lambda: y.mul_(y.item()))  # y is w * w then
    soon()
    target.add_(y)
    gc.disable()
    added = target.sum().item() - np.sum(start)
    (gradient,) = tg.autograd.grad(target.sum(), w)
    count = np.size(start)
    assert (added, gradient.item()) in [(count * 1.5, count * 1.0), (count * 2.25, count * 1.5)]
