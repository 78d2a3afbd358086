"""Recording a path: the call that is followed, what it returned, and the reasons why a program cannot be made of it."""

from __future__ import annotations

import random
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.drivers.calling import call
from tapegrad.drivers.containers import Node
from tapegrad.drivers.leaves import Call, Callee, plain_tree
from tapegrad.errors import ProgramError
from tapegrad.programs.fixed_numbers import has_fixed_numbers
from tapegrad.programs.keyed_paths import KeyedPaths
from tapegrad.programs.keys import Paths
from tapegrad.programs.recorded_calls import Own, Results, are_alike, recorded_call
from tapegrad.programs.recorder import Recorder
from tapegrad.programs.snapshots import same_bits
from tapegrad.programs.steps import Value
from tapegrad.programs.surroundings import Arrays
from tapegrad.programs.traces import Trace
from tapegrad.tape.tape import TAPE

__all__ = ["AGAIN", "Finish", "RecordedPaths", "as_asked"]

MOST_RAISED = 16  # recordings that end in an exception until the function is called without any
Finish = Callable[[Call], Any]
AGAIN = (False, NotImplemented)  # it is to be asked again, under another key


class RecordedPaths(KeyedPaths):
    """Paths by the keys of calls, and how they are recorded.

    Attributes
    ----------
    fast : bool
        Whether their machine code may have last digits of its own.
    """

    fast = False

    def _record(
        self, paths: Paths, before: Any, args: Any, kwargs: Any, key: Any, many: bool, arrays: Arrays, finish: Finish | None
    ) -> tuple[bool, Any] | None:
        if paths.count >= self.max_traces:
            if not paths.warned and before is not None:
                paths.warned = True
                trace, (step, _) = before
                warnings.warn(
                    f"{self._name()} took more than {self.max_traces} paths: what is asked at {trace.steps[step].line} is another "
                    "each time. It is called from now on; pass what keeps changing as an argument, or raise max_traces.",
                    RuntimeWarning,
                    stacklevel=4,
                )
            return None
        TAPE.load()  # which may compile and look at files: the function does not
        states, recorder = _random_states(), Recorder()
        own: Any = None
        if finish is None:  # first of all the function's own value: what it changes must not be changed twice
            try:
                own = Own(self.function(*args, **kwargs), True)
            except Exception as error:
                self._note_raised(paths, error)
                raise
            if self._changed(paths, key, args, kwargs):
                return False, own.value
        done = None if own is None else (False, own.value)
        try:
            made, inputs = recorded_call(
                recorder, self.function, args, kwargs, key[0], key[1][3], self._live, has_fixed_numbers(key)
            )
        except Exception as error:  # its own, when the function itself is called
            if self._live is not None:
                self._forget_live()
                return AGAIN if own is None else done
            self._note_raised(paths, error)
            return done
        if self._live is not None and self._computes_with_live(recorder, inputs):
            self._forget_live()  # to be compared, and to compute with once
            return AGAIN if own is None else done
        drawn = _random_states() != states
        if drawn and not recorder.draws and threading.active_count() > 1:
            # Another thread may have drawn them. This call is right in any case, and the next one is looked at again.
            return done if finish is None or recorder.refused else (False, finish(as_asked(made, many)))
        if recorder.draws or drawn:
            raise ProgramError(
                f"{self._name()} draws random numbers, which would be the same in every run of a program. Draw them outside and "
                "pass them as an argument."
            )
        for (name, array), kept in zip(arrays, paths.contents, strict=True):
            if not same_bits(array, kept):
                raise ProgramError(
                    f"{self._name()} writes into the array {name}, which is not its own: a program would not do that again. "
                    "Write into a copy of it."
                )
        if self._changed(paths, key, args, kwargs):
            return done if finish is None or recorder.refused else (False, finish(as_asked(made, many)))
        paths.count += 1
        results = None if recorder.refused else self._results(recorder, made, args, kwargs, key, own)
        if recorder.refused or results is None:
            paths.refused = recorder.refused
            if recorder.fixes_numbers:
                self._by_numbers.setdefault(key, set())
            return done
        try:
            trace = Trace(recorder, inputs, made, results, self.fast)
        except (ValueError, AttributeError) as error:  # memory that is not as it was taken to be
            paths.refused = f"its steps cannot be written down: {error}"
            return done
        made.kept = True
        trace.is_running = True  # another thread may find it at once
        try:
            if before is not None:
                before[0].following[before[1]] = trace
            else:
                paths.first = trace
            return done if finish is None else (False, finish(as_asked(made, many)))
        finally:
            trace.is_running = False

    def _computes_with_live(self, recorder: Recorder, inputs: list[Value]) -> bool:
        """Whether there is something that NumPy alone computes of large arrays from outside, or that programs do not follow."""
        count = 0 if self._live is None else len(self._live.names)
        return bool(recorder.refused) or bool(
            look_up("programs.fused.data_steps:steps_before")(recorder.steps, inputs[-count:], ())
        )

    def _note_raised(self, paths: Paths, error: Exception) -> None:
        paths.raised += 1
        if paths.raised >= MOST_RAISED:
            paths.refused = f"it raised {type(error).__name__} while it was recorded: {error}"

    def _changed(self, paths: Paths, key: Any, args: Any, kwargs: Any) -> bool:
        """Whether the function changed what it sees."""
        if self._key(args, kwargs, key[0], key[1][3])[0] == key:
            return False
        paths.changes += 1
        if paths.changes >= MOST_RAISED:
            paths.refused = "it changes what it sees"
        return True

    def _results(self, recorder: Recorder, made: Call, args: Any, kwargs: Any, key: Any, own: Own | None) -> Results | None:
        """What was returned, if it is what the function itself gives: it may ask whether an argument is a float."""
        if own is None:
            with np.errstate(all="ignore"):
                try:
                    own = Own(self.function(*args, **kwargs), True)
                except (TypeError, AttributeError):  # arrays may not have what it asks of those that drivers give it
                    own = Own(self._under_driver(args, kwargs, key[0]), False)
                except Exception:
                    own = Own(None, True)
        if are_alike(plain_tree(made.output), plain_tree(own.value)):
            return Results(recorder, made, own.value, own.has_types and not recorder.has_other_value)
        recorder.refuse("with the arguments themselves it gives another value than with arrays in their places")
        return None

    def _under_driver(self, args: Any, kwargs: Any, argnums: Any) -> Any:
        """What the function gives where drivers call it."""
        return plain_tree(call(Callee(self.function), args, kwargs, argnums, False, "program").output)


def as_asked(made: Call, many: bool) -> Call:
    """A call with its gradients in a tuple, or without it for a single argument."""
    if made.many != many:
        node = made.structure
        assert many or (node is not None and len(node.children) == 1)
        made.structure = Node((), (0,), (node,)) if many else node.children[0]  # type: ignore[union-attr]
        made.many = many
    return made


def _random_states() -> Any:
    state: Any = np.random.get_state()  # noqa: NPY002 - the function may draw from it
    return state[1].tobytes(), state[2:], random.getstate()
