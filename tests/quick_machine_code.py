"""Machine code of programs in the way in which that of long ones is made, for tests that make code of hundreds.

Selecting instructions well is a fifth of the time of such tests, and changes no bit of a result. Tests of random functions, of
rules on numbers and arrays, of products, and of exponentials have it as most users do.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tapegrad.programs.fused import machine_code

__all__ = ["machine_code_is_made_quickly"]


@pytest.fixture(autouse=True, scope="module")
def machine_code_is_made_quickly() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine_code, "QUICK", 0)
        yield
