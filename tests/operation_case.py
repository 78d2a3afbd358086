"""What the tests over all operations need of each one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """One operation at one point.

    Attributes
    ----------
    name : str
        What it is a case of: ``"cumprod"``, ``"linalg.inv"``.
    call : callable
        Maps tensors to a tensor or a tuple of them; options are bound.
    arrays : tuple of ndarray
        The point, away from kinks and ties. Floating point ones are differentiated, the others passed as they are.
    reference : callable
        The same on arrays, by NumPy, SciPy or a plain loop.
    label : str
        Distinguishes the cases of one operation.
    order : int
        Highest order of derivatives that is checked; 0: the result is never tracked.
    tolerance : float
        Of the derivatives.
    float32 : bool
        Whether it takes float32.
    expands : bool
        Whether it is defined where the slices along the first dimension are all the same.
    """

    name: str
    call: Callable[..., Any]
    arrays: tuple[np.ndarray, ...]
    reference: Callable[..., Any]
    label: str = ""
    order: int = 2
    tolerance: float = 1e-6
    float32: bool = True
    expands: bool = True

    def __str__(self) -> str:
        return f"{self.name}-{self.label}" if self.label else self.name


def as_tuple(result: Any) -> tuple[Any, ...]:
    """Results as a tuple, also where there is one."""
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)
