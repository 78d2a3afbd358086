"""Comparisons of variables inside of Numba's own functions, such as sorting; they look at primals alone."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import TypingError
from numba.core.imputils import lower_builtin
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global
from numba.np.arrayobj import get_sort_func

from tapegrad.nopython.formulas.rule_names import COMPARISONS
from tapegrad.nopython.types.variable import FLOATS, REAL, Variable, has_variables, primal_of, variable_of

__all__: list[str] = []


class Comparison(AbstractTemplate):  # type: ignore[misc]
    """A variable compared with another, or with a number."""

    def generic(self, args: Any, kws: Any) -> Any:
        """Its type is a truth value."""
        numbers = len(args) == 2 and all(isinstance(arg, (Variable, *REAL)) for arg in args)
        if numbers and any(isinstance(arg, Variable) for arg in args):
            return signature(types.boolean, *(types.unliteral(arg) for arg in args))
        return None


@infer_global(operator.setitem)
class StoreOfVariable(AbstractTemplate):  # type: ignore[misc]
    """Says why a variable cannot be put into an array of numbers; it accepts nothing."""

    key = operator.setitem

    def generic(self, args: Any, kws: Any) -> Any:
        array, _, value = args
        if isinstance(array, types.Record) and has_variables(value):
            raise TypingError(
                "[tapegrad] a variable is written into a field of a record, which holds no variables; keep it in a local "
                "variable, an array or a tuple"
            )
        if isinstance(array, types.Array) and not has_variables(array) and has_variables(value):
            raise TypingError(
                f"[tapegrad] a variable is written into {array}, which holds no variables; use an array of floats that the "
                "function makes or takes as an argument"
            )


@infer_global(type)
class TypeOfVariable(AbstractTemplate):  # type: ignore[misc]
    """``type(x)(1)`` is a float in the user's function, and a constant here."""

    key = type

    def generic(self, args: Any, kws: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Variable):
            return signature(types.NumberClass(args[0].primal), *args)
        return None


@infer_getattr
class AttributeOfVariable(AttributeTemplate):  # type: ignore[misc]
    """``hasattr`` asks for attributes too: a float has some that a variable has not."""

    key = Variable

    def generic_resolve(self, value: Any, attribute: str) -> Any:
        """None is recorded but those that have an overload."""
        if attribute in ("real", "imag", "conjugate", "item", "__hash__"):
            return None
        raise TypingError(f"[tapegrad] the attribute {attribute} of a number is not recorded; use the number itself")


def _lower(function: Any) -> Any:
    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        primals = [primal_of(builder, a) if isinstance(t, Variable) else a for t, a in zip(sig.args, args, strict=True)]
        kinds = [types.float64 if isinstance(t, Variable) else t for t in sig.args]
        kind = context.typing_context.resolve_value_type(function)
        inner = kind.get_call_type(context.typing_context, tuple(kinds), {})
        cast = [context.cast(builder, p, k, to) for p, k, to in zip(primals, kinds, inner.args, strict=True)]
        return context.get_function(kind, inner)(builder, cast)

    return write


for _function in COMPARISONS:
    infer_global(_function)(type(f"Comparison_{_function.__name__}", (Comparison,), {"key": _function}))
    for _kinds in ((Variable, Variable), *((Variable, t) for t in REAL), *((t, Variable) for t in REAL)):
        lower_builtin(_function, *_kinds)(_lower(_function))


def nans_last(a: Any, b: Any) -> Any:
    """How floats are ordered by a sort."""
    return a < b or (b != b and a == a)


def _sort(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    sort = get_sort_func(sig.args[1].literal_value, nans_last)
    rows_apart = sig.args[0].ndim > 1 and sig.args[1].literal_value != "quicksort"

    def write(array: Any) -> Any:
        if rows_apart:
            for place in np.ndindex(array.shape[:-1]):
                sort(array[place])
        else:
            sort(array)

    return context.compile_internal(builder, write, sig.replace(args=sig.args[:1]), args[:1])


def _argsort(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    sort = get_sort_func(sig.args[1].literal_value, nans_last, is_argsort=True)
    return context.compile_internal(builder, lambda array: sort(array), sig.replace(args=sig.args[:1]), args[:1])


for _array in (types.Array(variable_of(kind), ndim, layout) for kind in FLOATS for ndim in range(1, 5) for layout in "CFA"):
    lower_builtin("array.sort", _array, types.StringLiteral)(_sort)
    lower_builtin("array.argsort", _array, types.StringLiteral)(_argsort)
    lower_builtin(np.argsort, _array, types.StringLiteral)(_argsort)
