"""The right-hand side of a differential equation: its value, and its derivative by state and parameters at a point."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.drivers.calling import call
from tapegrad.drivers.containers import flatten, restore
from tapegrad.drivers.derivatives import Outputs, derivative_of, joined
from tapegrad.drivers.leaves import is_compiled
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["RightHandSide"]

Array = np.ndarray[Any, Any]


class RightHandSide:
    """``f(t, y, *args)``, or ``f(y, t, *args)``, as a function of numbers.

    Parameters
    ----------
    function : callable
        Python's or compiled.
    args : sequence
        Of which tracked tensors are the parameters.
    size : int
        How many numbers the state has.
    name : str
        Of who asks, for messages.
    state_first : bool
        Whether the function takes the state before the time.

    Attributes
    ----------
    parameters : list of Tensor
        Tracked tensors among the arguments, each once for each place.
    """

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], size: int, name: str, state_first: bool = False) -> None:
        self._function, self._size, self._name, self._state_first = function, size, name, state_first
        self._leaves: list[Any] = []
        self._structures = []
        self._of_argument: list[list[int]] = []  # for each argument, which of its leaves are parameters
        self.parameters: list[Tensor] = []
        for arg in args:
            own: list[Any] = []
            self._structures.append(flatten(arg, own))
            tracked = [k for k, leaf in enumerate(own) if isinstance(leaf, Tensor) and leaf._row]
            self.parameters += [own[k] for k in tracked]
            self._of_argument.append(tracked)
            self._leaves.append([leaf.detach() if isinstance(leaf, Tensor) and leaf._row else leaf for leaf in own])
        self._plain = tuple(
            restore(structure, iter([_value(leaf) for leaf in own]))
            for structure, own in zip(self._structures, self._leaves, strict=True)
        )

    @property
    def count(self) -> int:
        """How many numbers the parameters have."""
        return sum(array_of(t).size for t in self.parameters)

    def __call__(self, t: float, y: Array) -> Array:
        """Its value.

        Raises
        ------
        ValueError
            If it has not as many elements as the state.
        """
        return self._checked(np.asarray(self._function(*self._in_order(t, y), *self._plain), np.float64).reshape(-1))

    def with_arguments(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of time and state, such as an event, that is given the arguments too."""

        @functools.wraps(function)
        def call(t: float, y: Array) -> Any:
            return function(t, y, *self._plain)

        return call

    def _in_order(self, t: float, y: Any) -> tuple[Any, Any]:
        return (y, t) if self._state_first else (t, y)

    def _checked(self, value: Array) -> Array:
        if value.size != self._size:
            raise ValueError(
                f"{self._name}: the function returns {value.size} numbers for a state of {self._size}; return the derivative of "
                "each"
            )
        return value

    def linearised(self, t: float, y: Array) -> tuple[Array, Any]:
        """Its value, and its derivative by the state and the parameters, one after the other."""
        if is_compiled(self._function):
            return self._linearised_compiled(t, y)
        places = [(k, j) for k, tracked in enumerate(self._of_argument) for j in tracked]

        def of_state(state: Any, *parameters: Any) -> Any:
            leaves = [list(own) for own in self._leaves]
            for (k, j), parameter in zip(places, parameters, strict=True):
                leaves[k][j] = parameter
            args = [
                restore(structure, iter([x if isinstance(x, Tensor) and x._row else _value(x) for x in own]))
                for structure, own in zip(self._structures, leaves, strict=True)
            ]
            return self._function(*self._in_order(t, state), *args)

        values = [_value(self._leaves[k][j]) for k, j in places]
        made = call(of_state, (y, *values), {}, range(1 + len(values)), False, self._name)
        outputs = Outputs(made, self._name)
        return self._checked(joined(map(array_of, outputs.tensors))), derivative_of(made, outputs.tensors, constant=True)

    def _linearised_compiled(self, t: float, y: Array) -> tuple[Array, Any]:
        chosen = [k for k, tracked in enumerate(self._of_argument) if tracked]
        numbers_of = (0 if self._state_first else 1, *(2 + k for k in chosen))
        made = call(self._function, (*self._in_order(t, y), *self._plain), {}, numbers_of, False, self._name)
        outputs = Outputs(made, self._name)
        derivative = derivative_of(made, outputs.tensors, constant=True)
        kept: list[Array] = [np.arange(self._size)]
        start = self._size
        for k in chosen:
            for j, leaf in enumerate(self._leaves[k]):
                size = np.size(_value(leaf))
                if j in self._of_argument[k]:
                    kept.append(np.arange(start, start + size))
                start += size
        numbers = np.concatenate(kept)
        if len(numbers) < start:
            derivative = _Restricted(derivative, numbers, start)
        return self._checked(joined(map(array_of, outputs.tensors))), derivative

    def jacobian(self, t: float, y: Array) -> Array:
        """Its derivative by the state, of shape (size, size)."""
        _, derivative = self.linearised(t, y)
        found: Array = derivative.push(np.eye(self._size + self.count, self._size))
        return found

    def sparse_jacobian(self) -> Callable[[float, Array], Any]:
        """The same as a sparse array, of a structure that is found once; the parameters count as constants."""
        from tapegrad.sparse.derivatives import jacobian as sparse_jacobian

        found = sparse_jacobian(self._function, 0 if self._state_first else 1)
        return lambda t, y: found(*self._in_order(t, y), *self._plain)


class _Restricted:
    """A derivative by some of its inputs."""

    def __init__(self, derivative: Any, numbers: Array, inputs: int) -> None:
        self._derivative, self._numbers, self._inputs = derivative, numbers, inputs

    def push(self, tangents: Array) -> Any:
        whole = np.zeros((self._inputs, tangents.shape[1]))
        whole[self._numbers] = tangents
        return self._derivative.push(whole)

    def pull(self, cotangents: Array) -> Any:
        return self._derivative.pull(cotangents)[self._numbers]


def _value(leaf: Any) -> Any:
    """A leaf as the function gets it outside of recordings: arrays and numbers for tensors of drivers."""
    if isinstance(leaf, Tensor):
        return leaf._data if type(leaf._data) is float else leaf._data.copy()
    return leaf
