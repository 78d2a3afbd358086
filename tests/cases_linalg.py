"""Linear algebra. What has an arbitrary sign is squared; what is expanded would be singular."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.spatial.distance
from operation_case import Case

import tapegrad as tg

L = tg.linalg
RNG = np.random.default_rng(12)


def array(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def regular(*shape: int) -> np.ndarray:
    """Matrices far from singular ones, with distinct singular values."""
    found = array(*shape)
    return found + np.eye(*shape[-2:]) * (2.0 + np.arange(shape[-1]))


def symmetric(x: Any) -> Any:
    return x + x.swapaxes(-1, -2)


def positive(x: Any) -> Any:
    return x @ x.swapaxes(-1, -2)


def square_of_vectors(found: Any) -> tuple[Any, ...]:
    return tuple(part**2 for part in found)


A, BATCH = regular(3, 3), regular(2, 2, 2)
TALL, WIDE = regular(3, 2), regular(2, 3)
LOW_RANK = array(3, 1), array(1, 2)
LOWER = np.tril(regular(3, 3))


def case(
    name: str,
    call: Callable[..., Any],
    arrays: tuple[np.ndarray, ...],
    reference: Callable[..., Any],
    label: str = "",
    order: int = 2,
    tolerance: float = 1e-5,
) -> Case:
    return Case(name, call, arrays, reference, label, order, tolerance, expands=False)


def factors_of_each(a: np.ndarray) -> np.ndarray:
    return np.stack([scipy.linalg.lu_factor(b)[0] for b in a])


def triangular(upper: bool, left: bool, unit: bool) -> Case:
    def reference(a: np.ndarray, b: np.ndarray) -> Any:
        a, b = (a, b) if left else (a.T, b.T)
        x = scipy.linalg.solve_triangular(a, b, lower=upper != left, unit_diagonal=unit)
        return x if left else x.T

    options: dict[str, bool] = {"upper": upper, "left": left, "unitriangular": unit}
    label = ",".join(name for name, value in options.items() if value)
    b = array(3, 2) if left else array(2, 3)
    return case("linalg.solve_triangular", lambda x, y: L.solve_triangular(x, y, **options), (A, b), reference, label)


def batched(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of matrices, one batch element after the other."""
    return lambda *arrays: np.stack([function(*(a[k] for a in arrays)) for k in range(len(arrays[0]))])


def cityblock(a: np.ndarray, b: np.ndarray) -> Any:
    return scipy.spatial.distance.cdist(a, b, "cityblock")


def shortened(a: np.ndarray) -> Any:
    size = np.linalg.norm(a, axis=1, keepdims=True)
    return a * np.where(size > 1.0, 1.0 / (size + 1e-7), 1.0)


