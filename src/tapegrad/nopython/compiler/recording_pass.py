"""The compiler pass that makes a recording out of a user's function: statements are folded, calls go to twins.

It runs on Numba's IR once variables have one assignment each, before types are inferred.
"""

from __future__ import annotations

import operator
from collections import Counter
from typing import Any

import numpy as np
from numba.core import ir, types
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions, get_definition, guard

from tapegrad.nopython.compiler.call_targets import TAPE, Retargeting, static_value, uses
from tapegrad.nopython.formulas.expression_tree import Const, Leaf, Node, Op, Shared
from tapegrad.nopython.formulas.formula import BY_NAME
from tapegrad.nopython.formulas.rule_names import CMATH, COMPARISONS, IN_PLACE, RULE_OF, UNDIFFERENTIATED
from tapegrad.nopython.statements.statement import Known, Statement
from tapegrad.nopython.types.curved_tape import DirectedTape

__all__ = ["AddTape", "Fold"]

CROWD = 32  # statements of a function, beyond which rows are written by calls
LEAVES, NODES = 16, 48  # a statement beyond that is cut in pieces: its row would be longer than those of the pieces
# The same with the statements of temporaries in it: second partials are as many as pairs of leaves. And leaves of such a temporary.
SHARING_LEAVES, SHARED_LEAVES = 6, 3
# Rules whose second partials are finite where their values are.
TAME = frozenset(["add", "sub", "mul", "neg", "square", "abs", "exp", "sin", "cos", "sinh", "cosh", "tanh", "atan"])
# Rules whose derivatives are infinite only where their values are, too.
STEADY = TAME | {"div", "log", "log2", "log10", "log1p", "tan", "exp2", "expm1", "maximum", "minimum", "_alias"}

UNARY = frozenset([operator.neg, operator.pos, operator.not_])
BINARY = frozenset([*COMPARISONS, *(f for f in RULE_OF if f in IN_PLACE.values())])
FUNCTIONS = frozenset([f for f in RULE_OF if f not in BINARY and f not in UNARY] + [*UNDIFFERENTIATED, *CMATH])

# Expressions that change nothing, so arithmetic before them may be done after them.
PURE = frozenset(["getattr", "getitem", "static_getitem", "build_tuple", "phi", "cast", "pair_first", "pair_second"])


def _arity(function: Any, count: int) -> bool:
    """Whether a call has operands only: no base of a logarithm, no array for the result."""
    if function in (max, min):
        return count > 1
    if isinstance(function, np.ufunc):
        return count == function.nin
    return function in UNDIFFERENTIATED or count == (1 if function in CMATH else len(BY_NAME[RULE_OF[function]].args))


def _is_monomial(node: Node) -> bool:
    """Whether a node is a product of leaves: its partials by one of these have one sign along all paths."""
    if isinstance(node, Op):
        return IN_PLACE.get(node.function, node.function) in (operator.mul, operator.neg) and all(map(_is_monomial, node.args))
    return True


def _paths(node: Node, firsts: tuple[int, ...]) -> Counter[Any]:
    """Along how many paths a node depends on each leaf, and on each other temporary: a sum over them may be zero where none is."""
    if not isinstance(node, Op):
        return Counter() if isinstance(node, Const) else Counter([firsts[node.number] if isinstance(node, Leaf) else node])
    found: Counter[Any] = sum((_paths(arg, firsts) for arg in node.args), Counter())
    return Counter(set(found)) if _is_monomial(node) else found


class _Tree:
    """A statement in the making."""

    def __init__(self) -> None:
        self.leaves: list[Any] = []
        self.size = 0
        self.shares = False

    def leaf(self, var: Any) -> Leaf:
        for number, other in enumerate(self.leaves):
            if other.name == var.name:
                return Leaf(number)
        self.leaves.append(var)
        return Leaf(len(self.leaves) - 1)

    def graft(self, node: Node, leaves: list[Any]) -> Node:
        """A finished part of the statement, its leaves numbered anew."""
        if isinstance(node, Leaf):
            return self.leaf(leaves[node.number])
        if isinstance(node, Const):
            return node
        if isinstance(node, Shared):
            self.shares = True
            return Shared(self.graft(node.node, leaves))
        self.size += 1
        return node._replace(args=tuple(self.graft(arg, leaves) for arg in node.args))


