"""Rows of a decomposition's results, by a program that a kernel of the engine's library runs."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic

from tapegrad.nopython.functions.tangent_programs import Part, Rows
from tapegrad.nopython.tape import matrix_programs
from tapegrad.nopython.tape.array_rows import Elements, of_variables
from tapegrad.nopython.tape.matrix_programs import DONE, FRAME_WORDS, MATRIX_WORDS, MEMORY, OPERAND_WORDS, Frame
from tapegrad.nopython.tape.row_instructions import (
    OF_PAIRS,
    OF_TRIPLETS,
    call_python,
    excinfo_of,
    growth,
    header_of,
    leave,
    own_function,
    word_at,
)
from tapegrad.nopython.types.curved_tape import CurvedTape, DirectedTape, StraightTape
from tapegrad.nopython.types.variable import variable
from tapegrad.nopython.types.variable_arrays import copied, copy_in_order, empty

__all__ = ["rows_by"]

I8, I32, I64, WORD = ir.IntType(8), ir.IntType(32), ir.IntType(64), 8
AT = {name: place // WORD for name, (place, _, _) in Frame.places.items()}
KERNELS = matrix_programs.PLAIN, matrix_programs.DIRECTED, matrix_programs.CURVED

# Compiled code that is kept on disk asks for these by name: the addresses of the kernels, and what finds one.
ADDRESSES = np.zeros(len(KERNELS), np.int64)
SYMBOL, FINDER = "tapegrad_matrix_kernels", "tapegrad_find_matrix_kernel"


def _find(itself: Any, which: int) -> None:
    ADDRESSES[which] = KERNELS[which].get()


llvm.add_symbol(SYMBOL, ADDRESSES.ctypes.data)
llvm.add_symbol(FINDER, id(_find))


def rows_by(rows: Rows) -> Any:
    """What makes the results of a decomposition, as arrays of variables, of its operand and the arrays that are given with it."""

    @intrinsic
    def made(typingctx: Any, tape: Any, a: Any, arrays: Any) -> Any:
        kinds = [of_variables(arrays.types[result.numbers - 1]) for result in rows.results]

        def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            calling = _Call(context, builder, rows, sig.args, args, kinds)
            results = calling.run([array.array._getvalue() for array in calling.results])
            return context.make_tuple(builder, sig.return_type, results)

        return types.Tuple(kinds)(tape, a, arrays), write

    return made


class _Call:
    """The code of one call."""

    def __init__(self, context: Any, builder: Any, rows: Rows, kinds: Any, args: Any, made: list[types.Array]) -> None:
        self.context, self.builder = context, builder
        self.tape_kind, self.tape = kinds[0], args[0]
        self._copies: list[tuple[types.Type, Any]] = []
        items = cgutils.unpack_tuple(builder, args[2], len(kinds[2].types))
        self.arrays = [self._of_variables(kinds[1], args[1]), *map(self._of_numbers, kinds[2].types, items)]
        self.shapes = [tuple(array.shape) for array in self.arrays]
        self.results = [self._result(kind, self.shapes[result.numbers]) for kind, result in zip(made, rows.results, strict=True)]
        straight = isinstance(self.tape_kind, StraightTape)
        curved = isinstance(self.tape_kind, CurvedTape) and not straight
        self.which = 1 if isinstance(self.tape_kind, DirectedTape) else 2 if curved else 0
        self.program = rows.program(curved, straight)

    def _of_variables(self, kind: types.Array, array: Any) -> Elements:
        """An operand, which may be constant."""
        if not isinstance(kind.dtype, types.Float):
            return Elements(self.context, self.builder, kind, array)
        return self._copy(types.Array(variable, kind.ndim, "C"), lambda made: copied(self.context, self.builder, kind, array, made))

    def _of_numbers(self, kind: types.Array, array: Any) -> Elements:
        """Numbers in double precision."""
        if kind.dtype == types.float64:
            return Elements(self.context, self.builder, kind, array)
        made = types.Array(types.float64, kind.ndim, "C")
        return self._copy(made, lambda made: copy_in_order(self.context, self.builder, kind, made, array)._getvalue())

    def _copy(self, kind: types.Array, write: Any) -> Elements:
        value = write(kind)
        self._copies.append((kind, value))
        return Elements(self.context, self.builder, kind, value)

    def _result(self, kind: types.Array, shape: tuple[Any, ...]) -> Elements:
        return Elements(self.context, self.builder, kind, empty(self.context, self.builder, kind, shape)._getvalue())

    def run(self, results: list[Any]) -> list[Any]:
        """Call the kernel on a frame that is filled for it; the results."""
        builder, count = self.builder, len(self.program.operations)
        parts = self.program.given
        places = FRAME_WORDS, FRAME_WORDS + OPERAND_WORDS * len(parts)
        with builder.goto_entry_block():
            frame = builder.alloca(I64, places[1] + MATRIX_WORDS * count)
        words = ir.Constant(ir.ArrayType(I64, 8 * count), self.program.words())
        code = cgutils.global_constant(builder, "tapegrad_matrix_program", words)
        values = {
            "header": self.tape, "program": builder.ptrtoint(code, I64), "count": I64(count), "next": I64(0), "memory": I64(0),
            "given": builder.ptrtoint(word_at(builder, frame, places[0]), I64),
            "matrices": builder.ptrtoint(word_at(builder, frame, places[1]), I64),
        }  # fmt: skip
        for name, value in values.items():
            builder.store(value, word_at(builder, frame, AT[name]))
        for number, part in enumerate(parts):
            for k, value in enumerate(self._matrix(part)):
                builder.store(value, word_at(builder, frame, places[0] + OPERAND_WORDS * number + k))
        function = _runner(self.context, builder.module, self.which)
        status = builder.call(function, [I8.as_pointer()(None), excinfo_of(self.context, builder), frame])
        for kind, value in self._copies:
            self.context.nrt.decref(builder, kind, value)
        with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, status)):
            leave(builder, status)
        return results

    def _matrix(self, part: Part) -> list[Any]:
        """Address, shape and steps of a part of an array."""
        builder = self.builder
        array = self.arrays[part.array] if part.array >= 0 else self.results[-1 - part.array]
        data = builder.ptrtoint(array.array.data, I64)
        shape, steps = list(array.shape), list(array.strides)
        if len(shape) == 1:
            shape, steps = [I64(1), *shape], [I64(0), *steps]
        if part.turned:
            shape, steps = shape[::-1], steps[::-1]
        first = None if part.first is None else part.first(self.shapes)
        end = shape[1] if part.end is None else part.end(self.shapes)
        if first is not None:
            data, end = builder.add(data, builder.mul(first, steps[1])), builder.sub(end, first)
        return [data, shape[0], end, *steps]


def _runner(context: Any, module: Any, which: int) -> Any:
    """A function that calls a kernel until it is done, and gives it what it asks for."""
    name = f"tapegrad_matrices_{which}"
    known = module.globals.get(name)
    if known is not None:
        return known
    builder = own_function(context, module, name, [I8, I64.as_pointer()])
    function = builder.function
    _, excinfo, frame = function.args
    addresses = context.get_c_value(builder, I64, SYMBOL)
    place = builder.gep(addresses, [I64(which)])
    with cgutils.if_unlikely(builder, cgutils.is_null(builder, builder.load(place))):
        finder = builder.ptrtoint(context.get_c_value(builder, I8, FINDER), I64)
        call_python(context, builder, finder, finder, I64(which))
    kernel = builder.inttoptr(builder.load(place), ir.FunctionType(I64, [I64]).as_pointer())
    again = function.append_basic_block("again")
    builder.branch(again)
    builder.position_at_end(again)
    status = builder.call(kernel, [builder.ptrtoint(frame, I64)])
    memory = word_at(builder, frame, AT["memory"])

    def free() -> None:
        context.nrt.free(builder, builder.inttoptr(builder.load(memory), I8.as_pointer()))

    with builder.if_then(builder.icmp_signed("==", status, I64(DONE))):
        free()
        builder.ret(I32(0))
    with builder.if_then(builder.icmp_signed("==", status, I64(MEMORY))):
        found = context.nrt.allocate(builder, builder.load(word_at(builder, frame, AT["bytes"])))
        with cgutils.if_unlikely(builder, cgutils.is_null(builder, found)):
            context.call_conv.return_user_exc(builder, MemoryError, ("there is no memory for the derivative of a decomposition",))
        builder.store(builder.ptrtoint(found, I64), memory)
        builder.branch(again)
    header = header_of(builder, builder.load(word_at(builder, frame, AT["header"])))
    for words, wanted in ((OF_PAIRS, "pairs"), (OF_TRIPLETS, "triplets"))[: 2 if which == 2 else 1]:
        used, limit, _ = words
        count = builder.load(word_at(builder, frame, AT[wanted]))
        end = builder.add(builder.load(word_at(builder, header, used)), count)
        with builder.if_then(builder.icmp_signed(">", end, builder.load(word_at(builder, header, limit)))):
            failed = builder.call(growth(context, module, words), [I8.as_pointer()(None), excinfo, header, count])
            with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, failed)):
                free()
                builder.ret(failed)
    builder.branch(again)
    return function
