"""Matrix products.

A product keeps its operands and no result. The node names are PyTorch's for the same ranks, though each product here is
one node where PyTorch sometimes needs several.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave, quiet
from tapegrad.engine import layout as at
from tapegrad.errors import ShapeError
from tapegrad.ops.compiled_operators import hosted_function, keep, when_compiled
from tapegrad.ops.shaping import reshape, unsqueeze
from tapegrad.recording.stretched_operands import outer_products, product_of_column_and_row
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.foreign_operands import asked
from tapegrad.tensors.tensor import Tensor, array_of, as_operand, is_recording, make, register_leaf

__all__ = ["bmm", "dot", "ger", "matmul", "mm", "mv", "outer"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


def matmul(x: Tensor, other: Any) -> Tensor:
    """Matrix product, as the operator ``@``.

    Parameters
    ----------
    x : Tensor, shape (..., n, k) or (k,)
    other : Tensor, shape (..., k, m) or (k,)
        Of the same dtype. Leading dimensions are batches and broadcast.

    Returns
    -------
    Tensor, shape (..., n, m)
        Without ``n`` or ``m`` where that operand is a vector.

    Raises
    ------
    ShapeError
        If the shapes do not fit together, or an operand is a number.
    RuntimeError
        If the dtypes differ: nothing is promoted.

    Examples
    --------
    >>> tg.tensor([[1.0, 2.0], [3.0, 4.0]]) @ tg.tensor([1.0, 1.0])
    tensor([3., 7.])
    """
    return _multiply(x, other)


def _multiply(x: Tensor, other: Any) -> Tensor:
    """The Python form of `matmul`, which has all cases that are not common."""
    if issubclass(type(other), (int, float)):
        kind = type(other).__name__
        raise TypeError(f"matmul(): argument 'other' must be Tensor, not {kind}; use * to multiply by a number")
    answer: Any = NotImplemented if isinstance(other, Tensor) else asked("__rmatmul__", x, other)
    if answer is not NotImplemented:
        return answer
    y = as_operand(other, x)
    a, b = x._data, y._data
    if type(a) is float or type(b) is float or not a.ndim or not b.ndim:
        raise ShapeError(
            f"both arguments to matmul need to be at least 1D, but they are {array_of(x).ndim}D and {array_of(y).ndim}D"
            "; use * to multiply by a number"
        )
    rows, columns = a.ndim, b.ndim
    if a.shape[-1] != b.shape[0 if columns == 1 else -2]:
        raise mismatch(a.shape, b.shape)
    if a.dtype != b.dtype or a.dtype.kind == "b":
        raise wrong_dtypes(a, b, rows == columns == 1)
    if rows <= 2 and columns <= 2:
        token = enter(IGNORING)
        try:
            result = a.dot(b)
        finally:
            leave(token)
        return apply(BY_RANKS[rows][columns], (x, y), result)
    if (x._row or y._row) and is_recording():
        x, y = _kept_operands(x, y)
        a, b = x._data, y._data
    return apply(_BATCHED, (x, y), product(a, b))


def _kept_operands(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The operands of a product of batches, where PyTorch keeps a copy of one as a copy: it may be written then.

    PyTorch multiplies three-dimensional arrays or matrices, and copies what is no view of that shape.
    """
    a, b = array_of(x), array_of(y)
    if min(a.ndim, b.ndim) <= 2:
        larger, smaller = (a, y) if a.ndim >= b.ndim else (b.mT, x)
        if smaller._row:  # one product with a tall matrix
            if not merges(larger, larger.ndim - 1):
                return (apart(x, a.copy()), y) if larger is a else (x, apart(y, b.copy()))
            return x, y
    rank = max(a.ndim, b.ndim) - 2
    lengths = [(1,) * (rank - len(c.shape[:-2])) + c.shape[:-2] for c in (a, b)]
    if any(n != m and n != 1 and m != 1 for n, m in zip(*lengths, strict=True)):
        return x, y  # the product says what is wrong
    batch = tuple(m if n == 1 else n for n, m in zip(*lengths, strict=True))  # NumPy's own takes half of the dimensions
    if len(batch) > 1:
        if y._row and a.ndim > 1 and not merges(np.broadcast_to(a, batch + a.shape[-2:]), len(batch)):
            x = apart(x, a.copy())
        if x._row and b.ndim > 1 and not merges(np.broadcast_to(b, batch + b.shape[-2:]), len(batch)):
            y = apart(y, b.copy())
    return x, y


