"""Variables of frames, which are of other types in other versions of Python."""

import sys
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

from tapegrad.frames import variables_of


def test_variables_of_a_function_are_a_dict() -> None:
    number = 3
    known = variables_of(sys._getframe())
    assert type(known) is dict and known["number"] is number


def test_variables_that_are_another_mapping_are_a_dict() -> None:
    frame: Any = SimpleNamespace(f_locals=MappingProxyType({"number": 3}))  # as from Python 3.13 on
    assert variables_of(cast(Any, frame)) == {"number": 3}
