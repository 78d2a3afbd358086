"""What rows save: a saved value that was overwritten raises, a value that is not needed may be written."""

from collections.abc import Callable

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf

import tapegrad as tg

F = tg.nn.functional
MODIFIED = "(?i)one of the variables needed for gradient computation has been modified by an inplace operation"

KEEPS_RESULT: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "exp": lambda t: t.exp(),
    "expm1": lambda t: t.expm1(),
    "sqrt": lambda t: t.sqrt(),
    "rsqrt": lambda t: t.rsqrt(),
    "reciprocal": lambda t: t.reciprocal(),
    "tan": lambda t: t.tan(),
    "tanh": lambda t: t.tanh(),
    "sigmoid": lambda t: t.sigmoid(),
    "softmax": lambda t: t.softmax(0),
    "log_softmax": lambda t: t.log_softmax(0),
    "relu": lambda t: t.relu(),
}
KEEPS_OPERAND: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "square": lambda t: t**2,
    "log": lambda t: t.log(),
    "sin": lambda t: t.sin(),
    "abs": lambda t: t.abs(),
    "clamp": lambda t: t.clamp(0.5, 1.5),
    "var": lambda t: t.var(),
    "product with itself": lambda t: t * t,
    "dot with itself": lambda t: t @ t,
}
KEEPS_BOTH: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "prod": lambda t: t.prod(),
    "std": lambda t: t.std(),
    "norm": lambda t: t.norm(),
    "logsumexp": lambda t: t.logsumexp(0),
    "amax": lambda t: t.amax(),
    "cumprod": lambda t: t.cumprod(0),
}
KEEPS_NOTHING: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "add": lambda t: t + 1.0,
    "sub": lambda t: 1.0 - t,
    "neg": lambda t: -t,
    "sum": lambda t: t.sum(),
    "mean": lambda t: t.mean(),
    "product with a number": lambda t: t * 2.0,
    "quotient by a number": lambda t: t / 2.0,
    "where": lambda t: tg.where(tg.tensor([True, False]), t, 2.0),
    "max over an axis": lambda t: t.max(0)[0],
    "cat": lambda t: tg.cat([t, t]),
    "integer index": lambda t: t[tg.tensor([1, 0])],
    "mask": lambda t: t[tg.tensor([True, False])],
    "clone": lambda t: t.clone(),
}


def inner() -> tuple[tg.Tensor, tg.Tensor]:
    x = leaf([0.5, 1.0])
    return x, x + 0.0


@pytest.mark.point(35)
@pytest.mark.parametrize("name", KEEPS_RESULT)
def test_operand_may_be_written_where_the_result_is_kept(name: str) -> None:
    x, t = inner()
    y = KEEPS_RESULT[name](t).sum()
    (expected,) = tg.autograd.grad(y, x, retain_graph=True)
    t.mul_(3.0)
    (got,) = tg.autograd.grad(y, x)
    assert got.tolist() == expected.tolist()


