"""Products of Jacobians with vectors, from both sides."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.drivers.calling import finished_call
from tapegrad.drivers.containers import flatten, flatten_like
from tapegrad.drivers.derivatives import (
    Derivative,
    Outputs,
    as_column,
    cut,
    derivative_of,
    detached,
    gradients_of,
    joined,
    sizes_of,
    vectors_like,
)
from tapegrad.drivers.direct import at_once
from tapegrad.drivers.leaves import Call, copied, finish
from tapegrad.tensors.grad_mode import with_recording
from tapegrad.tensors.tensor import FLOATS, Tensor, array_of, is_recording, wrap

__all__ = ["jvp", "linearize", "needs_along", "product_later", "vjp"]


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Value of a function, and the product of its Jacobian with a vector.

    Parameters
    ----------
    f : callable
        Returns an array, a float, or a container of these; called once. Python's or compiled, as for `value_and_grad`.
    primals, tangents : tuple or list
        Its positional arguments, and for each of them a tangent of the same structure and shapes.
    has_aux : bool
        Whether `f` returns a pair, of which the second is handed through.

    Returns
    -------
    tuple
        ``(output, tangent)``, or ``(output, tangent, aux)``.

    Raises
    ------
    TypeError
        If an input or an output is not of floats, or a tangent has another structure.
    CompileError
        If a compiled `f` uses what cannot be recorded.
    ValueError
        If a tangent has another shape.
    NotImplementedError
        If `f` is compiled and a tangent is a tracked tensor.

    Notes
    -----
    One recording and one forward sweep, whatever the sizes are. `linearize` makes the recording once for many tangents.

    Examples
    --------
    >>> tg.jvp(lambda x: x[0] * x, (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
    (array([1., 2.]), array([2., 2.]))
    """

    def finish(made: Call) -> Any:
        outputs = Outputs(made, "jvp")
        if made.matrix is not None:
            return outputs.values(), outputs.arranged(split(made.matrix[0], outputs.tensors))
        given = _tangents(made, tangents, "jvp")
        if made.kept and _are_tracked(given):
            return NotImplemented  # rows that the result would be part of have other values soon
        pushed = _push(made, outputs, given)
        return (outputs.values(), pushed, made.aux) if has_aux else (outputs.values(), pushed)

    primals = _checked(primals, "jvp")
    if not has_aux and type(tangents) in (tuple, list):
        found = at_once(f, "value_jvp", range(len(primals)), tuple(primals), tuple(tangents))
        if found is not None:
            return found
    is_program = hasattr(type(f), "__replay__") and not has_aux
    needs = needs_along("value_jvp", tuple(primals), tuple(tangents)) if is_program and type(tangents) in (tuple, list) else "rows"
    return finished_call(f, primals, {}, range(len(primals)), has_aux, "jvp", finish, needs=needs)


def needs_along(what: str, values: Any, vectors: Any) -> Any:
    """What is asked of a program: a product itself where floats and arrays of floats are given for such, else its rows."""
    places: list[Any] = []
    along: list[Any] = []
    try:
        flatten_like(flatten(values, places), vectors, along, "vectors")
    except TypeError:  # which the driver raises in its own words
        return "rows"
    if not places:
        return "rows"
    for x, t in zip(places, along, strict=True):
        if type(x) is not type(t) or not _is_plain(x) or (type(x) is np.ndarray and (x.shape != t.shape or t.dtype not in FLOATS)):
            return "rows"
    return what, np.asarray(along[0], np.float64).reshape(-1) if len(along) == 1 else joined(along)


def _is_plain(value: Any) -> bool:
    """Whether it is a float, or an array of floats."""
    kind = type(value)
    return kind is float or kind is np.float64 or (kind is np.ndarray and value.dtype in FLOATS and value.size > 0)


def _are_plain(values: Any) -> bool:
    """Whether all that containers hold is so."""
    found: list[Any] = []
    flatten(values, found)
    return bool(found) and all(map(_is_plain, found))


