"""Largest and smallest elements: values, positions, ties, nan, derivatives."""

from typing import Any

import numpy as np
import pytest
from engine_fixtures import leaf
from numerical import check_gradients, gradient
from sample_points import CUBE, MATRIX

import tapegrad as tg


@pytest.mark.parametrize(("name", "find"), [("max", np.argmax), ("min", np.argmin)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_extreme_along_a_dimension_gives_values_and_indices(name: str, find: Any, keepdim: bool) -> None:
    got = getattr(tg, name)(tg.tensor(CUBE), 1, keepdim)
    np.testing.assert_array_equal(got.indices.numpy(), find(CUBE, 1, keepdims=keepdim))
    np.testing.assert_array_equal(got.values.numpy(), getattr(np, name)(CUBE, 1, keepdims=keepdim))


def test_extreme_along_a_dimension_unpacks() -> None:
    values, indices = tg.tensor([3.0, 9.0]).max(0)
    assert (values.item(), indices.item(), indices.dtype) == (9.0, 1, np.int64)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dim", [0, 1])
def test_extreme_along_a_dimension_derivatives(name: str, dim: int) -> None:
    check_gradients(lambda x: getattr(tg, name)(x * x, dim).values, MATRIX)


@pytest.mark.point(79)
@pytest.mark.parametrize("name", ["max", "amax", "min", "amin"])
def test_extreme_of_everything_shares_ties_evenly(name: str) -> None:
    x = [2.0, 2.0, 5.0, 5.0] if "max" in name else [5.0, 2.0, 7.0, 2.0]
    expected = [0.0, 0.0, 0.5, 0.5] if "max" in name else [0.0, 0.5, 0.0, 0.5]
    np.testing.assert_array_equal(gradient(getattr(tg, name), x), expected)


@pytest.mark.point(79)
@pytest.mark.parametrize("name", ["amax", "amin"])
def test_extreme_over_dimensions_shares_ties_evenly(name: str) -> None:
    got = gradient(lambda x: getattr(tg, name)(x, 1).sum(), [[4.0, 4.0], [1.0, 1.0]])
    np.testing.assert_array_equal(got, [[0.5, 0.5], [0.5, 0.5]])


@pytest.mark.point(79)
@pytest.mark.parametrize("name", ["max", "min"])
def test_extreme_along_a_dimension_gives_ties_to_the_first(name: str) -> None:
    np.testing.assert_array_equal(gradient(lambda x: getattr(tg, name)(x, 0).values, [4.0, 4.0]), [1.0, 0.0])


@pytest.mark.point(79)
@pytest.mark.parametrize("name", ["max", "min"])
def test_extreme_of_two_tensors_halves_ties(name: str) -> None:
    x, y = leaf([1.0, 4.0]), leaf([1.0, 2.0])
    getattr(tg, name)(x, y).sum().backward()
    assert (x.grad[0].item(), y.grad[0].item()) == (0.5, 0.5)


def test_writing_into_the_indices_of_max_leaves_the_gradient_alone() -> None:
    x = leaf([1.0, 3.0, 2.0])
    values, indices = x.max(0, True)
    indices.numpy()[...] = 0
    values.backward(tg.ones(1))
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 1.0, 0.0])


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin"])
def test_nan_wins_over_everything(name: str) -> None:
    assert np.isnan(getattr(tg, name)(tg.tensor([1.0, np.nan, 5.0])).item())


@pytest.mark.point(11)
@pytest.mark.parametrize(("name", "expected"), [("argmax", [1, 0]), ("argmin", [0, 1])])
def test_positions_along_a_dimension(name: str, expected: list[int]) -> None:
    got = getattr(tg, name)(tg.tensor([[1.0, 5.0], [7.0, 3.0]]), 1)
    assert (got.numpy().tolist(), got.requires_grad, got.dtype) == (expected, False, np.int64)


@pytest.mark.parametrize("keepdim", [False, True])
def test_position_in_the_flattened_tensor(keepdim: bool) -> None:
    got = tg.argmax(tg.tensor(MATRIX), keepdim=keepdim)
    assert (got.item(), got.shape) == (int(np.argmax(MATRIX)), (1, 1) if keepdim else ())
