"""Tests that go through many cases: one item of pytest each, since collecting and reporting takes longer than most cases do.

A failure does not hide those after it: all are raised together, each with the name of its case.
`pytest --case WORDS` runs the cases alone whose names have the words in them; `pytest --each` makes an item of every case.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import tapegrad as tg

__all__ = ["apart", "each", "only"]

_only = ""
_apart = False


def only(words: str) -> None:
    """Leave out the cases without these words in their names."""
    global _only
    _only = words


def apart(wanted: bool) -> None:
    """Make an item of every case in the modules that are imported from now on."""
    global _apart
    _apart = wanted


def _name(k: int, value: Any) -> str:
    """The text of a value; functions by their names, and those without one by their place."""
    if isinstance(value, tuple):
        return ", ".join(_name(k, part) for part in value)
    name = str(getattr(value, "__name__", value))
    return f"number {k}" if name == "<lambda>" else name


def each(
    arguments: str | tuple[str, ...], values: Iterable[Any], ids: Callable[[Any], object] | Iterable[str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """What `pytest.mark.parametrize` is, within one test; one on top of another gives all combinations.

    Parameters
    ----------
    arguments : str or tuple of str
        Names of the arguments that a value stands for.
    values : iterable
        One value, or a tuple of as many as there are names, for each case.
    ids : callable or iterable of str
        Names of the cases; what they are in text where it is left out.
    """
    values = list(values)
    if ids is None:
        names = [_name(k, value) for k, value in enumerate(values)]
    else:
        names = [str(ids(value)) for value in values] if callable(ids) else list(ids)
    if _apart:
        return pytest.mark.parametrize(arguments, values, ids=names)
    keys = (arguments,) if isinstance(arguments, str) else arguments
    rows = [(value,) if isinstance(arguments, str) else value for value in values]
    own = [(name, dict(zip(keys, row, strict=True))) for name, row in zip(names, rows, strict=True)]

    def decorate(check: Any) -> Callable[..., None]:
        inner = getattr(check, "cases", [("", {})])
        cases = [(", ".join(filter(None, (a, b))), given | more) for a, given in own for b, more in inner]
        body = getattr(check, "body", check)

        @functools.wraps(check)
        def test(**fixtures: Any) -> None:
            failures: list[BaseException] = []
            for name, given in cases:
                if _only not in name:
                    continue
                tg.manual_seed(0)  # no case may depend on those before it
                try:
                    body(**fixtures, **given)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"in case {name!r}")
                    failures.append(error)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(cases)} cases of {body.__name__}", failures)

        parameters = inspect.signature(check).parameters
        assert cases and set(keys) <= set(parameters)
        left = [parameter for name, parameter in parameters.items() if name not in keys]
        for name, value in {"cases": cases, "body": body, "__signature__": inspect.Signature(left)}.items():
            setattr(test, name, value)
        return test

    return decorate
