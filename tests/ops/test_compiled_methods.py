"""The method `sum` and operators on arrays of two shapes: compiled for small arrays, with the bits of NumPy."""

import inspect
import operator
from collections.abc import Callable
from itertools import product
from typing import Any

import fresh_processes
import numpy as np
import pytest

import tapegrad as tg

SHAPES = [(1,), (7,), (8,), (9,), (128,), (129,), (1000,), (2048,), (3000,), (2, 3), (8, 1), (3, 1, 5), (45, 45), (0,), (0, 3)]
PAIRS = list(product([(3,), (1,), (4, 3), (4, 1), (1, 3), (2, 4, 3), (2, 1, 3), (0, 3), (5, 1, 1)], repeat=2))
OPERATORS: list[tuple[Callable[..., Any], Any]] = [
    (operator.add, np.add), (operator.sub, np.subtract), (operator.mul, np.multiply), (operator.truediv, np.divide),
    (operator.pow, np.power), (tg.maximum, np.maximum), (tg.copysign, np.copysign),
]  # fmt: skip


def warm() -> None:
    """Let the engine be loaded, and with it everything that is compiled."""
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    x.sum().backward()


@pytest.mark.parametrize("tracked", [False, True])
def test_sum_has_numpys_bits(tracked: bool) -> None:
    warm()
    rng = np.random.default_rng(1)
    for shape in SHAPES:
        for array in (rng.standard_normal(shape) * 10.0 ** rng.uniform(-8, 8, shape), np.full(shape, -0.0), np.full(shape, np.nan)):
            z = tg.tensor(array, requires_grad=tracked).sum()
            assert np.float64(z.item()).tobytes() == np.add.reduce(array, None).tobytes(), shape


def test_sum_of_what_is_not_a_small_block_of_float64() -> None:
    warm()
    x = tg.tensor(np.arange(12.0).reshape(3, 4), requires_grad=True)
    assert x.t().sum().item() == 66.0
    assert x[:, ::2].sum().item() == 30.0
    assert tg.tensor([1, 2]).sum().dtype == np.int64
    assert tg.tensor(np.ones(3, np.float32)).sum().dtype == np.float32
    assert tg.tensor(2.5).sum().item() == 2.5


def test_sum_takes_its_arguments_by_either_name() -> None:
    warm()
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    for z in (x.sum(0), x.sum(dim=0), x.sum(axis=0)):
        assert z.tolist() == [4.0, 6.0]
    assert x.sum(1, keepdim=True).shape == (2, 1)
    with pytest.raises(TypeError):
        x.sum(0, False, 1)
    assert list(inspect.signature(tg.Tensor.sum).parameters) == ["self", "dim", "keepdim", "dtype"]
    assert "Sum of the elements" in (tg.Tensor.sum.__doc__ or "")


def test_sum_of_a_new_leaf_and_without_recording() -> None:
    warm()
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    z = x.sum()
    assert z.grad_fn.name() == "SumBackward0"
    z.backward()
    assert x.grad.tolist() == [1.0, 1.0]
    with tg.no_grad():
        assert not x.sum().requires_grad
    with tg.inference_mode():
        assert x.sum().is_inference()


@pytest.mark.parametrize(("ours", "theirs"), OPERATORS, ids=[theirs.__name__ for _, theirs in OPERATORS])
def test_operators_stretch_operands_as_numpy_does(ours: Callable[..., Any], theirs: Any) -> None:
    warm()
    rng = np.random.default_rng(2)
    for one, other in PAIRS:
        a, b = rng.standard_normal(one), rng.standard_normal(other)
        for array, place, value in ((a, 0, 0.0), (b, -1, np.nan)):
            if array.size:
                array.flat[place] = value
        x, y = tg.tensor(a, requires_grad=True), tg.tensor(b, requires_grad=True)
        try:
            np.broadcast_shapes(one, other)
        except ValueError:
            with pytest.raises(RuntimeError, match="must match"):
                ours(x, y)
            continue
        with np.errstate(all="ignore"):
            wanted = theirs(a, b)
        z = ours(x, y)
        assert z.shape == wanted.shape
        assert np.array_equal(z.detach().numpy(), wanted, equal_nan=True)
        z.sum().backward()
        assert x.grad.shape == one
        assert y.grad.shape == other


def test_derivatives_of_a_stretched_product() -> None:
    warm()
    x, y = tg.tensor([[1.0], [2.0]], requires_grad=True), tg.tensor([3.0, 4.0, 5.0], requires_grad=True)
    (x * y).sum().backward()
    assert x.grad.tolist() == [[12.0], [12.0]]
    assert y.grad.tolist() == [3.0, 3.0, 3.0]


ROOM = """
import numpy as np
import tapegrad as tg
import tapegrad.autograd.tensor_backward as in_python

x, v = tg.tensor(2.0, requires_grad=True), tg.tensor(np.ones(300), requires_grad=True)
for _ in range(40):
    (x * x).backward()
(v * v).sum().backward()
passes = []
sweep_from = in_python.sweep_from
in_python.sweep_from = lambda *of_pass: passes.append(sweep_from(*of_pass))
(v * v).sum().backward()
print(len(passes), v.grad[0].item())
"""


def test_a_pass_that_found_too_little_room_leaves_more_for_the_next_one() -> None:
    assert fresh_processes.run(ROOM, fresh_processes.environment()).stdout.split() == ["0", "4.0"]
