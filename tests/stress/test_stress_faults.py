"""Exceptions at every step: the tape stays consistent, gradients are all there or none, and nothing is lost.

Three injectors. One raises at the k-th call of an internal boundary (allocations, entries of the engine, Python derivatives), one
at the k-th place of the package's own code where Python could deliver a KeyboardInterrupt, one refuses the k-th request of the
interpreter for memory. They go through all k.
"""

import gc
import importlib
import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interrupts import Stop, interrupt

import tapegrad as tg
from tapegrad.engine import layout
from tapegrad.kernels.entries import ENTRIES
from tapegrad.tape.column_memory import ROW_COLUMNS

try:
    import _testcapi
except ImportError:  # not every build of Python has it
    _testcapi = None

pytestmark = [
    pytest.mark.filterwarnings("ignore:Using backward"),
    pytest.mark.filterwarnings(
        "ignore::pytest.PytestUnraisableExceptionWarning"
    ),  # what hits a destructor or a generator's end, Python swallows
]

PACKAGE = str(Path(tg.__file__).parent)
TAPE = tg.tape.default_tape()
SWEEPS = importlib.import_module("tapegrad.autograd.sweep_memory")

Leaves = tuple[tg.Tensor, ...]
Program = Callable[[Leaves], None]


def scalars(leaves: Leaves) -> None:
    w, _, _ = leaves
    (tg.sin(w * w + 1.0) / (w + 2.0)).backward()


def arrays(leaves: Leaves) -> None:
    _, v, _ = leaves
    ((v[1:] - v[:-1] ** 2) ** 2 + tg.exp(-v[1:])).sum().backward()


def host_rows(leaves: Leaves) -> None:
    _, v, m = leaves
    hidden = tg.softmax(m @ v, 0)
    (hidden.prod() + tg.cumsum(hidden, 0).sum()).backward()


def several_outputs(leaves: Leaves) -> None:
    _, v, m = leaves
    outputs = tg.linalg.qr(m + 4.0 * tg.eye(4))
    ((outputs.Q * outputs.R).diagonal() * v.reshape(2, 2).transpose(0, 1).reshape(4)).sum().backward()


def several_leaves(leaves: Leaves) -> None:
    w, v, m = leaves
    ((m * v).sum() * w).backward()


def retained(leaves: Leaves) -> None:
    w, v, _ = leaves
    inner = v * w
    inner.retain_grad()
    (inner * inner).sum().backward()


def chosen_inputs(leaves: Leaves) -> None:
    w, v, m = leaves
    (m @ v).sum().mul(w).backward(inputs=[v, m])


def recorded(leaves: Leaves) -> None:
    w, v, _ = leaves
    (g,) = tg.autograd.grad((v * v * w).sum(), v, create_graph=True)
    (g * g).sum().backward()


def recorded_backward(leaves: Leaves) -> None:
    w, v, _ = leaves
    (tg.exp(v) * w).sum().backward(create_graph=True)


def writes(leaves: Leaves) -> None:
    w, v, _ = leaves
    out = tg.zeros(8)
    out[:4] = v * w
    out[4:] += v
    out.view(2, 4)[0].mul_(2.0)
    (out * out).sum().backward()


def hooks(leaves: Leaves) -> None:
    w, v, _ = leaves
    inner = v * w
    inner.register_hook(lambda g: g * 2.0)
    inner.grad_fn.register_hook(lambda i, o: None)
    w.register_hook(lambda g: g * 3.0)
    (inner * inner).sum().backward()


class Squares(tg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: tg.Tensor) -> tuple[tg.Tensor, tg.Tensor]:
        ctx.save_for_backward(x)
        return x * x, x + 1.0

    @staticmethod
    def backward(ctx: Any, g: tg.Tensor, h: tg.Tensor) -> tg.Tensor:
        (x,) = ctx.saved_tensors
        return 2.0 * g * x + h


def custom_function(leaves: Leaves) -> None:
    w, v, _ = leaves
    y, z = Squares.apply(v * w)
    (y * z).sum().backward()


def growth(leaves: Leaves) -> None:
    w, _, _ = leaves
    y = w * w
    for grow, capacity in (
        (TAPE._grow_rows, layout.CAPACITY),
        (TAPE._grow_side, layout.SIDE_CAPACITY),
        (TAPE._grow_constants, layout.CONSTANT_CAPACITY),
        (partial(TAPE._grow_handles, "handle", layout.HANDLE), layout.HANDLE_CAPACITY),
        (partial(TAPE._grow_handles, "anchor", layout.ANCHOR), layout.ANCHOR_CAPACITY),
    ):
        grow(int(TAPE.header[capacity]) + 8)
    TAPE.make_room_for_written(1)
    (y / (w + 2.0)).backward()


