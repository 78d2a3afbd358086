"""From rule text to compiled code: one generated text, and one more each for linear tapes and for loops over whole arrays.

It holds the project's scalar functions, the loops made from the rule table and the engine's sources, so whatever is compiled, with
the package or where it is used, was compiled from exactly what the text says.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tapegrad.engine import ARRAY_SOURCES, LANE_SOURCES, LANES, LINEAR_SOURCES, SOURCES
from tapegrad.engine.layout import KERNEL_COUNT
from tapegrad.kernels.function_blocks import BLOCK_TEXT, BY_BITS, WRITTEN_OUT
from tapegrad.kernels.loop_text import loop_text, two_ways
from tapegrad.kernels.opcodes import (
    BY_NUMPY,
    HAS_EXACT,
    HAS_SCALAR,
    LOOPS,
    MATH,
    OPCODES,
    PRIMAL_LOOP,
    SECOND_LOOPS,
    calls_in,
    compiled_forms,
    has_staged_value,
    has_value_loop,
    is_compilable,
    is_quick,
    names_in,
    partial_texts,
)
from tapegrad.kernels.second_partials import PAIRS, ZERO, second_partial, second_partials, second_texts
from tapegrad.rules.table import COMMON, POWERS, RULES, Rule

__all__ = ["array_source", "linear_source", "source", "whole_source"]

PACKAGE = Path(__file__).parent.parent

# Modules of `rules` whose functions compiled code has.
FUNCTIONS_OF_RULES = ("binary_exponents", "error_functions", "gamma_functions", "special")

HEADER = """import math
from math import {math}

import numpy as np
from numpy import ceil, floor, trunc

from tapegrad.compilation.jit import always_inline, entry, inline, kernel
from tapegrad.compilation.memory_types import *
from tapegrad.compilation.vector_types import *

round = np.rint
"""

REMAINDER = """
@inline
def remainder(x, y):
    quotient = x / y
    # Five times as fast as the C library, and as exact (`tapegrad.engine.remainders`).
    if abs(quotient) < 4503599627370496.0 and abs(y) <= 1.7976931348623157e308:
        rest = fused(-floor(quotient), y, x)
        rest = rest + y if (rest < 0) != (y < 0) and rest != 0 else rest
        return rest if rest != 0 else math.copysign(0.0, y)
    return x % y

"""


def _branches(cases: list[tuple[int, list[str]]], subject: str) -> Iterator[str]:
    for k, (number, body) in enumerate(cases):
        yield f"    {'if' if k == 0 else 'elif'} {subject} == {number}:"
        yield from (f"        {line}" for line in body)


def _scalar_cases(inlined: bool) -> list[tuple[int, list[str]]]:
    """Bodies computing both partials of a plain row; a costly one is skipped where its operand is a constant."""
    cases = []
    for opcode, rule in enumerate(RULES[:COMMON]):
        if len(rule.args) > 2 or inlined != is_quick(rule):
            continue
        texts = [text or "math.nan" for text in (*rule.partials, "0.0")[:2]]
        body = []
        for result, have, text in zip(("dx", "dy"), ("has_x", "has_y"), texts, strict=False):
            body.append(f"{result} = ({text}) if {have} else 0.0" if calls_in(text) - {"where", "mul0"} else f"{result} = {text}")
        cases.append((opcode, body))
    return cases


def _scalar_partials() -> str:
    """Partials of plain rows. Pure arithmetic is inlined into the sweep; the rest is one call away.

    All of it inlined made the sweep's compilation take minutes instead of a second, and saved nothing where a partial
    costs twenty times the call.
    """
    return "\n".join(
        [
            '@kernel("void(Words,int64,int64,int64,float64,float64,float64,Doubles)")',
            "def scalar_partials(kernels, opcode, has_x, has_y, x, y, z, out):",
            "    nan, dx, dy = math.nan, 0.0, 0.0",
            *_branches(_scalar_cases(inlined=False), "opcode"),
            "    out[0], out[1] = dx, dy",
            "",
            "@always_inline",
            "def partials(sweep, opcode, has_x, has_y, x, y, z):",
            *_branches([(opcode, [*body, "return dx, dy"]) for opcode, body in _scalar_cases(inlined=True)], "opcode"),
            "    kernels, scratch = sweep.kernels, sweep.scratch",
            "    kernel = kernels[SCALAR_PARTIALS if opcode < COMMON else OTHER_SCALARS]",
            "    call_scalar(kernel, kernels, opcode, has_x, has_y, x, y, z, scratch)",
            "    return scratch[0], scratch[1]",
            "",
        ]
    )


_SIGNATURE = '@kernel("void(int64,int64,int64,int64,int64,int64,int64,int64,int64,int64)", wide=True)'


def _partial_loop(text: str) -> list[str]:
    return two_ways(text, lambda text: loop_text(names_in(text), "-gs[j]" if text == "-1.0" else f"mul0(gs[j], {text})"))


def _value_loop(rule: Rule) -> list[str]:
    def loop(text: str) -> list[str]:
        return loop_text(names_in(text), text)

    return two_ways(rule.primal, loop, is_value=True) if has_staged_value(rule) else loop(rule.primal)


def _partial_block() -> str:
    """One loop over a contiguous block for each distinct partial of the common rules."""
    cases = [(number, _partial_loop(text)) for number, text in enumerate(partial_texts())]
    return "\n".join(
        [
            _SIGNATURE,
            "def partial_block(number, n, x_at, y_at, w_at, z_at, g_at, out_at, functions, room_at):",
            "    xs, ys, ws, zs, gs, out = f64(x_at, n), f64(y_at, n), f64(w_at, n), f64(z_at, n), f64(g_at, n), f64(out_at, n)",
            *_branches(cases, "number"),
            "",
        ]
    )


def _value_block() -> str:
    """Values of those common rules by loops of which NumPy makes several passes over an array."""
    cases = [(OPCODES[rule.name], _value_loop(rule)) for rule in RULES[:COMMON] if has_value_loop(rule) or has_staged_value(rule)]
    return "\n".join(
        [
            _SIGNATURE,
            "def value_block(number, n, x_at, y_at, w_at, z_at, g_at, out_at, functions, room_at):",
            "    xs, ys, ws, out = f64(x_at, n), f64(y_at, n), f64(w_at, n), f64(out_at, n)",
            *_branches(cases, "number"),
            "",
        ]
    )


def _operators() -> str:
    """What the compiled operators need of the table: which rules have one, their values on scalars, and the exact powers."""
    compiled = [(opcode, rule) for opcode, rule in enumerate(RULES[:COMMON]) if compiled_forms(rule) & HAS_SCALAR]
    operators = tuple((opcode, len(rule.args)) for opcode, rule in enumerate(RULES) if rule.name != "_alias")
    return "\n".join(
        [
            f"OPERATORS = {operators}",
            f"RULE_COUNT, COMMON, POWER = {len(RULES)}, {COMMON}, {OPCODES['pow']}",
            f"HAS_SCALAR, HAS_EXACT, BY_NUMPY = {HAS_SCALAR}, {HAS_EXACT}, {BY_NUMPY}",
            f"SECOND_LOOPS, PRIMAL_LOOP = {SECOND_LOOPS}, {PRIMAL_LOOP}",
            f"FUNCTIONS_AT = {KERNEL_COUNT + len(LOOPS)}",
            "",
            '@kernel("float64(int64,float64,float64)")',
            "def primal(opcode, x, y):",
            *_branches([(opcode, [f"return {rule.primal}"]) for opcode, rule in compiled], "opcode"),
            "    return math.nan",
            "",
            "@inline",
            "def product_of_power(opcode, y):",
            f"    if opcode == {OPCODES['pow']}:",
            *(f"        {line}" for y, name in POWERS.items() for line in (f"if y == {y}:", f"    return {OPCODES[name]}")),
            "    return -1",
            "",
        ]
    )


def _own_loops(rule: Rule) -> str:
    """All loops of a rule that is not among the common ones, as a kernel: partials, second partials and value by their numbers."""
    cases = [(k, _partial_loop(text)) for k, text in enumerate(rule.partials) if text not in (None, "1.0")]
    for number, (i, j) in enumerate(PAIRS):
        text = second_partial(rule, i, j) if j < len(rule.args) else ZERO
        if text != ZERO:
            cases.append((SECOND_LOOPS + number, loop_text(names_in(text), text)))
    if is_compilable(rule):
        cases.append((PRIMAL_LOOP, _value_loop(rule)))
    return "\n".join(
        [
            _SIGNATURE,
            f"def loops_of_{rule.name}(number, n, x_at, y_at, w_at, z_at, g_at, out_at, functions, room_at):",
            "    xs, ys, ws, zs, gs, out = f64(x_at, n), f64(y_at, n), f64(w_at, n), f64(z_at, n), f64(g_at, n), f64(out_at, n)",
            *_branches(cases, "number"),
            "",
        ]
    )


def _body(path: Path) -> str:
    """A source module without its imports from the package: in the joined file those names are defined above."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kept = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("tapegrad", "__future__")):
            continue
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            continue
        kept.append(node)
    return ast.unparse(ast.Module(kept, []))


