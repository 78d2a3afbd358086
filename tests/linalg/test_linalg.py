"""Linear algebra at its edges: singular matrices, equal values, triangles that are not read, empty batches, names, errors."""

import ctypes
import itertools
import re
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.linalg.cython_blas
import scipy.linalg.cython_lapack
from engine_fixtures import numbers
from many_cases import each
from numerical import check_gradients, gradient

import tapegrad as tg
from tapegrad.linalg import blas, kept_factors, substitution

L = tg.linalg
RNG = np.random.default_rng(21)
NAN, INF = float("nan"), float("inf")


def array(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def leaf(values: Any) -> tg.Tensor:
    return tg.tensor(values, requires_grad=True)


def leibniz(x: tg.Tensor) -> tg.Tensor:
    """The determinant by its definition."""
    n = x.shape[-1]
    total = 0.0 * x.sum((-2, -1))
    for order in itertools.permutations(range(n)):
        term = np.linalg.det(np.eye(n)[list(order)]) * x[..., 0, order[0]]
        for k in range(1, n):
            term = term * x[..., k, order[k]]
        total = total + term
    return total


def derivatives_in_one_direction(f: Any, values: np.ndarray, order: int) -> list[np.ndarray]:
    x = leaf(values)
    total = f(x).sum()
    direction = tg.tensor(np.random.default_rng(5).normal(size=values.shape))
    found = []
    for level in range(1, order + 1):
        (g,) = tg.autograd.grad(total, x, create_graph=level < order)
        found.append(numbers(g))
        total = (g * direction).sum()
    return found


SINGULAR = {
    **{f"rank {r}": array(4, r) @ array(r, 4) for r in range(4)},
    "batch": np.stack([np.zeros((3, 3)), np.eye(3), np.diag([1.0, 0.0, 2.0]), np.diag([1e-9, 1.0, 1e3])]),
    "nearly": np.diag([1.0, 1e-13, 2.0]) + 1e-14,
}


@each("point", SINGULAR.values(), ids=SINGULAR)
def test_det_of_singular_matrices_has_the_derivatives_of_a_polynomial(point: np.ndarray) -> None:
    got, expected = (derivatives_in_one_direction(f, point, point.shape[-1]) for f in (L.det, leibniz))
    for level, (one, other) in enumerate(zip(got, expected, strict=True), 1):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9 * max(1.0, np.abs(other).max()), err_msg=f"order {level}")


@each("diagonal", [[1e-10, 1.0, 1e10], [1e-30, 1e-30, 1e-30, 1e20], [1.0] + [1e-6] * 9, [1e-20] * 8 + [1.0]], ids=str)
def test_gradient_of_det_is_as_accurate_for_badly_scaled_matrices(diagonal: list[float]) -> None:
    values = np.array(diagonal)
    expected = np.array([np.prod(np.delete(values, k)) for k in range(len(values))])
    np.testing.assert_allclose(np.diag(gradient(L.det, np.diag(values))), expected, rtol=1e-12)


def test_gradient_of_det_with_many_small_singular_values_is_that_of_the_logarithm() -> None:
    point = scipy.linalg.hilbert(9)
    expected = np.linalg.det(point) * scipy.linalg.invhilbert(9)
    np.testing.assert_allclose(gradient(L.det, point), expected, rtol=1e-4)


@each("scale", [1e-200, 1e-155, 1e155])
def test_derivatives_of_det_where_it_is_too_small_or_too_large_for_a_number(scale: float) -> None:
    point = scale * np.array([[1.0, 2.0], [3.0, 5.0]])
    expected = scale * np.array([[5.0, -3.0], [-2.0, 1.0]])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(gradient(L.det, point), expected, rtol=1e-14)
        in_a_batch = gradient(lambda x: L.det(x).sum(), np.stack([point, np.eye(2)]))
        product = tg.hvp(L.det, point, np.ones((2, 2)))
    np.testing.assert_allclose(in_a_batch, np.stack([expected, np.eye(2)]), rtol=1e-14)
    np.testing.assert_allclose(product, [[1.0, -1.0], [-1.0, 1.0]], rtol=1e-14)


def test_det_of_zero_matrices_too_large_to_expand_has_no_gradient() -> None:
    np.testing.assert_array_equal(derivatives_in_one_direction(L.det, np.zeros((8, 8)), 2), np.zeros((2, 8, 8)))


def test_det_of_nan_has_gradient_nan() -> None:
    assert np.isnan(gradient(L.det, [[NAN, 1.0], [1.0, 1.0]])).all()


def test_slogdet_of_a_singular_matrix_spoils_no_other_gradient() -> None:
    batch = np.stack([np.ones((2, 2)), np.diag([2.0, 4.0])])
    x = leaf(batch)
    sign, logarithm = L.slogdet(x)
    np.testing.assert_array_equal(numbers(sign), [0.0, 1.0])
    np.testing.assert_allclose(numbers(logarithm), [-INF, np.log(8.0)])
    logarithm.sum().backward()
    assert not np.isfinite(x.grad.numpy()[0]).any()
    np.testing.assert_allclose(x.grad.numpy()[1], np.diag([0.5, 0.25]))


def test_the_sign_of_slogdet_has_gradient_zero() -> None:
    np.testing.assert_array_equal(gradient(lambda x: L.slogdet(x).sign, np.eye(2)), np.zeros((2, 2)))


def test_logdet_of_a_negative_determinant_is_nan() -> None:
    assert np.isnan(tg.logdet(tg.tensor([[0.0, 1.0], [1.0, 0.0]])).item())


EQUAL = [np.eye(3), np.diag([2.0, 2.0, 1.0]), np.zeros((3, 3))]


@each("point", EQUAL, ids=["ones", "two", "zeros"])
def test_smooth_functions_of_equal_eigenvalues_have_their_gradient(point: np.ndarray) -> None:
    got = gradient(lambda x: L.eigvalsh(x).exp().sum(), point)
    np.testing.assert_allclose(got, scipy.linalg.expm(point), rtol=1e-12, atol=1e-12)


