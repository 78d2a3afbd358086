"""Cases of operations that read and write at places given by indices and masks, and of those that find such places."""

from collections.abc import Callable
from typing import Any

import numpy as np
from operation_case import Case

import tapegrad as tg

RNG = np.random.default_rng(12)
VECTOR = RNG.permutation(6) / 2.0 + RNG.uniform(0.0, 0.2, 6)
MATRIX = RNG.permutation(12).reshape(3, 4) / 4.0 + RNG.uniform(0.0, 0.1, (3, 4))
SOURCE = RNG.normal(size=(3, 4))
MASK = np.array([[True, False, True, True], [False, False, True, False], [True, True, False, False]])
NUMBER = np.array(0.7)
ALONG = np.array([[0, 1, 2, 0], [1, 2, 0, 1]])  # for dimension 0, no place twice
TWICE = np.array([[0, 1, 1, 0], [0, 1, 2, 0], [2, 2, 1, 0]])
COUNTED = np.array([0, 2, 2, 5, 0, 2])


def write(a: np.ndarray, b: np.ndarray, index: np.ndarray, put: Callable[[float, float], float]) -> np.ndarray:
    """The definition of scatter along dimension 0."""
    result = a.copy()
    for i, j in np.ndindex(index.shape):
        result[index[i, j], j] = put(result[index[i, j], j], b[i, j])
    return result


def written(a: np.ndarray, key: Any, value: Any, add: bool = False) -> np.ndarray:
    result = a.copy()
    if add:
        np.add.at(result, key, value)
    else:
        result[key] = value
    return result


def of_flat(a: np.ndarray, index: Any, value: np.ndarray, add: bool) -> np.ndarray:
    return written(a.ravel(), index, value, add).reshape(a.shape)


def in_place(name: str, *args: Any) -> Callable[..., tg.Tensor]:
    """The in-place method, on a copy."""
    return lambda x, *tensors: getattr(x.clone(), name)(*args, *tensors)


def diagonal_filled(a: np.ndarray, wrap: bool = False) -> np.ndarray:
    """A copy with 2 on the diagonal."""
    result = np.array(a)
    np.fill_diagonal(result, 2.0, wrap)
    return result


I = tg.tensor
LIST = [2, 0, 2]


def reduced(a: np.ndarray, b: np.ndarray, index: np.ndarray, reduce: str, own: bool) -> np.ndarray:
    """The definition of scatter_reduce along dimension 0."""
    groups: dict[tuple[int, int], list[float]] = {}
    for i, j in np.ndindex(index.shape):
        groups.setdefault((index[i, j], j), []).append(b[i, j])
    result = a.copy()
    for place, values in groups.items():
        result[place] = getattr(np, reduce)([a[place], *values] if own else values)
    return result


