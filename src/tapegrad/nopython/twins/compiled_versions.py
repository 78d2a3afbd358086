"""What Numba has compiled of a function: which code it calls for some types, and the values of globals that it has there."""

from __future__ import annotations

import contextlib
import re
import types as python_types
import weakref
from typing import Any

import numpy as np
from numba.core import ir, types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError, TypingError

from tapegrad.nopython.twins.constants import Constants, StandIn, constants_now, is_data, is_frozen, kept, lines_of, names_of, same
from tapegrad.nopython.types.variable import ComplexVariable, Variable, primal_type

__all__ = ["check_values", "constants_of", "outline", "overload_of", "plain_type"]

# What two compilations of one function differ by, one of them from Numba's cache: numbers and addresses in names, the linkage,
# notes, the places that errors tell of, and the names of values and labels.
UNIQUE = re.compile(
    r"B\d+v\d+|(?<=_20at_20)0x[0-9a-f]+|(?<= at )0x[0-9a-f]+|(?<=array_expr_)0x[0-9a-f]+|(?<=\.picklebuf\.)\d+"
    r"|(?<=[a-z]\.)[0-9a-f]{40}"
)
LINKAGE, NOTES = re.compile(r"^define linkonce_odr "), re.compile(r" *; preds = .*$")
LEFT_OUT = re.compile(r"; ModuleID|source_filename|@.*(\.const\.pickle|missing Environment|NumbaEnv)")
LOCAL = re.compile(r'%(?:"[^"]*"|[-\w$.]+)|^(?:"[^"]*"|[-\w$.]+):')
_known: weakref.WeakKeyDictionary[Any, Constants] = weakref.WeakKeyDictionary()


def plain_type(kind: Any) -> Any:
    """The type that a value has in the user's function."""
    if isinstance(kind, (Variable, ComplexVariable, types.Array)):
        return primal_type(kind)
    if isinstance(kind, (types.StarArgTuple, types.StarArgUniTuple)):
        return types.StarArgTuple.from_types([plain_type(item) for item in kind])
    if isinstance(kind, types.BaseTuple):
        return types.BaseTuple.from_types([plain_type(item) for item in kind], getattr(kind, "instance_class", None))
    if isinstance(kind, types.Optional):
        return types.Optional(plain_type(kind.type))
    if isinstance(kind, types.List):
        return kind.copy(dtype=plain_type(kind.dtype))
    if isinstance(kind, types.ListType):
        return types.ListType(plain_type(kind.item_type))
    return kind


def outline(kind: Any, layout: bool) -> Any:
    """A type without what a recording may have other than the plain call."""
    kind = types.unliteral(kind)
    if isinstance(kind, types.Array):
        return "array", outline(kind.dtype, layout), kind.ndim, kind.layout if layout else ""
    if isinstance(kind, types.BaseTuple):
        return "tuple", *(outline(item, layout) for item in kind)
    if isinstance(kind, (types.List, types.ListType)):
        return "list", outline(kind.dtype, layout)
    return kind


def overload_of(dispatcher: Any, kinds: tuple[Any, ...]) -> list[Any]:
    """The code that Numba calls for some types, if it has compiled any; more than one where types do not tell which."""
    exact = dispatcher.overloads.get(kinds)
    if exact is not None:
        return [exact]
    for layout in (True, False):
        wanted = [outline(kind, layout) for kind in kinds]
        found = [made for key, made in dispatcher.overloads.items() if [outline(kind, layout) for kind in key] == wanted]
        if found:
            return found
    return [] if dispatcher._can_compile else list(dispatcher.overloads.values())


def changed(dispatcher: Any) -> TypingError:
    """The error where what Numba calls has values that are not known."""
    name, code = dispatcher.py_func.__name__, dispatcher.py_func.__code__
    return TypingError(
        f"[tapegrad] a global or closure value that {name} uses has changed since Numba compiled {name}, and the one that its "
        f"compiled code has is not known; call {name}.recompile(), and that of functions which call it, or pass the value as an "
        "argument\n"
        f'File "{code.co_filename}", line {code.co_firstlineno}'
    )


def constants_of(dispatcher: Any, found: list[Any]) -> Constants:
    """The values that compiled code has.

    Raises
    ------
    TypingError
        If they cannot be known.
    """
    values = [_constants(dispatcher, made) for made in found]
    if not all(same(values[0], other) for other in values[1:]):
        raise changed(dispatcher)
    return values[0]


def _constants(dispatcher: Any, made: Any) -> Constants:
    known = _known.get(made.library)
    if known is None:
        known = _known[made.library] = _read_back(dispatcher, made)
    return known


