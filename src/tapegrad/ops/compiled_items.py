"""``x[key]`` of arrays as a compiled method around its Python form, which has all cases that are not common."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from tapegrad.arrays.slots import offset_of
from tapegrad.engine import layout as at
from tapegrad.ops.compiled_operators import METH_O, descriptor, keep, when_compiled
from tapegrad.ops.views import Replay, look_through
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Meta, Tensor
from tapegrad.tensors.version_counters import VersionCounter

__all__ = ["method_item", "method_item_of_tensors", "prepare_views"]

_SLOTS = ("base", "replay", "views", "made_without_grad", "one_of_many")


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


def prepare_views() -> None:
    """Tell compiled code what it needs to know of views."""
    header = TAPE.header
    for which, slot in enumerate(_SLOTS, at.META_BASE):
        header[at.OFFSETS + which] = offset_of(Meta(), slot)
    header[at.META_VERSION + at.OFFSETS] = offset_of(Meta(), "version")
    template = Meta()
    header[at.META_TEMPLATE], header[at.META_WORDS] = keep(template), (Meta.__basicsize__ - object.__basicsize__) // 8
    header[at.SLICE_TYPE], header[at.NO_TEXT] = id(slice), id(template.one_of_many)
    for word, thing in (
        (at.TUPLE_TYPE, tuple),
        (at.ELLIPSIS, Ellipsis),
        (at.META_CLASS, Meta),
        (at.TAKE_CLASS, itemgetter),
        (at.VERSION_CLASS, VersionCounter),
        (at.REPLAY_CLASS, Replay),
        (at.LOOK_THROUGH, look_through),
    ):
        header[word] = keep(thing)
    header[at.SLICE_NAME], header[at.SELECT_NAME] = TAPE.name_number("SliceBackward0"), TAPE.name_number("SelectBackward0")
    header[at.ALIAS_NAME] = TAPE.name_number("AliasBackward0")


def use_form(form: Callable[..., Any]) -> None:
    """Let this be the Python form from now on."""
    TAPE.header[at.ITEM_FORM] = keep(form)
