"""Reductions, scans and normalisations: values against NumPy, derivatives against differences, ties, zeros, errors."""

import math
import re
from typing import Any

import numpy as np
import pytest
from engine_fixtures import leaf
from many_cases import each
from numerical import check_gradients

import tapegrad as tg

RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(3, 4))
CUBE = RNG.normal(size=(2, 3, 4))
VECTOR = RNG.normal(size=5)
STRIDED = RNG.normal(size=(4, 3)).T[:, ::2]
EMPTY = np.zeros((0, 3))
POINTS = {"matrix": MATRIX, "cube": CUBE, "vector": VECTOR, "strided": STRIDED, "number": np.array(0.7)}
INF = float("inf")

NUMPY: dict[str, Any] = {
    "sum": np.sum,
    "mean": np.mean,
    "amax": np.max,
    "amin": np.min,
    "var": lambda a, axis, keepdims: np.var(a, axis=axis, keepdims=keepdims, ddof=1),
    "std": lambda a, axis, keepdims: np.std(a, axis=axis, keepdims=keepdims, ddof=1),
    "logsumexp": lambda a, axis, keepdims: np.log(np.sum(np.exp(a), axis=axis, keepdims=keepdims)),
    "norm": lambda a, axis, keepdims: np.sqrt(np.sum(a * a, axis=axis, keepdims=keepdims)),
}
DIMS = [0, -1, 1, (0, 1), (1, 0), (-1,), [0]]


def reduce(name: str, x: tg.Tensor, dim: Any, keepdim: bool) -> tg.Tensor:
    return getattr(tg, name)(x, dim=dim, keepdim=keepdim)


@each("keepdim", [False, True])
@each("dim", DIMS, ids=str)
@each("name", NUMPY)
def test_reduction_along_dimensions_equals_numpy(name: str, dim: Any, keepdim: bool) -> None:
    axis = tuple(dim) if isinstance(dim, (tuple, list)) else dim
    expected = NUMPY[name](CUBE, axis=axis, keepdims=keepdim)
    got = reduce(name, tg.tensor(CUBE), dim, keepdim)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12)


@each("point", ["matrix", "cube", "vector", "strided"])
@each("name", [name for name in NUMPY if name != "logsumexp"])
def test_reduction_of_everything_equals_numpy(name: str, point: str) -> None:
    expected = NUMPY[name](POINTS[point], axis=None, keepdims=False)
    np.testing.assert_allclose(getattr(tg, name)(tg.tensor(POINTS[point])).item(), expected, rtol=1e-12)


@each("name", ["sum", "mean", "prod", "max", "min", "amax", "amin", "norm"])
def test_reduction_of_a_number_is_the_number(name: str) -> None:
    assert getattr(tg, name)(tg.tensor(0.75)).item() == 0.75


@each("dim", [None, 0, -1, (0, 1)], ids=str)
@each("name", NUMPY)
def test_reduction_derivatives(name: str, dim: Any) -> None:
    if name == "logsumexp" and dim is None:
        dim = (0, 1)
    check_gradients(lambda x: reduce(name, x, dim, False), MATRIX)


@each("point", ["vector", "strided", "number", "cube"])
@each("name", ["sum", "mean", "prod", "amax", "norm"])
def test_reduction_derivatives_at_other_layouts(name: str, point: str) -> None:
    check_gradients(getattr(tg, name), POINTS[point])


@each("name", ["sum", "mean", "amax", "var", "norm", "logsumexp"])
def test_reduction_derivatives_with_kept_dimensions(name: str) -> None:
    check_gradients(lambda x: reduce(name, x, 1, True) * x, MATRIX)


@each("name", ["sum", "mean", "prod", "amax", "var", "std", "norm", "cumsum", "cumprod", "softmax"])
def test_float32_stays_float32(name: str) -> None:
    x = leaf(MATRIX.astype(np.float32))
    z = getattr(tg, name)(x, 0)
    z.sum().backward()
    assert (z.dtype, x.grad.dtype) == (np.float32, np.float32)


@each("dtype", [np.bool_, np.uint8, np.int8, np.int32, np.int64])
@each("name", ["sum", "prod", "cumsum", "cumprod"])
def test_integers_accumulate_as_int64(name: str, dtype: Any) -> None:
    values = np.array([1, 0, 1, 1]).astype(dtype)
    got = getattr(tg, name)(tg.tensor(values), 0)
    assert got.dtype == np.int64
    np.testing.assert_array_equal(got.numpy(), getattr(np, name)(values.astype(np.int64), axis=0))


