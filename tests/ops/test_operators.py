"""Operators of tensors: what their definitions say is what tensors do."""

from __future__ import annotations

import inspect
import operator

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.operators import DEFINITIONS


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("shape", [(), (3,)])
def test_operator_of_a_tensor_does_what_its_definition_says(name: str, shape: tuple[int, ...]) -> None:
    definition = DEFINITIONS[name]
    found = []
    for operate in (definition, getattr(tg.Tensor, name)):
        operands = [tg.tensor(np.full(shape, value), requires_grad=True) for value in (1.75, 0.5)]
        operands = operands[: len(inspect.signature(definition).parameters)]
        result = operate(*operands)
        result.sum().backward()
        found.append((result.grad_fn.name(), result.tolist(), [t.grad.tolist() for t in operands]))
    assert found[0] == found[1]


class Foreign:
    """A class of somebody's that computes with tensors on its left."""

    def __radd__(self, x: tg.Tensor) -> tuple[str, tg.Tensor]:
        return "add", x

    def __rsub__(self, x: tg.Tensor) -> tuple[str, tg.Tensor]:
        return "sub", x

    def __rmul__(self, x: tg.Tensor) -> tuple[str, tg.Tensor]:
        return "mul", x

    def __rtruediv__(self, x: tg.Tensor) -> tuple[str, tg.Tensor]:
        return "truediv", x

    def __rmod__(self, x: tg.Tensor) -> tuple[str, tg.Tensor]:
        return "mod", x

    def __rpow__(self, x: tg.Tensor) -> tuple[str, tg.Tensor]:
        return "pow", x

    def __rmatmul__(self, x: tg.Tensor) -> tuple[str, tg.Tensor]:
        return "matmul", x


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "mod", "pow", "matmul"])
@pytest.mark.parametrize("value", [2.0, 2, [1.0, 2.0], [1, 2]])
def test_reflected_operator_of_an_operand_that_is_no_number_is_asked(name: str, value: object) -> None:
    x = tg.tensor(value)
    found, operand = getattr(operator, name)(x, Foreign())
    assert found == name and operand is x


class Silent:
    def __radd__(self, x: tg.Tensor) -> object:
        return NotImplemented


@pytest.mark.parametrize("other", [Silent(), object(), "text", [1.0, 2.0], None])
def test_operand_that_nobody_can_add_is_refused(other: object) -> None:
    with pytest.raises(TypeError):
        tg.tensor([1.0, 2.0]) + other


@pytest.mark.parametrize("call", [tg.add, tg.sub, tg.rsub, tg.Tensor.add, tg.Tensor.add_])
def test_factor_of_integers_is_an_integer(call: object) -> None:
    with pytest.raises(RuntimeError, match="argument alpha must not be a floating point number"):
        call(tg.tensor([1, 2]), tg.tensor([1, 2]), alpha=1.5)


@pytest.mark.parametrize("alpha", [0, 1, 2, True])
def test_sum_of_bools_with_a_factor_is_of_bools(alpha: int) -> None:
    x, y = tg.tensor([True, False]), tg.tensor([False, True])
    found = tg.add(x, y, alpha=alpha)
    assert found.dtype == tg.bool and found.tolist() == [True, bool(alpha)]


def test_number_with_a_factor_keeps_integers() -> None:
    found = tg.add(tg.tensor([1, 2]), 1, alpha=2)
    assert found.dtype == tg.int64 and found.tolist() == [3, 4]
