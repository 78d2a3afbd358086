"""Rows that only move elements: the plain pass, which does small ones in compiled code, beside the pass that is recorded."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

RNG = np.random.default_rng(3)
MATRIX, ROW = RNG.normal(size=(4, 5)), RNG.normal(size=5)
PLACES = np.array([3, 0, 3, 1])
ALONG = np.array([[0, 3, 3, 1, 0], [2, 3, 0, 1, 0]])
MASK = RNG.normal(size=(4, 5)) > 0.0
COLUMN = MASK[:, :1]
I = tg.tensor


def written(name: str, *args: Any) -> Callable[..., tg.Tensor]:
    return lambda x, *others: getattr(x.clone(), name)(*args, *others)


def written_to_part(x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
    z = x.clone()
    z[1:3, ::2] = y[0]
    z[0] *= y[1]
    z[3, 1] = y[2]
    return z


def written_to_view(x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
    z = x.clone()
    part = z[1:3]
    part.index_add_(0, I([1, 1]), y.expand(2, 5).clone())
    z[0] = part[0]
    return z


TWO = (MATRIX, ROW)
NUMBER = (MATRIX, np.array(0.3))
CASES: dict[str, tuple[Callable[..., tg.Tensor], tuple[np.ndarray, ...]]] = {
    "places taken": (lambda x: x[I(PLACES)], (MATRIX,)),
    "taken along": (lambda x: x.gather(0, I(ALONG)), (MATRIX,)),
    "put along": (lambda x, y: x.scatter(0, I(ALONG), y), (MATRIX, MATRIX[:2])),
    "added along": (lambda x, y: x.scatter_add(0, I(ALONG), y), (MATRIX, MATRIX[:2])),
    "reduced along": (lambda x, y: x.scatter_reduce(0, I(ALONG), y, "sum"), (MATRIX, MATRIX[:2])),
    "slices put": (lambda x, y: x.index_copy(0, I(PLACES), y), (MATRIX, MATRIX * 2.0)),
    "one number put": (lambda x, y: x.index_fill(0, I(PLACES), y), NUMBER),
    "a row put": (lambda x, y: x.index_put((I(PLACES),), y), TWO),
    "a row added": (lambda x, y: x.index_put((I(PLACES),), y, accumulate=True), TWO),
    "masked": (lambda x, y: x.masked_fill(I(MASK), y), NUMBER),
    "masked by a column": (lambda x, y: x.masked_fill(I(COLUMN), y), NUMBER),
    "masked, stretched": (lambda x, y: x.masked_fill(I(MASK), y), (ROW, np.array(0.3))),
    "masked by a number": (lambda x: x.masked_fill(I(COLUMN), 2.0), (MATRIX,)),
    "masked elements": (lambda x, y: x.masked_scatter(I(MASK), y), (MATRIX, MATRIX)),
    "rolled": (lambda x: x.roll((1, -2), (0, 1)), (MATRIX,)),
    "lower triangle": (lambda x: x.tril(-1), (np.stack([MATRIX, -MATRIX]),)),
    "upper triangle": (lambda x: x.triu(1), (np.stack([MATRIX, -MATRIX]),)),
    "a slice put": (lambda x, y: x.slice_scatter(y, 1, 1, 4, 2), (MATRIX, MATRIX[:, :2])),
    "an index put": (lambda x, y: x.select_scatter(y, 0, 2), TWO),
    "a diagonal put": (lambda x, y: x.diagonal_scatter(y), (MATRIX, ROW[:4])),
    "written along": (written("scatter_", 0, I(ALONG)), (MATRIX, MATRIX[:2])),
    "written slices": (written("index_copy_", 0, I(PLACES)), (MATRIX, MATRIX * 2.0)),
    "written where a mask is": (written("masked_fill_", I(COLUMN)), NUMBER),
    "a triangle written": (written("tril_"), (MATRIX,)),
    "one number written": (written("fill_"), NUMBER),
    "a row written": (written("copy_"), (MATRIX, MATRIX[::-1].copy())),
    "written to parts": (written_to_part, TWO),
    "written to a view": (written_to_view, TWO),
    "largest along": (lambda x, y: x.scatter_reduce(0, I(ALONG), y, "amax"), (MATRIX, MATRIX[:2])),
    "smallest along, without its own": (
        lambda x, y: x.scatter_reduce(0, I(ALONG), y, "amin", include_self=False), (MATRIX, MATRIX[:2]),
    ),
}  # fmt: skip


def leaves_of(arrays: tuple[np.ndarray, ...], dtype: Any) -> list[tg.Tensor]:
    return [tg.tensor(a.astype(dtype), requires_grad=True) for a in arrays]


def gradients(case: str, dtype: Any, recorded: bool, special: bool, twice: bool) -> list[np.ndarray]:
    call, arrays = CASES[case]
    leaves = leaves_of(arrays, dtype)
    operands = [x * 1.5 for x in leaves] if twice else leaves
    z = call(*operands)
    weights = np.random.default_rng(8).normal(size=tuple(z.shape)).astype(dtype)
    if special:
        weights.flat[0], weights.flat[-1], weights.flat[weights.size // 2] = np.inf, np.nan, -0.0
    loss = (z * tg.tensor(weights)).sum()
    if twice:
        loss = loss + (operands[0] * operands[0]).sum()
    found = tg.autograd.grad(loss, leaves, create_graph=recorded, allow_unused=True)
    return [g.detach().numpy() for g in found if g is not None]


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", CASES)
def test_compiled_steps_have_the_bits_of_vjps(case: str, dtype: Any, special: bool, twice: bool) -> None:
    plain, recorded = (gradients(case, dtype, way, special, twice) for way in (False, True))
    assert len(plain) == len(recorded) > 0
    for one, other in zip(plain, recorded, strict=True):
        assert one.dtype == other.dtype == dtype
        if dtype == np.float32 or case == "written to parts":  # where sums are rounded at other moments, or in another order
            np.testing.assert_allclose(one, other, 1e-6 if dtype == np.float32 else 1e-15)
            continue
        np.testing.assert_array_equal(one, other)  # nan where nan is
        assert (np.signbit(one) == np.signbit(other))[one == one].all()


NO_LINEAR_MAPS = [
    case for case in CASES if case == "written to parts" or ("along" in case and case.startswith(("largest", "smallest")))
]


@pytest.mark.parametrize("case", [case for case in CASES if case not in NO_LINEAR_MAPS])
def test_gradients_are_those_of_the_transposed_map(case: str) -> None:
    call, arrays = CASES[case]
    leaves = leaves_of(arrays, np.float64)
    z = call(*leaves)
    weights = RNG.normal(size=tuple(z.shape))
    found = tg.autograd.grad((z * tg.tensor(weights)).sum(), leaves)
    step = [RNG.normal(size=a.shape) for a in arrays]
    ahead, behind = (call(*map(tg.tensor, [a + sign * s for a, s in zip(arrays, step, strict=True)])).numpy() for sign in (1, -1))
    along = ((ahead - behind) / 2.0 * weights).sum()
    np.testing.assert_allclose(sum((g.numpy() * s).sum() for g, s in zip(found, step, strict=True)), along, rtol=1e-12, atol=1e-12)


def test_only_wanted_inputs_get_a_contribution() -> None:
    x, y = leaves_of((MATRIX, MATRIX * 2.0), np.float64)
    z = (x * 2.0).index_copy(0, I(PLACES), y * 3.0)
    (found,) = tg.autograd.grad(z.sum(), [y])
    assert x.grad is None
    np.testing.assert_array_equal(found.numpy(), 3.0 * np.array([0.0, 1.0, 1.0, 1.0])[:, None] * np.ones((4, 5)))


def test_a_row_that_was_freed_is_refused() -> None:
    (x,) = leaves_of((MATRIX,), np.float64)
    z = x[I(PLACES)].sum()
    z.backward()
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()