def merges(array: Array, count: int) -> bool:
    """Whether the first dimensions of an array can be made one without a copy."""
    expected = None
    for n, step in zip(array.shape[count - 1 :: -1], array.strides[count - 1 :: -1], strict=True):
        if n == 1:
            continue
        if expected is not None and step != expected:
            return False
        expected = step * n
    return True


def apart(t: Tensor, kept: Array | float) -> Tensor:
    """`t` for the graph, with its values in other memory, which an operation keeps."""
    if t._row == 0:
        return make(kept, 0)
    if t._row < 0:
        register_leaf(t)
    with TAPE.claim():
        return make(kept, TAPE.new_handle(TAPE.slot(t._row)))


def product(a: Array, b: Array) -> Array:
    """The product of two arrays whose inner sizes agree."""
    token = enter(IGNORING)
    try:
        if a.ndim <= 2 and b.ndim <= 2:
            return _product_of_two(a, b)
        if b.ndim <= 2 and a.flags.c_contiguous and a.size:
            # One product with a tall matrix instead of one per batch.
            return _product_of_two(a.reshape(-1, a.shape[-1]), b).reshape(a.shape[:-1] + b.shape[1:])
        found = outer_products(a, b) if a.shape[-1] == 1 else None
        return np.matmul(a, b) if found is None else found
    except ValueError:
        raise _batch_mismatch(a.shape[:-2], b.shape[:-2]) from None
    finally:
        leave(token)


def _product_of_two(a: Array, b: Array) -> Any:
    """The product of vectors or matrices."""
    found = product_of_column_and_row(a, b) if a.ndim == b.ndim == 2 and a.shape[1] == 1 else None
    return np.dot(a, b) if found is None else found


def _dot_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    x, y = ctx.inputs
    return g * y if ctx.needs[0] else None, g * x if ctx.needs[1] else None


def _mv_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    x, y = ctx.inputs
    return on.outer(g, y) if ctx.needs[0] else None, on.matmul(on.mT(x), g) if ctx.needs[1] else None


def _vm_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    x, y = ctx.inputs
    return on.matmul(y, g) if ctx.needs[0] else None, on.outer(x, g) if ctx.needs[1] else None


def _mm_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    x, y = ctx.inputs
    return on.matmul(g, on.mT(y)) if ctx.needs[0] else None, on.matmul(on.mT(x), g) if ctx.needs[1] else None


def _batched_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    x, y = ctx.inputs
    rows, columns = ctx.shapes
    x_bar = y_bar = None
    if len(columns) <= 2:
        g = on.unsqueeze(g, -1) if len(columns) == 1 else g
        if ctx.needs[0]:
            x_bar = on.matmul(g, on.mT(y) if len(columns) == 2 else on.unsqueeze(y, 0))
        if ctx.needs[1]:  # one tall matrix, as in the forward product
            y_bar = on.reshape(on.matmul(on.mT(on.tall(x)), on.tall(g)), columns)
    else:
        g = on.unsqueeze(g, -2) if len(rows) == 1 else g
        if ctx.needs[0]:
            x_bar = _fit(on, on.matmul(g, on.mT(y)), rows)
        if ctx.needs[1]:
            y_bar = _fit(on, on.matmul(on.mT(x) if len(rows) > 1 else on.unsqueeze(x, 1), g), columns)
    return x_bar, y_bar


def tall(x: Tensor) -> Tensor:
    """`x` with all dimensions but the last merged."""
    shape = array_of(x).shape
    return x if len(shape) == 2 else reshape(x, (math.prod(shape[:-1]), shape[-1]))


