"""What `numba.vectorize` and `numba.guvectorize` made: calls record the Python text, element for element."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.errors import TypingError
from numba.core.extending import intrinsic
from numba.np.ufunc.dufunc import DUFunc
from numba.np.ufunc.gufunc import GUFunc

from tapegrad.nopython.functions.allocation import converted
from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.twins.compiled_versions import check_values
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.variable import Variable, has_variables, is_float, primal_type, variable_of

__all__ = ["is_compiled_ufunc", "ufunc_call"]

_kernels: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def is_compiled_ufunc(function: Any) -> bool:
    """Whether it was made by `numba.vectorize` or `numba.guvectorize`."""
    return isinstance(function, (DUFunc, GUFunc))


def ufunc_call(function: Any, level: int) -> Callable[..., Any]:
    """A function of the tape and the arguments that does the same and records."""
    if function not in _kernels:
        _kernels[function] = numba.njit(function._dispatcher.py_func, error_model="numpy")
    kernel = _kernels[function]
    count = kernel.py_func.__code__.co_argcount

    def call(tape, *args):
        raise NotImplementedError

    @overload(call)
    def define(tape, *args):
        kinds = tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, types.BaseTuple)) else args
        if not any(map(has_variables, kinds)):
            space = {"function": function}
            exec("def impl(tape, *args):\n    return function(*args)", space)
            return space["impl"]
        made = _elementwise if isinstance(function, DUFunc) else _generalized
        if len(kinds) not in ((count, count + 1) if isinstance(function, DUFunc) else (count,)):
            raise TypingError(f"[tapegrad] {function.__name__} takes {count} arguments, not {len(kinds)}")
        return made(function, twin(kernel, level), tape, list(map(types.unliteral, kinds)), count)

    return call


def _loop_of(function: Any, kinds: Sequence[types.Type]) -> Any:
    """The signature of the loop that Numba calls for arguments of some types; it is compiled if there is none."""
    context = numba.core.registry.cpu_target.typing_context
    plain = tuple(map(primal_type, kinds))
    context.resolve_function_type(context.resolve_value_type(function), plain, {})
    found, made = function.find_ewise_function(tuple(kind.dtype if isinstance(kind, types.Array) else kind for kind in plain))
    check_values(function._dispatcher.py_func, made)
    return found


@intrinsic
def as_kind(typingctx: Any, x: Any, kind: Any) -> Any:
    """A number of another type, with its row."""
    to = kind.dtype if isinstance(kind, types.NumberClass) else kind.instance_type
    to = variable_of(to) if isinstance(x, Variable) and is_float(to) else to

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return context.cast(builder, args[0], x, to)

    return to(x, kind), write


def _compiled(name: str, lines: list[str], space: dict[str, Any]) -> Callable[..., Any]:
    exec(compile("\n".join(lines), f"<tapegrad {name}>", "exec"), space)
    made: Callable[..., Any] = space["impl"]
    return made


def _elementwise(function: Any, recording: Any, tape: Any, kinds: list[Any], count: int) -> Any:
    loop = _loop_of(function, kinds[:count])
    context = numba.core.registry.cpu_target.typing_context
    items = [kind.dtype if isinstance(kind, types.Array) else kind for kind in kinds[:count]]
    given = [
        variable_of(to) if isinstance(item, Variable) and is_float(to) else to for item, to in zip(items, loop.args, strict=True)
    ]
    result = types.Dispatcher(recording).get_call_type(context, (tape, *given), {}).return_type
    result = variable_of(loop.return_type) if has_variables(result) and is_float(loop.return_type) else loop.return_type
    space: dict[str, Any] = {"np": np, "recording": recording, "as_kind": as_kind, "result": result}
    space |= {f"kind{k}": kind for k, kind in enumerate(loop.args)}
    arrays = [k for k in range(count) if isinstance(kinds[k], types.Array)]
    values = [f"as_kind(a{k}[place], kind{k})" if k in arrays else f"as_kind(args[{k}], kind{k})" for k in range(count)]
    value = f"as_kind(recording(tape, {', '.join(values)}), result)"
    lines = ["def impl(tape, *args):"]
    if not arrays:
        return _compiled(function.__name__, [*lines, f"    return {value}"], space)
    lines.append(f"    shape = np.broadcast_shapes({', '.join(f'args[{k}].shape' for k in arrays)})")
    lines += [f"    a{k} = np.broadcast_to(args[{k}], shape)" for k in arrays]
    lines.append("    out = np.empty(shape, result)")
    if len(kinds) > count:
        lines += [f"    if args[{count}].shape != shape:", "        raise ValueError('unable to broadcast to the output array')"]
    lines += ["    for place in np.ndindex(shape):", f"        out[place] = {value}"]
    if len(kinds) > count:
        lines += [f"    args[{count}][...] = out", f"    return args[{count}]"]
    else:
        lines.append("    return out")
    return _compiled(function.__name__, lines, space)


def _generalized(function: Any, recording: Any, tape: Any, kinds: list[Any], count: int) -> Any:
    loop = _loop_of(function, kinds)
    ndims_in, ndims_out = function.expected_ndims()
    cores = [*ndims_in, *ndims_out]
    outer = [
        getattr(kind, "ndim", 0) - core if isinstance(kind, types.Array) else 0 for kind, core in zip(kinds, cores, strict=True)
    ]
    space: dict[str, Any] = {"np": np, "recording": recording, "as_kind": as_kind, "converted": converted}
    lines, items = ["def impl(tape, *args):"], []
    shapes = [f"args[{k}].shape[:{n}]" for k, n in enumerate(outer) if n]
    lines.append(f"    shape = np.broadcast_shapes({', '.join(shapes)})" if shapes else "    shape = ()")
    for k, (kind, core, to) in enumerate(zip(kinds, cores, loop.args, strict=True)):
        declared = to.dtype if isinstance(to, types.Array) else to
        is_array, is_output = isinstance(kind, types.Array), k >= len(ndims_in)
        item = kind.dtype if is_array else kind
        if is_output:
            if not is_array or primal_type(item) != declared:
                raise TypingError(f"[tapegrad] {function.__name__} writes {declared} into {kind}; give it an array of {declared}")
            if outer[k]:
                lines += [
                    f"    if args[{k}].shape[:{outer[k]}] != shape:",
                    "        raise ValueError('an output has another shape')",
                ]
            lines.append(f"    a{k} = np.expand_dims(args[{k}], -1)" if core == 0 else f"    a{k} = args[{k}]")
            items.append(f"a{k}[place]" if outer[k] else f"a{k}")
            continue
        space[f"kind{k}"] = variable_of(declared) if isinstance(item, Variable) else declared
        if not is_array:
            text = f"as_kind(args[{k}], kind{k})"
        else:
            text = f"args[{k}]"
            if item != space[f"kind{k}"]:
                text = f"converted({text}, kind{k})" if isinstance(item, Variable) else f"{text}.astype(kind{k})"
            if any(outer):
                lines.append(f"    a{k} = np.broadcast_to({text}, shape + args[{k}].shape[{outer[k]}:])")
                text = f"a{k}[place]"
        items.append(f"np.full(1, {text})" if core == 0 and isinstance(to, types.Array) else text)
    if any(outer):
        lines.append("    for place in np.ndindex(shape):")
    lines.append(f"    {'    ' if any(outer) else ''}recording(tape, {', '.join(items)})")
    return _compiled(function.__name__, lines, space)
