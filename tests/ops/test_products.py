"""Matrix products: values against NumPy for all pairs of ranks, derivatives against differences, names, errors."""

import re
from typing import Any

import numpy as np
import pytest
from numerical import check_gradients

import tapegrad as tg
from tapegrad.ops.affine import linear

RNG = np.random.default_rng(1)


def array(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def leaf(*shape: int) -> tg.Tensor:
    return tg.tensor(array(*shape), requires_grad=True)


SHAPES = [
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((3,), (3, 4)),
    ((3, 4), (4, 2)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 3)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 3)),
    ((2, 3, 4), (2, 4, 3)),
    ((1, 3, 4), (2, 4, 3)),
    ((2, 1, 2, 3), (4, 3, 2)),
    ((2, 2, 3, 2), (2,)),
]
EMPTY = [((0, 3), (3, 2)), ((2, 0), (0, 3)), ((0,), (0,)), ((2, 0, 3), (3, 4)), ((2, 3, 0), (0, 4)), ((0, 2, 3), (3,))]


@pytest.mark.parametrize(("a", "b"), SHAPES + EMPTY, ids=str)
def test_matmul_equals_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = array(*a), array(*b)
    got = tg.tensor(x) @ tg.tensor(y)
    assert got.shape == (x @ y).shape
    np.testing.assert_allclose(got.numpy(), x @ y, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
def test_matmul_derivatives(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check_gradients(tg.matmul, array(*a), array(*b))


@pytest.mark.parametrize(("a", "b"), EMPTY, ids=str)
def test_matmul_gradients_of_empty_operands_have_their_shape(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = leaf(*a), leaf(*b)
    (x @ y).sum().backward()
    assert (x.grad.shape, y.grad.shape) == (a, b)


@pytest.mark.parametrize("transposed", [(True, False), (False, True), (True, True)], ids=str)
def test_matmul_derivatives_of_transposed_operands(transposed: tuple[bool, bool]) -> None:
    def product(x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
        return (x.T if transposed[0] else x) @ (y.T if transposed[1] else y)

    check_gradients(product, array(3, 3), array(3, 3))


def test_matmul_with_one_tracked_operand_leaves_the_other_alone() -> None:
    x, y = leaf(2, 3), tg.tensor(array(3, 2))
    (x @ y).sum().backward()
    assert x.grad is not None
    assert y.grad is None


def test_product_of_a_matrix_with_itself_sums_both_gradients() -> None:
    check_gradients(lambda x: x @ x, array(3, 3), order=3, tolerance=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_products_keep_the_dtype(dtype: Any) -> None:
    x = (array(2, 3) * 5).astype(dtype)
    got = tg.tensor(x) @ tg.tensor(x).T
    assert got.dtype == dtype
    np.testing.assert_allclose(got.numpy(), x @ x.T, rtol=1e-6)


@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (lambda x, y: tg.mm(x, y), [(2, 3), (3, 4)]),
        (lambda x, y: tg.mv(x, y), [(2, 3), (3,)]),
        (lambda x, y: tg.dot(x, y), [(3,), (3,)]),
        (lambda x, y: tg.bmm(x, y), [(2, 3, 4), (2, 4, 2)]),
        (lambda x, y: tg.outer(x, y), [(3,), (2,)]),
        (lambda x, y: tg.ger(x, y), [(3,), (2,)]),
        (lambda c, x, y: tg.addmm(c, x, y), [(2,), (3, 4), (4, 2)]),
        (lambda c, x, y: tg.addmm(c, x, y, beta=2.0, alpha=0.5), [(3, 1), (3, 4), (4, 2)]),
        (lambda c, x, y: tg.addmm(c, x, y, beta=0.0), [(), (3, 4), (4, 2)]),
    ],
)
def test_named_product_derivatives(f: Any, shapes: list[tuple[int, ...]]) -> None:
    check_gradients(f, *(array(*shape) for shape in shapes))


def test_outer_equals_numpy() -> None:
    x, y = array(3), array(2)
    np.testing.assert_array_equal(tg.outer(tg.tensor(x), tg.tensor(y)).numpy(), np.outer(x, y))


def test_addmm_scales_both_terms() -> None:
    c, x, y = array(2), array(3, 4), array(4, 2)
    got = tg.addmm(tg.tensor(c), tg.tensor(x), tg.tensor(y), beta=2.0, alpha=0.5)
    np.testing.assert_allclose(got.numpy(), 2.0 * c + 0.5 * (x @ y), rtol=1e-12)


def test_addmm_with_beta_zero_does_not_read_the_first_term() -> None:
    x = array(2, 2)
    got = tg.addmm(tg.full((2,), float("nan")), tg.tensor(x), tg.tensor(x), beta=0)
    np.testing.assert_allclose(got.numpy(), x @ x, rtol=1e-12)


LAYERS = [(3, 4), (4,), (2, 3, 4), (2, 2, 3, 4), (0, 4)]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", LAYERS, ids=str)
def test_linear_equals_its_definition(shape: tuple[int, ...], bias: bool) -> None:
    x, w, b = array(*shape), array(5, 4), array(5)
    got = linear(tg.tensor(x), tg.tensor(w), tg.tensor(b) if bias else None)
    np.testing.assert_allclose(got.numpy(), x @ w.T + (b if bias else 0.0), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("shape", LAYERS, ids=str)
def test_linear_derivatives(shape: tuple[int, ...]) -> None:
    check_gradients(linear, array(*shape), array(2, 4), array(2))


@pytest.mark.parametrize("shape", LAYERS, ids=str)
def test_linear_derivatives_without_bias(shape: tuple[int, ...]) -> None:
    check_gradients(lambda x, w: linear(x, w), array(*shape), array(2, 4))


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda: leaf(3) @ leaf(3), "DotBackward0"),
        (lambda: leaf(2, 3) @ leaf(3), "MvBackward0"),
        (lambda: leaf(2, 3) @ leaf(3, 2), "MmBackward0"),
        (lambda: leaf(3) @ leaf(3, 2), "SqueezeBackward4"),
        (lambda: leaf(2, 2, 3) @ leaf(3, 2), "UnsafeViewBackward0"),
        (lambda: tg.bmm(leaf(2, 2, 3), leaf(2, 3, 2)), "BmmBackward0"),
        (lambda: tg.addmm(leaf(2), leaf(2, 3), leaf(3, 2)), "AddmmBackward0"),
        (lambda: tg.outer(leaf(2), leaf(3)), "MulBackward0"),
        (lambda: linear(leaf(2, 3), leaf(4, 3), leaf(4)), "AddmmBackward0"),
        (lambda: linear(leaf(2, 3), leaf(4, 3)), "MmBackward0"),
        (lambda: linear(leaf(2, 2, 3), leaf(4, 3), leaf(4)), "ViewBackward0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_node_names_are_those_of_pytorch(f: Any, name: str) -> None:
    assert f().grad_fn.name() == name


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda: leaf(2, 3) @ leaf(2, 3), "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
        (lambda: leaf(3) @ leaf(4, 2), "mat1 and mat2 shapes cannot be multiplied (1x3 and 4x2)"),
        (lambda: leaf(2, 3) @ leaf(2), "size mismatch, got input (2), mat (2x3), vec (2)"),
        (lambda: leaf(3) @ leaf(4), "inconsistent tensor size, expected tensor [3] and src [4]"),
        (lambda: leaf(2, 3) @ leaf(), "both arguments to matmul need to be at least 1D, but they are 2D and 0D"),
        (lambda: leaf(2, 3, 4) @ leaf(3, 4, 5), "The size of tensor a (2) must match the size of tensor b (3)"),
        (lambda: leaf(2, 3, 4) @ leaf(2, 3, 4), "to be: [2, 4] but got: [2, 3]"),
        (lambda: leaf(2, 3) @ tg.ones(3, 2, dtype=tg.float32), "but got: double != float"),
        (lambda: leaf(3) @ tg.ones(3, dtype=tg.float32), "both vectors to have same dtype, but found Double and Float"),
        (lambda: tg.mm(leaf(2, 3), leaf(3)), "mat2 must be a matrix"),
        (lambda: tg.mv(leaf(2, 3), leaf(2, 3)), "vector + matrix @ vector expected"),
        (lambda: tg.dot(leaf(3), leaf(2, 3)), "1D tensors expected, but got 1D and 2D tensors"),
        (lambda: tg.bmm(leaf(2, 2, 3), leaf(3, 2)), "batch2 must be a 3D tensor"),
        (lambda: tg.bmm(leaf(2, 2, 3), leaf(1, 3, 2)), "Expected size for first two dimensions of batch2"),
        (lambda: tg.outer(leaf(2, 2), leaf(2)), "outer: Expected 1-D argument self, but got 2-D"),
        (lambda: tg.addmm(leaf(3), leaf(2, 2), leaf(2, 2)), "The expanded size of the tensor (2) must match"),
        (lambda: tg.addmm(leaf(2, 2, 2), leaf(2, 2), leaf(2, 2)), "the number of sizes provided (2) must be greater"),
        (lambda: linear(leaf(2, 3), leaf(3, 4)), "shapes cannot be multiplied (2x3 and 4x3)"),
        (lambda: linear(leaf(2, 3), leaf(2, 2, 3)), "t() expects a tensor with <= 2 dimensions"),
    ],
)
def test_errors_name_the_shapes(f: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(message)):
        f()


@pytest.mark.parametrize(("a", "b"), [((2, 3), (3, 2)), ((2, 2, 3), (3,)), ((2, 2, 3), (2, 3, 2))], ids=str)
def test_products_with_infinities_give_nan_without_a_warning(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = np.full(a, np.inf), np.ones(b)
    y[..., 0] = 0.0
    assert np.isnan((tg.tensor(x) @ tg.tensor(y)).numpy()).any()


def test_matmul_refuses_numbers() -> None:
    with pytest.raises(TypeError, match="must be Tensor, not float"):
        leaf(2, 3) @ 2.0


AFFINE = {"addmm": (2, 2, 2), "addmv": (1, 2, 1), "addr": (2, 1, 1), "addbmm": (2, 3, 3), "baddbmm": (3, 3, 3)}


@pytest.mark.parametrize("name", AFFINE)
@pytest.mark.parametrize("factor", ["alpha", "beta"])
def test_integers_are_not_scaled_by_floats(name: str, factor: str) -> None:
    operands = [tg.ones((2,) * rank, dtype=tg.int64) for rank in AFFINE[name]]
    with pytest.raises(RuntimeError, match=f"argument {factor} must not be a floating point number"):
        getattr(tg, name)(*operands, **{factor: 0.5})


def test_outer_product_of_bools_is_a_conjunction() -> None:
    x = tg.addr(tg.tensor([[True, False]]), tg.tensor([True]), tg.tensor([False, True]), alpha=2, beta=1)
    assert x.tolist() == [[True, True]]


def test_an_infinite_cotangent_of_a_trace_stays_on_the_diagonal() -> None:
    x = tg.ones(2, 3, requires_grad=True)
    (x.trace() * tg.inf).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[np.inf, 0.0, 0.0], [0.0, np.inf, 0.0]])
