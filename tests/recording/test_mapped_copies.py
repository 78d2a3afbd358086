"""Copies whose maps are kept for a shape: values, gradients and graphs, whatever the layout and the type of the elements."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

RNG = np.random.default_rng(4)
CUBE = RNG.normal(size=(2, 4, 3))
F = tg.nn.functional

CASES: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "flip": (lambda x: x.flip(0, 2), lambda a: np.flip(a, (0, 2))),
    "rot90": (lambda x: x.rot90(3, (0, 1)), lambda a: np.rot90(a, 3, (0, 1))),
    "rot90 backwards": (lambda x: x.rot90(-1, (2, 1)), lambda a: np.rot90(a, -1, (2, 1))),
    "repeat": (lambda x: x.repeat(2, 1, 1, 3), lambda a: np.tile(a, (2, 1, 1, 3))),
    "repeat nothing": (lambda x: x.repeat(2, 0, 1), lambda a: np.tile(a, (2, 0, 1))),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, 1), lambda a: np.repeat(a, 2, 1)),
    "roll": (lambda x: x.roll(5), lambda a: np.roll(a, 5)),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1), value=7.0), lambda a: np.pad(a, ((0, 0), (0, 1), (1, 2)), constant_values=7)),
    "diag_embed": (lambda x: tg.diag_embed(x, 1), lambda a: np.stack([[np.diag(r, 1) for r in m] for m in a])),
    "pixel_shuffle": (
        lambda x: F.pixel_shuffle(x.reshape(4, 2, 3), 2),
        lambda a: a.reshape(1, 2, 2, 2, 3).transpose(0, 3, 1, 4, 2).reshape(1, 4, 6),
    ),
    "channel_shuffle": (
        lambda x: F.channel_shuffle(x, 2),
        lambda a: a.reshape(2, 2, 2, 3).transpose(0, 2, 1, 3).reshape(2, 4, 3),
    ),
}  # fmt: skip
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "in order": lambda a: a,
    "turned": lambda a: np.ascontiguousarray(a.T).T,
    "with gaps": lambda a: np.repeat(a, 2, 2)[..., ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.int32, np.int8, np.bool_])
@pytest.mark.parametrize("case", CASES)
def test_values(case: str, dtype: Any, layout: str) -> None:
    call, reference = CASES[case]
    array = LAYOUTS[layout]((CUBE * 5.0).astype(dtype))
    for _ in range(2):  # the map is made, and then it is there
        found = call(tg.from_numpy(array)).numpy()
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, reference(array))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_the_transposed_map(case: str, dtype: Any, layout: str) -> None:
    call, reference = CASES[case]
    array = LAYOUTS[layout](CUBE.astype(dtype))
    x = tg.from_numpy(array).requires_grad_()
    z = call(x)
    weights = RNG.integers(-4, 5, tuple(z.shape)).astype(dtype)
    (g,) = tg.autograd.grad((z * tg.tensor(weights)).sum(), [x])
    units = np.eye(array.size, dtype=dtype).reshape(-1, *array.shape)
    expected = [(weights * (reference(unit) - reference(np.zeros_like(unit)))).sum() for unit in units]
    np.testing.assert_array_equal(g.numpy().reshape(-1), expected)


@pytest.mark.parametrize("case", CASES)
def test_results_are_copies(case: str) -> None:
    x = tg.tensor(CUBE)
    assert not np.may_share_memory(CASES[case][0](x).numpy(), x.numpy())


def test_numbers_of_another_type_are_no_known_map() -> None:
    x = tg.tensor(CUBE)
    x.repeat_interleave(2, 1)
    with pytest.raises(TypeError):
        x.repeat_interleave(2.0, 1)
    tg.diag_embed(x, 1)
    with pytest.raises(TypeError):
        tg.diag_embed(x, 1.0)


def test_errors_are_raised_each_time() -> None:
    x = tg.tensor(CUBE)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="multiple times"):
            x.flip(0, 0)
        with pytest.raises(RuntimeError, match="negative dimension"):
            x.repeat(1, -1, 1)


def test_a_large_tensor_and_one_of_no_element() -> None:
    large = np.arange(9000.0).reshape(90, 100)
    np.testing.assert_array_equal(tg.tensor(large).flip(1).numpy(), large[:, ::-1])
    assert tg.zeros(0, 3).flip(0).shape == (0, 3)
    np.testing.assert_array_equal(tg.tensor(np.arange(9000.0)).repeat(2).numpy(), np.tile(np.arange(9000.0), 2))


def test_no_grad_and_new_leaves() -> None:
    x = tg.tensor(CUBE, requires_grad=True)
    with tg.no_grad():
        assert not x.flip(0).requires_grad
    z = x.flip(0)
    assert z.grad_fn.name() == "FlipBackward0"
    z.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.ones_like(CUBE))


def test_nothing_is_read_of_an_empty_result() -> None:
    x = tg.tensor(np.empty((0, 3)), requires_grad=True)
    tg.diagflat(x).backward(tg.empty(0, 0))
    assert x.grad is not None and x.grad.shape == (0, 3)
