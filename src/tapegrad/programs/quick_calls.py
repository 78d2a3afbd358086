"""Calls like the latest one, with few steps of Python: compiled code looks at the arguments and reads them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import FLOATS

__all__ = ["Direct", "Kind", "QuickCall", "kind_of_input", "quick_call"]

Kind = tuple[Any, tuple[int, ...] | None, Any]
READ = frozenset([None, *FLOATS])  # dtypes of what code reads as it stands


class QuickCall:
    """Machine code of a path, for arguments of certain kinds.

    Parameters
    ----------
    made : MachineCode or MatrixCode
        Before which nothing is computed.
    kinds : sequence of (type, shape or None, dtype or None)
        Of the inputs: floats, and arrays.
    along : sequence of such
        Of the parts of one vector behind them, which are given one by one.

    Attributes
    ----------
    place : int
        Of what `take_inputs` of the engine is to know about them.
    code : MachineCode or None
        Which is all that runs; None if there is more to do.
    """

    __slots__ = ("_expected", "_kinds", "_run", "code", "place")

    def __init__(self, made: Any, kinds: Sequence[Kind], along: Sequence[Kind] = ()) -> None:
        self._kinds = [*kinds, *along]  # the dtypes live as long as their addresses are compared
        words = [len(self._kinds)]
        places = made.places()
        if along:
            place, size = places[-1]
            places = [*places[:-1], *_in_parts(place, size, along)]
        for (kind, shape, dtype), (place, count) in zip(self._kinds, places, strict=True):
            lengths = shape or ()
            words += [id(kind), 0 if shape is None else id(dtype), place, count, len(lengths), *lengths]
        self._expected = np.array(words, np.int64)
        self.place, self._run, self.code = self._expected.ctypes.data, made.run, made.alone()

    def run(self, given: tuple[Any, ...]) -> tuple[float, list[Any]] | None:
        """Value and gradient, or a matrix; None if an input is of another kind, or the function would go another way."""
        return self._run() if TAPE.take_inputs(self.place, id(given)) else None


class Direct:
    """Where a driver looks first.

    Attributes
    ----------
    call : callable or None
        Gives for a tuple of arguments what the driver gives, or None if it has to go its own way.
    """

    __slots__ = ("call",)

    def __init__(self) -> None:
        self.call: Callable[[tuple[Any, ...]], Any] | None = None


def kind_of_input(value: Any) -> Kind | None:
    """What is the same in the next call of an input that is a number, or an array in C order; None for others."""
    kind = type(value)
    if kind is float or kind is np.float64:
        return kind, None, None
    return (kind, value.shape, value.dtype) if kind is np.ndarray and value.flags.c_contiguous else None


def quick_call(code: Any, kinds: Sequence[Kind | None], along: Sequence[Kind] = ()) -> QuickCall | None:
    """Code for inputs of certain kinds, and parts of a vector behind them, if they are all that it reads."""
    if code is None or code.before or code.before_inputs or not all(kind is not None and kind[2] in READ for kind in kinds):
        return None  # other bytes than those that the code reads
    if len(along) > 1 and code.places()[-1][1] < 0:
        return None  # a long vector is read where it is
    return QuickCall(code, kinds, along)  # type: ignore[arg-type]


def _in_parts(place: int, count: int, along: Sequence[Kind]) -> list[tuple[int, int]]:
    """Where the parts of a vector go."""
    if count < 0:
        return [(place, count)]
    sizes = [math.prod(shape or ()) for _, shape, _ in along]
    return [(place + 8 * done, size) for done, size in zip([0, *itertools.accumulate(sizes)], sizes, strict=False)]
