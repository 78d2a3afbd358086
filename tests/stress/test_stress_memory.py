"""Loops of every kind in constant memory: resident bytes of the process and rows of the tape."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scenarios import LOOPS

import tapegrad as tg

Figure = Callable[[str, int, float, float], None]

MOST_BYTES, MOST_ROWS = 4_000_000, 10_000  # growth after the warm-up


@pytest.mark.parametrize("name", LOOPS)
def test_loop_runs_in_constant_memory(name: str, long: bool, figure: Figure) -> None:
    iterations = 100_000 if long else 3000  # of fewer, the first third does not hold the warm-up
    script = str(Path(__file__).with_name("scenarios.py"))
    done = subprocess.run([sys.executable, script, name, str(iterations)], capture_output=True, text=True, check=True)
    grown, rows = map(int, done.stdout.split())
    figure(f"{name}: rows", iterations, rows, MOST_ROWS)
    figure(f"{name}: resident bytes", iterations, grown, MOST_BYTES)


def saved_array(x: tg.Tensor) -> tuple[tg.Tensor, "weakref.ref[np.ndarray]"]:
    """A result whose row keeps an array that nobody else holds."""
    inner = x * 2.0
    link = weakref.ref(inner._data)
    return (inner * inner).sum(), link


@pytest.fixture
def x() -> tg.Tensor:
    return tg.tensor(np.arange(1.0, 5.0), requires_grad=True)


def test_a_saved_array_lives_as_long_as_its_graph(x: tg.Tensor) -> None:
    loss, link = saved_array(x)
    gc.collect()
    assert link() is not None
    del loss
    gc.collect()
    assert link() is None


def test_a_saved_array_dies_with_the_backward_pass(x: tg.Tensor) -> None:
    loss, link = saved_array(x)
    loss.backward()
    assert link() is None
    assert loss.item() == 120.0


def test_a_saved_array_lives_through_a_pass_that_retains(x: tg.Tensor) -> None:
    loss, link = saved_array(x)
    loss.backward(retain_graph=True)
    assert link() is not None
    loss.backward()
    assert link() is None


def test_a_saved_array_dies_with_grad(x: tg.Tensor) -> None:
    loss, link = saved_array(x)
    tg.autograd.grad(loss, x)
    assert link() is None


def test_a_saved_array_lives_as_long_as_a_recorded_gradient(x: tg.Tensor) -> None:
    loss, link = saved_array(x)
    (g,) = tg.autograd.grad(loss, x, create_graph=True)
    del loss
    assert link() is not None
    del g
    gc.collect()
    assert link() is None


def test_a_saved_array_lives_while_a_node_is_held(x: tg.Tensor) -> None:
    loss, link = saved_array(x)
    node = loss.grad_fn
    del loss
    gc.collect()
    assert link() is not None and node is not None
    del node
    gc.collect()
    assert link() is None
