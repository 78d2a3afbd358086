"""Sums, maps and many starts by joblib and Ray, where they are installed: the bits of one process."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import parallel_functions as functions
import pytest

import tapegrad as tg

POINTS = np.random.default_rng(0).normal(size=(40, 3))


@pytest.fixture(scope="module")
def of_joblib() -> Iterator[Any]:
    joblib = pytest.importorskip("joblib", reason="needs the extra joblib")
    with joblib.Parallel(n_jobs=2) as parallel:
        yield parallel


@pytest.fixture(scope="module")
def of_ray() -> Iterator[Any]:
    ray = pytest.importorskip("ray", reason="needs the extra ray")
    paths = os.pathsep.join([str(Path(functions.__file__).parent), os.environ.get("PYTHONPATH", "")])
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": paths}})
    yield ray
    ray.shutdown()


@pytest.fixture(params=["joblib", "ray"])
def executor(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(f"of_{request.param}")


@pytest.mark.filterwarnings("default")
def test_a_fit_has_the_bits_of_one_process(executor: Any) -> None:
    here, there = (tg.parallel.sum_over(functions.loss, functions.SHARDS, one) for one in (None, executor))
    fit, expected = (tg.optimize.minimize(f, np.zeros(3), method="BFGS") for f in (there, here))
    np.testing.assert_array_equal(fit.x, expected.x)
    np.testing.assert_array_equal(there.hvp(fit.x, np.ones(3)), here.hvp(fit.x, np.ones(3)))


@pytest.mark.filterwarnings("default")
def test_large_shards_and_those_that_are_made_by_workers(executor: Any) -> None:
    rows = np.random.default_rng(1).normal(size=(60_000, 3))  # which joblib hands over as a file
    shards = [(rows, np.ones(len(rows))), functions.second_shard]
    there = tg.parallel.sum_over(functions.loss, shards, executor)
    expected = tg.parallel.sum_over(functions.loss, shards).value_and_grad(np.ones(3))
    for _ in range(3):
        value, gradient = there.value_and_grad(np.ones(3))
        assert value == expected[0]
        np.testing.assert_array_equal(gradient, expected[1])


@pytest.mark.filterwarnings("default")
def test_maps_and_many_starts(executor: Any) -> None:
    run = tg.value_and_grad(functions.two_ways)
    for found, expected in zip(run.map(POINTS, executor=executor), run.map(POINTS), strict=True):
        np.testing.assert_array_equal(found, expected)
    best = tg.optimize.multistart(functions.wavy, [[-4.0], [0.8], [3.0]], executor)
    np.testing.assert_array_equal(best.x, tg.optimize.multistart(functions.wavy, [[-4.0], [0.8], [3.0]]).x)


@pytest.mark.filterwarnings("default")
def test_functions_of_no_module_are_shipped_too(executor: Any) -> None:
    f = tg.program(lambda x: (x * x).sum())
    np.testing.assert_array_equal(tg.grad(f).map(POINTS, executor=executor), 2.0 * POINTS)


@pytest.mark.skipif(importlib.util.find_spec("joblib") is None, reason="needs the extra joblib")
def test_joblib_by_name_takes_what_its_configuration_says() -> None:
    from joblib import parallel_config

    with parallel_config(backend="threading", n_jobs=2):
        total = tg.parallel.sum_over(functions.loss, functions.SHARDS, "joblib")
        assert total(np.ones(3)) == tg.parallel.sum_over(functions.loss, functions.SHARDS)(np.ones(3))


@pytest.mark.parametrize("library", ["joblib", "ray"])
def test_libraries_that_are_not_installed_are_named_with_their_extra(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ModuleNotFoundError, match=rf"needs {library}: pip install 'tapegrad\[{library}\]'"):
        tg.parallel.sum_over(functions.loss, functions.SHARDS, library)
