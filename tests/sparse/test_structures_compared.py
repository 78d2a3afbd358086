"""Structures of calls in a row: a call that is made like the one before is known, and every other one is looked at."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

SIZE = 40


def by_slices(x: Any) -> Any:
    start = 3 if x[0] > 0.0 else 7
    return np.sin(x[start : start + 20]) * x[:20]


def by_order(x: Any) -> Any:
    y = x[::-1] if x[0] > 0.0 else x
    return y * y[SIZE // 2] + x


def by_operations(x: Any) -> Any:
    return x[1:] * x[:-1] if x[0] > 0.0 else x[1:] + x[:-1]


def by_columns(x: Any) -> Any:
    table = x.reshape(4, 10) if x[0] > 0.0 else x.reshape(10, 4)
    return table.sum(axis=0)[:4] * x[:4]


def by_numbers(x: Any) -> Any:
    total = x[1] * x[2] if x[0] > 0.0 else x[1] * x[3]
    return np.concatenate([x * 2.0, np.stack([total * total, x[5] * 3.0])])


@pytest.mark.parametrize("f", [by_slices, by_order, by_operations, by_columns, by_numbers])
def test_branches_change_the_structure_and_come_back(f: Callable[[Any], Any]) -> None:
    jacobian, hessian = tg.sparse.jacobian(f), tg.sparse.hessian(lambda x: (f(x) ** 2).sum())
    dense, curved = tg.jacobian(f), tg.hessian(lambda x: (f(x) ** 2).sum())
    random = np.random.default_rng(0)
    for sign in (1.0, 1.0, -1.0, -1.0, 1.0, -1.0):
        x = random.normal(size=SIZE)
        x[0] = sign
        np.testing.assert_allclose(jacobian(x).toarray(), dense(x), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(hessian(x).toarray(), curved(x), rtol=1e-11, atol=1e-11)


def test_other_branch_that_looks_alike_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from tapegrad.sparse import patterns

    counted: list[int] = []
    hashed = patterns._hashed
    monkeypatch.setattr(patterns, "_hashed", lambda tape: counted.append(1) or hashed(tape))
    jacobian, x = tg.sparse.jacobian(by_slices), np.linspace(1.0, 2.0, SIZE)
    for sign in (1.0, 1.0, 1.0, -1.0, -1.0):
        x[0] = sign
        jacobian(x)
    assert len(counted) == 2
