"""A product with something added: addmm, its relatives, and the linear layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave, quiet
from tapegrad.arrays.sizes import expanded
from tapegrad.errors import ShapeError
from tapegrad.ops.arithmetic import plain_number
from tapegrad.ops.products import apart, matmul, merges, mismatch, product, wrong_dtypes
from tapegrad.recording.casting import cast, common_dtype
from tapegrad.recording.stretched_operands import outer_product
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, as_operand, is_recording

__all__ = ["addbmm", "addmm", "addmv", "addr", "baddbmm", "linear"]

Array = np.ndarray[Any, Any]


def addmm(x: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * x + alpha * (mat1 @ mat2)``.

    Parameters
    ----------
    x : Tensor, of a shape that expands to (n, m)
    mat1 : Tensor, shape (n, k)
    mat2 : Tensor, shape (k, m)
    beta, alpha : number
        With ``beta=0``, `x` is not read, so nan and inf in it do no harm.

    Returns
    -------
    Tensor, shape (n, m)

    Raises
    ------
    ShapeError
        If the shapes do not fit together.
    RuntimeError
        If the dtypes differ.
    """
    beta, alpha = _factors("addmm", x, beta, alpha)
    mat1, mat2 = as_operand(mat1, x), as_operand(mat2, x)
    a, b, c = array_of(mat1), array_of(mat2), array_of(x)
    for name, array in (("mat1", a), ("mat2", b)):
        if array.ndim != 2:
            raise ShapeError(f"{name} must be a matrix, got {array.ndim}-D tensor")
    return _affine(_ADDMM, (x, mat1, mat2), a, b, c, (beta, alpha))


def _factors(function: str, x: Tensor, *values: float) -> list[float]:
    """`beta` and `alpha`, which must be integers where the result has integers."""
    kind = array_of(x).dtype.kind
    if kind == "f" and _is_usual(values[0]) and _is_usual(values[1]):
        return [*values]
    factors = [plain_number(function, name, value) for name, value in zip(("beta", "alpha"), values, strict=True)]
    for name, factor in zip(("beta", "alpha"), factors, strict=True):
        if kind != "f" and isinstance(factor, float):
            raise RuntimeError(f"{function}: For integral input tensors, argument {name} must not be a floating point number.")
    return [bool(factor) for factor in factors] if kind == "b" else factors


def _is_usual(factor: Any) -> bool:
    return type(factor) is float or (type(factor) is int and factor == 1)


def _affine(op: Structural, inputs: Sequence[Tensor], a: Array, b: Array, c: Array, attrs: Any) -> Tensor:
    if a.shape[-1] != b.shape[0]:
        raise mismatch(a.shape, b.shape)
    if a.dtype != b.dtype:
        raise wrong_dtypes(a, b, False)
    if c.dtype != a.dtype:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {type_name(c.dtype)} and {type_name(a.dtype)}")
    return apply(op, inputs, _scaled_sum(product(a, b), c, attrs), attrs)


def _scaled_sum(result: Array, c: Array, attrs: Any) -> Array:
    """``beta * c + alpha * result``, in the memory of `result`."""
    beta, alpha = attrs
    if c.shape != result.shape:
        expanded(c.shape, result.shape)  # raises where c would not fit into the result
    token = enter(IGNORING)
    try:
        if alpha != 1:
            result *= alpha
        if beta == 1:
            result += c
        elif beta:
            result += beta * c
    finally:
        leave(token)
    return result


def _affine_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    beta, alpha = ctx.attrs
    c_bar = x_bar = y_bar = None
    if ctx.needs[0]:
        c_bar = on.sum_to(g if beta == 1 else g * beta, ctx.shapes[0])
    if alpha != 1:
        g = g * alpha
    if ctx.needs[1]:
        x_bar = on.matmul(g, on.mT(ctx.inputs[2]))
    if ctx.needs[2]:
        y_bar = on.matmul(on.mT(on.tall(ctx.inputs[1])), on.tall(g))
    return c_bar, x_bar, y_bar


_ADDMM = Structural("AddmmBackward0", ((), (2,), (1,)), _affine_vjp)


