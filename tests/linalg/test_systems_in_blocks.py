"""Large systems of equations whose factors are kept: other right sides are solved for in blocks."""

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.linalg import kept_factors

RNG = np.random.default_rng(9)
ORDERS = [128, 191, 192, 193, 300]  # whole blocks and parts of one, that come first or last


def matrix(*shape: int) -> np.ndarray:
    """Well-conditioned, with large elements that are not on the diagonal, so that rows are exchanged."""
    found: np.ndarray = RNG.normal(size=shape) / np.sqrt(shape[-1]) + 3.0 * np.roll(np.eye(shape[-1]), 3, axis=0)
    return found


@pytest.fixture(params=[True, False], ids=["in blocks", "at once"])
def in_blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    only_factors = kept_factors.addresses() * np.array([1, 0, 0, 0])
    if not request.param:
        monkeypatch.setattr(kept_factors, "addresses", lambda: only_factors)
    return bool(request.param)


@pytest.mark.parametrize("n", ORDERS)
@pytest.mark.parametrize("transposed", [False, True])
def test_solutions_solve_the_equations(n: int, transposed: bool, in_blocks: bool) -> None:
    a, b = matrix(n, n), RNG.normal(size=(n, 32))
    solved = kept_factors.factored_solution(a, b, False, True)
    assert solved is not None
    x = kept_factors.solved_again(solved[1], b, False, True, transposed)
    np.testing.assert_allclose((a.T if transposed else a) @ x, b, rtol=0, atol=1e-11)


@pytest.mark.parametrize("shape", [(140, 140), (3, 140, 140)], ids=str)
@pytest.mark.parametrize("left", [True, False])
def test_gradients_of_batches_are_those_of_each_system(shape: Any, left: bool, in_blocks: bool) -> None:
    a, b, weights = matrix(*shape), RNG.normal(size=(3, 140, 140)), RNG.normal(size=(3, 140, 140))
    x, y = tg.tensor(a, requires_grad=True), tg.tensor(b, requires_grad=True)
    (tg.linalg.solve(x, y, left=left) * tg.tensor(weights)).sum().backward()
    inverse = np.linalg.inv(a)
    solution = inverse @ b if left else b @ inverse
    turned = inverse.swapaxes(-1, -2)
    side = turned @ weights if left else weights @ turned
    cotangent = -side @ solution.swapaxes(-1, -2) if left else -solution.swapaxes(-1, -2) @ side
    np.testing.assert_allclose(y.grad.numpy(), side, rtol=0, atol=1e-11 * np.abs(side).max())
    expected = cotangent if a.ndim == 3 else cotangent.sum(0)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_what_is_not_finite_stays_in_its_right_side() -> None:
    a, b = matrix(150, 150), RNG.normal(size=(150, 40))
    solved = kept_factors.factored_solution(a, b, False, True)
    assert solved is not None
    b[70, 11] = np.nan
    x = kept_factors.solved_again(solved[1], b, False, True, True)
    np.testing.assert_array_equal(np.isnan(x).any(0), np.arange(40) == 11)
