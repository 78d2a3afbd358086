"""Elementwise operations on operands of any kind: promotion, value, row.

The operators in `tapegrad.ops.elementwise` take short cuts for the common cases; this is the way that is always right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave, quiet
from tapegrad.arrays.sizes import check_count
from tapegrad.engine.layout import UNSUPPORTED
from tapegrad.errors import ShapeError
from tapegrad.kernels.opcodes import OPCODES, USES, is_quick
from tapegrad.recording.casting import cast
from tapegrad.recording.primal_values import BY_LOOP, float_at_the_edge, forward, number_forward, way_of
from tapegrad.rules.table import COMMON, RULES
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.inference_tensors import InferenceTensor, check_saved
from tapegrad.tensors.operator_dispatch import usual_entry
from tapegrad.tensors.saved_value_packing import current_packer
from tapegrad.tensors.tensor import FLOATS, KINDS, Tensor, as_operand, is_recording, make, retry
from tapegrad.tensors.tracers import Tracer, of_thread

__all__ = ["DIVISIONS", "PROMOTION", "apply_rule", "check_broadcast", "check_derivatives", "record", "result_dtype", "write_rule"]

_ADDRESS = TAPE.address
DIVISIONS = frozenset({OPCODES["remainder"], OPCODES["fmod"]})  # of integers, which have none by zero
# By classes of operands whose dtypes are promoted by other rules than PyTorch's: gives operands that have been, or the result.
PROMOTION: dict[type, Callable[[int, tuple[Any, ...]], Any]] = {}


def check_broadcast(*operands: Any) -> None:
    """Raise PyTorch's error if shapes do not broadcast.

    Raises
    ------
    ShapeError
        Names the sizes and the dimension.
    """
    shape: tuple[int, ...] = ()
    for operand in operands:
        other = () if type(operand) is float else np.shape(operand)
        if other == shape or not other:
            continue
        if not shape:
            shape = other
            continue
        rank = max(len(shape), len(other))
        a, b = (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(other)) + other
        for d in range(rank - 1, -1, -1):
            if a[d] != b[d] and a[d] != 1 and b[d] != 1:
                raise ShapeError(
                    f"The size of tensor a ({a[d]}) must match the size of tensor b ({b[d]}) at non-singleton dimension {d}: "
                    f"shapes {list(shape)} and {list(other)} do not broadcast. Reshape or unsqueeze one of them."
                )
        shape = tuple(n if m == 1 else m for m, n in zip(a, b, strict=True))
    check_count(shape, "broadcasting")


def _operand_data(t: Tensor, dtype: np.dtype[Any]) -> Any:
    """Data of an operand for a computation in `dtype`: a float for 0-d (so that it does not widen), else an array."""
    a = t._data
    if type(a) is float:
        return a
    if a.ndim == 0 and (a.dtype == dtypes.float64 or (not t._row and dtype.kind == "f")):
        return float(a.item())
    keeps = a.dtype == dtype or (a.dtype in FLOATS and (a.ndim or t._row))
    if keeps:
        return a
    with quiet():
        return a.astype(dtype)


def result_dtype(opcode: int, operands: tuple[Any, ...]) -> np.dtype[Any]:
    """Dtype of an elementwise result by PyTorch's promotion rules."""
    name = RULES[opcode].name
    counted = operands[1:] if name == "where" else operands
    dtype = dtypes.result_type(*counted)
    if dtype.kind != "f" and not RULES[opcode].keeps_integers:
        return dtypes.get_default_dtype()
    if dtype.kind == "b" and name == "square":  # a power, not a conjunction
        return dtypes.int64
    return dtype


def apply_rule(opcode: int, *values: Any, way: int | None = None) -> Tensor:
    """Compute and record an elementwise rule for operands of any kind.

    Parameters
    ----------
    opcode : int
        Number of the rule.
    *values : Tensor, number or array
        Operands.
    way : int, optional
        How a value on numbers is computed. By default as operands of their classes have it.

    Raises
    ------
    ShapeError
        If shapes do not broadcast.
    TypeError
        If an operand is neither tensor, number nor array.
    """
    if TAPE.tracers and (tracer := of_thread.tracer) is not None:
        for value in values:
            kind = type(value)
            if kind not in KINDS and kind is not float and kind is not int:
                break
        else:  # no code of the user's can be called
            return tracer.unwatched(_followed_rule, opcode, values, tracer, way)
    return _apply_rule(opcode, values, way)


