"""Settings that all tests share."""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import tapegrad as tg

# The first example of a test may compile; no test may depend on how fast the machine is, nor on chance.
settings.register_profile("tapegrad", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tapegrad")


@pytest.fixture(autouse=True, scope="session")
def _loaded() -> None:
    """The engine is loaded before anything is counted."""
    x = tg.tensor(1.0, requires_grad=True)
    (x * x).backward()


@pytest.fixture(autouse=True, scope="module")
def _short_collections(_loaded: None) -> None:
    """Collections look only at what the tests of a file make: with modules and compiled functions each would take a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    tg.manual_seed(0)


@pytest.fixture
def default_float32() -> Iterator[None]:
    """The test runs with float32 as the default dtype."""
    tg.set_default_dtype(tg.float32)
    yield
    tg.set_default_dtype(tg.float64)