def _fit(on: Any, x: Tensor, shape: Shape) -> Tensor:
    return on.sum_to(x, shape) if len(shape) > 1 else on.reshape(on.sum_to(x, (1, *shape)), shape)


def _products_of_many(x_dot: Array, ctx: Context, shape: Shape) -> Array:
    y = array_of(ctx.inputs[1])
    if y.ndim > 1:
        y = y.swapaxes(-1, -2)[..., None, :, :] if x_dot.ndim > 2 else y.swapaxes(-1, -2)
    return np.matmul(y, x_dot)


def _products_with_many(y_dot: Array, ctx: Context, shape: Shape) -> Array:
    if y_dot.ndim > 2:
        y_dot = y_dot.reshape(*y_dot.shape[:-2], y_dot.shape[-2] * y_dot.shape[-1])
    return np.matmul(array_of(ctx.inputs[0]), y_dot)


def _bilinear(name: str, vjp: Any) -> Structural:
    return Structural(name, ((1,), (0,)), vjp, linear=(_products_of_many, _products_with_many), forward=product_again)


def product_again(arrays: Sequence[Any], attrs: Any) -> Array:
    return product(*arrays)


_DOT = _bilinear("DotBackward0", _dot_vjp)
_MV = _bilinear("MvBackward0", _mv_vjp)
_VM = _bilinear("SqueezeBackward4", _vm_vjp)
_MM = _bilinear("MmBackward0", _mm_vjp)
_BMM = _bilinear("BmmBackward0", _mm_vjp)
_BATCHED = _bilinear("UnsafeViewBackward0", _batched_vjp)
BY_RANKS = ((_DOT, _DOT, _DOT), (_DOT, _DOT, _VM), (_DOT, _MV, _MM))
_COMPILED_RANKS = np.array([id(op) for op in (_DOT, _VM, _MV, _MM)])  # by both ranks, as compiled code counts them


def _compiled_product(form: Any) -> Any:
    """The compiled form of `matmul`."""
    TAPE.header[at.PRODUCT_FORM], TAPE.header[at.PRODUCT_OPERATIONS] = keep(form), _COMPILED_RANKS.ctypes.data
    keep((_DOT, _VM, _MV, _MM, _COMPILED_RANKS))
    return hosted_function("matmul", 1, matmul.__doc__)


_multiply = when_compiled(sys.modules[__name__], _multiply, functools.partial(_compiled_product, _multiply))


def is_product(op: Structural) -> bool:
    """Whether an operation is a product of matrices or vectors, or of batches of them."""
    return op.linear[:1] == (_products_of_many,)


def product_row(x: Tensor, y: Tensor, value: Array) -> Tensor:
    """The product of two matrices, whose value is known."""
    return apply(_MM, (x, y), value)


def mm(x: Tensor, mat2: Tensor) -> Tensor:
    """Product of two matrices.

    Raises
    ------
    ShapeError
        If an operand is not a matrix, or the inner sizes differ.
    """
    mat2 = as_operand(mat2, x)
    for name, operand in (("self", x), ("mat2", mat2)):
        if array_of(operand).ndim != 2:
            raise ShapeError(f"{name} must be a matrix, got {array_of(operand).ndim}D; use matmul for other ranks")
    return matmul(x, mat2)


def mv(x: Tensor, vec: Tensor) -> Tensor:
    """Product of a matrix and a vector.

    Raises
    ------
    ShapeError
        If the operands are not a matrix and a vector, or the inner sizes differ.
    """
    vec = as_operand(vec, x)
    ranks = array_of(x).ndim, array_of(vec).ndim
    if ranks != (2, 1):
        raise ShapeError(f"vector + matrix @ vector expected, got {', '.join(map(str, (1, *ranks)))}; use matmul")
    return matmul(x, vec)


def dot(x: Tensor, other: Tensor) -> Tensor:
    """Sum of the products of the elements of two vectors.

    Raises
    ------
    ShapeError
        If the operands are not vectors of one size.
    """
    other = as_operand(other, x)
    ranks = array_of(x).ndim, array_of(other).ndim
    if ranks != (1, 1):
        raise ShapeError(f"1D tensors expected, but got {ranks[0]}D and {ranks[1]}D tensors; use matmul")
    return matmul(x, other)


