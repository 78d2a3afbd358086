"""The engine as a library that was built with the package: found, checked and loaded without a compiler.

A record beside the library says what it was built from and for, has its hash, and the tables that are derived from the rules.
Nothing of it is run before all of that holds; else the engine is compiled on this machine (`tapegrad.kernels.kernel_files`).
Files are hashed once; later processes see by their states that they are what they were (`tapegrad.kernels.file_states`).

What every process imports is kept small here: `json`, `pathlib` and `platform` would take longer than the rest.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np

from tapegrad.arrays import numpy_api
from tapegrad.compilation.jit import Lazy
from tapegrad.kernels import file_states

__all__ = [
    "FOLDER", "FORMAT", "MODULE", "RECORD", "WIDE", "WIDER", "Functions", "digest", "find", "is_current", "record_of_this",
    "sources_digest", "why_compiled",
]  # fmt: skip

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(PACKAGE, "compiled")
RECORD = "engine.txt"
KNOWN = file_states.beside(__spec__, "library")  # what was looked at and found to be as it should
FORMAT = "1"  # of the record, and of what the library exports
MODULE = "tapegrad_engine"  # the name that ``PyInit_`` is followed by
TABLES = ("rules", "second_partials")

# What the code is made from, besides the modules of `engine`.
SOURCES = (
    "compilation/jit.py", "compilation/memory_types.py", "compilation/vector_types.py", "kernels/function_blocks.py",
    "kernels/generated_text.py", "kernels/loop_text.py", "kernels/opcodes.py", "kernels/second_partials.py",
    "library_build/build.py", "library_build/glue.py", "library_build/later_functions.py", "library_build/machine_code.py",
    "library_build/wide_loops.py", "nopython/formulas/edge_pushing.py", "nopython/formulas/formula.py",
    "nopython/tape/array_rows.py", "nopython/tape/columns.py", "nopython/tape/lane_sweeps.py", "nopython/tape/matrix_programs.py",
    "nopython/tape/matrix_rows.py", "nopython/tape/reverse_sweep.py", "nopython/tape/row_instructions.py",
    "nopython/tape/row_writing.py", "nopython/tape/sweep_along.py", "nopython/tape/sweep_entries.py",
    "nopython/types/curved_tape.py", "nopython/types/variable.py", "rules/binary_exponents.py", "rules/error_functions.py",
    "rules/gamma_functions.py", "rules/special.py", "rules/table.py",
)  # fmt: skip

# What NumPy calls the features that code for a family of processors uses. Its newer versions name the levels as well.
FEATURES: dict[str, tuple[str, ...]] = {
    "generic": (),
    "x86-64-v2": ("SSE", "SSE2", "SSE3", "SSSE3", "SSE41", "SSE42", "POPCNT"),
    "x86-64-v3": ("SSE", "SSE2", "SSE3", "SSSE3", "SSE41", "SSE42", "POPCNT", "AVX", "F16C", "FMA3", "AVX2"),
}
FEATURES["x86-64-v4"] = (*FEATURES["x86-64-v3"], "AVX512F", "AVX512CD", "AVX512_SKX")  # the last one stands for three more
LEVELS = {"X86_V2": "x86-64-v2", "X86_V3": "x86-64-v3", "X86_V4": "x86-64-v4"}

# Families with wider registers, for which a library has its long loops once more, and how the names of these begin.
WIDER = {"x86-64-v3": "x86-64-v4"}
WIDE = "wide_"


class NotUsableError(Exception):
    """A library that is not called: why, and whether that is to be said."""

    def __init__(self, reason: str, is_wrong: bool = False) -> None:
        super().__init__(reason)
        self.is_wrong = is_wrong


_said: set[str] = set()  # folders whose library was said to be wrong


def available_features() -> set[str]:
    """Features of this processor, in NumPy's names."""
    found = {name for name, has in getattr(numpy_api.core(), "__cpu_features__", {}).items() if has}
    return found.union(*(FEATURES[LEVELS[name]] for name in found & LEVELS.keys()))


