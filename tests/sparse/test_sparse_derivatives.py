"""What the functions of `tg.sparse` give, refuse and say."""

import warnings
from typing import Any

import numba
import numpy as np
import pytest
from scipy.sparse import csr_array

import tapegrad as tg

sparse: Any = tg.sparse


def bilinear(x: Any) -> Any:
    return x[1:] * x[:-1]


def test_entries_that_are_zero_here_are_kept() -> None:
    made = sparse.jacobian(bilinear)
    assert made(np.zeros(5)).nnz == made(np.ones(5)).nnz == 8
    assert sparse.hessian(lambda x: (x**3).sum())(np.zeros(4)).nnz == 4


def test_a_result_can_be_changed_without_harm() -> None:
    made = sparse.jacobian(bilinear)
    first = made(np.zeros(5))
    first.eliminate_zeros()
    first.indices[:] = 0
    np.testing.assert_array_equal(made(np.arange(5.0)).toarray(), tg.jacobian(bilinear)(np.arange(5.0)))


def test_another_branch_adds_to_the_pattern() -> None:
    def f(x: Any) -> Any:
        return np.stack([x[0] * x[1] if x[0] > 0 else x[2] ** 2, x[3]])

    made = sparse.jacobian(f)
    for x in (np.array([1.0, 2.0, 3.0, 4.0]), np.array([-1.0, 2.0, 3.0, 4.0])):
        np.testing.assert_array_equal(made(x).toarray(), tg.jacobian(f)(x))
    assert made.pattern.nnz == 4


def test_another_branch_of_a_compiled_function_adds_to_the_pattern() -> None:
    @numba.njit  # type: ignore[untyped-decorator]
    def f(x: Any) -> Any:
        return x[0] * x[1] if x[0] > 0.0 else x[2] ** 2

    made = sparse.jacobian(f)
    for x in (np.array([1.0, 2.0, 3.0]), np.array([-1.0, 2.0, 3.0])):
        np.testing.assert_array_equal(made(x).toarray()[0], tg.grad(f)(x))
    assert made.pattern.nnz == 3


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[np.argsort(x)[:3]] * 2.0,
        lambda x: x.reshape(2, 3).max(axis=1),
        lambda x: np.where(x > 0, x, x[::-1]),
        lambda x: x[x > 0].sum() * x,
        lambda x: np.sort(x) ** 2,
        lambda x: np.eye(6)[np.argmax(x)] * x[0] + np.diag((x > 0).astype(float)) @ x,
    ],
    ids=["gather", "max", "where", "mask", "sort", "matrix"],
)
def test_what_is_chosen_by_values_is_looked_at_again(f: Any) -> None:
    made, rng = sparse.jacobian(f), np.random.default_rng(0)
    for _ in range(10):
        x = rng.standard_normal(6)
        np.testing.assert_allclose(made(x).toarray(), tg.jacobian(f)(x), rtol=1e-12)


def test_a_pattern_without_an_entry_is_named() -> None:
    x = np.arange(1.0, 6.0)
    pattern = sparse.jacobian_structure(bilinear, x).tolil()
    pattern[2, 3] = False
    with pytest.raises(sparse.PatternError, match=r"no entry \(2, 3\).*Jacobian has 3"):
        sparse.jacobian(bilinear, pattern=pattern, check=True)(x)
    whole = np.ones((3, 3)) - np.eye(3)
    with pytest.raises(sparse.PatternError, match=r"no entry \(0, 0\).*Hessian has 6"):
        sparse.hessian(lambda x: (x**3).sum(), pattern=whole, check=True)(np.ones(3))


def test_a_pattern_that_is_given_is_used() -> None:
    made = sparse.jacobian(bilinear, pattern=np.ones((4, 5)), check=True)
    x = np.arange(1.0, 6.0)
    np.testing.assert_array_equal(made(x).toarray(), tg.jacobian(bilinear)(x))
    assert made(x).nnz == 20


def test_patterns_of_wrong_shapes() -> None:
    with pytest.raises(ValueError, match=r"shape \(2, 2\).*\(4, 5\)"):
        sparse.jacobian(bilinear, pattern=np.ones((2, 2)))(np.ones(5))
    with pytest.raises(ValueError, match="symmetric"):
        sparse.hessian(lambda x: x[0] * x[1], pattern=np.array([[1, 1], [0, 1]]))(np.ones(2))


@pytest.mark.parametrize("option", [{"format": "xyz"}, {"mode": "up"}, {"order": "best"}])
def test_options_that_there_are_not(option: Any) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(option))} must be one of"):
        sparse.jacobian(bilinear, **option)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil"])
def test_formats(kind: str) -> None:
    found = sparse.jacobian(bilinear, format=kind)(np.arange(5.0))
    assert found.format == kind
    np.testing.assert_array_equal(found.toarray(), tg.jacobian(bilinear)(np.arange(5.0)))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_modes(mode: str) -> None:
    made = sparse.jacobian(bilinear, mode=mode)
    np.testing.assert_array_equal(made(np.arange(5.0)).toarray(), tg.jacobian(bilinear)(np.arange(5.0)))
    assert made.info.method == mode