@each("point", EQUAL, ids=["ones", "two", "zeros"])
def test_smooth_functions_of_equal_singular_values_have_their_gradient(point: np.ndarray) -> None:
    np.testing.assert_allclose(gradient(lambda x: (L.svdvals(x) ** 2).sum(), point), 2.0 * point, rtol=1e-12, atol=1e-12)


@each(
    "f",
    [
        lambda x: L.eigh(x).eigenvectors.sum(),
        lambda x: (L.eigh(x).eigenvectors * L.eigh(x).eigenvalues.log()).sum(),
        lambda x: L.svd(x).U.sum(),
        lambda x: ((lambda r: (r[1] * r[0].log()) @ r[1].T)(L.eigh(x))).sum(),
    ],
    ids=["eigh", "values and vectors", "svd", "logarithm"],
)
def test_vectors_of_equal_values_have_no_finite_gradient(f: Any) -> None:
    # The logarithm is zero here, and so are the cotangents of its vectors: they must not count as unused.
    assert not np.isfinite(gradient(f, np.eye(3))).all()


@each("values", [L.eigvalsh, L.svdvals])
def test_second_derivatives_at_equal_values_are_not_finite(values: Any) -> None:
    x = leaf(np.eye(3))
    (g,) = tg.autograd.grad((values(x) ** 3).sum(), x, create_graph=True)
    (second,) = tg.autograd.grad((g * tg.tensor(array(3, 3))).sum(), x)
    assert not np.isfinite(second.numpy()).any()


def test_a_reconstruction_has_the_gradient_of_the_identity() -> None:
    point = array(3, 3)

    def rebuild(x: tg.Tensor) -> tg.Tensor:
        U, S, Vh = L.svd(x)
        return ((U * S) @ Vh * tg.tensor(np.arange(9.0).reshape(3, 3))).sum()

    np.testing.assert_allclose(gradient(rebuild, point), np.arange(9.0).reshape(3, 3), rtol=1e-10, atol=1e-10)


def test_gradients_through_full_singular_vectors_are_those_of_the_thin_ones() -> None:
    point = array(4, 2)
    full, thin = (gradient(lambda x, f=f: (L.svd(x, full_matrices=f).U[:, :2] ** 2)[0].sum(), point) for f in (True, False))
    np.testing.assert_allclose(full, thin, rtol=1e-10)


@each(("function", "fields"), [(L.eigh, 2), (L.svd, 3), (L.qr, 2), (L.slogdet, 2)])
def test_outputs_share_their_node_and_are_numbered(function: Any, fields: int) -> None:
    outputs = function(leaf(array(2, 2)))
    nodes = [t.grad_fn for t in outputs]
    assert all(node is nodes[0] for node in nodes)
    assert [t.output_nr for t in outputs] == list(range(fields))
    for k, t in enumerate(outputs):
        assert (t * 2.0).grad_fn.next_functions[0] == (t.grad_fn, k)


def test_outputs_do_not_depend_on_each_other() -> None:
    x = leaf(np.diag([1.0, 2.0]))
    values, vectors = L.eigh(x)
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        tg.autograd.grad(values.sum(), vectors, retain_graph=True)
    assert tg.autograd.grad(values.sum(), vectors, allow_unused=True) == (None,)


@each(
    ("result", "fields"),
    [
        (L.eigh(tg.eye(2)), ("eigenvalues", "eigenvectors")),
        (L.svd(tg.eye(2)), ("U", "S", "Vh")),
        (tg.svd(tg.eye(2)), ("U", "S", "V")),
        (L.qr(tg.eye(2)), ("Q", "R")),
        (L.slogdet(tg.eye(2)), ("sign", "logabsdet")),
        (L.lstsq(tg.eye(2), tg.eye(2)), ("solution", "residuals", "rank", "singular_values")),
    ],
)
def test_results_have_names(result: Any, fields: tuple[str, ...]) -> None:
    assert result._fields == fields


@pytest.mark.point(89)
@each(
    ("f", "name"),
    [
        (L.inv, "LinalgInvExBackward0"),
        (lambda x: L.solve(x, x), "LinalgSolveExBackward0"),
        (lambda x: L.solve(x, x[0]), "LinalgSolveExBackward0"),
        (lambda x: L.solve_triangular(x, x, upper=True), "LinalgSolveTriangularBackward0"),
        (L.det, "LinalgDetBackward0"),
        (lambda x: L.slogdet(x)[1], "LinalgSlogdetBackward0"),
        (tg.logdet, "WhereBackward0"),
        (L.cholesky, "LinalgCholeskyExBackward0"),
        (lambda x: tg.cholesky_solve(x, x), "CholeskySolveBackward0"),
        (tg.cholesky_inverse, "CholeskyInverseBackward0"),
        (lambda x: L.qr(x).Q, "LinalgQrBackward0"),
        (lambda x: L.eigh(x)[0], "LinalgEighBackward0"),
        (L.eigvalsh, "LinalgEighBackward0"),
        (lambda x: L.svd(x).Vh, "LinalgSvdBackward0"),
        (L.svdvals, "LinalgSvdBackward0"),
        (lambda x: L.lu(x).L, "LinalgLuBackward0"),
        (lambda x: L.lu_factor(x).LU, "LinalgLuFactorExBackward0"),
        (L.pinv, "LinalgPinvBackward0"),
        (lambda x: L.lstsq(x, x).solution, "LinalgLstsqBackward0"),
        (L.matrix_exp, "LinalgMatrixExpBackward0"),
        (L.matrix_norm, "LinalgVectorNormBackward0"),
        (lambda x: L.matrix_norm(x, 2), "AmaxBackward0"),
        (lambda x: L.matrix_power(x, 3), "MmBackward0"),
        (lambda x: L.matrix_power(x, 1), "CloneBackward0"),
        (lambda x: tg.cross(tg.cat([x, x])[:3], tg.cat([x, x])[:3]), "LinalgCrossBackward0"),
        (lambda x: tg.vdot(x[0], x[1]), "VdotBackward0"),
        (tg.trace, "TraceBackward0"),
        (lambda x: tg.addmv(x[0], x, x[0]), "AddmvBackward0"),
        (lambda x: tg.addr(x, x[0], x[0]), "AddrBackward0"),
        (lambda x: tg.addbmm(x, x[None], x[None]), "AddbmmBackward0"),
        (lambda x: tg.baddbmm(x, x[None], x[None]), "BaddbmmBackward0"),
    ],
)
def test_node_names_are_those_of_pytorch(f: Any, name: str) -> None:
    assert f(leaf([[2.0, 1.0], [1.0, 3.0]])).grad_fn.name() == name


