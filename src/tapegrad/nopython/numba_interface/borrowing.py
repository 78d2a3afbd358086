"""References that a recording need not count, as something else holds the same memory for as long as they are in use.

Numba counts one reference more where a function gets an array or takes a view of one, and one less where it is used last, both
atomically. Where a loop hands views to functions, these were two thirds of what a recording took. They are not counted for

- arguments that are not assigned to: who calls holds them until the call has ended;
- views that begin and end in one block, if the array that they are of is not given up or replaced in between.

What is returned, put into a container or given another name is counted there, as ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from numba.core import ir, lowering, types

__all__ = ["BorrowingLower"]

INDICES = types.Integer, types.SliceType, types.EllipsisType, types.NoneType


class BorrowingLower(lowering.Lower):  # type: ignore[misc]
    """Numba's writing of a function, without references that others hold."""

    _arguments: frozenset[str] = frozenset()
    _views: frozenset[str] = frozenset()
    _is_borrowing = False

    def pre_lower(self) -> None:
        """As Numba's."""
        super().pre_lower()
        if self.generator_info is None:  # a generator keeps its arguments for later
            times = Counter(inst.target.name for block in self.blocks.values() for inst in block.find_insts(ir.Assign))
            self._arguments = frozenset(self._borrowed_arguments(times))
        if self.generator_info is None and not self._disable_sroa_like_opt:  # which looks what a variable held before
            self._views = frozenset(name for block in self.blocks.values() for name in self._borrowed_views(block, times))

    def _borrowed_arguments(self, times: Counter[str]) -> Iterator[str]:
        """Variables that are arguments and nothing else, and of the same type."""
        for block in self.blocks.values():
            for inst in block.find_insts(ir.Assign):
                name = inst.target.name
                if (
                    isinstance(inst.value, ir.Arg)
                    and times[name] == 1
                    and self.typeof(name) == self.typeof(f"arg.{inst.value.name}")
                ):
                    yield name

    def _borrowed_views(self, block: Any, times: Counter[str]) -> Iterator[str]:
        """Variables that are views for a part of a block, throughout which there is what they are views of."""
        of: dict[str, str] = {}
        for inst in block.body:
            if isinstance(inst, ir.Del):
                if of.pop(inst.value, None) is not None:
                    yield inst.value
                if inst.value not in self._arguments:
                    of = {name: base for name, base in of.items() if base != inst.value}
            elif isinstance(inst, ir.Assign):
                target = inst.target.name
                of = {name: base for name, base in of.items() if base != target}
                if times[target] == 1 and target in self._singly_assigned_vars and self._is_view(inst):
                    of[target] = inst.value.value.name

    def _is_view(self, inst: Any) -> bool:
        """Whether an element of an array is assigned that is an array in the same memory."""
        value = inst.value
        if not isinstance(value, ir.Expr) or value.op not in ("getitem", "static_getitem"):
            return False
        signature = self.fndesc.calltypes.get(value)
        if (
            signature is None
            or not isinstance(signature.return_type, types.Array)
            or not isinstance(signature.args[0], types.Array)
        ):
            return False
        index = signature.args[1]
        return all(isinstance(kind, INDICES) for kind in (index.types if isinstance(index, types.BaseTuple) else (index,)))

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        """As Numba's."""
        self._is_borrowing = isinstance(inst.value, ir.Arg) and inst.target.name in self._arguments
        try:
            value = super().lower_assign(ty, inst)
        finally:
            self._is_borrowing = False
        if inst.target.name in self._views:
            self.decref(ty, value)  # beside the counting that it undoes, so that LLVM leaves both away
        return value

    def incref(self, typ: Any, val: Any) -> None:
        """As Numba's, but for what is borrowed."""
        if not self._is_borrowing:
            super().incref(typ, val)

    def delvar(self, name: str) -> None:
        """As Numba's, but for what is borrowed."""
        if name not in self._arguments and name not in self._views:
            super().delvar(name)
