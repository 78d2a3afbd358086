"""The derivative of one call: a linear map between all inputs and all outputs, each laid out as one vector.

Blocks of vectors are the columns of a matrix, so the work that they share is done once. Where every row between inputs and outputs
is one that the compiled sweeps know, these do it; else the general passes of `tapegrad.autograd` are run vector by vector.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.drivers.containers import Structure, flatten, flatten_like, places_in, restore
from tapegrad.drivers.leaves import Call, plain
from tapegrad.tensors.grad_mode import with_recording
from tapegrad.tensors.tensor import FLOATS, Tensor, array_of, is_recording, make, wrap

__all__ = [
    "Derivative",
    "Outputs",
    "Vector",
    "as_column",
    "copied",
    "cut",
    "derivative_of",
    "detached",
    "gradients_of",
    "hessian_matrix",
    "joined",
    "projected",
    "sizes_of",
    "symmetric",
    "vectors_like",
]

Vector = np.ndarray


class Outputs:
    """What a call returned: tensors of floats in a container."""

    __slots__ = ("inside", "structure", "tensors")
    tensors: list[Tensor]
    structure: Structure

    def __init__(self, made: Call, name: str) -> None:
        """Take the output of a call apart.

        Raises
        ------
        TypeError
            If there is something in it that is not real-valued.
        """
        found: list[Any] = []
        self.structure = flatten(made.output, found)
        places = places_in(self.structure, "the output")
        self.tensors = [_as_output(value, name, place) for value, place in zip(found, places, strict=True)]
        self.inside = made.inside

    def arranged(self, results: Iterable[Any]) -> Any:
        """Results in the structure of the output."""
        return restore(self.structure, iter(results))

    def detached_from(self, made: Call) -> Call:
        """Leave the rows of a call whose values will change, and what is left of the call: shapes, kinds and structures."""
        import copy  # which few calls need

        self.tensors = [make(t._data if type(t._data) is float else t._data.copy(), 0) for t in self.tensors]
        made = copy.copy(made)
        made.kept, made.output = False, None
        return made

    def values(self) -> Any:
        """The output itself, plain."""
        return self.arranged(plain(t, self.inside) for t in self.tensors)


def _as_output(value: Any, name: str, place: str) -> Tensor:
    if issubclass(type(value), float):
        return make(float(value), 0)
    if issubclass(type(value), (np.ndarray, np.generic)):
        value = wrap(np.asarray(value))
    if isinstance(value, Tensor):
        if type(value._data) is float or value._data.dtype in FLOATS:
            return value
        raise TypeError(f"{name} requires real-valued outputs (floats), but {place} has dtype {value._data.dtype.name}")
    raise TypeError(f"{name} requires real-valued outputs (arrays or floats), but {place} is {type(value).__name__}: {value!r}")


def sizes_of(tensors: Sequence[Tensor]) -> list[int]:
    """Number of elements of each."""
    return [1 if type(t._data) is float else int(t._data.size) for t in tensors]


def copied(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Recorded copies of what a function gave that has written: a buffer of its own, maybe, which its next call overwrites."""
    return [t.clone() for t in tensors]


def cut(array: Vector, sizes: Sequence[int], axis: int = 0) -> list[Vector]:
    """An array cut into pieces of these sizes: views, in a tenth of the time that `numpy.split` takes."""
    if len(sizes) == 1:
        return [array]
    pieces, done = [], 0
    for size in sizes:
        pieces.append(array[(slice(None),) * axis + (slice(done, done + size),)])
        done += size
    return pieces


def joined(arrays: Iterable[Any]) -> Vector:
    """The elements of arrays and numbers one after the other, in float64."""
    parts = [np.asarray(array, np.float64).reshape(-1) for array in arrays]
    return np.concatenate(parts) if parts else np.empty(0)


def as_column(made: Call, vectors: Sequence[Any]) -> Vector:
    """Vectors one after the other as a matrix of one column; a long one is not copied for nothing.

    Raises
    ------
    NotImplementedError
        If one is tracked, but the call is that of a compiled function, whose products are not part of a graph.
    """
    if any(isinstance(v, Tensor) for v in vectors):  # those of functions of tensors take another way
        raise NotImplementedError(
            "products of a compiled function with a vector that another driver differentiates by are not available. They are "
            "linear in it: write jacobian(f)(x) @ v for jvp and linearize, v @ jacobian(f)(x) for vjp and hessian(f)(x) @ v for "
            "hvp, or give the function without numba.njit (its .py_func)"
        )
    column: Vector = vectors[0].reshape(-1) if len(vectors) == 1 else joined(vectors)
    return column[:, None]