@each("upper", [False, True])
def test_gradient_by_a_cholesky_factor_is_that_of_its_product_with_itself(upper: bool) -> None:
    factor = np.array([[2.0, 0.0], [0.5, 1.5]])
    x, y = leaf(factor.T if upper else factor), leaf(factor.T if upper else factor)
    weight = tg.tensor([[1.0, 2.0], [3.0, 5.0]])
    (tg.cholesky_inverse(x, upper) * weight).sum().backward()
    (tg.linalg.inv(y.T @ y if upper else y @ y.T) * weight).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), atol=1e-14)
    x.grad = y.grad = None
    b = tg.tensor([[1.0, 2.0], [4.0, 3.0]])
    (tg.cholesky_solve(b, x, upper) * weight).sum().backward()
    (tg.linalg.solve(y.T @ y if upper else y @ y.T, b) * weight).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), atol=1e-14)


@each("n", [3, 16, 17, 40])
@each("upper", [False, True])
def test_inverse_by_a_cholesky_factor_is_that_of_the_product_and_symmetric(n: int, upper: bool) -> None:
    factor = np.tril(np.random.default_rng(n).normal(size=(n, n))) + 4.0 * np.eye(n)
    given = factor.T if upper else factor
    inverse = tg.cholesky_inverse(tg.tensor(given), upper).numpy()
    np.testing.assert_allclose(inverse @ factor @ factor.T, np.eye(n), atol=1e-12)
    np.testing.assert_array_equal(inverse, inverse.T)


@each("driver", ["gels", "gelsd", "gelsy"])
def test_residuals_of_least_squares_are_tracked(driver: str) -> None:
    a, b = leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]), leaf([[1.0], [2.0], [4.0]])
    found = L.lstsq(a, b, driver=driver)
    assert found.residuals.grad_fn.name() == "LinalgLstsqBackward0"
    if driver == "gelsy":  # which computes none
        assert tg.autograd.grad(found.residuals.sum(), (a, b), allow_unused=True) == (None, None)
        return
    away = numbers(a) @ numbers(found.solution) - numbers(b)
    a_bar, b_bar = tg.autograd.grad(found.residuals.sum(), (a, b))
    np.testing.assert_allclose(numbers(a_bar), 2.0 * away @ numbers(found.solution).T, atol=1e-13)
    np.testing.assert_allclose(numbers(b_bar), -2.0 * away, atol=1e-13)


@each("driver", ["gels", "gelsd"])
def test_residuals_of_least_squares_are_differentiated_twice_by_one_operand_alone(driver: str) -> None:
    a, b = array(2, 5, 3), array(2, 5, 2)
    check_gradients(lambda x: L.lstsq(x, tg.tensor(b), driver=driver).residuals, a, tolerance=1e-5)
    check_gradients(lambda x: L.lstsq(tg.tensor(a), x, driver=driver).residuals, b, tolerance=1e-5)


def test_triangular_solution_does_not_read_the_other_triangle() -> None:
    a = np.array([[2.0, NAN], [1.0, 4.0]])
    x, b = leaf(a), np.array([[2.0], [9.0]])
    found = L.solve_triangular(x, tg.tensor(b), upper=False)
    np.testing.assert_allclose(numbers(found), [[1.0], [2.0]])
    found.sum().backward()
    assert x.grad.numpy()[0, 1] == 0.0


def test_unit_triangular_solution_does_not_read_the_diagonal() -> None:
    x = leaf([[NAN, 3.0], [NAN, NAN]])
    found = L.solve_triangular(x, tg.ones(2, 1), upper=True, unitriangular=True)
    np.testing.assert_array_equal(numbers(found), [[-2.0], [1.0]])
    found.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[0.0, -1.0], [0.0, 0.0]])


def test_triangular_solution_with_a_zero_on_the_diagonal_is_not_finite_and_does_not_raise() -> None:
    found = L.solve_triangular(tg.tensor([[1.0, 0.0], [1.0, 0.0]]), tg.tensor([[1.0], [3.0]]), upper=False)
    np.testing.assert_array_equal(found.numpy(), [[1.0], [INF]])


@each(("upper", "left", "unit"), list(itertools.product((False, True), repeat=3)))
def test_large_triangles_are_solved_in_batches_that_broadcast(upper: bool, left: bool, unit: bool) -> None:
    n, count = 150, 3
    a = array(2, 1, n, n) / n + 4.0 * np.eye(n)
    b = array(3, *((n, count) if left else (count, n)))
    a[..., *np.tril_indices(n, -1) if upper else np.triu_indices(n, 1)] = NAN  # is not read
    found = numbers(L.solve_triangular(tg.tensor(a), tg.tensor(b), upper=upper, left=left, unitriangular=unit))
    for i, j in np.ndindex(2, 3):
        one, other = (a[i, 0], b[j]) if left else (a[i, 0].T, b[j].T)
        one = np.where(np.isnan(one), 0.0, one)
        expected = scipy.linalg.solve_triangular(one, other, lower=upper != left, unit_diagonal=unit)
        np.testing.assert_allclose(found[i, j], expected if left else expected.T, rtol=1e-12, atol=1e-14)


