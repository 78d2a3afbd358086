"""Functions of `scipy.linalg` with their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg

from tapegrad.as_autograd.given_derivatives import defvjp, defvjp_argnums
from tapegrad.as_autograd.primitives import primitive
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

# S dS + dS S = dA of the root S is a Sylvester equation, and so is its adjoint.
defvjp(_real_root, lambda ans, A, *options, **named: lambda g: solve_sylvester(np.transpose(ans), np.transpose(ans), g))


def sqrtm(A: Any, *options: Any, **named: Any) -> Any:
    """`scipy.linalg.sqrtm`, whose root may be complex."""
    values = complex_values(A)
    if not (values.imag.any() or np.iscomplexobj(scipy.linalg.sqrtm(values.real))):
        return _real_root(A, *options, **named)
    return decomposed(A, lambda a: (scipy.linalg.sqrtm(a),), _of_root)[0]


def _of_root(outputs: list[Any], cotangents: list[Any]) -> ComplexArray:
    turned = np.conj(np.transpose(outputs[0]))
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
        pulled = _complex_sylvester(np.conj(a.T), np.conj(b.T), g)
        turned = np.conj(x.T)
        return *parts(-(pulled @ turned)), *parts(-(turned @ pulled)), *parts(pulled)


def _complex_sylvester(*matrices: Any) -> ComplexArray:
    flat = [part for matrix in matrices for part in parts(made(*parts(matrix)))]
    return ComplexArray(*as_arrays(list(_ComplexSylvester.apply(*flat))))


def _of_sylvester(argnums: Sequence[int], x: Any, args: Sequence[Any], kwargs: Any) -> Callable[[Any], Any]:
    a, b, _ = args

    def vjp(g: Any) -> list[Any]:
        pulled = solve_sylvester(np.transpose(a), np.transpose(b), g)
        parts = {0: lambda: -pulled @ np.transpose(x), 1: lambda: -np.transpose(x) @ pulled, 2: lambda: pulled}
        return [parts[argnum]() for argnum in argnums]

    return vjp


defvjp_argnums(solve_sylvester, _of_sylvester)


def _of_triangular(argnums: Sequence[int], x: Any, args: Sequence[Any], kwargs: Any) -> Callable[[Any], Any]:
    a, _, *options = args
    named = dict(zip(("trans", "lower", "unit_diagonal"), options, strict=False)) | kwargs
    trans, lower, unit = named.get("trans", 0), named.get("lower", False), named.get("unit_diagonal", False)
    transposed = trans in (1, 2, "T", "C")

    def vjp(g: Any) -> list[Any]:
        pulled = solve_triangular(a, g, trans=0 if transposed else 1, lower=lower, unit_diagonal=unit)
        if argnums == (1,):
            return [pulled]
        left, right = (np.reshape(part, (np.shape(a)[0], -1)) for part in ((x, pulled) if transposed else (pulled, x)))
        whole = -left @ np.transpose(right)
        matrix = np.tril(whole, -1 if unit else 0) if lower else np.triu(whole, 1 if unit else 0)
        return [matrix if argnum == 0 else pulled for argnum in argnums]

    return vjp


defvjp_argnums(solve_triangular, _of_triangular)


def _transposed_bands(below: int, above: int, bands: Any) -> Any:
    """The bands of the transposed matrix, of which `above` are below its diagonal."""
    rows, columns = np.indices((below + above + 1, np.shape(bands)[1]))
    places = columns + rows - below
    inside = (places >= 0) & (places < np.shape(bands)[1])
    return bands[below + above - rows, np.where(inside, places, 0)] * inside


def _of_banded(argnums: Sequence[int], x: Any, args: Sequence[Any], kwargs: Any) -> Callable[[Any], Any]:
    (below, above), bands = args[0], args[1]

    def vjp(g: Any) -> list[Any]:
        pulled = solve_banded((above, below), _transposed_bands(below, above, bands), g)
        if argnums == (2,):
            return [pulled]
        rows, columns = np.indices(np.shape(bands))
        places = columns + rows - above
        inside = (places >= 0) & (places < np.shape(bands)[1])
        left, right = (np.reshape(part, (np.shape(bands)[1], -1)) for part in (pulled, x))
        products = np.sum(left[np.where(inside, places, 0)] * right[columns], axis=-1) * inside
        return [-products if argnum == 1 else pulled for argnum in argnums]

    return vjp


defvjp_argnums(solve_banded, _of_banded)
