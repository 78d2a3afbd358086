"""Operands that nobody means: one too many, of a small integer type, too large, tracked where a number is wanted."""

from collections.abc import Callable

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf

import tapegrad as tg

ONE_TOO_MANY: dict[str, Callable[[tg.Tensor, tg.Tensor], object]] = {
    "cos_": lambda x, y: x.cos_(y),
    "relu_": lambda x, y: x.relu_(y),
    "mul_": lambda x, y: x.mul_(x, y),
    "digamma_": lambda x, y: x.digamma_(y),
    "logical_not": lambda x, y: tg.logical_not(x, y),
    "logical_or": lambda x, y: tg.logical_or(x, x, y),
    "isnan": lambda x, y: tg.isnan(x, y),
    "isfinite": lambda x, y: x.isfinite(y),
}


@pytest.mark.parametrize("name", ONE_TOO_MANY)
def test_an_operand_too_many_is_refused_and_not_written(name: str) -> None:
    x, y = tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])
    with pytest.raises(TypeError, match="takes . operand"):
        ONE_TOO_MANY[name](x, y)
    assert (x.tolist(), y.tolist()) == ([1.0, 2.0], [3.0, 4.0])


@pytest.mark.parametrize("name", ["atan2", "hypot", "div"])
@pytest.mark.parametrize("dtype", [tg.uint8, tg.int8, tg.int64], ids=str)
def test_recorded_gradient_beside_integers_is_that_of_real_numbers(name: str, dtype: np.dtype) -> None:
    x = leaf([0.25, 0.5, 2.0])
    integers = tg.tensor([3, 100, 1], dtype=dtype)
    for order in (1, -1):
        exact, beside = ((x, integers.double())[::order], (x, integers)[::order])
        gradients = [tg.autograd.grad(getattr(tg, name)(*pair).sum(), x, create_graph=True)[0] for pair in (exact, beside)]
        assert_values(gradients[1], gradients[0].tolist())


def test_recorded_gradient_beside_float32_has_the_precision_of_float64() -> None:
    x = leaf([1.0, 2.0])
    y = tg.tensor([1.1, 1e-3], dtype=tg.float32)
    (plain,) = tg.autograd.grad(tg.atan2(y, x).sum(), x)
    (recorded,) = tg.autograd.grad(tg.atan2(y, x).sum(), x, create_graph=True)
    assert_values(recorded, plain.tolist(), rtol=1e-14)


FACTORS: dict[str, Callable[[tg.Tensor, tg.Tensor], object]] = {
    "add": lambda x, factor: tg.add(x, x, alpha=factor),
    "sub": lambda x, factor: tg.sub(x, x, alpha=factor),
    "rsub": lambda x, factor: tg.rsub(x, x, alpha=factor),
    "add_": lambda x, factor: x.clone().add_(x, alpha=factor),
    "addmm": lambda x, factor: tg.addmm(x, x.outer(x), x.outer(x), alpha=factor),
    "addmm's beta": lambda x, factor: tg.addmm(x, x.outer(x), x.outer(x), beta=factor),
    "addmv": lambda x, factor: tg.addmv(x, x.outer(x), x, alpha=factor),
    "addr": lambda x, factor: tg.addr(x, x, x, beta=factor),
    "addbmm": lambda x, factor: tg.addbmm(x, x.outer(x)[None], x.outer(x)[None], alpha=factor),
    "baddbmm": lambda x, factor: tg.baddbmm(x, x.outer(x)[None], x.outer(x)[None], beta=factor),
    "addcmul": lambda x, factor: tg.addcmul(x, x, x, value=factor),
    "addcdiv": lambda x, factor: tg.addcdiv(x, x, x, value=factor),
    "celu": lambda x, factor: tg.celu(x, factor),
    "hardshrink": lambda x, factor: tg.hardshrink(x, factor),
    "threshold": lambda x, factor: tg.threshold(x, 0.5, factor),
    "softplus": lambda x, factor: tg.softplus(x, factor),
    "leaky_relu": lambda x, factor: tg.leaky_relu(x, factor),
}


@pytest.mark.parametrize("name", FACTORS)
def test_a_tracked_factor_is_refused_and_not_cut_off(name: str) -> None:
    with pytest.raises(TypeError, match="must be a number, not Tensor that requires grad"):
        FACTORS[name](leaf([1.0, 2.0]), leaf(1.0))


@pytest.mark.parametrize("name", FACTORS)
def test_an_untracked_factor_without_dimensions_is_a_number(name: str) -> None:
    x = tg.tensor([1.0, 2.0])
    assert FACTORS[name](x, tg.tensor(3.0)).tolist() == FACTORS[name](x, 3.0).tolist()


@pytest.mark.parametrize("shape", [(), (1,), (3,)], ids=str)
def test_an_operand_without_a_derivative_is_refused_when_tracked(shape: tuple[int, ...]) -> None:
    x = leaf(np.ones(shape))
    with pytest.raises(NotImplementedError, match="derivative for 'polygamma'"):
        tg.polygamma(x, x)


