"""Settings of the tests' own process come in time."""

import os

import pytest


@pytest.mark.skipif(os.environ["OPENBLAS_NUM_THREADS"] != "1", reason="the environment asks for more threads")
def test_blas_has_one_thread() -> None:
    libraries = pytest.importorskip("threadpoolctl").threadpool_info()
    assert {one["num_threads"] for one in libraries if one["internal_api"] == "openblas"} <= {1}
