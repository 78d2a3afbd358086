"""Programs at so many points that they get machine code for them: each point gives what it gives alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture
from random_expressions import random_function

import tapegrad as tg

COUNT = 12_000
RNG = np.random.default_rng(0)


def wave(p: Any) -> Any:
    a, b, c = p[0], p[1], p[2]
    u = np.tanh(a * b + c)
    v = np.exp(-u * u) / (1.0 + b * b)
    return v * np.sin(u - c) + u * u * 0.5


def two_ways(p: Any, scale: Any) -> Any:
    return (p * p * scale).sum() if p[0] > 0.0 else np.sin(p[1]) * scale


def code_of(program: Any) -> list[bool]:
    return [any(trace.fused._many.values()) for trace in program._recorded()]


def test_numbers_have_the_bits_of_single_points() -> None:
    points = RNG.standard_normal((COUNT, 3))
    program = tg.program(wave)
    values, gradients = tg.value_and_grad(program).map(points)
    assert code_of(program) == [True]
    single = tg.value_and_grad(wave)
    for k in (*range(0, COUNT, 401), COUNT - 1):
        value, gradient = single(points[k])
        assert (values[k], gradients[k].tobytes()) == (value, gradient.tobytes())
    assert np.array_equal(program.map(points), values)
    assert np.array_equal(tg.grad(program).map(points), gradients)


def test_points_that_go_other_ways_are_taken_by_their_paths() -> None:
    points = RNG.standard_normal((COUNT, 3))
    program = tg.program(two_ways)
    values, (by_points, by_scale) = tg.value_and_grad(program, (0, 1)).map(points, 1.5)
    assert code_of(program) == [True, True]
    single = tg.value_and_grad(two_ways, (0, 1))
    for k in range(0, COUNT, 401):
        value, (gradient, slope) = single(points[k], 1.5)
        np.testing.assert_allclose([values[k], *by_points[k], by_scale[k]], [value, *gradient, slope], rtol=4e-15)


def test_a_path_that_the_first_point_leaves_takes_the_others() -> None:
    points = np.abs(RNG.standard_normal((COUNT, 3)))
    program = tg.program(two_ways)
    run = tg.value_and_grad(program)
    run(points[0], 1.5)
    points[0] *= -1.0
    values, gradients = run.map(points, 1.5)
    assert code_of(program)[0]
    np.testing.assert_allclose(values[1:], (points[1:] ** 2 * 1.5).sum(1), rtol=4e-15)
    np.testing.assert_allclose(gradients[0], tg.grad(two_ways)(points[0], 1.5), rtol=4e-15)


@pytest.mark.parametrize("threads", [2, 3])
def test_results_do_not_depend_on_the_number_of_threads(threads: int) -> None:
    points = RNG.standard_normal((COUNT + 1, 3))
    one, many = tg.program(wave), tg.program(wave, threads=threads)
    (value, gradient), (own_value, own) = (tg.value_and_grad(p).map(points) for p in (one, many))
    assert value.tobytes() == own_value.tobytes()
    assert gradient.tobytes() == own.tobytes()


def test_axes_and_arguments_that_are_the_same_at_all_points() -> None:
    points, scales, times = RNG.standard_normal((3, COUNT)), RNG.standard_normal(COUNT), np.linspace(0.0, 1.0, 5)

    def fit(p: Any, scale: Any, t: Any) -> Any:
        return ((p[0] * np.exp(-p[1] * t) + p[2] - scale) ** 2).sum()

    program = tg.program(fit)
    values, (by_points, by_times) = tg.value_and_grad(program, (0, 2)).map(points, scales, times, in_axes=(1, 0, None))
    assert code_of(program) == [True]
    for k in range(0, COUNT, 401):
        value, (gradient, by_time) = tg.value_and_grad(fit, (0, 2))(points[:, k], scales[k], times)
        np.testing.assert_allclose(values[k], value, rtol=4e-15)
        np.testing.assert_allclose(by_points[k], gradient, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(by_times[k], by_time, rtol=1e-13, atol=1e-15)


@pytest.mark.filterwarnings("ignore")
def test_random_functions_at_many_points(request: pytest.FixtureRequest) -> None:
    wrong, compiled = [], 0
    count = 400 if request.config.getoption("--long") else 12
    for seed in range(count):
        function, text = random_function(seed, products=False)
        program = tg.program(function)
        x, y, s = RNG.standard_normal((6000, 3, 4)), RNG.standard_normal(4), RNG.standard_normal(6000)
        with np.errstate(all="ignore"):
            values, gradients = tg.value_and_grad(program, (0, 1, 2)).map(x, y, s, in_axes=(0, None, 0))
            for k in range(0, 6000, 997):
                value, expected = tg.value_and_grad(function, (0, 1, 2))(x[k], y, s[k])
                found = [values[k], *(g[k] for g in gradients)]
                for a, b in zip(found, [value, *expected], strict=True):
                    largest = np.abs(np.nan_to_num(b, posinf=0.0, neginf=0.0)).max() + 1e-3
                    if not np.allclose(a, b, rtol=1e-11, atol=1e-11 * largest, equal_nan=True):
                        wrong.append(f"{text}\n{k}: {a}, {b}")
        compiled += any(code_of(program))
    assert not wrong, "\n".join(wrong[:3])
    assert compiled > 0.8 * count


def test_integers_among_the_points_are_taken_one_by_one() -> None:
    program = tg.program(lambda x, n: (x**n).sum())
    values = program.map(np.ones((20, 2)), np.arange(20), in_axes=0)
    assert np.array_equal(values, np.full(20, 2.0))


def test_a_point_that_raises_is_named() -> None:
    def f(x: Any) -> Any:
        if x[0] > 0.5:
            raise ValueError("too far")
        return (x * x).sum()

    points = np.zeros((COUNT, 2))
    points[7000] = 1.0
    with pytest.raises(ValueError, match="too far") as caught:
        tg.value_and_grad(tg.program(f)).map(points)
    assert caught.value.__notes__ == [f"at point 7000 of {COUNT}"]
