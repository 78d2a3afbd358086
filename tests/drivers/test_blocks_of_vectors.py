"""Blocks of vectors through every operation that has a case: what many give at once is what each gives by itself."""

import functools
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from operation_case import Case, as_tuple

import tapegrad as tg
from tapegrad.linear.linear_tape import LinearTape, linear_tape

TABLES = {path.stem: importlib.import_module(path.stem).CASES for path in sorted(Path(__file__).parents[1].glob("cases_*.py"))}
LANES = 4
# The derivative of a matrix exponential is an exponential of a larger matrix, which is not linear in all that it is made of.
ONE_BY_ONE = {"linalg.matrix_exp", "matrix_exp"}


@functools.cache
def calls(table: str, dtype: type) -> list[tuple[Case, LinearTape, LinearTape]]:
    """Every case of a table with two linear tapes of one call."""
    found = []
    for case in TABLES[table]:
        if not case.order or (dtype is np.float32 and not case.float32):
            continue
        tensors = [tg.tensor(a.astype(dtype), requires_grad=True) if a.dtype.kind == "f" else tg.tensor(a) for a in case.arrays]
        outputs = [t for t in as_tuple(case.call(*tensors)) if t.requires_grad]
        leaves = [t for t in tensors if t.requires_grad]
        many, single = linear_tape(leaves, outputs), linear_tape(leaves, outputs)
        assert many is not None and single is not None, str(case)
        found.append((case, many, single))
    return found


def close(found: np.ndarray, expected: np.ndarray, dtype: type) -> bool:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    return np.allclose(found / scale, expected / scale, rtol=0.0, atol=1e-12 if dtype is np.float64 else 2e-5, equal_nan=True)


def vectors(rows: int) -> np.ndarray:
    return np.random.default_rng(rows).normal(size=(rows, LANES))


def results(tape: LinearTape) -> int:
    return sum(size for _, size in tape.outputs)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("table", TABLES)
def test_block_of_cotangents_gives_what_the_vjp_gives_for_each(table: str, dtype: type) -> None:
    wrong = []
    for case, many, single in calls(table, dtype):
        cotangents = vectors(results(many))
        each = [single.pull(cotangents[:, k : k + 1]) for k in range(LANES)]
        if not close(many.pull(cotangents), np.concatenate(each, axis=1), dtype):
            wrong.append(str(case))
    assert not wrong


@pytest.mark.parametrize("table", TABLES)
def test_block_of_tangents_is_the_transpose_of_the_vjp(table: str) -> None:
    wrong = []
    for case, many, single in calls(table, np.float64):
        tangents, cotangents = vectors(many.inputs), vectors(results(many))[:, :1]
        if not close(cotangents.T @ many.push(tangents), single.pull(cotangents).T @ tangents, np.float64):
            wrong.append(str(case))
    assert not wrong


@pytest.mark.parametrize("table", TABLES)
def test_no_row_takes_vectors_one_by_one(table: str) -> None:
    rows = [(case, row) for case, tape, _ in calls(table, np.float64) for row in tape.hosts.values() if case.name not in ONE_BY_ONE]
    assert not [str(case) for case, row in rows if not row.takes_blocks]


def test_jacobian_through_a_function_of_the_users_own() -> None:
    class Doubled(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2.0 * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2.0 * g

    matrix = vectors(6)
    found = tg.jacobian(lambda x: matrix.T @ Doubled.apply(x))(np.arange(6.0))
    assert np.allclose(found, 2.0 * matrix.T)


def test_nan_in_one_vector_spoils_no_other() -> None:
    matrix = np.array([[1.0, 4.0], [2.0, 3.0]])
    x = tg.tensor([1.0, 0.0], requires_grad=True)
    tape = linear_tape([x], [tg.tensor(matrix) @ x])
    assert tape is not None
    block = np.array([[np.nan, 1.0, 0.0, 2.0], [0.0, 1.0, 1.0, 0.0]])
    assert np.array_equal(tape.push(block)[:, 1:], matrix @ block[:, 1:])
    assert np.array_equal(tape.pull(block)[:, 1:], matrix.T @ block[:, 1:])


def test_rows_without_elements_take_blocks() -> None:
    none = np.zeros((0, 3))

    def f(x: Any) -> Any:
        return np.concatenate([none @ x, x**2])

    x = np.array([1.0, 2.0, 4.0])
    for mode in ("forward", "reverse"):
        np.testing.assert_array_equal(tg.jacobian(f, mode=mode)(x), np.diag(2.0 * x))
    np.testing.assert_array_equal(tg.hessian(lambda x: (f(x) ** 2).sum() / 12.0)(x), np.diag(x**2))
