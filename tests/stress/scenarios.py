"""Loops that must run for ever in constant memory. Each yields after every iteration and holds nothing that grows but what it says.

Run as a script, it prints the growth of resident memory, of tape rows and of Python's objects after the warm-up:
``python scenarios.py NAME ITERATIONS``.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tapegrad as tg

Loop = Callable[[], Iterator[None]]


def scalar_loss(w: tg.Tensor, k: int) -> tg.Tensor:
    y = w
    for j in range(4):
        y = tg.sin(y * 0.5 + j) * w - (k % 100) * 1e-4
    return y * y


def array_loss(w: tg.Tensor) -> tg.Tensor:
    return ((w[1:] - w[:-1] ** 2) ** 2 + tg.exp(-w[1:])).sum()


def leaves() -> tuple[tg.Tensor, tg.Tensor]:
    return tg.tensor(0.3, requires_grad=True), tg.tensor(np.linspace(0.1, 0.9, 16), requires_grad=True)


def train() -> Iterator[None]:
    w, v = leaves()
    k = 0
    while True:
        (scalar_loss(w, k) + array_loss(v)).backward()
        with tg.no_grad():
            w -= 1e-4 * w.grad
            v -= 1e-4 * v.grad
        w.grad = None
        v.grad.zero_()
        k += 1
        yield


def evaluate_and_drop() -> Iterator[None]:
    w, v = leaves()
    k = 0
    while True:
        (scalar_loss(w, k) + array_loss(v)).item()
        k += 1
        yield


def keep_every_loss() -> Iterator[None]:
    w, v = leaves()
    losses: deque[tg.Tensor] = deque(maxlen=5000)
    k = 0
    while True:
        loss = scalar_loss(w, k) + array_loss(v)
        loss.backward()
        losses.append(loss)
        k += 1
        yield


def keep_every_detached_prediction() -> Iterator[None]:
    w, v = leaves()
    kept: deque[tg.Tensor] = deque(maxlen=5000)
    k = 0
    while True:
        kept.append((scalar_loss(w, k) + array_loss(v)).detach())
        k += 1
        yield


def keep_graphs_and_run_them_later() -> Iterator[None]:
    w, v = leaves()
    waiting: deque[tuple[int, tg.Tensor]] = deque()
    k = 0
    while True:
        loss = scalar_loss(w, k) + array_loss(v)
        if k % 10 == 0:
            waiting.append((k, loss))
        while waiting and waiting[0][0] + 100 <= k:
            waiting.popleft()[1].backward()
            w.grad = v.grad = None
        k += 1
        yield


def retain_and_drop() -> Iterator[None]:
    w, v = leaves()
    k = 0
    while True:
        (scalar_loss(w, k) + array_loss(v)).backward(retain_graph=True)
        w.grad.zero_()
        v.grad.zero_()
        k += 1
        yield


def recorded_gradient_and_drop() -> Iterator[None]:
    w, v = leaves()
    k = 0
    while True:
        tg.autograd.grad(scalar_loss(w, k) + array_loss(v), (w, v), create_graph=True)
        k += 1
        yield


def exception_before_backward() -> Iterator[None]:
    w, v = leaves()
    k = 0
    while True:
        try:
            loss = scalar_loss(w, k) + array_loss(v)
            loss + tg.ones(3, 5) @ tg.ones(4, 5)
        except RuntimeError:
            del loss
        k += 1
        yield


def views_and_writes() -> Iterator[None]:
    _, v = leaves()
    k = 0
    while True:
        out = tg.zeros(16)
        out[:8] = v[:8] * v[8:]
        out[8:] += v[:8]
        out.view(4, 4).t()[0].mul_(2.0)
        out.mul_(1.5)
        (out * out).sum().backward()
        v.grad.zero_()
        k += 1
        yield


def retained_gradients() -> Iterator[None]:
    w, v = leaves()
    k = 0
    while True:
        inner = v * v
        inner.retain_grad()
        (inner.sum() * scalar_loss(w, k)).backward()
        assert inner.grad is not None
        w.grad = v.grad = None
        k += 1
        yield


def abandoned_generators() -> Iterator[None]:
    w, _ = leaves()

    @tg.no_grad()
    def predictions() -> Iterator[tg.Tensor]:
        k = 0
        while True:
            yield scalar_loss(w, k)
            k += 1

    while True:
        source = predictions()
        next(source)
        del source
        assert tg.is_grad_enabled() and scalar_loss(w, 1).requires_grad
        yield


def cycles_through_grad_fn() -> Iterator[None]:
    w, v = leaves()
    k = 0
    while True:
        loss = scalar_loss(w, k) + array_loss(v)
        holder = [loss, loss.grad_fn, loss.grad_fn.next_functions]
        holder.append(holder)
        del holder, loss
        k += 1
        yield


class Scaled(tg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: tg.Tensor, factor: float) -> tuple[tg.Tensor, tg.Tensor]:
        ctx.factor, ctx.x = factor, x
        y = x * factor
        ctx.save_for_backward(x, y)
        return y, x + factor

    @staticmethod
    def backward(ctx: Any, g: tg.Tensor, h: tg.Tensor) -> tuple[tg.Tensor, None]:
        x, y = ctx.saved_tensors
        return g * ctx.factor + h * (y / x) / ctx.factor, None


def custom_functions() -> Iterator[None]:
    w, v = leaves()
    k = 0
    while True:
        y, z = Scaled.apply(v * 1.0, 2.0)
        a, _ = Scaled.apply(w, 3.0)
        loss = (y * z).sum() * a
        if k % 3 == 0:
            loss.backward()
        elif k % 3 == 1:
            tg.autograd.grad(loss, (w, v), create_graph=True)
        w.grad = v.grad = None
        k += 1
        yield


def hooks_that_hold_their_tensor() -> Iterator[None]:
    w, v = leaves()
    k = 0
    while True:
        leaf = tg.tensor(1.0, requires_grad=True)
        leaf.register_post_accumulate_grad_hook(lambda p, leaf=leaf: None)
        for inner in (w * leaf, v * 2.0):
            inner.register_hook(lambda g, inner=inner: g * 1.0)
            inner.grad_fn.register_hook(lambda i, o, inner=inner: None)
            inner.grad_fn.register_prehook(lambda o, inner=inner: None)
            loss = tg.sin(inner).sum()
            if k % 2:
                loss.backward()
        w.grad = v.grad = None
        k += 1
        yield


LOOPS: dict[str, Loop] = {
    loop.__name__: loop
    for loop in (
        train, evaluate_and_drop, keep_every_loss, keep_every_detached_prediction, keep_graphs_and_run_them_later, retain_and_drop,
        recorded_gradient_and_drop, exception_before_backward, views_and_writes, retained_gradients, abandoned_generators,
        cycles_through_grad_fn, custom_functions, hooks_that_hold_their_tensor,
    )
}  # fmt: skip


def resident() -> int:
    """Bytes of resident memory; where the system does not tell, the most there ever were."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def growth(name: str, iterations: int) -> tuple[int, int]:
    """By how much resident memory (bytes) and tape rows grow from the first third of the iterations to the rest."""
    tape = tg.tape.default_tape()
    memory: list[int] = []
    rows: list[int] = []
    every = max(1, iterations // 60)
    next(LOOPS[name]())  # loads what is compiled
    gc.collect()
    gc.freeze()  # collections need not look at the modules again and again
    for k, _ in zip(range(iterations), LOOPS[name](), strict=False):
        if k % every == every - 1:
            gc.collect()
            memory.append(resident())
        if k % 7 == 0:
            rows.append(tape.rows)
    third, rows_third = len(memory) // 3, len(rows) // 3
    return max(memory[third:]) - max(memory[:third]), max(rows[rows_third:]) - max(rows[:rows_third])


if __name__ == "__main__":
    print(*growth(sys.argv[1], int(sys.argv[2])))
