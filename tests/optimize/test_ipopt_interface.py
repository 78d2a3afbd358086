"""IPOPT by its C interface: with a stand-in for its library everywhere, and itself where cyipopt is installed."""

import gc
import importlib.util
import json
import shutil
import signal
import subprocess
import sys
import sysconfig
import types
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fresh_processes
import numpy as np
import pytest

import tapegrad as tg
from tapegrad.optimize import ipopt_interface
from tapegrad.optimize.ipopt_interface import ipopt_library

optimize: Any = tg.optimize
COMPILER = shutil.which("cc")
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
compiles = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
has_ipopt = pytest.mark.skipif(importlib.util.find_spec("cyipopt") is None, reason="no cyipopt")
PACKAGE = "class CyIpoptEvaluationError(Exception):\n    pass\n\nProblem = 'the package'\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in, as an extension module."""
    made = tmp_path_factory.mktemp("library") / f"ipopt_wrapper{SUFFIX}"
    source = Path(__file__).parent / "ipopt_stand_in.c"
    assert COMPILER is not None
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", str(made), str(source)], check=True)
    return made


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder from which the package is imported, by nobody so far."""

    def own() -> list[str]:
        return [name for name in sys.modules if name.partition(".")[0] in ("cyipopt", "ipopt_wrapper")]

    kept = {name: sys.modules.pop(name) for name in own()}
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in own():
        del sys.modules[name]
    sys.modules.update(kept)


@pytest.fixture(params=["in the package", "beside it"])
def folder(request: pytest.FixtureRequest, library: Path, place: Path) -> Path:
    """Where a package cyipopt is, laid out as it is since version 1.7 or as before."""
    package = place / "cyipopt"
    package.mkdir()
    (package / "__init__.py").write_text(PACKAGE)
    shutil.copy(library, package if request.param == "in the package" else place)
    return place


def bowl(x: Any) -> Any:
    return ((x - np.arange(1.0, 4.0)) ** 4 + (x - 1.0) ** 2).sum()


@compiles
@pytest.mark.usefixtures("folder")
def test_minimum() -> None:
    found = optimize.minimize(bowl, np.zeros(3), method="ipopt", tol=1e-9, bounds=[(None, 1e9), (None, None), (None, 1.5)])
    expected = optimize.minimize(bowl, np.zeros(3), method="trust-constr", tol=1e-12, bounds=[(-9, 9), (-9, 9), (-9, 1.5)]).x
    np.testing.assert_allclose(found.x, expected, atol=1e-5)
    assert (found.success, found.status, found.message) == (True, 0, "solved to the tolerance")
    assert found.nhev == found.nit + 1 == len(found.history)
    slope = tg.grad(bowl)(found.x)
    np.testing.assert_allclose(found.bound_multipliers[1][2], -slope[2], rtol=1e-9)


@compiles
@pytest.mark.usefixtures("folder")
def test_jacobians_of_constraints_arrive_entry_by_entry() -> None:
    constraint = optimize.equality(lambda x: np.concatenate([x[1:] * x[:-1], x[:1] ** 3]))
    found = optimize.minimize(lambda x: ((x - 2.0) ** 2).sum(), np.ones(3), method="ipopt", constraints=constraint)
    np.testing.assert_allclose(found.v[0], [4.0, 4.0, 12.0], rtol=1e-12)  # sums of rows


@compiles
@pytest.mark.usefixtures("folder")
def test_without_second_derivatives() -> None:
    options = {"hessian_approximation": "limited-memory"}
    found = optimize.minimize(lambda x: ((x - 3.0) ** 2).sum(), np.ones(2), method="ipopt", options=options)
    np.testing.assert_allclose(found.x, 3.0)
    assert found.nhev == 0


@compiles
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("option", [{"nonsense": 3}, {"nonsense": 3.0}, {"nonsense": "3"}, {"tol": None}])
def test_options_that_it_does_not_take(option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="does not take the option"):
        optimize.minimize(bowl, np.ones(3), method="ipopt", options=option)


@compiles
@pytest.mark.usefixtures("folder")
def test_most_iterations() -> None:
    found = optimize.minimize(bowl, np.zeros(3), method="ipopt", options={"maxiter": 2})
    assert (found.success, found.status, found.message) == (False, -1, "the maximum number of iterations was reached")


@compiles
@pytest.mark.usefixtures("folder")
def test_exceptions_of_functions_are_raised() -> None:
    def f(x: Any) -> Any:
        if x[0] > 0.5:
            raise ArithmeticError("too far")
        return ((x - 3.0) ** 2).sum()

    with pytest.raises(ArithmeticError, match="too far"):
        optimize.minimize(f, np.zeros(3), method="ipopt")


@compiles
@pytest.mark.usefixtures("folder")
def test_callbacks_may_end_it() -> None:
    def callback(x: Any) -> None:
        raise StopIteration

    found = optimize.minimize(bowl, np.zeros(3), method="ipopt", callback=callback)
    assert (found.success, found.status, found.nit) == (False, 5, 1)


@compiles
@pytest.mark.usefixtures("folder")
def test_an_interrupt_while_c_code_runs_is_raised() -> None:
    former = sys.unraisablehook
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # which those who run tests may have left out
    try:
        with pytest.raises(KeyboardInterrupt):
            optimize.minimize(bowl, np.zeros(3), method="ipopt", options={"interrupted": "yes"})
    finally:
        signal.signal(signal.SIGINT, handler)
    assert sys.unraisablehook is former


@compiles
@pytest.mark.usefixtures("folder")
def test_solutions_inside_of_each_other_leave_the_hook_as_it_was() -> None:
    former = sys.unraisablehook
    others = []

    def f(x: Any) -> Any:
        if not others:
            others.append(None)  # this one asks for values, too
            others[0] = optimize.minimize(bowl, np.zeros(3), method="ipopt")
        return ((x - 3.0) ** 2).sum()

    found = optimize.minimize(f, np.ones(2), method="ipopt")
    assert (found.success, others[0].success) == (True, True)
    assert sys.unraisablehook is former


@compiles
@pytest.mark.usefixtures("folder")
def test_overlapping_solutions_leave_the_hook_as_it_was() -> None:
    former = sys.unraisablehook
    first, second = (types.SimpleNamespace(_error=None) for _ in range(2))
    for step, problem in ((ipopt_interface._watch, first), (ipopt_interface._watch, second), (ipopt_interface._leave, first)):
        step(problem)
    assert sys.unraisablehook is ipopt_interface._hear
    ipopt_interface._leave(second)
    assert sys.unraisablehook is former


@compiles
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("most", [2**32 + 3, -(2**40)])
def test_integers_that_ipopt_cannot_have_are_refused(most: int) -> None:
    with pytest.raises(ValueError, match=f"max_iter={most}: .* an int of 32 bits"):
        optimize.minimize(bowl, np.zeros(3), method="ipopt", options={"max_iter": most})


@compiles
@pytest.mark.usefixtures("folder")
def test_integers_are_numbers_where_an_option_is_one() -> None:
    assert optimize.minimize(bowl, np.zeros(3), method="ipopt", options={"tol": 1}).success


@compiles
@pytest.mark.usefixtures("folder")
def test_nothing_is_kept_of_a_solution() -> None:
    def f(x: Any) -> Any:
        return ((x - 3.0) ** 2).sum()

    gc.collect()
    gc.disable()
    try:
        optimize.minimize(f, np.ones(2), method="ipopt")
        known = weakref.ref(f)
        del f
        assert known() is None
    finally:
        gc.enable()


@compiles
def test_solutions_import_nothing_of_scipys_and_leave_the_package_to_others(folder: Path) -> None:
    code = """
