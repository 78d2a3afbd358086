"""A whole statement as one function: its value, and one row of the tape.

A statement is a tree of arithmetic over variables of Numba's IR. When its types are known, the value is computed by Numba's own
implementations in the order in which the user wrote them, so it has the same bits; then the partials of all operations are
multiplied together backwards, at compile time, down to the leaves, and one row of (leaf, partial) pairs is written. A leaf that
occurs twice has one pair. CoDiPack does the same with expression templates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models, register_default
from numba.core.errors import TypingError
from numba.core.imputils import lower_constant
from numba.core.targetconfig import ConfigStack
from numba.core.typing import signature

from tapegrad.nopython.formulas.edge_pushing import SecondDerivatives, is_number, plain_product, plus, times
from tapegrad.nopython.formulas.expression_tree import Const, Leaf, Node, Op, Shared
from tapegrad.nopython.formulas.formula import BY_NAME, Writer, constant_power, pairs_of, partial, product, second_text
from tapegrad.nopython.formulas.rule_names import IN_PLACE, RULE_OF, UNDIFFERENTIATED
from tapegrad.nopython.statements.array_loops import is_elementwise, loops
from tapegrad.nopython.statements.complex_statements import is_complex, operations
from tapegrad.nopython.statements.shared_parts import are_numbers, has_shared, unfolded
from tapegrad.nopython.tape.row_instructions import push
from tapegrad.nopython.types.curved_tape import CurvedTape, DirectedTape
from tapegrad.nopython.types.variable import Variable, is_float, make, number_of, present, row_of, variable_of

__all__ = ["Statement", "StatementType"]


STAR = (types.StarArgTuple, types.StarArgUniTuple)


# These give one of their operands, the first one where they are equal, as on tensors; `maximum` and `minimum` have halves there.
CHOOSING = {
    max: ("where(y > x, 0.0, 1.0)", "where(y > x, 1.0, 0.0)"),
    min: ("where(y < x, 0.0, 1.0)", "where(y < x, 1.0, 0.0)"),
}


class Resolved(NamedTuple):
    """The types of a node: `kind` is what it is while recording, `sig` and `function` what Numba calls for the primal."""

    kind: types.Type
    function: Any = None
    sig: Any = None
    args: tuple[Any, ...] = ()


# What Numba calls for operations on operands of some types, while one function is compiled. Numba looks for it at each use, which
# is a third of the time that a long body takes to be typed.
Known = dict[tuple[Any, ...], tuple[Any, Any]]


def resolve(typingctx: Any, node: Node, kinds: tuple[types.Type, ...], known: Known) -> Resolved:
    """Type a tree of scalars."""
    if isinstance(node, Leaf):
        return Resolved(kinds[node.number])
    if isinstance(node, Const):
        return Resolved(types.unliteral(typingctx.resolve_value_type(node.value)))
    if isinstance(node, Shared):
        return resolve(typingctx, node.node, kinds, known)
    args = tuple(resolve(typingctx, arg, kinds, known) for arg in node.args)
    if node.function in IN_PLACE and not args[0].kind.mutable:
        node = node._replace(function=IN_PLACE[node.function])
    primals = tuple(_plain(arg.kind) for arg in args)
    use = node.function, type(node.static), node.static, primals
    if use not in known:
        known[use] = _called(typingctx, node, primals)
    function, sig = known[use]
    kind = sig.return_type
    if any(isinstance(arg.kind, Variable) for arg in args):
        kind = _recorded(node, kind)
    return Resolved(kind, function, sig, args)


def _called(typingctx: Any, node: Op, primals: tuple[types.Type, ...]) -> tuple[Any, Any]:
    """The function that Numba calls for an operation, and its signature."""
    try:
        function = typingctx.resolve_value_type(node.function)
    except ValueError:
        raise TypingError(f"[tapegrad] Numba does not know the function {node.function.__name__}") from None
    sig = None
    if node.static is not None:
        static = types.literal(node.static) if isinstance(node.static, int) else None
        if static is not None:
            try:
                sig = function.get_call_type(typingctx, (primals[0], static), {})
            except TypingError:
                sig = None
    if sig is None or not isinstance(sig.args[-1], types.Literal):
        sig = typingctx.resolve_function_type(function, primals, {})
    return function, sig


def _plain(kind: types.Type) -> types.Type:
    return kind.primal if isinstance(kind, Variable) else kind


def _recorded(node: Op, kind: types.Type) -> types.Type:
    """The type of an operation's result where an operand is a variable."""
    if isinstance(kind, (types.Integer, types.Boolean)) or node.function in UNDIFFERENTIATED:
        return kind
    name = getattr(node.function, "__name__", str(node.function))
    if not isinstance(kind, types.Float):
        raise TypingError(
            f"[tapegrad] {name} of a variable gives {kind}, which is not differentiated; write it with float64 arithmetic instead"
        )
    if not is_float(kind):
        raise TypingError(
            f"[tapegrad] {name} of a variable gives {kind}; only float64 and float32 are differentiated: leave the conversion away"
        )
    rule = RULE_OF.get(node.function)
    if rule is None:
        raise TypingError(f"[tapegrad] {name} has no derivative in the rule table")
    return kind if all(text == "0.0" for text in BY_NAME[rule].partials) else variable_of(kind)


