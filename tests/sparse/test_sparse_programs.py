"""Sparse derivatives of programs by their machine code: those of the function, wherever its structure may change."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

SIZE = 30
X = np.linspace(-0.8, 0.9, SIZE)


def stencil(x: Any) -> Any:
    u = x.reshape(5, 6)
    inside = u[1:-1, 1:-1]
    return 4.0 * inside - u[:-2, 1:-1] * u[2:, 1:-1] + np.exp(u[1:-1, :-2]) - u[1:-1, 2:] ** 2


def nine_neighbours(x: Any) -> Any:
    u = x.reshape(5, 6)
    return np.sin(sum((1.0 + i - j) * u[i : i + 3, j : j + 4] for i in range(3) for j in range(3)))


def chain(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + np.sin(x[:-1])).sum()


def written(x: Any) -> Any:
    made = x * 1.0
    made[1:] *= np.cos(x[:-1])
    return made


def branching(x: Any) -> Any:
    return x * x if x[0] > 0.0 else x * x[::-1]


def points() -> list[np.ndarray]:
    return [X + 0.1 * k * np.cos(np.arange(SIZE) + k) for k in range(3)]


def by_code(driver: Callable[..., Any], f: Any, *args: Any, uses: bool = True, **options: Any) -> tuple[Any, Any]:
    """A sparse derivative of a program that has machine code for it, and the program."""
    program = tg.program(f)
    made = driver(program, **options)
    for _ in range(2):
        made(*args)
    program.compile()
    made(*args)
    assert any(word in program.explain() for word in ("jvp: mach", "hvp: mach", *(f"vp {k}: mach" for k in range(2, 33)))) == uses
    return made, program


def parts(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else [value]


def equal(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-12, atol=1e-12)
    assert found.has_canonical_format


@pytest.mark.parametrize(
    "f",
    [lambda x: x[1:] * np.sin(x[:-1]), stencil, nine_neighbours, written, lambda x: x[3:] * 2.0, lambda x: x[:4, None] * x[4:8]],
)
def test_jacobians(f: Any) -> None:
    made, _ = by_code(tg.sparse.jacobian, f, X)
    for x in points():
        equal(made(x), tg.jacobian(f)(x).reshape(-1, SIZE))


@pytest.mark.parametrize("f", [chain, lambda x: (x**3).sum(), lambda x: (written(x) ** 2).sum() * 0.5])
def test_hessians(f: Any) -> None:
    made, _ = by_code(tg.sparse.hessian, f, X)
    for x in points():
        found = made(x)
        equal(found, tg.hessian(f)(x))
        assert (found != found.T).nnz == 0


def test_blocks_of_containers() -> None:
    def f(p: Any) -> Any:
        return {"a": p["x"][1:] * p["s"], "b": p["x"] ** 2}

    arguments = {"x": X, "s": 0.7}
    made, _ = by_code(tg.sparse.jacobian, f, arguments)
    found, expected = made({"x": 2.0 * X, "s": 0.3}), tg.jacobian(f)({"x": 2.0 * X, "s": 0.3})
    for a in "ab":
        for b in "xs":
            equal(found[a][b], np.reshape(expected[a][b], (-1, found[a][b].shape[1])))


def test_another_path_brings_its_entries() -> None:
    made, _ = by_code(tg.sparse.jacobian, branching, np.abs(X))
    for x in (np.abs(X), X, np.abs(X), X + 0.01):
        equal(made(x), tg.jacobian(branching)(x))


@pytest.mark.parametrize("size", [SIZE, 5000])
def test_one_derivative_of_two_sizes(size: int) -> None:
    f = lambda x: x[1:] * x[:-1]  # noqa: E731
    small, large = X, np.linspace(0.1, 2.0, size + 7)
    made, program = by_code(tg.sparse.jacobian, f, small)
    other = tg.sparse.jacobian(program)
    for _ in range(3):
        other(large)
        program.compile()
    for x in (large, small, large):
        found = made(x)
        np.testing.assert_array_equal(found.data.reshape(-1, 2), np.stack([x[1:], x[:-1]], axis=1))
        assert found.indices.dtype == np.int32


def test_zeros_of_a_factor_that_come_and_go_are_looked_at() -> None:
    rng = np.random.default_rng(0)
    program = tg.program(lambda x, factor: factor @ x)
    made = tg.sparse.jacobian(program)
    made(X, np.eye(SIZE))
    for _ in range(3):
        made(X, np.eye(SIZE))
        program.compile()
    for _ in range(3):
        factor = np.eye(SIZE)[rng.permutation(SIZE)]
        equal(made(X, factor), factor)


def test_a_derivative_that_is_made_later_learns_the_structure_first() -> None:
    made, program = by_code(tg.sparse.jacobian, stencil, X)
    other = tg.sparse.jacobian(program)
    np.testing.assert_array_equal(other(X).toarray(), made(X).toarray())
    assert other.pattern.nnz == made.pattern.nnz


def test_code_is_made_of_what_usual_calls_alone_have_asked_for() -> None:
    program = tg.program(lambda x: x[1:] * x[:-1])
    made, other = tg.sparse.jacobian(program), tg.sparse.jacobian(program)
    for derivative in (made, other, made):
        derivative(X)
    program.compile()
    made(X)
    assert "jvp 2: machine code" in program.explain()


def test_a_matrix_is_the_callers_own() -> None:
    made, _ = by_code(tg.sparse.jacobian, stencil, X)
    first = made(X)
    first.data[:], first.indices[:], first.indptr[:] = 0.0, 0, 0
    equal(made(X), tg.jacobian(stencil)(X).reshape(-1, SIZE))


def test_a_pattern_of_ones_own_is_not_doubted() -> None:
    f = lambda x: x[1:] * x[:-1]  # noqa: E731
    pattern = np.eye(SIZE)[1:] + np.eye(SIZE)[:-1]
    made, _ = by_code(tg.sparse.jacobian, f, X, pattern=pattern)
    equal(made(2.0 * X), tg.jacobian(f)(2.0 * X))


def test_what_is_compared_with_products_is_not_taken_from_code() -> None:
    pattern = np.eye(SIZE)[1:]
    made, _ = by_code(tg.sparse.jacobian, lambda x: x[1:] * 2.0, X, check=True, pattern=pattern, uses=False)
    equal(made(X), 2.0 * pattern)


@pytest.mark.parametrize("f", [stencil, lambda x: {"a": x[1:] * x[:-1], "b": np.exp(x[0])}], ids=["an array", "a container"])
def test_values_are_those_of_the_point(f: Any) -> None:
    made, _ = by_code(tg.sparse.value_and_jacobian, f, X)
    kept = made(X)[0]
    for x in points():
        (value, matrix), (expected, dense) = made(x), tg.value_and_jacobian(f)(x)
        for name in value if isinstance(value, dict) else [None]:
            own, other, block, whole = (v if name is None else v[name] for v in (value, expected, matrix, dense))
            np.testing.assert_allclose(own, other, rtol=1e-13)
            equal(block, np.reshape(whole, (-1, SIZE)))
    for a, b in zip(parts(kept), parts(tg.value_and_jacobian(f)(X)[0]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_values_and_what_comes_beside_them_are_those_of_the_point() -> None:
    f = lambda x: (x[1:] * x[:-1], x.sum())  # noqa: E731
    made, _ = by_code(tg.sparse.value_and_jacobian, f, X, has_aux=True, uses=False)
    (value, aux), matrix = made(2.0 * X)
    np.testing.assert_array_equal(value, f(2.0 * X)[0])
    assert aux == pytest.approx(2.0 * X.sum())
    equal(matrix, tg.jacobian(f, has_aux=True)(2.0 * X)[0])


def test_what_is_not_finite_stays_where_it_is() -> None:
    f = lambda x: np.sqrt(x[1:]) * x[:-1]  # noqa: E731
    made, _ = by_code(tg.sparse.jacobian, f, np.abs(X))
    x = np.abs(X)
    x[3], x[7], x[9] = 0.0, np.inf, np.nan
    np.testing.assert_array_equal(made(x).toarray(), tg.sparse.jacobian(f)(x).toarray())
