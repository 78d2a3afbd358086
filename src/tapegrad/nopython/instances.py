"""Instances of compiled classes as arguments: a recording runs on the caller's instance, which is put back as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba.core import types
from numba.experimental.jitclass import _box

__all__ = ["Instance", "restored"]

Instance = _box.Box
SCALARS = (types.Number, types.Boolean)


@contextmanager
def restored(function: str, arguments: list[Any]) -> Iterator[None]:
    """Give the attributes of all instances the values back that they have now."""
    instances = [argument for argument in arguments if isinstance(argument, Instance)]
    saved = [(instance, name, _value(function, instance, name)) for instance in instances for name in instance._numba_type_.struct]
    arrays = [(value, value.copy()) for _, _, value in saved if isinstance(value, np.ndarray)]
    others = [argument for argument in arguments if isinstance(argument, np.ndarray)]
    if any(np.may_share_memory(array, other) for array, _ in arrays for other in others):
        raise ValueError(f"{function}: an array of an instance and an argument share memory; pass a copy of one of them")
    try:
        yield
    finally:
        for instance, name, value in saved:
            setattr(instance, name, value)
        for array, before in arrays:
            if array.flags.writeable:
                array[...] = before


def _value(function: str, instance: Any, name: str) -> Any:
    kind = instance._numba_type_.struct[name]
    if not isinstance(kind, (*SCALARS, types.Array)):
        raise TypeError(
            f"{function}: the attribute {name} of an instance of {type(instance).__name__} is {kind}; only numbers and arrays can "
            "be put back as they were after the call: pass it as an argument of its own"
        )
    return getattr(instance, name)