class _Folding:
    """One function's statements."""

    def __init__(self, func_ir: Any, kinds: Any) -> None:
        self.func_ir, self.kinds = func_ir, kinds
        self.shares = isinstance(kinds[0], DirectedTape)  # other rows are swept many times, or once only in any case
        self.uses = uses(func_ir)
        self.made: list[Any] = []  # what stands for the statements, as globals
        self.known: Known = {}

    def operation(self, value: Any) -> tuple[Any, list[Any], Any] | None:
        """Function, operands and static operand of an expression that may be a part of a statement."""
        if not isinstance(value, ir.Expr):
            return None
        if value.op == "binop" and value.fn in BINARY:
            static = None if value.static_rhs is ir.UNDEFINED else value.static_rhs
            return value.fn, [value.lhs, value.rhs], static
        if value.op == "inplace_binop" and value.fn in IN_PLACE:
            return value.fn, [value.lhs, value.rhs], None
        if value.op == "unary" and value.fn in UNARY:
            return value.fn, [value.value], None
        if value.op == "call" and not value.kws and not value.vararg and value.args:
            function = static_value(self.func_ir, value.func)
            try:
                known = function in FUNCTIONS
            except TypeError:
                known = False
            if known and _arity(function, len(value.args)):
                return function, list(value.args), None
        return None

    def constant(self, var: Any) -> Const | None:
        found = guard(get_definition, self.func_ir, var)
        if isinstance(found, (ir.Const, ir.Global, ir.FreeVar)) and type(found.value) in (int, float, bool):
            return Const(found.value, repr(found.value))
        return None

    def tree(self, operation: tuple[Any, list[Any], Any], pending: dict[str, Any]) -> tuple[Node, _Tree]:
        function, operands, static = operation
        tree = _Tree()
        args: list[Node] = []
        for var in operands:
            constant = self.constant(var)
            if constant is not None:
                args.append(constant)
            elif var.name in pending:
                node, inner, *_ = pending[var.name]
                args.append(tree.graft(node, inner.leaves))
            else:
                args.append(tree.leaf(var))
        tree.size += 1
        if function in (max, min):
            while len(args) > 2:
                args[:2] = [Op(function, (args[0], args[1]))]
        return Op(function, tuple(args), static), tree

    def emit(self, node: Node, tree: _Tree, target: Any, loc: Any, scope: Any) -> list[Any]:
        node = node.node if isinstance(node, Shared) else node
        name = ir.Var(scope, f"$statement{len(self.made) + 1}", loc)
        tape = ir.Var(scope, TAPE, loc)
        call = ir.Expr.call(name, [tape, *tree.leaves], (), loc)
        self.made.append(ir.Global(name.name, Statement(node, self.reads.firsts(tree.leaves), known=self.known), loc))
        return [ir.Assign(self.made[-1], name, loc), ir.Assign(call, target, loc)]

    def block(self, block: Any) -> None:
        scope, body = block.scope, []
        pending: dict[str, Any] = {}
        inside = self._inside(block)
        shared, tame = self._shared(block, inside) if self.shares else ({}, set())
        reads = self.reads = _Reads(self.func_ir)

        def flush(names: list[str]) -> None:
            for name in names:
                node, tree, target, loc = pending.pop(name)
                body.extend(self.emit(node, tree, target, loc, scope))

        for statement in block.body:
            value = statement.value if isinstance(statement, ir.Assign) else None
            operation = self.operation(value)
            if operation is None:
                if not _harmless(statement):
                    flush(list(pending))
                    reads.forget()
                elif isinstance(value, ir.Expr):
                    reads.see(statement)
                body.append(statement)
                continue
            node, tree = self.tree(operation, pending)
            if self._is_large(tree):
                flush([name for name in dict.fromkeys(var.name for var in operation[1]) if name in pending])
                node, tree = self.tree(operation, pending)
            for var in operation[1]:
                if shared.get(var.name, 1) == 1:
                    pending.pop(var.name, None)
                else:
                    shared[var.name] -= 1
            target = statement.target
            reads.number(target, node, tree.leaves)
            if operation[0] in IN_PLACE:
                flush(list(pending))
                reads.forget()
            if target.name in inside and operation[0] not in IN_PLACE:
                pending[target.name] = (node, tree, target, statement.loc)
            elif target.name in shared and self._may_be_shared(node, tree, target.name in tame):
                pending[target.name] = (Shared(node), tree, target, statement.loc)
            else:
                body.extend(self.emit(node, tree, target, statement.loc, scope))
        block.body = body

    def _is_large(self, tree: _Tree) -> bool:
        leaves = len(set(self.reads.firsts(tree.leaves)))
        return leaves > (SHARING_LEAVES if tree.shares else LEAVES) or tree.size > NODES

    def _may_be_shared(self, node: Node, tree: _Tree, is_tame: bool) -> bool:
        """Whether a temporary may be a part of the statement that reads it.

        It has few leaves, none of which is known to be an array already. Nothing in it cancels that meets something infinite: not
        its partials by a leaf, nor its tangent. Zero times that is zero, and a sum of what cancels, each times that, is nan.
        """
        firsts = self.reads.firsts(tree.leaves)
        if len(set(firsts)) > (SHARED_LEAVES if is_tame else 1) or max(_paths(node, firsts).values(), default=1) > 1:
            return False
        for var in tree.leaves:
            found = guard(get_definition, self.func_ir, var)
            if isinstance(found, ir.Arg) and isinstance(self.kinds[found.index], types.Array):
                return False
            if isinstance(found, ir.Expr) and found.op == "static_getitem" and isinstance(found.index, slice):
                return False
        return True

    def _is_tame(self, operation: tuple[Any, list[Any], Any]) -> bool:
        function, operands, _ = operation
        rule = RULE_OF.get(IN_PLACE.get(function, function))
        if rule in ("div", "pow") and (constant := self.constant(operands[1])) is not None:
            return rule == "div" or (type(constant.value) is int and constant.value >= 0)
        return rule in TAME

    def _is_steady(self, operation: tuple[Any, list[Any], Any]) -> bool:
        function = operation[0]
        rule = RULE_OF.get(IN_PLACE.get(function, function))
        return rule is None or rule in STEADY or self._is_tame(operation)

    def _shared(self, block: Any, inside: set[str]) -> tuple[dict[str, int], set[str]]:
        """The other temporaries that one statement of the same block alone reads, and how often; and those that only tame
        operations read on the way to it.

        A statement with a slope that may be infinite at a finite value takes none: what an adjoint changes by may cancel before it
        meets that slope, as `x - y` of `sqrt(z) * (x - y)` does along ``x = y``, and is a sum after it.
        """
        made = []
        for statement in block.body:
            operation = self.operation(statement.value) if isinstance(statement, ir.Assign) else None
            if operation is not None:
                made.append((statement.target.name, operation))
        ends: dict[str, set[str]] = {}  # for what is read, the statements that it becomes a part of
        steep: set[str] = set()
        wild: set[str] = set()
        reads: Counter[str] = Counter()
        found: dict[str, tuple[int, str]] = {}
        for name, operation in reversed(made):
            operands, readers = [var.name for var in operation[1]], ends.get(name, set())
            one = len(readers) == 1 and reads[name] == self.uses[name] and len(self.func_ir._definitions[name]) == 1
            is_part = one and operation[0] not in IN_PLACE
            if is_part and name not in inside:
                found[name] = reads[name], min(readers)
            if not self._is_steady(operation):
                steep.update(readers if is_part else {name})
            for operand in operands:
                ends.setdefault(operand, set()).update(readers if is_part else {name})
            if not self._is_tame(operation) or (is_part and name in wild):
                wild.update(operands)
            reads.update(operands)
        shared = {name: count for name, (count, end) in found.items() if end not in steep}
        return shared, set(shared) - wild

    def _inside(self, block: Any) -> set[str]:
        """Temporaries that are used once, by another part of a statement in the same block."""
        made, inside = set(), set()
        for statement in block.body:
            operation = self.operation(statement.value) if isinstance(statement, ir.Assign) else None
            if operation is None:
                continue
            inside |= {var.name for var in operation[1] if var.name in made}
            name = statement.target.name
            if name.startswith("$") and self.uses[name] == 1 and len(self.func_ir._definitions[name]) == 1:
                made.add(name)
        return inside


