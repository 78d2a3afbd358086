"""A matrix product with something added: addmm and the linear layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.dtypes import type_name
from tapegrad.errors import ShapeError
from tapegrad.products import matmul, mismatch, product, tall, wrong_dtypes
from tapegrad.quiet import quiet
from tapegrad.shaping import expanded
from tapegrad.structural import Context, Structural, apply, sum_to
from tapegrad.tensor import Tensor, array_of, as_operand
from tapegrad.transposing import mT

__all__ = ["addmm", "linear"]

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
    mat1, mat2 = as_operand(mat1, x), as_operand(mat2, x)
    a, b, c = array_of(mat1), array_of(mat2), array_of(x)
    for name, array in (("mat1", a), ("mat2", b)):
        if array.ndim != 2:
            raise ShapeError(f"{name} must be a matrix, got {array.ndim}-D tensor")
    return _affine(_ADDMM, (x, mat1, mat2), a, b, c, (beta, alpha))


def _affine(op: Structural, inputs: Sequence[Tensor], a: Array, b: Array, c: Array, attrs: Any) -> Tensor:
    beta, alpha = attrs
    if a.shape[-1] != b.shape[0]:
        raise mismatch(a.shape, b.shape)
    if a.dtype != b.dtype:
        raise wrong_dtypes(a, b, False)
    if c.dtype != a.dtype:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {type_name(c.dtype)} and {type_name(a.dtype)}")
    result = product(a, b)
    expanded(c.shape, result.shape)  # raises where c would not fit into the result
    with quiet():
        if alpha != 1:
            result *= alpha
        if beta == 1:
            result += c
        elif beta:
            result += beta * c
    return apply(op, inputs, result, attrs)


def _affine_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    beta, alpha = ctx.attrs
    c_bar = x_bar = y_bar = None
    if ctx.needs[0]:
        c_bar = sum_to(g if beta == 1 else g * beta, ctx.shapes[0])
    if alpha != 1:
        g = g * alpha
    if ctx.needs[1]:
        x_bar = matmul(g, mT(ctx.inputs[2]))
    if ctx.needs[2]:
        y_bar = matmul(mT(tall(ctx.inputs[1])), tall(g))
    return c_bar, x_bar, y_bar


_ADDMM = Structural("AddmmBackward0", ((), (2,), (1,)), _affine_vjp)


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
    if bias is not None:
        op = _LINEAR if a.ndim == 2 else _LINEAR_VIEW
        return _affine(op, (bias, x, weight), a, w.T, array_of(bias), (1, 1))
    if a.shape[-1] != w.shape[1]:
        raise mismatch(a.shape, w.shape[::-1])
    if a.dtype != w.dtype or a.dtype.kind == "b":
        raise wrong_dtypes(a, w, False)
    return apply(_PLAIN[min(a.ndim, 3)], (x, weight), product(a, w.T))


def _linear_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    c_bar = sum_to(g, ctx.shapes[0]) if ctx.needs[0] else None
    return c_bar, *_weight_vjp(g, ctx.inputs[1], ctx.inputs[2], ctx.needs[1], ctx.needs[2])


def _plain_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return _weight_vjp(g, ctx.inputs[0], ctx.inputs[1], ctx.needs[0], ctx.needs[1])


def _weight_vjp(
    g: Tensor, x: Tensor | None, weight: Tensor | None, need_x: bool, need_weight: bool
) -> tuple[Tensor | None, Tensor | None]:
    x_bar = matmul(g, weight) if need_x and weight is not None else None
    weight_bar = matmul(mT(tall(g)), tall(x)) if need_weight and x is not None else None
    return x_bar, weight_bar


_LINEAR = Structural("AddmmBackward0", ((), (2,), (1,)), _linear_vjp)
_LINEAR_VIEW = Structural("ViewBackward0", ((), (2,), (1,)), _linear_vjp)
_PLAIN = tuple(
    Structural(name, ((1,), (0,)), _plain_vjp) for name in ("", "SqueezeBackward4", "MmBackward0", "UnsafeViewBackward0")
)
