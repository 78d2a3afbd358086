"""The type of a tape variable in compiled code: a primal and the row that made it.

Row 0 stands for "no row": a constant. So memory of zeros is an array of constants, and arrays of variables are ordinary arrays of
Numba with this type as their dtype: slices, views and strides are Numba's own, and alias as they do there.

A float32 that may depend on the inputs is a variable of another type in the same memory: its primal is a float64 that a float32
can hold. What computes values asks for the float32 and so has the user's bits; what writes rows needs not tell the two apart.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import lower_cast, models, register_model
from numba.core.imputils import lower_constant
from numba.core.typeconv import Conversion

__all__ = [
    "FLOATS",
    "REAL",
    "ComplexVariable",
    "Variable",
    "complex_variable",
    "constant_of",
    "has_complex",
    "has_narrow",
    "has_variables",
    "is_float",
    "make",
    "number_of",
    "primal_of",
    "primal_type",
    "row_of",
    "variable",
    "variable_of",
]

REAL = (types.Float, types.Integer, types.Boolean)
NO_ROW = ir.Constant(ir.IntType(32), 0)


FLOATS = (types.float64, types.float32)


class Variable(types.Hashable):
    """A float64 or a float32 that may depend on the inputs; `primal` is which of them."""

    def __init__(self, primal: types.Float = types.float64) -> None:
        self.primal = primal
        super().__init__("TapeVariable" if primal == types.float64 else "TapeVariable32")

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        """A constant on one path and a variable on another is a variable, of the type that the two have in the user's function."""
        if isinstance(other, types.Complex):
            return complex_variable if other == types.complex128 else None
        if not isinstance(other, (Variable, *REAL)):
            return None
        kind = typingctx.unify_pairs(self.primal, types.unliteral(primal_type(other)))
        return variable_of(kind) if is_float(kind) else None

    def can_convert_from(self, typingctx: Any, other: types.Type) -> Conversion | None:
        """Constants may stand wherever variables do; the reverse would lose a derivative."""
        if isinstance(other, Variable) or (isinstance(other, REAL) and self.primal != types.float64):
            found: Conversion | None = typingctx.can_convert(types.unliteral(primal_type(other)), self.primal)
            return Conversion.safe if found == Conversion.exact else found
        return Conversion.safe if isinstance(other, REAL) else None


class ComplexVariable(types.Hashable):
    """A complex128 of which both parts may depend on the inputs: a pair of variables."""

    def __init__(self) -> None:
        super().__init__("TapeComplexVariable")

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        """Any number beside it is one."""
        return self if isinstance(other, COMPLEX) else None

    def can_convert_from(self, typingctx: Any, other: types.Type) -> Conversion | None:
        """Numbers of all kinds may stand in its place."""
        return Conversion.safe if isinstance(other, COMPLEX) else None


variable, narrow = Variable(), Variable(types.float32)
complex_variable = ComplexVariable()
COMPLEX = (Variable, types.Complex, *REAL)


def is_float(kind: Any) -> bool:
    """Whether values of a type are numbers that have derivatives."""
    return kind in FLOATS


def variable_of(kind: types.Type) -> Variable:
    """The type of variables whose primals have this type."""
    return narrow if kind in (types.float32, narrow) else variable


@register_model(ComplexVariable)
class ComplexVariableModel(models.StructModel):
    """Two variables one after the other."""

    def __init__(self, manager: Any, kind: ComplexVariable) -> None:
        super().__init__(manager, kind, [("real", variable), ("imag", variable)])


@register_model(Variable)
class VariableModel(models.StructModel):
    """Sixteen bytes in an array, so that both fields are aligned."""

    def __init__(self, manager: Any, kind: Variable) -> None:
        super().__init__(manager, kind, [("primal", types.float64), ("row", types.int32)])


def make(context: Any, builder: Any, primal: Any, row: Any) -> Any:
    """A variable from its parts."""
    parts = cgutils.create_struct_proxy(variable)(context, builder)
    parts.primal, parts.row = primal, row
    return parts._getvalue()


