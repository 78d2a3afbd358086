"""Numbers of arrays have the very bits of NumPy's numbers: under drivers, in programs run again, and in their machine code."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from many_cases import each

import tapegrad as tg

Function = Callable[..., Any]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 20.0, 1e-310, -1e-17, 1e300, -745.0, math.inf, -math.inf, math.nan]
RANDOM = np.random.default_rng(5)
POINTS = [*SPECIAL, *RANDOM.uniform(0.0, 1.0, 12), *RANDOM.uniform(-3.0, 3.0, 12), *RANDOM.uniform(1.0, 30.0, 12)]
PAIRS = [*product(SPECIAL, SPECIAL), *zip(RANDOM.uniform(0.0, 4.0, 24), RANDOM.uniform(-3.0, 3.0, 24), strict=True)]
EXPONENTS = (2, 3.0, 0.5, -1, 1.7)


def ufuncs(operands: int) -> Iterator[tuple[str, Function]]:
    """NumPy's ufuncs of float64 numbers that give one."""
    for name in sorted(set(dir(np))):
        function = getattr(np, name)
        if isinstance(function, np.ufunc) and function.signature is None and "d" * operands + "->d" in function.types:
            yield name, function


OF_ONE: dict[str, Function] = dict(ufuncs(1)) | {"abs": abs, "negative": operator.neg, "sinc": np.sinc}
OF_ONE |= {"round": lambda x: np.round(x, 2)}
OF_ONE |= {f"x ** {n}": lambda x, n=n: x**n for n in EXPONENTS} | {f"{n} ** x": lambda x, n=n: n**x for n in (2, 0.5)}
OF_ONE |= {f"power(x, {n})": lambda x, n=n: np.power(x, n) for n in EXPONENTS}
OF_ONE |= {"power(2, x)": lambda x: np.power(2.0, x), "3.0 / x": lambda x: 3.0 / x, "x % 1.7": lambda x: x % 1.7}
OF_TWO: dict[str, Function] = dict(ufuncs(2))
OF_TWO |= {name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv")}
FUNCTIONS = [(name, f, [np.array(POINTS)]) for name, f in OF_ONE.items()]
FUNCTIONS += [(name, f, list(np.array(PAIRS).T)) for name, f in OF_TWO.items()]


def bits(values: Any) -> list[Any]:
    """Values to compare; nan of whatever sign is one."""
    return ["nan" if v != v else float(v).hex() for v in np.asarray(values, np.float64).reshape(-1).tolist()]


def plain(f: Function, columns: list[np.ndarray]) -> list[Any]:
    """A function's values at numbers of NumPy's."""
    return bits([f(*point) for point in zip(*columns, strict=True)])


def observed(f: Function, *arguments: Any) -> list[Any]:
    """Values that a function sees under a driver, where it gives a list of them."""
    seen: list[Any] = []

    def loss(*arguments: Any) -> Any:
        seen[:] = f(*arguments)
        return sum((np.sum(value) for value in seen), 0.0 * np.sum(arguments[0]))

    tg.grad(loss)(*arguments)
    return [np.array(tg.stop_gradient(value)) for value in seen]


@pytest.mark.filterwarnings("ignore")
@each(("name", "f", "columns"), FUNCTIONS, ids=lambda case: case[0])
def test_numbers_have_numpys_bits(name: str, f: Function, columns: list[np.ndarray]) -> None:
    for kind in (np.float64, np.float32):
        given = [column.astype(kind) for column in columns]
        found = observed(lambda *xs: [f(*(x[k] for x in xs)) for k in range(xs[0].size)], *given)
        assert bits(found) == plain(f, given)


@pytest.mark.filterwarnings("ignore")
@each(("name", "f", "columns"), FUNCTIONS, ids=lambda case: case[0])
def test_arrays_of_any_steps_have_numpys_bits(name: str, f: Function, columns: list[np.ndarray]) -> None:
    def steps(*xs: Any) -> list[Any]:
        parts = (slice(None), slice(None, None, 2), slice(None, None, -1), slice(3, 4))
        return [f(*(x[part] for x in xs)) for part in parts]

    for kind in (np.float64, np.float32):
        given = [column.astype(kind) for column in columns]
        assert list(map(bits, observed(steps, *given))) == list(map(bits, steps(*given)))


@pytest.mark.filterwarnings("ignore")
@each(("name", "f"), [(name, f) for name, f in OF_ONE.items()], ids=lambda case: case[0])
def test_arguments_without_dimensions_have_numpys_bits(name: str, f: Function) -> None:
    points = np.array(POINTS[-6:])
    expected = plain(f, [points])
    for kind in (float, np.array):
        assert bits([observed(lambda x: [f(x)], kind(point)) for point in points]) == expected


@pytest.mark.filterwarnings("ignore")
@each(("name", "f", "columns"), FUNCTIONS, ids=lambda case: case[0])
def test_programs_have_the_bits_of_numbers(name: str, f: Function, columns: list[np.ndarray]) -> None:
    program = tg.program(lambda *xs: f(*(x[0] for x in xs)))
    points = [[np.array([v]) for v in point] for point in zip(*(column[::3] for column in columns), strict=True)]
    expected = plain(f, [column[::3] for column in columns])
    run = tg.value_and_grad(program)
    assert bits([run(*point)[0] for point in points]) == expected
    if name in CODED:
        program.compile()
        run(*points[0])
        assert all(trace["machine code"].startswith("machine code") for trace in program.traces), program.explain()
        assert bits([run(*point)[0] for point in points]) == expected
        assert bits(program.map(*(np.array(column) for column in zip(*points, strict=True)), in_axes=0)) == expected


# Machine code has nothing that these do not show.
CODED = {"tanh", "cbrt", "hypot", "arctan2", "exp2", "x ** 2", "x ** 3.0", "power(x, 1.7)", "pow", "power"}


@pytest.mark.filterwarnings("ignore")
def test_points_of_programs_have_the_bits_of_numbers() -> None:
    x = np.random.default_rng(0).uniform(0.1, 1.4, (5_000, 2))
    program = tg.program(lambda x: np.tanh(x[0]) + np.cosh(x[1]) + np.power(x[0], x[1]) + x[0] ** 2 + x[0] ** x[1])
    run = tg.value_and_grad(program)
    run(x[0])
    program.compile()
    expected = [np.tanh(a) + np.cosh(b) + np.power(a, b) + a**2 + a**b for a, b in x]
    assert bits(run.map(x)[0]) == bits(expected)


def test_files_of_programs_have_the_bits_of_numbers(tmp_path: Path) -> None:
    program = tg.program(lambda x: np.tanh(x[0]) + np.cbrt(x[1]) + x[0] ** 2)
    x = np.array([0.3, 0.7])
    tg.value_and_grad(program)(x)
    program.compile()
    program.save(tmp_path / "numbers.tgp")
    points = np.random.default_rng(0).uniform(0.1, 2.0, (20, 2))
    run = tg.value_and_grad(tg.load_program(tmp_path / "numbers.tgp"))
    assert bits([run(x)[0] for x in points]) == bits([np.tanh(a) + np.cbrt(b) + a**2 for a, b in points])
