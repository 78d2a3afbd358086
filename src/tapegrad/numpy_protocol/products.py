"""Products of tensors and linear algebra with NumPy's names, arguments and defaults."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.errors import LinAlgError
from tapegrad.numpy_protocol.functions import every, real
from tapegrad.numpy_protocol.operands import NotCovered, named, one, with_large_matrix
from tapegrad.surface import functions as tg
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, array_of, make
from tapegrad.tensors.tracers import looks_at_values

__all__ = ["PRODUCTS", "matvec", "vecdot", "vecmat"]


_FLOAT64 = np.dtype(np.float64)


def _alike(*values: Any) -> list[Any]:
    """Operands in the dtype that NumPy computes in: products of tensors want one dtype."""
    operands = [one(x) for x in values]
    for x in operands:
        if type(x._data) is not float and x._data.dtype is not _FLOAT64:
            break
    else:
        return operands
    kinds = {x.dtype for x in operands}
    if len(kinds) == 1 and kinds != {np.dtype(bool)}:
        return operands
    dtype = np.result_type(*kinds)
    return [x if x.dtype == dtype else x.to(dtype) for x in operands]


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    if out is not None:
        raise NotCovered("give out by its name")
    if (product := with_large_matrix(a, b)) is not None:
        return product
    x, y = _alike(a, b)
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    if x.ndim <= 2 and y.ndim <= 2:
        return x @ y
    place = -1 if y.ndim == 1 else -2
    y = y.movedim(place, 0)
    product = x.reshape(-1, x.shape[-1]) @ y.reshape(y.shape[0], -1)
    return product.reshape(*x.shape[:-1], *y.shape[1:])


def _outer(a: Any, b: Any) -> Any:
    x, y = _alike(a, b)
    return tg.outer(x.reshape(-1), y.reshape(-1))


def _vdot(a: Any, b: Any, /) -> Any:
    x, y = _alike(a, b)
    return tg.dot(x.reshape(-1), y.reshape(-1))


def _inner(a: Any, b: Any, /) -> Any:
    x, y = _alike(a, b)
    return x * y if x.ndim == 0 or y.ndim == 0 else _dot(x, y.movedim(-1, -2) if y.ndim > 1 else y)


def _einsum(*operands: Any, optimize: Any = False, dtype: Any = None) -> Any:
    if isinstance(operands[0], str):
        subscripts, given = operands[0], operands[1:]
    else:
        subscripts, given = _written(operands), operands[: len(operands) // 2 * 2 : 2]
    found = named("einsum")(subscripts, *_alike(*given))
    if len(given) == 1 and not found.ndim:
        found = found.clone()  # a number, where what has dimensions may be a view
    return found if dtype is None else found.to(dtype)


def _written(operands: tuple[Any, ...]) -> str:
    """Subscripts that were given as lists of numbers."""

    def letters(places: Any) -> str:
        return "".join("..." if k is Ellipsis else chr(ord("a") + k if k < 26 else ord("A") + k - 26) for k in places)

    inputs = ",".join(letters(places) for places in operands[1::2])
    return f"{inputs}->{letters(operands[-1])}" if len(operands) % 2 else inputs


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    x, y = _alike(a, b)
    if type(axes) is int and axes == x.ndim == y.ndim > 1 and x.shape == y.shape:
        return _flat(x) @ _flat(y)  # over everything: the inner product, in a third of the time
    return named("tensordot")(x, y, axes)


def _flat(x: Tensor) -> Tensor:
    return x.reshape(-1) if x._row or TAPE.tracers else make(array_of(x).reshape(-1), 0)


def _kron(a: Any, b: Any) -> Any:
    return named("kron")(*_alike(a, b))


def _cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    x, y = _alike(a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = x.movedim(axisa, -1), y.movedim(axisb, -1)
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise NotCovered("both arrays hold vectors of three elements")
    x, y = tg.broadcast_tensors(x, y)
    return tg.cross(x, y, -1).movedim(-1, axisc)


def _norm(x: Any, ord: Any = None, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Any:
    x = real(x)
    axes = every(x, axis)
    if ord is None or len(axes) == 1:
        return tg.norm(x, 2 if ord is None else ord, None if axis is None else axes, keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    if ord == "fro":
        return tg.norm(x, 2, axes, keepdims)
    return named("linalg.matrix_norm")(x, ord, axes, keepdims)


def _solve(a: Any, b: Any) -> Any:
    x, y = _alike(a, b)
    if y.ndim == 1:
        return tg.linalg.solve(x, y.unsqueeze(-1)).squeeze(-1)
    # Of as many dimensions, it is a matrix; of one fewer, PyTorch would take it for vectors.
    return tg.linalg.solve(x, y.reshape(*[1] * (x.ndim - y.ndim), *y.shape))


def _eig(a: Any) -> Any:
    return look_up("linalg.real_eigenvalues:eig")(one(a))


def _eigvals(a: Any) -> Any:
    return _eig(a).eigenvalues


def _eigh(a: Any, UPLO: str = "L") -> Any:
    return tg.linalg.eigh(one(a), UPLO)


def _eigvalsh(a: Any, UPLO: str = "L") -> Any:
    return tg.linalg.eigvalsh(one(a), UPLO)


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    if hermitian:
        return _svd_of_hermitian(one(a), compute_uv)
    return tg.linalg.svd(one(a), full_matrices) if compute_uv else tg.linalg.svdvals(one(a))


@looks_at_values
def _svd_of_hermitian(x: Tensor, compute_uv: bool) -> Any:
    """Of a symmetric matrix, by its eigenvalues."""
    if not compute_uv:
        return tg.flip(tg.sort(tg.abs(tg.linalg.eigvalsh(x)), -1)[0], (-1,))
    own, vectors = tg.linalg.eigh(x)
    order = tg.tensor(np.argsort(np.abs(array_of(own)), -1)[..., ::-1].copy())
    own = tg.take_along_dim(own, order, -1)
    vectors = tg.take_along_dim(vectors, order[..., None, :], -1)
    signs = tg.sign(own).detach()
    return look_up("linalg.spectral:SVD")(vectors, tg.abs(own), (vectors * signs[..., None, :]).mT)


def _qr(a: Any, mode: str = "reduced") -> Any:
    # R has no derivative without Q.
    return tg.linalg.qr(one(a))[1] if mode == "r" else tg.linalg.qr(one(a), mode)


def _multi_dot(arrays: Any) -> Any:
    return tg.linalg.multi_dot([one(x) for x in arrays])


def _vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
    x = real(x)
    return named("linalg.vector_norm")(x, ord, every(x, axis), keepdims)


def _matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return _norm(x, ord, (-2, -1), keepdims)


def _svdvals(x: Any, /) -> Any:
    return tg.linalg.svdvals(one(x))


@looks_at_values
def _cond(x: Any, p: Any = None) -> Any:
    x = one(x)
    if not array_of(x).size:
        raise LinAlgError("cond is not defined on empty arrays")
    with contextlib.suppress(LinAlgError):  # which the inverse of a singular matrix raises
        found = _finite_cond(x, p)
        if np.isfinite(array_of(found)).all():
            return found
    with np.errstate(all="ignore"):
        singular = np.isinf(np.linalg.cond(array_of(x), p))
    if not singular.any():  # but nan
        return _finite_cond(x, p)
    # Of a singular matrix it is infinite, and so is the derivative.
    flat = x.reshape(-1, *x.shape[-2:])
    places = [np.flatnonzero(~singular), np.flatnonzero(singular)]
    regular, others = (flat[tg.tensor(place)] for place in places)
    total = tg.sum(tg.where(tg.isfinite(others), others, 0.0), (-2, -1))
    found = tg.cat([_finite_cond(regular, p), 1.0 / (total - total.detach())])
    return found[tg.tensor(np.argsort(np.concatenate(places)))].reshape(x.shape[:-2])


def _finite_cond(x: Tensor, p: Any) -> Any:
    if p is None or p == 2 or p == -2:
        values = tg.linalg.svdvals(x)
        return values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    return _norm(x, p, (-2, -1)) * _norm(tg.linalg.inv(x), p, (-2, -1))


class LstsqResult(NamedTuple):
    """What `numpy.linalg.lstsq` gives."""

    x: Any
    residuals: Any
    rank: Any
    s: Any


def _lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Solutions of full rank, of which the derivative is that of the pseudo-inverse."""
    x, y = _alike(a, b)
    _, residuals, rank, _ = np.linalg.lstsq(array_of(x), array_of(y), rcond)
    found = tg.linalg.pinv(x) @ y
    if residuals.size:
        misses = y - x @ found
        residuals = tg.sum(misses * misses, 0, y.ndim == 1)
    return LstsqResult(found, residuals, rank, tg.linalg.svdvals(x))