def test_zero_on_the_diagonal_of_a_large_triangle_is_no_error() -> None:
    a, b = np.eye(150), np.ones((150, 1))
    a[100, 100] = 0.0
    found = L.solve_triangular(tg.tensor(a), tg.tensor(b), upper=False)
    np.testing.assert_array_equal(numbers(found)[:101, 0], [1.0] * 100 + [INF])


def test_gradient_of_a_large_cholesky_factor_is_that_of_the_determinant() -> None:
    root = array(100, 100)
    a = root @ root.T + 100.0 * np.eye(100)
    x = leaf(a)
    (2.0 * L.cholesky(x).diagonal().log().sum()).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.linalg.inv(a), rtol=1e-10, atol=1e-16)


@each("upper", [False, True])
def test_cholesky_reads_one_triangle_and_has_a_symmetric_gradient(upper: bool) -> None:
    a = np.array([[4.0, 2.0], [2.0, 2.0]])
    other = a.copy()
    other[(1, 0) if upper else (0, 1)] = NAN
    x = leaf(other)
    found = L.cholesky(x, upper=upper)
    lower = np.array([[2.0, 0.0], [1.0, 1.0]])
    np.testing.assert_allclose(numbers(found), lower.T if upper else lower)
    found.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), x.grad.numpy().T)


def test_eigh_reads_one_triangle() -> None:
    np.testing.assert_allclose(L.eigvalsh(tg.tensor([[1.0, NAN], [0.0, 3.0]])).numpy(), [1.0, 3.0])
    np.testing.assert_allclose(L.eigvalsh(tg.tensor([[1.0, 0.0], [NAN, 3.0]]), "U").numpy(), [1.0, 3.0])


@each("mode", ["r", "complete"])
def test_qr_without_a_derivative_says_so_when_differentiated(mode: str) -> None:
    x = leaf(array(3, 2))
    R = L.qr(x, mode).R
    np.testing.assert_allclose(numbers(R)[:2], np.linalg.qr(x.detach().numpy()).R)
    with pytest.raises(RuntimeError, match="mode='reduced'"):
        R.sum().backward()
    assert x.grad is None


EXPONENTS = {
    "zero": np.zeros((2, 2)),
    "nilpotent": np.triu(array(4, 4), 1),
    **{f"norm {size:g}": size * array(3, 3) for size in (1e-3, 0.05, 0.3, 0.8, 3.0, 30.0)},
}


