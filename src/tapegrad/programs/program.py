"""`program`: a function that is called once for each of its paths, and from then on replaced by what the call recorded."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import errors_raise
from tapegrad.deferred import look_up
from tapegrad.drivers.leaves import Argnums, Call, check_argnums, plain_tree
from tapegrad.drivers.mapping import InAxes, Points, mapped
from tapegrad.errors import ProgramError
from tapegrad.programs.conditions import may_run
from tapegrad.programs.direct_calls import direct_call
from tapegrad.programs.fixed_numbers import has_fixed_numbers
from tapegrad.programs.fused.kinds import LATER, kind_of
from tapegrad.programs.keys import NOT_USUAL, Usual
from tapegrad.programs.methods import ProgramOfObject
from tapegrad.programs.points import at_points
from tapegrad.programs.recorded_calls import are_alike
from tapegrad.programs.recorded_paths import AGAIN, Finish, RecordedPaths, as_asked
from tapegrad.programs.traces import Trace, all_after, has_code
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tracing import settle

__all__ = ["Program", "program"]

WITH_DIRECT = frozenset(["", "value", "jacobian", "hessian", "value_jvp", "hvp"]) | LATER


class Program(RecordedPaths):
    """A function whose recorded calls are run again; made by `program`."""

    def __init__(self, function: Callable[..., Any], check: int, max_traces: int, fuse: bool, threads: int, fast: bool) -> None:
        super().__init__(function, max_traces)
        self.check, self.fuses, self.threads, self.fast = check, fuse, threads, fast
        functools.update_wrapper(self, function, updated=())
        self._calls = self._known = 0
        self._of_value = self.__direct__("value", None)
        self._own = frozenset(vars(self))

    # Calls.

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's value."""
        if (direct := self._of_value.call) is not None and not kwargs and (found := direct(args)) is not None:
            return found
        done = self.__replay__(args, kwargs)
        return self.function(*args, **kwargs) if done is None else done[1]

    def __replay__(
        self,
        args: Any,
        kwargs: Any,
        argnums: Argnums | None = None,
        has_aux: bool = False,
        finish: Finish | None = None,
        needs: Any = "",
    ) -> tuple[bool, Any] | None:
        """What drivers call: whether it was run again, and what `finish` gives for the call; None to call the function.

        Without `finish` it is the function's value. It `needs` gradients of a number, or something else (`finished_call`).
        """
        if self._is_called:
            return None
        if TAPE.tracers:
            settle()
        if not may_run():
            return None
        if finish is None and errors_raise():
            return None
        needs = needs if needs or finish is not None else "value"
        if self.check and type(needs) is tuple:
            needs = "rows"  # products come without the value that is compared
        usual, given = (None, args) if kwargs or type(argnums) in NOT_USUAL else self._usual_call(args, argnums, has_aux)
        what, along = kind_of(needs)
        if usual is not None and (trace := usual.paths.first) and not trace.is_running and (trace.has_value or finish is not None):
            trace.is_running = True
            try:
                has_run = usual.has_run(trace, what, given, along)
                if has_run or (usual.holds(given) and (trace.has_fused(given, needs, self.fuses) or trace.has_run(given))):
                    self._missed[argnums, has_aux] = 0
                    if what not in usual.looked and (has_run or trace.made.products is not None):
                        self._prepare_direct(usual, trace, what, argnums, has_aux)
                    return self._checked(trace, args, kwargs, argnums, usual.many, finish)
            finally:
                trace.is_running = False
        asked = argnums
        many = argnums is not None and not isinstance(argnums, (int, np.integer))
        if argnums is not None:
            try:
                argnums = check_argnums(argnums, len(args), "program")
            except (TypeError, ValueError):  # which the driver raises again, in its own name
                return None
        key, values, objects, arrays = self._key(args, kwargs, argnums, has_aux)
        if key is None:
            return None
        paths = self._paths_of(key, objects, arrays)
        if paths is None:
            return None
        if paths.first is not None and not kwargs and type(asked) not in NOT_USUAL:
            self._note_usual((asked, has_aux), args, paths, many, key)
        if paths.refused:
            return None
        paths.needs |= {what} | ({"value"} if type(needs) is str and needs in LATER else set())
        trace, before = paths.first, None
        if trace is not None and len(trace.inputs) != len(values):
            paths.refused = "it is differentiated by what an object among its arguments holds"
            return None
        while trace is not None:
            if not (trace.has_value or finish is not None) or trace.is_running:
                return None
            trace.is_running = True
            try:
                try:
                    fused = trace.has_fused(values, needs, self.fuses)
                    failed = None if fused else trace.run(values)
                except Exception as error:  # such as that of a singular matrix, which the function itself raises with its own words
                    paths.stopped = f"{type(error).__name__}: {error}"
                    return None
                if failed is None:
                    return self._checked(trace, args, kwargs, argnums, many, finish)
            finally:
                trace.is_running = False
            before, trace = (trace, failed), trace.following.get(failed)
        done = self._record(paths, before, args, kwargs, key, many, arrays, finish)
        return self.__replay__(args, kwargs, asked, has_aux, finish, needs) if done is AGAIN else done

    def _checked(self, trace: Trace, args: Any, kwargs: Any, argnums: Any, many: bool, finish: Finish | None) -> tuple[bool, Any]:
        self._calls += 1
        if self.check and self._calls % self.check == 0:
            found = plain_tree(trace.made.output)
            expected = self.function(*args, **kwargs) if trace.has_value else self._under_driver(args, kwargs, argnums)
            if not are_alike(found, plain_tree(expected)):
                raise ProgramError(
                    f"{self._name()} gives {expected!r}, and the program made of it {found!r}: it reads something that programs "
                    "do not see. Pass that as an argument."
                )
        if finish is None:
            return True, trace.value()
        made = trace.made if trace.made.many == many else as_asked(trace.made, many)
        try:
            return True, finish(made)
        finally:
            made.gradients = made.matrix = made.products = None

    def _prepare_direct(self, usual: Usual, trace: Trace, what: str, argnums: Any, has_aux: bool) -> None:
        """Let drivers find a call that does everything at once, if there can be one."""
        usual.looked.add(what)
        if what in WITH_DIRECT and not has_aux:
            direct = self.__direct__(what, argnums)
            direct.call = direct_call(self, usual, trace, what, argnums, self._live)
            if self._usual.get((argnums, has_aux)) is not usual:  # another thread has seen others meanwhile
                direct.call = None

    def __has_code__(self, what: str) -> bool | None:
        """What optimisers ask who have another way: whether there is machine code of "hessian" or "hvp"; None if never."""
        paths = [one for known in list(self._paths.values()) for one in known]  # other threads may record
        return has_code([one.first for one in paths if one.first is not None], what, self.fuses)

    @property
    def __called__(self) -> Callable[..., Any]:
        """What drivers call instead where there is nothing to run again: compiled functions and modules have ways of their own."""
        return self.function if self._is_called else self

    # As functions are used.

    def map(self, *args: Any, in_axes: InAxes | None = None, executor: Any = None, **kwargs: Any) -> Any:
        """The program at many points.

        Parameters
        ----------
        *args, **kwargs
            Arguments of the function, of which some have one axis more: that of the points.
        in_axes : int, None or sequence of these
            Which axis that is, for all positional arguments or for each, None for what is the same at all points; of containers, of
            each array in them. By default the points are in axis 0 of the first argument, and the others are the same.
        executor : Executor, distributed.Client, joblib.Parallel, "joblib", "ray" or None
            Whose workers compute the points, in parts that are the same for any number of them; as for `tg.parallel.sum_over`.

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
        return mapped(self, args, kwargs, in_axes, self.__many__, executor)

    def __settled__(self, *args: Any, **kwargs: Any) -> Any:
        """As a call, but without code, and it runs what it records: what it gives does not depend on which call was the first."""
        done = self.__replay__(args, kwargs, needs="rows")
        if done is not None and not done[0] and (count := sum(1 for _ in self._recorded())) != self._known:
            self._known = count
            done = self.__replay__(args, kwargs, needs="rows") or done
        return self.function(*args, **kwargs) if done is None else done[1]

    @property
    def __many__(self) -> Any:
        return functools.partial(self.__points__, None, "value")

    def __points__(
        self,
        argnums: Argnums | None,
        parts: str,
        taken: Sequence[Points],
        numbers: np.ndarray[Any, Any],
        share: float = 1.0,
        threads: int = 0,
    ) -> tuple[np.ndarray[Any, Any], list[np.ndarray[Any, Any]]] | None:
        """What `map` asks first: points that recorded paths take, and parts of the results there; see `at_points`."""
        if self._is_called or not self.fuses or self.check or not may_run() or errors_raise():
            return None
        args = tuple(one.at(int(numbers[0])) for one in taken)
        asked = None if argnums is None else check_argnums(argnums, len(args), "grad")
        key, _, objects, arrays = self._key(args, {}, asked, False)
        paths = None if key is None or has_fixed_numbers(key) else self._paths_of(key, objects, arrays)
        if paths is None or paths.refused or paths.first is None:
            return None
        traces = [trace for trace in all_after(paths.first) if parts != "value" or trace.has_value]
        given = [*taken, *(Points(value, None, 0) for value in self._live_values())]
        return at_points(traces, given, numbers, parts, threads or self.threads, share)

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
        return _made_anew, (self.function, self.check, self.max_traces, self.fuses, self.threads, self.fast)

    # What was recorded.

    def _recorded(self) -> Iterator[Trace]:
        for paths in (one for known in self._paths.values() for one in known):
            if paths.first is not None:
                yield from all_after(paths.first)

    def recorded_calls(self, argnums: tuple[int, ...]) -> Iterator[Call]:
        """Calls of all recorded paths that are differentiated by these arguments; one that is being run is left out.

        A call's rows are as its latest run left them, and stay so until the next call is asked for.
        """
        for key in [key for key in self._paths if key[0] == argnums]:
            for trace in (t for paths in self._paths[key] if paths.first is not None for t in all_after(paths.first)):
                if not trace.is_running:
                    trace.is_running = True
                    try:
                        yield trace.made
                    finally:
                        trace.is_running = False

    def compile(self) -> None:
        """Make machine code of all recorded paths now, instead of in another thread once they have run often.

        The next call that asks a path for its gradient compares it with what the path's steps give, and it is used from then on.
        Paths of which there is no machine code run as before; `explain` says why.

        Examples
        --------
        >>> f = tg.program(lambda x: (x * np.exp(-x)).sum())
        >>> both = tg.value_and_grad(f)
        >>> value, gradient = both(np.array([0.0, 1.0]))
        >>> f.compile()
        >>> both(np.array([0.0, 1.0]))[1].tolist() == gradient.tolist()
        True
        """
        for paths in (one for known in self._paths.values() for one in known):
            for trace in () if paths.first is None else all_after(paths.first):
                trace.compile(paths.needs)

    def save(self, file: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write all recorded paths to a file, from which `load_program` reads them where the function is not.

        Parameters
        ----------
        file : str, path, or binary file object

        Raises
        ------
        ProgramError
            If nothing was recorded, or a path cannot have machine code; the message says why.
        OSError
            If the file cannot be written.
        """
        look_up("programs.saved_programs:save_program")(self, file)

    @property
    def traces(self) -> list[dict[str, Any]]:
        """The recorded paths as plain data: for each its number of steps, its guards with their lines, and its inputs."""
        return [trace.described() for trace in self._recorded()]

    def explain(self) -> str:
        """The program as text: of each path its inputs and steps, and why there is none where the function is called."""
        lines = [f"program of {self._name()}"]
        for k, trace in enumerate(self.traces):
            lines.append(f"path {k}: inputs of shapes {trace['inputs']}")
            lines += [f"  {step}" for step in trace["steps"]] + [f"  {trace['machine code']}"]
        refused = [paths.refused for known in self._paths.values() for paths in known if paths.refused]
        lines += [f"called each time: {reason}" for reason in [*refused, *([self._unseen] if self._unseen else [])]]
        stopped = [paths.stopped for known in self._paths.values() for paths in known if paths.stopped]
        lines += [f"called where a step raised {error}" for error in stopped]
        return "\n".join(lines)


def _made_anew(*parts: Any) -> Program:
    return Program(*parts)


def program(
    function: Callable[..., Any] | None = None,
    *,
    check: int = 0,
    max_traces: int = 64,
    fuse: bool = True,
    threads: int = 1,
    fast: bool = False,
) -> Any:
    """A function that is called once for each path through it, and from then on replaced by what the call recorded.

    Parameters
    ----------
    function : callable
        Any function that drivers take. Without it, a decorator with these options.
    check : int
        Call the function beside every so many runs, and raise if they differ; 0 never does.
    max_traces : int
        Paths that are recorded for arguments of the same types and shapes, until the function is called each time.
    fuse : bool
        Whether paths of which value and gradient are asked for often get machine code, which another thread compiles.
    threads : int
        In how many threads `map` computes points; results do not depend on it.
    fast : bool
        Whether machine code may round otherwise than NumPy does: a product and a sum in one operation, sines, cosines and
        hyperbolic tangents of arrays within two units. Results then depend on when there is code.

    Returns
    -------
    Program
        To be called as the function, and to be given to drivers and optimisers, which run it again too.

    Raises
    ------
    ProgramError
        By a call: if the function draws random numbers or writes into arrays that are not its own.

    Notes
    -----
    Numbers and arrays among the arguments are inputs. Everything else that the function sees is part of a key, under which paths
    are kept: shapes and dtypes, integers, text, objects by identity, what its closure and globals hold, contents of arrays there.
    Where the function asks for a value (``if x[0] > 0``), the answer must be the same in a run, else another path is recorded. What
    cannot be run again, such as what writes into its arguments, is called each time, and `explain` says why.

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
        return functools.partial(program, check=check, max_traces=max_traces, fuse=fuse, threads=threads, fast=fast)
    if not callable(function):
        raise TypeError(f"program() takes a function, but got {type(function).__name__}")
    if isinstance(function, Program):
        return function
    return Program(function, check, max_traces, fuse, threads, fast)