def _followed_rule(opcode: int, values: Any, tracer: Tracer, way: int | None) -> Tensor:
    """The same in a recording of a program: on float64, with fewer steps, which loops have by the thousand."""
    tracked = of_numpy = False
    shapes = set()
    for value in values:
        kind: Any = type(value)
        if kind is float or (kind is int and not dtypes.is_long(value)):
            continue
        if kind not in KINDS:
            return _apply_rule(opcode, values, way)
        a = value._data
        if type(a) is not float:
            if a.dtype is not dtypes.float64 or not a.ndim:
                return _apply_rule(opcode, values, way)
            shapes.add(a.shape)
        tracked |= value._row != 0
        of_numpy |= kind in PROMOTION
    if not tracked or TAPE.packers or not is_recording():
        return _apply_rule(opcode, values, way)
    way = way_of(opcode, of_numpy) if way is None else way
    operands = tracer.operands(opcode, tuple([value if type(value) in KINDS else as_operand(value) for value in values]))
    data = tuple([t._data for t in operands])
    if shapes:
        if len(shapes) > 1:
            check_broadcast(*data)
        z = _value_on_arrays(opcode, of_numpy and way != BY_LOOP, data, dtypes.float64)
    else:
        z = _value_on_numbers(opcode, way, data)
    result = make(z, record(opcode, operands, data, z))
    tracer.rule(opcode, operands, data, result, way)
    return result


def _value_on_numbers(opcode: int, way: int, data: tuple[float, ...]) -> float:
    try:
        return number_forward[way, opcode](*data)
    except (ArithmeticError, ValueError):
        return float_at_the_edge(opcode, *data)


def _value_on_arrays(opcode: int, by_operator: bool, data: tuple[Any, ...], dtype: np.dtype[Any]) -> Any:
    token = enter(IGNORING)
    try:
        arrays = [np.asarray(a, dtype) if type(a) is float or (a.dtype != dtype and a.dtype.kind != "f") else a for a in data]
        z = np.asarray(_on_arrays(opcode, by_operator)(*arrays))
        return z if z.dtype == dtype else z.astype(dtype)
    except ValueError as error:
        raise RuntimeError(str(error)) from None
    finally:
        leave(token)


def _apply_rule(opcode: int, values: tuple[Any, ...], way: int | None) -> Tensor:
    of_numpy = False
    for value in values:
        if type(value) in PROMOTION:
            of_numpy = True
            found = PROMOTION[type(value)](opcode, values)
            if type(found) is not tuple:
                return found
            values = found
            break
    way = way_of(opcode, of_numpy) if way is None else way
    # Lists and no generators: recordings of programs are told of each step of these.
    operands = tuple([value if isinstance(value, Tensor) else as_operand(value) for value in values])
    if TAPE.tracers and (tracer := of_thread.tracer) is not None:
        operands = tracer.operands(opcode, operands)
    dtype = result_dtype(
        opcode, tuple([v if issubclass(type(v), (bool, int, float)) else t for v, t in zip(values, operands, strict=True)])
    )
    data = tuple([_operand_data(t, dtype) for t in operands])
    # A tracked float32 scalar has a float32 adjoint, which plain rows do not know.
    of_one_dtype = [not t._row or type(t._data) is float or t._data.dtype == dtype for t in operands]
    plain = dtype == dtypes.float64 and all(of_one_dtype)
    if plain:
        data = tuple([float(a) if type(a) is not float and a.ndim == 0 else a for a in data])
    z: Any
    kinds = [type(a) for a in data]
    if plain and kinds.count(float) == len(kinds):
        z = _value_on_numbers(opcode, way, data)
    else:
        check_broadcast(*data)
        if opcode in DIVISIONS and dtype.kind != "f" and not of_numpy and all(map(np.size, data)) and not np.all(data[1]):
            raise RuntimeError("ZeroDivisionError: remainder of an integer division by zero")
        z = _value_on_arrays(opcode, of_numpy and way != BY_LOOP, data, dtype)
    tracked = any(t._row for t in operands) and is_recording()
    numbers = [not isinstance(value, Tensor) for value in values] if TAPE.packers else None
    row = record(opcode, operands, data, z, 0, numbers) if tracked else 0
    result = make(z.item() if type(z) is not float and z.ndim == 0 and dtype == dtypes.float64 else z, row)
    if TAPE.tracers and (tracer := of_thread.tracer) is not None:
        tracer.rule(opcode, operands, data, result, way)
    return result


def _on_arrays(opcode: int, by_operator: bool) -> Callable[..., Any]:
    """A rule's value on arrays; of powers NumPy's operator, which numbers of single precision have otherwise than its ufunc."""
    function = forward[opcode]
    return _power if by_operator and function is np.power else function