CASES: list[Case] = [
    case("linalg.inv", L.inv, (A,), np.linalg.inv),
    case("linalg.inv", L.inv, (BATCH,), np.linalg.inv, "batch"),
    case("inverse", tg.inverse, (A,), np.linalg.inv),
    case("linalg.solve", L.solve, (A, array(3, 2)), np.linalg.solve),
    case("linalg.solve", L.solve, (A, array(3)), np.linalg.solve, "vector"),
    case("linalg.solve", L.solve, (BATCH, array(2, 1)), np.linalg.solve, "broadcast"),
    case("linalg.solve", L.solve, (BATCH, array(2, 2)), batched(np.linalg.solve), "vectors"),
    case("linalg.solve", L.solve, (BATCH[0], array(2, 2, 1)), lambda a, b: np.linalg.inv(a) @ b, "many"),
    case("linalg.solve", lambda a, b: L.solve(a, b, left=False), (A, array(2, 3)), lambda a, b: b @ np.linalg.inv(a), "right"),
    *(triangular(upper, left, unit) for upper in (False, True) for left in (False, True) for unit in (False, True)),
    case(
        "linalg.solve_triangular",
        lambda a, b: L.solve_triangular(a, b, upper=True),
        (BATCH, array(2, 1)),
        lambda a, b: np.linalg.solve(np.triu(a), b),
        "batch",
    ),
    case("linalg.tensorsolve", L.tensorsolve, (regular(6, 6).reshape(2, 3, 6), array(2, 3)), np.linalg.tensorsolve),
    case(
        "linalg.tensorsolve",
        lambda a, b: L.tensorsolve(a, b, dims=(0,)),
        (regular(6, 6).reshape(6, 2, 3), array(2, 3)),
        lambda a, b: np.linalg.tensorsolve(a, b, axes=(0,)),
        "dims",
    ),
    case("linalg.tensorinv", lambda a: L.tensorinv(a, 1), (regular(4, 4).reshape(4, 2, 2),), lambda a: np.linalg.tensorinv(a, 1)),
    case("linalg.det", L.det, (A,), np.linalg.det),
    case("linalg.det", L.det, (BATCH,), np.linalg.det, "batch"),
    case("det", tg.det, (array(3, 2) @ array(2, 3),), lambda a: 0.0 * a[0, 0], "singular"),
    case("linalg.slogdet", L.slogdet, (A,), np.linalg.slogdet),
    case("slogdet", tg.slogdet, (-BATCH,), np.linalg.slogdet, "batch"),
    case("logdet", lambda x: tg.logdet(positive(x)), (BATCH,), lambda x: np.log(np.linalg.det(positive(x)))),
    case("linalg.cholesky", lambda x: L.cholesky(positive(x)), (A,), lambda x: np.linalg.cholesky(positive(x))),
    case("cholesky", lambda x: tg.cholesky(positive(x), True), (BATCH,), lambda x: np.linalg.cholesky(positive(x)).swapaxes(1, 2)),
    case(
        "cholesky_solve",
        lambda b, a: tg.cholesky_solve(b, tg.tril(a)),
        (array(3, 2), LOWER),
        lambda b, a: np.linalg.solve(a @ a.T, b),
    ),
    case(
        "cholesky_solve",
        lambda b, a: tg.cholesky_solve(b, tg.triu(a), upper=True),
        (array(3, 2), A),
        lambda b, a: np.linalg.solve(np.triu(a).T @ np.triu(a), b),
        "upper",
    ),
    case("cholesky_inverse", lambda a: tg.cholesky_inverse(tg.tril(a)), (LOWER,), lambda a: np.linalg.inv(a @ a.T)),
    case("linalg.qr", lambda x: tuple(L.qr(x)), (A,), np.linalg.qr),
    case("linalg.qr", L.qr, (TALL,), np.linalg.qr, "tall"),
    case("linalg.qr", L.qr, (WIDE,), np.linalg.qr, "wide"),
    case("linalg.qr", lambda x: L.qr(x, "complete"), (WIDE,), lambda x: np.linalg.qr(x, "complete"), "complete"),
    case("qr", tg.qr, (regular(2, 3, 2),), np.linalg.qr, "batch"),
    case(
        "linalg.eigh",
        lambda x: square_of_vectors(L.eigh(symmetric(x))),
        (A,),
        lambda x: square_of_vectors(np.linalg.eigh(symmetric(x))),
    ),
    case(
        "linalg.eigh",
        lambda x: square_of_vectors(L.eigh(symmetric(x), "U")),
        (BATCH,),
        lambda x: square_of_vectors(np.linalg.eigh(symmetric(x))),
        "batch",
    ),
    case("linalg.eigvalsh", lambda x: L.eigvalsh(symmetric(x)), (A,), lambda x: np.linalg.eigvalsh(symmetric(x))),
    *(
        case(
            "linalg.svd",
            lambda x: square_of_vectors(L.svd(x, full_matrices=False)),
            (point,),
            lambda x: square_of_vectors(np.linalg.svd(x, full_matrices=False)),
            label,
        )
        for label, point in (("square", A), ("tall", TALL), ("wide", WIDE), ("batch", regular(2, 3, 2)))
    ),
    case("linalg.svd", lambda x: L.svd(x).S, (TALL,), lambda x: np.linalg.svd(x)[1], "full"),
    case("svd", lambda x: square_of_vectors(tg.svd(x)), (A,), lambda x: square_of_vectors(_with_columns(x))),
    case("linalg.svdvals", L.svdvals, (WIDE,), lambda x: np.linalg.svd(x, compute_uv=False)),
    case("linalg.pinv", L.pinv, (TALL,), np.linalg.pinv, "tall"),
    case("linalg.pinv", L.pinv, (regular(2, 2, 3),), np.linalg.pinv, "batch"),
    case("linalg.pinv", lambda x, y: L.pinv(x @ y, rtol=1e-6), LOW_RANK, lambda x, y: np.linalg.pinv(x @ y, 1e-6), "low rank"),
    case("linalg.pinv", lambda x: L.pinv(symmetric(x), hermitian=True), (A,), lambda x: np.linalg.inv(symmetric(x)), "hermitian"),
    case("pinverse", tg.pinverse, (WIDE,), np.linalg.pinv),
    case("linalg.lstsq", lambda a, b: L.lstsq(a, b).solution, (TALL, array(3, 2)), lambda a, b: np.linalg.lstsq(a, b)[0], "tall"),
    case("linalg.lstsq", lambda a, b: L.lstsq(a, b).solution, (WIDE, array(2, 2)), lambda a, b: np.linalg.lstsq(a, b)[0], "wide"),
    case("linalg.lstsq", lambda a, b: L.lstsq(a, b)[0], (TALL, array(3, 1)), lambda a, b: np.linalg.pinv(a) @ b, "column"),
    case(
        "linalg.lstsq",
        lambda a, b: L.lstsq(a, b, driver="gels").residuals,
        (TALL, array(3, 2)),
        lambda a, b: np.linalg.lstsq(a, b)[1],
        "residuals",
    ),
    case(
        "linalg.lstsq", lambda a, b: L.lstsq(a, b)[0], (regular(2, 3, 2), array(2, 3)), batched(lambda a, b: np.linalg.pinv(a) @ b)
    ),
    Case("linalg.matrix_rank", L.matrix_rank, (A,), np.linalg.matrix_rank, order=0),
    Case("linalg.matrix_rank", L.matrix_rank, (LOW_RANK[0] @ LOW_RANK[1],), np.linalg.matrix_rank, "low", order=0, float32=False),
    case("linalg.matrix_exp", L.matrix_exp, (A,), scipy.linalg.expm),
    case("matrix_exp", tg.matrix_exp, (0.1 * BATCH,), scipy.linalg.expm, "batch"),
    *(
        case("linalg.matrix_norm", lambda x, p=p: L.matrix_norm(x, p), (TALL,), lambda x, p=p: np.linalg.norm(x, p), str(p))
        for p in ("fro", "nuc", np.inf, -np.inf, 1, -1, 2, -2)
    ),
    case(
        "linalg.matrix_norm",
        lambda x: L.matrix_norm(x, 1, dim=(2, 0), keepdim=True),
        (array(2, 2, 3),),
        lambda x: np.linalg.norm(x, 1, axis=(2, 0), keepdims=True),
        "dim",
    ),
    *(
        case(
            "linalg.norm", lambda x, p=p, d=d: L.norm(x, p, dim=d), (TALL,), lambda x, p=p, d=d: np.linalg.norm(x, p, d), f"{p},{d}"
        )
        for p, d in ((None, None), (3, 0), ("nuc", None), (-2, (1, 0)))
    ),
    case("linalg.vector_norm", lambda x: L.vector_norm(x, 3), (TALL,), lambda x: np.linalg.norm(x.ravel(), 3)),
    *(
        case("linalg.cond", lambda x, p=p: L.cond(x, p), (A,), lambda x, p=p: np.linalg.cond(x, p), str(p))
        for p in (None, 2, -2, "fro", "nuc", np.inf, -np.inf, 1, -1)
    ),
    case("linalg.cond", L.cond, (regular(2, 3, 2),), np.linalg.cond, "batch"),
    *(
        case("linalg.matrix_power", lambda x, n=n: L.matrix_power(x, n), (A,), lambda x, n=n: np.linalg.matrix_power(x, n), str(n))
        for n in (0, 1, 2, 5, -1, -3)
    ),
    case("matrix_power", lambda x: tg.matrix_power(x, 3), (BATCH,), lambda x: x @ x @ x, "batch"),
    case("linalg.lu", lambda x: tuple(L.lu(x)[1:]), (A,), lambda a: scipy.linalg.lu(a)[1:]),
    case("linalg.lu", lambda x: L.lu(x).U, (BATCH,), lambda a: np.stack([scipy.linalg.lu(b)[2] for b in a]), "batch"),
    case("linalg.lu_factor", lambda x: L.lu_factor(x).LU, (A,), lambda a: scipy.linalg.lu_factor(a)[0]),
    case("linalg.lu_solve", lambda x, y: L.lu_solve(*L.lu_factor(x), y), (A, TALL), np.linalg.solve),
    case(
        "linalg.lu_solve",
        lambda x, y: L.lu_solve(*L.lu_factor(x), y, left=False),
        (A, WIDE),
        lambda a, b: np.linalg.solve(a.T, b.T).T,
        "right",
    ),
    case(
        "linalg.lu_solve",
        lambda x, y: L.lu_solve(*L.lu_factor(x), y, adjoint=True),
        (A, TALL),
        lambda a, b: np.linalg.solve(a.T, b),
        "adjoint",
    ),
    case("linalg.lu", lambda x: tuple(L.lu(x)[1:]), (TALL,), lambda a: scipy.linalg.lu(a)[1:], "tall"),
    case("linalg.lu", lambda x: tuple(L.lu(x)[1:]), (WIDE,), lambda a: scipy.linalg.lu(a)[1:], "wide"),
    case("linalg.lu_factor", lambda x: L.lu_factor(x).LU, (regular(2, 4, 2),), factors_of_each, "tall"),
    case("linalg.lu_factor", lambda x: L.lu_factor(x).LU, (regular(2, 2, 4),), factors_of_each, "wide"),
    case("linalg.lu_factor_ex", lambda x: L.lu_factor_ex(x).LU, (A,), lambda a: scipy.linalg.lu_factor(a)[0]),
    case("linalg.inv_ex", lambda x: L.inv_ex(x).inverse, (A,), np.linalg.inv),
    case("linalg.solve_ex", lambda x, y: L.solve_ex(x, y).result, (A, TALL), np.linalg.solve),
    case("linalg.cholesky_ex", lambda x: L.cholesky_ex(positive(x)).L, (A,), lambda a: np.linalg.cholesky(positive(a))),
    Case("linalg.diagonal", lambda x: L.diagonal(x, offset=1), (BATCH,), lambda a: np.diagonal(a, 1, -2, -1)),
    Case("linalg.vander", lambda x: L.vander(x, N=4), (WIDE,), lambda a: a[..., None] ** np.arange(4)),
    Case("cdist", tg.cdist, (TALL, regular(4, 2)), scipy.spatial.distance.cdist, expands=False),
    Case("cdist", lambda x, y: tg.cdist(x, y, 1.0), (TALL, regular(4, 2)), cityblock, "1", expands=False),
    Case("pdist", tg.pdist, (TALL,), scipy.spatial.distance.pdist, expands=False),
    Case("renorm", lambda x: tg.renorm(x, 2, 0, 1.0), (TALL,), shortened),
]


def _with_columns(x: np.ndarray) -> tuple[np.ndarray, ...]:
    U, S, Vh = np.linalg.svd(x)
    return U, S, Vh.T
