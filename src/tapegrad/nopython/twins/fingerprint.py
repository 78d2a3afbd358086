"""What the derivative of a compiled function depends on, as a text that says the same in every process.

The walk follows the names that bytecode reads: values of globals and closures, attributes of modules, and compiled functions that
are called, at any depth. What Python itself, NumPy, Numba and this package define is known by their versions. All else has no
fingerprint, and a derivative with it is not kept: what packages register for functions and methods (`numba.extending.overload`),
what `numba.vectorize` makes, classes. Numba compiles those by itself, so it cannot be seen which values their code has.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import operator
import sys
import types as python_types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError
from numba.core.registry import cpu_target

from tapegrad.frames import PACKAGE
from tapegrad.nopython.twins.compiled_versions import constants_of
from tapegrad.nopython.twins.constants import constants_now, is_distributed, names_of, same
from tapegrad.nopython.twins.registrations import registration_of

__all__ = ["Fingerprint", "UnknownError", "fingerprint", "is_versioned", "own_sources", "type_text"]

# What goes into recordings.
OWN = "nopython/**/*.py", "rules/*.py", "kernels/second_partials.py", "compilation/jit.py", "linalg/*.py"
LARGEST = 1 << 20  # bytes of an array that is read


class UnknownError(Exception):
    """Something of which it cannot be said what it will be in another process."""


class Fingerprint(NamedTuple):
    """What a function depends on.

    Attributes
    ----------
    text : str
        The same in every process where all of it is the same.
    functions : list of Dispatcher
        The compiled functions among it, in the order in which the text tells of them.
    """

    text: str
    functions: list[Any]


def fingerprint(function: Any) -> Fingerprint:
    """A text that differs if anything differs that the derivative of a compiled function is made from.

    Parameters
    ----------
    function : Dispatcher

    Raises
    ------
    UnknownError
        If it depends on something that cannot be followed.
    """
    walk = _Walk()
    walk.value(function)
    _refuse_templates(*OPERATORS)  # that text has no name for
    return Fingerprint("\n".join((_versions(), *walk.parts)), walk.functions)


def own_sources() -> list[Path]:
    """The files of this package that recordings are made from."""
    return sorted(path for files in OWN for path in Path(PACKAGE).glob(files))


@functools.cache
def _versions() -> str:
    import llvmlite

    codegen = cpu_target.target_context.codegen()
    settings = [
        f"{name}={getattr(numba.config, name)!r}"
        for name in ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT", "BOUNDSCHECK")
    ]
    own = hashlib.sha256()
    for path in own_sources():
        own.update(path.name.encode() + path.read_bytes())
    return repr(
        (
            sys.version,
            sys.implementation.name,
            np.__version__,
            numba.__version__,
            llvmlite.__version__,
            codegen.magic_tuple(),
            *settings,
            own.hexdigest(),
        )
    )


def is_versioned(module: str | None) -> bool:
    """Whether what a module defines is known by its version."""
    return is_distributed(module) and (module or "").partition(".")[0] != "scipy"


def _module_of(x: Any) -> str:
    return "numpy" if isinstance(x, np.ufunc) else str(getattr(x, "__module__", None))


def _is_named(x: Any) -> bool:
    """Whether something is what a module that is known by its version has under its name."""
    module, name = _module_of(x), getattr(x, "__name__", None)
    return is_versioned(module) and isinstance(name, str) and getattr(sys.modules.get(module), name, None) is x


class _Walk:
    """Follows values and writes down what they are, each once."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.functions: list[Any] = []
        self.seen: dict[tuple[int, frozenset[str]], int] = {}
        self.held: list[Any] = []  # so that no address is used again while it stands in `seen`

    def add(self, *words: object) -> None:
        self.parts.append(repr(words))

    def value(self, x: Any, attributes: frozenset[str] = frozenset()) -> None:
        """Anything that a name may stand for."""
        if (
            x is None
            or x is Ellipsis
            or (isinstance(x, (bool, int, float, complex, str, bytes)) and type(x).__module__ == "builtins")
        ):
            self.add(type(x).__name__, x)
            return
        # Of a module only those attributes are written down that one function asks for; another one may ask for others.
        place = id(x), attributes if isinstance(x, (python_types.ModuleType, tuple)) else frozenset()
        if place in self.seen:
            self.add("seen", self.seen[place])
            return
        self.seen[place] = len(self.seen)
        self.held.append(x)
        self.compound(x, attributes)

    def compound(self, x: Any, attributes: frozenset[str]) -> None:
        registered = registration_of(x)
        if registered is not None:
            self.add("registered")
            self.value(registered.partials)
        if isinstance(x, (tuple, frozenset)):
            self.items(x, attributes)
        elif isinstance(x, np.ndarray):
            self.array(x)
        elif isinstance(x, np.generic):
            self.add("scalar", x.dtype.str, x.tobytes())
        elif isinstance(x, np.dtype):
            self.add("dtype", str(x.descr if x.names else x.str))
        elif isinstance(x, types.Type):
            self.add("type", type_text(x))
        elif isinstance(x, Dispatcher):
            self.dispatcher(x)
        elif isinstance(x, python_types.ModuleType):
            self.module(x, attributes)
        elif isinstance(x, type):
            self.klass(x)
        elif isinstance(x, enum.Enum):
            self.add("member", x.name)
            self.value(x.value)
            self.klass(type(x))
        elif _is_named(x):
            self.add("named", _module_of(x), x.__name__)
            _refuse_templates(x)
        else:
            raise UnknownError(f"{type(x).__module__}.{type(x).__qualname__}")

    def items(self, x: Any, attributes: frozenset[str]) -> None:
        kind = type(x)
        self.add(
            "items", kind.__qualname__, kind.__module__ if hasattr(kind, "_fields") else "", getattr(kind, "_fields", ()), len(x)
        )
        for item in sorted(x, key=repr) if isinstance(x, frozenset) else x:
            self.value(item, attributes)

    def array(self, x: Any) -> None:
        if x.dtype.hasobject or x.nbytes > LARGEST:
            raise UnknownError(f"an array of {x.nbytes} bytes of {x.dtype}")
        flags = x.flags
        self.add("array", x.dtype.descr, x.shape, flags.c_contiguous, flags.f_contiguous, flags.writeable)
        self.parts.append(hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest())

    def dispatcher(self, x: Any) -> None:
        self.functions.append(x)
        self.add("dispatcher", sorted((name, repr(value)) for name, value in x.targetoptions.items()))
        self.add("locals", sorted((name, type_text(kind)) for name, kind in x.locals.items()))
        if not x._can_compile:
            self.add("signatures", [tuple(map(type_text, key)) for key in x.overloads])
        _refuse_other_values(x)
        self.function(x.py_func)

    def module(self, x: Any, attributes: frozenset[str]) -> None:
        """Those of its attributes whose names the code uses."""
        self.add("module", x.__name__)
        if not is_versioned(x.__name__):
            for name in sorted(attributes - vars(x).keys()):
                if hasattr(x, name):
                    raise UnknownError(f"{x.__name__}.{name}, which is computed when it is asked for")
        for name in sorted(attributes & vars(x).keys()):
            found = vars(x)[name]
            if not (is_versioned(x.__name__) and isinstance(found, python_types.ModuleType)):
                self.add("attribute", name)
                self.value(found, attributes)
            elif not is_versioned(found.__name__):
                raise UnknownError(f"{x.__name__}.{name}")

    def klass(self, x: Any) -> None:
        self.add("class", x.__module__, x.__qualname__)
        if is_versioned(x.__module__):
            _refuse_templates(x)
        elif issubclass(x, tuple) and hasattr(x, "_fields"):
            self.add(x._fields)
            self.value(tuple(getattr(x, "_field_defaults", {}).items()))
        elif issubclass(x, enum.Enum):
            for member in x:
                self.add(member.name)
                self.value(member.value)
        else:
            raise UnknownError(f"the class {x.__qualname__}")

    def function(self, x: Any) -> None:
        names, attributes = names_of(x.__code__)
        self.add("function", x.__name__, _code(x.__code__))
        self.value(x.__defaults__)
        self.value(tuple(sorted((x.__kwdefaults__ or {}).items())))
        for name in sorted(names & x.__globals__.keys()):
            self.add("global", name)
            self.value(x.__globals__[name], attributes)
        for name, cell in zip(x.__code__.co_freevars, x.__closure__ or (), strict=True):
            self.add("cell", name)
            self.value(_contents(cell), attributes)
        _refuse_names(names | attributes)