def _power(x: Any, y: Any) -> Any:
    return x[()] ** y[()]


def check_derivatives(opcode: int, operands: tuple[Tensor, ...]) -> None:
    """Look for what `record` would refuse, before a value is written over another.

    Raises
    ------
    NotImplementedError
        If the operation has no derivative by an operand that is tracked.
    """
    for k, (t, text) in enumerate(zip(operands, RULES[opcode].partials, strict=True)):
        if text is None and t._row:
            raise _without_derivative(opcode, k)


def _without_derivative(opcode: int, k: int) -> NotImplementedError:
    name = RULES[opcode].name
    return NotImplementedError(f"the derivative for '{name}' is not implemented with respect to argument {k}; detach() it.")


def record(
    opcode: int,
    operands: tuple[Tensor, ...],
    data: tuple[Any, ...],
    z: Any,
    in_place: int = 0,
    numbers: Sequence[bool] | None = None,
) -> int:
    """Write the row of an elementwise operation whose value is known; its handle.

    Parameters
    ----------
    data : tuple
        What the operands are in the computation: floats or arrays.
    in_place : int
        1 if `z` overwrites the first operand.
    numbers : sequence of bool, optional
        Which operands are plain numbers. By default, untracked floats.
    """
    has_singles = False
    for k, (t, text) in enumerate(zip(operands, RULES[opcode].partials, strict=True)):
        if t._row:
            if text is None:
                raise _without_derivative(opcode, k)
            has_singles |= type(t._data) is not float and t._data.dtype != dtypes.float64
    if InferenceTensor in map(type, operands):
        _check_saved(opcode, operands)
    if has_singles and type(z) is float:
        # A tracked float32 scalar has a float32 adjoint, which rows of float64 scalars do not know.
        operands = tuple(
            cast(t, dtypes.float64) if t._row and type(t._data) is not float and t._data.dtype != dtypes.float64 else t
            for t in operands
        )
    if TAPE.packers and RULES[opcode].name != "_alias" and (packer := current_packer()) is not None:
        if numbers is None:
            numbers = [type(a) is float and not t._row for t, a in zip(operands, data, strict=True)]
        packed = packer.record_rule(opcode, operands, data, z, numbers)
        if packed is not None:
            return packed
    return write_rule(opcode, operands, data, z, in_place)


def write_rule(opcode: int, operands: tuple[Tensor, ...], data: tuple[Any, ...], z: Any, in_place: int = 0) -> int:
    """The end of `record`: the row of an operation that nothing speaks against, with values as they are given; its handle."""
    if opcode not in _ready:
        _load_partials(opcode, type(z) is float and len(operands) < 3)
    if type(z) is float and len(operands) < 3:
        written = int(_scalar_row(opcode, operands, data, z))
        return written if written > 0 else retry(lambda: _scalar_row(opcode, operands, data, z), operands)

    def attempt() -> Any:
        words = [word for t, a in zip(operands, data, strict=True) for word in (t._row, id(a))]
        return usual_entry(("array1", "array2", "array3")[len(operands) - 1])(_ADDRESS, opcode, *words, id(z), in_place)

    row = retry(attempt, operands)
    if row == UNSUPPORTED:
        raise RuntimeError(f"{RULES[opcode].name}: cannot record a result of dtype {z.dtype}; only float32 and float64 are tracked")
    return row


def _check_saved(opcode: int, operands: tuple[Tensor, ...]) -> None:
    uses = 0
    for t, bits in zip(operands, USES[opcode], strict=True):
        uses |= bits if t._row else 0
    check_saved(t for k, t in enumerate(operands) if uses >> k & 1)


_ready: set[int] = set()  # rules whose partials are loaded


def _load_partials(opcode: int, scalar: bool) -> None:
    """Load what the sweep needs for rows of a rule."""
    if opcode >= COMMON:
        TAPE.need(f"loops_of_{RULES[opcode].name}")
        _ready.add(opcode)
    elif scalar:
        if not is_quick(RULES[opcode]):
            TAPE.need("scalar_partials")
        _ready.add(opcode)


def _scalar_row(opcode: int, operands: tuple[Tensor, ...], data: tuple[float, ...], z: float) -> Any:
    count = len(operands)
    y_handle, y = (operands[1]._row, data[1]) if count == 2 else (0, 0.0)
    return TAPE.scalar_row(_ADDRESS, opcode, count, operands[0]._row, data[0], y_handle, y, z)
