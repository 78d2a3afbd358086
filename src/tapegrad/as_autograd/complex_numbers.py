"""Complex numbers as arguments and results of autograd's operators: each is two real arrays, which the drivers differentiate by.

As in autograd, the gradient of a real function of ``z = x + iy`` is its derivative by x minus i times that by y: a change of z
changes the function by the real part of their product. The derivative of a holomorphic function is the gradient of its real part.
Cotangents are such gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapegrad.numpy_arrays.complex_arrays import ComplexArray, made, parts
from tapegrad.tensors.tensor import Tensor

__all__ = ["Parts", "apart", "as_cotangent", "as_gradient", "as_tangent", "complex_value", "on_parts", "together"]


class Parts(NamedTuple):
    """Real and imaginary part of an array: a container that drivers know."""

    real: Any
    imag: Any


def apart(x: Any) -> Any:
    """A value, or a container of values, with `Parts` in place of complex ones; itself if there are none."""
    kind = type(x)
    if kind is np.ndarray or kind is float or isinstance(x, Tensor):
        return Parts(x.real.copy(), x.imag.copy()) if kind is np.ndarray and x.dtype.kind == "c" else x
    if kind is ComplexArray:
        return Parts(x.real, x.imag)
    if isinstance(x, (complex, np.complexfloating)):
        return Parts(x.real, x.imag) if isinstance(x, np.complexfloating) else Parts(float(x.real), float(x.imag))
    return _changed(x, apart)


def _changed(x: Any, change: Callable[[Any], Any]) -> Any:
    """A container with its items changed; itself if none are."""
    if isinstance(x, (list, tuple)):
        found = [change(part) for part in x]
        if all(new is old for new, old in zip(found, x, strict=True)):
            return x
        return type(x)._make(found) if hasattr(x, "_make") else type(x)(found)
    if isinstance(x, dict):
        named = {name: change(part) for name, part in x.items()}
        return x if all(named[name] is x[name] for name in x) else named
    return x


def together(x: Any) -> Any:
    """The way back: complex arrays of NumPy's where both parts are, else such as can be differentiated by."""
    if type(x) is Parts:
        return _joined(x.real, x.imag)
    return x if isinstance(x, (np.ndarray, float, Tensor)) else _changed(x, together)


def _joined(real: Any, imag: Any) -> Any:
    if isinstance(real, Tensor) or isinstance(imag, Tensor):
        return made(real, imag)
    real, imag = np.asarray(real), np.asarray(imag)  # Python's floats count as double
    values = np.empty(np.broadcast_shapes(real.shape, imag.shape), np.result_type(real, np.complex64))
    values.real, values.imag = real, imag  # a sum with 1j * imag would make nan of infinity
    return values if values.ndim else values[()]


def as_gradient(x: Any) -> Any:
    """Gradients by both parts as that by the complex number."""
    if type(x) is Parts:
        return _joined(x.real, -x.imag if isinstance(x.imag, Tensor) else 0.0 - x.imag)  # no negative zeros
    return x if isinstance(x, (np.ndarray, np.generic, float, Tensor)) else _changed(x, as_gradient)


def as_cotangent(like: Any, g: Any) -> Any:
    """A cotangent of a value that was taken apart.

    Parameters
    ----------
    like : object
        What `apart` made of the value.
    g : object
        Of the value's structure.
    """
    if type(like) is Parts:
        real, imag = parts(g)
        return Parts(real, -imag)
    if isinstance(like, (list, tuple)) and isinstance(g, (list, tuple)) and len(like) == len(g):
        return _changed_like(g, [as_cotangent(part, own) for part, own in zip(like, g, strict=True)])
    if isinstance(like, dict) and isinstance(g, dict):
        return {name: as_cotangent(like[name], own) if name in like else own for name, own in g.items()}
    return g


def _changed_like(g: Any, values: list[Any]) -> Any:
    return type(g)._make(values) if hasattr(g, "_make") else type(g)(values)


def as_tangent(like: Any, v: Any) -> Any:
    """A tangent of an argument that was taken apart."""
    if type(like) is Parts:
        return Parts(*parts(v))
    if isinstance(like, (list, tuple)) and isinstance(v, (list, tuple)) and len(like) == len(v):
        return _changed_like(v, [as_tangent(part, own) for part, own in zip(like, v, strict=True)])
    if isinstance(like, dict) and isinstance(v, dict):
        return {name: as_tangent(like[name], own) if name in like else own for name, own in v.items()}
    return v


def on_parts(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function of what `apart` gives, whose results are such too."""
    return lambda x: apart(fun(together(x)))


def complex_value(x: Any) -> Any:
    """The plain value of a complex array that is being differentiated."""
    return _joined(*(np.asarray(t._data) if isinstance(t, Tensor) else t for t in (x.real, x.imag)))
