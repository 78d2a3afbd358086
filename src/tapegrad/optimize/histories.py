"""How a solver came to its result: a line for each iteration, a progress bar while it runs, and callbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np

from tapegrad.named_tuples import Named

__all__ = ["History", "HistoryEntry", "Progress", "largest", "noted_jacobian"]


FEW = 256  # elements up to which gradients are kept until somebody asks: an iteration costs 4 µs less


class HistoryEntry(Named):
    """What is known after an iteration."""

    __slots__ = ()
    iteration: int
    objective: float
    gradient_norm: float
    evaluations: int


class History:
    """What a solver did, iteration by iteration; a sequence of `HistoryEntry`.

    Attributes
    ----------
    iteration, objective, gradient_norm, evaluations : ndarray
        One element an entry. The norm is the largest absolute element, nan where there is no gradient; evaluations are those of the
        function up to then.
    """

    def __init__(self) -> None:
        self._found: list[tuple[float, Any, int]] = []

    def add(self, objective: float, gradient: Any, evaluations: int) -> None:
        """Add the next iteration; small gradients are looked at when somebody asks for their norms."""
        self._found.append((objective, gradient if np.size(gradient) <= FEW else largest(gradient), evaluations))

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, number: int) -> HistoryEntry:
        objective, gradient, evaluations = self._found[number]
        return HistoryEntry(range(len(self))[number], float(objective), largest(gradient), evaluations)

    def __iter__(self) -> Iterator[HistoryEntry]:
        return map(self.__getitem__, range(len(self)))

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in HistoryEntry._fields:
            raise AttributeError(f"a history has {', '.join(HistoryEntry._fields)}, but no {name}")
        return np.array([getattr(entry, name) for entry in self])

    def __repr__(self) -> str:
        if not self._found:
            return "<history of no iteration>"
        return f"<history of {len(self)} entries: objective {self[0].objective:.6g} to {self[-1].objective:.6g}>"


def largest(gradient: Any) -> float:
    """The largest absolute element."""
    if type(gradient) is float:
        return abs(gradient)
    array = np.asarray(gradient)
    return float(np.abs(array).max()) if array.size else 0.0


class Progress:
    """A history that is being written, with a bar and a callback on request.

    Parameters
    ----------
    wanted : bool
        Whether to show a bar.
    callback : callable, optional
        Called without arguments of its own, after each entry, with what `note` was given for it.

    Raises
    ------
    ModuleNotFoundError
        If a bar is wanted and tqdm is not installed.
    """

    def __init__(self, wanted: bool, callback: Callable[[Any], Any] | None = None) -> None:
        self.history, self._callback, self._bar = History(), callback, None
        if wanted:
            try:
                from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]
            except ImportError:
                raise ModuleNotFoundError(
                    "progress=True needs tqdm: pip install 'tapegrad[progress]', or leave progress out", name="tqdm"
                ) from None
            self._bar = tqdm(unit=" iterations")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()

    def note(self, objective: float, gradient: Any, evaluations: int, point: Any = None) -> None:
        """An iteration is done; `gradient` is that, its norm, or nan."""
        history = self.history
        history.add(objective, gradient, evaluations)
        if self._bar is not None:
            entry = history[-1]
            norm = {"|g|": f"{entry.gradient_norm:.3g}"} if entry.gradient_norm >= 0.0 else {}
            self._bar.set_postfix({"f": f"{entry.objective:.6g}", **norm, "evaluations": entry.evaluations}, refresh=False)
            if entry.iteration:
                self._bar.update()
        if self._callback is not None and len(history) > 1:
            self._callback(point)


@contextmanager
def noted_jacobian(progress: Progress, vector: Any) -> Iterator[Callable[[np.ndarray], Any]]:
    """The Jacobian of a residual, each evaluation of which is an iteration."""

    def jacobian(x: np.ndarray) -> Any:
        matrix, residual = vector.jacobian(x), vector.known_value(x)
        if residual is not None:
            progress.note(0.5 * float(residual @ residual), largest(matrix.T @ residual), vector.evaluations, x)
        return matrix

    with progress:
        yield jacobian
