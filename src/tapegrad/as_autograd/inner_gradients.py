"""Gradients inside of a function that is differentiated, as one operation.

The derivative of such a gradient is a product with second derivatives of the inner function. A linear tape has these as numbers
where the compiled sweeps know all of its rows, so that nothing is walked in Python: a hazard, which is the slope of a cumulative
one in time, takes half of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.decoded_rows import object_at
from tapegrad.autograd.sweep_memory import borrow
from tapegrad.drivers.derivatives import Derivative, gradients_of
from tapegrad.drivers.jacobian_products import split
from tapegrad.drivers.leaves import Call
from tapegrad.engine import layout as at
from tapegrad.ops.namespaces import PLAIN
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.tape import TAPE, words_of
from tapegrad.tensors.tensor import Tensor, array_of, is_leaf, is_recording, wrap
from tapegrad.tensors.untracked_values import depth, leaves_around

__all__ = ["inner_gradient"]

SHORT = 16  # rows; a recorded pass takes a fortieth of a millisecond for each, and a linear tape as much as for ten
_words = words_of(TAPE.header)
MOST_LEAVES = 16  # of the functions around, each an input of the operation


def inner_gradient(made: Call, output: Tensor) -> list[Any] | None:
    """Gradients of a call inside of one driver's function by its leaves, as operations on what that differentiates by.

    Parameters
    ----------
    made : Call
        Its arguments may be constants of the function around, or what that computes.
    output : Tensor
        What it gave, of one element.

    Returns
    -------
    list of Tensor or None
        None where it has to be done by a recorded pass.
    """
    if depth() != 1 or not is_recording() or output._row <= 0 or TAPE.packers or TAPE.anomalies:
        return None
    if not all(map(_is_double, made.leaves)) or not (all(map(is_leaf, made.leaves)) or _is_long(made, output)):
        return None
    outer = _other_leaves(output, made.leaves)
    if outer is None:
        return None
    derivative = Derivative([*made.leaves, *outer], [output], second=True, ends=True)
    if not derivative.compiled:
        return None
    own = sum(derivative.input_sizes[: len(made.leaves)])
    found = split(derivative.pull(np.ones((1, 1)))[:own, 0], made.leaves)
    sources = [place for place, leaf in enumerate(made.leaves) if not is_leaf(leaf)]
    sources += range(len(made.leaves), len(derivative.leaves))
    if not sources:
        return [np.asarray(part) for part in found]
    inputs = [derivative.leaves[place] for place in sources]
    return [apply(_GRADIENT, inputs, np.asarray(part), (derivative, k, len(made.leaves), sources)) for k, part in enumerate(found)]


def _is_long(made: Call, output: Tensor) -> bool:
    """Whether a call has so many rows that a linear tape takes less time than a recorded pass over them."""
    return TAPE.slot(output._row) - min(TAPE.slot(leaf._row) for leaf in made.leaves) > SHORT


def _is_double(t: Tensor) -> bool:
    return type(t._data) is float or t._data.dtype == np.float64


def _other_leaves(output: Tensor, own: Sequence[Tensor]) -> list[Tensor] | None:
    """Leaves that an output may depend on besides a call's own; None if there are too many, or others than float64 ones."""
    outer = list(leaves_around())
    # All are on the tape, and it has no others: nothing is looked for.
    if outer and all(t._row for t in outer) and _words[at.LEAVES] == len(outer) + sum(map(is_leaf, own)):
        return outer if len(outer) <= MOST_LEAVES and all(map(_is_double, outer)) else None
    with TAPE.claim():
        state = borrow()
        slot = TAPE.slot(output._row)
        state.plan([slot])
        reached = [object_at(words[at.LEAF_PAYLOAD])() for words in state.leaves()]
        TAPE.clear(TAPE.address, state.address, 0)
        state.reset()
        state.finish()
    outer = [t for t in reached if not any(t is leaf for leaf in own)]
    if len(outer) > MOST_LEAVES or any(t is None or not _is_double(t) for t in outer):
        return None
    return outer


def _sent(g: Tensor, ctx: Context) -> list[Tensor | None]:
    derivative, k, own, sources = ctx.attrs
    if ctx.on is PLAIN or not is_recording():
        start = sum(derivative.input_sizes[:k])
        column = np.zeros((derivative.inputs, 1))
        column[start : start + derivative.input_sizes[k], 0] = np.ravel(array_of(g))
        curved, first = derivative.curve(column)[:, 0], sources[0]
        parts = split(curved[sum(derivative.input_sizes[:first]) :], derivative.leaves[first:])
        return [wrap(part if isinstance(part, float) else np.array(part)) for part in (parts[place - first] for place in sources)]
    seeds = [wrap(np.ones_like(array_of(t))) for t in derivative.outputs]
    gradient = gradients_of(derivative.outputs, derivative.leaves[:own], seeds, create_graph=True)[k]
    # By the leaves alone: what the arguments were made of is reached through them.
    found = iter(gradients_of([gradient], derivative.leaves[own:], [g], create_graph=True))
    return [next(found) if place >= own else None for place in sources]


_GRADIENT = Structural("InnerGradientBackward0", ((),), _sent)
