"""Sums on a real cluster of Dask: processes of this machine, one of which ends in the middle of a fit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import parallel_functions as functions
import pytest

import tapegrad as tg

distributed = pytest.importorskip("distributed", reason="needs the extra dask")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = str(tmp_path_factory.mktemp("dask"))
    paths = os.pathsep.join([str(Path(functions.__file__).parent), os.environ.get("PYTHONPATH", "")])
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=folder, silence_logs=50,
            env={"PYTHONPATH": paths},
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield client


@pytest.mark.filterwarnings("default")
def test_a_fit_has_the_bits_of_one_process(client: Any) -> None:
    here, there = (tg.parallel.sum_over(functions.loss, functions.SHARDS, executor) for executor in (None, client))
    fit, expected = (tg.optimize.minimize(f, np.zeros(3), method="BFGS") for f in (there, here))
    np.testing.assert_array_equal(fit.x, expected.x)
    np.testing.assert_array_equal(there.hvp(fit.x, np.ones(3)), here.hvp(fit.x, np.ones(3)))


@pytest.mark.filterwarnings("default")
def test_a_worker_that_is_lost_in_the_middle_of_a_fit_changes_nothing(client: Any, tmp_path: Path) -> None:
    marker = str(tmp_path / "lost")
    shards = [(*shard, marker) for shard in functions.SHARDS]
    there = tg.parallel.sum_over(functions.dies_once, shards, client)
    fit = tg.optimize.minimize(there, np.zeros(3), method="BFGS")
    assert os.path.exists(marker)
    expected = tg.optimize.minimize(tg.parallel.sum_over(functions.loss, functions.SHARDS), np.zeros(3), method="BFGS")
    np.testing.assert_array_equal(fit.x, expected.x)


@pytest.mark.filterwarnings("default")
def test_many_starts(client: Any) -> None:
    best = tg.optimize.multistart(functions.wavy, [[-4.0], [0.8], [3.0]], client)
    expected = tg.optimize.multistart(functions.wavy, [[-4.0], [0.8], [3.0]])
    assert best.start == expected.start
    np.testing.assert_array_equal(best.x, expected.x)


@pytest.mark.filterwarnings("default")
def test_maps_of_programs(client: Any) -> None:
    points = np.random.default_rng(0).normal(size=(100, 3))
    run = tg.value_and_grad(functions.two_ways)
    for found, expected in zip(run.map(points, executor=client), run.map(points), strict=True):
        np.testing.assert_array_equal(found, expected)