class Value:
    """A node while its code is written: the primal, and how it depends on other nodes."""

    __slots__ = ("adjoint", "args", "kind", "llvm", "row", "seconds")

    def __init__(self, kind: types.Type, llvm: Any, row: Any = None) -> None:
        self.kind, self.llvm, self.row = kind, llvm, row
        self.args: list[tuple[Value, Any]] = []
        self.seconds: list[tuple[Value, Value, Any, bool]] = []  # by two operands, and whether these are different ones
        self.adjoint: Any = 0


class Writing:
    """Writes a statement of scalars into a function."""

    def __init__(self, context: Any, builder: Any, leaves: list[Value], recorded: bool, tape: types.Type, is_crowded: bool) -> None:
        self.context, self.builder, self.leaves, self.recorded = context, builder, leaves, recorded
        self.is_crowded = is_crowded
        self.directed = isinstance(tape, DirectedTape)
        # Along a direction, who writes a row sees whether anything in it is nan, and asks for the other products then.
        self.multiply = plain_product if self.directed and not is_crowded else product
        self.second = SecondDerivatives(builder, self.multiply) if isinstance(tape, CurvedTape) else None
        self.order: list[Value] = []
        self.shared: dict[Shared, Value] = {}

    def value(self, node: Node, resolved: Resolved) -> Value:
        """The code of a node's primal; its partials follow at once, while their operands are at hand."""
        context, builder = self.context, self.builder
        if isinstance(node, Leaf):
            return self.leaves[node.number]
        if isinstance(node, Const):
            return Value(resolved.kind, context.get_constant_generic(builder, resolved.kind, node.value))
        if isinstance(node, Shared):
            if node not in self.shared:
                self.shared[node] = self.value(node.node, resolved)
            return self.shared[node]
        args = [self.value(child, inner) for child, inner in zip(node.args, resolved.args, strict=True)]
        made = []
        for k, kind in enumerate(resolved.sig.args):
            if isinstance(kind, types.Literal):
                made.append(node.static)
            elif isinstance(kind, types.Omitted):
                made.append(context.get_constant_generic(builder, kind, kind.value))
            elif isinstance(kind, STAR) and not isinstance(args[k].kind, STAR):  # a call's operands, not a tuple that is one
                items = [context.cast(builder, arg.llvm, _plain(arg.kind), item) for arg, item in zip(args[k:], kind, strict=True)]
                made.append(context.make_tuple(builder, kind, items))
            else:
                made.append(context.cast(builder, args[k].llvm, _plain(args[k].kind), kind))
        result = context.get_function(resolved.function, resolved.sig)(builder, made)
        for child, arg in zip(node.args, args, strict=True):
            if isinstance(child, Op):  # a list or the like that nobody else holds
                context.nrt.decref(builder, _plain(arg.kind), arg.llvm)
        value = Value(resolved.kind, result)
        if isinstance(resolved.kind, Variable):
            value.llvm = context.cast(builder, result, resolved.sig.return_type, resolved.kind.primal)
            if self.recorded:
                self._depend(node, value, args)
                self.order.append(value)
        return value

    def _depend(self, node: Op, value: Value, args: list[Value]) -> None:
        context, builder = self.context, self.builder
        rule = BY_NAME[RULE_OF[IN_PLACE.get(node.function, node.function)]]
        exponent = node.args[1].value if rule.name == "pow" and isinstance(node.args[1], Const) else node.static
        if rule.name == "pow" and exponent is not None:
            rule = constant_power(float(exponent)) or rule
        if node.function in CHOOSING:
            rule = rule._replace(partials=CHOOSING[node.function])
        names = {"z": context.cast(builder, value.llvm, _plain(value.kind), types.float64)}
        for name, arg in zip(("x", "y", "w"), args, strict=False):
            names[name] = context.cast(builder, arg.llvm, _plain(arg.kind), types.float64)
        writer = Writer(context, builder, names)
        if self.second is not None:
            writer.remember(rule)
        for number, arg in enumerate(args):
            if isinstance(arg.kind, Variable) and number < len(rule.args):
                factor = partial(writer, rule.partials[number])
                if factor is not None:
                    value.args.append((arg, factor))
        if self.second is None:
            return
        for i, j in pairs_of(rule):
            if j < len(args) and isinstance(args[i].kind, Variable) and isinstance(args[j].kind, Variable):
                factor = partial(writer, second_text(rule, i, j))
                if factor is not None:
                    value.seconds.append((args[i], args[j], factor, i != j))

    def pairs(self, root: Value) -> list[tuple[Any, Any]]:
        """Rows and partials of the leaves that the root depends on."""
        root.adjoint = 1
        for value in reversed(self.order):
            if is_number(value.adjoint, 0):
                continue
            for arg, factor in value.args:
                arg.adjoint = plus(self.builder, arg.adjoint, times(self.builder, value.adjoint, factor, self.multiply))
            if self.second is not None:
                self.second.push(value)
        leaves = {id(leaf): leaf for leaf in self.leaves}.values()
        return [(leaf.row, leaf.adjoint) for leaf in leaves if leaf.row is not None and not is_number(leaf.adjoint, 0)]

    def row(self, tape: Any, root: Value) -> Any:
        """The row of the root: that of a leaf it differs from by a constant, or a new one."""
        pairs = self.pairs(root)
        if not pairs:
            return ir.IntType(32)(0)
        if len(pairs) == 1 and is_number(pairs[0][1], 1):
            return pairs[0][0]
        again = (lambda: self._again(root)) if self.multiply is plain_product else None
        return push(self.context, self.builder, tape, pairs, self._triplets(), self.directed, self.is_crowded, again=again)

    def _triplets(self) -> list[tuple[Any, Any, Any]]:
        return [] if self.second is None else self.second.triplets(lambda leaf: leaf.row)

    def _again(self, root: Value) -> tuple[list[tuple[Any, Any]], list[tuple[Any, Any, Any]]]:
        """Pairs and triplets by absolute-zero products."""
        self.multiply, self.second = product, SecondDerivatives(self.builder)
        for value in (*self.order, *self.leaves):
            value.adjoint = 0
        return self.pairs(root), self._triplets()


