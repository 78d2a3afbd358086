"""Solutions that know their derivative: the implicit function theorem instead of a recording of all iterations.

Where ``R(z, p) = 0`` defines ``z`` by the parameters ``p``, it is ``dz/dp = -(dR/dz)^-1 dR/dp`` [1]_ [2]_. A solution is
one row on the tape, whose arguments are the parameters: what the residual depends on besides ``z``, however it came by it.

References
----------
.. [1] B. Christianson, "Reverse accumulation and attractive fixed points", Optimization Methods and Software 3, 1994.
.. [2] M. Blondel et al., "Efficient and modular implicit differentiation", NeurIPS 2022.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.decoded_rows import arguments_of
from tapegrad.autograd.function import Function
from tapegrad.autograd.subgraph import pull, tensors_at
from tapegrad.linalg.solving import solve
from tapegrad.ops.joining import stack
from tapegrad.optimize.dependence import older
from tapegrad.optimize.equations import Determined, Equations
from tapegrad.optimize.examining import Recording
from tapegrad.optimize.linear_systems import DENSE
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.modes import is_recording_on
from tapegrad.tensors.tensor import Tensor, array_of, is_recording, make, wrap

__all__ = ["implicit_solution"]

FEW = 32  # unknowns whose Jacobian takes one block of vectors, so that nobody minds if it is computed and not used


def implicit_solution(equations: Equations, given: Sequence[Tensor]) -> Tensor | None:
    """A solution as a tensor with its derivative; None if the equations depend on no tracked tensor.

    Parameters
    ----------
    equations : Equations
    given : sequence of Tensor
        Tracked tensors among the arguments of the user's functions, on which the solution counts as depending, whatever these do.
    """
    if not is_recording():
        return None
    recording = Recording(equations)
    mark = recording.record()
    with TAPE.claim():
        slots = sorted(older(mark, [*recording.seen, *given], recording.leaf))
        recording.inner = [slot in recording.slots(mark) for slot in slots]
        parameters = tensors_at(slots)
    if not parameters:
        return None
    recording.seen = []
    found = equations.z
    if len(found) <= FEW:
        recording.examine_at_once()
    solution: Tensor = SolutionFunction.apply(recording, found, *parameters)
    return solution


class SolutionFunction(Function):
    """The row of a solution."""

    @staticmethod
    def forward(ctx: Any, recording: Recording, z: np.ndarray, *parameters: Tensor) -> Tensor:
        """Hand out what was computed."""
        ctx.recording = recording
        solution: Tensor = make(z.copy(), 0)
        ctx.save_for_backward(solution)
        return solution

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Solve for the adjoint of the residual, and pull that through it."""
        recording: Recording = ctx.recording
        with TAPE.claim():
            slots = [argument.slot for argument in arguments_of(TAPE.slot(ctx._row))[: len(ctx.needs_input_grad) - 2]]
            found = recording.determined()
            if not len(found.kept) or not recording.value._row:
                return (None,) * len(ctx.needs_input_grad)
            if not is_recording_on():
                adjoint = np.zeros(len(recording.equations.z))
                adjoint[found.kept] = -found.linear.solve(array_of(g)[found.kept], transposed=True)
                return None, None, *pull([recording.value], [wrap(adjoint)], slots)
            (z,) = ctx.saved_tensors
            return None, None, *_recorded_pull(recording, found, z, slots, g)


def _recorded_pull(recording: Recording, found: Determined, z: Tensor, slots: Sequence[int], g: Tensor) -> list[Tensor | None]:
    """Gradients by the parameters, recorded.

    Raises
    ------
    NotImplementedError
        If there are too many unknowns.
    """
    if len(found.kept) > DENSE:
        raise NotImplementedError(
            f"{recording.equations.name}: second derivatives of a solution take as many recorded passes as there are unknowns, and "
            f"{len(found.kept)} are more than {DENSE}. First derivatives have no such limit; differences of these give products."
        )
    # Derivatives are those where Newton's method ended, but the row's value is what the solver found.
    z = z + wrap(recording.equations.z - array_of(z))
    value = recording.rows(z, slots)
    own = [TAPE.slot(z._row)]
    units = np.eye(array_of(g).size)[found.kept]
    kept = wrap(found.kept)
    jacobian = stack([_or_zeros(pull([value], [wrap(unit.copy())], own)[0], z)[kept] for unit in units])
    adjoints = solve(jacobian.T, g[kept])
    # The solution's own row is an end too: what comes there is what the solving has accounted for.
    return pull([value], [-(adjoints @ wrap(units))], [*slots, *own])[:-1]


def _or_zeros(g: Tensor | None, like: Tensor) -> Tensor:
    return wrap(np.zeros_like(array_of(like))) if g is None else g