@each("point", EXPONENTS.values(), ids=EXPONENTS)
def test_exponential_of_any_size_is_that_of_scipy(point: np.ndarray) -> None:
    expected = scipy.linalg.expm(point)
    np.testing.assert_allclose(L.matrix_exp(tg.tensor(point)).numpy(), expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


def test_exponentials_of_a_batch_are_scaled_one_by_one() -> None:
    batch = np.stack([1e-3 * array(3, 3), 20.0 * array(3, 3)])
    got = L.matrix_exp(tg.tensor(batch)).numpy()
    for one, a in zip(got, batch, strict=True):
        expected = scipy.linalg.expm(a)
        np.testing.assert_allclose(one, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


def test_nan_in_one_exponential_stays_there() -> None:
    got = L.matrix_exp(tg.tensor(np.stack([np.full((2, 2), NAN), np.zeros((2, 2))]))).numpy()
    assert np.isnan(got[0]).all()
    np.testing.assert_array_equal(got[1], np.eye(2))


def test_first_power_is_a_copy() -> None:
    x = tg.eye(2)
    L.matrix_power(x, 1).zero_()
    np.testing.assert_array_equal(x.numpy(), np.eye(2))


def test_powers_of_integers_are_integers() -> None:
    got = L.matrix_power(tg.tensor([[1, 1], [0, 1]]), 5)
    assert got.dtype == tg.int64
    np.testing.assert_array_equal(got.numpy(), [[1, 5], [0, 1]])


@each("options", [{"rtol": 0.1}, {"atol": 0.5}, {"rcond": 0.1}, {"atol": tg.tensor(0.5), "rtol": 0.0}])
def test_small_singular_values_count_as_zero_in_a_pseudo_inverse(options: dict[str, Any]) -> None:
    np.testing.assert_allclose(L.pinv(tg.tensor(np.diag([4.0, 0.2])), **options).numpy(), np.diag([0.25, 0.0]))


def test_pseudo_inverse_of_zero_is_zero() -> None:
    np.testing.assert_array_equal(L.pinv(tg.zeros(2, 3)).numpy(), np.zeros((3, 2)))


@each(
    ("options", "rank"),
    [({}, [2, 1]), ({"tol": 0.5}, [1, 1]), ({"atol": 0.5}, [1, 1]), ({"rtol": 0.2}, [1, 1]), ({"hermitian": True}, [2, 1])],
)
def test_rank_counts_what_exceeds_the_tolerance(options: dict[str, Any], rank: list[int]) -> None:
    batch = tg.tensor(np.stack([np.diag([4.0, -0.4]), np.ones((2, 2))]))
    got = L.matrix_rank(batch, **options)
    assert got.dtype == tg.int64
    assert got.tolist() == rank


def test_least_squares_of_low_rank_has_the_least_norm() -> None:
    a, b = array(4, 1) @ array(1, 3), array(4, 2)
    found = L.lstsq(tg.tensor(a), tg.tensor(b), rcond=1e-8, driver="gelsd")
    expected = np.linalg.lstsq(a, b, rcond=1e-8)
    np.testing.assert_allclose(found.solution.numpy(), expected[0], rtol=1e-9)
    np.testing.assert_allclose(found.singular_values.numpy(), expected[3], atol=1e-12)
    assert (found.rank.item(), found.residuals.numel()) == (1, 0)


@each(("driver", "sizes"), [(None, (0, 1, 0)), ("gels", (2, 0, 0)), ("gelsd", (2, 1, 2)), ("gelss", (2, 1, 2))])
def test_drivers_differ_in_what_they_give(driver: str | None, sizes: tuple[int, ...]) -> None:
    _, residuals, rank, values = L.lstsq(tg.tensor(array(3, 2)), tg.tensor(array(3, 2)), driver=driver)
    assert (residuals.numel(), rank.numel(), values.numel()) == sizes


def test_derivatives_of_least_squares_at_low_rank_follow_the_rank() -> None:
    check_gradients(lambda x, y, b: L.lstsq(x @ y, b, rcond=1e-6).solution, array(3, 1), array(1, 2), array(3, 1), tolerance=1e-5)


@each("p", ["fro", "nuc", INF, 1, 2])
def test_norms_of_empty_matrices_are_zero(p: Any) -> None:
    assert L.matrix_norm(tg.zeros(0, 0), p).item() == 0.0


@each("p", [None, 2, "fro", 1])
def test_condition_of_a_singular_matrix_is_infinite_and_leaves_the_others(p: Any) -> None:
    got = L.cond(tg.tensor(np.stack([np.diag([0.0, 1.0]), np.eye(2)])), p).numpy()
    np.testing.assert_allclose(got, [INF, np.linalg.cond(np.eye(2), p)])


EMPTY = {
    "inv": L.inv,
    "solve": lambda x: L.solve(x, x),
    "solve_triangular": lambda x: L.solve_triangular(x, x, upper=True),
    "det": L.det,
    "slogdet": lambda x: L.slogdet(x).logabsdet,
    "cholesky": L.cholesky,
    "qr": lambda x: L.qr(x).R,
    "eigvalsh": L.eigvalsh,
    "svdvals": L.svdvals,
    "svd": lambda x: L.svd(x).U,
    "pinv": L.pinv,
    "matrix_exp": L.matrix_exp,
    "matrix_power": lambda x: L.matrix_power(x, 3),
}


@each("shape", [(0, 0), (0, 2, 2), (2, 0, 0)], ids=str)
@each("name", EMPTY)
def test_empty_batches_and_matrices_have_gradients_of_their_shape(name: str, shape: tuple[int, ...]) -> None:
    x = leaf(np.zeros(shape))
    EMPTY[name](x).sum().backward()
    assert tuple(x.grad.shape) == shape


ONES = tg.ones(2, 2)
WIDE = tg.ones(2, 3)
SOME_SINGULAR = tg.tensor(np.stack([np.eye(2), np.ones((2, 2))]))


@pytest.mark.point(96)
@each(
    ("call", "message"),
    [
        (lambda: L.inv(ONES), "linalg.inv: The inversion could not be completed because the input matrix is singular"),
        (lambda: L.inv(SOME_SINGULAR), "linalg.inv: (Batch element 1): The inversion could not be completed"),
        (lambda: L.solve(ONES, ONES), "The solver failed because the input matrix is singular"),
        (lambda: L.solve(SOME_SINGULAR, ONES), "(Batch element 1): The solver failed"),
        (lambda: L.cholesky(-ONES), "not positive-definite"),
        (lambda: L.matrix_power(ONES, -1), "the input matrix is singular"),
        (lambda: L.svd(tg.full((2, 2), NAN)), "The algorithm failed to converge"),
        (lambda: L.pinv(tg.full((2, 2), NAN)), "The algorithm failed to converge"),
    ],
)
def test_matrices_without_a_result_raise_an_error_of_their_own(call: Any, message: str) -> None:
    with pytest.raises(L.LinAlgError, match=re.escape(message)) as caught:
        call()
    assert isinstance(caught.value, RuntimeError)
    assert isinstance(caught.value, np.linalg.LinAlgError)


@pytest.mark.point(96)
@each(
    ("call", "message"),
    [
        *(
            (lambda f=f: f(WIDE), "must be batches of square matrices, but they are 2 by 3 matrices")
            for f in (L.inv, L.det, L.slogdet, tg.logdet, L.cholesky, L.eigh, L.eigvalsh, L.matrix_exp, tg.cholesky_inverse)
        ),
        *(
            (lambda f=f: f(ONES[0]), "must have at least 2 dimensions")
            for f in (L.inv, L.det, L.cholesky, L.qr, L.eigh, L.svd, L.svdvals, L.matrix_rank, L.matrix_norm, L.cond)
        ),
        *(
            (lambda f=f: f(ONES.long()), "Expected a floating point or complex tensor as input. Got Long")
            for f in (L.inv, L.det, L.cholesky, L.qr, L.eigh, L.svd, L.matrix_exp, L.matrix_norm, L.vector_norm, L.norm)
        ),
        (lambda: L.solve(WIDE, ONES), "A must be batches of square matrices"),
        (lambda: L.solve(ONES, tg.ones(3, 1)), "Incompatible shapes of A and B for the equation AX = B (2x2 and 3x1)"),
        (lambda: L.solve(ONES, tg.ones(1, 3), left=False), "for the equation XA = B (2x2 and 1x3)"),
        (
            lambda: L.solve(ONES, tg.ones(2), left=False),
            "Vector broadcasting of the left hand side is not supported for left=False",
        ),
        (lambda: L.solve(ONES, tg.ones(2, 1, dtype=tg.float32)), "found A of type Double and B of type Float"),
        (lambda: L.solve(tg.ones(2, 2, 2), tg.ones(3, 2, 2)), "do not broadcast"),
        (lambda: L.solve_triangular(ONES, tg.ones(2), upper=True), "The input tensor B must have at least 2 dimensions"),
        (lambda: tg.cholesky_solve(tg.ones(2), ONES), "b should have at least 2 dimensions, but has 1 dimensions instead"),
        (lambda: tg.cholesky_solve(tg.ones(3, 1), ONES), "each A matrix is 2 by 2 but each b matrix is 3 by 1"),
        (
            lambda: tg.cholesky_inverse(tg.tensor([[[1.0, 0.0], [2.0, 1.0]], [[1.0, 0.0], [2.0, 0.0]]])),
            "cholesky_inverse: (Batch element 1): The diagonal element 2 is zero, the inversion could not be completed because",
        ),
        (lambda: L.qr(ONES, "full"), "qr received unrecognized mode 'full'"),
        (lambda: L.eigh(ONES, "X"), "Expected UPLO argument to be 'L' or 'U', but got X"),
        (lambda: L.pinv(tg.ones(2)), "expected a tensor with 2 or more dimensions"),
        (lambda: L.lstsq(WIDE, tg.ones(3, 1)), "input.size(-2) should match other.size"),
        (lambda: L.lstsq(WIDE, tg.ones(1, 2, 1)), "input.dim() must be greater or equal to other.dim()"),
        (lambda: L.lstsq(WIDE, WIDE.to(tg.float32)), "Expected input and other to have the same dtype"),
        (lambda: L.lstsq(WIDE, WIDE, driver="qr"), "parameter `driver` should be one of"),
        (lambda: L.matrix_norm(ONES, 3), "linalg.matrix_norm: Order 3 not supported"),
        (lambda: L.matrix_norm(ONES, dim=(0, 0)), "dims must be different"),
        (lambda: L.matrix_norm(ONES, dtype=tg.float32), "should be convertible without narrowing"),
        (lambda: L.norm(tg.ones(2, 2, 2), 2), "the input must be 1D or 2D. Got 3D"),
        (lambda: L.norm(tg.ones(2, 2, 2), 2, dim=(0, 1, 2)), "it must be of length 1 or 2"),
        (lambda: L.norm(ONES, "fro", dim=0), "dim must be a 2-tuple"),
        (lambda: L.cond(ONES, 3), "linalg.cond got an invalid norm type: 3"),
        (lambda: L.multi_dot([ONES]), "expected at least 2 tensors but got 1"),
        (lambda: L.multi_dot([ONES, tg.ones(1, 2, 2)]), "the last tensor must be 1D or 2D but got 3D"),
        (lambda: L.multi_dot([ONES, ONES[0], ONES]), "tensor 1 must be 2D but got 1D"),
        (lambda: L.multi_dot([ONES, tg.ones(3, 2)]), "tensors 0 and 1 with shapes [2, 2] and [3, 2] cannot be multiplied"),
        (lambda: tg.chain_matmul(ONES, ONES[0]), "Tensor dimension is 1, expected 2 instead"),
        (lambda: L.cross(ONES, ONES), "inputs dimension -1 must have length 3. Got 2 and 2"),
        (lambda: L.cross(WIDE, WIDE[0]), "inputs must have the same number of dimensions"),
        (lambda: tg.cross(ONES, ONES), "no dimension of size 3 in input"),
        (lambda: L.vecdot(WIDE, WIDE.to(tg.float32)), "Expected x and y to have the same dtype"),
        (lambda: tg.vdot(ONES, ONES), "1D tensors expected, but got 2D and 2D tensors"),
        (lambda: tg.vdot(WIDE[0], ONES[0]), "inconsistent tensor size, expected tensor [3] and src [2]"),
        (lambda: tg.trace(tg.ones(2)), "trace: expected a matrix, but got tensor with dim 1"),
        (lambda: tg.addmv(tg.ones(3), ONES, ONES[0]), "size mismatch, got input (3), mat (2x2), vec (2)"),
        (lambda: tg.addmv(ONES[0], ONES[0], ONES[0]), "vector + matrix @ vector expected, got 1, 1, 1"),
        (lambda: tg.addr(ONES, ONES, ONES[0]), "addr: Expected 1-D argument vec1, but got 2-D"),
        (lambda: tg.addr(tg.ones(3, 3), ONES[0], ONES[0]), "The expanded size of the tensor (2) must match the existing size (3)"),
        (lambda: tg.addbmm(ONES, ONES, ONES[None]), "batch1 must be a 3D tensor"),
        (lambda: tg.addbmm(ONES, ONES[None], tg.ones(2, 2, 2)), "batch1 and batch2 must have same number of batches, got 1 and 2"),
        (lambda: tg.baddbmm(ONES, ONES[None], tg.ones(1, 3, 2)), "Expected size for first two dimensions of batch2"),
        (lambda: tg.baddbmm(ONES, ONES[None], ONES[None].to(tg.float32)), "expected scalar type Double but found Float"),
        (
            lambda: L.tensorsolve(tg.ones(2, 3), tg.ones(2)),
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:])",
        ),
        (lambda: L.tensorinv(tg.ones(2, 3), 1), "Expected self to satisfy the requirement prod(self.shape[ind:])"),
        (lambda: L.tensorinv(ONES, 0), "Expected a strictly positive integer for 'ind', got 0"),
        (lambda: L.lu_solve(ONES, tg.tensor([0, 2]), ONES), "pivots must be from 1 to 2, got 0"),
        (lambda: L.lu_solve(ONES, tg.tensor([1, 3]), ONES), "pivots must be from 1 to 2, got 3"),
    ],
)
def test_errors_say_what_does_not_fit(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(message)):
        call()