def vectors_like(tensors: Sequence[Tensor], structure: Structure, given: Any, what: str) -> list[Any]:
    """Tangents or cotangents as arrays of the shapes of tensors; those that are tracked stay tensors.

    Raises
    ------
    TypeError
        If `given` has another structure, or something in it is no array or number of reals.
    ValueError
        If a shape differs.
    """
    found: list[Any] = []
    flatten_like(structure, given, found, what)
    results = []
    for t, value in zip(tensors, found, strict=True):
        shape = np.shape(t._data)
        if isinstance(value, Tensor) and value._row and is_recording():
            array: Any = value
        else:
            array = array_of(value) if isinstance(value, Tensor) else value
            if not issubclass(type(array), (np.ndarray, np.generic, float, int)) or np.asarray(array).dtype.kind not in "fiu":
                raise TypeError(f"{what} must hold arrays or numbers of floats, not {type(value).__name__}: {value!r}")
            array = np.asarray(array, np.float64)
        if tuple(array.shape) != shape:
            raise ValueError(f"{what} must have the shape of what it belongs to: got {tuple(array.shape)}, but expected {shape}")
        results.append(array)
    return results


def gradients_of(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], seeds: Sequence[Tensor], create_graph: bool = False
) -> list[Tensor]:
    """Gradients by the general pass, with zeros for what the outputs do not depend on."""
    tracked = [k for k, t in enumerate(outputs) if t._row]
    if not tracked:
        return [wrap(np.zeros_like(array_of(t))) for t in inputs]
    from tapegrad.autograd.entry_points import grad as tensor_grad
    from tapegrad.autograd.once_differentiable import strictly

    found = strictly(
        tensor_grad,
        [outputs[k] for k in tracked],
        inputs,
        [seeds[k] for k in tracked],
        retain_graph=True,
        create_graph=create_graph,
        materialize_grads=True,
    )
    return [g for g in found if g is not None]


def projected(outputs: Outputs, weights: Vector) -> Tensor:
    """Weighted sum of all elements of outputs, recorded."""
    return with_recording(_projected, outputs, weights)


def _projected(outputs: Outputs, weights: Vector) -> Tensor:
    total, done = wrap(0.0), 0
    for t, size in zip(outputs.tensors, sizes_of(outputs.tensors), strict=True):
        part = weights[done : done + size].reshape(np.shape(t._data)).astype(array_of(t).dtype)
        total = total + (t * wrap(part)).sum()
        done += size
    return total


class Derivative:
    """The derivative of tensors by leaves, at the point where they were computed.

    Parameters
    ----------
    leaves, outputs : sequence of Tensor
        In the order in which their elements follow each other in vectors.
    second : bool
        Whether `curve` will be called: there is one output then, of one element, or it is that of what `weighted` gives.
    once : bool
        Whether for one vector only.
    ends : bool
        Whether leaves may be results of operations; only where it is `compiled`.

    Attributes
    ----------
    inputs, results : int
        Numbers of elements of all leaves, and of all outputs.
    compiled : bool
        Whether the compiled sweeps are used.
    """

    def __init__(
        self, leaves: Sequence[Tensor], outputs: Sequence[Tensor], second: bool = False, once: bool = False, ends: bool = False
    ) -> None:
        from tapegrad.linear.linear_tape import linear_tape  # which gradients of one number need not

        self.leaves, self.outputs = list(leaves), list(outputs)
        self.input_sizes, self.output_sizes = sizes_of(leaves), sizes_of(outputs)
        self.inputs, self.results = sum(self.input_sizes), sum(self.output_sizes)
        self._gradient: list[Tensor] | None = None
        self._second_rows: Derivative | None = None
        self._linear: tuple[list[Tensor], list[Tensor]] | None = None
        self._compiled = linear_tape(self.leaves, self.outputs, second, ends, second and once)
        self._second = second

    @property
    def compiled(self) -> bool:
        """Whether the compiled sweeps are used."""
        return self._compiled is not None

    @property
    def linear_tape(self) -> Any:
        """What the compiled sweeps go over; None if they are not used."""
        return self._compiled

    def part(self, first: int, last: int) -> Derivative:
        """The derivative of these outputs, from the same compiled rows; only where it is `compiled`."""
        return self._of_tape(look_up("linear.weighted_results:some_results")(self._compiled, first, last), first, last)

    def weighted(self, weights: Vector) -> Derivative:
        """The derivative of the weighted sum of all outputs, from the same compiled rows; only where it is `compiled`.

        There is one such derivative at a time, and none after its products.
        """
        made = self._of_tape(look_up("linear.weighted_results:weighted_results")(self._compiled, weights), 0, 0)
        made.output_sizes, made.results = [1], 1
        return made

    def _of_tape(self, tape: Any, first: int, last: int) -> Derivative:
        made = Derivative.__new__(Derivative)
        made.__dict__.update(self.__dict__)
        made._compiled, made._second = tape, tape.second
        made.outputs, made.output_sizes = self.outputs[first:last], self.output_sizes[first:last]
        made.results = sum(made.output_sizes)
        return made

    def push(self, tangents: Vector) -> Vector:
        """Products of the Jacobian with the columns of a matrix of shape (inputs, k)."""
        if self._compiled is not None:
            return self._compiled.push(tangents)
        return with_recording(self._pushed, tangents)

    def _pushed(self, tangents: Vector) -> Vector:
        if self._linear is None:
            seeds = [_leaf_like(t) for t in self.outputs]
            self._linear = seeds, gradients_of(self.outputs, self.leaves, seeds, create_graph=True)
        seeds, pulled = self._linear
        # What is pulled back is linear in the seeds; the derivative of that map, transposed again, is the Jacobian itself.
        return _by_columns(tangents, pulled, seeds, self.input_sizes, self.results)

    def pull(self, cotangents: Vector) -> Vector:
        """Products of the transposed Jacobian with the columns of a matrix of shape (results, k)."""
        if self._compiled is not None:
            return self._compiled.pull(cotangents)
        return _by_columns(cotangents, self.outputs, self.leaves, self.output_sizes, self.inputs)

    def curve(self, tangents: Vector) -> Vector:
        """Products of the Hessian with the columns of a matrix of shape (inputs, k)."""
        if self._compiled is not None and self._second:
            return self._compiled.curve(tangents)
        return with_recording(self._curved, tangents)

    def _curved(self, tangents: Vector) -> Vector:
        if self._second_rows is None and tangents.shape[1] == 1:
            return _by_columns(tangents, self._recorded_gradient(), self.leaves, self.input_sizes, self.inputs)
        return self.of_gradient().pull(tangents)

    def _recorded_gradient(self) -> list[Tensor]:
        if self._gradient is None:
            ones = [wrap(np.ones_like(array_of(t))) for t in self.outputs]
            self._gradient = gradients_of(self.outputs, self.leaves, ones, create_graph=True)
        return self._gradient

    def of_gradient(self) -> Derivative:
        """The derivative of the gradient, recorded on the tape, by the leaves; for a caller who has switched recording on."""
        if self._second_rows is None:
            self._second_rows = Derivative(self.leaves, self._recorded_gradient())
        return self._second_rows


