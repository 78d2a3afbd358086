"""Programs at many points: what each point gives by itself, with a leading axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

POINTS = np.random.default_rng(0).normal(size=(5, 3))


@tg.program
def f(x: Any, scale: Any = 1.0) -> Any:
    return scale * (x * x).sum() if x[0] > 0 else (np.sin(x) * scale).sum()


def test_the_first_argument_is_mapped() -> None:
    np.testing.assert_array_equal(f.map(POINTS, 2.0), [f(x, 2.0) for x in POINTS])


def test_drivers_of_programs_are_mapped() -> None:
    values, gradients = tg.value_and_grad(f).map(POINTS, 2.0)
    np.testing.assert_array_equal(values, [f(x, 2.0) for x in POINTS])
    np.testing.assert_array_equal(gradients, [tg.grad(f)(x, 2.0) for x in POINTS])
    np.testing.assert_array_equal(tg.grad(f).map(POINTS, 2.0), gradients)
    np.testing.assert_allclose(tg.hessian(f).map(POINTS, 2.0), [tg.hessian(f)(x, 2.0) for x in POINTS])
    np.testing.assert_allclose(tg.jacobian(f).map(POINTS, 2.0), gradients)


@pytest.mark.parametrize(("in_axes", "turned"), [((0, 0), False), (0, False), ((-1, 0), True), ((1, -1), True)])
def test_axes_are_chosen(in_axes: Any, turned: bool) -> None:
    scales = np.arange(5.0)
    found = f.map(POINTS.T if turned else POINTS, scales, in_axes=in_axes)
    np.testing.assert_array_equal(found, [f(x, s) for x, s in zip(POINTS, scales, strict=True)])


def test_containers_are_mapped_with_all_that_they_hold() -> None:
    g = tg.program(lambda p: {"sum": p["a"].sum() * p["b"], "parts": p["a"]})
    found = g.map({"a": POINTS, "b": np.arange(5.0)})
    np.testing.assert_array_equal(found["sum"], POINTS.sum(1) * np.arange(5.0))
    np.testing.assert_array_equal(found["parts"], POINTS)


def test_no_points_give_empty_arrays() -> None:
    values, gradients = tg.value_and_grad(f).map(POINTS[:0])
    assert (values.shape, gradients.shape) == ((0,), (0, 3))


def test_numbers_of_points_must_agree() -> None:
    with pytest.raises(ValueError, match="different numbers of points"):
        f.map(POINTS, np.arange(4.0), in_axes=0)


def test_an_argument_must_be_mapped() -> None:
    with pytest.raises(ValueError, match="maps no argument"):
        f.map(POINTS, 2.0, in_axes=(None, None))


def test_axes_must_exist() -> None:
    with pytest.raises(ValueError, match=r"argument 1 has no axis 0: an array in it has shape \(\)"):
        f.map(POINTS, 2.0, in_axes=0)


def test_axes_must_be_as_many_as_arguments() -> None:
    with pytest.raises(ValueError, match="is for 1 arguments, but there are 2"):
        f.map(POINTS, 2.0, in_axes=(0,))


def test_errors_name_their_point() -> None:
    g = tg.program(lambda A: np.linalg.inv(A).sum())
    matrices = np.stack([np.eye(2), np.ones((2, 2)), np.eye(2)])
    with pytest.raises(np.linalg.LinAlgError) as caught:
        g.map(matrices)
    assert caught.value.__notes__ == ["at point 1 of 3"]
