"""What must not be left half done when an exception comes that nobody raised there: an interrupt, or memory that runs out.

Python delivers interrupts when one of its functions begins, when a C function has returned, and at the end of each round of a loop,
but never between other bytecodes. So steps that belong together are

- made in one call of a C function, so that nothing comes between them (`at_once`);
- undone as a whole: all that is to be undone happens inside of a function that `undone` calls. Before that has begun there is
  nothing to undo; an interrupt may still come when it has just returned, so what undoes must be right then too;
- done to the end first, if others rely on it, and the exception is raised then (`carried_through`);
- made apart, and put into place in one step, where it is about files (`whole_file`).

These are functions that call other ones, and no context managers: an interrupt that hits the beginning of ``__exit__`` would leave
what that should end. A file is the exception, for which a temporary one that stays does no harm.

Three places have handlers of their own, since a call more is two per cent of a pass over one row, or a place where an interrupt
would not be caught: the passes of `autograd.sweep`, which give up what they have pinned; modes of threads (`tensors.grad_mode`),
which are set back again if an interrupt ends the first time; and claims (`tape.tape`), which the traceback of an exception must not
keep alive, so that the frame that holds one deletes it.

Two more carry an exception past what would lose it, and raise it behind that: a thread that is waited for (`autograd.user_code`),
and C code of a solver (`optimize.interior_point`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any, TypeVar

__all__ = ["at_once", "carried_through", "undone", "whole_file"]

T = TypeVar("T")


def at_once(*steps: partial[Any]) -> tuple[Any, ...]:
    """Make calls with no other thread and no interrupt between them; what they return.

    The interpreter lock changes hands where interrupts are delivered, and here `tuple` makes the calls. So nothing comes between,
    as long as the steps are compiled entries and methods of builtins.
    """
    return tuple(map(partial.__call__, steps))


def undone(undo: Callable[[], object], function: Callable[..., T], *arguments: Any) -> T:
    """What a function returns; whatever comes in the place of that, what it did is undone."""
    try:
        return function(*arguments)
    except BaseException:
        undo()
        raise


def carried_through(step: Callable[[], object], is_done: Callable[[], bool]) -> None:
    """Take a step until all is done, whatever is raised meanwhile: that is raised in the end."""
    raised: list[BaseException] = []
    while True:
        try:
            if is_done():
                break
            step()
        except BaseException as error:
            raised.append(error)
    if raised:
        raise raised[0]


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str], mode: int = 0, lasting: bool = False) -> Iterator[IO[bytes]]:
    """A file that takes the place of another when all is written to it: there is the old one or the new one, and never a part.

    Parameters
    ----------
    path : path
    mode : int
        Permissions, if not those of a fresh file.
    lasting : bool
        Whether it must be on the disk before it takes the place.
    """
    temporary = os.path.join(os.path.dirname(path), f".tapegrad-{os.urandom(8).hex()}")
    try:
        with open(temporary, "xb") as target:
            yield target
            if lasting:
                target.flush()
                os.fsync(target.fileno())
        if mode:
            os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
