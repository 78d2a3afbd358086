"""What the examples in docstrings may use without importing it."""

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

# Parts of one generated file, compiled together; by themselves they cannot be imported.
collect_ignore = ["src/tapegrad/engine"]


@pytest.fixture(autouse=True)
def _names_of_doctests(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace.update(np=np, tg=tg)