PROGRAMS: dict[str, Program] = {
    program.__name__: program
    for program in (
        scalars, arrays, host_rows, several_outputs, several_leaves, retained, chosen_inputs, recorded, recorded_backward, writes,
        hooks, custom_function, growth,
    )
}  # fmt: skip

# Column: header word of its address.
COLUMNS = {name: word for name, (word, _) in ROW_COLUMNS.items()} | {
    "side": layout.SIDE,
    "handle": layout.HANDLE,
    "anchor": layout.ANCHOR,
    "written": layout.WRITTEN,
}


def make_leaves(with_grad: bool) -> Leaves:
    leaves = (
        tg.tensor(0.7, requires_grad=True),
        tg.tensor([0.5, -0.3, 0.8, 0.1], requires_grad=True),
        tg.tensor(np.linspace(-1.0, 1.0, 16).reshape(4, 4), requires_grad=True),
    )
    if with_grad:
        for leaf in leaves:
            leaf.grad = tg.ones_like(leaf.detach())
    return leaves


def gradients(leaves: Leaves) -> list[Any]:
    return [None if leaf.grad is None else leaf.grad.tolist() for leaf in leaves]


def assert_all_or_none(got: list[Any], before: list[Any], after: list[Any]) -> None:
    assert got in (before, after), f"half handed over: {got}, before {before}, complete {after}"


def assert_columns_are_kept() -> None:
    """The memory that the engine uses is that of the columns that Python keeps alive."""
    used = {name: int(TAPE.header[word]) for name, word in COLUMNS.items()}
    used["constant"] = int(TAPE.header[layout.CONSTANT]) - 8
    assert used == {name: column.ctypes.data for name, column in TAPE.columns.items()}


def assert_sound(program: Program, expected: list[Any]) -> None:
    """The columns are alive, the next graph on the same tape is right, nothing pins the tape, and rows are given back."""
    assert_columns_are_kept()
    fresh = make_leaves(False)
    program(fresh)
    assert gradients(fresh) == expected
    TAPE.count_pins()
    assert int(TAPE.header[layout.PINS]) == 0


def outcome(program: Program, with_grad: bool) -> tuple[list[Any], list[Any]]:
    leaves = make_leaves(with_grad)
    before = gradients(leaves)
    program(leaves)
    return before, gradients(leaves)


def attempts(program: Program, with_grad: bool, run: Callable[[Program, Leaves, int], bool], step: int) -> int:
    """Inject at the first, second, … place until the program gets through; how often it did not."""
    before, after = outcome(program, with_grad)
    _, expected = outcome(program, False)
    for k in itertools.count(1, step):
        leaves = make_leaves(with_grad)
        finished = run(program, leaves, k)
        assert_all_or_none(gradients(leaves), before, after)
        del leaves
        assert_sound(program, expected)
        if finished:
            return k
    raise AssertionError


def interrupted(program: Program, leaves: Leaves, k: int) -> bool:
    """Run with an interrupt at the k-th place of the package; whether the program got through before."""
    # pytest keeps what destructors raise, and with its frames the claims that they had just made.
    return not interrupt(lambda: program(leaves), k, PACKAGE, but={"__enter__"})


class Boundary:
    """Raises at the k-th call of what it stands for: before the call, or when it has returned."""

    def __init__(self, late: bool) -> None:
        self.calls, self.stop_at, self.late = 0, 0, late

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.calls += 1
            if self.calls == self.stop_at and not self.late:
                raise Stop
            result = function(*arguments)
            if self.calls == self.stop_at:
                raise Stop
            return result

        return call


# Entries that run inside destructors, where Python swallows what is raised, the steps that hand gradients over in one go, and the
# way back of a mode, which nothing can come before.
UNTOUCHED = {"drop", "release_all", "conclude", "give_up", "drop_trash", "pin", "correct_pins", "switch_recording"}
# Programs that compiled operators and sweeps alone run, without a call of the engine that Python makes unless memory has to grow.
PERHAPS_WITHOUT_BOUNDARIES = {"scalars", "arrays", "host_rows", "writes", "several_outputs"}


