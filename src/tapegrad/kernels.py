"""From rule text to compiled code: one generated file, named by its content, cached on disk.

The file holds the project's scalar functions, the loops made from the rule table and the engine's sources, so whatever is
compiled was compiled from exactly what the file says. Numba keys its own cache by file, signature and processor.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tapegrad import library
from tapegrad.engine import LANE_SOURCES, LANES, LINEAR_SOURCES, SOURCES
from tapegrad.engine.layout import UNIT
from tapegrad.rules import POWERS, RULES, Rule

__all__ = ["OPCODES", "USES", "linear_source", "load", "load_linear", "names_in", "rule_table", "source"]

OPCODES: dict[str, int] = {rule.name: number for number, rule in enumerate(RULES)}

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
    "erf",
    "erfc",
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

HEADER = """import math
from math import {math}

import numpy as np
from numpy import ceil, floor, trunc

from tapegrad.jit import always_inline, entry, inline, kernel

round = np.rint
"""

REMAINDER = """
@inline
def remainder(x, y):
    return x % y
"""


_NAME = re.compile(r"[A-Za-z_]\w*")
_CALL = re.compile(r"([A-Za-z_]\w*)\(")


def names_in(text: str) -> set[str]:
    """Names that an expression uses."""
    return set(_NAME.findall(text))


def _calls_in(text: str) -> bool:
    return bool(set(_CALL.findall(text)) - {"where", "mul0"})


def _bits(text: str | None) -> int:
    return 0 if text is None else sum(bit for name, bit in BITS.items() if name in names_in(text))


USES: tuple[tuple[int, ...], ...] = tuple(tuple(_bits(text) for text in rule.partials) for rule in RULES)


def _partial_texts() -> list[str]:
    """The distinct partials that need a loop: many rules share one (``-1.0``, ``y``, …)."""
    texts = {text for rule in RULES for text in rule.partials if text is not None and text != "1.0"}
    return sorted(texts)


def rule_table() -> np.ndarray:
    """What the engine knows of a rule: four words each.

    The values that its partials use (four bits each) and which compiled forms its value has; then the number of each partial's
    loop.
    """
    number: dict[str | None, int] = {text: k for k, text in enumerate(_partial_texts())}
    number |= {None: -1, "1.0": UNIT}
    table = np.zeros((len(RULES), 4), np.int64)
    for opcode, rule in enumerate(RULES):
        table[opcode, 0] = _compiled_forms(rule)
        for k, text in enumerate(rule.partials):
            table[opcode, 0] |= USES[opcode][k] << (4 * k)
            table[opcode, 1 + k] = number[text]
    return table


def _branches(cases: list[tuple[int, list[str]]], subject: str) -> Iterator[str]:
    for k, (number, body) in enumerate(cases):
        yield f"    {'if' if k == 0 else 'elif'} {subject} == {number}:"
        yield from (f"        {line}" for line in body)


QUICK = frozenset(["cos", "cosh", "exp", "log", "sin", "sinh", "sqrt"])  # one call of the C library each


def _scalar_cases(inlined: bool) -> list[tuple[int, list[str]]]:
    """Bodies computing both partials of a plain row; a costly one is skipped where its operand is a constant."""
    cases = []
    for opcode, rule in enumerate(RULES):
        texts = [text or "nan" for text in (*rule.partials, "0.0")[:2]] if len(rule.args) < 3 else []
        calls = {call for text in texts for call in _CALL.findall(text)}
        if len(rule.args) > 2 or inlined != (calls <= QUICK):
            continue
        body = []
        for result, have, text in zip(("dx", "dy"), ("has_x", "has_y"), texts, strict=False):
            body.append(f"{result} = ({text}) if {have} else 0.0" if _calls_in(text) else f"{result} = {text}")
        cases.append((opcode, body))
    return cases


def _scalar_partials() -> str:
    """Partials of plain rows. Pure arithmetic is inlined into the sweep; the rest is one call away.

    All of it inlined made the sweep's compilation take minutes instead of a second, and saved nothing where a partial
    costs twenty times the call.
    """
    return "\n".join(
        [
            '@kernel("void(int64,int64,int64,float64,float64,float64,int64)")',
            "def scalar_partials(opcode, has_x, has_y, x, y, z, out):",
            "    nan, dx, dy = math.nan, 0.0, 0.0",
            *_branches(_scalar_cases(inlined=False), "opcode"),
            "    store_f64(out, dx)",
            "    store_f64(out + 8, dy)",
            "",
            "@always_inline",
            "def partials(sweep, opcode, has_x, has_y, x, y, z):",
            *_branches([(opcode, [*body, "return dx, dy"]) for opcode, body in _scalar_cases(inlined=True)], "opcode"),
            "    scratch = get(sweep, SCRATCH)",
            "    call_scalar(get(get(sweep, KERNELS), SCALAR_PARTIALS), opcode, has_x, has_y, x, y, z, scratch)",
            "    return load_f64(scratch), load_f64(scratch + 8)",
            "",
        ]
    )


def _loop(names: set[str], value: str) -> list[str]:
    reads = [f"{name} = {name}s[j]" for name in ("x", "y", "w", "z") if name in names]
    return ["for j in range(n):", *(f"    {line}" for line in reads), f"    out[j] = {value}"]


def _partial_block() -> str:
    """One loop over a contiguous block for each distinct partial."""
    cases = []
    for number, text in enumerate(_partial_texts()):
        value = "-gs[j]" if text == "-1.0" else f"mul0(gs[j], {text})"
        cases.append((number, _loop(names_in(text), value)))
    return "\n".join(
        [
            '@kernel("void(int64,int64,int64,int64,int64,int64,int64,int64)")',
            "def partial_block(number, n, x_at, y_at, w_at, z_at, g_at, out_at):",
            "    xs, ys, ws, zs, gs, out = f64(x_at, n), f64(y_at, n), f64(w_at, n), f64(z_at, n), f64(g_at, n), f64(out_at, n)",
            *_branches(cases, "number"),
            "",
        ]
    )


# Functions whose compiled form is not what the `math` module gives, or too long to be compiled for scalars alone.
NOT_COMPILED = frozenset(["digamma", "fmod", "hypot", "lgamma", "polygamma", "remainder"])

# Functions that round as NumPy's do, whoever compiles them.
EXACT = frozenset(["abs", "ceil", "copysign", "floor", "maximum", "minimum", "mul0", "sign", "sqrt", "trunc", "where"])

HAS_SCALAR, HAS_EXACT = 1 << 16, 1 << 17


def _compiled_forms(rule: Rule) -> int:
    """Whether operators compute the rule's value on scalars in compiled code, and whether the same code serves arrays."""
    if len(rule.args) > 2 or rule.name == "_alias" or names_in(rule.primal) & NOT_COMPILED:
        return 0
    return HAS_SCALAR | (HAS_EXACT if set(_CALL.findall(rule.primal)) <= EXACT else 0)


