"""Builds the engine's library: what Numba makes of all its functions, linked into one extension module.

Numba is needed here and not where the library is used. Each function is compiled by `numba.cfunc` from the text that is compiled
where there is no library; their LLVM code is linked with that of `glue`, all but the module's initialisation becomes
internal, and the whole is optimised once. Another process compiles the later half (`later_functions`), and a third one some that
are there once more for wider registers (`wide_loops`). Where there is no linker, the object file itself is kept.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from tapegrad.kernels import library
from tapegrad.kernels.generated_text import whole_source
from tapegrad.kernels.opcodes import rule_table
from tapegrad.kernels.second_partials import second_table
from tapegrad.library_build import later_functions, wide_loops
from tapegrad.library_build.glue import glue
from tapegrad.library_build.machine_code import compiled, defined_by, emitted, optimised

__all__ = ["build", "default_processor", "linked", "object_code", "record_text"]


def default_processor() -> str:
    """The family of processors that wheels are built for."""
    return "x86-64-v3" if platform.machine() in ("x86_64", "AMD64") else "generic"


def object_code(text: str, processor: str) -> bytes:
    """Position-independent machine code of all entries and kernels that a text defines, and of the module around them.

    Parameters
    ----------
    text : str
        As `tapegrad.kernels.generated_text` makes it.
    processor : str
        A family of processors, as LLVM names it. Numba compiles for the one that the environment variable `NUMBA_CPU_NAME` says.

    Raises
    ------
    RuntimeError
        If the code needs what only Numba has.
    TypeError
        If an entry does not return int64.
    """
    exported, found = [f"PyInit_{library.MODULE}"], defined_by(text)
    first, later = later_functions.shared_out(found)
    with (
        wide_loops.made_meanwhile(processor) as wide_code,
        later_functions.made_meanwhile(text, later) as (others, later_code),
    ):
        functions, codes = compiled(first)
        functions += others
        twice = [function for function in functions if found[function.name].wide] if processor in library.WIDER else []
        codes += [*later_code(), glue([*functions, *wide_loops.declared(twice)])]
        whole, machine = optimised(codes, processor, exported)
        return emitted(whole, machine, wide_code(), exported)


def _linker() -> str | None:
    """The C compiler that links: what the environment says, what Python was built with, or the system's."""
    if os.name != "posix":
        return None
    if "CC" in os.environ:
        return shutil.which(shlex.split(os.environ["CC"])[0])
    own = shlex.split(sysconfig.get_config_var("CC") or "cc")[0]
    return shutil.which(own) or shutil.which("cc")


def linked(code: bytes) -> tuple[str, bytes]:
    """The library's name and content: an extension module, or the object file itself where nothing links."""
    options = ["-shared", "-s", "-Wl,-z,now"] if sys.platform != "darwin" else ["-bundle", "-undefined", "dynamic_lookup"]
    found = _linker()
    if found:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            (place / "engine.o").write_bytes(code)
            command = [found, *options, "-o", "engine.abi3.so", "engine.o", "-lm"]
            done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return "engine.abi3.so", (place / "engine.abi3.so").read_bytes()
            print(f"tapegrad: {' '.join(command)} failed, so the object file is kept: {done.stderr}", file=sys.stderr)
    return "engine.o", code


def build(folder: Path, processor: str) -> Path:
    """Write library and record into a folder.

    Parameters
    ----------
    folder : Path
    processor : str
        A family of processors, as LLVM names it.

    Returns
    -------
    Path
        The folder. What is there already is kept if it is of the same sources, for the same processors, and whole.

    Raises
    ------
    RuntimeError
        If Numba was imported for another processor, or the code needs what only Numba has.
    """
    if library.is_current(str(folder), processor):
        return folder
    if "numba" in sys.modules and os.environ.get("NUMBA_CPU_NAME") != processor:
        raise RuntimeError("Numba was imported before; it compiles for this machine then. Build in a process of its own.")
    os.environ |= {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""}
    record = library.record_of_this(processor)  # before they are compiled: an edit meanwhile is noticed
    keep(folder, record, *linked(object_code(whole_source(), processor)))
    return folder


def keep(folder: Path, record: dict[str, str], name: str, content: bytes) -> None:
    """Write a library and its record into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / library.RECORD).unlink(missing_ok=True)  # a library is used with its own record only
    (folder / name).unlink(missing_ok=True)  # processes that have loaded it go on with the file that was
    (folder / name).write_bytes(content)
    (folder / library.RECORD).write_text(record_text(record, name, content))


def record_text(record: dict[str, str], name: str, content: bytes) -> str:
    """The record of a library, with hashes of both and the tables that every process would else derive from the rules' text."""
    tables = dict(zip(library.TABLES, (rule_table(), second_table()), strict=True))
    record = record | {"file": name, "hash": library.digest(content)}
    record |= {table: " ".join(map(str, words.ravel())) for table, words in tables.items()}
    text = "\n".join(f"{name}: {value}" for name, value in record.items())
    return f"{text}\nrecord: {library.digest(text.encode())}\n"
