"""The engine as a library that was built with the package: found, checked and loaded without a compiler.

A record beside the library says what it was built from and for, and has its hash. Nothing of it is run before all of that holds;
else the engine is compiled on this machine, as `tapegrad.kernels` does.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import sysconfig
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from tapegrad import numpy_api
from tapegrad.compile_notice import notice
from tapegrad.jit import Lazy

__all__ = ["FOLDER", "FORMAT", "MODULE", "RECORD", "find", "is_current", "sources_digest", "this_platform"]

FOLDER = Path(__file__).parent / "compiled"
RECORD = "engine.json"
FORMAT = 1  # of the record, and of what the library exports
MODULE = "tapegrad_engine"

# What NumPy calls the features of processors that code for these families of them uses. Newer versions of NumPy name the levels.
FEATURES: dict[str, tuple[str, ...]] = {
    "x86-64-v2": ("SSE", "SSE2", "SSE3", "SSSE3", "SSE41", "SSE42", "POPCNT"),
    "x86-64-v3": ("SSE", "SSE2", "SSE3", "SSSE3", "SSE41", "SSE42", "POPCNT", "AVX", "F16C", "FMA3", "AVX2"),
    "generic": (),
}
LEVELS = {"X86_V2": FEATURES["x86-64-v2"], "X86_V3": FEATURES["x86-64-v3"], "X86_V4": FEATURES["x86-64-v3"]}


class NotUsableError(Exception):
    """A library that is not called: why, and whether that is to be said."""

    def __init__(self, reason: str, is_wrong: bool = False) -> None:
        super().__init__(reason)
        self.is_wrong = is_wrong


_said: set[str] = set()  # folders whose library was said to be wrong
origin = "not loaded yet"  # where the engine's code came from


def this_platform() -> str:
    """Operating system and processor family, as wheels are told apart by them."""
    return f"{sys.platform}-{platform.machine()}"


def required_features(processor: str) -> tuple[str, ...]:
    """Features, in NumPy's names, that code for a family of processors uses."""
    return FEATURES.get(processor, ())


def available_features() -> frozenset[str]:
    """Features of this processor, in NumPy's names."""
    table: dict[str, bool] = getattr(numpy_api.core(), "__cpu_features__", {})
    found = {name for name, has in table.items() if has}
    return frozenset(found.union(*(LEVELS[level] for level in LEVELS if level in found)))


def sources_digest() -> str:
    """Hash of all that the engine's code is made from."""
    package = Path(__file__).parent
    names = ["jit.py", "kernels.py", "library_build.py", "library_glue.py", "rules.py", "second_partials.py", "special.py"]
    digest = hashlib.sha256()
    for path in sorted([*(package / name for name in names), *(package / "engine").glob("*.py")]):
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def find(folder: Path = FOLDER) -> SimpleNamespace | None:
    """The built engine, with entries and kernels as `tapegrad.kernels` has them; None if there is none that may be used.

    Warns
    -----
    RuntimeWarning
        Once, if there is one that is damaged or was made for something else.
    """
    global origin
    try:
        made, origin = _load(folder)
        return made
    except NotUsableError as reason:
        origin = f"compiled on this machine ({reason})"
        notice.reason = str(reason)
        if reason.is_wrong and str(folder) not in _said:
            _said.add(str(folder))
            warnings.warn(
                f"the compiled engine in {folder} is not used: {reason}. It is compiled on this machine instead; to get rid of "
                "this, install tapegrad again",
                RuntimeWarning,
                stacklevel=2,
            )
        return None


def is_current(folder: Path, processor: str) -> bool:
    """Whether a folder holds a whole library of these sources for these processors."""
    try:
        record = _record(folder / RECORD)
        _check(record)
        return record.get("processor") == processor and bool(_whole(folder, record))
    except NotUsableError:
        return False


def _load(folder: Path) -> tuple[SimpleNamespace, str]:
    if os.environ.get("TAPEGRAD_COMPILE", "0") not in ("", "0"):
        raise NotUsableError("TAPEGRAD_COMPILE is set")
    record = _record(folder / RECORD)
    _check(record)
    path, content = _whole(folder, record)
    try:
        module = _object(content) if path.suffix == ".o" else _extension(path)
    except ImportError as error:
        raise NotUsableError(f"{path.name} cannot be loaded: {error}", is_wrong=True) from error
    return _named(module), f"built with the package ({path})"


def _record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise NotUsableError("the package was installed without one") from None
    except (OSError, ValueError) as error:
        raise NotUsableError(f"{path.name} cannot be read: {error}", is_wrong=True) from error
    if not isinstance(record, dict):
        raise NotUsableError(f"{path.name} is damaged", is_wrong=True)
    return record


def _whole(folder: Path, record: dict[str, Any]) -> tuple[Path, bytes]:
    """The library that a record tells of, if it is the very one."""
    path = folder / Path(str(record.get("file"))).name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise NotUsableError(f"{path.name} cannot be read: {error}", is_wrong=True) from error
    if hashlib.sha256(content).hexdigest() != record.get("sha256"):
        raise NotUsableError(f"{path.name} is damaged: its hash is not the one that was recorded", is_wrong=True)
    return path, content


def _check(record: dict[str, Any]) -> None:
    """Whether this process is one that the library was built for."""

    def wrong(what: str, name: str, here: object) -> NoReturn:
        raise NotUsableError(f"it was built for {what} {record.get(name)!r}, and this is {here!r}", is_wrong=True)

    if record.get("format") != FORMAT:
        wrong("a record of version", "format", FORMAT)
    if record.get("platform") != this_platform():
        wrong("the platform", "platform", this_platform())
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise NotUsableError("it needs a CPython with an interpreter lock")
    if record.get("object_header") != object.__basicsize__:
        wrong("objects with a header of bytes", "object_header", object.__basicsize__)
    if not numpy_api.has_known_arrays():
        raise NotUsableError(f"NumPy {np.__version__} lays arrays out in another way than the engine reads them")
    lacking = set(required_features(str(record.get("processor")))) - available_features()
    if lacking or record.get("processor") not in FEATURES:
        raise NotUsableError(f"it is for processors of the family {record.get('processor')}, and this one lacks {sorted(lacking)}")
    if record.get("sources") != sources_digest():
        raise NotUsableError("the sources were changed since it was built")


def _extension(path: Path) -> Any:
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(MODULE, path, loader=ExtensionFileLoader(MODULE, str(path)))
    if spec is None or spec.loader is None:  # pragma: no cover - a loader was given
        raise ImportError(f"no loader for {path}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _object(content: bytes) -> Any:
    """Where there was no linker: the object file, which llvmlite links in memory. It is never freed, as tensors outlive modules."""
    import ctypes

    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise NotUsableError("an object file needs llvmlite") from error
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    code = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    code.add_object_file(llvm.ObjectFileRef.from_data(content))
    code.finalize_object()
    return ctypes.PYFUNCTYPE(ctypes.py_object)(code.get_function_address(f"PyInit_{MODULE}"))()


def _named(module: Any) -> SimpleNamespace:
    """Entries by their builtin functions, kernels by their addresses."""
    found = SimpleNamespace(module=module)
    for k, name in enumerate(module.__doc__.split()):
        setattr(found, name, Lazy.of(getattr(module, name, None) or module.address(k)))
    return found
