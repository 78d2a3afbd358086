"""What a trace does again, in order: each step reads and writes memory that was allocated when it was recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from tapegrad.frames import line_of
from tapegrad.ops.reductions import add_reduce, total
from tapegrad.programs.memory_of_values import in_dtype_of, reshaped, same
from tapegrad.recording.primal_values import forward, number_forward
from tapegrad.recording.strided_maps import strided
from tapegrad.rules.table import RULES
from tapegrad.tensors.tensor import Tensor, wrap

__all__ = [
    "Cast", "Computed", "Copied", "Gathered", "Guard", "Joined", "Place", "Ruled", "Scattered", "Step", "Structured", "Summed",
    "Value", "Viewed", "Written", "mapped",
]  # fmt: skip

Array = np.ndarray[Any, Any]
FLOAT64 = np.dtype(np.float64)
Place = tuple[CodeType, int]


class Value:
    """Where a value stands, also while a trace runs: in an array, or among the trace's numbers.

    Attributes
    ----------
    array : ndarray
        The memory; of a number a view without dimensions, once the trace is finished.
    number : int
        Which of the trace's numbers it is; -1 for arrays.
    constant : bool
        Whether it is the same in each run.
    tracked : bool
        Whether a row has it.
    of : Value or None
        The value that it is a view of.
    """

    __slots__ = ("array", "constant", "number", "of", "tracked")

    def __init__(self, array: Array | None = None, number: int = -1, constant: bool = False, of: Value | None = None) -> None:
        self.array: Any = array
        self.number, self.constant, self.of = number, constant, of
        self.tracked = False


class Step:
    """One step of a trace.

    Attributes
    ----------
    asked_at : (code, int)
        Which instruction of the user's code asked for it.
    """

    __slots__ = ("asked_at",)
    asked_at: Place

    @property
    def line(self) -> str:
        """The same as text."""
        return line_of(*self.asked_at)

    @property
    def results_in(self) -> Value | None:
        """Where its result stands, if that is one value."""
        found = getattr(self, "result", None)
        return found if isinstance(found, Value) else None

    def run(self) -> bool:
        """Do it; False if the function would go another way from here."""
        raise NotImplementedError

    def describe(self) -> str:
        """What it does, as text."""
        raise NotImplementedError


class Ruled(Step):
    """An elementwise rule; on numbers its value is computed in one of several ways."""

    __slots__ = ("opcode", "operands", "result", "way")

    def __init__(self, opcode: int, operands: Sequence[Value], result: Value, way: int) -> None:
        self.opcode, self.operands, self.result, self.way = opcode, tuple(operands), result, way

    def run(self) -> bool:
        """Do it."""
        arrays = [value.array for value in self.operands]
        if self.result.number >= 0:
            numbers = [a.item() for a in arrays]
            try:
                self.result.array[...] = number_forward[self.way, self.opcode](*numbers)
            except (ArithmeticError, ValueError):
                self.result.array[...] = forward[self.opcode](*(np.array([n]) for n in numbers))[0]
            return True
        function = forward[self.opcode]
        if self.result.array.dtype != FLOAT64:
            arrays = [in_dtype_of(a, self.result.array.dtype) for a in arrays]
        if isinstance(function, np.ufunc):
            function(*arrays, out=self.result.array)
        else:
            np.copyto(self.result.array, function(*arrays))
        return True

    def describe(self) -> str:
        """Its name."""
        return RULES[self.opcode].name


class Copied(Step):
    """Values in other memory, and in another dtype where that is another one."""

    __slots__ = ("result", "shape", "source")

    def __init__(self, source: Value, result: Value, shape: Any = None) -> None:
        self.source, self.result, self.shape = source, result, shape

    def run(self) -> bool:
        """Do it."""
        source = self.source.array if self.shape is None else self.source.array.reshape(self.shape)
        np.copyto(self.result.array, source, casting="unsafe")
        return True

    def describe(self) -> str:
        """Its name."""
        return "copy"


class Cast(Copied):
    """The same values in another dtype, as an operation that has a row."""

    def describe(self) -> str:
        """Its name."""
        return f"to {self.result.array.dtype}"


class Written(Copied):
    """A write into memory that has had another value.

    Attributes
    ----------
    base : Value
        The array into which, or into a view of which, it writes.
    has_row : bool
        Whether the graph goes on from a row of the write.
    link : {"same", "copy", ""}
        Whether that is the row of what is written, one that passes a derivative on to it, or one that does not.
    """

    __slots__ = ("base", "has_row", "link")

    def __init__(self, source: Value, result: Value, base: Value, has_row: bool, link: str) -> None:
        super().__init__(source, result)
        self.base, self.has_row, self.link = base, has_row, link

    def describe(self) -> str:
        """Its name."""
        return "write"


class Viewed(Step):
    """A view, which shares the memory of what it is a view of: there is nothing to do."""

    __slots__ = ("result",)

    def __init__(self, result: Value) -> None:
        self.result = result

    def run(self) -> bool:
        """Do it."""
        return True

    def describe(self) -> str:
        """Its name."""
        return "view"


class Gathered(Step):
    """A strided view of the elements in C order, scaled."""

    __slots__ = ("dims", "offset", "result", "scale", "source", "strides")

    def __init__(self, source: Value, dims: Any, strides: Any, offset: int, scale: float, result: Value) -> None:
        self.source, self.dims, self.strides, self.offset = source, dims, strides, offset
        self.scale, self.result = scale, result

    def view(self) -> Array:
        """The view."""
        return strided(np.ascontiguousarray(self.source.array).reshape(-1), self.dims, self.strides, self.offset)

    def run(self) -> bool:
        """Do it."""
        view = self.view()
        out = reshaped(self.result.array, view.shape)
        if self.scale != 1.0:
            np.multiply(view, self.scale, out)
        else:
            np.copyto(out, view)
        return True

    def describe(self) -> str:
        """Its name."""
        return "gather"


class Scattered(Step):
    """The transpose: into zeros."""

    __slots__ = ("result", "scatter", "source")

    def __init__(self, source: Value, scatter: Callable[[Array], Array], result: Value) -> None:
        self.source, self.scatter, self.result = source, scatter, result

    def run(self) -> bool:
        """Do it."""
        np.copyto(self.result.array, self.scatter(self.source.array))
        return True

    def describe(self) -> str:
        """Its name."""
        return "scatter"


class Summed(Step):
    """A sum over axes, all of them if there are none, divided for a mean or else scaled."""

    __slots__ = ("axes", "divisor", "result", "scale", "source")

    def __init__(self, source: Value, axes: tuple[int, ...] | None, divisor: int, scale: float, result: Value) -> None:
        self.source, self.axes, self.divisor, self.scale, self.result = source, axes, divisor, scale, result

    def run(self) -> bool:
        """Do it."""
        x = self.source.array
        found = total(x, None) if self.axes is None else add_reduce(x, self.axes)
        if self.divisor > 1:
            found = found / self.divisor
        elif self.divisor == 0:
            found = found * self.scale
        self.result.array[...] = found if np.ndim(found) == 0 else found.reshape(self.result.array.shape)
        return True

    def describe(self) -> str:
        """Its name."""
        return "sum"


class Joined(Step):
    """A concatenation."""

    __slots__ = ("result", "sources", "widths")

    def __init__(self, sources: Sequence[Value], widths: Sequence[int], result: Value) -> None:
        self.sources, self.widths, self.result = tuple(sources), tuple(widths), result

    def run(self) -> bool:
        """Do it."""
        whole = reshaped(self.result.array, (-1, sum(self.widths)))
        start = 0
        for source, width in zip(self.sources, self.widths, strict=True):
            whole[:, start : start + width] = source.array.reshape(-1, width)
            start += width
        return True

    def describe(self) -> str:
        """Its name."""
        return "join"


class Structured(Step):
    """A structural operation, by what gives its value again.

    Attributes
    ----------
    payload : Payload
        Of its row.
    extra, chosen : list
        What its row saved besides its operands, and what is known of each of these.
    fixed : bool
        Whether these are the same in each run.
    """

    __slots__ = ("chosen", "extra", "fixed", "forward", "name", "operands", "operation", "payload", "result")

    def __init__(
        self,
        name: str,
        forward: Callable[[list[Array]], Any],
        operands: Sequence[Value],
        result: Value,
        payload: Any,
        extra: Sequence[Array],
        chosen: Sequence[Value | None],
    ) -> None:
        self.name, self.forward, self.operands, self.result = name, forward, tuple(operands), result
        self.payload, self.operation, self.extra, self.chosen = payload, payload.op, extra, chosen
        self.fixed = all(value is None or value.constant for value in chosen)

    def run(self) -> bool:
        """Do it."""
        self.result.array[...] = self.forward([value.array for value in self.operands])
        return True

    def describe(self) -> str:
        """Its name."""
        return self.name.removesuffix("Backward0")


class Computed(Step):
    """A function of values, without a derivative; arrays of another shape are another way.

    It is NumPy's, or the package's own where one of its operands was tracked: where elements tie, they need not choose the same.
    """

    __slots__ = ("args", "function", "kwargs", "own", "results")

    def __init__(
        self, function: Callable[..., Any], args: Any, kwargs: Any, results: Sequence[tuple[tuple[int, ...], Any]], own: bool
    ) -> None:
        self.function, self.args, self.kwargs, self.results, self.own = function, args, kwargs, tuple(results), own

    def run(self) -> bool:
        """Do it."""
        live = _as_tensor if self.own else _as_array
        found = self.function(*mapped(self.args, live), **mapped(self.kwargs, live))
        for place, expected in self.results:
            part = found
            for k in place:
                part = part[k]
            if isinstance(expected, Value):
                if np.shape(part) != expected.array.shape:
                    return False
                np.copyto(expected.array, part._data if isinstance(part, Tensor) else part, casting="unsafe")
            elif isinstance(part, Tensor) or type(part) is not type(expected) or not same(part, expected):
                return False
        return True

    def describe(self) -> str:
        """Its name."""
        return f"{getattr(self.function, '__name__', self.function)}, by NumPy"


def _as_array(value: Value) -> Any:
    return value.array if value.array.ndim else value.array[()]


def _as_tensor(value: Value) -> Any:
    return wrap(value.array if value.array.ndim or value.array.dtype != np.float64 else float(value.array))


def mapped(template: Any, live: Callable[[Value], Any]) -> Any:
    """Arguments with something else in the place of each value."""
    if isinstance(template, Value):
        return live(template)
    if isinstance(template, (tuple, list)):
        parts = [mapped(part, live) for part in template]
        return type(template)(parts) if type(template) in (tuple, list) else type(template)(*parts)
    return {name: mapped(part, live) for name, part in template.items()} if type(template) is dict else template


class Guard(Step):
    """What the function was told about a value, which must be the same again."""

    __slots__ = ("as_truth", "expected", "value")

    def __init__(self, value: Value, as_truth: bool) -> None:
        self.value, self.as_truth = value, as_truth
        self.expected: Any = None

    def observed(self) -> Any:
        """What the function would be told now."""
        array = self.value.array
        return bool(array.item()) if self.as_truth else array.tobytes()

    def run(self) -> bool:
        """Do it."""
        return bool(self.observed() == self.expected)

    def describe(self) -> str:
        """Its name."""
        return f"guard: {self.expected}" if self.as_truth else "guard: the same values"
