"""Eigenvalues, singular values and solutions of complex matrices that are differentiated.

LAPACK gives the values; derivatives are the texts that `linalg` has of real matrices, with adjoints for transposes, on pairs of
arrays, so they can be of any order. A vector that belongs to a value is known but for a complex number of size one, and a
derivative exists of what does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.function import Function
from tapegrad.linalg.least_squares import pinv_cotangent
from tapegrad.linalg.spectral import eigenvalues_cotangent, eigh_cotangent, svd_cotangent
from tapegrad.linalg.vector_gaps import between_eigenvectors, between_singular_vectors, with_ties
from tapegrad.numpy_arrays.array import as_arrays
from tapegrad.numpy_arrays.complex_arrays import ComplexArray, complex_values, is_complex, made, parts
from tapegrad.numpy_arrays.untracked import with_digits
from tapegrad.tensors.tensor import Tensor, array_of, make

__all__ = ["DECOMPOSITIONS", "decomposed", "norm_by_singular_values", "singular_values"]

Vjp = Callable[[list[Any], list[Any]], ComplexArray]
_np: Any = np
PHASE = 1e-6  # of a cotangent, from which on it asks for the phase of a vector
ROUNDING = 50.0  # and what is left of cotangents that cancel each other


class _Decomposed(Function):
    """Arrays that a function finds for a complex matrix, each complex one as two real ones; the vjp is of the complex ones."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, find: Callable[[Any], Sequence[Any]], vjp: Vjp) -> Any:
        found = [np.asarray(part) for part in find(array_of(a) + 1j * array_of(b))]
        ctx.kinds, ctx.vjp = [part.dtype.kind for part in found], vjp
        flat = [np.array(x) for part in found for x in ((part.real, part.imag) if part.dtype.kind == "c" else (part,))]
        outputs = [make(x if x.ndim else float(x), 0) for x in flat]
        ctx.save_for_backward(*outputs)
        ctx.set_materialize_grads(False)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        outputs = _paired(ctx.kinds, ctx.saved_tensors)
        g = made(*parts(ctx.vjp(outputs, _cotangents(ctx.kinds, cotangents, outputs))))
        return g.real, g.imag, None, None


