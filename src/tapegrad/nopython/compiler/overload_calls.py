"""Calls of functions that Numba implements in Python: what it would compile for floats is recorded for variables.

So `np.var`, `np.interp` and functions that packages add with `numba.extending.overload` need no derivative of ours, and their
values are those of the very implementation that the undifferentiated function calls. Which one that is, is asked with the types
that the arguments would have there.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.datamodel import models, register_default
from numba.core.errors import NumbaError, TypingError
from numba.core.imputils import lower_constant
from numba.core.typing import signature

from tapegrad.nopython.formulas.expression_tree import Leaf, Op
from tapegrad.nopython.formulas.rule_names import RULE_OF
from tapegrad.nopython.functions.distributions import BY_PARAMETERS
from tapegrad.nopython.functions.linear_algebra import WITHOUT_DERIVATIVE
from tapegrad.nopython.functions.reductions import FUNCTIONS
from tapegrad.nopython.numba_interface.error_reports import reason_of
from tapegrad.nopython.statements.statement import StatementType
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.variable import Variable, has_variables, is_float, present, primal_type, variable_of

__all__ = ["Invocation", "has_out", "reduces"]

_dispatchers: dict[Any, Any] = {}

_writing: dict[Any, Any] = {}


def writing(function: np.ufunc, kinds: tuple[types.Type, ...]) -> Any:
    """What Numba does for a function of NumPy with an array for the result: items in order, also where arrays share memory."""
    ranks = tuple(getattr(kind, "ndim", 0) for kind in kinds)
    if (function, ranks) not in _writing:
        names, out = [f"a{k}" for k in range(function.nin)], ranks[-1]
        lines, items = [f"def into({', '.join([*names, 'out'])}):"], []
        for name, rank in zip(names, ranks, strict=False):
            places = []
            for own in range(rank):
                axis = own + out - rank
                lines.append(f"    if {name}.shape[{own}] != 1 and {name}.shape[{own}] != out.shape[{axis}]:")
                lines.append(f'        raise ValueError("unable to broadcast argument {name[1:]} to output array")')
                places.append(f"i{axis} if {name}.shape[{own}] != 1 else 0")
            items.append(f"{name}[{', '.join(places)}]" if rank else name)
        lines += [f"    {'    ' * axis}for i{axis} in range(out.shape[{axis}]):" for axis in range(out)]
        place = ", ".join(f"i{axis}" for axis in range(out))
        lines += [f"    {'    ' * out}out[{place or '()'}] = function({', '.join(items)})", "    return out"]
        space = {"function": function}
        exec(compile("\n".join(lines), "<tapegrad writing>", "exec"), space)
        _writing[function, ranks] = numba.njit(space["into"])
    return _writing[function, ranks]


@functools.cache
def _of_items(function: Any, count: int) -> Any:
    """The largest or smallest item of a tuple, as of so many arguments."""
    space = {"function": function}
    exec(f"def of_items(a):\n    return function({', '.join(f'a[{k}]' for k in range(count))})", space)
    return numba.njit(space["of_items"])


def reduces(function: Any, count: int) -> bool:
    """Whether `max` or `min` is asked of one container."""
    return function in (max, min) and count == 1


def has_out(function: Any, count: int) -> bool:
    """Whether an array for the result is given."""
    return isinstance(function, np.ufunc) and count > function.nin


INSIDE = ": inside of it, "  # what comes after it is the innermost reason


def _implementations(templates: Any, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Any:
    """The Python functions that Numba has for these types, asked for as it asks: with literal types or without, in its order."""
    asked = {with_literals: _asked_with(with_literals, args, kws) for with_literals in (False, True)}
    for template in templates:
        define = getattr(template, "_overload_func", None)
        if define is None:
            continue
        for with_literals in (True, False) if getattr(template, "prefer_literal", False) else (False, True):
            kinds, named = asked[with_literals]
            key = (define, kinds, tuple(named.items()))
            if key not in _dispatchers:
                _dispatchers[key] = _implementation(define, kinds, named)
            if _dispatchers[key] is not None:
                yield _dispatchers[key]
                break


def _implementation(define: Any, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Any:
    """What an overload has for these types, compiled; None if it is for others."""
    try:
        inspect.signature(define).bind(*args, **kws)
        function = define(*args, **kws)
    except Exception:  # some look at what types of others do not have
        return None
    return None if function is None or isinstance(function, tuple) else numba.njit(function, no_cpython_wrapper=True)


def _asked_with(literals: bool, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Any:
    """The types that the arguments have in the user's function."""

    def of(kind: types.Type) -> types.Type:
        return primal_type(kind if literals else types.unliteral(kind))

    return tuple(map(of, args)), {name: of(kind) for name, kind in kws.items()}


