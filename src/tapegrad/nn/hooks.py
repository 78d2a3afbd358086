"""Functions that run before and after a module's computation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tapegrad.tensors.hooks import RemovableHandle

if TYPE_CHECKING:
    from tapegrad.nn.backward_hooks import Passage

__all__ = ["Hook", "Hooks", "call", "register"]


class Hook(NamedTuple):
    """A registered function, and how it is called."""

    function: Callable[..., Any]
    with_kwargs: bool
    always: bool = False


Hooks = dict[int, Hook]


def register(module: Any, kind: str, hook: Hook, prepend: bool) -> RemovableHandle:
    """Add to the hooks of a module that its attribute `kind` lists, at the end or before the others."""
    handle, hooks = RemovableHandle(module, kind), getattr(module, kind)
    others = dict(hooks) if prepend else {}
    if prepend:
        hooks.clear()
    hooks[handle.id] = hook
    hooks.update(others)
    return handle


def call(
    module: Any,
    before: Hooks,
    after: Hooks,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    passage: Passage | None = None,
) -> Any:
    """What `module.forward` returns, with hooks around it."""
    done: set[int] = set()
    try:
        for hook in list(before.values()):
            args, kwargs = _prepared(module, hook, args, kwargs)
        if passage is not None:
            args = passage.enter(args)
        result = module.forward(*args, **kwargs)
        for number, hook in list(after.items()):
            done.add(number)
            result = _finished(module, hook, args, kwargs, result)
    except Exception:
        for number, hook in list(after.items()):
            if hook.always and number not in done:
                _finished(module, hook, args, kwargs, None)
        raise
    return result if passage is None else passage.leave(result)


def _prepared(module: Any, hook: Hook, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if hook.with_kwargs:
        changed = hook.function(module, args, kwargs)
        if changed is None:
            return args, kwargs
        if not isinstance(changed, tuple) or len(changed) != 2:
            raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
        return changed
    changed = hook.function(module, args)
    if changed is None:
        return args, kwargs
    return changed if isinstance(changed, tuple) else (changed,), kwargs


def _finished(module: Any, hook: Hook, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    changed = hook.function(module, args, kwargs, result) if hook.with_kwargs else hook.function(module, args, result)
    return result if changed is None else changed
