"""Containers and several arguments of plain arrays and numbers, which are taken apart in one step."""

import re
from typing import Any

import numpy as np
import pytest

import tapegrad as tg


@pytest.mark.parametrize("wrong", [np.arange(3), np.ones(2, complex), np.ones(2, np.float16)])
@pytest.mark.parametrize(
    ("form", "place"),
    [
        (lambda x: {"a": 1.0, "b": x}, "argument 0['b']"),
        (lambda x: [1.0, x], "argument 0[1]"),
        (lambda x: (1.0, x), "argument 0[1]"),
    ],
)
def test_what_has_no_derivative_is_named_with_its_place(wrong: np.ndarray, form: Any, place: str) -> None:
    with pytest.raises(TypeError, match=f"{wrong.dtype.name}.*{re.escape(place)}" if wrong.dtype != np.float16 else "float16"):
        tg.grad(lambda x: 1.0)(form(wrong))


def test_the_place_among_several_arguments() -> None:
    with pytest.raises(TypeError, match="int64 for argument 1"):
        tg.grad(lambda x, y: 1.0, argnums=(0, 1))(1.0, np.arange(3))
    with pytest.raises(TypeError, match="int64 for argument 2"):
        tg.grad(lambda x, y, z: 1.0, argnums=(0, 2))(1.0, 2.0, np.arange(3))
