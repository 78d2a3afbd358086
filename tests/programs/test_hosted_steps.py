"""Machine code around what Python does: factorisations, running sums, index arrays, extremes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture

import tapegrad as tg

SIZE = 16
MATRIX = np.random.default_rng(0).normal(size=(4, 4))
MATRIX = MATRIX @ MATRIX.T + 4.0 * np.eye(4)
PLACES = np.random.default_rng(1).integers(0, SIZE, 200)
HOSTED: dict[str, Callable[[Any], Any]] = {
    "running sums": lambda x: (np.cumsum(np.sin(x)) * x).sum(),
    "running products": lambda x: np.cumprod(x * 1.5).sum(),
    "logsumexp": lambda x: tg.logsumexp(x * x - x, 0) * x[0],
    "softmax": lambda x: (tg.softmax(x.reshape(4, 4), 1) * x.reshape(4, 4) ** 2).sum(),
    "an index array": lambda x: (np.exp(-x)[PLACES] * 0.1).sum(),
    "a mask of values": lambda x: (x[x > 0.0] ** 2).sum(),
    "places of values": lambda x: x[np.argmax(np.sin(x))] ** 2 * x[0],
    "sorting": lambda x: (np.sort(x * 2.0) * np.arange(16.0)).sum(),
    "largest of rows": lambda x: (x.reshape(4, 4).max(1) * x[:4]).sum(),
    "products of values": lambda x: np.prod(x + 1.0) * x[2],
    "erf": lambda x: (tg.erf(x) * x).sum(),
    "solve": lambda x: np.linalg.solve(MATRIX + 0.1 * x.reshape(4, 4), x[4:8] * 2.0).sum(),
    "cholesky": lambda x: (np.linalg.cholesky(MATRIX + x.reshape(4, 4) * 0.3) ** 2).sum(),
    "determinant": lambda x: np.linalg.det(MATRIX + x.reshape(4, 4)) * 0.1,
    "singular values": lambda x: (np.linalg.svd(x.reshape(4, 4) * 2.0)[1] ** 3).sum(),
    "eigenvectors": lambda x: (np.linalg.eigh(MATRIX + x.reshape(4, 4))[1] ** 3).sum(),
    "a diagonal": lambda x: (np.log(np.diag(np.linalg.cholesky(MATRIX + x.reshape(4, 4) * 0.1)) + 3.0) * x[:4]).sum(),
    "a diagonal between others": lambda x: (x.reshape(4, 4) ** 2).sum() + (np.diag(x.reshape(4, 4) * 2.0) * x[:4]).sum(),
    "two in a row": lambda x: np.cumsum(np.cumsum(x * 0.1) * x).sum() + np.cumsum(x)[3],
}


def points() -> list[Any]:
    rng = np.random.default_rng(5)
    special = np.array([0.0, -0.0, 1.0, 2.0, -1.0, 0.5, 0.25, 1e-300, 3.0, 3.0, -2.0, 0.5, 0.0, 1.0, 1.0, -0.0])
    found = [rng.normal(size=SIZE) for _ in range(4)]
    return [*found, special, np.append(found[0][:-1], np.inf), np.append(found[0][:-1], np.nan)]


def outcome(run: Callable[..., Any], x: Any) -> Any:
    try:
        return run(x)
    except (ValueError, RuntimeError, IndexError) as error:
        return type(error), str(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(HOSTED))
def test_gradients_have_the_bits_of_eager_ones(name: str) -> None:
    program = tg.program(HOSTED[name])
    own, run = tg.value_and_grad(HOSTED[name]), tg.value_and_grad(program)
    run(points()[0])
    program.compile()
    for x in [*points(), *points()]:
        expected, found = outcome(own, x), outcome(run, x)
        if isinstance(expected[0], type):
            assert found == expected
        else:
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-14)
            np.testing.assert_array_equal(found[1], expected[1])
            zero = expected[1] == 0.0
            np.testing.assert_array_equal(np.signbit(found[1][zero]), np.signbit(expected[1][zero]))
    assert program.traces[0]["machine code"].startswith("machine code")


def test_other_drivers_see_values_of_their_own_after_machine_code() -> None:
    program = tg.program(HOSTED["running sums"])
    first, second = points()[:2]
    tg.grad(program)(first)
    program.compile()
    for x in (first, second, first):
        assert np.array_equal(tg.grad(program)(x), tg.grad(program.function)(x))
        np.testing.assert_allclose(tg.hvp(program, second, first), tg.hvp(program.function, second, first), rtol=1e-13)
        assert program(x) == program.function(x)


def test_index_arrays_among_the_arguments_are_read_in_each_run() -> None:
    def f(x: Any, places: Any) -> Any:
        return (np.cumsum(x)[places] * x[places] ** 2).sum()

    program, x = tg.program(f), points()[0]
    for k, places in enumerate([PLACES, PLACES, PLACES[::-1].copy(), PLACES % 5, PLACES]):
        assert np.array_equal(tg.grad(program)(x, places), tg.grad(f)(x, places))
        if k == 0:
            program.compile()


def test_programs_that_need_python_are_not_saved() -> None:
    program = tg.program(HOSTED["running sums"])
    tg.grad(program)(points()[0])
    with pytest.raises(tg.ProgramError, match="which Python does"):
        program.save("never.tgp")