@each("name", ["sum", "mean", "prod", "cumsum", "cumprod", "softmax", "log_softmax"])
def test_dtype_argument_casts_first(name: str) -> None:
    x = leaf(MATRIX)
    z = getattr(tg, name)(x, 0, dtype=tg.float32)
    (z * z).sum().backward()
    assert (z.dtype, x.grad.dtype) == (np.float32, np.float64)


@each(("name", "value"), [("sum", 0.0), ("mean", np.nan), ("prod", 1.0), ("norm", 0.0)])
def test_reduction_of_nothing(name: str, value: float) -> None:
    x = leaf(np.zeros(0))
    z = getattr(tg, name)(x)
    z.backward()
    np.testing.assert_equal((z.item(), x.grad.shape), (value, (0,)))


@each(("name", "dim", "shape"), [("sum", 0, (3,)), ("sum", 1, (0,)), ("amax", 1, (0,)), ("prod", 0, (3,))])
def test_reduction_of_an_empty_matrix_has_the_remaining_shape(name: str, dim: int, shape: tuple[int, ...]) -> None:
    assert getattr(tg, name)(tg.tensor(EMPTY), dim).shape == shape


def test_empty_tuple_of_dimensions_means_all() -> None:
    assert tg.sum(tg.tensor(MATRIX), ()).shape == ()


@each(("name", "expected"), [("any", [True, True, False]), ("all", [True, False, False])])
def test_logical_reductions(name: str, expected: list[bool]) -> None:
    x = tg.tensor([[1.0, 2.0], [0.0, 3.0], [0.0, 0.0]])
    got = getattr(tg, name)(x, 1)
    assert got.dtype == np.bool_
    assert got.numpy().tolist() == expected