def test_containers_and_several_arguments() -> None:
    def f(p: Any, y: Any) -> Any:
        return {"a": p["u"] * y, "b": [p["v"] ** 2, y[0]]}

    p, y = {"u": np.arange(3.0), "v": np.array([[1.0, 2.0]])}, np.array([1.0, 2.0, 3.0])
    found = sparse.jacobian(f, argnums=(0, 1))(p, y)
    assert found["a"][0]["u"].toarray().tolist() == np.diag(y).tolist()
    assert found["a"][0]["v"].shape == (3, 2)
    assert found["a"][0]["v"].nnz == 0
    assert found["b"][0][0]["v"].toarray().tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert found["b"][1][1].toarray().tolist() == [[1.0, 0.0, 0.0]]


def test_hessians_by_containers() -> None:
    found = sparse.hessian(lambda p: (p["a"] * p["b"] ** 2).sum())({"a": np.ones(2), "b": np.array([1.0, 2.0])})
    assert found["a"]["a"].nnz == 0
    assert found["a"]["b"].toarray().tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert found["b"]["a"].toarray().tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_value_and_aux() -> None:
    value, matrix = sparse.value_and_jacobian(bilinear)(np.arange(3.0))
    assert value.tolist() == [0.0, 2.0]
    assert matrix.shape == (2, 3)
    matrix, aux = sparse.jacobian(lambda x: (x * 2.0, "aux"), has_aux=True)(np.ones(2))
    assert aux == "aux"
    assert matrix.toarray().tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_single_precision_stays() -> None:
    assert sparse.jacobian(bilinear)(np.ones(3, np.float32)).dtype == np.float32


def test_rounding_in_single_precision_is_no_missing_entry() -> None:
    def f(x: Any) -> Any:
        return np.sin(x.astype(np.float32)[1:] * 2.0).sum()

    x = np.random.default_rng(0).uniform(0.5, 1.5, 6)
    np.testing.assert_allclose(sparse.hessian(f, check=True)(x).toarray(), tg.hessian(f)(x), rtol=1e-5)


def test_other_shapes_begin_anew() -> None:
    made = sparse.jacobian(bilinear)
    assert made(np.ones(3)).shape == (2, 3)
    assert made(np.ones(6)).shape == (5, 6)


def test_constants_and_nothing() -> None:
    assert sparse.jacobian(lambda x: np.stack([x[0] * 0.0, x[1]]))(np.ones(2)).nnz == 2
    assert sparse.hessian(lambda x: x.sum())(np.ones(3)).nnz == 0
    assert sparse.jacobian(lambda x: x[:0] * 2.0)(np.ones(3)).shape == (0, 3)


def test_non_finite_points() -> None:
    found = sparse.jacobian(lambda x: x[1:] / x[:-1])(np.array([0.0, 1.0, np.nan, 2.0]))
    assert found.nnz == 6
    assert not np.isfinite(found.toarray()).all()


def test_infinite_points_are_compared_without_a_warning() -> None:
    x = np.array([1.0, np.inf, 2.0, 3.0])
    found = sparse.jacobian(bilinear, check=True)(x).toarray()
    np.testing.assert_array_equal(found, tg.jacobian(bilinear)(x))
    with pytest.raises(sparse.PatternError, match=r"no entry \(2, 3\)"):
        sparse.jacobian(bilinear, pattern=np.tri(3, 4), check=True)(x)