def linearize(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Value of a function, and a function that multiplies its Jacobian with vectors.

    Parameters
    ----------
    f : callable
        As for `jvp`; called once.
    *primals
        Its positional arguments.
    has_aux : bool
        Whether `f` returns a pair, of which the second is handed through.

    Returns
    -------
    tuple
        ``(output, product)``, or ``(output, product, aux)``; ``product(*tangents)`` can be called many times and does not run `f`.

    Raises
    ------
    TypeError
        If an input or an output is not of floats; by the function that is returned also if a tangent has another structure.
    CompileError, ValueError, NotImplementedError
        As for `jvp`.

    Notes
    -----
    One forward sweep a product. The recording lives as long as the function that is returned.

    Examples
    --------
    >>> value, product = tg.linearize(np.sin, 0.0)
    >>> value, product(1.0), product(2.0)
    (0.0, 1.0, 2.0)
    """
    if not has_aux and (found := at_once(f, "jvp", range(len(primals)), primals)) is not None:
        return found
    made, outputs, derivative, is_program = _kept(f, primals, has_aux, "linearize")
    product = _pushing(made, outputs, derivative, is_program)
    return (outputs.values(), product, made.aux) if has_aux else (outputs.values(), product)


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Value of a function, and a function that multiplies vectors with its Jacobian.

    Parameters
    ----------
    f : callable
        Returns an array, a float, or a container of these; called once. Python's or compiled, as for `value_and_grad`.
    *primals
        Its positional arguments.
    has_aux : bool
        Whether `f` returns a pair, of which the second is handed through.

    Returns
    -------
    tuple
        ``(output, product)``, or ``(output, product, aux)``; ``product(cotangent)`` takes a cotangent of the output's structure and
        shapes, gives a tuple with one result for each argument, and can be called many times.

    Raises
    ------
    TypeError
        If an input or an output is not of floats; by the function that is returned also if a cotangent has another structure.
    CompileError
        If a compiled `f` uses what cannot be recorded.
    ValueError
        By the function that is returned: if a cotangent has another shape.
    NotImplementedError
        By the function that is returned: if `f` is compiled and a cotangent is a tracked tensor.

    Notes
    -----
    One reverse sweep a product. The recording lives as long as the function that is returned.

    Examples
    --------
    >>> value, product = tg.vjp(lambda x, y: x * y, np.array([1.0, 2.0]), 3.0)
    >>> product(np.array([1.0, 10.0]))
    (array([ 3., 30.]), 21.0)
    """
    if not has_aux and (found := at_once(f, "vjp", range(len(primals)), primals)) is not None:
        return found
    made, outputs, derivative, is_program = _kept(f, primals, has_aux, "vjp")
    product = _pulling(made, outputs, derivative, is_program)
    return (outputs.values(), product, made.aux) if has_aux else (outputs.values(), product)


def _pushing(made: Call, outputs: Outputs, derivative: Any, is_program: bool) -> Callable[..., Any]:
    """What multiplies the Jacobian with tangents."""

    def product(*tangents: Any) -> Any:
        given = _tangents(made, tangents, "linearize")
        if is_program and _are_tracked(given):
            pushed = look_up("drivers.recorded_products:recorded_product")(derivative, given, outputs.tensors, False)
            return outputs.arranged(map(_plain_unless_tracked, pushed))
        return _push(made, outputs, given, derivative)

    return product


def _pulling(made: Call, outputs: Outputs, derivative: Any, is_program: bool) -> Callable[[Any], Any]:
    """What multiplies a cotangent with the Jacobian."""

    def product(cotangent: Any) -> Any:
        given = vectors_like(outputs.tensors, outputs.structure, cotangent, "the cotangent")
        if not is_program:
            return _pull(made, outputs, given)
        if _are_tracked(given):
            pulled = look_up("drivers.recorded_products:recorded_product")(derivative, given, made.leaves, True)
            return made.finished([g if g._row else array_of(g) for g in pulled])
        pulled = split(derivative.pull(as_column(made, given))[:, 0], made.leaves)
        return made.finished([np.asarray(g, array_of(x).dtype) for g, x in zip(pulled, made.leaves, strict=True)])

    return product


def product_later(
    f: Callable[..., Any], args: Sequence[Any], argnums: Sequence[int], what: str, made: Call, value: Any, by_code: Any
) -> Callable[..., Any]:
    """What `linearize` ("jvp") or `vjp` gives besides the value, for a program's call that was done at once.

    Parameters
    ----------
    f, args, argnums, value
        Of that call.
    what : {"jvp", "vjp"}
    made : Call
        Whose structures and shapes are those of that call.
    by_code : KeptProducts
        Gives a product with one vector, or None; and the derivative by rows, or None.
    """
    made = copy.copy(made)
    made.output = value
    name = "linearize" if what == "jvp" else "vjp"
    outputs = Outputs(made, name)
    made = outputs.detached_from(made)
    derivative = _LaterProducts(by_code, name, functools.partial(_by_rows, f, args, argnums, name, outputs.tensors))
    return (_pushing if what == "jvp" else _pulling)(made, outputs, derivative, True)


def _kept(f: Callable[..., Any], primals: Any, has_aux: bool, name: str) -> tuple[Call, Outputs, Any, bool]:
    """Call, outputs and derivative for products to come, and whether it is a program's, which has no graph of its own."""

    def finish(made: Call) -> Any:
        if made.products is not None:
            outputs = Outputs(made, name)
            own, products = outputs.detached_from(made), made.products
            by_call = functools.partial(_by_rows, f, primals, range(len(primals)), name, outputs.tensors)
            return own, outputs, _LaterProducts(products, name, by_call), True
        if made.kept or name == "linearize":
            found = detached(made, name)
            return NotImplemented if found is None else (*found, made.kept)
        return made, Outputs(made, name), None, False

    primals = copied(_checked(primals, name))
    is_program = hasattr(type(f), "__replay__") and _are_plain(primals) and not has_aux
    needs = "rows" if not is_program else "vjp" if name == "vjp" else "jvp"
    found: tuple[Call, Outputs, Any, bool] = finished_call(f, primals, {}, range(len(primals)), has_aux, name, finish, needs=needs)
    return found


class _LaterProducts:
    """The derivative of a program's call: one vector is multiplied by machine code, several ones, and the other way, by rows.

    These are the path's, or else of another call of the function, which may see something else by now.
    """

    def __init__(self, by_code: Any, name: str, by_call: Callable[[], Any]) -> None:
        self._by_code, self._name, self._by_call = by_code, name, by_call
        self._rows: Any = None

    def push(self, columns: Any) -> Any:
        """Products with vectors over the inputs, the columns of a matrix."""
        return self._multiplied("jvp", columns)

    def pull(self, columns: Any) -> Any:
        """The same of the transpose."""
        return self._multiplied("vjp", columns)

    def _multiplied(self, what: str, columns: Any) -> Any:
        found = self._by_code(what, columns[:, 0]) if columns.shape[1] == 1 else None
        if found is not None:
            return found[:, None]
        if self._rows is None:
            found = self._by_code.derivative(self._name)
            self._rows = self._by_call() if found is None else found
        return (self._rows.push if what == "jvp" else self._rows.pull)(columns)


def _by_rows(f: Callable[..., Any], args: Sequence[Any], argnums: Sequence[int], name: str, values: Sequence[Tensor]) -> Any:
    """The derivative by rows at the same arguments, if the function gives the same values there."""

    def finish(made: Call) -> Any:
        found = detached(made, name) if made.kept else (made, outputs := Outputs(made, name), derivative_of(made, outputs.tensors))
        return NotImplemented if found is None else found[1:]

    outputs, derivative = finished_call(f, args, {}, argnums, False, name, finish)
    for t, other in zip(outputs.tensors, values, strict=True):
        if not np.allclose(array_of(t), array_of(other), rtol=1e-9, atol=1e-12, equal_nan=True):
            raise RuntimeError(f"{name}: the function has another value now than when it was called; call {name} again")
    return derivative


def _pull(made: Call, outputs: Outputs, given: list[Any]) -> Any:
    if made.recording is not None:
        return made.finished(split(made.recording.pull(as_column(made, given))[:, 0], made.leaves))
    seeds = [_fitting(v, t) for v, t in zip(given, outputs.tensors, strict=True)]
    tracked = is_recording() and (made.inside or _are_tracked(given))
    found = gradients_of(outputs.tensors, made.leaves, seeds, create_graph=tracked)
    return made.finished([g if g._row else array_of(g) for g in found])


def _are_tracked(vectors: Sequence[Any]) -> bool:
    return any(isinstance(v, Tensor) for v in vectors)


def _checked(primals: Any, name: str) -> Any:
    if not isinstance(primals, (tuple, list)):
        raise TypeError(f"{name}: primals must be a tuple or list of the function's arguments, not {type(primals).__name__}")
    if not primals:
        raise TypeError(f"{name}: there must be an argument at least to differentiate by")
    return primals


def _tangents(made: Call, tangents: Any, name: str) -> list[Any]:
    assert made.structure is not None  # of all primals
    count = len(made.structure.children)
    if not isinstance(tangents, (tuple, list)) or len(tangents) != count:
        raise TypeError(f"{name}: tangents must be a tuple or list of {count}, one for each argument, but got {tangents!r}")
    return vectors_like(made.leaves, made.structure, tuple(tangents), "tangents")


def _fitting(v: Any, t: Tensor) -> Tensor:
    """A vector as a tensor of the dtype of another one."""
    return v if isinstance(v, Tensor) else wrap(v.astype(array_of(t).dtype))


def _push(made: Call, outputs: Outputs, tangents: list[Any], derivative: Derivative | None = None) -> Any:
    if made.inside or (made.recording is None and _are_tracked(tangents)):
        pushed = with_recording(_pushed_by_the_graph, made, outputs, tangents, is_recording())
        return made.like_the_arguments(outputs.arranged(map(_plain_unless_tracked, pushed)))
    derivative = derivative_of(made, outputs.tensors) if derivative is None else derivative
    return outputs.arranged(split(derivative.push(as_column(made, tangents))[:, 0], outputs.tensors))


def _pushed_by_the_graph(made: Call, outputs: Outputs, tangents: list[Any], records: bool) -> list[Tensor]:
    """What the general pass gives, transposed twice; recorded on request."""
    seeds = [wrap(np.zeros_like(array_of(t))).requires_grad_() for t in outputs.tensors]
    pulled = gradients_of(outputs.tensors, made.leaves, seeds, create_graph=True)
    given = [_fitting(v, t) for v, t in zip(tangents, made.leaves, strict=True)]
    return gradients_of(pulled, seeds, given, create_graph=records)


def _plain_unless_tracked(t: Tensor) -> Any:
    return t if t._row else finish(t, float if not np.shape(t._data) else np.ndarray)


def split(vector: np.ndarray, tensors: Sequence[Tensor]) -> list[Any]:
    """A vector cut into plain values of the shapes and dtypes of tensors."""
    if len(tensors) == 1 and np.shape(tensors[0]._data):
        t = tensors[0]
        return [vector.reshape(np.shape(t._data)).astype(array_of(t).dtype, copy=False)]
    results: list[Any] = []
    for part, t in zip(cut(vector, sizes_of(tensors)), tensors, strict=True):
        shape = np.shape(t._data)
        results.append(part.reshape(shape).astype(array_of(t).dtype) if shape else float(part[0]))
    return results
