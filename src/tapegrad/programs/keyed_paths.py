"""The paths of a program by the keys of its calls."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tapegrad.arrays.dtypes import get_default_dtype
from tapegrad.drivers.leaves import is_compiled, takes_tensors
from tapegrad.programs.argument_layouts import layout_of
from tapegrad.programs.fixed_numbers import FixedNumbers, has_fixed_numbers, with_numbers
from tapegrad.programs.keys import Paths, Usual, describe, is_differentiable, repeated, shared
from tapegrad.programs.live_arrays import LiveArrays, live_arrays
from tapegrad.programs.quick_calls import Direct, kind_of_input
from tapegrad.programs.snapshot_contents import snapshot_of
from tapegrad.programs.surroundings import Arrays, Surroundings, Unseen

__all__ = ["KeyedPaths"]

MOST_KEYS = 4  # so many times `max_traces`


class KeyedPaths:
    """What was recorded of a function, and where it is to be found for a call."""

    def __init__(self, function: Callable[..., Any], max_traces: int) -> None:
        self.function, self.max_traces = function, max_traces
        self._surroundings = Surroundings(function)
        self._paths: dict[Any, list[Paths]] = {}
        self._argnums: dict[Any, Any] = {}  # by the rest of a key, what was differentiated by first
        self._is_called = is_compiled(function) or takes_tensors(function)
        # What programs cannot look into.
        self._unseen = "compiled functions and modules of layers have ways of their own" if self._is_called else ""
        self._usual: dict[Any, Usual] = {}
        self._missed: dict[Any, int] = {}  # how many calls were not usual ones since the latest that was
        self._direct: dict[tuple[str, Any], Direct] = {}  # by what is asked for
        self._seen: dict[Any, int] = {}  # how many keys there were that differ in what the function sees only
        self._by_numbers: dict[Any, set[FixedNumbers]] = {}  # keys to which numbers of Python's belong, with the latter
        self._live: LiveArrays | None = None
        self._live_is_known = self._is_called
        self._own: frozenset[str] = frozenset()  # names of the attributes that it was made with

    def _name(self) -> str:
        return str(getattr(self.function, "__qualname__", self.function))

    def attributes_of_others(self) -> dict[str, Any]:
        """Attributes that the user gave it, which the function may read by its name."""
        return {name: value for name, value in vars(self).items() if name not in self._own}

    def _key(self, args: Any, kwargs: Any, argnums: Any, has_aux: bool) -> tuple[Any, list[Any], list[Any], Arrays]:
        """Key of a call, values of its inputs, objects whose identity is in the key, and arrays from outside; no key to call."""
        parts: list[Any] = []
        values: list[Any] = []
        others: list[Any] = []
        taken = _first_differentiable(args) if argnums is None else argnums
        parts += [type(args), len(args)]
        held: list[Any] = []
        if not all(describe(value, parts, values, others, k in taken, held) for k, value in enumerate(args)):
            return None, [], [], []
        if kwargs and not describe(kwargs, parts, values, others, held=held):
            return None, [], [], []
        one = shared([*held, *others])  # no part of what files of programs have
        live = self._live_values()
        kinds: list[Any] = []
        if not all(describe(value, kinds, values, others) for value in live):
            self._forget_live()
            return self._key(args, kwargs, argnums, has_aux)
        try:
            around, objects, arrays = self._surroundings.look(*others)
        except Unseen as error:
            self._unseen = str(error)
            return None, [], [], []
        if live:
            if self._surroundings.recurs:  # with what its names stand for
                self._forget_live()
                return self._key(args, kwargs, argnums, has_aux)
            around = (*around, tuple(kinds))
        around = (*around, one)
        parts.append(repeated([*values, *(array for _, array in arrays)]))
        rest = (tuple(parts), around, get_default_dtype(), has_aux)
        try:
            if argnums is None:
                argnums = self._argnums.get(rest)
                if argnums is None:
                    argnums = taken
                    if not argnums:
                        return None, [], [], []
            hash(argnums)
        except TypeError:  # something that has no hash
            return None, [], [], []
        key = argnums, rest
        if key in self._by_numbers:
            return *with_numbers(key, args, kwargs, values, self._by_numbers[key]), objects, arrays
        return key, values, objects, arrays

    def _live_values(self) -> list[Any]:
        """What large arrays in closure and globals are now."""
        if not self._live_is_known:
            self._live_is_known, self._live = True, live_arrays(self.function)
            if self._live is not None:
                self._surroundings.skipped = self._live.names
        return [] if self._live is None else self._live.values()

    def _forget_live(self) -> None:
        """Compare all arrays from now on, as if nothing had been recorded."""
        self._live, self._surroundings.skipped = None, frozenset()
        self._forget_direct()
        self._paths, self._argnums, self._usual, self._by_numbers, self._missed = {}, {}, {}, {}, {}

    def _paths_of(self, key: tuple[Any, ...], objects: list[Any], arrays: Arrays) -> Paths | None:
        """The paths of a key; None if there were too many keys."""
        for paths in self._paths.get(key, ()):
            if paths.sees(arrays):
                return paths
        if self._keeps_changing(key):
            return None
        argnums, rest = key
        self._argnums.setdefault(rest, argnums)
        found = Paths(objects, arrays)
        self._paths.setdefault(key, []).insert(0, found)
        return found

    def _keeps_changing(self, key: tuple[Any, ...]) -> bool:
        """Whether what the function sees besides its arguments was another one too often; it is said once."""
        argnums, (parts, _, dtype, has_aux) = key
        same = (argnums, parts, dtype, has_aux)
        count = self._seen.get(same, 0) + 1
        if count == 1 and len(self._seen) >= MOST_KEYS * self.max_traces:
            return True  # arguments of so many kinds, such as an integer that counts the calls
        self._seen[same] = count
        if count == self.max_traces + 1:
            warnings.warn(
                f"{self._name()} sees something besides its arguments that was another {count} times (an array in its closure, "
                "a global, an attribute). It is called from now on; pass what keeps changing as an argument, or raise max_traces.",
                RuntimeWarning,
                stacklevel=4,
            )
        return count > self.max_traces

    def _usual_call(self, args: tuple[Any, ...], argnums: Any, has_aux: bool) -> tuple[Usual | None, tuple[Any, ...]]:
        """What calls like the latest one are alike in, if this may be one, and its inputs."""
        usual = self._usual.get((argnums, has_aux))
        given = None if usual is None else usual.layout.inputs(args)
        if given is None:
            return None, args
        return usual, given if self._live is None else (*given, *self._live.values())

    def _note_usual(self, how: tuple[Any, bool], args: tuple[Any, ...], paths: Paths, many: bool, key: tuple[Any, ...]) -> None:
        self._missed[how] = missed = self._missed.get(how, 0) + 1
        if missed & (missed - 1):
            return  # what is another one each time costs more to look at than it saves
        fixes = has_fixed_numbers(key)
        layout = layout_of(args, key[0], fixes)
        live = [*map(kind_of_input, self._live_values())]
        if layout is None or None in live:
            return
        snapshot = snapshot_of(self._surroundings, *layout.objects)
        if snapshot is not None:
            self._forget_direct(how[0])
            self._usual[how] = Usual(layout, [*layout.kinds, *filter(None, live)], snapshot, paths, many)

    def __direct__(self, what: str, argnums: Any) -> Direct:
        """What drivers ask first for value and gradient (""), or for products ("hvp"), and calls for the "value"."""
        found = self._direct.get((what, argnums))
        return self._direct.setdefault((what, argnums), Direct()) if found is None else found

    def _forget_direct(self, *argnums: Any) -> None:
        """Let no driver find what is done at once for calls like the latest one, or all of them."""
        for (_, own), direct in list(self._direct.items()):
            if not argnums or own == argnums[0]:
                direct.call = None


def _first_differentiable(args: Any) -> tuple[int, ...]:
    """The place of the first argument that something can be differentiated by."""
    return next(((k,) for k, value in enumerate(args) if is_differentiable(value)), ())