class _Values(Function):
    """Numbers of a complex matrix whose vjp starts from the matrix: equal ones have a derivative, which vectors have not.

    Real numbers are one output, complex ones two.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, find: Callable[[Any], Any], vjp: Callable[[Any, Any], ComplexArray]) -> Any:
        found = np.asarray(find(array_of(a) + 1j * array_of(b)))
        ctx.kind, ctx.vjp = found.dtype.kind, vjp
        ctx.save_for_backward(a, b)
        made_of = [np.array(x) for x in ((found.real, found.imag) if ctx.kind == "c" else (found,))]
        outputs = tuple(make(x if x.ndim or x.dtype != np.float64 else float(x), 0) for x in made_of)
        return outputs if ctx.kind == "c" else outputs[0]

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        a, b = map(as_arrays, ctx.saved_tensors)
        g = ctx.vjp(ComplexArray(a, b), *_paired([ctx.kind], cotangents))
        return g.real, g.imag, None, None


def _paired(kinds: Sequence[str], values: Sequence[Any]) -> list[Any]:
    rest = iter([as_arrays(value) for value in values])
    return [ComplexArray(next(rest), next(rest)) if kind == "c" else next(rest) for kind in kinds]


def _cotangents(kinds: Sequence[str], values: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """The cotangents of what a decomposition gave; None for what nothing depends on."""
    rest, found = iter(values), []
    for kind, output in zip(kinds, outputs, strict=True):
        some = [next(rest) for _ in range(2 if kind == "c" else 1)]
        zeros = np.zeros(output.shape, output.real.dtype)
        found.append(None if all(g is None for g in some) else _paired(kind, [make(zeros, 0) if g is None else g for g in some])[0])
    return found


def _or_zeros(cotangent: Any, output: Any) -> Any:
    if cotangent is not None:
        return cotangent
    zeros = np.zeros(output.shape, output.real.dtype)
    return made(zeros, zeros) if is_complex(output) else zeros


def decomposed(z: Any, find: Callable[[Any], Sequence[Any]], vjp: Vjp) -> list[Any]:
    """Arrays that a function finds for a matrix, which may be real if they are not.

    Parameters
    ----------
    find : callable
        Gives the arrays for the matrix as an array of NumPy's.
    vjp : callable
        ``vjp(arrays, cotangents)``, the cotangent of the matrix, of what is differentiated itself. The cotangent of an array that
        nothing depends on is None: where vectors have no derivative, values alone may have one.
    """
    pair = made(*parts(z))
    of_this = find if is_complex(z) else lambda whole: find(whole.real)
    kinds = [np.asarray(part).dtype.kind for part in of_this(complex_values(pair))]
    return _paired(kinds, _Decomposed.apply(pair.real, pair.imag, of_this, vjp))


def _adjoint(z: Any) -> Any:
    return np.conj(np.matrix_transpose(z))


def _diagonal(values: Any) -> Any:
    return values[..., None, :] * np.eye(np.shape(values)[-1])


class _Complex:
    """What the vjps of `linalg` are written with, on complex matrices: transposes are adjoints."""

    diagonal_matrix = staticmethod(_diagonal)

    @staticmethod
    def mT(x: Any) -> Any:
        return _adjoint(x)

    @staticmethod
    def matmul(x: Any, y: Any) -> Any:
        return x @ y

    @staticmethod
    def unsqueeze(x: Any, dim: int) -> Any:
        return np.expand_dims(x, dim)

    @staticmethod
    def off_diagonal(x: Any) -> Any:
        return np.where(np.eye(x.shape[-1]) == 0.0, x, 0.0)

    @staticmethod
    def identity_beside(x: Any) -> np.ndarray:
        return np.eye(x.shape[-1])

    @staticmethod
    def between_eigenvectors(turned: Any, g_values: Any, values: Any) -> Any:
        return between_eigenvectors(turned, g_values, values, _Complex)

    @staticmethod
    def between_singular_vectors(left: Any, right: Any, g_values: Any, values: Any) -> Any:
        return between_singular_vectors(left, right, g_values, values, _Complex)


def _gaps(values: Any) -> tuple[Any, np.ndarray]:
    """Differences ``values[j] - values[i]`` with ones in the diagonal, and the places beside the diagonal."""
    eye = np.eye(np.shape(values)[-1])
    return values[..., None, :] - values[..., :, None] + eye, 1.0 - eye


def _check_phase(name: str, turned: Any, size: Any) -> None:
    """Refuse a cotangent that asks for the phase of vectors: the imaginary part of the diagonal is how much."""
    phase = np.abs(np.diagonal(np.asarray(complex_values(turned)), axis1=-2, axis2=-1).imag)
    if np.any(phase > PHASE * np.max(np.abs(complex_values(size)), initial=0.0) + ROUNDING * np.finfo(phase.dtype).eps):
        raise RuntimeError(
            f"{name}: complex vectors are determined up to a factor of size one, on which the result of the function depends, so "
            "that it has no derivative; use what does not depend on it, as np.abs(v) or (v * w) @ np.conj(v).T"
        )


def _eigh(a: Any, UPLO: str = "L") -> Any:
    triangle = UPLO.upper()

    def vjp(outputs: list[Any], cotangents: list[Any]) -> ComplexArray:
        (w, v), (g_w, g_v) = outputs, cotangents
        if g_v is None:
            return _of_triangle(eigenvalues_cotangent(_Complex, g_w, v), triangle)
        _check_phase("numpy.linalg.eigh", _adjoint(v) @ g_v, g_v)
        g_w = _or_zeros(g_w, w)
        return _of_triangle(eigh_cotangent(_Complex, g_w, g_v, with_ties(w), v), triangle)

    return _named(np.linalg.eigh, decomposed(a, lambda z: _np.linalg.eigh(z, triangle), vjp))


def _named(function: Any, found: list[Any]) -> Any:
    """A result of the class that NumPy's function gives."""
    return type(function(np.eye(1)))(*found)


def _of_triangle(g: Any, triangle: str) -> Any:
    """A cotangent of the whole matrix as one of the triangle that is read."""
    part = np.tril if triangle == "L" else np.triu
    whole = part(g + _adjoint(g), -1 if triangle == "L" else 1)
    return whole + made(g.real * np.eye(g.shape[-1]), 0.0)


