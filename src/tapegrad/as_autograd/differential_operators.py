"""Derivatives of functions with autograd's names, arguments and results."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.as_autograd.products import (
    as_floats,
    as_numpy,
    called,
    finished,
    scalar_of,
    value_of,
)
from tapegrad.as_autograd.products import make_jvp as _make_jvp
from tapegrad.as_autograd.products import make_vjp as _make_vjp
from tapegrad.as_autograd.vector_spaces import vspace
from tapegrad.as_autograd.wrapping import unary_to_nary
from tapegrad.drivers import checkpointing, curvature, jacobians
from tapegrad.drivers.derivatives import derivative_of
from tapegrad.drivers.gradients import gradients
from tapegrad.drivers.jacobian_products import split
from tapegrad.drivers.leaves import Call, is_tracked
from tapegrad.numpy_arrays.complex_arrays import is_complex
from tapegrad.tensors.tensor import Tensor

__all__ = [
    "checkpoint",
    "deriv",
    "elementwise_grad",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "jacobian",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_jvp_reversemode",
    "make_vjp",
    "multigrad_dict",
    "tensor_jacobian_product",
    "value_and_grad",
    "vector_jacobian_product",
]

make_vjp = unary_to_nary(_make_vjp)
make_jvp = unary_to_nary(_make_jvp)


def _gradients(made: Call, output: Tensor) -> list[Any]:
    if made.inside:
        from tapegrad.as_autograd.inner_gradients import inner_gradient

        found = inner_gradient(made, output)
        if found is not None:
            return found
    return gradients(made, output)


@unary_to_nary
def grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Function that gives the gradient of `fun`, which returns one number, by argument number `argnum`, in the argument's type."""
    made = called(fun, x, "grad")
    return finished(made, _gradients(made, scalar_of(made, "grad")))


@unary_to_nary
def value_and_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Function that gives the value of `fun`, which returns one number, and its gradient."""
    made = called(fun, x, "value_and_grad")
    found = finished(made, _gradients(made, scalar_of(made, "value_and_grad")))
    return value_of(made, made.output), found


@unary_to_nary
def elementwise_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Function that gives the sums of the columns of the Jacobian: its diagonal, where `fun` works element by element."""
    made = called(fun, x, "elementwise_grad")
    output = made.output
    if isinstance(output, Tensor) and np.ndim(output._data):
        made.output = output.sum()
    elif np.ndim(output) and not is_complex(output):
        made.output = float(np.sum(output))
    return finished(made, _gradients(made, scalar_of(made, "elementwise_grad")))


@unary_to_nary
def deriv(fun: Callable[[Any], Any], x: Any) -> Any:
    """Function that gives the product of the Jacobian with ones: the derivative of a function of a number."""
    return _make_jvp(fun, x)(vspace(x).ones())[1]


@unary_to_nary
def jacobian(fun: Callable[[Any], Any], x: Any) -> Any:
    """Function that gives the Jacobian, of the output's shape and then the argument's; if that is complex, gradients."""
    if is_complex(x):
        return _rows_of_complex(fun, x)
    found = as_numpy(jacobians.jacobian(fun)(as_floats(x)))
    return np.asarray(found) if issubclass(type(found), np.generic) else found


def _rows_of_complex(fun: Callable[[Any], Any], x: Any) -> Any:
    """Gradients of the elements of a real output by a complex argument.

    Raises
    ------
    TypeError
        If the output is complex.
    """
    vjp, value = _make_vjp(fun, x)
    space = vspace(value)
    if space.iscomplex:
        raise TypeError("jacobian by a complex argument requires real-valued outputs; take np.real and np.imag of the output apart")
    return np.reshape(np.stack([vjp(unit) for unit in space.standard_basis()]), (*space.shape, *np.shape(x)))


