"""Inverses and solutions of linear equations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.errors import ShapeError
from tapegrad.linalg.kept_factors import factored_solution, solved_again
from tapegrad.linalg.matrices import Array, broadcast_batches, decompose, matrix, square, tensor_operand
from tapegrad.linalg.substitution import large_triangle, multiplied, substitute, substituted
from tapegrad.ops.products import product_row
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, array_of, make

__all__ = [
    "inv",
    "inverse_row",
    "product_with_triangle",
    "solve",
    "solve_cotangent",
    "solve_cotangents",
    "solve_triangular",
    "triangular_cotangent",
    "triangular_solution",
]


def inv(A: Tensor) -> Tensor:
    """Inverse of a square matrix.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)

    Returns
    -------
    Tensor, shape (..., n, n)

    Raises
    ------
    RuntimeError
        If the matrices are not square, or one is singular (`LinAlgError`).

    See Also
    --------
    tapegrad.linalg.solve : Faster and more accurate than a product with an inverse.

    Examples
    --------
    >>> tg.linalg.inv(tg.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return inverse_row(A, _inverse((square(A, "linalg.inv"),)))


def _inverse(arrays: Sequence[Any], attrs: None = None) -> Any:
    message = "linalg.inv: The inversion could not be completed because the input matrix is singular."
    return decompose(np.linalg.inv, message, arrays[0])


def inverse_row(A: Tensor, value: Array) -> Tensor:
    """`inv` whose value is known."""
    return apply(_INV, (A,), value)


def _inv_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    return (on.matrix_cotangent(on.matmul(on.mT(ctx.result), g), ctx.result),)


_INV = Structural("LinalgInvExBackward0", (("z",),), _inv_vjp, forward=_inverse)


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The solution X of ``A @ X = B``.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
    B : Tensor, shape (..., n, k), or (..., n) or (n,) for vectors
        Of the same dtype. Batches broadcast; vectors are those of one dimension, or of exactly the shape of a batch of them.
    left : bool
        Whether `A` stands on the left; else ``X @ A = B`` is solved, with B of shape (..., k, n).

    Returns
    -------
    Tensor, of the shape of B with batches broadcast

    Raises
    ------
    RuntimeError
        If the shapes do not fit together, the dtypes differ, or a matrix is singular (`LinAlgError`).

    Examples
    --------
    >>> tg.linalg.solve(tg.tensor([[2.0, 0.0], [0.0, 4.0]]), tg.tensor([1.0, 1.0]))
    tensor([0.5000, 0.2500])
    """
    a, b = square(A, "linalg.solve"), tensor_operand(B, "linalg.solve", "B")
    _same_dtype("linalg.solve", a, b)
    vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])
    if vector and not left:
        raise ShapeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. Incompatible shapes of A and "
            f"B for the equation XA = B ({a.shape[-2]}x{a.shape[-1]} and {b.shape[-1]}x1). In this case linalg.solve is equivalent "
            "to B / A.squeeze(-1)"
        )
    wide = b[..., None] if vector else b
    _check_shapes("linalg.solve", a, wide, left)
    return _solve(A, B, vector, left)


def _same_dtype(name: str, a: Array, b: Array) -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {type_name(a.dtype)} and B of type "
            f"{type_name(b.dtype)} instead"
        )


def _check_shapes(name: str, a: Array, b: Array, left: bool) -> None:
    if b.ndim < 2:
        raise ShapeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    if a.shape[-1] != b.shape[-2 if left else -1]:
        raise ShapeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX' if left else 'XA'} = B "
            f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})"
        )
    broadcast_batches(name, a, b)


def _solve(A: Tensor, B: Tensor, vector: bool, left: bool) -> Tensor:
    a, b = array_of(A), array_of(B)
    # A program solves again without these.
    found = factored_solution(a, b, vector, left) if (A._row or B._row) and not TAPE.tracers else None
    x, factors = (_solution((a, b), (vector, left, False)), ()) if found is None else found
    return apply(_SOLVE, (A, B), x, (vector, left, False), _kept(factors))


def _kept(factors: Sequence[Array]) -> tuple[Tensor, ...]:
    return tuple([make(part, 0) for part in factors])


def _solution(arrays: Sequence[Any], attrs: tuple[bool, bool, bool]) -> Any:
    (a, b), (vector, left, _) = arrays, attrs
    message = "linalg.solve: The solver failed because the input matrix is singular."
    if vector:
        return decompose(np.linalg.solve, message, a, b[..., None])[..., 0]
    if left:
        return decompose(np.linalg.solve, message, a, b)
    turned = decompose(np.linalg.solve, message, a.swapaxes(-1, -2), b.swapaxes(-1, -2)).swapaxes(-1, -2)
    return np.ascontiguousarray(turned)  # as factors give it: sums over it have the same bits


def solve_cotangent(
    A: Tensor, B: Tensor, vector: bool = False, left: bool = True, factors: Sequence[Tensor] = (), turned: bool = False
) -> Tensor:
    """`_solve` in a derivative, by factors of the matrix, or of its transpose if `turned`.

    What is a large triangle takes substitution alone. It is differentiated as any matrix.
    """
    a, b = array_of(A), array_of(B)
    triangle = large_triangle(a)
    if triangle is not None:
        x = substituted(a, b[..., None] if vector else b, triangle == "upper", left)
        return apply(_SOLVE, (A, B), x[..., 0] if vector else x, (vector, left, False))
    if factors:
        lu, pivots = (array_of(part) for part in factors)
        return apply(_SOLVE, (A, B), solved_again((lu, pivots), b, vector, left, turned), (vector, left, turned), factors)
    return apply(_SOLVE, (A, B), _solution((a, b), (vector, left, False)), (vector, left, False))


def _solve_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    vector, left, turned = ctx.attrs
    A, x = ctx.inputs[0], ctx.result
    known = (ctx.extra, not turned) if ctx.extra else _factors_anew(A, g, vector, left)
    if len(ctx.shapes[0]) == 2 < array_of(g).ndim:  # all systems of one matrix are one system
        b_bar = on.solve_cotangent(on.mT(A), g, vector, left, *known)
        a_bar = on.matrix_cotangent(_joined(on, b_bar, left), _joined(on, x, left), left) if ctx.needs[0] else None
    else:
        a_bar, b_bar = solve_cotangents(on, g, A, x, vector, left, ctx.needs[0], *known)
    return (
        None if a_bar is None else on.sum_to(a_bar, ctx.shapes[0]),
        on.sum_to(b_bar, ctx.shapes[1]) if ctx.needs[1] else None,
    )


def _factors_anew(A: Tensor, g: Tensor, vector: bool, left: bool) -> tuple[Any, ...]:
    """What a program did not keep: the derivative has the bits that it has with factors which were kept."""
    if large_triangle(array_of(A)) is not None:
        return ()  # which is not solved by factors
    found = factored_solution(array_of(A), array_of(g), vector, left)
    return () if found is None else (_kept(found[1]), True)


def _joined(on: Any, x: Tensor | None, left: bool) -> Tensor:
    """The columns of all matrices in one, or without `left` the rows."""
    found: Tensor = on.mT(on.tall(on.mT(x))) if left else on.tall(x)
    return found


def solve_cotangents(
    on: Any, g: Tensor, A: Tensor, x: Tensor, vector: bool = False, left: bool = True, both: bool = True, *known: Any
) -> tuple[Tensor | None, Tensor]:
    """The cotangents of the matrix, where `both` are asked for, and of the right side of equations by that of their solution."""
    b_bar = on.solve_cotangent(on.mT(A), g, vector, left, *known)
    if not both:
        return None, b_bar
    if vector:  # the same product of a column and a row, in one call for a batch
        return -(on.unsqueeze(b_bar, -1) * on.unsqueeze(x, -2)), b_bar
    return on.matrix_cotangent(b_bar, x, left), b_bar


def _solutions(solved: Callable[[Array, Array], Array], a: Array, b_dot: Array, left: bool) -> Array:
    """Solutions for many right sides that stand interleaved, as one with more columns."""
    b_dot = b_dot if left else b_dot.swapaxes(-3, -2)
    wide = b_dot.reshape(*b_dot.shape[:-2], b_dot.shape[-2] * b_dot.shape[-1])
    x_dot = solved(a if left else a.swapaxes(-1, -2), wide)
    x_dot = x_dot.reshape(*x_dot.shape[:-1], *b_dot.shape[-2:])
    return x_dot if left else x_dot.swapaxes(-3, -2)


def _solutions_for_many(b_dot: Array, ctx: Context, shape: tuple[int, ...]) -> Array:
    vector, left, _ = ctx.attrs
    a = array_of(ctx.inputs[0])
    return np.linalg.solve(a, b_dot) if vector else _solutions(np.linalg.solve, a, b_dot, left)


_SOLVE = Structural("LinalgSolveExBackward0", ((0, "z"), (0,)), _solve_vjp, linear=(None, _solutions_for_many), forward=_solution)


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """The solution X of ``A @ X = B`` for a triangular matrix.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        Only one triangle is read.
    B : Tensor, shape (..., n, k)
        Of the same dtype. Batches broadcast.
    upper : bool
        Which triangle.
    left : bool
        Whether `A` stands on the left; else ``X @ A = B`` is solved, with B of shape (..., k, n).
    unitriangular : bool
        Take the diagonal as ones without reading it.

    Returns
    -------
    Tensor, of the shape of B with batches broadcast
        With inf and nan where the diagonal has zeros.

    Raises
    ------
    RuntimeError
        If the shapes do not fit together, or the dtypes differ.

    Examples
    --------
    >>> tg.linalg.solve_triangular(tg.tensor([[2.0, 9.0], [1.0, 1.0]]), tg.tensor([[2.0], [3.0]]), upper=False)
    tensor([[1.],
            [2.]])
    """
    name = "linalg.solve_triangular"
    a, b = square(A, name), matrix(B, name, "B")
    _same_dtype(name, a, b)
    _check_shapes(name, a, b, left)
    return triangular_solution(A, B, bool(upper), bool(left), bool(unitriangular))


def triangular_solution(A: Tensor, B: Tensor, upper: bool, left: bool = True, unit: bool = False) -> Tensor:
    """`solve_triangular` of operands that fit."""
    attrs = (upper, left, unit)
    return apply(_TRIANGULAR, (A, B), _substituted((array_of(A), array_of(B)), attrs), attrs)


def _substituted(arrays: Sequence[Array], attrs: tuple[bool, bool, bool]) -> Array:
    (a, b), (upper, left, unit) = arrays, attrs
    if left:
        return substitute(a, b, upper, unit)
    return substitute(a.swapaxes(-1, -2), b.swapaxes(-1, -2), not upper, unit).swapaxes(-1, -2)


def triangular_cotangent(A: Tensor, B: Tensor, upper: bool, left: bool = True, unit: bool = False) -> Tensor:
    """The same in a derivative, which need not have the bits of the general solver."""
    return apply(_TRIANGULAR, (A, B), substituted(array_of(A), array_of(B), upper, left, unit), (upper, left, unit))


def product_with_triangle(A: Tensor, B: Tensor, upper: bool, on: Any) -> Tensor:
    """``A @ B`` in a derivative, for matrices of which one triangle is zero. It is differentiated as any product."""
    found = multiplied(array_of(A), array_of(B), upper)
    return on.matmul(A, B) if found is None else product_row(A, B, found)


def _triangular_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    upper, left, unit = ctx.attrs
    A, x = ctx.inputs[0], ctx.result
    b_bar = on.triangular_cotangent(on.mT(A), g, not upper, left, unit)
    a_bar = None
    if ctx.needs[0]:
        a_bar = on.sum_to(on.triangle_cotangent(b_bar, x, upper, left, unit), ctx.shapes[0])
    return a_bar, on.sum_to(b_bar, ctx.shapes[1]) if ctx.needs[1] else None


def _substitutions_for_many(b_dot: Array, ctx: Context, shape: tuple[int, ...]) -> Array:
    upper, left, unit = ctx.attrs
    solved = functools.partial(substitute, upper=upper == left, unit=unit)
    return _solutions(solved, array_of(ctx.inputs[0]), b_dot, left)


_TRIANGULAR = Structural(
    "LinalgSolveTriangularBackward0",
    ((0, "z"), (0,)),
    _triangular_vjp,
    linear=(None, _substitutions_for_many),
    forward=_substituted,
)
