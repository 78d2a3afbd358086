"""Gradients of parts, of which some are runs of neighbours: written where they stand, with zeros around them."""

from collections.abc import Callable

import numpy as np
import pytest

import tapegrad as tg

RNG = np.random.default_rng(8)
SHAPES = [(3, 100), (100, 100), (4, 5, 90), (2, 3, 4, 70), (5, 70, 1)]
PARTS: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "last columns": lambda x: x[..., -40:],
    "columns in the middle": lambda x: x[..., 3:63],
    "rows": lambda x: x[1:3],
    "every other row": lambda x: x[::2],
    "every other column": lambda x: x[..., ::2],
    "a row of each": lambda x: x[..., 1:2, :],
    "transposed": lambda x: x.transpose(0, -1)[1:40],
    "stretched": lambda x: x[..., 2:50].unsqueeze(0).expand(3, *x[..., 2:50].shape),
    "flat": lambda x: x.reshape(-1)[7:150],
    "nothing": lambda x: x[..., 4:4],
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("same", [True, False], ids=["equal cotangents", "others"])
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradient_of_a_part_has_the_cotangents_in_its_places(
    shape: tuple[int, ...], part: Callable[[tg.Tensor], tg.Tensor], same: bool, dtype: type
) -> None:
    a = RNG.normal(size=shape).astype(dtype)
    x = tg.tensor(a, requires_grad=True)
    taken = part(x)
    g = np.full(tuple(taken.shape), 0.75, dtype) if same else RNG.normal(size=tuple(taken.shape)).astype(dtype)
    (taken.sum() * 0.75 if same else (taken * tg.tensor(g)).sum()).backward()
    places = part(tg.tensor(np.arange(a.size).reshape(shape))).numpy().reshape(-1)
    expected = np.zeros(a.size)
    np.add.at(expected, places, g.reshape(-1).astype(np.float64))
    tolerance = 1e-6 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(x.grad.numpy(), expected.reshape(shape), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gradients_of_all_parts_add_up(dim: int) -> None:
    a = RNG.normal(size=(66, 68, 70))
    x = tg.tensor(a, requires_grad=True)
    first, second = tg.chunk(x, 2, dim)
    g = RNG.normal(size=a.shape)
    halves = np.split(g, 2, dim)
    ((first * tg.tensor(halves[0])).sum() + (second * tg.tensor(halves[1])).sum() + 2.0 * first.sum()).backward()
    halves[0] += 2.0
    np.testing.assert_allclose(x.grad.numpy(), np.concatenate(halves, dim), rtol=1e-13)
