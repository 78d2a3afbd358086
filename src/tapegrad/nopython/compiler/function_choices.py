"""Variables that hold one of several functions: ``g = f1 if k > 0 else f2``.

Numba makes a pointer of them, whose type says nothing of a tape. A recording has the number of the function in its place, and a
call asks for the number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba.core import ir
from numba.core.dispatcher import Dispatcher
from numba.core.ir_utils import get_definition, guard

__all__ = ["numbered_functions"]

Functions = tuple[Any, ...]


def numbered_functions(func_ir: Any) -> dict[str, Functions]:
    """Put numbers in the place of functions that a variable may hold one of; the functions by the names of such variables."""
    phis = {
        statement.target.name: statement.value
        for block in func_ir.blocks.values()
        for statement in block.find_insts(ir.Assign)
        if isinstance(statement.value, ir.Expr) and statement.value.op == "phi"
    }
    found: dict[str, Functions] = {}
    for name, phi in phis.items():
        if name not in found and any(isinstance(_held(func_ir, var), Dispatcher) for var in phi.incoming_values):
            group = _Group(func_ir, phis, name)
            if group.functions and group.is_called_only():
                group.number()
                found |= dict.fromkeys(group.names, tuple(group.functions))
    return found


class _Group:
    """Variables that are handed on to each other."""

    def __init__(self, func_ir: Any, phis: dict[str, Any], first: str) -> None:
        self.func_ir, self.phis = func_ir, phis
        self.names: set[str] = set()
        self.functions: list[Any] = []
        self.leaves: list[
            tuple[Any, int, Any, Any]
        ] = []  # a phi, the place in it, the block and the function that comes from there
        self.is_known = True
        self._reach(first)
        if not self.is_known:
            self.functions = []

    def _reach(self, name: str) -> None:
        if name in self.names:
            return
        self.names.add(name)
        phi = self.phis.get(name)
        if phi is not None:
            for place, (var, block) in enumerate(zip(phi.incoming_values, phi.incoming_blocks, strict=True)):
                self._come(phi, place, var, block)
        for statement in self._statements():
            value = statement.value if isinstance(statement, ir.Assign) else None
            if isinstance(value, ir.Var):
                sources = [value]
            else:
                sources = value.incoming_values if isinstance(value, ir.Expr) and value.op == "phi" else []
            if any(_is(var, name) for var in sources):
                self._reach(statement.target.name)

    def _come(self, phi: Any, place: int, var: Any, block: Any) -> None:
        if var is ir.UNDEFINED:
            return
        source = self._source(var)
        if isinstance(source, Dispatcher):
            if not any(source is known for known in self.functions):
                self.functions.append(source)
            self.leaves.append((phi, place, block, source))
        elif isinstance(source, str):
            self._reach(source)
        else:
            self.is_known = False

    def _source(self, var: Any) -> Any:
        """The function that a variable is, or the name of the phi that it comes from."""
        found = _held(self.func_ir, var)
        if isinstance(found, ir.Expr) and found.op == "phi":
            return next((name for name, phi in self.phis.items() if phi is found), None)
        return found

    def _statements(self) -> Iterator[Any]:
        for block in self.func_ir.blocks.values():
            yield from block.body

    def is_called_only(self) -> bool:
        """Whether nothing else than calls asks for what the variables hold."""
        for statement in self._statements():
            used = {var.name for var in statement.list_vars()} & self.names
            if isinstance(statement, ir.Assign):
                value = statement.value
                used.discard(statement.target.name)
                if isinstance(value, ir.Expr) and value.op == "call":
                    others = [*value.args, *(var for _, var in value.kws), *([value.vararg] if value.vararg is not None else [])]
                    if not any(var.name in self.names for var in others):
                        continue
                elif isinstance(value, ir.Var) or (isinstance(value, ir.Expr) and value.op == "phi"):
                    continue
            if used and not isinstance(statement, ir.Del):
                return False
        return True

    def number(self) -> None:
        """Functions become numbers where they come into the group."""
        for count, (phi, place, label, function) in enumerate(self.leaves):
            block = self.func_ir.blocks[label]
            loc = block.body[-1].loc
            name = ir.Var(block.scope, f"$function{count}_{phi.incoming_values[place].name}", loc)
            (number,) = (k for k, known in enumerate(self.functions) if known is function)
            block.body.insert(-1, ir.Assign(ir.Const(number, loc), name, loc))
            phi.incoming_values[place] = name


def _held(func_ir: Any, var: Any) -> Any:
    """The object that a variable of the IR is, where its definition is one, or the definition."""
    if var is ir.UNDEFINED:
        return None
    found = guard(get_definition, func_ir, var)
    return found.value if isinstance(found, (ir.Global, ir.FreeVar)) else found


def _is(var: Any, name: str) -> bool:
    return isinstance(var, ir.Var) and var.name == name
