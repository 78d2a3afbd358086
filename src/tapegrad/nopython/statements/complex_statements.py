"""Statements on complex numbers: an operation at a time, each with a row for its real and one for its imaginary part.

Derivatives are those of the rule table, whose text is evaluated with complex numbers: what is holomorphic has the same formula.
"""

from __future__ import annotations

import cmath
import functools
import operator
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.errors import TypingError

from tapegrad.nopython.formulas.expression_tree import Const, Leaf, Node, Op, Shared
from tapegrad.nopython.formulas.formula import BY_NAME, constant_power, pairs_of, second_text
from tapegrad.nopython.formulas.rule_names import CMATH, COMPARISONS, IN_PLACE, RULE_OF, UNDIFFERENTIATED
from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.tape.complex_rows import complex_rows, imaginary_part, joined, real_part
from tapegrad.nopython.tape.row_writing import primals, row, with_row
from tapegrad.nopython.types.curved_tape import CurvedTape
from tapegrad.nopython.types.variable import REAL, ComplexVariable, has_variables, primal_type

__all__ = ["is_complex", "operations"]

HOLOMORPHIC = frozenset(
    [
        "add",
        "sub",
        "mul",
        "div",
        "neg",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log10",
        "log2",
        "log1p",
        "sqrt",
        "square",
        "reciprocal",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "asin",
        "acos",
        "atan",
        "asinh",
        "acosh",
        "atanh",
        "pow",
    ]
)


def is_complex(tree: Node, kinds: tuple[types.Type, ...]) -> bool:
    """Whether a statement with variables has complex numbers in it."""
    if not any(map(has_variables, kinds)):
        return False
    return any(isinstance(kind, (types.Complex, ComplexVariable)) for kind in kinds) or _calls_cmath(tree)


def _calls_cmath(node: Node) -> bool:
    if isinstance(node, Shared):
        return _calls_cmath(node.node)
    return isinstance(node, Op) and (node.function in CMATH or any(map(_calls_cmath, node.args)))


def operations(tree: Node, count: int, statement: Callable[[Node], Any]) -> Any:
    """A compiled function of the tape and the leaves, which does one operation after the other."""
    space: dict[str, Any] = {}
    lines = [f"def apart({', '.join(['tape', *(f'l{k}' for k in range(count))])}):"]

    def value(node: Node) -> str:
        if isinstance(node, Leaf):
            return f"l{node.number}"
        if isinstance(node, Const):
            return node.spelling
        args = node.args[:1] if node.static is not None else node.args
        given = [value(arg) for arg in args]
        name = f"t{len(space)}"
        space[f"do_{name}"] = _operation(IN_PLACE.get(node.function, node.function), node.static, len(args), statement)
        lines.append(f"    {name} = do_{name}({', '.join(['tape', *given])})")
        return name

    result = value(tree)
    exec(compile("\n".join([*lines, f"    return {result}"]), "<tapegrad complex>", "exec"), space)
    return part(space["apart"])


def _operation(function: Any, static: Any, count: int, statement: Callable[[Node], Any]) -> Any:
    names = ["x", "y"][:count]
    space: dict[str, Any] = {"defined": lambda tape, *kinds: _defined(function, static, statement, tape, kinds)}
    arguments = ", ".join(["tape", *names])
    exec(f"def call({arguments}):\n    raise NotImplementedError\ndef define({arguments}):\n    return defined({arguments})", space)
    overload(space["call"], complex_too=True)(space["define"])
    return space["call"]


