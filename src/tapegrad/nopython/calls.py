"""Where the calls in a recorded function go."""

from __future__ import annotations

from typing import Any

from numba.core import ir
from numba.core.dispatcher import Dispatcher

__all__ = ["retarget"]


def retarget(func_ir: Any, block: Any) -> None:
    """Send calls of other compiled functions to their twins, with the tape."""
    from tapegrad.nopython.folding import TAPE, static_value
    from tapegrad.nopython.twins import twin

    body = []
    for statement in block.body:
        value = statement.value if isinstance(statement, ir.Assign) else None
        if isinstance(value, ir.Expr) and value.op == "call":
            function = static_value(func_ir, value.func)
            if isinstance(function, Dispatcher):
                loc, scope = value.loc, block.scope
                name = ir.Var(scope, f"{value.func.name}.twin", loc)
                body.append(ir.Assign(ir.Global(name.name, twin(function), loc), name, loc))
                statement.value = ir.Expr.call(
                    name, [ir.Var(scope, TAPE, loc), *value.args], value.kws, loc, vararg=value.vararg
                )
        body.append(statement)
    block.body = body