def source() -> str:
    """Text of the generated file."""
    folder = PACKAGE
    special = ast.parse("\n".join(_body(folder / "rules" / f"{name}.py") for name in FUNCTIONS_OF_RULES))
    special.body = [node for node in special.body if not (isinstance(node, ast.FunctionDef) and node.name in BY_BITS)]
    for node in special.body:
        if isinstance(node, ast.FunctionDef):
            node.decorator_list.append(ast.Name("always_inline" if node.name in WRITTEN_OUT else "inline"))
    parts = [HEADER.format(math=", ".join(MATH)), ast.unparse(ast.fix_missing_locations(special)), REMAINDER, BLOCK_TEXT]
    parts += [_body(folder / "engine" / f"{name}.py") for name in SOURCES[:3]]
    parts += [_operators(), _scalar_partials(), _partial_block(), _value_block(), *map(_own_loops, RULES[COMMON:])]
    parts += [_body(folder / "engine" / f"{name}.py") for name in SOURCES[3:]]
    return "\n\n".join(parts) + "\n"


def _second_partials() -> str:
    """Second partials: of plain rows all three at once, of arrays one loop for each distinct expression."""
    scalars = []
    for opcode, rule in enumerate(RULES[:COMMON]):
        texts = [second_partials().get((opcode, pair), "0.0") for pair in range(3)]
        if len(rule.args) < 3 and set(texts) != {"0.0"}:
            scalars.append((opcode, [f"{name} = {text}" for name, text in zip(("xx", "xy", "yy"), texts, strict=True)]))
    blocks = [(number, loop_text(names_in(text), text)) for number, text in enumerate(second_texts())]
    return "\n".join(
        [
            '@kernel("void(Words,int64,int64,int64,float64,float64,float64,Doubles)")',
            "def second_scalar(kernels, opcode, has_x, has_y, x, y, z, out):",
            "    xx, xy, yy = 0.0, 0.0, 0.0",
            *_branches(scalars, "opcode"),
            "    out[0], out[1], out[2] = xx, xy, yy",
            "",
            _SIGNATURE,
            "def second_block(number, n, x_at, y_at, w_at, z_at, g_at, out_at, functions, room_at):",
            "    xs, ys, ws, zs, out = f64(x_at, n), f64(y_at, n), f64(w_at, n), f64(z_at, n), f64(out_at, n)",
            *_branches(blocks, "number"),
            "",
        ]
    )


def _in_lanes(names: Sequence[str], lanes: int) -> str:
    """Source modules for so many lanes: each function once more, under a name of its own."""
    tree = ast.parse("\n".join(_body(PACKAGE / "engine" / f"{name}.py") for name in names))
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}

    class Renaming(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
            if node.name in own:
                node.name = f"{node.name}_{lanes}"
            self.generic_visit(node)
            return node

        def visit_Name(self, node: ast.Name) -> ast.expr:
            if node.id == "LANES":
                return ast.Constant(lanes)
            return ast.Name(f"{node.id}_{lanes}" if node.id in own else node.id, node.ctx)

    kept = [node for node in tree.body if not isinstance(node, ast.Assign)]
    return ast.unparse(ast.fix_missing_locations(Renaming().visit(ast.Module(kept, []))))


def linear_source() -> str:
    """Text of the second generated file: the first one's, and the sweeps over linear tapes.

    Apart from the first, because few processes need it and its text changes what the first one is named by.
    """
    folder = PACKAGE / "engine"
    parts = [source(), _second_partials(), *(_body(folder / f"{name}.py") for name in LINEAR_SOURCES)]
    parts += [_in_lanes(LANE_SOURCES, lanes) for lanes in LANES]
    return "\n\n".join(parts) + "\n"


def array_source() -> str:
    """Text of the third generated file: loops over whole arrays, which need nothing of the tape."""
    return "\n\n".join([HEADER.format(math=", ".join(MATH)), *_bodies(ARRAY_SOURCES)]) + "\n"


def whole_source() -> str:
    """Text of all that is built with the package.

    Raises
    ------
    ValueError
        If two functions of the engine, or two constants of different values, have one name: what comes first would use the other.
    """
    text = "\n\n".join([linear_source(), *_bodies(name for name in ARRAY_SOURCES if name not in SOURCES)]) + "\n"
    body = ast.parse(text).body
    names = [node.name for node in body if isinstance(node, ast.FunctionDef)] + _constants(body)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"the engine defines {', '.join(twice)} more than once; give one of each another name")
    return text


def _constants(body: list[ast.stmt]) -> list[str]:
    """Names that statements of a module give to values, one for each value of a name."""
    found: set[tuple[str, str]] = set()
    for node in body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs: Any = zip(target.elts, node.value.elts, strict=True)
                else:
                    pairs = [(name, node.value) for name in (target.elts if isinstance(target, ast.Tuple) else [target])]
                found.update((ast.unparse(name), ast.unparse(value)) for name, value in pairs)
    return [name for name, _ in found]


def _bodies(names: Iterable[str]) -> Iterator[str]:
    return (_body(PACKAGE / "engine" / f"{name}.py") for name in names)
