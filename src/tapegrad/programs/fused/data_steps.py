"""Steps that nothing differentiated reaches and that have no expressions: they are done as they are, before the code runs."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from tapegrad.ops.normalisation import log_softmax_again, logsumexp_again, softmax_again
from tapegrad.ops.products import product_again
from tapegrad.programs.fused.replaced_parts import Replaced
from tapegrad.programs.provenance import values_in
from tapegrad.programs.steps import Computed, Copied, Gathered, Guard, Joined, Ruled, Step, Structured, Summed, Value, Viewed
from tapegrad.recording.casting import in_dtype
from tapegrad.tensors.tensor import FLOATS

__all__ = ["COMPARISONS", "OF_SHAPES", "operands_of", "results_of", "steps_before"]

OF_SHAPES = (np.shape, np.ndim, np.size)
COMPARISONS = {
    operator.lt: "olt", operator.le: "ole", operator.gt: "ogt", operator.ge: "oge", operator.eq: "oeq", operator.ne: "une",
}  # fmt: skip


def steps_before(steps: Sequence[Step], inputs: Sequence[Value], leaves: Sequence[Value]) -> list[Step]:
    """Which steps have to be done before machine code runs, and can be, in their order.

    Parameters
    ----------
    steps : sequence of Step
    inputs, leaves : sequence of Value
        What the path reads, and what of it is differentiated by.
    """
    own = set(map(id, leaves))
    data = {id(value) for value in inputs if id(value) not in own}

    def is_data(value: Value) -> bool:
        return value.constant or id(value) in data or (value.of is not None and is_data(value.of))

    # Values that stand where only the steps put them: expressions know floats only.
    foreign = {id(value) for value in inputs if value.number < 0 and value.array.dtype not in FLOATS}
    asked: set[int] = set()
    chosen: set[int] = set()
    for k, step in enumerate(steps):
        operands = operands_of(step)
        if not all(map(is_data, operands)):
            continue
        found = results_of(step)
        data.update(map(id, found))
        if not _has_expression(step) or any(id(value) in foreign for value in operands):
            chosen.add(k)
            asked.update(map(id, operands))
            foreign.update(id(value) for value in found if value.number < 0 and value.array.dtype not in FLOATS)
    for k in range(len(steps) - 1, -1, -1):
        found = results_of(steps[k])
        if k in chosen or any(id(value) in asked for value in found):
            chosen.add(k)
            asked.update(map(id, operands_of(steps[k])))
    return [steps[k] for k in sorted(chosen)]


def operands_of(step: Step) -> list[Value]:
    """What a step reads, with what that is a part of."""
    if isinstance(step, (Ruled, Structured)):
        found = list(step.operands)
    elif isinstance(step, Joined):
        found = list(step.sources)
    elif isinstance(step, Computed):
        found = values_in((step.args, step.kwargs))
    elif isinstance(step, Guard):
        found = [step.value]
    elif isinstance(step, Replaced):
        found = [step.before, step.part]
    elif isinstance(step, Viewed):
        found = [] if step.result.of is None else [step.result.of]
    else:
        found = [step.source]  # type: ignore[attr-defined]
    for value in found:
        if value.of is not None:
            found.append(value.of)
    return found


def results_of(step: Step) -> list[Value]:
    """What a step gives."""
    if isinstance(step, Computed):
        return [value for _, value in step.results if isinstance(value, Value)]
    return [] if step.results_in is None else [step.results_in]


def _has_expression(step: Step) -> bool:
    """Whether there may be one, by its kind."""
    if isinstance(step, Computed):
        return step.function in OF_SHAPES or step.function is in_dtype or (step.function in COMPARISONS and len(step.args) == 2)
    if isinstance(step, Guard):
        is_number = step.value.number >= 0  # which has no array yet while the path is recorded
        return is_number or (not step.value.array.ndim and step.value.array.dtype in FLOATS | {np.dtype(np.bool_)})
    if isinstance(step, Structured):
        known = step.operation.forward in (product_again, logsumexp_again, softmax_again, log_softmax_again)
        return known or (step.name == "IndexBackward0" and step.fixed)
    return isinstance(step, (Ruled, Copied, Viewed, Gathered, Summed, Joined, Replaced))
