"""Operations in place: the tensor object stays, its row changes, its version grows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave, quiet
from tapegrad.arrays.memory_pool import SMALL, pooled_copy
from tapegrad.arrays.sizes import expanded, stretches_to
from tapegrad.engine.layout import NOT_AT_ALL, UNMOVED
from tapegrad.errors import ShapeError
from tapegrad.kernels.opcodes import OPCODES, USES
from tapegrad.ops.in_place_copies import is_written_directly, put_into
from tapegrad.ops.index_keys import parse
from tapegrad.ops.indexing import check_same_dtype, index_put, located, read
from tapegrad.ops.overwriting import check_writable, fit, note_write, overwrite, take_row
from tapegrad.ops.shaping import reshape
from tapegrad.recording.apply_rule import apply_rule, check_broadcast, check_derivatives, record, result_dtype
from tapegrad.recording.casting import cast
from tapegrad.recording.parameter_names import bound, names_of
from tapegrad.recording.primal_values import READS_AGAIN, forward, writers
from tapegrad.recording.strided_maps import sum_to
from tapegrad.recording.structural import Context, Structural, apply, check_recordable
from tapegrad.rules.table import RULES
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.nested_sequences import array_from_nested
from tapegrad.tensors.saved_value_packing import current_packer
from tapegrad.tensors.tensor import FLOATS, Tensor, array_of, as_operand, is_recording, make
from tapegrad.tensors.tracers import current_tracer, writes_operands

__all__ = ["COPY", "FILL", "FILL_TENSOR", "ZERO", "copy_", "fill_", "in_place", "setitem", "written_by", "zero_"]

Array = np.ndarray[Any, Any]


@cache
def in_place(opcode: int) -> Callable[..., Tensor]:
    """In-place form of an elementwise rule."""
    name, wanted = RULES[opcode].name, len(RULES[opcode].args) - 1
    names = names_of(name)[1:]

    @writes_operands
    def function(t: Tensor, *others: Any, **named: Any) -> Tensor:
        if named:
            others = bound(f"{name}_", names, others, named)
        if len(others) != wanted:  # NumPy would take one more for the place of the result
            raise TypeError(f"{name}_() takes {wanted} operand(s) besides the tensor, but got {len(others)}")
        operands = (t, *[other if type(other) is Tensor else as_operand(other) for other in others])
        if TAPE.tracers and current_tracer() is not None:
            return written_by(partial(apply_rule, opcode), *operands)
        if _is_written_at_once(opcode, operands):
            return _written_at_once(opcode, operands)
        z = _common_value(opcode, operands)
        if z is None:
            check_broadcast(*(o._data for o in operands))
            dtype = result_dtype(opcode, (t, *others))
            z = fit(t, _value(opcode, operands), dtype)
        tracked = is_recording() and any(o._row for o in operands)
        check_writable(t, tracked)
        if not tracked:
            return overwrite(t, z, None)
        check_derivatives(opcode, operands)
        if _dtype(t) not in FLOATS:
            raise RuntimeError(f"{name}_: cannot record a result of dtype {_dtype(t)}; only float32 and float64 are tracked")
        if TAPE.packers and current_packer() is not None:
            # What is packed must be there before the memory is written.
            made = cast(apply_rule(opcode, *operands), z.dtype if type(z) is not float else dtypes.float64)
            return overwrite(t, z, lambda: take_row(made))
        # The derivative may need the value that is overwritten, so it is kept apart, as a copy or as a row of its own.
        if type(t._data) is float:
            data = tuple(o._data if type(o._data) is float else float(o._data.item()) for o in operands)
            if t._row:
                operands = (make(t._data, record(OPCODES["_alias"], (t,), (t._data,), t._data)), *operands[1:])
            return overwrite(t, z, lambda: record(opcode, operands, data, z))
        copied = t._data.copy() if _reads_first(opcode, operands) else t._data
        return overwrite(t, z, lambda: record(opcode, operands, (copied, *(plain(o) for o in operands[1:])), t._data, 1))

    return function


def _is_written_at_once(opcode: int, operands: tuple[Tensor, ...]) -> bool:
    """Whether one function can put the value into the target: a large array, beside numbers and arrays of its shape.

    Others that lie across the target's memory are left out: NumPy's loops have other bits there.
    """
    target = operands[0]._data
    if type(target) is float or target.size <= SMALL or target.dtype is not dtypes.float64:
        return False
    if TAPE.packers and current_packer() is not None:
        return False
    for o in operands[1:]:
        a = o._data
        if type(a) is float:
            continue
        if a.dtype is not dtypes.float64 or a.shape != target.shape or np.may_share_memory(a, target):
            return False
    writer = writers[opcode]
    return writer is not None and (isinstance(writer, np.ufunc) or target.flags.c_contiguous)


def _written_at_once(opcode: int, operands: tuple[Tensor, ...]) -> Tensor:
    """Such a value, without a copy of it; what the derivative needs of the target is kept apart before."""
    t, *others = operands
    tracked = is_recording() and any(o._row for o in operands)
    check_writable(t, tracked)
    if tracked:
        check_derivatives(opcode, operands)
    data, writer = [o._data for o in operands], writers[opcode]
    assert writer is not None
    if (tracked and _reads_first(opcode, operands)) or writer in READS_AGAIN:
        data[0] = pooled_copy(data[0])

    def write(target: Array) -> None:
        token = enter(IGNORING)
        try:
            writer(*data, out=target)
        finally:
            leave(token)

    row_of = (lambda: record(opcode, operands, (data[0], *(plain(o) for o in others)), t._data, 1)) if tracked else None
    return overwrite(t, write, row_of)


def _common_value(opcode: int, operands: tuple[Tensor, ...]) -> Any:
    """The new value if the target is an array of float64, and the others are such arrays or numbers that fit to it; else None."""
    data = [o._data for o in operands]
    for a in data:
        if type(a) is not float and (a.dtype is not dtypes.float64 or not a.ndim):
            return None
    target = data[0]
    if type(target) is float:
        return None
    token = enter(IGNORING)
    try:
        z = forward[opcode](*data)
    except ValueError:  # shapes that do not broadcast
        return None
    finally:
        leave(token)
    return z if type(z) is np.ndarray and z.dtype is dtypes.float64 and z.shape == target.shape else None


def _value(opcode: int, operands: tuple[Tensor, ...]) -> Any:
    """The new value, before it is fitted to the target."""
    data = [o._data for o in operands]
    if type(data[0]) is not float and all(type(a) is float or (a.ndim and a.dtype == dtypes.float64) for a in data):
        with quiet():
            return np.asarray(forward[opcode](*data))
    return apply_rule(opcode, *(make(a, 0) for a in data))._data


def written_by(function: Callable[..., Tensor], t: Tensor, *others: Any, **options: Any) -> Tensor:
    """Write into `t` what a function gives for it: the in-place form of an operation that is no rule.

    Parameters
    ----------
    function : callable
        Gives a tensor with memory of its own.
    *others, **options
        Its further arguments.
    """
    before = t
    if is_recording() and any(isinstance(o, Tensor) and o._row for o in (t, *others)):
        # The derivative may need the value that is overwritten, so the function is given another tensor with it.
        kept = t._data if type(t._data) is float else t._data.copy()
        if TAPE.tracers and (tracer := current_tracer()) is not None:
            before = _aliased(t, kept)
            tracer.rule(OPCODES["_alias"], (t,), (t._data,), before)
        elif type(kept) is float:
            before = _aliased(t, kept)  # numbers stand in rows, and whether they are overwritten is known of handles
        else:
            before = make(kept, t._row)
    try:
        result = function(*(before if o is t else o for o in (t, *others)), **options)
        if result is before is not t:
            result = _aliased(t, before._data)
    finally:
        if before._row == t._row and before is not t:
            before._row = 0  # the handle is the target's
    if t._row and not result._row and is_recording():
        return copy_(t, result)  # such as a comparison: what was there gets the gradient zero
    z = fit(t, result._data, _dtype(result))
    if result._row and _dtype(result) != _dtype(t):
        result = cast(result, _dtype(t))
    check_writable(t, bool(result._row))
    return overwrite(t, z, (lambda: take_row(result)) if result._row else None)


def _aliased(t: Tensor, value: Any) -> Tensor:
    """A tensor with a value and a row of its own behind that of another one."""
    return make(value, record(OPCODES["_alias"], (t,), (t._data,), value) if t._row else 0)


def _reads_first(opcode: int, operands: tuple[Tensor, ...]) -> bool:
    """Whether a wanted partial uses the first operand's value."""
    return any(o._row and uses & 1 for o, uses in zip(operands, USES[opcode], strict=True))