@unary_to_nary
def holomorphic_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Function that gives the derivative of the real part of `fun`."""
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", UserWarning, stacklevel=3)
    return grad(lambda x: np.real(fun(x)))(x)


def grad_named(fun: Callable[..., Any], argname: str) -> Callable[..., Any]:
    """Gradient by the argument of this name."""
    return grad(fun, list(inspect.signature(fun).parameters).index(argname))


class _NotScalarError(Exception):
    """The output of a function has more than one element."""


@unary_to_nary
def hessian(fun: Callable[[Any], Any], x: Any) -> Any:
    """Function that gives the Hessian: the Jacobian's Jacobian."""
    shape: tuple[int, ...] = ()

    def scalar(x: Any) -> Any:
        nonlocal shape
        output = fun(x)
        shape = np.shape(output)
        if np.size(output) != 1:
            raise _NotScalarError
        return np.reshape(output, ()) if shape else output

    point = as_floats(x)
    try:
        found = as_numpy(curvature.hessian(scalar)(point))
    except _NotScalarError:
        return jacobian(jacobian(fun))(point)
    if shape:
        return np.reshape(found, shape + np.shape(found))
    return np.asarray(found) if issubclass(type(found), np.generic) else found


@unary_to_nary
def make_hvp(fun: Callable[[Any], Any], x: Any) -> Any:
    """Function that gives products with the Hessian at a point, and the gradient there."""
    made = called(fun, x, "make_hvp", second=True)
    if made.inside:
        return _make_vjp(grad(fun), x)
    derivative = derivative_of(made, [scalar_of(made, "make_hvp")], second=True)

    def arranged(column: np.ndarray) -> Any:
        return finished(made, [np.asarray(part) for part in split(column, made.leaves)])

    def hvp(v: Any) -> Any:
        if is_tracked(v):
            return _make_vjp(grad(fun), x)[0](v)
        return arranged(derivative.curve(vspace(x).flattened(v)[:, None])[:, 0])

    return hvp, arranged(derivative.pull(np.ones((1, 1)))[:, 0])


def hessian_tensor_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Function of the arguments of `fun` and a tensor, that multiplies the Hessian with it."""

    def product(*args: Any, **kwargs: Any) -> Any:
        *given, vector = args

        def of_one(x: Any) -> Any:
            output = fun(*given[:argnum], x, *given[argnum:][1:], **kwargs)
            return np.reshape(output, ()) if np.size(output) == 1 else output

        return as_numpy(curvature.hvp(of_one, as_floats(given[argnum]), vector))

    return product


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Function of the arguments of `fun` and a tensor, that multiplies the Jacobian with it from the left."""

    def contracted(*args: Any, **kwargs: Any) -> Any:
        *given, tensor = args
        return np.tensordot(tensor, fun(*given, **kwargs), axes=np.ndim(tensor))

    return jacobian(contracted, argnum)


vector_jacobian_product = tensor_jacobian_product


@unary_to_nary
def make_jvp_reversemode(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
    """Function that multiplies the Jacobian with vectors."""
    jvp = _make_jvp(fun, x)
    return lambda v: jvp(v)[1]


def _half_square(x: Any) -> Any:
    return 0.5 * np.sum(x**2, axis=-1)


def make_ggnvp(f: Callable[..., Any], g: Callable[[Any], Any] = _half_square, f_argnum: int = 0) -> Callable[..., Any]:
    """Function that gives products with the generalised Gauss-Newton matrix of ``g(f(x))`` at a point."""

    @unary_to_nary
    def of_one(f: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
        vjp, value = _make_vjp(f, x)
        curve, _ = make_hvp(g)(value)
        jvp = _make_jvp(f, x)
        return lambda v: vjp(curve(jvp(v)[1]))

    return of_one(f, f_argnum)


@unary_to_nary
def grad_and_aux(fun: Callable[[Any], Any], x: Any) -> Any:
    """Function that gives the gradient of the first of two outputs, and the second one as it is."""
    made = called(fun, x, "grad_and_aux", has_aux=True)
    return finished(made, gradients(made, scalar_of(made, "grad_and_aux"))), as_numpy(made.aux)


def multigrad_dict(fun: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Function that gives the gradients by all arguments, in a dict with their names."""
    signature = inspect.signature(fun)

    def gradients_by_name(*args: Any, **kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_dict(given: dict[str, Any]) -> Any:
            bound.arguments.update(given)
            return fun(*bound.args, **bound.kwargs)

        return grad(of_dict)(dict(bound.arguments))

    return gradients_by_name


def checkpoint(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, of which nothing is kept for the derivative: it is run again."""
    return checkpointing.checkpoint(fun)