def _operators() -> str:
    """What the compiled operators need of the table: which rules have one, their values on scalars, and the exact powers."""
    compiled = [(opcode, rule) for opcode, rule in enumerate(RULES) if _compiled_forms(rule)]
    operators = tuple((opcode, len(rule.args)) for opcode, rule in enumerate(RULES) if len(rule.args) < 3 and rule.name != "_alias")
    return "\n".join(
        [
            f"OPERATORS = {operators}",
            f"RULE_COUNT, HAS_SCALAR, HAS_EXACT = {len(RULES)}, {HAS_SCALAR}, {HAS_EXACT}",
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


def _needs_compiled_primal(rule: Rule) -> bool:
    """Whether NumPy has no ufuncs for the functions in a rule's primal."""
    return bool(names_in(rule.primal) & {"erf", "erfc", "lgamma", "digamma", "polygamma"})


COMPILED_PRIMALS: frozenset[str] = frozenset(rule.name for rule in RULES if _needs_compiled_primal(rule))


def _primal_block() -> str:
    """Forward loops for the functions that NumPy lacks."""
    cases = []
    for opcode, rule in enumerate(RULES):
        if rule.name in COMPILED_PRIMALS:
            cases.append((opcode, _loop(names_in(rule.primal), rule.primal)))
    return "\n".join(
        [
            '@entry("int64(int64,int64,int64,int64,int64)")',
            "def primal_block(opcode, n, x_at, y_at, out_at):",
            "    xs, ys, out = f64(x_at, n), f64(y_at, n), f64(out_at, n)",
            *_branches(cases, "opcode"),
            "    return 0",
            "",
        ]
    )


def _body(path: Path) -> str:
    """A source module without its imports from the package: in the joined file those names are defined above."""
    import ast

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
    import ast

    folder = Path(__file__).parent
    special = ast.parse(_body(folder / "special.py"))
    for node in special.body:
        if isinstance(node, ast.FunctionDef):
            node.decorator_list.append(ast.Name("inline"))
    parts = [HEADER.format(math=", ".join(MATH)), ast.unparse(ast.fix_missing_locations(special)), REMAINDER]
    parts += [_body(folder / "engine" / f"{name}.py") for name in SOURCES[:2]]
    parts += [_scalar_partials(), _partial_block(), _primal_block(), _operators()]
    parts += [_body(folder / "engine" / f"{name}.py") for name in SOURCES[2:]]
    return "\n\n".join(parts) + "\n"


def _second_partials() -> str:
    """Second partials: of plain rows all three at once, of arrays one loop for each distinct expression."""
    from tapegrad.second_partials import TEXTS, second_texts

    scalars = []
    for opcode, rule in enumerate(RULES):
        texts = [TEXTS.get((opcode, pair), "0.0") for pair in range(3)]
        if len(rule.args) < 3 and set(texts) != {"0.0"}:
            scalars.append((opcode, [f"{name} = {text}" for name, text in zip(("xx", "xy", "yy"), texts, strict=True)]))
    blocks = [(number, _loop(names_in(text), text)) for number, text in enumerate(second_texts())]
    return "\n".join(
        [
            '@kernel("void(int64,int64,int64,float64,float64,float64,int64)")',
            "def second_scalar(opcode, has_x, has_y, x, y, z, out):",
            "    xx, xy, yy = 0.0, 0.0, 0.0",
            *_branches(scalars, "opcode"),
            "    store_f64(out, xx)",
            "    store_f64(out + 8, xy)",
            "    store_f64(out + 16, yy)",
            "",
            '@kernel("void(int64,int64,int64,int64,int64,int64,int64,int64)")',
            "def second_block(number, n, x_at, y_at, w_at, z_at, g_at, out_at):",
            "    xs, ys, ws, zs, out = f64(x_at, n), f64(y_at, n), f64(w_at, n), f64(z_at, n), f64(out_at, n)",
            *_branches(blocks, "number"),
            "",
        ]
    )


def _in_lanes(names: Sequence[str], lanes: int) -> str:
    """Source modules for so many lanes: each function once more, under a name of its own."""
    import ast

    tree = ast.parse("\n".join(_body(Path(__file__).parent / "engine" / f"{name}.py") for name in names))
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
    folder = Path(__file__).parent / "engine"
    parts = [source(), _second_partials(), *(_body(folder / f"{name}.py") for name in LINEAR_SOURCES)]
    parts += [_in_lanes(LANE_SOURCES, lanes) for lanes in LANES]
    return "\n\n".join(parts) + "\n"


def _folders() -> Iterator[Path]:
    """Where the file may go, in Numba's own order: the folder the user chose, beside the package, the user's cache."""
    from numba.core import config
    from numba.misc import appdirs

    chosen = getattr(config, "CACHE_DIR", "")
    if chosen:
        yield Path(chosen) / "tapegrad"
    yield Path(__file__).parent / "__pycache__"
    user: Any = appdirs.AppDirs  # type: ignore[no-untyped-call, unused-ignore]
    yield Path(user(appname="numba", appauthor=False).user_cache_dir) / "tapegrad"


def _place(text: str, name: str) -> Path | None:
    """Write the file whole or not at all into the first folder that takes it; None if none does."""
    import os
    import tempfile

    content = text.encode()
    for folder in _folders():
        path = folder / f"{name}.py"
        try:
            if path.read_bytes() == content and os.access(folder, os.W_OK):
                return path
        except OSError:
            pass
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                os.replace(temporary, path)
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError:
            continue
        return path
    return None


def _import(path: Path, name: str) -> ModuleType:
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:  # pragma: no cover - a .py path always has a loader
        raise ImportError(f"cannot import the generated kernels from {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def load() -> Any:
    """The compiled engine: as it was built with the package, else generated, compiled and cached.

    Returns
    -------
    namespace
        Its attributes are the entries of `tapegrad.engine`; those of linear tapes too, if it was built.

    Warns
    -----
    RuntimeWarning
        If no cache folder is writable: compilation (some seconds) is then repeated by every process.

    Notes
    -----
    A built engine takes a millisecond. Compiling costs the import of Numba; 0.3 s more from a filled cache, a few seconds with an
    empty one.
    """
    return library.find() or _loaded("tapegrad_kernels_", source())


def load_linear() -> ModuleType:
    """The compiled sweeps over linear tapes, where the engine was not built: each is compiled, or loaded, when first used."""
    return _loaded("tapegrad_linear_", linear_source())


def _loaded(prefix: str, text: str) -> ModuleType:
    import hashlib

    import numba

    tags = (text, numba.__version__, np.__version__, sys.version, str(object.__basicsize__))
    name = prefix + hashlib.sha256("\0".join(tags).encode()).hexdigest()[:24]
    if name in sys.modules:
        return sys.modules[name]
    path = _place(text, name)
    if path is not None:
        return _import(path, name)
    warnings.warn(
        "no writable folder for tapegrad's compiled kernels: they are compiled anew by this process. "
        "Set NUMBA_CACHE_DIR to a writable folder to keep them.",
        RuntimeWarning,
        stacklevel=2,
    )
    module = ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
    sys.modules[name] = module
    return module
