"""Products of tensors and linear algebra with NumPy's names, arguments and defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.numpy_protocol.functions import NotCovered, every, named, one, real
from tapegrad.surface import functions as tg

__all__ = ["PRODUCTS"]


def _dot(a: Any, b: Any) -> Any:
    x, y = one(a), one(b)
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    if x.ndim <= 2 and y.ndim <= 2:
        return x @ y
    place = -1 if y.ndim == 1 else -2
    y = y.movedim(place, 0)
    product = x.reshape(-1, x.shape[-1]) @ y.reshape(y.shape[0], -1)
    return product.reshape(*x.shape[:-1], *y.shape[1:])


def _outer(a: Any, b: Any) -> Any:
    return tg.outer(one(a).reshape(-1), one(b).reshape(-1))


def _vdot(a: Any, b: Any, /) -> Any:
    return tg.dot(one(a).reshape(-1), one(b).reshape(-1))


def _inner(a: Any, b: Any, /) -> Any:
    x, y = one(a), one(b)
    return x * y if x.ndim == 0 or y.ndim == 0 else _dot(x, y.movedim(-1, -2) if y.ndim > 1 else y)


def _einsum(*operands: Any) -> Any:
    if not isinstance(operands[0], str):
        raise NotCovered("give the subscripts as a string, first")
    return named("einsum")(operands[0], *map(one, operands[1:]))


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    return named("tensordot")(one(a), one(b), axes)


def _kron(a: Any, b: Any) -> Any:
    return named("kron")(one(a), one(b))


def _cross(a: Any, b: Any, *, axis: int = -1) -> Any:
    return tg.cross(one(a), one(b), axis)


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
    x, y = one(a), one(b)
    if y.ndim == 1:
        return tg.linalg.solve(x, y.unsqueeze(-1)).squeeze(-1)
    # Of as many dimensions, it is a matrix; of one fewer, PyTorch would take it for vectors.
    return tg.linalg.solve(x, y.reshape(*[1] * (x.ndim - y.ndim), *y.shape))


def _eigh(a: Any, UPLO: str = "L") -> Any:
    return tg.linalg.eigh(one(a), UPLO)


def _eigvalsh(a: Any, UPLO: str = "L") -> Any:
    return tg.linalg.eigvalsh(one(a), UPLO)


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    return tg.linalg.svd(one(a), full_matrices) if compute_uv else tg.linalg.svdvals(one(a))


def _qr(a: Any, mode: str = "reduced") -> Any:
    # R has no derivative without Q.
    return tg.linalg.qr(one(a))[1] if mode == "r" else tg.linalg.qr(one(a), mode)


def _multi_dot(arrays: Any) -> Any:
    return tg.linalg.multi_dot([one(x) for x in arrays])


def _of_one_matrix(name: str) -> Callable[..., Any]:
    return lambda a: named(f"linalg.{name}")(one(a))


def _matrix_power(a: Any, n: int) -> Any:
    return tg.linalg.matrix_power(one(a), n)


PRODUCTS: dict[str, Callable[..., Any]] = {
    "cross": _cross, "dot": _dot, "einsum": _einsum, "inner": _inner, "kron": _kron, "outer": _outer, "tensordot": _tensordot,
    "vdot": _vdot, "linalg.eigh": _eigh, "linalg.eigvalsh": _eigvalsh, "linalg.matrix_power": _matrix_power,
    "linalg.multi_dot": _multi_dot, "linalg.norm": _norm, "linalg.qr": _qr, "linalg.solve": _solve, "linalg.svd": _svd,
}  # fmt: skip
PRODUCTS |= {f"linalg.{name}": _of_one_matrix(name) for name in ("cholesky", "det", "inv", "pinv", "slogdet")}
