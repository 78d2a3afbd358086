"""What the import of SciPy's solvers leaves out, and that nobody misses it."""

import importlib.util
import json
from typing import Any

import fresh_processes
import pytest

from tapegrad.optimize.scipy_solvers import COPIES

COMPAT = next(name for name in COPIES if importlib.util.find_spec(name.rpartition(".")[0]) and importlib.util.find_spec(name))
_internal = importlib.import_module(f"{COMPAT}._internal")
clones = pytest.mark.skipif(not hasattr(_internal, "clone_module"), reason="this SciPy copies NumPy in another way")

USE = "import tapegrad as tg, numpy as np\ntg.optimize.minimize(lambda x: (x * x).sum(), np.ones(2))\n"
DESCRIBED = f"""
import json, sys
imported = list(sys.modules)
from {COMPAT} import numpy as copy
def described(name):
    value = getattr(copy, name)
    return [type(value).__name__, getattr(value, "__name__", ""), getattr(value, "__module__", "")]
names = {{name: described(name) for name in sorted(copy.__all__) if name != "__builtins__"}}
try:
    copy.nothing
except AttributeError as error:
    print(json.dumps([imported, names, str(error)]))
"""


def printed(code: str) -> str:
    return fresh_processes.run(code, fresh_processes.environment()).stdout


@pytest.fixture(scope="module")
def after_a_solution() -> Any:
    """What was imported, names of SciPy's copy of NumPy with what they stand for, and what is said of an unknown one."""
    return json.loads(printed(USE + DESCRIBED))


@clones
def test_first_solution_imports_nothing_of_numpy_that_scipy_only_lists(after_a_solution: Any) -> None:
    assert not {"numpy.f2py", "numpy.testing", "numpy.ma", "unittest"}.intersection(after_a_solution[0])


def test_scipys_copy_of_numpy_has_the_names_that_it_has_without_us(after_a_solution: Any) -> None:
    names = json.loads(printed("import scipy.optimize\n" + DESCRIBED))[1]
    assert after_a_solution[1] == names
    assert len(names) > 400


def test_unknown_name_of_scipys_copy_is_said_to_be_no_attribute(after_a_solution: Any) -> None:
    assert after_a_solution[2] == f"module '{COMPAT}.numpy' has no attribute 'nothing'"


def test_solvers_are_imported_where_scipy_copies_in_another_way() -> None:
    code = "from tapegrad.optimize import scipy_solvers\nscipy_solvers.COPIES = ('scipy._lib.of_another_version',)\n"
    assert printed(code + "print(scipy_solvers.solvers().minimize.__module__)") == "scipy.optimize._minimize\n"


@pytest.mark.parametrize("before", ["gc.enable()", "gc.disable()", "gc.freeze()"])
def test_collections_go_on_as_before(before: str) -> None:
    code = f"import gc, tapegrad as tg\n{before}\nfrom tapegrad.optimize.scipy_solvers import solvers\n"
    code += "was = gc.isenabled(), gc.get_freeze_count() > 0\nsolvers()\nprint((gc.isenabled(), gc.get_freeze_count() > 0) == was)"
    assert printed(code) == "True\n"


def test_threads_that_ask_at_once_get_the_same_module_and_leave_scipy_as_it_is() -> None:
    code = f"""
import threading
from tapegrad.optimize.scipy_solvers import solvers
barrier, found = threading.Barrier(4), []
def ask():
    barrier.wait()
    found.append(solvers().minimize)
threads = [threading.Thread(target=ask) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
from {COMPAT} import _internal
print(len(set(found)), _internal.clone_module.__module__)
"""
    assert printed(code) == f"1 {COMPAT}._internal\n"