def _refuse_other_values(x: Any) -> None:
    """Nothing is kept while Numba has code of a function with values that are not the present ones: it may be linked as it is."""
    for made in list(x.overloads.values()):
        try:
            found = constants_of(x, [made])
        except TypingError as error:
            raise UnknownError(str(error)) from error
        if not same(found, constants_now(x.py_func)):
            raise UnknownError(f"compiled code of {x.py_func.__name__} has other values")


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        raise UnknownError("an empty closure") from None


def _key(x: Any) -> Any:
    try:
        hash(x)
    except TypeError:
        return None
    return x


def _code(code: Any) -> tuple[Any, ...]:
    """Bytecode and what stands beside it, without places in files."""
    constants = tuple(
        _code(c)
        if isinstance(c, python_types.CodeType)
        else (type(c).__name__, sorted(map(repr, c)) if isinstance(c, frozenset) else repr(c))
        for c in code.co_consts
    )
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, getattr(code, "co_exceptiontable", b""), constants, *names, *counts


def _origin(x: Any) -> str | None:
    """The module that something is defined in; functions that were made from text may have the name in their globals only."""
    found = getattr(x, "__module__", None) or getattr(x, "__globals__", {}).get("__name__")
    return None if found is None else str(found)


def _foreign_functions() -> Iterator[Any]:
    """Functions that packages have registered something for."""
    context = cpu_target.typing_context
    context.refresh()
    for template in [template for templates in context._functions.values() for template in templates]:
        kind = type(template)
        if not is_versioned(_origin(getattr(kind, "_overload_func", kind))):
            yield kind.key


