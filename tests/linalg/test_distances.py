"""Distances between rows, and systems whose factors are kept: NumPy's bits, derivatives, and numbers at the ends of the range."""

from typing import Any

import numpy as np
import pytest
from engine_fixtures import numbers
from many_cases import each
from numerical import check_gradients

import tapegrad as tg

L = tg.linalg
RNG = np.random.default_rng(8)
NAN, INF = float("nan"), float("inf")


def points(n: int, d: int) -> np.ndarray:
    return RNG.normal(size=(n, d))


def norms_of_differences(x: Any, y: Any, p: float) -> tg.Tensor:
    return L.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1)


@each("p", [1.0, 2.0])
def test_distances_have_the_bits_of_numpys_sums(p: float) -> None:
    for n, m, d in ((3, 4, 1), (40, 5, 7), (5, 140, 8), (4, 3, 131), (2, 3, 700)):
        x, y = points(n, d), points(m, d)
        away = x[:, None] - y
        expected = np.abs(away).sum(-1) if p == 1.0 else np.sqrt((away * away).sum(-1))
        np.testing.assert_array_equal(tg.cdist(tg.tensor(x), tg.tensor(y), p).numpy(), expected)
        first, second = np.triu_indices(m, 1)
        away = y[first] - y[second]
        expected = np.abs(away).sum(-1) if p == 1.0 else np.sqrt((away * away).sum(-1))
        np.testing.assert_array_equal(tg.pdist(tg.tensor(y), p).numpy(), expected)


@each("p", [1.0, 2.0])
@each("values", [[[0.0, 0.0], [3e-200, 4e-200]], [[0.0, 0.0], [3e200, 4e200]], [[1.0, 2.0], [1.0, 2.0]], [[NAN, 1.0], [INF, 1.0]]])
def test_distances_beyond_the_range_of_squares_are_norms(values: Any, p: float) -> None:
    x = tg.tensor([*values, [1.0, 5.0], [2.0, 3.0]])
    np.testing.assert_array_equal(tg.cdist(x, x, p).numpy(), norms_of_differences(x, x, p).numpy())


@each("p", [1.0, 2.0])
def test_distances_of_batches_that_are_stretched_have_derivatives(p: float) -> None:
    x, y = RNG.normal(size=(2, 1, 3, 2)), RNG.normal(size=(3, 2, 2))
    check_gradients(lambda a, b: tg.cdist(a, b, p), x, y, order=1)


@each("p", [1.0, 2.0])
def test_slopes_of_distances_are_those_of_norms(p: float) -> None:
    x, y = tg.tensor(points(37, 9), requires_grad=True), tg.tensor(points(130, 9), requires_grad=True)
    weights = tg.tensor(RNG.normal(size=(37, 130)))
    for distances in (tg.cdist, norms_of_differences):
        found = tg.autograd.grad((distances(x, y, p) * weights).sum(), [x, y])
        if distances is tg.cdist:
            ours = found
    for one, other in zip(ours, found, strict=True):
        np.testing.assert_allclose(numbers(one), numbers(other), rtol=0, atol=1e-12)


@each("p", [1.0, 2.0])
@each("sizes", [(600, 13, 5), (13, 600, 6), (3, 8, 140), (1, 9, 1)])
def test_slopes_of_distances_are_sums_over_pairs(sizes: Any, p: float) -> None:
    (n, m, d), weights = sizes, RNG.normal(size=sizes[:2])
    x, y = (tg.tensor(points(count, d), requires_grad=True) for count in (n, m))
    found = tg.autograd.grad(tg.cdist(x, y, p), [x, y], tg.tensor(weights))
    away = numbers(x)[:, None] - numbers(y)
    slopes = np.sign(away) if p == 1.0 else away / np.sqrt((away * away).sum(-1))[..., None]
    shares = weights[..., None] * slopes
    for one, expected in zip(found, (shares.sum(1), -shares.sum(0)), strict=True):
        np.testing.assert_allclose(numbers(one), expected, rtol=0, atol=1e-12)


@each("p", [1.0, 2.0])
def test_weights_of_zero_hide_rows_that_are_not_finite(p: float) -> None:
    x, y = points(300, 3), points(11, 3)
    x[290], weights = INF, np.ones((300, 11))
    weights[290] = 0.0
    found = tg.autograd.grad(tg.cdist(a := tg.tensor(x), b := tg.tensor(y, requires_grad=True), p), b, tg.tensor(weights))
    without = tg.autograd.grad(tg.cdist(a[:290], b, p).sum() + tg.cdist(a[291:], b, p).sum(), b)
    np.testing.assert_allclose(numbers(found[0]), numbers(without[0]), rtol=0, atol=1e-12)


