"""One function, compiled to record: NumPy in, primals and rows out."""

from __future__ import annotations

import dataclasses
import inspect
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError, NumbaPendingDeprecationWarning

from tapegrad.errors import CompileError
from tapegrad.nopython.arguments import conversion
from tapegrad.nopython.arguments.instances import restored
from tapegrad.nopython.arguments.ownership import lies_apart, owned, shared_memory
from tapegrad.nopython.compiler import pipelines as pipelines
from tapegrad.nopython.numba_interface.compiling import CompilingFirst, UncompiledError
from tapegrad.nopython.numba_interface.error_reports import Failures, explained
from tapegrad.nopython.numba_interface.linking import DriveCompiler
from tapegrad.nopython.tape.column_memory import Columns
from tapegrad.nopython.twins.derivative_cache import DerivativeCache
from tapegrad.nopython.twins.generations import COMPILATIONS, reached, watch
from tapegrad.nopython.twins.recording_twin import forget, twin
from tapegrad.nopython.types.curved_tape import as_curved, as_directed

__all__ = ["Recorder", "recorder"]

FLOAT64 = np.dtype(np.float64)
FLOATS = FLOAT64, np.dtype(np.float32)
ATOMS = frozenset([np.ndarray, float, int, bool])  # arguments that need not be looked into
Form = tuple[str, bool]  # what the tape is seen as, and whether the function returns something besides


