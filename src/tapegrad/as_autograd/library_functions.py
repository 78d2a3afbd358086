"""Functions of NumPy's and SciPy's modules as autograd has them: primitives for which anybody may give a derivative.

What nobody gave one for is called as it is, with what is differentiated: most have derivatives of their own, and the others say
so. That costs a call, 0.1 us, for which reason the names of ``autograd.numpy`` itself are the functions themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from tapegrad.as_autograd.primitives import primitive
from tapegrad.numpy_protocol.protocols import SCIPY
from tapegrad.numpy_protocol.scipy_special import PARTIALS

__all__ = ["open_to_derivatives"]


def open_to_derivatives(found: Any) -> Any:
    """What a module of a library has under a name; a function of Python's so that `defvjp` and `defjvp` can be called for it.

    So is a ufunc without a derivative.
    """
    if isinstance(found, np.ufunc):
        return found if found.__name__ in SCIPY or found.__name__ in PARTIALS else _open(found)
    return _open(found) if isinstance(found, (FunctionType, BuiltinFunctionType, MethodType)) else found


def _open(function: Callable[..., Any]) -> Callable[..., Any]:
    made: Any = None

    @functools.wraps(function, assigned=("__name__", "__qualname__", "__doc__", "__module__"), updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) if made is None else made(*args, **kwargs)

    def as_primitive() -> Any:
        nonlocal made
        if made is None:
            made = primitive(function)
        return made

    result: Any = call
    result.fun, result.as_primitive = function, as_primitive
    return call
