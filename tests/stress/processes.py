"""Programs that fork or start processes; `python processes.py NAME ROUNDS` runs one and fails if any process went wrong."""

import functools
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

import tapegrad as tg
from tapegrad.recording import structural

TAPE = tg.tape.default_tape()
PATIENCE = 60  # seconds until a process counts as stuck
Program = Callable[[int], None]


def close(got: object, expected: object) -> None:
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12)


def work() -> None:
    """Graphs of all kinds, swept, recorded and reclaimed."""
    x = tg.tensor([0.5, 2.0], requires_grad=True)
    s = tg.tensor(3.0, requires_grad=True)
    for _ in range(3):
        x.grad = s.grad = None
        (tg.exp(x * s).sum() + s * s + (x @ x)).backward()
        values = np.exp(3.0 * np.array([0.5, 2.0]))
        close(x.grad.numpy(), 3.0 * values + 2.0 * np.array([0.5, 2.0]))
        close(s.grad.item(), values @ [0.5, 2.0] + 6.0)
    (g,) = tg.autograd.grad(s**3, s, create_graph=True)
    close(tg.autograd.grad(g, s)[0].item(), 18.0)
    big = tg.ones(100_000, requires_grad=True)
    (big * big).sum().backward()
    close(big.grad.numpy(), 2.0)


def reclaims() -> None:
    """Rows are given back: no pass that will never end keeps them."""
    x = tg.tensor(1.0, requires_grad=True)
    for _ in range(200_000):
        x * 2.0
    TAPE.collect()
    assert TAPE.rows < 100_000, TAPE.rows


def child_does(*programs: Callable[[], None]) -> None:
    """Fork; the child runs the programs within the time allowed, and the parent waits for it."""
    process = os.fork()
    if not process:
        code = 1
        try:
            signal.alarm(PATIENCE)
            for program in programs:
                program()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    status = os.waitpid(process, 0)[1]
    assert status == 0, f"the child ended with status {status}"


@contextmanager
def beside(*programs: Callable[[], None]) -> Iterator[None]:
    """Threads that run these programs again and again."""
    over = threading.Event()
    raised: list[BaseException] = []

    def repeat(program: Callable[[], None]) -> None:
        try:
            while not over.is_set():
                program()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=repeat, args=(program,), daemon=True) for program in programs]
    for thread in threads:
        thread.start()
    yield
    over.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert not raised, raised


def fork_between_passes(rounds: int) -> None:
    work()
    for _ in range(rounds):
        child_does(work, reclaims)
        work()


def fork_before_anything(rounds: int) -> None:
    for _ in range(2):
        child_does(work)
    work()


def fork_with_a_graph(rounds: int) -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    loss = (tg.exp(x) * x).sum()

    def run() -> None:
        loss.backward()
        close(x.grad.numpy(), np.exp([1.0, 2.0]) * [2.0, 3.0])

    child_does(run, work)
    run()


def fork_shares_no_memory(rounds: int) -> None:
    """What the child writes, into memory that was in use and into memory that waited to be used again, the parent does not see."""
    x = tg.ones(100_000, requires_grad=True)
    kept = x * 2.0
    (x * 3.0).sum().backward()

    def write() -> None:
        with tg.no_grad():
            for t in (x, kept, x.grad):
                t.fill_(7.0)

    child_does(write)
    close(kept.detach().numpy(), 2.0)
    close(x.grad.numpy(), 3.0)
    close(x.detach().numpy(), 1.0)


def fork_beside_busy_threads(rounds: int) -> None:
    work()
    shared = tg.ones(100_000, requires_grad=True)

    def accumulate() -> None:
        (shared * 2.0).sum().backward()

    def grow() -> None:
        x = tg.tensor(1.0, requires_grad=True)
        kept = [x * 1.0 for _ in range(20_000)]
        sum(kept[:10]).backward()

    def first_uses() -> None:
        leaves = [tg.tensor([1.0], requires_grad=True) for _ in range(100)]
        sum(x * 2.0 for x in leaves).backward()

    sys.setswitchinterval(1e-4)
    with beside(work, accumulate, grow, first_uses):
        for _ in range(rounds):
            child_does(work, reclaims)


