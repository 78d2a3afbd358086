"""The type of a tape variable in compiled code: a primal and the row that made it.

Row 0 stands for "no row": a constant. So memory of zeros is an array of constants, and arrays of variables are ordinary arrays of
Numba with this type as their dtype: slices, views and strides are Numba's own, and alias as they do there.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import lower_cast, models, register_model
from numba.core.imputils import lower_constant
from numba.core.typeconv import Conversion

__all__ = ["Variable", "constant_of", "has_variables", "make", "primal_of", "primal_type", "row_of", "variable"]

REAL = (types.Float, types.Integer, types.Boolean)
NO_ROW = ir.Constant(ir.IntType(32), 0)


class Variable(types.Hashable):
    """A float64 that may depend on the inputs."""

    def __init__(self) -> None:
        super().__init__("TapeVariable")

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        """A constant on one path and a variable on another is a variable."""
        return self if isinstance(other, REAL) else None

    def can_convert_from(self, typingctx: Any, other: types.Type) -> Conversion | None:
        """Constants may stand wherever variables do; the reverse would lose a derivative."""
        return Conversion.safe if isinstance(other, REAL) else None


variable = Variable()


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


def row_of(builder: Any, value: Any) -> Any:
    """The row of a variable."""
    return builder.extract_value(value, 1)


@lower_cast(types.Float, Variable)
@lower_cast(types.Integer, Variable)
@lower_cast(types.Boolean, Variable)
def constant_of(context: Any, builder: Any, source: types.Type, target: types.Type, value: Any) -> Any:
    """A variable that is a constant."""
    return make(context, builder, context.cast(builder, value, source, types.float64), NO_ROW)


@lower_constant(Variable)
def _constant(context: Any, builder: Any, kind: types.Type, value: Any) -> Any:
    return make(context, builder, context.get_constant(types.float64, value), NO_ROW)


def has_variables(kind: types.Type) -> bool:
    """Whether values of a type may hold variables."""
    if isinstance(kind, Variable):
        return True
    if isinstance(kind, types.Optional):
        return has_variables(kind.type)
    if isinstance(kind, types.BaseTuple):
        return any(has_variables(t) for t in kind.types)
    if isinstance(kind, types.DictType):
        return has_variables(kind.key_type) or has_variables(kind.value_type)
    inner = getattr(kind, "dtype", None) or getattr(kind, "yield_type", None)
    return isinstance(inner, types.Type) and has_variables(inner)


def primal_type(kind: types.Type) -> types.Type:
    """The type that a value has in the function as the user wrote it."""
    if isinstance(kind, Variable):
        return types.float64
    if isinstance(kind, types.Array) and isinstance(kind.dtype, Variable):
        return kind.copy(dtype=types.float64)
    return kind
