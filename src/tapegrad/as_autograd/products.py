"""One call of a function of one argument, and what its derivative does to vectors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.as_autograd.complex_numbers import apart, as_cotangent, as_gradient, as_tangent, on_parts, together
from tapegrad.drivers.calling import call
from tapegrad.drivers.containers import flatten, flatten_like, restore
from tapegrad.drivers.derivatives import gradients_of
from tapegrad.drivers.jacobian_products import linearize
from tapegrad.drivers.leaves import Call, finish, plain
from tapegrad.numpy_arrays.array import as_arrays
from tapegrad.tensors.tensor import Tensor, array_of, is_recording, make, wrap

__all__ = ["as_floats", "as_numpy", "called", "finished", "make_jvp", "make_vjp", "warn_if_independent", "zeros_of"]


def as_floats(x: Any) -> Any:
    """A point with float64 for its arrays of integers, which autograd differentiates by too."""
    kind = type(x)
    if kind is np.ndarray and x.dtype.kind == "f":
        return x
    if kind in (list, tuple, dict):
        parts = x.values() if kind is dict else x
        if all(type(part) is np.ndarray and part.dtype.kind == "f" for part in parts):
            return x
        leaves: list[Any] = []
        structure = flatten(x, leaves)
        return restore(structure, iter([as_floats(leaf) for leaf in leaves]))
    if isinstance(x, (np.ndarray, Tensor)) and x.dtype.kind in "iub":
        return x.astype(np.float64)
    return x


def as_numpy(value: Any) -> Any:
    """A result with NumPy's numbers for Python's floats, and arrays for tensors."""
    if type(value) is float:
        return np.float64(value)
    if isinstance(value, Tensor):
        return as_arrays(value)
    if type(value) in (list, tuple):
        return type(value)(map(as_numpy, value))
    return {name: as_numpy(part) for name, part in value.items()} if type(value) is dict else value


def called(fun: Callable[..., Any], x: Any, name: str, has_aux: bool = False, second: bool = False) -> Call:
    """A call of a function on a leaf, or on a container of them, in the place of its argument."""
    point = as_floats(x)
    real = apart(point)
    if real is not point:
        if second:
            raise TypeError(f"{name} takes real numbers, but the argument has complex ones; differentiate a function of both parts")
        made = call(lambda x: fun(together(x)), (real,), {}, 0, has_aux, name, second)
    else:
        made = call(fun, (point,), {}, 0, has_aux, name, second)
    made.kinds = [np.float64 if kind is float else kind for kind in made.kinds]
    made.arrays = made.arrays or made.inside
    return made


def finished(made: Call, results: Sequence[Any]) -> Any:
    """Gradients in the structure of the argument: arrays, and NumPy's numbers for numbers."""
    return as_gradient(made.arranged([as_arrays(finish(result, kind)) for result, kind in zip(results, made.kinds, strict=True)]))


def value_of(made: Call, output: Any) -> Any:
    """The output of a call: NumPy's, or still tracked inside of another operator's function."""
    return as_numpy(plain(output, made.inside))


def zeros_of(made: Call) -> Any:
    """The gradient of what does not depend on the argument."""
    return finished(made, [np.zeros_like(array_of(leaf)) for leaf in made.leaves])


def warn_if_independent(tracked: bool) -> None:
    """Say that a derivative is zero because nothing depends on the argument."""
    if not tracked:
        warnings.warn("Output seems independent of input.", UserWarning, stacklevel=3)


def _fitting(vector: Any, shape: tuple[int, ...], dtype: Any, what: str) -> Any:
    """A vector in the shape and dtype of what it belongs to."""
    if isinstance(vector, Tensor) and vector._row and is_recording():
        return vector if tuple(vector.shape) == shape else np.broadcast_to(vector, shape)
    array = array_of(vector) if isinstance(vector, Tensor) else np.asarray(vector)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{what} must be of real numbers, but it has dtype {array.dtype.name}")
    if array.shape != shape:
        try:
            array = np.broadcast_to(array, shape)
        except ValueError:
            if array.size != int(np.prod(shape)):
                raise ValueError(f"{what} must have the shape {shape} of what it belongs to, but has {array.shape}") from None
            array = array.reshape(shape)
    return array.astype(dtype, copy=False)


