"""Elements at places of the flattened tensor, against NumPy's indexing and definitions by loops."""

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.flat_places import Places, accumulating, add_at, increased_at, put_at, take_at

RNG = np.random.default_rng(3)
DTYPES = [np.bool_, np.int8, np.float16, np.int32, np.float32, np.int64, np.float64]


def places(at: list[int], inner: int = 1) -> Places:
    shape = (len(at),) if inner == 1 else (len(at), inner)
    return Places(np.array(at, np.int64), inner, shape)


@pytest.mark.parametrize("inner", [1, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_every_dtype_are_moved_as_they_are(dtype: Any, inner: int) -> None:
    data = RNG.integers(0, 2, 12).astype(dtype) if dtype is np.bool_ else RNG.integers(-9, 9, 12).astype(dtype)
    chosen = places([2, 0, 2], inner)
    x = tg.tensor(data)
    assert np.array_equal(take_at(x, chosen).numpy(), data.reshape(-1, inner)[[2, 0, 2]].reshape(chosen.shape))
    values, wanted = data[::-1][: 3 * inner].reshape(chosen.shape), data.copy()
    wanted.reshape(-1, inner)[[2, 0, 2]] = values.reshape(-1, inner)
    assert np.array_equal(put_at(x, chosen, tg.tensor(values.copy())).numpy(), wanted)
    wanted.reshape(-1, inner)[[2, 0, 2]] = data[5]
    assert np.array_equal(put_at(tg.tensor(wanted), chosen, tg.tensor(data[5])).numpy(), wanted)


@pytest.mark.parametrize("inner", [1, 2])
def test_a_place_of_minus_one_is_no_element(inner: int) -> None:
    x = tg.arange(6.0)
    chosen = places([-1, 1, -1], inner)
    assert take_at(x, chosen).reshape(-1, inner)[[0, 2]].abs().sum() == 0.0
    v = tg.ones(*chosen.shape, requires_grad=True)
    put = put_at(x, chosen, v)
    assert (put == tg.tensor(np.where(np.arange(6) // inner == 1, 1.0, np.arange(6.0)))).all()
    put.sum().backward()
    assert v.grad.reshape(-1, inner)[:, 0].tolist() == [0.0, 1.0, 0.0]
    assert add_at(tg.ones(*chosen.shape), chosen, (6,)).sum() == inner


def test_the_last_of_repeated_places_stays_and_alone_has_derivatives_of_both_orders() -> None:
    x = tg.zeros(4, requires_grad=True)
    v = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    z = put_at(x, places([1, 1, 0]), v)
    assert z.tolist() == [3.0, 2.0, 0.0, 0.0]
    first = tg.autograd.grad((z**3).sum(), (x, v), create_graph=True)
    assert [g.tolist() for g in first] == [[0.0] * 4, [0.0, 12.0, 27.0]]
    (second,) = tg.autograd.grad(first[1].sum(), v)
    assert second.tolist() == [0.0, 12.0, 18.0]


def test_float32_is_summed_in_float64_at_repeated_places() -> None:
    values = RNG.normal(size=10_000).astype(np.float32)
    at = Places(RNG.integers(0, 3, 10_000), 1, (10_000,))
    wanted = np.bincount(at.at, values, 3).astype(np.float32)
    assert np.array_equal(add_at(tg.tensor(values), at, (3,)).numpy(), wanted)
    found = increased_at(tg.zeros(3, dtype=tg.float32), at, tg.tensor(values), accumulating("IndexAddBackward0"))
    assert np.array_equal(found.numpy(), wanted)


def test_integers_beyond_float64_are_added_exactly() -> None:
    large = 2**53 + 1
    assert add_at(tg.tensor([large, 1]), places([0, 0]), (1,)).tolist() == [large + 1]


KEYS: dict[str, Any] = {
    "rows": ([2, 0, -1],),
    "columns": (slice(None), [3, 0, 0, -4]),
    "pairs": ([[0, 1]], [[2, -1]]),
    "stretched": ([[0], [1]], [2, -1]),
    "pairs behind": (slice(None), [0, 2], [1, -1]),
    "apart": ([0, 1], slice(None), [2, 0]),
    "mask": (np.array([True, False, True]),),
    "mask of two": (RNG.uniform(size=(3, 4)) > 0.5,),
    "mask behind": (slice(None), RNG.uniform(size=(4, 3)) > 0.5),
    "nothing": ([],),
    "no mask": (np.zeros(3, bool),),
}


@pytest.mark.parametrize("layout", ["plain", "transposed", "backwards"])
@pytest.mark.parametrize("key", KEYS)
def test_keys_select_write_and_add_as_in_numpy(key: str, layout: str) -> None:
    data = RNG.normal(size=(3, 4, 3))
    laid = {"plain": data, "transposed": np.asfortranarray(data), "backwards": data[::-1].copy()[::-1]}[layout]
    chosen = tuple(np.array(part, np.int64) if isinstance(part, list) else part for part in KEYS[key])
    x = tg.from_numpy(laid).requires_grad_()
    z = x[chosen]
    assert np.array_equal(z.detach().numpy(), data[chosen])
    weights = RNG.normal(size=z.shape)
    (z * tg.tensor(weights)).sum().backward()
    wanted = np.zeros(data.shape)
    np.add.at(wanted, chosen, weights)
    assert np.allclose(x.grad.numpy(), wanted, atol=1e-15)
    written, copy = tg.from_numpy(laid).clone(), data.copy()
    written[chosen] = tg.tensor(weights)
    copy[chosen] = weights
    assert np.array_equal(written.numpy(), copy)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 3)])
def test_an_index_beyond_the_end_is_refused_also_where_nothing_is_selected(shape: tuple[int, int]) -> None:
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 1 with size"):
        tg.zeros(*shape)[:, [5, 0]]
    with pytest.raises(IndexError, match="out of range"):
        tg.zeros(*shape).index_select(1, tg.tensor([5]))
    with pytest.raises(IndexError, match="out of range: tried to access index 6"):
        tg.zeros(*shape).take(tg.tensor([6]))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint8])
def test_the_first_of_an_order_are_those_of_the_whole_order(dtype: Any, largest: bool) -> None:
    data = RNG.integers(0, 5, (3, 40, 2)).astype(dtype)  # with many that are equal
    if data.dtype.kind == "f":
        data[0, 7, 0] = data[1, 3, 1] = data[1, 9, 1] = np.nan
    whole = tg.tensor(data).sort(1, descending=largest)
    for k in (1, 2, 16, 17, 40):
        values, indices = tg.tensor(data).topk(k, 1, largest)
        assert np.array_equal(values.numpy(), whole.values[:, :k].numpy(), equal_nan=data.dtype.kind == "f")
        assert np.array_equal(np.take_along_axis(data, indices.numpy(), 1), values.numpy(), equal_nan=data.dtype.kind == "f")
    if not largest:
        for k in (1, 16, 20, 25, 40):
            values, indices = tg.tensor(data).kthvalue(k, 1)
            assert np.array_equal(indices.numpy(), whole.indices[:, k - 1].numpy())


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangles_are_numpys(dtype: Any) -> None:
    data = RNG.integers(0, 2, (2, 3, 5)).astype(dtype)
    for offset in (-9, -3, -1, 0, 2, 5, 2**70):
        shown = max(min(offset, 9), -9)
        assert np.array_equal(tg.tril(tg.tensor(data), offset).numpy(), np.tril(data, shown))
        assert np.array_equal(tg.triu(tg.tensor(data), offset).numpy(), np.triu(data, shown))
