"""A plugin of pytest: each test of the Array API suite runs as if inside of a function that a driver differentiates.

There, `tapegrad.numpy` makes arrays that can hold what is differentiated; elsewhere its arrays are NumPy's own.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from tapegrad.tensors.untracked_values import at_depth


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> Generator[None, Any, Any]:
    """Run the test's function at the depth of one call."""
    function = pyfuncitem.obj
    pyfuncitem.obj = lambda **arguments: at_depth(1, lambda: function(**arguments))
    try:
        return (yield)
    finally:
        pyfuncitem.obj = function
