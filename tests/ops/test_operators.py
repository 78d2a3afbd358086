"""Operators of tensors: what their definitions say is what tensors do."""

from __future__ import annotations

import inspect

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
