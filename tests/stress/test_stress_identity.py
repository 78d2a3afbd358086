"""Tensors that are made, used, viewed, written, copied, swept and dropped in any order, while rows are reclaimed at any moment.

Every value, gradient, node and error is compared with `identity_model`.
"""

import copy
import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import numbers
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test
from identity_actions import BINARY, OPERATE, OPERATION_ON_ARRAYS, SHAPES, UNARY, VIEWS, WRITES, as_view, broadcasts_to, repeated
from identity_model import Model, Node, Twin, each

import tapegrad as tg

LARGEST = 50.0
FREED = "backward through the graph a second time"
MODIFIED = "modified by an inplace operation"

pick = st.integers(0, 1000)
recordings = st.sampled_from([True, True, True, False])


class Lives(RuleBasedStateMachine):
    """Random programs, checked against the model at every step."""

    def __init__(self) -> None:
        super().__init__()
        tape = tg.tape.default_tape()
        tape.collect()
        self.baseline = tape.rows
        self.model = Model()
        self.twins: list[Twin] = []
        self.held: list[tuple[Any, Node, str]] = []
        self.garbage: list[tg.Tensor] = []

    @initialize()
    def begin(self) -> None:
        for data in (np.array(0.75), np.array([0.5, -1.0]), np.array([[0.25, 1.5, -0.5], [1.0, -0.75, 0.1]])):
            self.add(self.model.make_leaf(tg.tensor(data, requires_grad=True), data, True))
            self.operate("shift", self.twins[-1], None, True)

    # Choosing

    def choose(self, k: int) -> Twin:
        # The latest tensors more often, or nothing would ever be nested.
        return self.twins[-1 - k % min(len(self.twins), 4)] if k % 3 else self.twins[k % len(self.twins)]

    def add(self, twin: Twin) -> None:
        self.twins.append(twin)

    def tensor(self, twin: Twin) -> tg.Tensor:
        assert twin.tensor is not None
        return twin.tensor

    # Making

    @rule(k=pick, value=st.floats(-1.5, 1.5), tracked=recordings)
    def new_leaf(self, k: int, value: float, tracked: bool) -> None:
        data = np.full(SHAPES[k % len(SHAPES)], value) * np.linspace(0.5, 1.0, int(np.prod(SHAPES[k % len(SHAPES)]))).reshape(
            SHAPES[k % len(SHAPES)]
        )
        self.add(self.model.make_leaf(tg.tensor(data, requires_grad=tracked), data, tracked))

    def operate(self, name: str, x: Twin, y: Twin | None, recording: bool) -> None:
        operands = [t for t in (x, y) if t is not None]
        if y is not None:
            try:
                np.broadcast_shapes(x.data.shape, y.data.shape)
            except ValueError:
                return
        with np.errstate(over="ignore"):
            largest = float(np.abs(OPERATION_ON_ARRAYS[name](*(t.data for t in operands))).max())
        if not largest < LARGEST:
            return
        tensors = [self.tensor(t) for t in operands]
        call = OPERATE[name]
        if not recording:
            with tg.no_grad():
                result = call(*tensors)
        elif any(t.spoiled for t in operands):
            self.must_raise("is a view and", lambda: call(*tensors))
            return
        else:
            result = call(*tensors)
        variables = self.model.compute(name, x, y)
        twin = self.model.make(result, variables, None)
        if recording:
            twin.node = self.model.node_of(name, x, y, variables, None)
            self.model.keep_result(name, twin.node, twin)
        if twin.node is None:
            twin.variables = self.model.constants(twin.data)
        self.add(twin)

    @rule(name=st.sampled_from(UNARY), k=pick, recording=recordings)
    def unary(self, name: str, k: int, recording: bool) -> None:
        self.operate(name, self.choose(k), None, recording)

    @rule(name=st.sampled_from(BINARY), j=pick, k=pick, recording=recordings)
    def binary(self, name: str, j: int, k: int, recording: bool) -> None:
        self.operate(name, self.choose(j), self.choose(k), recording)

    @rule(name=st.sampled_from(sorted(VIEWS)), k=pick, recording=recordings)
    def view(self, name: str, k: int, recording: bool) -> None:
        self.view_of(self.choose(k), name, recording)

    def view_of(self, x: Twin, name: str, recording: bool) -> None:
        fits, take = VIEWS[name]
        if not fits(x.data.shape) or x.data.ndim > 2 or (name == "flat" and not x.data.flags.c_contiguous):
            return
        self.take(x, take, recording)

    @rule(k=pick, count=st.integers(1, 3), recording=recordings)
    def expand(self, k: int, count: int, recording: bool) -> None:
        x = self.choose(k)
        if x.data.ndim < 2:
            shape = (count, *x.data.shape)
            self.take(x, lambda t: t.expand(*shape) if isinstance(t, tg.Tensor) else repeated(t, count), recording)

    def take(self, x: Twin, take: Callable[[Any], Any], recording: bool) -> None:
        if recording and x.spoiled:
            self.must_raise("is a view and", lambda: take(self.tensor(x)))
            return
        if recording:
            tensor = take(self.tensor(x))
        else:
            with tg.no_grad():
                tensor = take(self.tensor(x))
        self.add(self.model.view(x, tensor, as_view(take), recording))

    @rule(k=pick, recording=recordings)
    def unbind(self, k: int, recording: bool) -> None:
        x = self.choose(k)
        if not 0 < x.data.ndim < 3 or x.spoiled:
            return
        if recording:
            tensors = self.tensor(x).unbind()
        else:
            with tg.no_grad():
                tensors = self.tensor(x).unbind()
        for number, tensor in enumerate(tensors):
            self.add(self.model.view(x, tensor, lambda t, number=number: t[number, ...], recording, many=True))

    @rule(kind=st.sampled_from(["detach", "deepcopy", "copy"]), k=pick)
    def duplicate(self, kind: str, k: int) -> None:
        x = self.choose(k)
        tensor = self.tensor(x)
        if kind == "detach":
            self.add(self.model.alias(x, tensor.detach()))
        elif kind == "deepcopy":
            if x.expands:
                return  # the copy expands too
            if not x.leaf:
                self.must_raise("(?i)only Tensors created explicitly by the user", lambda: copy.deepcopy(tensor))
                return
            twin = self.model.make_leaf(copy.deepcopy(tensor), x.data.copy(), x.node is not None)
            twin.grad = None if x.grad is None else x.grad.copy()
            self.add(twin)
        elif x.leaf and x.data.ndim:
            twin = self.model.alias(x, copy.copy(tensor))
            if x.node is not None:
                twin.node = Node((), twin.variables, leaf=twin)
            self.add(twin)

    # Writing

    @rule(name=st.sampled_from(sorted(WRITES)), j=pick, k=pick, recording=recordings)
    def write(self, name: str, j: int, k: int, recording: bool) -> None:
        self.write_to(self.target(j), name, self.choose(k) if name in BINARY else None, recording)

    def target(self, k: int) -> Twin:
        """What to write: mostly something that may be written."""
        free = [t for t in self.twins if t.node is not None and not self.model.refusal(t, True, True, False)]
        return free[-1 - k % min(len(free), 5)] if free and k % 4 else self.choose(k)

    def write_to(self, t: Twin, name: str, y: Twin | None, recording: bool) -> None:
        if y is not None and not broadcasts_to(y.data.shape, t.data.shape):
            return
        operands = [x for x in (t, y) if x is not None]
        if any(x.spoiled for x in operands):
            return
        with np.errstate(over="ignore"):
            if not np.abs(OPERATION_ON_ARRAYS[name](*(x.data for x in operands))).max() < LARGEST:
                return
        tracked = recording and any(x.node is not None for x in operands)
        tensors = [self.tensor(x) for x in operands]
        if self.is_refused(t, tracked, recording, False, lambda: WRITES[name](*tensors)):
            return
        variables = self.model.compute(name, t, y)
        node = self.model.node_of(name, t, y, variables, t) if recording else None
        self.model.write(t, variables, node)
        if node is not None:
            self.model.keep_result(name, node, t)

    @rule(j=pick, k=pick, part=st.sampled_from(["all", "first", "last"]), recording=recordings)
    def assign(self, j: int, k: int, part: str, recording: bool) -> None:
        """``t[key] = value``: the value of a 0-d tensor, broadcast."""
        t, y = self.target(j), self.choose(k)
        if not t.data.ndim or y.data.ndim or t.spoiled or y.spoiled:
            return
        key: Any = {"all": slice(None), "first": 0, "last": (Ellipsis, -1)}[part]
        tensor, value = self.tensor(t), self.tensor(y)
        tracked = recording and (t.node is not None or y.node is not None)
        if part != "all" and t.expands:
            return

        def call() -> None:
            tensor[key] = value

        if self.is_refused(t, tracked, recording, False, call):
            return
        variables = t.variables.copy()
        variables[key] = y.variables.item()
        variables = each(self.model.tape.alias, variables)
        node = Node((t.node, y.node), variables, frees=1, comparable=False) if tracked else None
        self.model.write(t, variables, node)

    def is_refused(self, t: Twin, tracked: bool, recording: bool, one_value: bool, call: Callable[[], Any]) -> bool:
        expected = self.model.refusal(t, tracked, recording, one_value)
        if expected:
            version = self.tensor(t)._version
            if recording:
                self.must_raise(expected, call)
            else:
                with tg.no_grad():
                    self.must_raise(expected, call)
            assert self.tensor(t)._version == version, "a refused write counts as one"
            return True
        if recording:
            call()
        else:
            with tg.no_grad():
                call()
        return False

    def must_raise(self, pattern: str, call: Callable[[], Any]) -> None:
        with pytest.raises(RuntimeError, match=pattern):
            call()

    # Sweeping

    def root(self, k: int) -> Twin | None:
        roots = [t for t in self.twins if t.node is not None and not t.spoiled]
        if not roots:
            return None
        return roots[-1 - k % min(len(roots), 3)] if k % 3 else roots[k % len(roots)]

    def pass_agrees(self, call: Callable[[], Any], root: Twin, requested: list[Node] | None, retain: bool) -> Any:
        """Make a pass; None if it was refused as the model allows. What it may free is noted."""
        assert root.node is not None
        run = self.model.running(root.node, requested)
        verdict = self.model.verdict(root.node, run)
        try:
            result = call()
        except RuntimeError as error:
            message = str(error)
        else:
            message = ""
        if message:
            assert FREED in message or MODIFIED in message, message
            assert verdict.may, f"the model knows no reason for: {message}"
            return None
        assert not verdict.must, f"the pass should have been refused: {verdict.must}"
        if not retain:
            self.model.free(root.node, run)
        return run, result

    @rule(k=pick, retain=st.booleans(), j=pick, choice=st.booleans())
    def backward(self, k: int, retain: bool, j: int, choice: bool) -> None:
        root = self.root(k)
        if root is None or root.node is None:
            return
        seed = tg.ones_like(self.tensor(root).detach())
        leaves = [t for t in self.model_leaves() if t.tensor is not None]
        chosen = [leaves[j % len(leaves)]] if choice and leaves else None
        wanted = [t.node for t in (leaves if chosen is None else chosen) if t.node is not None]
        inputs = None if chosen is None else [self.tensor(t) for t in chosen]
        found = self.model.gradients(root, wanted)
        reached = {id(n) for n in self.model.reached([root.node])}
        requested = None if chosen is None else wanted
        call = self.tensor(root).backward
        done = self.pass_agrees(lambda: call(seed, retain_graph=retain, inputs=inputs), root, requested, retain)
        if done is None:
            return
        for node, (gradient, _) in zip(wanted, found, strict=True):
            twin = node.leaf
            assert twin is not None
            if id(node) in reached or np.any(gradient):
                twin.grad = gradient if twin.grad is None else twin.grad + gradient

    @rule(
        name=st.sampled_from([*UNARY, *BINARY]), write=st.sampled_from(["double", "shift", "neg", "add"]), k=pick, i=pick, j=pick,
        view=st.sampled_from(["none", "before", "after"]), recording=recordings, retain=st.booleans(),
    )  # fmt: skip
    def use_write_and_sweep(self, name: str, write: str, k: int, i: int, j: int, view: str, recording: bool, retain: bool) -> None:
        """Use a tensor, write it or a part of it, and ask twice for gradients of the result and of what was written."""
        t = written = self.target(k)
        names = [v for v, (fits, _) in VIEWS.items() if fits(t.data.shape)]
        if view == "before":
            self.view_of(t, names[i % len(names)], True)
            written = (t, self.twins[-1])[j % 2]
        count = len(self.twins)
        self.operate(name, t, t if name in BINARY else None, True)
        used = self.twins[-1] if len(self.twins) > count else None
        if view == "after":
            self.view_of(t, names[i % len(names)], True)
            written = (t, self.twins[-1])[j % 4 > 0]
        self.write_to(written, write, written if write == "add" else None, recording)
        for root in (used, written, t, used):
            if root is not None and root.node is not None and not root.spoiled:
                self.sweep(root, i, j, retain, False)

    def model_leaves(self) -> list[Twin]:
        return [t for t in self.twins if t.node is not None and t.node.leaf is t]

    @rule(k=pick, i=pick, j=pick, retain=st.booleans(), create=st.booleans())
    def grad(self, k: int, i: int, j: int, retain: bool, create: bool) -> None:
        root = self.root(k)
        if root is not None:
            self.sweep(root, i, j, retain, create)

    def sweep(self, root: Twin, i: int, j: int, retain: bool, create: bool) -> None:
        assert root.node is not None
        possible = [t for t in self.twins if t.node is not None and not t.vague and not t.spoiled and not t.many]
        if not possible:
            return
        chosen = [possible[i % len(possible)], possible[j % len(possible)]]
        wanted = [t.node for t in chosen if t.node is not None]
        seed = tg.ones_like(self.tensor(root).detach())
        found = self.model.gradients(root, wanted)
        done = self.pass_agrees(
            lambda: tg.autograd.grad(
                self.tensor(root), [self.tensor(t) for t in chosen], seed, retain_graph=retain or create, create_graph=create,
                materialize_grads=True,
            ),
            root, wanted, retain or create,
        )  # fmt: skip
        if done is None:
            return
        run, results = done
        for got, (gradient, size) in zip(results, found, strict=True):
            assert_close(numbers(got), gradient, size)
        if create:
            self.keep_recorded(root, run, wanted, results)

    def keep_recorded(self, root: Twin, run: Any, wanted: list[Node], results: list[tg.Tensor]) -> None:
        node, got = wanted[0], results[0]
        places = [v.slot for v in node.origin.ravel()]
        made = self.model.tape.recorded_gradient(dict.fromkeys((v.slot for v in root.variables.ravel()), 1.0), places)
        variables = np.array([made[s] for s in places], dtype=object).reshape(node.origin.shape)
        if max(abs(v.primal) for v in variables.ravel()) >= LARGEST:
            return
        twin = self.model.make(got.clone(), variables, None)
        if got.requires_grad:
            twin.node = self.model.opaque(run, variables)
            twin.node.origin = variables = twin.variables = each(self.model.tape.alias, variables)
            self.add(twin)
        else:
            sizes = self.model.tape.gradient(dict.fromkeys((v.slot for v in variables.ravel()), 1.0), magnitude=True)
            for x in self.model_leaves():
                assert x.node is not None
                assert not np.any(np.array(sizes)[[v.slot for v in x.node.origin.ravel()]]), "the gradient should be tracked"

    @rule(k=st.integers(0, 8))
    def forget_gradient(self, k: int) -> None:
        leaves = self.model_leaves()
        if leaves:
            leaf = leaves[k % len(leaves)]
            leaf.grad = self.tensor(leaf).grad = None

    # Holding, dropping, reclaiming

    @rule(k=pick)
    def hold_node(self, k: int) -> None:
        twin = self.choose(k)
        if twin.node is not None and not twin.leaf and not twin.spoiled:
            node = self.tensor(twin).grad_fn
            assert node is not None
            self.held.append((node, twin.node, node.name()))

    @precondition(lambda self: self.held)
    @rule(k=pick)
    def let_go_of_node(self, k: int) -> None:
        del self.held[k % len(self.held)]

    @precondition(lambda self: len(self.twins) > 2)
    @rule(k=pick)
    def drop(self, k: int) -> None:
        twin = self.twins.pop(k % len(self.twins))
        twin.tensor = None

    @rule()
    def collect(self) -> None:
        tg.tape.default_tape().collect()

    @rule(count=st.integers(1, 300))
    def make_garbage(self, count: int) -> None:
        x = tg.tensor([1.0, 2.0], requires_grad=True)
        for _ in range(count):
            self.garbage = [*self.garbage[-2:], x * 2.0 + x]

    # What must hold

    @invariant()
    def values_agree(self) -> None:
        for twin in self.twins:
            np.testing.assert_allclose(numbers(self.tensor(twin)), twin.data, rtol=1e-12, atol=1e-12)
            assert twin.node is None or self.tensor(twin).requires_grad
            assert twin.node is not None or not self.tensor(twin).requires_grad

    @invariant()
    def gradients_agree(self) -> None:
        for twin in self.model_leaves():
            got = self.tensor(twin).grad
            assert (got is None) == (twin.grad is None)
            if got is not None and twin.grad is not None:
                assert_close(numbers(got), twin.grad, 1e3 + np.abs(twin.grad))

    @invariant()
    def nodes_agree(self) -> None:
        known = {id(node): shown for shown, node, _ in self.held}
        for twin in self.twins:
            if twin.node is None or twin.spoiled:
                continue
            if twin.leaf:
                assert self.tensor(twin).grad_fn is None and self.tensor(twin).is_leaf
            elif id(twin.node) in known and not twin.vague:
                assert self.tensor(twin).grad_fn is known[id(twin.node)]
        for shown, node, name in self.held:
            assert shown.name() == name
            if not node.comparable:
                continue
            edges = shown.next_functions
            assert len(edges) == len(node.inputs)
            for (edge, _), source in zip(edges, node.inputs, strict=True):
                if edge is None and source is not None and source.leads_nowhere():
                    continue
                assert (edge is None) == (source is None)
                if source is not None and source.leaf is not None and source.leaf.tensor is not None:
                    assert edge.variable is source.leaf.tensor
                elif id(source) in known and source.comparable:
                    assert edge is known[id(source)]

    def teardown(self) -> None:
        self.twins.clear()
        self.held.clear()
        self.garbage.clear()
        self.model = Model()
        if sys.exc_info()[0] is not None:
            return  # a traceback holds tensors
        tape = tg.tape.default_tape()
        tape.collect()
        if tape.rows > self.baseline:
            gc.collect()
            tape.collect()
        assert tape.rows <= self.baseline, "rows stay on the tape"


def assert_close(got: np.ndarray, expected: np.ndarray, sizes: Any) -> None:
    assert got.shape == expected.shape
    assert np.all(np.abs(got - expected) <= 1e-9 * (1.0 + np.asarray(sizes))), f"{got} instead of {expected}"


def test_tensors_nodes_and_errors_keep_their_identity(long: bool) -> None:
    run_state_machine_as_test(
        Lives,
        settings=settings(
            max_examples=200 if long else 12, stateful_step_count=45 if long else 30, deadline=None, derandomize=True,
            database=None, suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip
