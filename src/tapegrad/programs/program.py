"""`program`: a function that is called once for each of its paths, and from then on replaced by what the call recorded."""

from __future__ import annotations

import functools
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import errors_raise
from tapegrad.drivers.calling import call
from tapegrad.drivers.containers import Node
from tapegrad.drivers.leaves import Argnums, Call, Callee, check_argnums, plain_tree
from tapegrad.drivers.mapping import InAxes, mapped
from tapegrad.errors import ProgramError
from tapegrad.programs.keyed_paths import KeyedPaths
from tapegrad.programs.keys import Paths
from tapegrad.programs.methods import ProgramOfObject
from tapegrad.programs.recorded_calls import Own, Results, are_alike, recorded_call
from tapegrad.programs.recorder import Recorder
from tapegrad.programs.surroundings import Arrays, same_bits
from tapegrad.programs.traces import Trace
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import is_recording
from tapegrad.tensors.tracing import settle

__all__ = ["Program", "program"]

MOST_RAISED = 16  # recordings that end in an exception until the function is called without any
Finish = Callable[[Call], Any]


class Program(KeyedPaths):
    """A function whose recorded calls are run again; made by `program`."""

    def __init__(self, function: Callable[..., Any], check: int, max_traces: int) -> None:
        super().__init__(function, max_traces)
        self.check = check
        functools.update_wrapper(self, function, updated=())
        self._calls = 0
        self._own = frozenset(vars(self))

    # Calls.

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's value."""
        done = self.__replay__(args, kwargs)
        return self.function(*args, **kwargs) if done is None else done[1]

    def __replay__(
        self, args: Any, kwargs: Any, argnums: Argnums | None = None, has_aux: bool = False, finish: Finish | None = None
    ) -> tuple[bool, Any] | None:
        """What drivers call: whether it was run again, and what `finish` gives for the call; None to call the function.

        Without `finish` it is the function's value.
        """
        if self._is_called:
            return None
        if TAPE.tracers:
            settle()
        if TAPE.tracers or TAPE.anomalies or TAPE.packers or untracked_values.depth() or not is_recording():
            return None
        if finish is None and errors_raise():
            return None
        many = argnums is not None and not isinstance(argnums, (int, np.integer))
        usual = self._usual.get((argnums, has_aux)) if not kwargs and not (many and type(argnums) is list) else None
        if usual is not None and usual.holds(args):
            trace = usual.paths.first
            if trace is not None and (trace.has_value or finish is not None) and trace.lock.acquire(False):
                try:
                    if _runs(trace, args):
                        return self._checked(trace, args, kwargs, argnums, many, finish)
                finally:
                    trace.lock.release()
        asked = argnums
        if argnums is not None:
            argnums = check_argnums(argnums, len(args), "grad")
        key, values, objects, arrays = self._key(args, kwargs, argnums, has_aux)
        if key is None:
            return None
        paths = self._paths_of(key, objects, arrays)
        if paths is None:
            return None
        if paths.first is not None and not kwargs and type(asked) is not list:
            self._note_usual((asked, has_aux), args, paths)
        if paths.refused:
            return None
        trace, before = paths.first, None
        while trace is not None:
            if not (trace.has_value or finish is not None) or not trace.lock.acquire(False):
                return None
            try:
                try:
                    failed = trace.run(values)
                except Exception as error:  # such as that of a singular matrix, which the function itself raises with its own words
                    paths.stopped = f"{type(error).__name__}: {error}"
                    return None
                if failed is None:
                    return self._checked(trace, args, kwargs, argnums, many, finish)
            finally:
                trace.lock.release()
            before, trace = (trace, failed), trace.following.get(failed)
        return self._record(paths, before, args, kwargs, key, many, arrays, finish)

    def _checked(self, trace: Trace, args: Any, kwargs: Any, argnums: Any, many: bool, finish: Finish | None) -> tuple[bool, Any]:
        self._calls += 1
        if self.check and self._calls % self.check == 0:
            found = plain_tree(trace.made.output)
            expected = self.function(*args, **kwargs) if trace.has_value else self._under_driver(args, kwargs, argnums)
            if not are_alike(found, plain_tree(expected)):
                raise ProgramError(
                    f"{self._name()} gives {expected!r}, and the program made of it {found!r}: it reads something that programs do "
                    "not see. Pass that as an argument."
                )
        return True, trace.value() if finish is None else finish(_as_asked(trace.made, many))

    # Recording.

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
            made, inputs = recorded_call(recorder, self.function, args, kwargs, key[0], key[1][3])
        except Exception as error:  # its own, when the function itself is called
            self._note_raised(paths, error)
            return done
        if recorder.draws or _random_states() != states:
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
            return done if finish is None or recorder.refused else (False, finish(_as_asked(made, many)))
        paths.count += 1
        results = None if recorder.refused else self._results(recorder, made, args, kwargs, key, own)
        if recorder.refused or results is None:
            paths.refused = recorder.refused
            return done
        try:
            trace = Trace(recorder, inputs, made, results)
        except (ValueError, AttributeError) as error:  # memory that is not as it was taken to be
            paths.refused = f"its steps cannot be written down: {error}"
            return done
        made.kept = True
        with trace.lock:  # another thread may find it at once
            if before is not None:
                before[0].following[before[1]] = trace
            else:
                paths.first = trace
            return done if finish is None else (False, finish(_as_asked(made, many)))

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
            return Results(recorder, made, own.value, own.has_types)
        recorder.refuse("with the arguments themselves it gives another value than with arrays in their places")
        return None

    def _under_driver(self, args: Any, kwargs: Any, argnums: Any) -> Any:
        """What the function gives where drivers call it."""
        return plain_tree(call(Callee(self.function), args, kwargs, argnums, False, "program").output)

    @property
    def __called__(self) -> Callable[..., Any]:
        """What drivers call instead where there is nothing to run again: compiled functions and modules have ways of their own."""
        return self.function if self._is_called else self

    # As functions are used.

    def map(self, *args: Any, in_axes: InAxes | None = None, **kwargs: Any) -> Any:
        """The program at many points.

        Parameters
        ----------
        *args, **kwargs
            Arguments of the function, of which some have one axis more: that of the points.
        in_axes : int, None or sequence of these
            Which axis that is, for all positional arguments or for each, None for what is the same at all points; of containers, of
            each array in them. By default the points are in axis 0 of the first argument, and the others are the same.

        Returns
        -------
        object
            What the function returns, with the points in axis 0.

        Raises
        ------
        ValueError
            If no argument is mapped, there is no such axis, or numbers of points differ.

        Notes
        -----
        What drivers make of a program has the same method. What is raised has a note with the number of its point.

        Examples
        --------
        >>> f = tg.program(lambda x, scale: scale * (x * x).sum())
        >>> points = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]])
        >>> f.map(points, 2.0)
        array([10., 50.,  2.])
        >>> tg.grad(f).map(points, np.array([1.0, 2.0, 3.0]), in_axes=0)
        array([[ 2.,  4.],
               [12., 16.],
               [ 0.,  6.]])
        """
        return mapped(self, args, kwargs, in_axes)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        """In a class, the program of the method of an object."""
        return self if owner is None else ProgramOfObject(self, owner)

    def __reduce__(self) -> Any:
        name = str(getattr(self.function, "__qualname__", ""))
        found: Any = sys.modules.get(getattr(self.function, "__module__", None) or "")
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is self:  # a decorated function: pickle has no other way to it
            return name
        return _made_anew, (self.function, self.check, self.max_traces)

    # What was recorded.

    @property
    def traces(self) -> list[dict[str, Any]]:
        """The recorded paths as plain data: for each its number of steps, its guards with their lines, and its inputs."""
        found = []
        for paths in (one for known in self._paths.values() for one in known):
            pending = [paths.first] if paths.first is not None else []
            while pending:
                trace = pending.pop()
                found.append(trace.described())
                pending += trace.following.values()
        return found

    def explain(self) -> str:
        """The program as text: of each path its inputs and steps, and why there is none where the function is called."""
        lines = [f"program of {self._name()}"]
        for k, trace in enumerate(self.traces):
            lines.append(f"path {k}: inputs of shapes {trace['inputs']}")
            lines += [f"  {step}" for step in trace["steps"]]
        refused = [paths.refused for known in self._paths.values() for paths in known if paths.refused]
        lines += [f"called each time: {reason}" for reason in [*refused, *([self._unseen] if self._unseen else [])]]
        stopped = [paths.stopped for known in self._paths.values() for paths in known if paths.stopped]
        lines += [f"called where a step raised {error}" for error in stopped]
        return "\n".join(lines)