class Stop:
    """An operation whose derivative is Python and calls what it is given."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.then = then
        self.op = structural.Structural("StopBackward0", ((),), self.vjp)

    def __call__(self, x: tg.Tensor) -> tg.Tensor:
        return structural.apply(self.op, (x,), x.detach().numpy().copy())

    def vjp(self, g: tg.Tensor, context: object) -> tuple[tg.Tensor]:
        self.then()
        return (g * 1.0,)


def fork_beside_a_pass(rounds: int) -> None:
    """Another thread stands in the middle of a pass: its rows are no hindrance in the child, and it goes on in the parent."""
    inside, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        inside.set()
        go_on.wait(PATIENCE)

    stop = Stop(wait)
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    thread = threading.Thread(target=lambda: (stop(x * x) * x).sum().backward())
    thread.start()
    inside.wait(PATIENCE)
    child_does(work, reclaims)
    go_on.set()
    thread.join(PATIENCE)
    close(x.grad.numpy(), [3.0, 12.0])
    reclaims()


def fork_beside_a_recorded_pass(rounds: int) -> None:
    """The same for a pass that is recorded, which holds its rows by a claim."""
    inside, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        inside.set()
        go_on.wait(PATIENCE)

    stop = Stop(wait)
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    found = []
    thread = threading.Thread(target=lambda: found.extend(tg.autograd.grad((stop(x * x) * x).sum(), x, create_graph=True)))
    thread.start()
    inside.wait(PATIENCE)
    child_does(work, reclaims)
    go_on.set()
    thread.join(PATIENCE)
    close(found[0].detach().numpy(), [3.0, 12.0])
    reclaims()


def fork_inside_a_pass(rounds: int) -> None:
    """The pass goes on in both processes."""
    outcome = []

    def fork() -> None:
        outcome.append(os.fork())

    x = tg.tensor([1.0, 2.0], requires_grad=True)
    for create_graph in (False, True):
        (g,) = tg.autograd.grad((Stop(fork)(x * x) * x).sum(), x, create_graph=create_graph)
        if not outcome[-1]:
            signal.alarm(PATIENCE)
            close(g.detach().numpy(), [3.0, 12.0])
            work()
            reclaims()
            os._exit(0)
        close(g.detach().numpy(), [3.0, 12.0])
        assert os.waitpid(outcome[-1], 0)[1] == 0
    reclaims()


def fork_beside_no_grad(rounds: int) -> None:
    """The modes of threads that are gone do not count, that of the thread that forked does."""
    inside, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        with tg.no_grad():
            inside.set()
            go_on.wait(PATIENCE)

    thread = threading.Thread(target=wait)
    thread.start()
    inside.wait(PATIENCE)

    def modes() -> None:
        assert TAPE.recording_off == int(not tg.is_grad_enabled())

    child_does(modes, work)
    with tg.no_grad():
        child_does(modes)
    go_on.set()
    thread.join(PATIENCE)
    modes()


def square_gradient(k: float) -> float:
    x = tg.tensor(k, requires_grad=True)
    (x * x).backward()
    return float(x.grad.item())


def sent_tensor(x: tg.Tensor) -> tg.Tensor:
    (x * x).sum().backward()
    return x.grad


def pool(method: str, rounds: int) -> None:
    expected = [square_gradient(float(k)) for k in range(8)]
    with multiprocessing.get_context(method).Pool(2) as workers:
        assert workers.map(square_gradient, map(float, range(8))) == expected
        sent = workers.apply(sent_tensor, (tg.tensor([1.0, 2.0], requires_grad=True),))
    close(sent.numpy(), [2.0, 4.0])
    work()


def joblib_workers(rounds: int) -> None:
    from joblib import Parallel, delayed

    expected = [square_gradient(float(k)) for k in range(8)]
    assert Parallel(n_jobs=2)(delayed(square_gradient)(float(k)) for k in range(8)) == expected
    assert Parallel(n_jobs=2, backend="threading")(delayed(square_gradient)(float(k)) for k in range(8)) == expected
    work()


FORKS: dict[str, Program] = {
    f.__name__: f
    for f in (
        fork_between_passes,
        fork_before_anything,
        fork_with_a_graph,
        fork_shares_no_memory,
        fork_beside_busy_threads,
        fork_beside_a_pass,
        fork_beside_a_recorded_pass,
        fork_inside_a_pass,
        fork_beside_no_grad,
    )
}
PROGRAMS: dict[str, Program] = {
    **FORKS,
    "pool_by_fork": functools.partial(pool, "fork"),
    "pool_by_spawn": functools.partial(pool, "spawn"),
    "joblib_workers": joblib_workers,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](int(sys.argv[2]))
    print("done")
