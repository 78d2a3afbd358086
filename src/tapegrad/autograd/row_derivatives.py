"""The derivative of a row as operations on tensors: what it sends to its arguments, recorded or not."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.decoded_rows import (
    Argument,
    arguments_in,
    as_float,
    dtype_of,
    object_at,
    payload_at,
    shape_of,
)
from tapegrad.autograd.messages import saved_record_of, saved_words_of
from tapegrad.autograd.sweep_memory import Sweep
from tapegrad.deferred import MadeOnDemand
from tapegrad.engine import layout as at
from tapegrad.kernels.opcodes import OPCODES, calls_in, names_in
from tapegrad.ops.elementwise import FUNCTIONS, method
from tapegrad.ops.namespaces import TENSORS
from tapegrad.recording.casting import cast
from tapegrad.recording.strided_maps import strided_gather, strided_scatter, sum_to
from tapegrad.recording.structural import Payload
from tapegrad.rules.table import RULES
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import untracked_values
from tapegrad.tensors.grad_mode import in_gradient_mode
from tapegrad.tensors.modes import is_grad_enabled
from tapegrad.tensors.tensor import Tensor, is_recording, make

__all__ = ["Contributions", "apply_partials", "contributions", "fit"]

Contributions = list[tuple[Argument, Tensor]]
MOST_OPERANDS, MOST_TAKEN = 3, 8
_FLOAT64 = np.dtype(np.float64)
_ROOM = bytes(16 * MOST_TAKEN)
_new: Any = tuple.__new__  # a named tuple by its own class takes twice as long


def _names_of(text: str) -> dict[str, Any]:
    """The functions of tensors that a rule's text calls: private rules by their names without the underscore."""
    # Rule text is ours, never a user's.
    return {**{name: FUNCTIONS[name if name in OPCODES else f"_{name}"] for name in calls_in(text)}, "__builtins__": {}}


def _is_step(text: str) -> bool:
    """Whether a partial depends on values by comparisons only: then it is constant between its steps."""
    import ast

    def depends(node: ast.AST) -> bool:
        if isinstance(node, ast.Compare):
            return False
        if isinstance(node, ast.Name):
            return node.id in VALUES
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called not in STEPS:
                return True
            if called == "sign":
                return False
        return any(map(depends, ast.iter_child_nodes(node)))

    return not depends(ast.parse(text, mode="eval").body)


VALUES = frozenset("xywz")
STEPS: dict[str, Any] = {"where": np.where, "sign": np.sign, "abs": np.abs, "maximum": np.maximum}


def _pull(text: str) -> Callable[..., Tensor]:
    """What a partial makes of an adjoint, as a function of Tensors ``g, x, y, w, z``."""
    times = method("_mul0")
    if not names_in(text) & VALUES:
        factor = float(eval(text, _names_of(text)))
        if factor == 1.0:
            return lambda g, x, y, w, z: g
        return (lambda g, x, y, w, z: -g) if factor == -1.0 else (lambda g, x, y, w, z: times(g, factor))
    pull: Callable[..., Tensor] = eval(f"lambda g, x, y, w, z: times(g, {text})", {**_names_of(text), "times": times})
    if not _is_step(text):
        return pull
    # The same text on arrays, of which nothing is recorded.
    step = eval(f"lambda x, y, w, z: {text}", {**STEPS, "__builtins__": {}})

    def pull_step(g: Tensor, *values: Tensor | None) -> Tensor:
        return pull(g, *values) if untracked_values.decisions_in_use else times(g, _stepped(step, values, g))

    return pull_step


_pulls = MadeOnDemand(_pull)
_pulls_of = MadeOnDemand(lambda opcode: [None if text is None else _pulls[text] for text in RULES[opcode].partials])


def contributions(state: Sweep, slot: int, gradients: Sequence[Tensor | None], wanted: Callable[[Argument], bool]) -> Contributions:
    """Contributions of a row to those of its arguments that are wanted, each in the dtype of the argument's row.

    Parameters
    ----------
    gradients : sequence of Tensor or None
        Of the outputs of the node; a row of an operation of ours has one.
    """
    code = TAPE.columns["opcode"].item(slot)
    opcode = code & ~at.WIDE
    if opcode == at.HOST:
        payload: Payload = payload_at(slot)
        if payload.runs_itself:  # code of the user's, which may set modes
            return _fitted(in_gradient_mode(is_grad_enabled(), payload.contributions, state, slot, gradients, wanted))
    (g,) = gradients
    if g is None:
        return []
    if opcode < at.STRUCTURAL:
        return _elementwise(slot, opcode, code >= at.WIDE, g, wanted)
    if opcode == at.HOST:
        return _fitted(_host(slot, payload, g, wanted))
    return _structural(slot, opcode, g, wanted)