def blake2() -> Any:
    """BLAKE2, three times as fast as SHA-256; by itself, since `hashlib` would load OpenSSL, which takes longer than all hashes."""
    if "hashlib" not in sys.modules:
        with contextlib.suppress(ImportError):
            return importlib.import_module("_blake2").blake2b
    from hashlib import blake2b

    return blake2b


def digest(content: bytes) -> str:
    """Hash of a whole file, as a record has it."""
    text: str = blake2()(content, digest_size=32).hexdigest()
    return text


def _sources() -> list[str]:
    """Names of all files that the engine's code is made from."""
    return sorted([*SOURCES, *(f"engine/{name}" for name in os.listdir(f"{PACKAGE}/engine") if name.endswith(".py"))])


def sources_digest() -> str:
    """Hash of all that the engine's code is made from."""
    parts = []
    for name in _sources():
        content = _content(f"{PACKAGE}/{name}")
        parts += [f"{name} {len(content)}\n".encode(), content]
    return digest(b"".join(parts))


def record_of_this(processor: str) -> dict[str, str]:
    """What a record says of these sources, this platform and Python, and a family of processors."""
    return _record_of_process(processor) | {"sources": sources_digest()}


def _record_of_process(processor: str) -> dict[str, str]:
    """What it says of all but the sources."""
    machine = os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "")
    return {
        "format": FORMAT,
        "platform": f"{sys.implementation.name} {sys.platform} {machine}",
        "processor": processor,
        "object header": str(object.__basicsize__),
    }


def find(folder: str = FOLDER) -> SimpleNamespace | None:
    """The built engine: entries, kernels, and the tables `rules` and `second_partials`; None if there is none that may be used.

    Warns
    -----
    RuntimeWarning
        Once, if there is one that is damaged or was made for something else.
    """
    try:
        return _load(folder)
    except NotUsableError as reason:
        from tapegrad.compilation.notice import notice

        notice.reason = str(reason)
        if reason.is_wrong and folder not in _said:
            _said.add(folder)
            warnings.warn(
                f"the compiled engine in {folder} is not used: {reason}. It is compiled on this machine instead; to get rid of "
                "this, install tapegrad again",
                RuntimeWarning,
                stacklevel=2,
            )
        return None


def why_compiled(folder: str = FOLDER) -> str:
    """Why the library of a folder is not used; empty if it is."""
    try:
        record = _checked(folder)
        _check_sources(record)
        _whole(folder, record)
    except NotUsableError as reason:
        return str(reason)
    return ""


def is_current(folder: str, processor: str) -> bool:
    """Whether a folder holds a whole library of these sources, for these processors."""
    try:
        record = _record(os.path.join(folder, RECORD))
        _whole(folder, record)
    except NotUsableError:
        return False
    return record_of_this(processor).items() <= record.items()


def _load(folder: str) -> SimpleNamespace:
    record = _checked(folder)
    path = _path(folder, record)
    files = [path, os.path.join(folder, RECORD), *(f"{PACKAGE}/{name}" for name in _sources())]
    if not file_states.are_known(KNOWN, files):
        states = file_states.states_of(files)
        _check_sources(record)
        _whole(folder, record)
        file_states.keep(KNOWN, states)
    try:
        tables = {name: np.fromstring(record[name], np.int64, sep=" ").reshape(len(_rules()), -1) for name in TABLES}
        module = _object(_content(path)) if path.endswith(".o") else _extension(path)
    except (ImportError, KeyError, ValueError) as error:
        raise NotUsableError(f"{path} cannot be loaded: {error}", is_wrong=True) from error
    wider = WIDER.get(record["processor"])
    takes_wider = wider is not None and not set(FEATURES[wider]) - available_features()
    is_wide = takes_wider or record["processor"] in WIDER.values()
    return Functions(module, takes_wider, path=path, is_wide=is_wide, **tables)


def _rules() -> Any:
    from tapegrad.rules.table import RULES

    return RULES