import json, sys
import numpy as np, tapegrad as tg
found = tg.optimize.minimize(
    lambda x: ((x - 3.0) ** 2).sum(), np.ones(4), method="ipopt", bounds=[(0.0, None)] * 4,
    constraints=tg.optimize.inequality(lambda x: x[1:] * x[:-1]),
)
imported = [name for name in sys.modules if name.partition(".")[0] in ("scipy", "cyipopt", "ipopt_wrapper")]
import cyipopt
print(json.dumps([found.x.tolist(), imported, cyipopt.Problem]))
"""
    settings = fresh_processes.environment()
    settings["PYTHONPATH"] += f":{folder}"
    x, imported, problem = json.loads(fresh_processes.run(code, settings).stdout)
    np.testing.assert_allclose(x, 3.0)
    assert imported == []
    assert problem == "the package"


@compiles
@pytest.mark.usefixtures("folder")
def test_libraries_of_other_numbers_are_left_to_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ipopt_interface, "KNOWN_TYPES", ("of_single_precision",))
    assert ipopt_library().Problem == "the package"


def test_a_package_that_somebody_made_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    made = types.ModuleType("cyipopt")
    monkeypatch.setitem(sys.modules, "cyipopt", made)
    assert ipopt_library() is made


@pytest.mark.parametrize("content", [None, b"no library"])
def test_where_there_is_no_library_the_package_is_asked(content: bytes | None, place: Path) -> None:
    (place / "cyipopt").mkdir()
    (place / "cyipopt" / "__init__.py").write_text("raise ImportError('no libipopt.so.3')")
    if content is not None:
        (place / "cyipopt" / f"ipopt_wrapper{SUFFIX}").write_bytes(content)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'tapegrad\[ipopt\]'.*no libipopt.so.3"):
        optimize.minimize(bowl, np.ones(3), method="ipopt")


@has_ipopt
def test_ipopt_goes_the_same_way_as_by_the_package() -> None:
    def minimum() -> Any:
        return optimize.minimize(
            lambda x: (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum(), np.full(6, 0.5), method="ipopt", tol=1e-9,
            bounds=[(0.0, 2.0)] * 6, constraints=optimize.between(lambda x: x[1:] * x[:-1], -1.0, 0.8),
        )  # fmt: skip

    assert isinstance(ipopt_library(), ipopt_interface._Direct)
    found = minimum()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ipopt_interface, "_direct", lambda: None)
        expected = minimum()
    for name in ("x", "fun", "nit", "nfev", "njev", "nhev", "status", "success"):
        np.testing.assert_array_equal(found[name], expected[name])
    np.testing.assert_array_equal(found.v[0], expected.v[0])
    np.testing.assert_array_equal(found.bound_multipliers, expected.bound_multipliers)
