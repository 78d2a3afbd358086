"""Random lives of graphs: results are made, dropped, swept, retained and freed in any order while rows are reclaimed.

The naive tape never forgets anything, so whatever the engine still answers must agree with it.
"""

from dataclasses import dataclass, field

import numpy as np
from engine_fixtures import leaf, numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import Tape

import tapegrad as tg

OPERATIONS = ("add", "sub", "mul", "sin", "tanh", "neg")
LARGEST = 1e3


@dataclass
class Pair:
    """A tensor and, element by element, the naive variables it stands for."""

    tensor: tg.Tensor
    twin: np.ndarray

    def slots(self) -> list[int]:
        return [v.slot for v in np.ravel(self.twin)]


@dataclass
class World:
    tape: Tape = field(default_factory=Tape)
    leaves: list[Pair] = field(default_factory=list)
    results: list[Pair] = field(default_factory=list)
    expected: list[np.ndarray] = field(default_factory=list)  # what each leaf's grad must have accumulated

    def pool(self) -> list[Pair]:
        return self.leaves + self.results

    def make_leaf(self, value: float, array: bool) -> None:
        start = np.array([value, -value]) if array else np.array(value)
        twin = np.asarray(np.frompyfunc(self.tape.leaf, 1, 1)(start), dtype=object)
        self.leaves.append(Pair(leaf(start), twin))
        self.expected.append(np.zeros_like(start))

    def operate(self, name: str, a: Pair, b: Pair) -> None:
        binary = name in ("add", "sub", "mul")
        arguments = (a, b) if binary else (a,)
        apply = np.frompyfunc(lambda *values: self.tape.apply(name, *values), len(arguments), 1)
        twin = np.asarray(apply(*(pair.twin for pair in arguments)), dtype=object)
        if all(abs(v.primal) < LARGEST for v in np.ravel(twin)):
            self.results.append(Pair(getattr(tg, name)(*(pair.tensor for pair in arguments)), twin))

    def ancestors(self, slots: list[int]) -> set[int]:
        met, waiting = set(slots), list(slots)
        while waiting:
            for argument, _ in self.tape.rows[waiting.pop()]:
                if argument not in met:
                    met.add(argument)
                    waiting.append(argument)
        return met

    def gradients(self, pair: Pair) -> list[np.ndarray]:
        adjoints = self.tape.gradient(dict.fromkeys(pair.slots(), 1.0))
        return [np.array([adjoints[s] for s in x.slots()]).reshape(np.shape(x.twin)) for x in self.leaves]

    def forget_what_needs(self, slots: set[int]) -> None:
        """Drop the results that cannot be differentiated any more: something they need was freed or overwritten."""
        self.results = [pair for pair in self.results if not self.ancestors(pair.slots()) & slots]

    def assert_gradients_agree(self, pair: Pair) -> None:
        seed = tg.ones_like(pair.tensor.detach())
        tensors = [x.tensor for x in self.leaves]
        got = tg.autograd.grad(pair.tensor, tensors, seed, retain_graph=True, materialize_grads=True)
        for one, other in zip(got, self.gradients(pair), strict=True):
            np.testing.assert_allclose(numbers(one), other, rtol=1e-9, atol=1e-9)

    def backward(self, pair: Pair, retain: bool) -> None:
        for sums, gradient in zip(self.expected, self.gradients(pair), strict=True):
            sums += gradient
        pair.tensor.backward(tg.ones_like(pair.tensor.detach()), retain_graph=retain)
        if not retain:
            leaf_slots = {slot for x in self.leaves for slot in x.slots()}
            self.forget_what_needs(self.ancestors(pair.slots()) - leaf_slots)

    def write_leaf(self, k: int, value: float) -> None:
        """An optimiser's step: the leaf has new values, and what was computed from the old ones is let go."""
        x = self.leaves[k]
        self.forget_what_needs(set(x.slots()))
        start = np.full(np.shape(x.twin), value)
        with tg.no_grad():
            x.tensor.copy_(tg.tensor(start))
        x.twin = np.asarray(np.frompyfunc(self.tape.leaf, 1, 1)(start), dtype=object)

    def make_garbage(self, count: int) -> None:
        x = self.leaves[0].tensor
        kept: list[tg.Tensor] = []
        for _ in range(count):
            kept.append(x * 2.0 + x)
            kept = kept[-3:]

    def assert_everything_agrees(self) -> None:
        for pair in self.results:
            self.assert_gradients_agree(pair)
        for x, sums in zip(self.leaves, self.expected, strict=True):
            got = np.zeros_like(sums) if x.tensor.grad is None else numbers(x.tensor.grad)
            np.testing.assert_allclose(got, sums, rtol=1e-9, atol=1e-9)


Event = tuple[str, int, int, float]


def assert_life_agrees_with_the_naive_tape(events: list[Event]) -> None:
    world = World()
    world.make_leaf(0.75, array=False)
    world.make_leaf(-0.5, array=True)
    for kind, i, j, value in events:
        pool = world.pool()
        a, b = pool[i % len(pool)], pool[j % len(pool)]
        inner = world.results[i % len(world.results)] if world.results else None
        if kind in OPERATIONS:
            world.operate(kind, a, b)
        elif kind == "leaf":
            world.make_leaf(value, array=j % 2 == 0)
        elif kind == "write":
            world.write_leaf(i % len(world.leaves), value)
        elif kind == "garbage":
            world.make_garbage(50 * (j + 1))
        elif kind == "collect":
            tg.tape.default_tape().collect()
        elif inner is None:
            continue
        elif kind == "drop":
            del world.results[i % len(world.results)]
        elif kind == "grad":
            world.assert_gradients_agree(inner)
        else:
            world.backward(inner, retain=kind == "retained backward")
    world.assert_everything_agrees()


kinds = st.sampled_from(
    [*OPERATIONS * 2, "leaf", "write", "garbage", "collect", "drop", "drop", "grad", "backward", "retained backward"]
)
events = st.tuples(kinds, st.integers(0, 30), st.integers(0, 30), st.floats(-1.5, 1.5))


@settings(max_examples=150, deadline=None)
@given(st.lists(events, min_size=5, max_size=60))
def test_graphs_that_live_and_die_in_any_order_agree_with_the_naive_tape(history: list[Event]) -> None:
    assert_life_agrees_with_the_naive_tape(history)
