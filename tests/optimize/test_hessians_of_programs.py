"""Second derivatives of programs in optimisers: by machine code once there is some, by the recording until then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.programs.fused import paths

pytest.importorskip("scipy")


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def sorted_sum(x: Any) -> Any:
    return (np.sort(x) ** 2 * np.arange(x.size)).sum()  # the code goes on around Python's steps, of which it has no tangents


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is made at the first run, before it returns."""
    monkeypatch.setattr(paths, "PATIENCE", 0.0)
    monkeypatch.setattr("tapegrad.programs.fused.background.compile_later", lambda task: task())


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("what", ["hess", "hessp"])
@pytest.mark.parametrize("function", [rosenbrock, sorted_sum])
def test_hessians_are_the_functions_own_with_code_and_without(what: str, function: Any) -> None:
    program = tg.program(function)
    found, own = (tg.optimize.scipy_fun(f, np.zeros(5)) for f in (program, function))
    rng = np.random.default_rng(3)
    for _ in range(5):
        x, p = rng.normal(size=5), rng.normal(size=5)
        assert found(x)[0] == pytest.approx(own(x)[0], rel=1e-13)
        arguments = (x,) if what == "hess" else (x, p)
        np.testing.assert_allclose(getattr(found, what)(*arguments), getattr(own, what)(*arguments), rtol=1e-12, atol=1e-11)
    kind = "hessian" if what == "hess" else "hvp"
    text = program.traces[0]["machine code"]
    assert (f"{kind}: machine code" in text) == (function is rosenbrock)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("method", ["Newton-CG", "trust-exact", "trust-constr"])
def test_minimize_takes_the_way_of_the_function(method: str) -> None:
    start = np.array([-1.2, 1.0, 0.5])
    found = tg.optimize.minimize(tg.program(rosenbrock), start, method=method)
    expected = tg.optimize.minimize(rosenbrock, start, method=method)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-6)
    np.testing.assert_allclose(found.x, np.ones(3), rtol=1e-4)
