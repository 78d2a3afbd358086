"""NumPy's names of parameters: `axis` and `keepdims`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

X = np.arange(6.0).reshape(2, 3) ** 2


def with_dimension(place: Any) -> list[str]:
    """Names of functions that take a dimension by name."""
    found = []
    for name in dir(place):
        value = getattr(place, name, None)  # some are there to say what they are not
        if not name.startswith("_") and callable(value) and not isinstance(value, type):
            try:
                parameters = inspect.signature(value).parameters
            except ValueError:  # compiled
                continue
            if "dim" in parameters:
                found.append(name)
    return found


def refuses(function: Callable[..., Any], *arguments: Any) -> bool:
    """Whether a function does not know the name."""
    try:
        function(*arguments, axis=0)
    except TypeError as error:
        return "'axis'" in str(error)
    except (ValueError, RuntimeError, IndexError):
        pass
    return False


@pytest.mark.parametrize("place", [tg, tg.linalg, tg.Tensor], ids=["functions", "linear algebra", "methods"])
def test_whatever_takes_a_dimension_takes_an_axis(place: Any) -> None:
    names = with_dimension(place)
    assert names
    assert [name for name in names if refuses(getattr(place, name), tg.tensor(X))] == []


@pytest.mark.parametrize(
    "function",
    [
        lambda x, **kw: x.sum(**kw),
        lambda x, **kw: tg.sum(x, **kw),
        lambda x, **kw: x.mean(**kw),
        lambda x, **kw: tg.logsumexp(x, **kw),
        lambda x, **kw: x.amax(**kw),
        lambda x, **kw: tg.linalg.norm(x, **kw),
    ],
    ids=["method", "function", "mean", "logsumexp", "amax", "norm"],
)
def test_an_axis_means_a_dimension(function: Callable[..., tg.Tensor]) -> None:
    x, y = (tg.tensor(X, requires_grad=True) for _ in range(2))
    by_axis, by_dimension = function(x, axis=1, keepdims=True), function(y, dim=1, keepdim=True)
    assert by_axis.tolist() == by_dimension.tolist()
    by_axis.sum().backward()
    by_dimension.sum().backward()
    assert x.grad is not None and y.grad is not None
    assert x.grad.tolist() == y.grad.tolist()


def test_in_place_forms_take_an_axis() -> None:
    assert tg.tensor(X).cumsum_(axis=0).tolist() == np.cumsum(X, axis=0).tolist()


def test_functions_of_sequences_take_an_axis() -> None:
    assert tg.stack([tg.tensor(X), tg.tensor(X)], axis=2).tolist() == np.stack([X, X], axis=2).tolist()


@pytest.mark.parametrize("both", [lambda x: x.sum(dim=0, axis=1), lambda x: x.sum(0, axis=1), lambda x: tg.sum(x, axis=0, dim=1)])
def test_both_names_at_once_are_refused(both: Callable[[tg.Tensor], Any]) -> None:
    with pytest.raises(TypeError, match="multiple values for argument 'dim'"):
        both(tg.tensor(X))


def test_a_function_written_for_arrays_is_differentiated() -> None:
    def f(x: Any) -> Any:
        return (x / x.sum(axis=0, keepdims=True)).prod(axis=1).sum()

    point = X + 1.0
    tg.check_grads(f, (point,), order=2)
    assert tg.value_and_grad(f)(point)[0] == pytest.approx(f(point))