def _checked(folder: str) -> dict[str, str]:
    """The record of a library that was built for processes like this one; of which sources is not looked at here."""
    if os.environ.get("TAPEGRAD_COMPILE", "0") not in ("", "0"):
        raise NotUsableError("TAPEGRAD_COMPILE is set")
    record = _record(os.path.join(folder, RECORD))
    processor = record.get("processor", "")
    here = _record_of_process(processor)
    for name in ("format", "platform", "object header"):
        if record.get(name) != here[name]:
            raise NotUsableError(f"its {name} is {record.get(name)!r}, and {here[name]!r} is wanted here", is_wrong=True)
    lacking = set(FEATURES.get(processor, ())) - available_features()
    if lacking or processor not in FEATURES:
        raise NotUsableError(f"it is for processors of the family {processor!r}, and this one lacks {sorted(lacking)}")
    if not numpy_api.has_known_arrays():
        raise NotUsableError(f"NumPy {np.__version__} lays arrays out in another way than the engine reads them")
    return record


def _check_sources(record: dict[str, str]) -> None:
    if record.get("sources") != sources_digest():
        raise NotUsableError("the sources were changed since it was built")


def _record(path: str) -> dict[str, str]:
    """A line a word: its name, a colon and its value."""
    if not os.path.exists(path):
        raise NotUsableError("the package was installed without a built one")
    try:
        return dict(line.split(": ", 1) for line in _content(path).decode().splitlines())
    except ValueError as error:
        raise NotUsableError(f"{path} is damaged", is_wrong=True) from error


def _content(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:  # a third of the time for each of the sources
            return file.read()
    except OSError as error:
        raise NotUsableError(f"{path} cannot be read: {error}", is_wrong=True) from error


def _path(folder: str, record: dict[str, str]) -> str:
    """Where the library is that a record tells of."""
    return os.path.join(folder, os.path.basename(record.get("file", "")) or "engine")


def _whole(folder: str, record: dict[str, str]) -> None:
    """Raise if the library that a record tells of is not the very one, or the record itself is damaged."""
    path = _path(folder, record)
    if digest(_content(path)) != record.get("hash"):
        raise NotUsableError(f"{path} is damaged: it has not the hash that was recorded", is_wrong=True)
    said = "\n".join(f"{name}: {value}" for name, value in record.items() if name != "record")
    if digest(said.encode()) != record.get("record"):
        raise NotUsableError(f"{os.path.join(folder, RECORD)} is damaged: it has not the hash that it gives", is_wrong=True)


def _extension(path: str) -> Any:
    from importlib.machinery import ExtensionFileLoader, ModuleSpec

    loader = ExtensionFileLoader(MODULE, path)
    module: Any = loader.create_module(ModuleSpec(MODULE, loader, origin=path))
    loader.exec_module(module)
    return module


def _object(content: bytes) -> Any:
    """Where there was no linker: the object file, which llvmlite links in memory. It is never freed, as tensors outlive modules."""
    import ctypes

    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    code = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    code.add_object_file(llvm.ObjectFileRef.from_data(content))
    code.finalize_object()
    return ctypes.PYFUNCTYPE(ctypes.py_object)(code.get_function_address(f"PyInit_{MODULE}"))()


class Functions(SimpleNamespace):
    """Entries by their builtin functions, kernels by their addresses; of those that are there twice, one.

    Each is an attribute once it was asked for: there are more than three hundred, and a process needs a few.

    Parameters
    ----------
    module : module
        The library.
    takes_wide : bool
        Whether functions for wider registers are taken, where they are there twice.
    others : object
        Attributes.
    """

    def __init__(self, module: Any, takes_wide: bool, **others: Any) -> None:
        super().__init__(module=module, **others)
        self._takes_wide = takes_wide
        self._numbers = dict(zip(names := module.__doc__.split(), range(len(names)), strict=True))

    def __getattr__(self, name: str) -> Lazy:
        if name.startswith(("_", WIDE)) or name not in self._numbers:
            raise AttributeError(f"the library has no function {name!r}")
        wide = f"{WIDE}{name}"
        own = wide if self._takes_wide and wide in self._numbers else name
        made: Lazy = Lazy.of(getattr(self.module, own, None) or self.module.address(self._numbers[own]))
        return self.__dict__.setdefault(name, made)  # another thread may have been first