def _tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    x, y = _alike(a, b)
    if axes is not None:
        rest = [k for k in range(x.ndim) if k not in axes]
        x = x.permute(*rest, *axes)
    shape = x.shape[y.ndim :]
    return _solve(x.reshape(y.numel(), -1), y.reshape(-1)).reshape(*shape)


def _tensorinv(a: Any, ind: int = 2) -> Any:
    x = one(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    shape = (*x.shape[ind:], *x.shape[:ind])
    return tg.linalg.inv(x.reshape(math.prod(x.shape[:ind]), -1)).reshape(*shape)


def _outer_of_vectors(x1: Any, x2: Any, /) -> Any:
    if np.ndim(x1) != 1 or np.ndim(x2) != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are x1.ndim={np.ndim(x1)} and x2.ndim={np.ndim(x2)}.")
    return _outer(x1, x2)


def _trace_of_last(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return tg.sum(tg.diagonal(one(x), offset, -2, -1), -1, dtype=dtype)


def _diagonal_of_last(x: Any, /, *, offset: int = 0) -> Any:
    return tg.diagonal(one(x), offset, -2, -1)


def _cross_of_three(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return _cross(x1, x2, axis=axis)


def _matrix_transpose(x: Any, /) -> Any:
    return one(x).mT


def _matmul(x1: Any, x2: Any, /) -> Any:
    return np.matmul(x1, x2)


def _vecdot_of(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return vecdot(x1, x2, axis=axis)


def vecdot(x: Any, y: Any, axis: int = -1) -> Any:
    """`numpy.vecdot`, also along another axis than the last."""
    x, y = _alike(x, y)
    return tg.sum(x.movedim(axis, -1) * y.movedim(axis, -1), -1)


def matvec(x: Any, y: Any) -> Any:
    """`numpy.matvec`."""
    x, y = _alike(x, y)
    return tg.squeeze(x @ y.unsqueeze(-1), -1)


def vecmat(x: Any, y: Any) -> Any:
    """`numpy.vecmat`."""
    x, y = _alike(x, y)
    return tg.squeeze(x.unsqueeze(-2) @ y, -2)


def _of_one_matrix(name: str) -> Callable[..., Any]:
    return lambda a: named(f"linalg.{name}")(one(a))


def _cholesky(a: Any, /, *, upper: bool = False) -> Any:
    return tg.linalg.cholesky(one(a), upper=upper)


def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    x = one(a)
    if rcond is not None and rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    given = rcond if rtol is np._NoValue else rtol
    if given is None:  # by NumPy's defaults, as parts of the largest singular value
        given = 1e-15 if rtol is np._NoValue else max(x.shape[-2:]) * np.finfo(x.dtype).eps
    return tg.linalg.pinv(x, rtol=one(given).to(x.dtype), hermitian=hermitian)


def _matrix_power(a: Any, n: int) -> Any:
    return tg.linalg.matrix_power(one(a), n)


PRODUCTS: dict[str, Callable[..., Any]] = {
    "cross": _cross, "dot": _dot, "einsum": _einsum, "inner": _inner, "kron": _kron, "outer": _outer, "tensordot": _tensordot,
    "vdot": _vdot, "linalg.eig": _eig, "linalg.eigvals": _eigvals, "linalg.eigh": _eigh, "linalg.eigvalsh": _eigvalsh,
    "linalg.matrix_power": _matrix_power, "linalg.cholesky": _cholesky,
    "linalg.cond": _cond, "linalg.cross": _cross_of_three, "linalg.diagonal": _diagonal_of_last, "linalg.lstsq": _lstsq,
    "linalg.matmul": _matmul, "linalg.matrix_norm": _matrix_norm, "linalg.matrix_transpose": _matrix_transpose,
    "linalg.outer": _outer_of_vectors, "linalg.svdvals": _svdvals, "linalg.tensordot": _tensordot,
    "linalg.tensorinv": _tensorinv, "linalg.tensorsolve": _tensorsolve, "linalg.trace": _trace_of_last,
    "linalg.vecdot": _vecdot_of, "linalg.vector_norm": _vector_norm, "linalg.multi_dot": _multi_dot,
    "linalg.norm": _norm, "linalg.pinv": _pinv, "linalg.qr": _qr, "linalg.solve": _solve, "linalg.svd": _svd,
}  # fmt: skip
PRODUCTS |= {f"linalg.{name}": _of_one_matrix(name) for name in ("det", "inv", "slogdet")}
