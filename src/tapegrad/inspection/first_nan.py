"""`explain_nan`: the first operation that gave nan or infinity, in its value or in its derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.decoded_rows import opcode_of
from tapegrad.drivers.calling import call
from tapegrad.drivers.containers import flatten
from tapegrad.drivers.leaves import Argnums, Call, is_compiled, recorder_of
from tapegrad.engine import layout as at
from tapegrad.inspection.observing import ObservedRow, Observer, each_adjoint, leaf_row, observed
from tapegrad.inspection.source_lines import SourceLine
from tapegrad.inspection.values_as_text import described, number
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["NanReport", "explain_nan"]

MOST_UPSTREAM = 12
VALUE, ADJOINT, ARGUMENT = "value", "adjoint", "argument"


def _is_odd(value: Any) -> bool:
    data = np.asarray(value)
    return data.dtype.kind == "f" and not np.isfinite(data).all()


class NanReport:
    """Where the first nan or infinity came from; true if there is one.

    Attributes
    ----------
    kind : {"value", "adjoint", "argument", ""}
        Whether an operation's value was the first, or what its derivative sends to an operand, or an argument of the function;
        empty if there is none.
    operation : str
        Name of the operation, or place of the argument.
    line : SourceLine or None
        File, number, function and text of the line.
    index : tuple of int
        Of the first such element in the value, or in the operand that the adjoint belongs to.
    value : float or ndarray
        The value, or what was sent to the operand.
    operand : int or None
        Number of that operand.
    operands : list of float or ndarray
        Values of the operands.
    upstream : list of str
        The operations that made the operands, the nearest first: line, name and value of each.
    reaches_result, reaches_gradient : bool
        Whether the function's result, or its gradient, has a nan or an infinity.
    error : Exception or None
        What the function raised after that.
    """

    def __init__(self) -> None:
        self.kind, self.operation = "", ""
        self.line: SourceLine | None = None
        self.index: tuple[int, ...] = ()
        self.value: Any = None
        self.operand: int | None = None
        self.operands: list[Any] = []
        self.upstream: list[str] = []
        self.reaches_result = self.reaches_gradient = False
        self.error: Exception | None = None

    def __bool__(self) -> bool:
        return bool(self.kind)

    def _headline(self) -> str:
        place = f" at {list(self.index)}" if self.index else ""
        found = number(np.asarray(self.value)[self.index])
        if self.kind == ARGUMENT:
            return f"{self.operation} is {found}{place}, before anything was computed."
        if self.kind == VALUE:
            return f"{self.operation} gave {found}{place}, the first value that is not finite."
        if self.operand is None:
            return f"The adjoint of {self.operation} is {found}{place}: finite contributions add up to it."
        return f"The derivative of {self.operation} sent {found} to its operand {self.operand}{place}; all values are finite."

    def __str__(self) -> str:
        if not self:
            return "No nan and no infinity: neither in a value nor in an adjoint."
        parts = [self._headline()]
        if self.line is not None:
            parts.append(f"  {self.line.file}:{self.line.number} in {self.line.function}")
            parts += [f"    {self.line.text}"] if self.line.text else []
        for k, operand in enumerate(self.operands):
            parts.append(f"  operand {k}: {_at_index(operand, self.index)}{described(operand)}")
        if self.upstream:
            parts += ["upstream, the nearest first:", *(f"  {text}" for text in self.upstream)]
        if self.error is not None:
            parts.append(f"The function then raised {type(self.error).__name__}: {self.error}")
        else:
            parts.append(
                f"The result is {'not ' if self.reaches_result else ''}finite, the gradient is "
                f"{'not ' if self.reaches_gradient else ''}finite."
            )
        return "\n".join(parts)

    __repr__ = __str__


def _at_index(operand: Any, index: tuple[int, ...]) -> str:
    array = np.asarray(operand)
    if not array.ndim or array.size == 1 or len(index) < array.ndim:
        return ""
    place = tuple(0 if n == 1 else k for n, k in zip(array.shape, index[len(index) - array.ndim :], strict=True))
    if any(k >= n for k, n in zip(place, array.shape, strict=True)):
        return ""
    return f"{number(array[place])} at {list(place)} of "


class _FirstOddValue(Observer):
    """Looks at each value when it is there; keeps arrays as they were then."""

    def __init__(self) -> None:
        super().__init__()
        self.first: ObservedRow | None = None

    def row(self, row: ObservedRow) -> None:
        super().row(row)
        row.value = _copied(row.value)
        if self.first is None and _is_odd(row.value):
            self.first = row
            row.operands = [_copied(operand) for operand in row.operands]


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def explain_nan(f: Callable[..., Any], *args: Any, argnums: Argnums = 0, **kwargs: Any) -> NanReport:
    """Find the first operation of a call that gave nan or infinity, in its value or in its derivative.

    Parameters
    ----------
    f : callable
        As for `tapegrad.value_and_grad`; its result may have any shape, and gradients are those of the sum of its elements.
    *args, **kwargs
        Its arguments.
    argnums : int or sequence of int
        Which positional arguments to differentiate by.

    Returns
    -------
    NanReport
        True if there was a nan or an infinity. Printed, it names the operation, the line, the operands, and the values upstream.

    Raises
    ------
    TypeError
        If an argument cannot be differentiated by.
    Exception
        What `f` raises, if all values before that are finite.

    Notes
    -----
    The function is called once, and one pass goes backwards row by row: tens of times slower than a gradient, with all values in
    memory. Values are looked at in the order in which they are computed; if all are finite, adjoints in the order of the pass.
    A compiled function is one operation here. Branches that `where` masks count as well: the last line of the report
    says whether the result and the gradient are finite.

    Examples
    --------
    >>> def distance(x):
    ...     return np.sqrt((x * x).sum())
    >>> report = tg.explain_nan(distance, np.zeros(2))
    >>> report.kind, report.operation, report.value
    ('adjoint', 'Sqrt', array(inf))
    >>> report.line.text
    'return np.sqrt((x * x).sum())'
    """
    report, observer = NanReport(), _FirstOddValue()
    with observed(observer):
        try:
            made = call(recorder_of(f) if is_compiled(f) else f, args, kwargs, argnums, False, "explain_nan")
        except Exception as error:
            if observer.first is None:
                raise
            report.error = error
            _note(report, observer, VALUE, observer.first, observer.first.value)
            return report
        results = _results(made)
        _note_argument(report, made)
        report.reaches_result = any(_is_odd(array_of(t)) for t in results)
        if not report and observer.first is not None:
            _note(report, observer, VALUE, observer.first, observer.first.value)
        tracked = [t for t in results if t._row > 0]
        if tracked:
            _walk(report, observer, tracked)
    return report


def _results(made: Call) -> list[Tensor]:
    found: list[Any] = []
    flatten(made.output, found)
    return [value for value in found if isinstance(value, Tensor)]


def _note_argument(report: NanReport, made: Call) -> None:
    for leaf, place in zip(made.leaves, made.places(), strict=True):
        data = array_of(leaf)
        if _is_odd(data):
            report.kind, report.operation, report.value, report.index = ARGUMENT, place, data.copy(), _first_place(data)
            return


def _walk(report: NanReport, observer: Observer, tracked: Sequence[Tensor]) -> None:
    """Look at adjoints, for the first one where no value is odd, and for whether the gradient is finite."""
    for slot, g, sent in each_adjoint(tracked):
        if opcode_of(slot)[0] == at.LEAF:
            report.reaches_gradient |= _is_odd(g)
        if report:
            continue
        row, before = observer.rows.get(slot) or leaf_row(slot), _is_odd(g)
        numbers = [k for k, argument in enumerate(row.arguments) if argument.slot >= 0]
        for k, (argument, c) in enumerate(sent):
            if not report and _is_odd(c):
                _note(report, observer, ADJOINT, row, c)
                report.operand = next(n for n in numbers[k:] if row.arguments[n].slot == argument.slot)
        if before and not report:  # finite contributions whose sum is not
            _note(report, observer, ADJOINT, row, g)


def _first_place(value: Any) -> tuple[int, ...]:
    array = np.asarray(value)
    places = np.argwhere(~np.isfinite(array))
    return tuple(places[0].tolist()) if len(places) else ()


def _note(report: NanReport, observer: Observer, kind: str, row: ObservedRow, value: Any) -> None:
    report.kind, report.operation, report.line, report.operands = kind, row.operation, row.line, row.operands
    report.value, report.index = value, _first_place(value)
    seen, waiting = {row.slot}, sorted(row.parents, reverse=True)
    while waiting and len(report.upstream) < MOST_UPSTREAM:
        slot = waiting.pop(0)
        if slot in seen:
            continue
        seen.add(slot)
        found = observer.rows.get(slot)
        if found is None:
            found = leaf_row(slot) if opcode_of(slot)[0] == at.LEAF else None
        if found is not None:
            place = "" if found.line is None else f"{found.line.place}  "
            name = "an argument, or another leaf" if found.name == "AccumulateGrad" else found.operation
            report.upstream.append(f"{place}{name} = {described(found.value)}")
            waiting = sorted({*waiting, *found.parents}, reverse=True)