@each(
    ("f", "name"),
    [
        (lambda x: x.sum(), "SumBackward0"),
        (lambda x: x.sum(0), "SumBackward1"),
        (lambda x: x.mean(), "MeanBackward0"),
        (lambda x: x.mean(0), "MeanBackward1"),
        (lambda x: x.prod(), "ProdBackward0"),
        (lambda x: x.prod(0), "ProdBackward1"),
        (lambda x: x.max(), "MaxBackward1"),
        (lambda x: x.max(0).values, "MaxBackward0"),
        (lambda x: x.amin(0), "AminBackward0"),
        (lambda x: x.var(), "VarBackward0"),
        (lambda x: x.std(), "StdBackward0"),
        (lambda x: x.norm(), "LinalgVectorNormBackward0"),
        (lambda x: x.logsumexp(0), "LogsumexpBackward0"),
        (lambda x: x.softmax(0), "SoftmaxBackward0"),
        (lambda x: x.log_softmax(0), "LogSoftmaxBackward0"),
        (lambda x: x.cumsum(0), "CumsumBackward0"),
        (lambda x: x.cumprod(0), "CumprodBackward0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_node_names_are_those_of_pytorch(f: Any, name: str) -> None:
    assert f(leaf(MATRIX)).grad_fn.name() == name


@each(
    ("f", "error", "message"),
    [
        (lambda: tg.sum(tg.tensor([1.0]), 2), IndexError, "Dimension out of range (expected to be in range of [-1, 0]"),
        (lambda: tg.sum(tg.tensor([1.0]), (0, 0)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
        (lambda: tg.mean(tg.tensor([1, 2])), RuntimeError, "could not infer output dtype"),
        (lambda: tg.mean(tg.tensor([1, 2])), RuntimeError, "Got: Long"),
        (lambda: tg.var(tg.tensor([1, 2])), RuntimeError, "std and var only support floating point"),
        (lambda: tg.norm(tg.tensor([1, 2])), RuntimeError, "Expected a floating point"),
        (lambda: tg.norm(tg.tensor([1.0]), "nuc"), RuntimeError, "must have at least 2 dimensions"),
        (lambda: tg.norm(tg.zeros(0), INF), RuntimeError, "does not have an identity"),
        (lambda: tg.max(tg.zeros(0)), RuntimeError, "Expected reduction dim to be specified for input.numel() == 0"),
        (lambda: tg.max(tg.zeros(0), 0), IndexError, "Expected reduction dim 0 to have non-zero size"),
        (lambda: tg.amax(tg.zeros(0, 3), 0), IndexError, "Expected reduction dim 0 to have non-zero size"),
        (lambda: tg.argmin(tg.zeros(0)), IndexError, "Expected reduction dim to be specified"),
        (lambda: tg.argmax(tg.tensor([True])), RuntimeError, "does not support bool input"),
        (lambda: tg.softmax(tg.tensor([1, 2]), 0), NotImplementedError, "not implemented for 'Long'"),
        (lambda: tg.cumsum(tg.tensor([1.0]), 1), IndexError, "Dimension out of range"),
        (lambda: tg.var(tg.tensor([1.0, 2.0]), 0, True, correction=1), TypeError, "either unbiased or correction"),
    ],
)
def test_errors_name_what_is_wrong(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        f()


@each("name", ["sum", "mean", "prod", "max", "var", "norm"])
def test_untracked_tensors_record_nothing(name: str) -> None:
    assert not getattr(tg, name)(tg.tensor(MATRIX)).requires_grad


@each("name", ["prod", "logsumexp", "var", "norm", "cumprod", "softmax", "log_softmax", "amax"])
def test_a_masked_branch_cannot_poison_the_gradient(name: str) -> None:
    x = leaf([1.0, INF])
    bad = getattr(tg, name)(x, 0).sum()
    tg.where(tg.tensor(False), bad, x[0]).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 0.0])


@each("shape", [(1 << 15,), (1 << 16, 3), (33_333,), (5, 100, 100)])
@each(("kind", "tolerance"), [(np.float64, 1e-14), (np.float32, 1e-5)])
def test_total_of_many_elements_is_accurate(shape: tuple[int, ...], kind: Any, tolerance: float) -> None:
    values = RNG.uniform(size=shape).astype(kind)
    exact = math.fsum(values.ravel())
    assert tg.tensor(values).sum().dtype == kind
    np.testing.assert_allclose(tg.tensor(values).sum().item(), exact, rtol=tolerance)
    np.testing.assert_allclose(tg.tensor(values).mean().item(), exact / values.size, rtol=tolerance)
    np.testing.assert_allclose(tg.tensor(values).T.sum().item() if len(shape) == 2 else exact, exact, rtol=tolerance)


@each(("at", "expected"), [((0.0, INF), INF), ((INF, INF), INF), ((INF, -INF), np.nan), ((np.nan, 0.0), np.nan)])
def test_total_of_many_elements_keeps_infinities(at: tuple[float, float], expected: float) -> None:
    values = np.zeros(40_000)
    values[3], values[-3] = at
    np.testing.assert_equal(tg.tensor(values).sum().item(), expected)


@pytest.mark.parametrize("dtype", [tg.bool, tg.uint8, tg.int8, tg.int32, tg.int64, tg.float32])
@pytest.mark.parametrize("dim", [None, 0])
@pytest.mark.parametrize("reduce", [tg.sum, tg.prod])
def test_reduction_has_the_dtype_that_is_asked_for(reduce, dim, dtype):
    by_numpy = {tg.sum: np.sum, tg.prod: np.prod}[reduce](np.array([2, 3]).astype(dtype), dtype=dtype)
    for x in (tg.tensor([2, 3]), tg.tensor([2.0, 3.0])):
        found = reduce(x, dtype=dtype) if dim is None else reduce(x, dim, dtype=dtype)
        assert found.dtype == dtype and found.item() == by_numpy.item()


def test_sum_in_a_narrow_dtype_wraps_around():
    assert tg.tensor([200, 100]).sum(dtype=tg.uint8).item() == 44


@pytest.mark.parametrize("mode", ["trunc", "floor"])
def test_rounded_quotient_by_a_number_keeps_the_dtype(mode):
    for x in (tg.tensor(7.5, dtype=tg.float32), tg.tensor([7.5], dtype=tg.float32)):
        assert tg.div(x, -2.0, rounding_mode=mode).dtype == tg.float32


def test_multivariate_gamma_function_of_integers_has_the_default_dtype():
    before = tg.get_default_dtype()
    tg.set_default_dtype(tg.float32)
    try:
        assert tg.mvlgamma(tg.tensor([3]), 2).dtype == tg.float32
    finally:
        tg.set_default_dtype(before)