CASES: list[Case] = [
    Case("gather", lambda x: tg.gather(x, 0, I(TWICE)), (MATRIX,), lambda a: np.take_along_axis(a, TWICE, 0)),
    Case(
        "take_along_dim",
        lambda x: tg.take_along_dim(x, I(TWICE - 2 * MATRIX.shape[0]), 0),
        (MATRIX,),
        lambda a: np.take_along_axis(a, TWICE, 0),
        "from the end",
    ),
    Case("take_along_dim", lambda x: tg.take_along_dim(x, I(TWICE), 0), (MATRIX,), lambda a: np.take_along_axis(a, TWICE, 0)),
    Case("index_select", lambda x: tg.index_select(x, 1, I(LIST)), (MATRIX,), lambda a: a[:, LIST]),
    Case("take", lambda x: tg.take(x, I([[0, -1], [5, 0]])), (MATRIX,), lambda a: np.take(a, [[0, -1], [5, 0]])),
    Case("masked_select", lambda x: tg.masked_select(x, I(MASK)), (MATRIX,), lambda a: a[MASK]),
    Case(
        "scatter",
        lambda x, y: tg.scatter(x, 0, I(ALONG), y),
        (MATRIX, SOURCE),
        lambda a, b: write(a, b, ALONG, lambda old, new: new),
    ),
    Case(
        "scatter",
        lambda x, y: tg.scatter(x, 0, I(TWICE), y),
        (MATRIX, SOURCE),
        lambda a, b: write(a, b, TWICE, lambda old, new: new),
        "repeated",
    ),
    Case(
        "scatter",
        lambda x: tg.scatter(x, 0, I(ALONG), 1.5),
        (MATRIX,),
        lambda a: write(a, np.full((3, 4), 1.5), ALONG, lambda old, new: new),
        "number",
    ),
    Case(
        "scatter",
        lambda x, y: tg.scatter(x, 0, I(TWICE), y, reduce="add"),
        (MATRIX, SOURCE),
        lambda a, b: write(a, b, TWICE, lambda old, new: old + new),
        "add",
    ),
    Case(
        "scatter_",
        in_place("scatter_", 0, I(ALONG)),
        (MATRIX, SOURCE),
        lambda a, b: write(a, b, ALONG, lambda old, new: new),
    ),
    Case(
        "scatter_add",
        lambda x, y: tg.scatter_add(x, 0, I(TWICE), y),
        (MATRIX, SOURCE),
        lambda a, b: write(a, b, TWICE, lambda old, new: old + new),
    ),
    Case(
        "scatter_add_",
        in_place("scatter_add_", 0, I(TWICE)),
        (MATRIX, SOURCE),
        lambda a, b: write(a, b, TWICE, lambda old, new: old + new),
    ),
    Case(
        "index_add",
        lambda x, y: tg.index_add(x, 0, I(LIST), y, alpha=1.5),
        (MATRIX, SOURCE),
        lambda a, b: written(a, LIST, 1.5 * b, add=True),
    ),
    Case("index_add_", in_place("index_add_", 0, I(LIST)), (MATRIX, SOURCE), lambda a, b: written(a, LIST, b, add=True)),
    Case("index_copy", lambda x, y: tg.index_copy(x, 0, I(LIST), y), (MATRIX, SOURCE), lambda a, b: written(a, LIST, b)),
    Case("index_copy_", in_place("index_copy_", 0, I(LIST)), (MATRIX, SOURCE), lambda a, b: written(a, LIST, b)),
    Case(
        "index_fill",
        lambda x, v: tg.index_fill(x, 1, I([0, -1]), v),
        (MATRIX, NUMBER),
        lambda a, v: written(a, (slice(None), [0, -1]), v),
    ),
    Case("index_fill_", in_place("index_fill_", 0, I([1])), (MATRIX, NUMBER), lambda a, v: written(a, 1, v)),
    Case(
        "index_put",
        lambda x, y: tg.index_put(x, (I([2, 0]), I([1, 1])), y),
        (MATRIX, SOURCE[0, :2]),
        lambda a, b: written(a, ([2, 0], [1, 1]), b),
    ),
    Case(
        "index_put",
        lambda x, y: tg.index_put(x, (I(LIST),), y, accumulate=True),
        (MATRIX, SOURCE[0]),
        lambda a, b: written(a, LIST, b, add=True),
        "accumulate",
    ),
    Case(
        "index_put_",
        lambda x, y: x.clone().index_put_((I(MASK),), y, accumulate=True),
        (MATRIX, NUMBER),
        lambda a, v: a + MASK * v,
    ),
    Case("masked_fill", lambda x, v: tg.masked_fill(x, I(MASK), v), (MATRIX, NUMBER), lambda a, v: np.where(MASK, v, a)),
    Case("fill_diagonal_", in_place("fill_diagonal_", 2.0), (MATRIX,), diagonal_filled),
    Case(
        "fill_diagonal_",
        lambda x: x.clone().T.fill_diagonal_(2.0, wrap=False),
        (MATRIX,),
        lambda a: diagonal_filled(a.T),
        "transposed",
    ),
    Case(
        "fill_diagonal_",
        lambda x: tg.cat([x, x]).clone().fill_diagonal_(2.0, wrap=True),
        (MATRIX[:, :1],),
        lambda a: diagonal_filled(np.concatenate([a, a]), wrap=True),
        "wrapped",
    ),
    Case("masked_fill_", in_place("masked_fill_", I(MASK)), (MATRIX, NUMBER), lambda a, v: np.where(MASK, v, a)),
    Case(
        "masked_scatter",
        lambda x, y: tg.masked_scatter(x, I(MASK), y),
        (MATRIX, SOURCE),
        lambda a, b: written(a, MASK, b.ravel()[: MASK.sum()]),
    ),
    Case(
        "masked_scatter_",
        in_place("masked_scatter_", I(MASK)),
        (MATRIX, SOURCE),
        lambda a, b: written(a, MASK, b.ravel()[: MASK.sum()]),
    ),
    Case("put", lambda x, y: tg.put(x, I([7, -1]), y), (MATRIX, SOURCE[0, :2]), lambda a, b: of_flat(a, [7, -1], b, False)),
    Case(
        "put",
        lambda x, y: tg.put(x, I([7, -1, 7]), y, accumulate=True),
        (MATRIX, SOURCE[0, :3]),
        lambda a, b: of_flat(a, [7, -1, 7], b, True),
        "accumulate",
    ),
    Case("put_", in_place("put_", I([7, -1])), (MATRIX, SOURCE[0, :2]), lambda a, b: of_flat(a, [7, -1], b, False)),
    Case("tril_", in_place("tril_"), (MATRIX,), np.tril),
    Case("triu_", in_place("triu_", 1), (MATRIX,), lambda a: np.triu(a, 1)),
    Case("sort", tg.sort, (MATRIX,), lambda a: (np.sort(a), np.argsort(a)), expands=False),
    Case(
        "sort",
        lambda x: x.sort(dim=0, descending=True, stable=True),
        (MATRIX,),
        lambda a: (-np.sort(-a, 0), np.argsort(-a, 0)),
        "descending",
        expands=False,
    ),
    Case("argsort", lambda x: tg.argsort(x, 0), (MATRIX,), lambda a: np.argsort(a, 0), order=0),
    Case("msort", tg.msort, (MATRIX,), lambda a: np.sort(a, 0), expands=False),
    Case("topk", lambda x: tg.topk(x, 2), (MATRIX,), lambda a: (-np.sort(-a)[:, :2], np.argsort(-a)[:, :2]), expands=False),
    Case(
        "topk",
        lambda x: x.topk(2, 0, largest=False),
        (MATRIX,),
        lambda a: (np.sort(a, 0)[:2], np.argsort(a, 0)[:2]),
        "smallest",
        expands=False,
    ),
    Case("kthvalue", lambda x: tg.kthvalue(x, 2), (MATRIX,), lambda a: (np.sort(a)[:, 1], np.argsort(a)[:, 1]), expands=False),
    Case(
        "kthvalue",
        lambda x: x.kthvalue(3, 0, keepdim=True),
        (MATRIX,),
        lambda a: (np.sort(a, 0)[2:], np.argsort(a, 0)[2:]),
        "keepdim",
        expands=False,
    ),
    Case(
        "bincount",
        lambda w: tg.bincount(I(COUNTED), w, minlength=7),
        (VECTOR,),
        lambda w: np.bincount(COUNTED, w, 7),
    ),
    Case("bincount", lambda n: tg.bincount(n), (COUNTED,), lambda n: np.bincount(n), "numbers", order=0),
    Case("one_hot", lambda n: tg.nn.functional.one_hot(n, 7), (COUNTED,), lambda n: np.eye(7, dtype=int)[n], order=0),
    Case("nonzero", lambda x: tg.nonzero(x > 1.0), (MATRIX,), lambda a: np.argwhere(a > 1.0), order=0),
    Case("nonzero", lambda x: tg.nonzero(x > 1.0, as_tuple=True), (MATRIX,), lambda a: np.nonzero(a > 1.0), "as_tuple", order=0),
    Case("argwhere", lambda x: tg.argwhere(x > 1.0), (MATRIX,), lambda a: np.argwhere(a > 1.0), order=0),
    Case("where", lambda x: tg.where(x > 1.0), (MATRIX,), lambda a: np.nonzero(a > 1.0), "one argument", order=0),
    Case("isin", lambda x: tg.isin(x, x[0]), (MATRIX,), lambda a: np.isin(a, a[0]), order=0),
    Case("searchsorted", lambda x: tg.searchsorted(x.sort()[0], x), (VECTOR,), lambda a: np.argsort(np.argsort(a)), order=0),
    Case(
        "searchsorted",
        lambda x: tg.searchsorted(tg.sort(x)[0], x, right=True),
        (MATRIX,),
        lambda a: np.argsort(np.argsort(a)) + 1,
        "rows",
        order=0,
        expands=False,
    ),
    Case(
        "bucketize",
        lambda x: tg.bucketize(x, I([0.5, 1.0, 2.0])),
        (MATRIX,),
        lambda a: (a > 0.5).astype(int) + (a > 1.0) + (a > 2.0),
        order=0,
    ),
    *(
        Case(
            "scatter_reduce",
            lambda x, y, i, reduce=reduce, own=own: tg.scatter_reduce(x, 0, i, y, reduce, include_self=own),
            (MATRIX, SOURCE, TWICE),
            lambda a, b, i, reduce=reduce, own=own: reduced(a, b, i, reduce, own),
            f"{reduce} {own}",
        )
        for reduce in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    ),
    *(
        Case(
            "index_reduce",
            lambda x, y, reduce=reduce: tg.index_reduce(x, 1, tg.tensor([1, 3, 1, 1]), y, reduce),
            (MATRIX, SOURCE),
            lambda a, b, reduce=reduce: reduced(a.T, b.T, np.repeat([[1], [3], [1], [1]], 3, 1), reduce, True).T,
            reduce,
        )
        for reduce in ("prod", "mean", "amax", "amin")
    ),
]