def test_a_refused_write_of_a_tracked_value_counts_as_none() -> None:
    t = tg.tensor([1.0, 2.0], dtype=tg.float16)
    with pytest.raises(RuntimeError, match="float16"):
        t.mul_(leaf([1.0, 2.0]))
    assert (t._version, t.tolist()) == (0, [1.0, 2.0])


HUGE: dict[str, Callable[[tg.Tensor], object]] = {
    "arange": lambda x: tg.arange(10**400),
    "product": lambda x: x * 10**400,
    "nested list": lambda x: tg.tensor([1.0, 10**400]),
    "norm": lambda x: x.norm(10**400),
    "factor": lambda x: tg.add(x, x, alpha=10**400),
}


@pytest.mark.parametrize("name", HUGE)
def test_an_integer_too_large_is_an_overflow(name: str) -> None:
    with pytest.raises(OverflowError, match=r"int too (big|large) to convert|too big to convert"):
        HUGE[name](tg.tensor([1.0, 2.0]))


@pytest.mark.parametrize("function", [tg.tril, tg.triu])
def test_a_diagonal_that_is_no_integer_is_a_type_error(function: Callable[..., object]) -> None:
    x = leaf([[1.0]])
    with pytest.raises(TypeError, match="integer"):
        function(x, x)


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=str)
def test_singular_values_of_an_infinite_matrix_are_refused(dtype: np.dtype) -> None:
    infinite = [[1.0, 2.0, 1e-8], [1e-8, 0.0, 1.0], [-np.inf, 0.0, 1e-8]]
    batch = tg.tensor([infinite, np.eye(3).tolist()], dtype=dtype)
    with pytest.raises(RuntimeError, match="Batch element 0.*non-finite"):
        tg.linalg.svdvals(batch)


@pytest.mark.parametrize("shape", [(2,), (3, 1), (1, 1, 1)], ids=str)
def test_a_tolerance_that_adds_dimensions_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(RuntimeError, match="tolerance of shape"):
        tg.linalg.pinv(tg.ones(3, 2, 2), rtol=tg.ones(*shape) * 1e-3)


def test_number_of_quarter_turns_is_not_written() -> None:
    k = tg.tensor(7)
    assert tg.rot90(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), k).tolist() == [[3.0, 1.0], [4.0, 2.0]]
    assert (k.item(), k._version) == (7, 0)


def test_windows_of_no_integer_size_are_refused() -> None:
    with pytest.raises(TypeError, match="integer"):
        tg.tensor([1.0, 2.0, 3.0]).unfold(0, np.float32(0.5), 1)


def test_too_many_pieces_are_refused_before_any_is_made() -> None:
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        tg.tensor_split(tg.tensor([1.0, 2.0]), 2**70)


@pytest.mark.parametrize("function", [tg.equal, tg.matmul, tg.expand_as, tg.gather], ids=lambda f: f.__name__)
def test_what_is_no_tensor_is_a_type_error(function: Callable[..., object]) -> None:
    x = tg.tensor([1.0, 2.0])
    with pytest.raises(TypeError, match=r"(?i)tensor"):
        function(x, 0, "x") if function is tg.gather else function(x, "x")


def test_out_that_is_no_tensor_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="'out' must be Tensor"):
        tg.mul(tg.tensor([1.0]), 2.0, out=[0.0])


CASTS: dict[str, Callable[[tg.Tensor], object]] = {
    "long": lambda x: x.long(),
    "half": lambda x: x.to(tg.float16),
    "tensor": lambda x: tg.tensor(x.numpy(), dtype=tg.float16),
    "copy_": lambda x: tg.zeros(2, dtype=tg.float32).copy_(x),
    "in place": lambda x: tg.ones(2, dtype=tg.float32).mul_(x),
    "masked_fill": lambda x: tg.ones(2, dtype=tg.float32).masked_fill(x > 0, 1e300),
    "comparison": lambda x: x.to(tg.float16) < x,
    "dot": lambda x: x @ (x * tg.tensor([1.0, -1.0])),
    "array": lambda x: np.asarray(x, dtype=np.float16),
    "matrix exponential": lambda x: tg.linalg.matrix_exp(tg.tensor([[200.0]], dtype=tg.float32)),
}


@pytest.mark.parametrize("name", CASTS)
def test_overflow_and_nan_are_values_and_no_warnings(name: str) -> None:
    CASTS[name](tg.tensor([1e300, float("inf")]))  # warnings are errors in all tests


@pytest.mark.parametrize("given", [{"rtol": -1.0}, {"atol": float("nan")}], ids=str)
def test_a_negative_tolerance_is_a_runtime_error(given: dict[str, float]) -> None:
    with pytest.raises(RuntimeError, match="tol must be greater than or equal to zero"):
        tg.isclose(tg.tensor([1.0]), tg.tensor([1.0]), **given)


def test_a_tolerance_that_is_no_number_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="rtol must be a number"):
        tg.allclose(tg.tensor([1.0]), tg.tensor([1.0]), rtol="x")


def test_a_tracked_order_of_a_distance_is_refused() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(TypeError, match="'p' must be a number"):
        x.dist(tg.tensor([0.0, 1.0]), leaf(2.0))
