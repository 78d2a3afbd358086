"""Programs at many points whose workers are an executor's: the bits of the same map without one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import parallel_functions as functions
import pytest

import tapegrad as tg

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(300, 3))


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=get_context("forkserver")) as executor:
        yield executor


@pytest.fixture(scope="module")
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(3) as executor:
        yield executor


@pytest.fixture(params=["threads", "processes"])
def executor(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def assert_same(found: Any, expected: Any) -> None:
    for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected)), strict=True):
        assert one.shape == other.shape and one.tobytes() == other.tobytes()


@pytest.mark.parametrize("driver", [None, tg.value_and_grad, tg.grad, tg.hessian, tg.jacobian])
def test_values_and_derivatives_have_the_bits_of_one_process(driver: Any, executor: Any) -> None:
    run = driver(functions.two_ways) if driver else functions.two_ways
    assert_same(run.map(POINTS, executor=executor), run.map(POINTS))


def test_axes_keywords_and_containers_go_along(executor: Any) -> None:
    scales = np.arange(300.0)
    both = tg.value_and_grad(functions.wave)
    assert_same(both.map(POINTS.T, scales, in_axes=(1, 0), executor=executor), both.map(POINTS.T, scales, in_axes=(1, 0)))
    assert_same(functions.wave.map(POINTS, executor=executor, scale=2.0), functions.wave.map(POINTS, scale=2.0))


@pytest.mark.parametrize("count", [0, 1, 5, 33])
def test_any_number_of_points(count: int, threads: Executor) -> None:
    run = tg.value_and_grad(functions.two_ways)
    assert_same(run.map(POINTS[:count], executor=threads), run.map(POINTS[:count]))


def test_machine_code_gives_the_same_bits_by_workers(processes: Executor) -> None:
    points = RNG.normal(size=(6000, 20))
    both = tg.value_and_grad(functions.wave)
    expected = both.map(points)
    assert any(any(trace.fused._many.values()) for trace in functions.wave._recorded())
    assert_same(both.map(points, executor=processes), expected)


def test_a_point_gives_the_same_bits_wherever_it_stands() -> None:
    points = RNG.normal(size=(20_000, 20))
    values = tg.program(lambda x: (x * x).sum()).map(points)
    np.testing.assert_array_equal(tg.program(lambda x: (x * x).sum()).map(points[::-1])[::-1], values)


def test_maps_give_the_same_bits_again() -> None:
    """The first point of a path is no exception: the function itself may compute a number with other bits than its steps."""
    program = tg.program(functions.wave.function)
    first = program.map(POINTS, scale=2.0)
    assert_same(program.map(POINTS[::-1], scale=2.0)[::-1], first)


def test_what_a_point_raises_names_it(executor: Any) -> None:
    points = np.arange(300.0)[:, None] * np.ones(2)
    with pytest.raises(ValueError, match="no fifth") as caught:
        functions.refuses_the_fifth.map(points, executor=executor)
    assert "at point 5 of 300" in caught.value.__notes__


def test_functions_of_no_module_are_run_by_threads(threads: Executor) -> None:
    f = tg.program(lambda x: (x * x).sum())
    assert_same(f.map(POINTS, executor=threads), f.map(POINTS))
    with pytest.raises(TypeError, match=r"an executor is one of concurrent\.futures"):
        f.map(POINTS, executor=3)
