"""Methods that write in place as compiled methods around their Python forms, which have all cases that are not common."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays.slots import offset_of
from tapegrad.engine import layout as at
from tapegrad.kernels.opcodes import OPCODES
from tapegrad.ops import in_place
from tapegrad.ops.compiled_operators import METH_FASTCALL, METH_FASTCALL_KEYWORDS, descriptor, keep, prepare_views, when_compiled
from tapegrad.ops.elementwise import method
from tapegrad.ops.overwriting import COPY_SLICES
from tapegrad.recording.parameter_names import names_of
from tapegrad.rules.table import RULES
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Meta, Tensor
from tapegrad.tensors.version_counters import VersionCounter

__all__ = ["method_item_assignment", "method_of_rule", "method_of_whole", "prepare_writes"]

Form = Callable[..., Any]
WHOLE = {"zero_": at.WRITE_ZERO, "fill_": at.WRITE_FILL, "copy_": at.WRITE_COPY}
_ITEM = len(RULES) + at.WHOLE_WRITES
_forms = np.zeros(_ITEM + 2, np.int64)
_is_ready = False


def prepare_writes() -> None:
    """Tell compiled code what it needs to know of writes."""
    global _is_ready
    if _is_ready:
        return
    header = TAPE.header
    prepare_views()
    for which, thing, slot in (
        (at.META_RETAINED, Meta(), "retained"),
        (at.VERSION_COUNT, VersionCounter(), "count"),
        (at.VERSION_TIMES, VersionCounter(), "times"),
    ):
        header[at.OFFSETS + which] = offset_of(thing, slot)
    kept: tuple[tuple[int, object], ...] = (
        (at.ZERO_OPERATION, in_place.ZERO),
        (at.FILL_OPERATION, in_place.FILL),
        (at.FILL_TENSOR_OPERATION, in_place.FILL_TENSOR),
        (at.COPY_OPERATION, in_place.COPY),
        (at.SLICES_OPERATION, COPY_SLICES),
        (at.FLOAT_ZERO, 0.0),
    )
    for word, one in kept:
        header[word] = keep(one)
    header[at.STRIDED_NAME] = TAPE.name_number("AsStridedBackward0")
    header[at.WRITING_FORMS] = _forms.ctypes.data
    _is_ready = True


def _thunk(number: int) -> int:
    return ctypes.c_int64.from_address(int(TAPE.header[at.WRITING_THUNKS]) + 8 * number).value


def _method(name: str, parameters: str, form: Form, thunk: int, place: int) -> Any:
    prepare_writes()
    if not _forms[place]:
        _forms[place] = keep(form)
    doc = f"{name}({parameters})\n--\n\n{form.__doc__ or ''}"
    return descriptor(name, _thunk(thunk), METH_FASTCALL_KEYWORDS, doc)


def method_of_rule(name: str, rule: str, form: Form) -> Any:
    """The in-place method of a rule around its Python form; that itself while there is no compiled one, or never is.

    Parameters
    ----------
    name : str
        Of the method.
    form : callable
        Has all that any method of this rule has.
    """
    opcode = OPCODES[rule]
    parameters = ", ".join(("$self", "/", *names_of(rule)[1:]))

    def make() -> Any:
        method(rule)  # whose operator, when it is made, lets compiled code know the loop of the values
        return _method(name, parameters, form, 1 + at.WHOLE_WRITES + opcode, opcode)

    return when_compiled(Tensor, form, make)


def method_of_whole(name: str, form: Form) -> Any:
    """The method that fills, or copies into, a whole tensor."""
    which = WHOLE[name]
    parameters = ("$self, /", "$self, /, value", "$self, /, other, non_blocking=False")[which]
    return when_compiled(Tensor, form, lambda: _method(name, parameters, form, which, len(RULES) + which))


def method_item_assignment(owner: type, form: Form) -> Any:
    """The method ``__setitem__`` of tensors, or of arrays."""

    def make() -> Any:
        prepare_writes()
        _forms[_ITEM + (owner is not Tensor)] = keep(form)
        return descriptor("__setitem__", _thunk(at.WHOLE_WRITES), METH_FASTCALL, form.__doc__)

    return when_compiled(owner, form, make)
