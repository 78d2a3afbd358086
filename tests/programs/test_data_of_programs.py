"""What a program computes of arguments that nothing is differentiated by: it is another each time, and not a path of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture

import tapegrad as tg

RNG = np.random.default_rng(3)
OF_DATA: dict[str, Callable[[Any, Any], Any]] = {
    "negative": lambda w, x: ((-x) * w).sum(),
    "standardised": lambda w, x: (((x - x.mean(0)) / x.std(0)) @ w).sum(),
    "a mean": lambda w, x: (w * x.mean()).sum(),
    "a number of numbers": lambda w, x: (w * (2.0 * x.mean() + np.sqrt(x.max()))).sum() / (1.0 + x[1, 2]),
    "sums of rows": lambda w, x: (x.sum(axis=1)[:3] * w).sum(),
    "a function": lambda w, x: (np.exp(x) @ w).sum(),
    "an element": lambda w, x: (w * x[1, 2]).sum(),
    "powers": lambda w, x: ((x**2) @ w).sum(),
    "an extreme": lambda w, x: (w * x.max()).sum(),
    "a mask": lambda w, x: ((x > 3.0) @ w).sum(),
    "choice": lambda w, x: (np.where(x > 3.0, x, 0.0) @ w).sum(),
    "choice among values": lambda w, x: np.where(x[:, 0] > 3.0, x @ w, 2.0).sum(),
    "how many": lambda w, x: (w * (x[:, 0] > 3.0).sum()).sum(),
    "clipped": lambda w, x: (np.clip(x, 2.0, 3.0) @ w).sum(),
    "joined": lambda w, x: (np.concatenate([x, 2.0 * x]) @ w).sum(),
    "a product": lambda w, x: w @ (x.T @ x) @ w,
    "columns": lambda w, x: (np.column_stack([np.ones(len(x)), x[:, :2]]) @ w).sum(),
    "a norm": lambda w, x: (w / np.linalg.norm(x)).sum(),
    "chosen rows": lambda w, x: (x[[0, 2]] @ w).sum(),
    "covariance": lambda w, x: w @ np.cov(x.T) @ w,
    "differences": lambda w, x: (np.diff(x, axis=0) @ w).sum(),
    "written": lambda w, x: (_filled(x) @ w).sum(),
    "beside a function of numbers": lambda w, x: np.arctan2(w, x[0, 0]).sum() + np.maximum(w, x.mean()).sum(),
}


def _filled(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:] = x[:-1] * 2.0
    return y


def data() -> Any:
    return RNG.normal(size=(6, 3)) + 3.0


@pytest.mark.parametrize("name", list(OF_DATA))
def test_one_path_serves_all_data(name: str) -> None:
    f = tg.program(OF_DATA[name])
    own, run = tg.value_and_grad(OF_DATA[name]), tg.value_and_grad(f)
    for k in range(5):
        w, x = RNG.normal(size=3), data()
        if k == 2:
            f.compile()
        (expected, slope), (value, gradient) = own(w, x), run(w, x)
        np.testing.assert_allclose(value, expected, rtol=1e-13, atol=1e-14)  # those of standardised data are zero
        np.testing.assert_allclose(gradient, slope, rtol=1e-13, atol=1e-14)
    assert len(f.traces) == 1


@pytest.mark.parametrize("name", sorted(set(OF_DATA) - {"written"}))
def test_machine_code_goes_on_from_what_numpy_computes(name: str) -> None:
    f = tg.program(OF_DATA[name])
    run = tg.value_and_grad(f)
    run(RNG.normal(size=3), data())
    f.compile()
    for _ in range(2):
        run(RNG.normal(size=3), data())
    assert f.traces[0]["machine code"].startswith("machine code")


def test_labels_are_data_of_any_type() -> None:
    def loss(w: Any, x: Any, labels: Any) -> Any:
        return ((x @ w - (labels == 1)) ** 2).sum() + labels.mean() * w[0]

    f = tg.program(loss)
    for k in range(5):
        arguments = RNG.normal(size=3), data(), RNG.integers(0, 2, 6)
        if k == 2:
            f.compile()
        for found, expected in zip(tg.value_and_grad(f)(*arguments), tg.value_and_grad(loss)(*arguments), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert len(f.traces) == 1


def test_data_that_decides_is_asked_before_machine_code() -> None:
    def f(w: Any, x: Any) -> Any:
        return (w * x.std()).sum() if np.linalg.norm(x) > 5.0 else (w * w).sum()

    program = tg.program(f)
    w, large, small = RNG.normal(size=3), data(), 0.01 * data()
    for x in (large, large, small, small):
        tg.value_and_grad(program)(w, x)
    program.compile()
    for x in (large, small, large, small):
        np.testing.assert_array_equal(tg.grad(program)(w, x), tg.grad(f)(w, x))
    assert len(program.traces) == 2


def test_what_numpy_raises_of_data_is_raised() -> None:
    f = tg.program(lambda w, x: w @ np.linalg.cholesky(x) @ w)
    w, good = RNG.normal(size=3), np.eye(3) + 0.1
    for _ in range(2):
        tg.grad(f)(w, good)
    f.compile()
    tg.grad(f)(w, good)
    with pytest.raises(np.linalg.LinAlgError):
        tg.grad(f)(w, -good)
    np.testing.assert_allclose(tg.grad(f)(w, good), tg.grad(f.function)(w, good), rtol=1e-14)


def test_arrays_in_any_order_are_data() -> None:
    f = tg.program(lambda w, x: ((x * 2.0) @ w).sum() + x.std())
    for k in range(4):
        w, x = RNG.normal(size=3), np.asfortranarray(data())
        if k == 2:
            f.compile()
        np.testing.assert_allclose(tg.grad(f)(w, x), tg.grad(f.function)(w, x), rtol=1e-14)


def test_files_do_not_hold_what_numpy_computes(tmp_path: Any) -> None:
    f = tg.program(OF_DATA["standardised"])
    tg.grad(f)(np.ones(3), data())
    with pytest.raises(tg.ProgramError, match="mean"):
        f.save(tmp_path / "f.tgp")


def test_numbers_of_data_at_many_points() -> None:
    f = tg.program(OF_DATA["a number of numbers"])
    points, x = RNG.normal(size=(200, 3)), data()
    found = tg.grad(f).map(points, x)
    np.testing.assert_allclose(found[7], tg.grad(f.function)(points[7], x), rtol=1e-14)