def bmm(x: Tensor, mat2: Tensor) -> Tensor:
    """Products of matrices in two batches of one size.

    Parameters
    ----------
    x : Tensor, shape (b, n, k)
    mat2 : Tensor, shape (b, k, m)

    Returns
    -------
    Tensor, shape (b, n, m)

    Raises
    ------
    ShapeError
        If the shapes do not fit together; nothing is broadcast.
    """
    mat2 = as_operand(mat2, x)
    a, b = array_of(x), array_of(mat2)
    for name, array in (("batch1", a), ("batch2", b)):
        if array.ndim != 3:
            raise ShapeError(f"{name} must be a 3D tensor, got {array.ndim}D; use matmul for other ranks")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ShapeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] but got: "
            f"[{b.shape[0]}, {b.shape[1]}]."
        )
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {type_name(a.dtype)} but found {type_name(b.dtype)}")
    with quiet():
        return apply(_BMM, (x, mat2), np.matmul(a, b))


def outer(x: Tensor, vec2: Tensor) -> Tensor:
    """Products of every element of one vector with every element of another.

    Parameters
    ----------
    x : Tensor, shape (n,)
    vec2 : Tensor, shape (m,)

    Returns
    -------
    Tensor, shape (n, m)

    Raises
    ------
    ShapeError
        If an operand is not a vector.

    Examples
    --------
    >>> tg.outer(tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    vec2 = as_operand(vec2, x)
    for name, operand in (("self", x), ("vec2", vec2)):
        if array_of(operand).ndim != 1:
            raise ShapeError(f"outer: Expected 1-D argument {name}, but got {array_of(operand).ndim}-D")
    return unsqueeze(x, 1) * vec2


def ger(x: Tensor, vec2: Tensor) -> Tensor:
    """The same as `outer`."""
    return outer(x, vec2)


def mismatch(a: Shape, b: Shape) -> ShapeError:
    """The error for inner sizes that differ, in the words that PyTorch has for these ranks."""
    if len(a) == len(b) == 1:
        return ShapeError(
            f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] to have the same number of elements, "
            f"but got {a[0]} and {b[0]} elements respectively"
        )
    if len(b) == 1:
        flat = f"{math.prod(a[:-1])}x{a[-1]}"
        return ShapeError(f"size mismatch, got input ({flat.split('x')[0]}), mat ({flat}), vec ({b[0]})")
    if len(a) > 2 and len(b) > 2:
        return ShapeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{math.prod(a[:-2])}, {a[-1]}] but got: "
            f"[{math.prod(b[:-2])}, {b[-2]}]."
        )
    rows = 1 if len(a) == 1 else math.prod(a[:-1])
    return ShapeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a[-1]} and {b[-2]}x{b[-1]})")


def _batch_mismatch(a: Shape, b: Shape) -> ShapeError:
    ndim = max(len(a), len(b))
    for k in range(1, ndim + 1):
        if k <= min(len(a), len(b)) and a[-k] != b[-k] and 1 not in (a[-k], b[-k]):
            return ShapeError(
                f"The size of tensor a ({a[-k]}) must match the size of tensor b ({b[-k]}) at non-singleton dimension {ndim - k}"
            )
    return ShapeError(f"batches of shapes {list(a)} and {list(b)} cannot be broadcast together")


def wrong_dtypes(a: Array, b: Array, vectors: bool) -> Exception:
    """The error for operands of different dtypes, or of one that has no product."""
    if a.dtype == b.dtype:
        return NotImplementedError(f"\"matmul\" not implemented for '{type_name(a.dtype)}'; convert the tensors first")
    if vectors:
        return RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {type_name(a.dtype)} and {type_name(b.dtype)}"
        )
    names = f"{type_name(a.dtype)} != {type_name(b.dtype)}".lower()
    return RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {names}; convert one")
