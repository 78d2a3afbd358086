"""Attributes of arrays on tensors: those that PyTorch has too, and advice for those that it has not."""

from typing import Any

import numpy as np
import pytest
from engine_fixtures import leaf

import tapegrad as tg
from tapegrad.surface.array_attributes import ABSENT

over = pytest.mark.parametrize


@over("name", sorted(ABSENT))
def test_missing_attribute_is_missing_and_says_what_to_write(name: str) -> None:
    x = leaf([1.0, 2.0])
    assert not hasattr(x, name) and not hasattr(tg.Tensor, name)
    with pytest.raises(AttributeError, match=f"'Tensor' object has no attribute '{name}'; ."):
        getattr(x, name)


@over(
    ("name", "instead", "method"),
    [
        ("copy", lambda x: x.clone(), lambda a: a.copy()),
        ("copy", np.copy, lambda a: a.copy()),
        ("astype", lambda x: x.to(np.float32), lambda a: a.astype(np.float32)),
        ("ptp", np.ptp, np.ptp),
        ("flat", lambda x: x.reshape(-1), lambda a: np.array(list(a.flat))),
        ("flat", np.ravel, lambda a: np.array(list(a.flat))),
        ("searchsorted", lambda x: np.searchsorted(np.ravel(x), 2.5), lambda a: a.ravel().searchsorted(2.5)),
        ("compress", lambda x: np.compress([True, False], x), lambda a: a.compress([True, False])),
        ("conjugate", lambda x: x.conj(), lambda a: a.conjugate()),
    ],
)
def test_what_is_advised_means_the_same(name: str, instead: Any, method: Any) -> None:
    array = np.array([[1.0, 2.0], [3.0, 5.0]])
    result, value = instead(tg.tensor(array)), method(array)
    assert name in ABSENT and result.dtype == value.dtype
    np.testing.assert_array_equal(result.numpy(), value)


@over("array", [np.zeros((2, 3)), np.zeros((0, 3)), np.zeros(3, np.float32), np.array(1.5), np.array([True, False])])
def test_bytes_are_those_of_the_array(array: np.ndarray) -> None:
    x = tg.tensor(array)
    assert (x.nbytes, x.itemsize) == (array.nbytes, array.itemsize)


def test_real_numbers_are_their_own_conjugate_and_real_part() -> None:
    x = leaf([1.0, 2.0])
    assert x.conj() is x and x.real is x
