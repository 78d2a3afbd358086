"""Functions of `scipy.linalg` with their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg

from tapegrad.as_autograd.given_derivatives import defvjp, defvjp_argnums
from tapegrad.as_autograd.numpy_functions import metadata, unbroadcast
from tapegrad.as_autograd.primitives import primitive
from tapegrad.as_autograd.tracing import isbox
from tapegrad.autograd.function import Function
from tapegrad.numpy_arrays.array import as_arrays
from tapegrad.numpy_arrays.complex_arrays import ComplexArray, complex_values, made, parts
from tapegrad.numpy_arrays.complex_decompositions import decomposed
from tapegrad.tensors.tensor import array_of, make

__all__ = ["solve_banded", "solve_sylvester", "solve_triangular", "sqrtm"]

_real_root = primitive(scipy.linalg.sqrtm)
solve_sylvester = primitive(scipy.linalg.solve_sylvester)
solve_triangular = primitive(scipy.linalg.solve_triangular)
solve_banded = primitive(scipy.linalg.solve_banded)


def _turned(matrices: Any) -> Any:
    return np.swapaxes(matrices, -1, -2)


# S dS + dS S = dA of the root S is a Sylvester equation, and so is its adjoint.
defvjp(_real_root, lambda ans, A, *options, **named: lambda g: solve_sylvester(_turned(ans), _turned(ans), g))


def sqrtm(A: Any, *options: Any, **named: Any) -> Any:
    """`scipy.linalg.sqrtm`, whose root may be complex."""
    if not isbox(A):
        return scipy.linalg.sqrtm(A, *options, **named)
    values = complex_values(A)
    if not (values.imag.any() or np.iscomplexobj(scipy.linalg.sqrtm(values.real))):
        return _real_root(A, *options, **named)
    return decomposed(A, lambda a: (scipy.linalg.sqrtm(a),), _of_root)[0]


def _of_root(outputs: list[Any], cotangents: list[Any]) -> ComplexArray:
    turned = np.conj(_turned(outputs[0]))
    return _complex_sylvester(turned, turned, cotangents[0])


class _ComplexSylvester(Function):
    """The solution of ``a @ x + x @ b = q``, of real and imaginary parts."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Any:
        x = scipy.linalg.solve_sylvester(
            *(array_of(re) + 1j * array_of(im) for re, im in zip(given[::2], given[1::2], strict=True))
        )
        found = make(x.real.copy(), 0), make(x.imag.copy(), 0)
        ctx.save_for_backward(*given[:4], *found)
        return found

    @staticmethod
    def backward(ctx: Any, *cotangent: Any) -> Any:
        saved = as_arrays([*ctx.saved_tensors, *cotangent])
        a, b, x, g = (ComplexArray(*saved[k : k + 2]) for k in range(0, 8, 2))
        pulled = _complex_sylvester(np.conj(_turned(a)), np.conj(_turned(b)), g)
        turned = np.conj(_turned(x))
        return *parts(-(pulled @ turned)), *parts(-(turned @ pulled)), *parts(pulled)


def _complex_sylvester(*matrices: Any) -> ComplexArray:
    flat = [part for matrix in matrices for part in parts(made(*parts(matrix)))]
    return ComplexArray(*as_arrays(list(_ComplexSylvester.apply(*flat))))


def _of_sylvester(argnums: Sequence[int], x: Any, args: Sequence[Any], kwargs: Any) -> Callable[[Any], Any]:
    a, b, _ = args

    def vjp(g: Any) -> list[Any]:
        pulled = solve_sylvester(_turned(a), _turned(b), g)
        parts = {0: lambda: -pulled @ _turned(x), 1: lambda: -_turned(x) @ pulled, 2: lambda: pulled}
        return [unbroadcast(parts[argnum](), metadata(args[argnum])) for argnum in argnums]

    return vjp


defvjp_argnums(solve_sylvester, _of_sylvester)


def _as_columns(solutions: Any, right_side: Any) -> Any:
    """Solutions as matrices: those of one vector for all systems, which are vectors, as matrices of one column."""
    return np.expand_dims(solutions, -1) if np.ndim(right_side) == 1 else solutions


def _of_triangular(argnums: Sequence[int], x: Any, args: Sequence[Any], kwargs: Any) -> Callable[[Any], Any]:
    a, b, *options = args
    named = dict(zip(("trans", "lower", "unit_diagonal"), options, strict=False)) | kwargs
    trans, lower, unit = named.get("trans", 0), named.get("lower", False), named.get("unit_diagonal", False)
    transposed = trans in (1, 2, "T", "C")

    def vjp(g: Any) -> list[Any]:
        columns = _as_columns(g, b)
        pulled = solve_triangular(a, columns, trans=0 if transposed else 1, lower=lower, unit_diagonal=unit)
        of_right_side = pulled[..., 0] if columns is not g else pulled

        def matrix() -> Any:
            left, right = (_as_columns(x, b), pulled) if transposed else (pulled, _as_columns(x, b))
            whole = -left @ _turned(right)
            return np.tril(whole, -1 if unit else 0) if lower else np.triu(whole, 1 if unit else 0)

        return [unbroadcast(matrix() if argnum == 0 else of_right_side, metadata(args[argnum])) for argnum in argnums]

    return vjp


defvjp_argnums(solve_triangular, _of_triangular)


def _places_of_bands(lowest: int, bands: Any) -> tuple[Any, Any, Any]:
    """Of each number of the bands its column, the row that lies `lowest` below, 0 where there is none, and whether there is one."""
    rows, columns = np.indices(np.shape(bands)[-2:])
    places = columns + rows - lowest
    inside = (places >= 0) & (places < np.shape(bands)[-1])
    return columns, np.where(inside, places, 0), inside


def _transposed_bands(below: int, above: int, bands: Any) -> Any:
    """The bands of the transposed matrix, of which `above` are below its diagonal."""
    _, places, inside = _places_of_bands(below, bands)
    rows = np.arange(below + above, -1, -1)[:, None]
    return bands[..., rows, places] * inside


def _of_banded(argnums: Sequence[int], x: Any, args: Sequence[Any], kwargs: Any) -> Callable[[Any], Any]:
    (below, above), bands, b = args[:3]

    def vjp(g: Any) -> list[Any]:
        right = _as_columns(g, b)
        pulled = solve_banded((above, below), _transposed_bands(below, above, bands), right)
        of_right_side = pulled[..., 0] if right is not g else pulled

        def products() -> Any:
            columns, places, inside = _places_of_bands(above, bands)
            return -np.sum(pulled[..., places, :] * _as_columns(x, b)[..., columns, :], axis=-1) * inside

        return [unbroadcast(products() if argnum == 1 else of_right_side, metadata(args[argnum])) for argnum in argnums]

    return vjp


defvjp_argnums(solve_banded, _of_banded)