def hessian_matrix(derivative: Any, *weights: Vector) -> Vector:
    """Matrix of shape (inputs, inputs)."""
    if not isinstance(derivative, Derivative):
        found: Vector | None = derivative.hessian(*weights)
        if found is not None:
            return found
    return symmetric(derivative.curve(np.eye(derivative.inputs), *weights))


def symmetric(full: Vector) -> Vector:
    """A matrix whose two halves differ by rounding."""
    return 0.5 * (full + full.T)


def derivative_of(made: Call, outputs: Sequence[Tensor], second: bool = False, once: bool = False, constant: bool = False) -> Any:
    """The derivative of all outputs of a call: `Derivative`, or a compiled function's recording, which has the same products.

    Parameters
    ----------
    constant : bool
        Whether its products are constants also where something else is being differentiated around the call.

    Raises
    ------
    NotImplementedError
        If they are not, and something is: they are numbers, and the derivatives by them would be zero without a word.
    """
    if made.inside and not constant:
        raise NotImplementedError(
            "products of a recording are numbers, which cannot be differentiated by another driver or by a tracked tensor: where "
            "`inside` is set, a driver goes through the graph (`gradients`, `gradients_of`) or is refused by name"
        )
    return Derivative(made.leaves, outputs, second, once) if made.recording is None else made.recording


def detached(made: Call, name: str, second: bool = False) -> tuple[Call, Outputs, Any] | None:
    """Call, outputs and derivative for who keeps them: nothing in them changes when a program runs again.

    None if the derivative is that of rows which will change then.
    """
    outputs = Outputs(made, name)
    if made.inside:
        return made, outputs, None
    derivative = derivative_of(made, outputs.tensors, second)
    if made.kept:
        if not derivative.compiled:
            return None
        made = outputs.detached_from(made)
        derivative.outputs = outputs.tensors
    return made, outputs, derivative


def _leaf_like(t: Tensor) -> Tensor:
    leaf: Tensor = wrap(np.zeros_like(array_of(t))).requires_grad_()
    return leaf


def _by_columns(given: Vector, outputs: Sequence[Tensor], inputs: Sequence[Tensor], sizes: Sequence[int], rows: int) -> Vector:
    """One pass for each column."""
    results = np.empty((rows, given.shape[1]))
    for k in range(given.shape[1]):
        parts = cut(given[:, k], sizes)
        seeds = [wrap(part.reshape(np.shape(t._data)).astype(array_of(t).dtype)) for part, t in zip(parts, outputs, strict=True)]
        found = gradients_of(outputs, inputs, seeds)
        results[:, k] = joined(map(array_of, found))
    return results
