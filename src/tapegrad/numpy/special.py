"""Special functions of arrays under a driver, where SciPy looks for them.

With ``SCIPY_ARRAY_API=1`` SciPy's special functions ask the namespace of what they are given for its `special`, and make arrays of
NumPy's of what has none. Those here are SciPy's ufuncs, whose derivatives are rows of `numpy_protocol.scipy_special`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.numpy_protocol.protocols import ufunc_of_scipy


def __getattr__(name: str) -> Any:
    function = ufunc_of_scipy(name)
    if not isinstance(function, np.ufunc):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return function
