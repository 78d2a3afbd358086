"""Small things of Numba's that take much of the time of compiling, done as they are there, but quicker."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import llvmlite.binding as llvm
from llvmlite.ir.types import Type
from numba.core import base, errors, event, ir, lowering, utils
from numba.core.base import BaseContext
from numba.core.compiler_machinery import PassManager
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.targetconfig import TargetConfig
from numba.core.transforms import canonicalize_cfg
from numba.core.types.abstract import _TypeMetaclass
from numba.core.typing import context as typing_context
from quicker_llvm import patch_llvm

__all__ = ["patch_numba"]


@functools.cache
def _holds_variables(kind: type) -> bool:
    return issubclass(kind, (ir.Inst, list, tuple, dict))


def _variables_in(self: Any, value: Any) -> list[ir.Var]:
    """Of an instruction, in order."""
    if isinstance(value, ir.Var):
        return [value]
    if isinstance(value, ir.Inst):
        return value.list_vars()  # type: ignore[no-any-return]
    found: list[ir.Var] = []
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        kind = type(item)
        if kind is ir.Var:
            found.append(item)
        elif _holds_variables(kind):
            found += _variables_in(self, item)
    return found


@functools.cache
def _defaults(kind: Any) -> dict[str, Any]:
    return {name: option.default for name, option in kind.options.items()}


def _values_of_options(self: Any) -> dict[str, Any]:
    return _defaults(type(self)) | self._values


_refresh = BaseContext.refresh
_known: dict[int, int] = {}


def _registered(context: Any) -> int:
    """How much was registered so far."""
    registries = [*context._registries, *context.typing_context._registries]
    return sum(len(items) for registry in registries for items in vars(registry).values() if isinstance(items, list))


def _refreshed(self: Any) -> None:
    """Where something was registered since: Numba looks whenever it makes an array, and has found nothing."""
    place = id(self._registries)  # which the contexts of functions share with the one that they are copies of
    if _known.get(place) != _registered(self):
        _refresh(self)
        _known[place] = _registered(self)


_run = PostProcessor.run


def _run_where_asked(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Lifetimes of variables after a pass: Numba works them out after each, and few passes ask."""
    code = self.func_ir
    if emit_dels or code.is_generator:
        _run(self, emit_dels, extend_lifetimes)
        return
    code.blocks = canonicalize_cfg(code.blocks)
    code.variable_lifetime, code.generator_info = VariableLifetime(code.blocks), None


class _Context:
    """Adds what was being done to an error of Numba's."""

    def __init__(self, text: str, *args: Any, **names: Any) -> None:
        self.given = text, args, names
        where = names.get("loc")
        if where is not None and not where.filename.startswith(errors._numba_path):
            errors.loc_info.update(names)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, errors.NumbaError):
            error.add_context(errors._format_msg(*self.given))


_trigger = event.trigger_event


def _triggered(kind: str, data: Any = None) -> Any:
    """Of what nobody listens to there are no events."""
    return _trigger(kind, data) if event._registered.get(kind) else contextlib.nullcontext()


_looked_up = base._has_loc


def _has_loc(function: Any) -> bool:
    """Whether a function that writes code takes the place in the text: for a plain one its signature is not needed."""
    if type(function) is FunctionType and not vars(function):
        code = function.__code__
        return "loc" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return bool(_looked_up(function))


_order = utils.order_by_target_specificity


@functools.cache
def _known_order(target: Any, templates: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_order(target, list(templates)))


def _ordered(target: Any, templates: list[Any], fnkey: str = "") -> list[Any]:
    """What a processor compiles of what was registered for a function; Numba sorts it for each call."""
    try:
        return list(_known_order(target, tuple(templates)))
    except errors.UnsupportedError:
        return list(_order(target, templates, fnkey))


_size = Type.get_abi_size


_sizes: dict[tuple[str, Any], int] = {}


def _known_size(self: Any, target_data: Any, context: Any = None) -> int:
    """LLVM reads a module that is written for it to say how large a type is."""
    key = str(self), target_data
    if "%" in key[0]:  # by names, which mean something else in another module
        return int(_size(self, target_data, context))
    if key not in _sizes:
        _sizes[key] = int(_size(self, target_data, context))
    return _sizes[key]


def _run_pass(self: Any, index: int, one: Any, state: Any) -> None:
    """A pass of the compiler, without its times, and without looking through all code for what no pass leaves behind."""
    one.analysis = self._analysis
    with errors.new_error_context("Pass {name}", name=one.name()):
        for step in (one.run_initialization, one.run_pass, one.run_finalizer):
            step(state)


def patch_numba(put: Callable[[Any, str, Any], None]) -> None:
    """Put these in the place of Numba's own."""
    patch_llvm(put)
    put(ir.Inst, "_rec_list_vars", _variables_in)
    put(TargetConfig, "values", _values_of_options)
    put(BaseContext, "refresh", _refreshed)
    put(PostProcessor, "run", _run_where_asked)
    put(event, "trigger_event", _triggered)
    for module in (errors, lowering):
        put(module, "new_error_context", _Context)
    for name in ("__instancecheck__", "__subclasscheck__"):  # Numba's types are abstract classes, but none registers others
        put(_TypeMetaclass, name, getattr(type, name))
    put(PassManager, "_runPass", _run_pass)
    put(base, "_has_loc", _has_loc)
    for module in (utils, typing_context):
        put(module, "order_by_target_specificity", _ordered)
    put(Type, "get_abi_size", _known_size)
    put(llvm.ffi.lib._lock, "_cblist", [])  # two events for every call of LLVM
