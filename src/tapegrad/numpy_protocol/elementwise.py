"""Functions of one element at a time with NumPy's names and arguments, made of the package's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.numpy_protocol.functions import real
from tapegrad.numpy_protocol.operands import as_tensors, one
from tapegrad.rules.table import RULES
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import Tensor

__all__ = ["ELEMENTWISE", "modf"]


def modf(x: Any) -> tuple[Tensor, Tensor]:
    """The part after the point, which has the derivative of the whole, and the part before it."""
    x = real(x)
    whole = tg.trunc(x.detach())
    infinite = tg.isinf(whole)
    return tg.where(infinite, tg.copysign(tg.zeros_like(whole), whole), x - whole), whole


def _fix(x: Any) -> Any:
    return tg.trunc(one(x))


def _of_one(name: str) -> Callable[[Any], Any]:
    """A rule of one argument."""

    def call(x: Any) -> Any:
        return getattr(tg, name)(real(x))

    return call


def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not len(condlist):
        raise ValueError("select with an empty condition list is not possible")
    conditions = [one(condition) for condition in condlist]
    for k, condition in enumerate(conditions):
        if condition.dtype.kind != "b":
            raise TypeError(f"invalid entry {k} in condlist: should be boolean ndarray")
    result, *choices = as_tensors(default, *choicelist)
    for condition, choice in zip(conditions[::-1], choices[::-1], strict=True):
        result = tg.where(condition, choice, result)
    return result


def _imag(val: Any) -> Any:
    return tg.zeros_like(one(val))


def _angle(z: Any, deg: bool = False) -> Any:
    x = real(z).detach()
    found = tg.atan2(tg.zeros_like(x), x)  # also of nan, and of a negative zero
    return found * (180.0 / np.pi) if deg else found


def _isreal(x: Any) -> Any:
    return tg.ones_like(one(x), dtype=np.dtype(bool))


def _iscomplex(x: Any) -> Any:
    return tg.zeros_like(one(x), dtype=np.dtype(bool))


def _i0(x: Any) -> Any:
    try:
        import scipy.special  # noqa: F401
    except ImportError as missing:
        raise ModuleNotFoundError("np.i0 of a tensor needs SciPy: pip install 'tapegrad[scipy]'", name="scipy") from missing

    return look_up("numpy_protocol.scipy_special:special")(look_up("numpy_protocol.protocols:ufunc_of_scipy")("i0"))(real(x))


def _real_if_close(a: Any, tol: float = 100) -> Any:
    return one(a)


# Functions of NumPy's that are no ufuncs and have the name of a rule, but for `round`, which takes decimals.
_NAMES = [rule.name for rule in RULES if len(rule.args) == 1 and rule.name != "round"]
ELEMENTWISE: dict[str, Callable[..., Any]] = {
    name: _of_one(name) for name in _NAMES if not isinstance(getattr(np, name, np.sin), np.ufunc)
} | {
    "angle": _angle, "fix": _fix, "i0": _i0, "imag": _imag, "iscomplex": _iscomplex, "isreal": _isreal,
    "real_if_close": _real_if_close,
    "select": _select,
}  # fmt: skip
