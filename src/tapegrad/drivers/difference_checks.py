"""What `gradcheck` compares: derivatives by a backward pass, and central differences of the same function."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tapegrad.autograd.entry_points import grad
from tapegrad.drivers.derivatives import Derivative, cut
from tapegrad.drivers.jacobians import jacobian_matrix
from tapegrad.errors import GradcheckError
from tapegrad.tensors.tensor import Tensor, array_of, promote, wrap

__all__ = ["Check", "outputs_of", "random_seeds", "sequence", "tracked_inputs"]

Array = np.ndarray[Any, Any]


def sequence(values: Any) -> tuple[Any, ...]:
    """One value or several as a tuple."""
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def outputs_of(returned: Any) -> tuple[Tensor, ...]:
    """What a function returned; raises if there is something in it that is no tensor."""
    outputs = sequence(returned)
    for index, output in enumerate(outputs):
        if not isinstance(output, Tensor):
            raise TypeError(f"gradcheck expects func to return Tensors, but output {index} has type {type(output).__name__}")
    return outputs


def random_seeds(outputs: Sequence[Tensor], with_gaps: bool) -> tuple[Tensor, ...]:
    """Tracked random seeds of outputs, on request with gaps in memory."""
    rng = np.random.default_rng(0)
    seeds = []
    for y in outputs:
        memory = rng.uniform(-1.0, 1.0, (*y.shape, 2)).astype(array_of(y).dtype)
        values = memory[..., 0]
        seeds.append(wrap(values if with_gaps else values.copy()).requires_grad_())
    return tuple(seeds)


def tracked_inputs(arguments: tuple[Any, ...]) -> dict[int, Tensor]:
    """The inputs that are differentiated, by place."""
    tracked = {k: x for k, x in enumerate(arguments) if isinstance(x, Tensor) and x.requires_grad}
    if not tracked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for k, x in tracked.items():
        array = array_of(x)
        if array.dtype != np.float64:
            warnings.warn(
                f"Input #{k} requires gradient and is not a double precision floating point or complex. This check will likely "
                "fail if all the inputs are not of double precision floating point or complex.",
                UserWarning,
                stacklevel=3,
            )
        if array.size and any(stride == 0 and extent > 1 for stride, extent in zip(array.strides, array.shape, strict=True)):
            raise RuntimeError(
                f"The {k}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be "
                "able to compute the numerical gradients correctly. You should call .contiguous on the input before passing it to "
                "gradcheck."
            )
    return tracked


@contextmanager
def _restored(array: Array) -> Iterator[None]:
    before = array.copy()
    try:
        yield
    finally:
        array[...] = before


class Check:
    """A function at a point, with its gradients by both ways."""

    def __init__(
        self, func: Callable[..., Any], arguments: tuple[Any, ...], tracked: dict[int, Tensor], eps: float, atol: float, rtol: float
    ) -> None:
        self.func, self.arguments, self.tracked = func, arguments, tracked
        self.eps, self.atol, self.rtol = eps, atol, rtol

    def run(self, nondet_tol: float, undefined: bool, dtypes: bool, fast: bool) -> None:
        """Make all checks.

        Raises
        ------
        GradcheckError
            If one fails.
        """
        outputs = outputs_of(self.func(*self.arguments))
        places = [k for k, y in enumerate(outputs) if y.requires_grad]
        if not places:
            every = [k for k, y in enumerate(outputs) if array_of(y).dtype.kind == "f"]
            if any(np.any(block) for x in self.tracked.values() for block in self.numerical(x, every)):
                raise GradcheckError("Numerical gradient for function expected to be zero, since no output requires grad")
            return
        (self.check_projections if fast else self.check_elements)(outputs, places, nondet_tol)
        if undefined:
            self.check_undefined(outputs, places)
        if dtypes:
            self.check_dtypes(outputs, places)

    def values(self, places: Sequence[int]) -> list[Array]:
        """Values of some outputs at the point as it stands, copied: an output may be a view of the input that is moved."""
        outputs = outputs_of(self.func(*self.arguments))
        return [array_of(outputs[k]).copy() for k in places]

    def difference(self, move: Callable[[float], None], places: Sequence[int]) -> list[Array]:
        """Central difference quotients of some outputs.

        Raises
        ------
        AssertionError
            As in PyTorch, if an output has another shape or dtype on the other side.
        """
        move(self.eps)
        above = self.values(places)
        move(-self.eps)
        below = self.values(places)
        for a, b in zip(above, below, strict=True):
            for what, one, other in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
                if one != other:
                    raise AssertionError(
                        f"Expected function to return outputs with the same {what} when inputs are perturbed by {self.eps}, but "
                        f"got {what}s {other} and {one}"
                    )
        return [(a.astype(np.float64) - b) / (2.0 * self.eps) for a, b in zip(above, below, strict=True)]

    def numerical(self, x: Tensor, places: Sequence[int]) -> list[Array]:
        """Jacobians, one for each of some outputs: a row for each element of the input."""
        array = promote(x)
        rows = []
        with _restored(array):
            for place in np.ndindex(array.shape):
                value = array[place]

                def move(step: float, place: Any = place, value: Any = value) -> None:
                    array[place] = value + step

                rows.append([quotient.reshape(-1) for quotient in self.difference(move, places)])
                array[place] = value
        if not rows:
            return [np.zeros((0, 0)) for _ in places]
        return [np.array([row[k] for row in rows]) for k in range(len(places))]

    def gradients(self, output: Tensor, seed: Array) -> list[Array]:
        """Gradients with respect to the tracked inputs, zero where there is no dependence."""
        found = grad(output, list(self.tracked.values()), wrap(seed), retain_graph=True, allow_unused=True)
        return [np.zeros(x.shape) if g is None else array_of(g) for x, g in zip(self.tracked.values(), found, strict=True)]

    def analytical(self, output: Tensor) -> tuple[list[Array], list[Array]]:
        """Jacobians of one output twice, one for each tracked input: a row for each element of the input.

        Rows whose derivative is Python are asked twice, and may answer differently.
        """
        derivative = Derivative(list(self.tracked.values()), [output])
        first = jacobian_matrix(derivative, "reverse").T
        again = jacobian_matrix(derivative, "reverse").T
        return cut(first, derivative.input_sizes), cut(again, derivative.input_sizes)

    def check_backward(self, output: int, y: Tensor, rng: np.random.Generator, jacobians: Sequence[Array]) -> None:
        """Compare a backward pass itself with the Jacobians that were compared with differences, by a random projection."""
        v = _direction(rng, y.shape).astype(array_of(y).dtype)
        for i, block, g in zip(self.tracked, jacobians, self.gradients(y, v), strict=True):
            expected = block @ v.reshape(-1).astype(np.float64)
            if not self.agree(g.reshape(-1), expected, self.atol):
                raise GradcheckError(f"{_mismatch(output, i)}of the elements:{_text(expected)}\nbackward pass:{_text(g)}\n")

    def agree(self, analytical: Any, numerical: Any, atol: float) -> bool:
        """Whether both ways give the same."""
        return bool(np.allclose(analytical, numerical, rtol=self.rtol, atol=atol))

    def check_elements(self, outputs: tuple[Tensor, ...], places: list[int], nondet_tol: float) -> None:
        """Compare all elements of all Jacobians."""
        numerical = {i: self.numerical(x, places) for i, x in self.tracked.items()}
        rng = np.random.default_rng(0)
        for number, k in enumerate(places):
            first, again = self.analytical(outputs[k])
            for i, a, b in zip(self.tracked, first, again, strict=True):
                n = numerical[i][number].reshape(a.shape)
                if not self.agree(a, n, self.atol):
                    raise GradcheckError(f"{_mismatch(k, i)}numerical:{_text(n)}\nanalytical:{_text(a)}\n")
                self.check_reentrant(a, b, nondet_tol)
            self.check_backward(k, outputs[k], rng, first)

    def check_reentrant(self, first: Array, again: Array, nondet_tol: float) -> None:
        """Compare two passes over one graph."""
        if first.size and not np.max(np.abs(first - again)) <= nondet_tol:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
                "values, although analytical gradient matches numerical gradient. The tolerance for nondeterminism was "
                f"{nondet_tol}; give a larger nondet_tol if the difference is to be expected."
            )

    def check_projections(self, outputs: tuple[Tensor, ...], places: list[int], nondet_tol: float) -> None:
        """Compare ``v @ J @ u`` for random u and v, one pair for each Jacobian."""
        rng = np.random.default_rng(0)
        weights = [_direction(rng, outputs[k].shape) for k in places]
        passes = [
            [self.gradients(outputs[k], v.astype(array_of(outputs[k]).dtype)) for _ in range(2)]
            for k, v in zip(places, weights, strict=True)
        ]
        for number, (i, x) in enumerate(self.tracked.items()):
            u, array = _direction(rng, x.shape), promote(x)
            start = array.copy()

            def move(step: float, array: Array = array, start: Array = start, u: Array = u) -> None:
                array[...] = start + step * u

            with _restored(array):
                quotients = self.difference(move, places)
            for k, v, quotient, (first, again) in zip(places, weights, quotients, passes, strict=True):
                n, a = float(np.sum(v * quotient)), float(np.sum(first[number] * u))
                # An error of atol in every element.
                if not self.agree(a, n, self.atol * float(np.sum(np.abs(u))) * float(np.sum(np.abs(v)))):
                    slow_n, slow_a = self.numerical(x, [k])[0], self.analytical(outputs[k])[0][number]
                    raise GradcheckError(
                        f"{_mismatch(k, i)}numerical:{n}\nanalytical:{a}\n\nThese are projections (fast mode). All elements:\n"
                        f"numerical:{_text(slow_n.reshape(slow_a.shape))}\nanalytical:{_text(slow_a)}\n"
                    )
                self.check_reentrant(first[number], again[number], nondet_tol)

    def check_undefined(self, outputs: tuple[Tensor, ...], places: list[int]) -> None:
        """Compare an output alone with the same output beside others whose gradients are zero."""
        if len(places) == 1:
            return
        chosen, inputs = [outputs[k] for k in places], list(self.tracked.values())
        for k, alone in zip(places, chosen, strict=True):
            seeds = [wrap(np.full_like(array_of(y), float(y is alone))) for y in chosen]
            beside = grad(chosen, inputs, seeds, retain_graph=True, allow_unused=True, materialize_grads=True)
            expected = self.gradients(alone, np.ones_like(array_of(alone)))
            for i, g, e in zip(self.tracked, beside, expected, strict=True):
                if g is None or not self.agree(array_of(g), e, self.atol):
                    raise GradcheckError(
                        f"Expected an undefined gradient to count as zero, but the gradient of output {k} with respect to input "
                        f"{i} is another one when the other outputs are given zero gradients."
                    )

    def check_dtypes(self, outputs: tuple[Tensor, ...], places: list[int]) -> None:
        """Compare the dtypes of gradients with those of the inputs."""
        for k in places:
            seed = wrap(np.ones_like(array_of(outputs[k])))
            found = grad(outputs[k], list(self.tracked.values()), seed, retain_graph=True, allow_unused=True)
            for (i, x), g in zip(self.tracked.items(), found, strict=True):
                if g is not None and g.dtype != x.dtype:
                    raise GradcheckError(
                        f"The gradient of output {k} with respect to input {i} is {g.dtype}, but the input {x.dtype}"
                    )


def _direction(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """A random direction of length one; no element is so small that its derivative is not seen."""
    u: Array = np.asarray(rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape))
    return u / max(float(np.sqrt(np.sum(u * u))), 1e-300)


def _mismatch(output: int, input: int) -> str:
    return f"Jacobian mismatch for output {output} with respect to input {input},\n"


def _text(block: Array) -> str:
    return repr(wrap(np.array(block)))
