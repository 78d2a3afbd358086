"""Products with a Jacobian at inputs that a call had, by machine code, long after the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.drivers.derivatives import Derivative, detached, joined
from tapegrad.drivers.direct import in_doubles
from tapegrad.drivers.jacobian_products import product_later
from tapegrad.drivers.leaves import Call, copied
from tapegrad.programs.fused.paths import FusedMatrix

__all__ = ["KeptProducts", "LaterProducts"]


class KeptProducts:
    """Products of one kind.

    Parameters
    ----------
    trace : Trace
        The path that the call took.
    what : {"jvp", "vjp"}
    fused : FusedMatrix
        That has machine code of the product.
    values : sequence
        Of the inputs, which nobody changes.
    """

    __slots__ = ("_fused", "_trace", "_values", "_what")

    def __init__(self, trace: Any, what: str, fused: FusedMatrix, values: Sequence[Any]) -> None:
        self._trace, self._what, self._fused, self._values = trace, what, fused, values

    def __call__(self, what: str, vector: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        """The product with a vector over all inputs or outputs; None if code does not give it."""
        if what != self._what:
            return None
        given, trace = [*self._values, vector], self._trace
        if trace.is_running:  # code that somebody uses has its memory for him, as the path's steps have theirs
            return self._taken(self._fused.another().gradient(given)) if self._fused.code.is_pure else None
        trace.is_running = True
        try:
            return self._taken(self._fused.code.gradient(given))
        finally:
            trace.is_running = False

    def derivative(self, name: str) -> Derivative | None:
        """The derivative by rows of the path at these inputs, whatever the function sees by now; None if there is none."""
        trace = self._trace
        if trace.is_running:
            return None
        trace.is_running = True
        try:
            found = detached(trace.made, name) if trace.has_run(self._values) else None
            return None if found is None else found[2]
        finally:
            trace.is_running = False

    def _taken(self, found: Any) -> np.ndarray[Any, Any] | None:
        if found is None:
            return None
        parts = found[1]
        return joined(parts) if self._what == "vjp" else parts[-1].reshape(-1)


class LaterProducts:
    """What gives products to those who have made a direct call, each at the inputs of theirs.

    Parameters
    ----------
    program : Program
    trace : Trace
        The path that such calls take.
    made : Call
        Whose structures and shapes are those of such calls.
    fused : FusedMatrix
        That has machine code of the product.
    run : callable
        Gives the product for a tuple of all inputs and the vectors, or None.
    arguments : callable
        Gives the arguments around inputs.
    how : (str, tuple or range of int)
        "jvp" or "vjp", and what is differentiated by.
    """

    __slots__ = ("_arguments", "_fused", "_how", "_made", "_program", "_run", "_trace")

    def __init__(
        self,
        program: Any,
        trace: Any,
        made: Call,
        fused: Any,
        run: Callable[[Any], Any],
        arguments: Callable[[Any], Any],
        how: tuple[str, Any],
    ) -> None:
        self._program, self._trace, self._made, self._fused, self._run = program, trace, made, fused, run
        self._arguments, self._how = arguments, how

    def at(self, args: tuple[Any, ...], value: Any) -> Callable[..., Any]:
        """The function of vectors, at the inputs of a call that gave a value; nobody changes what it keeps of them."""
        given = tuple([x.copy() if type(x) is np.ndarray else x for x in args])
        kept, run = copied(value) if type(value) is not float else value, self._run
        general: Any = None

        def product(*vectors: Any) -> Any:
            nonlocal general
            found = run((*given, *vectors))
            if found is None and (doubles := in_doubles(vectors)) is not None:
                found = run((*given, *doubles))
            if found is not None:
                return found
            if general is None:
                general = self._general(given, kept)
            return general(*vectors)

        return product

    def _general(self, given: tuple[Any, ...], value: Any) -> Callable[..., Any]:
        """The same for vectors of other kinds."""
        what, argnums = self._how
        by_code = KeptProducts(self._trace, what, self._fused, given)
        return product_later(self._program, self._arguments(given), argnums, what, self._made, value, by_code)