class _Reads:
    """Reads of one element: ``x[i] * x[i]`` depends on one leaf, not on two.

    Only the types tell whether what was read is a number, or an array that may be written into: the statement decides.
    """

    def __init__(self, func_ir: Any) -> None:
        self.func_ir = func_ir
        self.places: dict[Any, int] = {}  # places that were read since the last write
        self.read: dict[str, int] = {}  # name of a variable -> the read that it holds the result of
        self.numbers: dict[str, Any] = {}  # what temporaries are made of, so that equal indices are known as such

    def forget(self) -> None:
        """Something may have been written: elements, and indices that are arrays."""
        self.places.clear()
        self.numbers.clear()

    def firsts(self, leaves: list[Any]) -> tuple[int, ...]:
        """For each leaf the first one that was read from the same place."""
        found: dict[Any, int] = {}
        return tuple(found.setdefault(self.read.get(var.name, var.name), number) for number, var in enumerate(leaves))

    def number(self, target: Any, node: Any, leaves: list[Any]) -> None:
        if self._once(target):
            self.numbers[target.name] = (node, tuple(self._key(var) for var in leaves))

    def _once(self, var: Any) -> bool:
        return len(self.func_ir._definitions.get(var.name, ())) == 1

    def _name(self, var: Any) -> Any:
        """What no other value has; a variable that is assigned twice has two values."""
        return var.name if self._once(var) else object()

    def _key(self, var: Any) -> Any:
        return self.numbers.get(var.name) or self._name(var)

    def see(self, statement: Any) -> None:
        value, target = statement.value, statement.target
        if not self._once(target):
            return
        if value.op == "build_tuple":
            self.numbers[target.name] = tuple(self._key(item) for item in value.items)
        elif value.op in ("getitem", "static_getitem"):
            index = self._key(value.index) if value.op == "getitem" else repr(value.index)
            place = (self._name(value.value), value.op, index)
            self.read[target.name] = self.places.setdefault(place, len(self.read))