@each("p", [1.0, 2.0])
def test_rows_without_a_distance_and_cotangents_of_zero_have_slope_zero(p: float) -> None:
    x = tg.tensor([[1.0, 2.0], [INF, 4.0]], requires_grad=True)
    distances = tg.cdist(x, tg.tensor([[1.0, 2.0]]), p)
    tg.where(distances < INF, distances, 0.0).sum().backward()
    np.testing.assert_array_equal(numbers(x.grad), np.zeros((2, 2)))


@each("left", [True, False])
def test_a_matrix_with_many_right_sides_has_numpys_bits_and_its_derivatives(left: bool) -> None:
    a, b = RNG.normal(size=(3, 3)) + 3.0 * np.eye(3), RNG.normal(size=(2, 4, 3, 2) if left else (2, 4, 2, 3))
    expected = np.linalg.solve(a, b) if left else np.linalg.solve(a.T, b.swapaxes(-1, -2)).swapaxes(-1, -2)
    leaves = [tg.tensor(array, requires_grad=True) for array in (a, b)]
    np.testing.assert_array_equal(numbers(L.solve(*leaves, left=left)), expected)
    check_gradients(lambda x, y: L.solve(x, y, left=left), a, b)


@each("shapes", [((70, 70), (70,)), ((70, 70), (70, 3)), ((2, 70, 70), (2, 70, 3)), ((2, 70, 70), (2, 70))])
def test_factors_of_large_matrices_give_the_slopes_of_another_solution(shapes: Any) -> None:
    a, b = (RNG.normal(size=shape) for shape in shapes)
    a = a + 9.0 * np.eye(70)
    x, y = (tg.tensor(array, requires_grad=True) for array in (a, b))
    solution = L.solve(x, y)
    vector = b.ndim == a.ndim - 1
    np.testing.assert_array_equal(numbers(solution), np.linalg.solve(a, b[..., None])[..., 0] if vector else np.linalg.solve(a, b))
    g = RNG.normal(size=b.shape)
    found = tg.autograd.grad(solution, [x, y], tg.tensor(g), retain_graph=True)
    again = tg.autograd.grad(solution, [x, y], tg.tensor(g), create_graph=True)
    b_bar = (np.linalg.inv(a).swapaxes(-1, -2) @ (g[..., None] if vector else g)).reshape(g.shape)
    columns, rows = (array[..., None] if vector else array for array in (b_bar, numbers(solution)))
    for one, expected in zip(found, (-columns @ rows.swapaxes(-1, -2), b_bar), strict=True):
        np.testing.assert_allclose(numbers(one), expected, rtol=0, atol=1e-12)
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(numbers(one), numbers(other))


@each("upper", [False, True])
@each("batch", [(), (3,)])
def test_triangles_have_the_bits_of_the_general_solver(batch: Any, upper: bool) -> None:
    whole, b = RNG.normal(size=(*batch, 48, 48)) + 7.0 * np.eye(48), RNG.normal(size=(*batch, 48, 1))
    a = np.triu(whole) if upper else np.tril(whole)
    found = numbers(L.solve_triangular(tg.tensor(whole), tg.tensor(b), upper=upper))
    turned = np.s_[:] if upper else np.s_[::-1]
    np.testing.assert_array_equal(found, np.linalg.solve(a[..., turned, turned], b[..., turned, :])[..., turned, :])


@each("upper", [False, True])
def test_batches_of_triangles_have_the_slopes_of_each(upper: bool) -> None:
    whole, b = RNG.normal(size=(2, 20, 20)) + 5.0 * np.eye(20), RNG.normal(size=(2, 20, 3))
    x, y = tg.tensor(whole, requires_grad=True), tg.tensor(b, requires_grad=True)
    together = tg.autograd.grad(L.solve_triangular(x, y, upper=upper).square().sum(), [x, y])
    alone = [tg.autograd.grad(L.solve_triangular(x[k], y[k], upper=upper).square().sum(), [x, y]) for k in range(2)]
    for k, found in enumerate(together):
        np.testing.assert_allclose(numbers(found), sum(numbers(one[k]) for one in alone), rtol=0, atol=1e-13)


def test_a_singular_matrix_with_many_right_sides_is_refused() -> None:
    with pytest.raises(RuntimeError, match="singular"):
        L.solve(tg.tensor(np.zeros((2, 2)), requires_grad=True), tg.tensor(np.ones((3, 2, 1))))


@each("shape", [(6, 3), (3, 6), (2, 6, 3), (80, 70)])
def test_least_squares_by_triangles_are_those_by_singular_values(shape: Any) -> None:
    a, b = RNG.normal(size=shape), RNG.normal(size=(*shape[:-1], 2))
    found = []
    for driver in ("gels", "gelsd"):
        x, y = (tg.tensor(array, requires_grad=True) for array in (a, b))
        solution = L.lstsq(x, y, driver=driver).solution
        found.append([solution, *tg.autograd.grad((solution * solution).sum(), [x, y])])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(numbers(one), numbers(other), rtol=0, atol=1e-10)


