"""Tensors by NumPy's names, and what else goes by them: constants and properties of dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg


def test_arrays_and_tensors_share_their_memory() -> None:
    array = np.zeros(2)
    tensor = tg.asarray(array)
    array[0] = 5.0
    assert tensor.tolist() == [5.0, 0.0]
    again = tg.asarray(tensor, copy=False)
    tensor[1] = 3.0
    assert again.tolist() == [5.0, 3.0]


def test_copy_has_memory_of_its_own() -> None:
    array = np.zeros(2)
    for source in (array, tg.asarray(array)):
        copied = tg.asarray(source, copy=True)
        array[0] += 1.0
        assert copied.tolist() == [array[0] - 1.0, 0.0]


@pytest.mark.parametrize("options", [{}, {"requires_grad": True}, {"copy": True}, {"copy": False}, {"dtype": tg.float32}])
def test_tensors_keep_their_graph(options: dict[str, Any]) -> None:
    x = tg.ones(2, requires_grad=True)
    tg.asarray(x * 2.0, **options).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_graph_is_left_on_request() -> None:
    x = tg.ones(2, requires_grad=True)
    for source in (x, x * 2.0):
        found = tg.asarray(source, requires_grad=False)
        assert found.is_leaf
        assert not found.requires_grad


@pytest.mark.parametrize("data", [2.0, [1.0, 2.0]])
def test_tensor_is_taken_as_it_is_or_copied(data: Any) -> None:
    t = tg.tensor(data)
    assert tg.asarray(t) is t
    assert tg.asarray(t, copy=False) is t
    assert tg.asarray(t, copy=True) is not t
    assert tg.asarray(t, requires_grad=True) is t
    assert t.requires_grad


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tg.asarray([1.0], copy=False), "can't alias arbitrary sequence into a tensor"),
        (lambda: tg.asarray(np.zeros(2), dtype=tg.float32, copy=False), "can't alias data of dtype float64 as float32"),
    ],
)
def test_memory_that_cannot_be_shared_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_number_becomes_a_tensor_of_the_default_dtype() -> None:
    assert (tg.scalar_tensor(2).dtype, tg.scalar_tensor(2).shape) == (tg.float64, ())
    assert tg.scalar_tensor(2, dtype=tg.int64).dtype == tg.int64
    assert tg.scalar_tensor(2.5, requires_grad=True).requires_grad


def test_logspace_is_the_power_of_linspace() -> None:
    np.testing.assert_allclose(tg.logspace(-1.0, 2.0, 7), np.logspace(-1.0, 2.0, 7), rtol=1e-14)
    np.testing.assert_allclose(tg.logspace(0.0, 4.0, 5, 2.0, tg.float32), [1, 2, 4, 8, 16], rtol=1e-6)
    assert tg.logspace(0.9, 3.9, 4, 2, tg.int64).tolist() == [1, 2, 4, 8]


def test_integers_of_linspace_have_integers_at_both_ends() -> None:
    assert tg.linspace(0.9, 4.9, 5, tg.int64).tolist() == [0, 1, 2, 3, 4]


def test_constants_and_properties_of_dtypes() -> None:
    assert (tg.pi, tg.e, tg.inf, tg.newaxis) == (math.pi, math.e, math.inf, None)
    assert math.isnan(tg.nan)
    assert tg.ones(2)[:, tg.newaxis].shape == (2, 1)
    assert (tg.finfo(tg.float32).eps, tg.iinfo(tg.int32).max) == (2.0**-23, 2**31 - 1)


@pytest.mark.parametrize("name", ["conj", "conj_physical", "resolve_conj", "resolve_neg"])
def test_real_numbers_are_their_own_conjugates(name: str) -> None:
    x = tg.ones(2, requires_grad=True)
    assert getattr(tg, name)(x) is x
    assert getattr(x, name)() is x
