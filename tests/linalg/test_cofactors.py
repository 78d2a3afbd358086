"""Gradients of determinants beside exact cofactors, which fractions give: near singular matrices, at them, and out of range."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.linalg.eliminated_cofactors import eliminated_cofactors

RNG = np.random.default_rng(11)
Rows = list[list[Fraction]]


def determinant(rows: Rows) -> Fraction:
    rows, total = [list(row) for row in rows], Fraction(1)
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != k:
            rows[k], rows[pivot], total = rows[pivot], rows[k], -total
        total *= rows[k][k]
        for row in rows[k + 1 :]:
            factor = row[k] / rows[k][k]
            for j in range(k, len(rows)):
                row[j] -= factor * rows[k][j]
    return total


def without(rows: Rows, i: int, j: int) -> Rows:
    return [row[:j] + row[j + 1 :] for k, row in enumerate(rows) if k != i]


def exact(a: np.ndarray) -> np.ndarray:
    """The cofactors of a matrix of numbers as they are, rounded once."""
    rows, n = [[Fraction(float(x)) for x in row] for row in a], len(a)
    found = [[(-1) ** (i + j) * determinant(without(rows, i, j)) for j in range(n)] for i in range(n)]
    return np.array([[as_number(x) for x in row] for row in found])


def as_number(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return np.inf if x > 0 else -np.inf


def gradient(a: Any, dtype: Any = tg.float64) -> np.ndarray:
    x = tg.tensor(a, dtype=dtype, requires_grad=True)
    with np.errstate(all="ignore"):
        tg.linalg.det(x).sum().backward()
    found: np.ndarray = x.grad.numpy()
    return found


def of_rank(n: int, rank: int) -> np.ndarray:
    return RNG.normal(size=(n, rank)) @ RNG.normal(size=(rank, n))


def with_values(*values: float) -> np.ndarray:
    """A matrix with these singular values, up to rounding."""
    (left, _), (right, _) = (np.linalg.qr(RNG.normal(size=(len(values),) * 2)) for _ in range(2))
    found: np.ndarray = (left * values) @ right
    return found


def chain(n: int) -> np.ndarray:
    """Ones beside the diagonal: all pivots are zero, and one cofactor is not."""
    return np.eye(n, k=1)


MATRICES = {
    "one number": np.array([[0.0]]),
    "whole numbers of rank 2 of 3": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]),
    "whole numbers of rank 4 of 5": np.round(5 * RNG.normal(size=(5, 4))) @ np.round(5 * RNG.normal(size=(4, 5))),
    "rank 5 of 6": of_rank(6, 5),
    "a column of zeros": RNG.normal(size=(5, 5)) * (np.arange(5) != 2),
    "a row of zeros": RNG.normal(size=(5, 5)) * (np.arange(5) != 2)[:, None],
    "a row and a column of zeros": RNG.normal(size=(5, 5)) * (np.arange(5) != 2) * (np.arange(5) != 0)[:, None],
    "equal rows": RNG.normal(size=(5, 5))[[0, 1, 2, 1, 4]],
    "a chain": chain(5),
    "a chain in disorder": chain(6)[[3, 0, 5, 1, 4, 2]] * 3.0,
    "one small value": with_values(1.0, 0.7, 0.5, 0.2, 1e-9),
    "one value of the size of rounding": with_values(1.0, 0.7, 0.5, 0.2, 1e-17),
    "two small values": with_values(1.0, 0.7, 0.5, 1e-5, 1e-7),
    "a triangle with small pivots": np.triu(np.ones((6, 6)), 1) + 1e-9 * np.eye(6),
    "a triangle that hides how singular it is": np.triu(-np.ones((8, 8)), 1) + 0.01 * np.eye(8),
    "rows in units of their own": of_rank(5, 4) * 10.0 ** np.array([[-90], [3], [40], [-8], [12]]),
    "columns in units of their own": of_rank(5, 4) * 10.0 ** np.array([-90, 3, 40, -8, 12]),
    "both": of_rank(5, 4) * 10.0 ** np.array([9, -3, 30, -20, 0]) * 10.0 ** np.array([[7], [-9], [0], [4], [-30]]),
    "elements of all sizes": RNG.normal(size=(4, 4)) * 10.0 ** RNG.uniform(-20, 20, (4, 4)),
    "all too small for a determinant": with_values(1.0, 2.0, 3.0, 4.0) * 1e-95,
    "singular, and far too small for one": of_rank(3, 2) * 1e-140,
    "all too large for a determinant": with_values(1.0, 2.0, 3.0, 4.0) * 1e95,
    "singular, and far too large for one": of_rank(3, 2) * 1e150,
    "some too large": np.diag([1e200, 1e200, 1e-150, 1.0]) + 1e-160,
}  # fmt: skip


@pytest.mark.parametrize("a", MATRICES.values(), ids=MATRICES)
def test_gradients_of_determinants_are_exact_cofactors(a: np.ndarray) -> None:
    found, expected = gradient(a), exact(a)
    # Rounding is measured in the units of rows and columns.
    rows = np.abs(a).max(1)[:, None] + (~a.any(1))[:, None]
    weights = rows * (np.abs(a / rows).max(0) + ~a.any(0))
    weights = weights / weights.max()
    assert ((found == expected) | np.isfinite(expected)).all()
    found, expected = (np.where(np.isfinite(expected), each, 0.0) * weights for each in (found, expected))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("a", MATRICES.values(), ids=MATRICES)
def test_a_batch_has_the_gradients_of_its_matrices(a: np.ndarray) -> None:
    regular = np.eye(len(a)) + 0.1
    batch = np.stack([regular, a, a.T, 2.0 * regular])
    for found, one in zip(gradient(batch), batch, strict=True):
        np.testing.assert_allclose(found, gradient(one), rtol=1e-13)


@pytest.mark.parametrize(("n", "rank"), [(2, 0), (3, 1), (6, 4), (9, 2), (20, 0), (40, 7)])
def test_where_two_singular_values_are_zero_there_is_no_gradient(n: int, rank: int) -> None:
    a = of_rank(n, rank)
    largest = np.prod(np.sort(np.linalg.svd(a, compute_uv=False))[::-1][:rank]) * np.abs(a).max(initial=1.0) ** (n - 1 - rank)
    assert np.abs(gradient(a)).max() <= 1e-12 * max(1.0, largest)
    if not rank:
        np.testing.assert_array_equal(gradient(a), np.zeros((n, n)))


def large(n: int, pivot: float) -> tuple[np.ndarray, np.ndarray]:
    """A matrix with one pivot like this, and its cofactors: triangles of whole numbers, as their inverses are, and a diagonal."""
    lower, upper = np.eye(n) - np.eye(n, k=-1), np.eye(n) - np.eye(n, k=1)
    values = 2.0 ** np.round(RNG.normal(size=n))
    values[n // 3] = pivot
    minors = np.array([np.prod(np.delete(values, k)) for k in range(n)])
    order = RNG.permutation(n)
    sign = round(np.linalg.det(np.eye(n)[order]))
    cofactors = np.tri(n).T @ np.diag(minors) @ np.tri(n)
    return (lower @ np.diag(values) @ upper)[order], sign * cofactors[order]


@pytest.mark.parametrize("n", [40, 150, 300])
@pytest.mark.parametrize("pivot", [0.0, 2.0**-27])
def test_cofactors_of_large_matrices(n: int, pivot: float) -> None:
    a, expected = large(n, pivot)
    np.testing.assert_allclose(gradient(a), expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("pivot", [0.0, 2.0**-27, 1.0])
def test_rows_of_cofactors_are_numbers_where_others_are_too_large(pivot: float) -> None:
    a, expected = large(200, pivot)
    a[:2] *= np.ldexp(1.0, [[900], [500]])
    with np.errstate(over="ignore"):
        expected = expected * np.ldexp(1.0, [[500], [900], *[[1023]] * 198]) * np.ldexp(1.0, [[0], [0], *[[377]] * 198])
    np.testing.assert_allclose(gradient(a)[:2], expected[:2], rtol=0, atol=1e-10 * np.abs(expected[1]).max())
    np.testing.assert_array_equal(np.isinf(gradient(a)[2:]), np.isinf(expected[2:]))


def test_a_chain_longer_than_numbers_reach_is_left_to_singular_values() -> None:
    n = 50
    with np.errstate(all="ignore"):
        assert eliminated_cofactors(chain(n)) is None
    expected = np.zeros((n, n))
    expected[n - 1, 0] = (-1.0) ** (n - 1)
    np.testing.assert_allclose(gradient(chain(n)), expected, atol=1e-12)


def test_where_elements_grow_in_elimination_singular_values_are_taken() -> None:
    n = 60
    growing = np.eye(n) - np.tri(n, k=-1)
    growing[:, -1] = 1.0
    a = np.zeros((n + 1, n + 1))
    a[:n, :n] = growing
    assert eliminated_cofactors(a) is None
    expected = np.zeros((n + 1, n + 1))
    expected[n, n] = np.linalg.det(growing)
    np.testing.assert_allclose(gradient(a), expected, rtol=1e-10, atol=1e-10 * expected.max())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_has_no_cofactors(value: float) -> None:
    a = of_rank(4, 3)
    a[1, 2] = value
    assert np.isnan(gradient(a)).all()
    batch = np.stack([a, of_rank(4, 3)])
    found = gradient(batch)
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], gradient(batch[1]), rtol=1e-13)


@pytest.mark.parametrize("name", ["whole numbers of rank 2 of 3", "a column of zeros", "a chain", "equal rows"])
def test_cofactors_in_single_precision(name: str) -> None:
    a = MATRICES[name].astype(np.float32)
    expected = exact(a)
    np.testing.assert_allclose(gradient(a, tg.float32), expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


# Where some cofactors are too large, what is recorded has products of infinities with zero.
RECORDED = {name: a for name, a in MATRICES.items() if name != "some too large"}


@pytest.mark.parametrize("a", RECORDED.values(), ids=RECORDED)
def test_the_recorded_pass_has_the_same_gradients(a: np.ndarray) -> None:
    x = tg.tensor(a, requires_grad=True)
    with np.errstate(all="ignore"):
        (recorded,) = tg.autograd.grad(tg.linalg.det(x), x, create_graph=True)
    np.testing.assert_allclose(recorded.detach().numpy(), gradient(a), rtol=1e-9, atol=1e-11 * np.abs(gradient(a)).max())


def test_views_and_programs_have_the_same_gradients() -> None:
    a = of_rank(6, 5)
    expected = gradient(a)
    turned = tg.tensor(a.T, requires_grad=True)
    tg.linalg.det(turned.mT).backward()
    np.testing.assert_allclose(turned.grad.numpy().T, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    program = tg.program(tg.linalg.det)
    for _ in range(3):
        np.testing.assert_allclose(tg.value_and_grad(program)(a)[1], expected, rtol=0, atol=1e-12 * np.abs(expected).max())