def test_masked_branches_do_not_poison_others() -> None:
    def f(x: Any) -> Any:
        return np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0 * x)

    x = np.array([-1.0, 2.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(sparse.jacobian(f)(x).toarray(), tg.jacobian(f)(x))


def test_unknown_structure_is_dense_and_said() -> None:
    made, x = sparse.jacobian(np.cumsum), np.ones(40)
    with pytest.warns(RuntimeWarning, match=r"structure of CumsumBackward0 .*\(40,\)"):
        found = made(x)
    assert found.nnz == 1600
    np.testing.assert_array_equal(found.toarray(), np.tri(40))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(x)


def test_structure_that_the_derivative_of_a_row_shows() -> None:
    def f(x: Any) -> Any:
        return np.linalg.inv(x.reshape(-1, 2, 2)).reshape(-1)

    x = np.random.default_rng(0).standard_normal(200)
    made = sparse.jacobian(f)
    np.testing.assert_allclose(made(x).toarray(), tg.jacobian(f)(x), rtol=1e-9)
    assert made.info.entries == 4 * 200


def test_inside_of_another_driver() -> None:
    with pytest.raises(NotImplementedError, match="sparse derivatives are numbers"):
        tg.grad(lambda x: sparse.jacobian(bilinear)(x).sum())(np.ones(3))


def test_no_scalar_has_no_hessian() -> None:
    with pytest.raises(TypeError, match="scalar"):
        sparse.hessian(bilinear)(np.ones(3))


def test_dense_hessians_of_many_variables_are_refused() -> None:
    with pytest.raises(MemoryError, match="100000 inputs at once"):
        sparse.hessian_structure(lambda x: x.sum() ** 2, np.ones(100_000))


def test_lagrangians() -> None:
    def f(x: Any) -> Any:
        return (x**4).sum()

    def g(x: Any) -> Any:
        return x[1:] * x[:-1]

    made = sparse.lagrangian_hessian(f, g)
    x, multipliers = np.arange(1.0, 5.0), np.array([2.0, 0.0, -1.0])
    expected = tg.hessian(lambda x: f(x) + (multipliers * g(x)).sum())(x)
    np.testing.assert_allclose(made(x, multipliers).toarray(), expected)
    assert made(x, 0.0 * multipliers).nnz == made(x, multipliers).nnz == 10
    with pytest.raises(ValueError, match="multipliers of shape"):
        made(x, multipliers[:2])
    with pytest.raises(TypeError, match="multipliers must be real, but got complex128"):
        made(x, 1j * multipliers)


def test_running_sums_take_no_memory_for_all_sets() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for k in range(len(x)):
            total = total + x[k] * x[k]
        return total

    n = 20_000
    assert sparse.jacobian_structure(f, np.ones(n)).nnz == n
    assert sparse.hessian_structure(f, np.ones(n)).nnz == n


def test_a_stencil() -> None:
    def f(u: Any) -> Any:
        u = u.reshape(30, 30)
        inside = u[1:-1, 1:-1]
        return 4.0 * inside - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:] + np.exp(inside)

    structure = sparse.plan(f, np.zeros(900))
    assert structure.info.entries == 5 * 28 * 28
    assert structure.info.colours <= 7
    u = np.random.default_rng(0).standard_normal(900)
    np.testing.assert_allclose(structure(u).toarray(), tg.jacobian(f)(u).reshape(784, 900))


def test_structure_is_unknown_before_the_first_call() -> None:
    with pytest.raises(RuntimeError, match="before the first call"):
        _ = sparse.jacobian(bilinear).info


def test_products_of_small_matrices_in_a_batch() -> None:
    def f(x: Any) -> Any:
        a, b = x[:90].reshape(10, 3, 3), x[90:].reshape(10, 3)
        return np.einsum("nij,nj->ni", a, b) + (a @ b[:, :, None])[:, :, 0]

    made = sparse.jacobian(f)
    x = np.random.default_rng(0).standard_normal(120)
    np.testing.assert_allclose(made(x).toarray(), tg.jacobian(f)(x).reshape(30, 120), rtol=1e-12)
    assert made.info.entries == 30 * 6
    second = sparse.hessian(lambda x: f(x).sum())
    np.testing.assert_allclose(second(x).toarray(), tg.hessian(lambda x: f(x).sum())(x), rtol=1e-12)
    assert second.info.entries == 2 * 90


def test_zeros_of_a_constant_matrix_are_no_entries() -> None:
    differences = np.eye(20) - np.eye(20, k=1)
    assert isinstance(sparse.jacobian_structure(lambda x: differences @ x, np.ones(20)), csr_array)
    assert sparse.jacobian_structure(lambda x: differences @ x, np.ones(20)).nnz == 39
    assert sparse.jacobian_structure(lambda x: x @ differences, np.ones(20)).nnz == 39
    assert sparse.jacobian_structure(lambda x: x.reshape(2, 20) @ differences, np.ones(40)).nnz == 78


def test_an_arrow() -> None:
    def f(x: Any) -> Any:
        return np.concatenate([(x**2).sum()[None], x[1:] ** 2 * x[0]])

    made, x = sparse.jacobian(f, check=True), np.linspace(0.5, 1.0, 300)
    np.testing.assert_allclose(made(x).toarray(), tg.jacobian(f)(x), rtol=1e-12)
    assert (made.info.method, made.info.colours) == ("bidirectional", 3)


@tg.program
def of_two_forms(x: Any) -> Any:
    if x[0] > 0.0:
        return x[1:] * x[:-1]
    return x[1:] * x[0]


def test_the_pattern_of_a_program_is_that_of_all_its_paths() -> None:
    x = np.linspace(0.5, 1.0, 5)
    of_two_forms(x), of_two_forms(-x)
    made = sparse.plan(of_two_forms, x, detect="global")
    whole = made.pattern
    assert whole.nnz == 11
    for point in (x, -x):
        np.testing.assert_allclose(made(point).toarray(), tg.jacobian(of_two_forms)(point))
        assert made.pattern.nnz == 11


def test_paths_that_come_later_are_learnt() -> None:
    f = tg.program(lambda x: (x[0] * x[1:]).sum() if x[0] > 0.0 else (x[1:] * x[:-1]).sum())
    x = np.linspace(0.5, 1.0, 5)
    made = sparse.hessian(f, detect="global")
    np.testing.assert_allclose(made(x).toarray(), tg.hessian(f)(x))
    assert made.pattern.nnz == 8
    tg.grad(f)(-x)
    np.testing.assert_allclose(made(x).toarray(), tg.hessian(f)(x))
    assert made.pattern.nnz == 14


def test_paths_are_those_of_programs() -> None:
    with pytest.raises(TypeError, match="tg.program"):
        sparse.jacobian(bilinear, detect="global")