def _made_anew(function: Callable[..., Any], check: int, max_traces: int) -> Program:
    return Program(function, check, max_traces)


def program(function: Callable[..., Any] | None = None, *, check: int = 0, max_traces: int = 64) -> Any:
    """A function that is called once for each path through it, and from then on replaced by what the call recorded.

    Parameters
    ----------
    function : callable
        Any function that drivers take. Without it, a decorator with these options.
    check : int
        Call the function beside every so many runs, and raise if they differ; 0 never does.
    max_traces : int
        Paths that are recorded for arguments of the same types and shapes, until the function is called each time.

    Returns
    -------
    Program
        To be called as the function, and to be given to `value_and_grad` and `grad`, which run it again too; other drivers call the
        function.

    Raises
    ------
    ProgramError
        By a call: if the function draws random numbers or writes into arrays that are not its own.

    Notes
    -----
    Numbers and arrays among the arguments are inputs. Everything else that the function sees is part of a key, under which paths
    are kept: shapes and dtypes, integers, text, objects by identity, what its closure and globals hold, contents of arrays there.
    Where the function asks for a value (``if x[0] > 0``), the answer must be the same in a run, else another path is recorded. What
    cannot be run again, such as operations that write in place, is called each time, and `explain` says why.

    Examples
    --------
    >>> @tg.program
    ... def f(x, scale):
    ...     return scale * (x * x).sum()
    >>> f(np.array([1.0, 2.0]), 3.0)
    np.float64(15.0)
    >>> tg.value_and_grad(f)(np.array([1.0, 3.0]), 2.0)
    (20.0, array([ 4., 12.]))
    >>> len(f.traces)
    1
    """
    if function is None:
        return functools.partial(program, check=check, max_traces=max_traces)
    if not callable(function):
        raise TypeError(f"program() takes a function, but got {type(function).__name__}")
    if isinstance(function, Program):
        return function
    return Program(function, check, max_traces)


def _runs(trace: Trace, values: Any) -> bool:
    """Whether a path can be taken for other values of the inputs, and was."""
    try:
        return trace.run(values) is None
    except Exception:  # which the function itself raises with its own words
        return False


def _as_asked(made: Call, many: bool) -> Call:
    """A call with its gradients in a tuple, or without it for a single argument."""
    if made.many != many:
        node = made.structure
        assert node is not None or many
        made.structure = Node((), (0,), (node,)) if many else node.children[0]  # type: ignore[union-attr]
        made.many = many
    return made


def _random_states() -> Any:
    state: Any = np.random.get_state()  # noqa: NPY002 - the function may draw from it
    return state[1].tobytes(), state[2:], random.getstate()
