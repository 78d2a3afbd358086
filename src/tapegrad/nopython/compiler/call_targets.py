"""Where the calls in a recorded function go."""

from __future__ import annotations

import operator
import types as python_types
from collections import Counter
from typing import Any

import numpy as np
from numba import literal_unroll, literally, prange
from numba.core import ir, types
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher, LiftedCode
from numba.core.ir_utils import get_definition, guard
from numba.core.unsafe import eh
from numba.experimental.jitclass.base import JitClassType
from numba.np.unsafe.ndarray import empty_inferred
from numba.typed import Dict, List

from tapegrad.nopython.compiler.function_choices import numbered_functions
from tapegrad.nopython.compiler.overload_calls import Invocation, has_out, reduces
from tapegrad.nopython.formulas.rule_names import CMATH, RULE_OF, UNDIFFERENTIATED
from tapegrad.nopython.functions.allocation import ALLOCATORS, CONVERSIONS, lifted, lifted_from
from tapegrad.nopython.functions.chosen_functions import chosen_call
from tapegrad.nopython.functions.compiled_ufuncs import is_compiled_ufunc, ufunc_call
from tapegrad.nopython.functions.distributions import BY_PARAMETERS
from tapegrad.nopython.functions.number_attributes import imaginary_part, real_part, seen, shown
from tapegrad.nopython.functions.reductions import FUNCTIONS, METHODS, dot_into
from tapegrad.nopython.functions.registered_calls import compiled_callback, unregistered_call
from tapegrad.nopython.functions.representation import (
    FORGETFUL,
    MEMORY,
    SPELLING,
    STRIDING,
    WRITERS,
    WRITING_METHODS,
    as_protected_as,
    constants_only,
    stored_attribute,
    without_layout,
    writable,
)
from tapegrad.nopython.functions.stencils import is_stencil, stencil_call
from tapegrad.nopython.functions.tuples import alike, as_variable, item_of_type
from tapegrad.nopython.functions.typed_containers import CONTAINERS, EMPTY, list_of
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.twins.registrations import is_pointer, registration_of

__all__ = ["TAPE", "Retargeting", "static_value", "uses"]

TAPE = "$tape"

# Calls whose new arrays may be overwritten with variables at once, and those whose arrays are mostly tables.
COPIES = frozenset([np.copy])
VIEWS = frozenset(
    ["asarray", "ascontiguousarray", "asfortranarray", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_to", "diagonal",
     "expand_dims", "flip", "fliplr", "flipud", "moveaxis", "ravel", "reshape", "rollaxis", "split", "array_split", "squeeze",
     "swapaxes", "transpose", "view", "asanyarray", "as_strided", "imag", "nan_to_num", "real", "require", "rot90",
     "sliding_window_view", "trim_zeros"]
)  # fmt: skip
PARTS = {"real": real_part, "imag": imaginary_part}
KEEPING = frozenset(["append", "insert"])  # methods of lists that keep their last argument
# Methods of arrays that give new ones.
NEW = frozenset(
    ["argsort", "conj", "conjugate", "copy", "cumprod", "cumsum", "dot", "flatten", "mean", "nonzero", "prod", "repeat", "std",
     "sum", "take", "var"]
)  # fmt: skip
# Methods of what Numba has itself, which move items or look at them.
MOVING = frozenset(name for kind in (np.ndarray, np.generic, list, tuple, dict, set, str, bytes, List, Dict) for name in dir(kind))
IN_OBJECT_MODE = constants_only(
    "object mode (numba.objmode)",
    "write what it does in compiled code, compute what it gives before the call, or put it into a compiled function that has a "
    "derivative by tg.register_derivative",
)
GUARDED = MEMORY | WRITING_METHODS | {"flat"}


# Functions of Python that know nothing of numbers, or that the compiler treats by name.
UNTOUCHED = frozenset(
    [range, len, enumerate, zip, isinstance, hasattr, getattr, type, tuple, list, print, slice, iter, next, reversed, str, repr,
     hash, ord, chr, prange, literally, literal_unroll, empty_inferred, eh.exception_check, eh.exception_match,
     eh.mark_try_block, eh.end_try_block, *UNDIFFERENTIATED]
)  # fmt: skip


def static_value(func_ir: Any, var: Any) -> Any:
    """The Python object that a variable of the IR stands for, where the text says so; else None."""
    found = guard(get_definition, func_ir, var)
    if isinstance(found, (ir.Global, ir.FreeVar)):
        return found.value
    if isinstance(found, ir.Expr) and found.op == "getattr":
        base = static_value(func_ir, found.value)
        if isinstance(base, (python_types.ModuleType, type, np.dtype)):
            return getattr(base, found.attr, None)
    return None


