"""What crosses from the package into the user's code while a call is followed: by the events that Python has for profilers.

The user's code calls an operation, and that gives a result. In between nothing is of interest but functions of the user's that the
operation calls, and what draws random numbers or asks the system. Events take longer than operations, so operations that call none
of the user's functions do without them, and operators have a way of their own.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import errors_raise, sets_errors
from tapegrad.collector import without_collections
from tapegrad.frames import PACKAGE, variables_of
from tapegrad.programs.known_values import KnownValues
from tapegrad.programs.provenance import (
    HANDING_ON,
    NUMBERS,
    THREADS,
    given_in,
    is_static,
    is_users,
    named,
    operand_count,
    operands_in,
    parts_of,
    profile_again,
    raises,
    reads_outside,
    reads_settings,
    takes_given_places,
    tensors_in,
    writes_arrays,
)
from tapegrad.programs.snapshots import same_bits
from tapegrad.programs.steps import Guard, Place
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import KINDS, Tensor
from tapegrad.tensors.tracers import LOOKING, WRITING, Tracer
from tapegrad.tensors.tracing import followed

__all__ = ["Crossings"]

_OWN_CODE: set[CodeType] = set()  # of the package, and does not look at values


class Crossings(KnownValues, Tracer):
    """What the user's code and the package hand to each other in one call.

    Attributes
    ----------
    draws : bool
        Whether random numbers were drawn.
    """

    __slots__ = (
        "_contents", "_entry", "_explained", "_given", "_has_stopped", "_outer", "_tensors", "_written", "draws"
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.draws = self._has_stopped = False
        self._written = 0
        self._given: list[Any] | None = []  # None: they are operands of the operator that `_entry` is of
        self._contents: list[tuple[Any, Any]] = []  # of arrays of NumPy's among them
        self._tensors: list[Any] = []
        self._entry: FrameType | None = None
        self._outer: list[tuple[Any, ...]] = []  # what is to be restored when functions of the user's return
        self._explained = 0

    @property
    def given(self) -> list[Any]:
        """Numbers, arrays and lists that the user gave to the operation."""
        if self._given is None:
            self._given = [] if self._entry is None else operands_in(self._entry)
        return self._given

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function and follow it; its result."""
        writes = untracked_values.writes()
        with TAPE.claim():
            # Destructors of others are none of the function's calls.
            result = without_collections(self._followed, function, *arguments)
        if untracked_values.writes() - writes != self._written:
            self.refuse("it writes into an array")
        return result

    def _followed(self, function: Callable[..., Any], *arguments: Any) -> Any:
        before = sys.getprofile()
        try:
            sys.setprofile(self._crossing)
            result = followed(self, function, *arguments)
            if sys.getprofile() != self._crossing:
                self.refuse("it lets another function profile it")
        finally:
            profile_again(before)
        return result

    def unwatched(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The same without events, which take longer than the operation; the event of this very call ends them (`_crossing`)."""
        has_stopped, self._has_stopped = self._has_stopped, False
        try:
            return function(*arguments)
        finally:
            if has_stopped:
                sys.setprofile(self._crossing)

    def left(self, t: Any, as_truth: bool) -> None:
        """Let the value be the same in each run, or in another path."""
        self._explained += 1
        value = self.value_of(t)
        if value is None or value.constant:
            return
        guard, array = Guard(value, as_truth), np.asarray(t._data)
        guard.expected = bool(array.item()) if as_truth else array.tobytes()
        self.note(guard)

    def _fix(self, values: Any) -> None:
        """Values of arguments that went into an operation in another way than as its operands must be the same again."""
        for x in values:
            if isinstance(x, Tensor):
                if not x._row:
                    self.left(x, False)
            elif isinstance(x, (tuple, list)):
                self._fix(x)

    def _place(self) -> Place:
        """Which instruction of the user's code is asking."""
        frame = None if self._entry is None else self._entry.f_back
        return super()._place() if frame is None else (frame.f_code, frame.f_lasti)

    def _crossing(self, frame: FrameType, event: str, argument: Any) -> None:
        code, entry = frame.f_code, self._entry
        if entry is not None:  # nearly all events: what the package does inside of one operation
            if event == "call":
                if code in _OWN_CODE:
                    return
                if code is _UNWATCHED:
                    sys.setprofile(None)
                    self._has_stopped = True
                    return
                if code.co_filename.startswith(PACKAGE) and code not in LOOKING:
                    _OWN_CODE.add(code)
            elif frame is not entry and not (event == "return" and self._outer and frame is self._outer[-1][0]):
                return
        elif event == "call" and operand_count(code) and not _is_of_package(frame.f_back):
            self._begin(frame, None, [], False)
            return
        if event == "c_call":
            self._look_at_c(frame, argument)
        elif event == "c_return" and sets_errors(argument):
            if not code.co_filename.startswith(PACKAGE) and errors_raise():
                self.refuse("it lets NumPy raise at floating point errors")
        elif event == "call":
            if entry is None and reads_settings(frame):
                self.refuse(f"it calls {code.co_qualname}")
            if code.co_filename.endswith(THREADS):
                self.refuse("it starts threads")
            elif code in LOOKING:
                self.refuse(f"{named(frame)} looks at values")
            inside, from_inside = code.co_filename.startswith(PACKAGE), _is_of_package(frame.f_back)
            if entry is None and inside and not from_inside:
                known = variables_of(frame)
                self._begin(frame, given_in(known), self._settings(frame, known), takes_given_places(frame))
                if writes_arrays(known):
                    self.refuse("it writes values into an array of NumPy's")
            elif entry is not None and from_inside and not inside and is_users(frame):
                # A function of the user's that the operation calls: its operations are asked for by the user, too.
                here = entry, self._explained, self.given, self._contents, self._tensors, self.places_are_given
                self._outer.append((frame, *here))
                self._entry = None
        elif event == "return" and self._outer and frame is self._outer[-1][0]:
            _, self._entry, self._explained, self._given, self._contents, self._tensors, self.places_are_given = self._outer.pop()
        elif event == "return" and frame is entry:
            self._entry = None
            if self._contents and not all(same_bits(given, kept) for given, kept in self._contents):
                self.refuse("it writes values into an array of NumPy's")
            if argument is None and raises(frame):
                self.refuse(f"{named(frame)} raised what the function caught, perhaps because of values")
            if not self.refused and argument is not None:
                self._check(frame, argument)
            elif code in WRITING:
                self._fix(self._tensors)

    def _begin(self, frame: FrameType, given: list[Any] | None, tensors: list[Any], places_are_given: bool) -> None:
        """Note an operation that the user's code asked for."""
        self._entry, self._explained, self._given, self._tensors = frame, 0, given, tensors
        self._contents = [(one, one.copy()) for one in given or () if issubclass(type(one), np.ndarray)]
        self.places_are_given = places_are_given
        if self.all_python_numbers:
            self.look_at_operands(frame.f_code, variables_of(frame))

    def _settings(self, frame: FrameType, known: dict[str, Any]) -> list[Any]:
        """Tensors among the arguments of a function which are no operands: index arrays, masks and the like."""
        if frame.f_code.co_filename.startswith(HANDING_ON):
            return []
        return tensors_in({"key": known.get("key")} if frame.f_code in WRITING else known)

    def _look_at_c(self, frame: FrameType, function: Any) -> None:
        """What draws random numbers, or tells the time, is another each time."""
        if _is_of_package(frame) or frame.f_code.co_filename.startswith("<frozen importlib"):
            return
        owner = getattr(function, "__self__", None)
        if isinstance(owner, random.Random) or type(owner).__module__.startswith("numpy.random"):
            self.draws = True
        elif reads_outside(function, owner, frame):
            self.refuse(f"it calls {function.__name__}")

    def _check(self, frame: FrameType, result: Any) -> None:
        code = frame.f_code
        if type(result) in KINDS and not self._tensors:  # of most operations
            if not self.knows(result):
                self.refuse(f"{code.co_qualname} gives what programs do not follow")
            return
        parts: list[tuple[tuple[int, ...], Any]] = []
        parts_of(result, (), parts)
        if any(isinstance(part, Tensor) and part._row for _, part in parts):
            self._fix(self._tensors)  # index arrays, masks and the like
        for _, part in parts:
            if isinstance(part, Tensor):
                if not self.knows(part):
                    self.refuse(f"{code.co_qualname} gives what programs do not follow")
            elif isinstance(part, (*NUMBERS, np.ndarray, np.generic)) and not is_static(frame) and not self._explained:
                self.refuse(f"{code.co_qualname} gives {type(part).__name__}")


_UNWATCHED = Crossings.unwatched.__code__


def _is_of_package(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_code.co_filename.startswith(PACKAGE)
