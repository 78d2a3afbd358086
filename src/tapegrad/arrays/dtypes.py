"""Element types: NumPy's own dtype objects, the default float, and PyTorch's promotion rules."""

import builtins
from typing import Any

import numpy as np

__all__ = [
    "bool",
    "can_cast",
    "double",
    "float",
    "float16",
    "float32",
    "float64",
    "get_default_dtype",
    "half",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "long",
    "promote_types",
    "result_type",
    "set_default_dtype",
    "short",
    "uint8",
]

DType = np.dtype[Any]

# The names below shadow builtins on purpose: `tg.float` is PyTorch's name.

float16: DType = np.dtype(np.float16)
float32: DType = np.dtype(np.float32)
float64: DType = np.dtype(np.float64)
int8: DType = np.dtype(np.int8)
int16: DType = np.dtype(np.int16)
int32: DType = np.dtype(np.int32)
int64: DType = np.dtype(np.int64)
uint8: DType = np.dtype(np.uint8)
bool: DType = np.dtype(np.bool_)
half, float, double = float16, float32, float64
short, int, long = int16, int32, int64

_TYPE_NAMES: dict[DType, str] = {
    float16: "Half",
    float32: "Float",
    float64: "Double",
    int8: "Char",
    int16: "Short",
    int32: "Int",
    int64: "Long",
    uint8: "Byte",
    bool: "Bool",
}
_SUPPORTED = ", ".join(dtype.name for dtype in _TYPE_NAMES)
_CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2}

_default: DType = float64


def get_default_dtype() -> DType:
    """Floating dtype that Python floats and the factories take when none is given.

    Examples
    --------
    >>> tg.get_default_dtype()
    dtype('float64')
    """
    return _default


def set_default_dtype(dtype: object) -> None:
    """Set the floating dtype that Python floats and the factories take when none is given.

    Parameters
    ----------
    dtype : dtype
        `tapegrad.float32` or `tapegrad.float64`.

    Raises
    ------
    TypeError
        For any other dtype.

    Examples
    --------
    >>> tg.set_default_dtype(tg.float32)
    >>> tg.tensor(1.5).dtype
    dtype('float32')
    >>> tg.set_default_dtype(tg.float64)
    """
    global _default
    wanted = as_dtype(dtype)
    if wanted not in (float32, float64):
        raise TypeError(
            f"only floating-point types are supported as the default type, got {wanted.name}; pass tg.float32 or tg.float64"
        )
    _default = wanted


def as_dtype(dtype: object) -> DType:
    """NumPy dtype, in native byte order, for anything that names a supported element type.

    Parameters
    ----------
    dtype : numpy.dtype, NumPy scalar type, or one of ``float``, ``int``, ``bool``
        Python's ``float`` means float64, ``int`` int64.

    Raises
    ------
    TypeError
        If it names no dtype, or one that tensors cannot have (complex, unsigned beyond 8 bits, object, ...).

    Examples
    --------
    >>> tg.dtypes.as_dtype(np.float32)
    dtype('float32')
    """
    if isinstance(dtype, np.dtype):
        found: DType = dtype if dtype.isnative else dtype.newbyteorder("=")
    elif dtype is builtins.float:
        return float64
    elif dtype is builtins.int:
        return int64
    elif dtype is builtins.bool:
        return bool
    elif isinstance(dtype, type) and issubclass(dtype, np.generic):
        found = np.dtype(dtype)
    else:
        given = repr(dtype) if isinstance(dtype, str) else type(dtype).__name__
        raise TypeError(f"dtype must be a NumPy dtype, not {given}; pass for example tg.float32 or numpy.float32")
    if found not in _TYPE_NAMES:
        raise TypeError(f"dtype {found.name} is not supported; the supported types are: {_SUPPORTED}")
    return found


def float_or_default(dtype: object) -> DType:
    """The dtype asked for, the default float if None."""
    return _default if dtype is None else as_dtype(dtype)


def type_name(dtype: DType) -> str:
    """PyTorch's name of an element type, for messages: ``"Double"`` for float64."""
    return _TYPE_NAMES.get(dtype, dtype.name)


def promote_types(a: DType, b: DType) -> DType:
    """Smallest dtype that holds both in PyTorch's sense: an integer never widens a float.

    Examples
    --------
    >>> tg.promote_types(tg.int64, tg.float32)
    dtype('float32')
    >>> tg.promote_types(tg.uint8, tg.int8)
    dtype('int16')
    """
    if a == b:
        return a
    if a.kind == "f" and b.kind != "f":
        return a
    if b.kind == "f" and a.kind != "f":
        return b
    return np.promote_types(a, b)


def result_type(*operands: object) -> DType:
    """Dtype of an operation between tensors, arrays and numbers, by PyTorch's rules.

    Tensors with dimensions decide; a 0-d tensor, and after it a Python number, counts only when it is of a
    higher kind (bool < integer < float), so it does not widen within its kind.

    Parameters
    ----------
    *operands : Tensor, ndarray, NumPy scalar, or Python bool, int, float

    Raises
    ------
    TypeError
        If an operand is none of these.

    Examples
    --------
    >>> tg.result_type(tg.zeros(2, dtype=tg.float32), 2.5)
    dtype('float32')
    >>> tg.result_type(tg.zeros(2, dtype=tg.int64), 2.5)
    dtype('float64')
    """
    tiers: list[DType | None] = [None, None, None]
    for operand in operands:
        tier, dtype = _tier(operand)
        before = tiers[tier]
        tiers[tier] = dtype if before is None else promote_types(before, dtype)
    result: DType | None = None
    for dtype_of_tier in tiers:
        if result is None:
            result = dtype_of_tier
        elif dtype_of_tier is not None and _CATEGORY[dtype_of_tier.kind] > _CATEGORY[result.kind]:
            result = promote_types(result, dtype_of_tier)
    if result is None:
        raise TypeError("result_type() needs at least one operand")
    return result


def _tier(operand: object) -> tuple[builtins.int, DType]:
    """0 for a tensor with dimensions, 1 for a 0-d one, 2 for a Python number; and its dtype."""
    # A Tensor keeps a 0-d float64 as a Python float, which must not be taken for a number.
    data = getattr(operand, "_data", None)
    if data is not None:
        return (1, float64) if type(data) is builtins.float else (0 if data.ndim else 1, data.dtype)
    if isinstance(operand, np.ndarray):
        return 0 if operand.ndim else 1, as_dtype(operand.dtype)
    if isinstance(operand, builtins.bool):
        return 2, bool
    if isinstance(operand, builtins.int):
        return 2, int64 if is_long(operand) else _default
    if isinstance(operand, builtins.float):
        return 2, _default
    if isinstance(operand, np.generic):
        return 1, as_dtype(operand.dtype)
    raise TypeError(f"result_type() takes tensors, arrays and numbers, not {type(operand).__name__}")


def is_long(value: builtins.int) -> builtins.bool:
    """Whether int64 holds an integer."""
    return -(2**63) <= value < 2**63


def accumulation_dtype(dtype: DType) -> DType:
    """What elements of a dtype are summed or multiplied in: integers and bools as ``int64``."""
    return dtype if dtype.kind == "f" else int64


def can_cast(source: DType, target: DType) -> builtins.bool:
    """Whether an operation whose result is `source` may write into `target`: never to a lower kind.

    Examples
    --------
    >>> tg.can_cast(tg.float64, tg.float32), tg.can_cast(tg.float32, tg.int64)
    (True, False)
    """
    return _CATEGORY[source.kind] <= _CATEGORY[target.kind]
