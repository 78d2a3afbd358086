"""Ufuncs that take numbers apart: by their exponents, by the numbers next to them, by their signs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.numpy_protocol.functions import real
from tapegrad.numpy_protocol.operands import one
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import array_of

__all__ = ["frexp", "heaviside", "ldexp", "nextafter", "spacing"]


def frexp(x: Any) -> tuple[Any, Any]:
    """Mantissa, which is the number divided by a constant, and exponent."""
    x = real(x)
    exponent = np.frexp(array_of(x))[1]
    return ldexp(x, -exponent), one(np.asarray(exponent))


def ldexp(x: Any, i: Any) -> Any:
    """Times a power of two, in two steps, since a power alone can be beyond the largest number."""
    x, exponent = real(x), array_of(one(i)).astype(np.int64)
    half = exponent // 2
    powers = [np.ldexp(np.ones((), x.dtype), np.clip(n, -2000, 2000).astype(np.int32)) for n in (half, exponent - half)]
    return x * one(np.asarray(powers[0])) * one(np.asarray(powers[1]))


def heaviside(x1: Any, x2: Any) -> Any:
    """A step, which is flat on both sides; at zero the second operand."""
    x, value = real(x1), real(x2)
    step = np.heaviside(array_of(x), 0.5)
    return tg.where(one(array_of(x) == 0), value, one(np.where(array_of(x) == 0, 0.0, step).astype(x.dtype)))


def nextafter(x1: Any, x2: Any) -> Any:
    """The number next to the first operand, which moves with it unless that is infinite."""
    x = real(x1)
    values = array_of(x)
    near = np.asarray(np.nextafter(values, array_of(one(x2))))
    finite = np.isfinite(values)
    moved = x + one(np.asarray(near - np.where(finite, values, 0.0)))
    return moved if finite.all() else tg.where(one(np.asarray(finite)), moved, one(near))


def spacing(x: Any) -> Any:
    """How far the next number is, which changes by steps."""
    return one(np.asarray(np.spacing(array_of(one(x)))))