@each(
    "call",
    [
        lambda: L.inv(np.eye(2)),
        lambda: tg.det([[1.0]]),
        lambda: L.matrix_power(ONES, 1.5),
        lambda: L.matrix_power(np.eye(2), 2),
        lambda: L.multi_dot([ONES, np.eye(2)]),
        lambda: tg.chain_matmul(np.eye(2)),
        lambda: L.vector_norm(ONES, "fro"),
    ],
)
def test_what_is_no_tensor_or_number_is_a_type_error(call: Any) -> None:
    with pytest.raises(TypeError, match="must be|expected Tensor"):
        call()


def test_methods_exist_where_pytorch_has_them() -> None:
    x = tg.tensor(np.eye(2) * 2.0)
    assert x.det().item() == 4.0
    assert x.inverse().tolist() == [[0.5, 0.0], [0.0, 0.5]]
    assert x.matrix_power(2).tolist() == [[4.0, 0.0], [0.0, 4.0]]
    assert x.kron(tg.ones(1, 1)).tolist() == x.tolist()
    assert not hasattr(x, "einsum")


@each(
    ("name", "shapes"),
    [
        ("addmm", [(2, 3), (2, 4), (4, 3)]),
        ("addmv", [(2,), (2, 3), (3,)]),
        ("addr", [(2, 3), (2,), (3,)]),
        ("addbmm", [(2, 3), (2, 2, 4), (2, 4, 3)]),
        ("baddbmm", [(2, 2, 3), (2, 2, 4), (2, 4, 3)]),
    ],
)
def test_sums_with_products_are_written_in_place(name: str, shapes: list[tuple[int, ...]]) -> None:
    points = [array(*shape) for shape in shapes]

    def written(x: tg.Tensor, *factors: tg.Tensor) -> tg.Tensor:
        total = x * 2.0
        assert getattr(total, f"{name}_")(*factors, beta=0.5, alpha=3.0) is total
        return total

    expected = getattr(tg, name)(*(tg.tensor(p) for p in (2.0 * points[0], *points[1:])), beta=0.5, alpha=3.0)
    np.testing.assert_allclose(numbers(written(*(tg.tensor(p) for p in points))), expected.numpy())
    check_gradients(written, *points)


