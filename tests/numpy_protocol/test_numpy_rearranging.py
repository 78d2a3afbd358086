"""NumPy's functions that move elements, or take them one at a time, on tensors."""

from typing import Any

import numpy as np
import pytest
from engine_fixtures import leaf
from like_numpy import assert_like_numpy, values_of

import tapegrad as tg

over = pytest.mark.parametrize
M = np.array([[0.31, 0.82, 0.55, 0.47], [0.66, 0.43, 0.91, 0.38], [0.72, 0.59, 0.34, 0.88]])
V = np.array([0.45, 0.77, 0.62, 0.53])
NAMES: dict[str, Any] = {"np": np, "M": M, "V": V, "ONE": np.array([0.7]), "NONE": np.zeros(0), "NUMBER": np.array(-0.3)}
NAMES |= {"windows": np.lib.stride_tricks.sliding_window_view, "INTEGERS": np.array([7, -1, 4, 4]), "SINGLE": M.astype(np.float32)}
NAMES |= {"ENDS": np.array([0.0, -8.0, np.inf, -np.inf, np.nan, 2.0])}


def line(text: str) -> tuple[Any, list[Any]]:
    call, names = text.split(" # ")
    return eval(f"lambda a: {call}", NAMES), [NAMES[name] for name in names.split()]


@over(
    "text",
    """
np.pad(a, 2) # V M NONE
np.pad(a, (1, 2), constant_values=(5.0, 6.0)) # V M
np.pad(a, ((1, 0), (0, 2)), mode="edge") # M
np.pad(a, 2, "reflect") # V ONE
np.pad(a, 3, "symmetric") # M
np.pad(a, 3, "wrap") # V
np.delete(a, 1) # V M
np.delete(a, [0, 2], axis=1) # M
np.delete(a, slice(None, None, 2)) # V
np.delete(a, np.array([True, False, True, False]), axis=1) # M
np.insert(a, 1, 5.0) # V M
np.insert(a, [1, 3], a[:2]) # V
np.insert(a, 1, a[0] * 2.0, axis=0) # M
np.insert(a, [1, 1], a[:, :2], axis=1) # M
np.insert(M, 1, a, axis=0) # V
np.block([[a, np.zeros((3, 1))], [np.ones((1, 5))]]) # M
np.block([a, a]) # V NONE
windows(a, 2) # V
windows(a, (2, 3)) # M
windows(a, 3, axis=1, writeable=False) # M
np.unique(a) # M V NONE
np.unique(a, return_index=True, return_inverse=True, return_counts=True) # V
np.select([M > 0.5, M < 0.4], [a, a * 2.0], a * 3.0) # M
np.select([M > 0.5, M < 0.4], [a, 7.0]) # V
np.sinc(a) # V NUMBER NONE
np.fix(a * 5.0) + a # M
np.cbrt(a - 0.5) # M
np.modf(a * 5.0 - 2.0)[0] # M NUMBER
""".strip().splitlines(),
)
def test_elements_are_moved_as_in_numpy_with_derivatives(text: str) -> None:
    f, arrays = line(text)
    for array in arrays:
        assert_like_numpy(f, array, order=2)


@over(
    "text",
    """
np.cbrt(a) # ENDS INTEGERS SINGLE
np.modf(a) # ENDS INTEGERS SINGLE
np.sinc(a) # INTEGERS
np.unique(a) # ENDS INTEGERS
np.unique(a, return_counts=True) # INTEGERS
np.unique(np.round(a), axis=0) # M
np.insert(a, 1, 2.7) # INTEGERS
np.pad(a, 1, constant_values=2.7) # INTEGERS
np.select([a > 0], [a], default=-1) # INTEGERS
np.select([a > 0, a < 0], [1, 2]) # INTEGERS
""".strip().splitlines(),
)
def test_ends_of_the_line_and_integers_count_as_in_numpy(text: str) -> None:
    f, arrays = line(text)
    for array in arrays:
        values_of(f, array)


def test_first_of_equal_elements_gets_the_gradient_of_unique_ones() -> None:
    x = leaf([3.0, 1.0, 3.0])
    (np.unique(x) * tg.tensor([5.0, 7.0])).sum().backward()
    assert x.grad.tolist() == [7.0, 5.0, 0.0]


def test_slope_of_the_cube_root_at_zero_is_infinite() -> None:
    x = leaf([0.0, -0.0])
    np.cbrt(x).sum().backward()
    assert x.grad.tolist() == [np.inf, np.inf]


def test_part_before_the_point_is_not_tracked() -> None:
    part, whole = np.modf(leaf([2.5, np.inf]))
    assert part.requires_grad and not whole.requires_grad


def test_ways_of_padding_that_are_not_covered_are_named() -> None:
    with pytest.raises(TypeError, match="numpy.pad is not covered for Tensors: reflect_type='odd'"):
        np.pad(leaf(V), 1, "reflect", reflect_type="odd")


def test_conditions_of_select_are_boolean() -> None:
    with pytest.raises(TypeError, match="invalid entry 0 in condlist"):
        np.select([leaf(V)], [1.0])


@over(("conditions", "choices"), [([], []), ([V > 0.5], [])])
def test_select_needs_as_many_choices_as_conditions(conditions: Any, choices: Any) -> None:
    with pytest.raises(ValueError, match="condition"):
        np.select(conditions, choices, default=leaf(V))
