"""Adjoints whose elements are all the same, below a sum, on their way through views, concatenations and sums along dimensions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

SHAPE = (3, 4, 5)
# Each with what it gives for the gradient of `function(x).sum()`, by places that NumPy counts.
MAPS: dict[str, Callable[[Any], Any]] = {
    "permuted": lambda x: x.permute(2, 0, 1) if isinstance(x, tg.Tensor) else x.transpose(2, 0, 1),
    "swapped": lambda x: x.swapaxes(0, 2),
    "reshaped": lambda x: x.reshape(5, 12),
    "backwards": lambda x: x.flip(0, 2) if isinstance(x, tg.Tensor) else x[::-1, :, ::-1],
    "a part": lambda x: x[1:, ::2],
    "one element": lambda x: x[1, 2, 3],
    "a diagonal": lambda x: x.diagonal(0, 0, 1),
}


def counts(function: Callable[[Any], Any], shape: tuple[int, ...]) -> np.ndarray:
    """How often each element is read."""
    places = np.arange(np.prod(shape)).reshape(shape)
    return np.bincount(np.ravel(function(places)), minlength=places.size).reshape(shape)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", list(MAPS))
def test_each_element_gets_the_number_as_often_as_it_is_read(name: str, dtype: Any) -> None:
    x = tg.tensor(np.ones(SHAPE, dtype), requires_grad=True)
    (MAPS[name](x).sum() * 3.0).backward()
    assert x.grad.dtype == dtype
    assert x.grad.tolist() == (3.0 * counts(MAPS[name], SHAPE)).tolist()


STRIDED = [((2, 2), (1, 1)), ((4,), (1,)), ((2, 2), (2, 1)), ((2, 2), (1, 2)), ((4,), (0,)), ((1, 4), (7, 1)), ((2, 2), (0, 1))]


@pytest.mark.parametrize(("size", "strides"), STRIDED)
def test_strides_that_read_elements_twice_are_known(size: tuple[int, ...], strides: tuple[int, ...]) -> None:
    x = tg.tensor(np.ones(4), requires_grad=True)
    x.as_strided(size, strides).sum().backward()
    read = [int(np.dot(index, strides)) for index in np.ndindex(size)]
    assert x.grad.tolist() == np.bincount(read, minlength=4).tolist()


def test_a_tensor_that_stands_twice_in_a_concatenation_gets_both() -> None:
    x, y = (tg.tensor(np.ones((2, 3)), requires_grad=True) for _ in range(2))
    (tg.cat((x, y, x), 1).sum() * 2.0).backward()
    assert x.grad.tolist() == np.full((2, 3), 4.0).tolist()
    assert y.grad.tolist() == np.full((2, 3), 2.0).tolist()


def test_another_contribution_is_added_to_the_number() -> None:
    x = tg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    weights = np.arange(6.0).reshape(3, 2)
    turned = x.t()
    (turned.sum() + (turned * tg.tensor(weights)).sum() + x.sum(0).sum()).backward()
    assert x.grad.tolist() == (2.0 + weights.T).tolist()


def test_a_number_reaches_what_retains_its_gradient() -> None:
    x = tg.tensor(np.ones((2, 3)), requires_grad=True)
    turned = (x * 2.0).t()
    turned.retain_grad()
    turned.reshape(6).sum().backward()
    assert turned.grad.tolist() == np.ones((3, 2)).tolist()
    assert x.grad.tolist() == np.full((2, 3), 2.0).tolist()
