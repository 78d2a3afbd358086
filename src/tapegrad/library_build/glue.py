"""What stands between Python and the engine's compiled functions in a library: LLVM code of one extension module.

Entries are builtin functions with the fast calling convention (``METH_FASTCALL``), kernels are known by their addresses. Only the
stable part of CPython's interface is used, but for `PyObject_Vectorcall`, which has been in it since 3.12 and is exported by 3.11.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tapegrad.kernels.library import MODULE

__all__ = ["HELPERS", "Function", "glue"]

KINDS = {"float64": "double", "void": "void"}  # what else there is are integers, or addresses under the name of what is there
READ = {"i64": ("PyLong_AsLongLong", "icmp eq i64", "-1"), "double": ("PyFloat_AsDouble", "fcmp oeq double", "-1.0")}


class Function(NamedTuple):
    """A compiled function of the engine."""

    name: str
    signature: str
    symbol: str
    is_entry: bool
    nogil: bool


# Numba's helpers for the interpreter lock stand on paths that are never taken: the lock is held.
HELPERS = """
declare double @tgamma(double)
define void @numba_gil_ensure(ptr %state) { ret void }
define void @numba_gil_release(ptr %state) { ret void }
define double @numba_gamma(double %x) {
  %value = call double @tgamma(double %x)
  ret double %value
}"""

START = """
declare i64 @PyLong_AsLongLong(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyErr_Occurred()
declare i32 @PyErr_BadArgument()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyModule_Create2(ptr, i32)
@kernels = internal constant [{count} x ptr] [{addresses}]
define i64 @address(i64 %k) {{
  %place = getelementptr ptr, ptr @kernels, i64 %k
  %value = load i64, ptr %place
  ret i64 %value
}}"""

SHIM = """
@name.{name} = internal constant [{size} x i8] c"{name}\\00"
define internal ptr @shim.{name}(ptr %self, ptr %given, i64 %count) {{
  %fits = icmp eq i64 %count, {count}
  br i1 %fits, label %argument0, label %wrong
wrong:
  call i32 @PyErr_BadArgument()
  br label %failed
failed:
  ret ptr null
{arguments}
argument{count}:{before}
  %result = call i64 @{symbol}({values}){after}
  %number = call ptr @PyLong_FromLongLong(i64 %result)
  ret ptr %number
}}"""

ARGUMENT = """
argument{k}:
  %place{k} = getelementptr ptr, ptr %given, i64 {k}
  %object{k} = load ptr, ptr %place{k}
  %value{k} = call {kind} @{read}(ptr %object{k})
  %odd{k} = {compare} %value{k}, {failure}
  br i1 %odd{k}, label %look{k}, label %argument{next}
look{k}:
  %error{k} = call ptr @PyErr_Occurred()
  %fine{k} = icmp eq ptr %error{k}, null
  br i1 %fine{k}, label %argument{next}, label %failed"""

RELEASE = "\n  %thread = call ptr @PyEval_SaveThread()"
RESTORE = "\n  call void @PyEval_RestoreThread(ptr %thread)"

# A `PyMethodDef` is a name, a function, its flags and a docstring; 128 is METH_FASTCALL.
METHOD = "{{ptr, ptr, i32, ptr}} {{ptr @name.{name}, ptr @shim.{name}, i32 128, ptr null}}"

# The module's docstring lists all functions in the order of their addresses. 3 is the version of the stable interface.
END = """
@methods = internal global [{count} x {{ptr, ptr, i32, ptr}}] [{methods}, {{ptr, ptr, i32, ptr}} zeroinitializer]
@module = internal constant [{length} x i8] c"{module}\\00"
@names = internal constant [{size} x i8] c"{names}\\00"
@definition = internal global {{[5 x i64], ptr, ptr, i64, ptr, [4 x i64]}} {{[5 x i64] [i64 1, i64 0, i64 0, i64 0, i64 0],
  ptr @module, ptr @names, i64 -1, ptr @methods, [4 x i64] zeroinitializer}}
define ptr @PyInit_{module}() {{
  %module = call ptr @PyModule_Create2(ptr @definition, i32 3)
  ret ptr %module
}}"""


def _kinds(function: Function) -> list[str]:
    """LLVM's types of the result and of the arguments."""
    return [KINDS.get(kind, "i64") for kind in re.findall(r"\w+", function.signature)]


def _shim(function: Function) -> str:
    result, *kinds = _kinds(function)
    if result != "i64":
        returned = function.signature.partition("(")[0]
        raise TypeError(f"the entry {function.name} returns {returned}; entries of a library return int64")
    arguments = ""
    for k, kind in enumerate(kinds):
        read, compare, failure = READ[kind]
        arguments += ARGUMENT.format(k=k, next=k + 1, kind=kind, read=read, compare=compare, failure=failure)
    return SHIM.format(
        name=function.name, size=len(function.name) + 1, symbol=function.symbol, count=len(kinds), arguments=arguments,
        values=", ".join(f"{kind} %value{k}" for k, kind in enumerate(kinds)),
        before=RELEASE if function.nogil else "", after=RESTORE if function.nogil else "",
    )  # fmt: skip


def _declaration(function: Function) -> str:
    result, *kinds = _kinds(function)
    return f"\ndeclare {result} @{function.symbol}({', '.join(kinds)})"


def glue(functions: list[Function]) -> str:
    """LLVM code of an extension module around these functions.

    Parameters
    ----------
    functions : list of Function
        Each gets an address, which ``module.address(k)`` tells; entries can be called, too.

    Returns
    -------
    str
        Refers to the functions by their symbols.

    Raises
    ------
    TypeError
        If an entry does not return int64.
    """
    address = Function("address", "int64(int64)", "address", is_entry=True, nogil=False)
    entries = [function for function in functions if function.is_entry] + [address]
    code = HELPERS + START.format(count=len(functions), addresses=", ".join(f"ptr @{function.symbol}" for function in functions))
    code += "".join(map(_declaration, functions)) + "".join(map(_shim, entries))
    names = " ".join(function.name for function in functions)
    return code + END.format(
        count=len(entries) + 1, methods=", ".join(METHOD.format(name=entry.name) for entry in entries),
        names=names, size=len(names) + 1, module=MODULE, length=len(MODULE) + 1,
    )  # fmt: skip