def test_a_sum_with_a_product_is_not_written_into_a_smaller_tensor() -> None:
    x = tg.zeros(1)
    with pytest.raises(RuntimeError, match="output with shape"):
        x.addmm_(ONES, ONES)
    assert x.tolist() == [0.0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_elimination_has_the_bits_of_its_definition(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    whole = rng.normal(size=(9, 9)).astype(dtype)
    for a in (whole, np.round(whole), np.where(whole > 1.5, np.nan, whole), np.zeros((3, 3), dtype), whole[:0, :0]):
        expected, pivots = a.copy(), []
        with np.errstate(all="ignore"):
            for k in range(len(a)):
                row = k + int(np.argmax(np.abs(expected[k:, k])))
                pivots.append(row + 1)
                expected[[k, row]] = expected[[row, k]]
                if expected[k, k] != 0.0:
                    expected[k + 1 :, k] /= expected[k, k]
                expected[k + 1 :, k + 1 :] -= expected[k + 1 :, k, None] * expected[k, k + 1 :]
        found = L.lu_factor(tg.tensor(a))
        np.testing.assert_array_equal(found.LU.numpy(), expected)
        assert found.pivots.tolist() == pivots


def test_parts_of_a_factorisation_that_are_not_used_have_no_gradient() -> None:
    x = leaf([[2.0, 1.0], [4.0, 3.0]])
    (upper,) = tg.autograd.grad(L.lu(x).U.sum(), x)
    (both,) = tg.autograd.grad(L.lu_factor(x).LU.triu().sum(), x)
    np.testing.assert_array_equal(upper.numpy(), both.numpy())


def arranged(array: np.ndarray) -> list[np.ndarray]:
    """The same values in other orders of memory."""
    wide = np.repeat(array, 2, 1)
    return [array, np.asfortranarray(array), wide[:, ::2], array[::-1].copy()[::-1]]


@each("unit", [False, True])
@each("left", [False, True])
@each("upper", [False, True])
def test_substitution_in_derivatives_solves_large_triangles(upper: bool, left: bool, unit: bool) -> None:
    n = 70
    whole = array(n, n) / n + 2.0 * np.eye(n)
    triangle = np.triu(whole) if upper else np.tril(whole)
    if unit:
        np.fill_diagonal(triangle, 1.0)
    for count in (1, 9, 130):
        right = array(n, count) if left else array(count, n)
        for a in arranged(whole):
            for b in arranged(right):
                x = substitution.substituted(a, b, upper, left, unit)
                np.testing.assert_allclose(triangle @ x if left else x @ triangle, right, rtol=0, atol=1e-12)
                if left and not unit:
                    np.testing.assert_allclose(substitution.multiplied(a, b, upper), triangle @ right, rtol=0, atol=1e-12)


def test_sums_over_solutions_have_the_same_bits_with_factors_and_without() -> None:
    b = tg.tensor(array(40, 9))

    def total(A: tg.Tensor) -> tg.Tensor:
        return L.solve(A, b, left=False).sum()

    program = tg.program(total)
    for _ in range(12):
        a = array(9, 9)
        assert total(leaf(a)).item() == total(tg.tensor(a)).item() == tg.value_and_grad(program)(a)[0]


@each("shape", [(0, 20, 20), (2, 0, 18, 18)])
def test_no_triangles_at_all_keep_their_dtype(shape: tuple[int, ...]) -> None:
    A = tg.zeros(*shape, dtype=tg.float32, requires_grad=True)
    x = L.solve_triangular(A, tg.zeros(*shape[:-1], 3, dtype=tg.float32), upper=True)
    (g,) = tg.autograd.grad(x.sum(), A, create_graph=True)
    assert (g.dtype, g.shape) == (tg.float32, shape)


def test_substitution_without_a_function_for_triangles_is_that_of_the_general_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.tril(array(70, 70)) / 70 + np.eye(70), array(70, 3)
    found = substitution.substituted(a, b, False)
    monkeypatch.setattr(blas, "address_of", lambda name: 0)
    assert substitution.multiplied(a, b, False) is None
    np.testing.assert_allclose(found, substitution.substituted(a, b, False), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(substitution.substituted(a, b, False), substitution.substitute(a, b, False, False))


def test_factors_by_a_library_with_integers_of_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    capsules = scipy.linalg.cython_lapack.__pyx_capi__
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.argtypes, name_of.restype = [ctypes.py_object], ctypes.c_char_p
    monkeypatch.setattr(kept_factors, "address_of", lambda name: pointer(capsules[name], name_of(capsules[name])))
    monkeypatch.setattr(kept_factors, "integers", kept_factors.integers.__wrapped__)  # which remembers those of NumPy's
    functions = np.array([kept_factors.address_of("dgetrs"), 0, 0, 0], np.int64)
    monkeypatch.setattr(kept_factors, "addresses", lambda: functions)
    a, b = array(2, 45, 45) + 9.0 * np.eye(45), array(2, 45, 3)
    found = kept_factors.factored_solution(a, b, False, True)
    assert found is not None
    np.testing.assert_allclose(found[0], np.linalg.solve(a, b), rtol=1e-12, atol=1e-12)
    again = kept_factors.solved_again(found[1], b, False, True, True)
    np.testing.assert_allclose(again, np.linalg.solve(a.swapaxes(-1, -2), b), rtol=1e-12, atol=1e-12)
    monkeypatch.setattr(substitution, "address_of", kept_factors.address_of)
    capsules = scipy.linalg.cython_blas.__pyx_capi__
    for sides in (b, b[..., :1]):
        by_triangles = substitution.substitute(a, sides, True, False)
        np.testing.assert_allclose(by_triangles, np.linalg.solve(np.triu(a), sides), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_batches_of_large_triangles_are_solved_as_each_of_them(left: bool, upper: bool, unit: bool) -> None:
    a = array(2, 3, 20, 20) / 9.0 + np.eye(20)
    b = array(2, 3, 20, 4) if left else array(2, 3, 4, 20)
    for matrices in (a, a.swapaxes(-1, -2)):
        found = substitution.substituted(matrices, b, upper, left, unit)
        for place in np.ndindex(2, 3):
            triangle = (np.triu if upper else np.tril)(matrices[place], (1 if upper else -1) * unit) + unit * np.eye(20)
            product = triangle @ found[place] if left else found[place] @ triangle
            np.testing.assert_allclose(product, b[place], rtol=1e-9, atol=1e-9)


def test_what_is_not_a_large_triangle_is_not_taken_for_one() -> None:
    lower = np.tril(array(150, 150))
    assert substitution.large_triangle(lower) == "lower"
    assert substitution.large_triangle(lower.T) == "upper"
    assert substitution.large_triangle(lower[:64, :64]) is None
    for place in ((0, 149), (0, 1), (63, 64), (64, 65), (3, 100), (148, 149)):
        other = lower.copy()
        other[place] = NAN
        assert substitution.large_triangle(other) is None
        assert substitution.large_triangle(other.T) is None


def test_solutions_with_a_large_triangle_are_differentiated_as_with_any_matrix() -> None:
    n = 66
    a, b, weights = np.tril(array(n, n)) / n + np.eye(n), array(n), array(n)
    places = [(0, 0), (5, 2), (2, 5), (0, n - 1), (n - 1, 0)]  # also where there are zeros

    def gradient_at(shift: np.ndarray) -> list[tg.Tensor]:
        A, B = leaf(a + shift), leaf(b)
        return list(tg.autograd.grad((L.solve(A, B) * weights).sum(), (A, B), create_graph=True))

    A, B = leaf(a), leaf(b)
    by_a, by_b = tg.autograd.grad((L.solve(A, B) * weights).sum(), (A, B), create_graph=True)
    turned = np.linalg.solve(a.T, weights)
    np.testing.assert_allclose(by_b.detach().numpy(), turned, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(by_a.detach().numpy(), -np.outer(turned, np.linalg.solve(a, b)), rtol=1e-11, atol=1e-12)
    (second,) = tg.autograd.grad((by_b * weights).sum() + (by_a * by_a).sum(), (A,))
    for place in places:
        values = []
        for step in (1e-6, -1e-6):
            shift = np.zeros((n, n))
            shift[place] = step
            moved_a, moved_b = gradient_at(shift)
            values.append(((moved_b * weights).sum() + (moved_a * moved_a).sum()).item())
        assert second[place].item() == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-5, abs=1e-6)


def test_second_derivatives_through_a_large_cholesky_factor() -> None:
    n = 66
    base, weights = array(n, n) / 8, array(n, n)
    directions = [d + d.T for d in (array(n, n), array(n, n))]

    def f(p: Any) -> Any:
        return (np.linalg.cholesky(base @ base.T + np.eye(n) + p[0] * directions[0] + p[1] ** 2 * directions[1]) * weights).sum()

    point, gradient_of = np.array([0.01, 0.1]), tg.grad(f)
    rows = [(gradient_of(point + h) - gradient_of(point - h)) / 2e-5 for h in 1e-5 * np.eye(2)]
    np.testing.assert_allclose(tg.hessian(f)(point), rows, rtol=1e-6, atol=1e-5)
    by_differences = [(f(point + h) - f(point - h)) / 2e-5 for h in 1e-5 * np.eye(2)]
    np.testing.assert_allclose(gradient_of(point), by_differences, rtol=1e-7, atol=1e-6)


@each("left", [True, False])
def test_factors_solve_transposed_systems(left: bool) -> None:
    a, b = array(3, 3), array(3, 2)
    b = b if left else b.T

    def solved(a: tg.Tensor, b: tg.Tensor) -> tg.Tensor:
        return L.lu_solve(*L.lu_factor(a), b, left=left, adjoint=True)

    whole = np.linalg.solve(a.T, b) if left else np.linalg.solve(a, b.T).T
    np.testing.assert_allclose(solved(tg.tensor(a), tg.tensor(b)).numpy(), whole, rtol=1e-12)
    check_gradients(solved, a, b)


@each("f", [L.lu, L.lu_factor], ids=["lu", "lu_factor"])
def test_triangles_without_exchanges_are_refused(f: Any) -> None:
    with pytest.raises(RuntimeError, match="LU without pivoting is not implemented on the CPU"):
        f(ONES, pivot=False)


def test_an_unknown_way_to_compute_distances_is_refused() -> None:
    with pytest.raises(ValueError, match="quickly is not a valid value for compute_mode"):
        tg.cdist(ONES, ONES, 2.0, "quickly")