class InvocationType(types.Callable, types.Opaque):
    """The type of a call with the tape as the first argument."""

    def __init__(self, function: Any, method: str | None, level: int, native: Any = None) -> None:
        self.function, self.method, self.level, self.native = function, method, level, native
        self._calls: dict[tuple[types.Type, ...], tuple[Any, Any, int]] = {}
        super().__init__(f"Recorded({method or function}, {level}, {native})")

    @property
    def key(self) -> Any:
        return self.function if self.method is None else None, self.method, self.level, self.native

    def get_call_signatures(self) -> Any:
        return [], True

    def get_impl_key(self, sig: Any) -> Any:
        return self

    def get_call_type(self, context: Any, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Any:
        tape, rest = args[0], args[1:]
        if self.function is None and self.method is None:
            return self._call_of_value(context, tape, rest, kws)
        if (used := self._not_none(rest)) != rest:
            inner = self.get_call_type(context, (tape, *used), kws)
            optional = (tape, *rest, *inner.args[1 + len(rest) :])
            return self._remember(None, inner, inner.replace(args=optional), inner.pysig, 5)
        own = self._method_of_instance(rest, kws)
        if own is None and self._is_static(rest):
            callee = types.Dispatcher(twin(rest[0].jit_static_methods[self.method], self.level))
            sig = callee.get_call_type(context, (tape, *rest[1:]), kws)
            return self._remember(
                callee, sig, signature(sig.return_type, tape, rest[0], *sig.args[1:]), _second_added(sig.pysig), 2
            )
        if own is not None or (self.native is not None and not isinstance(rest[0], types.ClassInstanceType)):
            callee = types.Dispatcher(twin(own, self.level)) if own is not None else context.resolve_value_type(self.native)
            sig = callee.get_call_type(context, args, kws)
            return self._remember(callee, sig, sig, sig.pysig, 0)
        skipped = 0 if self.method is None else 1
        if self.method is None:
            function = context.resolve_value_type(self.function)
        else:
            function = context.resolve_getattr(rest[0], self.method)
            if function is None:
                raise TypingError(f"Unknown attribute '{self.method}' of type {rest[0]}")
            if not isinstance(function, types.BoundFunction):  # an attribute that is a function or a class of numbers
                return self._call_of_value(context, tape, (function, *rest[1:]), kws, rest[0])
        if any(has_variables(kind) for kind in (*rest, *kws.values())):
            if isinstance(function, types.ClassType):
                raise TypingError(
                    f"[tapegrad] an instance of the compiled class {self.function.__name__} is made of variables, but holds "
                    "numbers and arrays without derivatives; make it before the call and pass it as an argument, or keep what it "
                    "holds in local variables, tuples or lists"
                )
            if self.function in WITHOUT_DERIVATIVE:
                raise TypingError(
                    f"[tapegrad] {self.function.__module__.replace('numpy', 'np', 1)}.{self.function.__name__} of variables has no "
                    f"derivative in compiled functions; {WITHOUT_DERIVATIVE[self.function]}"
                )
            found = self._recorded(context, function, tape, rest, kws)
            if found is not None:
                return found
        try:
            sig = context.resolve_function_type(function, rest[skipped:], kws)
            if sig is None:
                raise TypingError("no form of it takes these arguments")
        except NumbaError as error:
            name = self.method or getattr(self.function, "__name__", str(self.function))
            if "[tapegrad]" in str(error) or not any(has_variables(kind) for kind in rest):
                raise
            inner = str(self.failures[-1]) if self.failures else ""
            because = f"{INSIDE}{reason_of(inner).split(INSIDE)[-1].split(';')[0]}" if inner else ""
            advice = "write it out with arithmetic, or give it constants only"
            if "tg.register_derivative" in inner:
                advice = "say what it is by tg.register_derivative, or give it constants only"
            raise TypingError(
                f"{inner}\n[tapegrad] {name} is not recorded for arguments of types {', '.join(map(str, rest))}{because}; {advice}"
            ) from error
        given = [tape] if self.method is None else [tape, rest[0]]
        return self._remember(function, sig, signature(sig.return_type, *given, *sig.args), _with(sig.pysig, len(given)), 1)

    def _method_of_instance(self, rest: Any, kws: Any) -> Any:
        """The method of a compiled class that is called with variables; None if it is something else that is called."""
        if self.method is None or not isinstance(rest[0], types.ClassInstanceType):
            return None
        return rest[0].jit_methods.get(self.method) if any(map(has_variables, (*rest, *kws.values()))) else None

    def _not_none(self, rest: Any) -> Any:
        """The types of what may be None, where a method of it is called, or a function of NumPy."""
        if self.method is not None:
            return (rest[0].type if isinstance(rest[0], types.Optional) else rest[0], *rest[1:])
        is_numpys = isinstance(self.function, np.ufunc) or (getattr(self.function, "__module__", None) or "").startswith("numpy")
        return tuple(map(present, rest)) if is_numpys else rest

    def _is_static(self, rest: Any) -> bool:
        """Whether a method of a compiled class that takes no instance is called."""
        return self.method is not None and self.method in getattr(rest[0], "jit_static_methods", ())

    def _recorded(self, context: Any, function: Any, tape: Any, rest: Any, kws: Any) -> Any:
        templates = function.templates if isinstance(function, types.Function) else [getattr(function, "template", None)]
        templates = [t for t in templates if t is not None]
        self.failures: list[NumbaError] = []
        made: Any = ()
        if has_out(self.function, len(rest)):
            made = [writing(self.function, rest)]
        elif reduces(self.function, len(rest)) and isinstance(rest[0], types.BaseTuple) and len(rest[0]) > 1:
            made = [_of_items(self.function, len(rest[0]))]
        for dispatcher in made or _implementations(templates, rest, kws):
            callee = types.Dispatcher(twin(dispatcher, self.level))
            try:
                sig = callee.get_call_type(context, (tape, *rest), kws)
            except NumbaError as error:
                self.failures.append(error)
                continue
            return self._remember(callee, sig, sig, sig.pysig, 0)
        return None

    def _call_of_value(self, context: Any, tape: Any, rest: Any, kws: Any, owner: Any = None) -> Any:
        """A call of what a variable holds, or an attribute of its owner: functions may be arguments."""
        value = rest[0]
        held = value if owner is None else owner
        if isinstance(value, types.Dispatcher):
            callee = types.Dispatcher(twin(value.dispatcher, self.level))
            sig = callee.get_call_type(context, (tape, *rest[1:]), kws)
            return self._remember(callee, sig, signature(sig.return_type, tape, held, *sig.args[1:]), _second_added(sig.pysig), 2)
        if isinstance(value, types.FunctionType) or not isinstance(value, types.Callable):
            raise TypingError(
                f"[tapegrad] of a function only the type is known, {value}, and not which one it is; write "
                "g = f1 if k > 0 else f2, or for g in numba.literal_unroll((f1, f2)), or give functions of numba.njit as arguments"
            )
        if isinstance(value, types.NumberClass) and is_float(value.dtype) and len(rest) == 2 and isinstance(rest[1], Variable):
            return self._remember(None, None, signature(variable_of(value.dtype), tape, held, rest[1]), None, 4)
        if isinstance(value, types.Function) and any(has_variables(kind) for kind in (*rest[1:], *kws.values())):
            inner = self._of_function(context, value.typing_key, len(rest) - 1, kws)
            sig = inner.get_call_type(context, (tape, *rest[1:]), kws)
            return self._remember(inner, sig, signature(sig.return_type, tape, held, *sig.args[1:]), _second_added(sig.pysig), 2)
        sig = context.resolve_function_type(value, rest[1:], kws)
        if sig is None:
            raise TypingError(f"[tapegrad] {value} is not recorded for arguments of types {', '.join(map(str, rest[1:]))}")
        return self._remember(value, sig, signature(sig.return_type, tape, held, *sig.args), _with(sig.pysig, 2), 3)

    def _of_function(self, context: Any, function: Any, count: int, kws: Any) -> Any:
        """The type of what records a function of so many arguments; as where it is called by its name."""
        if function in RULE_OF and not kws and not reduces(function, count) and not has_out(function, count):
            return StatementType(Op(function, tuple(Leaf(k) for k in range(count))), tuple(range(count)))
        if function in FUNCTIONS and not (function in BY_PARAMETERS and (count != 2 or kws)):
            return context.resolve_value_type(FUNCTIONS[function])
        return InvocationType(function, None, self.level)

    def _remember(self, function: Any, inner: Any, sig: Any, pysig: Any, form: int) -> Any:
        key = tuple(sig.args)
        if key not in self._calls:
            numba.core.registry.cpu_target.target_context.insert_func_defn([(self._write, self, key)])
        self._calls[key] = (function, inner, form)
        return sig.replace(pysig=pysig)

    def _write(self, context: Any, builder: Any, sig: Any, args: Any) -> Any:
        function, inner, form = self._calls[tuple(sig.args)]
        if form == 4:  # a variable as a float of some type
            return context.cast(builder, args[2], sig.args[2], sig.return_type)
        if form == 5:  # what may be None, and is not where it is used
            given = [context.cast(builder, arg, *kinds) for arg, *kinds in zip(args, sig.args, inner.args, strict=True)]
            return self._write(context, builder, inner, given)
        given = {0: args, 1: args[1:], 2: [args[0], *args[2:]], 3: args[2:]}[form]
        return context.get_function(function, inner)(builder, given)


def _with(pysig: Any, count: int) -> Any:
    """A Python signature with `count` more parameters in front."""
    if pysig is None:
        return None
    kind = inspect.Parameter.POSITIONAL_ONLY
    more = [inspect.Parameter(f"before{k}_", kind) for k in range(count)]
    return pysig.replace(parameters=[*more, *pysig.parameters.values()])


def _second_added(pysig: Any) -> Any:
    """The Python signature of a function that takes the tape, with the function itself behind the tape."""
    return None if pysig is None else _with(pysig.replace(parameters=list(pysig.parameters.values())[1:]), 2)


@register_default(InvocationType)
class InvocationModel(models.OpaqueModel):
    """Nothing at run time."""


@lower_constant(InvocationType)
def _constant(context: Any, builder: Any, kind: types.Type, value: Any) -> Any:
    return context.get_dummy_value()


class Invocation:
    """A call as a value of the IR: of a function, of a method by its name, or of what the first argument is.

    `native` is what records a method of arrays in a way of its own.
    """

    def __init__(self, function: Callable[..., Any] | None, method: str | None, level: int, native: Any = None) -> None:
        self._numba_type_ = InvocationType(function, method, level, native)
