"""Sparse Hessians of functions of arrays by edge-pushing over their elements."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_sparse_functions import by_table, random_table

import tapegrad as tg
from tapegrad.sparse.element_rows import ElementLayout

SEEDS = st.integers(0, 10**6)


def springs(count: int, joints: int) -> tuple[Any, Any]:
    """The energy of springs between joints, and where these are."""
    rng = np.random.default_rng(count)
    one, other = rng.integers(0, joints, (2, count))
    stiffness = rng.uniform(0.5, 1.5, count)

    def energy(x: Any) -> Any:
        x = x.reshape(2, joints)
        stretched = ((x[:, one] - x[:, other]) ** 2).sum(axis=0) + 1.0
        return (stiffness * (np.sqrt(stretched) - 1.0) ** 2).sum() + 0.1 * (np.sin(x[0, one]) * x[1, other]).sum()

    return energy, rng.uniform(-1.0, 1.0, 2 * joints)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-10, atol=1e-12 + 1e-10 * np.abs(expected).max(initial=0.0))


def test_sums_over_elements_take_it_by_themselves() -> None:
    energy, x = springs(400, 30)
    made = tg.sparse.plan(energy, x, second=True)
    assert (made.info.method, made.info.colours) == ("edges", 0)
    for point in (x, 2.0 * x, 0.0 * x):
        close(made(point), tg.hessian(energy)(point))


def test_it_is_the_difference_quotient_of_gradients() -> None:
    energy, x = springs(60, 8)
    gradient = tg.grad(energy)
    steps = 1e-6 * np.eye(len(x))
    expected = np.stack([(gradient(x + step) - gradient(x - step)) / 2e-6 for step in steps])
    np.testing.assert_allclose(tg.sparse.hessian(energy, mode="edges")(x).toarray(), expected, rtol=1e-6, atol=1e-7)


@given(SEEDS)
@settings(max_examples=60)
def test_programs_of_numbers(seed: int) -> None:
    x, *tables = random_table(seed)
    made = tg.sparse.hessian(lambda x: np.sin(by_table(x, *tables)).sum(), mode="edges", check=True)
    for point in (x, -2.0 * x):
        close(made(point), tg.hessian(lambda x: np.sin(by_table(x, *tables)).sum())(point))


@given(SEEDS)
@settings(max_examples=60)
def test_random_steps_of_arrays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    index, other, weights, mask = rng.integers(0, 9, 9), rng.integers(0, 9, 9), rng.uniform(-1.0, 1.0, 9), rng.random(9) < 0.5
    steps: list[Any] = [
        lambda v: v[index] * v,
        lambda v: v * weights + v[::-1],
        lambda v: np.where(mask, v, v[other] ** 2),
        lambda v: np.where(v > 0.0, v * v, v[other]),
        lambda v: (v.reshape(3, 3) * v[:3]).reshape(-1),
        lambda v: (v.reshape(3, 3)[:, None, :] * v.reshape(3, 3)[None, :, :]).sum(axis=2).reshape(-1),
        lambda v: np.concatenate([v[3:], np.exp(0.1 * v[:3])]),
        lambda v: np.arctan2(v, 3.0 + v[index] ** 2),
        lambda v: v * v.sum(),
        lambda v: 2.0 * v - 1.0,
    ]
    chosen = [steps[k] for k in rng.integers(0, len(steps), 3)]

    def f(x: Any) -> Any:
        for step in chosen:
            x = step(x)
        return (np.sin(x) * weights).sum()

    made = tg.sparse.hessian(f, mode="edges")
    for _ in range(2):
        x = rng.uniform(-1.0, 1.0, 9)
        close(made(x), tg.hessian(f)(x))


def test_partials_that_become_numbers_are_found_elsewhere() -> None:
    index = np.array([0, 1, 1, 2])
    scales = np.array([2.0, 3.0, 5.0, 7.0])

    def f(x: Any, scale: Any) -> Any:
        return ((x[index] * scale) ** 2 * x[:1]).sum()

    made = tg.sparse.hessian(f, mode="edges")
    x = np.array([1.0, 2.0, 3.0])
    for scale in (scales, 2.0, -scales, np.ones(4)):
        close(made(x, scale), tg.hessian(f)(x, scale))


def test_single_precision_and_branches() -> None:
    energy, x = springs(60, 8)

    def f(x: Any) -> Any:
        return energy(x) if x[0] > 0.0 else energy(x**2)

    made = tg.sparse.hessian(f, mode="edges")
    for point in (np.abs(x), -np.abs(x), np.abs(x).astype(np.float32)):
        found = made(point)
        assert found.dtype == point.dtype
        np.testing.assert_allclose(found.toarray(), tg.hessian(f)(point), rtol=1e-4, atol=1e-4)


def test_elements_are_put_in_order_once_for_a_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    layouts = []

    class Counted(ElementLayout):
        def __init__(self, tape: Any) -> None:
            layouts.append(tape)
            super().__init__(tape)

    monkeypatch.setattr("tapegrad.sparse.element_rows.ElementLayout", Counted)
    made = tg.sparse.hessian(lambda x: x[0] * np.sin(x[1]) - x[1] * x[2], mode="edges")
    for point in (np.array([1.0, 2.0, 3.0]), np.array([-1.0, 2.0, 3.0]), np.array([1.0, -2.0, 0.0])):
        made(point)
    assert len(layouts) == 1


def test_an_index_of_the_output_and_nothing() -> None:
    for f in (lambda x: x[np.array([1])][0], lambda x: 0.0 * x.sum() + 1.0, lambda x: (0.0 * x).sum()):
        assert not tg.sparse.hessian(f)(np.ones(3)).toarray().any()


def test_what_is_not_known_element_by_element_is_refused() -> None:
    matrix = np.ones((3, 3))
    for f in (lambda x: np.sin(matrix @ x).sum(), lambda x: (np.cumsum(x) ** 2).sum()):
        with pytest.raises(ValueError, match="mode='edges'"):
            tg.sparse.hessian(f, mode="edges")(np.ones(3))


def test_elements_that_depend_on_nothing() -> None:
    def f(x: Any) -> Any:
        r = np.zeros_like(x)
        r[1:] = x[1:]
        return np.cos(np.concatenate([r, np.ones_like(x)])).sum()

    x = np.linspace(0.5, 1.5, 20)
    found = tg.sparse.hessian(f, mode="edges")(x)
    np.testing.assert_allclose(found.toarray(), np.diag(-np.cos(x) * (np.arange(20) > 0)), rtol=1e-15)