class Retargeting:
    """Sends the calls of one function to what records them."""

    def __init__(self, func_ir: Any, level: int, kinds: Any) -> None:
        self.func_ir, self.level, self.kinds = func_ir, level, kinds
        self.number = 0
        self.uses = uses(func_ir)
        self.dropped: set[str] = set()  # methods that nobody asks for any more; a variable has none
        written = [
            s.target for block in func_ir.blocks.values() for s in block.body if isinstance(s, (ir.SetItem, ir.StaticSetItem))
        ]
        found = [guard(get_definition, func_ir, target) for target in written]
        self.writes_flat = any(isinstance(made, ir.Expr) and made.op == "getattr" and made.attr == "flat" for made in found)
        self.takes_instances = any(map(_holds_instances, kinds))
        self.choices = numbered_functions(func_ir)
        self.indices = {name for block in func_ir.blocks.values() for s in block.body for name in _index_names(s)}

    def block(self, block: Any) -> None:
        """All calls of one block."""
        self.scope = block.scope
        self.body: list[Any] = []
        for statement in block.body:
            value = statement.value if isinstance(statement, ir.Assign) else None
            if isinstance(value, ir.Expr) and value.op == "call":
                self.call(statement, value)
            elif isinstance(value, ir.Expr) and value.op == "binop" and value.fn is operator.matmul:
                statement.value = ir.Expr.call(value.lhs, [value.lhs, value.rhs], (), value.loc)
                self.replace(statement, FUNCTIONS[operator.matmul], tape=True)
                if self.level:
                    self.lift(self.body.pop())
            elif isinstance(value, ir.Expr) and value.op == "build_tuple" and statement.target.name not in self.indices:
                self.wrap(statement, alike)
            elif isinstance(value, ir.Expr) and value.op == "build_list" and self.level:
                value.items = [self.converted(item, value.loc) for item in value.items]
                self.body.append(statement)
            elif isinstance(value, ir.Expr) and value.op == "build_map" and self.level:
                value.items = [(key, self.converted(item, value.loc)) for key, item in value.items]
                self.body.append(statement)
            elif isinstance(value, ir.Expr) and value.op == "getattr" and value.attr in GUARDED:
                if self.is_static(value.value) or self.is_instance(value.value):
                    pass  # a function of a module, or a method of a compiled class
                elif value.attr in MEMORY:
                    value.value = self.converted(value.value, value.loc, without_layout)
                elif value.attr in WRITING_METHODS or self.writes_flat:
                    value.value = self.converted(value.value, value.loc, writable)
                self.body.append(statement)
            elif isinstance(value, ir.Expr) and value.op == "getattr" and value.attr in PARTS and not self.is_static(value.value):
                self.passed(value.value, PARTS[value.attr], statement.target, value.loc)
            elif isinstance(value, ir.Expr) and value.op == "typed_getitem":
                self.passed(value.value, item_of_type(value.dtype), statement.target, value.loc, value.index)
            elif isinstance(value, ir.Expr) and self.level and value.op in ("binop", "unary"):
                self.lift(statement)
            elif isinstance(statement, ir.SetAttr):
                statement.value = self.converted(statement.value, statement.loc, stored_attribute(statement.attr))
                self.body.append(statement)
            elif isinstance(statement, (ir.DynamicRaise, ir.DynamicTryRaise)) and statement.exc_args:
                held = statement.exc_args
                statement.exc_args = tuple(self.converted(a, statement.loc, shown) if isinstance(a, ir.Var) else a for a in held)
                self.body.append(statement)
            elif isinstance(statement, ir.Print):
                statement.args = tuple(self.converted(arg, statement.loc, shown) for arg in statement.args)
                self.body.append(statement)
            else:
                self.body.append(statement)
        block.body = [s for s in self.body if not (isinstance(s, ir.Assign) and s.target.name in self.dropped)]

    def call(self, statement: Any, value: Any) -> None:
        function = static_value(self.func_ir, value.func)
        found = guard(get_definition, self.func_ir, value.func)
        if _in(function, WRITERS) and value.args:
            value.args = [self.converted(value.args[0], value.loc, writable), *value.args[1:]]
        if _in(function, SPELLING):
            value.args = [self.converted(value.args[0], value.loc, SPELLING[function]), *value.args[1:]]
        if _in(function, STRIDING):
            value.args = [self.converted(arg, value.loc, without_layout) for arg in value.args]
            value.kws = [(name, self.converted(arg, value.loc, without_layout)) for name, arg in value.kws]
        if has_out(function, len(value.args)):
            value.args = [*value.args[:-1], self.converted(value.args[-1], value.loc, writable)]
        if function is isinstance:
            value.args = [self.converted(value.args[0], value.loc, seen), *value.args[1:]]
        registered = registration_of(function)
        if value.func.name in self.choices:
            self.replace(statement, chosen_call(self.choices[value.func.name], self.level), tape=True, receiver=value.func)
        elif isinstance(found, ir.Const) and isinstance(found.value, LiftedCode):
            value.args = [self.converted(arg, value.loc, IN_OBJECT_MODE) for arg in value.args]
            self.body.append(statement)
        elif isinstance(function, Dispatcher):
            self.replace(statement, function, tape=True)
        elif registered is not None:
            self.replace(statement, registered.call, tape=True)
        elif is_stencil(function):
            if [name for name, _ in value.kws] == ["out"]:
                value.args, value.kws = [*value.args, self.converted(value.kws[0][1], value.loc, writable)], ()
            self.replace(statement, stencil_call(function, self.level), tape=True)
        elif is_compiled_ufunc(function):
            self.replace(statement, ufunc_call(function, self.level), tape=True)
        elif isinstance(function, CFunc):
            self.replace(statement, compiled_callback(function), tape=True)
        elif is_pointer(function):
            self.replace(statement, unregistered_call(function), tape=True)
        elif _in(function, ALLOCATORS):
            self.replace(statement, ALLOCATORS[function], tape=False)
        elif _in(function, CONTAINERS):
            self.replace(statement, CONTAINERS[function], tape=False)
        elif function is list and value.args and self.level:
            self.replace(statement, list_of, tape=False)
        elif _in(function, EMPTY) and not value.args and not value.kws:
            self.body.append(statement)
        elif function is np.dot and (len(value.args) == 3 or "out" in dict(value.kws)):
            value.args = [*value.args[:2], *(self.converted(out, value.loc, writable) for out in value.args[2:])]
            value.kws = [(name, self.converted(v, value.loc, writable) if name == "out" else v) for name, v in value.kws]
            self.replace(statement, dot_into, tape=True)
        elif _in(function, FUNCTIONS) and not (_in(function, BY_PARAMETERS) and not _by_two(value)):
            self.replace(statement, FUNCTIONS[function], tape=True)
            if self.level:
                self.lift(self.body.pop())
        elif function is not None:
            self.call_of(function, statement)
        elif isinstance(found, ir.Expr) and found.op == "getattr":
            if found.attr in CONVERSIONS and not self.is_instance(found.value):
                self.replace(statement, CONVERSIONS[found.attr], tape=False, receiver=found.value)
                return
            if found.attr in METHODS:
                function = Invocation(None, found.attr, self.level, METHODS[found.attr])
                self.replace(statement, function, tape=True, receiver=found.value)
            elif found.attr not in MOVING or self.is_instance(found.value) or self.may_be_instance(found.value):
                self.replace(statement, Invocation(None, found.attr, self.level), tape=True, receiver=found.value)
            else:
                if self.level and found.attr in KEEPING and value.args and self.is_new_list(found.value):
                    value.args = [*value.args[:-1], self.converted(value.args[-1], value.loc)]
                self.body.append(statement)
            if (self.level and found.attr in NEW) or found.attr == "copy":
                self.wrap(self.body.pop(), lifted_from, found.value)
        else:
            self.replace(statement, Invocation(None, None, self.level), tape=True, receiver=value.func)

    def call_of(self, function: Any, statement: Any) -> None:
        """A call of a function of Python, NumPy or a package."""
        given = list(statement.value.args)
        if self.level and isinstance(function, type) and issubclass(function, tuple):  # a named tuple: its fields may be variables
            value = statement.value
            value.args = [self.converted(arg, value.loc) for arg in value.args]
            value.kws = [(name, self.converted(arg, value.loc)) for name, arg in value.kws]
        if not (
            _in(function, UNTOUCHED)
            or (isinstance(function, type) and issubclass(function, tuple))
            or (
                (_in(function, RULE_OF) or _in(function, CMATH))
                and not reduces(function, len(statement.value.args))
                and not has_out(function, len(statement.value.args))
            )
        ):
            self.replace(statement, Invocation(function, None, self.level), tape=True)
        else:
            self.body.append(statement)
        if _in(function, FORGETFUL) and given:
            self.wrap(self.body.pop(), as_protected_as, given[0])
        if _in(function, COPIES) or (self.level and _makes_arrays(function, statement.value)):
            self.lift(self.body.pop())

    def replace(self, statement: Any, function: Any, tape: bool, receiver: Any = None) -> None:
        value, loc = statement.value, statement.value.loc
        if isinstance(function, Dispatcher):
            function = twin(function, self.level)
        if receiver is not None and receiver is not value.func and self.uses[value.func.name] == 1:
            self.dropped.add(value.func.name)
        name = self.variable("called", loc)
        self.body.append(ir.Assign(ir.Global(name.name, function, loc), name, loc))
        before = [ir.Var(self.scope, TAPE, loc)] if tape else []
        before += [receiver] if receiver is not None else []
        statement.value = ir.Expr.call(name, [*before, *value.args], value.kws, loc, vararg=value.vararg)
        self.func_ir._definitions[name.name] = [self.body[-1].value]
        self.func_ir._definitions[statement.target.name] = [statement.value]
        self.body.append(statement)

    def lift(self, statement: Any) -> None:
        """What the statement makes may be an array into which variables are written."""
        self.wrap(statement, lifted)

    def wrap(self, statement: Any, function: Any, *more: Any) -> None:
        """Pass what the statement makes through a function."""
        loc, target = statement.loc, statement.target
        plain = self.variable("plain", loc)
        self.body.append(ir.Assign(statement.value, plain, loc))
        self.func_ir._definitions[plain.name] = [statement.value]
        self.passed(plain, function, target, loc, *more)

    def is_static(self, var: Any) -> bool:
        """Whether a variable of the IR is a module or a class."""
        return static_value(self.func_ir, var) is not None

    def is_instance(self, var: Any) -> bool:
        """Whether a variable of the IR is known to be an instance of a compiled class."""
        made = guard(get_definition, self.func_ir, var)
        if isinstance(made, ir.Arg):
            return isinstance(self.kinds[made.index], types.ClassInstanceType)
        called = static_value(self.func_ir, made.func) if isinstance(made, ir.Expr) and made.op == "call" else None
        return isinstance(called._numba_type_.function if isinstance(called, Invocation) else called, JitClassType)

    def may_be_instance(self, var: Any) -> bool:
        """Whether a variable of the IR may be an instance out of a container that is an argument."""
        return self.takes_instances and not self.is_new_list(var)

    def is_new_list(self, var: Any) -> bool:
        """Whether a list is one of the function's own whose items' type nothing has said."""
        made = guard(get_definition, self.func_ir, var)
        return isinstance(made, ir.Expr) and (made.op == "build_list" or (made.op == "call" and not made.args and not made.kws))

    def converted(self, var: Any, loc: Any, function: Any = as_variable) -> Any:
        """The value of a variable of the IR, passed through a function."""
        target = self.variable("converted", loc)
        self.passed(var, function, target, loc)
        return target

    def passed(self, var: Any, function: Any, target: Any, loc: Any, *more: Any) -> None:
        name = self.variable("through", loc)
        self.body.append(ir.Assign(ir.Global(name.name, function, loc), name, loc))
        self.body.append(ir.Assign(ir.Expr.call(name, [var, *more], (), loc), target, loc))
        for assign in self.body[-2:]:
            self.func_ir._definitions[assign.target.name] = [assign.value]

    def variable(self, kind: str, loc: Any) -> Any:
        self.number += 1
        return ir.Var(self.scope, f"${kind}{self.number}", loc)