def _read_back(dispatcher: Any, made: Any) -> Constants:
    """What the compiler kept of the function says which values it saw; what it does not say is compiled again and compared.

    Code from Numba's cache may be older than the values, and than functions that it calls; the derivative is that of the function
    as it is written now.
    """
    function = dispatcher.py_func
    now = constants_now(function)
    if isinstance(made.type_annotation, str):
        return now
    seen = _in_blocks(made.type_annotation, function.__code__)
    for (k, name), value in seen.items():
        now[k][name] = kept(function, value)
    if now.inlined or _is_doubtful_of(made.type_annotation, now, seen):
        _check(dispatcher, made, now)
    return now


def check_values(function: Any, made: Any) -> None:
    """Raise if code that Numba compiled of a function for itself has other values than those of now.

    Raises
    ------
    TypingError
        If it has.
    """
    now = constants_now(function)
    if isinstance(made.type_annotation, str):
        return
    for (k, name), value in _in_blocks(made.type_annotation, function.__code__).items():
        if name in now[k] and not same(now[k][name], kept(function, value)):
            raise TypingError(
                f"[tapegrad] a global or closure value that {function.__name__} uses has changed since Numba compiled it; decorate "
                "it anew, or pass the value as an argument\n"
                f'File "{function.__code__.co_filename}", line {function.__code__.co_firstlineno}'
            )


def _is_doubtful_of(annotation: Any, values: Constants, seen: dict[tuple[int, str], Any]) -> bool:
    called = set()
    for kind in annotation.typemap.values():
        if isinstance(kind, types.Dispatcher):
            with contextlib.suppress(ReferenceError):  # the type does not keep the function alive
                called.add(kind.dispatcher)
    return any(_is_doubtful(value, (k, name) in seen, called) for k, part in enumerate(values[:2]) for name, value in part.items())


def _in_blocks(annotation: Any, code: Any) -> dict[tuple[int, str], Any]:
    """Values by (0 for globals and 1 for closures, name); functions that were inlined have theirs there too."""
    lines, read = lines_of(code), names_of(code)[0]
    found: dict[tuple[int, str], Any] = {}
    ambiguous = set()  # functions that one factory made may be inlined into each other
    for block in annotation.blocks.values():
        for statement in block.find_insts(ir.Assign):
            value = statement.value
            if (
                not isinstance(value, (ir.Global, ir.FreeVar))
                or value.loc.filename != code.co_filename
                or value.loc.line not in lines
            ):
                continue
            if isinstance(value, ir.FreeVar) or value.name in read:
                place = int(isinstance(value, ir.FreeVar)), value.name
                if place in found and not same(found[place], value.value):
                    ambiguous.add(place)
                found[place] = value.value
    return {place: value for place, value in found.items() if place not in ambiguous}


def _is_doubtful(value: Any, seen: bool, called: set[Any]) -> bool:
    """Whether what the compiler kept leaves open what the code has: contents of arrays, attributes of modules, what it removed."""
    if isinstance(value, StandIn):
        found = vars(value)["$found"].values()
        return any(not (isinstance(item, Dispatcher) and item in called) for item in found)
    if isinstance(value, np.ndarray):
        return is_frozen(value)
    if isinstance(value, tuple):
        return not seen or any(_is_doubtful(item, seen, called) for item in value)
    return not seen and is_data(value)


def _check(dispatcher: Any, made: Any, values: Constants) -> None:
    """Compile the function with these values, which must give the same code."""
    if dispatcher.targetoptions.get("parallel"):
        return  # the names of its loops differ whenever it is compiled
    function = dispatcher.py_func
    space = function.__globals__ | values.names
    cells = tuple(python_types.CellType(values.cells[name]) for name in function.__code__.co_freevars)
    again = python_types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, cells)
    again.__kwdefaults__, again.__module__, again.__qualname__ = (
        function.__kwdefaults__, function.__module__, function.__qualname__,
    )  # fmt: skip
    fresh = type(dispatcher)(again, dict(dispatcher.locals), dict(dispatcher.targetoptions), dispatcher._compiler.pipeline_class)
    for name, value in values.names.items():
        if value is dispatcher:  # a function that calls itself
            space[name] = fresh
    for cell in cells:
        if cell.cell_contents is dispatcher:
            cell.cell_contents = fresh
    try:
        fresh.compile(made.signature.args)
        equal = _text(made) == _text(fresh.overloads[made.signature.args])
    except NumbaError:
        equal = False
    if not equal:
        raise changed(dispatcher)


def _text(made: Any) -> list[str]:
    """Compiled code without names that change."""
    library = made.library
    text = library.get_llvm_str()
    found: list[str] = []
    numbers: dict[str, str] = {}  # of the names in one function
    for line in UNIQUE.sub("", text).splitlines():
        if not line or LEFT_OUT.match(line):
            continue
        if line.startswith("define"):
            numbers = {}
        if line.startswith("@"):
            found.append(line)
        else:
            plain = LINKAGE.sub("define ", NOTES.sub("", line))
            found.append(LOCAL.sub(lambda match: numbers.setdefault(match[0].strip("%:"), f"%{len(numbers)}"), plain))  # noqa: B023
    return found