def make_vjp(fun: Callable[..., Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """Call a function once, and give what multiplies vectors with its Jacobian from the left, and its value.

    Parameters
    ----------
    fun : callable
        Of one argument.
    x : array, float, or list, tuple or dict of these

    Returns
    -------
    tuple
        ``(vjp, value)``; ``vjp(g)`` has the structure of `x`, and can be called many times.

    Raises
    ------
    TypeError
        If `x` is of nothing that can be differentiated by.

    Warns
    -----
    UserWarning
        If the value does not depend on `x`.
    """
    made = called(fun, x, "make_vjp")
    found: list[Any] = []
    output = apart(made.output)
    structure = flatten(output, found)
    tracked = [isinstance(leaf, Tensor) and leaf._row != 0 for leaf in found]
    warn_if_independent(any(tracked))
    value = together(restore(structure, iter([value_of(made, leaf) for leaf in found])))
    if not any(tracked):
        return lambda g: zeros_of(made), value

    def vjp(g: Any) -> Any:
        given: list[Any] = []
        flatten_like(structure, as_cotangent(output, g), given, "the vector")
        pairs = [(t, v) for t, v, wanted in zip(found, given, tracked, strict=True) if wanted]
        vectors = [_fitting(v, np.shape(t._data), array_of(t).dtype, "the vector") for t, v in pairs]
        seeds = [v if isinstance(v, Tensor) else wrap(v) for v in vectors]
        records = is_recording() and (made.inside or any(seed._row for seed in seeds))
        return finished(made, gradients_of([t for t, _ in pairs], made.leaves, seeds, create_graph=records))

    return vjp, value


def make_jvp(fun: Callable[..., Any], x: Any) -> Callable[[Any], tuple[Any, Any]]:
    """What multiplies the Jacobian of a function with vectors.

    Parameters
    ----------
    fun : callable
        Of one argument; called when the first vector comes.
    x : array, float, or list, tuple or dict of these

    Returns
    -------
    callable
        Gives ``(value, product)`` for a vector of the structure of `x`.
    """
    x = apart(as_floats(x))
    ready: list[Any] = []

    def jvp(g: Any) -> tuple[Any, Any]:
        if not ready:
            ready.extend(linearize(on_parts(fun), x))
        value, product = ready
        leaves, vectors = [], []  # type: ignore[var-annotated]
        structure = flatten(x, leaves)
        flatten_like(structure, as_tangent(x, g), vectors, "the vector")
        fitting = [_fitting(v, np.shape(leaf), np.float64, "the vector") for leaf, v in zip(leaves, vectors, strict=True)]
        return as_numpy(together(value)), as_numpy(together(product(restore(structure, iter(fitting)))))

    return jvp


def scalar_of(made: Call, name: str) -> Tensor:
    """The output of a call, which must be of one element, as a tensor of no dimension.

    Raises
    ------
    TypeError
        If it is something else.
    """
    output = made.output
    if isinstance(output, Tensor) and type(output._data) is float and output._row:
        return output
    if issubclass(type(output), (float, np.floating)):
        output = make(float(output), 0)
    if issubclass(type(output), np.ndarray):
        output = wrap(output)
    if not isinstance(output, Tensor) or output.dtype.kind != "f":
        raise TypeError(f"{name} only applies to real scalar-output functions, but the output was {output!r}")
    if np.size(output._data) != 1:
        raise TypeError(
            f"{name} only applies to real scalar-output functions, but the output has shape {tuple(np.shape(output._data))}. Try "
            "jacobian, elementwise_grad or holomorphic_grad."
        )
    warn_if_independent(output._row != 0)
    return output.reshape(()) if np.ndim(output._data) else output