_found: tuple[int, frozenset[Any], frozenset[str | None]] = (-1, frozenset(), frozenset())


def _registered() -> tuple[frozenset[Any], frozenset[str | None]]:
    """Functions, and names of attributes, that packages registered something for; looked for again when there is more."""
    global _found
    context = cpu_target.typing_context
    context.refresh()
    count = sum(map(len, context._functions.values())) + sum(map(len, context._attributes.values()))
    if _found[0] != count:
        attributes = [
            getattr(template, "_attr", None)
            for templates in context._attributes.values()
            for template in templates
            if not is_versioned(_origin(getattr(template, "_overload_func", template)))
        ]
        _found = count, frozenset(map(_key, _foreign_functions())), frozenset(attributes)
    return _found[1:]


def _refuse_templates(*functions: Any) -> None:
    """What packages say that functions are in compiled code is not followed."""
    found = _registered()[0]
    for x in functions:
        if _key(x) in found:
            raise UnknownError(f"what a package says that {x!r} is")


def _refuse_names(names: frozenset[str]) -> None:
    """The same for what is known by its name only: builtins, functions of submodules, methods and attributes."""
    functions, attributes = _registered()
    for found in functions:
        if getattr(found, "__name__", None) in names:
            raise UnknownError(f"what a package says that {found!r} is")
    if attributes & (names | {None}):
        raise UnknownError("what a package says that an attribute is")


def type_text(kind: Any) -> str:
    """A type that says the same in every process.

    Raises
    ------
    UnknownError
        If it is known by an address, as those of functions and instances are.
    """
    kind = types.unliteral(kind) if not isinstance(kind, types.Literal) else kind
    plain = (
        types.Number,
        types.Boolean,
        types.NoneType,
        types.UnicodeType,
        types.Omitted,
        types.RangeType,
        types.NPDatetime,
        types.NPTimedelta,
    )
    if isinstance(kind, types.Array) and not isinstance(kind.dtype, types.Record):
        return f"{type_text(kind.dtype)} {kind.name}"
    if isinstance(kind, types.BaseTuple):
        made = getattr(kind, "instance_class", None)
        own = "" if made is None else f"{made.__module__}.{made.__qualname__}{made._fields}"
        return f"{type(kind).__name__}{own}({', '.join(map(type_text, kind.types))})"
    if isinstance(kind, (types.List, types.ListType, types.Set)):
        return f"{type(kind).__name__}({type_text(kind.dtype)}) {getattr(kind, 'reflected', '')}"
    if isinstance(kind, types.Optional):
        return f"optional({type_text(kind.type)})"
    if isinstance(kind, (*plain, types.Literal)) or kind.name in ("TapeVariable", "TapeVariable32", "TapeComplexVariable"):
        return str(kind.name)
    raise UnknownError(f"the type {kind}")


OPERATORS = tuple(value for name, value in vars(operator).items() if callable(value) and not name.startswith("_"))
