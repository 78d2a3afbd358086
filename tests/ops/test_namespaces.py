"""What the plain pass writes derivatives with has the values of the operations themselves, bit for bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.flat_places import Places
from tapegrad.ops.namespaces import PLACES, PLAIN, TENSORS

RNG = np.random.default_rng(3)


def t(*shape: int) -> tg.Tensor:
    return tg.tensor(RNG.normal(size=shape))


NUMBER, POINT, V, W, M, N = t(), t(1), t(3), t(4), t(3, 4), t(4, 2)
SQUARE, SQUARES = t(3, 3), t(2, 4, 4)
STACK, OTHER, ONES, EMPTY = t(2, 3, 4), t(2, 4, 3), t(1, 4), tg.zeros(0, 4)
INFINITE = tg.tensor([[np.inf, -np.inf, np.nan, 1.0]])
PAIRS, ROWS, ZERO_PAIRS, OTHER_ROWS = t(5, 3), t(5, 4), tg.tensor([[0.0], [1.0], [2.0], [0.5], [3.0]]), t(3, 4)
# Large ones, as compiled loops take them, with numbers that are not finite; and one number, stretched as a cotangent may be.
BIG, OF_BIG = (
    t(40, 60),
    tg.tensor(np.where(RNG.random((40, 60)) < 0.01, [[np.nan], [np.inf], [-np.inf], [0.0]] * 10, RNG.normal(size=(40, 60)))),
)
STRETCHED = tg.tensor(1.5).expand(40, 60)
WIDE_ROW, LARGER = t(60), t(200, 70)
AT = tg.tensor(RNG.integers(0, 40, (40, 60)))
COLUMNS, OTHER_COLUMNS = t(2, 60, 1), tg.tensor(np.where(RNG.random((2, 60, 1)) < 0.1, [[[np.inf]], [[-0.0]]], 1.5))
BOTH = (True, True)
Call = Callable[[Any], tg.Tensor]


def columns_or_rows(columns: bool) -> tuple[tg.Tensor, tg.Tensor]:
    return (COLUMNS, OTHER_COLUMNS) if columns else (COLUMNS.mT, OTHER_COLUMNS.mT)


VIEWS: list[Callable[[Any], Any]] = [
    lambda a: a[1:, ::2],
    lambda a: a[2],
    lambda a: a.reshape(4, 3)[0],
    lambda a: a.T.reshape(-1)[2:5],  # a copy in memory of this order
    lambda a: a[:0],
]
SHAPES = ((2, 3), (), (1, 5))

SOME_PLACES = np.array([3, 5, 900]), np.array([5, 3, 5]), np.array([-1, 5, 9])
HALVES = ((slice(20),), (slice(20, 40),)), ((slice(40), slice(30)), (slice(40), slice(30, 60)))
PLACES_OF_ROWS = Places(np.array([2, 0, 2, -1]), 4, (4, 4))
OBLONG, SMALL_FACTORS = t(3, 4), tg.tensor(np.eye(3) + 0.3 * RNG.normal(size=(3, 3)))
TWO_ROWS = t(2, 4)
TIED, NOT_NUMBERS = (
    tg.tensor([[2.0, 1.0, 2.0, -2.0], [2.0, 0.0, 1.0, 1.0], [1.0, 1.0, -1.0, 1.0]]),
    tg.tensor([1.0, np.nan, np.nan]),
)
ROUNDED = {"factored_cotangent", "weighted_differences"}  # what is computed in another order, or fused, to the last digits

CALLS: dict[str, list[Call]] = {
    "add_at": [lambda on: on.add_at(on.cat([M, ONES], 0), PLACES_OF_ROWS, (3, 4))],
    "between_eigenvectors": [
        lambda on: on.between_eigenvectors(SQUARE, tg.tensor([1.0, 2.0, 3.0]), tg.tensor([1.0, 1.0, 2.0])),
        lambda on: on.between_eigenvectors(SQUARES, TWO_ROWS, tg.tensor([[0.5, 1.0, 2.0, 2.5], [1.0, 2.0, 3.0, 4.0]])),
    ],
    "between_singular_vectors": [
        lambda on: on.between_singular_vectors(SQUARE, SQUARE, tg.tensor([1.0, 2.0, 3.0]), tg.tensor([1 / 3, 1 / 3, 2.0])),
        lambda on: on.between_singular_vectors(SQUARES, on.mT(SQUARES), TWO_ROWS, tg.tensor([[4.0, 3.0, 2.0, 0.5]] * 2)),
    ],
    "column": [lambda on: on.column(NUMBER) * SQUARE, lambda on: on.column(V), lambda on: on.column(M)],
    "divided_twice": [
        lambda on: on.divided_twice(M, W),
        lambda on: on.divided_twice(NUMBER, M),
        lambda on: on.divided_twice(BIG, OF_BIG),
        lambda on: on.divided_twice(WIDE_ROW, OF_BIG),
        lambda on: on.divided_twice(OF_BIG, WIDE_ROW),
        lambda on: on.divided_twice(LARGER, LARGER[0]),
    ],
    "eye_times": [lambda on: on.eye_times(NUMBER, 3, 4), lambda on: on.eye_times(on.sum(INFINITE, (0, 1)), 4, 2)],
    "factored_cotangent": [
        lambda on: on.factored_cotangent(SQUARE, SMALL_FACTORS, np.array([1, 0, 2])),
        lambda on: on.factored_cotangent(OBLONG, tg.cat([SMALL_FACTORS, SQUARE[:, :1]], 1), np.array([1, 2, 0])),
        lambda on: on.factored_cotangent(OBLONG.t(), tg.cat([SMALL_FACTORS, SQUARE[:1]]), np.array([3, 2, 0, 1])),
    ],
    "mirrored": [lambda on: on.mirrored(SQUARE), lambda on: on.mirrored(SQUARES), lambda on: on.mirrored(on.mT(SQUARES))],
    "put_at": [lambda on: on.put_at(M, PLACES_OF_ROWS, W), lambda on: on.put_at(M.t(), PLACES_OF_ROWS._replace(inner=3), NUMBER)],
    "shared_evenly": [
        lambda on: on.shared_evenly(NUMBER, TIED, tg.tensor(2.0), (0, 1), False, (3, 4)),
        lambda on: on.shared_evenly(W, TIED, tg.tensor([2.0, 1.0, 2.0, 1.0]), (0,), False, (3, 4)),
        lambda on: on.shared_evenly(on.unsqueeze(V, 1), TIED, tg.tensor([[2.0], [2.0], [1.0]]), (1,), True, (3, 4)),
        lambda on: on.shared_evenly(NUMBER, NOT_NUMBERS, tg.tensor(np.nan), (0,), False, (3,)),
        lambda on: on.shared_evenly(0.0 * NUMBER, TIED, tg.tensor(2.0), (0, 1), False, (3, 4)),
        lambda on: on.shared_evenly(V, on.mT(TIED), tg.tensor([2.0, 2.0, 1.0]), (0,), False, (4, 3)),
        lambda on: on.shared_evenly(V, STACK, tg.amax(STACK, (0, 2)), (0, 2), False, (2, 3, 4)),
    ],
    "shared_magnitudes": [
        lambda on: on.shared_magnitudes(NUMBER, -TIED, tg.tensor(2.0), (0, 1), False, (3, 4)),
        lambda on: on.shared_magnitudes(W, TIED, tg.tensor([2.0, 1.0, 2.0, 1.0]), (0,), False, (3, 4)),
        lambda on: on.shared_magnitudes(NUMBER, 0.0 * TIED, tg.tensor(0.0), (0, 1), False, (3, 4)),
        lambda on: on.shared_magnitudes(NUMBER, NOT_NUMBERS, tg.tensor(np.nan), (0,), False, (3,)),
    ],
    "take_at": [
        lambda on: on.take_at(M, PLACES_OF_ROWS),
        lambda on: on.take_at(NUMBER, Places(np.array([0, 0]), 1, (2,))),
        *(lambda on, at=at: on.take_at(STRETCHED, Places(at, 1, (3,))) for at in SOME_PLACES),
    ],
    "take_last": [
        *(lambda on, x=x: on.take_last(x, PLACES_OF_ROWS) for x in (M, tg.tensor(1.5).expand(3, 4))),
        *(lambda on, x=x, at=at: on.take_last(x, Places(at, 1, (3,))) for x in (BIG, STRETCHED) for at in SOME_PLACES),
    ],
    "aligned": [
        lambda on: on.aligned(M, (0, 1), (1, 0)),
        lambda on: on.aligned(STACK, (4, 2, 7), (2, 5, 7, 4, 6)),
        lambda on: on.aligned(V, (3,), (1, 3)),
        lambda on: on.aligned(NUMBER, (), (0, 1)),
        lambda on: on.aligned(NUMBER, (), ()),
    ],
    "cat": [lambda on: on.cat([M, M], 0), lambda on: on.cat([STACK, on.getitem(STACK, (..., slice(1)))], 2)],
    "diagonal_matrix": [lambda on: on.diagonal_matrix(V), lambda on: on.diagonal_matrix(M)],
    "gate_cotangent": [
        *(
            lambda on, g=g, x=x, halves=halves: on.gate_cotangent(g[halves[0]], BIG[halves[1]], x, halves)
            for halves in HALVES for x in (BIG, OF_BIG, BIG.t().reshape(60, 40).t()) for g in (BIG, OF_BIG, STRETCHED)
        ),
        lambda on: on.gate_cotangent(V, W[:3], on.cat([V, V], 0), ((slice(3),), (slice(3, 6),))),
    ],
    "getitem": [lambda on: on.getitem(M, (..., slice(None, 2))), lambda on: on.getitem(STACK, (slice(None), slice(1, None)))],
    "identity_beside": [lambda on: on.identity_beside(V), lambda on: on.identity_beside(EMPTY)],
    "limited_differences": [
        lambda on, k=k, g=g, y=y, bound=bound: on.limited_differences(g, BIG, y, 0.7, bound, 0.25, BOTH)[k]
        for k in range(2) for g in (NUMBER, OF_BIG, STRETCHED) for y in (OF_BIG, tg.zeros(60)) for bound in (np.inf, 0.5)
    ],
    "product_to": [
        lambda on: on.product_to(M, M, (4,)),
        lambda on: on.product_to(NUMBER, NUMBER, ()),
        lambda on: on.product_to(STRETCHED, BIG, (60,)),
        lambda on: on.product_to(STRETCHED, OF_BIG, (60,)),
        lambda on: on.product_to(0.0 * STRETCHED, OF_BIG, (60,)),
        lambda on: on.product_to(STRETCHED, BIG, (40, 60)),
        lambda on: on.product_to(STRETCHED, BIG, (40, 1)),
        lambda on: on.product_to(STRETCHED, BIG.T.reshape(60, 40).T, (60,)),
        lambda on: on.product_to(BIG, OF_BIG, (60,)),
    ],
    "put_along": [
        lambda on: on.put_along(BIG, 0, AT, (40, 60)),
        lambda on: on.put_along(STRETCHED, 1, AT, (40, 60)),
        lambda on: on.put_along(M, 0, tg.tensor([[0, 1, 2, 0]] * 3), (3, 4)),
    ],
    "shares_back": [
        *(
            lambda on, k=k, g=g, log=log: on.shares_back(g, BIG, (k,), log)
            for k in range(2) for g in (OF_BIG, STRETCHED) for log in (False, True)
        ),
        lambda on: on.shares_back(BIG, OF_BIG, (0,), False),
        lambda on: on.shares_back(M, M, (1,), True),
    ],
    "mT": [lambda on: on.mT(M), lambda on: on.mT(STACK), lambda on: on.mT(EMPTY)],
    "matmul": [
        lambda on: on.matmul(V, V),
        lambda on: on.matmul(M, W),
        lambda on: on.matmul(V, M),
        lambda on: on.matmul(M, N),
        lambda on: on.matmul(on.mT(N), W),
        lambda on: on.matmul(STACK, OTHER),
        lambda on: on.matmul(STACK, N),
        lambda on: on.matmul(EMPTY, N),
        lambda on: on.matmul(INFINITE, W),
    ],
    "matrix_cotangent": [
        lambda on: on.matrix_cotangent(M, N.t()),
        lambda on: on.matrix_cotangent(M, M, left=False),
        lambda on: on.matrix_cotangent(BIG, OF_BIG),
        lambda on: on.matrix_cotangent(BIG, OF_BIG, left=False),
        *(lambda on, left=left: on.matrix_cotangent(*columns_or_rows(left), left=left) for left in (False, True)),
    ],
    "mean": [lambda on: on.mean(M, (0,)), lambda on: on.mean(M, (0, 1), True), lambda on: on.mean(NUMBER, ())],
    "off_diagonal": [lambda on: on.off_diagonal(SQUARE), lambda on: on.off_diagonal(SQUARES)],
    "outer": [lambda on: on.outer(V, W)],
    "part_of": [*(lambda on, v=v: on.part_of(M, v) for v in VIEWS), lambda on: on.part_of(NUMBER, lambda a: a[...])],
    "pieces": [lambda on, k=k: on.pieces(on.reshape(M, (12,)), SHAPES)[k] for k in range(3)],
    "reshape": [lambda on: on.reshape(M, (2, 6)), lambda on: on.reshape(NUMBER, (1, 1)), lambda on: on.reshape(POINT, ())],
    "reshape_copy": [
        lambda on: on.reshape_copy(M, "ViewBackward0", M.numpy().reshape(2, 6)),
        lambda on: on.reshape_copy(NUMBER, "ViewBackward0", np.full((1, 1), NUMBER._data)),
    ],
    "restore": [
        lambda on: on.restore(V, (1,), False, (3, 4)),
        lambda on: on.restore(W, (0,), False, (3, 4)),
        lambda on: on.restore(NUMBER, (0, 1), False, (3, 4)),
        lambda on: on.restore(ONES, (0,), True, (3, 4)),
    ],
    "solve_cotangent": [
        lambda on: on.solve_cotangent(SQUARE, M),
        lambda on: on.solve_cotangent(SQUARE, V, True),
        lambda on: on.solve_cotangent(SQUARES, STACK, left=False),
    ],
    "sum": [lambda on: on.sum(M, (1,), True), lambda on: on.sum(M, (0, 1)), lambda on: on.sum(INFINITE, (1,))],
    "sum_to": [
        lambda on: on.sum_to(M, (4,)),
        lambda on: on.sum_to(M, (3, 1)),
        lambda on: on.sum_to(STACK, ()),
        lambda on: on.sum_to(STACK, (1, 4)),
        lambda on: on.sum_to(M, (3, 4)),
        lambda on: on.sum_to(NUMBER, ()),
    ],
    "tall": [lambda on: on.tall(STACK), lambda on: on.tall(M), lambda on: on.tall(tg.zeros(2, 3, 0)), lambda on: on.tall(V)],
    "times": [
        lambda on: on.times(M, 1),
        lambda on: on.times(M, -0.3),
        lambda on: on.times(NUMBER, 2.5),
        lambda on: on.times(STRETCHED, -0.3),
    ],
    "triangle": [
        lambda on: on.triangle(SQUARE, True),
        lambda on: on.triangle(SQUARES, False, True),
        lambda on: on.triangle(M, False),
    ],
    "triangle_cotangent": [
        *(
            lambda on, g=g, x=x, left=left, upper=upper, unit=unit: on.triangle_cotangent(g, x, upper, left, unit)
            for upper in (False, True) for unit in (False, True)
            for left, g, x in ((True, SQUARE, SQUARE.t()), (True, BIG.t(), OF_BIG.t()), (False, BIG, OF_BIG),
                               *((left, *columns_or_rows(left)) for left in (False, True)))
        ),
    ],
    "triangular_cotangent": [
        lambda on: on.triangular_cotangent(SQUARE, M, upper=True),
        lambda on: on.triangular_cotangent(SQUARES, STACK, upper=False, left=False),
        lambda on: on.triangular_cotangent(SQUARE, M, upper=False, unit=True),
    ],
    "unsqueeze": [lambda on: on.unsqueeze(M, 0), lambda on: on.unsqueeze(M, -1), lambda on: on.unsqueeze(V, -2)],
    "weighted_differences": [
        *(lambda on, p=p: on.weighted_differences(PAIRS, ROWS, M, p) for p in (1.0, 2.0)),
        *(lambda on, p=p: on.weighted_differences(ZERO_PAIRS, ROWS, INFINITE, p) for p in (1.0, 2.0)),
        lambda on: on.weighted_differences(OTHER, SQUARES, OTHER_ROWS, 2.0),
    ],
    "where": [lambda on: on.where(M > 0, 0.0, M), lambda on: on.where(M > 0, M, W), lambda on: on.where(NUMBER > 9, 0.0, NUMBER)],
    "without_part": [*(lambda on, v=v: on.without_part(M, v) for v in VIEWS), lambda on: on.without_part(NUMBER, lambda a: a[...])],
}  # fmt: skip


def test_every_operation_is_compared() -> None:
    assert set(CALLS) == set(PLACES) >= {name for name in dir(type(PLAIN)) if not name.startswith("_")}


@pytest.mark.parametrize("dtype", [tg.float64, tg.float32], ids=["float64", "float32"])
@pytest.mark.parametrize(("name", "call"), [(name, call) for name, calls in CALLS.items() for call in calls])
def test_the_plain_form_has_the_bits_of_the_operation(name: str, call: Call, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in ("NUMBER", "POINT", "V", "W", "M", "N", "STACK", "OTHER", "ONES", "EMPTY", "INFINITE"):
        monkeypatch.setitem(globals(), each, globals()[each].to(dtype))
    plain, general = call(PLAIN), call(TENSORS)
    assert (plain.shape, plain.dtype) == (general.shape, general.dtype)
    if name in ROUNDED:
        np.testing.assert_allclose(plain.numpy(), general.numpy(), rtol=1e-12 if dtype is tg.float64 else 1e-4)
    else:
        np.testing.assert_array_equal(plain.numpy(), general.numpy())