# Values that are there without a computation. What a generator yields to may write anything.
STANDING = (ir.Var, ir.Const, ir.Global, ir.FreeVar, ir.Arg)


def _harmless(statement: Any) -> bool:
    if not isinstance(statement, ir.Assign):
        return False
    value = statement.value
    return value.op in PURE if isinstance(value, ir.Expr) else isinstance(value, STANDING)


@register_pass(mutates_CFG=False, analysis_only=False)
class AddTape(FunctionPass):  # type: ignore[misc]
    """The tape is the first argument of every function that records."""

    _name = "tapegrad_add_tape"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        func_ir = state.func_ir
        for block in func_ir.blocks.values():
            for statement in block.find_insts(ir.Assign):
                if isinstance(statement.value, ir.Arg):
                    statement.value.index += 1
        func_ir.arg_count += 1
        func_ir.arg_names = (TAPE, *func_ir.arg_names)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class Fold(FunctionPass):  # type: ignore[misc]
    """Statements become one call each, and calls record."""

    _name = "tapegrad_fold"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        func_ir = state.func_ir
        # Not earlier: a variable that nothing uses yet is removed where inner functions are inlined.
        first = func_ir.blocks[min(func_ir.blocks)]
        first.prepend(ir.Assign(ir.Arg(TAPE, 0, first.loc), first.scope.get_or_define(TAPE, first.loc), first.loc))
        retargeting = Retargeting(func_ir, state.pipeline.level, state.args)
        for block in func_ir.blocks.values():
            retargeting.block(block)
        folding = _Folding(func_ir, state.args)
        for block in func_ir.blocks.values():
            folding.block(block)
        if len(folding.made) > CROWD:
            for made in folding.made:
                made.value = made.value.crowded()
        func_ir._definitions = build_definitions(func_ir.blocks)
        for context in (state.typingctx, state.targetctx):
            context.refresh()  # functions that were made for these calls are known from now on
        return True