def fit(slot: int, c: Tensor) -> Tensor:
    """A contribution in the dtype of its row."""
    dtype, data = dtype_of(slot), c._data
    return c if (_FLOAT64 if type(data) is float else data.dtype) == dtype else cast(c, dtype)


def _fitted(found: Contributions) -> Contributions:
    return [(argument, fit(argument.slot, c)) for argument, c in found]


def _structural(slot: int, opcode: int, g: Tensor, wanted: Callable[[Argument], bool]) -> Contributions:
    """The transposes of a row's maps: what was read in strides is written in strides, and the other way round."""
    found: list[Any] = []
    if opcode != at.JOIN:
        columns = TAPE.columns
        number = _transposed[columns["side"].item(columns["first"].item(slot) + at.NAME) & 0xFFFFFFFF]
        row = TAPE.turn_map(TAPE.address, slot, number, g._row if is_recording() else 0, id(g._data), id(found))
        if row >= 0:
            argument = _new(Argument, (row, at.NOTHING, 0))
            return [(argument, found[0])] if wanted(argument) else []
    record = saved_words_of(slot)
    count = record[at.NAME] >> 32
    room = array("q", bytes(8 * (len(record) + 4 * count)))
    TAPE.maps_of_row(TAPE.address, slot, room.buffer_info()[0])
    words, at_word = room.tolist(), 0
    turned = strided_scatter if opcode == at.GATHER else strided_gather
    name = "SliceBackward0" if opcode == at.JOIN else TAPE.names[_transposed[record[at.NAME] & 0xFFFFFFFF]]
    scale = as_float(record[at.SCALE])
    for argument in arguments_in(record[at.ARGUMENTS : at.ARGUMENTS + 2 * count]):
        rank, offset = words[at_word], words[at_word + 1]
        between, end = at_word + 2 + rank, at_word + 2 + 2 * rank
        if wanted(argument):
            dims, strides = words[at_word + 2 : between], words[between:end]
            found.append((argument, turned(g, dims, strides, offset, scale, shape_of(argument.slot), name)))
        at_word = end
    return _fitted(found)


def _transposed_name(name: str) -> str:
    """Node name of the derivative of a strided map."""
    return _TRANSPOSED.get(name, name.replace("Backward0", "BackwardBackward0"))


_transposed = MadeOnDemand(lambda number: TAPE.name_number(_transposed_name(TAPE.names[number])))
_TRANSPOSED = {
    "SumBackward0": "ExpandBackward0",
    "SumBackward1": "ExpandBackward0",
    "MeanBackward0": "DivBackward0",
    "MeanBackward1": "DivBackward0",
    "ExpandBackward0": "SumBackward1",
    "ViewBackward0": "ViewBackward0",
    "TBackward0": "TBackward0",
    "TransposeBackward0": "TransposeBackward0",
    "PermuteBackward0": "PermuteBackward0",
    "UnsqueezeBackward0": "SqueezeBackward1",
    "FlipBackward0": "FlipBackward0",
    "Rot90Backward0": "Rot90Backward0",
    "DiagEmbedBackward0": "DiagonalBackward0",
    "ConstantPadNdBackward0": "ConstantPadNdBackward0",
}


def _operand(argument: Argument) -> Tensor | None:
    """An argument's value as a tensor on its row; None if it was not saved."""
    if argument.kind not in (at.ROW, at.NUMBER, at.ARRAY):
        return None
    row = TAPE.new_handle(argument.slot) if argument.slot >= 0 else 0
    if argument.kind == at.ROW:
        return make(float(TAPE.columns["value"][argument.slot]), row)
    if argument.kind == at.NUMBER:
        return make(as_float(argument.saved), row)
    array = object_at(argument.saved)
    if row and array.dtype != dtype_of(argument.slot):
        array = array.astype(dtype_of(argument.slot))
    return make(array.item() if array.ndim == 0 and array.dtype == np.float64 else array, row)


def _in_dtype(t: Tensor | None, dtype: np.dtype[Any]) -> Tensor | None:
    """An operand in the dtype that the partials are computed in: text like ``-x`` and ``x * x`` means real numbers."""
    if t is None or type(t._data) is float or (t._data.ndim == 0 and t._data.dtype.kind == "f"):
        return t
    return cast(t, dtype)