def _defined(function: Any, static: Any, statement: Callable[[Node], Any], tape: Any, kinds: Any) -> Any:
    names = ["x", "y"][: len(kinds)]
    arguments = ", ".join(["tape", *names])
    space: dict[str, Any] = {"function": function, "primals": primals}
    given = [f"primals({name})" for name in names] + ([] if static is None else [repr(static)])
    plain = f"function({', '.join(given)})"
    are_complex = any(isinstance(kind, (types.Complex, ComplexVariable)) for kind in kinds)
    name = RULE_OF.get(function) or CMATH.get(function)
    if not any(map(has_variables, kinds)) or function in COMPARISONS or function in UNDIFFERENTIATED:
        text = plain
    elif not are_complex and function not in CMATH:
        leaves = tuple(Leaf(k) for k in range(len(kinds)))
        constant = () if static is None else (Const(static, repr(static)),)
        space["statement"] = statement(Op(function, (*leaves, *constant), static))
        text = f"statement({arguments})"
    elif name == "abs":
        space |= _PARTS | {"length": statement(Op(np.hypot, (Leaf(0), Leaf(1))))}
        text = f"with_row({plain}, row(length(tape, real(x), imag(x))))"
    elif function is cmath.phase:
        space |= _PARTS | {"angle": statement(Op(np.arctan2, (Leaf(0), Leaf(1))))}
        text = f"with_row({plain}, row(angle(tape, imag(x), real(x))))"
    elif function is np.conjugate:
        space |= _PARTS | {"negative": statement(Op(operator.neg, (Leaf(0),)))}
        text = "joined(real(x), negative(tape, imag(x)))"
    elif name == "_alias":
        text = "x"
    else:
        if any(kind in (types.complex64, types.float32) for kind in map(primal_type, kinds)):
            _refuse_complex64(function, kinds, static)
        return _holomorphic(function, name, static, tape, kinds, names, plain, space)
    exec(f"def impl({arguments}):\n    return {text}", space)
    return space["impl"]


def _refuse_complex64(function: Any, kinds: Any, static: Any) -> None:
    context = numba.core.registry.cpu_target.typing_context
    given = (*map(primal_type, map(types.unliteral, kinds)), *(() if static is None else (types.int64,)))
    sig = context.resolve_function_type(context.resolve_value_type(function), given, {})
    if sig is None or sig.return_type != types.complex128:
        raise TypingError("[tapegrad] of complex numbers complex128 is recorded alone; convert float32 and complex64 before")


_PARTS: dict[str, Any] = {"real": real_part, "imag": imaginary_part, "joined": joined, "with_row": with_row, "row": row}


def _holomorphic(function: Any, name: str, static: Any, tape: Any, kinds: Any, names: list[str], plain: str, space: Any) -> Any:
    called = getattr(function, "__name__", str(function))
    if name not in HOLOMORPHIC:
        raise TypingError(f"[tapegrad] {called} of a complex number is not recorded; write it with the real and the imaginary part")
    rule = BY_NAME[name]
    if name == "pow":
        if static is None and (has_variables(kinds[1]) or not isinstance(types.unliteral(kinds[1]), REAL)):
            raise TypingError("[tapegrad] a power of complex numbers takes a real constant exponent; write np.exp(y * np.log(x))")
        rule = (constant_power(float(static)) if static is not None else None) or rule
    operands = [k for k in range(len(rule.args)) if k < len(kinds) and has_variables(kinds[k])]
    slopes = [rule.partials[k] for k in operands]
    curved = [second_text(rule, i, j) for i, j in pairs_of(rule) if i in operands and j in operands]
    if not isinstance(tape, CurvedTape):
        curved = []
    space |= {"complex_rows": complex_rows}
    lines = [f"def impl({', '.join(['tape', *names])}):", f"    z = complex({plain})"]
    lines += [f"    {n}0 = primals({n})" for n in names]
    if static is not None and len(rule.args) == 2:
        lines.append(f"    y0 = {float(static)!r}")
    given = ", ".join(["x0", "y0" if len(rule.args) == 2 else "x0", "z"])
    texts = []
    for number, text in enumerate([*slopes, *curved]):
        space[f"slope{number}"] = _slope(text)
        texts.append(f"slope{number}({given})")
    first = "".join(f"{text}, " for text in texts[: len(slopes)])
    second = "".join(f"{text}, " for text in texts[len(slopes) :])
    items = "".join(f"{names[k]}, " for k in operands)
    lines.append(f"    return complex_rows(tape, z, ({items}), ({first}), ({second}))")
    exec("\n".join(lines), space)
    return space["impl"]


@part
def mul0(x, y):
    """The absolute-zero product."""
    return 0j if x == 0.0 or y == 0.0 else complex(x * y)


@part
def where(condition, x, y):
    """One of two numbers."""
    return complex(x) if condition else complex(y)


@part
def power(x, y):
    """A power, as rules spell it."""
    return x**y


@functools.cache
def _slope(text: str) -> Any:
    """A rule's text as a function of complex numbers."""
    space: dict[str, Any] = {"mul0": mul0, "where": where, "pow": power}
    space |= {name: getattr(np, name) for name in ("exp", "log", "sqrt", "sin", "cos", "sinh", "cosh")}
    return part(error_model="numpy")(eval(f"lambda x, y, z: ({text}) + 0j", space))
