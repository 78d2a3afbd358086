"""``x[key]`` of arrays as a compiled method around its Python form, which has all cases that are not common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.engine import layout as at
from tapegrad.ops.compiled_operators import METH_O, descriptor, keep, prepare_views, when_compiled
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor

__all__ = ["method_item", "method_item_of_tensors"]


def method_item(form: Callable[..., Any]) -> Any:
    """The compiled method around its Python form, which is that itself where there is no compiled one."""
    header = TAPE.header
    if not header[at.ITEM]:
        return form
    prepare_views()
    use_form(form)
    return descriptor("__getitem__", int(header[at.ITEM_THUNK]), METH_O, form.__doc__)


def method_item_of_tensors(form: Callable[..., Any]) -> Any:
    """The same of tensors."""

    def make() -> Any:
        prepare_views()
        TAPE.header[at.ITEM_FORM_OF_TENSORS] = keep(form)
        return descriptor("__getitem__", int(TAPE.header[at.ITEM_THUNK]), METH_O, form.__doc__)

    return when_compiled(Tensor, form, make)


def use_form(form: Callable[..., Any]) -> None:
    """Let this be the Python form from now on."""
    TAPE.header[at.ITEM_FORM] = keep(form)