class Recorder:
    """Records calls of a function with respect to some of its arguments.

    Constant arrays are passed on as they are, and code that writes into them is refused; if a function is refused, it is compiled
    again with copies of them into which variables may be written. The second form records more than is needed.
    """

    def __init__(self, dispatcher: Any, argnums: tuple[int, ...]) -> None:
        self.function, self.argnums = dispatcher.py_func, argnums
        self.name = self.function.__name__
        self.signature = inspect.signature(self.function)
        self.plain = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in self.signature.parameters.values())
        self.count = len(self.signature.parameters)
        self._compilations = -1
        self._has_changed: Callable[[], bool] | None = None
        self._make_twins(dispatcher)
        self._nogil = bool(dispatcher.targetoptions.get("nogil"))
        self._drives: dict[tuple[int, int, str, bool], Any] = {}
        self._second: dict[Any, int] = {}

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Arguments by position, with defaults filled in."""
        if kwargs or len(args) != self.count or not self.plain:
            bound = self.signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        out = list(args)
        for k in self.argnums:
            if not -len(out) <= k < len(out):
                raise ValueError(f"{self.name} has no argument {k} to differentiate with respect to: it was called with {len(out)}")
            if type(out[k]) is not np.ndarray or out[k].dtype is not FLOAT64:
                out[k] = _point(out[k], f"argument {k}", self.name)
        return out

    def _make_twins(self, dispatcher: Any) -> None:
        try:
            self._twins = [twin(dispatcher, level) for level in (0, 1, 0)]
        except NumbaError as error:
            raise explained(self.function, error) from error

    def _renew(self) -> None:
        """See to it that what is recorded is the function that Numba calls now, with the values of globals that it has there."""
        compilations = COMPILATIONS.count
        nodes = reached(self._twins)
        try:
            if not all(node.is_current() for node in nodes):
                dispatcher = self._twins[0]._compiler.primal
                for primal in {dispatcher, *(node.primal for node in nodes)}:
                    forget(primal)
                self._make_twins(dispatcher)
                self._drives, self._second, nodes = {}, {}, []
            for node in nodes:
                node.check_calls()
        except NumbaError as error:
            raise explained(self.function, error) from error
        self._has_changed = watch(nodes)
        self._compilations = compilations

    def current_twin(self, level: int) -> Any:
        """The recording form of the function that Numba calls now, for who compiles it himself; level 2 is the first one."""
        self._renew()
        return self._twins[level]

    def record(self, columns: Columns, arguments: list[Any], curved: bool = False, has_aux: bool = False) -> Any:
        """Run the function on an empty tape; primals and rows of its result.

        With `curved` second partials are recorded as well, or how partials change if the columns have a direction. With `has_aux`
        the function returns a pair, and what is in its second place is handed on as it is.
        """
        if self._compilations != COMPILATIONS.count or (self._has_changed is not None and self._has_changed()):
            self._renew()
        form = ("as_directed" if columns.directed else "as_curved") if curved else "", has_aux
        if ATOMS.issuperset(map(type, arguments)) and _lie_apart(arguments):
            return self._attempt(columns, arguments, form)
        shared = shared_memory(self.name, arguments)
        with restored(self.name, arguments):
            record = self._unwritten if shared else self._attempt
            return record(columns, owned(arguments, shared), form)

    def _attempt(self, columns: Columns, arguments: list[Any], form: Form) -> Any:
        level = self._second.get(tuple(numba.typeof(arg) for arg in arguments), 0) if self._second else 0
        try:
            return self._driven(level, columns, arguments, form)
        except UncompiledError as first:
            if level == 1:
                raise self._explained(first.reason, arguments) from first.reason
            columns.clear()
            try:
                result = self._driven(1, columns, arguments, form)
            except UncompiledError as second:
                raise self._explained(second.reason, arguments) from second.reason
            kinds = tuple(numba.typeof(arg) for arg in arguments)
            self._second[kinds] = 1
            if not isinstance(first.reason, Warning):  # which the user made an error of: the form itself may compile
                self._drive(level, len(arguments), form)._cache.save_refusal((types.int64, *kinds))
            return result

    def _explained(self, reason: BaseException, arguments: list[Any]) -> CompileError:
        plain = self._twins[0]._compiler.primal  # which must not remember that it could not be compiled
        again = type(plain)(plain.py_func, dict(plain.locals), dict(plain.targetoptions), plain._compiler.pipeline_class)
        return explained(self.function, reason, lambda: again.compile(tuple(map(numba.typeof, arguments))))

    def _unwritten(self, columns: Columns, arguments: list[Any], form: Form) -> Any:
        """Arguments that share memory: what is written into one would have to be seen in the other."""
        try:
            return self._driven(2, columns, arguments, form)
        except UncompiledError as error:
            if ATOMS.issuperset(map(type, arguments)):
                columns.clear()
                apart = [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments]
                self._attempt(columns, apart, form)  # raises if sharing is not what is wrong with it
            raise ValueError(
                f"{self.name}: arrays in its arguments share memory, or elements of one array do, and the function cannot be "
                "compiled without writing into its arguments; pass a copy of one of them"
            ) from error

    def _driven(self, level: int, columns: Columns, arguments: list[Any], form: Form) -> Any:
        drive = self._drive(level, len(arguments), form)
        if not ATOMS.issuperset(map(type, arguments)) and any(map(_reflected, arguments)):
            with warnings.catch_warnings():  # Numba's notice about lists as arguments was given when the user's function was called
                warnings.simplefilter("ignore", NumbaPendingDeprecationWarning)
                return drive(columns.address, *arguments)
        return drive(columns.address, *arguments)

    def _drive(self, level: int, count: int, form: Form) -> Any:
        key = (level, count, *form)
        made = self._drives.get(key)
        if made is None:
            made = self._drives[key] = self._compiled(level, count, form)
        return made

    def _compiled(self, level: int, count: int, form: Form) -> Any:
        names = [f"a{k}" for k in range(count)]
        inputs = [k % count for k in self.argnums]
        order = inputs + [k for k in range(count) if k not in inputs]
        keep = ("held", "constant", "held")[level]
        given = [f"input_(tape, {n})" if k in inputs else f"{keep}({n})" for k, n in enumerate(names)]
        if level == 2:
            given = [f"guarded({text})" for text in given]
        seen_as, has_aux = form
        text = f"def drive({', '.join(['address', *names])}):\n    tape = {seen_as}(address)\n"
        # Rows of inputs are numbered in the order in which they were asked for, before anything is recorded.
        text += "".join(f"    v{k} = {given[k]}\n" for k in order)
        finish = "finish_pair" if has_aux else "finish"
        text += f"    return {finish}(twin({', '.join(['tape', *(f'v{k}' for k in range(count))])}))\n"
        # The name of a module that can be imported: compiled code that is kept on disk refers to its module.
        space: dict[str, Any] = {"__name__": conversion.__name__}
        space |= {name: getattr(conversion, name) for name in ("input_", "held", "guarded", "constant", finish)}
        space |= {"twin": self._twins[level], "as_curved": as_curved, "as_directed": as_directed}
        exec(compile(text, f"<tapegrad {self.name}>", "exec"), space)
        made = numba.njit(nogil=self._nogil, pipeline_class=DriveCompiler)(space["drive"])
        made._compiler._failed_cache = Failures()
        made._cache = DerivativeCache(self._twins[level], (level, count, inputs, form, self._nogil))
        made.__class__ = CompilingFirst
        return made


def _reflected(value: Any) -> bool:
    """Whether Numba would give its notice about a list or a set."""
    return isinstance(value, (list, set)) or (isinstance(value, tuple) and any(map(_reflected, value)))


def _lie_apart(arguments: list[Any]) -> bool:
    """Whether arrays share no memory, elements of one array neither, and none holds records; all arguments are atoms."""
    arrays = [argument for argument in arguments if type(argument) is np.ndarray]
    for k, a in enumerate(arrays):
        if not (a.flags.forc or lies_apart(a)) or (a.dtype is not FLOAT64 and a.dtype.names is not None):
            return False
        for b in arrays[:k]:
            if np.may_share_memory(a, b):
                return False  # or they do not, after all: that takes longer to find out
    return True


def _point(value: Any, place: str, name: str) -> Any:
    """An argument that is differentiated with respect to, checked."""
    if issubclass(type(value), float):
        return float(value)
    if issubclass(type(value), (np.ndarray, np.float32)) and value.dtype in FLOATS:
        return value
    if isinstance(value, tuple) and value:
        items = [_point(item, f"{place}[{k}]", name) for k, item in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    kind = f"an array of {value.dtype}" if issubclass(type(value), np.ndarray) else f"{type(value).__name__}"
    advice = (
        "Convert it with float(...), .astype(np.float64) or a tensor's .double(). A constant is left out of argnums, or, where "
        "there are none, bound with functools.partial."
    )
    if isinstance(value, (dict, list)) or dataclasses.is_dataclass(value):
        advice = "Compiled functions take a tuple or a named tuple in its place."
    raise TypeError(
        f"{name}: {place} is {kind}, but derivatives of compiled functions require real-valued inputs: float64 and float32 numbers "
        f"and arrays, and tuples of these. {advice}"
    )


_dispatchers: weakref.WeakKeyDictionary[Callable[..., Any], Any] = weakref.WeakKeyDictionary()
_recorders: weakref.WeakKeyDictionary[Any, dict[tuple[int, ...], Recorder]] = weakref.WeakKeyDictionary()


def recorder(function: Callable[..., Any], argnums: int | tuple[int, ...]) -> Recorder:
    """The recorder of a function, made once."""
    dispatcher: Any = function
    if not isinstance(function, Dispatcher):
        if not inspect.isfunction(function):
            raise TypeError(f"expected a function or an @numba.njit function, got {type(function).__name__}")
        dispatcher = _dispatchers.get(function)
        if dispatcher is None:
            dispatcher = _dispatchers[function] = numba.njit(function)
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    table = _recorders.setdefault(dispatcher, {})
    if numbers not in table:
        table[numbers] = Recorder(dispatcher, numbers)
    return table[numbers]
