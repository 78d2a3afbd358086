"""Large arrays in closure and globals: a program reads them where they are, unless NumPy alone computes something of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

RNG = np.random.default_rng(11)
W = RNG.normal(size=6)
DATA = RNG.normal(size=(1000, 6))


def of_global(w: Any) -> Any:
    return ((DATA @ w) ** 2).mean()


def helper(w: Any) -> Any:
    return (DATA[0] * np.exp(DATA[1])) @ w


def of_global_and_helper(w: Any) -> Any:
    return of_global(w) + helper(w)


def again(w: Any, deep: bool = True) -> Any:
    return again(w, False) * 2.0 if deep else (np.exp(DATA) @ w).sum()


@pytest.fixture(autouse=True)
def _data_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "DATA", DATA.copy())


def agree(program: Any, w: Any = W) -> None:
    (value, gradient), (expected, slope) = tg.value_and_grad(program)(w), tg.value_and_grad(program.function)(w)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(gradient, slope, rtol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_other_contents_and_other_arrays_take_the_same_path(compiled: bool) -> None:
    f = tg.program(of_global)
    agree(f)
    if compiled:
        f.compile()
    agree(f)
    DATA[:] *= 2.0
    agree(f)
    globals()["DATA"] = DATA + 1.0
    agree(f)
    assert len(f.traces) == 1


def test_arrays_of_a_closure_are_live() -> None:
    data = RNG.normal(size=(900, 6))

    def loss(w: Any) -> Any:
        return (data @ w).sum() + (w * w).sum()

    f = tg.program(loss)
    for _ in range(3):
        agree(f)
        data = data * 1.5
    assert len(f.traces) == 1


def test_another_shape_is_another_path() -> None:
    f = tg.program(of_global)
    agree(f)
    globals()["DATA"] = DATA[:800]
    agree(f)
    assert sorted(trace["inputs"][1] for trace in f.traces) == [(800, 6), (1000, 6)]


def with_a_number_of_them(w: Any) -> Any:
    own = np.zeros(6)
    own[2] = DATA[0, 2]
    return (own * w * w).sum()


@pytest.mark.parametrize(
    "function",
    [with_a_number_of_them, lambda w: w @ (DATA.T @ DATA) @ w, lambda w: (np.exp(DATA) @ w).sum(), of_global_and_helper, again],
)
def test_what_numpy_computes_of_them_is_not_stale(function: Any) -> None:
    f = tg.program(function)
    for _ in range(3):
        agree(f)
    DATA[:, 2] *= 3.0
    for _ in range(2):
        agree(f)


def test_writes_into_them_are_refused() -> None:
    def writes(w: Any) -> Any:
        DATA[0, 0] += 1.0
        return (DATA @ w).sum()

    f = tg.program(writes)
    with pytest.raises(tg.ProgramError, match="writes into the array DATA"):
        tg.grad(f)(W)


def test_a_name_that_is_gone_is_missed() -> None:
    f = tg.program(of_global)
    agree(f)
    del globals()["DATA"]
    with pytest.raises(NameError, match="DATA"):
        tg.grad(f)(W)


def test_files_hold_them_as_they_were(tmp_path: Any) -> None:
    f = tg.program(of_global)
    expected = tg.value_and_grad(f)(W)
    f.save(tmp_path / "f.tgp")
    DATA[:] = 0.0
    value, gradient = tg.value_and_grad(tg.load_program(tmp_path / "f.tgp"))(W)
    np.testing.assert_allclose(value, expected[0], rtol=1e-13)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-12)


def test_they_are_the_same_at_many_points() -> None:
    f = tg.program(lambda w: (DATA[3] * w).sum() ** 2)
    points = RNG.normal(size=(3000, 6))
    for _ in range(2):
        np.testing.assert_allclose(tg.grad(f).map(points)[5], tg.grad(f.function)(points[5]), rtol=1e-13)
        DATA[3] += 1.0