def plain(t: Tensor) -> Any:
    """An operand's data, a float if it is an untracked number."""
    data = t._data
    if type(data) is float or (t._row and data.dtype != dtypes.float64):
        return data
    if data.ndim:
        return data.astype(dtypes.float32) if data.dtype == dtypes.float16 else data
    return float(data.item())


def _nothing(ctx: Context) -> Tensor | None:
    """Cotangent of what was overwritten."""
    if not ctx.needs[0]:
        return None
    return make(np.zeros(ctx.shapes[0], ctx.dtypes[0]), 0)


def _many_overwritten(many: Array, context: Context, shape: tuple[int, ...]) -> Array:
    return np.zeros((*shape, many.shape[-1]))


def _many_spread(many: Array, context: Context, shape: tuple[int, ...]) -> Array:
    ahead = (1,) * (len(shape) + 1 - many.ndim)
    return np.broadcast_to(many.reshape(ahead + many.shape), (*shape, many.shape[-1]))


_SPREAD = (_many_overwritten, _many_spread)
_MOVES = NOT_AT_ALL, UNMOVED
ZERO = Structural("ZeroBackward0", ((),), lambda g, ctx: (_nothing(ctx),), linear=_SPREAD[:1], moves=_MOVES[:1])
FILL = Structural("FillBackward2", ((),), lambda g, ctx: (_nothing(ctx),), linear=_SPREAD[:1], moves=_MOVES[:1])
FILL_TENSOR = Structural("FillBackward3", ((), ()), lambda g, ctx: (_nothing(ctx), sum_to(g, ())), linear=_SPREAD, moves=_MOVES)
COPY = Structural(
    "CopyBackwards", ((), ()), lambda g, ctx: (_nothing(ctx), sum_to(g, ctx.shapes[1])), linear=_SPREAD, takes_stretched=True,
    moves=_MOVES,
)  # fmt: skip


