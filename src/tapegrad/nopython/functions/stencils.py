"""What `numba.stencil` made: its kernel is recorded at each place, on a view whose indices are relative to the place."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, ir, types
from numba.core.errors import ConstantInferenceError, TypingError
from numba.core.extending import intrinsic, models, register_model
from numba.stencils.stencil import StencilFunc

from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.twins.compiled_versions import check_values
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.variable import has_variables

__all__ = ["is_stencil", "stencil_call"]

_kernels: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


class Surroundings(types.Type):
    """The type of an array seen from one of its places."""

    def __init__(self, array: types.Array) -> None:
        self.array, self.dtype = array, array.dtype
        super().__init__(f"Surroundings({array})")


@register_model(Surroundings)
class SurroundingsModel(models.StructModel):
    """The array and the place."""

    def __init__(self, manager: Any, kind: Surroundings) -> None:
        super().__init__(manager, kind, [("array", kind.array), ("place", types.UniTuple(types.int64, kind.array.ndim))])


@intrinsic
def seen_from(typingctx: Any, array: Any, place: Any) -> Any:
    """An array seen from one of its places."""
    kind = Surroundings(array)

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        made = cgutils.create_struct_proxy(kind)(context, builder)
        made.array, made.place = args[0], context.cast(builder, args[1], place, types.UniTuple(types.int64, array.ndim))
        context.nrt.incref(builder, array, args[0])
        return made._getvalue()

    return kind(array, place), write


def _field(name: str) -> Any:
    @intrinsic
    def field(typingctx: Any, view: Any) -> Any:
        kind = view.array if name == "array" else types.UniTuple(types.int64, view.array.ndim)

        def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            value = getattr(cgutils.create_struct_proxy(view)(context, builder, args[0]), name)
            context.nrt.incref(builder, kind, value)
            return value

        return kind(view), write

    return field


array_of, place_of = _field("array"), _field("place")


@overload(operator.getitem)
def _item(view, index):
    if not isinstance(view, Surroundings):
        return None
    if isinstance(index, types.Integer) and view.array.ndim == 1:
        return lambda view, index: array_of(view)[place_of(view)[0] + index]
    if isinstance(index, types.BaseTuple) and all(isinstance(item, types.Integer) for item in index):
        parts = ", ".join(f"place[{k}] + index[{k}]" for k in range(len(index)))
        space = {"array_of": array_of, "place_of": place_of}
        exec(f"def impl(view, index):\n    place = place_of(view)\n    return array_of(view)[{parts}]", space)
        return space["impl"]
    raise TypingError(f"[tapegrad] a stencil whose kernel is indexed with {index} is not recorded; index it with integers")


def is_stencil(function: Any) -> bool:
    """Whether it was made by `numba.stencil`."""
    return isinstance(function, StencilFunc)


def stencil_call(function: Any, level: int) -> Callable[..., Any]:
    """A function of the tape and the arguments, and of an array for the result, that does the same and records."""
    if function not in _kernels:
        _kernels[function] = numba.njit(function.kernel_ir.func_id.func)
    kernel = _kernels[function]

    def call(tape, *args):
        raise NotImplementedError

    @overload(call)
    def define(tape, *args):
        kinds = tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, types.BaseTuple)) else args
        space: dict[str, Any] = {"function": function}
        if not any(map(has_variables, kinds)):
            count = len(function.kernel_ir.arg_names)
            items = [f"args[{k}]" if k < count else f"out=args[{k}]" for k in range(len(kinds))]
            exec(f"def impl(tape, *args):\n    return function({', '.join(items)})", space)
            return space["impl"]
        check_values(kernel.py_func, SimpleNamespace(type_annotation=function.kernel_ir))
        return _at_every_place(function, twin(kernel, level), tape, kinds)

    return call


def _at_every_place(function: Any, recording: Any, tape: Any, kinds: Any) -> Any:
    names, absolute = function.kernel_ir.arg_names, function.options.get("standard_indexing", ())
    given, kinds = kinds[len(names) :], kinds[: len(names)]
    relative = [k for k, kind in enumerate(kinds) if isinstance(kind, types.Array) and names[k] not in absolute]
    first = relative[0]
    count = kinds[first].ndim
    around = [Surroundings(kind) if k in relative else kind for k, kind in enumerate(kinds)]
    context = numba.core.registry.cpu_target.typing_context
    result = types.unliteral(types.Dispatcher(recording).get_call_type(context, (tape, *around), {}).return_type)
    space: dict[str, Any] = {"np": np, "recording": recording, "seen_from": seen_from, "result": result}
    space["border"] = function.options.get("cval", 0)
    place = "".join(f"i{axis}, " for axis in range(count))
    lines = ["def impl(tape, *args):", f"    shape = args[{first}].shape", "    out = np.full(shape, border, result)"]
    if given:
        if not has_variables(given[0]) and has_variables(result):
            raise TypingError(f"[tapegrad] a stencil of variables is written into {given[0]}; use the array that it returns")
        lines[2:] = [f"    out = args[{len(names)}]", *(["    out[...] = border"] if "cval" in function.options else [])]
    for k in relative[1:]:
        lines += [f"    if args[{k}].shape != shape:", "        raise ValueError('arrays of a stencil differ in shape')"]
    indent = "    "
    for axis, (low, high) in enumerate(_reach(function, count, {names[k] for k in relative})):
        lines.append(f"{indent}for i{axis} in range({max(0, -low)}, shape[{axis}] - {max(0, high)}):")
        indent += "    "
    items = [f"seen_from(args[{k}], ({place}))" if k in relative else f"args[{k}]" for k in range(len(kinds))]
    lines += [f"{indent}out[{place}] = recording(tape, {', '.join(items)})", "    return out"]
    exec(compile("\n".join(lines), "<tapegrad stencil>", "exec"), space)
    return space["impl"]


def _reach(function: Any, count: int, relative: set[str]) -> list[tuple[int, int]]:
    """How far the kernel looks along each axis, backwards and forwards."""
    given = function.options.get("neighborhood")
    if given is not None:
        return [(low, high) for low, high in given]
    found = [(0, 0)] * count
    for block in function.kernel_ir.blocks.values():
        for statement in block.find_insts(ir.Assign):
            value = statement.value
            if not isinstance(value, ir.Expr) or value.op not in ("getitem", "static_getitem") or value.value.name not in relative:
                continue
            try:
                index = value.index if value.op == "static_getitem" else function.kernel_ir.infer_constant(value.index)
            except ConstantInferenceError:
                raise TypingError("[tapegrad] an index of a stencil's kernel is not constant; give it a neighborhood") from None
            index = index if isinstance(index, tuple) else (index,)
            found = [(min(low, k), max(high, k)) for (low, high), k in zip(found, index, strict=True)]
    return found
