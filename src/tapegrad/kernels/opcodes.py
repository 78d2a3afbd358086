"""What the rule table is to compiled code: numbers of operations, the values that their partials use, and which forms they have."""

from __future__ import annotations

import numpy as np

from tapegrad.deferred import MadeOnDemand
from tapegrad.engine.layout import KERNEL_COUNT, UNIT
from tapegrad.rules import special
from tapegrad.rules.table import COMMON, RULES, Rule

__all__ = [
    "BLOCKS", "BY_NUMPY", "FUNCTIONS", "HAS_EXACT", "HAS_SCALAR", "LOOPS", "MATH", "OPCODES", "OWN_BLOCKS", "OWN_LOOPS",
    "PRIMAL_LOOP", "SECOND_LOOPS", "USES", "call_of", "calls_in", "compiled_forms", "has_staged_value", "has_value_loop",
    "is_compilable", "is_numpys", "is_quick", "names_in", "partial_texts", "rule_table",
]  # fmt: skip

OPCODES: dict[str, int] = {rule.name: number for number, rule in enumerate(RULES)}

# The kernel with the loops of each rule that is not among the common ones, and the word of the table of kernels for its address.
LOOPS: dict[str, int] = {f"loops_of_{rule.name}": KERNEL_COUNT + number for number, rule in enumerate(RULES[COMMON:])}

# Its loops by number: the partials are the first three, then come the second partials by pairs of arguments, and the value.
SECOND_LOOPS, PRIMAL_LOOP = 3, 9

BITS = {"x": 1, "y": 2, "w": 4, "z": 8}

# What rule text may call besides the arithmetic operators, and how compiled code has it.
MATH = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "copysign",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "fmod",
    "hypot",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "pow",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]

# Functions of which NumPy has loops: partials on arrays call those, as values do. Exact ones are left to the compiler.
FUNCTIONS = [name for name in MATH if name not in {"copysign", "fmod", "hypot", "lgamma", "sqrt"}]
OWN_LOOPS = ["sigmoid"]  # functions that may have a loop of ours besides, which stand behind those; zeros if they have none

# Compiling regular expressions would take longer than all else here.
_SPACES = str.maketrans(dict.fromkeys("()+-*/<>=!.,", " "))


def names_in(text: str) -> set[str]:
    """Names that an expression uses."""
    return {word for word in text.translate(_SPACES).split() if word.isidentifier()}


def calls_in(text: str) -> set[str]:
    """Functions that an expression calls."""
    return names_in(" ".join(piece.translate(_SPACES).rpartition(" ")[2] for piece in text.split("(")[:-1]))


def _bits(text: str | None) -> int:
    return 0 if text is None else sum(BITS.get(name, 0) for name in names_in(text))


# By opcode, each found when it is first asked for.
USES: dict[int, tuple[int, ...]] = MadeOnDemand(lambda opcode: tuple(_bits(text) for text in RULES[opcode].partials))


def partial_texts() -> list[str]:
    """The distinct partials of common rules that need a loop: many rules share one (``-1.0``, ``y``, …)."""
    texts = {text for rule in RULES[:COMMON] for text in rule.partials if text is not None and text != "1.0"}
    return sorted(texts)


QUICK = frozenset(["cos", "cosh", "exp", "log", "sin", "sinh", "sqrt"])  # one call of the C library each


def is_quick(rule: Rule) -> bool:
    """Whether the partials of a scalar are a part of the sweep, and not a call away in a kernel that is loaded for them."""
    return len(rule.args) < 3 and all(calls_in(text or "nan") <= QUICK for text in rule.partials)


# Functions whose compiled form is not what the `math` module gives, or too long to be compiled for scalars alone.
NOT_COMPILED = frozenset(["digamma", "fmod", "hypot", "lgamma", "polygamma", "remainder", "sinc_derivative"])

# Functions that round as NumPy's do, whoever compiles them.
EXACT = frozenset(["abs", "ceil", "copysign", "floor", "maximum", "minimum", "mul0", "sign", "sqrt", "trunc", "where"])

# What rule text may call in compiled code; Numba does not know `math.fmod`.
COMPILABLE = frozenset(MATH).union(special.__all__, ["abs", "ceil", "floor", "remainder", "round", "trunc"]) - {"fmod"}

# Functions with a form for blocks (`function_blocks`): ``name_block(n, operands, out)``. NumPy has no values of most.
OWN_BLOCKS = frozenset(["digamma", "erfinv", "inverse_mills", "log_ndtr", "polygamma", "sinc", "sinc_derivative"])
BLOCKS = OWN_BLOCKS | {"remainder"}

HAS_SCALAR, HAS_EXACT, BY_NUMPY = 1 << 16, 1 << 17, 1 << 18


def is_compilable(rule: Rule) -> bool:
    """Whether there is a compiled form of all that the rule's value calls; NumPy may have it alone."""
    return calls_in(rule.primal) <= COMPILABLE


def call_of(rule: Rule) -> str:
    """The function whose call with the rule's arguments is all of its text; empty if it is more than that."""
    call = f"({', '.join(rule.args)})"
    name = rule.primal.removesuffix(call)
    return name if name != rule.primal and name.isidentifier() else ""


def has_value_loop(rule: Rule) -> bool:
    """Whether a common rule's value on large arrays is one loop of ours, with the bits of NumPy's functions, instead of several."""
    return rule.name in ("_mul0", "sign", "_cube", "relu", "_leaky_relu", "_clamp", "where")


def has_staged_value(rule: Rule) -> bool:
    """Whether a rule's value on large arrays is computed in blocks: functions by NumPy's loops, and the rest by one of ours.

    Not powers: NumPy's loop squares where the exponent has no stride, which it has in a block.
    """
    called = calls_in(rule.primal)
    composed = not call_of(rule) or rule.name == "sigmoid" or called <= OWN_BLOCKS
    return composed and not called <= EXACT and called <= EXACT.union(FUNCTIONS, OWN_BLOCKS, ["sigmoid"]) - {"pow"}


def is_numpys(rule: Rule) -> bool:
    """Whether numbers of NumPy's have the value by the loop of a ufunc, whose last digits may be others than the C library's.

    Not powers: the operator of numbers is the C library's function in NumPy too.
    """
    return len(rule.args) < 3 and call_of(rule) not in EXACT | {"", "pow"}


def compiled_forms(rule: Rule) -> int:
    """How operators compute the rule's value in compiled code: on scalars, by code that serves arrays too, by NumPy's loop."""
    by_numpy = BY_NUMPY if is_numpys(rule) else 0
    if len(rule.args) > 2 or rule.name == "_alias" or names_in(rule.primal) & NOT_COMPILED or not is_compilable(rule):
        return by_numpy
    return by_numpy | HAS_SCALAR | (HAS_EXACT if calls_in(rule.primal) <= EXACT else 0)


def rule_table() -> np.ndarray:
    """What the engine knows of a rule: four words each.

    The values that its partials use (four bits each) and which compiled forms its value has; then the number of each partial's
    loop, among those of the common rules or its own.
    """
    number = {text: k for k, text in enumerate(partial_texts())}
    table = np.zeros((len(RULES), 4), np.int64)
    for opcode, rule in enumerate(RULES):
        table[opcode, 0] = compiled_forms(rule)
        for k, text in enumerate(rule.partials):
            table[opcode, 0] |= USES[opcode][k] << (4 * k)
            if text is None or text == "1.0":
                table[opcode, 1 + k] = -1 if text is None else UNIT
            else:
                table[opcode, 1 + k] = number[text] if opcode < COMMON else k
    return table