def addmv(x: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * x + alpha * (mat @ vec)``.

    Parameters
    ----------
    x : Tensor, of a shape that expands to (n,)
    mat : Tensor, shape (n, k)
    vec : Tensor, shape (k,)
    beta, alpha : number
        With ``beta=0``, `x` is not read.

    Returns
    -------
    Tensor, shape (n,)

    Raises
    ------
    ShapeError
        If the shapes do not fit together.
    RuntimeError
        If the dtypes differ.

    Examples
    --------
    >>> tg.addmv(tg.ones(2), tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([1.0, 1.0]))
    tensor([4., 8.])
    """
    beta, alpha = _factors("addmv", x, beta, alpha)
    mat, vec = as_operand(mat, x), as_operand(vec, x)
    c, a, b = array_of(x), array_of(mat), array_of(vec)
    if (a.ndim, b.ndim) != (2, 1) or c.ndim > 1:
        raise ShapeError(f"vector + matrix @ vector expected, got {c.ndim}, {a.ndim}, {b.ndim}")
    if a.shape[1] != b.shape[0] or c.size not in (1, a.shape[0]):
        raise ShapeError(f"size mismatch, got input ({c.size}), mat ({a.shape[0]}x{a.shape[1]}), vec ({b.shape[0]})")
    return _affine(_ADDMV, (x, mat, vec), a, b, c, (beta, alpha))


def _addmv_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    beta, alpha = ctx.attrs
    _, mat, vec = ctx.inputs
    c_bar = _term_bar(g, beta, ctx)
    g = g if alpha == 1 else g * alpha
    return c_bar, on.outer(g, vec) if ctx.needs[1] else None, on.matmul(on.mT(mat), g) if ctx.needs[2] else None


def _term_bar(g: Tensor, beta: float, ctx: Context) -> Tensor | None:
    """Cotangent of the added term."""
    return ctx.on.sum_to(g if beta == 1 else ctx.on.times(g, beta), ctx.shapes[0]) if ctx.needs[0] else None


_ADDMV = Structural("AddmvBackward0", ((), (2,), (1,)), _addmv_vjp)


def addr(x: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * x + alpha * outer(vec1, vec2)``.

    Parameters
    ----------
    x : Tensor, of a shape that expands to (n, m)
    vec1 : Tensor, shape (n,)
    vec2 : Tensor, shape (m,)
    beta, alpha : number
        With ``beta=0``, `x` is not read.

    Returns
    -------
    Tensor, shape (n, m)

    Raises
    ------
    ShapeError
        If the shapes do not fit together.

    Examples
    --------
    >>> tg.addr(tg.zeros(2, 2), tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    beta, alpha = _factors("addr", x, beta, alpha)
    vec1, vec2 = as_operand(vec1, x), as_operand(vec2, x)
    for name, operand in (("vec1", vec1), ("vec2", vec2)):
        if array_of(operand).ndim != 1:
            raise ShapeError(f"addr: Expected 1-D argument {name}, but got {array_of(operand).ndim}-D")
    c, a, b = array_of(x), array_of(vec1), array_of(vec2)
    expanded(c.shape, a.shape + b.shape)
    dtype = common_dtype([c, a, b])
    x, vec1, vec2 = (cast(operand, dtype) for operand in (x, vec1, vec2))
    with quiet():
        result = _scaled_sum(outer_product(array_of(vec1), array_of(vec2)), array_of(x), (beta, alpha))
    return apply(_ADDR, (x, vec1, vec2), result, (beta, alpha))


def _addr_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    beta, alpha = ctx.attrs
    _, vec1, vec2 = ctx.inputs
    c_bar = _term_bar(g, beta, ctx)
    g = g if alpha == 1 else on.times(g, alpha)
    return c_bar, on.matmul(g, vec2) if ctx.needs[1] else None, on.matmul(vec1, g) if ctx.needs[2] else None


_ADDR = Structural("AddrBackward0", ((), (2,), (1,)), _addr_vjp, takes_stretched=True)


def addbmm(x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * x + alpha * sum(batch1 @ batch2)`` over the batch.

    Parameters
    ----------
    x : Tensor, of a shape that expands to (n, m)
    batch1 : Tensor, shape (b, n, k)
    batch2 : Tensor, shape (b, k, m)
    beta, alpha : number
        With ``beta=0``, `x` is not read.

    Returns
    -------
    Tensor, shape (n, m)

    Raises
    ------
    ShapeError
        If the shapes do not fit together.
    RuntimeError
        If the dtypes differ.

    Examples
    --------
    >>> tg.addbmm(tg.zeros(2, 2), tg.ones(3, 2, 4), tg.ones(3, 4, 2))
    tensor([[12., 12.],
            [12., 12.]])
    """
    beta, alpha = _factors("addbmm", x, beta, alpha)
    batch1, batch2, a, b = _batches(x, batch1, batch2)
    inner = a.shape[0] * a.shape[2]
    total = product(a.transpose(1, 0, 2).reshape(a.shape[1], inner), b.reshape(inner, b.shape[2]))
    return apply(_ADDBMM, (x, batch1, batch2), _scaled_sum(total, array_of(x), (beta, alpha)), (beta, alpha))


def baddbmm(x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * x + alpha * (batch1 @ batch2)``.

    Parameters
    ----------
    x : Tensor, of a shape that expands to (b, n, m)
    batch1 : Tensor, shape (b, n, k)
    batch2 : Tensor, shape (b, k, m)
    beta, alpha : number
        With ``beta=0``, `x` is not read.

    Returns
    -------
    Tensor, shape (b, n, m)

    Raises
    ------
    ShapeError
        If the shapes do not fit together.
    RuntimeError
        If the dtypes differ.

    Examples
    --------
    >>> tg.baddbmm(tg.ones(2), tg.ones(1, 2, 3), tg.ones(1, 3, 2), alpha=2)
    tensor([[[7., 7.],
             [7., 7.]]])
    """
    beta, alpha = _factors("baddbmm", x, beta, alpha)
    batch1, batch2, a, b = _batches(x, batch1, batch2)
    return apply(_BADDBMM, (x, batch1, batch2), _scaled_sum(product(a, b), array_of(x), (beta, alpha)), (beta, alpha))


def _batches(x: Tensor, batch1: Tensor, batch2: Tensor) -> tuple[Tensor, Tensor, Array, Array]:
    batch1, batch2 = as_operand(batch1, x), as_operand(batch2, x)
    a, b, c = array_of(batch1), array_of(batch2), array_of(x)
    for name, array in (("batch1", a), ("batch2", b)):
        if array.ndim != 3:
            raise ShapeError(f"{name} must be a 3D tensor, got {array.ndim}D")
    if a.shape[0] != b.shape[0]:
        raise ShapeError(f"batch1 and batch2 must have same number of batches, got {a.shape[0]} and {b.shape[0]}")
    if a.shape[2] != b.shape[1]:
        raise ShapeError(
            f"Incompatible matrix sizes for bmm ({a.shape[1]}x{a.shape[2]} and {b.shape[1]}x{b.shape[2]}): Expected size for first "
            f"two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] but got: [{b.shape[0]}, {b.shape[1]}]."
        )
    for array in (b, c):
        if array.dtype != a.dtype:
            raise RuntimeError(f"expected scalar type {type_name(a.dtype)} but found {type_name(array.dtype)}")
    return batch1, batch2, a, b


def _batches_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    beta, alpha = ctx.attrs
    _, batch1, batch2 = ctx.inputs
    c_bar = _term_bar(g, beta, ctx)
    g = g if alpha == 1 else g * alpha  # one matrix (addbmm) broadcasts over the batch
    return c_bar, on.matmul(g, on.mT(batch2)) if ctx.needs[1] else None, on.matmul(on.mT(batch1), g) if ctx.needs[2] else None


_ADDBMM = Structural("AddbmmBackward0", ((), (2,), (1,)), _batches_vjp)
_BADDBMM = Structural("BaddbmmBackward0", ((), (2,), (1,)), _batches_vjp)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x @ weight.T + bias``: one layer of a neural network.

    Parameters
    ----------
    x : Tensor, shape (..., k)
    weight : Tensor, shape (m, k) or (k,)
    bias : Tensor, shape (m,), optional

    Returns
    -------
    Tensor, shape (..., m), or (...) where `weight` is a vector

    Raises
    ------
    ShapeError
        If the shapes do not fit together.
    RuntimeError
        If the dtypes differ.
    """
    a, w = array_of(x), array_of(weight)
    if not a.ndim or not w.ndim:
        raise ShapeError(f"both arguments to linear need to be at least 1D, but they are {a.ndim}D and {w.ndim}D")
    if w.ndim == 1:
        result = matmul(x, weight)
        return result if bias is None else result + bias
    if w.ndim > 2:
        raise ShapeError(f"t() expects a tensor with <= 2 dimensions, but self is {w.ndim}D: weight must be a matrix")
    if weight._row and a.ndim > 2 and is_recording() and not merges(a, a.ndim - 1):
        x = apart(x, a.copy())  # as in PyTorch, so that it may be written
        a = array_of(x)
    if bias is not None:
        op = _LINEAR if a.ndim == 2 else _LINEAR_VIEW
        return _affine(op, (bias, x, weight), a, w.T, array_of(bias), (1, 1))
    if a.shape[-1] != w.shape[1]:
        raise mismatch(a.shape, w.shape[::-1])
    if a.dtype != w.dtype or a.dtype.kind == "b":
        raise wrong_dtypes(a, w, False)
    return apply(_PLAIN[min(a.ndim, 3)], (x, weight), product(a, w.T))


def _linear_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    c_bar = on.sum_to(g, ctx.shapes[0]) if ctx.needs[0] else None
    return c_bar, *_weight_vjp(on, g, ctx.inputs[1], ctx.inputs[2], ctx.needs[1], ctx.needs[2])


def _plain_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return _weight_vjp(ctx.on, g, ctx.inputs[0], ctx.inputs[1], ctx.needs[0], ctx.needs[1])


def _weight_vjp(
    on: Any, g: Tensor, x: Tensor | None, weight: Tensor | None, need_x: bool, need_weight: bool
) -> tuple[Tensor | None, Tensor | None]:
    x_bar = on.matmul(g, weight) if need_x and weight is not None else None
    weight_bar = on.matmul(on.mT(on.tall(g)), on.tall(x)) if need_weight and x is not None else None
    return x_bar, weight_bar


_LINEAR = Structural("AddmmBackward0", ((), (2,), (1,)), _linear_vjp)
_LINEAR_VIEW = Structural("ViewBackward0", ((), (2,), (1,)), _linear_vjp)
_PLAIN = tuple(
    Structural(name, ((1,), (0,)), _plain_vjp) for name in ("", "SqueezeBackward4", "MmBackward0", "UnsafeViewBackward0")
)
