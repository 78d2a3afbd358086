"""Operands of classes that tensors know nothing of: their reflected operators are asked, as Python asks them."""

from __future__ import annotations

from typing import Any

from tapegrad.tensors.tensor import Tensor

__all__ = ["REFLECTED_NAMES", "asked"]

REFLECTED_NAMES = {
    "add": "__radd__", "sub": "__rsub__", "mul": "__rmul__", "div": "__rtruediv__", "remainder": "__rmod__", "pow": "__rpow__",
}  # fmt: skip


def asked(name: str, x: Tensor, y: Any) -> Any:
    """What the class of the second operand makes of an operation with a tensor before it.

    The operators of tensors are functions and methods too, which cannot decline, so its operator is called here and not by Python.

    Parameters
    ----------
    name : str
        Of the reflected operator.
    x : Tensor
    y : Any

    Returns
    -------
    Any
        NotImplemented where there is nobody to ask. Arrays are none, which are to be converted, nor what Python has itself: a text
        or a list means something else by ``*`` and ``%``.
    """
    kind = type(y)
    if isinstance(y, Tensor) or kind.__module__ in ("builtins", "numpy") or hasattr(kind, "__array__"):
        return NotImplemented
    operator = getattr(kind, name, None)
    return NotImplemented if operator is None else operator(y, x)
