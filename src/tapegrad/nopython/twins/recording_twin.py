"""The recording twin of a compiled function."""

from __future__ import annotations

import inspect
import weakref
from typing import Any

import numba
from numba.core import types
from numba.core.dispatcher import _FunctionCompiler
from numba.core.errors import TypingError

from tapegrad.nopython.numba_interface.error_reports import Failures
from tapegrad.nopython.twins.compiled_versions import plain_type
from tapegrad.nopython.twins.generations import COMPILING, NODES, Node
from tapegrad.nopython.twins.registrations import registration_of
from tapegrad.nopython.types.variable import Variable, has_variables, is_float, primal_type, variable_of

__all__ = ["PIPELINES", "forget", "twin"]

# Options of the user's decorator that the twin keeps. `fastmath` would turn the guards against 0 times infinity into nothing.
KEPT = ("boundscheck", "error_model", "nogil", "no_cpython_wrapper", "_nrt")


class RecordingFunctionCompiler(_FunctionCompiler):  # type: ignore[misc]
    """Types the arguments of a twin."""

    def fold_argument_types(self, args: Any, kws: Any) -> Any:
        """As for every function; numbers that arrive as ``*args`` are variables if one of them is, as they are all floats."""
        pysig, folded = super().fold_argument_types(args, kws)
        folded = tuple(alike(kind) if isinstance(kind, STAR) else kind for kind in folded)
        if not self.primal._can_compile:
            folded = (folded[0], *self._declared(folded[1:]))
        if COMPILING:
            COMPILING[-1].callees.add(self._node(folded))
        return pysig, folded

    def _node(self, args: Any) -> Node:
        if args not in self.nodes:
            self.nodes[args] = Node(self.primal, tuple(map(plain_type, args[1:])))
            NODES.add(self.nodes[args])
        found: Node = self.nodes[args]
        return found

    def _signature(self, kinds: Any) -> Any:
        """The explicit signature that a call of the user's function with these types takes."""
        primals = tuple(primal_type(types.unliteral(kind)) for kind in kinds)
        return types.Dispatcher(self.primal).get_call_type(self.targetdescr.typing_context, primals, {})

    def _declared(self, kinds: Any) -> Any:
        """Constants are converted as the explicit signature says; variables must be what it says."""
        for kind, declared in zip(kinds, self._signature(kinds).args, strict=True):
            if has_variables(kind):
                if isinstance(declared, types.Number) and not is_float(declared):
                    raise TypingError(
                        f"[tapegrad] {self.py_func.__name__} is compiled for {declared} only, which is not differentiated: "
                        "give its decorator a signature with float64, or none"
                    )
                yield variable_of(declared) if isinstance(kind, Variable) else kind
            else:
                yield declared if isinstance(declared, types.Number) else kind

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        node = self._node(args)
        node.freeze()
        COMPILING.append(node)
        try:
            result = super()._compile_core(args, return_type)
        finally:
            COMPILING.pop()
        if not self.primal._can_compile:
            declared = self._signature(args[1:]).return_type
            found = primal_type(result.signature.return_type)
            if is_float(declared) and is_float(found) and declared != found:
                returned = variable_of(declared) if has_variables(result.signature.return_type) else declared
                return super()._compile_core(args, returned)
            if isinstance(declared, types.Number) and declared != found:
                raise TypingError(
                    f"[tapegrad] the signature of {self.py_func.__name__} converts its result from {found} to {declared}; "
                    "give its decorator a signature with float64, or none"
                )
        return result


# Numba's pipelines that record, by their level; `pipelines` puts them here, since what they fold calls twins again.
PIPELINES: list[Any] = []

STAR = (types.StarArgTuple, types.StarArgUniTuple)


def alike(kind: Any) -> Any:
    """The type of ``*args`` whose items have one type in the user's function."""
    primals = {primal_type(types.unliteral(item)) for item in kind}
    if len(primals) == 1 and has_variables(kind):
        items = [types.unliteral(item) for item in kind]
        return types.StarArgTuple([next(item for item in items if has_variables(item))] * len(items))
    return kind


def _place(function: Any) -> str:
    return f'File "{function.__code__.co_filename}", line {function.__code__.co_firstlineno}'


def _locals(function: Any, declared: dict[str, Any]) -> dict[str, Any]:
    """The types that the user's decorator gives to variables: floats hold variables of the tape."""
    name = function.__name__
    for local, kind in declared.items():
        if not is_float(kind) and not isinstance(kind, (types.Integer, types.Boolean)):
            raise TypingError(
                f"[tapegrad] the decorator of {name} declares {local} as {kind}; only float64 and float32 are differentiated: "
                f"leave it out of locals\n"
                f"{_place(function)}"
            )
    return {local: variable_of(kind) if is_float(kind) else kind for local, kind in declared.items()}


_twins: weakref.WeakKeyDictionary[Any, dict[int, Any]] = weakref.WeakKeyDictionary()


def twin(dispatcher: Any, level: int = 0) -> Any:
    """The function that does the same and records; it takes the tape as its first argument.

    On level 1, all new arrays of floats may hold variables; on level 0, those that are allocated as work arrays.
    """
    if dispatcher.targetoptions.get("forceobj"):
        raise TypingError(
            f"[tapegrad] {dispatcher.py_func.__name__} is decorated with forceobj, which cannot be recorded; "
            f"use numba.njit without it\n{_place(dispatcher.py_func)}"
        )
    table = _twins.setdefault(dispatcher, {})
    made = table.get(level)
    if made is None:
        options = {name: dispatcher.targetoptions[name] for name in KEPT if name in dispatcher.targetoptions}
        registered = registration_of(dispatcher)
        function = numba.njit(
            pipeline_class=PIPELINES[level],
            locals=_locals(dispatcher.py_func, dispatcher.locals) if registered is None else {},
            **options,
        )
        made = function(dispatcher.py_func if registered is None else registered.stand_in)
        plain = made._compiler.pysig
        tape = inspect.Parameter("tapegrad_tape", inspect.Parameter.POSITIONAL_ONLY)
        made._compiler.__class__ = RecordingFunctionCompiler
        made._compiler.primal = dispatcher
        made._compiler.nodes = {}
        made._compiler._failed_cache = Failures()
        made._compiler.pysig = plain.replace(parameters=[tape, *plain.parameters.values()])
        table[level] = made
    return made


def forget(dispatcher: Any) -> None:
    """Make other recording functions of this one from now on: Numba calls another one."""
    _twins.pop(dispatcher, None)