def _holds_instances(kind: Any) -> bool:
    """Whether values of a type are containers of instances of a compiled class."""
    items = kind.types if isinstance(kind, types.BaseTuple) else [getattr(kind, "dtype", None), getattr(kind, "value_type", None)]
    return any(isinstance(item, types.ClassInstanceType) or (item is not None and _holds_instances(item)) for item in items)


def _index_names(statement: Any) -> list[str]:
    """Variables that a statement indexes with; tuples of indices are not values."""
    if isinstance(statement, ir.SetItem):
        return [statement.index.name]
    if isinstance(statement, ir.StaticSetItem):
        return [statement.index_var.name] if statement.index_var is not None else []
    value = statement.value if isinstance(statement, ir.Assign) else None
    if isinstance(value, ir.Expr) and value.op in ("getitem", "static_getitem"):
        index = value.index if value.op == "getitem" else value.index_var
        return [index.name] if isinstance(index, ir.Var) else []
    return []


def uses(func_ir: Any) -> Counter[str]:
    """How often each variable is read."""
    count: Counter[str] = Counter()
    for block in func_ir.blocks.values():
        for statement in block.body:
            used = [v.name for v in statement.list_vars()]
            if isinstance(statement, ir.Assign):
                used.remove(statement.target.name)
            count.update(used)
    return count


def _in(function: Any, table: Any) -> bool:
    try:
        return function is not None and function in table
    except TypeError:
        return False


def _by_two(value: Any) -> bool:
    """Whether a random number is asked for by two parameters, and not an array of them."""
    return len(value.args) + len(value.kws) == 2 and "size" not in dict(value.kws)


def _makes_arrays(function: Any, value: Any) -> bool:
    """Whether a call gives new arrays; a view must stay one, so that what is written into it is seen."""
    if has_out(function, len(value.args)) or "out" in dict(value.kws) or getattr(function, "__name__", None) in VIEWS:
        return False
    return isinstance(function, np.ufunc) or (getattr(function, "__module__", None) or "").startswith("numpy")
