"""One call of a function, and its derivative as a linear map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tapegrad.drivers.calling import finished_call
from tapegrad.drivers.derivatives import Outputs, derivative_of, detached, sizes_of
from tapegrad.drivers.gradients import scalar_output
from tapegrad.drivers.leaves import Call, check_argnums

__all__ = ["paths_of", "recorded"]


def recorded(
    f: Any,
    args: Any,
    kwargs: Any,
    argnums: Any,
    has_aux: bool,
    name: str,
    second: bool,
    weighted: bool = False,
    needs: Any = "rows",
    is_known: Callable[[Call], bool] | None = None,
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
    needs : object
        The products that a program's machine code may give instead of rows (`finished_call`).
    is_known : callable, optional
        Tells whether these are of use for a call.

    Returns
    -------
    tuple
        The call, what it returned, and its derivative; or the products, with outputs whose values are others' unless they were
        asked for.

    Raises
    ------
    NotImplementedError
        If the call is part of what another driver differentiates.
    """

    def finish(made: Call) -> Any:
        if made.matrix is not None:
            if is_known is None or not is_known(made):
                return None
            import copy

            outputs = Outputs(made, name)
            return outputs.detached_from(made) if needs[0] == "value_jvp" else copy.copy(made), outputs, made.matrix
        if made.inside:
            raise NotImplementedError(
                f"{name}: sparse derivatives are numbers, which cannot be differentiated by another driver or by a tracked tensor; "
                "use tapegrad.jacobian or tapegrad.hessian there"
            )
        if second and not weighted:
            scalar_output(made, name)
        found = detached(made, name, second)
        return NotImplemented if found is None else found

    found: tuple[Call, Outputs, Any] | None = finished_call(f, args, kwargs, argnums, has_aux, name, finish, second, needs=needs)
    return found or recorded(f, args, kwargs, argnums, has_aux, name, second, weighted)


def paths_of(program: Any, args: Any, argnums: Any, name: str, second: bool, made: Call, outputs: Outputs) -> Iterator[Any]:
    """Derivatives of all paths that a program has recorded for calls like this one, each where it ran last."""
    for other in program.recorded_calls(check_argnums(argnums, len(args), name)):
        found = Outputs(other, name)
        if sizes_of(other.leaves) == sizes_of(made.leaves) and sizes_of(found.tensors) == sizes_of(outputs.tensors):
            yield derivative_of(other, found.tensors, second)