def primal_of(builder: Any, value: Any) -> Any:
    """The primal of a variable."""
    return builder.extract_value(value, 0)


def number_of(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The primal of a variable as the number that the user's function has."""
    return context.cast(builder, primal_of(builder, value), types.float64, kind.primal)


def row_of(builder: Any, value: Any) -> Any:
    """The row of a variable."""
    return builder.extract_value(value, 1)


@lower_cast(types.Float, Variable)
@lower_cast(types.Integer, Variable)
@lower_cast(types.Boolean, Variable)
def constant_of(context: Any, builder: Any, source: types.Type, target: types.Type, value: Any) -> Any:
    """A variable that is a constant."""
    number = context.cast(builder, value, source, target.primal)
    return make(context, builder, context.cast(builder, number, target.primal, types.float64), NO_ROW)


@lower_cast(Variable, Variable)
def _rounded(context: Any, builder: Any, source: Variable, target: Variable, value: Any) -> Any:
    """The row is that of the number before it is rounded."""
    number = context.cast(builder, primal_of(builder, value), types.float64, target.primal)
    return make(context, builder, context.cast(builder, number, target.primal, types.float64), row_of(builder, value))


@lower_cast(types.Complex, ComplexVariable)
@lower_cast(Variable, ComplexVariable)
@lower_cast(types.Float, ComplexVariable)
@lower_cast(types.Integer, ComplexVariable)
@lower_cast(types.Boolean, ComplexVariable)
def _of_parts(context: Any, builder: Any, source: types.Type, target: ComplexVariable, value: Any) -> Any:
    parts = cgutils.create_struct_proxy(target)(context, builder)
    if isinstance(source, types.Complex):
        number = context.make_complex(builder, source, value)
        given = source.underlying_float
        parts.real, parts.imag = (context.cast(builder, part, given, variable) for part in (number.real, number.imag))
    else:
        parts.real = context.cast(builder, value, source, variable)
        parts.imag = context.cast(builder, context.get_constant(types.float64, 0.0), types.float64, variable)
    return parts._getvalue()


@lower_constant(Variable)
def _constant(context: Any, builder: Any, kind: types.Type, value: Any) -> Any:
    return make(context, builder, context.get_constant(types.float64, value), NO_ROW)


def has_variables(kind: types.Type) -> bool:
    """Whether values of a type may hold variables."""
    return _holds(kind, (variable, narrow, complex_variable))


def has_complex(kind: types.Type) -> bool:
    """Whether values of a type may hold complex variables."""
    return _holds(kind, (complex_variable,))


def has_narrow(kind: types.Type) -> bool:
    """Whether values of a type may hold variables that are float32."""
    return _holds(kind, (narrow,))


def _holds(kind: types.Type, wanted: tuple[types.Type, ...]) -> bool:
    if isinstance(kind, (Variable, ComplexVariable)):
        return kind in wanted
    if isinstance(kind, types.Optional):
        return _holds(kind.type, wanted)
    if isinstance(kind, types.BaseTuple):
        return any(_holds(t, wanted) for t in kind.types)
    if isinstance(kind, types.DictType):
        return _holds(kind.key_type, wanted) or _holds(kind.value_type, wanted)
    inner = getattr(kind, "dtype", None) or getattr(kind, "yield_type", None)
    return isinstance(inner, types.Type) and _holds(inner, wanted)


def present(kind: types.Type) -> types.Type:
    """The type of a variable, or of an array of them, that may be None, where it is used."""
    if isinstance(kind, types.Optional) and isinstance(kind.type, (Variable, ComplexVariable, types.Array)) and has_variables(kind):
        return kind.type
    return kind


def primal_type(kind: types.Type) -> types.Type:
    """The type that a value has in the function as the user wrote it."""
    if isinstance(kind, Variable):
        return kind.primal
    if isinstance(kind, ComplexVariable):
        return types.complex128
    if isinstance(kind, types.Array) and isinstance(kind.dtype, (Variable, ComplexVariable)):
        return kind.copy(dtype=primal_type(kind.dtype))
    return kind