@pytest.mark.point(35)
@pytest.mark.parametrize("name", KEEPS_RESULT)
def test_writing_a_kept_result_raises(name: str) -> None:
    _, t = inner()
    y = KEEPS_RESULT[name](t)
    y.mul_(3.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


@pytest.mark.point(35)
@pytest.mark.parametrize("name", {**KEEPS_OPERAND, **KEEPS_BOTH})
def test_writing_a_kept_operand_raises(name: str) -> None:
    _, t = inner()
    y = {**KEEPS_OPERAND, **KEEPS_BOTH}[name](t)
    t.mul_(3.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


@pytest.mark.point(35)
@pytest.mark.parametrize("name", KEEPS_OPERAND)
def test_result_may_be_written_where_the_operand_is_kept(name: str) -> None:
    x, t = inner()
    y = KEEPS_OPERAND[name](t)
    (expected,) = tg.autograd.grad(y.sum(), x, retain_graph=True)
    y.add_(3.0)
    (got,) = tg.autograd.grad(y.sum(), x)
    assert got.tolist() == expected.tolist()


@pytest.mark.point(35)
@pytest.mark.parametrize("name", KEEPS_NOTHING)
def test_operand_may_be_written_where_nothing_is_kept(name: str) -> None:
    x, t = inner()
    y = KEEPS_NOTHING[name](t).sum()
    (expected,) = tg.autograd.grad(y, x, retain_graph=True)
    t.mul_(3.0)
    (got,) = tg.autograd.grad(y, x)
    assert got.tolist() == expected.tolist()


@pytest.mark.point(35)
@pytest.mark.parametrize("name", KEEPS_NOTHING)
def test_result_may_be_written_where_nothing_is_kept(name: str) -> None:
    x, t = inner()
    y = KEEPS_NOTHING[name](t)
    (expected,) = tg.autograd.grad(y.sum(), x, retain_graph=True)
    y.add_(3.0)
    (got,) = tg.autograd.grad(y.sum(), x)
    assert got.tolist() == expected.tolist()


# Whether what was written is refused: the operand, the result.
MATRIX_KEEPS: dict[str, tuple[Callable[[tg.Tensor], tg.Tensor], bool, bool]] = {
    "product": (lambda t: t * t, True, False),
    "quotient": (lambda t: t / t, True, False),
    "power": (lambda t: t**t, True, True),
    "matmul": (lambda t: t @ t, True, False),
    "conv2d": (lambda t: F.conv2d(t[None, None], t[None, None]), True, False),
    "gelu": (lambda t: F.gelu(t), True, False),
    "inv": (lambda t: tg.linalg.inv(t), False, True),
    "cholesky": (lambda t: tg.linalg.cholesky(t), False, True),
    "prod over an axis": (lambda t: t.prod(0), True, True),
    "std over an axis": (lambda t: t.std(0), True, True),
    "norm over an axis": (lambda t: t.norm(dim=0), True, True),
    "logsumexp": (lambda t: t.logsumexp(0), True, True),
    "amax over an axis": (lambda t: t.amax(0), True, True),
    "cumprod": (lambda t: t.cumprod(0), True, True),
    "det": (lambda t: tg.linalg.det(t), True, False),  # kept by value, as are all results without dimensions
    "norm": (lambda t: t.norm(), True, False),
    "sort": (lambda t: t.sort(0).values, False, False),
    "masked_fill": (lambda t: t.masked_fill(tg.tensor([[True, False], [False, True]]), 0.0), False, False),
    "embedding": (lambda t: F.embedding(tg.tensor([0, 1, 1]), t), False, False),
    "cross_entropy": (lambda t: F.cross_entropy(t, tg.tensor([0, 1])), False, False),
}


@pytest.mark.point(35)
@pytest.mark.parametrize("written", ["operand", "result"])
@pytest.mark.parametrize("name", MATRIX_KEEPS)
def test_write_is_refused_where_the_value_is_kept_and_only_there(name: str, written: str) -> None:
    run, *kept = MATRIX_KEEPS[name]
    x = leaf([[2.0, 0.5], [0.5, 1.5]])
    t = x + 0.0
    y = run(t)
    total = y.sum()
    (expected,) = tg.autograd.grad(total, x, retain_graph=True)
    (t if written == "operand" else y).mul_(3.0)
    if kept[written == "result"]:
        with pytest.raises(RuntimeError, match=MODIFIED):
            tg.autograd.grad(total, x)
    else:
        assert tg.autograd.grad(total, x)[0].tolist() == expected.tolist()


Product = Callable[[tg.Tensor, tg.Tensor], tg.Tensor]
# Of these, PyTorch keeps a copy: the product, the shapes, and which operands may be written.
KEEPS_COPIES: dict[str, tuple[Product, tuple[int, ...], tuple[int, ...], str]] = {
    "a matrix times many": (lambda x, y: x @ y, (2, 3), (4, 3, 2), "y"),
    "a vector times many": (lambda x, y: x @ y, (3,), (4, 3, 2), "y"),
    "batches that broadcast": (lambda x, y: x @ y, (5, 1, 2, 3), (4, 3, 2), "xy"),
    "heads of attention": (lambda x, y: x.permute(0, 2, 1, 3) @ y.permute(0, 2, 3, 1), (2, 3, 4, 5), (2, 6, 4, 5), "xy"),
    "linear of a transpose": (lambda x, y: F.linear(x.transpose(0, 1), y), (4, 2, 3), (5, 3), "x"),
    "linear of a transpose with bias": (lambda x, y: F.linear(x.transpose(0, 1), y, y[:, 0]), (4, 2, 3), (5, 3), "x"),
    "tensordot": (lambda x, y: tg.tensordot(x, y, ([1], [0])), (4, 2, 3), (2, 5), "x"),
    "einsum over a batch": (lambda x, y: tg.einsum("bij,bjk->ik", x, y), (4, 2, 3), (4, 3, 2), "x"),
    "einsum of heads": (lambda x, y: tg.einsum("bqhd,bkhd->bhqk", x, y), (2, 3, 2, 4), (2, 5, 2, 4), "xy"),
    "attention": (lambda x, y: F.scaled_dot_product_attention(x, y, y * 1.0), (2, 3, 4), (2, 5, 4), "xy"),
    "copysign": (tg.copysign, (2, 3), (2, 3), "y"),
}
# Of these, the operands themselves are kept.
KEEPS_OPERANDS: dict[str, tuple[Product, tuple[int, ...], tuple[int, ...], str]] = {
    "many times a matrix": (lambda x, y: x @ y, (4, 2, 3), (3, 2), "xy"),
    "one batch": (lambda x, y: x @ y, (4, 2, 3), (4, 3, 2), "xy"),
    "transposed matrices": (lambda x, y: x.mT @ y, (4, 3, 2), (4, 3, 5), "xy"),
    "two dimensions of batches": (lambda x, y: x @ y, (5, 4, 2, 3), (5, 4, 3, 2), "xy"),
    "bmm": (lambda x, y: tg.bmm(x, y), (4, 2, 3), (4, 3, 2), "xy"),
    "linear": (lambda x, y: F.linear(x, y), (4, 2, 3), (5, 3), "xy"),
    "einsum": (lambda x, y: tg.einsum("bij,bjk->bik", x, y), (4, 2, 3), (4, 3, 2), "xy"),
}


def product_of(case: tuple[Product, tuple[int, ...], tuple[int, ...], str]) -> tuple[list[tg.Tensor], list[tg.Tensor], tg.Tensor]:
    """Leaves, what was multiplied, and a number that depends on all elements of the product."""
    run, *shapes, _ = case
    leaves = [leaf(np.sin(np.arange(1.0, 1 + np.prod(shape))).reshape(shape).tolist()) for shape in shapes]
    operands = [t + 0.0 for t in leaves]
    z = run(*operands)
    return leaves, operands, (z * tg.tensor(np.cos(np.arange(z.numel())).reshape(tuple(z.shape)))).sum()


@pytest.mark.point(35)
@pytest.mark.parametrize("name", KEEPS_COPIES)
def test_operand_of_a_product_may_be_written_where_a_copy_is_kept(name: str) -> None:
    case = KEEPS_COPIES[name]
    leaves, _, total = product_of(case)
    expected = tg.autograd.grad(total, leaves)
    for written in case[3]:
        leaves, operands, total = product_of(case)
        operands["xy".index(written)].mul_(3.0)
        for got, want in zip(tg.autograd.grad(total, leaves), expected, strict=True):
            assert_values(got, want.tolist(), rtol=1e-12)


@pytest.mark.point(35)
@pytest.mark.parametrize("name", KEEPS_OPERANDS)
def test_operand_of_a_product_may_not_be_written_where_it_is_kept(name: str) -> None:
    for written in KEEPS_OPERANDS[name][3]:
        leaves, operands, total = product_of(KEEPS_OPERANDS[name])
        operands["xy".index(written)].mul_(3.0)
        with pytest.raises(RuntimeError, match=MODIFIED):
            tg.autograd.grad(total, leaves)


@pytest.mark.point(35)
def test_result_of_erfinv_may_be_written() -> None:
    x = leaf([0.1, 0.5])
    y = tg.erfinv(x)
    (expected,) = tg.autograd.grad(y.sum(), x, retain_graph=True)
    y.mul_(3.0)
    assert tg.autograd.grad(y.sum() / 3.0, x)[0].tolist() == expected.tolist()


@pytest.mark.point(34)
def test_message_names_the_dtype_shape_producer_and_versions() -> None:
    _, t = inner()
    y = t * t
    t.add_(1.0)
    message = r"\[float64 \[2\]\], which is output 0 of AddBackward0, is at version 1; expected version 0 instead.* Hint: "
    with pytest.raises(RuntimeError, match=message):
        y.sum().backward()


@pytest.mark.point(34)
def test_message_for_a_leaf_names_no_producer() -> None:
    w, c = leaf([1.0, 2.0]), tg.tensor([3.0, 4.0])
    y = w * c
    c.add_(1.0)
    with pytest.raises(RuntimeError, match=MODIFIED) as raised:
        y.sum().backward()
    assert "which is output" not in str(raised.value)


@pytest.mark.point(35)
def test_product_with_an_untracked_factor_keeps_only_the_factor() -> None:
    w, c = leaf([1.0, 2.0]), tg.tensor([3.0, 4.0])
    t = w + 0.0
    y = t * c
    t.add_(1.0)
    y.sum().backward()
    assert_values(w.grad, [3.0, 4.0])


def test_writing_an_untracked_factor_raises() -> None:
    w, c = leaf([1.0, 2.0]), tg.tensor([3.0, 4.0])
    y = w * c
    c[0] = 7.0
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


@pytest.mark.point(35)
def test_writing_an_untracked_scalar_factor_does_no_harm() -> None:
    w, c = leaf(1.0), tg.tensor(3.0)
    y = w * c
    c.add_(1.0)
    y.backward()  # a scalar constant is kept by value, so nothing was overwritten
    assert_values(w.grad, 3.0)


def test_writing_a_kept_scalar_result_raises() -> None:
    y = leaf(1.0).exp()
    y.mul_(2.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()


def test_writing_a_kept_scalar_operand_raises() -> None:
    t = leaf(1.0) + 0.0
    y = t * t
    t.add_(1.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()


def test_writing_a_kept_leaf_under_no_grad_raises() -> None:
    x = leaf([1.0, 2.0])
    y = x * x
    with tg.no_grad():
        x.add_(1.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_writing_a_kept_scalar_leaf_under_no_grad_raises() -> None:
    x = leaf(1.0)
    y = x * x
    with tg.no_grad():
        x.add_(1.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()


def test_writing_through_a_detached_tensor_raises() -> None:
    _, t = inner()
    y = t * t
    t.detach().zero_()
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


@pytest.mark.point(36)
def test_writing_another_part_of_the_base_spoils_a_saved_view() -> None:
    _, t = inner()
    y = t[:1] * t[:1]
    t[1] = 9.0
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


@pytest.mark.point(36)
def test_writing_a_view_spoils_the_saved_base() -> None:
    _, t = inner()
    y = t * t
    t[:1].add_(1.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


@pytest.mark.point(35)
def test_relu_in_place_after_relu_raises() -> None:
    _, t = inner()
    y = t.relu()
    y.relu_()
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


@pytest.mark.point(35)
def test_in_place_product_after_exp_raises() -> None:
    _, t = inner()
    with pytest.raises(RuntimeError, match=MODIFIED):
        t.exp().mul_(2.0).sum().backward()


def test_in_place_exp_after_in_place_add_is_right() -> None:
    x, t = inner()
    t.add_(1.0).exp_().sum().backward()
    assert_values(x.grad, (x.detach() + 1.0).exp().tolist(), rtol=1e-14)


def test_error_leaves_other_graphs_usable() -> None:
    x, t = inner()
    y, z = t * t, t + 1.0
    t.add_(1.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()
    z.sum().backward()
    assert_values(x.grad, [1.0, 1.0])


def test_saved_values_are_checked_in_a_recorded_pass() -> None:
    x, t = inner()
    y = (t * t).sum()
    t.add_(1.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        tg.autograd.grad(y, x, create_graph=True)


def test_saved_values_of_unneeded_rows_are_not_checked() -> None:
    x, w = leaf([1.0]), leaf([2.0])
    t = x + 0.0
    loss = (t * t) + (w * w)
    t.add_(1.0)
    assert_values(tg.autograd.grad(loss, w)[0], [4.0])


@pytest.mark.point(38)
def test_masked_assignment_of_own_values_is_legal() -> None:
    x, t = inner()
    mask = tg.tensor([True, False])
    t[mask] = t[mask]
    t.sum().backward()
    assert_values(x.grad, [1.0, 1.0])


def test_an_array_written_behind_the_back_is_the_user_s_affair_but_does_not_crash() -> None:
    x = leaf([1.0, 2.0])
    y = x * x
    x.detach().numpy()[0] = 5.0
    y.sum().backward()
    assert x.grad.shape == (2,)