class StatementType(types.Callable, types.Opaque):
    """The type of a statement seen as a function of the tape and the statement's leaves."""

    def __init__(self, tree: Node, firsts: tuple[int, ...], is_crowded: bool = False, known: Known | None = None) -> None:
        self.tree, self.firsts, self.is_crowded = tree, firsts, is_crowded
        self.known: Known = {} if known is None else known
        self._types: dict[tuple[types.Type, ...], Resolved] = {}
        self._loops: dict[tuple[tuple[types.Type, ...], Any], Any] = {}
        super().__init__(f"Statement({tree}, {firsts}, {is_crowded})")

    @property
    def key(self) -> Any:
        return self.tree, self.firsts, self.is_crowded

    def get_call_type(self, context: Any, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Any:
        kinds = tuple(types.unliteral(arg) for arg in args)
        if (used := tuple(map(present, kinds))) != kinds:
            _target().insert_func_defn([(self._write, self, kinds)])
            return signature(self.get_call_type(context, used, kws).return_type, *kinds)
        model = _error_model()
        if (made := self._loops.get((kinds, model))) is None:
            made = self._compiled(kinds[1:])
        if made is not None:
            if (kinds, model) not in self._loops:
                self._loops[kinds, model] = made
                _target().insert_func_defn([(self._write, self, kinds)])
            sig = types.Dispatcher(self._loops[kinds, model]).get_call_type(context, kinds, {})
            return signature(sig.return_type, *kinds)
        if kinds not in self._types:
            resolved = resolve(context, self.tree, kinds[1:], self.known)
            _target().insert_func_defn([(self._write, self, kinds)])
            self._types[kinds] = resolved
        return signature(self._types[kinds].kind, *kinds)

    def _compiled(self, kinds: tuple[types.Type, ...]) -> Any:
        """A compiled function of the tape and the leaves, where they are not just numbers."""
        if has_shared(self.tree) and (not are_numbers(kinds) or is_complex(self.tree, kinds)):
            return unfolded(self.tree, len(kinds), Statement)
        if is_elementwise(kinds):
            return loops(self.tree, kinds, Statement)
        return operations(self.tree, len(kinds), Statement) if is_complex(self.tree, kinds) else None

    def get_call_signatures(self) -> Any:
        return [], True

    def get_impl_key(self, sig: Any) -> Any:
        return self

    def _write(self, context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if (used := tuple(map(present, sig.args))) != sig.args:
            given = [context.cast(builder, arg, *kinds) for arg, *kinds in zip(args, sig.args, used, strict=True)]  # raises at None
            return self._write(context, builder, signature(sig.return_type, *used), given)
        looping = self._loops.get((tuple(sig.args), _error_model()))
        if looping is not None:
            function = types.Dispatcher(looping)
            inner = function.get_call_type(context.typing_context, sig.args, {})
            return context.get_function(function, inner)(builder, args)
        resolved = self._types[tuple(sig.args)]
        leaves = []
        for kind, arg in zip(sig.args[1:], args[1:], strict=True):
            recorded = isinstance(kind, Variable)
            leaves.append(
                Value(kind, number_of(context, builder, kind, arg), row_of(builder, arg)) if recorded else Value(kind, arg)
            )
        for number, first in enumerate(self.firsts):
            if isinstance(leaves[number].kind, Variable) and isinstance(leaves[first].kind, Variable):
                leaves[number] = leaves[first]
        writing = Writing(context, builder, leaves, isinstance(resolved.kind, Variable), sig.args[0], self.is_crowded)
        root = writing.value(self.tree, resolved)
        if not isinstance(resolved.kind, Variable):
            return root.llvm
        primal = context.cast(builder, root.llvm, resolved.kind.primal, types.float64)
        return make(context, builder, primal, writing.row(args[0], root))


def _error_model() -> Any:
    """What division by zero does in the function that is being compiled; what it calls takes that over."""
    flags = ConfigStack.top_or_none()
    return None if flags is None else flags.error_model


def _target() -> Any:
    return numba.core.registry.cpu_target.target_context


@register_default(StatementType)
class StatementModel(models.OpaqueModel):
    """Nothing at run time."""


@lower_constant(StatementType)
def _constant(context: Any, builder: Any, kind: types.Type, value: Any) -> Any:
    return context.get_dummy_value()


class Statement:
    """A statement as a value of the IR.

    `firsts` has for each leaf the first one that was read from the same place: if they are numbers, they are one leaf. A statement
    is crowded if there are many in its function.
    """

    def __init__(self, tree: Node, firsts: tuple[int, ...] = (), is_crowded: bool = False, known: Known | None = None) -> None:
        self._numba_type_ = StatementType(tree, firsts, is_crowded, known)

    def crowded(self) -> Statement:
        """The same among many."""
        kind = self._numba_type_
        return Statement(kind.tree, kind.firsts, True, kind.known)