@pytest.fixture(params=[False, True], ids=["before", "after"])
def boundary(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Boundary:
    for program in PROGRAMS.values():
        program(make_leaves(True))
    guard = Boundary(request.param)
    for name in ENTRIES:
        if name not in UNTOUCHED:
            monkeypatch.setattr(TAPE, name, guard.around(getattr(TAPE, name)))
    monkeypatch.setattr(tg.tape.column_memory, "allocate", guard.around(tg.tape.column_memory.allocate))
    return guard


@pytest.mark.parametrize("with_grad", [False, True], ids=["no gradients", "gradients"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_exceptions_at_every_boundary(name: str, with_grad: bool, boundary: Boundary) -> None:
    def run(program: Program, leaves: Leaves, k: int) -> bool:
        boundary.calls, boundary.stop_at = 0, k
        try:
            program(leaves)
        except Stop:
            return False
        finally:
            boundary.stop_at = 0
        return True

    assert attempts(PROGRAMS[name], with_grad, run, 1) > 1 or name in PERHAPS_WITHOUT_BOUNDARIES


@pytest.mark.parametrize("with_grad", [False, True], ids=["no gradients", "gradients"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_interrupts_at_every_place(name: str, with_grad: bool, long: bool) -> None:
    assert attempts(PROGRAMS[name], with_grad, interrupted, 1 if long else 11) > 1


def test_interrupts_leave_no_rows_behind() -> None:
    def rows() -> int:
        gc.collect()
        TAPE.collect()
        return TAPE.rows

    program = PROGRAMS["recorded"]
    program(make_leaves(False))
    before = rows()
    for k in range(1, 400, 3):
        interrupted(program, make_leaves(False), k)
    assert rows() <= before + 400  # an interrupt between recording a row and storing its handle loses that one row


class Unable:
    """Refuses memory from the k-th request on."""

    def __init__(self, allocate: Callable[..., Any]) -> None:
        self.allocate, self.left = allocate, -1

    def __call__(self, *arguments: Any) -> Any:
        if self.left == 0:
            raise MemoryError
        self.left -= self.left > 0
        return self.allocate(*arguments)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Unable:
    unable = Unable(tg.tape.column_memory.allocate)
    monkeypatch.setattr(tg.tape.column_memory, "allocate", unable)
    return unable


def refuse(program: Program, leaves: Leaves, k: int) -> bool:
    """Run while Python refuses the k-th request for memory."""
    _testcapi.set_nomemory(k, k + 1)
    try:
        program(leaves)
    except (MemoryError, SystemError):  # NumPy sometimes forgets to say which error it was
        return False
    finally:
        _testcapi.remove_mem_hooks()
    return True


@pytest.mark.parametrize("name", PROGRAMS if _testcapi else [])
def test_running_out_of_memory_at_any_request_loses_nothing(name: str, long: bool) -> None:
    program = PROGRAMS[name]
    before, after = outcome(program, True)
    _, expected = outcome(program, False)
    program(make_leaves(False))
    for k in range(0, 2000, 1 if long else 43):
        leaves = make_leaves(True)
        refuse(program, leaves, k)
        assert_all_or_none(gradients(leaves), before, after)
        del leaves
        assert_sound(program, expected)


@pytest.mark.parametrize("allowed", range(8))
def test_running_out_of_memory_while_recording_loses_nothing(memory: Unable, allowed: int) -> None:
    x = tg.tensor(1.0, requires_grad=True)
    chain = [x * 1.0]

    def lengthen() -> None:
        while len(chain) < 4 * int(TAPE.header[1]):
            chain.append(chain[-1] * x)

    memory.left = allowed
    with pytest.raises(MemoryError):
        lengthen()
    memory.left = -1
    chain[-1].backward()
    assert x.grad.item() == len(chain)


@pytest.mark.parametrize("allowed", range(3))
def test_running_out_of_memory_for_adjoints_loses_nothing(memory: Unable, allowed: int) -> None:
    x = tg.tensor(np.ones(1000), requires_grad=True)
    z = x
    for _ in range(20_000):  # more rows than any pass before this one had, so that its working memory must grow
        z = z + x
    loss = (z * z).sum() + tg.cat([x * float(k) for k in range(300)]).sum()
    SWEEPS._pool.clear()
    memory.left = allowed
    refused = False
    try:
        loss.backward()
    except MemoryError:
        refused = True
    memory.left = -1
    assert (x.grad is None) == refused
    if refused:
        loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2.0 * 20_001**2 + 300 * 299 / 2, rtol=1e-12)