def _assign(t: Tensor, op: Structural, sources: tuple[Tensor, ...], values: np.ndarray, repeats: bool = False) -> Tensor:
    """Write `values`, broadcast, into `t`; the gradient of what was there is cut."""
    shape = () if type(t._data) is float else t._data.shape
    own = dtypes.float64 if type(t._data) is float else t._data.dtype
    if not TAPE.tracers and type(t._data) is not float and t._data.size > SMALL and stretches_to(values.shape, shape):
        return _assigned(t, op, sources, values, repeats)
    try:
        with quiet():
            if values.ndim > len(shape):
                raise ValueError  # an assignment would drop dimensions of size one
            z = np.empty(shape, own)
            z[...] = values
    except ValueError:
        check_broadcast(t._data, values)
        whole = list(np.broadcast_shapes(shape, values.shape))
        raise ShapeError(f"output with shape {list(shape)} doesn't match the broadcast shape {whole}") from None
    tracked = is_recording() and any(o._row for o in (t, *sources))
    check_writable(t, tracked, repeats and not tracked)
    if TAPE.tracers and (tracer := current_tracer()) is not None:
        tracer.spread(sources[0] if sources else values, z)
    if not tracked:
        return overwrite(t, z, None)
    check_recordable(op.name, own)
    return overwrite(t, z, lambda: take_row(apply(op, (t, *sources), z)))


def _assigned(t: Tensor, op: Structural, sources: tuple[Tensor, ...], values: Array, repeats: bool) -> Tensor:
    """The same for a large target, at once into its memory."""
    tracked = is_recording() and any(o._row for o in (t, *sources))
    check_writable(t, tracked, repeats and not tracked)
    if tracked:
        check_recordable(op.name, t._data.dtype)

    def write(target: Array) -> None:
        with quiet():
            target[...] = values

    return overwrite(t, write, (lambda: take_row(apply(op, (t, *sources), t._data))) if tracked else None)