def _plain_operands(slot: int) -> list[tuple[Argument, Tensor | None]]:
    columns = TAPE.columns
    found = []
    for column in ("first", "second"):
        reference = int(columns[column][slot])
        if reference >= 0:
            argument = Argument(reference, at.ROW, 0)
            found.append((argument, _operand(argument)))
        elif reference <= -2:
            value = float(columns["constant"][1 + (-2 - reference)])
            found.append((Argument(-1, at.NUMBER, 0), make(value, 0)))
    return found


def _taken(slot: int) -> tuple[list[Argument], list[Tensor | None], Sequence[int]] | None:
    """A row's operands, their values and then its result, and which have the shape of that: all in one call.

    None where dtypes are mixed, or something else is left to `_operand`.
    """
    values: list[Tensor | None] = []
    words = array("q", _ROOM)
    count = TAPE.tensors_of_row(TAPE.address, slot, id(values), words.buffer_info()[0], MOST_TAKEN)
    if count < 0:
        return None
    return [_new(Argument, (row, at.NOTHING, 0)) for row in words[: 2 * count : 2]], values, words[1 : 2 * count : 2]


def _elementwise(slot: int, opcode: int, wide: bool, g: Tensor, wanted: Any) -> list[tuple[Argument, Tensor]]:
    result: Tensor | None
    if wide:
        taken = _taken(slot)
        if taken is not None:
            arguments, values, whole = taken
            result = values.pop()
            return apply_partials(opcode, list(zip(arguments, values, strict=True)), result, g, wanted, whole)
        record = saved_record_of(slot)
        operands = [(argument, _in_dtype(_operand(argument), record.dtype)) for argument in record.arguments]
        result = make(object_at(record.result), TAPE.new_handle(slot)) if record.result else None
    else:
        operands, result = _plain_operands(slot), None
    if result is None and (not wide or not record.shape):
        result = make(float(TAPE.columns["value"][slot]), TAPE.new_handle(slot))
    return _fitted(apply_partials(opcode, operands, result, g, wanted))


def apply_partials(
    opcode: int,
    operands: Sequence[tuple[Argument, Tensor | None]],
    result: Tensor | None,
    g: Tensor,
    wanted: Any,
    whole: Sequence[int] = (0,) * MOST_OPERANDS,
) -> Contributions:
    """Contributions of an elementwise operation, given the values that its wanted partials use.

    Parameters
    ----------
    whole : sequence of int
        1 for operands that are known to have the shape of the result.
    """
    values = [t for _, t in operands]
    while len(values) < MOST_OPERANDS:
        values.append(None)
    x, y, w = values
    contributions = []
    for (argument, _), pull, is_whole in zip(operands, _pulls_of[opcode], whole, strict=False):
        if not wanted(argument):
            continue
        if pull is None:
            raise NotImplementedError(f"the derivative for '{RULES[opcode].name}' is not implemented")
        c = pull(g, x, y, w, result)
        contributions.append((argument, c if is_whole else sum_to(c, shape_of(argument.slot))))
    return contributions


def _stepped(step: Callable[..., Any], values: Sequence[Tensor | None], g: Tensor) -> Tensor:
    """A partial that is constant between its steps."""
    found = np.asarray(step(*[None if t is None else t._data for t in values]))
    dtype = np.float64 if type(g._data) is float else g._data.dtype
    return make(float(found) if not found.ndim and dtype == np.float64 else found.astype(dtype, copy=False), 0)


def _host(slot: int, payload: Payload, g: Tensor, wanted: Any) -> list[tuple[Argument, Tensor]]:
    """The cotangents of a vjp."""
    taken = _taken(slot)
    if taken is None:
        words = saved_words_of(slot)
        arguments = list(arguments_in(words[at.ARGUMENTS : at.ARGUMENTS + 2 * (words[at.NAME] >> 32)]))
        values, result = [_operand(argument) for argument in arguments], None
        if words[at.RESULT]:
            result = make(object_at(words[at.RESULT]), TAPE.new_handle(slot))
        elif words[at.DTYPE] == at.FLOAT64:  # and without dimensions: it stands in the row
            result = make(TAPE.columns["value"].item(slot), TAPE.new_handle(slot))
    else:
        arguments, values, _ = taken
        result = values.pop()
    inputs = arguments[: payload.inputs]
    needs = tuple([wanted(argument) for argument in inputs])
    cotangents = payload.op.vjp(g, payload.context(values, result, needs, TENSORS))
    return [(a, c) for a, wants, c in zip(inputs, needs, cotangents, strict=True) if wants and c is not None]


assert OPCODES["_alias"] == 0  # the engine writes aliases by number
