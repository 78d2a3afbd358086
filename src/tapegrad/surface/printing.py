"""How tensors print: PyTorch's choice of number format, alignment, wrapping and summary."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapegrad.arrays.dtypes import bool as bool_
from tapegrad.arrays.dtypes import get_default_dtype, int64

__all__ = ["format_tensor"]

LINE_WIDTH = 80
SUMMARY_ABOVE = 1000
EDGE_ITEMS = 3

_PREFIX = "tensor("


class NumberFormat(NamedTuple):
    """How one element is written, and the width that all are padded to."""

    write: Callable[[Any], str]
    width: int


def format_tensor(array: np.ndarray, suffix: str = "") -> str:
    """Text of a tensor as its `repr` shows it.

    Parameters
    ----------
    array : ndarray, any shape
        The values.
    suffix : str
        What stands last, for example ``"requires_grad=True"``; nothing if empty.

    Notes
    -----
    Above 1000 elements only three at each end of each axis are read, so printing costs the same for any size.

    Examples
    --------
    >>> from tapegrad.surface.printing import format_tensor
    >>> print(format_tensor(np.array([1.0, 2.5]), "requires_grad=True"))
    tensor([1.0000, 2.5000], requires_grad=True)
    """
    default = get_default_dtype()
    suffixes = []
    if array.size == 0:
        text = _PREFIX + "[]"
        if array.ndim != 1:
            suffixes.append(f"size={array.shape}")
        # No element shows whether the values are integers, so here int64 is named as well.
        if array.dtype != default:
            suffixes.append(f"dtype={array.dtype.name}")
    else:
        text = _PREFIX + _format_values(array)
        if array.dtype not in (default, int64, bool_):
            suffixes.append(f"dtype={array.dtype.name}")
    if suffix:
        suffixes.append(suffix)
    return _append(text, suffixes)


def _append(text: str, suffixes: list[str]) -> str:
    # PyTorch counts two columns more than are there; its line breaks are kept, so the count is too.
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > LINE_WIDTH:
            text += ",\n" + " " * len(_PREFIX) + suffix
            column = len(_PREFIX) + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


def _format_values(array: np.ndarray) -> str:
    gaps = [array.size > SUMMARY_ABOVE and length > 2 * EDGE_ITEMS for length in array.shape]
    kept = [
        [*range(EDGE_ITEMS), *range(length - EDGE_ITEMS, length)] if gap else range(length)
        for length, gap in zip(array.shape, gaps, strict=True)
    ]
    shown = array[np.ix_(*kept)] if any(gaps) else array
    return _format_block(shown, gaps, _number_format(shown), len(_PREFIX))


def _number_format(values: np.ndarray) -> NumberFormat:
    if values.dtype.kind != "f":
        return NumberFormat(str, max(len(str(value)) for value in values.ravel().tolist()))
    telling = values[np.isfinite(values) & (values != 0)].astype(np.float64)
    if telling.size == 0:
        return NumberFormat(_write_whole, 1)
    size = np.abs(telling)
    low, high = float(size.min()), float(size.max())
    if high / low > 1000.0 or high > 1e8 or low < 1e-4:
        write: Callable[[float], str] = "{:.4e}".format
    elif np.array_equal(telling, np.ceil(telling)):
        write = _write_whole
    else:
        write = "{:.4f}".format
    return NumberFormat(write, max(len(write(value)) for value in telling.tolist()))


def _write_whole(value: float) -> str:
    return f"{value:.0f}." if np.isfinite(value) else f"{value:.0f}"


def _format_block(values: np.ndarray, gaps: list[bool], number: NumberFormat, indent: int) -> str:
    if values.ndim == 0:
        return number.write(values.item()).rjust(number.width)
    if values.ndim == 1:
        parts = [number.write(value).rjust(number.width) for value in values.tolist()]
        ellipsis = " ..."
        per_line = max(1, (LINE_WIDTH - indent) // (number.width + 2))
    else:
        parts = [_format_block(block, gaps[1:], number, indent + 1) for block in values]
        ellipsis = "..."
        per_line = 1
    if gaps[0]:
        parts.insert(EDGE_ITEMS, ellipsis)
    lines = [", ".join(parts[start : start + per_line]) for start in range(0, len(parts), per_line)]
    between = "," + "\n" * max(1, values.ndim - 1) + " " * (indent + 1)
    return "[" + between.join(lines) + "]"
