"""Results of solutions that need no SciPy are SciPy's results for everybody who imports that, before or afterwards."""

import json
import pickle
from typing import Any

import fresh_processes
import numpy as np
import pytest
from scipy.optimize import OptimizeResult

from tapegrad.optimize.histories import History
from tapegrad.optimize.results import Result, with_history

MADE = """
import json, pickle, sys
import numpy as np
from tapegrad.optimize.histories import History
from tapegrad.optimize.results import Result, with_history
result = with_history({"x": np.array([1.0, 2.0]), "fun": 3.0, "success": True}, History())
result.flat = result.x
before = "scipy" in sys.modules
"""
SEEN = """
print(json.dumps([before, isinstance(result, OptimizeResult), issubclass(type(result), OptimizeResult), type(result) is Result]))
"""


def printed(code: str) -> Any:
    return json.loads(fresh_processes.run(code, fresh_processes.environment()).stdout)


@pytest.mark.parametrize(
    "code",
    [
        MADE + "from scipy.optimize import OptimizeResult" + SEEN,
        MADE + "import scipy.optimize._optimize\nOptimizeResult = scipy.optimize._optimize.OptimizeResult" + SEEN,
    ],
)
def test_a_result_is_scipys_once_that_is_imported(code: str) -> None:
    assert printed(code) == [False, True, True, True]


def test_a_result_is_scipys_if_that_was_imported_before() -> None:
    assert printed("from scipy.optimize import OptimizeResult" + MADE + SEEN) == [True, True, True, True]


def test_fields_are_attributes_without_scipy() -> None:
    code = (
        MADE
        + """
result.more = [1]
del result.success
try:
    result.nothing
except AttributeError as error:
    said = str(error)
found = result.fun, result["more"], sorted(dir(result)), hasattr(result, "success"), said, len(result.history)
print(json.dumps([*found, "scipy" in sys.modules]))
"""
    )
    assert printed(code) == [3.0, [1], ["flat", "fun", "more", "x"], False, "nothing", 0, False]


def test_what_is_shown_is_what_scipy_shows() -> None:
    result = OptimizeResult(x=np.array([1.0, 2.0]), fun=3.0, success=True, flat=np.array([1.0, 2.0]))
    assert printed(MADE + "print(json.dumps(repr(result)))") == repr(result)


def test_a_result_that_is_pickled_without_scipy_is_scipys_where_it_is_read() -> None:
    text = printed(MADE + "print(json.dumps([pickle.dumps(result).hex(), 'scipy' in sys.modules]))")
    assert not text[1]
    result = pickle.loads(bytes.fromhex(text[0]))
    assert isinstance(result, OptimizeResult)
    assert type(result) is Result
    assert result.fun == 3.0
    assert len(result.history) == 0


def test_results_with_a_history_are_those_of_scipy() -> None:
    history = History()
    result = with_history(OptimizeResult(x=1.0), history)
    assert isinstance(result, OptimizeResult)
    assert result.history is history
    assert "history" not in result