def _eigvalsh(a: Any, UPLO: str = "L") -> Any:
    triangle = UPLO.upper()

    def vjp(z: Any, g: Any) -> ComplexArray:
        _, v = _eigh(z, triangle)
        return _of_triangle(eigenvalues_cotangent(_Complex, g, v), triangle)

    z = made(*parts(a))
    return as_arrays(_Values.apply(z.real, z.imag, lambda z: _np.linalg.eigvalsh(z, triangle), vjp))


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    if hermitian:
        raise TypeError("numpy.linalg.svd: hermitian=True is not covered for complex matrices that are differentiated; use eigh")
    if not compute_uv:
        return singular_values(a)
    if full_matrices and a.shape[-1] != a.shape[-2]:
        raise TypeError("numpy.linalg.svd of complex matrices that are differentiated takes full_matrices=False")
    return _named(np.linalg.svd, decomposed(a, lambda z: np.linalg.svd(z, full_matrices=False), _svd_vjp))


def _svd_vjp(outputs: list[Any], cotangents: list[Any]) -> ComplexArray:
    (u, s, vh), (g_u, g_s, g_vh) = outputs, cotangents
    if g_u is None and g_vh is None:
        return _of_singular_values(g_s, u, vh)
    g_u, g_s, g_vh = map(_or_zeros, cotangents, outputs)
    v, g_v = _adjoint(vh), _adjoint(g_vh)
    of_u = _adjoint(u) @ g_u
    _check_phase("numpy.linalg.svd", of_u + vh @ g_v, g_u)
    rows, columns, count = u.shape[-2], v.shape[-2], s.shape[-1]
    g = svd_cotangent(_Complex, g_s, g_u, g_v, with_ties(s), u, v, rows > count, columns > count)
    # What both vectors of a value are turned by together, which real ones cannot be.
    turns = np.imag(np.diagonal(of_u, axis1=-2, axis2=-1)) / s
    return g + (u * made(0.0 * turns, turns)[..., None, :]) @ vh


def _of_singular_values(g: Any, u: Any, vh: Any) -> Any:
    return (u * g[..., None, :]) @ vh


def singular_values(a: Any) -> Any:
    """Singular values of complex matrices."""

    def vjp(z: Any, g: Any) -> ComplexArray:
        u, _, vh = _svd(z, full_matrices=False)
        return _of_singular_values(g, u, vh)

    z = made(*parts(a))
    return as_arrays(_Values.apply(z.real, z.imag, lambda z: np.linalg.svd(z, compute_uv=False), vjp))


