"""Checkpoints as PyTorch calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.drivers import checkpointing

__all__ = ["checkpoint", "checkpoint_sequential"]


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    determinism_check: str = "default",
    **kwargs: Any,
) -> Any:
    """Call a function so that the backward pass runs it again; see `tapegrad.checkpoint`.

    Parameters
    ----------
    function : callable
    *args, **kwargs
        Its arguments.
    use_reentrant : bool, optional
        Accepted and ignored: all that PyTorch's form with ``use_reentrant=False`` can do is done.
    preserve_rng_state : bool
    determinism_check : {"default", "none"}
        As for `tapegrad.checkpoint`.

    Returns
    -------
    object
        What the function returns.

    Raises
    ------
    ValueError
        If `determinism_check` is another one.

    Examples
    --------
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> tg.utils.checkpoint.checkpoint(lambda x: x**3, x, use_reentrant=False).backward()
    >>> x.grad
    tensor(12.)
    """
    made = checkpointing.checkpoint(function, preserve_rng_state=preserve_rng_state, determinism_check=determinism_check)
    return made(*args, **kwargs)


def checkpoint_sequential(functions: Sequence[Callable[..., Any]], segments: int, input: Any, **options: Any) -> Any:
    """Call functions one after the other, cut into pieces of which all but the last one are run again in the backward pass.

    Parameters
    ----------
    functions : sequence of callable
        Each takes what the one before returned; the layers of an `nn.Sequential`, for example.
    segments : int
        Number of pieces.
    input : object
        For the first one.
    **options
        As for `checkpoint`.

    Returns
    -------
    object
        What the last one returns.

    Raises
    ------
    ValueError
        If there are no functions, or fewer than pieces.

    Examples
    --------
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> tg.utils.checkpoint.checkpoint_sequential([tg.square] * 3, 3, x).backward()
    >>> x.grad
    tensor(1024.)
    """
    layers = list(functions)
    if not 1 <= segments <= len(layers):
        raise ValueError(
            f"checkpoint_sequential: segments must be from 1 to {len(layers)}, the number of functions, but got {segments}"
        )
    size = len(layers) // segments
    for k in range(segments - 1):
        input = checkpoint(_in_turn, layers[k * size : (k + 1) * size], input, **options)
    return _in_turn(layers[(segments - 1) * size :], input)


def _in_turn(layers: Sequence[Callable[..., Any]], value: Any) -> Any:
    for layer in layers:
        value = layer(value)
    return value
