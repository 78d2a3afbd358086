"""Functions of one operand on tensors without dimensions, which are numbers inside: as on vectors of one element."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

SPACES = {"tg": tg, "functional": tg.nn.functional, "linalg": tg.linalg, "special": tg.special, "Tensor": tg.Tensor}
NO_VALUES = {"empty", "empty_like", "new_empty", "resize_"}  # what is in their memory is anything


def _functions() -> dict[str, Callable[..., Any]]:
    found = {}
    for space, owner in SPACES.items():
        for name in dir(owner):
            function = getattr(owner, name, None)
            public = not name.startswith("_") and name not in NO_VALUES
            if public and callable(function) and not isinstance(function, type):
                found[f"{space}.{name}"] = function
    return found


FUNCTIONS = _functions()


def _outcome(function: Callable[..., Any], shape: tuple[int, ...], dtype: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Values and gradient as vectors; None where such an operand is refused or the result is no tensor."""
    tg.manual_seed(0)
    leaf = tg.tensor(np.full(shape, 0.5, dtype), requires_grad=True)
    try:
        found = function(leaf if not getattr(function, "__name__", "").endswith("_") else leaf.clone())
        found = found if isinstance(found, tuple) else (found,)
        if not found or not all(isinstance(z, tg.Tensor) for z in found):
            return None
        tracked = [z.sum() for z in found if z.requires_grad]
        if tracked:
            sum(tracked[1:], tracked[0]).backward()
    except (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError, AttributeError):
        return None
    gradient = np.zeros(leaf.shape, dtype) if leaf.grad is None else leaf.grad.numpy()
    return np.concatenate([np.ravel(z.detach().numpy()) for z in found]), np.ravel(gradient)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_functions_are_those_of_vectors_of_one_element(dtype: Any) -> None:
    compared = 0
    for name, function in FUNCTIONS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            number, vector = (_outcome(function, shape, dtype) for shape in ((), (1,)))
        if number is None or vector is None or number[0].shape != vector[0].shape:
            continue
        compared += 1
        for one, other in zip(number, vector, strict=True):
            assert one.dtype == other.dtype, name
            np.testing.assert_allclose(one, other, 4 * np.finfo(dtype).eps, err_msg=name)  # NumPy computes numbers by themselves
    assert compared > 300
