"""One call of a function, and its derivative as a linear map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tapegrad.drivers.calling import finished_call
from tapegrad.drivers.derivatives import Outputs, derivative_of, detached, sizes_of
from tapegrad.drivers.gradients import scalar_output
from tapegrad.drivers.leaves import Call, check_argnums

__all__ = ["paths_of", "recorded"]


def recorded(
    f: Any, args: Any, kwargs: Any, argnums: Any, has_aux: bool, name: str, second: bool, weighted: bool = False
) -> tuple[Call, Outputs, Any]:
    """Call a function on leaves.

    Parameters
    ----------
    f, args, kwargs, argnums, has_aux
        As for drivers.
    name : str
        For messages.
    second : bool
        Whether the Hessian is wanted, of an output that is a scalar.
    weighted : bool
        Whether it is that of a weighted sum of what a compiled function returns.

    Returns
    -------
    tuple
        The call, what it returned, and its derivative.

    Raises
    ------
    NotImplementedError
        If the call is part of what another driver differentiates.
    """

    def finish(made: Call) -> Any:
        if made.inside:
            raise NotImplementedError(
                f"{name}: sparse derivatives are numbers, which cannot be differentiated by another driver or by a tracked tensor; "
                "use tapegrad.jacobian or tapegrad.hessian there"
            )
        if second and not weighted:
            scalar_output(made, name)
        found = detached(made, name, second)
        return NotImplemented if found is None else found

    found: tuple[Call, Outputs, Any] = finished_call(f, args, kwargs, argnums, has_aux, name, finish, second)
    return found


def paths_of(program: Any, args: Any, argnums: Any, name: str, second: bool, made: Call, outputs: Outputs) -> Iterator[Any]:
    """Derivatives of all paths that a program has recorded for calls like this one, each where it ran last."""
    for other in program.recorded_calls(check_argnums(argnums, len(args), name)):
        found = Outputs(other, name)
        if sizes_of(other.leaves) == sizes_of(made.leaves) and sizes_of(found.tensors) == sizes_of(outputs.tensors):
            yield derivative_of(other, found.tensors, second)