@writes_operands
def zero_(t: Tensor) -> Tensor:
    """Set every element to zero, in place; returns the tensor."""
    return _assign(t, ZERO, (), np.zeros(()), repeats=True)


@writes_operands
def fill_(t: Tensor, value: Any) -> Tensor:
    """Set every element to a number or 0-d tensor, in place; returns the tensor.

    Raises
    ------
    RuntimeError
        If `value` has dimensions.
    """
    source = _source(t, value)
    if np.ndim(source._data):
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {np.ndim(source._data)} dimensions.")
    if is_number(value):
        return _assign(t, FILL, (), array_of(source), repeats=True)
    return _assign(t, FILL_TENSOR, (source,), array_of(source))


@writes_operands
def copy_(t: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
    """Copy the elements of `other`, broadcast and cast, into the tensor; returns it. `non_blocking` is of no effect."""
    given = as_operand(other)
    return _assign(t, COPY, (given,), array_of(given))


@writes_operands
def setitem(t: Tensor, key: Any, value: Any) -> None:
    """``t[key] = value``, recorded; the gradient of what was there is cut, the value's is summed to its shape."""
    parsed = parse(key, () if type(t._data) is float else t._data.shape)
    source = _source(t, value)
    tracked = is_recording() and (t._row != 0 or source._row != 0)
    if parsed.advanced is None:
        target = read(t, parsed.basic, parsed.node, None)
        stripped = _stripped(source, target)
        if _is_that_part(stripped, target):
            check_writable(target, tracked)
            note_write(target)
            return
        try:
            copy_(target, stripped)
        except ShapeError:
            expanded(np.shape(stripped._data), np.shape(target._data))
            raise
        return
    check_writable(t, tracked)
    if not dtypes.can_cast(_dtype(source), _dtype(t)) and _dtype(t).kind != "b" and not is_number(value):
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {dtypes.type_name(_dtype(t))} for the destination "
            f"and {dtypes.type_name(_dtype(source))} for the source."
        )
    if parsed.basic is None and is_written_directly(t):
        check_same_dtype(t._data, array_of(source))
        put_into(t, located(parsed.advanced, t._data.shape), source)
        return
    result = index_put(t, key, source)
    overwrite(t, result._data, (lambda: take_row(result)) if tracked else None)


def _is_that_part(source: Tensor, target: Tensor) -> bool:
    """Whether a value is the very part that it is assigned to, as after ``t[key] *= 2``; its row is that of the part then."""
    a, b, own, other = source._data, target._data, source._meta, target._meta
    if type(a) is float or type(b) is float or own is None or other is None or TAPE.tracers:
        return False
    if own.base is None or own.base is not other.base or own.made_without_grad or other.made_without_grad:
        return False
    if (source._row == 0) != (target._row == 0) or a.dtype is not b.dtype or a.shape != b.shape or a.strides != b.strides:
        return False
    return bool(a.__array_interface__["data"][0] == b.__array_interface__["data"][0])


def _source(t: Tensor, value: Any) -> Tensor:
    """What is assigned to `t`; a number that an integer dtype cannot hold is refused, not wrapped round."""
    if is_number(value) and _dtype(t).kind in "iu":
        return make(array_from_nested(value, _dtype(t)), 0)
    return as_operand(value)


def is_number(value: Any) -> bool:
    """Whether a value is a plain number, which takes the dtype of what it is assigned to."""
    return issubclass(type(value), (bool, int, float))


def _dtype(t: Tensor) -> np.dtype[Any]:
    return dtypes.float64 if type(t._data) is float else t._data.dtype


def _stripped(source: Tensor, target: Tensor) -> Tensor:
    """Without leading axes of length 1 beyond the target's rank, as assignment allows them."""
    rank = 0 if type(target._data) is float else target._data.ndim
    shape = () if type(source._data) is float else source._data.shape
    extra = len(shape) - rank
    if extra > 0 and all(n == 1 for n in shape[:extra]):
        return reshape(source, shape[extra:])
    return source