def norm_by_singular_values(a: Any, ord: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """A norm of complex matrices by their singular values: their sum, or the largest or the smallest of them."""
    rows, columns = (-2, -1) if axis is None else axis
    values = singular_values(np.moveaxis(a, (rows, columns), (-2, -1)))
    found = _np.sum(values, -1) if ord == "nuc" else values[..., 0 if ord == 2 else -1]
    return _np.expand_dims(found, tuple(k % a.ndim for k in (rows, columns))) if keepdims else found


def _eig(a: Any) -> Any:
    return _named(np.linalg.eig, decomposed(a, np.linalg.eig, _eig_vjp))


def _eigvals(a: Any) -> Any:
    return decomposed(a, np.linalg.eig, _eig_vjp)[0]


def _eig_vjp(outputs: list[Any], cotangents: list[Any]) -> ComplexArray:
    w, v = outputs
    g_w, g_v = map(_or_zeros, cotangents, outputs)  # equal values of a matrix that is not Hermitian need not have a derivative
    turned = _adjoint(v) @ g_v
    _check_phase("numpy.linalg.eig", turned, g_v)
    # Vectors of length one do not grow: what points along them is taken out.
    along = np.real(np.diagonal(turned, axis1=-2, axis2=-1))
    gaps, beside = _gaps(w)
    inner = (turned - _adjoint(v) @ (v * along[..., None, :])) / np.conj(gaps) * beside + _diagonal(g_w)
    return _solve(_adjoint(v), inner @ _adjoint(v))


def _solve(a: Any, b: Any) -> Any:
    """The solution of a real system of twice the size, with the digits of NumPy's own."""
    n = np.shape(a)[-1]
    right = made(*parts(b))
    exact = np.linalg.solve(complex_values(a), complex_values(b))
    single = right.ndim == 1
    if single:
        right = right[:, None]
    re, im = parts(made(*parts(a)))
    whole = _np.concatenate([_np.concatenate([re, -im], -1), _np.concatenate([im, re], -1)], -2)
    found = _np.linalg.solve(whole, _np.concatenate([right.real, right.imag], -2))
    top, bottom = found[..., :n, :], found[..., n:, :]
    if single:
        top, bottom = top[..., 0], bottom[..., 0]
    return made(with_digits(top * 1.0, exact.real), with_digits(bottom * 1.0, exact.imag))


def _inv(a: Any) -> Any:
    exact = np.linalg.inv(complex_values(a))
    found = _solve(a, np.broadcast_to(np.eye(a.shape[-1], dtype=exact.real.dtype), a.shape))
    return made(with_digits(found.real, exact.real), with_digits(found.imag, exact.imag))


def _of_whole(a: Any, find: Callable[[Any], Any], vjp: Callable[[Any, Any], Any]) -> Any:
    """Complex numbers of a complex matrix."""
    z = made(*parts(a))
    return ComplexArray(*map(as_arrays, _Values.apply(z.real, z.imag, find, vjp)))


def _slogdet(a: Any) -> Any:
    sign, logarithm = np.linalg.slogdet(complex_values(a))
    if np.any(sign == 0):
        raise RuntimeError(
            "numpy.linalg.det and slogdet of singular complex matrices have no derivative here; det is the product of "
            "np.linalg.eigvals as well"
        )

    def find(z: Any) -> Any:
        return logarithm + 1j * np.angle(sign)

    found = _of_whole(a, find, lambda z, g: _adjoint(_inv(z)) * g[..., None, None])
    phase = made(with_digits(np.cos(found.imag), sign.real), with_digits(np.sin(found.imag), sign.imag))
    return type(np.linalg.slogdet(np.eye(1)))(phase, found.real)


def _det(a: Any) -> Any:
    sign, logarithm = _slogdet(a)
    found, exact = sign * np.exp(logarithm), np.linalg.det(complex_values(a))
    return made(with_digits(found.real, exact.real), with_digits(found.imag, exact.imag))


def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = _np._NoValue) -> Any:
    if hermitian:
        raise TypeError(
            "numpy.linalg.pinv: hermitian=True is not covered for complex matrices that are differentiated; leave it away"
        )

    def find(z: Any) -> Any:
        return np.linalg.pinv(z, rcond, rtol=rtol)

    return _of_whole(a, find, lambda z, g: pinv_cotangent(_Complex, g, z, _pinv(z, rcond, rtol=rtol)))


def _cholesky(a: Any, *, upper: bool = False) -> Any:
    def vjp(z: Any, g: Any) -> ComplexArray:
        lower = _cholesky(z)
        inner = np.tril(_adjoint(lower) @ g) * (1.0 - 0.5 * np.eye(z.shape[-1]))
        left = _solve(_adjoint(lower), inner)
        return _of_triangle(_adjoint(_solve(_adjoint(lower), _adjoint(left))), "L")

    if upper:
        return _adjoint(_cholesky(_adjoint(a)))
    return _of_whole(a, np.linalg.cholesky, vjp)


def _matrix_power(a: Any, n: int) -> Any:
    base, found = _inv(a) if n < 0 else a, None
    for bit in f"{abs(n):b}":
        found = found if found is None else found @ found
        found = (base if found is None else found @ base) if bit == "1" else found
    if found is None:
        found = 0.0 * a + np.eye(a.shape[-1], dtype=a.real.dtype)
    exact = np.linalg.matrix_power(complex_values(a), n)
    return made(with_digits(found.real * 1.0, exact.real), with_digits(found.imag * 1.0, exact.imag))


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    np.linalg.eigh: _eigh, np.linalg.eigvalsh: _eigvalsh, np.linalg.svd: _svd, np.linalg.eig: _eig,
    np.linalg.eigvals: _eigvals, np.linalg.solve: _solve, np.linalg.inv: _inv, np.linalg.slogdet: _slogdet, np.linalg.det: _det,
    np.linalg.pinv: _pinv, np.linalg.cholesky: _cholesky, np.linalg.matrix_power: _matrix_power,
}  # fmt: skip
if hasattr(np.linalg, "svdvals"):
    DECOMPOSITIONS[np.linalg.svdvals] = singular_values