def test_least_squares_of_a_lower_rank_are_those_by_singular_values_in_every_driver() -> None:
    a, b = tg.tensor(np.ones((4, 2)), requires_grad=True), tg.tensor([[1.0], [2.0], [3.0], [4.0]])
    np.testing.assert_array_equal(numbers(L.lstsq(a, b, driver="gels").solution), numbers(L.lstsq(a, b, driver="gelsd").solution))


LENGTHS = [1e-310, 1e-200, 1e-160, 1.0, 1e160, 1e200]


@each("length", LENGTHS)
@each("weight", [1e-200, 1.0, 1e200])
@each("recorded", [False, True])
def test_derivatives_of_lengths_are_directions_whatever_the_scale(length: float, weight: float, recorded: bool) -> None:
    away = np.array([3.0, 4.0]) * length
    direction = weight * np.array([0.6, 0.8])
    x, y = tg.tensor([list(away), [0.0, 0.0]], requires_grad=True), tg.tensor([[0.0, 0.0]], requires_grad=True)
    for distance in (tg.cdist(x, y)[0, 0], tg.pdist(x)[0], L.vector_norm(x[0])):
        (found,) = tg.autograd.grad(weight * distance, x, create_graph=recorded)
        np.testing.assert_allclose(found.detach().numpy()[0], direction, rtol=1e-12 if length > 1e-300 else 1e-6)


@each("length", LENGTHS)
@each("norm", [np.linalg.norm, lambda x: tg.pdist(tg.stack([x, x * 0.0]))[0]])
def test_tangents_of_lengths_whatever_the_scale(length: float, norm: Any) -> None:
    _, tangent = tg.jvp(norm, (np.array([3.0, 4.0]) * length,), (np.array([0.0, 1.0]),))
    np.testing.assert_allclose(tangent, 0.8, rtol=1e-12 if length > 1e-300 else 1e-6)


@each("length", [1e-200, 1e-160, 1.0, 1e160, 1e200])
@each("norm", [np.linalg.norm, lambda x: tg.pdist(tg.stack([x, x * 0.0]))[0], lambda x: tg.cdist(x[None], tg.zeros(1, 3))[0, 0]])
def test_second_derivatives_of_lengths_whatever_the_scale(length: float, norm: Any) -> None:
    unit = np.array([1.0, 2.0, -2.0]) / 3.0
    found = tg.hessian(norm)(3.0 * unit * length) * length
    np.testing.assert_allclose(found, (np.eye(3) - np.outer(unit, unit)) / 3.0, atol=1e-9)


@each("length", LENGTHS)
@each("size", LENGTHS)
def test_tangents_of_any_size_of_lengths_of_any_scale(length: float, size: float) -> None:
    away = np.array([3.0, 4.0])
    for norm in (np.linalg.norm, lambda x: tg.pdist(tg.stack([x, x * 0.0]))[0]):
        _, tangent = tg.jvp(norm, (away * length,), (away * size,))
        np.testing.assert_allclose(tangent / size, 5.0, rtol=1e-12 if min(length, size) > 1e-300 else 1e-6)


@each("distance", [lambda x: tg.cdist(x, tg.zeros(1, 2))[0, 0], lambda x: tg.pdist(x)[0], lambda x: L.vector_norm(x[0])])
def test_derivatives_by_infinite_coordinates_are_nan(distance: Any) -> None:
    x = tg.tensor([[INF, 1.0], [0.0, 0.0]], requires_grad=True)
    distance(x).backward()
    np.testing.assert_array_equal(x.grad.numpy()[0], [NAN, 0.0])


@each(("scale", "weight"), [(1e-150, 1e200), (1e150, 1e-200)])
def test_deviations_have_derivatives_whatever_the_scale(scale: float, weight: float) -> None:
    unit = np.array([1.0, 2.0, 4.0])
    x = tg.tensor(scale * unit, requires_grad=True)
    (tg.std(x) * weight).backward()
    away = unit - unit.mean()
    np.testing.assert_allclose(x.grad.numpy(), weight * away / (2.0 * unit.std(ddof=1)), rtol=1e-12)


@each("p", [0.5, 1.0, 2.0, 3.0, INF])
def test_rows_without_coordinates_have_no_distance(p: float) -> None:
    x = tg.zeros(3, 0, requires_grad=True)
    np.testing.assert_array_equal(tg.cdist(x, tg.zeros(4, 0), p).detach().numpy(), np.zeros((3, 4)))
    np.testing.assert_array_equal(tg.pdist(x, p).detach().numpy(), np.zeros(3))
