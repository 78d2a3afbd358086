"""The collector at every place: cycles of tensors, hooks, nodes, recordings and destructors are found in the middle of any call.

What runs gives the truth, and so do the objects that destructors use or keep; a result whose graph the collector took refuses.
"""

import gc
import itertools
from collections.abc import Callable
from typing import Any

import driver_cases
import numpy as np
import pytest
from collections_at_places import Garbage, collect_at
from driver_cases import CASES, GRADIENT, X, all_sums
from test_stress_driver_faults import PACKAGE, Held
from test_stress_faults import PROGRAMS, Leaves, assert_sound, gradients, make_leaves, outcome

import tapegrad as tg

pytestmark = pytest.mark.filterwarnings("ignore:Using backward")


class Graph:
    """A graph, its leaf, a hook that holds its own tensor, a node and a recorded gradient, all in the cycle."""

    def __init__(self) -> None:
        with tg.enable_grad():
            self.x = tg.tensor([0.5, 2.0], requires_grad=True)
            self.inner = self.x * self.x
            self.inner.register_hook(lambda g: g * 2.0 if self.inner is not None else g)
            self.loss = (self.inner * self.x).sum()
            self.node = self.inner.grad_fn
            self.view = self.inner[:1]
            self.cycle: Any = None


def use_graph(graph: Graph) -> None:
    """Values are there, leaves are leaves, and what has lost its graph says so."""
    assert (graph.x.tolist(), graph.inner.tolist(), graph.loss.item()) == ([0.5, 2.0], [0.25, 4.0], 8.125)
    with tg.enable_grad():
        assert graph.x.requires_grad and graph.x.is_leaf
        factor = tg.tensor(2.0, requires_grad=True)
        fresh = (graph.x * factor).sum()
        assert [g.tolist() for g in tg.autograd.grad(fresh, [graph.x, factor])] == [[2.0, 2.0], 2.5]
        try:
            found = tg.autograd.grad((graph.inner * factor).sum(), [graph.x, factor], retain_graph=True)
        except RuntimeError as error:
            assert "garbage collector" in str(error)  # noqa: PT017
        else:  # the collector has not come to it yet
            assert found[0] is not None and found[1].item() == 4.25


def test_what_the_collector_found_is_right_or_refuses() -> None:
    garbage = Garbage(Graph, use_graph)
    for _ in range(10):
        garbage.drop()
    garbage.check()


@pytest.mark.parametrize("name", PROGRAMS)
def test_collections_at_every_place(name: str, long: bool) -> None:
    program, step = PROGRAMS[name], 1 if long else 17
    _, expected = outcome(program, False)
    garbage = Garbage(Graph, use_graph)
    places = 0
    for start in range(1, step + 1, 1 if long else 8):
        leaves = make_leaves(False)
        places = collect_at(lambda leaves=leaves: program(leaves), itertools.count(start, step), garbage, PACKAGE)
        assert gradients(leaves) == expected
        assert_sound(program, expected)
    garbage.check()
    assert places > 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_objects_of_a_program_are_collected_within_it(name: str, long: bool) -> None:
    """What is collected in the middle of the program are the leaves and the unfinished graph of the same program."""
    program, step = PROGRAMS[name], 7 if long else 61
    _, expected = outcome(program, False)

    def unfinished() -> Leaves:
        with tg.enable_grad():
            leaves = make_leaves(False)
            program(leaves)
        return leaves

    def use(leaves: Leaves) -> None:
        assert gradients(leaves) == expected

    garbage = Garbage(unfinished, use)
    for start in range(1, step, 20):
        leaves = make_leaves(False)
        collect_at(lambda leaves=leaves: program(leaves), itertools.count(start, step), garbage, PACKAGE)
        assert gradients(leaves) == expected
    garbage.check()
    assert_sound(program, expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_collections_at_allocations(name: str, long: bool) -> None:
    program = PROGRAMS[name]
    _, expected = outcome(program, False)
    threshold, prepared = gc.get_threshold(), []

    def drop_one(phase: str, _: Any) -> None:
        # Made before: CPython's context variables may not be set by what a collection runs, and NumPy's state of errors is one.
        if phase == "stop" and prepared:
            prepared.pop()

    gc.callbacks.append(drop_one)
    try:
        for every in range(40, 400, 7 if long else 90):
            leaves = make_leaves(False)
            prepared[:] = [Graph() for _ in range(50)]
            for graph in prepared:
                graph.cycle = graph
            del graph
            gc.set_threshold(every, 1, 1)
            program(leaves)
            gc.set_threshold(*threshold)
            assert gradients(leaves) == expected
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(drop_one)
    assert_sound(program, expected)


Products = tuple[Callable[..., Any], Callable[..., Any]]


def products() -> Products:
    """A pullback and a product from the other side, of a compiled function; each has a tape."""
    return tg.vjp(all_sums, X)[1], tg.linearize(all_sums, X)[1]


def use_products(made: Products) -> None:
    pull, push = made
    np.testing.assert_allclose(pull(np.array([1.0, 1.0]))[0], 4.0 * GRADIENT, rtol=1e-12)
    np.testing.assert_allclose(push(np.array([1.0, -1.0])), np.array([1.0, 3.0]) * (GRADIENT[0] - GRADIENT[1]), rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_drivers_with_collections_at_every_place(name: str, long: bool) -> None:
    held = Held(CASES[name])
    garbage = Garbage(products, use_products)
    step = 29 if long else 211
    for start in range(1, step, 10 if long else step):
        tg.free_tape_memory()
        collect_at(held.run, itertools.count(start, step), garbage, PACKAGE, driver_cases.__file__)
        held.check()
    garbage.check()
    held.check_memory()
