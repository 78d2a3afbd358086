"""Hooks on what operations save for the backward pass."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from tapegrad.autograd.packed_rows import PackingHooks
from tapegrad.tensors.saved_value_packing import enter, forbid, leave
from tapegrad.tensors.tensor import Tensor

__all__ = ["allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]


class saved_tensors_hooks:  # noqa: N801 - PyTorch's name
    """Context in which operations keep what `pack_hook` makes of the tensors that they save for the backward pass.

    Parameters
    ----------
    pack_hook : callable
        Is given each tensor when it is saved, once a use, and returns any object in its place.
    unpack_hook : callable
        Is given that object when the derivative needs the tensor, and returns a tensor of the same values.

    Notes
    -----
    Of nested contexts the innermost counts. Plain numbers are kept without hooks. Operations recorded inside are several times
    slower.

    Examples
    --------
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> with tg.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda kept: tg.tensor(kept)):
    ...     y = x * x
    >>> y.sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ("_packer",)

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self._packer = PackingHooks(pack_hook, unpack_hook)

    def __enter__(self) -> None:
        enter(self._packer)

    def __exit__(self, *exception: object) -> None:
        leave()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801 - PyTorch's name
    """PyTorch's context that keeps what is saved in the memory of the CPU, where all tensors are.

    Parameters
    ----------
    pin_memory : bool
    device_type : str
        Of no effect, both of them.

    Examples
    --------
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> with tg.autograd.graph.save_on_cpu():
    ...     y = x * x
    >>> y.sum().backward()
    """

    __slots__ = ()

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(_itself, _itself)


def _itself(t: Tensor) -> Tensor:
    return t


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Context, or decorator, in which `saved_tensors_hooks` are refused in this thread.

    Parameters
    ----------
    error_message : str
        What the RuntimeError says.

    Raises
    ------
    RuntimeError
        At once if hooks are in use already.

    Examples
    --------
    >>> with tg.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     with tg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
    ...         pass
    Traceback (most recent call last):
    ...
    RuntimeError: not here
    """
    before = forbid(error_message)
    try:
        yield
    finally:
        forbid(before)


class _Kept:
    """A copy of a saved tensor, until its context is left."""

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: Tensor) -> None:
        self.value: Tensor | None = value


class KeptValues:
    """What `allow_mutation_on_saved_tensors` keeps."""

    __slots__ = ("_copies",)

    def __init__(self) -> None:
        self._copies: weakref.WeakSet[_Kept] = weakref.WeakSet()

    def clear(self) -> None:
        """Let go of all copies: what was recorded with them cannot be differentiated any more."""
        for kept in list(self._copies):
            kept.value = None

    def _pack(self, t: Tensor) -> _Kept:
        kept = _Kept(t.clone())
        self._copies.add(kept)
        return kept


def _unpack(kept: _Kept) -> Tensor:
    if kept.value is None:
        raise AssertionError(
            "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was originally "
            "recorded. Go back through it before the context ends."
        )
    return kept.value


class _Allowing(threading.local):
    on = False


_allowing = _Allowing()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[KeptValues]:
    """Context in which what operations save for the backward pass may be written afterwards.

    Yields
    ------
    KeptValues
        Its ``clear()`` lets go of what was saved.

    Raises
    ------
    RuntimeError
        If such contexts are nested, or hooks on saved tensors are disabled.
    AssertionError
        From a backward pass outside of the context, for what was recorded in it.

    Notes
    -----
    Every saved tensor is copied when it is saved.

    Examples
    --------
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> with tg.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = (y * y).sum()
    ...     _ = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor([2., 4.])
    """
    if _allowing.on:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    kept = KeptValues()
    with saved_tensors_hooks(kept._pack, _unpack):
        _allowing.on = True
        try:
            yield kept
        finally:
            _allowing.on = False
            kept.clear()
